"""Running jaxprs as native programs: compile once, then call with arrays.

Calls with arrays of the types that were seen before are in `hot_path`.
"""

from __future__ import annotations

import functools
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core import dtypes, events, failures, log
from catena.core.array import Array, Deleted, as_array, deleted_error, live, typed_array
from catena.core.aval import AbstractRef, same_type
from catena.core.config import override
from catena.core.context import context
from catena.core.effects import lowerable_effects
from catena.core.errors import DeletedArgumentError, JaxRuntimeError, TracerArrayConversionError, UnexpectedTracerError
from catena.core.evaluate import check_may_run, check_results, concrete
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, subjaxprs
from catena.core.job import job
from catena.core.lazy import LazyModule, has_compiler
from catena.core.placed import layout_of, place, results_placement, retyped, spans_processes
from catena.core.placement import Placement
from catena.core.ref import core_of, is_own, is_reference
from catena.core.sharding import sharding_of
from catena.core.stack import is_stack
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import Tracer, leaf_value
from catena.runtime import buffers, stacks
from catena.runtime.layout import READY
from catena.transform.arguments import aliased
from catena.transform.discharge import discharged, has_references
from catena.transform.interpreted import Interpreted
from catena.transform.memo import memoised

programs = LazyModule("catena.compiler.native.programs")
layouts_of_programs = LazyModule("catena.transform.layouts")
slow = LazyModule("catena.transform.slow")
across: Any = LazyModule("catena.parallel.across")  # where there are several processes


