"""Factorisations, inverses and determinants, in SciPy's conventions."""

from __future__ import annotations

from typing import Any

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.scipy.linalg.arguments import adjoint, inexact
from catena.typing import ArrayLike


@whole
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The Cholesky factor of Hermitian positive definite matrices: ``a = u^H u = l l^H``.

    Arguments:
      a: a stack of matrices ``(..., n, n)``, of which one triangle is read.
      lower: which: the lower one, for ``l``, or the upper one, for ``u``.
      overwrite_a, check_finite: not used; arrays are never changed, and NaN gives NaN.
    Returns:
      An array like ``a``; NaN where a matrix is not positive definite.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 1.],
           [0., 1.]], dtype=float32)
    """
    (a,) = inexact(a)
    if lower:
        return lax.linalg.cholesky(a, symmetrize_input=False)
    if a.ndim < 2:
        raise ValueError(f"cholesky: a must have at least two dimensions, got shape {a.shape}")
    return adjoint(lax.linalg.cholesky(adjoint(a), symmetrize_input=False))


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor for ``cho_solve``.

    Arguments:
      a, lower, overwrite_a, check_finite: as for ``cholesky``.
    Returns:
      The factor, and ``lower``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> c, lower = jsp.linalg.cho_factor(jnp.array([[4.0, 2.0], [2.0, 2.0]]))
    >>> jsp.linalg.cho_solve((c, lower), jnp.array([8.0, 6.0]))
    Array([1., 2.], dtype=float32)
    """
    return cholesky(a, lower), lower


