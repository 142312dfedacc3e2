"""Linear systems and eigenvalues of sparse matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.lazy import LazyModule
from catena.core.primitive import Primitive
from catena.core.zeros import UndefinedPrimal, Zero, add_tangents, instantiate
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.csr import csr_matvec_p

scipy_sparse, scipy_linalg = LazyModule("scipy.sparse"), LazyModule("scipy.sparse.linalg")

# ----------------------------------------------------------------------------------------------------
# Linear systems


def _solve(data, indices, indptr, b, *, tol, reorder, transposed=False):
    """SciPy's SuperLU. A matrix row by row is its transpose column by column."""
    dtype = np.result_type(b.dtype, np.float32)
    data, indices, indptr = (np.array(x, t) for x, t in ((data, dtype), (indices, np.intc), (indptr, np.intc)))
    turned = scipy_sparse.csc_array((data, indices, indptr), shape=(b.size, b.size))
    turned.sum_duplicates()
    order = "NATURAL" if reorder == 0 else "COLAMD"
    try:
        x = scipy_linalg.splu(turned, permc_spec=order).solve(np.array(b, dtype), "N" if transposed else "T")
    except RuntimeError:  # it is singular
        x = np.full(b.shape, np.nan, dtype)
    return x.astype(b.dtype)


def _abstract(data, indices, indptr, b, **params):
    return ShapedArray(b.shape, b.dtype)


def _jvp(primals, tangents, **params):
    data, indices, indptr, b = primals
    x = spsolve_p.bind(*primals, **params)
    right = tangents[3]
    if type(tangents[0]) is not Zero:
        shape, transpose = (b.shape[0], b.shape[0]), params.get("transposed", False)
        moved = csr_matvec_p.bind(tangents[0], indices, indptr, x, shape=shape, transpose=transpose)
        right = add_tangents(right, lax.neg(moved))
    if type(right) is Zero:
        return x, Zero.of_primal(x)
    return x, spsolve_p.bind(data, indices, indptr, right, **params)


def _transpose(ct, data, indices, indptr, b, *, transposed=False, **params):
    if type(data) is UndefinedPrimal:
        raise NotImplementedError("spsolve is not linear in the elements of the matrix")
    return [
        None,
        None,
        None,
        spsolve_p.bind(data, indices, indptr, instantiate(ct), transposed=not transposed, **params),
    ]


def _batch(axis, args, dims, **params):
    """One system after the other."""
    mapped = [move_axis(x, d, 0) for x, d in zip(args, dims, strict=True) if d is not None]

    def one(examples):
        examples = iter(examples)
        return spsolve_p.bind(*[x if d is None else next(examples) for x, d in zip(args, dims, strict=True)], **params)

    return lax.map(one, mapped), 0


def _lower(b, *operands, **params):
    right = operands[3]
    aval = ShapedArray(right.shape, right.dtype)
    return b.host_call(lambda *values: [_solve(*values, **params)], list(operands), [aval])[0]


spsolve_p = Primitive(
    "spsolve",
    abstract=_abstract,
    evaluate=_solve,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    lower=_lower,
)


def spsolve(data, indices, indptr, b, tol=1e-6, reorder=1):
    """The solution of a linear system with a sparse matrix, by an LU decomposition.

    Arguments:
      data, indices, indptr: the elements of a square matrix row by row, as of ``CSR``.
      b: the right side, of shape (rows,).
      tol: where a GPU takes an element for 0; not for a decomposition with pivots, as here.
      reorder: 0 for eliminating columns in their order; 1, 2 or 3 for an order that keeps the factors sparse.
    Returns:
      The solution, of shape (rows,); NaN where the matrix is singular.
    Raises:
      ValueError: shapes or dtypes do not fit, or ``reorder`` is something else.

    Source: Demmel et al., "A supernodal approach to sparse partial pivoting" (1999), in SciPy.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> spsolve(M.data, M.indices, M.indptr, jnp.array([2.0, 9.0]))
    Array([1., 2.], dtype=float32)
    """
    data, indices, indptr, b = (jnp.asarray(x) for x in (data, indices, indptr, b))
    if not data.ndim == indices.ndim == indptr.ndim == b.ndim == 1:
        shapes = data.shape, indices.shape, indptr.shape, b.shape
        raise ValueError(f"spsolve: data, indices, indptr and b have one axis each, got shapes {shapes}")
    if data.shape != indices.shape or indptr.size != b.size + 1:
        raise ValueError(
            f"spsolve: for b of shape {b.shape} indptr has one element more, and data as many as indices, got shapes "
            f"{indptr.shape}, {data.shape} and {indices.shape}"
        )
    if data.dtype != b.dtype:
        raise ValueError(f"spsolve: data and b must be of one dtype, got {data.dtype} and {b.dtype}")
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"spsolve: reorder must be 0, 1, 2 or 3, got {reorder!r}")
    return spsolve_p.bind(data, indices, indptr, b, tol=float(tol), reorder=int(reorder))


