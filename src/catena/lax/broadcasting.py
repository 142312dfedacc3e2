"""Arrays repeated along axes, and arrays made from nothing but a shape; eagerly, views of one element."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from catena.core import casts, dtypes
from catena.core import shapes as core_shapes
from catena.core.array import Array, make_array
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.placed import follow
from catena.core.primitive import NoRule, Primitive, define
from catena.core.shapes import check_positions
from catena.core.structural import broadcast_in_dim_p, reduce_sum_p, reshape_p, transpose_p
from catena.core.trace import Tracer
from catena.core.zeros import Zero, get_aval
from catena.lax.convert import convert
from catena.lax.elementwise import NUMBER, check_admitted
from catena.lax.native import repeated_kernel
from catena.lax.policy import LARGE
from catena.lax.structure import as_ints, canonical_axis, canonical_shape, linear_jvp, repeated, told


def structural(
    primitive, *, abstract, evaluate, transpose, batch, lower, jvp=None, multiple_results=False
) -> Primitive:
    """A primitive that only moves elements, so that it is its own derivative."""
    primitive = define(
        primitive, abstract=abstract, evaluate=evaluate, transpose=transpose, batch=batch, lower=lower,
        multiple_results=multiple_results,
    )  # fmt: skip
    primitive.jvp = jvp or linear_jvp(primitive)
    return primitive


def unary_transpose(rule):
    """The transpose rule of a primitive of one operand from ``rule(ct, aval, **params)``."""

    def transpose(ct, x, **params):
        return [Zero(x.aval) if type(ct) is Zero else rule(ct, x.aval, **params)]

    return transpose


def skip(axes, dim: int) -> tuple:
    """Axis numbers of a value as those of the same value with a batch axis at ``dim``."""
    return tuple(a + (a >= dim) for a in axes)


def insert(values, dim: int, value) -> tuple:
    """``values`` with ``value`` put in at ``dim``."""
    return (*values[:dim], value, *values[dim:])


def reshaped(x, shape) -> ShapedArray:
    return ShapedArray(shape, x.dtype, x.weak_type)


def check_nonnegative(name: str, what: str, values):
    if any(v < 0 for v in values):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got {tuple(values)}.")


# ------------------------------------------------------------------------------------------------------------
# broadcast_in_dim


def _broadcast_in_dim_abstract(x, *, shape, broadcast_dimensions):
    dims = broadcast_dimensions
    check_nonnegative("broadcast_in_dim", "shape", shape)
    check_nonnegative("broadcast_in_dim", "broadcast_dimensions", dims)
    if x.ndim > len(shape):
        raise TypeError(
            "broadcast_in_dim target broadcast shape must have equal or higher rank to the operand shape; "
            f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}."
        )
    if len(dims) != x.ndim:
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must have length equal to operand ndim; "
            f"got broadcast_dimensions {dims} for operand ndim {x.ndim}."
        )
    if not set(dims) <= set(range(len(shape))):
        raise TypeError(
            "broadcast_in_dim broadcast_dimensions must be a subset of output dimensions, "
            f"got {dims} for operand ndim {x.ndim} and shape {shape}."
        )
    if any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
        raise TypeError(
            "broadcast_in_dim operand dimension sizes must either be 1, or be equal to their corresponding dimensions "
            f"in the target broadcast shape; got operand of shape {x.shape}, target broadcast shape {shape}, "
            f"broadcast_dimensions {dims}"
        )
    if any(a >= b for a, b in itertools.pairwise(dims)):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must be strictly increasing; got {dims}")
    return reshaped(x, shape)


def _broadcast_in_dim(x, *, shape, broadcast_dimensions):
    if len(broadcast_dimensions) not in (0, len(shape)):
        sizes = [1] * len(shape)
        for n, d in zip(x.shape, broadcast_dimensions, strict=True):
            sizes[d] = n
        x = x.reshape(sizes)
    return x if x.shape == shape else repeated(x, shape)


def _broadcast_in_dim_transpose(ct, aval, *, shape, broadcast_dimensions):
    summed = tuple(d for d in range(len(shape)) if d not in broadcast_dimensions)
    summed += tuple(d for n, d in zip(aval.shape, broadcast_dimensions, strict=True) if n == 1 != shape[d])
    if not summed:
        return ct if shape == aval.shape else reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None)
    total = reduce_sum_p.bind(ct, axes=tuple(sorted(summed)))
    kept = tuple(i for i, d in enumerate(broadcast_dimensions) if d not in summed)
    return total if len(kept) == aval.ndim else broadcast_in_dim_p.bind(
        total, shape=aval.shape, broadcast_dimensions=kept
    )  # fmt: skip


def _broadcast_in_dim_batch(axis, args, dims, *, shape, broadcast_dimensions):
    x = move_axis(args[0], dims[0], 0)
    dims = (0, *(d + 1 for d in broadcast_dimensions))
    return broadcast_in_dim_p.bind(x, shape=(axis.size, *shape), broadcast_dimensions=dims), 0


structural(
    broadcast_in_dim_p,
    abstract=_broadcast_in_dim_abstract,
    evaluate=_broadcast_in_dim,
    transpose=unary_transpose(_broadcast_in_dim_transpose),
    batch=_broadcast_in_dim_batch,
    lower=lambda b, x, *, shape, broadcast_dimensions: b.broadcast_in_dim(x, shape, broadcast_dimensions),
)


def broadcast_in_dim(operand, shape, broadcast_dimensions, *, out_sharding=None):
    """An array repeated along new axes, and along those of size 1.

    Arguments:
      operand: array or scalar.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of ``operand``, in increasing order, the axis of the result that it
        becomes.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the shape ``shape``.
    Raises:
      TypeError: the shapes do not fit.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast_in_dim(np.array([1, 2]), (3, 2), (1,)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    if out_sharding is not None:
        return told(out_sharding, broadcast_in_dim, operand, shape, broadcast_dimensions)
    shape, dims = (
        canonical_shape(shape, "broadcast_in_dim"),
        as_ints(broadcast_dimensions, "broadcast_in_dim: broadcast_dimensions"),
    )
    if isinstance(operand, Array) and operand.shape == shape and dims == tuple(range(len(shape))):
        return operand
    if any(a > b for a, b in itertools.pairwise(dims)) and len(set(dims)) == len(dims) == np.ndim(operand):
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))  # dimensions in another order transpose
        operand, dims = transpose_p.bind(operand, permutation=order), tuple(sorted(dims))
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand, sizes, *, out_sharding=None):
    """An array repeated along new leading axes.

    Arguments:
      operand: array or scalar.
      sizes: the sizes of the new axes.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the shape ``(*sizes, *operand.shape)``.
    Raises:
      TypeError: a size is negative or not an integer.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast(np.array([1, 2]), (2,)).tolist()
    [[1, 2], [1, 2]]
    """
    own, sizes = get_aval(operand).shape, canonical_shape(sizes, "broadcast")
    dims = tuple(range(len(sizes), len(sizes) + len(own)))
    return broadcast_in_dim(operand, (*sizes, *own), dims, out_sharding=out_sharding)


