"""Operations on shapes: broadcasting, reshaping, permuting, cutting and joining. Eagerly most of them are views."""

import itertools
import math

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import Array, make_array
from catena.core.aval import ShapedArray
from catena.core.primitive import NoRule, Primitive
from catena.core.zeros import Zero, get_aval, instantiate, is_undefined_primal
from catena.lax.comparison import select
from catena.lax.convert import convert
from catena.lax.elementwise import NUMBER, check_admitted
from catena.lax.structure import (
    as_ints,
    bind,
    canonical_axis,
    canonical_shape,
    check_no_sharding,
    front,
    linear_jvp,
    move_axis,
)


def structural(
    name, *, abstract, evaluate, transpose, batch, lower, jvp=None, multiple_results=False
) -> Primitive:
    """A primitive that only moves elements, so that it is its own derivative."""
    primitive = Primitive(
        name, abstract=abstract, evaluate=evaluate, transpose=transpose, batch=batch, lower=lower,
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


def _like(x, shape) -> ShapedArray:
    return ShapedArray(shape, x.dtype, x.weak_type)


def _check_nonnegative(name: str, what: str, values):
    if any(v < 0 for v in values):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got {tuple(values)}.")


# ------------------------------------------------------------------------------------------------------------
# broadcast_in_dim


def _broadcast_in_dim_abstract(x, *, shape, broadcast_dimensions):
    dims = broadcast_dimensions
    _check_nonnegative("broadcast_in_dim", "shape", shape)
    _check_nonnegative("broadcast_in_dim", "broadcast_dimensions", dims)
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
    return _like(x, shape)


def _broadcast_in_dim(x, *, shape, broadcast_dimensions):
    if len(broadcast_dimensions) not in (0, len(shape)):
        sizes = [1] * len(shape)
        for n, d in zip(x.shape, broadcast_dimensions, strict=True):
            sizes[d] = n
        x = x.reshape(sizes)
    return np.broadcast_to(x, shape)


def _broadcast_in_dim_transpose(ct, aval, *, shape, broadcast_dimensions):
    summed = tuple(d for d in range(len(shape)) if d not in broadcast_dimensions)
    summed += tuple(d for n, d in zip(aval.shape, broadcast_dimensions, strict=True) if n == 1 != shape[d])
    if not summed:
        return ct if shape == aval.shape else bind("reshape", ct, new_sizes=aval.shape, dimensions=None)
    total = bind("reduce_sum", ct, axes=tuple(sorted(summed)))
    kept = tuple(i for i, d in enumerate(broadcast_dimensions) if d not in summed)
    return total if len(kept) == aval.ndim else broadcast_in_dim_p.bind(
        total, shape=aval.shape, broadcast_dimensions=kept
    )  # fmt: skip


def _broadcast_in_dim_batch(axis, args, dims, *, shape, broadcast_dimensions):
    x = move_axis(args[0], dims[0], 0)
    dims = (0, *(d + 1 for d in broadcast_dimensions))
    return broadcast_in_dim_p.bind(x, shape=(axis.size, *shape), broadcast_dimensions=dims), 0


broadcast_in_dim_p = structural(
    "broadcast_in_dim",
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
      broadcast_dimensions: for each axis of ``operand``, in increasing order, the axis of the result that it becomes.
      out_sharding: must be None.
    Returns:
      An array of the shape ``shape``.
    Raises:
      TypeError: the shapes do not fit.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast_in_dim(np.array([1, 2]), (3, 2), (1,)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    check_no_sharding("broadcast_in_dim", out_sharding)
    shape, dims = canonical_shape(shape), as_ints(broadcast_dimensions, "broadcast_dimensions")
    if isinstance(operand, Array) and operand.shape == shape and dims == tuple(range(len(shape))):
        return operand
    return broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)


def broadcast(operand, sizes, *, out_sharding=None):
    """An array repeated along new leading axes.

    Arguments:
      operand: array or scalar.
      sizes: the sizes of the new axes.
      out_sharding: must be None.
    Returns:
      An array of the shape ``(*sizes, *operand.shape)``.
    Raises:
      TypeError: a size is negative or not an integer.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast(np.array([1, 2]), (2,)).tolist()
    [[1, 2], [1, 2]]
    """
    own, sizes = get_aval(operand).shape, canonical_shape(sizes)
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
    shapes = [canonical_shape(s) for s in shapes]
    for shape in shapes:
        if any(n < 0 for n in shape):
            raise TypeError(
                f"Only non-negative indices are allowed when broadcasting static shapes, but got shape {shape}."
            )
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        found = {n for n in sizes if n != 1} or {1}
        if len(found) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}")
        out.append(found.pop())
    return tuple(out)


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
      TypeError: the shapes do not fit.

    >>> import catena.lax as lax, numpy as np
    >>> lax.broadcast_like(np.array([1, 2]), np.ones((2, 2))).tolist()
    [[1, 2], [1, 2]]
    """
    shape, ndim = get_aval(like_arr).shape, get_aval(arr).ndim
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
    dimensions = as_ints(dimensions, "dimensions")
    own = get_aval(array).shape
    ndim = len(own) + len(dimensions)
    new = {canonical_axis(d, ndim) for d in dimensions}
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
      sharding: must be None.
    Returns:
      The array.
    Raises:
      TypeError: the shape is not one, or ``fill_value`` is not a scalar.

    >>> import catena.lax as lax
    >>> lax.full((2,), 7).tolist()
    [7, 7]
    """
    check_no_sharding("full", sharding)
    shape = canonical_shape(shape)
    if np.shape(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}."
        )
    if dtype is not None:
        fill_value = as_scalar(fill_value, dtypes.check_user_dtype_supported(dtype, "full"))
    return broadcast_in_dim_p.bind(fill_value, shape=shape, broadcast_dimensions=())


