"""Arrays as sets: ``unique``, unions, intersections, differences, membership.

Results have as many elements as the data say, so while tracing they need ``size=``.
"""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.named import NamedTuple
from catena.core.placed import follow
from catena.core.trace import Tracer, find_concrete
from catena.lax.whole import whole
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    as_operand,
    broadcast_to,
    canonical_axis,
    concrete_values,
    convert,
    direct,
    static_int,
    strong,
)
from catena.numpy.creation import default_int, int_of_positions
from catena.numpy.hot import NUMBER
from catena.numpy.promotion import promote_dtypes
from catena.numpy.reading import read
from catena.numpy.selection import compress, known_or_sized, nonzero, static_size
from catena.numpy.shaping import ravel, reshaped
from catena.numpy.sorting import argsort, positions_in, sort
from catena.typing import ArrayLike


class UniqueAllResult(NamedTuple):
    """What ``unique_all`` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What ``unique_counts`` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What ``unique_inverse`` returns."""

    values: Array
    inverse_indices: Array


# ----------------------------------------------------------------------------------------------------
# Unique elements


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """The distinct elements of an array, or its distinct slices along an axis, in order.

    Arguments:
      ar: an array.
      return_index: whether to return the position of the first of each, too.
      return_inverse: whether to return which of them each element is.
      return_counts: whether to return how often each occurs.
      axis: the axis of the slices; None for elements.
      equal_nan: whether all NaN are one element.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: by default the first one.
      sorted: they are sorted in either case.
    Returns:
      The distinct elements; a tuple where more is asked for, in the order of the arguments.
    Raises:
      ConcretizationTypeError: ``ar`` is traced and there is no ``size``. ValueError: the axis is out of
        bounds, or there is nothing to fill with.

    >>> import catena.numpy as jnp
    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    del sorted
    ar = as_array_argument("unique", ar)
    known_or_sized(ar, size, "unique")
    wanted = (True, bool(return_index), bool(return_inverse), bool(return_counts))
    result = _unique("unique", ar, axis, equal_nan, size, fill_value, wanted)
    chosen = tuple(part for part, want in zip(result, wanted, strict=True) if want)
    return chosen if len(chosen) > 1 else chosen[0]


_ALL = (True, True, True, True)
_FEW = 1 << 12  # elements; of more that differ, NumPy's set of hashes takes thirty times as long as a sort


def _unique(name: str, ar, axis, equal_nan: bool, size, fill_value, wanted: tuple = _ALL) -> tuple:
    """Values, first positions, inverse and counts; those that are not wanted may be None."""
    if axis is not None:
        axis = canonical_axis(static_int(axis, f"axis argument of jnp.{name}()"), ar.ndim)
    if size is not None:
        size = static_size(size, name)
        nothing = not (ar.size if axis is None else ar.shape[axis])
        if nothing and size and fill_value is None:
            raise ValueError(
                f"jnp.{name}: for zero-sized input with nonzero size argument, fill_value must be specified"
            )
    known = type(ar) is Array and not isinstance(fill_value, Tracer)
    if known and ar.dtype.isbuiltin == 1 and ar.size and (size is None or axis is None):
        found = _unique_by_numpy(ar, axis, equal_nan, size, fill_value, wanted)
    else:
        found = _unique_by_sorting(ar, axis, equal_nan, size, fill_value)
    return tuple(part if part is None or isinstance(part, Tracer) else follow(part, "unique", (ar,)) for part in found)


def _unique_by_numpy(ar, axis, equal_nan: bool, size, fill_value, wanted: tuple) -> tuple:
    dtype = int_of_positions("unique", ar.size + 1) if any(wanted[1:]) else default_int()
    asked = wanted if any(wanted[1:]) else (*wanted[:3], ar.size > _FEW)  # for values alone NumPy hashes
    found = np.unique(ar._value, *asked[1:], axis, equal_nan=equal_nan)
    found = iter(found if isinstance(found, tuple) else (found,))
    values, index, inverse, counts = (next(found) if want else None for want in asked)
    counts = counts if wanted[3] else None
    if size is not None:
        fill = values[0] if fill_value is None else convert(as_operand("unique", fill_value), ar.dtype)._value
        values = _of_size(values, size, fill)
        index = None if index is None else _of_size(index, size, index[0])
        counts = None if counts is None else _of_size(counts, size, 0)
    if inverse is not None:
        inverse = inverse.reshape(ar.shape if axis is None else (ar.shape[axis],))
    places = (None if part is None else make_array(part.astype(dtype)) for part in (index, inverse, counts))
    return make_array(values, ar.weak_type and (size is None or fill_value is None)), *places


def _of_size(values, size: int, fill) -> np.ndarray:
    """The first ``size`` of the values, then fill values."""
    out = np.full((size,), fill, values.dtype)
    out[: len(values)] = values[:size]
    return out


def _unique_by_sorting(ar, axis, equal_nan: bool, size, fill_value) -> tuple:
    """Rows are sorted; the first of each run is kept."""
    dtype = default_int()
    rows, n = _rows(ar, axis)
    if not n:
        return _nothing_unique(ar, axis, size, fill_value)
    order = _sorted_order(rows, n, dtype)
    ordered = read(rows, order)
    first = _begins(ordered, n, equal_nan)
    if size is None:
        size = int(find_concrete(first)._value.sum())
    (starts,) = nonzero(first, size=size + 1, fill_value=n)
    counts = lax.sub(read(starts, slice(1, None)), read(starts, slice(None, -1)))
    starts = read(starts, slice(None, -1))
    missing = lax.ge(starts, np.asarray(n, dtype))
    starts = lax.select(missing, lax.full_like(starts, 0), starts)
    values = read(ordered, starts)
    if fill_value is not None:
        values = _filled(values, missing, fill_value)
    group = lax.sub(lax.cumsum(lax.convert_element_type(first, dtype)), np.ones((), dtype))
    inverse = lax.sort([order, group], 0, num_keys=1)[1]
    shape = ar.shape if axis is None else (n,)
    return _unrowed(values, ar, axis), read(order, starts), reshaped(inverse, shape), counts


def _rows(ar, axis) -> tuple:
    """The things to compare as rows of a matrix (or elements of a vector), and their number."""
    if axis is None:
        return ravel(ar), ar.size
    order = (axis, *(i for i in range(ar.ndim) if i != axis))
    moved = lax.transpose(ar, order)
    n = ar.shape[axis]
    return reshaped(moved, (n, moved.size // n if n else 0)), n


def _unrowed(values, ar, axis):
    """Rows in the shape of slices of ``ar``."""
    if axis is None:
        return values
    rest = tuple(s for i, s in enumerate(ar.shape) if i != axis)
    shaped = reshaped(values, (values.shape[0], *rest))
    order = list(range(1, ar.ndim))
    order.insert(axis, 0)
    return lax.transpose(shaped, tuple(order))


def _sorted_order(rows, n: int, dtype):
    places = lax.iota(dtype, n)
    columns = [rows] if rows.ndim == 1 else [lax.squeeze(c, (1,)) for c in lax.split(rows, (1,) * rows.shape[1], 1)]
    return lax.sort([*columns, places], 0, num_keys=len(columns))[-1] if columns else places


def _begins(ordered, n: int, equal_nan: bool):
    """Whether each of the sorted rows differs from the one before it."""
    here, before = read(ordered, slice(1, None)), read(ordered, slice(None, -1))
    differs = lax.ne(here, before)
    if equal_nan and dtypes.is_inexact(ordered.dtype):
        both = lax.bitwise_and(lax.ne(here, here), lax.ne(before, before))
        differs = lax.bitwise_and(differs, lax.bitwise_not(both))
    if differs.ndim > 1:
        differs = lax.reduce_or(differs, (1,))
    return lax.concatenate([np.ones((1,), bool), differs], 0)


def _ends(begins):
    """Whether each of the sorted elements differs from the next, from whether it differs from the one before."""
    return lax.concatenate([lax.slice_in_dim(begins, 1, None), np.ones((1,), bool)], 0) if begins.size else begins


def _filled(values, missing, fill_value):
    fill = convert(as_operand("unique", fill_value), values.dtype)
    mask = lax.broadcast_in_dim(missing, values.shape, (0,))
    return lax.select(mask, broadcast_to(fill, values.shape), convert(values, values.dtype))


def _nothing_unique(ar, axis, size, fill_value) -> tuple:
    dtype, count = default_int(), size or 0
    shape = (count,) if axis is None else tuple(count if i == axis else s for i, s in enumerate(ar.shape))
    fill = 0 if fill_value is None else fill_value
    weak = ar.weak_type and fill_value is None
    values = broadcast_to(convert(as_operand("unique", fill), ar.dtype, weak), shape)
    zeros = lax.full((count,), 0, dtype)
    inverse = lax.full(ar.shape if axis is None else (ar.shape[axis],), 0, dtype)
    return values, zeros, inverse, zeros


def _unique_of_all(name: str, x, size, fill_value) -> tuple:
    """The distinct elements of the flattened array, their places, the inverse and their numbers."""
    x = as_array_argument(name, x)
    known_or_sized(x, size, name)
    return _unique(name, x, None, False, size, fill_value)


def unique_all(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAllResult:
    """The distinct elements, the position of the first of each, which of them each element is, and
    how often each occurs.

    Arguments:
      x: an array.
      size, fill_value: as for ``unique``.
    Returns:
      A named tuple ``(values, indices, inverse_indices, counts)``.
    Raises:
      ConcretizationTypeError: ``x`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.unique_all(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return UniqueAllResult(*_unique_of_all("unique_all", x, size, fill_value))


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """The distinct elements, and how often each occurs.

    Arguments:
      x: an array.
      size, fill_value: as for ``unique``.
    Returns:
      A named tuple ``(values, counts)``.
    Raises:
      ConcretizationTypeError: ``x`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.unique_counts(jnp.array([3, 1, 3])).values
    Array([1, 3], dtype=int32)
    """
    values, _, _, counts = _unique_of_all("unique_counts", x, size, fill_value)
    return UniqueCountsResult(values, counts)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """The distinct elements, and which of them each element is.

    Arguments:
      x: an array.
      size, fill_value: as for ``unique``.
    Returns:
      A named tuple ``(values, inverse_indices)``.
    Raises:
      ConcretizationTypeError: ``x`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    values, _, inverse, _ = _unique_of_all("unique_inverse", x, size, fill_value)
    return UniqueInverseResult(values, inverse)


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements.

    Arguments:
      x: an array.
      size, fill_value: as for ``unique``.
    Returns:
      A 1-D array.
    Raises:
      ConcretizationTypeError: ``x`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return _unique_of_all("unique_values", x, size, fill_value)[0]


