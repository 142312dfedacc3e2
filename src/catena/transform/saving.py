"""What a checkpointed function keeps: its jaxpr returning what a policy saves, and taking it instead of computing it.

Policies look at operations one by one. Branches and loop bodies are entered: what is saved in them becomes further
results of the branch or the loop (the ``save`` rule of their primitives), so that it need not be computed again either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.primitive import RuleTable
from catena.transform.jit_primitive import jit_p
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import memoised

save_rules = RuleTable("save", optional=True)


class Saving(NamedTuple):
    """A jaxpr in two versions.

    ``forward`` returns, after the results, the ``count`` saved values; ``rest`` takes these after the arguments.
    """

    forward: ClosedJaxpr
    rest: ClosedJaxpr
    count: int  # type: ignore[assignment]  # nobody counts in these tuples


class SavedEquation(NamedTuple):
    """An equation in two versions: ``forward`` gives the variables ``saved`` after its results, ``rest`` takes them."""

    forward: Eqn
    saved: list
    rest: Eqn


@memoised
def saving(closed: ClosedJaxpr, unknown: tuple, policy: Callable) -> Saving:
    """The two versions of a jaxpr; ``unknown`` says for each argument whether it is unknown in the forward pass."""
    inlined = inline_calls(closed)
    jaxpr = inlined.jaxpr
    unknown_vars = {v for v, u in zip(jaxpr.invars, unknown, strict=True) if u}
    forward: list[Eqn] = []
    rest: list[Eqn] = []
    saved: list[Var] = []
    for eqn in jaxpr.eqns:
        flags = tuple([type(v) is Var and v in unknown_vars for v in eqn.invars])
        if not any(flags) and policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params):
            forward.append(eqn)
            saved += eqn.outvars
            continue
        parts = eqn.primitive.save and eqn.primitive.save(eqn, flags, lambda body, flags: saving(body, flags, policy))
        parts = parts or SavedEquation(eqn, [], eqn)
        forward.append(parts.forward)
        saved += parts.saved
        rest.append(parts.rest)
        if any(flags):
            unknown_vars.update(v for v, u in zip(eqn.outvars, unknown_results(eqn, flags), strict=True) if u)
    forward_jaxpr = jaxpr.replace(outvars=[*jaxpr.outvars, *saved], eqns=forward)
    rest_jaxpr = jaxpr.replace(invars=[*jaxpr.invars, *saved], eqns=rest)
    return Saving(ClosedJaxpr(forward_jaxpr, inlined.consts), ClosedJaxpr(rest_jaxpr, inlined.consts), len(saved))


def unknown_results(eqn: Eqn, unknown: tuple) -> tuple:
    """Which results of an equation depend on its unknown operands."""
    if eqn.primitive.partial_eval is None or not eqn.outvars:
        return (True,) * len(eqn.outvars)
    arguments = {v: u for v, u in zip(eqn.invars, unknown, strict=True) if type(v) is Var}
    alone = ClosedJaxpr(Jaxpr([], list(arguments), eqn.outvars, [eqn]))
    return partial_eval_jaxpr(alone, tuple(arguments.values()), False)[2]


@memoised
def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with the bodies of ``jit`` equations in place of the calls."""
    if not any(e.primitive is jit_p for e in closed.eqns):
        return ClosedJaxpr(closed.jaxpr, closed.consts)  # not itself, which remembers it
    consts = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    eqns: list[Eqn] = []
    env: dict[Var, object] = {}
    for eqn in closed.eqns:
        read = [env.get(v, v) if type(v) is Var else v for v in eqn.invars]
        if eqn.primitive is not jit_p:
            eqns.append(eqn._replace(invars=read))
            continue
        inner = inline_calls(eqn.params["jaxpr"])
        local = dict(zip(inner.jaxpr.invars, read, strict=True))
        for v, c in zip(inner.jaxpr.constvars, inner.consts, strict=True):
            local[v] = Var(v.aval)
            consts[local[v]] = c
        for inner_eqn in inner.eqns:
            fresh = [Var(v.aval) for v in inner_eqn.outvars]
            atoms = [local[v] if type(v) is Var else v for v in inner_eqn.invars]
            local.update(zip(inner_eqn.outvars, fresh, strict=True))
            eqns.append(inner_eqn._replace(invars=atoms, outvars=fresh))
        results = [local[v] if type(v) is Var else v for v in inner.jaxpr.outvars]
        env.update(zip(eqn.outvars, results, strict=True))
    outvars = [env.get(v, v) if type(v) is Var else v for v in closed.jaxpr.outvars]
    jaxpr = Jaxpr(list(consts), closed.jaxpr.invars, outvars, eqns, None, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, list(consts.values()))
