"""Reading windows at positions given by an array of indices: gather."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena.core import casts, dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, get_aval, instantiate, zeros
from catena.lax import native
from catena.lax.convert import convert
from catena.lax.declared import scatter_add_p
from catena.lax.join import concatenate
from catena.lax.positions import around
from catena.lax.shape import expand_dims
from catena.lax.structure import canonical_axis, canonical_shape
from catena.lax.whole import whole
from catena.lax.windowed import (
    FILL_OR_DROP,
    MODE_NAMES,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    Numbers,
    ScatterDimensionNumbers,
    addressing,
    check_batching,
    check_disjoint,
    check_index_map,
    check_integer_indices,
    check_range,
    check_sorted,
    check_unique,
    shift,
)

# ------------------------------------------------------------------------------------------------------------
# gather


def _gather_abstract(
    operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
):
    check_integer_indices(indices, "gather")
    if mode not in MODE_NAMES:
        raise ValueError(f"gather: mode must be one of 'clip', 'fill', 'drop' and 'promise_in_bounds', got {mode}")
    check_gather(operand.shape, indices.shape, dimension_numbers, slice_sizes)
    dropped = {*dimension_numbers.collapsed_slice_dims, *dimension_numbers.operand_batching_dims}
    windows = iter([n for d, n in enumerate(slice_sizes) if d not in dropped])
    batch, offsets = iter(indices.shape[:-1]), frozenset(dimension_numbers.offset_dims)
    rank = len(offsets) + indices.ndim - 1
    shape = tuple([next(windows if i in offsets else batch) for i in range(rank)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def check_gather(operand_shape, indices_shape, n: GatherDimensionNumbers, slice_sizes):
    """TypeError where the dimension numbers make no sense for these shapes."""
    rank = len(operand_shape)
    dropped = len(n.collapsed_slice_dims) + len(n.operand_batching_dims)
    out_rank = len(n.offset_dims) + len(indices_shape) - 1
    check_sorted(n.offset_dims, "gather", "offset_dims")
    check_unique(n.offset_dims, "gather", "offset_dims")
    for i, d in enumerate(n.offset_dims):
        if not 0 <= d < out_rank:
            raise TypeError(
                f"Offset dimension {i} in gather op is out of bounds; got {d}, but should have been in [0, {out_rank})"
            )
    check_index_map(n.start_index_map, rank, indices_shape, "gather", "start_index_map")
    check_sorted(n.collapsed_slice_dims, "gather", "collapsed_slice_dims")
    check_range(n.collapsed_slice_dims, rank, "gather", "collapsed_slice_dims")
    check_unique(n.collapsed_slice_dims, "gather", "collapsed_slice_dims")
    names = "operand_batching_dims", "start_indices_batching_dims"
    check_batching(
        operand_shape, indices_shape, n.operand_batching_dims, n.start_indices_batching_dims, "gather", names
    )
    check_disjoint(n.collapsed_slice_dims, n.operand_batching_dims, "gather", ("collapsed_slice_dims", names[0]))
    check_disjoint(n.start_index_map, n.operand_batching_dims, "gather", ("start_index_map", names[0]))
    if len(slice_sizes) != rank:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={rank}"
        )
    if len(slice_sizes) != len(n.offset_dims) + dropped:
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or explicitly "
            f"collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, output_slice_sizes={n.offset_dims}, "
            f"collapsed_slice_dims={n.collapsed_slice_dims}, operand_batching_dims={n.operand_batching_dims}."
        )
    for i, (size, bound) in enumerate(zip(slice_sizes, operand_shape, strict=True)):
        if not 0 <= size <= bound:
            raise TypeError(
                f"Slice size at index {i} in gather op is out of range, must be within [0, {bound} + 1), got {size}."
            )
    for kind, dims in (("collapse", n.collapsed_slice_dims), ("batch", n.operand_batching_dims)):
        for i, d in enumerate(dims):
            if slice_sizes[d] != 1 and not (kind == "batch" and slice_sizes[d] == operand_shape[d] == 0):
                raise TypeError(
                    f"Gather op can only {kind} slice dims with bound 1, but bound is {slice_sizes[d]} for index {d} "
                    f"at position {i}."
                )


def gather_numbers(n: GatherDimensionNumbers, slice_sizes) -> Numbers:
    """The dimension numbers in the form that gathers and scatters share."""
    return Numbers(
        n.offset_dims,
        n.collapsed_slice_dims,
        n.start_index_map,
        n.operand_batching_dims,
        n.start_indices_batching_dims,
        slice_sizes,
    )


class AllOnes:
    """The fill value of extended dtypes, such as that of random keys: every bit of their storage is one."""

    def __repr__(self):
        return "all_ones"

    @staticmethod
    def of(storage: np.dtype) -> np.ndarray:
        return np.frombuffer(b"\xff" * storage.itemsize, storage)[0]


ALL_ONES = AllOnes()


def default_fill_value(dtype):
    """What gathers in fill mode give outside: NaN, the smallest signed or largest unsigned integer, True."""
    if dtypes.is_extended(dtype):
        return ALL_ONES
    kind = dtypes.KIND[dtype]
    if kind in ("f", "c"):
        return np.nan
    if kind == "b":
        return True
    info = dtypes.iinfo(dtype)
    return info.max if kind == "u" else info.min


def _fill(fill_value, storage: np.dtype) -> np.ndarray:
    """The fill value as an element of the operand."""
    if fill_value is ALL_ONES:
        return ALL_ONES.of(storage)
    if type(fill_value) is complex:
        return casts.convert_scalar(fill_value, storage)
    return np.asarray(default_fill_value(storage) if fill_value is None else fill_value).astype(storage)


def _gather_evaluate(
    operand, indices, *, dimension_numbers, slice_sizes, indices_are_sorted, unique_indices, mode, fill_value
):
    address = addressing(operand.shape, indices.shape, gather_numbers(dimension_numbers, slice_sizes))
    if 0 in address.shape:
        return np.empty(address.shape, operand.dtype)
    starts = address.starts(indices)
    valid = address.in_bounds(starts) if mode is FILL_OR_DROP else None
    needs_no_clamp = address.take_clamps or (mode is FILL_OR_DROP and valid is None)
    out = address.read(operand, starts if needs_no_clamp else address.clamp(starts))
    if valid is None:
        return out
    fill = _fill(fill_value, operand.dtype)
    return np.where(np.broadcast_to(valid, address.batch_shape).reshape(address.mask_shape), out, fill)


def _gather_jvp(primals, tangents, *, fill_value, **params):
    operand, indices = primals
    out = gather_p.bind(operand, indices, fill_value=fill_value, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, gather_p.bind(tangents[0], indices, fill_value=0, **params)


def _gather_transpose(
    ct,
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    indices_are_sorted,
    unique_indices,
    mode,
    fill_value,
):
    whole = scatter_add_p.bind(
        zeros(operand.aval.strip_weak_type()),
        indices,
        instantiate(ct),
        dimension_numbers=as_scatter_numbers(dimension_numbers),
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        unique_indices=unique_indices,
        update_consts=(),
        update_jaxpr=None,
    )
    return [whole, None]


def as_scatter_numbers(n: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The numbers of the scatter that writes where this gather reads."""
    return ScatterDimensionNumbers(*n)


