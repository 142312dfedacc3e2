"""Linearization: a function at a point becomes its value and a linear program in the tangent.

It is forward differentiation with half of it left undone: the JVP trace runs on top of a *tape*, which
evaluates every operation whose arguments are known and writes down those that touch an unknown tangent. What
remains on the tape is linear; read forwards it is the derivative, read backwards (``transpose.py``) the
gradient. The same tape splits any jaxpr into what can be computed from known inputs and what cannot (partial
evaluation).
"""

from __future__ import annotations

from catena.core import dtypes
from catena.core.context import context, set_trace
from catena.core.evaluate import abstract_eval, evaluate
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, eval_jaxpr
from catena.core.leaks import running
from catena.core.named import NamedTuple
from catena.core.primitive import RuleTable
from catena.core.ref import is_reference
from catena.core.source import user_source
from catena.core.staging import DebugInfo, hoist_tracers, trace_to_jaxpr
from catena.core.trace import Trace, Tracer
from catena.core.zeros import Zero, get_aval, instantiate
from catena.transform.call_primitive import CallPrimitive
from catena.transform.discharge import pure, through_values
from catena.transform.jvp import jvp_flat
from catena.transform.memo import memoised

partial_eval_rules = RuleTable("partial_eval", optional=True)


class TapeTracer(Tracer):
    """An unknown on the tape, numbered."""

    __slots__ = ("index",)
    label = "LinearTracer"

    def __init__(self, trace, aval, index):
        self._trace, self.aval, self.index = trace, aval, index


class TapeTrace(Trace):
    """Evaluates what is known, writes down the rest.

    It lets go of what it has written when it ends: entries hold unknowns, which hold the tape, and such a cycle would
    keep the values on it, all intermediate results of a forward pass, until the garbage collector comes by.

    ``entries`` holds ``(primitive, args, outs, params, source)``; args are unknowns of this tape or known values. The
    source is looked up where somebody may ask for it: while a jaxpr is written, and when bad numbers are searched.
    ``outer`` is the name stack in which the tape was made, ``program`` what was handed over.
    """

    __slots__ = ("entries", "count", "outer", "program")
    name = "linearization"

    def __init__(self, parent):
        super().__init__(parent)
        self.entries: list[tuple] = []
        self.outer = context.name_stack
        self.count = 0
        self.program: Linearized | None = None

    def new_unknown(self, aval) -> TapeTracer:
        """A new unknown."""
        tracer = TapeTracer(self, aval, self.count)
        self.count += 1
        return tracer

    def finish(self, inputs: list, outputs: list) -> Linearized:
        """What was written, as a program from ``inputs`` to ``outputs``; the last thing done with a running tape."""
        self.program = Linearized(self, self.entries, inputs, outputs)
        return self.program

    def end(self):
        self.alive, self.entries, self.program = False, [], None

    def holders(self) -> list:
        program = self.program
        if program is None:
            return []
        operands = [held for _, args, outs, _, _ in program.entries for held in (args, outs)]
        return [program.inputs, program.outputs, *operands]

    def is_unknown(self, x) -> bool:
        return type(x) is TapeTracer and x._trace is self

    def process(self, primitive, args, params):
        for x in args:
            if type(x) is TapeTracer and x._trace is self:
                break
        else:
            parent = context.trace = self.parent
            try:  # `primitive.bind`, without the call
                if parent is None:
                    return evaluate(primitive, args, params)
                return parent.process(primitive, args, params)
            finally:
                context.trace = self
        if primitive.partial_eval is not None:
            if any(map(is_reference, args)):
                return through_values(primitive, args, params)
            return primitive.partial_eval(self, args, **params)
        return self.record(primitive, args, params)

    def process_state(self, primitive, args, params):
        if not args or any(self.is_unknown(x) for x in args):  # without operands: it is a tangent's
            return self.record(primitive, args, params)
        with self.known():
            return primitive.bind(*args, **params)

    def record(self, primitive, args, params):
        """Write the application down and return its unknown results."""
        if type(primitive) is CallPrimitive:
            args, params = primitive.lift(args, params)
        out_avals = abstract_eval(primitive, tuple([get_aval(x) for x in args]), params)
        source = context.source
        if source is None and (self.parent is not None or context.debug_checks):
            source = user_source(context.name_stack, context.surroundings)
        if primitive.multiple_results:
            outs = [self.new_unknown(a) for a in out_avals]
            self.entries.append((primitive, args, outs, params, source))
            return outs
        out = TapeTracer(self, out_avals, self.count)
        self.count += 1
        self.entries.append((primitive, args, (out,), params, source))
        return out

    def known(self):
        """A context in which the parent trace is current, to compute with known values."""
        return set_trace(self.parent)

    def process_custom(self, primitive, functions, args, params):
        if any(self.is_unknown(x) for x in args):
            return functions[0](*args)
        with self.known():
            return primitive.bind_functions(functions, args, params)


