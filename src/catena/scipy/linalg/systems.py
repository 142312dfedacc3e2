"""Systems of linear equations, given a matrix, its factors, or two matrices on both sides (Sylvester's)."""

from __future__ import annotations

from functools import partial

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import convert
from catena.scipy.linalg.arguments import adjoint, in_columns, inexact
from catena.scipy.linalg.factorizations import cholesky
from catena.scipy.linalg.schur_forms import triangular_form
from catena.scipy.linalg.triangular import solve_triangular_sylvester, sums_or_nan
from catena.transform.jit import jit
from catena.typing import ArrayLike


@whole
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The solutions ``x`` of ``a @ x = b``.

    Arguments:
      a: a stack of matrices ``(..., n, n)``.
      b: one vector ``(n,)``, or a stack of matrices ``(..., n, k)`` of right-hand sides in columns.
      lower: which triangle of ``a`` is read where ``assume_a`` is "pos".
      overwrite_a, overwrite_b, debug, check_finite: not used.
      assume_a: what ``a`` is: "gen", "sym" and "her" are solved by LU factors, "pos", positive definite, by
        Cholesky's.
    Returns:
      An array of the shape of ``b``, broadcast with the stack ``a``.
    Raises:
      ValueError: the shapes do not fit, or ``assume_a`` is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.solve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 2.0]), assume_a="pos").round(4)
    Array([1. , 0.5], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: assume_a must be 'gen', 'sym', 'her' or 'pos', got {assume_a!r}")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b, undo = in_columns("solve", *inexact(a, b))
    return undo(convert(_solve_positive(a, b, bool(lower)), b.dtype, a.weak_type and b.weak_type))


@partial(jit, static_argnums=2)
def _solve_positive(a, b, lower: bool):
    """With the derivatives of the system, in which every element of ``a`` counts."""
    factor = cholesky(lax.stop_gradient(a), lower)
    solve = lambda _, b: _solve_cholesky(factor, b, lower)  # noqa: E731
    turned = lambda _, b: jnp.conj(_solve_cholesky(factor, jnp.conj(b), lower))  # noqa: E731
    return lax.custom_linear_solve(lambda x: a @ x, b, solve, turned)


def _solve_cholesky(c, b, lower: bool):
    first, second = (False, True) if lower else (True, False)
    b = lax.linalg.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=first, conjugate_a=first)
    return lax.linalg.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=second, conjugate_a=second)


