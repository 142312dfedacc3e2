"""A program without calls: bodies stand where they are called, and each loop has bodies of its own.

Then each variable is one value, and what is known of it can be written down in one table for the whole program.
"""

from __future__ import annotations

from catena.core.factors import AS_CALLED, rule_of
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var

BODIES = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")
LOOPS = {"scan": ("jaxpr",), "while": ("cond_jaxpr", "body_jaxpr"), "cond": ("branches",)}


def called(eqn: Eqn):
    """The jaxpr that an equation calls on its operands, or ``None``."""
    if eqn.primitive.name in LOOPS or eqn.primitive.name == "shard_map" or rule_of(eqn.primitive) is not AS_CALLED:
        return None
    body = next((j for name in BODIES if (j := eqn.own_params.get(name)) is not None), None)
    jaxpr = getattr(body, "jaxpr", body)
    if not isinstance(jaxpr, Jaxpr):
        return None
    fits = alike(jaxpr.invars, eqn.invars) and alike(jaxpr.outvars, eqn.outvars)
    return body if fits else None


def alike(some: list, others: list) -> bool:
    """Whether these are values of the same shapes."""
    shapes = [[getattr(v.aval, "shape", None) for v in values] for values in (some, others)]
    return shapes[0] == shapes[1]


def flattened(closed: ClosedJaxpr, called=called) -> ClosedJaxpr:
    """The program with calls inlined. ``called`` says which jaxpr an equation calls."""
    constants: dict[Var, object] = {}
    eqns: list[Eqn] = []

    def copied(jaxpr: Jaxpr, consts, args: list) -> list:
        env = dict(zip(jaxpr.invars, args, strict=True))
        for v, value in zip(jaxpr.constvars, consts, strict=True):
            env[v] = Var(v.aval)
            constants[env[v]] = value
        read = lambda x: x if type(x) is Literal else env[x]  # noqa: E731
        for eqn in jaxpr.eqns:
            body, operands = called(eqn), [read(x) for x in eqn.invars]
            if body is not None:
                outs = copied(getattr(body, "jaxpr", body), getattr(body, "consts", ()), operands)
            else:
                outs = [Var(v.aval) for v in eqn.outvars]
                own = {name: own_bodies(eqn.own_params[name], called) for name in LOOPS.get(eqn.primitive.name, ())}
                eqns.append(eqn._replace(invars=operands, outvars=outs, own_params={**eqn.own_params, **own}))
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(x) for x in jaxpr.outvars]

    invars = [Var(v.aval) for v in closed.jaxpr.invars]
    outvars = copied(closed.jaxpr, closed.consts, list(invars))
    jaxpr = Jaxpr(list(constants), invars, outvars, eqns, closed.jaxpr.effects, closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, list(constants.values()))


def own_bodies(value, called):
    """The bodies of a loop, for this loop alone."""
    if isinstance(value, tuple):
        return tuple(flattened(x, called) for x in value)
    return flattened(value, called)
