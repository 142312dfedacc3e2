"""Krylov methods: solutions of linear systems whose matrix is known by its products with vectors.

A vector is any tree of arrays. Derivatives are those of the system, by ``lax.custom_linear_solve``: a gradient costs
one more solution, however many steps there were.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.namespace import shown as _shown
from catena.core.tree import tree_leaves, tree_map, tree_structure
from catena.transform.make_jaxpr import eval_shape

__all__ = ["bicgstab", "cg", "gmres"]

# ------------------------------------------------------------------------------------------------------------
# Vectors that are trees


def _dot(x, y):
    """The inner product; the first vector is conjugated."""
    return sum(jnp.vdot(a, b) for a, b in zip(tree_leaves(x), tree_leaves(y), strict=True))


def _squared_norm(x):
    return jnp.real(_dot(x, x))


def _plus(x, factor, y):
    """``x + factor y``, with the dtypes of ``x``."""
    return tree_map(lambda a, b: a + (factor * b).astype(a.dtype), x, y)


def _minus(x, y):
    return _plus(x, -1, y)


def _ratio(a, b):
    """``a / b``; 0 where both are 0, as where a residual vanished."""
    return jnp.where(a == 0, 0, a / jnp.where((a == 0) & (b == 0), 1, b))


# ------------------------------------------------------------------------------------------------------------
# What all have in common


def _applied(name: str, a, what: str) -> Callable:
    """A function or a matrix as a function of vectors."""
    if callable(a):
        return a
    if not hasattr(a, "shape") or not hasattr(a, "dtype"):
        raise TypeError(f"{name}: {what} must be a function or a matrix, got {a!r}")
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError(f"{name}: {what} must be a square matrix, got shape {a.shape}")
    return lambda x: jnp.matmul(a, x)


def _common_types(name: str, a: Callable, b, x0):
    """Right-hand side and start, with the dtypes that the matrix gives their products."""
    b = tree_map(jnp.asarray, b)
    image = eval_shape(a, b)
    if tree_structure(image) == tree_structure(b):  # where it is not, custom_linear_solve says so
        to = lambda x, y: x.astype(dtypes.to_inexact_dtype(jnp.result_type(x, y)))  # noqa: E731
        b = tree_map(to, b, image)
    if x0 is None:
        return b, tree_map(jnp.zeros_like, b)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(f"{name}: x0 must have the structure of b, {tree_structure(b)}, got {tree_structure(x0)}")
    shapes = [[jnp.shape(x) for x in tree_leaves(t)] for t in (x0, b)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{name}: x0 must have the shapes of b, {shapes[1]}, got {shapes[0]}")
    return b, tree_map(lambda x, y: jnp.asarray(x).astype(y.dtype), x0, b)


def _solved(name: str, method: Callable, a, b, x0, tol, atol, maxiter, preconditioner, hermitian: bool):
    """The solution by ``method(a, b, x0, least, maxiter, preconditioner)``, with the derivatives of the system.

    ``least`` is the norm of the residual that is small enough. Where the system is ``hermitian``, only a real one is
    its own transpose.
    """
    a = _applied(name, a, "A")
    m = (lambda x: x) if preconditioner is None else _applied(name, preconditioner, "M")
    b, x0 = _common_types(name, a, b, x0)
    size = sum(x.size for x in tree_leaves(b))
    maxiter = 10 * size if maxiter is None else maxiter

    def solve(product, rhs, start=None):
        start = tree_map(jnp.zeros_like, rhs) if start is None else start
        least = jnp.maximum(jnp.abs(tol) * jnp.sqrt(_squared_norm(rhs)), atol)
        return method(product, rhs, start, least, maxiter, m)

    first = partial(solve, start=x0)
    symmetric = hermitian and not any(dtypes.is_complex(x.dtype) for x in tree_leaves(b))
    return lax.custom_linear_solve(a, b, first, first if symmetric else solve, symmetric=symmetric)


def cg(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:
    """The solution of ``A x = b`` for Hermitian positive definite ``A``, by conjugate gradients.

    Arguments:
      A: a function from trees of arrays like ``b`` to such trees, or a matrix.
      b: the right-hand side, a tree of arrays.
      x0: where to start; zeros by default.
      tol, atol: the norm of the residual is to be at most ``tol`` times that of ``b``, or ``atol``.
      maxiter: at most how many steps; ten times the size of ``b`` by default.
      M: a preconditioner, like ``A``: an approximate inverse of it.
    Returns:
      The solution, a tree like ``b``; and None.
    Raises:
      TypeError: ``A`` or ``M`` is neither a function nor a matrix, or returns another structure than it was given.
      ValueError: they are not square, or ``x0`` is not like ``b``.

    Source: Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems" (1952).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.sparse.linalg.cg(lambda x: 2 * x, jnp.array([2.0, 4.0]))[0]
    Array([1., 2.], dtype=float32)
    """
    return _solved("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M, True), None


def _conjugate_gradients(a, b, x, least, maxiter, m):
    r = _minus(b, a(x))
    z = m(r)

    def is_far(state):
        k, _, r, _, _ = state
        return (_squared_norm(r) > least**2) & (k < maxiter)

    def step(state):
        k, x, r, p, rz = state
        ap = a(p)
        alpha = rz / jnp.real(_dot(p, ap))
        x, r = _plus(x, alpha, p), _plus(r, -alpha, ap)
        z = m(r)
        rz_next = jnp.real(_dot(r, z))
        return k + 1, x, r, _plus(z, rz_next / rz, p), rz_next

    return lax.while_loop(is_far, step, (0, x, r, z, jnp.real(_dot(r, z))))[1]


def bicgstab(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
) -> tuple[Any, None]:
    """The solution of ``A x = b`` by stabilised biconjugate gradients.

    Arguments:
      A, b, x0, tol, atol, maxiter, M: as for ``cg``, but that ``A`` need not be Hermitian.
    Returns:
      The solution, a tree like ``b``; and None.
    Raises:
      TypeError, ValueError: as ``cg``.

    Source: van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of nonsymmetric
    linear systems" (1992).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.sparse.linalg.bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))[0].round(4)
    Array([1., 2.], dtype=float32)
    """
    return _solved("bicgstab", _biconjugate_gradients, A, b, x0, tol, atol, maxiter, M, False), None


def _biconjugate_gradients(a, b, x, least, maxiter, m):
    r = _minus(b, a(x))
    shadow = r

    def is_far(state):
        k, _, r, *_ = state
        return (_squared_norm(r) > least**2) & (k < maxiter)

    def step(state):
        k, x, r, p, rho = state
        p_hat = m(p)
        v = a(p_hat)
        alpha = _ratio(rho, _dot(shadow, v))
        s = _plus(r, -alpha, v)
        s_hat = m(s)
        t = a(s_hat)
        omega = _ratio(_dot(t, s), _squared_norm(t).astype(alpha.dtype))
        omega = jnp.where(_squared_norm(s) <= least**2, 0, omega)  # half of the step was enough
        x = _plus(_plus(x, alpha, p_hat), omega, s_hat)
        r = _plus(s, -omega, t)
        rho_next = _dot(shadow, r)
        beta = _ratio(rho_next, rho) * _ratio(alpha, omega)
        return k + 1, x, r, _plus(r, beta, _plus(p, -omega, v)), rho_next

    return lax.while_loop(is_far, step, (0, x, r, r, _dot(shadow, r)))[1]


# ------------------------------------------------------------------------------------------------------------
# GMRES


def gmres(
    A: Any,  # noqa: N803
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,  # noqa: N803
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """The solution of ``A x = b`` by generalised minimal residuals.

    Arguments:
      A, b, x0, tol, atol, M: as for ``cg``, but that ``A`` need not be Hermitian.
      restart: how many vectors are kept before it starts again from what it has.
      maxiter: at most how many starts; ten times the size of ``b`` by default.
      solve_method: "batched", all vectors and then one problem of least squares; or "incremental", which stops as
        soon as the residual is small.
    Returns:
      The solution, a tree like ``b``; and 0, or -1 where it is not finite, as for singular ``A``.
    Raises:
      TypeError, ValueError: as ``cg``; and where ``restart`` or ``solve_method`` is out of range.

    Source: Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric linear systems"
    (1986); orthogonalised twice, Giraud, Langou and Rozložník, "The loss of orthogonality in the Gram-Schmidt
    orthogonalization process" (2005).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> x, info = jsp.sparse.linalg.gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
    >>> x.round(4)
    Array([1., 2.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}")
    if (restart := operator.index(restart)) < 1:
        raise ValueError(f"gmres: restart must be a positive integer, got {restart}")
    method = partial(_minimal_residuals, restart=restart, early=solve_method == "incremental")
    x = _solved("gmres", method, A, b, x0, tol, atol, maxiter, M, False)
    return x, jnp.where(jnp.isfinite(_squared_norm(x)), 0, -1)


def _minimal_residuals(a, b, x, least, maxiter, m, *, restart: int, early: bool):
    size = sum(v.size for v in tree_leaves(b))
    if not size:
        return x
    restart = min(restart, size)
    mb, b_norm = jnp.sqrt(_squared_norm(m(b))), jnp.sqrt(_squared_norm(b))
    least = mb * jnp.minimum(1, least / jnp.where(b_norm > 0, b_norm, 1))  # of preconditioned residuals

    def residual(x):
        r = m(_minus(b, a(x)))
        return r, jnp.sqrt(_squared_norm(r))

    def is_far(state):
        k, _, _, norm = state
        return (norm > least) & (k < maxiter)

    def start(state):
        k, x, r, norm = state
        y, basis = _arnoldi(lambda v: m(a(v)), r, norm, restart, least if early else jnp.zeros_like(least))
        x = tree_map(lambda x, v: x + jnp.tensordot(y, v[:-1], 1).astype(x.dtype), x, basis)
        return k + 1, x, *residual(x)

    return lax.while_loop(is_far, start, (0, x, *residual(x)))[1]


def _arnoldi(a, r, norm, restart: int, least):
    """The coefficients of the best correction in a basis of the Krylov space, and the basis.

    The least squares are kept triangular by a rotation for each new column; it ends where the residual is at most
    ``least``, or the space is exhausted.
    """
    dtype = jnp.result_type(*tree_leaves(r))
    real_dtype = dtypes.to_real_dtype(dtype)
    tiny = float(dtypes.finfo(dtype).eps)

    def scaled(v, size):
        return tree_map(lambda x: x * jnp.where(size > 0, 1 / jnp.where(size > 0, size, 1), 0).astype(x.dtype), v)

    basis = tree_map(lambda x: jnp.zeros((restart + 1, *x.shape), x.dtype).at[0].set(x), scaled(r, norm))
    rows = np.arange(restart + 1)

    def goes_on(state):
        k, *_, error = state
        return (k < restart) & (error > least)

    def extend(state):
        k, basis, upper, turns, rhs, _ = state
        w = a(tree_map(lambda v: v[k], basis))
        before, h = jnp.sqrt(_squared_norm(w)), jnp.zeros(restart + 1, dtype)
        for _ in range(2):
            part = sum(
                v.reshape(restart + 1, -1).conj() @ x.ravel() for v, x in zip(tree_leaves(basis), tree_leaves(w))
            )
            part = jnp.where(rows <= k, part, 0).astype(dtype)
            w = tree_map(lambda x, v: x - jnp.tensordot(part, v, 1).astype(x.dtype), w, basis)
            h = h + part
        after = jnp.sqrt(_squared_norm(w))
        after = jnp.where(after > tiny * before, after, 0)
        basis = tree_map(lambda v, x: v.at[k + 1].set(x), basis, scaled(w, after))
        h = lax.fori_loop(0, k, lambda i, h: _rotated(h, turns[i], i), h.at[k + 1].set(after.astype(dtype)))
        size = jnp.sqrt(jnp.abs(h[k]) ** 2 + jnp.abs(h[k + 1]) ** 2)
        safe = jnp.where(size > 0, size, 1).astype(dtype)
        turn = jnp.where(size > 0, jnp.stack([h[k], h[k + 1]]) / safe, jnp.asarray([1, 0], dtype))
        h, rhs = _rotated(h, turn, k), _rotated(rhs, turn, k)
        upper, turns = upper.at[:, k].set(h[:-1]), turns.at[k].set(turn)
        error = jnp.where(after > 0, jnp.abs(rhs[k + 1]), 0).astype(real_dtype)
        return k + 1, basis, upper, turns, rhs, error

    state = (0, basis, jnp.eye(restart, dtype=dtype), jnp.zeros((restart, 2), dtype))
    rhs = jnp.zeros(restart + 1, dtype).at[0].set(norm.astype(dtype))
    k, basis, upper, _, rhs, _ = lax.while_loop(goes_on, extend, (*state, rhs, norm.astype(real_dtype)))
    rhs = jnp.where(rows[:-1] < k, rhs[:-1], 0)
    return lax.linalg.triangular_solve(upper, rhs[:, None], left_side=True)[:, 0], basis


def _rotated(h, turn, i):
    """``h`` with its elements ``i`` and ``i + 1`` rotated, by the cosine and the sine ``turn``."""
    x, y = h[i], h[i + 1]
    c, s = turn[0], turn[1]
    return h.at[i].set(jnp.conj(c) * x + jnp.conj(s) * y).at[i + 1].set(c * y - s * x)


__dir__ = _shown(globals())
