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
from typing import NamedTuple

from catena.compiler import loops
from catena.compiler.emit import cascades, extremes, folds, ops, pauses
from catena.compiler.emit.bounds import Guard
from catena.compiler.emit.emitter import Emitter
from catena.compiler.loops import Nest
from catena.compiler.plan.cascades import plan as plan_cascade
from catena.compiler.plan.pauses import Pause, beside
from catena.compiler.plan.ranges import Range
from catena.compiler.types import TYPES, constant, vector

UNROLL_LIMIT = 64  # statements of a fully unrolled nest


class Segment(NamedTuple):
    """A run of the SIMD dimension: [start, stop) in blocks of unroll vectors of `width` lanes."""

    start: object
    stop: object
    width: int
    unroll: int
    clamp: bool = False  # the last block moves back to end at `stop`
    masked: bool = False  # lanes that moved back with the last block do nothing the second time


class Copy:
    """The state of one unrolled copy of the body: statement results and advanced pointers."""

    def __init__(self, env: dict, pointers: dict, base=None):
        self.env, self.pointers, self.base = env, pointers, base

    def child(self) -> Copy:
        return Copy(dict(self.env), dict(self.pointers), self.base)


class NestWriter:
    """Writes one nest with `e`; `pointers` gives each buffer's base address, `outer` the indices of the
    outermost dimensions where they are given, `ranges` the iterations of loops that are known when they run, `pause`
    where a nest asks whether to go on.
    """

    def __init__(
        self,
        e: Emitter,
        nest: Nest,
        pointers: dict[int, str],
        in_place: bool = False,
        ranges: dict[int, Range] | None = None,
        outer=(),
        guard=None,
        pause: Pause | None = None,
    ):
        self.e, self.nest, self.pointers, self.in_place = e, nest, pointers, in_place
        self.ranges, self.outer = ranges or {}, outer
        self.guard: Guard | None = guard
        self.position = {d: i for i, d in enumerate(nest.order)}
        self.kept = sum(d not in nest.reduced for d in nest.order)
        self.levels = self._levels()
        self.accesses = self._accesses()
        self.buffers = {key: buffer for key, buffer, _, _ in self.accesses}
        self.loads_together = self._together(
            (i, *s.attr) for i, s in enumerate(nest.stmts) if s.op == "load" and not s.args
        )
        self.stores_together = self._together(
            (i, s.buffer, s.dtype, s.offset) for i, s in enumerate(nest.stores) if s.mask < 0
        )
        self.vector_bit = 0 if nest.vector is None else 1 << nest.vector
        self.small = not self.ranges and self._unrolled() <= UNROLL_LIMIT
        self.width, self.active, self.iv = 1, None, {}
        self.tiled = False  # whether the copies are the lines of a square
        self.cascade = None if self.small else plan_cascade(nest, self.kept)
        self.pause = None if pause is None else beside(pause, self.cascade)
        self.folds: list[folds.Accumulators] = []

    def write(self) -> None:
        if 0 in self.nest.extents:
            self._empty()
            return
        self._level(0, [self._first_copy()])

    def _first_copy(self) -> Copy:
        return Copy({}, {key: (self.pointers[buffer], offset[0]) for key, buffer, _, offset in self.accesses})

    def _empty(self) -> None:
        """No iterations: folds over nothing still store their identities, or what they begin with."""
        kept = [n for d, n in enumerate(self.nest.extents) if d not in self.nest.reduced]
        if self.nest.folds and 0 not in kept:
            copy = self._first_copy()
            for i in self.levels[0]:
                self._statement(i, [copy])
            folds.store_identities(self, copy)

    # ---- analysis ------------------------------------------------------------------------------------------

    def _levels(self) -> list[list[int]]:
        """Statements by the number of loops around them."""
        by_level = [[] for _ in range(len(self.nest.order) + 1)]
        for i, mask in enumerate(self.nest.depends):
            deepest = max((self.position[d] + 1 for d in self.nest.order if mask >> d & 1), default=0)
            by_level[deepest].append(i)
        return by_level

    def _accesses(self) -> list[tuple]:
        """(key, buffer, memory type, offset) of each load, store and fold result."""
        out = [
            (i, s.attr[0], s.attr[1], s.attr[2]) for i, s in enumerate(self.nest.stmts) if s.op in ("load", "load_now")
        ]
        out += [(("store", i), s.buffer, s.dtype, s.offset) for i, s in enumerate(self.nest.stores)]
        out += [(("fold", i, j), b, t, o) for i, f in enumerate(self.nest.folds) for j, (b, t, o) in enumerate(f.dests)]
        return [(k, b, TYPES[t].memory, o) for k, b, t, o in out]

    def _unrolled(self) -> int:
        """Statements when all loops are unrolled; a nest of one block has no loops."""
        n = 1
        for d in self.nest.order:
            lanes = max(self.nest.width, 1) if d == self.nest.vector else 1
            n *= math.ceil(self.nest.extents[d] / lanes)
        work = sum(s.op != "const" for s in self.nest.stmts) + len(self.nest.stores) + len(self.nest.folds)
        return n * work if n > 1 else 0

    # ---- loops ---------------------------------------------------------------------------------------------

    def _level(self, level: int, copies: list[Copy]) -> None:
        opened = level == self.kept and bool(self.nest.folds)
        for i in self.levels[level]:
            if opened and self.nest.stmts[i].op == "accumulator":  # a fold over one element has no loop of its own
                self._open_folds(copies)
            self._statement(i, copies)
        if opened:
            self._open_folds(copies)
        if level == len(self.nest.order):
            self._innermost(copies)
        else:
            d = self.nest.order[level]
            if level < len(self.outer):
                self._enter(level, d, self.outer[level], [c.child() for c in copies])
            elif d == self.nest.vector:
                self._vector_loop(level, d, copies)
            else:
                self._scalar_loop(level, d, copies)
        if opened:
            for accumulators in self.folds:
                accumulators.finish(copies)
            self.folds = []

    def _innermost(self, copies: list[Copy]) -> None:
        for accumulators in self.folds:
            accumulators.step(copies)
        pairs = self.stores_together if self.width > 1 else {}
        for i, s in enumerate(self.nest.stores):
            if i in pairs.values():
                continue
            for c in copies:
                if i in pairs:
                    self._write_pair(i, pairs[i], c)
                    continue
                mask = self._use(s.mask, c) if s.mask >= 0 else None
                self.write_access(("store", i), s.dtype, s.offset, self._use(s.stmt, c), c, mask)

    def _together(self, accesses) -> dict:
        """The accesses to what others leave out, such as imaginary parts between real ones: first to second.

        Each access is a key, the buffer, its type and the offset.
        """
        found, waiting = {}, {}
        for key, buffer, dtype, (const, dims, data) in accesses:
            if data or dict(dims).get(self.nest.vector) != 2:
                continue
            first = waiting.pop((buffer, dtype, const - 1, dims), None)
            if first is None:
                waiting[buffer, dtype, const, dims] = key
            else:
                found[first] = key
        return found

    def _read_pair(self, i: int, s, c: Copy) -> list[str]:
        """Two loads as one of whole vectors."""
        buffer, dtype, offset = s.attr
        t = TYPES[dtype]
        pointer, _ = self._address(i, t.memory, offset, c, self.width)
        self._check("load", buffer, pointer, t, 2 * self.width)
        return [self.e.widen(raw, t, self.width) for raw in self.e.load_interleaved(t, pointer, self.width)]

    def _write_pair(self, i: int, j: int, c: Copy) -> None:
        """Two stores as one of whole vectors."""
        s = self.nest.stores[i]
        t = TYPES[s.dtype]
        pointer, _ = self._address(("store", i), t.memory, s.offset, c, self.width)
        self._check("store", s.buffer, pointer, t, 2 * self.width)
        parts = [self.e.narrow(self._use(self.nest.stores[k].stmt, c), t, self.width) for k in (i, j)]
        self.e.store_interleaved(t, parts, pointer, self.width)

    def _scalar_loop(self, level: int, d: int, copies: list[Copy]) -> None:
        if d == self.nest.tile and self.width == self.nest.width and not (self.in_place or self.small):
            self._tile_loop(level, d, copies[0])
            return
        start, stop = self.ranges[d][:2] if d in self.ranges else (0, self.nest.extents[d])
        if self.small:
            for i in range(stop):
                self._enter(level, d, i, [c.child() for c in copies])
        else:
            with self._loop(level, start, stop, 1) as i:
                self._enter(level, d, i, [c.child() for c in copies])

    @contextmanager
    def _loop(self, level: int, start, stop, step: int):
        """A loop; that which pauses, and that which a cascade cuts into blocks, is two."""
        e, paused, blocks = self.e, None, None
        if self.pause is not None and level == self.pause.level:
            start, stop, paused = self._block_of_loop(start, stop, self.pause.block * step)
            pauses.write(e)
        if self.cascade is not None and level == self.cascade.level:
            start, stop, blocks = self._block_of_loop(start, stop, self.cascade.block * step)
        i, opened = e.begin_loop(start, stop, step)
        yield i
        e.end_loop(opened)
        if blocks is not None:
            cascades.count_block(e, self.counter, self.folds, self.cascade.levels)
            e.end_loop(blocks)
        if paused is not None:
            e.end_loop(paused)

    def _block_of_loop(self, start, stop, size: int) -> tuple:
        """Opens a loop over blocks of so many iterations; returns where a block begins and ends, and the loop."""
        first, opened = self.e.begin_loop(start, stop, size)
        end = self.e.op(f"add nuw nsw i64 {first}, {size}")
        return first, self.e.op(f"call i64 @llvm.smin.i64(i64 {end}, i64 {stop})"), opened

    def _tile_loop(self, level: int, d: int, c: Copy) -> None:
        """Squares of lanes and iterations: one copy of the body for each line; the last square overlaps."""
        n, size = self.nest.extents[d], self.width
        with self._loop(level, 0, n, size) as i:
            at = self.e.op(f"call i64 @llvm.smin.i64(i64 {i}, i64 {n - size})") if n % size else i
            first = c.child()
            self._advance(first, d, at)
            lines = [first]
            for k in range(1, size):
                line = first.child()
                line.pointers = {
                    key: (p, const + k * self._coefficient(key, d)) for key, (p, const) in first.pointers.items()
                }
                lines.append(line)
            self.tiled = True
            self._level(level + 1, lines)
            self.tiled = False

    def _transposed(self, i: int, s, copies: list[Copy]) -> None:
        """A load for all lines of a square: contiguous rows, transposed in registers."""
        t, width = TYPES[s.attr[1]], self.width
        stride, v = self._coefficient(i, self.nest.vector), vector(t.memory, self.width)
        base, const = copies[0].pointers[i]
        places = [self.e.element(base, t.memory, const + k * stride) for k in range(width)]
        for place in places:
            self._check("load", s.attr[0], place, t, width)
        rows = [self.e.op(f"load {v}, ptr {place}, align {t.bytes}") for place in places]
        for c, row in zip(copies, self.e.transposed(rows, t.memory), strict=True):
            c.env[i] = self.e.widen(row, t, width)

    def _enter(self, level: int, d: int, i, copies: list[Copy]) -> None:
        self.iv[d] = i
        for c in copies:
            self._advance(c, d, i)
        self._level(level + 1, copies)

    def _advance(self, c: Copy, d: int, i) -> None:
        """Moves every pointer to index `i` of dimension `d`; equal moves share their instructions."""
        moved: dict = {}
        for key, _, memory, offset in self.accesses:
            coefficient = next((k for dim, k in offset[1] if dim == d), 0)
            if not coefficient:
                continue
            base, const = c.pointers[key]
            if isinstance(i, int):
                c.pointers[key] = base, const + i * coefficient
                continue
            known = moved.get((base, memory, coefficient))
            if known is None:
                by = i if coefficient == 1 else self.e.op(f"mul nsw i64 {i}, {coefficient}")
                known = moved[base, memory, coefficient] = self.e.op(f"getelementptr {memory}, ptr {base}, i64 {by}")
            c.pointers[key] = known, const

    # ---- the SIMD dimension --------------------------------------------------------------------------------

    def segments(self, d: int) -> list[Segment]:
        """How the lanes cover a dimension of known extent."""
        n, width, unroll = self.nest.extents[d], self.nest.width, self.nest.unroll
        start = 0
        if n <= width:
            return [Segment(0, n, n, 1)]
        if loops.is_idempotent(self.nest, d, self.in_place):
            return [Segment(0, n, width, unroll, clamp=bool(n % (width * unroll)))]
        out = []
        for u in dict.fromkeys((unroll, 1)):
            stop = start + (n - start) // (width * u) * (width * u)
            if stop > start:
                out.append(Segment(start, stop, width, u))
            start = stop
        if start < n and d not in self.nest.reduced:
            out.append(Segment(start, n, n - start, 1))
        elif start < n:
            out.append(Segment(start, n, width, 1, clamp=True, masked=True))
        return out

    def _vector_loop(self, level: int, d: int, copies: list[Copy]) -> None:
        if d not in self.ranges:
            for s in self.segments(d):
                self._segment(level, d, s, copies)
            return
        r, width, unroll = self.ranges[d], self.nest.width, self.nest.unroll
        clamp = loops.is_idempotent(self.nest, d, self.in_place)
        self._segment(level, d, Segment(r.start, r.stop, width, unroll, clamp), copies)
        if r.extent is not None:
            self._rest(level, d, r, copies)

    def _rest(self, level: int, d: int, r: Range, copies: list[Copy]) -> None:
        """What whole blocks leave of a reduced dimension, for the range that ends with the last of them."""
        e, step = self.e, self.nest.width * self.nest.unroll
        left = e.op(f"sub i64 {r.extent}, {r.stop}")
        near, some = e.op(f"icmp ult i64 {left}, {step}"), e.op(f"icmp ne i64 {left}, 0")
        more, done = e.label(), e.label()
        e.branch(e.op(f"and i1 {near}, {some}"), more, done)
        e.start(more)
        rest = Segment(r.stop, r.extent, self.nest.width, 1, clamp=True, masked=True)
        if self.nest.unroll > 1:
            self._segment(level, d, rest, copies)
        else:  # a single block
            self.width = self.nest.width
            self._block(level, d, self._moved_back(r.stop, rest), rest, copies)
            self.width, self.active = 1, None
        e.jump(done)
        e.start(done)

    def _segment(self, level: int, d: int, s: Segment, copies: list[Copy]) -> None:
        self.width = s.width
        step = s.width * s.unroll
        if isinstance(s.start, int) and s.stop - s.start <= step:
            at = s.stop - step
            self.active = self._lanes_from(s.start - at) if s.masked else None
            self._block(level, d, at, s, copies)
        elif self.small:
            for i in range(s.start, s.stop, step):
                self._block(level, d, min(i, s.stop - step), s, copies)
        else:
            with self._loop(level, s.start, s.stop, step) as i:
                self._block(level, d, self._moved_back(i, s), s, copies)
        self.width, self.active = 1, None

    def _moved_back(self, i: str, s: Segment) -> str:
        """Where block `i` of a segment begins, and which of its lanes are active."""
        if not s.clamp:
            return i
        step = s.width * s.unroll
        last = s.stop - step if isinstance(s.stop, int) else self.e.op(f"sub i64 {s.stop}, {step}")
        at = self.e.op(f"call i64 @llvm.smin.i64(i64 {i}, i64 {last})")
        if s.masked:
            self.active = self._lanes_from(self.e.op(f"sub i64 {i}, {at}"))
        return at

    def _lanes_from(self, first) -> str | None:
        """The mask of lanes from this one on; None for all."""
        if first == 0:
            return None
        if isinstance(first, int):
            return "<" + ", ".join(f"i1 {'true' if k >= first else 'false'}" for k in range(self.width)) + ">"
        count = self.e.splat(first, "i64", self.width)
        return self.e.op(f"icmp uge <{self.width} x i64> {self.e.lanes(self.width)}, {count}")

    def _block(self, level: int, d: int, base, s: Segment, copies: list[Copy]) -> None:
        inner = []
        for u in range(s.unroll):
            c = copies[0].child()
            if isinstance(base, int):
                c.base = base + u * s.width
                self._advance(c, d, c.base)
            else:
                if u == 0:
                    self._advance(c, d, base)
                    c.base = base
                else:
                    c.base = self.e.op(f"add nsw i64 {base}, {u * s.width}") if self._uses_base() else None
                    c.pointers = {
                        k: (p, const + u * s.width * self._coefficient(k, d))
                        for k, (p, const) in inner[0].pointers.items()
                    }
            inner.append(c)
        self._level(level + 1, inner)

    def _uses_base(self) -> bool:
        return any(s.op == "affine" for s in self.nest.stmts)

    def _coefficient(self, key, d: int) -> int:
        offset = self._offsets[key] if hasattr(self, "_offsets") else self._index_offsets()[key]
        return next((k for dim, k in offset[1] if dim == d), 0)

    def _index_offsets(self) -> dict:
        self._offsets = {key: offset for key, _, _, offset in self.accesses}
        return self._offsets

    # ---- statements ----------------------------------------------------------------------------------------

    def is_lanes(self, i: int) -> bool:
        return self.width > 1 and bool(self.nest.depends[i] & self.vector_bit)

    def _statement(self, i: int, copies: list[Copy]) -> None:
        s = self.nest.stmts[i]
        if s.op == "const":
            return
        if self.tiled and loops.is_transposed(s, self.nest.tile, self.nest.vector):
            self._transposed(i, s, copies)
            return
        if self.tiled and self.nest.depends[i] >> self.nest.tile & 1:
            for c in copies:
                c.env[i] = self._one(i, s, c)
            return
        if not self.is_lanes(i) and not self.nest.depends[i] & self.vector_bit:
            result = self._one(i, s, copies[0])
            for c in copies:
                c.env[i] = result
        elif self.width > 1 and i in self.loads_together:
            for c in copies:
                c.env[i], c.env[self.loads_together[i]] = self._read_pair(i, s, c)
        elif self.width == 1 or i not in self.loads_together.values():
            for c in copies:
                c.env[i] = self._one(i, s, c)

    def _one(self, i: int, s, c: Copy) -> str:
        width = self.width if self.is_lanes(i) else 1
        if s.op == "affine":
            return self._affine(s.attr, c, width)
        if s.op in ("load", "load_now"):
            mask = self._use(s.args[0], c, width) if s.args else None
            return self._load(i, s, c, width, mask)
        if s.op == "accumulator":
            return self.folds[s.attr[0]].current(s.attr[1], c)
        types = [TYPES[self.nest.stmts[a].type] for a in s.args]
        return ops.emit(self.e, s.op, TYPES[s.type], [self._use(a, c, width) for a in s.args], types, s.attr, width)

    def _use(self, i: int, c: Copy, width: int | None = None) -> str:
        """Statement `i` in `width` lanes."""
        s = self.nest.stmts[i]
        width = self.width if width is None else width
        t = TYPES[s.type]
        if s.op == "const":
            return constant(s.attr, t, width)
        x = c.env[i]
        if width == 1 or self.is_lanes(i):
            return x
        return self.e.splat(x, t.register, width)

    def _affine(self, a, c: Copy, width: int) -> str:
        """The value of an index expression."""
        e, total = self.e, str(a[0])
        for d, k in a[1]:
            if d == self.nest.vector:
                continue
            total = self._sum(total, self._times(self.iv[d], k))
        own = next((k for d, k in a[1] if d == self.nest.vector), 0)
        if own and c.base is not None:
            total = self._sum(total, self._times(c.base, own))
        lanes = []
        for t, k in a[2]:
            if width > 1 and self.is_lanes(t):
                x = c.env[t]
                lanes.append(x if k == 1 else e.op(f"mul <{width} x i64> {x}, splat (i64 {k})"))
            else:
                total = self._sum(total, self._times(self._use(t, c, 1), k))
        if width == 1:
            return total if total[0] == "%" else e.op(f"add i64 0, {total}")
        out = e.splat(total, "i64", width)
        if own:
            lanes.append(e.lanes(width, own))
        for x in lanes:
            out = e.op(f"add <{width} x i64> {out}, {x}")
        return out

    def _times(self, x, k: int) -> str:
        if isinstance(x, int) or not x.startswith("%"):
            return str(int(x) * k)
        return x if k == 1 else self.e.op(f"mul nsw i64 {x}, {k}")

    def _sum(self, a: str, b: str) -> str:
        if a[0] != "%" and b[0] != "%":
            return str(int(a) + int(b))
        if b == "0":
            return a
        return b if a == "0" else self.e.op(f"add nsw i64 {a}, {b}")

    # ---- memory --------------------------------------------------------------------------------------------

    def _address(self, key, memory: str, offset, c: Copy, width: int) -> tuple[str, bool]:
        """The pointer of an access and whether it is one pointer per lane."""
        base, const = c.pointers[key]
        pointer = self.e.element(base, memory, const)
        vectors = []
        for t, k in offset[2]:
            if width > 1 and self.is_lanes(t):
                vectors.append((t, k))
            else:
                pointer = self.e.element(pointer, memory, self._times(self._use(t, c, 1), k))
        if not vectors:
            return pointer, False
        own = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        at = self.e.lanes(width, own)
        for t, k in vectors:
            x = c.env[t]
            x = x if k == 1 else self.e.op(f"mul <{width} x i64> {x}, splat (i64 {k})")
            at = self.e.op(f"add <{width} x i64> {at}, {x}")
        return self.e.op(f"getelementptr {memory}, ptr {pointer}, <{width} x i64> {at}"), True

    def _load(self, key, s, c: Copy, width: int, mask: str | None) -> str:
        t, offset = TYPES[s.attr[1]], s.attr[2]
        pointer, spread = self._address(key, t.memory, offset, c, width)
        if spread:
            self._check("load", s.attr[0], pointer, t, width, None, mask)
            return self.e.widen(self.e.gather(t, pointer, width, mask), t, width)
        stride = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        if width > 1 and not stride:
            return self._masked_scalar(s.attr[0], t, pointer, width, mask)
        self._check("load", s.attr[0], pointer, t, width, stride, mask)
        return self.e.load(t, pointer, width, stride, mask)

    def _masked_scalar(self, buffer: int, t, pointer: str, width: int, mask: str | None) -> str:
        """One address for all lanes, read only where some lane's mask holds."""
        some = (
            self.e.op(f"call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> {mask})") if mask is not None else None
        )
        self._check("load", buffer, pointer, t, 1, 1, some)
        return self.e.splat(self.e.load(t, pointer, 1, 1, some), t.register, width)

    def _check(self, what: str, buffer: int, pointer: str, t, width: int, stride: int | None = 1, mask=None) -> None:
        """In checked mode, compares an access with its buffer's extent (see `bounds`)."""
        if self.guard is not None:
            self.guard.check(what, buffer, self.pointers[buffer], pointer, t, width, stride, mask)

    def write_access(
        self, key, dtype: str, offset, x: str, c: Copy, mask: str | None = None, width: int | None = None
    ) -> None:
        t = TYPES[dtype]
        width = self.width if width is None else width
        pointer, spread = self._address(key, t.memory, offset, c, width)
        buffer = self.buffers[key]
        if spread:
            self._check("store", buffer, pointer, t, width, None, mask)
            self.e.scatter(t, self.e.narrow(x, t, width), pointer, width, mask)
            return
        stride = next((k for d, k in offset[1] if d == self.nest.vector), 0)
        self._check("store", buffer, pointer, t, width, stride or 1, mask)
        self.e.store(t, x, pointer, width, stride or 1, mask)

    # ---- folds ---------------------------------------------------------------------------------------------

    def _open_folds(self, copies: list[Copy]) -> None:
        if self.folds:
            return
        self.folds = [extremes.accumulators(self, i, f, copies) for i, f in enumerate(self.nest.folds)]
        if self.cascade is not None:
            self.counter = self.e.slot("i64")
            self.e.do(f"store i64 0, ptr {self.counter}")

    @property
    def lanes_reduced(self) -> bool:
        return self.nest.vector is not None and self.nest.vector in self.nest.reduced
