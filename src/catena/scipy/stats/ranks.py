"""Ranks, modes and errors of means: statistics of samples."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.errors import ConcretizationTypeError
from catena.core.named import NamedTuple
from catena.core.trace import find_concrete
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis, static_int
from catena.numpy.creation import default_float, default_int
from catena.typing import ArrayLike

_POLICIES = ("propagate", "omit", "raise")


class ModeResult(NamedTuple):
    """What occurs most often, and how often."""

    mode: Array
    count: Array


# ---- runs of equal values


def _along_last(name: str, a, axis):
    """The operand with the axis at the end, and where it belongs: ``axis``, or None for all elements in one row."""
    a = as_array_argument(name, a)
    if axis is None:
        return a.reshape(-1), None
    axis = canonical_axis(static_int(axis, f"The axis argument of {name}"), a.ndim)
    return jnp.moveaxis(a, axis, -1), axis


def _without_nan(name: str, a, nan_policy: str):
    """Where there is NaN; the policy is checked, and where it says so, that there is none."""
    if nan_policy not in _POLICIES:
        raise ValueError(f"{name}: nan_policy must be one of {', '.join(_POLICIES)}, got {nan_policy!r}")
    nan = a != a
    if nan_policy == "raise":
        known = find_concrete(nan)
        if known is None:
            raise ConcretizationTypeError(nan, f"{name} with nan_policy='raise' has to look at the values.")
        if np.any(known._value):
            raise ValueError(f"{name}: the input contains NaN")
    return nan


def _first_of_run(ordered):
    """Whether an element differs from the one before it, all NaN being alike."""
    here, before = ordered[..., 1:], ordered[..., :-1]
    differs = (here != before) & ((here == here) | (before == before))
    return jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), differs], axis=-1)


def _run_starts(first, positions):
    return lax.cummax(jnp.where(first, positions, 0), axis=positions.ndim - 1)


# ---- ranks

# The rank, from 0, of the elements in order: from the first and the last position of their run, and its number.
_RANKS = {
    "average": lambda start, end, number, position: (start + end) / 2,
    "min": lambda start, end, number, position: start,
    "max": lambda start, end, number, position: end,
    "dense": lambda start, end, number, position: number,
    "ordinal": lambda start, end, number, position: position,
}


@whole
def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The rank of each element: 1 for the least.

    Arguments:
      a: the values.
      method: the rank of equal values: the ``"average"`` of theirs, the ``"min"`` or the ``"max"``; ``"dense"``
        ranks leave out no number, and ``"ordinal"`` ones differ, in the order in which the values stand.
      axis: the axis along which to rank; None for all elements, in one row.
      nan_policy: with ``"propagate"`` all ranks of a row with NaN are NaN, with ``"omit"`` only those of the NaN, and
        ``"raise"`` refuses them, which takes values that are known.
    Returns:
      Floats of the default dtype: of the shape of ``a``, or ``(a.size,)`` where ``axis`` is None.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``method`` or ``nan_policy`` is none of these, the axis is out of bounds, or there is NaN.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import stats
    >>> stats.rankdata(jnp.array([0, 2, 3, 2]))
    Array([1. , 2.5, 4. , 2.5], dtype=float32)
    """
    if method not in _RANKS:
        raise ValueError(f"rankdata: method must be one of {', '.join(_RANKS)}, got {method!r}")
    rows, axis = _along_last("rankdata", a, axis)
    nan = _without_nan("rankdata", rows, nan_policy)
    positions = lax.broadcasted_iota(default_int(), rows.shape, rows.ndim - 1)
    ordered, origin = lax.sort((rows, positions), dimension=-1, num_keys=1)
    first = _first_of_run(ordered)
    last = jnp.concatenate([first[..., 1:], jnp.ones_like(first[..., :1])], axis=-1)
    start = _run_starts(first, positions)
    end = lax.cummin(jnp.where(last, positions, rows.shape[-1]), axis=rows.ndim - 1, reverse=True)
    ranks = _RANKS[method](start, end, jnp.cumsum(first, axis=-1) - 1, positions).astype(default_float()) + 1
    ranks = jnp.put_along_axis(jnp.zeros_like(ranks), origin, ranks, axis=-1, inplace=False)
    undefined = jnp.any(nan, axis=-1, keepdims=True) if nan_policy == "propagate" else nan
    ranks = jnp.where(undefined, jnp.nan, ranks)
    return ranks if axis is None else jnp.moveaxis(ranks, -1, axis)


# ---- the most frequent value


@whole
def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The value that occurs most often, the least where there are several.

    Arguments:
      a: the values.
      axis: the axis along which to count; None for all elements.
      nan_policy: with ``"propagate"`` NaN counts as a value, the greatest, with ``"omit"`` it does not count, and
        ``"raise"`` refuses it, which takes values that are known.
      keepdims: whether the axis stays, with length 1.
    Returns:
      A named tuple of the ``mode``, of the dtype of ``a``, and its ``count``; of nothing they are NaN and 0.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``nan_policy`` is none of these, the axis is out of bounds, or there is NaN.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import stats
    >>> stats.mode(jnp.array([2, 3, 3, 2, 5]))
    ModeResult(mode=Array(2, dtype=int32), count=Array(2, dtype=int32))
    """
    rank = np.ndim(a)
    rows, axis = _along_last("mode", a, axis if rank else None)
    _without_nan("mode", rows, nan_policy)
    kept = (1,) * rank if axis is None else (*rows.shape[:axis], 1, *rows.shape[axis:-1])
    shape = kept if keepdims else rows.shape[:-1]
    if not rows.shape[-1]:
        dtype = dtypes.to_inexact_dtype(rows.dtype)
        return ModeResult(jnp.full(shape, jnp.nan, dtype), jnp.zeros(shape, dtype))
    ordered = jnp.sort(rows, axis=-1)
    positions = lax.broadcasted_iota(default_int(), rows.shape, rows.ndim - 1)
    counts = positions - _run_starts(_first_of_run(ordered), positions) + 1
    if nan_policy == "omit":
        counts = jnp.where(ordered == ordered, counts, 0)
    best = jnp.argmax(counts, axis=-1, keepdims=True)
    value, count = (jnp.take_along_axis(x, best, axis=-1) for x in (ordered, counts))
    return ModeResult(value.reshape(shape), count.reshape(shape))


# ---- how well a mean is known


@whole
def sem(
    a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: the standard deviation over the square root of the number of elements.

    Arguments:
      a: the samples.
      axis: the axis along which they lie; None for all elements.
      ddof: what is taken from their number when their squares are averaged.
      nan_policy: with ``"propagate"`` NaN makes the result NaN, with ``"omit"`` it is left out, and ``"raise"``
        refuses it, which takes values that are known.
      keepdims: whether the axis stays, with length 1.
    Returns:
      An array without the axis, of the float dtype of ``a``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``nan_policy`` is none of these, the axis is out of bounds, or there is NaN.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import stats
    >>> stats.sem(jnp.array([1.0, 2.0, 3.0, 6.0]))
    Array(1.0801234, dtype=float32)
    """
    a = as_array_argument("sem", a)
    nan = _without_nan("sem", a, nan_policy)
    if axis is not None:
        axis = canonical_axis(static_int(axis, "The axis argument of sem"), a.ndim)
    if nan_policy == "omit":
        count = jnp.sum(~nan, axis=axis, keepdims=keepdims)
        deviation = jnp.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(count.astype(deviation.dtype))
    number = a.size if axis is None else a.shape[axis]
    return jnp.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / number**0.5
