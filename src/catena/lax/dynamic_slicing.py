"""Windows at positions that are known only when the program runs: dynamic slices and their updates."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena.core import dtypes
from catena.core.array import Array, as_array, live, make_array
from catena.core.aval import ShapedArray
from catena.core.axes import at_front, move_axis
from catena.core.context import context
from catena.core.primitive import Primitive
from catena.core.shapes import holds, position_dtype
from catena.core.structural import add_any_p
from catena.core.trace import Tracer
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal, zeros
from catena.lax.convert import convert
from catena.lax.elementwise import check_same_dtypes
from catena.lax.indexing import gather, static_sizes
from catena.lax.join import concatenate
from catena.lax.positions import from_end
from catena.lax.scatter_primitives import scatter_p
from catena.lax.shape import broadcast_in_dim, expand_dims, slice_in_dim, squeeze
from catena.lax.structure import canonical_axis
from catena.lax.windowed import (
    CLIP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
)

# ------------------------------------------------------------------------------------------------------------
# dynamic_slice


def _check_starts(op: str, operand, starts):
    if len(starts) != operand.ndim:
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(starts)} vs {operand.shape})"
        )
    if any(s.shape for s in starts):
        raise TypeError(f"start_indices arguments to {op} must be scalars,  got indices {tuple(starts)}")
    if any(not dtypes.is_integer(s.dtype) or s.dtype != starts[0].dtype for s in starts):
        got = ", ".join(dtypes.dtype_name(s.dtype) for s in starts)
        raise TypeError(f"index arguments to {op} must be integers of the same type, got: {got}")


def _dynamic_slice_abstract(operand, *starts, slice_sizes):
    _check_starts("dynamic_slice", operand, starts)
    if len(slice_sizes) != operand.ndim:
        raise ValueError(
            "dynamic_slice slice_sizes must have one size for every dimension of the operand, got slice_sizes "
            f"{slice_sizes} for operand shape {operand.shape}."
        )
    if any(n < 0 for n in slice_sizes):
        raise TypeError(f"slice slice_sizes must be greater than or equal to zero, got slice_sizes of {slice_sizes}.")
    if any(n > size for n, size in zip(slice_sizes, operand.shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {operand.shape}."
        )
    return ShapedArray(slice_sizes, operand.dtype, operand.weak_type)


def _window(shape, starts, sizes) -> tuple:
    """The slices of a window that starts at ``starts``, moved inside of ``shape``."""
    corner = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple([slice(c, c + size) for c, size in zip(corner, sizes, strict=True)])


def _dynamic_slice_evaluate(operand, *starts, slice_sizes):
    return operand[_window(operand.shape, starts, slice_sizes)]


def _dynamic_slice_jvp(primals, tangents, *, slice_sizes):
    operand, *starts = primals
    out = dynamic_slice_p.bind(operand, *starts, slice_sizes=slice_sizes)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, dynamic_slice_p.bind(tangents[0], *starts, slice_sizes=slice_sizes)


def _dynamic_slice_transpose(ct, operand, *starts, slice_sizes):
    whole = dynamic_update_slice_p.bind(zeros(operand.aval), instantiate(ct), *starts)
    return [whole] + [None] * len(starts)


def _dynamic_slice_transpose_onto(before, ct, operand, *starts, slice_sizes):
    window = add_any_p.bind(dynamic_slice_p.bind(before, *starts, slice_sizes=slice_sizes), ct)
    return dynamic_update_slice_p.bind(before, window, *starts)


def _stack_starts(axis, starts, dims):
    """Batched scalars as one ``[batch, len(starts)]`` array."""
    columns = [
        broadcast_in_dim(s, (axis.size, 1), () if d is None else (0,)) for s, d in zip(starts, dims, strict=True)
    ]
    return concatenate(columns, 1)


def _index_like(value: int, starts):
    """An index of the dtype of the others."""
    return np.asarray(value, get_aval(starts[0]).dtype if starts else np.int32)


def _dynamic_slice_batch(axis, args, dims, *, slice_sizes):
    operand, *starts = args
    dim, *start_dims = dims
    if all(d is None for d in start_dims):
        moved = move_axis(operand, dim, 0)
        first = _index_like(0, starts)
        return dynamic_slice_p.bind(moved, first, *starts, slice_sizes=(axis.size, *slice_sizes)), 0
    windows = tuple(range(1, len(starts) + 1))
    numbers = GatherDimensionNumbers(windows, (), tuple(range(len(starts))))
    if dim is not None:
        operand, slice_sizes = move_axis(operand, dim, 0), (1, *slice_sizes)
        numbers = GatherDimensionNumbers(windows, (), windows, (0,), (0,))
    indices = _stack_starts(axis, starts, start_dims)
    return gather(operand, indices, numbers, slice_sizes, mode=PROMISE_IN_BOUNDS), 0  # which clips as well


def _dynamic_slice_lower(b, operand, *starts, slice_sizes):
    return b.dynamic_slice(operand, list(starts), slice_sizes)


dynamic_slice_p = Primitive(
    "dynamic_slice",
    abstract=_dynamic_slice_abstract,
    evaluate=_dynamic_slice_evaluate,
    jvp=_dynamic_slice_jvp,
    transpose=_dynamic_slice_transpose,
    transpose_onto=_dynamic_slice_transpose_onto,
    batch=_dynamic_slice_batch,
    lower=_dynamic_slice_lower,
)

# ------------------------------------------------------------------------------------------------------------
# dynamic_update_slice


def _dynamic_update_slice_abstract(operand, update, *starts):
    _check_starts("dynamic_update_slice", operand, starts)
    if update.ndim != operand.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {operand.shape}."
        )
    if any(n > size for n, size in zip(update.shape, operand.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got update shape "
            f"{update.shape} for operand shape {operand.shape}."
        )
    check_same_dtypes("dynamic_update_slice", (operand, update))
    return ShapedArray(operand.shape, operand.dtype)


def _dynamic_update_slice_evaluate(operand, update, *starts):
    out = operand.copy(order="C")
    out[_window(operand.shape, starts, update.shape)] = update
    return out


def _dynamic_update_slice_jvp(primals, tangents):
    operand, update, *starts = primals
    out = dynamic_update_slice_p.bind(operand, update, *starts)
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return out, Zero.of_primal(out)
    return out, dynamic_update_slice_p.bind(instantiate(tangents[0]), instantiate(tangents[1]), *starts)


def _dynamic_update_slice_transpose(ct, operand, update, *starts):
    operand_ct = update_ct = None
    ct = instantiate(ct)
    update_aval = update.aval if is_undefined_primal(update) else get_aval(update)
    if is_undefined_primal(update):  # first, so that the other may overwrite what was read
        update_ct = dynamic_slice_p.bind(ct, *starts, slice_sizes=update_aval.shape)
    if is_undefined_primal(operand):
        operand_ct = dynamic_update_slice_p.bind(ct, zeros(update_aval), *starts)
    return [operand_ct, update_ct] + [None] * len(starts)


def _dynamic_update_slice_batch(axis, args, dims):
    operand, update, *starts = args
    operand_dim, update_dim, *start_dims = dims
    operand, update = at_front(axis.size, operand, operand_dim), at_front(axis.size, update, update_dim)
    if all(d is None for d in start_dims):
        out = dynamic_update_slice_p.bind(operand, update, _index_like(0, starts), *starts)
        return convert(out, get_aval(out).dtype, get_aval(operand).weak_type), 0  # as below, and as in JAX
    windows = tuple(range(1, len(starts) + 1))
    indices = _stack_starts(axis, starts, start_dims)
    out = scatter_p.bind(
        operand,
        indices,
        update,
        dimension_numbers=ScatterDimensionNumbers(windows, (), windows, (0,), (0,)),
        indices_are_sorted=True,
        mode=CLIP,
        unique_indices=True,
        update_consts=(),
        update_jaxpr=None,
    )
    return out, 0


def _dynamic_update_slice_lower(b, operand, update, *starts):
    return b.dynamic_update_slice(operand, update, list(starts))


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    abstract=_dynamic_update_slice_abstract,
    evaluate=_dynamic_update_slice_evaluate,
    jvp=_dynamic_update_slice_jvp,
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
    lower=_dynamic_update_slice_lower,
)

# ------------------------------------------------------------------------------------------------------------
# Public functions


def _starts(operand, start_indices, allow_negative_indices) -> list:
    """The start indices as integer scalars of one dtype, negative ones counted from the end if allowed."""
    shape = get_aval(operand).shape
    if isinstance(start_indices, (np.ndarray, Array, Tracer)):
        if start_indices.ndim != 1:
            raise ValueError(f"start_indices must be a sequence or a 1-D array, got shape {start_indices.shape}")
        start_indices = [_element(start_indices, i) for i in range(start_indices.shape[0])]
    if len(start_indices) != len(shape):
        raise ValueError(
            f"Length of slice indices must match number of operand dimensions ({len(start_indices)} vs {shape})"
        )
    allowed = allow_negative_indices
    if isinstance(allowed, bool):
        allowed = (allowed,) * len(shape)
    if len(allowed) != len(shape):
        raise ValueError(
            f"allow_negative_indices must be a bool or have one for each of the {len(shape)} dimensions, got {allowed}"
        )
    dtype = None
    for s in start_indices:
        if type(s) is not int:
            dtype = get_aval(s).dtype
            break
    starts = [_start(s, n, a, dtype) for s, n, a in zip(start_indices, shape, allowed, strict=True)]
    return _of_one_width(starts, shape, dtype)


def _of_one_width(starts: list, shape: tuple, dtype) -> list:
    """Starts of one dtype in one that can count to the end of each axis; of others as they are, to be refused."""
    given = dtypes.python_scalar_dtype(int)[0] if dtype is None else dtype
    if not dtypes.is_integer(given) or holds(given, max(shape, default=0)):
        return starts
    found = [get_aval(s) for s in starts]
    wide = position_dtype(max(shape), given)
    if any(a.dtype not in (given, wide) or a.shape for a in found):
        return starts
    return [convert(s, wide) for s in starts]


def _element(vector, i: int):
    return squeeze(slice_in_dim(vector, i, i + 1), (0,))


def _start(start, size: int, allow_negative: bool, dtype):
    """One start index; ``dtype`` is for Python integers, None for the default."""
    if type(start) is int:
        return _known_start(start, size, allow_negative, dtype)
    if isinstance(start, (int, np.integer)) and not isinstance(start, bool):
        return _known_start(int(start), size, allow_negative, get_aval(start).dtype)
    aval = get_aval(start)
    if not dtypes.is_integer(aval.dtype) or aval.shape:
        return start
    if dtypes.KIND[aval.dtype] == "u" or not allow_negative:
        return start
    if type(start) is Array and context.trace is None:
        return _known_start(int(live(start)), size, True, aval.dtype)
    return from_end(start, size)


_DEFAULT_INDICES = {}  # small indices as arrays of the default dtype, made once


def _known_start(start: int, size: int, allow_negative: bool, dtype):
    if start < 0:
        if not allow_negative:
            raise ValueError(f"Index {start} is out of bounds for dimension {size} if allow_negative_indices=False")
        start += size
    if dtype is None or not dtypes.is_integer(dtype):
        dtype = dtypes.python_scalar_dtype(int)[0]
    held = dtypes.iinfo(dtype)
    start = min(max(start, int(held.min)), max(size, int(held.max)))
    found = _DEFAULT_INDICES.get((start, dtype))
    if found is None:
        found = make_array(np.asarray(start).astype(position_dtype(start, dtype)))
        if abs(start) < 128:
            _DEFAULT_INDICES[start, dtype] = found
    return found


_INTEGERS = (np.int32, np.int64)
_STARTS = frozenset(map(np.dtype, _INTEGERS))


def _known_corner(operand, starts, sizes) -> list[int] | None:
    """Where a window of a concrete array starts, as integers; None for whatever is not plain. The hot path."""
    if type(operand) is not Array and not (type(operand) is np.ndarray and operand.dtype in _PLAIN):
        return None
    value = operand._value if type(operand) is Array else operand
    if context.trace is not None or context.debug_checks or type(value) is not np.ndarray:
        return None
    if type(starts) not in (tuple, list) or type(sizes) not in (tuple, list) or not value.ndim:
        return None
    if not value.ndim == len(starts) == len(sizes) or not {int}.issuperset(map(type, sizes)):
        return None
    if len({x.dtype for x in starts if type(x) in _INTEGERS or type(x) is Array}) > 1:
        return None
    corner = [x.item() if type(x) in _INTEGERS or _is_start(x) else x for x in starts]
    if not {int}.issuperset(map(type, corner)) or not all(0 <= k <= n for k, n in zip(sizes, value.shape, strict=True)):
        return None
    return [c + n if c < 0 else c for c, n in zip(corner, value.shape, strict=True)]


_PLAIN = frozenset(map(np.dtype, ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "float32")))


def _is_start(x) -> bool:
    """Whether this is a concrete integer of a dtype that holds any of ours."""
    return type(x) is Array and type(x._value) is np.ndarray and not x._value.ndim and x._value.dtype in _STARTS


def dynamic_slice(
    operand,
    start_indices,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
):
    """A window of given size whose position may be computed.

    Arguments:
      operand: the array to read.
      start_indices: one integer scalar for each dimension, or a 1-D array of them. A window that would stick
        out is moved inside.
      slice_sizes: the window's shape, static.
      allow_negative_indices: whether a negative start counts from the end; for all dimensions or one for
        each.
    Returns:
      An array of shape ``slice_sizes``.
    Raises:
      ValueError: the number of starts is not the number of dimensions.
      TypeError: a start is no integer scalar, or a size is larger than the operand.

    >>> import numpy as np
    >>> dynamic_slice(np.arange(5), (3,), (3,))
    Array([2, 3, 4], dtype=int32)
    """
    if allow_negative_indices is True and (corner := _known_corner(operand, start_indices, slice_sizes)):
        window = _window(operand.shape, corner, slice_sizes)
        if type(operand) is Array:
            return make_array(operand._value[window], operand._weak)
        return make_array(operand[window].copy(), False)
    starts = _starts(operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=static_sizes(slice_sizes, "slice_sizes"))


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices: bool | Sequence[bool] = True):
    """The operand with a window replaced, at a position that may be computed.

    Arguments:
      operand: the array.
      update: the new contents of the window; its rank and dtype are the operand's.
      start_indices: one integer scalar for each dimension, or a 1-D array of them. A window that would stick
        out is moved inside.
      allow_negative_indices: whether a negative start counts from the end; for all dimensions or one for
        each.
    Returns:
      A new array like ``operand``.
    Raises:
      ValueError: the number of starts is not the number of dimensions.
      TypeError: rank, size or dtype of ``update`` do not fit the operand.

    >>> import numpy as np
    >>> dynamic_update_slice(np.arange(5), np.zeros(2, int), (4,))
    Array([0, 1, 2, 0, 0], dtype=int32)
    """
    if allow_negative_indices is True and type(operand) is Array and type(update) is Array:
        value, new = operand._value, update._value
        if type(new) is np.ndarray and new.dtype is value.dtype:
            if corner := _known_corner(operand, start_indices, new.shape):  # the hot path
                return make_array(_dynamic_update_slice_evaluate(value, new, *corner), False)
    starts = _starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_slice_in_dim(operand, start_index, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True):
    """A window along one axis, whole along the others.

    Arguments:
      operand: the array to read.
      start_index: where the window starts, an integer scalar.
      slice_size: its size along ``axis``, static.
      axis: the axis.
      allow_negative_indices: whether a negative start counts from the end.
    Returns:
      The window, of the operand's rank.
    Raises:
      ValueError: ``axis`` is out of bounds.
      TypeError: the size is larger than the axis.

    >>> import numpy as np
    >>> dynamic_slice_in_dim(np.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    starts, sizes, axis = _along(operand, start_index, axis)
    sizes[axis] = operator.index(slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _along(operand, start_index, axis: int) -> tuple[list, list, int]:
    """Starts of 0 but along ``axis``, the operand's sizes, and the axis from the front."""
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape), "dynamic slice: axis")
    starts = [0] * len(shape)
    starts[axis] = start_index
    return starts, list(shape), axis