def _gather_batch(axis, args, dims, *, dimension_numbers, slice_sizes, **params):
    (operand, indices), (operand_dim, indices_dim) = args, dims
    n = dimension_numbers
    if operand_dim is not None:
        operand = move_axis(operand, operand_dim, 0)
    if indices_dim is not None:
        indices = move_axis(indices, indices_dim, 0)
    if indices_dim is None:
        numbers = GatherDimensionNumbers(
            (0, *shift(n.offset_dims)),
            shift(n.collapsed_slice_dims),
            shift(n.start_index_map),
            shift(n.operand_batching_dims),
            n.start_indices_batching_dims,
        )
        slice_sizes = (axis.size, *slice_sizes)
    elif operand_dim is None:
        numbers = n._replace(
            offset_dims=shift(n.offset_dims), start_indices_batching_dims=shift(n.start_indices_batching_dims)
        )
        params["indices_are_sorted"] = params["unique_indices"] = False
    else:
        numbers = GatherDimensionNumbers(
            shift(n.offset_dims),
            shift(n.collapsed_slice_dims),
            shift(n.start_index_map),
            (0, *shift(n.operand_batching_dims)),
            (0, *shift(n.start_indices_batching_dims)),
        )
        slice_sizes = (min(axis.size, 1), *slice_sizes)
    return gather_p.bind(operand, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params), 0


def _gather_lower(
    b,
    operand,
    indices,
    *,
    dimension_numbers,
    slice_sizes,
    indices_are_sorted,
    unique_indices,
    mode,
    fill_value,
):
    fill = _fill(fill_value, operand.dtype) if mode is FILL_OR_DROP else None
    name = "fill" if mode is FILL_OR_DROP else "clip"  # a broken promise must not read elsewhere
    return b.gather(operand, indices, dimension_numbers, slice_sizes, name, fill)


