"""Equations between triangular matrices, solved column by column, each column by one triangular system.

A triangular matrix that satisfies a polynomial equation with another one is known column by column: with its first
``j`` columns, the equation is linear in the next. This is Björck and Hammarling's square root, Parlett's recurrence
and Bartels and Stewart's solution of Sylvester's equation alike; the work is that of a few products of matrices.
"""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes


def complex_schur(a) -> list:
    """The triangular Schur form and its unitary vectors."""
    return lax.linalg.schur(a.astype(dtypes.to_complex_dtype(a.dtype)))


def diagonal_of(t):
    """The diagonals of square matrices."""
    return jnp.diagonal(t, axis1=-2, axis2=-1)


def on_diagonal(d):
    """Matrices with these diagonals."""
    return d[..., None] * jnp.eye(d.shape[-1], dtype=d.dtype)


def shifted(x, d, j):
    """``x + d[j]`` times the identity."""
    return x + column_of(d[..., None, :], j) * jnp.eye(x.shape[-1], dtype=x.dtype)


def by_columns(d, system, right):
    """The upper triangular matrix ``f`` with this diagonal whose column ``j``, above its diagonal, solves
    ``system(f, j) @ column == right(f, j)``; these read the columns of ``f`` before.

    Where a diagonal element of the system is 0, it is taken for 1.
    """
    n = d.shape[-1]
    rows = np.arange(n)
    identity = jnp.eye(n, dtype=d.dtype)

    def column(j, f):
        above = rows < j
        matrix = jnp.where(above[:, None] & above[None, :], system(f, j), identity)
        matrix = matrix + on_diagonal((diagonal_of(matrix) == 0).astype(d.dtype))
        wanted = jnp.where(above[:, None], right(f, j), 0)
        found = lax.linalg.triangular_solve(matrix, wanted, left_side=True)
        return f + jnp.where(rows[None, :] == j, found, 0)

    return lax.fori_loop(1, n, column, on_diagonal(d))


def column_of(x, j):
    """Column ``j`` of matrices, as matrices of one column."""
    return lax.dynamic_index_in_dim(x, j, x.ndim - 1, keepdims=True)


def sums_or_nan(r, s, tol: float):
    """The sums of eigenvalues ``r`` and ``s``, a column for each of ``s``; NaN for those that count as 0."""
    sums = r[..., :, None] + s[..., None, :]
    greatest = jnp.max(jnp.abs(r), -1) + jnp.max(jnp.abs(s), -1)
    least = jnp.maximum(tol, 10 * float(dtypes.finfo(r.dtype).eps) * greatest)
    return jnp.where(jnp.abs(sums) <= least[..., None, None], jnp.nan, sums)


def solve_triangular_sylvester(r, s, c, tol: float):
    """The solution of ``r y + y s = c`` for upper triangular ``r`` and ``s``; NaN where there is not one."""
    n = s.shape[-1]
    sums = sums_or_nan(diagonal_of(r), diagonal_of(s), tol)

    def column(j, y):
        matrix = jnp.triu(r, 1) + on_diagonal(column_of(sums, j)[..., 0])
        wanted = column_of(c, j) - y @ column_of(s, j)
        found = lax.linalg.triangular_solve(matrix, wanted, left_side=True)
        return y + jnp.where(np.arange(n)[None, :] == j, found, 0)

    return lax.fori_loop(0, n, column, jnp.zeros_like(c))
