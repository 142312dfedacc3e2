"""Factorisations and eigenvalues of stacks of matrices, in NumPy's conventions.

Concrete matrices of LAPACK's dtypes go to the kernels of ``runtime.lapack`` at once.
"""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.named import NamedTuple
from catena.lax.linalg.algebra import adjoint
from catena.lax.linalg.eigen import hermitian_eigenvalues
from catena.lax.policy import LIBRARY
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, broadcast_to, concrete_values, convert, like, run
from catena.numpy.creation import eye
from catena.numpy.index_update import IndexUpdateRef
from catena.numpy.reading import read
from catena.numpy.shaping import matrix_transpose
from catena.numpy.taking import take_along_axis
from catena.runtime import lapack
from catena.typing import ArrayLike

LAPACK = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


class EigResult(NamedTuple):
    """What ``eig`` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What ``eigh`` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What ``qr`` returns."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """What ``svd`` returns."""

    U: Array
    S: Array
    Vh: Array


# Whose errors for what is no matrix, and for matrices that are not square, are TypeErrors, as in JAX.
OF_MATRICES = frozenset("cholesky eig eigvals eigh eigvalsh qr svd svdvals".split())
OF_SQUARES = frozenset("cholesky eigh eigvalsh svd".split())


def inexact_matrix(name: str, a, position=0):
    """An argument as matrices of an inexact dtype."""
    if type(a) is Array and matrix_value(a) is not None:
        return a
    a = as_array_argument(name, a, position)
    if a.ndim < 2:
        error = TypeError if name in OF_MATRICES else ValueError
        raise error(f"Argument to {name} must have shape [..., m, n], got {a.shape}")
    return convert(a, dtypes.to_inexact_dtype(a.dtype), a.weak_type)


def square_matrix(name: str, a):
    """An argument as square matrices of an inexact dtype."""
    a = inexact_matrix(name, a)
    if a.shape[-1] != a.shape[-2]:
        error = TypeError if name in OF_SQUARES else ValueError
        raise error(f"Argument to {name} must have shape [..., n, n], got {a.shape}")
    return a


def matrix_value(a) -> np.ndarray | None:
    """The NumPy value of matrices that LAPACK may compute on right now, and whose type is that of the result; None
    for all else, such as large matrices, which LAPACK shares out among its threads: a program calls it on one, so that
    the bits do not tell how many there are. The hot path of every function here.
    """
    if type(a) is not Array and type(a) is not np.ndarray or a.ndim < 2 or not 0 < a.size < LIBRARY.least:
        return None
    if type(a) is Array and a._weak:  # as results may be then
        return None
    found = concrete_values(LAPACK, a)
    return found[0] if found else None


def square_value(a) -> np.ndarray | None:
    """``matrix_value`` of square matrices; None for all else."""
    value = matrix_value(a)
    if value is None:
        return None
    shape = value.shape
    return value if shape[-1] == shape[-2] else None


def _adjoint(value):
    value = value.swapaxes(-1, -2)
    return value.conj() if value.dtype.kind == "c" else value


def _hermitian_part(value):
    part = _adjoint(value).copy("C")  # NumPy adds arrays of different layouts in twice the time
    np.add(part, value, part)
    return np.multiply(part, _HALF[value.dtype], part)


_HALF = {dtype: np.array(0.5, dtype) for dtype in LAPACK}


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factor ``L`` of Hermitian positive definite matrices: ``a = L @ L^H``.

    Arguments:
      a: a stack of matrices.
      upper: whether to return the upper factor ``L^H``.
      symmetrize_input: whether to take the Hermitian part of ``a``; else only its lower triangle is read.
    Returns:
      A stack of triangular matrices; NaN where a matrix is not positive definite.
    Raises:
      TypeError: the matrices are not square.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    a = square_matrix("cholesky", a)
    if (value := matrix_value(a)) is not None:
        return make_array(run(_cholesky_value, value, upper, symmetrize_input))
    factor = lax.linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


def _cholesky_value(value, upper: bool, symmetrize: bool):
    factor = lapack.potrf(_hermitian_part(value) if symmetrize else value)[0]
    return _adjoint(factor) if upper else factor


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and right eigenvectors of general matrices.

    Arguments:
      a: a stack of square matrices.
    Returns:
      A named tuple of the eigenvalues and of the eigenvectors in columns, both complex.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    Array([2.+0.j, 3.+0.j], dtype=complex64)
    """
    values, vectors = lax.linalg.eig(square_matrix("eig", a), compute_left_eigenvectors=False)
    return EigResult(values, vectors)


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of general matrices.

    Arguments:
      a: a stack of square matrices.
    Returns:
      A complex array without the last dimension of ``a``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    a = square_matrix("eigvals", a)
    return lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:  # noqa: N803
    """The eigenvalues and eigenvectors of Hermitian matrices.

    Arguments:
      a: a stack of matrices.
      UPLO: which triangle is read where the input is not symmetrised: "L" (or None) the lower, "U" the upper.
      symmetrize_input: whether to take the Hermitian part of ``a``.
    Returns:
      A named tuple of the eigenvalues, in ascending order, and of the eigenvectors in columns.
    Raises:
      TypeError: the matrices are not square. ValueError: ``UPLO`` is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.eigh(jnp.array([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.], dtype=float32)
    """
    a, value = _with_triangle("eigh", a, UPLO)
    if value is not None:
        vectors, values = run(_eigh_value, value, UPLO, symmetrize_input, True)
        return EighResult(make_array(values), make_array(vectors))
    vectors, values = lax.linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