class Program:
    """A compiled jaxpr, with the results that need no computation (arguments passed through, constants) taken out.

    ``results`` holds for each result what it is: ``("computed", i)``, that once more ``("again", i)``, ``("argument",
    i)`` or ``("constant", Array)``; ``used`` the positions of the arguments that the program is given, ``donated`` of
    those that a call deletes.
    """

    __slots__ = (
        "closed",
        "name",
        "make",
        "made",
        "executable",
        "used",
        "donated",
        "results",
        "specs",
        "computed_avals",
        "simple",
        "stacks",
        "used_names",
    )
    executable: Any

    def __init__(
        self,
        closed: ClosedJaxpr,
        donated: tuple = (),
        name: str = "main",
        keep_unused: bool = False,
        checked: bool = True,
    ):
        unknown = lowerable_effects.filter_not_in(closed.jaxpr.effects)
        if unknown:
            raise ValueError(f"Cannot lower jaxpr with effects: {set(unknown)}")
        if any(isinstance(c, ShapeDtypeStruct) for c in closed.consts):
            raise TypeError(f"jit({name}) computes with a ShapeDtypeStruct, which has no value; pass an array")
        self.closed = ClosedJaxpr(closed.jaxpr, closed.consts)  # not ``closed``, whose memo holds this program
        self.name = name
        self.results, computed = classify_results(closed)
        jaxpr = closed.jaxpr
        self.used = used_arguments(jaxpr, keep_unused)
        self.donated = usable_donations(closed, donated, self.used) if any(donated) else []
        names = jaxpr.debug_info.arg_names if jaxpr.debug_info is not None else None
        self.used_names = [names[i] for i in self.used] if names and len(names) == len(jaxpr.invars) else None
        self.computed_avals = [v.aval for v in computed]
        self.stacks = any(is_stack(a) for a in [*closed.in_avals, *self.computed_avals])
        self.make: Any = None
        if computed or jaxpr.effects:
            invars = [jaxpr.invars[i] for i in self.used]
            empty = [v for v in jaxpr.invars if v.aval.dtype == dtypes.float0]
            constvars, consts = [*jaxpr.constvars, *empty], [*closed.consts, *[only_value(v.aval) for v in empty]]
            trimmed = Jaxpr(constvars, invars, computed, jaxpr.eqns, jaxpr.effects, jaxpr.debug_info)
            kept = {i for kind, i in self.results if kind == "argument"}  # whoever gets them must find them whole
            written = () if self.stacks else {*self.donated} - kept
            given_up = tuple(i in written for i in self.used) if written else ()
            self.make = functools.partial(compile_logged, ClosedJaxpr(trimmed, consts), name, given_up, checked)
        self.made: dict = {}
        if not job.shared:
            self.compile()
        types = [physical_type(a) for a in self.computed_avals]
        self.specs = [(buffers.maker(shape, dtype), shape, dtype) for shape, dtype in types]
        self.simple = all(kind == "computed" for kind, _ in self.results)

    def __getattr__(self, name: str):
        if name != "executable":
            raise AttributeError(name)
        self.compile()
        return self.executable

    @property
    def entry(self):
        """What runs it: a function of the values of arguments and results."""
        return self.executable.entry if self.executable is not None else None

    @property
    def reused(self) -> dict:
        """For results in the memory of arguments, which arguments these are."""
        return self.executable.reused if self.executable is not None else {}

    def compile(self) -> None:
        """Compile what is computed, once: of several threads that come at the same time, all take the same."""
        make = self.make
        self.executable = self.made.setdefault("executable", make() if make is not None else None)
        self.make = None

    def __call__(self, arrays) -> list:
        """Run on Arrays of the right types and return the list of result Arrays; delete the donated ones."""
        if job.shared and any(map(spans_processes, arrays)):
            return across.run(self, arrays)
        if context.debug_checks:
            check_may_run(f"jit({self.name})")
        cell = failures.new_cell() if self.executable is not None and self.executable.checks else None
        if self.donated:
            self.check_donation(arrays)
        used = [arrays[i] for i in self.used]
        values = [x._value for x in used]
        if Deleted in map(type, values):
            raise self.deleted_argument(values)
        placement = results_placement(f"jit({self.name})", used, self.used_names) or on_mesh(self.closed)
        del used  # so that donated memory has no more owners than it had
        places = None if placement is None else self.places(placement, arrays)  # while the donated ones have theirs
        for i in self.reused.values():
            if not is_ours(values, i, self.holders(i)):
                values[i] = buffers.copy(values[i])
        try:
            compute = (
                self.compute if placement is None or not self.closed.effects else self.inspected(placement, arrays)
            )
            computed = compute(values, cell) if self.executable is not None else []
            outs = [self.result(kind, x, computed, arrays) for kind, x in self.results]
            if context.debug_nans or context.debug_infs:
                self.check(arrays, outs, cell)
        finally:
            for i in self.donated:
                arrays[i].delete()
        return outs if places is None else [place(x, own) for x, own in zip(outs, places, strict=True)]

    def places(self, placement, arrays) -> list:
        """Where each result belongs."""
        if placement.layout is None:
            return [placement] * len(self.results)
        layouts = layouts_of_programs.layouts_of_program(
            self.closed, tuple(map(layout_of, arrays)), placement.layout.mesh
        )
        return [placement._replace(layout=own) for own in layouts]

    def inspected(self, placement, arrays) -> Callable:
        """``compute``, with ``debug.inspect_array_sharding`` in the program knowing how values lie."""
        layouts: dict = {None: sharding_of(placement)}
        if placement.layout is not None:
            mesh, known = placement.layout.mesh, tuple(map(layout_of, arrays))
            layouts |= layouts_of_programs.layouts_in_program(self.closed, known, mesh)[1]
        running = layouts_of_programs.Inspection.running

        def compute(values, cell) -> list:
            before, running.layouts = getattr(running, "layouts", None), layouts
            try:
                return self.compute(values, cell)
            finally:
                running.layouts = before

        return compute

    def holders(self, i: int) -> int:
        """How many hold a value that the program is given, beside the list of them: its Array."""
        return 1

    @staticmethod
    def result(kind: str, x, computed: list, arrays) -> Any:
        """One result; what is an argument, a constant or an earlier result too is wrapped anew, since the user may
        delete or donate what a call returned.
        """
        if kind == "computed":
            return computed[x]
        found = arrays[x] if kind == "argument" else computed[x] if kind == "again" else x
        return typed_array(live(found), found.aval)

    def compute(self, values, cell=None) -> list:
        """The computed results for NumPy values, as Arrays; the cell takes what checks find."""
        if type(self.executable) is Interpreted:
            return self.executable.run(values)
        if self.stacks:
            return self.compute_with_stacks(values, cell)
        outs = self.empty_results(values)
        run_entry(self.entry, tuple(values), outs if cell is None else (*outs, cell))
        return [typed_array(o, a) for o, a in zip(outs, self.computed_avals, strict=True)]

    def empty_results(self, values) -> tuple:
        """Memory for the results: that of donated arguments where the program works in place."""
        if self.reused:
            return tuple(
                values[self.reused[k]] if k in self.reused else make(shape, dtype)
                for k, (make, shape, dtype) in enumerate(self.specs)
            )
        return tuple([make(shape, dtype) for make, shape, dtype in self.specs])

    def compute_with_stacks(self, values, cell=None) -> list:
        """As ``compute``, where arguments or results are stacks: programs know these by their addresses."""
        in_avals = [self.closed.in_avals[i] for i in self.used]
        addresses = [
            stacks.addresses(x, a.dtype.item) if is_stack(a) else x for x, a in zip(values, in_avals, strict=True)
        ]
        outs: Any = self.empty_results(values)
        head = np.zeros((), np.uint64)
        behind = ([head] if self.executable.returns_stacks else []) + ([] if cell is None else [cell])
        run_entry(self.entry, tuple(addresses), (*outs, *behind))
        given = [x for x in values if x.dtype == object]
        arena = stacks.Arena(int(head), self.executable, (given, self.closed.consts))
        outs = [
            stacks.from_addresses(o, arena) if is_stack(a) else o
            for o, a in zip(outs, self.computed_avals, strict=True)
        ]
        return [typed_array(o, a) for o, a in zip(outs, self.computed_avals, strict=True)]

    def check(self, arrays, outs, cell):
        """Where a debug flag finds a bad number in the results, name the operation that made the first one."""
        try:
            check_results(f"the results of jit({self.name})", outs, arrays, "argument")
        except FloatingPointError as error:
            found = error
        else:
            return
        if type(self.executable) is Interpreted:
            rerun(self.closed, arrays)
        first = None if cell is None else failures.found(self.executable.checks, cell)
        raise first or found  # none, where arguments are handed on

    def deleted_argument(self, values) -> Exception:
        """The error for arguments without data."""
        position = [type(x) for x in values].index(Deleted)
        return DeletedArgumentError(
            f"INVALID_ARGUMENT: argument {self.used[position]} of jit({self.name}): Buffer has been deleted or "
            f"donated. {deleted_error(values[position].aval)}"
        )

    def check_donation(self, arrays):
        """Raise where a donated array is passed a second time in the same call."""
        if len({id(arrays[i]) for i in self.used}) == len(self.used):
            return
        places: dict = {}
        for i in self.used:
            places.setdefault(id(arrays[i]), []).append(i)
        for i in self.donated:
            again = [j for j in places[id(arrays[i])] if j != i]
            if again:
                raise JaxRuntimeError(
                    f"jit({self.name}) was called with the same array of type {arrays[i].aval.str_short()} as argument "
                    f"{i}, which is donated, and as argument {again[0]}: f(donate(a), a). Pass a copy, or do not "
                    "donate it."
                )


