"""Inverses and solutions of linear systems."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.trace import find_concrete
from catena.lax.linalg.algebra import adjoint
from catena.lax.linalg.solve import solve_transposed_with_lu, solve_with_lu
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy import reductions
from catena.numpy.boundary import (
    as_array_argument,
    broadcast_to,
    broadcast_together,
    concrete_or_error,
    convert,
    direct,
    like,
    run,
)
from catena.numpy.creation import default_int, eye
from catena.numpy.einstein import einsum
from catena.numpy.linalg.decompositions import (
    eigvalsh,
    inexact_matrix,
    matrix_value,
    square_matrix,
    square_value,
    svd,
)
from catena.numpy.manipulation import moveaxis
from catena.numpy.products import matmul
from catena.numpy.reading import read
from catena.numpy.shaping import ravel, reshaped
from catena.runtime import lapack
from catena.transform.custom_jvp import custom_jvp
from catena.transform.jit import jit
from catena.typing import ArrayLike

# ----------------------------------------------------------------------------------------------------
# Systems


def _unless_singular(gufunc, *values):
    """What a generalised ufunc of NumPy's LAPACK finds as an Array; None where a matrix is singular, or the
    shapes do not fit.
    """
    try:
        return make_array(lapack.strict.run(lapack.stacked, gufunc, *values, out=...))
    except (FloatingPointError, ValueError):
        return None


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solutions ``x`` of ``a @ x = b``.

    Arguments:
      a: a stack of square matrices.
      b: one vector, or a stack of matrices of right-hand sides in columns.
    Returns:
      An array of the shape of ``b``, broadcast with the stack ``a``.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]))
    Array([1. , 0.5], dtype=float32)
    """
    if (found := _solution(a, b)) is not None:  # the hot path
        return found
    a, b = as_array_argument("solve", a), as_array_argument("solve", b, 1)
    dtype, weak = dtypes.promote((a.dtype, a.weak_type), (b.dtype, b.weak_type))
    dtype = dtypes.to_inexact_dtype(dtype)
    a, b = convert(a, dtype), convert(b, dtype)
    a = square_matrix("solve", a)
    n = a.shape[-1]
    if b.ndim == 0 or (b.ndim > 1 and b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}. Prior to JAX v0.5.0, this would have been treated as a "
            "batched 1-dimensional solve. To recover this behavior, use solve(a, b[..., None]).squeeze(-1)."
        )
    vector = b.ndim == 1
    b = reshaped(b, (*b.shape, 1)) if vector else b
    if b.shape[-2] != n:
        raise ValueError(
            f"inconsistent size for core dimension 'm': {b.shape[-2]} vs {n} in solve of {a.shape} and {b.shape}"
        )
    x = _solution(a, b)
    x = convert(_solve(a, b) if x is None else x, dtype, weak)
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def _solution(a, b):
    """The solution of concrete matrices of right-hand sides that fit, or of one matrix and one vector; None for all
    else, and if ``a`` is singular.
    """
    left = square_value(a)
    if left is None:
        return None
    if left.ndim == 2 and type(b) is Array and type(b._value) is np.ndarray and b._value.ndim == 1:
        found = _solution(a, make_array(b._value[:, None], b._weak))
        return None if found is None else make_array(found._value[:, 0])
    right = matrix_value(b)
    if right is None or left.dtype is not right.dtype or right.shape == left.shape[:-1]:
        return None
    return _unless_singular(lapack.gufuncs.solve, left, right)


@jit
def _solve(a, b):
    """The solution for matrices of right-hand sides, of stacks that broadcast, with the derivatives of the system."""
    stack = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not a.size or not b.size:
        return lax.full((*stack, *b.shape[-2:]), 0, b.dtype)
    factors, _, permutation = lax.linalg.lu(lax.stop_gradient(a))
    factors = broadcast_to(factors, (*stack, *a.shape[-2:]))
    permutation = broadcast_to(permutation, (*stack, a.shape[-1]))
    return lax.custom_linear_solve(
        lambda x: matmul(a, x),
        broadcast_to(b, (*stack, *b.shape[-2:])),
        lambda _, x: solve_with_lu(factors, permutation, x),
        lambda _, x: solve_transposed_with_lu(factors, permutation, x),
    )


