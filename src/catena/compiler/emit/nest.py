"""A scheduled loop nest as LLVM IR.

Statements are placed in the outermost loop where all they depend on is defined. The SIMD dimension is cut
into segments (full blocks of `unroll` vectors, single vectors, a tail); each segment writes the inner loops
once. A nest without folds over its lanes ends in one last vector that overlaps the one before it, since
writing an element twice is harmless; folds mask the overlap, and nests that update in place get a tail of
exact width. Loops whose iterations are known only when they run have `ranges` (see `plan.ranges`). Nests of
few iterations are unrolled with constant indices, so that small arrays can live in registers.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any

from catena.compiler.emit import ahead, cascades, extremes, folds, joins, masks, pauses, seams, small, streams
from catena.compiler.emit.body_text import THERE, BodyWriter, Copy, apart, further
from catena.compiler.emit.bounds import Guard
from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.layout import Layout
from catena.compiler.emit.short_rows import COLUMNS, ShortRows
from catena.compiler.emit.sizes import LEAST
from catena.compiler.graph import thresholds
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.kernels import conditions, loops
from catena.compiler.kernels.loops import Nest, Run
from catena.compiler.plan.cascades import plan as plan_cascade
from catena.compiler.plan.elements import SCALARS
from catena.compiler.plan.pauses import Pause, beside
from catena.compiler.plan.ranges import Range
from catena.core.named import NamedTuple

UNROLL_LIMIT = 64  # statements of a fully unrolled nest,
UNROLL_SCALARS = 256  # and of one of as few iterations as have no lanes, whose arrays are in registers then
MOST_UNROLLED = 8  # vectors of its lines
IN_REGISTERS = 4  # vectors of an array on the stack (`plan.memory.SLOT_BYTES`)
LONG = 2  # vectors inside of a condition that are worth a branch


class Segment(NamedTuple):
    """A run of the SIMD dimension: [start, stop) in blocks of unroll vectors of `width` lanes."""

    start: Any  # a number, or the name of one
    stop: Any
    width: int
    unroll: int
    clamp: bool = False  # the last block moves back to end at `stop`
    masked: bool = False  # lanes that moved back with the last block do nothing the second time
    rest: bool = False  # the vectors behind the blocks: too few for a block of a cascade, or one of each accumulator


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
        self.small = not self.ranges and whole and self.layout.unrolled <= limit and _is_of_few_vectors(nest, in_place)
        self.cascade = None if self.small else plan_cascade(nest, self.layout.kept)
        self.counter: str | None = None  # of the blocks of the cascade
        self.pause = None if pause is None else beside(pause, self.cascade)
        self.cut = _cut(self)
        if not self.small and self.cascade is None and self.layout.kept > len(outer):
            self.layout.joined = joins.rows(nest, self.layout.kept, self.ranges, self.cut)

    def write(self) -> None:
        if 0 in self.nest.extents:
            _empty(self)
            return
        self._level(0, [self.body.first_copy()])

    # ---- loops ---------------------------------------------------------------------------------------------

    def _level(self, level: int, copies: list[Copy]) -> None:
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
        elif (mask := _written_where(self, level, copies)) is None:
            _inside(self, level, copies)
        else:
            with when(self.e, self.body.use(mask, copies[0], 1)):
                _inside(self, level, copies)
        if opened:
            _close_folds(self, copies)

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
        start, stop = self.ranges[d][:2] if d in self.ranges else (0, self.nest.extents[d])
        if d == self.nest.short:
            self.body.short = ShortRows(self.body, d, copies[0])
            self._level(level + 1, self.body.short.copies)
            self.body.short = None
            return
        waits = self.nest.together is not None and self.nest.together.what == "apart"
        if not (self.in_place and not waits or self.small):
            if d == self.nest.tile and self.body.width == self.nest.width:
                self._loop_together(level, d, start, stop, self.body.width, copies[0])
                return
            if d != self.nest.tile and self.nest.step(d) > 1:
                self._loop_together(level, d, start, stop, self.nest.step(d), copies[0])
                return
        if self.layout.joined is not None and d == self.layout.joined.d:
            _rows_joined(self, level, d, self.layout.joined, start, stop, copies)
        elif self.nest.run is not None and d == self.nest.run.dim:
            self._run(level, d, self.nest.run, copies)
        elif self.small or _is_written_out(self, level, d, len(copies)):
            for i in range(int(stop)):
                self._enter(level, d, i, [c.child() for c in copies])
        elif d in self.cut:
            _in_pieces(self, level, d, start, stop, copies)
        else:
            with self._loop(level, start, stop, 1) as i:
                inner = [c.child() for c in copies]
                if level == len(self.nest.order) - 2:
                    ahead.places(self.body, d, i, stop, copies[0], inner)
                self._enter(level, d, i, inner)

    def _run(self, level: int, d: int, run: Run, copies: list[Copy]) -> None:
        """A loop over a run, which may be empty."""
        start, stop = (self.body.use(s, copies[0], 1) for s in run.ends)
        with when(self.e, self.e.op(f"icmp slt i64 {start}, {stop}")), self._loop(level, start, stop, 1) as i:
            self._enter(level, d, i, ahead.in_run(self.body, d, i, copies))

    @contextmanager
    def _loop(self, level: int, start, stop, step: int, cascaded: bool = True):
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
        stop, each = self.e.size(stop), _told_elsewhere(self.e, size)
        first, opened = self.e.begin_loop(self.e.size(start), stop, each)
        end = self.e.op(f"add nuw nsw i64 {first}, {each}")
        return first, self.e.least(end, stop), opened

    def _loop_together(self, level: int, d: int, start, stop, size: int, c: Copy) -> None:
        """Several iterations at once: one copy of the body for each; the last of them overlap those before."""
        with self._loop(level, start, stop, size) as i:
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
            self._level(level + 1, lines if inside else apart(self.body, lines))
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
        self._level(level + 1, copies)

    # ---- the SIMD dimension --------------------------------------------------------------------------------

    def segments(self, d: int) -> list[Segment]:
        """How the lanes cover a dimension of known extent."""
        n, width, unroll = self.nest.extents[d], self.nest.width, self.nest.unroll
        start, block = 0, self.nest.block(d)
        if n <= width:
            return [Segment(0, n, n, 1)]
        one_by_one = self.nest.together is not None and self.nest.together.what == "places"  # elements are read
        if loops.is_idempotent(self.nest, d, self.in_place) and not (one_by_one and n % width <= width // 2):
            return [Segment(0, n, width, unroll, clamp=thresholds.some(n % (width * unroll)))]
        out = []
        for size in dict.fromkeys((block, width)):
            stop = start + (n - start) // size * size
            if stop > start:
                out.append(Segment(start, stop, width, unroll if size == block else 1, rest=start > 0))
            start = stop
        if start < n and d not in self.nest.reduced:
            out.append(Segment(start, n, n - start, 1))
        elif start < n:
            out.append(Segment(start, n, width, 1, clamp=True, masked=True, rest=True))
        return out

    def _vector_loop(self, level: int, d: int, copies: list[Copy]) -> None:
        if d not in self.ranges and not _is_told(self, d):
            _folded(self, level, d, copies)
            return
        if d not in self.ranges:
            _told_segments(self, level, d, copies)
            return
        r, width, unroll = self.ranges[d], self.nest.width, self.nest.unroll
        if d in self.nest.rows:
            _lanes_there(self, level, d, r.start, r.stop, copies)
            return
        if self.nest.rest is not None:
            _whole_and_rest(self, level, d, r, copies)
            return
        clamp = loops.is_idempotent(self.nest, d, self.in_place)
        if d in self.cut:
            _vectors_in_pieces(self, level, d, r, clamp, copies)
        else:
            self._segment(level, d, Segment(r.start, r.stop, width, unroll, clamp), copies)
        if r.extent is not None:
            self._rest(level, d, r, copies)

    def _rest(self, level: int, d: int, r: Range, copies: list[Copy]) -> None:
        """What whole blocks leave of a reduced dimension, for the range that ends with the last of them."""
        e, step = self.e, self.nest.block(d)
        left = e.op(f"sub i64 {r.extent}, {r.stop}")
        near, some = e.op(f"icmp ult i64 {left}, {step}"), e.op(f"icmp ne i64 {left}, 0")
        with when(e, e.op(f"and i1 {near}, {some}")):
            rest = Segment(r.stop, r.extent, self.nest.width, 1, clamp=True, masked=True, rest=True)
            if step > self.nest.width:
                self._segment(level, d, rest, copies)
            else:  # a single block
                self.body.width = self.nest.width
                self._block(level, d, self._moved_back(r.stop, rest), rest, copies)
                self.body.width, self.body.active = 1, None

    def _segment(self, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
        self.body.width = s.width
        for accumulators in self.body.folds:
            accumulators.in_turn = not s.rest and self.nest.turns > self.nest.unroll
        step = s.width * s.unroll
        if isinstance(s.start, int) and s.stop - s.start <= step:
            _single(self, level, d, s, copies)
        elif self.nest.short is not None:
            _short_rows(self, level, d, s, copies)
        elif self.small:
            _unrolled(self, level, d, s, copies)
        else:
            with self._loop(level, s.start, s.stop, step, cascaded=not s.rest) as i:
                self._block(level, d, self._moved_back(i, s), s, copies)
        self.body.width, self.body.active = 1, None

    def _moved_back(self, i: str, s: Segment) -> str:
        """Where block `i` of a segment begins, and which of its lanes are active."""
        if not s.clamp:
            return i
        step = s.width * s.unroll
        is_known = isinstance(s.stop, int)
        last = _told_elsewhere(self.e, s.stop - step) if is_known else self.e.op(f"sub i64 {s.stop}, {step}")
        at = self.e.least(i, last)
        if s.masked:
            self.body.active = _lanes_from(self.body, self.e.op(f"sub i64 {i}, {at}"))
        return at

    def _block(self, level: int, d: int, base, s: Segment, copies: list[Copy]) -> None:
        if self.body.together is not None:
            for u in range(s.unroll):
                for accumulators in self.body.folds:
                    accumulators.turn = u
                at = base + u * s.width if isinstance(base, int) else self.body.add(base, str(u * s.width))
                self._level(level + 1, self.body.moved_together(copies, d, at))
            return
        inner: list[Copy] = []
        for u in range(s.unroll):
            c = copies[0].child()
            if isinstance(base, int):
                c.base = base + u * s.width
                self.body.advance(c, d, c.base)
            else:
                if u == 0:
                    self.body.advance(c, d, base)
                    c.base = base
                else:
                    c.base = self.e.op(f"add nsw i64 {base}, {u * s.width}") if _uses_base(self.nest) else None
                    c.pointers = further(self.body, inner[0].pointers, d, u * s.width)
            inner.append(c)
        self._level(level + 1, inner)

    # ---- folds ---------------------------------------------------------------------------------------------

    def _open_folds(self, copies: list[Copy]) -> None:
        if self.body.folds:
            return
        levels = self.cascade.levels if self.cascade is not None else 0
        self.body.folds = extremes.accumulators(self.body, levels, copies)
        if self.cascade is not None:
            self.counter = self.e.slot("i64")
            self.e.do(f"store i64 0, ptr {self.counter}")


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
    """Whether a nest has a short line of vectors, or one that the next iteration of a loop waits for. Of other lines, a
    loop is as fast, and its text does not tell how long they are.
    """
    if in_place or nest.vector is None or nest.folds or nest.trips <= SCALARS:
        return True
    return nest.extents[nest.vector] <= MOST_UNROLLED * nest.width


def _unrolled(w: NestWriter, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
    """A segment without its loop; the text tells how many blocks it has, and of few where the last one is."""
    step = s.width * s.unroll
    blocks, last = int(-(-(s.stop - s.start) // step)), s.stop - step
    if s.stop > IN_REGISTERS * s.width and not w.in_place:  # of what is kept in registers, LLVM must know all places
        last = w.e.size(last)
    for k in range(blocks):
        w._block(level, d, s.start + k * step if k + 1 < blocks else last, s, copies)


def _written_where(w: NestWriter, level: int, copies: list[Copy]) -> int | None:
    """The statement that tells whether anything is written in the loops from here on, which are long: rows that a
    scatter drops are not read.
    """
    nest, masks = w.nest, {s.mask for s in w.nest.stores}
    if nest.folds or len(masks) != 1 or len(copies) != 1 or not masks.issubset(w.layout.levels[level]):
        return None
    inside = math.prod(nest.extents[d] for d in nest.order[level:])
    return masks.pop() if inside >= LONG * nest.width else None


def _inside(w: NestWriter, level: int, copies: list[Copy]) -> None:
    """The loops from a level on."""
    d = w.nest.order[level]
    if level < len(w.outer):
        w._enter(level, d, w.outer[level], [c.child() for c in copies])
    elif d == w.nest.vector:
        w._vector_loop(level, d, copies)
    else:
        w._scalar_loop(level, d, copies)


def _empty(w: NestWriter) -> None:
    """No iterations: folds over nothing still store their identities, or what they begin with."""
    kept = [n for d, n in enumerate(w.nest.extents) if d not in w.nest.reduced]
    if w.nest.folds and 0 not in kept:
        copy = w.body.first_copy()
        for i in w.layout.levels[0]:
            w.body.statement(i, [copy])
        folds.store_identities(w.body, copy)


def _short_rows(w: NestWriter, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
    """A segment of rows that are shorter than a vector, after what hangs on their columns alone."""
    assert w.nest.short is not None
    w.body.short = ShortRows(w.body, w.nest.short, copies[0])
    before = copies[0].child()
    before.env[COLUMNS] = w.body.short.written()
    w.body.short = None
    with w._loop(level, s.start, s.stop, s.width * s.unroll, cascaded=not s.rest) as i:
        w._block(level, d, w._moved_back(i, s), s, [before])


def _rows_joined(w: NestWriter, level: int, d: int, rows: joins.Rows, start, stop, copies: list[Copy]) -> None:
    """A loop over rows whose lanes are joined, as many of them at once as a vector has lanes."""
    e, width = w.e, w.nest.width
    with w._loop(level, start, stop, width) as first:
        end = e.least(e.op(f"add i64 {first}, {width}"), e.size(stop))
        i, opened = e.begin_loop(first, end)
        rows.number, rows.waiting = e.op(f"sub i64 {i}, {first}"), []
        w._enter(level, d, i, [c.child() for c in copies])
        e.end_loop(opened)
        c = copies[0].child()
        w.body.advance(c, d, first)
        there = joins.there(e, e.op(f"sub i64 {end}, {first}"), width)
        for accumulators in rows.waiting:
            accumulators.finish_kept(c, there)


def _lanes_there(w: NestWriter, level: int, d: int, start, stop, copies: list[Copy]) -> None:
    """Lanes under a mask: before and behind these iterations nothing may be read or written."""
    with w._loop(level, start, stop, w.nest.width, cascaded=False) as i:
        lanes = joins.there(w.e, w.e.op(f"sub i64 {stop}, {i}"), w.nest.width)
        there = copies[0].child()
        there.env[THERE] = lanes
        _under_mask(w, level, d, i, lanes, Segment(i, stop, w.nest.width, 1), [there])


def _whole_and_rest(w: NestWriter, level: int, d: int, r: Range, copies: list[Copy]) -> None:
    """The lanes over a range that begins anywhere: whole blocks, and what is left behind them."""
    e, width, unroll = w.e, w.nest.width, w.nest.unroll
    count = e.op(f"sub i64 {r.stop}, {r.start}")
    whole = e.op(f"add i64 {r.start}, {e.op(f'and i64 {count}, {-width * unroll}')}")
    with when(e, e.op(f"icmp slt i64 {r.start}, {whole}")):
        w._segment(level, d, Segment(r.start, whole, width, unroll), copies)
    with when(e, e.op(f"icmp slt i64 {whole}, {r.stop}")):
        _open_rest(w, level, d, whole, r.stop, copies)


def _open_rest(w: NestWriter, level: int, d: int, start, stop, copies: list[Copy]) -> None:
    """What whole blocks of lanes leave, whatever it is."""
    if w.nest.rest == "masked":
        _lanes_there(w, level, d, start, stop, copies)
        return
    e, size = w.e, w.nest.width
    left = e.op(f"sub i64 {stop}, {start}")
    if w.nest.unroll > 1:
        at = e.op(f"add i64 {start}, {e.op(f'and i64 {left}, {-size}')}")
        with when(e, e.op(f"icmp slt i64 {start}, {at}")):
            w._segment(level, d, Segment(start, at, size, 1), copies)
    else:
        at = start
    while size := size // 2:
        some = e.op(f"and i64 {left}, {size}")
        with when(e, e.op(f"icmp ne i64 {some}, 0")):
            w.body.width = size
            w._block(level, d, at, Segment(at, stop, size, 1), copies)
        at = e.op(f"add i64 {at}, {some}")
    w.body.width = 1


def _told_segments(w: NestWriter, level: int, d: int, copies: list[Copy]) -> None:
    """The segments of a dimension whose extent is known, but for the last lanes, whose number need not be told."""
    n, block = w.nest.extents[d], w.nest.block(d)
    if w.small or w.nest.rest is None or not n % block:
        for s in w.segments(d):
            _write_pieces(w, level, d, s, copies)
        return
    whole = n - n % block
    if n > block:
        _write_pieces(w, level, d, Segment(0, whole, w.nest.width, w.nest.unroll), copies)
    _open_rest(w, level, d, _named(w.e, whole, 5), _named(w.e, n, 6), copies)


def _named(e: Emitter, n: int, role: int) -> int | str:
    """A number that the text does not tell, however small it is."""
    return n if e.sizes is None or not n else e.sizes.named("i64", n, role)


def _close_folds(w: NestWriter, copies: list[Copy]) -> None:
    if w.body.short is not None and w.nest.vector not in w.nest.reduced and w.nest.short not in w.nest.reduced:
        w.body.short.store_folded(w.body.folds, copies[0])
        w.body.folds = []
        return
    rows, alone = w.layout.joined, []
    for fold, accumulators in zip(w.nest.folds, w.body.folds):
        if rows is not None and joins.are_joined(w.nest, fold, rows.d):
            accumulators.keep(rows.number)
            rows.waiting.append(accumulators)
        else:
            alone.append(accumulators)
    folds.finish(w.body, alone, copies)
    w.body.folds = []


def _told_elsewhere(e: Emitter, size: int) -> int | str:
    """A number that hangs on a length, though it may be small: how many rows a block has, where the last vector is."""
    return e.size(size) if e.sizes is None or size >= LEAST else e.sizes.named("i64", size, 4)


def _uses_base(nest: Nest) -> bool:
    """Whether copies of the body have to know where they are along the lanes."""
    return any(s.op == "affine" for s in nest.stmts) or bool(ahead.loads(nest))


def _by_lines(writer: NestWriter, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
    """A part of a row that is written past the caches: by whole lines, and what is before and behind these."""
    e, store, (base, const) = writer.e, writer.nest.stores[0], copies[0].pointers["store", 0]
    t = TYPES[store.dtype]
    begin = e.element(base, t.memory, e.size(const + s.start))
    cut = streams.lines(e, t, begin, s.start, s.stop)
    for start, lanes in cut.before(e, s.width):
        _under_mask(writer, level, d, start, lanes, s, copies)
    writer._segment(level, d, Segment(cut.first, cut.last, s.width, 1), copies)
    for at, lanes in cut.behind(e, s.width):
        there = copies[0].child()
        there.env[THERE] = lanes
        _under_mask(writer, level, d, at, lanes, s, [there])


def _under_mask(writer: NestWriter, level: int, d: int, at, lanes: str, s: Segment, copies: list[Copy]) -> None:
    """One vector, of which some lanes are stored."""
    writer.body.width, writer.body.active = s.width, lanes
    writer._block(level, d, at, s._replace(unroll=1), copies)
    writer.body.width, writer.body.active = 1, None


def _is_told(writer: NestWriter, d: int) -> bool:
    """Whether the text tells the extent of a dimension of lanes. Long ones that are folded away it does not; others
    in part (see `Emitter.size`).
    """
    nest = writer.nest
    told = writer.e.sizes is None or writer.small or d not in nest.reduced
    return told or nest.extents[d] < max(2 * nest.block(d), LEAST)


def _folded(writer: NestWriter, level: int, d: int, copies: list[Copy]) -> None:
    """The segments of a dimension that is folded away, whose extent the text does not tell."""
    e, n, width, step = writer.e, writer.nest.extents[d], writer.nest.width, writer.nest.block(d)
    sizes = e.sizes
    assert sizes is not None  # a text that tells extents has segments of numbers
    ends = n - n % step, n - n % width, n - width
    blocks, vectors, end = (sizes.named("i64", x, role) for role, x in enumerate(ends, 1))
    if d in writer.cut:
        _vectors_in_pieces(writer, level, d, Range("0", blocks), False, copies)
    else:
        writer._segment(level, d, Segment("0", blocks, width, writer.nest.unroll), copies)
    if n % step == 0:
        return
    if step > width:
        with when(e, e.op(f"icmp slt i64 {blocks}, {vectors}")):
            writer._segment(level, d, Segment(blocks, vectors, width, 1, rest=True), copies)
    if n % width:
        writer.body.width = width
        writer.body.active = _lanes_from(writer.body, sizes.named("i32", width - n % width), "i32")
        writer._block(level, d, end, Segment(vectors, n, width, 1), copies)
        writer.body.width, writer.body.active = 1, None


def _single(w: NestWriter, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
    """A segment of one block. Of short rows' last lanes, texts tell neither where nor how many they are."""
    at, sizes = s.stop - s.width * s.unroll, None if w.small else w.e.sizes
    if sizes is not None and s.masked:
        w.body.active = _lanes_from(w.body, sizes.named("i32", s.start - at), "i32")
        at = sizes.named("i64", at, 3)
    elif s.masked:
        w.body.active = _lanes_from(w.body, s.start - at)
    elif not w.small:
        at = w.e.size(at)
    w._block(level, d, at, s, copies)