def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes have when they are broadcast together, by NumPy's rules.

    Arguments:
      shapes: tuples of nonnegative integers.
    Returns:
      A tuple of integers.
    Raises:
      TypeError: a size is negative or not an integer.
      ValueError: the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if all(map(core_shapes.is_plain, shapes)):
        return _broadcast_shapes(shapes)
    return _broadcast_shapes(tuple([canonical_shape(s, "broadcast_shapes") for s in shapes]))


@functools.lru_cache(maxsize=1024)
def _broadcast_shapes(shapes: tuple) -> tuple:
    for shape in shapes:
        if min(shape, default=0) < 0:
            raise TypeError(
                f"Only non-negative indices are allowed when broadcasting static shapes, but got shape {shape}."
            )
    return core_shapes.broadcast_shapes(*shapes)


def broadcast_to_rank(x, rank: int):
    """An array with axes of size 1 put before its own until it has at least ``rank`` axes.

    Arguments:
      x: array or scalar.
      rank: the number of axes.
    Returns:
      The array; ``x`` itself where it has as many axes.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast_to_rank(np.ones(3), 3).shape
    (1, 1, 3)
    """
    return broadcast(x, (1,) * (rank - get_aval(x).ndim))


def broadcast_like(arr, like_arr):
    """An array broadcast to the shape of another, by NumPy's rules.

    Arguments:
      arr: array or scalar.
      like_arr: the array whose shape the result has.
    Returns:
      An array of the dtype of ``arr``.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast_like(np.array([1, 2]), np.ones((2, 2))).tolist()
    [[1, 2], [1, 2]]
    """
    own, shape = get_aval(arr).shape, get_aval(like_arr).shape
    ndim = len(own)
    if ndim > len(shape) or any(n not in (1, m) for n, m in zip(own, shape[len(shape) - ndim :], strict=True)):
        raise ValueError(f"broadcast_like: an array of shape {own} cannot be broadcast to shape {shape}")
    return broadcast_in_dim(arr, shape, tuple(range(len(shape) - ndim, len(shape))))


