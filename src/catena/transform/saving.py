"""What a checkpointed function keeps: its jaxpr returning what a policy saves, and taking it instead of computing it.

Policies look at operations one by one. Branches and loop bodies are entered: what is saved in them becomes further
results of the branch or the loop (the ``save`` rule of their primitives), so that it need not be computed again either.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.named import NamedTuple
from catena.core.primitive import RuleTable
from catena.transform.jit_primitive import jit_p
from catena.transform.linearize import partial_eval_jaxpr
from catena.transform.memo import memoised

save_rules = RuleTable("save", optional=True)
# A user's rules, in JAX's convention: ``rule(policy, unknown, there, eqn)`` gives the equation that is run forward
# and the one that is run backward, or None, for each result whether it is unknown and whether the latter gives it,
# and the variables that the forward one gives besides, for the backward one.
split_rules = RuleTable("split_by_policy", optional=True)


class Saving(NamedTuple):
    """A jaxpr in two versions.

    ``forward`` returns, after the results, the ``count`` saved values; ``rest`` takes these after the arguments.
    """

    forward: ClosedJaxpr
    rest: ClosedJaxpr
    count: int  # type: ignore[assignment]  # nobody counts in these tuples


class SavedEquation(NamedTuple):
    """An equation in two versions: ``forward`` gives the variables ``saved`` besides its results, ``rest`` takes them.
    ``unknown`` says which results are unknown in the forward pass, where a rule knows.
    """

    forward: list[Eqn]
    saved: list
    rest: list[Eqn]
    unknown: tuple | None = None


class Inner:
    """What a policy saves of the jaxprs inside an equation."""

    __slots__ = ("policy",)

    def __init__(self, policy: Callable):
        self.policy = policy

    def __call__(self, closed: ClosedJaxpr, unknown: tuple) -> Saving:
        return saving(closed, unknown, self.policy)


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
        own = eqn.primitive.split_by_policy is None
        if own and not any(flags) and policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.own_params):
            forward.append(eqn)
            saved += eqn.outvars
            continue
        parts = saved_equation(eqn, flags, policy)
        forward += parts.forward
        saved += parts.saved
        rest += parts.rest
        if any(flags):
            unknown_out = parts.unknown or unknown_results(eqn, flags)
            unknown_vars.update(v for v, u in zip(eqn.outvars, unknown_out, strict=True) if u)
    forward_jaxpr = jaxpr.replace(outvars=[*jaxpr.outvars, *saved], eqns=forward)
    rest_jaxpr = jaxpr.replace(invars=[*jaxpr.invars, *saved], eqns=rest)
    return Saving(ClosedJaxpr(forward_jaxpr, inlined.consts), ClosedJaxpr(rest_jaxpr, inlined.consts), len(saved))


def saved_equation(eqn: Eqn, unknown: tuple, policy: Callable) -> SavedEquation:
    """The two versions of an equation of which the policy does not save all results."""
    if eqn.primitive.split_by_policy is not None:
        return split_by_rule(eqn, unknown, policy)
    parts = eqn.primitive.save and eqn.primitive.save(eqn, unknown, Inner(policy))
    return parts or SavedEquation([eqn], [], [eqn])


def split_by_rule(eqn: Eqn, unknown: tuple, policy: Callable) -> SavedEquation:
    """The two versions by a user's rule. What the backward one does not give, though it is known, is saved."""
    rule = eqn.primitive.split_by_policy
    known, later, unknown_out, later_out, residuals = rule(policy, list(unknown), [True] * len(unknown), eqn)
    forward, rest = [known] if known else [], [later] if later else []
    bound = {v for e in forward for v in e.outvars}
    if later and any(unknown_out):
        forward.append(later.replace(outvars=[Var(v.aval) if v in bound else v for v in later.outvars]))
    saved = [v for v in residuals if v in bound]
    saved += [
        v for v, u, again in zip(eqn.outvars, unknown_out, later_out, strict=True)
        if not u and not again and v not in saved
    ]  # fmt: skip
    return SavedEquation(forward, saved, rest, tuple(unknown_out))


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
        inner = inline_calls(eqn.own_params["jaxpr"])
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
