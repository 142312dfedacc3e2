"""Forward differentiation: every value carries its tangent along.

``jvp(f)(x, t)`` runs ``f`` once, under a trace in which each operation also applies its derivative to the
tangents. Tangents known to be zero stay symbolic and cost nothing.
"""

import contextlib

from catena.core.context import context, set_trace, settling, transformation, users_function
from catena.core.errors import UnexpectedTracerError
from catena.core.evaluate import abstract_eval
from catena.core.jaxpr import ClosedJaxpr, eval_jaxpr
from catena.core.leaks import running
from catena.core.primitive import RuleTable
from catena.core.ref import is_reference
from catena.core.staging import trace_to_jaxpr
from catena.core.trace import Trace, Tracer, escaped, in_force, same_value
from catena.core.zeros import Zero, as_typed, get_aval, instantiate
from catena.transform.discharge import pure, through_values
from catena.transform.memo import memoised

jvp_rules = RuleTable("jvp", "Differentiation rule for '{}' not implemented")


class JVPTracer(Tracer):
    """A primal value with its tangent."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        self._trace, self.primal, self.tangent = trace, primal, tangent
        self.aval = get_aval(primal)

    def concrete_value(self):
        return self.primal.concrete_value() if isinstance(self.primal, Tracer) else self.primal

    def get_referent(self):
        return self.primal.get_referent() if isinstance(self.primal, Tracer) else self.primal

    def repeats(self, other) -> bool:
        return same_value(self.primal, other.primal)

    def describe_origin(self) -> str:
        return self.primal.describe_origin() if isinstance(self.primal, Tracer) else ""

    def __repr__(self):
        primal = self.primal if isinstance(self.primal, Tracer) else str(self.primal)
        if self._trace.linearizing:
            return f"GradTracer(primal={primal}, typeof(tangent)={self.tangent.aval.str_short(short_dtypes=True)})"
        tangent = self.tangent if isinstance(self.tangent, Tracer) else str(self.tangent)
        return f"JVPTracer(primal={primal}, tangent={tangent})"


class JVPTrace(Trace):
    """Carries tangents: each operation is handed to its ``jvp`` rule, which runs under the parent trace.

    Arguments:
      parent_trace: that trace.
      tag: what the traces of one transformation have in common.
      linearizing: whether this is half of a linearization, for what tracers print.
    """

    __slots__ = ("linearizing", "tag")
    name = "differentiation"

    def __init__(self, parent_trace, tag=None, linearizing: bool = False):
        super().__init__(in_force(parent_trace))
        self.tag, self.linearizing = tag, linearizing

    def unpack(self, x):
        """The primal and tangent of ``x``; values of other traces are constants here."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer) and not x._trace.alive:
            raise escaped(x)
        return x, None

    def pack(self, primal, tangent):
        """A tracer, or the bare primal where the tangent is zero."""
        return primal if type(tangent) is Zero else JVPTracer(self, primal, tangent)

    def process(self, primitive, args, params):
        primals, tangents, constants = [], [], 0
        for x in args:
            if type(x) is JVPTracer and x._trace is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x)
                tangents.append(None)
                constants += 1
        context.trace = self.parent
        try:
            if constants == len(args):
                return primitive.bind(*primals, **params)
            if constants:
                for i, t in enumerate(tangents):
                    if t is None:
                        primals[i] = self.unpack(primals[i])[0]
                        tangents[i] = Zero.of_primal(primals[i])
            rule = primitive.jvp or jvp_rules.of(primitive)
            if primitive.takes_tokens and any(map(is_reference, primals)):
                context.trace = self
                return through_values(primitive, args, params)
            if context.laid_out and any([get_aval(x).said_sharding is not None for x in primals]):
                out, tangent_out = jvp_of_split(rule, primitive, primals, tangents, params)
            else:
                out, tangent_out = rule(primals, tangents, **params)
        finally:
            context.trace = self
        if primitive.multiple_results:
            return [self.pack(p, t) for p, t in zip(out, tangent_out, strict=True)]
        return out if type(tangent_out) is Zero else JVPTracer(self, out, tangent_out)

    def process_state(self, primitive, args, params):
        primals, tangents = self.unpack_all(args)
        with set_trace(self.parent):
            out, tangent_out = primitive.jvp(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.pack(p, t) for p, t in zip(out, tangent_out, strict=True)]
        return self.pack(out, tangent_out)

    def process_custom(self, primitive, functions, args, params):
        primals, tangents = self.unpack_all(args)
        with set_trace(self.parent), users_function(), explained_closures(params["name"]):
            if all(type(t) is Zero for t in tangents):
                return primitive.bind_functions(functions, primals, params)
            outs, tangents_out = primitive.jvp_of_functions(functions, primals, tangents, params)
        return [self.pack(p, t) for p, t in zip(outs, tangents_out, strict=True)]

    def unpack_all(self, args):
        primals, tangents = [], []
        for x in args:
            primal, tangent = self.unpack(x)
            primals.append(primal)
            tangents.append(Zero.of_primal(primal) if tangent is None else tangent)
        return primals, tangents


