"""Fourier transforms as `plan.fourier` has them: sweeps over columns and rows, in tasks for the threads."""

from __future__ import annotations

from dataclasses import replace

from catena.compiler.emit import butterflies, half_spectrum
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.butterflies import Pass
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.tasks import over_rows
from catena.compiler.graph.fourier import (
    chirp_factors,
    half_roots,
    is_split,
    is_written_out,
    odd_radices,
    pass_roots,
    radices,
    roots_of_pass,
    twist_roots,
)
from catena.compiler.graph.types import TYPES, literal
from catena.compiler.plan.fourier import COLUMNS, FEW, HALVES, MANY, ODD, SHORT, Half, Numbers, Sweep, Transforms
from catena.compiler.plan.steps import Transform

LINE = 64
WORK = 64  # units of work (see `plan.sharing.work`) for each number in a sweep
NO_TWIST = "ptr null, i64 0, i64 0, i64 0"
PIECE = 1 << 12  # numbers of a half spectrum that are done at once


class Writer:
    """Writes transforms of one kind of numbers."""

    def __init__(self, w, numbers: Numbers):
        self.w, self.real, self.width, self.bytes = w, numbers.real, numbers.width, numbers.bytes
        self.scalar = TYPES[numbers.real].register
        self.blocks, self.scratch, self.overlaps = numbers.blocks, numbers.scratch, numbers.overlaps

    def at(self, e: Emitter, pointer: str, numbers) -> str:
        """The address so many complex numbers further."""
        return e.element(pointer, f"[2 x {self.scalar}]", numbers)

    def tables(self, s: Sweep) -> list[str]:
        """The addresses of a sweep's roots: of its passes, and of the twist."""
        roots = self.w.constant(pass_roots(radices(s.n), self.real))
        if s.twist is None:
            return [roots, roots]
        return [roots, self.w.constant(twist_roots(s.n, s.twist, self.width, self.real))]

    def block(self, e: Emitter, s: Sweep, x: str, y: str, scratch: str, tables: list[str], number: str) -> None:
        """Writes the calls for block `number` of the lanes, of which only the last one may have idle lanes."""
        blocks, rest = divmod(s.lanes, self.width)
        first, count = self.share(e, s, number)
        given = (first, count, x, y, scratch, tables, number)
        if self.overlaps(s) or not (blocks and rest):
            self._block(e, s, blocks > 0, *given)
            return
        for whole in each_way(e, e.op(f"icmp eq i64 {count}, {self.width}")):
            self._block(e, s, whole, *given)

    def _block(self, e: Emitter, s: Sweep, whole: bool, first, count, x, y, scratch, tables, number) -> None:
        x, y = (
            self.at(e, p, e.op(f"mul i64 {first}, {step}") if rows else first)
            for p, step, rows in zip((x, y), s.steps, s.rows)
        )
        place, spares = x, self._spares(e, s.n, scratch)
        if s.rows[0]:
            place = spares[1]
            self._exchange(e, s, 0, x, place, count, s.n)
        twist = self._twist(e, s, tables[1], number, first)
        place = self._passes(e, s, place, y, spares, count, tables[0], twist, whole)
        if s.rows[1]:
            self._exchange(e, s, 1, y, place, count, s.n)

    def rows(self, e: Emitter, s: Sweep, count: str, p: Transforms, x: str, y: str, scratch: str, tables) -> None:
        """Writes the calls for so many rows, one to a lane, whose half spectra are made while they stand there."""
        half, sizes = p.half, p.sizes
        spares = self._spares(e, max(sizes), scratch)
        if half is not None and not half.to_spectrum:
            self._exchange(e, s, 0, x, spares[0], count, sizes[0])
            self._half_in_lanes(e, half, spares[0], spares[1], tables[-1])
        else:
            self._exchange(e, s, 0, x, spares[1], count, sizes[0])
        place = self._passes(e, s, spares[1], y, spares, count, tables[0])
        if half is not None and half.to_spectrum:
            other = spares[0] if place == spares[1] else spares[1]
            self._half_in_lanes(e, half, place, other, tables[-1])
            place = other
        self._exchange(e, s, 1, y, place, count, sizes[1])

    def odd_rows(self, e: Emitter, s: Sweep, count: str, x: str, y: str, scratch: str, roots: str) -> None:
        """Writes the calls for so many real rows of odd length, one to a lane. What the first pass leaves out
        is left out behind it too: the other passes do a bit more than half of their work.
        """
        r, h = odd_radices(s.n)[0], s.n // 2 + 1
        m, one, other = s.n // r, *self._spares(e, s.n, scratch)
        short = s.n < self.width
        exchange = self.w.function(butterflies.define_exchange(self.real, self.width, True, s.far, short))
        e.do(f"call void @{exchange}(ptr {x}, ptr {one}, i64 {count}, i64 {s.n}, i64 {s.n})")
        kind = Pass(self.real, self.width, r if is_written_out(r) else None, turned=m > 1, halved=True)
        self._call(e, kind, (one, other), (m, 1, 0, 0, count), roots, NO_TWIST, 1.0, r)
        rest = e.element(roots, self.scalar, 2 * roots_of_pass(r, m))
        place = self._passes(e, replace(s, n=m), other, y, [one, other], count, rest, columns=r // 2 + 1)
        free = one if place == other else other
        unfold = self.w.function(butterflies.define_unfold(self.real, self.width))
        e.do(f"call void @{unfold}(ptr {place}, ptr {free}, i64 {r}, i64 {m})")
        self._exchange(e, replace(s, steps=(0, h)), 1, y, free, count, h)

    def _spares(self, e: Emitter, n: int, scratch: str) -> list[str]:
        return [scratch, e.element(scratch, "i8", self.scratch(n) // 2)]

    def _passes(
        self, e: Emitter, s: Sweep, place: str, y: str, spares, count, roots: str, twist=NO_TWIST, whole=True, columns=1
    ) -> str:
        """Writes the calls of all passes, to the `whole` width of lanes or not; gives the place of the results."""
        passes, done = radices(s.n), 1
        for i, r in enumerate(passes):
            last = i == len(passes) - 1
            target = y if last and not s.rows[1] else spares[i % 2]
            m = s.n // (done * r)
            self._pass(
                e, s, i, (place, target), (m, done * columns, s.steps[0], s.steps[1], count), roots, twist, whole
            )
            roots = e.element(roots, self.scalar, 2 * roots_of_pass(r, m))
            place, done = target, done * r
        return place

    def share(self, e: Emitter, s: Sweep, number: str) -> tuple[str, str]:
        """The first lane of a block, and how many there are."""
        first = e.op(f"mul i64 {number}, {self.width}")
        if self.overlaps(s):
            return e.least(first, e.size(s.lanes - self.width)), str(self.width)
        return first, e.least(e.op(f"sub i64 {e.size(s.lanes)}, {first}"), self.width)

    def _twist(self, e: Emitter, s: Sweep, table: str, number: str, first: str) -> str:
        """The arguments that tell a pass the roots of a block of lanes; see `Pass` and `twist_roots`."""
        if s.twist is None and not s.times:
            return NO_TWIST
        blocks = self.blocks(s.lanes)
        if s.twist is None or not is_split(s.n, s.twist):
            own = e.element(table, self.scalar, first)
            return f"ptr {own}, i64 {2 * blocks * self.width}, i64 {blocks * self.width}, i64 0"
        common = e.op(f"add i64 {e.op(f'shl i64 {number}, 1')}, {2 * self.width}")
        return f"ptr {table}, i64 {2 * (self.width + blocks)}, i64 {self.width}, i64 {common}"

    def _pass(self, e: Emitter, s: Sweep, i: int, places, numbers, roots: str, twist: str, whole) -> None:
        radix, first, last = radices(s.n)[i], i == 0, i == len(radices(s.n)) - 1
        columns = first and not s.rows[0], last and not s.rows[1]
        kind = Pass(
            self.real,
            self.width,
            radix if is_written_out(radix) else None,
            columns,
            whole=whole or not any(columns),
            turned=not last,
            twisted=last and (s.twist is not None or s.times),
            split=last and s.twist is not None and is_split(s.n, s.twist),
            swapped=(first and s.swapped[0], last and s.swapped[1]),
            scaled=last and s.scale is not None,
            far=s.far and (first or last),
        )
        self._call(e, kind, places, numbers, roots, twist, s.scale or 1.0, radix)

    def _call(self, e: Emitter, kind: Pass, places, numbers, roots: str, twist: str, scale: float, radix: int) -> None:
        name = self.w.function(butterflies.define_pass(kind))
        given = [*(f"ptr {p}" for p in places), *(f"i64 {n}" for n in numbers), f"ptr {roots}", twist]
        e.do(f"call void @{name}({', '.join(given)}, double {literal(scale, TYPES['float64'])}, i64 {radix})")

    def _exchange(self, e: Emitter, s: Sweep, side: int, rows: str, lanes: str, count, n: int) -> None:
        """Writes the call that brings rows of `n` numbers into lanes, or back."""
        short = 2 * n < self.width
        name = self.w.function(butterflies.define_exchange(self.real, self.width, side == 0, s.far, short))
        numbers = f"i64 {count}, i64 {2 * max(s.steps[side], n)}, i64 {2 * n}"
        e.do(f"call void @{name}(ptr {rows}, ptr {lanes}, {numbers})")

    def half(self, e: Emitter, half: Half, x: str, y: str, roots: str, first="0", last=None) -> None:
        """Writes the call that makes a row's half spectrum of the transform of half the length, or the other way."""
        name = self.w.function(half_spectrum.define(self.real, self.width, half.to_spectrum))
        last = half.h if last is None else last
        e.do(f"call void @{name}(ptr {x}, ptr {y}, ptr {roots}, i64 {first}, i64 {last}, i64 {half.h})")

    def _half_in_lanes(self, e: Emitter, half: Half, x: str, y: str, roots: str) -> None:
        name = self.w.function(half_spectrum.define_in_lanes(self.real, self.width, half.to_spectrum))
        e.do(f"call void @{name}(ptr {x}, ptr {y}, ptr {roots}, i64 {half.h})")

    def times(self, e: Emitter, x: str, factors: str, y: str, n: int, m: int) -> None:
        """Writes the call that multiplies `n` numbers by as many, and puts zeros behind them until there are `m`."""
        name = self.w.function(butterflies.define_times(self.real, self.width))
        e.do(f"call void @{name}(ptr {x}, ptr {factors}, ptr {y}, i64 {n}, i64 {m})")

    def half_table(self, half: Half) -> str:
        return self.w.constant(half_roots(half.h, self.width, self.real))


def transform(w, step: Transform) -> None:
    """Writes the transforms along one axis."""
    p, v = step.plan, Writer(w, step.plan.numbers)
    source, target, *parts = (w.pointer(b) for b in (step.source, step.target, *step.parts))
    if p.how == COLUMNS:
        _columns(v, p, source, target, parts[0], p.whole)
    else:
        _Rows(v, p, parts).write(source, target)


# ---- columns -----------------------------------------------------------------------------------------------


def _columns(v: Writer, p: Transforms, source: str, target: str, scratch: str, s: Sweep) -> None:
    """One sweep over matrices, whose results may be written over them."""
    blocks, size = v.blocks(s.lanes), s.n * s.lanes

    def body(e: Emitter, p: list[str], item: str) -> None:
        offset = e.op(f"mul i64 {e.op(f'udiv i64 {item}, {blocks}')}, {size}")
        x, y = (v.at(e, q, offset) for q in p[:2])
        v.block(e, s, x, y, _own(e, p[2], v.scratch(s.n)), p[3:], e.op(f"urem i64 {item}, {blocks}"))

    items, each = p.items(s)
    over_rows(v.w, [source, target, scratch, *v.tables(s)], items, each, body, WORK * items * each)


def _own(e: Emitter, scratch: str, size: int) -> str:
    """The part of scratch memory that is the task's."""
    return e.element(scratch, "i8", e.op(f"mul i64 %k, {size}"))


# ---- rows --------------------------------------------------------------------------------------------------


class _Rows:
    """Writes the transforms of rows, perhaps with half spectra before or after them."""

    def __init__(self, v: Writer, p: Transforms, parts: list[str]):
        self.v, self.plan, self.parts = v, p, parts
        self.half, self.outer, self.n, self.sizes = p.half, p.outer, p.n, p.sizes

    def write(self, source: str, target: str) -> None:
        ways = {HALVES: self._by_pieces, SHORT: self._short, ODD: self._odd, FEW: self._few, MANY: self._many}
        ways[self.plan.how](source, target)

    def _short(self, source: str, target: str) -> None:
        """Rows brought into lanes."""
        v, s = self.v, self.plan.whole

        def body(e: Emitter, p: list[str], scratch: list[str], tables: list[str], item: str) -> None:
            first, count = v.share(e, s, item)
            x, y = (v.at(e, q, e.op(f"mul i64 {first}, {size}")) for q, size in zip(p, self.sizes))
            v.rows(e, s, count, self.plan, x, y, scratch[0], tables)

        self._over(source, target, *self.plan.short_items, v.tables(s), body)

    def _odd(self, source: str, target: str) -> None:
        """Real rows of odd length, brought into lanes."""
        v, s = self.v, self.plan.whole

        def body(e: Emitter, p: list[str], scratch: list[str], tables: list[str], item: str) -> None:
            first, count = v.share(e, s, item)
            x = e.element(p[0], v.scalar, e.op(f"mul i64 {first}, {s.n}"))
            y = v.at(e, p[1], e.op(f"mul i64 {first}, {s.n // 2 + 1}"))
            v.odd_rows(e, s, count, x, y, scratch[0], tables[0])

        roots = v.w.constant(pass_roots(odd_radices(s.n), v.real))
        self._over(source, target, *self.plan.short_items, [roots], body)

    def _many(self, source: str, target: str) -> None:
        """Two sweeps for each row, one row after another."""
        v, sweeps, chirp = self.v, self.plan.sweeps, self.plan.chirp

        def body(e: Emitter, p: list[str], scratch: list[str], tables: list[str], row: str) -> None:
            x, y = (v.at(e, q, e.op(f"mul i64 {row}, {size}")) for q, size in zip(p, self.sizes))
            behind = [v.at(e, q, size) for q, size in zip((x, y), self.sizes)] if self.plan.whole.far else None

            def transform(x: str, y: str) -> None:
                if chirp is None:
                    self._two_sweeps(e, sweeps, (x, scratch[2], y), scratch[0], tables, behind)
                else:
                    self._convolve(e, x, y, scratch, tables)

            self._with_half(e, x, y, scratch[1], 1, tables[-1], transform)

        tables = [table for s in sweeps for table in v.tables(s)]
        if chirp is not None:
            shape = chirp.n, self.plan.whole.n, sweeps[1].lanes, v.width
            first, tables[3], last = map(v.w.constant, chirp_factors(*shape, chirp.inverse, v.real))
            tables += [first, last]
        self._over(source, target, self.outer, self.plan.whole.n, tables, body)

    def _two_sweeps(self, e: Emitter, sweeps, places: tuple, scratch: str, tables: list[str], behind=None) -> None:
        """Writes the sweeps from one place by another to a third; `behind` them lie the next rows in main memory."""
        v = self.v
        for k, s in enumerate(sweeps):
            number, opened = e.begin_loop(0, v.blocks(s.lanes))
            if behind is not None:
                _prefetch(e, behind[k], 2 * v.bytes * self.sizes[k], number, v.blocks(s.lanes), k)
            v.block(e, s, places[k], places[k + 1], scratch, tables[2 * k : 2 * k + 2], number)
            e.end_loop(opened)

    def _convolve(self, e: Emitter, x: str, y: str, scratch: list[str], tables: list[str]) -> None:
        """Writes the transform of a row as a convolution; see `graph.fourier`."""
        lanes, _, between, one, other = scratch
        sweeps, n, m = self.plan.sweeps, self.plan.n, self.plan.whole.n
        first, last = tables[8:10]
        self.v.times(e, x, first, one, n, m)
        self._two_sweeps(e, sweeps[:2], (one, between, other), lanes, tables[:4])
        self._two_sweeps(e, sweeps[2:], (other, between, one), lanes, tables[4:8])
        self.v.times(e, one, last, y, n, n)

    def _few(self, source: str, target: str) -> None:
        """Two sweeps, each over all rows, by all threads."""
        (*between, scratch), (first, second), half = self.parts, self.plan.sweeps, self.half
        x, y = source, target
        if half is not None and half.to_spectrum:
            y = between[1]
        elif half is not None:
            x = between[1]
            self._by_pieces(source, x)
        _columns(self.v, self.plan, x, between[0], scratch, first)
        _columns(self.v, self.plan, between[0], y, scratch, second)
        if half is not None and half.to_spectrum:
            self._by_pieces(y, target)

    def _by_pieces(self, source: str, target: str) -> None:
        """Nothing but the half spectra, by all threads."""
        v, half, pieces = self.v, self.half, -(-self.n // PIECE)
        assert half is not None

        def body(e: Emitter, p: list[str], item: str) -> None:
            row, piece = e.op(f"udiv i64 {item}, {pieces}"), e.op(f"urem i64 {item}, {pieces}")
            x, y = (v.at(e, q, e.op(f"mul i64 {row}, {size}")) for q, size in zip(p, self.sizes))
            first = e.op(f"mul i64 {piece}, {PIECE}")
            last = e.least(e.op(f"add i64 {first}, {PIECE}"), half.h)
            v.half(e, half, x, y, p[2], first, last)

        items, each = self.outer * pieces, min(self.n, PIECE)
        over_rows(v.w, [source, target, v.half_table(half)], items, each, body, WORK * items * each)

    def _with_half(self, e: Emitter, x: str, y: str, between: str, count, roots: str, write) -> None:
        """Writes the transforms from `x` to `y` of so many rows by `write(x, y)`, and the half spectra."""
        if self.half is None:
            write(x, y)
        elif self.half.to_spectrum:
            write(x, between)
            self._half_rows(e, self.half, between, y, count, roots)
        else:
            self._half_rows(e, self.half, x, between, count, roots)
            write(between, y)

    def _half_rows(self, e: Emitter, half: Half, x: str, y: str, count, roots: str) -> None:
        k, opened = e.begin_loop(0, count)
        row, spectrum = (self.v.at(e, q, e.op(f"mul i64 {k}, {size}")) for q, size in zip((x, y), self.sizes))
        self.v.half(e, half, row, spectrum, roots)
        e.end_loop(opened)

    def _over(self, source: str, target: str, items: int, each: int, tables: list[str], body) -> None:
        """Runs `body` for each item, in tasks that have scratch memory of their own."""
        sizes = self.plan.task_bytes

        def task(e: Emitter, p: list[str], item: str) -> None:
            own = [_own(e, q, size) for q, size in zip(p[2:], sizes)]
            body(e, p[:2], own, p[2 + len(sizes) :], item)

        tables = tables if self.half is None else [*tables, self.v.half_table(self.half)]
        over_rows(self.v.w, [source, target, *self.parts, *tables], items, each, task, WORK * items * each)


def _prefetch(e: Emitter, row: str, size: int, part: str, parts: int, write: int) -> None:
    """Asks for a part of a row ahead of time: strides within rows hide from the processor what comes next."""
    each = -(-size // (LINE * parts))
    first = e.op(f"mul i64 {part}, {each * LINE}")
    line, opened = e.begin_loop(0, each)
    place = e.element(row, "i8", e.op(f"add i64 {first}, {e.op(f'mul i64 {line}, {LINE}')}"))
    e.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 {write}, i32 3, i32 1)")
    e.end_loop(opened)
