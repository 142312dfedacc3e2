"""Staging: running a Python function on tracers to write down the jaxpr of what it does."""

from collections.abc import Sequence

import numpy as np

from catena.core import dtypes
from catena.core.array import Array, as_array
from catena.core.aval import AbstractRef, ShapedArray
from catena.core.check import check_if_enabled
from catena.core.context import context
from catena.core.errors import how_to_register
from catena.core.evaluate import abstract_eval
from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal, Var, make_eqn
from catena.core.lazy import without_collection
from catena.core.leaks import running
from catena.core.ref import Cell, Ref, as_ref, core_of
from catena.core.source import NO_NAMES, user_source
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import VALUES, FoldingTrace, Trace, Tracer, escaped
from catena.core.type_sharding import in_types


class DebugInfo:
    """What a jaxpr was traced from, for errors: the transformation, the function, its argument names; and the seconds
    that it took, where it was traced to be compiled.
    """

    __slots__ = ("traced_for", "func_src_info", "arg_names", "result_paths", "seconds")

    def __init__(self, traced_for: str, func_src_info: str, arg_names=None, result_paths=None):
        self.traced_for, self.func_src_info = traced_for, func_src_info
        self.arg_names, self.result_paths = arg_names, result_paths
        self.seconds = 0.0


class JaxprTracer(Tracer):
    """A variable of the jaxpr that is being written."""

    __slots__ = ("_var", "source")  # not "var", which is a method of arrays
    label = "JitTracer"

    def __init__(self, trace, aval, val, line_info=None):
        self._trace, self.aval, self._var, self.source = trace, aval, val, line_info

    def repeats(self, other) -> bool:
        return self._trace.repeated(self._var, other._var)

    def note_mapped(self, dim: int, name) -> None:
        """Have the equation say that this axis of its result stands for a vmap."""
        for i in range(len(self._trace.eqns) - 1, -1, -1):
            eqn = self._trace.eqns[i]
            if self._var in eqn.outvars:
                if eqn.source is not None:
                    self._trace.eqns[i] = eqn._replace(source=eqn.source.mapped(dim, name, self.aval.shape))
                return

    def constant_value(self):
        atom = self._var
        return atom.val if type(atom) is Literal else self._trace.staged.get(atom)

    def describe_origin(self) -> str:
        return self._trace.describe_origin(self)

    def describe_making(self) -> str:
        info = self._trace.debug_info
        names = self._trace.argument_names(self._var) if self.source is None else []
        argument = f"of the argument {names[0]}" if names else "of an argument"
        line = f"at {self.source}" if self.source is not None else argument
        return f"{line} while {info.func_src_info} was traced for {info.traced_for}"