def inv(a: ArrayLike) -> Array:
    """The inverses of matrices.

    Arguments:
      a: a stack of square matrices.
    Returns:
      An array of the shape of ``a``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = square_matrix("inv", a)
    if (value := matrix_value(a)) is not None and (found := _unless_singular(lapack.gufuncs.inv, value)) is not None:
        return found
    return inverse(a)


def inverse(a):
    """The inverse of matrices with the derivatives of the systems."""
    return _solve(convert(a, a.dtype), broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape))  # not weak


@whole
def pinv(
    a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *, rcond: ArrayLike | None = None
) -> Array:
    """The pseudo-inverses of matrices, by singular value decomposition.

    Arguments:
      a: a stack of matrices.
      rtol: singular values less than this times the greatest count as 0; by default ten times the greater
        dimension times the machine epsilon.
      hermitian: a promise that matrices are Hermitian.
      rcond: an older name of ``rtol``.
    Returns:
      An array with the last two dimensions of ``a`` exchanged.
    Raises:
      ValueError: ``a`` has less than two dimensions, or both names of ``rtol`` are given.

    Source of the derivative: G. H. Golub and V. Pereyra, SIAM J. Numer. Anal. 10(2), 413 (1973).

    >>> import catena.numpy as jnp
    >>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: only one of rtol and rcond may be specified.")
        rtol = rcond
    a = inexact_matrix("pinv", a)
    if not a.size:
        return lax.full((*a.shape[:-2], a.shape[-1], a.shape[-2]), 0, a.dtype)
    if rtol is None:
        rtol = 10.0 * max(a.shape[-2:]) * float(dtypes.finfo(a.dtype).eps)
    rtol = convert(as_array_argument("pinv", rtol, 1), dtypes.to_real_dtype(a.dtype))
    if rtol.ndim:
        a = broadcast_to(a, (*lax.broadcast_shapes(rtol.shape, a.shape[:-2]), *a.shape[-2:]))
    return _pinv_hermitian(a, rtol) if hermitian else _pinv_general(a, rtol)


def _pinv(a, rtol, hermitian: bool):
    if (value := matrix_value(a)) is not None and direct(rtol) and not rtol.ndim and not hermitian:
        return make_array(run(_pinv_value, value, rtol._value))
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    rtol = reshaped(rtol, (*rtol.shape, 1)) if rtol.ndim else rtol
    cutoff = lax.mul(*_same_shape(rtol, read(s, (..., slice(0, 1)))))
    small = lax.le(s, broadcast_to(cutoff, s.shape))
    inverse = lax.div(lax.full_like(s, 1), lax.select(small, lax.full_like(s, np.inf), s))
    inverse = lax.broadcast_in_dim(convert(inverse, u.dtype), u.shape, (*range(u.ndim - 2), u.ndim - 1))
    return matmul(adjoint(vh), adjoint(lax.mul(u, inverse)))


def _pinv_value(value, rtol):
    s, u, vh = lapack.gesdd(value, full_matrices=False, compute_uv=True)
    s[s <= rtol * s[..., :1]] = np.inf
    u *= (s.dtype.type(1) / s)[..., None, :]
    return vh.conj().swapaxes(-1, -2) @ u.conj().swapaxes(-1, -2)


def _same_shape(x, y) -> tuple:
    shape = lax.broadcast_shapes(x.shape, y.shape)
    return broadcast_to(x, shape), broadcast_to(y, shape)


