"""`compile_jaxpr`: a closed jaxpr to an executable native program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from catena.compiler import host, link, shared, workers
from catena.compiler.emit.entry import STACK_ARENA, write_program
from catena.compiler.emit.loop import write_loop
from catena.compiler.emit.module import Module
from catena.compiler.emit.program import ProgramWriter
from catena.compiler.executable import Executable, Parts
from catena.compiler.graph import Builder, Region, physical
from catena.compiler.image import image
from catena.compiler.machine import Machine
from catena.compiler.report import describe
from catena.compiler.simplify import simplify
from catena.core.context import context
from catena.core.errors import CompileError
from catena.core.stack import is_stack
from catena.runtime.native import Code


def compile_jaxpr(closed_jaxpr, *, name: str = "main", donated=()) -> Executable:
    """Compiles a closed jaxpr.

    Arguments: `closed_jaxpr`; `name`, for reports; `donated`, one flag for each argument: whether the caller
      gives its memory up.
    Returns: an `Executable`.
    Raises: CompileError naming the operation that cannot be compiled.
    """
    times = link.Times()
    region = lower(closed_jaxpr)
    times.mark("lower")
    return compile_region(region, times, name, *_terms(closed_jaxpr, donated))


def text_of(closed_jaxpr, donated=(), machine: Machine | None = None) -> str:
    """The LLVM IR that `compile_jaxpr` compiles, or would for another machine."""
    module = write_program(_writer(machine or host.this_machine()), lower(closed_jaxpr), *_terms(closed_jaxpr, donated))
    return link.with_helpers(module.text(), module.helpers)


def _terms(closed_jaxpr, donated: Sequence[bool]) -> tuple[bool, list[int]]:
    """Whether a program returns stacks, and which inputs are given up."""
    if len(donated) not in (0, len(closed_jaxpr.in_avals)):
        expected = f"one flag for each of {len(closed_jaxpr.in_avals)} arguments"
        raise CompileError(f"donated: expected {expected}, got {len(donated)}")
    return any(is_stack(a) for a in closed_jaxpr.out_avals), [i for i, given in enumerate(donated) if given]


def lower(closed_jaxpr) -> Region:
    """The graph of a closed jaxpr."""
    closed = simplify(closed_jaxpr)
    b = Builder()
    inputs = [b.input(*physical(v.aval)) for v in closed.jaxpr.invars]
    b.region.outputs = b.call(closed, inputs)
    return b.region


def _writer(machine: Machine, keep_nests: bool = False) -> ProgramWriter:
    """What writes programs for a machine."""
    return ProgramWriter(machine, keep_nests, workers.parallel_for(machine))


def nests(closed_jaxpr) -> list[str]:
    """The loop nests of the program, as text."""
    return write_program(_writer(host.this_machine(), keep_nests=True), lower(closed_jaxpr), False, ()).nests


def explain(closed_jaxpr) -> list[str]:
    """What the program does, a line for each pass over memory, library call and loop."""
    return describe(lower(closed_jaxpr))


def compile_region(
    region: Region,
    times: link.Times | None = None,
    name: str = "main",
    returns_stacks: bool = False,
    donated: Sequence[int] = (),
) -> Executable:
    """Compiles a graph; `donated` lists the inputs whose memory results may take."""
    times = times or link.Times()
    dump = context.dump_ir_to
    writer = _writer(host.this_machine(), keep_nests=bool(dump))
    module = write_program(writer, region, returns_stacks, donated)
    text = link.with_helpers(module.text(), module.helpers)
    level = link.code_level(text)
    plan = shared.plan(module, text, level, alone=bool(dump))
    times.mark("emit")
    code_name = link.object_name(plan.text, level)
    if dump:
        code, optimised = link.compile_text(text, times, level)
        _dump(Path(dump), name, region, module, text, str(optimised))
    else:
        code = link.object_code(code_name, plan.text, times, level)
    parts = Parts(
        code,
        code_name,
        module.constants,
        module.externals,
        [(v.shape, v.dtype) for v in region.outputs],
        writer.reused,
        module.arena_bytes,
        len(module.functions),
        module.flops,
        module.bytes,
        bool(module.interruptible or module.sites or module.arena_bytes > STACK_ARENA),
        writer.uses_stacks,
        returns_stacks,
        module.sites,
        plan.exports,
        plan.imports,
        plan.linked,
    )
    executable = Executable(parts, lambda: text, times.seconds, plan.codes)
    times.mark("load")
    return executable


def loop_text(closed_jaxpr, name: str) -> str:
    """The LLVM IR of the function ``loop``, a ufunc's inner loop (`emit.loop`).

    Raises: CompileError where the function is not elementwise.
    """
    module = write_loop(ProgramWriter(host.this_machine()), lower(closed_jaxpr))
    if module is None:
        raise CompileError(f"{name} is no elementwise function: it needs tables, routines or memory")
    return link.with_helpers(module.text(), module.helpers)


def loop_image(text: str) -> tuple[bytes, int] | None:
    """The image of a loop, and where in it the loop begins; None where there are no images for this processor."""
    code = link.relocatable_code(text)
    return image(code, "loop")


def loop_code(text: str) -> Code:
    """The code of a loop, loaded by LLVM."""
    return Code(link.compile_text(text, link.Times(), 2)[0], host.new_generator(2), {})


def assembly(text: str) -> str:
    """The machine code of a module, as text."""
    return link.assembly(text, link.code_level(text))


def _dump(folder: Path, name: str, region: Region, module: Module, text: str, optimised: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{len(list(folder.glob('*.graph'))):03d}"
    stages = {"graph": str(region), "nests": "\n\n".join(module.nests), "ll": text, "opt.ll": optimised}
    stages["s"] = link.assembly(text, link.code_level(text))
    for suffix, content in stages.items():
        (folder / f"{stem}.{suffix}").write_text(content)
