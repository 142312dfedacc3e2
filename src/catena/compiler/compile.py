"""`compile_jaxpr`: a closed jaxpr to an executable native program."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from catena.compiler import link
from catena.compiler.emit.program import Module, ProgramWriter
from catena.compiler.graph import Builder, Region
from catena.compiler.simplify import simplify
from catena.core.errors import CompileError
from catena.runtime import kernels
from catena.runtime.native import ARRAY_DATA, ARRAY_FLAGS, READY, TUPLE_ITEMS, Native

STACK_ARENA = 32 * 1024


class Executable:
    """A compiled program.

    `entry(args, outs)` is one native call on tuples of ndarrays (see `runtime.native`); calling the executable checks
    nothing but allocates the results.
    """

    def __init__(self, native: Native, out_specs: tuple, report: dict, module: Module, text: str):
        self.native, self.entry, self.out_specs, self.report = native, native.entry, out_specs, report
        self._module, self._text = module, text
        if native.callbacks:
            self.entry.errcheck = _raise_failure

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        outs = tuple(np.empty(shape, dtype) for shape, dtype in self.out_specs)
        args = tuple(args)
        status = self.entry(args, outs)
        while status > 0:
            i = status - 1
            args = (*args[:i], np.array(args[i], order="C", copy=True), *args[i + 1 :])
            status = self.entry(args, outs)
        return outs

    @property
    def temporary_bytes(self) -> int:
        """Memory for intermediate values, beside arguments and results."""
        return self._module.arena_bytes

    def cost_analysis(self) -> dict[str, float]:
        """Arithmetic operations and bytes moved, counted on the loop nests (loops of unknown length count once)."""
        return {"flops": float(self._module.flops), "bytes accessed": float(self._module.bytes)}

    def as_text(self, stage: str = "llvm") -> str:
        """The program's text: `nests` (loop nests) or `llvm`."""
        return "\n\n".join(self._module.nests) if stage == "nests" else self._text


def _raise_failure(status: int, function, arguments) -> int:
    """After a call of a program that has callbacks: raises what a callback raised."""
    if status < 0:
        kernels.raise_pending()
    return status


def compile_jaxpr(closed_jaxpr, *, name: str = "main", donated=()) -> Executable:
    """Compiles a closed jaxpr.

    Arguments: `closed_jaxpr`; `name`, for reports; `donated`, one flag for each argument: whether the caller gives its
      memory up.
    Returns: an `Executable`.
    Raises: CompileError naming the operation that cannot be compiled.
    """
    times = link.Times()
    region = lower(closed_jaxpr)
    times.mark("lower")
    donated = tuple(donated)
    if len(donated) not in (0, len(region.inputs)):
        raise CompileError(f"donated: expected one flag for each of {len(region.inputs)} arguments, got {len(donated)}")
    return compile_region(region, times, name)


def lower(closed_jaxpr) -> Region:
    """The graph of a closed jaxpr."""
    closed = simplify(closed_jaxpr)
    b = Builder()
    inputs = [b.input(v.aval.shape, v.aval.dtype) for v in closed.jaxpr.invars]
    b.region.outputs = b.call(closed, inputs)
    return b.region


def compile_region(region: Region, times: link.Times | None = None, name: str = "main") -> Executable:
    """Compiles a graph."""
    times = times or link.Times()
    dump = os.environ.get("CATENA_DUMP")
    writer = ProgramWriter(link.target().vector_bytes, keep_nests=bool(dump))
    module = write_program(writer, region)
    text = link.with_helpers(module.text, module.helpers)
    times.mark("emit")
    code, optimised = link.compile_text(text, times, link.code_level(text))
    native = Native(code, module.constants, module.externals, link.new_machine(1))
    times.mark("load")
    report = {"seconds": times.seconds, "bytes": len(code), "functions": module.functions, "arena": module.arena_bytes}
    if dump:
        _dump(Path(dump), name, region, module, text, str(optimised))
    out_specs = tuple((v.shape, v.dtype) for v in region.outputs)
    return Executable(native, out_specs, report, module, text)