class JaxprTrace(Trace):
    """Writes every operation down as an equation.

    Every value that is not a tracer of this trace, concrete array or tracer of an outer trace alike, becomes
    a constant of the jaxpr; scalars that are known become literals.
    """

    __slots__ = ("debug_info", "invars", "eqns", "constants", "staged", "effects", "own")
    label = "JitTracer"

    def __init__(self, parent, debug_info: DebugInfo):
        super().__init__(parent)
        self.debug_info = debug_info
        self.invars: list[Var] = []
        self.eqns: list[Eqn] = []
        self.constants: dict[int, tuple] = {}  # by id: (variable, value, the object itself, kept alive)
        self.staged: dict[Var, Array] = {}  # the values of constants for which there are tracers
        self.effects: set = set()
        self.own: list = []  # objects of users' own types that belong to this function: see `transform/stateful.py`

    @property
    def name(self) -> str:
        return self.debug_info.traced_for

    def new_arg(self, aval) -> JaxprTracer | Ref:
        """A new argument of the jaxpr."""
        var = Var(aval)
        self.invars.append(var)
        tracer = JaxprTracer(self, aval, var)
        return as_ref(tracer) if type(aval) is AbstractRef else tracer

    def process(self, primitive, args, params):
        atoms = [x._var if type(x) is JaxprTracer and x._trace is self else self.constant(x) for x in args]
        avals = tuple([a.aval for a in atoms])
        out_avals = abstract_eval(primitive, avals, params)
        source = here()
        if primitive.multiple_results:
            outvars = [Var(a) for a in out_avals]
            out = [JaxprTracer(self, v.aval, v, source) for v in outvars]
        else:
            var = Var(out_avals)
            outvars, out = [var], JaxprTracer(self, out_avals, var, source)
        effects = primitive.effects(avals, params)
        if effects:
            self.effects |= effects
        self.eqns.append(make_eqn(Eqn, (atoms, outvars, primitive, params, effects, source)))
        return out

    def write(self, jaxpr: Jaxpr, args: Sequence, types: dict) -> list[JaxprTracer]:
        """Writes the equations of another jaxpr, which has no constants, where each of its types is another one."""
        atoms = [x._var if type(x) is JaxprTracer and x._trace is self else self.constant(x) for x in args]
        source = here()
        env: dict = dict(zip(jaxpr.invars, atoms, strict=True))
        for eqn in jaxpr.eqns:
            read = [v if type(v) is Literal else env[v] for v in eqn.invars]
            made = [Var(types[v.aval]) for v in eqn.outvars]
            env.update(zip(eqn.outvars, made, strict=True))
            self.eqns.append(make_eqn(Eqn, (read, made, eqn.primitive, eqn.own_params, eqn.effects, source)))
        return [JaxprTracer(self, env[v].aval, env[v], source) for v in jaxpr.outvars]

    def constant(self, x):
        """The literal or constant variable that stands for ``x``."""
        if type(x) is Ref:
            x = core_of(x)
            if type(x) is JaxprTracer and x._trace is self:
                return x._var
        found = self.constants.get(id(x))
        if found is not None:
            return found[0]
        if isinstance(x, Tracer):
            if not x._trace.alive:
                raise escaped(x)
            aval, value = x.aval, x
        elif isinstance(x, ShapeDtypeStruct):  # will do for shapes; whoever wants to compute finds that it is no array
            dtype = dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True)
            aval, value = ShapedArray(x.shape, dtype, sharding=in_types(x.sharding)), x
        else:
            value = x if isinstance(x, Array) else as_array(x)
            aval = value.aval
            if not aval.shape and not aval.extended:
                return Literal(value, aval)
        var = Var(aval)
        self.constants[id(x)] = (var, value, x)
        return var

    def stage_value(self, val):
        """``val`` as a variable of the jaxpr, or a literal in it."""
        if isinstance(val, Tracer) and val._trace is self:
            return val
        atom = self.constant(val)
        if type(atom) is Var and type(val) is Array:
            self.staged[atom] = val
        return JaxprTracer(self, atom.aval, atom)

    def repeated(self, a, b) -> bool:
        """Whether two atoms are one computation of the same atoms, written down twice."""
        made = {v: (eqn, i) for eqn in self.eqns for i, v in enumerate(eqn.outvars)}
        open_pairs, compared = [(a, b)], set()
        while open_pairs:
            a, b = open_pairs.pop()
            if a is b or (id(a), id(b)) in compared:
                continue
            compared.add((id(a), id(b)))
            if type(a) is Literal or type(b) is Literal:
                alike = type(a) is type(b) and a.aval == b.aval and a.val.tobytes() == b.val.tobytes()
            elif a in made and b in made:
                (e, i), (f, j) = made[a], made[b]
                alike = i == j and e.primitive is f.primitive and not e.effects and e.own_params == f.own_params
                alike = alike and len(e.invars) == len(f.invars)
                open_pairs += zip(e.invars, f.invars)
            else:
                alike = False
            if not alike:
                return False
        return True

    def to_jaxpr(self, outs) -> tuple[Jaxpr, list]:
        """The finished jaxpr and the values of its constants."""
        outvars = [x._var if type(x) is JaxprTracer and x._trace is self else self.constant(x) for x in outs]
        constvars = [entry[0] for entry in self.constants.values()]
        values = [entry[1] for entry in self.constants.values()]
        jaxpr = Jaxpr(constvars, self.invars, outvars, self.eqns, frozenset(self.effects), self.debug_info)
        return prune_constants(shared_constants(jaxpr, values), values)

    def process_custom(self, primitive, functions, args, params):
        return primitive.stage(self, functions, args, params)

    # ---- error messages

    def describe_origin(self, tracer) -> str:
        info = self.debug_info
        place = f"The error occurred while tracing the function {info.func_src_info} for {info.traced_for}."
        names = self.argument_names(tracer._var)
        if names:
            plural = "s" if len(names) > 1 else ""
            return (
                f"{place} This concrete value was not available in Python because it depends on the "
                f"value{plural} of the argument{plural} {join_words(names)}."
            )
        if tracer.source is not None:
            return f"{place} This value was made at {tracer.source}."
        return place

    def argument_names(self, var) -> list[str]:
        """The names of the arguments that ``var`` depends on, in order."""
        names = self.debug_info.arg_names
        if not names:
            return []
        needed = {var}
        for eqn in reversed(self.eqns):
            if any(v in needed for v in eqn.outvars):
                needed.update(v for v in eqn.invars if type(v) is Var)
        return [n for n, v in zip(names, self.invars, strict=False) if v in needed and n]