class Linearized(NamedTuple):
    """A linear program: the entries of a finished tape, which unknowns of it go in, and what comes out
    (unknowns, values or zeros).
    """

    tape: TapeTrace
    entries: list
    inputs: list
    outputs: list

    def returning(self, outputs: list) -> Linearized:
        """The same program with other results."""
        return Linearized(self.tape, self.entries, self.inputs, outputs)

    def first(self, count: int) -> Linearized:
        """The program to the first ``count`` results."""
        return self if count == len(self.outputs) else self.returning(self.outputs[:count])


def linearize_flat(fun, primals) -> tuple[list, Linearized]:
    """The value of ``fun`` at ``primals`` and its derivative there, as a linear program.

    Arguments:
      fun: from flat arguments to a flat list of results.
      primals: the point; non-differentiable dtypes get no unknown.
    Returns:
      The results, and the linear program from the tangents of all primals to those of the results.
    """
    with running(TapeTrace(context.trace)) as tape:
        inputs = []
        for p in primals:
            aval = get_aval(p).to_tangent_aval()
            inputs.append(Zero(aval) if aval.dtype == dtypes.float0 else tape.new_unknown(aval))
        outs, tangents = jvp_flat(fun, primals, inputs, linearizing=True)
        return outs, tape.finish(inputs, tangents)


def linearize_linear(fun, in_avals, linear_args) -> tuple[list, Linearized]:
    """Run ``fun``, linear in some arguments, on a tape.

    Arguments:
      fun: from flat arguments to a flat list of results.
      in_avals: for the linear arguments, their types.
      linear_args: ``None`` where the argument is linear, else its value.
    Returns:
      The raw results and the linear program from the linear arguments to them.
    """
    with running(TapeTrace(context.trace)) as tape:
        inputs = [tape.new_unknown(a) for a, x in zip(in_avals, linear_args, strict=True) if x is None]
        unknowns = iter(inputs)
        outs = fun(*[next(unknowns) if x is None else x for x in linear_args])
        return outs, tape.finish(inputs, outs)


def program_to_jaxpr(program: Linearized, debug_info) -> tuple[Jaxpr, list]:
    """A linear program as a jaxpr from its inputs to its outputs; known values become constants.

    Returns:
      The jaxpr, without what its outputs do not need, and the values of its constvars.
    """
    tape = program.tape
    variables: dict[int, Var] = {}
    constants: dict[int, tuple] = {}

    def variable(x):
        if type(x) is TapeTracer and x._trace is tape:
            found = variables.get(x.index)
            if found is None:
                found = variables[x.index] = Var(x.aval)
            return found
        if isinstance(x, Tracer) or not is_literal(get_aval(x)):
            return constants.setdefault(id(x), (Var(get_aval(x)), x))[0]
        return Literal(x, get_aval(x))

    invars = [variable(x) for x in program.inputs]
    outvars = [variable(x) for x in program.outputs]
    eqns = [
        Eqn(
            [variable(x) for x in args],
            [variable(x) for x in outs],
            primitive,
            params,
            effects_of(primitive, args, params),
            source,
        )
        for primitive, args, outs, params, source in needed_entries(program)
    ]
    constvars = [v for v, _ in constants.values()]
    return Jaxpr(constvars, invars, outvars, eqns, None, debug_info), [x for _, x in constants.values()]


