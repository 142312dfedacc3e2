"""Quantiles: ``quantile``, ``percentile``, ``median`` and their kin that skip NaN.

Only the elements next to the quantiles are put in their place, which is linear in the size: by NumPy's partition for
concrete arrays, by `order_statistics` while tracing.
"""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.lax.order_statistics import order_statistics
from catena.lax.policy import LARGE
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    broadcast_to,
    canonical_axes,
    concrete_values,
    convert,
    direct,
    like,
    run,
    static_axis,
    strong_with_slopes,
)
from catena.numpy.documentation import family
from catena.numpy.hot import REAL
from catena.numpy.placement import placed
from catena.numpy.reductions import Axis
from catena.typing import ArrayLike

_PARTITIONED = ("linear", "lower", "higher", "midpoint", "nearest")
_METHODS = (*_PARTITIONED, "inverted_cdf")


_along_axes = family(
    a="an array or a scalar; not complex.",
    q="fractions in [0, 1], a scalar or an array with one axis.",
    axis="an axis or a tuple of them; None for all.",
    method="as for ``quantile``.",
    keepdims="whether the axes stay, with length 1.",
    weights='the weights of elements for "inverted_cdf".',
    returns="A float array without the axes; with the axis of ``q`` in front where it has one.",
    raises=(
        "TypeError: an argument is neither an array nor a scalar, or there are no elements.\n"
        "ValueError: ``a`` is complex, ``q`` has several axes, or an option is not supported."
    ),
)


@_along_axes
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which fractions ``q`` of the elements along axes lie; NaN where an element is NaN.

    Arguments:
      out, overwrite_input: not supported; arrays are immutable.
      method: between two elements, "linear" interpolates; "lower", "higher", "midpoint" and "nearest" do as
        they say; "inverted_cdf" takes the first element whose cumulated weight reaches the fraction.
      weights: the weights of elements for "inverted_cdf": in the shape of ``a``, or one for each element
        along ``axis``.

    >>> import catena.numpy as jnp
    >>> jnp.quantile(jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([0.25, 0.5]))
    Array([1.75, 2.5 ], dtype=float32)
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan=False)