def _lanes_from(body: BodyWriter, first, type_: str = "i64") -> str | None:
    """The mask of lanes from this one on; None for all."""
    if first == 0:
        return None
    if isinstance(first, int):
        return masks.constant(k >= first for k in range(body.width))
    count, order = (
        body.e.splat(first, type_, body.width),
        ", ".join(f"{type_} {k}" for k in range(body.width)),
    )
    return body.e.op(f"icmp uge {vector(type_, body.width)} <{order}>, {count}")


# ---- loops that are cut at their seams -------------------------------------------------------------------


def _cut(w: NestWriter) -> set[int]:
    """The loops that are cut (see `seams`). Sums that go in blocks stay whole, and so do iterations together."""
    nest = w.nest
    if nest.together is not None and nest.rest is None or nest.run is not None:
        return set()
    blocks = None if w.cascade is None else w.cascade.level
    levels = (k for k in range(len(w.outer), len(nest.order)) if k != blocks)
    along = [nest.order[k] for k in levels if not w.small or nest.order[k] == nest.vector]
    return seams.plan(nest, along, w.ranges)


def _in_pieces(w: NestWriter, level: int, d: int, start, stop, copies: list[Copy]) -> None:
    """A loop that is cut, around the lanes or inside of them."""
    for piece in seams.pieces(w.nest, d, None if d in w.ranges else stop):
        with _part(w, start, stop, piece, d in w.ranges) as (first, end), w.layout.where(piece.settled):
            with w._loop(level, first, end, 1) as i:
                w._enter(level, d, i, [c.child() for c in copies])