@whole
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition ``a = u diag(s) vh``.

    Arguments:
      a: a stack of matrices ``(..., m, n)``.
      full_matrices: whether ``u`` and ``vh`` are square, or have only as many vectors as there are values.
      compute_uv: whether to return ``u`` and ``vh``.
      overwrite_a, check_finite, lapack_driver: not used; it is "gesdd".
    Returns:
      The tuple ``(u, s, vh)``, or ``s`` alone, in descending order.
    Raises:
      TypeError: ``a`` has less than two dimensions.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.svd(jnp.array([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    return lax.linalg.svd(*inexact(a), full_matrices=full_matrices, compute_uv=compute_uv)


def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of matrices.

    Arguments:
      a: a stack of matrices ``(..., n, n)``.
      overwrite_a, check_finite: not used.
    Returns:
      An array of shape ``(...)``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.det(jnp.array([[1.0, 2.0], [3.0, 4.0]])).round(4)
    Array(-2., dtype=float32)
    """
    return jnp.linalg.det(a)


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of matrices.

    Arguments:
      a: a stack of matrices ``(..., n, n)``.
      overwrite_a, check_finite: not used.
    Returns:
      An array like ``a``.
    Raises:
      ValueError: the matrices are not square.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


@whole
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """The LU factorisation with exchanged rows, for ``lu_solve``.

    Arguments:
      a: a stack of matrices ``(..., m, n)``.
      overwrite_a, check_finite: not used.
    Returns:
      Both factors in one matrix, the unit lower one below the diagonal; and the pivots, int32: row ``i`` was
      exchanged with row ``pivots[i]``.
    Raises:
      TypeError: ``a`` has less than two dimensions.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.lu_factor(jnp.array([[1.0, 2.0], [2.0, 3.0]]))
    (Array([[2. , 3. ],
           [0.5, 0.5]], dtype=float32), Array([1, 1], dtype=int32))
    """
    factors, pivots, _ = lax.linalg.lu(*inexact(a))
    return factors, pivots


@whole
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The LU factorisation ``a = p l u`` with a permutation, a unit lower and an upper triangular matrix.

    Arguments:
      a: a matrix ``(m, n)``.
      permute_l: whether to return ``p l`` as one matrix.
      overwrite_a, check_finite: not used.
    Returns:
      The tuple ``(p, l, u)`` or ``(p l, u)``; ``p`` is real.
    Raises:
      TypeError: ``a`` has less than two dimensions. ValueError: it has more.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> p, l, u = jsp.linalg.lu(jnp.array([[1.0, 2.0], [2.0, 3.0]]))
    >>> p @ l @ u
    Array([[1., 2.],
           [2., 3.]], dtype=float32)
    """
    (a,) = inexact(a)
    if a.ndim > 2:
        raise ValueError(f"lu: a must be one matrix, got shape {a.shape}")
    factors, _, permutation = lax.linalg.lu(a)
    m, n = a.shape
    k = min(m, n)
    lower = jnp.tril(factors[:, :k], -1) + jnp.eye(m, k, dtype=a.dtype)
    upper = jnp.triu(factors[:k])
    if permute_l:
        return lower[jnp.argsort(permutation)], upper
    rows = permutation[None, :] == jnp.arange(m, dtype=permutation.dtype)[:, None]
    return rows.astype(dtypes.to_real_dtype(a.dtype)), lower, upper


@whole
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR factorisation: ``a = q r`` of a unitary and an upper triangular matrix.

    Arguments:
      a: a stack of matrices ``(..., m, n)``.
      overwrite_a, lwork, check_finite: not used.
      mode: "full" for a square ``q``, "economic" for ``min(m, n)`` columns, "r" for ``r`` alone.
      pivoting: whether to exchange columns, so that the diagonal of ``r`` descends: ``a[:, p] = q r``.
    Returns:
      A tuple of ``q`` and ``r``, or of ``r`` alone; and of ``p``, int32, with pivoting.
    Raises:
      TypeError: ``a`` has less than two dimensions. ValueError: the mode is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> (r,) = jsp.linalg.qr(jnp.array([[3.0, 0.0], [4.0, 5.0]]), mode="r")
    >>> abs(r).round(4)
    Array([[5., 4.],
           [0., 3.]], dtype=float32)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"qr: mode must be 'full', 'r' or 'economic', got {mode!r}")
    q, *rest = lax.linalg.qr(*inexact(a), pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(rest) if mode == "r" else (q, *rest)


@whole
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The product of a matrix and the ``q`` of a QR factorisation.

    Arguments:
      a: a stack of matrices ``(..., m, n)``; ``q`` has ``k = min(m, n)`` columns.
      c: a stack of matrices, or one vector.
      mode: "left" for ``q c``, "right" for ``c q``.
      pivoting: whether to exchange columns of ``a``, as for ``qr``.
      conjugate: whether to multiply by the complex conjugate of ``q``.
      overwrite_a, overwrite_c: not used.
    Returns:
      The product, a vector where ``c`` is one; ``r`` of shape ``(..., k, n)``; the permutation with pivoting.
    Raises:
      ValueError: the mode is unknown, or the shapes do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> product, r = jsp.linalg.qr_multiply(jnp.array([[3.0, 0.0], [4.0, 5.0]]), jnp.eye(2), "left")
    >>> (product @ r).round(4)
    Array([[3., 0.],
           [4., 5.]], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    a, c = inexact(a, c)
    vector, left = c.ndim == 1, mode == "left"
    if a.ndim < 2 or not c.ndim:
        raise ValueError(f"qr_multiply: a must be matrices and c a vector or matrices, got {a.shape} and {c.shape}")
    m, n = a.shape[-2:]
    k = min(m, n)
    c = (c[:, None] if left else c[None, :]) if vector else c
    if c.shape[-2 if left else -1] != (k if left else m):
        raise ValueError(
            f"qr_multiply: a of shape {a.shape} has a q of shape {(m, k)}, which does not fit to c of shape {c.shape} "
            f"at its {'right' if left else 'left'}"
        )
    q, r, *permutation = lax.linalg.qr(a, pivoting=pivoting, full_matrices=False)
    q = jnp.conj(q) if conjugate else q
    product = q @ c if left else c @ q
    if vector:
        product = lax.squeeze(product, (product.ndim - 1 if left else product.ndim - 2,))
    return product, r, *permutation


@whole
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """The Hessenberg form ``a = q h q^H``, zero below the first subdiagonal.

    Arguments:
      a: a stack of matrices ``(..., n, n)``.
      calc_q: whether to return ``q``, too.
      overwrite_a, check_finite: not used.
    Returns:
      ``h``, or the tuple ``(h, q)``.
    Raises:
      ValueError: the matrices are not square. TypeError: they are not of floats.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    packed, taus = lax.linalg.hessenberg(jnp.asarray(a))
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    n = packed.shape[-1]
    q = jnp.broadcast_to(jnp.eye(n, dtype=packed.dtype), packed.shape)
    if n < 2:
        return h, q
    rest = lax.linalg.householder_product(packed[..., 1:, :-1], taus)
    return h, q.at[..., 1:, 1:].set(rest)