# ----------------------------------------------------------------------------------------------------
# Operations on sets


def _two_sets(name: str, ar1, ar2, size) -> list:
    """Both arrays flattened and promoted to one dtype."""
    arrays = array_arguments(name, ar1, ar2)
    for array in arrays:
        known_or_sized(array, size, name)
    return [ravel(x) for x in promote_dtypes(name, *arrays)]


def _sized(values, mask, size, fill_value):
    """The values at which a mask holds; where there are less than ``size``, the fill value, the first of them, or 0."""
    if size is None:
        return compress(mask, values)
    if not values.shape[0]:
        fill = convert(as_operand("fill_value", 0 if fill_value is None else fill_value), values.dtype)
        return broadcast_to(fill, (size,))
    (where,) = nonzero(mask, size=size, fill_value=values.shape[0])
    chosen = read(values, where)
    if fill_value is None:
        fill_value = read(values, read(where, slice(0, 1)), mode="fill", fill_value=0) if size else 0
    fill = convert(as_operand("fill_value", fill_value), values.dtype)
    missing = lax.ge(where, np.asarray(values.shape[0], where.dtype))
    return lax.select(missing, broadcast_to(fill, chosen.shape), chosen)


def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements of either array, in order.

    Arguments:
      ar1, ar2: arrays.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: by default the first one.
    Returns:
      A 1-D array.
    Raises:
      ConcretizationTypeError: an array is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.union1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1, 2, 3], dtype=int32)
    """
    both = lax.concatenate(_two_sets("union1d", ar1, ar2, size), 0)
    return unique(both, size=size, fill_value=fill_value)


def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The elements of both arrays, in order.

    Arguments:
      ar1, ar2: arrays.
      assume_unique: a promise that neither has an element twice.
      return_indices: whether to return the position of the first of each in both arrays, too.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: by default the first one; positions are filled with the sizes of the arrays.
    Returns:
      A 1-D array, or three.
    Raises:
      ConcretizationTypeError: an array is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.intersect1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([3], dtype=int32)
    """
    a, b = _two_sets("intersect1d", ar1, ar2, size)
    size = None if size is None else static_size(size, "intersect1d")
    m, n, dtype = a.size, b.size, default_int()
    both = lax.concatenate([a, b], 0)
    order = argsort(both)
    ordered = read(both, order)
    owner = lax.ge(order, np.asarray(m, dtype))
    starts = _begins(ordered, m + n, equal_nan=False) if m + n else lax.full((0,), False, bool)
    if assume_unique:  # where that is not true, each element that is equal to the next, as in NumPy
        mask = lax.bitwise_not(_ends(starts))
    else:
        mask = _first_of_both(ordered, owner, starts)
    values = _sized(ordered, mask, size, fill_value)
    if not return_indices:
        return values
    count = values.shape[0] if size is None else size
    (where,) = nonzero(mask, size=count, fill_value=m + n)
    present = lax.lt(where, np.asarray(m + n, dtype))
    found = read(ordered, where)
    return values, _first_position(a, found, present), _first_position(b, found, present)


