"""Norms of vectors and matrices, condition numbers, and small functions of the array API standard."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.policy import LARGE, MANY_ROWS, folds_long
from catena.lax.reductions import add_reduce
from catena.lax.whole import whole
from catena.numpy import diagonals, products, reductions
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axes,
    canonical_axis,
    convert,
    direct,
    like,
    run,
    static_axis,
)
from catena.numpy.cross_products import cross as _cross
from catena.numpy.hot import REAL
from catena.numpy.linalg.decompositions import inexact_matrix, svdvals
from catena.numpy.linalg.systems import inv
from catena.numpy.manipulation import moveaxis
from catena.numpy.reading import read
from catena.numpy.reductions import plain_axis
from catena.numpy.shaping import expand_dims
from catena.typing import ArrayLike, DTypeLike

Axis = int | Sequence[int] | None


def norm(x: ArrayLike, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    Arguments:
      x: an array.
      ord: for vectors a number, infinity or 0 for the number of elements that are not 0; for matrices 1, 2,
        infinity, these negated, "fro" or "nuc". By default 2 for vectors, "fro" for matrices.
      axis: one axis for vectors, two for matrices; None for all (with ``ord`` only where there are one or
        two).
      keepdims: whether to keep these axes with size 1.
    Returns:
      A real array without these axes.
    Raises:
      ValueError: the order is unknown, or the number of axes does not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    if type(x) is not np.ndarray or x.size < LARGE:  # large ones of NumPy's are read where they are
        x = as_array_argument("norm", x)
    rows = type(axis) is not tuple or len(axis) in (1, 2)
    if ord is None and rows and direct(x) and plain_axis(axis, x) and _is_short(x._value, axis):
        try:  # the hot path
            return make_array(run(_length, x._value, axis, keepdims))
        except ValueError:  # the general path says what is wrong
            pass
    return _any_norm(x, ord, axis, keepdims)


@whole
def _any_norm(x, ord, axis, keepdims):
    x = as_array_argument("norm", x)
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    if axis is None and ord is None:
        return _euclidean(x, None, keepdims)
    axes = tuple(range(x.ndim)) if axis is None else _axis_tuple(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector-norm, or two axes to "
        "compute a matrix-norm."
    )


def _is_short(value, axis) -> bool:
    """Whether NumPy gives the length of rows, or of a whole array."""
    return value.dtype in REAL and (value.size < MANY_ROWS or not folds_long(value.shape, axis))


def _length(value, axis, keepdims: bool):
    return np.sqrt(add_reduce(np.square(value), axis, keepdims=keepdims), out=...)


def _axis_tuple(axis, rank: int) -> tuple:
    axis = static_axis(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(canonical_axis(i, rank) for i in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def _squares(x):
    return lax.real(lax.mul(x, lax.conj(x))) if dtypes.is_complex(x.dtype) else lax.mul(x, x)


def _euclidean(x, axes, keepdims: bool):
    if direct(x) and _is_short(x._value, axes):  # the hot path
        return make_array(run(_length, x._value, axes, keepdims))
    return lax.sqrt(reductions.sum(_squares(x), axes, keepdims=keepdims))


def _vector_norm(x, ord, axis: int, keepdims: bool):
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm.")
    if ord == 2:
        return _euclidean(x, axis, keepdims)
    sizes = lax.abs(x)
    if ord == np.inf:
        return _greatest(sizes, axis, keepdims)
    if ord == -np.inf:
        return reductions.min(sizes, axis, keepdims=keepdims)
    if ord == 0:
        some = lax.convert_element_type(lax.ne(x, lax.full_like(x, 0)), sizes.dtype)
        return reductions.sum(some, axis, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(sizes, axis, keepdims=keepdims)
    power = convert(as_array_argument("norm", ord, 1), sizes.dtype)
    total = reductions.sum(lax.pow(sizes, power), axis, keepdims=keepdims)
    return lax.pow(total, lax.div(like(power, 1), power))


def _greatest(x, axis, keepdims: bool = False):
    """The maximum of numbers that are not negative: of none, zero."""
    return reductions.max(x, axis, keepdims=keepdims, initial=None if x.size else 0)


def _matrix_norm(x, ord, axes: tuple, keepdims: bool):
    row, column = axes
    if ord == "fro":
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, kept = (row, column) if abs(ord) == 1 else (column, row)
        sums = reductions.sum(lax.abs(x), summed, keepdims=True)
        extremum = _greatest(sums, kept, True) if ord > 0 else reductions.min(sums, kept, keepdims=True)
        return extremum if keepdims else lax.squeeze(extremum, tuple(sorted(axes)))
    if ord not in (2, -2, "nuc"):
        raise ValueError(f"Invalid order '{ord}' for matrix norm.")
    s = svdvals(moveaxis(x, axes, (-2, -1)))
    reduce = {2: _greatest, -2: reductions.min, "nuc": reductions.sum}[ord]
    result = reduce(s, -1)
    return expand_dims(result, tuple(sorted(axes))) if keepdims else result


@whole
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norms of matrices.

    Arguments:
      x: a stack of matrices.
      keepdims: whether to keep the last two axes with size 1.
      ord: as for ``norm``.
    Returns:
      A real array.
    Raises:
      ValueError: the order is unknown, or ``x`` has less than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.matrix_norm(jnp.ones((2, 2)))
    Array(2., dtype=float32)
    """
    x = inexact_matrix("matrix_norm", x)
    return _matrix_norm(x, ord, (x.ndim - 2, x.ndim - 1), keepdims)


