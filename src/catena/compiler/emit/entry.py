"""The entry of a program: it checks its arguments, finds their memory, runs the steps and cleans up."""

from __future__ import annotations

from catena.compiler.emit import bounds, checks, stack_steps, subnormals
from catena.compiler.emit.branches import when_it_leaves
from catena.compiler.emit.module import NUMBERS, Module
from catena.compiler.emit.program import ProgramWriter
from catena.compiler.emit.sizes import Sizes
from catena.compiler.graph.symbols import computed
from catena.compiler.graph.thresholds import exceeds
from catena.compiler.plan.program import Buffer, Program
from catena.runtime import kernels
from catena.runtime.layout import DATA, FLAGS, READY, TUPLE_ITEMS
from catena.runtime.status import OUT_OF_MEMORY

STACK_ARENA, LEAST_ARENA = 32 * 1024, 4 * 1024
HUGE_PAGES = 14  # advice for `madvise`, on Linux
LONG = 200  # lines
MANY = 32  # arguments, from which a loop looks at them


def write_program(w: ProgramWriter, program: Program, returns_stacks: bool = False) -> Module:
    """The module of a program; one that returns stacks leaves the head of their chain in one more result,
    one that is checked what failed in the last.
    """
    e, place = w.e, w.texts.numbers  # what holds the writer would be a cycle
    e.sizes = Sizes(e.slots, NUMBERS, lambda n: place([n]))
    many = w.sites is None and len(program.inputs) >= MANY
    inputs = [] if many else [_object(e, "args", i) for i in range(len(program.inputs))]
    for i, buffer in enumerate(program.outputs):
        w.place(buffer, _pointer(e, _object(e, "outs", i)))
    stacks_at = _pointer(e, _object(e, "outs", len(program.outputs))) if returns_stacks else None
    if program.cell is not None:
        cell = _pointer(e, _object(e, "outs", len(program.outputs) + returns_stacks))
        w.place(program.cell, cell)
        w.checks.cell, w.checks.stops = cell, program.stops
    if many:
        _take_arguments(w, program.inputs)
    else:
        _check_arguments(e, inputs)
        for buffer, obj in zip(program.inputs, inputs):
            w.place(buffer, _pointer(e, obj))
    compute, compute_as_before = subnormals.around_program(w)
    before, start = len(e.lines), e.block
    e.block = "body"
    if w.sites is not None:
        fresh = [b for i, b in enumerate(program.outputs) if i not in program.reused]
        bounds.unwritten(e, program.arena_bytes, [(w.pointer(b), b.bytes) for b in fresh])
    w.block(program.body, outermost=True)
    checks.stop_if_failed(w)
    body = e.lines[before:]
    prologue, epilogue = _arena(w, program, start)
    save, restore = _one_blas_thread(w)
    make_stacks, drop_stacks = stack_steps.frame_lines(w, stacks_at)
    w.helpers.update(ARENA_CALLS)
    lines = [
        f"define i64 @entry(ptr %args, ptr %outs, ptr %table){_effort(w, body)} {{",
        "entry:",
        "  %status = alloca i64",
        "  store i64 0, ptr %status",
        *e.slots,
        *make_stacks,
        *e.lines[:before],
        *prologue,
        "  br label %body",
        "body:",
        *compute,
        *save,
        *body,
        "  br label %finish",
        "finish:",
        *compute_as_before,
        *restore,
        *drop_stacks,
        *epilogue,
        "  %result = load i64, ptr %status",
        "  ret i64 %result",
        "}",
    ]
    return w.finish((FREE_ARENA if epilogue else "") + "\n".join(lines))


ARENA_CALLS = {
    "aligned_alloc": "declare ptr @aligned_alloc(i64, i64)",
    "free": "declare void @free(ptr)",
    "madvise": "declare i32 @madvise(ptr, i64, i32)",
    "ptrmask": "declare ptr @llvm.ptrmask.p0.i64(ptr, i64)",
}
# The lowest bit of the arena's place in the table is set at each look (`runtime.idle`), and gone after each call of the
# program: if it is there at the next look, nobody has used the arena meanwhile.
UNMARKED = "call ptr @llvm.ptrmask.p0.i64(ptr {}, i64 -2)"
FREE_ARENA = f"""
define void @free_arena(ptr %table) {{
  %word = atomicrmw xchg ptr %table, ptr null acq_rel
  %kept = {UNMARKED.format("%word")}
  call void @free(ptr %kept)
  ret void
}}
define void @free_idle_arena(ptr %table) {{
  %word = atomicrmw or ptr %table, i64 1 acq_rel
  %marked = trunc i64 %word to i1
  br i1 %marked, label %idle, label %done
idle:
  call void @free_arena(ptr %table)
  br label %done
done:
  ret void
}}
"""