def _pinv_rule(primals, tangents, hermitian: bool):
    """-p t p + p p* t* (1 - a p) + (1 - p a) t* p* p, by products whose sides are the shorter one of ``a``."""
    (a, rtol), (t, _) = primals, tangents
    p = _pinv_hermitian(a, rtol) if hermitian else _pinv_general(a, rtol)
    tall = a.shape[-2] >= a.shape[-1]

    def product(x, y, z):
        return matmul(matmul(x, y), z) if tall else matmul(x, matmul(y, z))

    inward = product(p, adjoint(p), adjoint(t))
    outward = lax.sub(adjoint(t), product(p, a, adjoint(t)))
    second = lax.sub(inward, product(inward, a, p))
    third = product(outward, adjoint(p), p)
    return p, lax.add(lax.sub(second, product(p, t, p)), third)


@custom_jvp
def _pinv_general(a, rtol):
    return _pinv(a, rtol, hermitian=False)


@custom_jvp
def _pinv_hermitian(a, rtol):
    return _pinv(a, rtol, hermitian=True)


_pinv_general.defjvp(lambda primals, tangents: _pinv_rule(primals, tangents, False))
_pinv_hermitian.defjvp(lambda primals, tangents: _pinv_rule(primals, tangents, True))


@whole
def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """The solution of ``a @ x = b`` by least squares; of several, the shortest.

    Arguments:
      a: a matrix.
      b: a vector, or a matrix of right-hand sides in columns.
      rcond: singular values less than this times the greatest count as 0; by default the greater dimension
        times the machine epsilon.
      numpy_resid: whether residuals are empty where NumPy's are; then the rank must be known while tracing.
    Returns:
      The solutions, the sums of squared residuals, the rank, and the singular values of ``a``.
    Raises:
      TypeError: ``a`` is not 2-D. ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))[0].round(3)
    Array([1., 2.], dtype=float32)
    """
    a, b = as_array_argument("lstsq", a), as_array_argument("lstsq", b, 1)
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    dtype = dtypes.to_inexact_dtype(dtypes.promote((a.dtype, a.weak_type), (b.dtype, b.weak_type))[0])
    a, b = convert(a, dtype), convert(b, dtype)
    vector = b.ndim == 1
    b = reshaped(b, (b.shape[0], 1)) if vector else b
    x, residuals, rank, s = _least_squares(a, b, rcond)
    if numpy_resid:
        known = concrete_or_error(lambda v: v, rank, "numpy_resid argument of jnp.linalg.lstsq")
        if int(find_concrete(known)._value) < a.shape[1] or a.shape[0] <= a.shape[1]:
            residuals = lax.full((0,), 0, residuals.dtype)
    return ravel(x) if vector else x, residuals, rank, s


def _roundings(x, eps: float, count: int):
    """So many relative errors of ``x``. The error, a power of two, comes first, so it is that of the product of both,
    and the count by itself is a number that the text of a program does not tell: another one needs no compilation.
    """
    return lax.mul(lax.mul(x, like(x, eps)), like(x, count))


def _least_squares(a, b, rcond):
    m, n = a.shape
    real = dtypes.to_real_dtype(a.dtype)
    if not a.size:
        squares = lax.real(lax.mul(b, lax.conj(b))) if dtypes.is_complex(b.dtype) else lax.mul(b, b)
        rank = lax.full((), 0, default_int())
        return (
            lax.full((n, b.shape[1]), 0, b.dtype),
            reductions.sum(squares, 0),
            rank,
            lax.full((0,), 0, real),
        )
    eps = float(dtypes.finfo(a.dtype).eps)
    left, right = matrix_value(a), matrix_value(b)
    if left is not None and right is not None and (rcond is None or type(rcond) is float):
        rcond = eps * max(m, n) if rcond is None else eps if rcond < 0 else rcond
        return [make_array(np.asarray(v)) for v in run(_least_squares_value, left, right, rcond)]
    if rcond is not None:
        rcond = convert(as_array_argument("lstsq", rcond, 2), real)
        rcond = lax.select(lax.lt(rcond, like(rcond, 0)), like(rcond, eps), rcond)
    u, s, vh = svd(a, full_matrices=False)
    least = _roundings(read(s, 0), eps, max(m, n)) if rcond is None else lax.mul(rcond, read(s, 0))
    used = lax.bitwise_and(lax.gt(s, lax.full_like(s, 0)), lax.ge(s, broadcast_to(least, s.shape)))
    rank = lax.reduce_sum(lax.convert_element_type(used, default_int()), (0,))
    inverse = lax.select(
        used, lax.div(lax.full_like(s, 1), lax.select(used, s, lax.full_like(s, 1))), lax.full_like(s, 0)
    )
    projected = matmul(adjoint(u), b)
    scaled = lax.mul(lax.broadcast_in_dim(convert(inverse, a.dtype), projected.shape, (0,)), projected)
    x = matmul(adjoint(vh), scaled)
    left = lax.sub(b, matmul(a, x))
    squares = lax.real(lax.mul(left, lax.conj(left))) if dtypes.is_complex(left.dtype) else lax.mul(left, left)
    return x, reductions.sum(squares, 0), rank, s