def expand_dims(array, dimensions):
    """An array with new axes of size 1.

    Arguments:
      array: array or scalar.
      dimensions: where the new axes stand in the result; negative ones count from its end.
    Returns:
      An array with ``len(dimensions)`` axes more.
    Raises:
      ValueError: a dimension is repeated or out of bounds.

    >>> import catena.lax as lax, numpy as np
    >>> lax.expand_dims(np.ones(3), (0, -1)).shape
    (1, 3, 1)
    """
    dimensions = as_ints(dimensions, "expand_dims: dimensions")
    own = get_aval(array).shape
    ndim = len(own) + len(dimensions)
    new = {canonical_axis(d, ndim, "expand_dims: axis") for d in dimensions}
    if len(new) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    kept = tuple(i for i in range(ndim) if i not in new)
    sizes = iter(own)
    shape = tuple(1 if i in new else next(sizes) for i in range(ndim))
    return broadcast_in_dim(array, shape, kept)


# ------------------------------------------------------------------------------------------------------------
# Filled arrays


def full(shape, fill_value, dtype=None, *, sharding=None):
    """An array filled with one value.

    Arguments:
      shape: the shape, a sequence of integers or one.
      fill_value: a scalar.
      dtype: the dtype; by default that of ``fill_value``.
      sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The array.
    Raises:
      TypeError: the shape is not one, or ``fill_value`` is not a scalar.

    >>> import catena.lax as lax
    >>> lax.full((2,), 7).tolist()
    [7, 7]
    """
    if sharding is not None:
        return told(sharding, full, shape, fill_value, dtype)
    shape = canonical_shape(shape, "full")
    check_nonnegative("full", "shape", shape)
    if np.shape(fill_value):
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}.")
    if dtypes.is_extended(dtype):
        return dtype._rules.full(shape, fill_value, dtype)
    if dtype is not None:
        fill_value = as_scalar(fill_value, dtypes.check_user_dtype_supported(dtype, "full"))
    return broadcast_in_dim_p.bind(fill_value, shape=shape, broadcast_dimensions=())


def as_scalar(value, dtype, weak_type: bool = False):
    """The scalar ``value`` converted to ``dtype``; integers wrap around."""
    if dtypes.is_extended(dtype):
        return dtype._rules.full((), value, dtype)
    if isinstance(value, (bool, int, float, complex)):
        return make_array(casts.convert_scalar(value, dtype), weak_type)
    return convert(value, dtype, weak_type)


def full_like(x, fill_value, dtype=None, shape=None, sharding=None):
    """An array filled with one value, of the type of another unless said otherwise.

    Arguments:
      x: the array to be like.
      fill_value: a scalar.
      dtype: the dtype, if it is not that of ``x``.
      shape: the shape, if it is not that of ``x``.
      sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The array; weakly typed where ``x`` is and ``dtype`` is not given.
    Raises:
      TypeError: the shape is not one, or ``fill_value`` is not a scalar.

    >>> import catena.lax as lax, numpy as np
    >>> lax.full_like(np.ones((2,), "int8"), 7).tolist()
    [7, 7]
    """
    aval = get_aval(x)
    shape = aval.shape if shape is None else canonical_shape(shape, "full_like")
    check_nonnegative("full_like", "shape", shape)
    if dtype is not None:
        return full(shape, fill_value, dtype, sharding=sharding)
    if sharding is not None:
        return told(sharding, full_like, x, fill_value, dtype, shape)
    if np.shape(fill_value):
        raise TypeError(f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}.")
    value = as_scalar(fill_value, aval.dtype, aval.weak_type)
    filled = broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=()) if shape else value
    return filled if type(x) is Array or isinstance(filled, Tracer) else follow(filled, "full_like", (x,))


