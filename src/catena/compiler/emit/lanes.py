"""The loop along which vectors lie, of a loop nest that is being written (see `emit.nest`).

It is cut into segments: full blocks of `unroll` vectors, single vectors, a tail. Each segment writes what is inside of
the loop once. A nest without folds over its lanes ends in one last vector that overlaps the one before it, since
writing an element twice is harmless; folds mask the overlap, and nests that update in place get a tail of exact width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from catena.compiler.emit import ahead, joins, masks, seams, streams
from catena.compiler.emit.body_text import THERE, BodyWriter, Copy, further
from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter, told_elsewhere
from catena.compiler.emit.short_rows import COLUMNS, ShortRows
from catena.compiler.emit.sizes import LEAST
from catena.compiler.graph import thresholds
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.kernels import conditions, loops
from catena.compiler.kernels.loops import Nest
from catena.compiler.plan.ranges import Range
from catena.core.named import NamedTuple

if TYPE_CHECKING:
    from catena.compiler.emit.nest import NestWriter

IN_REGISTERS = 4  # vectors of an array on the stack (`plan.memory.SLOT_BYTES`)


class Segment(NamedTuple):
    """A run of the dimension: [start, stop) in blocks of unroll vectors of `width` lanes."""

    start: Any  # a number, or the name of one
    stop: Any
    width: int
    unroll: int
    clamp: bool = False  # the last block moves back to end at `stop`
    masked: bool = False  # lanes that moved back with the last block do nothing the second time
    rest: bool = False  # the vectors behind the blocks: too few for a block of a cascade, or one of each accumulator


class LanesWriter:
    """Writes the loop over dimension `d`, at a `level` of the loops that `nest` writes."""

    def __init__(self, nest: NestWriter, level: int, d: int):
        self.around, self.level, self.d = nest, level, d
        self.e, self.nest, self.body = nest.e, nest.nest, nest.body

    def write(self, copies: list[Copy]) -> None:
        ranges, nest, d = self.around.ranges, self.nest, self.d
        if d not in ranges:
            if self._is_told():
                self._of_known_extent(copies)
            else:
                self._folded_away(copies)
            return
        r = ranges[d]
        if d in nest.rows:
            self._masked(r.start, r.stop, copies)
            return
        if nest.rest is not None:
            self._whole_and_rest(r, copies)
            return
        clamp = loops.is_idempotent(nest, d, self.around.in_place)
        if d in self.around.cut:
            self._in_pieces(r, clamp, copies)
        else:
            self._segment(Segment(r.start, r.stop, nest.width, nest.unroll, clamp), copies)
        if r.extent is not None:
            self._rest(r, copies)

    # ---- a known extent ------------------------------------------------------------------------------------

    def _of_known_extent(self, copies: list[Copy]) -> None:
        """All segments; of the last lanes, how many they are need not be told."""
        n, block = self.nest.extents[self.d], self.nest.block(self.d)
        if self.around.small or self.nest.rest is None or not n % block:
            for s in self._segments():
                self._piece_by_piece(s, copies)
            return
        whole = n - n % block
        if n > block:
            self._piece_by_piece(Segment(0, whole, self.nest.width, self.nest.unroll), copies)
        self._open_rest(_named(self.e, whole, 5), _named(self.e, n, 6), copies)

    def _segments(self) -> list[Segment]:
        """How the lanes cover the dimension."""
        nest, d = self.nest, self.d
        n, width, unroll = nest.extents[d], nest.width, nest.unroll
        start, block = 0, nest.block(d)
        if n <= width:
            return [Segment(0, n, n, 1)]
        one_by_one = nest.together is not None and nest.together.what == "places"  # elements are read
        if loops.is_idempotent(nest, d, self.around.in_place) and not (one_by_one and n % width <= width // 2):
            return [Segment(0, n, width, unroll, clamp=thresholds.some(n % (width * unroll)))]
        out = []
        for size in dict.fromkeys((block, width)):
            stop = start + (n - start) // size * size
            if stop > start:
                out.append(Segment(start, stop, width, unroll if size == block else 1, rest=start > 0))
            start = stop
        if start < n and d not in nest.reduced:
            out.append(Segment(start, n, n - start, 1))
        elif start < n:
            out.append(Segment(start, n, width, 1, clamp=True, masked=True, rest=True))
        return out

    def _piece_by_piece(self, s: Segment, copies: list[Copy]) -> None:
        """A segment, cut at its seams."""
        for piece in self._pieces_of(s):
            part = s._replace(start=piece.start, stop=piece.stop)
            with self.around.layout.where(piece.settled):
                if streams.meet_lines(self.nest, part.start, part.stop):
                    self._by_lines(part, copies)
                else:
                    self._segment(part, copies)

    def _pieces_of(self, s: Segment) -> list[seams.Piece]:
        nest, d = self.nest, self.d
        if nest.together is not None and nest.rest is None:
            return [seams.Piece(s.start, s.stop, {})]
        if d in self.around.cut and s.width == nest.width and not s.masked:
            return seams.pieces(nest, d, s.stop, s.start)
        first = min(s.start, s.stop - s.width * s.unroll)
        return [seams.Piece(s.start, s.stop, conditions.settled(conditions.find(nest, d), first, s.stop))]

    def _by_lines(self, s: Segment, copies: list[Copy]) -> None:
        """A part of a row that is written past the caches: by whole lines, and what is before and behind these."""
        e, store, (base, const) = self.e, self.nest.stores[0], copies[0].pointers["store", 0]
        t = TYPES[store.dtype]
        begin = e.element(base, t.memory, e.size(const + s.start))
        cut = streams.lines(e, t, begin, s.start, s.stop)
        for start, lanes in cut.before(e, s.width):
            self._under_mask(start, lanes, s, copies)
        self._segment(Segment(cut.first, cut.last, s.width, 1), copies)
        for at, lanes in cut.behind(e, s.width):
            there = copies[0].child()
            there.env[THERE] = lanes
            self._under_mask(at, lanes, s, [there])

    # ---- an extent that the text does not tell -------------------------------------------------------------

    def _is_told(self) -> bool:
        """Whether the text tells the extent: of a long one that is folded away it does not (others: `Emitter.size`)."""
        nest, d = self.nest, self.d
        told = self.e.sizes is None or self.around.small or d not in nest.reduced
        return told or nest.extents[d] < max(2 * nest.block(d), LEAST)

    def _folded_away(self, copies: list[Copy]) -> None:
        """The segments of an extent that is folded away."""
        e, n, width, step = self.e, self.nest.extents[self.d], self.nest.width, self.nest.block(self.d)
        sizes = e.sizes
        assert sizes is not None  # a text that tells extents has segments of numbers
        ends = n - n % step, n - n % width, n - width
        blocks, vectors, end = (sizes.named("i64", x, role) for role, x in enumerate(ends, 1))
        if self.d in self.around.cut:
            self._in_pieces(Range("0", blocks), False, copies)
        else:
            self._segment(Segment("0", blocks, width, self.nest.unroll), copies)
        if n % step == 0:
            return
        if step > width:
            with when(e, e.op(f"icmp slt i64 {blocks}, {vectors}")):
                self._segment(Segment(blocks, vectors, width, 1, rest=True), copies)
        if n % width:
            with self._vector_of(width):
                self.body.active = _lanes_from(self.body, sizes.named("i32", width - n % width), "i32")
                self._block(end, Segment(vectors, n, width, 1), copies)

    # ---- a range that is known when it runs ----------------------------------------------------------------

    def _in_pieces(self, r: Range, clamp: bool, copies: list[Copy]) -> None:
        """A range, which begins with a whole block, cut at its seams; its last block, moved back, knows nothing."""
        e, width, unroll = self.e, self.nest.width, self.nest.unroll
        whole = e.op(f"and i64 {r.stop}, {-width * unroll}") if clamp else r.stop
        for piece in seams.pieces(self.nest, self.d, None):
            with seams.part(e, r.start, whole, piece) as (first, end), self.around.layout.where(piece.settled):
                self._segment(Segment(first, end, width, unroll), copies)
        if clamp:
            with when(e, e.op(f"icmp slt i64 {whole}, {r.stop}")), self._vector_of(width):
                start = e.op(f"sub i64 {r.stop}, {width * unroll}")
                self._block(start, Segment(whole, r.stop, width, unroll), copies)

    def _rest(self, r: Range, copies: list[Copy]) -> None:
        """What whole blocks leave of a reduced dimension, for the range that ends with the last of them."""
        e, step = self.e, self.nest.block(self.d)
        left = e.op(f"sub i64 {r.extent}, {r.stop}")
        near, some = e.op(f"icmp ult i64 {left}, {step}"), e.op(f"icmp ne i64 {left}, 0")
        with when(e, e.op(f"and i1 {near}, {some}")):
            rest = Segment(r.stop, r.extent, self.nest.width, 1, clamp=True, masked=True, rest=True)
            if step > self.nest.width:
                self._segment(rest, copies)
            else:  # a single block
                with self._vector_of(self.nest.width):
                    self._block(self._moved_back(r.stop, rest), rest, copies)

    def _whole_and_rest(self, r: Range, copies: list[Copy]) -> None:
        """A range that begins anywhere: whole blocks, and what is left behind them."""
        e, width, unroll = self.e, self.nest.width, self.nest.unroll
        count = e.op(f"sub i64 {r.stop}, {r.start}")
        whole = e.op(f"add i64 {r.start}, {e.op(f'and i64 {count}, {-width * unroll}')}")
        with when(e, e.op(f"icmp slt i64 {r.start}, {whole}")):
            self._segment(Segment(r.start, whole, width, unroll), copies)
        with when(e, e.op(f"icmp slt i64 {whole}, {r.stop}")):
            self._open_rest(whole, r.stop, copies)

    def _open_rest(self, start, stop, copies: list[Copy]) -> None:
        """What whole blocks leave, whatever it is."""
        if self.nest.rest == "masked":
            self._masked(start, stop, copies)
            return
        e, size = self.e, self.nest.width
        left = e.op(f"sub i64 {stop}, {start}")
        if self.nest.unroll > 1:
            at = e.op(f"add i64 {start}, {e.op(f'and i64 {left}, {-size}')}")
            with when(e, e.op(f"icmp slt i64 {start}, {at}")):
                self._segment(Segment(start, at, size, 1), copies)
        else:
            at = start
        while size := size // 2:
            some = e.op(f"and i64 {left}, {size}")
            with when(e, e.op(f"icmp ne i64 {some}, 0")), self._vector_of(size):
                self._block(at, Segment(at, stop, size, 1), copies)
            at = e.op(f"add i64 {at}, {some}")

    def _masked(self, start, stop, copies: list[Copy]) -> None:
        """Vectors under a mask: before and behind these iterations nothing may be read or written."""
        width = self.nest.width
        with self.around.loop(self.level, start, stop, width, cascaded=False) as i:
            lanes = joins.there(self.e, self.e.op(f"sub i64 {stop}, {i}"), width)
            there = copies[0].child()
            there.env[THERE] = lanes
            self._under_mask(i, lanes, Segment(i, stop, width, 1), [there])

    # ---- a segment -----------------------------------------------------------------------------------------

    def _segment(self, s: Segment, copies: list[Copy]) -> None:
        for accumulators in self.body.folds:
            accumulators.in_turn = not s.rest and self.nest.turns > self.nest.unroll
        step = s.width * s.unroll
        with self._vector_of(s.width):
            if isinstance(s.start, int) and s.stop - s.start <= step:
                self._single(s, copies)
            elif self.nest.short is not None:
                self._short_rows(s, copies)
            elif self.around.small:
                self._unrolled(s, copies)
            else:
                self._blocks(s, copies)

    def _single(self, s: Segment, copies: list[Copy]) -> None:
        """A segment of one block. Of short rows' last lanes, texts tell neither where nor how many they are."""
        small = self.around.small
        at, sizes = s.stop - s.width * s.unroll, None if small else self.e.sizes
        if sizes is not None and s.masked:
            self.body.active = _lanes_from(self.body, sizes.named("i32", s.start - at), "i32")
            at = sizes.named("i64", at, 3)
        elif s.masked:
            self.body.active = _lanes_from(self.body, s.start - at)
        elif not small:
            at = self.e.size(at)
        self._block(at, s, copies)

    def _short_rows(self, s: Segment, copies: list[Copy]) -> None:
        """A segment of rows that are shorter than a vector, after what hangs on their columns alone."""
        assert self.nest.short is not None
        self.body.short = ShortRows(self.body, self.nest.short, copies[0])
        before = copies[0].child()
        before.env[COLUMNS] = self.body.short.written()
        self.body.short = None
        self._blocks(s, [before])

    def _unrolled(self, s: Segment, copies: list[Copy]) -> None:
        """A segment without its loop; the text tells how many blocks it has, and of few where the last one is."""
        step = s.width * s.unroll
        blocks, last = int(-(-(s.stop - s.start) // step)), s.stop - step
        if s.stop > IN_REGISTERS * s.width and not self.around.in_place:  # in registers, LLVM must know all places
            last = self.e.size(last)
        for k in range(blocks):
            self._block(s.start + k * step if k + 1 < blocks else last, s, copies)

    def _blocks(self, s: Segment, copies: list[Copy]) -> None:
        """A segment as a loop over its blocks."""
        with self.around.loop(self.level, s.start, s.stop, s.width * s.unroll, cascaded=not s.rest) as i:
            self._block(self._moved_back(i, s), s, copies)

    def _moved_back(self, i: str, s: Segment) -> str:
        """Where block `i` of a segment begins, and which of its lanes are active."""
        if not s.clamp:
            return i
        step = s.width * s.unroll
        is_known = isinstance(s.stop, int)
        last = told_elsewhere(self.e, s.stop - step) if is_known else self.e.op(f"sub i64 {s.stop}, {step}")
        at = self.e.least(i, last)
        if s.masked:
            self.body.active = _lanes_from(self.body, self.e.op(f"sub i64 {i}, {at}"))
        return at

    # ---- a block -------------------------------------------------------------------------------------------

    @contextmanager
    def _vector_of(self, width: int) -> Iterator[None]:
        """So many lanes at once, of which `body.active` may name the active ones."""
        self.body.width = width
        yield
        self.body.width, self.body.active = 1, None

    def _under_mask(self, at, lanes: str, s: Segment, copies: list[Copy]) -> None:
        """One vector, of which some lanes are stored."""
        with self._vector_of(s.width):
            self.body.active = lanes
            self._block(at, s._replace(unroll=1), copies)

    def _block(self, base, s: Segment, copies: list[Copy]) -> None:
        """A block of vectors: one copy of the body for each."""
        body, d = self.body, self.d
        if body.together is not None:
            for u in range(s.unroll):
                for accumulators in body.folds:
                    accumulators.turn = u
                at = base + u * s.width if isinstance(base, int) else body.add(base, str(u * s.width))
                self.around.write_level(self.level + 1, body.moved_together(copies, d, at))
            return
        inner: list[Copy] = []
        for u in range(s.unroll):
            c = copies[0].child()
            if isinstance(base, int):
                c.base = base + u * s.width
                body.advance(c, d, c.base)
            elif u == 0:
                body.advance(c, d, base)
                c.base = base
            else:
                c.base = self.e.op(f"add nsw i64 {base}, {u * s.width}") if _uses_base(self.nest) else None
                c.pointers = further(body, inner[0].pointers, d, u * s.width)
            inner.append(c)
        self.around.write_level(self.level + 1, inner)


def _named(e: Emitter, n: int, role: int) -> int | str:
    """A number that the text does not tell, however small it is."""
    return n if e.sizes is None or not n else e.sizes.named("i64", n, role)


def _uses_base(nest: Nest) -> bool:
    """Whether copies of the body have to know where they are along the lanes."""
    return any(s.op == "affine" for s in nest.stmts) or bool(ahead.loads(nest))


def _lanes_from(body: BodyWriter, first, type_: str = "i64") -> str | None:
    """The mask of lanes from this one on; None for all."""
    if first == 0:
        return None
    if isinstance(first, int):
        return masks.constant(k >= first for k in range(body.width))
    count, order = body.e.splat(first, type_, body.width), ", ".join(f"{type_} {k}" for k in range(body.width))
    return body.e.op(f"icmp uge {vector(type_, body.width)} <{order}>, {count}")
