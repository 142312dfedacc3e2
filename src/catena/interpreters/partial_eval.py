"""Tracing to jaxprs, and jaxprs without what nobody reads, in JAX's manner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from catena.core.dead_code import Deciding as _Deciding
from catena.core.dead_code import dead_code_elimination as _without_dead_code
from catena.core.dead_code import prune_rules as _prune_rules
from catena.core.jaxpr import Eqn as _Eqn
from catena.core.jaxpr import Jaxpr as _Jaxpr
from catena.core.jaxpr import Var as _Var
from catena.core.staging import DebugInfo as _DebugInfo
from catena.core.staging import JaxprTracer as JaxprTracer
from catena.core.staging import trace_to_jaxpr as _trace_to_jaxpr
from catena.core.trace import leaf_value as _leaf_value
from catena.core.unbuilt import absent as _absent
from catena.core.zeros import get_aval as _get_aval
from catena.interpreters.rules import Rules as _Rules
from catena.transform.linearize import linearize_linear as _run_on_tape
from catena.transform.linearize import partial_eval_rules as _partial_eval_rules
from catena.transform.linearize import program_to_jaxpr as _tape_to_jaxpr
from catena.transform.saving import split_rules as _split_rules

DynamicJaxprTracer = JaxprTracer  # here all tracing to jaxprs is of one kind
Val = Any


def dce_jaxpr(jaxpr, used_outputs, instantiate=False) -> tuple:
    """A jaxpr without the results that are not used, and the equations that only they need.

    Arguments:
      jaxpr: a ``Jaxpr``.
      used_outputs: a bool, or one for each result.
      instantiate: a bool, or one for each argument: whether it stays though nobody reads it.
    Returns:
      The smaller jaxpr, and for each argument of the first whether it is among those of the second.

    >>> import catena as jax
    >>> from catena.interpreters import partial_eval as pe
    >>> jaxpr = jax.make_jaxpr(lambda x, y: (x + 1, y * 2))(1.0, 2.0).jaxpr
    >>> pe.dce_jaxpr(jaxpr, [False, True])
    ({ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }, [False, True])
    """
    used_outputs = _each(used_outputs, len(jaxpr.outvars))
    instantiate = _each(instantiate, len(jaxpr.invars))
    smaller, used = _without_dead_code(jaxpr, used_outputs)
    kept = [u or i for u, i in zip(used, instantiate, strict=True)]
    return smaller.replace(invars=[v for v, k in zip(jaxpr.invars, kept, strict=True) if k]), kept


def dce_jaxpr_consts(jaxpr, used_outputs, instantiate=False) -> tuple:
    """`dce_jaxpr` that leaves out constants, too.

    Returns:
      The smaller jaxpr, and for each constant and each argument whether it is still there.
    """
    smaller, kept = dce_jaxpr(jaxpr, used_outputs, instantiate)
    read = {v for atoms in (*(e.invars for e in smaller.eqns), smaller.outvars) for v in atoms if isinstance(v, _Var)}
    used_consts = [v in read for v in jaxpr.constvars]
    constvars = [v for v, u in zip(jaxpr.constvars, used_consts, strict=True) if u]
    return smaller.replace(constvars=constvars), used_consts, kept


def _each(flags: bool | Sequence[bool], count: int) -> list[bool]:
    return [flags] * count if isinstance(flags, bool) else list(flags)


def convert_constvars_jaxpr(jaxpr) -> _Jaxpr:
    """A jaxpr whose constants are its first arguments."""
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def trace_to_jaxpr_dynamic(
    fun, in_avals: Sequence, *, keep_inputs: list[bool] | None = None, lower: bool = False, auto_dce: bool = False
) -> tuple:
    """The jaxpr of a function of arguments of given types.

    Arguments:
      fun: a ``WrappedFun`` that returns a list.
      in_avals: the types of its arguments.
      keep_inputs: which arguments the function is given; by default all.
      lower: whether objects of user-defined types are to be taken apart; there are none.
      auto_dce: whether dead code is left out.
    Returns:
      The jaxpr, the types of its results, and its constants.

    >>> import catena as jax
    >>> from catena.extend import linear_util as lu
    >>> from catena.interpreters import partial_eval as pe
    >>> pe.trace_to_jaxpr_dynamic(lu.wrap_init(lambda x: [x + 1]), [jax.typeof(1.0)])[0]
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """
    given = [a for a, k in zip(in_avals, keep_inputs or [True] * len(in_avals), strict=True) if k]
    jaxpr, consts = _trace_to_jaxpr(fun.call_wrapped, given, _words(fun))
    if auto_dce:
        jaxpr, used, _ = dce_jaxpr_consts(jaxpr, True, True)
        consts = [c for c, u in zip(consts, used, strict=True) if u]
    return jaxpr, jaxpr.out_avals, consts


def _words(fun) -> _DebugInfo:
    info = fun.debug_info
    if info is None:
        return _DebugInfo("trace_to_jaxpr", fun.__name__)
    return _DebugInfo(info.traced_for, info.func_src_info, info.arg_names)


class PartialVal(tuple):
    """What is known of a value: ``(None, value)`` where it is, ``(type, None)`` where only its type is."""

    __slots__ = ()

    def __new__(cls, xs: tuple):
        aval, value = xs
        if (aval is None) == (value is None):
            raise TypeError(f"a PartialVal has either a type or a value, got {xs}")
        return super().__new__(cls, (aval, value))

    @classmethod
    def known(cls, const) -> PartialVal:
        """Of a value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval) -> PartialVal:
        """Of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self):
        """The value, or None."""
        return self[1]

    def get_aval(self):
        """The type."""
        return _get_aval(self[1]) if self.is_known() else self[0]


def trace_to_jaxpr_nounits(fun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False) -> tuple:
    """The jaxpr of what a function does with arguments that are partly known.

    Arguments:
      fun: a ``WrappedFun`` that returns a list.
      pvals: what is known of each argument.
      instantiate: a bool, or one for each result: whether it is one of the jaxpr though it is known.
    Returns:
      The jaxpr of the unknown arguments, what is known of each result, and the jaxpr's constants, which stand before
      its arguments.

    >>> import catena as jax
    >>> from catena.extend import linear_util as lu
    >>> from catena.interpreters import partial_eval as pe
    >>> pvals = [pe.PartialVal.known(2.0), pe.PartialVal.unknown(jax.typeof(1.0))]
    >>> jaxpr, out, consts = pe.trace_to_jaxpr_nounits(lu.wrap_init(lambda x, y: [x * 3, x * y]), pvals)
    >>> jaxpr, out[0]
    ({ lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }, (None, Array(6., dtype=float32, weak_type=True)))
    """
    run = lambda *xs: [_leaf_value(x) for x in fun.call_wrapped(*xs)]  # noqa: E731
    outs, program = _run_on_tape(run, [p.get_aval() for p in pvals], [p.get_known() for p in pvals])
    flags = _each(instantiate, len(outs))
    unknown = [force or program.tape.is_unknown(x) for x, force in zip(outs, flags, strict=True)]
    jaxpr, consts = _tape_to_jaxpr(program.returning([x for x, u in zip(outs, unknown, strict=True) if u]), _words(fun))
    out = [PartialVal.unknown(_get_aval(x)) if u else PartialVal.known(x) for x, u in zip(outs, unknown, strict=True)]
    return convert_constvars_jaxpr(jaxpr), out, consts


def _deciding(prune: Callable) -> Callable:
    """A ``prune`` of the system in JAX's convention."""

    def rule(used_outputs: list[bool], eqn: _Eqn) -> tuple:
        if not any(used_outputs) and not eqn.effects:
            return [False] * len(eqn.invars), None
        left = eqn if all(used_outputs) else prune(eqn, used_outputs)
        read = {v for v in left.invars if isinstance(v, _Var)}
        return [v in read for v in eqn.invars], left

    return rule