@contextmanager
def _part(w: NestWriter, start, stop, piece: seams.Piece, asked: bool):
    """Where a piece begins and ends in a range; where that is nowhere, what stands there is skipped (`asked`)."""
    if not asked:
        yield piece.start, piece.stop
        return
    e, first, end = w.e, start, stop
    if piece.start:
        first = e.most(start, e.size(piece.start))
    if piece.stop is not None:
        end = e.least(stop, e.size(piece.stop))
    with when(e, e.op(f"icmp slt i64 {first}, {end}")):
        yield first, end


def _vectors_in_pieces(w: NestWriter, level: int, d: int, r: Range, clamp: bool, copies: list[Copy]) -> None:
    """The lanes over a range, which begins with a whole block; its last one, which is moved back, knows nothing."""
    e, width, unroll = w.e, w.nest.width, w.nest.unroll
    whole = e.op(f"and i64 {r.stop}, {-width * unroll}") if clamp else r.stop
    for piece in seams.pieces(w.nest, d, None):
        with _part(w, r.start, whole, piece, True) as (first, end), w.layout.where(piece.settled):
            w._segment(level, d, Segment(first, end, width, unroll), copies)
    if clamp:
        with when(e, e.op(f"icmp slt i64 {whole}, {r.stop}")):
            w.body.width = width
            start = e.op(f"sub i64 {r.stop}, {width * unroll}")
            w._block(level, d, start, Segment(whole, r.stop, width, unroll), copies)
            w.body.width = 1


def _write_pieces(w: NestWriter, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
    """A segment of known extent, piece by piece."""
    for piece in _pieces_of(w, d, s):
        part = s._replace(start=piece.start, stop=piece.stop)
        with w.layout.where(piece.settled):
            write = _by_lines if streams.meet_lines(w.nest, part.start, part.stop) else NestWriter._segment
            write(w, level, d, part, copies)


def _pieces_of(w: NestWriter, d: int, s: Segment) -> list[seams.Piece]:
    """The pieces of a segment of known extent."""
    if w.nest.together is not None and w.nest.rest is None:
        return [seams.Piece(s.start, s.stop, {})]
    if d in w.cut and s.width == w.nest.width and not s.masked:
        return seams.pieces(w.nest, d, s.stop, s.start)
    first = min(s.start, s.stop - s.width * s.unroll)
    return [seams.Piece(s.start, s.stop, conditions.settled(conditions.find(w.nest, d), first, s.stop))]
