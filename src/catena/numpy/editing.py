"""Arrays with elements moved, repeated, inserted or left out."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.errors import ConcretizationTypeError
from catena.core.shapes import check_positions, position_dtype
from catena.core.trace import Tracer, find_concrete
from catena.lax.positions import around, as_position, constant, from_end
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    as_operand,
    broadcast_to,
    canonical_axis,
    concrete_or_error,
    convert,
    direct,
    static_axis,
    static_int,
)
from catena.numpy.creation import default_int, shape_argument
from catena.numpy.index_update import IndexUpdateRef
from catena.numpy.joining import concatenate
from catena.numpy.placement import placed
from catena.numpy.reading import read
from catena.numpy.shaping import broadcast_to as checked_broadcast
from catena.numpy.shaping import ravel, reshaped
from catena.typing import ArrayLike


def along(axis: int, entry) -> tuple:
    """The index that applies ``entry`` to ``axis`` and takes the axes before it whole."""
    return (slice(None),) * axis + (entry,)


# ----------------------------------------------------------------------------------------------------
# Repetition


@whole
def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """An array with each slice along an axis repeated in place.

    Arguments:
      a: an array.
      repeats: how often: a number, or one for each slice.
      axis: the axis; None flattens the array first.
      total_repeat_length: the length of the result, needed where ``repeats`` is traced: what is too long is
        cut, what is too short is filled with the last slice.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array.
    Raises:
      ConcretizationTypeError: ``repeats`` is traced and there is no ``total_repeat_length``. ValueError: the
        lengths do not fit. TypeError: ``repeats`` is negative.

    >>> import catena.numpy as jnp
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 1, 2, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, repeat, a, repeats, axis, total_repeat_length=total_repeat_length)
    a = as_array_argument("repeat", a, 0)
    repeats = as_array_argument("repeat", repeats, 1)
    if axis is None or a.ndim == 0:
        a, axis = ravel(a), 0
    axis = canonical_axis(static_int(axis, "'axis' argument of jnp.repeat()"), a.ndim)
    known = find_concrete(repeats)
    if known is None and total_repeat_length is None:
        raise ConcretizationTypeError(
            repeats,
            "When jit-compiling jnp.repeat, the total number of repeats must be static. To fix this, either specify a "
            "static value for `repeats`, or pass a static value to `total_repeat_length`.",
        )
    if not dtypes.is_integer(repeats.dtype) and repeats.dtype != dtypes.BOOL:
        raise TypeError(f"repeat: repeats must be integers, got {dtypes.dtype_name(repeats.dtype)}")
    _check_repeats(repeats, a.shape[axis])
    length = None if total_repeat_length is None else operator.index(total_repeat_length)
    if known is not None:
        result = _repeat_known(a, np.broadcast_to(known._value, (a.shape[axis],)), axis, length)
    else:
        repeats = ravel(repeats) if repeats.ndim == 0 else repeats
        result = _repeat_traced(a, broadcast_to(repeats, (a.shape[axis],)), axis, length)
    return placed(result)


def _check_repeats(repeats, n: int):
    if repeats.ndim > 1 or (repeats.ndim == 1 and repeats.shape[0] not in (1, n)):
        raise ValueError(
            f"repeat: repeats must be a number or have one for each of the {n} slices, got shape {repeats.shape}"
        )


def _repeat_known(a, counts: np.ndarray, axis: int, length: int | None):
    if (counts < 0).any():
        raise TypeError(f"repeat: repeats must be nonnegative, got {counts}")
    index = np.repeat(np.arange(a.shape[axis]), counts)
    if length is not None:
        filled = np.full((length,), max(a.shape[axis] - 1, 0))
        filled[: min(length, len(index))] = index[:length]
        index = filled
    if direct(a):
        return make_array(a._value.take(index, axis), a.weak_type)
    if length is None and counts.size and (counts == counts[0]).all():
        return _repeat_evenly(a, int(counts[0]), axis)
    return read(a, along(axis, index))


def _repeat_evenly(a, count: int, axis: int):
    shape = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
    dims = tuple(i for i in range(len(shape)) if i != axis + 1)
    spread = lax.broadcast_in_dim(a, shape, dims)
    return lax.reshape(spread, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))