def empty(shape, dtype, *, out_sharding=None):
    """An array whose elements are of no interest; here they are zero.

    Arguments:
      shape: the shape.
      dtype: the dtype.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      The array.
    Raises:
      TypeError: the shape or the dtype is not one.

    >>> import catena.lax as lax
    >>> lax.empty((2,), "int8").shape
    (2,)
    """
    return full(shape, 0, dtype, sharding=out_sharding)


def _iota_abstract(*, dtype, shape, dimension):
    aval = ShapedArray(shape, dtype)
    check_admitted("iota", aval, NUMBER)
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}")
    if dtype.itemsize >= 4 and dtypes.is_integer(dtype):  # narrower ones go round, as in JAX
        check_positions("iota", shape[dimension], dtype, dimension)
    return aval


def _iota(*, dtype, shape, dimension):
    line = _counting(shape[dimension], dtype)
    return np.broadcast_to(line.reshape([-1] + [1] * (len(shape) - dimension - 1)), shape)


BLOCK = 1 << 14  # elements that the cache holds: adding to a counted block is faster than counting


@functools.cache
def _first_block(dtype) -> np.ndarray:
    return np.arange(BLOCK, dtype=dtype)


def _counting(n: int, dtype) -> np.ndarray:
    """The numbers from 0 below ``n``."""
    if n >= LARGE and (compiled := repeated_kernel(iota_p, (), {"dtype": dtype, "shape": (n,), "dimension": 0})):
        return compiled(())[0]
    if dtype.char not in "ilfd":
        return casts.convert(np.arange(n), dtype)
    if n <= BLOCK:
        return np.arange(n, dtype=dtype)
    out, block = np.empty(n, dtype), _first_block(dtype)
    for start in range(0, n, BLOCK):  # multiples of the block are exact in floats, and sums round once
        part = out[start : start + BLOCK]
        np.add(block[: part.size], dtype.type(start), out=part)
    return out


def _iota_jvp(primals, tangents, **params):
    out = iota_p.bind(**params)
    return out, Zero.of_primal(out)


def _iota_lower(b, *, dtype, shape, dimension):
    counted = np.int32 if shape[dimension] <= 1 << 31 else np.int64  # whose lanes are twice as many
    return b.convert(b.iota(np.dtype(counted), shape, dimension), dtype)


NO_OPERANDS = NoRule("it has no operands")
iota_p = Primitive(
    "iota", abstract=_iota_abstract, evaluate=_iota, jvp=_iota_jvp, transpose=NO_OPERANDS, batch=NO_OPERANDS,
    lower=_iota_lower,
)  # fmt: skip


def iota(dtype, size: int):
    """The numbers from 0 to ``size - 1``.

    Arguments:
      dtype: a number dtype.
      size: how many.
    Returns:
      An array of the shape ``(size,)``.
    Raises:
      TypeError: the dtype is boolean, or the size is negative or not an integer.

    >>> import catena.lax as lax
    >>> lax.iota("int32", 3).tolist()
    [0, 1, 2]
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype, shape, dimension, *, out_sharding=None):
    """An array of which each element is its own index along one axis.

    Arguments:
      dtype: a number dtype.
      shape: the shape.
      dimension: the axis.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the shape ``shape``.
    Raises:
      TypeError: the dtype is boolean, or the shape is not one.
      ValueError: there is no such axis.

    >>> import catena.lax as lax
    >>> lax.broadcasted_iota("int32", (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if out_sharding is not None:
        return told(out_sharding, broadcasted_iota, dtype, shape, dimension)
    dtype = dtypes.check_user_dtype_supported(dtype, "iota")
    return iota_p.bind(
        dtype=dtype,
        shape=canonical_shape(shape, "broadcasted_iota"),
        dimension=as_ints((dimension,), "broadcasted_iota: dimension")[0],
    )
