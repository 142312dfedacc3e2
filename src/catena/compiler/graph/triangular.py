"""Triangular systems with many right-hand sides, in parts: solutions of small systems, and products.

Systems of few equations are cut along their sides, which do not hang on each other: each part is a system of its own
(`library.small`), whose vectors lie along the sides, and all of them have one matrix. Larger ones are cut in two (Golub
and Van Loan, "Matrix Computations", 4th ed., 3.1.4): some of the unknowns are found, what they count in the other
equations is subtracted, which is a product, and then the others are. LAPACK finds few sides fast, and takes its time
for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from catena.compiler.graph.forms import HowToSolve
from catena.compiler.graph.parts import cut

MOST = 512  # equations; of more, LAPACK spends its time in products, too, and so many steps take long to plan
SIDES = 64  # of a part, which lies in a near cache

Small = Callable  # of a builder, a matrix, its sides and how, to a solution


def is_cut(a, x, left: bool, small: int) -> bool:
    """Whether a system is solved in parts, whose equations and sides are at most `small`."""
    return 0 < a.shape[-1] <= MOST and x.shape[-1 if left else -2] >= small


def solve(b, a, x, how: HowToSolve, small: int, solver: Small):
    """The solution of op(A) X = B, or of X op(A) = B."""
    n, rows = a.shape[-1], x.ndim - (2 if how.left else 1)
    if n <= small:
        return _by_sides(b, a, x, how, solver)
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


def _by_sides(b, a, x, how: HowToSolve, solver: Small):
    """A system of few equations, whose sides are columns then: as many at a time as lie in a near cache."""
    if not how.left:
        turned = how._replace(left=True, transposed=not how.transposed)
        return flip(b, _by_sides(b, a, flip(b, x), turned, solver))
    axis = x.ndim - 1
    count, rest = divmod(x.shape[axis], SIDES)
    parts = []
    if count:
        whole = cut(b, x, axis, 0, count * SIDES)
        parts.append(_joined(b, solver(b, a, _in_parts(b, whole, count), how), whole.shape))
    if rest:
        parts.append(solver(b, a, cut(b, x, axis, count * SIDES, x.shape[axis]), how))
    return b.concatenate(parts, axis)


def flip(b, x):
    """The last two dimensions exchanged."""
    return b.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _in_parts(b, x, count: int):
    """So many parts of the sides, as members of a batch."""
    *batch, m, n = x.shape
    k = len(batch)
    return b.transpose(b.reshape(x, (*batch, m, count, n // count)), (*range(k), k + 1, k, k + 2))


def _joined(b, y, shape: tuple):
    """The parts of a batch as one array again."""
    k = y.ndim - 3
    return b.reshape(b.transpose(y, (*range(k), k + 1, k, k + 2)), shape)
