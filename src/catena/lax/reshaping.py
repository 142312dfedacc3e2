"""The same elements in another shape or order. Eagerly these are views."""

import math

import numpy as np

from catena.core.array import Array
from catena.core.axes import move_axis
from catena.core.errors import SizeError
from catena.core.structural import reshape_p, squeeze_p, transpose_p
from catena.core.zeros import get_aval
from catena.lax import native
from catena.lax.broadcasting import check_nonnegative, reshaped, skip, structural, unary_transpose
from catena.lax.policy import LARGE
from catena.lax.structure import as_ints, canonical_axis, canonical_shape, told

# ------------------------------------------------------------------------------------------------------------
# reshape, squeeze, collapse


def _reshape_abstract(x, *, new_sizes, dimensions):
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {new_sizes}.")
    if math.prod(new_sizes) != x.size:
        raise SizeError(
            f"cannot reshape array of shape {x.shape} (size {x.size}) into shape {new_sizes} (size "
            f"{math.prod(new_sizes)})"
        )
    if dimensions is not None:
        raise TypeError(f"reshape dimensions must be None: transpose the operand first, got {dimensions}")
    return reshaped(x, new_sizes)


def _reshape(x, *, new_sizes, dimensions):
    return (x if x.flags.c_contiguous or x.size < LARGE else _in_order(x)).reshape(new_sizes)


def _in_order(x):
    """A transposed array with its elements in their order in memory; other views as they are."""
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    base = x.transpose(order)
    if not base.flags.c_contiguous:
        return x
    return _transposed_copy(base, permutation=tuple(map(order.index, range(x.ndim))))


def _reshape_batch(axis, args, dims, *, new_sizes, dimensions):
    x = move_axis(args[0], dims[0], 0)
    return reshape_p.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None), 0


structural(
    reshape_p,
    abstract=_reshape_abstract,
    evaluate=_reshape,
    transpose=unary_transpose(lambda ct, aval, **_: reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None)),
    batch=_reshape_batch,
    lower=lambda b, x, *, new_sizes, dimensions: b.reshape(x, new_sizes),
)


def reshape(operand, new_sizes, dimensions=None, *, out_sharding=None):
    """An array with the same elements, in row-major order, in another shape.

    Arguments:
      operand: array or scalar.
      new_sizes: the shape of the result, a sequence of integers or one.
      dimensions: an order to read the axes of ``operand`` in, if it is not their own.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the shape ``new_sizes``; ``operand`` itself where nothing changes.
    Raises:
      TypeError: the sizes do not fit (also a ValueError, as in JAX), or ``dimensions`` is not a permutation.

    >>> import catena.lax as lax, numpy as np
    >>> lax.reshape(np.arange(4), (2, 2)).tolist()
    [[0, 1], [2, 3]]
    """
    if out_sharding is not None:
        return told(out_sharding, reshape, operand, new_sizes, dimensions)
    new_sizes = canonical_shape(new_sizes, "reshape")
    shape = get_aval(operand).shape
    if dimensions is not None:
        dimensions = as_ints(dimensions, "reshape: dimensions")
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
    lo, hi, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(f"Invalid dimension range passed to collapse: {shape}[{lo}:{hi}]")
    return reshape(operand, (*shape[:lo], math.prod(shape[lo:hi]), *shape[hi:]))


def _squeeze_abstract(x, *, dimensions):
    if any(x.shape[d] != 1 for d in dimensions):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, "
            f"got shape={x.shape} and {dimensions=}"
        )
    return reshaped(x, [n for i, n in enumerate(x.shape) if i not in dimensions])


def _squeeze_batch(axis, args, dims, *, dimensions):
    dimensions = skip(dimensions, dims[0])
    return squeeze_p.bind(args[0], dimensions=dimensions), dims[0] - sum(d < dims[0] for d in dimensions)


def _squeeze_lower(b, x, *, dimensions):
    return b.reshape(x, [n for i, n in enumerate(x.shape) if i not in dimensions])


structural(
    squeeze_p,
    abstract=_squeeze_abstract,
    evaluate=lambda x, *, dimensions: x.squeeze(dimensions),
    transpose=unary_transpose(lambda ct, aval, **_: reshape_p.bind(ct, new_sizes=aval.shape, dimensions=None)),
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
    dims = tuple(sorted(canonical_axis(d, ndim, "squeeze: axis") for d in as_ints(dimensions, "squeeze: dimensions")))
    if len(set(dims)) != len(dims):
        raise ValueError(f"squeeze: dimensions are not unique: {dims}")
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
    return reshaped(x, [x.shape[p] for p in permutation])


def _inverse(permutation) -> tuple:
    return tuple(sorted(range(len(permutation)), key=permutation.__getitem__))


def _transpose_batch(axis, args, dims, *, permutation):
    return transpose_p.bind(args[0], permutation=(dims[0], *skip(permutation, dims[0]))), 0


structural(
    transpose_p,
    abstract=_transpose_abstract,
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    transpose=unary_transpose(lambda ct, aval, *, permutation: transpose_p.bind(ct, permutation=_inverse(permutation))),
    batch=_transpose_batch,
    lower=lambda b, x, *, permutation: b.transpose(x, permutation),
)
_transposed_copy = native.shaped(transpose_p, lambda x, *, permutation: np.ascontiguousarray(x.transpose(permutation)))


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
    permutation = as_ints(permutation, "transpose: permutation")
    if permutation == tuple(range(get_aval(operand).ndim)) and isinstance(operand, Array):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def _rev_abstract(x, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    check_nonnegative("rev", "dimensions", dimensions)
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
    return rev_p.bind(operand, dimensions=as_ints(dimensions, "rev: dimensions"))