def dynamic_index_in_dim(operand, index, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True):
    """What stands at one position along an axis.

    Arguments:
      operand: the array to read.
      index: the position, an integer scalar; clamped.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.
      allow_negative_indices: whether a negative index counts from the end.
    Returns:
      The subarray.
    Raises:
      ValueError: ``axis`` is out of bounds.

    >>> import numpy as np
    >>> dynamic_index_in_dim(np.arange(6).reshape(2, 3), 1, keepdims=False)
    Array([3, 4, 5], dtype=int32)
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return (
        out if keepdims else squeeze(out, (canonical_axis(axis, get_aval(operand).ndim, "dynamic_index_in_dim: axis"),))
    )


def dynamic_update_slice_in_dim(operand, update, start_index, axis: int, *, allow_negative_indices: bool = True):
    """The operand with a window along one axis replaced.

    Arguments:
      operand: the array.
      update: the new contents, of the operand's rank.
      start_index: where the window starts, an integer scalar.
      axis: the axis.
      allow_negative_indices: whether a negative start counts from the end.
    Returns:
      A new array like ``operand``.
    Raises:
      TypeError: rank, size or dtype of ``update`` do not fit the operand.

    >>> import numpy as np
    >>> dynamic_update_slice_in_dim(np.arange(5), np.zeros(2, int), 1, 0)
    Array([0, 0, 0, 3, 4], dtype=int32)
    """
    starts, _, _ = _along(operand, start_index, axis)
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand, update, index, axis: int, *, allow_negative_indices: bool = True):
    """The operand with what stands at one position along an axis replaced.

    Arguments:
      operand: the array.
      update: the new contents, with the axis (of size 1) or without it.
      index: the position, an integer scalar; clamped.
      axis: the axis.
      allow_negative_indices: whether a negative index counts from the end.
    Returns:
      A new array like ``operand``.
    Raises:
      TypeError: rank, size or dtype of ``update`` do not fit the operand.

    >>> import numpy as np
    >>> dynamic_update_index_in_dim(np.arange(3), 7, 1, 0)
    Array([0, 7, 2], dtype=int32)
    """
    ndim = get_aval(operand).ndim
    axis = canonical_axis(axis, ndim, "dynamic_update_index_in_dim: axis")
    if get_aval(update).ndim != ndim:
        if get_aval(update).ndim != ndim - 1:
            raise TypeError(
                f"dynamic_update_index_in_dim: update must have the operand's rank {ndim} or one less, got shape "
                f"{get_aval(update).shape} for operand shape {get_aval(operand).shape}"
            )
        update = _with_axis(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis, allow_negative_indices=allow_negative_indices)


def _with_axis(update, axis: int):
    """The update with an axis of size 1."""
    if context.trace is None and not context.debug_checks:
        update = as_array(update) if type(update) in (int, float) else update
        if type(update) is Array and type(update._value) is np.ndarray:  # the hot path
            value = update._value
            return make_array(value.reshape(*value.shape[:axis], 1, *value.shape[axis:]), update._weak)
    return expand_dims(update, (axis,))


def index_in_dim(operand, index: int, axis: int = 0, keepdims: bool = True):
    """What stands at one static position along an axis.

    Arguments:
      operand: the array to read.
      index: the position; negative ones count from the end.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.
    Returns:
      The subarray.
    Raises:
      IndexError: the position is out of bounds.

    >>> import numpy as np
    >>> index_in_dim(np.arange(6).reshape(2, 3), -1, keepdims=False)
    Array([3, 4, 5], dtype=int32)
    """
    shape = get_aval(operand).shape
    index, axis = operator.index(index), canonical_axis(axis, len(shape), "index_in_dim: axis")
    size = shape[axis]
    if not -size <= index < size:
        raise IndexError(f"index_in_dim: index {index} is out of bounds for axis {axis} with size {size}")
    index %= size
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))