@whole
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The solutions of systems whose matrices have these Cholesky factors.

    Arguments:
      c_and_lower: what ``cho_factor`` returned.
      b: right-hand sides, as for ``solve``.
      overwrite_b, check_finite: not used.
    Returns:
      An array of the shape of ``b``, broadcast with the stack of factors.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.cho_solve((jnp.array([[2.0, 0.0], [1.0, 1.0]]), True), jnp.array([8.0, 6.0]))
    Array([1., 2.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b, undo = in_columns("cho_solve", *inexact(c, b))
    return undo(_solve_cholesky(c, b, bool(lower)))


@whole
def lu_solve(
    lu_and_piv: tuple[Array, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The solutions of systems whose matrices have these LU factors.

    Arguments:
      lu_and_piv: what ``lu_factor`` returned.
      b: right-hand sides, as for ``solve``.
      trans: the system: 0 for the matrix, 1 for its transpose, 2 for its conjugate transpose.
      overwrite_b, check_finite: not used.
    Returns:
      An array of the shape of ``b``, broadcast with the stack of factors.
    Raises:
      ValueError: the shapes do not fit, or ``trans`` is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.lu_solve(jsp.linalg.lu_factor(jnp.array([[1.0, 2.0], [2.0, 3.0]])), jnp.array([5.0, 8.0]))
    Array([1., 2.], dtype=float32)
    """
    factors, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"lu_solve: trans must be 0, 1 or 2, got {trans!r}")
    factors, b, undo = in_columns("lu_solve", *inexact(factors, b))
    n = factors.shape[-1]
    permutation = lax.linalg.lu_pivots_to_permutation(jnp.asarray(pivots), n)
    permutation = jnp.broadcast_to(permutation, factors.shape[:-1])[..., None]
    unit_lower = {"left_side": True, "lower": True, "unit_diagonal": True}
    if trans == 0:
        b = lax.linalg.triangular_solve(factors, jnp.take_along_axis(b, permutation, -2), **unit_lower)
        return undo(lax.linalg.triangular_solve(factors, b, left_side=True))
    turned = {"transpose_a": True, "conjugate_a": trans == 2}
    b = lax.linalg.triangular_solve(factors, b, left_side=True, **turned)
    b = lax.linalg.triangular_solve(factors, b, **unit_lower, **turned)
    return undo(jnp.take_along_axis(b, jnp.argsort(permutation, -2), -2))


_TRANS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


@whole
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: None = None,
    check_finite: bool = True,
) -> Array:
    """The solutions of systems with triangular matrices.

    Arguments:
      a: a stack of matrices ``(..., n, n)``, of which one triangle is read.
      b: right-hand sides, as for ``solve``.
      trans: the system: 0 or "N" for the matrix, 1 or "T" for its transpose, 2 or "C" for its conjugate transpose.
      lower: which triangle is read.
      unit_diagonal: whether to take the diagonal of ``a`` for ones.
      overwrite_b, debug, check_finite: not used.
    Returns:
      An array of the shape of ``b``, broadcast with the stack ``a``.
    Raises:
      ValueError: the shapes do not fit, or ``trans`` is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.solve_triangular(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]), lower=True)
    Array([1., 2.], dtype=float32)
    """
    if trans not in _TRANS:
        raise ValueError(f"solve_triangular: trans must be 0, 1, 2, 'N', 'T' or 'C', got {trans!r}")
    turn = _TRANS[trans]
    a, b, undo = in_columns("solve_triangular", *inexact(a, b))
    turned = {"transpose_a": turn > 0, "conjugate_a": turn == 2}
    x = lax.linalg.triangular_solve(a, b, left_side=True, lower=lower, unit_diagonal=unit_diagonal, **turned)
    return undo(x)


@whole
def solve_sylvester(
    A: ArrayLike,  # noqa: N803
    B: ArrayLike,  # noqa: N803
    C: ArrayLike,  # noqa: N803
    *,
    method: str = "schur",
    tol: float = 1e-8,
) -> Array:
    """The solutions ``X`` of Sylvester's equation ``A X + X B = C``.

    Arguments:
      A: a stack of matrices ``(..., m, m)``.
      B: a stack of matrices ``(..., n, n)``.
      C: a stack of matrices ``(..., m, n)``.
      method: "schur", by triangular forms; or "eigen", by eigenvectors, for matrices that have a basis of them.
      tol: sums of an eigenvalue of ``A`` and one of ``B`` that are as small as this, or as rounding errors of the
        greatest eigenvalues, count as 0.
    Returns:
      An array like ``C``; NaN where a sum of eigenvalues is 0, so that there is no one solution.
    Raises:
      ValueError: the shapes do not fit, or the method is unknown.

    Source: Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.linalg.solve_sylvester(jnp.array([[1.0]]), jnp.array([[2.0]]), jnp.array([[6.0]]))
    Array([[2.]], dtype=float32)
    """
    a, b, c = inexact(A, B, C)
    if min(a.ndim, b.ndim, c.ndim) < 2 or a.shape[-2:] != 2 * c.shape[-2:-1] or b.shape[-2:] != 2 * c.shape[-1:]:
        raise ValueError(
            "solve_sylvester: shapes must be A (..., m, m), B (..., n, n) and C (..., m, n), got "
            f"{a.shape}, {b.shape} and {c.shape}"
        )
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: method must be 'schur' or 'eigen', got {method!r}")
    if not c.size:
        return c
    stack = lax.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*stack, *x.shape[-2:])) for x in (a, b, c))
    return _sylvester(a, b, c, method, float(tol))


@partial(jit, static_argnums=(3, 4))
def _sylvester(a, b, c, method: str, tol: float):
    solve = {"schur": _sylvester_by_schur, "eigen": _sylvester_by_eigenvectors}[method]
    turned = (jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2))
    return lax.custom_linear_solve(
        lambda x: a @ x + x @ b, c, lambda _, c: solve(a, b, c, tol), lambda _, c: solve(*turned, c, tol)
    )


def _sylvester_by_schur(a, b, c, tol: float):
    """The equation between triangular forms: ``R Y + Y S = U^H C V``."""
    (r, u), (s, v) = triangular_form(a), triangular_form(b)
    return _like(c, u @ solve_triangular_sylvester(r, s, adjoint(u) @ c.astype(u.dtype) @ v, tol) @ adjoint(v))


def _sylvester_by_eigenvectors(a, b, c, tol: float):
    """The equation between diagonal forms."""
    (r, u), (s, v) = jnp.linalg.eig(a), jnp.linalg.eig(b)
    y = jnp.linalg.solve(u, c.astype(u.dtype) @ v) / sums_or_nan(r, s, tol)
    return _like(c, jnp.linalg.solve(jnp.swapaxes(v, -1, -2), (u @ y).mT).mT)


def _like(c, x):
    return x if dtypes.is_complex(c.dtype) else jnp.real(x)