def _repeat_traced(a, repeats, axis: int, length: int):
    """Each slice begins where the counts before it end; the running number of beginnings is the slice to take."""
    if not a.shape[axis] or not length:
        return read(a, along(axis, np.zeros((length if a.shape[axis] else 0,), np.int32)))
    dtype = default_int()
    counts = convert(repeats, dtype)
    ends = lax.cumsum(counts)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    zeros, ones = lax.full((length,), 0, dtype), lax.full(ends.shape, 1, dtype)
    passed = lax.scatter_add(zeros, lax.reshape(ends, (ends.size, 1)), ones, numbers)
    index = lax.min(lax.cumsum(passed), np.asarray(a.shape[axis] - 1, dtype))
    return read(a, along(axis, index))


@whole
def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array:
    """The elements of an array in another shape, repeated or cut as needed.

    Arguments:
      a: an array.
      new_shape: the shape.
    Returns:
      An array of ``new_shape``.
    Raises:
      ValueError: a size is negative.

    >>> import catena.numpy as jnp
    >>> jnp.resize(jnp.arange(3), (2, 2))
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    a = as_array_argument("resize", a)
    shape = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    if any(operator.index(n) < 0 for n in shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    shape = shape_argument(shape)
    size = int(np.prod(shape, dtype=np.int64))
    if not a.size or not size:
        return lax.full(shape, 0, a.dtype)
    return reshaped(read(ravel(a), np.arange(size) % a.size) if size != a.size else a, shape)


# ----------------------------------------------------------------------------------------------------
# Movement


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """An array with its elements moved along axes; those that leave at the end come back at the beginning.

    Arguments:
      a: an array.
      shift: by how many places, for each axis or for all.
      axis: the axes; None moves the elements of the flattened array.
    Returns:
      An array of the shape of ``a``.
    Raises:
      ValueError: an axis is out of bounds, or the numbers of shifts and axes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    a = as_array_argument("roll", a)
    if type(shift) is int and direct(a) and a._value.size and (axis is None or type(axis) is int):
        if axis is None or -a.ndim <= axis < a.ndim:  # the hot path
            return make_array(_rolled_value(a._value, shift, axis), a.weak_type)
    if isinstance(shift, list | tuple):
        shift = (
            np.asarray([np.asarray(as_operand("roll", s, 1)).astype(np.int64) for s in shift])
            if not _traced(shift)
            else lax.stack([convert(as_array_argument("roll", s, 1), np.dtype("int32")) for s in shift], 0)
        )
    shift = as_array_argument("roll", shift, 1)
    if axis is None:
        return reshaped(_rolled(ravel(a), shift, (0,)), a.shape)
    axis = static_axis(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return _rolled(a, shift, tuple(canonical_axis(i, a.ndim) for i in axes))


def _rolled_value(value, by: int, axis) -> np.ndarray:
    shape = value.shape
    if axis is None:
        value, axis = value.reshape(-1), 0
    n = value.shape[axis]
    before = (slice(None),) * (axis % value.ndim)
    first, second = value[(*before, slice(n - by % n, None))], value[(*before, slice(None, n - by % n))]
    return np.concatenate((first, second), axis).reshape(shape)


def _traced(values) -> bool:
    return any(isinstance(v, Tracer) for v in values)


def _rolled(a, shift, axes: tuple):
    if shift.ndim > 1 or (shift.ndim and len(axes) > 1 and shift.shape[0] not in (1, len(axes))):
        raise ValueError(
            "shape mismatch: objects cannot be broadcast to a single shape.  Mismatch is between arg 0 with shape "
            f"({len(axes)},) and arg 1 with shape {shift.shape}."
        )
    count = max(shift.size, len(axes))
    axes = axes * count if len(axes) == 1 else axes
    known = find_concrete(shift)
    if known is not None:
        shifts = np.broadcast_to(known._value, (count,))
        for axis, by in zip(axes, shifts, strict=True):
            a = _roll_axis(a, int(by), axis)
        return a
    for i, axis in enumerate(axes):
        a = _roll_dynamically(a, read(shift, i % shift.size) if shift.ndim else shift, axis)
    return a


def _roll_axis(a, by: int, axis: int):
    n = a.shape[axis]
    by = by % n if n else 0
    if not by:
        return a
    first, second = read(a, along(axis, slice(n - by, None))), read(a, along(axis, slice(None, n - by)))
    if direct(a):
        return make_array(np.concatenate((first._value, second._value), axis), a.weak_type)
    return lax.concatenate([first, second], axis)


def _roll_dynamically(a, by, axis: int):
    """A window into two copies of the array."""
    n = a.shape[axis]
    if not n:
        return a
    dtype = position_dtype(2 * n, np.dtype("int32"))
    start = around(lax.neg(as_position(by, dtype)), n)
    return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, n, axis)


