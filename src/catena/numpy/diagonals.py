"""Diagonals: ``diag``, ``diagflat``, ``diagonal``, ``trace``."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axis,
    convert,
    direct,
    numpy_array,
    refuse_out,
    run,
    static_int,
    strong,
    user_dtype,
)
from catena.numpy.creation import eye
from catena.numpy.hot import REAL, REAL_OR_INT
from catena.numpy.reductions import sum, widened
from catena.typing import ArrayLike, DTypeLike


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonals of matrices.

    Arguments:
      a: an array with at least two axes.
      offset: which diagonal: 0 the main one, positive above it, negative below.
      axis1, axis2: the axes of rows and columns.
    Returns:
      An array with the other axes of ``a``, and the diagonals along its last axis.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``a`` has fewer than two axes, or the axes are out of bounds or the same.

    >>> import catena.numpy as jnp
    >>> jnp.diagonal(jnp.arange(9).reshape(3, 3), offset=1)
    Array([1, 5], dtype=int32)
    """
    is_numpys = _is_numpys(a)
    a = a if is_numpys else as_array_argument("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = static_int(offset, "'offset' argument of jnp.diagonal()")
    axis1, axis2 = (canonical_axis(static_int(i, "axis argument of jnp.diagonal()"), a.ndim) for i in (axis1, axis2))
    if axis1 == axis2:
        raise ValueError(f"diagonal: axis1 and axis2 must be different axes, got {axis1} for both")
    if is_numpys:
        return numpy_array(np.diagonal(a, offset, axis1, axis2))
    is_main = a.ndim == 2 and not offset and a.shape[0] == a.shape[1]  # that of a weak matrix is strong, as in JAX
    if direct(a):
        return make_array(np.diagonal(a._value, offset, axis1, axis2), a.weak_type and not is_main)
    found = _diagonal(a, offset, axis1, axis2)
    return strong(found) if is_main else found


def _is_numpys(a) -> bool:
    """Whether an argument is an array of NumPy's, of whose memory the diagonal alone is to be copied."""
    return type(a) is np.ndarray and a.dtype in dtypes.KIND


def _diagonal(a, offset, axis1, axis2):
    """The diagonal as every (columns + 1)-th element of the flattened matrices."""
    others = tuple(i for i in range(a.ndim) if i not in (axis1, axis2))
    a = lax.transpose(a, (*others, axis1, axis2))
    rows, columns = a.shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if not length:
        return lax.full((*a.shape[:-2], 0), 0, a.dtype)
    first = max(offset, 0) + max(-offset, 0) * columns
    flat = lax.reshape(a, (*a.shape[:-2], rows * columns))
    stop = first + (length - 1) * (columns + 1) + 1
    return lax.slice_in_dim(flat, first, stop, columns + 1, flat.ndim - 1)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    Arguments:
      v: an array with one or two axes.
      k: which diagonal: 0 the main one, positive above it, negative below.
    Returns:
      For a vector, a square matrix; for a matrix, a vector.
    Raises:
      TypeError: ``v`` is neither an array nor a scalar.
      ValueError: ``v`` has neither one nor two axes.

    >>> import catena.numpy as jnp
    >>> jnp.diag(jnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    """
    v = v if _is_numpys(v) and v.ndim == 2 else as_array_argument("diag", v)
    k = static_int(k, "'k' argument of jnp.diag()")
    if v.ndim == 2:
        return diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    size = v.shape[0] + abs(k)
    if direct(v):
        return make_array(_matrix_of(v._value, size, k), v.weak_type)
    zero = make_array(np.zeros((), v.dtype), v.weak_type)
    rows = lax.pad(v, zero, ((max(0, -k), max(0, k), 0),))
    spread = lax.broadcast_in_dim(rows, (size, size), (0,))
    return lax.select(eye(size, k=k, dtype=bool), spread, lax.full_like(spread, 0))


def _matrix_of(value, size: int, k: int) -> np.ndarray:
    """A square matrix of zeros with ``value`` on a diagonal."""
    out = np.zeros((size, size), value.dtype)
    first = k if k >= 0 else -k * size
    out.reshape(-1)[first : first + value.shape[0] * (size + 1) : size + 1] = value
    return out


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the elements of an array, flattened, on its diagonal.

    Arguments:
      v: an array or a scalar.
      k: which diagonal: 0 the main one, positive above it, negative below.
    Returns:
      A square matrix.
    Raises:
      TypeError: ``v`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    v = strong(as_array_argument("diagflat", v))
    return diag(lax.reshape(v, (v.size,)), k)


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sums of the diagonals of matrices.

    Arguments:
      a: an array with at least two axes.
      offset: which diagonal: 0 the main one, positive above it, negative below.
      axis1, axis2: the axes of rows and columns.
      dtype: the dtype of the sums; by default that of ``a``, integers in the default width at least.
      out: not supported; arrays are immutable.
    Returns:
      An array with the other axes of ``a``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    refuse_out("trace", out)
    a = as_array_argument("trace", a)
    if dtype is None and direct(a) and a._value.dtype in REAL_OR_INT:  # the hot path
        dtype = a._value.dtype if a._value.dtype in REAL else widened(a._value.dtype)
        try:
            return make_array(np.asarray(run(a._value.trace, offset, axis1, axis2, dtype)))
        except (ValueError, TypeError):  # the general path says what is wrong
            dtype = None
    dtype = user_dtype(dtype, "trace", widened(a.dtype) if not dtypes.is_inexact(a.dtype) else a.dtype)
    for axis in (axis1, axis2):
        canonical_axis(static_int(axis, "axis argument of jnp.trace()"), a.ndim)
    return sum(convert(diagonal(strong(a), offset, axis1, axis2), dtype), -1, dtype, promote_integers=False)
