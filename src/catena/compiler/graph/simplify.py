"""Dead equations of a jaxpr, removed before lowering; equal ones are merged by the graph's builder."""

from __future__ import annotations

from catena.core.dead_code import pruned


def simplify(closed_jaxpr):
    """The closed jaxpr without equations, and results of loops, that nobody reads (effects stay)."""
    return pruned(closed_jaxpr, [True] * len(closed_jaxpr.out_avals))