gather_p = Primitive(
    "gather",
    abstract=_gather_abstract,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
    lower=_gather_lower,
)
gather_p.evaluate = native.shaped(gather_p, _gather_evaluate)

# ------------------------------------------------------------------------------------------------------------
# Public functions


def static_sizes(sizes, name: str) -> tuple:
    """The sizes of a window, a sequence of integers, as a tuple of Python integers."""
    return canonical_shape(tuple(sizes) if isinstance(sizes, Sequence) else sizes, name)


def gather(
    operand,
    start_indices,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value=None,
):
    """Windows of the operand at positions given by an array of indices.

    Arguments:
      operand: the array to read.
      start_indices: integers; the last axis holds one index vector.
      dimension_numbers: which axes are which.
      slice_sizes: the shape of a window, one size for each operand dimension.
      unique_indices: a promise that no index occurs twice (it makes the gradient cheaper).
      indices_are_sorted: a promise that the indices are in order.
      mode: 'clip', 'fill' (or 'drop'), 'promise_in_bounds'; None means 'promise_in_bounds', in which nothing
        bad happens if the promise is broken: windows are moved inside.
      fill_value: what to return for windows that stick out in the mode 'fill'. By default NaN, the smallest
        signed or the largest unsigned integer, True; of random keys, one whose bits are all one.
    Returns:
      The windows: ``start_indices.shape[:-1]`` along the axes that are not in ``offset_dims``, window
      elements along those that are.
    Raises:
      TypeError: shapes and dimension numbers do not fit.
      ValueError: the mode is unknown or the indices are no integers.

    Source: the semantics are those of XLA's Gather.

    >>> import numpy as np
    >>> numbers = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> gather(np.arange(6).reshape(3, 2), np.array([[2], [0]]), numbers, slice_sizes=(1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    mode = PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    if not isinstance(dimension_numbers, GatherDimensionNumbers):
        raise TypeError(f"gather: dimension_numbers must be GatherDimensionNumbers, got {dimension_numbers!r}")
    fill_value = _checked_fill_value(fill_value, get_aval(operand).dtype) if mode is FILL_OR_DROP else None
    return gather_p.bind(
        operand,
        start_indices,
        dimension_numbers=GatherDimensionNumbers(*(tuple(map(operator.index, dims)) for dims in dimension_numbers)),
        fill_value=fill_value,
        indices_are_sorted=bool(indices_are_sorted),
        mode=mode,
        slice_sizes=static_sizes(slice_sizes, "slice_sizes"),
        unique_indices=bool(unique_indices),
    )


def _checked_fill_value(fill_value, dtype):
    if fill_value is None:
        return default_fill_value(dtype)
    if dtypes.is_extended(dtype):
        raise TypeError(f"gather: arrays of dtype {dtype} take no fill_value, got {fill_value!r}")
    return fill_value


@whole
def index_take(src, idxs, axes: Sequence[int]):
    """The elements of ``src`` at several index arrays along several axes, indices taken modulo the axes' sizes.

    Arguments:
      src: the array to read.
      idxs: one 1-D integer array for each axis, all of one length.
      axes: the axes that they index.
    Returns:
      The indexed elements along the first axis, the other axes of ``src`` after it.
    Raises:
      TypeError: the number of index arrays is not that of axes.

    >>> import numpy as np
    >>> index_take(np.arange(6).reshape(2, 3), (np.array([0, -1]),), (1,))
    Array([[0, 3],
           [2, 5]], dtype=int32)
    """
    shape = get_aval(src).shape
    axes = tuple(canonical_axis(a, len(shape), "index_take: axis") for a in axes)
    if len(idxs) != len(axes):
        raise TypeError(f"index_take: got {len(idxs)} index arrays for {len(axes)} axes")
    for dtype in (get_aval(i).dtype for i in idxs):
        if not dtypes.is_integer(dtype):
            raise ValueError(f"index_take: indices must be integers, got {dtypes.dtype_name(dtype)}")
    columns = [around(i, shape[a]) for i, a in zip(idxs, axes, strict=True)]
    widest = max((get_aval(c).dtype for c in columns), key=lambda d: d.itemsize)
    columns = [expand_dims(c if get_aval(c).dtype == widest else convert(c, widest), (1,)) for c in columns]
    indices = concatenate(columns, 1)
    slice_sizes = [1 if d in axes else n for d, n in enumerate(shape)]
    numbers = GatherDimensionNumbers(tuple(range(1, len(shape) - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(src, indices, numbers, slice_sizes)
