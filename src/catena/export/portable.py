"""Programs without what only this process knows: rules of users are left out, where the program is what they are for.

A function with derivatives or a vectorisation of its own (``custom_jvp``, ``custom_vjp``, ``custom_vmap``) becomes what
it computes: what was exported is differentiated by the derivative that was exported with it.
"""

from __future__ import annotations

from catena.core.aval import AbstractRef
from catena.core.context import context
from catena.core.dead_code import dead_code_elimination
from catena.core.jaxpr import ClosedJaxpr, Literal, subjaxprs, with_jaxprs
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.export.callees import CALLEES
from catena.lax import selection
from catena.transform.discharge import pure
from catena.transform.memo import memoised

# Calls in whose place their program stands: the parameter that holds it.
INLINED = {
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "linear_call": "fun",
    **dict.fromkeys("composite compute_on fused_call xla_metadata_call call_exported".split(), "jaxpr"),
}
DROPPED = {"dce_sink", "control_dep"}  # words to a compiler
FORGOTTEN = {"device_put", "sharding_constraint"}  # whoever calls the program has other devices
COMPOSED = {"select_and_scatter": selection.compose}  # whose parameters are more than a file can hold
CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "buffer_callback"}
KEPT = {"jit": ("name", "jaxpr"), "remat2": ("jaxpr", "prevent_cse", "differentiated")}  # of parameters
ADDED = {"remat2": {"policy": None}}  # whoever differentiates chose what to keep already


@memoised
def portable(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program as it can be written down.

    Raises:
      NotImplementedError: it calls Python functions or users' primitives, or takes references.
    """
    if any(type(a) is AbstractRef for a in closed.in_avals):
        raise NotImplementedError("a function that takes references cannot be exported: pass their values")
    closed = pure(closed)
    place = closed.jaxpr.debug_info.func_src_info if closed.jaxpr.debug_info else "a jaxpr"
    jaxpr, consts = trace_to_jaxpr(lambda *args: run(closed, args), closed.in_avals, DebugInfo("export", place))
    return ClosedJaxpr(jaxpr, consts)


def run(closed: ClosedJaxpr, args) -> list:
    """Run the equations under the current trace, each as it can be written down."""
    jaxpr = closed.jaxpr
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))
    before = context.source
    try:
        for eqn in jaxpr.eqns:
            values = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            context.source = eqn.source or before
            env.update(zip(eqn.outvars, apply(eqn, values), strict=True))
    finally:
        context.source = before
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def apply(eqn, values: list) -> list:
    """The results of an equation."""
    primitive, params = eqn.primitive, eqn.own_params
    if primitive.name in INLINED:
        return run(params[INLINED[primitive.name]], values)
    if primitive.name == "custom_linear_solve":
        lengths = params["const_lengths"]
        first, end = lengths.matvec + lengths.vecmat, sum(lengths)
        return run(params["jaxprs"].solve, [*values[first : first + lengths.solve], *values[end:]])
    if primitive.name in DROPPED:
        return []
    if primitive.name in FORGOTTEN:
        return values
    if primitive.name in COMPOSED:
        return [COMPOSED[primitive.name](*values, **params)]
    check_own(primitive)
    if primitive.name not in CALLEES and any(True for _ in subjaxprs(params)):
        raise NotImplementedError(f"a function with {primitive.name!r} in it cannot be exported")
    names = KEPT.get(primitive.name, params)
    kept = {k: v for k, v in params.items() if k in names}
    params = with_jaxprs(portable, kept) | ADDED.get(primitive.name, {})
    outs = primitive.bind(*values, **params)
    return outs if primitive.multiple_results else [outs]


def check_own(primitive: Primitive) -> None:
    """Raise where a primitive calls a Python function, or means something in this process only."""
    if primitive.name in CALLBACKS:
        raise NotImplementedError(
            f"a function that calls Python ({primitive.name}) cannot be exported: the program would have to hold code"
        )
    if not primitive.own:
        raise NotImplementedError(
            f"the primitive {primitive.name!r} is a user's own: other processes do not know what it means. Write the "
            "function that is exported without it"
        )


def kept_arguments(closed: ClosedJaxpr) -> tuple:
    """The numbers of the arguments that a program reads."""
    _, read = dead_code_elimination(closed.jaxpr, [True] * len(closed.jaxpr.outvars))
    return tuple(i for i, used in enumerate(read) if used)