# ----------------------------------------------------------------------------------------------------
# Insertion and removal


def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values put between its elements.

    Arguments:
      arr: an array.
      obj: the positions before which to put them: an integer, a slice, or an array.
      values: the values, which broadcast with the slices of ``arr``; converted to its dtype.
      axis: the axis; None flattens the array first.
    Returns:
      A longer array.
    Raises:
      ValueError: the axis is out of bounds, or ``obj`` holds no integers or has more than one dimension.

    >>> import catena.numpy as jnp
    >>> jnp.insert(jnp.arange(3), 1, 7)
    Array([0, 7, 1, 2], dtype=int32)
    """
    arr = as_array_argument("insert", arr, 0)
    values = as_array_argument("insert", values, 2)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonical_axis(operator.index(axis), arr.ndim)
    n = arr.shape[axis]
    if type(obj) is int:
        place = min(max(obj + n if obj < 0 else obj, 0), n)
        return _inserted_at(arr, place, _values_to_insert(values, arr, axis, True), axis)
    index = np.arange(*obj.indices(n)) if isinstance(obj, slice) else obj
    index = as_array_argument("insert", index, 1)
    if not dtypes.is_integer(index.dtype):
        raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
    if index.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional")
    single = index.size == 1
    places = reshaped(_wrapped(index, n), (index.size,))
    values = _values_to_insert(values, arr, axis, index.ndim == 0)
    count = values.shape[axis] if single else index.size
    if single:
        places = broadcast_to(places, (count,))
    total = n + count
    check_positions("insert", total, default_int(), axis)
    order = _stable_order(places)
    shape = tuple(total if i == axis else s for i, s in enumerate(arr.shape))
    starts = lax.add(read(places, order), np.arange(count, dtype=places.dtype))
    where = IndexUpdateRef(lax.full((count,), 0, places.dtype), order).set(starts)
    kept = _positions_without(where, total, n)
    part = tuple(count if i == axis else s for i, s in enumerate(arr.shape))
    values = convert(values, arr.dtype)
    zeros = lax.full_like(arr, 0, shape=shape)
    result = IndexUpdateRef(zeros, along(axis, kept)).set(arr)
    return IndexUpdateRef(result, along(axis, where)).set(checked_broadcast(values, part))


def _inserted_at(arr, place: int, values, axis: int):
    """All of the values before one element."""
    part = tuple(values.shape[axis] if i == axis else s for i, s in enumerate(arr.shape))
    values = checked_broadcast(convert(values, arr.dtype, arr.weak_type), part)
    sides = (lax.slice_in_dim(arr, 0, place, axis=axis), lax.slice_in_dim(arr, place, None, axis=axis))
    return lax.concatenate([sides[0], values, sides[1]], axis)


def _wrapped(index, n: int):
    """Positions from 0 to ``n``, negative ones counted from the end."""
    index = from_end(index, n, default_int())
    return lax.clamp(constant(0, index.dtype), index, constant(n, index.dtype))


def _values_to_insert(values, arr, axis: int, scalar: bool):
    """The values with the axes of ``arr``; for a single position their first axis runs along ``axis``."""
    missing = arr.ndim - values.ndim
    if missing > 0:
        values = reshaped(values, (1,) * missing + values.shape)
    if scalar and missing >= 0:
        order = list(range(1, values.ndim))
        order.insert(axis, 0)
        values = lax.transpose(values, tuple(order))
    return values


def _stable_order(places):
    """The order that sorts 1-D integers, equal ones as they come."""
    return lax.sort([places, lax.iota(places.dtype, places.size)], 0, is_stable=True, num_keys=1)[1]


def _positions_without(taken, total: int, n: int):
    """The ``n`` of ``total`` positions that are not among ``taken``, in order."""
    free = IndexUpdateRef(lax.full((total,), 1, taken.dtype), taken).set(0)
    key = lax.sub(lax.full_like(free, 1), free)
    return read(_stable_order(key), slice(0, n))


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """An array without some of its slices.

    Arguments:
      arr: an array.
      obj: their positions: an integer, a slice, an array of integers, or a boolean array (known while
        tracing).
      axis: the axis; None flattens the array first.
      assume_unique_indices: a promise that no position occurs twice, by which ``obj`` may be traced.
    Returns:
      A shorter array.
    Raises:
      ValueError, IndexError: a position is out of bounds. ConcretizationTypeError: ``obj`` is traced without
        that promise.

    >>> import catena.numpy as jnp
    >>> jnp.delete(jnp.arange(4), jnp.array([0, 2]))
    Array([1, 3], dtype=int32)
    """
    arr = as_array_argument("delete", arr, 0)
    if axis is None:
        arr, axis = ravel(arr), 0
    axis = canonical_axis(operator.index(axis), arr.ndim)
    n = arr.shape[axis]
    if isinstance(obj, slice):
        return _without(arr, axis, np.arange(n)[obj])
    obj = as_array_argument("delete", obj, 1)
    known = find_concrete(obj)
    if dtypes.is_integer(obj.dtype) and obj.ndim == 0:
        if known is None:
            return _without_one(arr, axis, obj)
        place = canonical_axis(int(known._value), n)
        sides = (lax.slice_in_dim(arr, 0, place, axis=axis), lax.slice_in_dim(arr, place + 1, None, axis=axis))
        return lax.concatenate(sides, axis)
    if dtypes.is_integer(obj.dtype) and assume_unique_indices and known is None:
        taken = _wrapped(reshaped(obj, (obj.size,)), n)
        return read(arr, along(axis, _positions_without(taken, n, n - obj.size)))
    value = concrete_or_error(lambda x: x, obj, "'obj' array argument of jnp.delete()")._value
    if obj.dtype == dtypes.BOOL and obj.shape != (n,):
        raise ValueError(
            "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length matching specified axis."
        )
    if obj.dtype != dtypes.BOOL and not dtypes.is_integer(obj.dtype):
        raise ValueError(f"delete: obj must hold integers or booleans, got {dtypes.dtype_name(obj.dtype)}")
    return _without(arr, axis, value)


def _without(arr, axis: int, positions: np.ndarray):
    """``arr`` without known positions."""
    keep = np.ones((arr.shape[axis],), bool)
    try:
        keep[positions] = False
    except IndexError as error:
        raise IndexError(f"delete: obj, {error} of the array") from None
    return read(arr, along(axis, np.flatnonzero(keep)))


def _without_one(arr, axis: int, position):
    """``arr`` without the slice at a traced position: all after it move up."""
    n = arr.shape[axis]
    position = _wrapped(position, n)
    index = lax.iota(position.dtype, max(n - 1, 0))
    return read(arr, along(axis, lax.add(index, lax.convert_element_type(lax.ge(index, position), index.dtype))))


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """An array without the zeros at its ends.

    Arguments:
      filt: an array, whose values must be known while tracing.
      trim: where to cut: "f" for the front, "b" for the back.
      axis: the axes to cut along; by default all.
    Returns:
      The smallest part of the array that holds all that is not zero.
    Raises:
      ConcretizationTypeError: the array is traced. ValueError: ``trim`` has other letters, or an axis is
        out of bounds or repeated.

    >>> import catena.numpy as jnp
    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    filt = as_array_argument("trim_zeros", filt)
    if not filt.ndim:
        return filt
    letters = trim.lower()
    if set(letters) - {"f", "b"}:
        raise ValueError(f"trim_zeros: trim must hold only 'f' and 'b', got {trim!r}")
    known = concrete_or_error(lambda x: x, filt, "Error arose in the `filt` argument of trim_zeros()")
    axis = static_axis(axis)
    axes = range(filt.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = [canonical_axis(i, filt.ndim) for i in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"trim_zeros: repeated axis in {axis}")
    where = np.nonzero(known._value)
    index = [slice(None)] * filt.ndim
    for i in axes:
        found = where[i]
        if not found.size:
            index[i] = slice(0, 0)
        else:
            start = int(found.min()) if "f" in letters else 0
            index[i] = slice(start, int(found.max()) + 1 if "b" in letters else None)
    return read(filt, tuple(index))


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """An array with values at its end.

    Arguments:
      arr: an array.
      values: what to append: of the shape of ``arr`` but for ``axis``.
      axis: the axis; None flattens both.
    Returns:
      An array of the dtype that both promote to.
    Raises:
      TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.append(jnp.arange(3), 7)
    Array([0, 1, 2, 7], dtype=int32)
    """
    return concatenate([as_operand("append", arr, 0), as_operand("append", values, 1)], axis)