# Rules for dead code: `rule(used_outputs, eqn)` gives for each operand whether it is still read, and what is left of
# the equation, or None. They hold wherever dead code is looked for: here, under `jit`, in derivatives and loops.
dce_rules = _Rules(_prune_rules, _Deciding, _deciding)


class _GivenTracers:
    """A user's rule for applications to values that are partly known, which is given operands one by one."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable):
        self.rule = rule

    def __call__(self, trace, args, **params):
        return self.rule(trace, *args, **params)


# Rules for applications to values that are partly known: `rule(trace, *tracers, **params)` gives the results. Where
# there is none, an application to known values is evaluated, and one to others is written down.
custom_partial_eval_rules = _Rules(
    _partial_eval_rules, _GivenTracers, lambda rule: lambda trace, *args, **params: rule(trace, list(args), **params)
)
# What `checkpoint` keeps of an equation: see `transform.saving`.
partial_eval_jaxpr_custom_rules = _split_rules


def dce_jaxpr_call_rule(used_outputs: list[bool], eqn: _Eqn) -> tuple:
    """What is left of a call of a jaxpr, the parameter ``call_jaxpr`` or ``jaxpr``, where some results are not used.

    Returns:
      For each argument whether it is still read, and the equation, or None where nothing is left.
    """
    if not any(used_outputs) and not eqn.effects:
        return [False] * len(eqn.invars), None
    name = "call_jaxpr" if "call_jaxpr" in eqn.own_params else "jaxpr"
    given = eqn.own_params[name]
    closed = hasattr(given, "consts")
    smaller, used = dce_jaxpr(given.jaxpr if closed else given, used_outputs)
    params = {**eqn.own_params, name: given.replace(jaxpr=smaller) if closed else smaller}
    invars = [v for v, u in zip(eqn.invars, used, strict=True) if u]
    outvars = [v for v, u in zip(eqn.outvars, used_outputs, strict=True) if u]
    return used, eqn.replace(invars=invars, outvars=outvars, params=params, effects=smaller.effects)


dce_jaxpr_closed_call_rule = dce_jaxpr_call_rule

_absent(globals())
