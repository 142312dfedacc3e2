"""Stores that go past the caches, of loops that write more than stays there: no line is read before it is written.

Rows may begin inside of a line. Then what lies before the first line that begins in a row, and behind the last that
ends there, is written through the caches, under masks; what lies between, by whole lines. A line that has just gone
past the caches is far away: so what is behind the last is written by a vector that begins there, and does not touch the
last. Its lanes beyond the row are neither read nor written.
"""

from __future__ import annotations

from collections.abc import Iterator

from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.kernels.loops import Nest
from catena.core.named import NamedTuple

LEAST = 16  # bytes that an instruction writes so
LINE = 64  # bytes that are written together, by processors that have such instructions
PAST = "!nontemporal !{i32 1}"
FENCE = "  call void @llvm.x86.sse.sfence()"  # after which other threads see what was written so


def are_in(nest: Nest) -> bool:
    """Whether a nest has such stores."""
    return any(s.past_caches for s in nest.stores) or any(f.past_caches for f in nest.folds)


def meet_lines(nest: Nest, start: int, stop: int) -> bool:
    """Whether a part of the rows that a nest writes so, some lines long, may begin inside of one."""
    if not are_in(nest) or nest.together is not None:
        return False
    sizes = [(s.offset, TYPES[s.dtype].bytes) for s in nest.stores]
    apart = any(c * size % LINE for offset, size in sizes for d, c in offset[1] if d != nest.vector)
    inside = any((offset[0] + start) * size % LINE for offset, size in sizes)
    return (apart or inside) and all((stop - start) * size >= 2 * LINE for _, size in sizes)


class Lines(NamedTuple):
    """How a part of a row, of places `start` to `stop`, is cut at lines: those from `first` on end at `last`. A line
    holds so many elements.
    """

    start: int
    stop: int
    first: str
    last: str
    line: int

    def before(self, e: Emitter, width: int) -> Iterator[tuple[int, str]]:
        """Where the vectors before the first line are, and which of their lanes are."""
        for at in range(self.start, self.start + self.line, width):
            yield at, _compared(e, e.size(at), self.first, width)

    def behind(self, e: Emitter, width: int) -> Iterator[tuple[str, str]]:
        """Likewise behind the last, where the lanes that are not are beyond the row."""
        for k in range(0, self.line, width):
            at = e.op(f"add i64 {self.last}, {k}") if k else self.last
            yield at, _compared(e, at, e.size(self.stop), width)


def lines(e: Emitter, t: Type, pointer: str, start: int, stop: int) -> Lines:
    """Cuts a part of a row whose elements are of type `t`, the first of them at `pointer`."""
    line = LINE // t.bytes
    behind = e.op(f"ptrtoint ptr {pointer} to i64")
    left = e.op(f"and i64 {e.op(f'sub i64 0, {behind}')}, {LINE - 1}")
    before = e.op(f"lshr i64 {left}, {t.bytes.bit_length() - 1}")
    whole = e.op(f"and i64 {e.op(f'sub i64 {e.size(stop - start)}, {before}')}, {-line}")
    first = e.op(f"add i64 {before}, {e.size(start)}")
    return Lines(start, stop, first, e.op(f"add i64 {first}, {whole}"), line)


def _compared(e: Emitter, at: int | str, bound: int | str, width: int) -> str:
    """Which lanes of the vector at a place are before a bound."""
    beyond = e.splat(e.op(f"trunc i64 {e.op(f'sub i64 {bound}, {at}')} to i32"), "i32", width)
    order = ", ".join(f"i32 {k}" for k in range(width))
    return e.op(f"icmp slt {vector('i32', width)} <{order}>, {beyond}")


def fetch(e: Emitter, pointer: str, soon: bool = False) -> None:
    """Asks for a line that is read later, into the second cache, or, where that is `soon`, into the first: where no
    memory is, nothing happens.
    """
    e.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 {3 if soon else 2}, i32 1)")


def store(
    e: Emitter, past_caches: bool, t: Type, x: str, pointer: str, width: int, stride: int, mask, later: int = 0
) -> None:
    """Writes a register value; `past_caches` where it is aligned, as the instruction for that wants it. Of a square,
    whose next rows are so many elements `later`, what is no whole line waits in the caches for the square that has the
    rest of it, and the lines of later rows are fetched: processors do not guess them.
    """
    size = t.bytes * width
    inside = later and size < LINE
    if not past_caches or mask is not None or stride != 1 or size < LEAST or size & (size - 1) or inside:
        if past_caches and later:
            _fetch_to_write(e, t, pointer, later, width)
        e.store(t, x, pointer, width, stride, mask)
        return
    raw, v = e.narrow(x, t, width), vector(t.memory, width)
    beside = e.op(f"and i64 {e.op(f'ptrtoint ptr {pointer} to i64')}, {size - 1}")
    for past in each_way(e, e.op(f"icmp eq i64 {beside}, 0")):
        if not past and later:
            _fetch_to_write(e, t, pointer, later, width)
        e.do(f"store {v} {raw}, ptr {pointer}, align " + (f"{size}, {PAST}" if past else str(t.bytes)))


def _fetch_to_write(e: Emitter, t: Type, pointer: str, later: int, width: int) -> None:
    """Asks for the lines that hold the first and the last element of a vector, to be written later."""
    place = e.element(pointer, t.memory, e.size(later))
    for at in (place, e.element(place, t.memory, width - 1)):
        e.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 1, i32 3, i32 1)")