def as_values(closed: ClosedJaxpr, donated: tuple = ()) -> tuple[ClosedJaxpr, tuple, tuple]:
    """A jaxpr without references, what of its arguments is donated, and the positions of those that it writes to: their
    old values are given away for the new ones.
    """
    is_reference = [type(a) is AbstractRef for a in closed.in_avals]
    closed, written = discharged(closed)
    if True not in is_reference:
        return closed, donated, written
    flags = (False,) * (len(is_reference) - len(donated)) + donated  # what is closed over stands in front
    given = tuple(f and not r or i in written for i, (f, r) in enumerate(zip(flags, is_reference, strict=True)))
    return closed, given, written


class ProgramOnReferences(Program):
    """A program of a jaxpr with references: compiled, it takes their values and returns new ones, in the same memory
    where it may. ``references`` says for each such argument which result is its new value, if it has one.
    """

    __slots__ = ("references",)

    def __init__(self, closed: ClosedJaxpr, donated: tuple = (), name: str = "main", *how: bool):
        count = len(closed.out_avals)
        self.references = {i: None for i, a in enumerate(closed.in_avals) if type(a) is AbstractRef}
        closed, given, written = as_values(closed, donated)
        self.references |= {i: count + k for k, i in enumerate(written)}
        super().__init__(closed, given, name, *how)

    def __call__(self, arrays) -> list:
        """Run on Arrays and references, which have their new values afterwards."""
        arrays = list(arrays)
        cells = {i: core_of(arrays[i]) for i in self.references}
        if len({id(c) for c in cells.values()}) < len(cells):
            i, j = next((i, j) for j in cells for i in cells if i < j and cells[i] is cells[j])
            names = self.name_of_argument(i), self.name_of_argument(j)
            raise aliased(cells[i], *names, f"{self.name} for jit")
        before = {i: c.value for i, c in cells.items()}
        for i, cell in cells.items():
            arrays[i] = typed_array(before[i], cell.aval.inner_aval)
            if self.references[i] is not None:
                cell._value = None  # who looks now would see half of it
        try:
            outs = super().__call__(arrays)
            for i, k in self.references.items():
                before[i] = before[i] if k is None else outs[k]._value
        finally:
            for i, cell in cells.items():
                cell._value = before[i]
        return outs[: len(outs) - len([k for k in self.references.values() if k is not None])]

    def holders(self, i: int) -> int:
        return 1 + (self.used[i] in self.references)

    def name_of_argument(self, i: int) -> str:
        """What an argument is called in errors."""
        info = self.closed.jaxpr.debug_info
        names = info.arg_names if info is not None else None
        return names[i] if names and i < len(names) and names[i] else f"argument {i}"


