"""Triangular systems with many right-hand sides, of which vectors are made (see `emit.many_sides`).

LAPACK finds few sides fast, and takes its time for many.
"""

from __future__ import annotations

import math

from catena.compiler.graph.forms import HowToSolve, SmallMatrices

MOST = 1024  # equations, for whose unknowns a task has scratch memory


def has_many_sides(a, x, left: bool, small: int) -> bool:
    """Whether a system has so few equations, and sides from `small` on."""
    return 0 < a.shape[-1] <= MOST and x.shape[-1 if left else -2] >= small


def solve(b, a, x, how: HowToSolve):
    """The solution of op(A) X = B, or of X op(A) = B."""
    if not how.left:
        turned = how._replace(left=True, transposed=not how.transposed)
        return flip(b, solve(b, a, flip(b, x), turned))
    params = SmallMatrices("many_sides", math.prod(x.shape[:-2]), how)
    return b.multi("small_matrices", [a, x], [(x.shape, x.dtype)], params)[0]


def flip(b, x):
    """The last two dimensions exchanged."""
    return b.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