@_along_axes
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which fractions ``q`` of the elements along axes lie, without those that are NaN.

    Arguments:
      out, overwrite_input: not supported; arrays are immutable.
    Returns:
      A float array without the axes; with the axis of ``q`` in front where it has one. NaN where all are NaN.

    >>> import catena.numpy as jnp
    >>> jnp.nanquantile(jnp.array([1.0, jnp.nan, 3.0]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan=True)


@_along_axes
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """The values below which ``q`` percent of the elements along axes lie; NaN where an element is NaN.

    Arguments:
      q: percentages in [0, 100], a scalar or an array with one axis.
      out, overwrite_input: not supported; arrays are immutable.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.

    >>> import catena.numpy as jnp
    >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0, 4.0, 5.0]), 50)
    Array(3., dtype=float32)
    """
    if out_sharding is not None:
        return told(out_sharding, percentile, a, q, axis, out, overwrite_input, method, keepdims, weights=weights)
    if out is None and weights is None and out_sharding is None and not overwrite_input:  # the hot path
        if (found := _of_value(a, q, axis, method, keepdims, percent=True)) is not None:
            return found
    q = _fraction("percentile", q)
    result = _quantile("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan=False)
    return placed(result)


@_along_axes
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The values below which ``q`` percent of the elements along axes lie, without those that are NaN.

    Arguments:
      q: percentages in [0, 100], a scalar or an array with one axis.
      out, overwrite_input: not supported; arrays are immutable.
    Returns:
      A float array without the axes; with the axis of ``q`` in front where it has one. NaN where all are NaN.

    >>> import catena.numpy as jnp
    >>> jnp.nanpercentile(jnp.array([1.0, jnp.nan, 3.0]), 50)
    Array(2., dtype=float32)
    """
    q = _fraction("nanpercentile", q)
    return _quantile("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan=True)


@_along_axes
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle of the elements along axes, the mean of the middle two; NaN where an element is NaN.

    Arguments:
      out, overwrite_input: not supported; arrays are immutable.
    Returns:
      A float array without the axes.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar, or there are no elements.
      ValueError: ``a`` is complex, or an option is not supported.

    >>> import catena.numpy as jnp
    >>> jnp.median(jnp.array([1.0, 7.0, 2.0, 3.0]))
    Array(2.5, dtype=float32)
    """
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, skip_nan=False)


@_along_axes
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle of the elements along axes, without those that are NaN.

    Arguments:
      out, overwrite_input: not supported; arrays are immutable.
    Returns:
      A float array without the axes; NaN where all are NaN.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar, or there are no elements.
      ValueError: ``a`` is complex, or an option is not supported.

    >>> import catena.numpy as jnp
    >>> jnp.nanmedian(jnp.array([1.0, jnp.nan, 2.0]))
    Array(1.5, dtype=float32)
    """
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, skip_nan=True)


# ----------------------------------------------------------------------------------------------------


def _fraction(name: str, q):
    """Percentages as fractions."""
    q = as_array_argument(name, q, 1)
    q = convert(q, dtypes.to_inexact_dtype(q.dtype), q.weak_type)
    return lax.div(q, like(q, 100))


def _of_value(a, q, axis, method, keepdims, percent: bool = False):
    """One quantile of a concrete array of a common dtype; None where the general path has to see to it."""
    if type(q) not in (float, int) or not (found := concrete_values(REAL, a)) or method not in _PARTITIONED:
        return None
    (value,) = found
    if value.size >= LARGE:
        return None
    if axis is None:
        rows = value.reshape(-1)
    elif type(axis) is int and -value.ndim <= axis < value.ndim:
        axis %= value.ndim
        rows = value.transpose([i for i in range(value.ndim) if i != axis] + [axis])
    else:
        return None
    if not rows.shape[-1]:
        return None
    q = (np.float64 if context.x64 else np.float32)(q)
    q = value.dtype.type(q / q.dtype.type(100) if percent else q)
    result = run(_partitioned_at, rows, q, rows.shape[-1], method)
    if keepdims:
        result = np.expand_dims(result, tuple(range(value.ndim)) if axis is None else axis)
    return make_array(result)


def _quantile(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan):
    if out is None and weights is None and not overwrite_input and not skip_nan:  # the hot path
        if (found := _of_value(a, q, axis, method, keepdims)) is not None:
            return found
    return _any_quantile(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan)


@whole
def _any_quantile(name, a, q, axis, out, overwrite_input, method, keepdims, weights, skip_nan):
    a, q = strong_with_slopes(as_array_argument(name, a)), strong_with_slopes(as_array_argument(name, q, 1))
    _check(name, a, q, out, overwrite_input, method, weights)
    dtype = dtypes.to_inexact_dtype(a.dtype)
    wide = np.dtype("float32") if dtype.itemsize < 4 else dtype
    axes = canonical_axes(axis, a.ndim)
    if weights is not None:
        weights = _rows(_full_weights(name, a, axis, axes, convert(as_array_argument(name, weights, 2), wide)), axes)
    rows = _rows(convert(a, wide), axes)
    if not rows.shape[-1] and q.size:
        raise TypeError(f"{name}: a must have elements along the axes, got shape {a.shape}")
    fractions = convert(q, wide)
    if not rows.size or not q.size:
        result = lax.full((*q.shape, *rows.shape[:-1]), 0, wide)
    elif method == "inverted_cdf":
        result = _by_weight(rows, fractions, weights, skip_nan)
    elif (known := _to_partition(rows, fractions, skip_nan)) is not None:
        result = make_array(run(_partitioned, known, fractions._value, method))
    else:
        result = _by_rank(rows, fractions, method, skip_nan)
    if keepdims:
        result = lax.expand_dims(result, tuple(i + q.ndim for i in axes))
    return convert(result, dtype)


def _check(name, a, q, out, overwrite_input, method, weights):
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
    if weights is not None and dtypes.is_complex(as_array_argument(name, weights, 2).dtype):
        raise ValueError("Weights cannot be complex types.")
    if dtypes.is_complex(a.dtype) or dtypes.is_complex(q.dtype):
        raise ValueError("quantile does not support complex input, as the operation is poorly defined.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")


def _rows(x, axes: tuple):
    """``x`` with the reduced axes made one, at the end."""
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    shape = tuple(x.shape[i] for i in kept)
    moved = lax.transpose(x, kept + axes) if axes and kept + axes != tuple(range(x.ndim)) else x
    return lax.reshape(moved, (*shape, int(np.prod([x.shape[i] for i in axes]))))


def _full_weights(name, a, axis, axes, weights):
    """Weights in the shape of ``a``."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    given = static_axis(axis)
    given = tuple(i % a.ndim for i in (given if isinstance(given, tuple) else (given,)))
    if weights.shape != tuple(a.shape[i] for i in given):
        raise ValueError(f"{name}: weights must have the shape of a or its lengths along axis, got {weights.shape}")
    weights = lax.transpose(weights, tuple(np.argsort(given).tolist()))
    return broadcast_to(lax.expand_dims(weights, tuple(i for i in range(a.ndim) if i not in axes)), a.shape)


# ---- concrete arrays


def _to_partition(rows, q, skip_nan: bool) -> np.ndarray | None:
    """The elements that count, where all are known and rows have equally many; else None."""
    if not (direct(rows) and direct(q) and rows.dtype in REAL):
        return None
    value = rows._value
    if not skip_nan or not (nan := np.isnan(value)).any():
        return value
    return value[~nan] if value.ndim == 1 and not nan.all() else None


def _partitioned(rows: np.ndarray, q: np.ndarray, method: str) -> np.ndarray:
    """Quantiles along the last axis, by putting only the elements next to them in their place."""
    n = rows.shape[-1]
    if not q.ndim:
        return _partitioned_at(rows, q, n, method)
    with_nan = np.isnan(rows).any(-1)
    position = q * rows.dtype.type(n - 1)
    low = np.nan_to_num(np.clip(np.floor(position), 0, n - 1)).astype(np.intp)
    high = np.nan_to_num(np.clip(np.ceil(position), 0, n - 1)).astype(np.intp)
    ordered = _with_in_place(rows, np.unique(np.concatenate([np.ravel(low), np.ravel(high)])).tolist())
    below, above = (np.moveaxis(ordered[..., i], -1, 0) if q.ndim else ordered[..., i] for i in (low, high))
    fraction = (position - np.floor(position)).reshape(q.shape + (1,) * (rows.ndim - 1))
    result = _between_values(below, above, fraction, method)
    result = np.where(np.isnan(q).reshape(fraction.shape), np.nan, result)
    return np.where(with_nan, np.nan, result).astype(rows.dtype)


_MANY = 8  # fractions for which sorting costs less than as many selections
_SHORT = 128  # so few elements are sorted as fast as partitioned


def _with_in_place(rows: np.ndarray, places: list) -> np.ndarray:
    """A copy of rows in which the elements of some places, in ascending order, are where sorting brings them. NumPy
    partitions at one place by vectors, at several element by element; so what lies behind a place is done next.
    """
    ordered = rows.copy(order="C")
    if rows.shape[-1] <= _SHORT or len(places) > _MANY:
        ordered.sort(-1)
        return ordered
    start = 0
    for place in places:
        ordered[..., start:].partition(place - start, -1)
        start = place + 1
    return ordered


def _partitioned_at(rows: np.ndarray, q: np.ndarray, n: int, method: str) -> np.ndarray:
    """The same for one fraction, for which Python numbers are faster. NaN, if there is any, is among the elements
    behind it, and then their maximum.
    """
    position = float(q * rows.dtype.type(n - 1))
    if position != position:
        return np.full(rows.shape[:-1], np.nan, rows.dtype)
    low = min(max(int(position), 0), n - 1)
    high = min(low + (position > low), n - 1)
    ordered = _with_in_place(rows, [low] if low == high else [low, high])
    fraction = rows.dtype.type(min(max(position, 0.0), n - 1.0) - low)
    below, above = ordered.T[low].T, ordered.T[high].T
    last = ordered.T[n - 1].T if n <= _SHORT else ordered[..., high:].max(-1)
    if method == "nearest":
        result = below if fraction <= 0.5 else above
    else:
        result = _between_values(below, above, fraction, method)
    if rows.ndim == 1:
        return np.array(result if last == last else last)
    return np.where(last == last, result, last)


def _between_values(below, above, fraction, method):
    if method == "linear":
        return below * (1 - fraction) + above * fraction
    if method == "midpoint":
        return (below + above) * below.dtype.type(0.5)
    if method == "nearest":
        return np.where(fraction <= 0.5, below, above)
    return below if method == "lower" else above


# ---- traced arrays


def _numbers(rows, skip_nan):
    """How many numbers each row has, and which rows give NaN whatever is asked of them."""
    nan = lax.ne(rows, rows)
    last = rows.ndim - 1
    numbers = lax.reduce_sum(convert(lax.bitwise_not(nan), rows.dtype), (last,))
    if skip_nan:
        hopeless = lax.eq(numbers, like(numbers, 0))
    else:
        hopeless = lax.reduce_or(nan, (last,))
        numbers = lax.full_like(numbers, rows.shape[-1])
    return numbers, hopeless


def _spread_fractions(q, shape: tuple):
    """Fractions along a new first axis, or a scalar one, over rows of ``shape``."""
    return lax.broadcast_in_dim(q, (*q.shape, *shape), tuple(range(q.ndim)))


def _by_rank(rows, q, method, skip_nan):
    numbers, hopeless = _numbers(rows, skip_nan)
    q = _spread_fractions(q, numbers.shape)
    greatest = lax.sub(numbers, like(numbers, 1))
    greatest = broadcast_to(lax.max(greatest, like(greatest, 0)), q.shape)
    position = lax.mul(q, greatest)
    low, high = lax.floor(position), lax.ceil(position)
    fraction = lax.sub(position, low)
    zero = lax.full_like(greatest, 0)
    below, above = _at_ranks(rows, *(lax.clamp(zero, i, greatest) for i in (low, high)))
    result = _between(below, above, fraction, method)
    lost = lax.bitwise_or(broadcast_to(hopeless, q.shape), lax.ne(q, q))
    return lax.select(lost, lax.full_like(result, np.nan), result)


def _at_ranks(rows, low, high):
    """The elements of rows (batch..., n) at two float ranks (q..., batch...) that are the same or neighbours."""
    extra = low.ndim - (rows.ndim - 1)
    count = int(np.prod(low.shape[:extra]))
    if count > _MANY:
        ordered = lax.sort(rows, dimension=rows.ndim - 1)
        return _take(ordered, low), _take(ordered, high)
    pairs = lax.concatenate([lax.expand_dims(x, (x.ndim,)) for x in (low, high)], low.ndim)
    order = (*range(extra, low.ndim), *range(extra), low.ndim)
    ranks = lax.reshape(lax.transpose(pairs, order), (*rows.shape[:-1], 2 * count))
    found = order_statistics(rows, convert(ranks, np.dtype("int32")))
    found = lax.reshape(found, tuple(pairs.shape[i] for i in order))
    found = lax.transpose(found, tuple(np.argsort(order).tolist()))
    return tuple(lax.index_in_dim(found, i, low.ndim, keepdims=False) for i in (0, 1))


def _between(below, above, fraction, method):
    if method == "linear":
        return lax.add(lax.mul(below, lax.sub(like(below, 1), fraction)), lax.mul(above, fraction))
    if method == "midpoint":
        return lax.mul(lax.add(below, above), like(below, 0.5))
    if method == "nearest":
        return lax.select(lax.le(fraction, like(fraction, 0.5)), below, above)
    return below if method == "lower" else above


def _take(rows, index):
    """The elements of rows (batch..., n) at float indices (q..., batch...)."""
    extra = index.ndim - (rows.ndim - 1)
    if rows.ndim == 1:
        spread = lax.reshape(index, (index.size, 1))
        numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        picked = lax.gather(rows, convert(spread, np.dtype("int32")), numbers, (1,), mode=lax.GatherScatterMode.CLIP)
        return lax.reshape(picked, index.shape)
    flat = lax.reshape(rows, (int(np.prod(rows.shape[:-1])), rows.shape[-1]))
    order = (*range(extra, index.ndim), *range(extra))
    count = int(np.prod(index.shape[:extra]))
    columns = lax.reshape(lax.transpose(index, order), (flat.shape[0], count))
    picked = _gather_rows(flat, convert(columns, np.dtype("int32")))
    picked = lax.reshape(picked, tuple(index.shape[i] for i in order))
    return lax.transpose(picked, (*range(rows.ndim - 1, index.ndim), *range(rows.ndim - 1)))


def _gather_rows(rows, columns):
    """``rows[i, columns[i, j]]``."""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=(1,),
        start_index_map=(1,),
        operand_batching_dims=(0,),
        start_indices_batching_dims=(0,),
    )
    return lax.gather(rows, lax.expand_dims(columns, (2,)), numbers, (1, 1), mode=lax.GatherScatterMode.CLIP)