def _eigh_value(value, triangle, symmetrize: bool, vectors: bool):
    a = _hermitian_part(value) if symmetrize else value
    return lapack.syevd(a, lower=triangle != "U", compute_eigenvectors=vectors)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:  # noqa: N803
    """The eigenvalues of Hermitian matrices.

    Arguments:
      a: a stack of matrices.
      UPLO: which triangle is read where the input is not symmetrised: "L" (or None) the lower, "U" the upper.
      symmetrize_input: whether to take the Hermitian part of ``a``.
    Returns:
      A real array without the last dimension of ``a``, in ascending order.
    Raises:
      TypeError: the matrices are not square. ValueError: ``UPLO`` is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.eigvalsh(jnp.array([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.], dtype=float32)
    """
    a, value = _with_triangle("eigvalsh", a, UPLO)
    if value is not None:
        return make_array(run(_eigh_value, value, UPLO, symmetrize_input, False)[0])
    return hermitian_eigenvalues(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)


def _with_triangle(name: str, a: ArrayLike, uplo: str | None) -> tuple:
    """Square matrices of which one triangle is read, and their elements where these are at hand."""
    if uplo not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {uplo}")
    a = square_matrix(name, a)
    return a, matrix_value(a)


_QR_MODES = ("reduced", "complete", "r", "raw", "full")


def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult | tuple[Array, Array]:
    """The QR factorisation: ``a = Q @ R`` of a unitary and an upper triangular matrix.

    Arguments:
      a: a stack of matrices.
      mode: "reduced" (or "full") for as many columns of ``Q`` as are determined, "complete" for a square
        ``Q``, "r" for ``R`` alone, "raw" for Householder reflections and their factors.
    Returns:
      A named tuple ``(Q, R)``, or what the mode says.
    Raises:
      TypeError: ``a`` has less than two dimensions. ValueError: the mode is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.qr(jnp.array([[3.0, 0.0], [4.0, 5.0]]), mode="r").round(4)
    Array([[-5., -4.],
           [ 0.,  3.]], dtype=float32)
    """
    if mode not in _QR_MODES:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    a = inexact_matrix("qr", a)
    if mode == "r":
        return _upper_factor(a)
    if (value := matrix_value(a)) is not None:
        q, r = map(make_array, run(lapack.geqrf, value, full_matrices=mode == "complete"))
    else:
        q, r = lax.linalg.qr(a, full_matrices=mode == "complete")
    if mode == "raw":
        reflections, taus = _reflections(q, r)
        return matrix_transpose(reflections), taus
    return QRResult(q, r)


@whole
def _upper_factor(a):
    """That of the QR factorisation: without the other, which is as much work."""
    return lax.linalg.qr(a, full_matrices=False)[1]