OWN_DATA = 0x0004  # NPY_ARRAY_OWNDATA


def _references(values: list, i: int) -> int:
    return sys.getrefcount(values[i])


# Of a value that a list alone holds: interpreters count what is on the stack or not.
IN_LIST = _references([object()], 0)


def is_ours(values: list, i: int, holders: int = 1) -> bool:
    """Whether a program may work in the memory of a value: only the list holds it and its Array, and who keeps it for a
    reference. NumPy's write flag does not count, which an Array clears when NumPy has looked at it.
    """
    if _references(values, i) > IN_LIST + holders:
        return False
    value = values[i]
    flags = value.flags.num
    own = flags & OWN_DATA or is_own(value)
    return bool(own) and flags & READY == READY and not context.debug_checks


def physical_type(aval) -> tuple:
    """The shape and NumPy dtype by which a compiled program holds a value."""
    return aval.dtype.physical(aval.shape) if dtypes.is_extended(aval.dtype) else (aval.shape, aval.dtype)


def only_value(aval):
    """The one value of a type without data: zeros of dtype float0, or a token."""
    return typed_array(np.zeros(aval.shape, dtypes.float0), aval)


def used_arguments(jaxpr: Jaxpr, keep_unused: bool) -> list[int]:
    """The positions of the arguments that the program reads or returns; with ``keep_unused``, of all with data."""
    read = {v for eqn in jaxpr.eqns for v in eqn.invars if type(v) is Var}
    read.update(v for v in jaxpr.outvars if type(v) is Var)
    return [i for i, v in enumerate(jaxpr.invars) if v.aval.dtype != dtypes.float0 and (keep_unused or v in read)]


