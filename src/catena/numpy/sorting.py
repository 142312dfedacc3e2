"""Sorting, and searching in what is sorted.

NaN comes last, zeros of both signs are equal, complex numbers are ordered by real, then imaginary parts.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.shapes import NUMPY_SORTS, check_positions
from catena.lax.sorting import sort_values
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis, convert, direct, run, user_dtype
from catena.numpy.creation import default_int, int_of_positions
from catena.numpy.hot import REAL_OR_INT
from catena.numpy.joining import array_sequence
from catena.numpy.promotion import promote_dtypes
from catena.numpy.reading import read
from catena.numpy.shaping import ravel
from catena.typing import ArrayLike, DTypeLike


def _check_options(name: str, kind, order):
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def _line(a, axis) -> tuple:
    """The array to sort and its axis; None stands for the flattened array."""
    return (ravel(a), 0) if axis is None else (a, canonical_axis(operator.index(axis), a.ndim))


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """An array with the elements along an axis in order.

    Arguments:
      a: an array.
      axis: the axis; None sorts the flattened array.
      kind, order: must be None.
      stable: whether equal elements keep their order.
      descending: whether the greatest come first.
    Returns:
      An array of the type of ``a``.
    Raises:
      ValueError: the axis is out of bounds. TypeError: ``kind`` or ``order`` is given.

    >>> import catena.numpy as jnp
    >>> jnp.sort(jnp.array([3, 1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    a = as_array_argument("sort", a)
    _check_options("sort", kind, order)
    a, axis = _line(a, axis)
    if direct(a) and a.size <= _FEW and a.dtype in _SORTABLE and a.ndim <= NUMPY_SORTS:
        value = sort_values(a._value, axis, stable)
        return make_array(np.flip(value, axis) if descending else value, a.weak_type)
    result = lax.sort(a, axis, is_stable=stable)
    return lax.rev(result, (axis,)) if descending else result


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """The positions that bring the elements along an axis into order.

    Arguments:
      a: an array.
      axis: the axis; None sorts the flattened array.
      kind, order: must be None.
      stable: whether equal elements keep their order.
      descending: whether the greatest come first.
      dtype: the dtype of the result; by default the default integer.
    Returns:
      An array of integers of the shape of ``a``.
    Raises:
      ValueError: the axis is out of bounds. TypeError: ``kind`` or ``order`` is given.

    >>> import catena.numpy as jnp
    >>> jnp.argsort(jnp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    a = as_array_argument("argsort", a)
    _check_options("argsort", kind, order)
    dtype = user_dtype(dtype, "argsort", default_int())
    a, axis = _line(a, axis)
    check_positions("argsort", a.shape[axis], dtype, axis)
    if not descending:
        return _order(a, axis, stable, dtype)
    if not stable:
        return lax.rev(_order(a, axis, stable, dtype), (axis,))
    return _descending(a, axis, dtype)


@whole
def _descending(a, axis, dtype):
    backwards = lax.rev(_order(lax.rev(a, (axis,)), axis, True, dtype), (axis,))
    return lax.sub(lax.full_like(backwards, max(a.shape[axis] - 1, 0)), backwards)


_FEW = 1 << 12  # up to here NumPy's sorts are called directly
_SORTABLE = frozenset(
    map(np.dtype, ("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "float32", "float64"))
)


def _order(a, axis: int, stable: bool, dtype):
    if direct(a) and a.size <= _FEW and a.dtype in _SORTABLE and a.ndim <= NUMPY_SORTS:
        return make_array(a._value.argsort(axis, kind="stable").astype(dtype))
    return _any_order(a, axis, stable, dtype)


@whole
def _any_order(a, axis: int, stable: bool, dtype):
    places = lax.broadcasted_iota(dtype, a.shape, axis)
    return lax.sort([a, places], axis, is_stable=stable, num_keys=1)[1]


@whole
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The positions that bring several keys into order; the last key counts most.

    Arguments:
      keys: arrays of one shape, or one array with them along its first axis.
      axis: the axis to sort along.
    Returns:
      An array of integers of the shape of a key.
    Raises:
      TypeError: there are no keys, or a scalar. ValueError: their shapes differ, or the axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.lexsort((jnp.array([1, 0, 1]), jnp.array([2, 2, 1])))
    Array([2, 1, 0], dtype=int32)
    """
    if getattr(keys, "ndim", 1) == 0:
        raise TypeError("lexsort: keys must be a sequence of keys, got a scalar")
    keys = [as_array_argument("lexsort", k, i) for i, k in enumerate(array_sequence("lexsort", keys))]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in keys}) > 1:
        raise ValueError("all keys need to be the same shape")
    shape, dtype = keys[0].shape, default_int()
    if not shape:
        return lax.full((), 0, dtype)
    axis = canonical_axis(operator.index(axis), len(shape))
    int_of_positions("lexsort", shape[axis], axis)
    places = lax.broadcasted_iota(dtype, shape, axis)
    return lax.sort([*reversed(keys), places], axis, is_stable=True, num_keys=len(keys))[-1]


def _partition_axis(name: str, a, kth, axis) -> tuple:
    """Checked arguments of a partition: the array, the axis and the rank from the front."""
    a = as_array_argument(name, a)
    if dtypes.is_complex(a.dtype):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonical_axis(operator.index(axis), a.ndim)
    return a, axis, canonical_axis(operator.index(kth), a.shape[axis])


def _cut(x, axis: int, start, stop):
    return read(x, (slice(None),) * axis + (slice(start, stop),))


@whole
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """An array in which the ``kth`` element along an axis stands where sorting puts it, lesser
    ones before, greater after.

    Arguments:
      a: an array of real numbers.
      kth: the position.
      axis: the axis.
    Returns:
      An array of the type of ``a``.
    Raises:
      ValueError: ``kth`` or the axis is out of bounds. NotImplementedError: ``a`` is complex.

    >>> import catena.numpy as jnp
    >>> jnp.partition(jnp.array([4, 1, 3, 2]), 1)
    Array([1, 2, 4, 3], dtype=int32)
    """
    a, axis, kth = _partition_axis("partition", a, kth, axis)
    ordered = lax.sort(a, axis)
    rest = lax.rev(_cut(ordered, axis, kth + 1, None), (axis,))
    return lax.concatenate([_cut(ordered, axis, None, kth + 1), rest], axis)


@whole
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions by which ``partition`` arranges the elements along an axis.

    Arguments:
      a: an array of real numbers.
      kth: the position.
      axis: the axis.
    Returns:
      An array of integers of the shape of ``a``.
    Raises:
      ValueError: ``kth`` or the axis is out of bounds. NotImplementedError: ``a`` is complex.

    >>> import catena.numpy as jnp
    >>> jnp.argpartition(jnp.array([4, 1, 3, 2]), 1)
    Array([1, 3, 0, 2], dtype=int32)
    """
    a, axis, kth = _partition_axis("argpartition", a, kth, axis)
    order = argsort(a, axis)
    rest = lax.sort(_cut(order, axis, kth + 1, None), axis)  # as they come, as in JAX
    return lax.concatenate([_cut(order, axis, None, kth + 1), rest], axis)


@whole
def sort_complex(a: ArrayLike) -> Array:
    """The elements along the last axis in order, as complex numbers.

    Arguments:
      a: an array.
    Returns:
      A complex array of the shape of ``a``.
    Raises:
      ValueError: ``a`` is a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.sort_complex(jnp.array([3, 1]))
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    a = as_array_argument("sort_complex", a)
    dtype = dtypes.to_complex_dtype(dtypes.to_inexact_dtype(a.dtype))
    return sort(convert(a, dtype))


# ----------------------------------------------------------------------------------------------------
# Searching

_BISECTING = "scan", "scan_unrolled"
_SEARCH_METHODS = ("compare_all", *_BISECTING, "sort")


@whole
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """The positions at which values would be put into a sorted array.

    Arguments:
      a: a sorted 1-D array.
      v: the values.
      side: before ("left") or after ("right") equal elements.
      sorter: the positions that bring ``a`` into order, if it is not.
      method: how to search while tracing: "scan" and "scan_unrolled" bisect, "sort" sorts all values
        together, "compare_all" compares each with each.
    Returns:
      An array of integers of the shape of ``v``.
    Raises:
      ValueError: ``a`` or ``sorter`` is not 1-D, or ``side`` or ``method`` is unknown. TypeError: ``sorter`` does not
        hold integers.

    >>> import catena.numpy as jnp
    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), 2, side="right")
    Array(3, dtype=int32)
    """
    a, v = as_array_argument("searchsorted", a, 0), as_array_argument("searchsorted", v, 1)
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in _SEARCH_METHODS:
        raise ValueError(f"invalid argument method={method!r}, expected one of {list(_SEARCH_METHODS)}")
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    if sorter is not None:
        sorter = as_array_argument("searchsorted", sorter, 3)
        if not dtypes.is_integer(sorter.dtype):
            raise TypeError(f"searchsorted: sorter must hold integers, got {dtypes.dtype_name(sorter.dtype)}")
        if sorter.ndim != 1:
            raise ValueError(f"searchsorted: sorter should be 1-dimensional, got shape {sorter.shape}")
        a = read(a, sorter)
    return positions_in(a, v, side, method)


def positions_in(a, v, side: str, method: str = "scan"):
    """``searchsorted`` of checked arguments."""
    if not (direct(a) and direct(v) and a.dtype is v.dtype):
        a, v = promote_dtypes("searchsorted", a, v)
    dtype = int_of_positions("searchsorted", a.size + 1)
    if not a.size:
        return lax.full(v.shape, 0, dtype)
    is_complex = dtypes.is_complex(a.dtype)
    if direct(a) and direct(v) and a.dtype.isbuiltin == 1 and method in _BISECTING:
        if not v.ndim and not is_complex:
            return make_array(np.asarray(_bisect(a._value, v._value.item(), side), dtype))
        if _is_sorted(a._value):
            return make_array(_search_by_numpy(a._value, v._value, side, dtype))
    if is_complex or method == "sort":
        return _by_sorting(a, v, side, dtype)
    if method == "compare_all":
        return _by_comparing(a, v, side, dtype)
    return _by_bisection(a, v, side, dtype)


def _is_sorted(a) -> bool:
    """Whether any search finds the same places. In data that are not sorted, NumPy's hangs on the values before."""
    return bool((a[:-1] <= a[1:]).all())


def _bisect(a, v, side: str) -> int:
    """As ``_by_bisection``, of one value: to look whether all elements are sorted would take longer."""
    is_nan, is_left, element = v != v, side == "left", a.item

    def goes_right(k: int) -> bool:
        x = element(k)
        return x < v or (is_nan and x == x) if is_left else not (v < x or (x != x and not is_nan))

    half = 1 << (a.size.bit_length() - 1)
    count = a.size - half + 1 if goes_right(half - 1) else 0
    while half := half >> 1:
        count += half if goes_right(count + half - 1) else 0
    return count


def _search_by_numpy(a, v, side: str, dtype):
    """NumPy's search; many values are sorted first, so that memory is read in order (four times faster at 1e6)."""
    if v.size <= 1 << 16 or a.size <= 1 << 16:
        return np.asarray(run(a.searchsorted, v, side)).astype(dtype)
    flat = v.reshape(-1)
    order = flat.argsort(kind="stable")
    found = np.empty(flat.shape, dtype)
    found[order] = a.searchsorted(flat[order], side)
    return found.reshape(v.shape)


def _precedes(x, y):
    """Whether ``x`` comes before ``y``, NaN after all else."""
    less = lax.lt(x, y)
    if not dtypes.is_floating(x.dtype):
        return less
    return lax.bitwise_or(less, lax.bitwise_and(lax.ne(y, y), lax.eq(x, x)))


def _goes_right(elements, v, side: str):
    """Whether ``v`` is put after ``elements``."""
    return _precedes(elements, v) if side == "left" else lax.bitwise_not(_precedes(v, elements))


def _by_bisection(a, v, side: str, dtype):
    """How many elements come before, all values at once, by halves, which is one gather each. The first half is the
    greatest power of two, and what comes after it is taken with so much of it that it is as long: all places are there.
    """

    def lie_before(places):
        return _goes_right(_elements_at(a, places), v, side)

    half = 1 << (a.size.bit_length() - 1)
    right = lie_before(lax.full(v.shape, half - 1, dtype))
    count = lax.select(right, lax.full(v.shape, a.size - half + 1, dtype), lax.full(v.shape, 0, dtype))
    while half := half >> 1:
        right = lie_before(lax.add(count, np.asarray(half - 1, dtype)))
        count = lax.select(right, lax.add(count, np.asarray(half, dtype)), count)
    return count


def _elements_at(a, places):
    """The elements of a 1-D array at places that it has."""
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(a, lax.expand_dims(places, (places.ndim,)), numbers, (1,), mode=mode)


def _by_comparing(a, v, side: str, dtype):
    shape = (*v.shape, a.size)
    elements = lax.broadcast_in_dim(a, shape, (v.ndim,))
    values = lax.broadcast_in_dim(v, shape, tuple(range(v.ndim)))
    return lax.reduce_sum(lax.convert_element_type(_goes_right(elements, values, side), dtype), (v.ndim,))


@whole
def _by_sorting(a, v, side: str, dtype):
    """The rank of each value among all, less its rank among the values."""
    flat = lax.reshape(v, (v.size,))
    both = lax.concatenate([flat, a] if side == "left" else [a, flat], 0)
    ranks = _ranks(both, dtype)
    among_all = read(ranks, slice(0, v.size) if side == "left" else slice(a.size, None))
    return lax.reshape(lax.sub(among_all, _ranks(flat, dtype)), v.shape)


def _ranks(x, dtype):
    """The place of each element of a 1-D array when it is sorted."""
    order = _order(x, 0, True, dtype)
    return lax.sort([order, lax.iota(dtype, x.size)], 0, num_keys=1)[1]


@whole
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None) -> Array:
    """The numbers of the intervals between edges in which values lie.

    Arguments:
      x: the values.
      bins: the edges: a 1-D array, increasing or decreasing.
      right: whether intervals contain their upper edge instead of the lower one.
      method: how to search while tracing, as for ``searchsorted``; by default "scan".
    Returns:
      An array of integers of the shape of ``x``: 0 before the first edge, ``len(bins)`` after the last.
    Raises:
      ValueError: the edges are not 1-D.

    >>> import catena.numpy as jnp
    >>> jnp.digitize(jnp.array([0.5, 1.5, 9.0]), jnp.array([1.0, 2.0]))
    Array([0, 1, 2], dtype=int32)
    """
    x, bins = as_array_argument("digitize", x, 0), as_array_argument("digitize", bins, 1)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins=}")
    method = "scan" if method is None else method
    if method not in _SEARCH_METHODS:
        raise ValueError(f"invalid argument {method=}, expected one of {list(_SEARCH_METHODS)}")
    if not bins.size:
        return lax.full(x.shape, 0, default_int())
    side = "left" if right else "right"
    if direct(bins) and bins.dtype in REAL_OR_INT and bins._value[-1] >= bins._value[0]:
        return positions_in(bins, x, side, method)
    rising = positions_in(bins, x, side, method)
    falling = positions_in(lax.rev(bins, (0,)), x, side, method)
    falling = lax.sub(lax.full_like(falling, bins.size), falling)
    is_rising = lax.ge(read(bins, -1), read(bins, 0))
    return lax.select(is_rising, rising, falling)
