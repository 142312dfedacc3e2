"""Dead code: equations, and results of loops and calls, that nobody reads."""

from collections.abc import Callable

from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var
from catena.core.primitive import RuleTable

prune_rules = RuleTable("prune", optional=True)


class Deciding:
    """A user's ``prune``, which is asked of every equation with its primitive, and decides whether anything is left:
    ``rule(used, eqn)`` returns for each operand whether it is still read, and the equation, or None.
    """

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, eqn: Eqn, used: list[bool]) -> Eqn | None:
        _, left = self.rule(used, eqn)
        bound = () if left is None else left.outvars
        lost = [i for i, (v, u) in enumerate(zip(eqn.outvars, used, strict=True)) if u and v not in bound]
        if lost:
            raise ValueError(f"the rule for dead code of '{eqn.primitive}' leaves out result {lost[0]}, which is used")
        return left


def live_part(eqn: Eqn, used: list[bool]) -> Eqn | None:
    """What is needed of an equation, of whose results these are used: effects, and what gives the results."""
    prune = eqn.primitive.prune
    if type(prune) is Deciding:
        return prune(eqn, used)
    if not any(used) and not eqn.effects:
        return None
    return eqn if prune is None or all(used) else prune(eqn, used)


def dead_code_elimination(jaxpr: Jaxpr, used_outputs) -> tuple[Jaxpr, list[bool]]:
    """The jaxpr without the results that are not used and the equations that only they need.

    An equation some of whose results are not used is handed to its primitive's ``prune``, which may make it
    smaller. Effects stay, unless a user's rule says otherwise.

    Returns:
      The smaller jaxpr (same constvars), and for each argument whether it is still read.
    """
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    needed = {v for v in outvars if type(v) is Var}
    eqns = []
    for eqn in reversed(jaxpr.eqns):
        live = live_part(eqn, [v in needed for v in eqn.outvars])
        if live is not None:
            eqns.append(live)
            needed.update(v for v in live.invars if type(v) is Var)
    used_inputs = [v in needed for v in jaxpr.invars]
    invars = [v for v, used in zip(jaxpr.invars, used_inputs, strict=True) if used]
    return Jaxpr(jaxpr.constvars, invars, outvars, eqns[::-1], None, jaxpr.debug_info), used_inputs


def pruned(closed: ClosedJaxpr, used_outputs) -> ClosedJaxpr:
    """The jaxpr with the results that are used, all its arguments, and only the equations that these need."""
    jaxpr = closed.jaxpr
    smaller, _ = dead_code_elimination(jaxpr, used_outputs)
    whole = Jaxpr(jaxpr.constvars, jaxpr.invars, smaller.outvars, smaller.eqns, None, jaxpr.debug_info)
    return ClosedJaxpr(whole, closed.consts)


def prune_call(eqn, used):
    """``prune`` for a primitive that calls the jaxpr in its parameter ``jaxpr``."""
    closed = eqn.own_params["jaxpr"]
    key = ("prune_call", tuple(used))
    found = closed.memo.get(key)
    if found is None:
        smaller, read = dead_code_elimination(closed.jaxpr, used)
        found = closed.memo[key] = ClosedJaxpr(smaller, closed.consts), read
    smaller, read = found
    params = {**eqn.own_params, "jaxpr": smaller}
    if params.get("donated_invars"):
        params["donated_invars"] = tuple(d for d, r in zip(params["donated_invars"], read, strict=True) if r)
    invars = [v for v, r in zip(eqn.invars, read, strict=True) if r]
    outvars = [v for v, u in zip(eqn.outvars, used, strict=True) if u]
    return eqn.replace(invars=invars, outvars=outvars, params=params)
