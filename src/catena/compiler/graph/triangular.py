"""Triangular systems with many right-hand sides, of which vectors are made (see `emit.many_sides`).

LAPACK finds few sides fast, and takes its time for many.
"""

from __future__ import annotations

MOST = 1024  # equations, for whose unknowns a task has scratch memory


def has_many_sides(a, x, left: bool, small: int) -> bool:
    """Whether a system has so few equations, and sides from `small` on."""
    return 0 < a.shape[-1] <= MOST and x.shape[-1 if left else -2] >= small