def usable_donations(closed: ClosedJaxpr, donated: tuple, used: list[int]) -> list[int]:
    """The donated arguments whose memory a result can take: those with a result of their shape and dtype."""
    free = [(a.shape, a.dtype) for a in closed.out_avals]
    usable, useless = [], []
    for i in used:
        if donated[i]:
            aval = closed.in_avals[i]
            if (aval.shape, aval.dtype) in free:
                free.remove((aval.shape, aval.dtype))
                usable.append(i)
            else:
                useless.append(aval.str_short())
    if useless:
        message = f"Some donated buffers were not usable: {', '.join(useless)}."
        warnings.warn(message, UserWarning, stacklevel=dtypes.levels_to_user())
    return usable


def closes_over_tracer(name: str) -> UnexpectedTracerError:
    """The error for a program with a traced value among its constants: derivative rules are run when it is made."""
    return UnexpectedTracerError(
        f"the program of {name} has a traced value as a constant: a function with a derivative rule (custom_jvp, "
        "custom_vjp), or its rule, closes over it. A rule says how to differentiate by arguments: pass the value as "
        "one of them"
    )


def has_tracers(closed: ClosedJaxpr) -> bool:
    """Whether there are traced values among the constants of a jaxpr, or of those in it, each looked at once."""
    pending, seen = [closed], set()
    while pending:
        jaxpr = pending.pop()
        if id(jaxpr) in seen:
            continue
        seen.add(id(jaxpr))
        if any(isinstance(x, Tracer) for x in jaxpr.consts):
            return True
        params = (v for e in jaxpr.eqns for v in e.own_params.values())
        inner = (x for v in params for x in (v if isinstance(v, tuple) else (v,)))
        pending += [x for x in inner if isinstance(x, ClosedJaxpr)]
    return False


before_compiling: list[Callable[[], None]] = []  # what may forbid it, by raising; see `compat.compiler`


def compile_logged(closed: ClosedJaxpr, name: str, donated: tuple, checked: bool):
    """Compile, and say so in the log; with the checks in force, where those are wanted."""
    for ask in before_compiling:
        ask()
    log.announce("Compiling jit(%s) for arguments of types %s", name, closed.in_avals, loud=context.log_compiles)
    if not has_compiler():
        if has_tracers(closed):
            raise closes_over_tracer(name)
        return Interpreted(closed)
    checks = failures.kinds_in_force() if checked else frozenset()
    start = time.perf_counter()
    with events.timed(events.COMPILE, fun_name=f"jit({name})"):
        try:
            executable = programs.program(closed, name=name, donated=donated, checks=checks)
        except TracerArrayConversionError:
            raise closes_over_tracer(name) from None
    seconds = time.perf_counter() - start
    log.announce("Compiled jit(%s) in %.3f s", name, seconds, loud=context.log_compiles)
    tracing = getattr(closed.jaxpr.debug_info, "seconds", 0.0)
    if tracing + seconds >= context.slow_compile_secs:
        slow.tell(closed, name, tracing, seconds, executable.report["seconds"])
    return executable


def rerun(closed: ClosedJaxpr, arrays) -> None:
    """Run the equations one by one, loops step by step, so that the flags that check results name the operation."""
    env = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, arrays, strict=True))
    before = context.source
    try:
        with override("jax_disable_jit", True):
            for eqn in closed.eqns:
                context.source = eqn.source or before
                values = [v.val if type(v) is Literal else env[v] for v in eqn.invars]
                out = eqn.primitive.bind(*values, **eqn.own_params)
                outs = out if eqn.primitive.multiple_results else (out,)
                check_results(eqn.primitive.name, outs, values)
                env.update(zip(eqn.outvars, outs, strict=True))
    finally:
        context.source = before


def run_entry(entry, values: tuple, outs: tuple, arrays: Sequence[Array] = ()):
    """Call a native entry; arguments that it cannot read in place (strides, byte order) are copied and tried again.
    ``arrays``, whose values they are, keep the copies for the next call, as of a transposed array.
    """
    status = entry(values, outs)
    while status > 0:
        bad = status - 1
        native = np.array(values[bad], values[bad].dtype.newbyteorder("="), order="C", copy=True)
        if arrays and all(values[bad].strides):  # what is spread stays small
            arrays[bad]._value = native
        values = (*values[:bad], native, *values[bad + 1 :])
        status = entry(values, outs)