def _least_squares_value(a, b, rcond: float) -> tuple:
    a, b = dense(a), dense(b)
    s, u, vh = lapack.gesdd(a, full_matrices=False, compute_uv=True)
    used = (s > 0) & (s >= s.dtype.type(rcond) * s[0])
    inverse = np.divide(s.dtype.type(1), s, where=used, out=np.zeros_like(s))
    x = vh.conj().T @ (inverse[:, None] * (u.conj().T @ b))
    left = b - a @ x
    squares = (left * left.conj()).real if left.dtype.kind == "c" else left * left
    return x, np.add.reduce(squares, 0), np.add.reduce(used, 0, default_int()), s


@whole
def matrix_power(a: ArrayLike, n: int) -> Array:
    """Matrices to an integer power, by repeated squaring; negative powers are those of inverses.

    Arguments:
      a: a stack of square matrices.
      n: the exponent.
    Returns:
      An array of the shape of ``a``.
    Raises:
      TypeError: the matrices are not square, or the exponent is not an integer.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    a = as_array_argument("matrix_power", a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError("Last 2 dimensions of the array must be square")
    try:
        n = operator.index(n)
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
    if n == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    result = None
    while n:
        if n % 2:
            result = a if result is None else matmul(result, a)
        n //= 2
        a = matmul(a, a) if n else a
    return result


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, in the order that is the least work.

    Arguments:
      arrays: matrices; the first and the last may be vectors.
      precision: the precision of products, as for ``lax.dot_general``.
    Returns:
      A matrix, a vector, or a scalar.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 2)), jnp.ones(2)])
    Array([6., 6.], dtype=float32)
    """
    arrays = [as_array_argument("multi_dot", x, i) for i, x in enumerate(arrays)]
    if len(arrays) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got {len(arrays)}")
    shapes = [x.shape for x in arrays]
    if not (arrays[0].ndim in (1, 2) and arrays[-1].ndim in (1, 2) and all(x.ndim == 2 for x in arrays[1:-1])):
        raise ValueError(
            "multi_dot: input arrays must all be two-dimensional, except for the first and last array "
            "which may be 1 or "
            f"2 dimensional. Got array shapes {shapes}"
        )
    if any(x.shape[-1] != y.shape[0] for x, y in zip(arrays, arrays[1:], strict=False)):
        raise ValueError(
            "multi_dot: last dimension of each array must match first dimension of following array. Got array shapes "
            f"{shapes}"
        )
    labels = [[i, i + 1] for i in range(len(arrays))]
    labels[0] = labels[0] if arrays[0].ndim == 2 else [1]
    labels[-1] = labels[-1] if arrays[-1].ndim == 2 else [len(arrays) - 1]
    ends = ([0] if arrays[0].ndim == 2 else []) + ([len(arrays)] if arrays[-1].ndim == 2 else [])
    pairs = [item for pair in zip(arrays, labels, strict=True) for item in pair]
    return einsum(*pairs, ends, optimize="optimal", precision=precision)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of an array as a map of its last axes to its first ones by ``tensordot``.

    Arguments:
      a: an array whose first and last axes have equally many elements.
      ind: the number of first axes.
    Returns:
      An array with the last axes of ``a`` first.
    Raises:
      ValueError: ``ind`` is not positive, or the sizes differ.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.tensorinv(jnp.eye(4).reshape(2, 2, 4)).shape
    (4, 2, 2)
    """
    a = as_array_argument("tensorinv", a)
    ind = operator.index(ind)
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got {ind=}")
    first, last = a.shape[:ind], a.shape[ind:]
    if int(np.prod(first)) != int(np.prod(last)):
        raise ValueError(f"product of array shape before and after ind={ind} must match; got shape {a.shape}")
    n = int(np.prod(first))
    return reshaped(inv(reshaped(a, (n, n))), (*last, *first))


@whole
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The solution ``x`` of ``tensordot(a, x, x.ndim) = b``.

    Arguments:
      a: an array that begins with the axes of ``b``, and whose other axes have as many elements.
      b: an array.
      axes: axes of ``a`` to move to its end first.
    Returns:
      An array of the shape of the other axes of ``a``.
    Raises:
      ValueError: the sizes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.tensorsolve(jnp.eye(4).reshape(2, 2, 4), jnp.ones((2, 2)))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    a, b = as_array_argument("tensorsolve", a), as_array_argument("tensorsolve", b, 1)
    if axes is not None:
        a = moveaxis(a, tuple(axes), tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    n = int(np.prod(shape))
    if n * b.size != a.size or n != b.size:
        raise ValueError("Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:])")
    return reshaped(solve(reshaped(a, (n, n)), ravel(b)), shape)


def matrix_rank(
    M: ArrayLike,  # noqa: N803
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The ranks of matrices: the numbers of singular values that are not negligible.

    Arguments:
      M: a stack of matrices; of what has less dimensions, whether anything is not 0.
      rtol: singular values not greater than this are negligible (as in JAX, it is not multiplied by
        anything); by default the greatest one times the greater dimension times the machine epsilon.
      hermitian: a promise that matrices are Hermitian.
      tol: an older name of ``rtol``.
    Returns:
      An array of integers without the last two dimensions of ``M``.
    Raises:
      ValueError: both names of ``rtol`` are given.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.matrix_rank(jnp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    if rtol is tol is None and not hermitian and (value := matrix_value(M)) is not None:  # the hot path
        return make_array(run(_rank_value, value, default_int()))
    if tol is not None:
        if rtol is not None:
            raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
        rtol = tol
    M = as_array_argument("matrix_rank", M)  # noqa: N806
    if M.ndim < 2:
        return convert(reductions.any(lax.ne(M, lax.full_like(M, 0))), np.dtype("int32"))
    M = inexact_matrix("matrix_rank", M)  # noqa: N806
    s = lax.abs(eigvalsh(M)) if hermitian else svd(M, full_matrices=False, compute_uv=False)
    if rtol is None:
        cutoff = reductions.max(s, -1, keepdims=True)
        cutoff = _roundings(cutoff, float(dtypes.finfo(s.dtype).eps), max(M.shape[-2:]))
    else:
        rtol = convert(as_array_argument("matrix_rank", rtol, 1), s.dtype)
        cutoff = reshaped(rtol, (*rtol.shape, 1)) if rtol.ndim else rtol
    return reductions.sum(convert(lax.gt(*broadcast_together("matrix_rank", [s, cutoff])), np.dtype("int32")), -1)


def _rank_value(value, dtype):
    s = lapack.gesdd(value, full_matrices=False, compute_uv=False)[0]
    eps = max(value.shape[-2:]) * _EPS[s.dtype]
    if s.ndim == 1:
        return np.array(np.count_nonzero(s > s[0] * eps), dtype)  # the first one is the greatest
    return np.add.reduce(s > s[..., :1] * eps, -1, dtype, out=...)


_EPS = {dtype: float(np.finfo(dtype).eps) for dtype in (np.dtype("float32"), np.dtype("float64"))}
