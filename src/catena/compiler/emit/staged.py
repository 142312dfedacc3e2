"""Nests whose results go past the caches by way of the stack (see `plan.staging`)."""

from __future__ import annotations

import dataclasses

from catena.compiler.emit import pauses, streams
from catena.compiler.emit.branches import perhaps_never
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.nest import NestWriter
from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES, Type
from catena.compiler.kernels.loops import Nest
from catena.compiler.plan import staging
from catena.compiler.plan.pauses import Pause
from catena.compiler.plan.ranges import Range

STAGE = -2  # the number by which a nest names the memory on the stack


def write(e: Emitter, nest: Nest, pointers: dict[int, str], ranges: dict[int, Range], pause: Pause | None) -> None:
    """Writes a nest, block by block."""
    outer, opened = [], []
    for d in nest.order[:-2]:
        i, loop = e.begin_loop(*_range(e, nest, ranges, d))
        outer.append(i)
        opened.append(loop)
    _Blocks(e, nest, pointers, ranges, outer, pause is not None).write()
    for loop in reversed(opened):
        e.end_loop(loop)


def _range(e: Emitter, nest: Nest, ranges: dict[int, Range], d: int) -> tuple:
    return tuple(ranges[d][:2]) if d in ranges else ("0", e.size(nest.extents[d]))


