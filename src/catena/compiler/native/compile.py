"""`compile_jaxpr`: a closed jaxpr to an executable native program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from catena.compiler.emit.clock import Clock
from catena.compiler.emit.entry import STACK_ARENA, write_program
from catena.compiler.emit.loop import write_loop
from catena.compiler.emit.module import Module
from catena.compiler.emit.program import ProgramWriter
from catena.compiler.graph import later_arrays, settled, symbols, thresholds
from catena.compiler.graph.builder import Builder, physical
from catena.compiler.graph.checks import Checks
from catena.compiler.graph.later_arrays import LaterArray
from catena.compiler.graph.region import Region
from catena.compiler.graph.simplify import simplify
from catena.compiler.kernels import loops, schedules
from catena.compiler.machine import X86_64, Machine
from catena.compiler.native import host, kept, later, lengths, link, shared, workers
from catena.compiler.native.executable import Executable, Parts
from catena.compiler.native.image import image
from catena.compiler.native.recording import replaced, traced
from catena.compiler.native.report import describe
from catena.compiler.plan.passes import plan
from catena.compiler.plan.program import Program
from catena.compiler.plan.steps import Launch
from catena.core import failures
from catena.core.context import context
from catena.core.errors import CompileError
from catena.core.lazy import has_compiler
from catena.core.stack import is_stack
from catena.runtime.native import Code, Function, Unit, units


def compile_jaxpr(
    closed_jaxpr,
    *,
    name: str = "main",
    donated=(),
    checks: frozenset = frozenset(),
    made: lengths.Made | None = None,
) -> Executable:
    """Compiles a closed jaxpr.

    Arguments: `closed_jaxpr`; `name`, for reports; `donated`, one flag for each argument: whether the caller
      gives its memory up; `checks`, the kinds of failures that it looks for (`core.failures`).
    Returns: an `Executable`.
    Raises: CompileError naming the operation that cannot be compiled.
    """
    times = link.Times()
    region = lower(closed_jaxpr, checks)
    times.mark("lower")
    return compile_region(settle(region, times), times, name, *_terms(closed_jaxpr, donated), made=made)


# What goes wrong where numbers record; what does so without them too is said when the program is compiled again.
UNRECORDED = (
    symbols.Unrecorded, CompileError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError,
)  # fmt: skip


def compile_recorded(
    closed, numbers: list, name: str, donated: Sequence[bool]
) -> tuple[Executable, lengths.Made] | None:
    """Compiles a jaxpr with numbers that record what they decide (see `graph.symbols`).

    Arguments: `closed`; `numbers`, as `native.lengths` reads them, those that record in a list each, which is the same
      one for the same number; `name` and `donated`, as for `compile_jaxpr`.
    Returns: the executable, and what another program consists of, or None where something cannot be written down.
    """
    made = lengths.Made()
    with symbols.recording(x for x in numbers if type(x) is int) as record:
        known: dict[int, object] = {}
        for x in numbers:
            if type(x) is list and id(x) not in known:
                known[id(x)] = record.argument(lengths.given(x[0]))
        given = [known[id(x)] if type(x) is list else x for x in numbers]
        try:
            executable = compile_jaxpr(replaced(closed, given), name=name, donated=donated, made=made)
        except UNRECORDED:
            return None
    made.function = functools.partial(record.function, made.numbers)
    return executable, made


def text_of(closed_jaxpr, donated=(), machine: Machine | None = None, checks: frozenset = frozenset()) -> str:
    """The LLVM IR that `compile_jaxpr` compiles, or would for another machine."""
    returns_stacks, given = _terms(closed_jaxpr, donated)
    program = _planned(closed_jaxpr, given, machine, checks)
    module = write_program(_writer(program.machine), program, returns_stacks)
    return link.with_helpers(module.text(), module.helpers)


def _terms(closed_jaxpr, donated: Sequence[bool]) -> tuple[bool, list[int]]:
    """Whether a program returns stacks, and which inputs are given up."""
    if len(donated) not in (0, len(closed_jaxpr.in_avals)):
        expected = f"one flag for each of {len(closed_jaxpr.in_avals)} arguments"
        raise CompileError(f"donated: expected {expected}, got {len(donated)}")
    return any(is_stack(a) for a in closed_jaxpr.out_avals), [i for i, given in enumerate(donated) if given]


def lower(closed_jaxpr, checks: frozenset = frozenset(), machine: Machine | None = None) -> Region:
    """The graph of a closed jaxpr; `checks` are the kinds of failures that it looks for, `machine` the one at hand if
    no other is given; where there is no compiler, which alone knows it, one that has no more than it needs.
    """
    if machine is None:
        machine = host.this_machine() if has_compiler() else X86_64
    sites: list[failures.Site] = []
    closed = simplify(closed_jaxpr)
    b = Builder(Checks(checks, sites), multiplied=machine.multiplied, trace=traced)
    b.region.sites = sites
    inputs = [b.input(*physical(v.aval)) for v in closed.jaxpr.invars]
    b.region.outputs = b.call(closed, inputs)
    return b.region


def settle(region: Region, times: link.Times | None = None) -> Region:
    """The region, in place, for this machine: what depends on no argument is computed now (see `graph.settled`), unless
    it is to be tested.

    Raises: symbols.Unrecorded where a program of another length could not compute it.
    """
    if region.sites:
        return region
    return settled.settle(region, lambda alone: _settled(alone, times))


def _settled(alone: Region, times: link.Times | None) -> Sequence:
    """The results of a region without inputs, which programs of other lengths compute for themselves."""
    if not symbols.is_recording():
        return compile_region(alone, times, "settled")()
    made = lengths.Made(is_part=True)
    executable = compile_region(alone, times, "settled", made=made)
    run = lengths.Part(executable, made)
    return later_arrays.arrays(run, made.numbers, executable(), [v.shape for v in alone.outputs])


def _writer(machine: Machine, clock: Clock | None = None) -> ProgramWriter:
    """What writes programs for a machine."""
    return ProgramWriter(machine, workers.parallel_for(machine), clock)


def program_of(closed_jaxpr, donated: Sequence[bool] = (), machine: Machine | None = None) -> Program:
    """The program that `compile_jaxpr` compiles, or would for another machine."""
    return _planned(closed_jaxpr, _terms(closed_jaxpr, donated)[1], machine, failures.kinds_in_force())


def _planned(closed_jaxpr, given: list[int], machine: Machine | None, checks: frozenset) -> Program:
    region = lower(closed_jaxpr, checks, machine)
    return plan(region if machine else settle(region), machine or host.this_machine(), given)


def nests(closed_jaxpr) -> list[str]:
    """The loop nests of the program, as text."""
    return shown_nests(program_of(closed_jaxpr))


def explain(closed_jaxpr) -> list[str]:
    """What the program does, a line for each pass over memory, library call and loop."""
    return describe(program_of(closed_jaxpr).fused)


def compile_region(
    region: Region,
    times: link.Times | None = None,
    name: str = "main",
    returns_stacks: bool = False,
    donated: Sequence[int] = (),
    clocks: list[Clock] | None = None,
    made: lengths.Made | None = None,
) -> Executable:
    """Compiles a graph; `donated` lists the inputs whose memory results may take. Where a list of `clocks` is given,
    the program measures its steps, and its clock joins the list; `made` gets all that other lengths change.
    """
    times = times or link.Times()
    dump = context.dump_ir_to
    stages: dict[str, str] = {}
    shown = (lambda name, made: stages.update({name: str(made)})) if dump else None
    program = plan(region, host.this_machine(), donated, shown)
    times.mark("plan")
    if clocks is not None:
        clocks.append(Clock(program))
    writer = _writer(program.machine, clocks[-1] if clocks else None)
    module = write_program(writer, program, returns_stacks)
    text = lambda: link.with_helpers(module.text(), module.helpers)
    level = link.code_level(module.size)
    division = shared.plan(module, level)
    times.mark("emit")
    if dump:
        optimised = link.compile_text(text(), times, level)[1]
        stages |= {"nests": "\n\n".join(shown_nests(program)), "ll": text(), "opt.ll": str(optimised)}
        _dump(Path(dump), name, {"graph": str(region), **stages, "s": link.assembly(text(), level)})
    needs_memory = thresholds.exceeds(program.arena_bytes, STACK_ARENA)
    can_fail = bool(region.sites or module.interruptible or module.sites or needs_memory)
    if made is not None:
        _record(made, region, program, module, division, level)
    codes = _kernels(division, times)
    entry = division.entry
    code_name = link.object_name(entry.text, entry.level)
    code = link.object_code(code_name, entry.text, times, entry.level)
    parts = Parts(
        code=code,
        code_name=code_name,
        numbers=[*map(_plain, module.numbers)],  # some are of this record, or of one before that a cache has kept
        constants=[later_arrays.held(x) for x in module.constants],
        externals=module.externals,
        out_specs=[(tuple(map(_plain, v.shape)), v.dtype) for v in region.outputs],
        reused=program.reused,
        arena_bytes=_plain(program.arena_bytes),
        functions=len(module.functions),
        flops=_plain(program.flops),
        bytes=_plain(program.bytes),
        can_fail=can_fail,
        uses_stacks="stacks" in writer.uses,
        returns_stacks=returns_stacks,
        sites=module.sites,
        is_bound=division.is_bound,
        imports=entry.imports,
        units=units(list(codes.values())),
        found=list(division.codes),
        linked=division.linked,
    )
    executable = Executable(parts, text, times.seconds, [codes[f.name] for f in entry.imports], region.sites)
    times.mark("load")
    return executable


def _plain(n) -> int:
    """The value of a number, which is not written down."""
    return int(symbols.plain(n))


def _record(
    made: lengths.Made, region: Region, program: Program, module: Module, division: shared.Plan, level: int
) -> None:
    """Notes the numbers that a program of another length has otherwise, and the functions that it chooses by them."""
    made.numbers = lengths.told(module.numbers, program.arena_bytes, program.flops, program.bytes, region.outputs)
    for place, choice in division.choices:
        made.numbers += choice.numbers
        find = functools.partial(_chosen, choice.write, level, {})
        made.choices.append(lengths.Chosen(place, len(choice.numbers), find))
    constants: Sequence = module.constants
    later = {i: x for i, x in enumerate(constants) if type(x) is LaterArray}
    made.constants = [*later]
    made.numbers += [x.made for x in later.values()]
    if not made.is_part:
        symbols.close()


def _kernels(division: shared.Plan, times: link.Times) -> dict[str, Code]:
    """Where the functions are that a program calls: new ones are compiled, and offered to other programs."""
    codes = dict(division.codes)
    for part in division.kernels:
        unit = Unit(link.object_name(part.text, part.level), part.exports, part.imports)
        code = later.put_off(unit, part.later) if part.later else None
        codes |= dict.fromkeys(part.exports, code or _code(part, unit, codes, times))
        kept.keep(unit)
        times.mark("load")
    return codes


def _chosen(
    write: Callable[[tuple], str], level: int, known: dict[tuple, Function], numbers: tuple
) -> tuple[Function, Code]:
    """The function that is written for these numbers, and its code: compiled, where it is not in the process. `known`
    are those that were asked for before, whose texts need not be written to find them.
    """
    function = known.get(numbers)
    code = None if function is None else kept.find(function.key)
    if function is None or code is None:
        part = shared.alone(write(numbers), level)
        ((name, key),) = part.exports.items()
        function = known[numbers] = Function(name, key)
        code = kept.find(key) or _kept_code(part, level)
    return function, code


def _kept_code(part: shared.Part, level: int) -> Code:
    """A part that calls no others, compiled, loaded, and noted for programs to come."""
    unit = Unit(link.object_name(part.text, level), part.exports, part.imports)
    code = _code(part, unit, {}, link.Times())
    kept.keep(unit)
    return code


def _code(part: shared.Part, unit: Unit, codes: dict[str, Code], times: link.Times) -> Code:
    """A part, compiled and loaded, beside the code that it calls."""
    compiled = link.object_code(unit.name, part.text, times, part.level)
    linked = [codes[function.name] for function in part.imports]
    return Code(compiled, host.new_generator, linked, unit)


def loop_text(closed_jaxpr, name: str) -> str:
    """The LLVM IR of the function ``loop``, a ufunc's inner loop (`emit.loop`).

    Raises: CompileError where the function is not elementwise.
    """
    region = lower(closed_jaxpr)
    program = plan(region, host.this_machine()._replace(threads=False))
    module = write_loop(ProgramWriter(program.machine), program, [*region.inputs, *region.outputs])
    if module is None:
        raise CompileError(f"{name} is no elementwise function: it needs tables, routines or memory")
    return link.with_helpers(module.text(), module.helpers)


def loop_image(text: str) -> tuple[bytes, int] | None:
    """The image of a loop, and where in it the loop begins; None where there are no images for this processor."""
    code = link.relocatable_code(text)
    return image(code, "loop")


def loop_code(text: str) -> Code:
    """The code of a loop, loaded by LLVM."""
    return Code(link.compile_text(text, link.Times(), 2)[0], host.new_generator)


def assembly(text: str) -> str:
    """The machine code of a module, as text."""
    return link.assembly(text, link.code_level(len(text)))


def shown_nests(program: Program) -> list[str]:
    """The loop nests of a program, as text: equal ones that are one object each with their own names of values."""
    found: list[str] = []
    for _, step in program.steps():
        names = step.names if isinstance(step, Launch) else None
        found += [loops.show(schedules.touching(nest, names) if names else nest) for nest in step.nests()]
    return found


def _dump(folder: Path, name: str, stages: dict[str, str]) -> None:
    """Writes what each stage made of a program, a file each."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{len(list(folder.glob('*.graph'))):03d}"
    for suffix, content in stages.items():
        (folder / f"{stem}.{suffix}").write_text(content)