# On which LLVM 20 to 22 abort where they do not optimise: selects of vectors, and one shuffle after another of eight
# elements of 16 bits, for processors with AVX2 and no more.
ABORTING = (" select <", " shufflevector <8 x half>", " shufflevector <8 x bfloat>", " shufflevector <8 x i16>")


def _effort(w: ProgramWriter, body: list[str]) -> str:
    """Programs without loops run each line once. Where they are nothing but calls, optimisation finds nothing; where
    they are long, LLVM is superlinear in them: 500 calls take it 0.9 s, or 0.04 s without optimisation. The loop nests
    are functions of their own and keep their optimisation; a loop over chunks, each of which takes a microsecond or
    longer, needs none.
    """
    if w.loops or w.loops_here and _lines_of_work(body) <= LONG:
        return ""
    text = "\n".join(body)
    return "" if any(aborting in text for aborting in ABORTING) else " optnone noinline"


def _lines_of_work(body: list[str]) -> int:
    """How long it is but for what reads its numbers."""
    return sum(" = load i64, ptr %t" not in line and f"ptr {NUMBERS}" not in line for line in body)


def _object(e, table: str, i: int) -> str:
    return e.op(f"load ptr, ptr {e.element(f'%{table}', 'i8', TUPLE_ITEMS + 8 * i)}")


def _pointer(e, obj: str) -> str:
    return e.op(f"load ptr, ptr {e.element(obj, 'i8', DATA)}")


def _check_arguments(e, objects: list[str]) -> None:
    """Returns 1 + i for the first argument that is not contiguous and aligned."""
    if not objects:
        return
    first = "0"
    for i in reversed(range(len(objects))):
        flags = e.op(f"load i32, ptr {e.element(objects[i], 'i8', FLAGS)}")
        ready = e.op(f"icmp eq i32 {e.op(f'and i32 {flags}, {READY}')}, {READY}")
        first = e.op(f"select i1 {ready}, i64 {first}, i64 {i + 1}")
    _refuse(e, first)


def _refuse(e, first: str) -> None:
    """Returns the number of the first argument that is not as programs need it, unless it is 0."""
    with when_it_leaves(e, e.op(f"icmp ne i64 {first}, 0")):
        e.do(f"ret i64 {first}")


ARGUMENTS = f"""(ptr %args, i64 %count, ptr %pointers, ptr %first) nounwind {{
entry:
  %objects = getelementptr i8, ptr %args, i64 {TUPLE_ITEMS}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %good ]
  %next = add i64 %i, 1
  %object_at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object_at
  %data_at = getelementptr i8, ptr %object, i64 {DATA}
  %data = load ptr, ptr %data_at
  %pointer_at = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %data, ptr %pointer_at
  %flags_at = getelementptr i8, ptr %object, i64 {FLAGS}
  %flags = load i32, ptr %flags_at
  %both = and i32 %flags, {READY}
  %ready = icmp eq i32 %both, {READY}
  br i1 %ready, label %good, label %bad
good:
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
bad:
  store i64 %next, ptr %first
  br label %done
done:
  ret void
}}"""


def _take_arguments(w: ProgramWriter, inputs: list[Buffer]) -> None:
    """Likewise where there are many, of which an entry's text would take nine lines each; and where they are."""
    e, count = w.e, len(inputs)
    pointers = e.slot(f"[{count} x ptr]", 16)
    e.do(f"call void @{w.function(ARGUMENTS)}(ptr %args, i64 {count}, ptr {pointers}, ptr %status)")
    _refuse(e, e.op("load i64, ptr %status, align 8"))
    for i, buffer in enumerate(inputs):
        w.place(buffer, e.op(f"load ptr, ptr {e.element(pointers, 'ptr', i)}"))