def classify_results(closed: ClosedJaxpr):
    """What each result of a jaxpr is, and the variables that must be computed, each once."""
    jaxpr = closed.jaxpr
    arguments = {v: i for i, v in enumerate(jaxpr.invars)}
    constants = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    computed: dict = {}
    results: list[tuple] = []
    for v in jaxpr.outvars:
        if type(v) is Literal:
            results.append(("constant", as_array(v.val)))
        elif v in arguments:
            results.append(("argument", arguments[v]))
        elif v in constants:
            results.append(("constant", leaf_value(constants[v])))
        elif v.aval.dtype == dtypes.float0:
            results.append(("constant", only_value(v.aval)))
        elif v in computed:
            results.append(("again", computed[v]))
        else:
            results.append(("computed", computed.setdefault(v, len(computed))))
    return results, list(computed)


@memoised
def _program_of(closed: ClosedJaxpr, donated: tuple, name: str, *how: bool) -> Program:
    kind = ProgramOnReferences if has_references(closed) else Program
    return kind(closed, donated, name, *how)


def program_of(
    closed: ClosedJaxpr, donated: tuple = (), name: str = "main", keep_unused: bool = False, checked: bool = True
) -> Program:
    """The compiled program of a jaxpr, with the checks in force where it is to be ``checked``."""
    return _program_of(closed, donated if any(donated) else (), name, keep_unused, checked)


def run_jaxpr(
    closed: ClosedJaxpr, args, primitive, donated: tuple = (), name: str = "main", keep_unused: bool = False
) -> list:
    """Run a jaxpr natively on concrete arguments of its types."""
    arrays = [x if type(x) is Array else typed(x, a, primitive) for x, a in zip(args, closed.in_avals, strict=True)]
    return run_program(program_of(closed, donated, name, keep_unused), arrays, closed.out_avals)


def typed(x, aval, primitive) -> Array:
    """``concrete(x)``, which is of the type that the program was made for: it reads that much memory."""
    array = core_of(x) if is_reference(x) else concrete(x, primitive)
    if array.aval is not aval and not same_type(array.aval, aval):
        raise TypeError(
            f"{primitive} was called with a {type(x).__name__} that was said to be {aval.str_short()}, and is "
            f"{array.aval.str_short()}"
        )
    return array


def run_program(program: Program, arrays, out_avals) -> list:
    """Run a program; the results have exactly these types, weakness included. Those of float0 are NumPy's."""
    outs = program(arrays)
    return [
        (out._value if aval.dtype == dtypes.float0 and not aval.extended else out)
        if out.aval is aval or aval.extended
        else retyped(out, aval)
        for out, aval in zip(outs, out_avals, strict=True)
    ]


def on_mesh(closed: ClosedJaxpr) -> Placement | None:
    """Where results are of a program that is mapped over devices in some part, though its arguments lie nowhere."""
    if on_mesh not in closed.memo:
        mesh = mesh_of(closed.jaxpr)
        closed.memo[on_mesh] = None if mesh is None else layouts_of_programs.whole_on(mesh)
    return closed.memo[on_mesh]


def mesh_of(jaxpr: Jaxpr):
    """The mesh of the devices that a part of a jaxpr is mapped over, or ``None``."""
    for eqn in jaxpr.eqns:
        params = eqn.own_params
        named = params and params.get("mesh" if eqn.primitive.name == "shard_map" else "sharding")
        if named:
            mesh = getattr(named, "mesh", named)
            if hasattr(mesh, "_flat"):
                return mesh
        for inner in subjaxprs(params) if params else ():
            found = mesh_of(inner)
            if found is not None:
                return found
    return None