def _first_of_both(ordered, owner, starts):
    """Where a run of equal elements begins in which elements of both arrays occur (those of the first come first)."""
    n = ordered.shape[0]
    if n < 2:
        return lax.full((n,), False, bool)
    group = lax.cumsum(lax.convert_element_type(starts, default_int()))
    index = lax.sub(group, lax.full_like(group, 1))
    zeros = lax.full((n,), False, bool)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    has_second = lax.scatter_max(zeros, lax.reshape(index, (n, 1)), owner, numbers)
    return lax.bitwise_and(lax.bitwise_and(starts, lax.bitwise_not(owner)), read(has_second, index))


def _first_position(a, values, present):
    """The first position in ``a`` of each value; the size of ``a`` where there is none."""
    dtype = default_int()
    size = lax.full(values.shape, a.size, dtype)
    if not a.size:
        return size
    order = argsort(a)
    place = positions_in(read(a, order), values, "left")
    return lax.select(present, read(order, place), size)


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of the first array that are not in the second.

    Arguments:
      ar1, ar2: arrays.
      assume_unique: a promise that neither has an element twice; then the order of ``ar1`` is kept.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: by default 0.
    Returns:
      A 1-D array.
    Raises:
      ConcretizationTypeError: an array is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.setdiff1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1], dtype=int32)
    """
    a, b = array_arguments("setdiff1d", ar1, ar2)
    for array in (a, b):
        known_or_sized(array, size, "setdiff1d")
    size = None if size is None else static_size(size, "setdiff1d")
    a = ravel(a)
    if not assume_unique:
        a = sort(a)
    mask = lax.bitwise_not(_is_in(*promote_dtypes("setdiff1d", a, ravel(b)), "auto"))
    if not assume_unique and a.size:
        mask = lax.bitwise_and(_begins(a, a.size, equal_nan=False), mask)
    return _sized(a, mask, size, 0 if fill_value is None else fill_value)


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements that are in one of the arrays but not in both, in order.

    Arguments:
      ar1, ar2: arrays.
      assume_unique: a promise that neither has an element twice.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: by default the first one.
    Returns:
      A 1-D array.
    Raises:
      ConcretizationTypeError: an array is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.setxor1d(jnp.array([1, 3]), jnp.array([2, 3]))
    Array([1, 2], dtype=int32)
    """
    a, b = _two_sets("setxor1d", ar1, ar2, size)
    size = None if size is None else static_size(size, "setxor1d")
    both = lax.concatenate([a, b], 0)
    if not both.size:
        return _sized(both, lax.full((0,), False, bool), size, fill_value)
    if assume_unique:  # where that is not true, an element that is not equal to a neighbour, as in NumPy
        ordered = sort(both)
        begins = _begins(ordered, both.size, equal_nan=False)
        return _sized(ordered, lax.bitwise_and(begins, _ends(begins)), size, fill_value)
    order = argsort(both)
    ordered = read(both, order)
    second = lax.ge(order, np.asarray(a.size, order.dtype))
    first = _begins(ordered, both.size, equal_nan=False)
    last_of_run_is_second = _last_owner(second, first)
    mask = lax.bitwise_and(first, lax.eq(second, last_of_run_is_second))
    return _sized(ordered, mask, size, fill_value)


