"""The checker of jaxprs: variables bound once before they are read, types as the primitives give them."""

from catena.core.aval import same_type
from catena.core.context import context
from catena.core.errors import JaxprTypeError
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, subjaxprs, type_of_results
from catena.core.lazy import load


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise JaxprTypeError where a jaxpr, or one inside it, is not well formed."""
    stack = [jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr]
    while stack:
        current = stack.pop()
        check_one(current)
        for eqn in current.eqns:
            stack.extend(subjaxprs(eqn.own_params))


def check_if_enabled(jaxpr: Jaxpr) -> Jaxpr:
    """``jaxpr``, checked where the flag ``jax_enable_checks`` is set."""
    if context.enable_checks:
        check_jaxpr(jaxpr)
    return jaxpr


def check_one(jaxpr: Jaxpr) -> None:
    """Check one jaxpr without those inside it."""
    bound: set[Var] = set()
    for v in [*jaxpr.constvars, *jaxpr.invars]:
        bind(v, bound, "an argument")
    for eqn in jaxpr.eqns:
        for v in eqn.invars:
            check_read(v, bound, eqn)
        check_types(eqn)
        check_call(eqn)
        for v in eqn.outvars:
            bind(v, bound, shown(eqn))
    for v in jaxpr.outvars:
        check_read(v, bound, None)


def bind(v, bound: set, where: str):
    if v in bound:
        raise JaxprTypeError(f"a variable of type {v.aval} is bound twice, the second time by {where}")
    bound.add(v)


def check_read(v, bound: set, eqn):
    if type(v) is not Literal and v not in bound:
        where = shown(eqn) if eqn is not None else "the results"
        raise JaxprTypeError(f"a variable of type {v.aval} is read in {where} before it is bound")
    if type(v) is Literal and v.aval.shape:
        raise JaxprTypeError(f"a literal must be a scalar, got {v.aval}")


def check_call(eqn):
    """A call passes what the called jaxpr takes."""
    called = eqn.own_params.get(CALLS.get(eqn.primitive.name))
    if called is None:
        return
    taken, given = called.in_avals, [v.aval for v in eqn.invars]
    if len(taken) != len(given) or not all(map(same_type, taken, given)):
        raise JaxprTypeError(f"the called jaxpr takes {taken}, the equation passes {given}: {shown(eqn)}")


CALLS = {"jit": "jaxpr", "remat2": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}


def check_types(eqn):
    expected = type_of_results(eqn.primitive, [v.aval for v in eqn.invars], eqn.own_params)
    if len(expected) != len(eqn.outvars):
        raise JaxprTypeError(f"{len(eqn.outvars)} results where the primitive gives {len(expected)}: {shown(eqn)}")
    for v, aval in zip(eqn.outvars, expected, strict=True):
        if not same_type(v.aval, aval):
            raise JaxprTypeError(f"a result is annotated {v.aval}, but the primitive gives {aval}: {shown(eqn)}")
    effects = eqn.primitive.effects(tuple([v.aval for v in eqn.invars]), eqn.own_params)
    if effects != eqn.effects:
        raise JaxprTypeError(
            f"the equation has effects {set(eqn.effects)}, but the primitive {set(effects)}: {shown(eqn)}"
        )


def shown(eqn: Eqn) -> str:
    """An equation as jaxprs print it."""
    return load("catena.core.printer").equation_text(eqn)
