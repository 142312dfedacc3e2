"""Counting: ``bincount`` and histograms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.errors import ConcretizationTypeError
from catena.core.trace import find_concrete
from catena.lax.structure import told
from catena.lax.whole import whole
from catena.numpy import reductions
from catena.numpy.boundary import as_array_argument, convert, direct, like
from catena.numpy.creation import default_int
from catena.numpy.hot import F64
from catena.numpy.placement import placed
from catena.numpy.promotion import promote_dtypes_inexact
from catena.numpy.ranges import linspace
from catena.numpy.reading import read
from catena.numpy.shaping import ravel, reshaped
from catena.numpy.sorting import positions_in
from catena.typing import ArrayLike

Range = Sequence[ArrayLike] | Array | None


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """How often each nonnegative integer occurs.

    Arguments:
      x: 1-D integers; negative ones count as 0.
      weights: how much each counts; by default 1.
      minlength: the least length of the result.
      length: the length of the result, needed while tracing; greater integers are not counted.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      A 1-D array: integers, or of the dtype of the weights.
    Raises:
      TypeError: ``x`` does not hold integers. ValueError: it is not 1-D, or the weights have another shape.
      ConcretizationTypeError: ``x`` is traced and there is no ``length``.

    >>> import catena.numpy as jnp
    >>> jnp.bincount(jnp.array([1, 1, 3]))
    Array([0, 2, 0, 1], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, bincount, x, weights, minlength, length=length)
    x = as_array_argument("bincount", x)
    if x.dtype == dtypes.BOOL:
        x = convert(x, np.dtype("int32"))
    if not dtypes.is_integer(x.dtype):
        raise TypeError(f"x argument to bincount must have an integer type; got {dtypes.dtype_name(x.dtype)}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    if weights is not None:
        weights = as_array_argument("bincount", weights, 1)
        if weights.shape != x.shape:
            raise ValueError(f"bincount: weights must have the shape {x.shape} of x, got {weights.shape}")
    minlength = operator.index(minlength)
    if length is None:
        length = max(minlength, _greatest(x) + 1 if x.size else 0)
    result = _counts(x, weights, operator.index(length))
    return placed(result)


def _greatest(x) -> int:
    known = find_concrete(x)
    if known is None:
        raise ConcretizationTypeError(
            x,
            "The error occurred because of argument 'x' of jnp.bincount. Pass length= to use it while tracing.",
        )
    return max(int(known._value.max()), 0)


def _counts(x, weights, length: int):
    """Counts or sums of weights by bin; integers beyond the last bin are left out."""
    dtype = default_int() if weights is None else weights.dtype
    if direct(x) and length and (weights is None or (direct(weights) and dtype == F64)):
        value = np.maximum(x._value, 0)
        inside = value < length
        chosen, weight = value, None if weights is None else weights._value
        if not inside.all():
            chosen, weight = value[inside], None if weights is None else weight[inside]
        return make_array(np.bincount(chosen.astype(np.intp), weight, minlength=length).astype(dtype))
    x = lax.max(x, lax.full_like(x, 0))
    ones = lax.full(x.shape, 1, dtype) if weights is None else convert(weights, dtype)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    if not length or not x.size:
        return lax.full((length,), 0, dtype)
    return lax.scatter_add(lax.full((length,), 0, dtype), lax.reshape(x, (x.size, 1)), ones, numbers, mode="drop")


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Range = None, weights: ArrayLike | None = None
) -> Array:  # noqa: A002
    """The edges of the bins of a histogram.

    Arguments:
      a: the values.
      bins: the number of bins of equal width, or the edges.
      range: the first and the last edge; by default the least and the greatest value.
      weights: not needed.
    Returns:
      A 1-D array of one more element than there are bins, of the inexact dtype of the values.
    Raises:
      TypeError: ``bins`` is a string. ValueError: ``range`` is not a pair, or there are no values.

    >>> import catena.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([0.0, 1.0, 4.0]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    del weights
    if isinstance(bins, str):
        raise TypeError(f"histogram_bin_edges: bins must be a number of bins or an array of edges, got {bins!r}")
    a = as_array_argument("histogram_bin_edges", a)
    a = ravel(convert(a, dtypes.to_inexact_dtype(a.dtype)))
    edges = as_array_argument("histogram_bin_edges", bins, 1)
    if edges.ndim == 1:
        is_cut = dtypes.is_complex(edges.dtype) and not dtypes.is_complex(a.dtype)
        return convert(lax.real(edges) if is_cut else edges, a.dtype)
    count = operator.index(bins)
    low, high = _bounds(a, range)
    flat = lax.eq(low, high)
    half = like(low, 0.5)
    low = lax.select(flat, lax.sub(low, half), low)
    high = lax.select(flat, lax.add(high, half), high)
    return linspace(low, high, count + 1, dtype=a.dtype)


def _bounds(a, given) -> tuple:
    """The first and the last edge."""
    if given is None:
        return reductions.min(a), reductions.max(a)
    ends = [convert(as_array_argument("histogram", v, 2), a.dtype) for v in given]
    if len(ends) != 2 or any(e.ndim for e in ends):
        raise ValueError(f"`range` must be either None or a sequence of scalars, got {given}")
    return tuple(ends)


@whole
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Range = None,  # noqa: A002
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many values lie in each of some bins.

    Arguments:
      a: the values.
      bins: the number of bins of equal width, or the edges.
      range: the first and the last edge; by default the least and the greatest value.
      weights: how much each value counts; by default 1.
      density: whether to divide by the widths of bins and by the total.
    Returns:
      The counts, of the inexact dtype of the values and weights, and the edges.
    Raises:
      ValueError: the shapes of values and weights differ, or ``range`` is not a pair.

    >>> import catena.numpy as jnp
    >>> jnp.histogram(jnp.array([1.0, 2.0, 2.5, 4.0]), bins=3)
    (Array([1., 2., 1.], dtype=float32), Array([1., 2., 3., 4.], dtype=float32))
    """
    if weights is None:
        a = as_array_argument("histogram", a)
        a = convert(a, dtypes.to_inexact_dtype(a.dtype))
        weights = lax.full_like(a, 1)
    else:
        a, weights = as_array_argument("histogram", a), as_array_argument("histogram", weights, 3)
        if a.shape != weights.shape:
            raise ValueError("weights should have the same shape as a.")
        a, weights = promote_dtypes_inexact("histogram", a, weights)
    edges = histogram_bin_edges(a, bins, range)
    a, weights = ravel(a), ravel(weights)
    places = _bins_of(a, edges)
    counts = read(_counts(places, weights, edges.size), slice(1, None)) if edges.size else lax.full((0,), 0, a.dtype)
    if density:
        widths = lax.sub(read(edges, slice(1, None)), read(edges, slice(None, -1)))
        counts = lax.div(lax.div(counts, widths), lax.reduce_sum(counts, (0,)))
    return counts, edges