# ----------------------------------------------------------------------------------------------------
# Eigenvalues


def lobpcg_standard(A, X, m: int = 100, tol=None):
    """The largest eigenvalues of a symmetric matrix, and their eigenvectors, by products with the matrix alone.

    Arguments:
      A: the matrix, of shape (n, n), dense or sparse; or a function from arrays of shape (n, k) to its products.
      X: first guesses of k eigenvectors, of shape (n, k), where 5 k < n; random ones will do.
      m: the number of steps at most.
      tol: how small residuals become, relative to the eigenvalues and to n; by default the precision of the dtype.
    Returns:
      The eigenvalues, of shape (k,), the largest first; the eigenvectors, of shape (n, k); the number of steps.
    Raises:
      ValueError: the guesses are too many or none, or products with them are of another shape or dtype.
      TypeError: they are complex, or ``A`` is neither a matrix nor a function.

    Source: Knyazev, "Toward the optimal preconditioned eigensolver" (2001).

    >>> import catena.numpy as jnp
    >>> A = jnp.diag(jnp.arange(1.0, 13.0))
    >>> jnp.round(lobpcg_standard(A, jnp.ones((12, 1)))[0])
    Array([12.], dtype=float32)
    """
    if not callable(A) and not isinstance(A, JAXSparse) and not hasattr(A, "shape"):
        raise TypeError(f"lobpcg_standard: A must be a matrix or a function, got {A!r}")
    times = A if callable(A) else (lambda X: A @ X)
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must have two axes, got shape {X.shape}")
    n, k = X.shape
    if not 0 < 5 * k < n:
        raise ValueError(f"lobpcg_standard: the number k of guesses must be in 0 < 5 k < n, got k={k} and n={n}")
    if dtypes.is_complex(X.dtype):
        raise TypeError("lobpcg_standard: X must be real")
    product = times(X)
    if product.shape != X.shape or product.dtype != X.dtype or not dtypes.is_floating(X.dtype):
        raise ValueError(
            f"lobpcg_standard: products of A must be like X, floats of shape {X.shape}, got {product.dtype} of shape "
            f"{product.shape} for X of {X.dtype}"
        )
    return search(times, X, m, jnp.finfo(X.dtype).eps if tol is None else tol)


def search(times: Callable, X, m, tol):
    """Steps of LOBPCG, from guesses ``X``, until residuals are small."""
    n, k = X.shape

    def best(basis):
        """The eigenpairs of the matrix on the span of an orthonormal basis, the largest ones first."""
        products = times(basis)
        values, vectors = jnp.linalg.eigh(symmetric(basis.T @ products))
        vectors = vectors[:, ::-1][:, :k]
        return values[::-1][:k], vectors, products @ vectors

    def residual(X, values, product):
        return product - X * values

    def step(state):
        i, X, P, values, product = state
        parts = [X, unit(residual(X, values, product)), unit(P)]
        basis = jnp.linalg.qr(jnp.concatenate(parts, axis=1))[0]
        values, vectors, product = best(basis)
        return i + 1, basis @ vectors, basis[:, k:] @ vectors[k:], values, product

    def goes_on(state):
        i, X, _, values, product = state
        sizes = jnp.linalg.norm(residual(X, values, product), axis=0)
        return (i < m) & jnp.any(sizes > tol * n * (jnp.max(jnp.abs(values)) + jnp.abs(values)))

    basis = jnp.linalg.qr(X)[0]
    values, vectors, product = best(basis)
    state = lax.while_loop(goes_on, step, (0, basis @ vectors, jnp.zeros_like(X), values, product))
    return state[3], state[1], state[0]


def symmetric(x):
    return (x + x.T) / 2


def unit(X):
    """Columns of length 1, or 0."""
    sizes = jnp.linalg.norm(X, axis=0)
    return X / jnp.where(sizes > 0, sizes, 1)
