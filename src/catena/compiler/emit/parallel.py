"""Chunks of work on several threads: their functions, and the call of the pool."""

from __future__ import annotations

from collections.abc import Sequence

from catena.compiler.emit import bounds, interrupts
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph import thresholds
from catena.compiler.plan.program import Buffer
from catena.core.named import NamedTuple


class Chunks(NamedTuple):
    """What `through_pool` is given."""

    body: str
    pointers: list
    many: int
    numbers: Sequence[int]
    units: int
    ask: str | None = None


def address(w, x) -> str:
    """An address, of which there is the text already, or of a buffer, numbers in the program's table or functions."""
    if isinstance(x, Buffer):
        return w.pointer(x)
    if isinstance(x, list):
        return w.numbers(x)
    return w.functions(x) if isinstance(x, tuple) else x


def cut(
    name: str,
    pointers: list,
    numbers: list[int],
    cut: int,
    size: int,
    units: int,
    each: list[int] | None = None,
    ask: str | None = None,
) -> Chunks:
    """The call of nest function `name`, which has so many `units` of work, in chunks of `size` iterations
    of the range that stands at `cut` and `cut + 1` among its `numbers`. Chunk k has its own part of a pointer's memory,
    k * `each` bytes further, where it leaves partial results. A nest that pauses is given `ask` (see `interrupts`).
    """
    end = numbers[cut + 1]
    each = each or [0] * len(pointers)
    if ask is not None:
        pointers, each = [*pointers, ask], [*each, 0]
    body = _chunk(name, len(pointers), len(numbers), cut, each)
    return Chunks(body, pointers, -(-end // size), [size, *numbers], units, ask)


def _chunk(name: str, pointers: int, numbers: int, cut: int, each: list[int]) -> str:
    """The text of the function that runs chunk %k; sizes are in its table, so that all sizes share it."""
    e = Emitter()
    own = [load_pointer(e, i) for i in range(pointers)]
    own = [e.element(p, "i8", e.op(f"mul nsw i64 %k, {by}")) if by else p for p, by in zip(own, each)]
    _, (size, *given) = load_numbers(e, pointers, 1 + numbers)
    low = e.op(f"mul nsw i64 %k, {size}")
    end = e.op(f"add nsw i64 {low}, {size}")
    given[cut : cut + 2] = [low, e.least(end, given[cut + 1])]
    e.do(f"call void @{name}({', '.join([*(f'ptr {p}' for p in own), *(f'i64 {n}' for n in given)])})")
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.lines, "  ret void", "}"])


def copy() -> str:
    """The text of the function that copies chunk %k; its table holds target, source, and bytes: of a chunk, of all."""
    e = Emitter()
    target, source = load_pointer(e, 0), load_pointer(e, 1)
    _, (size, whole) = load_numbers(e, 2, 2)
    first = e.op(f"mul nsw i64 %k, {size}")
    left = e.op(f"sub i64 {whole}, {first}")
    count = e.least(size, left)
    to, of = (e.element(p, "i8", first) for p in (target, source))
    e.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {of}, i64 {count}, i1 false)")
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.lines, "  ret void", "}"])


def load_pointer(e: Emitter, i: int) -> str:
    """Pointer `i` of a chunk's table."""
    return e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}")


def load_numbers(e: Emitter, pointers: int, count: int) -> tuple[str, list[str]]:
    """Where the numbers of a chunk's table of so many pointers are, and so many of them."""
    numbers = load_pointer(e, pointers)
    return numbers, [e.op(f"load i64, ptr {e.element(numbers, 'i64', i)}") for i in range(count)]


def through_pool(
    w,
    body: str,
    pointers: list,
    chunks: int,
    numbers: Sequence[int] = (),
    units: int = 0,
    ask: str | None = None,
) -> None:
    """Runs a function `(ptr %args, i64 %k)`, given by its text, for all chunks; the table `%args` holds the pointers,
    and then one to the numbers, which the text does not tell. `units` is the work of all chunks, where that may be so
    much that a signal should end it in between; chunks that are so long themselves are among those given `ask`.
    """
    chunk, e = w.function(body), w.e
    pointers = [address(w, x) for x in (*pointers, *([[*numbers]] if numbers else []))]
    many = groups(w, chunks, units)
    if many < 2:
        _run(w, chunk, table(e, pointers), chunks, ask)
    else:
        first, each, count = e.slot("i64", 8), w.number(-(-chunks // many)), w.number(chunks)
        args, chunk = table(e, [*pointers, first]), w.function(_later(chunk, len(pointers)))
        start, opened = e.begin_loop(0, count, each)
        e.do(f"store i64 {start}, ptr {first}")
        left = e.op(f"sub i64 {count}, {start}")
        _run(w, chunk, args, e.least(each, left), ask)
        interrupts.end_of_iteration(w, units // many, None)
        e.end_loop(opened)
    bounds.stop_if_violated(w)


def groups(w, chunks: int, units: int) -> int:
    """How many groups chunks are run in, between which a signal may end them."""
    return min(chunks, units // w.machine.sharing.group)


def table(e: Emitter, pointers: list[str]) -> str:
    """Pointers side by side."""
    made = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for i, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(made, 'ptr', i)}")
    return made


def _run(w, chunk: str, table: str, chunks: int | str, ask: str | None) -> None:
    """Runs so many chunks, by the pool if there is one and they are not one."""
    e, is_one = w.e, isinstance(chunks, int) and not thresholds.differs(chunks, 1)
    count = w.number(chunks) if isinstance(chunks, int) and not is_one else chunks
    if w.pool is not None and not is_one:
        e.do(f"call void {w.external(w.pool)}(ptr @{chunk}, ptr {table}, i64 {count}, ptr {ask or 'null'})")
    elif is_one:
        e.do(f"call void @{chunk}(ptr {table}, i64 0)")
    else:
        k, opened = e.begin_loop(0, count)
        e.do(f"call void @{chunk}(ptr {table}, i64 {k})")
        e.end_loop(opened)
    if ask is not None:
        interrupts.stop_if_asked(w, ask)


def _later(chunk: str, pointers: int) -> str:
    """The text of the function that runs a chunk of a group: the group's first one stands behind the pointers."""
    e = Emitter()
    first = e.op(f"load i64, ptr {load_pointer(e, pointers)}")
    e.do(f"call void @{chunk}(ptr %args, i64 {e.op(f'add i64 {first}, %k')})")
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.lines, "  ret void", "}"])