def _last_owner(second, first):
    """For each element whether the last of its run belongs to the second array; in a run, those of
    the first come first.
    """
    n = second.shape[0]
    index = lax.sub(lax.cumsum(lax.convert_element_type(first, default_int())), np.ones((), default_int()))
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    any_second = lax.scatter_max(lax.full((n,), False, bool), lax.reshape(index, (n, 1)), second, numbers)
    return read(any_second, index)


_MEMBER_METHODS = ("compare_all", "binary_search", "sort", "auto")


@whole
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Whether each element of an array is among the elements of another.

    Arguments:
      element: an array.
      test_elements: an array.
      assume_unique: a promise that neither has an element twice; it is not needed.
      invert: whether to say where it is not.
      method: how to search while tracing: "compare_all", "binary_search", "sort", or "auto".
    Returns:
      A boolean array of the shape of ``element``.
    Raises:
      ValueError: the method is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.isin(jnp.arange(4), jnp.array([1, 3]))
    Array([False,  True, False,  True], dtype=bool)
    """
    del assume_unique
    if (found := concrete_values(NUMBER, element, test_elements)) and method == "auto" and not invert:
        if 0 < found[0].size * found[1].size <= _FEW:  # the hot path
            return make_array(_is_in_values(found[0].reshape(-1), found[1].reshape(-1)).reshape(element.shape))
    element, test_elements = promote_dtypes("isin", *array_arguments("isin", element, test_elements))
    if method not in _MEMBER_METHODS:
        raise ValueError(
            f"{method=} is not implemented; options are 'compare_all', 'binary_search', 'sort', and 'auto'"
        )
    result = strong(reshaped(_is_in(ravel(element), ravel(test_elements), method), element.shape))
    return lax.bitwise_not(result) if invert else result


_FEW = 1 << 12  # comparisons that are done at once: less work than sorting


def _is_in_values(a, b) -> np.ndarray:
    if a.size * b.size <= _FEW:
        return np.logical_or.reduce(a[:, None] == b, 1)
    return np.isin(a, b)


def _is_in(a, b, method: str):
    """Whether each element of the 1-D array ``a`` is in ``b``."""
    if not a.size or not b.size:
        return lax.full(a.shape, False, bool)
    if direct(a) and direct(b) and a.dtype.kind in "biufc":
        return make_array(_is_in_values(a._value, b._value))
    if method == "compare_all" or (method == "auto" and (b.size <= 32 or dtypes.is_complex(a.dtype))):
        shape = (a.size, b.size)
        equal = lax.eq(lax.broadcast_in_dim(a, shape, (0,)), lax.broadcast_in_dim(b, shape, (1,)))
        return lax.reduce_or(equal, (1,))
    ordered = sort(b)
    places = positions_in(ordered, a, "left", "sort" if method == "sort" else "scan")
    found = read(ordered, lax.min(places, np.asarray(b.size - 1, places.dtype)))
    return lax.eq(found, a)