def _bins_of(a, edges):
    """The number of the bin of each value: 0 before the first edge; the last edge belongs to the last bin."""
    places = positions_in(edges, a, "right")
    on_last = lax.eq(a, read(edges, -1))
    return lax.select(on_last, lax.full_like(places, edges.size - 1), places)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of a plane lie in each of some rectangles.

    Arguments:
      x, y: the coordinates of the points.
      bins: the number of bins, the edges, or a pair of these for both axes.
      range: for each axis the first and the last edge, or None.
      weights: how much each point counts; by default 1.
      density: whether to divide by the areas of bins and by the total.
    Returns:
      The counts, and the edges along both axes.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.histogram2d(jnp.array([1.0, 2.0]), jnp.array([1.0, 3.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    x, y = as_array_argument("histogram2d", x, 0), as_array_argument("histogram2d", y, 1)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"histogram2d: x and y must be 1-D and of equal length, got {x.shape} and {y.shape}")
    pair = isinstance(bins, list | tuple) and len(bins) == 2
    if not pair and not isinstance(bins, int) and np.ndim(bins) == 1:
        bins = [bins, bins]
    x, y = promote_dtypes_inexact("histogram2d", x, y)
    sample = lax.stack([x, y], 1)
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Any = None,  # noqa: A002
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points of a space lie in each of some boxes.

    Arguments:
      sample: the points, one a row.
      bins: the number of bins, or for each axis a number of bins or the edges.
      range: for each axis the first and the last edge, or None.
      weights: how much each point counts; by default 1.
      density: whether to divide by the volumes of bins and by the total.
    Returns:
      The counts, and a list of the edges along each axis.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.histogramdd(jnp.array([[1.0, 2.0], [3.0, 4.0]]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)
    """
    sample = as_array_argument("histogramdd", sample)
    if sample.ndim != 2:
        raise ValueError(f"histogramdd: sample must be 2-D, one point a row, got shape {sample.shape}")
    count, rank = sample.shape
    if weights is None:
        sample = convert(sample, dtypes.to_inexact_dtype(sample.dtype))
    else:
        weights = as_array_argument("histogramdd", weights, 3)
        wide = dtypes.to_inexact_dtype(dtypes.least_common(sample.dtype, weights.dtype))
        sample, weights = convert(sample, wide), convert(weights, wide)
    if weights is not None and weights.shape != (count,):
        raise ValueError("should have one weight for each sample.")
    ranges = [None] * rank if range is None else list(range)
    if len(ranges) != rank:
        raise ValueError(f"For sample dimension {rank}, the range argument must be a sequence of {rank} pairs or None")
    bins = list(bins) if isinstance(bins, list | tuple) or np.ndim(bins) else [bins] * rank
    if len(bins) != rank:
        raise ValueError("should be a bin for each dimension.")
    columns = [read(sample, (slice(None), i)) for i in np.arange(rank)]
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, bins, ranges, strict=True)]
    counts = _grid_counts(columns, edges, weights)
    if density:
        counts = _per_volume(counts, edges)
    return counts, edges


def _grid_counts(columns, edges, weights):
    """Points counted in a grid with a border, which is cut off."""
    sizes = [e.size + 1 for e in edges]
    flat = None
    for column, edge, size in zip(columns, edges, sizes, strict=True):
        place = _bins_of(column, edge)
        flat = place if flat is None else lax.add(lax.mul(flat, np.asarray(size, flat.dtype)), place)
    counts = reshaped(_counts(flat, weights, int(np.prod(sizes))), tuple(sizes))
    return read(counts, (slice(1, -1),) * len(sizes))


def _per_volume(counts, edges):
    dtype = edges[0].dtype
    counts = convert(counts, dtype)
    result = lax.div(counts, lax.reduce_sum(counts, tuple(np.arange(counts.ndim).tolist())))
    for axis, edge in enumerate(edges):
        widths = lax.sub(read(edge, slice(1, None)), read(edge, slice(None, -1)))
        result = lax.div(result, lax.broadcast_in_dim(convert(widths, dtype), result.shape, (axis,)))
    return result
