"""Dead equations of a jaxpr, removed before lowering; equal ones are merged by the graph's builder."""

from __future__ import annotations


def simplify(closed_jaxpr):
    """The closed jaxpr without equations whose results nobody reads (effects stay)."""
    jaxpr = closed_jaxpr.jaxpr
    needed = {id(v) for v in jaxpr.outvars}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(id(v) in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(id(v) for v in eqn.invars)
    if len(kept) == len(jaxpr.eqns):
        return closed_jaxpr
    return closed_jaxpr.replace(jaxpr=jaxpr.replace(eqns=kept[::-1]))