def here():
    """The user's line that is running, and its names."""
    return context.source or user_source(context.name_stack, context.surroundings)


def staged(x):
    """An array that a function of the API made, as a value of the program that is being written down, if one is."""
    trace = context.trace
    while trace is not None and type(trace) is not FoldingTrace:
        if isinstance(trace, JaxprTrace):
            tracer = trace.stage_value(x)
            tracer.source = here()
            return tracer
        trace = trace.parent
    return x


def join_words(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def shared_constants(jaxpr: Jaxpr, values: list) -> Jaxpr:
    """The jaxpr with equal constants read from one: functions convert a NumPy array each time they are given it."""
    seen: dict = {}  # by type and some of the bytes: the constants that may be equal
    first: dict[Var, Var] = {}
    for v, x in zip(jaxpr.constvars, values, strict=True):
        if type(x) is Array and type(x._value) is np.ndarray:
            data = np.ascontiguousarray(x._value).reshape(-1).view(np.uint8)
            alike = seen.setdefault((v.aval, data[:: max(1, data.size // 64)].tobytes()), [])
            found = next((w for w, other in alike if np.array_equal(data, other)), None)
            if found is None:
                alike.append((v, data))
            else:
                first[v] = found
    if not first:
        return jaxpr
    eqns = [e._replace(invars=[first.get(v, v) for v in e.invars]) for e in jaxpr.eqns]
    return jaxpr.replace(eqns=eqns, outvars=[first.get(v, v) for v in jaxpr.outvars], effects=jaxpr.effects)


def prune_constants(jaxpr: Jaxpr, values: list) -> tuple[Jaxpr, list]:
    """The jaxpr without the constants that nothing reads."""
    if not values:
        return jaxpr, values
    read = {v for e in jaxpr.eqns for v in e.invars if type(v) is Var}
    read.update(v for v in jaxpr.outvars if type(v) is Var)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, values, strict=True) if v in read]
    if len(kept) == len(values):
        return jaxpr, values
    return jaxpr.replace(constvars=[v for v, _ in kept], effects=jaxpr.effects), [c for _, c in kept]


def trace_to_jaxpr(fun, in_avals, debug_info: DebugInfo) -> tuple[Jaxpr, list]:
    """Run ``fun`` on tracers of the types ``in_avals`` and write down what it does.

    Arguments:
      fun: from flat arguments to the flat list of results.
      in_avals: the types of the arguments.
      debug_info: what to say about the function in error messages.
    Returns:
      The jaxpr, and the values of its constvars: Arrays, or tracers of enclosing traces.
    """
    source, name_stack = context.source, context.name_stack
    context.source, context.name_stack = None, NO_NAMES
    try:
        with without_collection(), running(JaxprTrace(context.trace, debug_info)) as trace:
            if context.folding:
                context.trace = FoldingTrace(trace)
            outs = fun(*[trace.new_arg(a) for a in in_avals])
            outs = [check_result(x, i, debug_info) for i, x in enumerate(outs)]
            jaxpr, values = trace.to_jaxpr(outs)
            del trace, outs
    finally:
        context.source, context.name_stack = source, name_stack
    return check_if_enabled(jaxpr), values


ONLY_TYPES = frozenset({"eval_shape", "make_jaxpr"})  # what asks for the types of results, which may be all there is


def check_result(x, position: int, debug_info: DebugInfo):
    """``x`` if it is a value of the language, else an error that names the function."""
    if isinstance(x, VALUES) or dtypes.is_scalar_or_numpy(x):
        return x
    if isinstance(x, ShapeDtypeStruct) and debug_info.traced_for in ONLY_TYPES:
        return x
    if type(x) is Ref:
        raise escaping_reference(x, debug_info, position)
    raise TypeError(
        f"function {debug_info.func_src_info} traced for {debug_info.traced_for} returned a value of type "
        f"{type(x)}{result_place(debug_info, position)}, which is not a valid JAX type.{how_to_register(x)}"
    )


def escaping_reference(ref: Ref, debug_info: DebugInfo, position: int) -> ValueError:
    """The error for a reference among the results of a traced function."""
    core, names = ref._core, debug_info.arg_names or []
    passed = core._trace.invars.index(core._var) if type(core) is JaxprTracer and core.source is None else None
    if passed is not None:
        made = f"It was passed in as the argument {names[passed]}." if passed < len(names) else "It is an argument."
    else:
        made = f"It was made at {getattr(core, 'source', None) or ref.source}."
    return ValueError(
        f"function {debug_info.func_src_info} traced for {debug_info.traced_for} returned a mutable array reference "
        f"of type {ref.aval.str_short()}{result_place(debug_info, position)}, but references cannot be returned: "
        f"ref[...] is the value. {made}"
    )


def result_place(debug_info: DebugInfo, position: int) -> str:
    """`` at output component [0]`` where the result is a tree, else nothing."""
    paths = debug_info.result_paths() if callable(debug_info.result_paths) else debug_info.result_paths
    return f" at output component {paths[position]}" if paths and paths[position] else ""


def trace_to_closed_jaxpr(fun, in_avals, debug_info: DebugInfo) -> tuple[ClosedJaxpr, list]:
    """As ``trace_to_jaxpr``, with concrete constants closed over and tracers of outer traces as leading arguments.

    Returns:
      The closed jaxpr, and the outer tracers to pass before its other arguments.
    """
    jaxpr, values = trace_to_jaxpr(fun, in_avals, debug_info)
    return hoist_tracers(jaxpr, values)


def hoist_tracers(jaxpr: Jaxpr, values: list) -> tuple[ClosedJaxpr, list]:
    """Close over the concrete constants; make those that are tracers or references into leading arguments."""
    if not any(isinstance(v, (Tracer, Cell)) for v in values):
        return ClosedJaxpr(jaxpr, values), []
    entrys = list(zip(jaxpr.constvars, values, strict=True))
    outer = [(c, v) for c, v in entrys if type(v) is not Array and isinstance(v, (Tracer, Cell))]
    known = [(c, v) for c, v in entrys if type(v) is Array or not isinstance(v, (Tracer, Cell))]
    info = jaxpr.debug_info
    if info is not None and info.arg_names is not None:
        names = [None] * len(outer) + list(info.arg_names)
        info = DebugInfo(info.traced_for, info.func_src_info, names, info.result_paths)
    closed = Jaxpr(
        [c for c, _ in known],
        [c for c, _ in outer] + jaxpr.invars,
        jaxpr.outvars,
        jaxpr.eqns,
        jaxpr.effects,
        info,
    )
    return ClosedJaxpr(closed, [v for _, v in known]), [v for _, v in outer]


def hoist_constants(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr with its constvars as leading arguments."""
    return Jaxpr([], jaxpr.constvars + jaxpr.invars, jaxpr.outvars, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
