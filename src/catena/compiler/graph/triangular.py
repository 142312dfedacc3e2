"""Triangular systems with many right-hand sides, in parts: solutions of small systems, and products.

Systems of few equations are cut along their sides, which do not hang on each other: each part is a system of its own
(`library.small`), of many, one to a lane. Larger ones are cut in two (Golub and Van Loan, "Matrix Computations", 4th
ed., 3.1.4): some of the unknowns are found, what they count in the other equations is subtracted, which is a product,
and then the others are. LAPACK finds few sides fast, and takes its time for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from catena.compiler.graph.forms import HowToSolve
from catena.compiler.graph.parts import cut

MOST = 128  # equations; of more, LAPACK spends its time in products, too

Small = Callable  # of a builder, a matrix, its sides and how, to a solution


def is_cut(a, x, left: bool, small: int) -> bool:
    """Whether a system is solved in parts, whose equations and sides are at most `small`."""
    return 0 < a.shape[-1] <= MOST and x.shape[-1 if left else -2] >= small


def solve(b, a, x, how: HowToSolve, small: int, solver: Small):
    """The solution of op(A) X = B, or of X op(A) = B."""
    n, rows = a.shape[-1], x.ndim - (2 if how.left else 1)
    if n <= small:
        return _by_sides(b, a, x, how, small, solver)
    half = small * math.ceil(n / (2 * small))
    pieces = [(0, half), (half, n)]
    first = 0 if how.lower == (how.left != how.transposed) else 1  # forwards or backwards
    begun, left_over = pieces[first], pieces[1 - first]
    y = solve(b, cut(b, cut(b, a, -1, *begun), -2, *begun), cut(b, x, rows, *begun), how, small, solver)
    rest = b.map("sub", cut(b, x, rows, *left_over), _counted(b, a, y, begun, left_over, how))
    z = solve(b, cut(b, cut(b, a, -1, *left_over), -2, *left_over), rest, how, small, solver)
    return b.concatenate([y, z] if first == 0 else [z, y], rows)


def _counted(b, a, y, known: tuple, unknown: tuple, how: HowToSolve):
    """What the known unknowns `y` count in the equations of the others."""
    straight = how.left != how.transposed  # rows of A are equations
    rows, columns = (unknown, known) if straight else (known, unknown)
    factors = cut(b, cut(b, a, -1, *columns), -2, *rows)
    batch = tuple(range(a.ndim - 2))
    r, c = a.ndim - 2, a.ndim - 1
    over = c if straight else r
    if how.left:
        return b.dot_general(factors, y, (((over,), (r,)), (batch, batch)), y.dtype)
    return b.dot_general(y, factors, (((c,), (over,)), (batch, batch)), y.dtype)


def _by_sides(b, a, x, how: HowToSolve, small: int, solver: Small):
    """A system of few equations: as many sides at a time as a small one has, each a system of a batch."""
    axis = x.ndim - (1 if how.left else 2)
    count, rest = divmod(x.shape[axis], small)
    parts = []
    if count:
        whole = cut(b, x, axis, 0, count * small)
        parts.append(_joined(b, solver(b, *_as_batch(b, a, whole, how, count), how), whole.shape, how))
    if rest:
        parts.append(solver(b, a, cut(b, x, axis, count * small, x.shape[axis]), how))
    return b.concatenate(parts, axis)


def _as_batch(b, a, x, how: HowToSolve, count: int) -> tuple:
    """The matrix once for each of so many parts of the sides, and these parts."""
    *batch, m, n = x.shape
    k = len(batch)
    many = b.broadcast_in_dim(a, (*batch, count, *a.shape[-2:]), (*range(k), k + 1, k + 2))
    if not how.left:
        return many, b.reshape(x, (*batch, count, m // count, n))
    parts = b.reshape(x, (*batch, m, count, n // count))
    return many, b.transpose(parts, (*range(k), k + 1, k, k + 2))


def _joined(b, y, shape: tuple, how: HowToSolve):
    """The parts of a batch as one array again."""
    if how.left:
        k = y.ndim - 3
        y = b.transpose(y, (*range(k), k + 1, k, k + 2))
    return b.reshape(y, shape)