class _Blocks:
    """Writes the two innermost loops, where the indices of those around are given."""

    def __init__(self, e: Emitter, nest: Nest, pointers: dict[int, str], ranges, outer: list[str], asks: bool):
        self.e, self.nest, self.pointers, self.ranges, self.outer, self.asks = e, nest, pointers, ranges, outer, asks
        assert nest.staged is not None and nest.vector is not None
        self.staged, self.vector, (self.store,) = nest.staged, nest.vector, nest.stores
        self.t: Type = TYPES[self.store.dtype]
        self.line = streams.LINE // self.t.bytes

    def write(self) -> None:
        e, d, staged = self.e, self.nest.order[-2], self.staged
        start, stop = _range(e, self.nest, self.ranges, d)
        step = staged.lanes or self._number(staged.rows, 1)
        first, loop = e.begin_loop(start, stop, step)
        end = self.e.least(self._add(first, step), stop)
        if self.asks:
            pauses.write(e)
        if staged.lanes:
            self._squares(d, first, end)
        else:
            self._rows(d, first, end)
        e.end_loop(loop)

    # ---- short rows ----------------------------------------------------------------------------------------

    def _rows(self, d: int, first: str, end: str) -> None:
        """Rows from `first` to `end`, which lie one behind the other."""
        e, v, n = self.e, self.vector, self.nest.extents[self.vector]
        stage = e.slot(f"[{staging.BYTES} x i8]", streams.LINE)
        moved = self._moved(stage, e.op(f"mul nsw i64 {first}, {e.size(n)}"))
        self._inside(moved, ((d, n), (v, 1)), {d: Range(first, end)})
        count = e.op(f"mul nsw i64 {self._less(end, first)}, {e.size(n)}")
        self._lines(stage, self._place({d: first}), "0", count)

    # ---- squares -------------------------------------------------------------------------------------------

    def _squares(self, v: int, first: str, end: str) -> None:
        """All rows of a transposition, between the lines that hold their elements `first` and `end`: what is before
        `first` in such a line is done again.
        """
        e, tile, rows = self.e, self.nest.order[-1], self.staged.rows
        count = self._number(self.nest.extents[tile], 2)
        pitch = self.staged.lanes + self.line
        stage = e.slot(f"[{rows * pitch * self.t.bytes} x i8]", streams.LINE)
        before = self.e.most(self._less(first, self.line), 0)
        i, loop = e.begin_loop(0, count, rows)
        row = self.e.least(i, self._less(count, self.nest.width))
        last = self.e.least(self._add(row, rows), count)
        moved = self._moved(stage, self._add(e.op(f"mul nsw i64 {row}, {pitch}"), before))
        self._inside(moved, ((v, 1), (tile, pitch)), {v: Range(before, end), tile: Range(row, last)})
        k, each = e.begin_loop(row, last)
        target = self._place({tile: k})
        bounds = self._line_of(target, first, 0), self._line_of(target, end, self._number(self.nest.extents[v], 3))
        self._lines(e.element(moved, self.t.memory, e.op(f"mul nsw i64 {k}, {pitch}")), target, *bounds)
        e.end_loop(each)
        e.end_loop(loop)

    def _line_of(self, row: str, i: str, end) -> str:
        """Where the line begins in a row that holds its element `i`; where `i` is an end of the row, that."""
        e = self.e
        at = e.op(f"ptrtoint ptr {e.element(row, self.t.memory, i)} to i64")
        inside = e.op(f"lshr i64 {e.op(f'and i64 {at}, {streams.LINE - 1}')}, {self.t.bytes.bit_length() - 1}")
        begin = self.e.most(self._less(i, inside), 0)
        return e.op(f"select i1 {e.op(f'icmp eq i64 {i}, {end}')}, i64 {end}, i64 {begin}")

    # ---- both ----------------------------------------------------------------------------------------------

    def _inside(self, stage: str, offset: tuple, ranges: dict[int, Range]) -> None:
        """The nest over a block, which writes to the stack."""
        store = self.store._replace(buffer=STAGE, offset=(0, tuple(sorted(offset)), ()), past_caches=False)
        nest = dataclasses.replace(self.nest, stores=[store])
        NestWriter(self.e, nest, {**self.pointers, STAGE: stage}, ranges=ranges, outer=self.outer).write()

    def _lines(self, source: str, target: str, start: str, stop: str) -> None:
        """Copies elements, whole lines past the caches and others one by one."""
        e, t = self.e, self.t
        begin = e.op(f"ptrtoint ptr {e.element(target, t.memory, start)} to i64")
        left = e.op(f"and i64 {e.op(f'sub i64 0, {begin}')}, {streams.LINE - 1}")
        ahead = e.op(f"lshr i64 {left}, {t.bytes.bit_length() - 1}")
        first = self.e.least(self._add(start, ahead), stop)
        whole = e.op(f"and i64 {self._less(stop, first)}, {-self.line}")
        last = self._add(first, whole)
        self._elements(source, target, start, first)
        with perhaps_never(e, first, last, self.line) as i:
            self._line(e.element(source, t.memory, i), e.element(target, t.memory, i))
        self._elements(source, target, last, stop)

    def _elements(self, source: str, target: str, start: str, stop: str) -> None:
        e, memory = self.e, f"i{8 * self.t.bytes}"
        with perhaps_never(e, start, stop) as i:
            x = e.op(f"load {memory}, ptr {e.element(source, memory, i)}, align {self.t.bytes}")
            e.do(f"store {memory} {x}, ptr {e.element(target, memory, i)}, align {self.t.bytes}")

    def _line(self, source: str, target: str) -> None:
        e, size = self.e, min(self.staged.bytes, streams.LINE)
        for at in range(0, streams.LINE, size):
            x = e.op(f"load <{size // 4} x i32>, ptr {e.element(source, 'i8', at)}, align {self.t.bytes}")
            e.do(f"store <{size // 4} x i32> {x}, ptr {e.element(target, 'i8', at)}, align {size}, {streams.PAST}")

    def _place(self, index: dict[int, str]) -> str:
        """Where the nest's store writes, the lanes' first element."""
        e, memory, offset = self.e, self.t.memory, self.store.offset
        place = e.element(self.pointers[self.store.buffer], memory, e.size(offset[0]))
        for d, i in [*zip(self.nest.order, self.outer), *index.items()]:
            if by := affine.coefficient(offset, d):
                place = e.element(place, memory, e.op(f"mul nsw i64 {i}, {e.size(by)}"))
        return place

    def _moved(self, stage: str, by: str) -> str:
        """An address before which so many elements would lie."""
        return self.e.element(stage, self.t.memory, self.e.op(f"sub nsw i64 0, {by}"))

    def _number(self, n: int, role: int):
        """A number that hangs on an extent."""
        return n if self.e.sizes is None else self.e.sizes.named("i64", n, role)

    def _add(self, a, b) -> str:
        return self.e.op(f"add nsw i64 {a}, {b}")

    def _less(self, a, b) -> str:
        return self.e.op(f"sub nsw i64 {a}, {b}")
