"""Reductions over segments: each is a scatter into an array of the reduction's neutral element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from catena import lax, numpy
from catena.core import dtypes
from catena.core.array import Array, live
from catena.core.named import NamedTuple
from catena.core.trace import find_concrete
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.lax.windowed import GatherScatterMode, ScatterDimensionNumbers
from catena.lax.windows import highest, lowest
from catena.numpy.boundary import as_array_argument, static_int, strong
from catena.numpy.documentation import family
from catena.numpy.placement import placed
from catena.numpy.shaping import checked_broadcast
from catena.typing import ArrayLike


class Reducer(NamedTuple):
    """A reduction of segments: how elements are joined, its neutral element by dtype, and how buckets are joined."""

    scatter: Callable
    neutral: Callable[[Any], Any]
    reduce: Callable


REDUCERS = {
    "segment_sum": Reducer(lax.scatter_add, lambda dtype: 0, lax.reduce_sum),
    "segment_prod": Reducer(lax.scatter_mul, lambda dtype: 1, lax.reduce_prod),
    "segment_max": Reducer(lax.scatter_max, lowest, lax.reduce_max),
    "segment_min": Reducer(lax.scatter_min, highest, lax.reduce_min),
}


def _segments(name: str, data, segment_ids, num_segments, bucket_size, hints, out_sharding):
    """The reduction of the rows of ``data`` with equal ids, as row ``id`` of the result."""
    if out_sharding is not None:
        return told(out_sharding, _segments, name, data, segment_ids, num_segments, bucket_size, hints, None)
    if num_segments is None:
        data, segment_ids = as_array_argument(name, data), as_array_argument(name, segment_ids, 1)
        num_segments = _count(name, segment_ids)
    return _programs[name](name, data, segment_ids, num_segments, bucket_size, hints)


def _checked_ids(name: str, ids):
    if not dtypes.is_integer(ids.dtype):
        raise TypeError(f"{name}: segment_ids must be integers, got {dtypes.dtype_name(ids.dtype)}")
    return ids


def _count(name: str, ids) -> int:
    """One more than the greatest id, which is looked at."""
    known = find_concrete(_checked_ids(name, ids))
    if known is not None and known.size:
        return int(live(known).max()) + 1
    return _number(name, "num_segments", lax.add(numpy.max(lax.convert_element_type(ids, int)), 1), 0)


def _reduced(name: str, data, segment_ids, num_segments, bucket_size, hints):
    """``_segments``, of which it is known how many there are."""
    reducer = REDUCERS[name]
    data, ids = strong(as_array_argument(name, data)), _checked_ids(name, as_array_argument(name, segment_ids, 1))
    count = _number(name, "num_segments", num_segments, 0)
    indices = lax.expand_dims(ids, (ids.ndim,))
    operand_shape = (count, *data.shape[1:])
    data = checked_broadcast(data, ids.shape + data.shape[1:])
    if bucket_size is not None:
        size = _number(name, "bucket_size", bucket_size, 1)
        operand_shape = (-(-indices.shape[0] // size), *operand_shape)
        dtype = "int64" if ids.dtype.itemsize == 8 else "int32"
        buckets = lax.broadcasted_iota(dtype, indices.shape, 0) // size
        indices = lax.concatenate([buckets, lax.convert_element_type(indices, dtype)], ids.ndim)
    result = reducer.scatter(
        lax.full(operand_shape, reducer.neutral(data.dtype), data.dtype),
        indices,
        data,
        _rows(ids.ndim, data.ndim, indices.shape[-1]),
        indices_are_sorted=hints[0],
        unique_indices=hints[1],
        mode=hints[2],
    )
    return placed(result if bucket_size is None else reducer.reduce(result, (0,)))


_programs = {name: whole(_reduced, name) for name in REDUCERS}


def _number(name: str, argument: str, x, least: int) -> int:
    """A parameter that has to be known while tracing."""
    value = static_int(x, f"The argument {argument} of {name} must be known statically.")
    if value < least:
        raise ValueError(f"{name}: {argument} must be at least {least}, got {value}")
    return value


def _rows(batch: int, rank: int, leading: int) -> ScatterDimensionNumbers:
    """A scatter of rows, of which there are ``batch`` axes, to rows given by their indices along ``leading`` axes."""
    return ScatterDimensionNumbers(tuple(range(batch, rank)), tuple(range(leading)), tuple(range(leading)))


_of_segments = family(
    data="an array, or a scalar; its first axis is the one that is reduced.",
    segment_ids=(
        "integers, one for each element of the first axis: the row of the result that it goes to. Elements whose\n"
        "ids are negative, or not below ``num_segments``, are left out."
    ),
    num_segments="the number of segments; by default one more than the greatest id, which must not be traced then.",
    indices_are_sorted="a promise that the ids are in order.",
    unique_indices="a promise that no id comes twice.",
    bucket_size="how many elements to reduce by themselves first, for sums of better accuracy; by default all.",
    mode=(
        'what becomes of ids out of bounds: "drop" or "fill" or None leave their elements out, "clip" moves them\n'
        'inside, "promise_in_bounds" says that there are none.'
    ),
    out_sharding="the sharding of the result; None for that of a single device.",
    returns="An array of shape ``(num_segments, *data.shape[1:])`` and of the dtype of ``data``.",
    raises=(
        "TypeError: ``data`` or the ids are no arrays, or of dtypes that are not reduced so, or are no indices.\n"
        "ValueError: the ids do not fit ``data``, ``mode`` is unknown, or a number is too small.\n"
        "ConcretizationTypeError: the ids are traced and there is no ``num_segments``."
    ),
)


@_of_segments
def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum of the elements of each segment; 0 where there are none.

    >>> import catena.numpy as jnp
    >>> from catena import ops
    >>> ops.segment_sum(jnp.array([2.0, 2.0, 3.0, 5.0, 4.0]), jnp.array([0, 1, 0, 1, 3]))
    Array([5., 7., 0., 4.], dtype=float32)
    """
    hints = (indices_are_sorted, unique_indices, mode)
    return _segments("segment_sum", data, segment_ids, num_segments, bucket_size, hints, out_sharding)


