"""A scheduled loop nest as LLVM IR.

Statements are placed in the outermost loop where all they depend on is defined. The loop along which vectors lie is
written by `emit.lanes`. Loops whose iterations are known only when they run have `ranges` (see `plan.ranges`). Nests of
few iterations are unrolled with constant indices, so that small arrays can live in registers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from catena.compiler.emit import ahead, cascades, extremes, folds, joins, pauses, seams, small
from catena.compiler.emit.body_text import BodyWriter, Copy, apart
from catena.compiler.emit.bounds import Guard
from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter, told_elsewhere
from catena.compiler.emit.lanes import LanesWriter
from catena.compiler.emit.layout import Layout
from catena.compiler.emit.short_rows import ShortRows
from catena.compiler.emit.sizes import LEAST
from catena.compiler.graph.forms import COSTLY
from catena.compiler.kernels.loops import Nest, Run
from catena.compiler.plan.cascades import plan as plan_cascade
from catena.compiler.plan.elements import SCALARS
from catena.compiler.plan.pauses import Pause, beside
from catena.compiler.plan.ranges import Range

UNROLL_LIMIT = 64  # statements of a fully unrolled nest,
UNROLL_SCALARS = 256  # and of one of as few iterations as have no lanes, whose arrays are in registers then
MOST_UNROLLED = 8  # vectors of its lines
LONG = 2  # vectors inside of a condition that are worth a branch


class NestWriter:
    """Writes one nest with `e`; `pointers` gives each buffer's base address, `outer` the indices of the
    outermost dimensions where they are given, `ranges` the iterations of loops that are known when they run, `pause`
    where a nest asks whether to go on. One that is written where the program runs may end it (`stops`) when a check
    fails.
    """

    def __init__(
        self,
        e: Emitter,
        nest: Nest,
        pointers: dict[int, str],
        in_place: bool = False,
        ranges: dict[int, Range] | None = None,
        outer=(),
        guard: Guard | None = None,
        pause: Pause | None = None,
        stops: bool = False,
    ):
        self.e, self.nest, self.layout = e, nest, Layout(nest)
        self.body = BodyWriter(e, self.layout, pointers, guard, stops)
        self.in_place, self.ranges, self.outer = in_place, ranges or {}, outer
        whole = nest.run is None and nest.short is None
        limit = UNROLL_SCALARS if nest.trips <= SCALARS else UNROLL_LIMIT
        short = not self.ranges and whole and _is_of_few_vectors(nest, in_place)  # asked first, of long lines alone
        self.small = short and self.layout.unrolled <= limit
        self.cascade = None if self.small else plan_cascade(nest, self.layout.kept)
        self.counter: str | None = None  # of the blocks of the cascade
        self.pause = None if pause is None else beside(pause, self.cascade)
        self.cut = _cut(self)
        if not self.small and self.cascade is None and self.layout.kept > len(outer):
            self.layout.joined = joins.rows(nest, self.layout.kept, self.ranges, self.cut)

    def write(self) -> None:
        if 0 in self.nest.extents:
            self._empty()
            return
        self.write_level(0, [self.body.first_copy()])

    def _empty(self) -> None:
        """No iterations: folds over nothing still store their identities, or what they begin with."""
        kept = [n for d, n in enumerate(self.nest.extents) if d not in self.nest.reduced]
        if self.nest.folds and 0 not in kept:
            copy = self.body.first_copy()
            for i in self.layout.levels[0]:
                self.body.statement(i, [copy])
            folds.store_identities(self.body, copy)

    # ---- loops ---------------------------------------------------------------------------------------------

    def write_level(self, level: int, copies: list[Copy]) -> None:
        """What stands inside so many loops, in all copies of the body: statements, and the loops from this level on."""
        opened = level == self.layout.kept and bool(self.nest.folds)
        if self.body.short is not None:
            self.body.short.copies = copies
        if level == len(self.nest.order) and not opened and (parts := small.asked_once(self.body)) is not None:
            self._innermost_twice(parts, copies)
            return
        for i in self.layout.levels[level]:
            if opened and self.nest.stmts[i].op == "accumulator":  # a fold over one element has no loop of its own
                self._open_folds(copies)
            self.body.statement(i, copies)
        self.body.tests.flush(self.body)
        if opened:
            self._open_folds(copies)
        if level == len(self.nest.order):
            self._innermost(copies)
        elif (mask := self._written_where(level, copies)) is None:
            self._inside(level, copies)
        else:
            with when(self.e, self.body.use(mask, copies[0], 1)):
                self._inside(level, copies)
        if opened:
            self._close_folds(copies)

    def _written_where(self, level: int, copies: list[Copy]) -> int | None:
        """The statement that tells whether anything is written in the loops from here on, which are long: rows that a
        scatter drops are not read.
        """
        nest, masks = self.nest, {s.mask for s in self.nest.stores}
        if nest.folds or len(masks) != 1 or len(copies) != 1 or not masks.issubset(self.layout.levels[level]):
            return None
        inside = math.prod(nest.extents[d] for d in nest.order[level:])
        return masks.pop() if inside >= LONG * nest.width else None

    def _inside(self, level: int, copies: list[Copy]) -> None:
        """The loops from a level on."""
        d = self.nest.order[level]
        if level < len(self.outer):
            self._enter(level, d, self.outer[level], [c.child() for c in copies])
        elif d == self.nest.vector:
            LanesWriter(self, level, d).write(copies)
        else:
            self._scalar_loop(level, d, copies)

    def _innermost(self, copies: list[Copy]) -> None:
        if self.body.short is not None:
            self.body.short.finish()
            return
        folds.step(self.body, self.body.folds, copies)
        self.body.store_all(copies)

    def _innermost_twice(self, parts: small.Parts, copies: list[Copy]) -> None:
        """Where something is small, and where nothing is."""
        for i in parts.telling:
            self.body.statement(i, copies)
        for each in small.each_way(self.body, parts.told, copies):
            for i in parts.others:
                self.body.statement(i, each)
            self._innermost(each)

    def _scalar_loop(self, level: int, d: int, copies: list[Copy]) -> None:
        """The loop over a dimension along which no vectors lie."""
        start, stop = self.ranges[d][:2] if d in self.ranges else (0, self.nest.extents[d])
        if d == self.nest.short:
            self.body.short = ShortRows(self.body, d, copies[0])
            self.write_level(level + 1, self.body.short.copies)
            self.body.short = None
        elif (size := self._together(d)) is not None:
            self._loop_together(level, d, start, stop, size, copies[0])
        elif self.layout.joined is not None and d == self.layout.joined.d:
            self._rows_joined(level, d, self.layout.joined, start, stop, copies)
        elif self.nest.run is not None and d == self.nest.run.dim:
            self._run(level, d, self.nest.run, copies)
        elif self.small or _is_written_out(self, level, d, len(copies)):
            for k in range(int(stop)):
                self._enter(level, d, k, [c.child() for c in copies])
        elif d in self.cut:
            self._in_pieces(level, d, start, stop, copies)
        else:
            with self.loop(level, start, stop, 1) as i:
                inner = [c.child() for c in copies]
                if level == len(self.nest.order) - 2:
                    ahead.places(self.body, d, i, stop, copies[0], inner)
                self._enter(level, d, i, inner)

    def _together(self, d: int) -> int | None:
        """How many iterations of a loop are done at once; None where they are one after the other."""
        nest = self.nest
        is_apart = nest.together is not None and nest.together.what == "apart"
        if self.small or self.in_place and not is_apart:
            return None
        if d == nest.tile:
            return self.body.width if self.body.width == nest.width else None
        return nest.step(d) if nest.step(d) > 1 else None

    def _run(self, level: int, d: int, run: Run, copies: list[Copy]) -> None:
        """A loop over a run, which may be empty."""
        start, stop = (self.body.use(s, copies[0], 1) for s in run.ends)
        with when(self.e, self.e.op(f"icmp slt i64 {start}, {stop}")), self.loop(level, start, stop, 1) as i:
            self._enter(level, d, i, ahead.in_run(self.body, d, i, copies))

    def _rows_joined(self, level: int, d: int, rows: joins.Rows, start, stop, copies: list[Copy]) -> None:
        """A loop over rows whose lanes are joined, as many of them at once as a vector has lanes."""
        e, width = self.e, self.nest.width
        with self.loop(level, start, stop, width) as first:
            end = e.least(e.op(f"add i64 {first}, {width}"), e.size(stop))
            i, opened = e.begin_loop(first, end)
            rows.number, rows.waiting = e.op(f"sub i64 {i}, {first}"), []
            self._enter(level, d, i, [c.child() for c in copies])
            e.end_loop(opened)
            c = copies[0].child()
            self.body.advance(c, d, first)
            there = joins.there(e, e.op(f"sub i64 {end}, {first}"), width)
            for accumulators in rows.waiting:
                accumulators.finish_kept(c, there)

    def _in_pieces(self, level: int, d: int, start, stop, copies: list[Copy]) -> None:
        """A loop that is cut, around the lanes or inside of them."""
        for piece in seams.pieces(self.nest, d, None if d in self.ranges else stop):
            whole = nullcontext((piece.start, piece.stop))
            part = seams.part(self.e, start, stop, piece) if d in self.ranges else whole
            with part as (first, end), self.layout.where(piece.settled), self.loop(level, first, end, 1) as i:
                self._enter(level, d, i, [c.child() for c in copies])

    @contextmanager
    def loop(self, level: int, start, stop, step: int, cascaded: bool = True) -> Iterator[str]:
        """A loop; that which pauses, and that which a cascade cuts into blocks, is two."""
        e, paused, blocks = self.e, None, None
        if self.pause is not None and level == self.pause.level:
            start, stop, paused = self._block_of_loop(start, stop, self.pause.block * step)
            pauses.write(e)
        if cascaded and self.cascade is not None and level == self.cascade.level:
            start, stop, blocks = self._block_of_loop(start, stop, self.cascade.block * step)
        i, opened = e.begin_loop(e.size(start), e.size(stop), step)
        yield i
        e.end_loop(opened)
        if blocks is not None and self.cascade is not None and self.counter is not None:
            cascades.count_block(e, self.counter, self.body.folds, self.cascade.levels)
            e.end_loop(blocks)
        if paused is not None:
            e.end_loop(paused)

    def _block_of_loop(self, start, stop, size: int) -> tuple:
        """Opens a loop over blocks of so many iterations; returns where a block begins and ends, and the loop."""
        stop, each = self.e.size(stop), told_elsewhere(self.e, size)
        first, opened = self.e.begin_loop(self.e.size(start), stop, each)
        end = self.e.op(f"add nuw nsw i64 {first}, {each}")
        return first, self.e.least(end, stop), opened

    def _loop_together(self, level: int, d: int, start, stop, size: int, c: Copy) -> None:
        """Several iterations at once: one copy of the body for each; the last of them overlap those before."""
        with self.loop(level, start, stop, size) as i:
            at = self._not_beyond(i, stop, size)
            first = c.child()
            self.body.advance(first, d, at)
            lines = [first]
            for k in range(1, size):
                line = first.child()
                line.pointers = {
                    key: (p, const + k * self.layout.coefficient(key, d)) for key, (p, const) in first.pointers.items()
                }
                lines.append(line)
            self.body.together = d
            inside = self.nest.vector in self.nest.order[level + 1 :]  # the loop over lanes moves them first
            self.write_level(level + 1, lines if inside else apart(self.body, lines))
            self.body.together = None

    def _not_beyond(self, i: str, stop, size: int) -> str:
        """Iteration `i`, moved back where fewer than so many are left."""
        if not isinstance(stop, int):
            last = self.e.op(f"sub i64 {stop}, {size}")
        elif stop % size:
            last = self.e.size(stop - size)
        else:
            return i
        return self.e.least(i, last)

    def _enter(self, level: int, d: int, i, copies: list[Copy]) -> None:
        self.body.iv[d] = i
        for c in copies:
            self.body.advance(c, d, i)
        self.write_level(level + 1, copies)

    # ---- folds ---------------------------------------------------------------------------------------------

    def _open_folds(self, copies: list[Copy]) -> None:
        if self.body.folds:
            return
        levels = self.cascade.levels if self.cascade is not None else 0
        self.body.folds = extremes.accumulators(self.body, levels, copies)
        if self.cascade is not None:
            self.counter = self.e.slot("i64")
            self.e.do(f"store i64 0, ptr {self.counter}")

    def _close_folds(self, copies: list[Copy]) -> None:
        nest, rows, alone = self.nest, self.layout.joined, []
        if self.body.short is not None and nest.vector not in nest.reduced and nest.short not in nest.reduced:
            self.body.short.store_folded(self.body.folds, copies[0])
            self.body.folds = []
            return
        for fold, accumulators in zip(nest.folds, self.body.folds):
            if rows is not None and joins.are_joined(nest, fold, rows.d):
                accumulators.keep(rows.number)
                rows.waiting.append(accumulators)
            else:
                alone.append(accumulators)
        folds.finish(self.body, alone, copies)
        self.body.folds = []


def _is_written_out(w: NestWriter, level: int, d: int, copies: int) -> bool:
    """Whether the innermost loop, which folds a few vectors for each row, is written without one: that of a product of
    small matrices asks whether to go on as often as it multiplies.
    """
    nest = w.nest
    if level + 1 < len(nest.order) or d not in nest.reduced or d in w.ranges or d in w.cut:
        return False
    if any(x is not None and x.level == level for x in (w.pause, w.cascade)):
        return False
    inside = [nest.stmts[i].op for i in w.layout.levels[-1]]
    light = not COSTLY.intersection(inside) and len(inside) * copies * LEAST <= UNROLL_LIMIT
    return light and nest.extents[d] < LEAST  # the text tells it anyhow


def _is_of_few_vectors(nest: Nest, in_place: bool) -> bool:
    """Whether a nest has a short line of vectors, or one that the next iteration of a loop waits for, or finds where
    extremes are. Of other lines, a loop is as fast, and its text does not tell how long they are.
    """
    if in_place or nest.vector is None or nest.trips <= SCALARS or any(len(f.dests) > 1 for f in nest.folds):
        return True
    return nest.extents[nest.vector] <= MOST_UNROLLED * nest.width


def _cut(w: NestWriter) -> set[int]:
    """The loops that are cut (see `seams`). Sums that go in blocks stay whole, and so do iterations together."""
    nest = w.nest
    if nest.together is not None and nest.rest is None or nest.run is not None:
        return set()
    blocks = None if w.cascade is None else w.cascade.level
    levels = (k for k in range(len(w.outer), len(nest.order)) if k != blocks)
    along = [nest.order[k] for k in levels if not w.small or nest.order[k] == nest.vector]
    return seams.plan(nest, along, w.ranges)
