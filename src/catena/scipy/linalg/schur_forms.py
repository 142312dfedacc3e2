"""The Schur form, and the polar decomposition."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.scipy.linalg.arguments import adjoint, inexact
from catena.scipy.linalg.triangular import complex_schur
from catena.transform.jit import jit
from catena.transform.vmap import vmap
from catena.typing import ArrayLike


@whole
def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """The Schur decomposition ``a = z t z^H`` with unitary ``z``.

    Arguments:
      a: a stack of matrices ``(..., n, n)``.
      output: "real", for ``t`` with a block of two rows for each pair of conjugate eigenvalues of a real matrix; or
        "complex", for triangular ``t``.
    Returns:
      The list ``[t, z]``, as in JAX; NaN where a matrix is not finite.
    Raises:
      ValueError: the matrices are not square, or the output is unknown. TypeError: they are not of floats.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> t, z = jsp.linalg.schur(jnp.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> abs(z @ t @ z.T).round(4)
    Array([[0., 2.],
           [2., 0.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex', got {output!r}")
    a = jnp.asarray(a)
    return list(complex_schur(a) if output == "complex" else lax.linalg.schur(a))


@whole
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:  # noqa: N803
    """The triangular Schur form for a real one, by a rotation for each of its blocks of two rows.

    Arguments:
      T: a stack of real Schur forms ``(..., n, n)``.
      Z: their vectors, like ``T``.
      check_finite: not used; NaN gives NaN.
    Returns:
      The triangular form and its vectors, complex.
    Raises:
      ValueError: the matrices are not square, or not of one shape.

    Source: Golub and Van Loan, "Matrix computations" (1996), section 7.4.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> t, z = jsp.linalg.rsf2csf(jnp.array([[0.0, 1.0], [-1.0, 0.0]]), jnp.eye(2))
    >>> abs(jnp.diag(t))
    Array([1., 1.], dtype=float32)
    """
    t, z = inexact(T, Z)
    for x, name in ((t, "T"), (z, "Z")):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"rsf2csf: {name} must be square matrices, got shape {x.shape}")
    if t.shape != z.shape:
        raise ValueError(f"rsf2csf: T and Z must have one shape, got {t.shape} and {z.shape}")
    dtype = dtypes.to_complex_dtype(dtypes.promote_types(t.dtype, np.float32))
    t, z = t.astype(dtype), z.astype(dtype)
    return _rsf2csf(t, z) if t.shape[-1] > 1 else (t, z)


@jit
def _rsf2csf(t, z):
    n, last = t.shape[-1], t.ndim - 1
    eps = float(dtypes.finfo(t.dtype).eps)

    def pair(x, m, axis):
        return lax.dynamic_slice_in_dim(x, m, 2, axis)

    def put(x, new, m, axis):
        return lax.dynamic_update_slice_in_dim(x, new, m, axis)

    def rotate(k, state):
        """Make ``t[m + 1, m]`` zero, the lowest one first."""
        t, z = state
        m = n - 2 - k
        block = pair(pair(t, m, last), m, last - 1)
        (p, q), (r, s) = ([block[..., i, j] for j in (0, 1)] for i in (0, 1))
        small = jnp.abs(r) <= eps * (jnp.abs(p) + jnp.abs(s))
        half = (p - s) / 2
        root = jnp.sqrt(half**2 + q * r)
        root = jnp.where(jnp.imag(root) < 0, -root, root)  # of a conjugate pair the upper one comes first
        mu = half + jnp.where(jnp.abs(half + root) >= jnp.abs(half - root), root, -root)  # an eigenvalue, less s
        mu, r = jnp.where(small, 1, mu), jnp.where(small, 0, r)
        size = jnp.sqrt(jnp.abs(mu) ** 2 + jnp.abs(r) ** 2)
        c, d = mu / size, r / size
        turn = jnp.stack([jnp.stack([jnp.conj(c), d], -1), jnp.stack([-d, c], -1)], -2)
        columns = np.arange(n) >= m
        rows = pair(t, m, last - 1)
        t = put(t, jnp.where(columns, turn @ rows, rows), m, last - 1)
        t = put(t, pair(t, m, last) @ adjoint(turn), m, last)
        return t, put(z, pair(z, m, last) @ adjoint(turn), m, last)

    t, z = lax.fori_loop(0, n - 1, rotate, (t, z))
    return jnp.triu(t), z


def triangular_form(a) -> tuple[Array, Array]:
    """A triangular Schur form and its vectors: of real matrices by way of the real form, which LAPACK finds in a third
    of the time of the complex one.
    """
    if dtypes.is_complex(a.dtype):
        return tuple(lax.linalg.schur(a))
    return rsf2csf(*lax.linalg.schur(a.astype(dtypes.to_real_dtype(dtypes.to_complex_dtype(a.dtype)))))


@whole
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition: ``a = u p`` or ``a = p u`` with ``u`` of orthonormal rows or columns, and ``p >= 0``.

    Arguments:
      a: a stack of matrices ``(..., m, n)``.
      side: at which side of ``u`` the factor ``p`` stands, "right" or "left".
      method: "qdwh", the dynamically weighted Halley iteration; or "svd", by singular vectors.
      eps: the precision to which the iteration goes; by default that of the dtype.
      max_iterations: at most how many iterations; 10 by default. They are planned for the most singular of matrices
        and need six or seven, whatever ``a`` is.
    Returns:
      The tuple ``(u, p)``: ``u`` is like ``a``, ``p`` Hermitian and positive semidefinite.
    Raises:
      ValueError: ``a`` has less than two dimensions, or the side or the method is unknown.

    Source: Nakatsukasa and Higham, "Stable and efficient spectral divide and conquer algorithms" (2013).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> u, p = jsp.linalg.polar(jnp.array([[0.0, -2.0], [3.0, 0.0]]))
    >>> abs(p).round(4)
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    (a,) = inexact(a)
    if a.ndim < 2:
        raise ValueError(f"polar: a must have at least two dimensions, got shape {a.shape}")
    if side not in ("right", "left"):
        raise ValueError(f"polar: side must be 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd', got {method!r}")
    m, n = a.shape[-2:]
    if not a.size:
        k = n if side == "right" else m
        return a, jnp.zeros((*a.shape[:-2], k, k), a.dtype)
    if method == "svd":
        u, s, vh = lax.linalg.svd(a, full_matrices=False)
        vectors = adjoint(vh) if side == "right" else u
        return u @ vh, (vectors * s[..., None, :].astype(a.dtype)) @ adjoint(vectors)
    if m < n:  # the iteration wants columns
        u, p = polar(adjoint(a), "left" if side == "right" else "right", eps=eps, max_iterations=max_iterations)
        return adjoint(u), p
    iterate = lambda x: lax.linalg.qdwh(x, eps=eps, max_iterations=max_iterations)[:2]  # noqa: E731
    for _ in range(a.ndim - 2):
        iterate = vmap(iterate)
    u, p = iterate(a)
    return u, p if side == "right" else u @ p @ adjoint(u)
