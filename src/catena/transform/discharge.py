"""Programs over references as programs over values: the state goes in, the new state comes out.

Each reference becomes a ``State``, the value that it has at this point of the program; a read takes it, a write puts
another in its place. What holds jaxprs (``jit``, ``scan``, ``cond`` ...) says by its ``discharge`` rule how the state
passes through them. It is done before compilation, where the new state takes the memory of the old one, and by
transformations that meet a call with references: they differentiate and vectorise the call as a function of values.
"""

from __future__ import annotations

from catena.core.aval import AbstractRef
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr, Literal, subjaxprs, with_jaxprs
from catena.core.primitive import RuleTable
from catena.core.ref import is_reference
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.structural import get_p, swap_p
from catena.transform.memo import memoised

discharge_rules = RuleTable(
    "discharge", "'{}' takes no references: read them before, and write what it returns afterwards", optional=True
)


class State:
    """The value of a reference at some point of a program; ``written`` once it is not the first one."""

    __slots__ = ("_value", "written")

    def __init__(self, value):
        self._value, self.written = value, False

    @property
    def value(self):
        """The value now."""
        return self._value

    @value.setter
    def value(self, value):
        self._value, self.written = value, True


def values_of(operands) -> list:
    """The operands, states by their values."""
    return [x.value if type(x) is State else x for x in operands]


def has_references(closed: ClosedJaxpr) -> bool:
    """Whether a jaxpr, or one inside it, reads, writes or makes references."""
    found = closed.memo.get("has_references")
    if found is None:
        found = closed.memo["has_references"] = mentions(closed.jaxpr)
    return found


def mentions(jaxpr) -> bool:
    variables = [*jaxpr.invars, *jaxpr.constvars, *(v for e in jaxpr.eqns for v in e.outvars)]
    return any(type(v.aval) is AbstractRef for v in variables) or any(
        mentions(inner) for e in jaxpr.eqns for inner in subjaxprs(e.own_params)
    )


@memoised
def discharged(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, tuple]:
    """A jaxpr without references.

    Returns:
      A jaxpr that takes the value of each reference among the arguments, and returns after the results the new values
      of those that it writes to; and the positions of these arguments.
    """
    if not has_references(closed):
        return closed, ()
    is_state = [type(a) is AbstractRef for a in closed.in_avals]
    written: list[int] = []

    def fun(*args):
        operands = [State(x) if s else x for x, s in zip(args, is_state, strict=True)]
        outs = run(closed.jaxpr, closed.consts, operands)
        written[:] = [i for i, x in enumerate(operands) if type(x) is State and x.written]
        return [*outs, *[operands[i].value for i in written]]

    avals = [a.inner_aval if s else a for a, s in zip(closed.in_avals, is_state, strict=True)]
    info = closed.jaxpr.debug_info or DebugInfo("references", "a jaxpr")
    jaxpr, consts = trace_to_jaxpr(fun, avals, DebugInfo(info.traced_for, info.func_src_info, info.arg_names))
    return ClosedJaxpr(jaxpr, consts), tuple(written)


def pure(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr whose references are all its own, without them."""
    return discharged(closed)[0] if has_references(closed) else closed


def run(jaxpr, consts, operands) -> list:
    """Run the equations under the current trace; references are states."""
    env = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    before = context.source
    try:
        for eqn in jaxpr.eqns:
            args = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
            context.source = eqn.source or before
            out = apply(eqn.primitive, args, eqn.own_params)
            env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else (out,), strict=True))
    finally:
        context.source = before
    return [v.val if type(v) is Literal else env[v] for v in jaxpr.outvars]


def apply(primitive, args, params):
    """Apply a primitive to values and states."""
    rule = primitive.discharge
    if rule:
        return rule(*args, **params)
    if any(type(x) is State for x in args):
        raise NotImplementedError(discharge_rules.missing.format(primitive.name))
    return primitive.bind(*args, **with_jaxprs(pure, params))  # jaxprs may have references of their own


def through_values(primitive, args, params):
    """Apply a primitive that calls jaxprs to references as a function of their values, under the current trace: each is
    read, and written back where the call writes to it. The same reference twice is one state.
    """
    states = {id(x): State(get_p.bind(x, path=())) for x in args if is_reference(x)}
    outs = discharge_rules.of(primitive)(*[states.get(id(x), x) for x in args], **params)
    for x in args:
        state = states.pop(id(x), None)
        if state is not None and state.written:
            swap_p.bind(x, state.value, path=())
    return outs


# ---- calls of one jaxpr


def call_rule(primitive, parameter: str = "jaxpr"):
    """The ``discharge`` rule of a primitive that calls the jaxpr in its parameter of this name."""

    def rule(*operands, **params):
        inner, written = discharged(params[parameter])
        if params.get("donated_invars"):
            params = {k: v for k, v in params.items() if k != "donated_invars"}
        outs = primitive.bind(*values_of(operands), **{**params, parameter: inner})
        return put_back(operands, written, outs)

    return rule


def put_back(operands, written: tuple, outs: list) -> list:
    """The results proper; the new states, which follow them, are noted."""
    count = len(outs) - len(written)
    for i, x in zip(written, outs[count:], strict=True):
        operands[i].value = x
    return outs[:count]