def _dump(folder: Path, name: str, region: Region, module: Module, text: str, optimised: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{len(list(folder.glob('*.graph'))):03d}"
    stages = {"graph": str(region), "nests": "\n\n".join(module.nests), "ll": text, "opt.ll": optimised}
    for suffix, content in stages.items():
        (folder / f"{stem}.{suffix}").write_text(content)


# ---- the entry function ----------------------------------------------------------------------------------------


def write_program(w: ProgramWriter, region: Region) -> Module:
    """The module of a whole program."""
    e = w.e
    inputs = [_argument(e, "args", i) for i in range(len(region.inputs))]
    outputs = [_pointer(e, _object(e, "outs", i)) for i in range(len(region.outputs))]
    _check_arguments(e, inputs)
    pointers = [_pointer(e, obj) for obj in inputs]
    before, start = len(e.lines), e.block
    e.block = "body"
    w.region(region, pointers, outputs)
    body = e.lines[before:]
    prologue, epilogue = _arena(w.arena.peak, start)
    save, restore = _one_blas_thread(w)
    lines = ["define i64 @entry(ptr %args, ptr %outs) {", "entry:", "  %status = alloca i64", "  store i64 0, ptr %status",
             *e.slots, *e.lines[:before], *prologue, "  br label %body", "body:", *save, *body, "  br label %finish", "finish:", *restore, *epilogue,
             "  %result = load i64, ptr %status", "  ret i64 %result", "}"]
    return w.finish(_GLOBALS + "\n".join(lines))


_GLOBALS = """@arena_cache = global ptr null, align 8
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)
"""


def _object(e, table: str, i: int) -> str:
    return e.op(f"load ptr, ptr {e.element(f'%{table}', 'i8', TUPLE_ITEMS + 8 * i)}")


def _argument(e, table: str, i: int) -> str:
    return _object(e, table, i)


def _pointer(e, obj: str) -> str:
    return e.op(f"load ptr, ptr {e.element(obj, 'i8', ARRAY_DATA)}")


def _check_arguments(e, objects: list[str]) -> None:
    """Returns 1 + i for the first argument that is not contiguous and aligned."""
    if not objects:
        return
    first = "0"
    for i in reversed(range(len(objects))):
        flags = e.op(f"load i32, ptr {e.element(objects[i], 'i8', ARRAY_FLAGS)}")
        ready = e.op(f"icmp eq i32 {e.op(f'and i32 {flags}, {READY}')}, {READY}")
        first = e.op(f"select i1 {ready}, i64 {first}, i64 {i + 1}")
    bad = e.op(f"icmp ne i64 {first}, 0")
    refuse, go = e.label(), e.label()
    e.branch(bad, refuse, go)
    e.start(refuse)
    e.do(f"ret i64 {first}")
    e.start(go)


def _one_blas_thread(w: ProgramWriter) -> tuple[list[str], list[str]]:
    """BLAS runs on one thread but for large products; the user's setting is restored in the end."""
    if not w.uses_blas or not kernels.can_limit_threads():
        return [], []
    at = len(w.e.lines)
    get = w.external(kernels.ThreadControl("get_num_threads"))
    w.e.do(f"%blas_threads = call i32 {get}()")
    w.blas_threads("1")
    save = w.e.lines[at:]
    w.blas_threads("%blas_threads")
    restore = w.e.lines[at + len(save) :]
    del w.e.lines[at:]
    return save, restore


def _arena(size: int, start: str) -> tuple[list[str], list[str]]:
    """Where temporaries live: the stack, or memory kept from call to call (a concurrent call allocates its own)."""
    if not size:
        return [], []
    if size <= STACK_ARENA:
        return [f"  %arena = alloca [{size} x i8], align 64"], []
    size = -(-size // 4096) * 4096
    align = 4096 if size < 4 << 20 else 2 << 20
    size = -(-size // align) * align
    prologue = [
        "  %kept = atomicrmw xchg ptr @arena_cache, ptr null acq_rel",
        "  %none = icmp eq ptr %kept, null",
        "  br i1 %none, label %grow, label %ready",
        "grow:",
        f"  %fresh = call ptr @aligned_alloc(i64 {align}, i64 {size})",
        f"  %advice = call i32 @madvise(ptr %fresh, i64 {size}, i32 14)",
        "  br label %ready",
        "ready:",
        f"  %arena = phi ptr [ %kept, %{start} ], [ %fresh, %grow ]",
    ]
    epilogue = ["  %other = atomicrmw xchg ptr @arena_cache, ptr %arena acq_rel", "  call void @free(ptr %other)"]
    return prologue, epilogue