def as_scalar(value, dtype, weak_type: bool = False):
    """The scalar ``value`` converted to ``dtype``; integers wrap around."""
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            value = np.uint64(value % 2**64)
        return make_array(casts.convert(np.asarray(value), dtype), weak_type)
    return convert(value, dtype, weak_type)


def full_like(x, fill_value, dtype=None, shape=None, sharding=None):
    """An array filled with one value, of the type of another unless said otherwise.

    Arguments:
      x: the array to be like.
      fill_value: a scalar.
      dtype: the dtype, if it is not that of ``x``.
      shape: the shape, if it is not that of ``x``.
      sharding: must be None.
    Returns:
      The array; weakly typed where ``x`` is and ``dtype`` is not given.
    Raises:
      TypeError: the shape is not one, or ``fill_value`` is not a scalar.

    >>> import catena.lax as lax, numpy as np
    >>> lax.full_like(np.ones((2,), "int8"), 7).tolist()
    [7, 7]
    """
    aval = get_aval(x)
    shape = aval.shape if shape is None else canonical_shape(shape)
    if dtype is not None:
        return full(shape, fill_value, dtype, sharding=sharding)
    check_no_sharding("full_like", sharding)
    if np.shape(fill_value):
        raise TypeError(
            f"full must be called with scalar fill_value, got fill_value.shape {np.shape(fill_value)}."
        )
    value = as_scalar(fill_value, aval.dtype, aval.weak_type)
    return broadcast_in_dim_p.bind(value, shape=shape, broadcast_dimensions=()) if shape else value