def _reflections(q, r) -> tuple:
    """LAPACK's form of a reduced factorisation: R above Householder vectors, and their factors.

    ``Q - I`` is ``-Y U`` with the vectors in the unit lower trapezoid ``Y`` and their factors on the diagonal
    of ``U``: a triangular factorisation without exchanges (Ballard et al., Reconstructing Householder
    vectors, 2015).
    """
    m, k = q.shape[-2:]
    left = lax.sub(broadcast_to(eye(m, k, dtype=q.dtype), q.shape), q)
    out = IndexUpdateRef(lax.full((*q.shape[:-1], r.shape[-1]), 0, q.dtype), (..., slice(0, k), slice(None))).set(r)
    taus = []
    for i in range(k):
        pivot = read(left, (..., slice(0, 1), 0))
        column = read(left, (..., slice(1, None), 0))
        safe = lax.select(lax.eq(pivot, like(pivot, 0)), lax.full_like(pivot, 1), pivot)
        column = lax.div(column, broadcast_to(safe, column.shape))
        taus.append(read(pivot, (..., 0)))
        out = IndexUpdateRef(out, (..., slice(i + 1, m), i)).set(column)
        row = read(left, (..., 0, slice(1, None)))
        rest = read(left, (..., slice(1, None), slice(1, None)))
        columns = lax.broadcast_in_dim(column, rest.shape, tuple(range(column.ndim)))
        rows = lax.broadcast_in_dim(row, rest.shape, (*range(row.ndim - 1), row.ndim))
        left = lax.sub(rest, lax.mul(columns, rows))
    return out, lax.stack(taus, q.ndim - 2)


def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | SVDResult:
    """The singular value decomposition ``a = U @ diag(S) @ Vh``.

    Arguments:
      a: a stack of matrices.
      full_matrices: whether ``U`` and ``Vh`` are square, or have only as many vectors as there are singular
        values.
      compute_uv: whether to return ``U`` and ``Vh``.
      hermitian: a promise that matrices are Hermitian, by which they are computed from eigenvectors.
      subset_by_index: start and end of the range of singular values to return, in descending order; all by
        default.
    Returns:
      A named tuple ``(U, S, Vh)``, or ``S`` alone; ``S`` is in descending order.
    Raises:
      TypeError: ``a`` has less than two dimensions. ValueError: the range is not valid.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]])).S
    Array([2., 1.], dtype=float32)
    """
    if hermitian:
        return _hermitian_svd(square_matrix("svd", a), compute_uv, subset_by_index)
    a = inexact_matrix("svd", a)
    if subset_by_index is None and (value := matrix_value(a)) is not None:
        return _svd_of_values(value, full_matrices, compute_uv)
    found = lax.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index)
    return SVDResult(*found) if compute_uv else found


def _svd_of_values(value, full_matrices: bool, compute_uv: bool):
    found = run(lapack.gesdd, value, full_matrices=full_matrices, compute_uv=compute_uv)
    s, *vectors = map(make_array, found)
    return SVDResult(vectors[0], s, vectors[1]) if compute_uv else s


def _hermitian_svd(a, compute_uv: bool, subset):
    """Singular values are the sizes of eigenvalues; the sign goes into ``Vh``."""
    values, vectors = eigh(a) if compute_uv else (eigvalsh(a), None)
    sizes = lax.abs(values)
    ordered = lax.sort(
        [lax.neg(sizes), lax.broadcasted_iota(np.dtype("int32"), sizes.shape, sizes.ndim - 1)], -1, num_keys=1
    )
    s, order = lax.neg(ordered[0]), ordered[1]
    part = slice(None) if subset is None else slice(*subset)
    if not compute_uv:
        return read(s, (..., part))
    columns = lax.expand_dims(order, (order.ndim - 1,))
    u = take_along_axis(vectors, columns, axis=-1)
    sign = take_along_axis(
        lax.select(lax.lt(values, like(values, 0)), lax.full_like(values, -1), lax.full_like(values, 1)),
        order,
        axis=-1,
    )
    signs = lax.broadcast_in_dim(convert(sign, u.dtype), u.shape, (*range(u.ndim - 2), u.ndim - 1))
    vh = adjoint(lax.mul(u, signs))
    return SVDResult(read(u, (..., part)), read(s, (..., part)), read(vh, (..., part, slice(None))))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices, in descending order.

    Arguments:
      x: a stack of matrices.
    Returns:
      A real array.
    Raises:
      TypeError: ``x`` has less than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [1.0, 0.0]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(inexact_matrix("svdvals", x), full_matrices=False, compute_uv=False)