@whole
def vector_norm(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norms of vectors.

    Arguments:
      x: an array.
      axis: the axes over which vectors run; None for all.
      keepdims: whether to keep these axes with size 1.
      ord: as for ``norm``.
    Returns:
      A real array.
    Raises:
      ValueError: the order is unknown, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.vector_norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = as_array_argument("vector_norm", x)
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    axes = canonical_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    kept = [i for i in range(x.ndim) if i not in axes]
    flat = lax.reshape(lax.transpose(x, (*kept, *axes)), (*(x.shape[i] for i in kept), _size(x, axes)))
    result = _vector_norm(flat, ord, flat.ndim - 1, False)
    return expand_dims(result, axes) if keepdims and axes else result


def _size(x, axes) -> int:
    size = 1
    for i in axes:
        size *= x.shape[i]
    return size


@whole
def cond(x: ArrayLike, p: Any = None) -> Array:
    """The condition numbers of matrices.

    Arguments:
      x: a stack of matrices, square unless ``p`` is None, 2 or -2.
      p: the norm, as for ``norm``; by default 2.
    Returns:
      A real array; infinite for singular matrices.
    Raises:
      ValueError: the matrices are empty or not square, or the norm is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.cond(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array(2., dtype=float32)
    """
    x = inexact_matrix("cond", x)
    if not all(x.shape[-2:]):
        raise ValueError(f"jnp.linalg.cond: input array must not be empty; got arr.shape={x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        first, last = read(s, (..., 0)), read(s, (..., -1))
        result = lax.div(last, first) if p == -2 else lax.div(first, last)
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for {p=}, array must be square; got arr.shape={x.shape}")
        result = lax.mul(matrix_norm(x, ord=p), matrix_norm(inv(x), ord=p))
    given = reductions.any(lax.ne(x, x), (-2, -1))
    undefined = lax.bitwise_and(lax.ne(result, result), lax.bitwise_not(given))
    return lax.select(undefined, lax.full_like(result, np.inf), result)


# ----------------------------------------------------------------------------------------------------
# Functions of numpy under the signatures of the array API standard


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector products of vectors in three dimensions.

    Arguments:
      x1, x2: arrays that broadcast, of size 3 along ``axis``.
      axis: the axis over which vectors run.
    Returns:
      An array of the broadcast shape.
    Raises:
      ValueError: the vectors have not three components.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x1, x2 = as_array_argument("cross", x1), as_array_argument("cross", x2, 1)
    sizes = [x.shape[canonical_axis(operator.index(axis), x.ndim)] for x in (x1, x2)]
    if sizes != [3, 3]:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have "
            f"x1.shape[axis]={sizes[0]} and x2.shape[axis]={sizes[1]}"
        )
    return _cross(x1, x2, axis=axis)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of matrices.

    Arguments:
      x: a stack of matrices.
      offset: the diagonal: 0 the main one, positive ones above it.
    Returns:
      An array with the elements of diagonals along its last axis.
    Raises:
      ValueError: ``x`` has less than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    return diagonals.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of matrices.

    Arguments:
      x: a stack of matrices.
      offset: the diagonal: 0 the main one, positive ones above it.
      dtype: the dtype of the result.
    Returns:
      An array without the last two dimensions of ``x``.
    Raises:
      ValueError: ``x`` has less than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return diagonals.trace(x, offset, -2, -1, dtype)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all elements of one vector with all of another.

    Arguments:
      x1, x2: 1-D arrays.
    Returns:
      A matrix.
    Raises:
      ValueError: an argument is not 1-D.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x1, x2 = as_array_argument("outer", x1), as_array_argument("outer", x2, 1)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} {x2.ndim=}")
    return products.outer(x1, x2)


def matmul(
    x1: ArrayLike, x2: ArrayLike, /, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The products of matrices.

    Arguments:
      x1, x2: vectors, matrices, or stacks of matrices that broadcast.
      precision: the precision of products, as for ``lax.dot_general``.
      preferred_element_type: the dtype to accumulate in, and of the result.
    Returns:
      An array.
    Raises:
      TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The inner products of vectors, the first one conjugated.

    Arguments:
      x1, x2: arrays that broadcast.
      axis: the axis over which vectors run.
      precision: the precision of products, as for ``lax.dot_general``.
      preferred_element_type: the dtype to accumulate in, and of the result.
    Returns:
      An array without that axis.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.vecdot(jnp.array([1, 2]), jnp.array([3, 4]))
    Array(11, dtype=int32)
    """
    return products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sums of products over pairs of axes.

    Arguments:
      x1, x2: arrays.
      axes: how many last axes of the first with as many first ones of the second, or a pair of lists of axes.
      precision: the precision of products, as for ``lax.dot_general``.
      preferred_element_type: the dtype to accumulate in, and of the result.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      An array of the other axes of the first, then of the second.
    Raises:
      TypeError: the axes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1)
    Array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    return products.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Matrices with rows and columns exchanged.

    Arguments:
      x: a stack of matrices.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: ``x`` has less than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    x = as_array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return lax.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