def _by_weight(rows, q, weights, skip_nan):
    """The first element whose cumulated weight, as a fraction of the whole, reaches ``q``."""
    last = rows.ndim - 1
    weights = lax.full_like(rows, 1) if weights is None else weights
    nan = lax.ne(rows, rows)
    if skip_nan:
        weights = lax.select(nan, lax.full_like(weights, 0), weights)
        hopeless = lax.reduce_and(nan, (last,))
    else:
        hopeless = lax.reduce_or(nan, (last,))
    ordered, weights = lax.sort_key_val(rows, weights, dimension=last)
    cumulated = lax.cumsum(weights, last)
    total = lax.reduce_sum(weights, (last,))
    q = _spread_fractions(q, total.shape)
    target = lax.mul(q, broadcast_to(total, q.shape))
    shape = (*q.shape, rows.shape[-1])
    reached = lax.ge(broadcast_to(cumulated, shape), broadcast_to(lax.expand_dims(target, (q.ndim,)), shape))
    positive = lax.gt(broadcast_to(weights, shape), like(weights, 0))
    index = lax.argmax(
        convert(lax.bitwise_and(reached, positive), np.dtype("int32")), len(shape) - 1, np.dtype("int32")
    )
    result = _take(ordered, convert(index, rows.dtype))
    lost = lax.bitwise_or(broadcast_to(hopeless, q.shape), lax.ne(q, q))
    return lax.select(lost, lax.full_like(result, np.nan), result)
