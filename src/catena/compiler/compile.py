"""`compile_jaxpr`: a closed jaxpr to an executable native program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from catena.compiler import host, link
from catena.compiler.emit import bounds
from catena.compiler.emit.entry import STACK_ARENA, write_program
from catena.compiler.emit.interrupts import INTERRUPTED
from catena.compiler.emit.program import Module, ProgramWriter
from catena.compiler.emit.stack_steps import OUT_OF_MEMORY
from catena.compiler.graph import Builder, Region, physical
from catena.compiler.report import describe
from catena.compiler.simplify import simplify
from catena.core.context import context
from catena.core.errors import CompileError, OutOfMemoryError
from catena.core.stack import is_stack
from catena.runtime import kernels, threads
from catena.runtime.native import Native


class Executable:
    """A compiled program.

    `entry(args, outs)` is one native call on tuples of ndarrays (see `runtime.native`); calling the
    executable checks nothing but allocates the results. `reused` maps results to donated arguments: the caller
    passes the same array for both, the program works in its memory. Where `returns_stacks`, `outs` has one uint64 more,
    which receives the head of the chain of all stacks that the run made; the caller gives them back with
    `free_stacks(head)`.
    """

    def __init__(
        self,
        native: Native,
        out_specs: tuple,
        report: dict,
        module: Module,
        text: str,
        code: bytes,
        returns_stacks: bool,
        reused: dict[int, int],
    ):
        self.native, self.entry, self.out_specs, self.report = native, native.entry, out_specs, report
        self._module, self._text, self.code, self.reused = module, text, code, reused
        self.returns_stacks, self.free_stacks = returns_stacks, native.free_stacks
        allocates = module.arena_bytes > STACK_ARENA
        self._can_fail = bool(
            native.callbacks or native.free_stacks or module.interruptible or allocates or module.sites
        )
        if self._can_fail:
            self.entry.errcheck = functools.partial(_raise_failure, module.sites)

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results; a program that returns stacks gives their addresses, then the head of their chain."""
        specs = self.out_specs + ((((), np.uint64),) if self.returns_stacks else ())
        args = tuple(np.array(a, order="C") if i in self.reused.values() else a for i, a in enumerate(args))
        outs = tuple(args[self.reused[k]] if k in self.reused else np.empty(*spec) for k, spec in enumerate(specs))
        status = self.entry(args, outs)
        while status > 0:
            i = status - 1
            args = (*args[:i], np.array(args[i], order="C", copy=True), *args[i + 1 :])
            status = self.entry(args, outs)
        return outs

    @property
    def standalone(self) -> bool:
        """Whether the object code is all there is: it is bound to nothing, cannot fail, and takes nobody's memory."""
        return not (self._module.constants or self._module.externals or self._can_fail or self.reused)

    @property
    def temporary_bytes(self) -> int:
        """Memory for intermediate values, beside arguments and results."""
        return self._module.arena_bytes

    def cost_analysis(self) -> dict[str, float]:
        """Arithmetic operations and bytes moved, counted on the loop nests (`while` counts once)."""
        return {"flops": float(self._module.flops), "bytes accessed": float(self._module.bytes)}

    def as_text(self, stage: str = "llvm") -> str:
        """The program's text: `llvm`, or `assembly` of the machine that it was compiled for."""
        return link.assembly(self._text, link.code_level(self._text)) if stage == "assembly" else self._text


def _raise_failure(sites: list[str], status: int, function, arguments) -> int:
    """After a call of a program that can fail (it has callbacks, long loops, large temporaries): raises why."""
    if status == OUT_OF_MEMORY:
        raise OutOfMemoryError(
            "RESOURCE_EXHAUSTED: Out of memory while allocating the intermediate results of a compiled program"
        )
    if status == INTERRUPTED:
        kernels.raise_interrupt()
    bounds.raise_violation(sites, status)
    if status < 0:
        kernels.raise_pending()
    return status


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
    donated = tuple(donated)
    if len(donated) not in (0, len(region.inputs)):
        raise CompileError(f"donated: expected one flag for each of {len(region.inputs)} arguments, got {len(donated)}")
    stacks = any(is_stack(a) for a in closed_jaxpr.out_avals)
    return compile_region(region, times, name, stacks, [i for i, given in enumerate(donated) if given])


def lower(closed_jaxpr) -> Region:
    """The graph of a closed jaxpr."""
    closed = simplify(closed_jaxpr)
    b = Builder()
    inputs = [b.input(*physical(v.aval)) for v in closed.jaxpr.invars]
    b.region.outputs = b.call(closed, inputs)
    return b.region


def nests(closed_jaxpr) -> list[str]:
    """The loop nests of the program, as text."""
    writer = ProgramWriter(host.target().vector_bytes, True, parallel_loops())
    return write_program(writer, lower(closed_jaxpr), False, ()).nests


def explain(closed_jaxpr) -> list[str]:
    """What the program does, a line for each pass over memory, library call and loop."""
    return describe(lower(closed_jaxpr))


def parallel_loops() -> threads.ParallelFor | None:
    """What runs parallel loops; None when programs run on one thread."""
    return threads.ParallelFor(link.pool) if threads.available() and threads.count() > 1 else None


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
    writer = ProgramWriter(host.target().vector_bytes, bool(dump), parallel_loops())
    module = write_program(writer, region, returns_stacks, donated)
    text = link.with_helpers(module.text, module.helpers)
    times.mark("emit")
    if dump:
        code, optimised = link.compile_text(text, times, link.code_level(text))
        _dump(Path(dump), name, region, module, text, str(optimised))
    else:
        code = link.object_code(text, times, link.code_level(text))
    native = Native(code, module.constants, module.externals, host.new_machine(1), writer.uses_stacks)
    times.mark("load")
    report = {
        "seconds": times.seconds,
        "bytes": len(code),
        "functions": module.functions,
        "arena": module.arena_bytes,
    }
    out_specs = tuple((v.shape, v.dtype) for v in region.outputs)
    return Executable(native, out_specs, report, module, text, code, returns_stacks, writer.reused)


def _dump(folder: Path, name: str, region: Region, module: Module, text: str, optimised: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{len(list(folder.glob('*.graph'))):03d}"
    stages = {"graph": str(region), "nests": "\n\n".join(module.nests), "ll": text, "opt.ll": optimised}
    stages["s"] = link.assembly(text, link.code_level(text))
    for suffix, content in stages.items():
        (folder / f"{stem}.{suffix}").write_text(content)