def is_literal(aval) -> bool:
    """Whether constants of this type are written into equations."""
    return not aval.shape and aval.dtype != dtypes.float0 and not dtypes.is_extended(aval.dtype)


def needed_entries(program: Linearized) -> list:
    """The entries that the outputs depend on or that have effects, in order."""
    tape = program.tape
    needed = {x.index for x in program.outputs if type(x) is TapeTracer and x._trace is tape}
    kept = []
    for entry in reversed(program.entries):
        primitive, args, outs, params, _ = entry
        if any(x.index in needed for x in outs) or effects_of(primitive, args, params):
            kept.append(entry)
            needed.update(x.index for x in args if type(x) is TapeTracer and x._trace is tape)
    return kept[::-1]


def effects_of(primitive, args, params) -> frozenset:
    """The effects of an application of a primitive to values of any kind."""
    return primitive.effects(tuple([get_aval(x) for x in args]), params)


def linear_jaxpr(linear: Linearized, debug_info=None) -> ClosedJaxpr:
    """The derivative as a closed jaxpr from all tangents to all tangents, zeros materialised."""
    tape = linear.tape
    inputs = [tape.new_unknown(x.aval) if type(x) is Zero else x for x in linear.inputs]
    whole = Linearized(tape, linear.entries, inputs, [instantiate(x) for x in linear.outputs])
    jaxpr, consts = program_to_jaxpr(whole, debug_info)
    return ClosedJaxpr(jaxpr, consts)


@memoised
def partial_eval_jaxpr(closed: ClosedJaxpr, unknown: tuple, instantiate_outputs):
    """Split a jaxpr into what can be computed from its known arguments and the rest.

    Arguments:
      closed: what to split.
      unknown: for each argument, whether it is unknown.
      instantiate_outputs: a bool, or one for each result: whether to force the result to be unknown.
    Returns:
      ``(known, rest, unknown_out, forwarded)``: ``known`` maps the known arguments to the known results
      followed by residuals; ``rest`` maps residuals followed by unknown arguments to the unknown results;
      ``unknown_out`` says which results are unknown; ``forwarded`` gives for each residual the position of
      the known argument that it is, or ``None`` for those that ``known`` returns.
    """
    if isinstance(instantiate_outputs, bool):
        instantiate_outputs = (instantiate_outputs,) * len(closed.out_avals)
    closed = pure(closed)
    info = closed.jaxpr.debug_info or DebugInfo("partial evaluation", "a jaxpr")
    split: dict = {}

    def known_part(*known_args):
        given = iter(known_args)
        run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
        outs, program = linearize_linear(run, closed.in_avals, [None if u else next(given) for u in unknown])
        is_unknown = program.tape.is_unknown
        unknown_out = tuple(is_unknown(x) or f for x, f in zip(outs, instantiate_outputs, strict=True))
        program = program.returning([x for x, u in zip(outs, unknown_out, strict=True) if u])
        rest, values = program_to_jaxpr(program, info)
        rest_closed, residuals = hoist_tracers(rest, values)
        positions = {id(x): i for i, x in enumerate(known_args)}
        forwarded = tuple(positions.get(id(x)) for x in residuals)
        split.update(rest=rest_closed, unknown_out=unknown_out, forwarded=forwarded)
        saved = [x for x, f in zip(residuals, forwarded, strict=True) if f is None]
        return [x for x, u in zip(outs, unknown_out, strict=True) if not u] + saved

    known_avals = [a for a, u in zip(closed.in_avals, unknown, strict=True) if not u]
    jaxpr, consts = trace_to_jaxpr(known_part, known_avals, info)
    return ClosedJaxpr(jaxpr, consts), split["rest"], split["unknown_out"], split["forwarded"]