def jvp_of_split(rule, primitive, primals, tangents, params):
    """A rule on values whose types say how they are split: results and tangents are split as those without it."""
    avals = abstract_eval(primitive, tuple([get_aval(x) for x in primals]), params)
    with settling():
        outs, tangents_out = rule(primals, tangents, **params)
    if not primitive.multiple_results:
        return as_typed(outs, avals), as_typed(tangents_out, avals)
    typed = [list(map(as_typed, xs, avals)) for xs in (outs, tangents_out)]
    return typed[0], typed[1]


@contextlib.contextmanager
def explained_closures(name: str):
    """Add to an error about a traced value in a custom function what is likely the cause."""
    try:
        yield
    except UnexpectedTracerError as error:
        error.add_note(
            f"If the custom derivative function {name} or its rule closes over this value: that is not supported, "
            "since the rule says nothing about its derivative; pass it as an argument."
        )
        raise


def jvp_flat(fun, primals, tangents, *, linearizing: bool = False):
    """Run ``fun`` on primals with tangents.

    Arguments:
      fun: from flat arguments to a flat list of results.
      primals: the point.
      tangents: the direction; symbolic zeros are allowed.
      linearizing: whether this is half of a linearization, for what tracers print.
    Returns:
      The results and their tangents, symbolic where they are zero.
    """
    with running(JVPTrace(context.trace, None, linearizing)) as trace, transformation("jvp"):
        outs = fun(*[trace.pack(p, t) for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.unpack(x) for x in outs]
        del trace, outs
    return (
        [p for p, _ in pairs],
        [Zero.of_primal(p) if t is None else t for p, t in pairs],
    )


@memoised
def jvp_jaxpr(closed: ClosedJaxpr, nonzeros: tuple, instantiate_outputs):
    """The forward derivative of a jaxpr, as a jaxpr.

    Arguments:
      closed: what to differentiate.
      nonzeros: for each argument, whether it has a tangent.
      instantiate_outputs: a bool, or one for each result: whether to materialise zero tangents.
    Returns:
      A closed jaxpr from primals and the tangents that exist to results and the tangents that exist, and a
      tuple of
      bools: which results have tangents.
    """
    if isinstance(instantiate_outputs, bool):
        instantiate_outputs = (instantiate_outputs,) * len(closed.out_avals)
    nonzeros_out: list[bool] = []

    closed = pure(closed)

    def fun(*args):
        primals, given = args[: len(nonzeros)], iter(args[len(nonzeros) :])
        tangents = [next(given) if nz else Zero.of_primal(p) for p, nz in zip(primals, nonzeros, strict=True)]
        outs, out_tangents = jvp_flat(lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), primals, tangents)
        nonzeros_out[:] = [
            type(t) is not Zero or inst for t, inst in zip(out_tangents, instantiate_outputs, strict=True)
        ]
        kept = [instantiate(t) for t, nz in zip(out_tangents, nonzeros_out, strict=True) if nz]
        return [*outs, *kept]

    tangent_avals = [a.to_tangent_aval() for a, nz in zip(closed.in_avals, nonzeros, strict=True) if nz]
    jaxpr, consts = trace_to_jaxpr(fun, [*closed.in_avals, *tangent_avals], closed.jaxpr.debug_info)
    return ClosedJaxpr(jaxpr, consts), tuple(nonzeros_out)