@_of_segments
def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of the elements of each segment; 1 where there are none.

    >>> import catena.numpy as jnp
    >>> from catena import ops
    >>> ops.segment_prod(jnp.array([2.0, 2.0, 3.0, 5.0, 4.0]), jnp.array([0, 1, 0, 1, 3]))
    Array([ 6., 10.,  1.,  4.], dtype=float32)
    """
    hints = (indices_are_sorted, unique_indices, mode)
    return _segments("segment_prod", data, segment_ids, num_segments, bucket_size, hints, out_sharding)


@_of_segments
def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The greatest element of each segment; the least number of the dtype where there are none.

    >>> import catena.numpy as jnp
    >>> from catena import ops
    >>> ops.segment_max(jnp.array([2.0, 2.0, 3.0, 5.0, 4.0]), jnp.array([0, 1, 0, 1, 3]))
    Array([  3.,   5., -inf,   4.], dtype=float32)
    """
    hints = (indices_are_sorted, unique_indices, mode)
    return _segments("segment_max", data, segment_ids, num_segments, bucket_size, hints, out_sharding)


@_of_segments
def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: GatherScatterMode | str | None = None,
    out_sharding: Any = None,
) -> Array:
    """The least element of each segment; the greatest number of the dtype where there are none.

    >>> import catena.numpy as jnp
    >>> from catena import ops
    >>> ops.segment_min(jnp.array([2.0, 2.0, 3.0, 5.0, 4.0]), jnp.array([0, 1, 0, 1, 3]))
    Array([ 2.,  2., inf,  4.], dtype=float32)
    """
    hints = (indices_are_sorted, unique_indices, mode)
    return _segments("segment_min", data, segment_ids, num_segments, bucket_size, hints, out_sharding)