def empty(shape, dtype, *, out_sharding=None):
    """An array whose elements are of no interest; here they are zero.

    Arguments:
      shape: the shape.
      dtype: the dtype.
      out_sharding: must be None.
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
    _check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError(f"iota dimension must be between 0 and len(shape), got {dimension=} for {shape=}")
    return aval


def _iota(*, dtype, shape, dimension):
    line = casts.convert(np.arange(shape[dimension]), dtype)
    return np.broadcast_to(line.reshape([-1] + [1] * (len(shape) - dimension - 1)), shape)


def _iota_jvp(primals, tangents, **params):
    out = iota_p.bind(**params)
    return out, Zero.of_primal(out)


def _iota_lower(b, *, dtype, shape, dimension):
    return b.convert(b.iota(np.dtype(np.int64), shape, dimension), dtype)


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
      out_sharding: must be None.
    Returns:
      An array of the shape ``shape``.
    Raises:
      TypeError: the dtype is boolean, or the shape is not one.
      ValueError: there is no such axis.

    >>> import catena.lax as lax
    >>> lax.broadcasted_iota("int32", (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    check_no_sharding("broadcasted_iota", out_sharding)
    dtype = dtypes.check_user_dtype_supported(dtype, "iota")
    return iota_p.bind(
        dtype=dtype, shape=canonical_shape(shape), dimension=as_ints((dimension,), "dimension")[0]
    )


# ------------------------------------------------------------------------------------------------------------
# reshape, squeeze, collapse


def _reshape_abstract(x, *, new_sizes, dimensions):
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if math.prod(new_sizes) != x.size:
        raise TypeError(
            f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {new_sizes} (size {math.prod(new_sizes)})"
        )
    if dimensions is not None:
        raise TypeError(f"reshape dimensions must be None: transpose the operand first, got {dimensions}")
    return _like(x, new_sizes)


def _reshape_batch(axis, args, dims, *, new_sizes, dimensions):
    x = move_axis(args[0], dims[0], 0)
    return reshape_p.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None), 0


reshape_p = structural(
    "reshape",
    abstract=_reshape_abstract,
    evaluate=lambda x, *, new_sizes, dimensions: x.reshape(new_sizes),
    transpose=unary_transpose(
        lambda ct, aval, **_: reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None)
    ),
    batch=_reshape_batch,
    lower=lambda b, x, *, new_sizes, dimensions: b.reshape(x, new_sizes),
)


def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None):
    """An array with the same elements, in row-major order, in another shape.

    Arguments:
      operand: array or scalar.
      new_sizes: the shape of the result, a sequence of integers or one.
      dimensions: an order to read the axes of ``operand`` in, if it is not their own.
      out_sharding: must be None.
    Returns:
      An array of the shape ``new_sizes``; ``operand`` itself where nothing changes.
    Raises:
      TypeError: the sizes do not fit, or ``dimensions`` is not a permutation.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reshape(np.arange(4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    check_no_sharding("reshape", out_sharding)
    new_sizes = canonical_shape(new_sizes)
    shape = get_aval(operand).shape
    if dimensions is not None:
        dimensions = as_ints(dimensions, "dimensions")
        if sorted(dimensions) != list(range(len(shape))):
            raise TypeError(
                "reshape dimensions must be a permutation of operand dimensions, "
                f"got dimensions {dimensions} for shape {shape}."
            )
        operand = transpose(operand, dimensions)
        shape = get_aval(operand).shape
    if shape == new_sizes and isinstance(operand, Array):
        return operand
    return reshape_p.bind(operand, new_sizes=new_sizes, dimensions=None)


def collapse(operand, start_dimension: int, stop_dimension: int | None = None):
    """An array with a range of its axes made into one.

    Arguments:
      operand: array.
      start_dimension: the first axis of the range.
      stop_dimension: the axis after its last; by default all to the end.
    Returns:
      The array of lower rank. An empty range gives an axis of size 1.
    Raises:
      ValueError: the range ends before it starts.

    >>> import catena.lax as lax, numpy as np
    >>> lax.collapse(np.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    shape = get_aval(operand).shape
    lo, hi, _ = slice_of_axes(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{lo}:{hi}]")
    return reshape(operand, (*shape[:lo], math.prod(shape[lo:hi]), *shape[hi:]))


slice_of_axes = slice  # the built-in, before the operation of this name below


def _squeeze_abstract(x, *, dimensions):
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={x.shape} and {dimensions=}"
        )
    return _like(x, [n for i, n in enumerate(x.shape) if i not in dimensions])


def _squeeze_batch(axis, args, dims, *, dimensions):
    dimensions = skip(dimensions, dims[0])
    return squeeze_p.bind(args[0], dimensions=dimensions), dims[0] - sum(d < dims[0] for d in dimensions)


def _squeeze_lower(b, x, *, dimensions):
    return b.reshape(x, [n for i, n in enumerate(x.shape) if i not in dimensions])


squeeze_p = structural(
    "squeeze",
    abstract=_squeeze_abstract,
    evaluate=lambda x, *, dimensions: x.squeeze(dimensions),
    transpose=unary_transpose(
        lambda ct, aval, **_: reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None)
    ),
    batch=_squeeze_batch,
    lower=_squeeze_lower,
)


def squeeze(array, dimensions):
    """An array without some of its axes of size 1.

    Arguments:
      array: array.
      dimensions: the axes to remove.
    Returns:
      The array of lower rank.
    Raises:
      ValueError: an axis has another size, is repeated, or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.squeeze(np.ones((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    ndim = get_aval(array).ndim
    dims = tuple(sorted(canonical_axis(d, ndim) for d in as_ints(dimensions, "dimensions")))
    if len(set(dims)) != len(dims):
        raise ValueError(f"dimensions are not unique: {dims}")
    if not dims and isinstance(array, Array):
        return array
    return squeeze_p.bind(array, dimensions=dims)


# ------------------------------------------------------------------------------------------------------------
# transpose, rev


def _transpose_abstract(x, *, permutation):
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, "
            f"got permutation {permutation} for operand shape {x.shape}."
        )
    return _like(x, [x.shape[p] for p in permutation])


def _inverse(permutation) -> tuple:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_batch(axis, args, dims, *, permutation):
    return transpose_p.bind(args[0], permutation=(dims[0], *skip(permutation, dims[0]))), 0


transpose_p = structural(
    "transpose",
    abstract=_transpose_abstract,
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    transpose=unary_transpose(
        lambda ct, aval, *, permutation: transpose_p.bind(ct, permutation=_inverse(permutation))
    ),
    batch=_transpose_batch,
    lower=lambda b, x, *, permutation: b.transpose(x, permutation),
)


def transpose(operand, permutation):
    """An array with its axes in another order.

    Arguments:
      operand: array.
      permutation: for each axis of the result, the axis of ``operand`` that it is.
    Returns:
      The array; ``operand`` itself where nothing changes.
    Raises:
      TypeError: ``permutation`` is not one of the axes.

    >>> import catena.lax as lax, numpy as np
    >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    permutation = as_ints(permutation, "permutation")
    if permutation == tuple(range(get_aval(operand).ndim)) and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def _rev_abstract(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    _check_nonnegative("rev", "dimensions", dimensions)
    if any(d >= x.ndim for d in dimensions):
        raise TypeError(
            f"rev dimensions must all be less than operand ndim, got dimensions {dimensions} for operand ndim {x.ndim}."
        )
    return x


rev_p = structural(
    "rev",
    abstract=_rev_abstract,
    evaluate=lambda x, *, dimensions: np.flip(x, dimensions),
    transpose=unary_transpose(lambda ct, aval, *, dimensions: rev_p.bind(ct, dimensions=dimensions)),
    batch=lambda axis, args, dims, *, dimensions: (
        rev_p.bind(args[0], dimensions=skip(dimensions, dims[0])),
        dims[0],
    ),
    lower=lambda b, x, *, dimensions: b.reverse(x, dimensions),
)


def rev(operand, dimensions):
    """An array with the order of its elements reversed along some axes.

    Arguments:
      operand: array.
      dimensions: the axes.
    Returns:
      An array of the same type.
    Raises:
      TypeError: an axis is repeated or does not exist.

    >>> import catena.lax as lax, numpy as np
    >>> lax.rev(np.array([1, 2, 3]), (0,)).tolist()
    [3, 2, 1]
    """
    return rev_p.bind(operand, dimensions=as_ints(dimensions, "dimensions"))


# ------------------------------------------------------------------------------------------------------------
# slice, pad


def _slice_abstract(x, *, start_indices, limit_indices, strides):
    for what, given in (
        ("start_indices", start_indices),
        ("limit_indices", limit_indices),
        ("strides", strides),
    ):
        if given is not None and len(given) != x.ndim:
            raise TypeError(
                f"slice {what} must have length equal to the number of dimensions of the operand, "
                f"got {what} {given} for operand shape {x.shape}."
            )
    if any(s < 0 for s in start_indices):
        raise TypeError(
            f"slice start_indices must be greater than or equal to zero, got start_indices of {start_indices}."
        )
    if any(n > m for n, m in zip(limit_indices, x.shape, strict=True)):
        raise TypeError(
            "slice limit_indices must be less than or equal to operand shape, "
            f"got limit_indices {limit_indices} for operand shape {x.shape}."
        )
    if any(s > n for s, n in zip(start_indices, limit_indices, strict=True)):
        raise TypeError(
            "slice limit_indices must be greater than or equal to start_indices, "
            f"got start_indices {start_indices} and limit_indices {limit_indices}."
        )
    steps = strides or (1,) * x.ndim
    if any(s <= 0 for s in steps):
        raise TypeError(f"slice strides must be positive, got {strides}")
    return _like(x, [-(-(n - s) // d) for s, n, d in zip(start_indices, limit_indices, steps, strict=True)])


def _slice(x, *, start_indices, limit_indices, strides):
    return x[tuple(map(slice_of_axes, start_indices, limit_indices, strides or itertools.repeat(1)))]


def _slice_transpose(ct, aval, *, start_indices, limit_indices, strides):
    steps = strides or (1,) * aval.ndim
    sizes = get_aval(ct).shape
    config = tuple(
        (s, n - s - m - max(m - 1, 0) * (d - 1), d - 1)
        for s, n, m, d in zip(start_indices, aval.shape, sizes, steps, strict=True)
    )
    return pad_p.bind(ct, scalar_zero(ct), padding_config=config)


def scalar_zero(x):
    """The scalar zero of the dtype of ``x``."""
    aval = get_aval(x)
    return make_array(np.zeros((), aval.dtype), aval.weak_type)


def _slice_batch(axis, args, dims, *, start_indices, limit_indices, strides):
    (x,), (d,) = args, dims
    return slice_p.bind(
        x,
        start_indices=insert(start_indices, d, 0),
        limit_indices=insert(limit_indices, d, axis.size),
        strides=strides and insert(strides, d, 1),
    ), d


slice_p = structural(
    "slice",
    abstract=_slice_abstract,
    evaluate=_slice,
    transpose=unary_transpose(_slice_transpose),
    batch=_slice_batch,
    lower=lambda b, x, *, start_indices, limit_indices, strides: b.slice(
        x, start_indices, limit_indices, strides
    ),
)


def slice_in_dim(operand, start_index, limit_index, stride: int = 1, axis: int = 0):
    """A part of an array along one axis, as ``x[start_index:limit_index:stride]``.

    Arguments:
      operand: array.
      start_index, limit_index: the first index and the one after the last; None means the end of the axis; negative
        ones count from it.
      stride: the step, positive.
      axis: the axis.
    Returns:
      The part.
    Raises:
      TypeError: the range does not lie in the axis.
      ValueError: there is no such axis.

    >>> import catena.lax as lax, numpy as np
    >>> lax.slice_in_dim(np.arange(5), 1, -1, 2).tolist()
    [1, 3]
    """
    shape = get_aval(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    bounds = [
        default if i is None else as_ints((i,), "index")[0]
        for i, default in ((start_index, 0), (limit_index, size))
    ]
    lo, hi = (i + size if i < 0 else i for i in bounds)
    return slice_p.bind(
        operand,
        start_indices=tuple(lo if d == axis else 0 for d in range(len(shape))),
        limit_indices=tuple(hi if d == axis else n for d, n in enumerate(shape)),
        strides=tuple(as_ints((stride,), "stride")[0] if d == axis else 1 for d in range(len(shape))),
    )


def slice(operand, start_indices, limit_indices, strides=None):
    """A rectangular part of an array.

    Arguments:
      operand: array.
      start_indices: the first index along each axis.
      limit_indices: the index after the last along each axis.
      strides: the step along each axis; by default 1.
    Returns:
      The part.
    Raises:
      TypeError: the lengths differ from the rank, or the ranges do not lie in the array.

    >>> import catena.lax as lax, numpy as np
    >>> lax.slice(np.arange(6).reshape(2, 3), (0, 1), (2, 3)).tolist()
    [[1, 2], [4, 5]]
    """
    return slice_p.bind(
        operand,
        start_indices=as_ints(start_indices, "start_indices"),
        limit_indices=as_ints(limit_indices, "limit_indices"),
        strides=None if strides is None else as_ints(strides, "strides"),
    )


def _padded(n: int, lo: int, hi: int, interior: int) -> int:
    return lo + hi + n + max(n - 1, 0) * interior


def _pad_abstract(x, value, *, padding_config):
    if x.dtype != value.dtype:
        raise TypeError(f"pad operand and padding_value must be same dtype: got {x.dtype} and {value.dtype}.")
    if value.shape:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)={value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, "
            f"got padding_config {padding_config} for operand shape {x.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"interior padding in padding_config must be nonnegative, got {padding_config=}".replace("=", " ")
        )
    shape = tuple(_padded(n, *config) for n, config in zip(x.shape, padding_config, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(
            f"Dimension size after padding is not at least 0, got result shape {shape}, "
            f"for padding_config {padding_config} and operand shape {x.shape}"
        )
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad(x, value, *, padding_config):
    out = np.full(
        [_padded(n, *config) for n, config in zip(x.shape, padding_config, strict=True)], value, x.dtype
    )
    target, source = [], []
    for n, size, (lo, _, interior) in zip(x.shape, out.shape, padding_config, strict=True):
        step = interior + 1
        first = max(0, -(lo // step))  # the first element that is not cut off
        stop = max(first, min(n, -((lo - size) // step)))
        target.append(slice_of_axes(lo + first * step, max(lo + (stop - 1) * step + 1, 0), step))
        source.append(slice_of_axes(first, stop))
    if out.size and all(s.stop > s.start for s in source):
        out[tuple(target)] = x[tuple(source)]
    return out


def _pad_transpose(ct, x, value, *, padding_config):
    operands = (x, value)
    if type(ct) is Zero:
        return [Zero(p.aval) if is_undefined_primal(p) else None for p in operands]
    inner = _unpad(ct, padding_config)
    ct_x = inner if is_undefined_primal(x) else None
    if not is_undefined_primal(value):
        return [ct_x, None]
    return [ct_x, bind("sub", _sum_all(ct), _sum_all(inner))]


def _sum_all(x):
    return bind("reduce_sum", x, axes=tuple(range(get_aval(x).ndim)))


def _unpad(ct, padding_config):
    """The cotangent of the padded operand: the elements at its places, and zeros for those that were cut off."""
    crop = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
    ct = pad_p.bind(ct, scalar_zero(ct), padding_config=crop)
    return slice(
        ct, (0,) * len(crop), get_aval(ct).shape, tuple(interior + 1 for _, _, interior in padding_config)
    )


def _pad_jvp(primals, tangents, *, padding_config):
    out = pad_p.bind(*primals, padding_config=padding_config)
    if all(type(t) is Zero for t in tangents):
        return out, Zero.of_primal(out)
    return out, pad_p.bind(*map(instantiate, tangents), padding_config=padding_config)


def _pad_batch(axis, args, dims, *, padding_config):
    (x, value), (d, value_dim) = args, dims
    if value_dim is None:
        return pad_p.bind(x, value, padding_config=insert(padding_config, d, (0, 0, 0))), d
    x = front(axis, x, d)
    config = ((0, 0, 0), *padding_config)
    padded = pad_p.bind(x, scalar_zero(x), padding_config=config)
    ours = full(get_aval(x).shape, True)
    ours = pad_p.bind(ours, np.False_, padding_config=config)
    filler = broadcast_in_dim(move_axis(value, value_dim, 0), get_aval(padded).shape, (0,))
    return select(ours, padded, filler), 0


pad_p = structural(
    "pad",
    abstract=_pad_abstract,
    evaluate=_pad,
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    lower=lambda b, x, value, *, padding_config: b.pad(x, value, padding_config),
)


def pad(operand, padding_value, padding_config):
    """An array with a value put before, after and between its elements.

    Arguments:
      operand: array.
      padding_value: scalar of the same dtype.
      padding_config: for each axis, how many to put before, after and between; before and after, negative numbers
        cut off.
    Returns:
      The larger (or smaller) array.
    Raises:
      TypeError: the dtypes differ.
      ValueError: ``padding_config`` does not fit, or ``padding_value`` is not a scalar.

    >>> import catena.lax as lax, numpy as np
    >>> lax.pad(np.array([1, 2, 3]), 0, ((1, -1, 1),)).tolist()
    [0, 1, 0, 2, 0]
    """
    config = tuple(as_ints(c, "padding_config") for c in padding_config)
    if any(len(c) != 3 for c in config):
        raise ValueError(
            f"padding_config must have three integers for each axis, (before, after, between), got {config}"
        )
    return pad_p.bind(operand, padding_value, padding_config=config)