def _one_blas_thread(w: ProgramWriter) -> tuple[list[str], list[str]]:
    """BLAS runs on one thread while any program runs (we cut large products); the last restores the setting."""
    if "blas" not in w.uses or not kernels.can_limit_threads():
        return [], []
    at = len(w.e.lines)
    users = w.external(kernels.BLAS_USERS)
    get, limit = (w.external(kernels.ThreadControl(n)) for n in ("get_num_threads", "set_num_threads"))
    w.e.do(f"call void @blas_enter(ptr {users}, ptr {get}, ptr {limit})")
    save = w.e.lines[at:]
    del w.e.lines[at:]
    w.helpers["blas_enter"] = ("text", BLAS_GUARD)
    return save, [f"  call void @blas_leave(ptr {users}, ptr {limit})"]


BLAS_GUARD = """
define internal void @blas_enter(ptr %users, ptr %get, ptr %limit) {
entry:
  %before = atomicrmw add ptr %users, i64 1 acq_rel
  %first = icmp eq i64 %before, 0
  br i1 %first, label %set, label %done
set:
  %count = call i32 %get()
  %saved = getelementptr i64, ptr %users, i64 1
  %wide = sext i32 %count to i64
  store atomic i64 %wide, ptr %saved release, align 8
  call void %limit(i32 1)
  br label %done
done:
  ret void
}
define internal void @blas_leave(ptr %users, ptr %limit) {
entry:
  %saved = getelementptr i64, ptr %users, i64 1
  %wide = load atomic i64, ptr %saved acquire, align 8
  %before = atomicrmw sub ptr %users, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %set, label %done
set:
  %count = trunc i64 %wide to i32
  call void %limit(i32 %count)
  br label %done
done:
  ret void
}
"""


@computed
def _alignment(size: int) -> int:
    """Of memory for so many bytes: large pages from where it fills some."""
    return 4096 if size <= (4 << 20) - 4096 else 2 << 20


def _arena(w: ProgramWriter, program: Program, start: str) -> tuple[list[str], list[str]]:
    """Where temporaries live: the stack, or memory kept between calls (a concurrent call allocates its own)."""
    size = program.arena_bytes
    if not size:
        return [], []
    if not exceeds(size, STACK_ARENA):
        size = STACK_ARENA if exceeds(size, LEAST_ARENA) else LEAST_ARENA  # of two sizes, which the text tells
        return [f"  %arena = alloca [{size} x i8], align 64"], []
    align = _alignment(size)
    size = -(-size // align) * align
    advice = [f"  %advice = call i32 @madvise(ptr %fresh, i64 %arena_size, i32 {HUGE_PAGES})"]
    prologue = [
        f"  %arena_size_at = getelementptr i64, ptr {NUMBERS}, i64 {w.texts.numbers([size, align])}",
        "  %arena_size = load i64, ptr %arena_size_at, align 8",
        "  %arena_align_at = getelementptr i64, ptr %arena_size_at, i64 1",
        "  %arena_align = load i64, ptr %arena_align_at, align 8",
        "  %word = atomicrmw xchg ptr %table, ptr null acq_rel",
        f"  %kept = {UNMARKED.format('%word')}",
        "  %none = icmp eq ptr %kept, null",
        "  br i1 %none, label %grow, label %ready",
        "grow:",
        "  %fresh = call ptr @aligned_alloc(i64 %arena_align, i64 %arena_size)",
        "  %short = icmp eq ptr %fresh, null",
        "  br i1 %short, label %refuse, label %advise",
        "refuse:",
        f"  ret i64 {OUT_OF_MEMORY}",
        "advise:",
        *(advice if program.machine.memory.huge_pages else []),
        "  br label %ready",
        "ready:",
        f"  %arena = phi ptr [ %kept, %{start} ], [ %fresh, %advise ]",
    ]
    epilogue = [
        "  %place = atomicrmw xchg ptr %table, ptr %arena acq_rel",
        f"  %other = {UNMARKED.format('%place')}",
        "  call void @free(ptr %other)",
    ]
    return prologue, epilogue
