"""Products and convolutions as one form: C[batch, rows, columns] is a sum over terms of A times B.

Each axis says how far apart its steps lie in A, B and C. Windows of a convolution are row and term axes that
overlap in A, so no patches are ever written down. `plan` chooses the tile that registers hold, whether B is
packed first, the part of the terms that stays in cache, and what one thread does at a time; it looks at sizes
alone, so results do not depend on the number of threads. `write` writes the loops around the tile function.

The loops are those of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from catena.compiler.emit import parallel, tiles
from catena.compiler.emit.emitter import Emitter
from catena.compiler.types import Type

REGISTERS = {64: 32, 32: 16, 16: 16}  # by the bytes of a vector register
RAGGED = 0.04  # of the time: what tiles at edges, which are functions of their own, may cost to compile
MOST_ROWS = 8  # of a tile: each has an address in a register
MOST_VECTORS = 4  # in a row of a tile
TERMS = 512  # of a long sum that are added up at a time: a panel of B then fits a second-level cache
PANEL_BYTES = 512 << 10  # of B in one tile's columns, for sums over several axes
DIRECT_BYTES = 48 << 10  # of B that stays in a first-level cache: it is read where it lies
PACKED_ROWS = 48  # rows from which packing B, a copy, costs little beside what is computed from it
THREADS_FLOOR = 1 << 21  # multiplications below which threads do not pay
THREADS_FLOOR_IN_LOOPS = 1 << 20  # the same where the threads are still awake from the iteration before
TASK = 1 << 19  # multiplications that make a task
TASK_ROWS = 256  # rows of a task at most, so that their part of A stays in a second-level cache
MOST_TASKS = 64


class Axis(NamedTuple):
    """Steps, and the elements of A, B and C from one to the next."""

    extent: int
    a: int
    b: int
    c: int


class Contraction(NamedTuple):
    """The axes, outermost first; the columns of B and C lie side by side (of B unless it is packed)."""

    type: Type
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: int
    terms: tuple[Axis, ...]

    @property
    def products(self) -> int:
        return math.prod(x.extent for x in (*self.batch, *self.rows, *self.terms)) * self.columns


class Plan(NamedTuple):
    contraction: Contraction
    width: int
    rows: int  # of a tile
    columns: int
    packed: bool  # whether B lies in panels of a tile's columns

    @property
    def panels(self) -> int:
        return self.contraction.columns // self.columns

    @property
    def rest(self) -> int:
        """Columns beyond the panels."""
        return self.contraction.columns % self.columns


def merged(axes) -> tuple[Axis, ...]:
    """The axes without those of one step, neighbours made one where A, B and C cross them evenly."""
    out: list[Axis] = []
    for x in axes:
        if x.extent == 1:
            continue
        if out and all(p == q * x.extent for p, q in zip(out[-1][1:], x[1:])):
            x = Axis(out.pop().extent * x.extent, *x[1:])
        out.append(x)
    return tuple(out)


# ---- what to do --------------------------------------------------------------------------------------------


def plan(contraction: Contraction, vector_bytes: int, contiguous: bool) -> Plan:
    """The plan; `contiguous` says whether the columns of B lie side by side."""
    width = vector_bytes // contraction.type.bytes
    contraction = contraction._replace(rows=_tiled_last(contraction, width, REGISTERS[vector_bytes]))
    extent = contraction.rows[-1].extent if contraction.rows else 1
    rows, columns, _ = _tile(extent, contraction.columns, width, REGISTERS[vector_bytes])
    bytes_ = math.prod(x.extent for x in contraction.terms) * contraction.columns * contraction.type.bytes
    repeats = math.prod(x.extent for x in contraction.rows)
    packed = not contiguous or (bytes_ > DIRECT_BYTES and repeats >= PACKED_ROWS and contraction.columns > columns)
    if packed:
        terms, batch = _counting(contraction.terms), _counting(contraction.batch)
        contraction = contraction._replace(terms=merged(terms), batch=merged(batch))
    return Plan(contraction, width, rows, columns, packed)


def _counting(axes) -> tuple[Axis, ...]:
    """The axes with strides in B as in an array of just these: what they count of is a packed row or member."""
    step, out = 1, []
    for x in reversed(axes):
        out.insert(0, x._replace(b=step))
        step *= x.extent
    return tuple(out)


def _tiled_last(contraction: Contraction, width: int, registers: int) -> tuple[Axis, ...]:
    """The row axes, that whose steps are cut into tiles moved to the end: the quickest one, and of those that
    take about the same time that with the smallest step.
    """
    times = [_tile(x.extent, contraction.columns, width, registers)[2] / x.extent for x in contraction.rows]
    good = [x for x, t in zip(contraction.rows, times) if t <= 1.1 * min(times)]
    last = min(good, key=lambda x: abs(x.a), default=None)
    return (*(x for x in contraction.rows if x is not last), *([last] if good else []))


def _tile(rows: int, columns: int, width: int, registers: int) -> tuple[int, int, float]:
    """The rows and columns of a tile by which all rows and columns take least time, and that time."""
    best, least = (1, width), math.inf
    for vectors in range(1, MOST_VECTORS + 1):
        for m in range(1, min(MOST_ROWS, (registers - 1 - vectors) // vectors) + 1):
            time = _time(rows, columns, m, vectors, width)
            if time < least:
                best, least = (m, vectors * width), time
    return min(best[0], rows), min(best[1], columns), least


def _time(rows: int, columns: int, m: int, vectors: int, width: int) -> float:
    """Cycles for one term: two multiplications or two loads each, and four until a sum can be added to again."""
    n = vectors * width

    def cycles(m: int, vectors: int) -> float:
        return max(m * vectors / 2, 4.0) + 0.1 * (m + vectors) + 0.2 if m and vectors else 0.0

    down, left = divmod(rows, m)
    across, rest = divmod(columns, n)
    rest = -(-rest // width)
    inner = down * cycles(m, vectors) + cycles(left, vectors)
    total = across * inner + down * cycles(m, rest) + cycles(left, rest)
    return total * (1 + RAGGED * (bool(left) + bool(rest)))


# ---- the loops ---------------------------------------------------------------------------------------------


def has_rows_in_order(p: Plan) -> bool:
    """Whether the rows of C follow each other in memory in the order in which tasks compute them."""
    step = p.contraction.columns
    for x in reversed((*p.contraction.batch, *p.contraction.rows)):
        if x.c != step:
            return False
        step *= x.extent
    return True


def write(w, p: Plan, pointers: list[str], after: tuple[str, list[str]] | None = None) -> None:
    """Writes the contraction: `pointers` to A, to B or its panels, to the columns beyond the panels, and to C.
    `after` names a function of pointers that each task calls for the range of rows that it has computed.
    """
    _Loops(w, p, after).write(pointers)


class _Loops:
    def __init__(self, w, p: Plan, after):
        self.after = after
        self.w, self.plan, self.contraction, self.type = w, p, p.contraction, p.contraction.type
        self.e = Emitter()
        terms = self.contraction.terms or (Axis(1, 0, 0, 0),)
        self.outside, self.inside = _blocked(p, terms)
        *self.strips, self.row = self.contraction.rows or (Axis(1, 0, 0, 0),)
        self.down, self.left = divmod(self.row.extent, p.rows)
        self.pointers = 4 + (len(after[1]) if after else 0)
        self.numbers: list[int] = []  # that tasks read from their table, so that other batch sizes share their text

    def write(self, pointers: list[str]) -> None:
        members = math.prod(x.extent for x in self.contraction.batch)
        tasks = self._tasks(members)
        by_columns = self._by_columns(tasks, members)
        units = self.plan.panels if by_columns else self._units()
        each = -(-units // max(1, -(-tasks // members)))
        if not by_columns and not self.strips:
            each = min(each, max(TASK_ROWS // self.plan.rows, 1))
        blocks = -(-units // each)
        body = self._task(units, each, blocks, by_columns)
        extra = self.after[1] if self.after else []
        work = self.contraction.products // 8
        parallel.through_pool(self.w, body, [*pointers, *extra], members * blocks, self.numbers, work)

    def _number(self, value: int) -> str:
        """A number that the task's text does not tell."""
        i = len(self.numbers)
        self.numbers.append(value)
        if not i:
            self.e.slots += [
                f"  %numbers_at = getelementptr ptr, ptr %args, i64 {self.pointers}",
                "  %numbers = load ptr, ptr %numbers_at",
            ]
        self.e.slots += [f"  %n{i}_at = getelementptr i64, ptr %numbers, i64 {i}", f"  %n{i} = load i64, ptr %n{i}_at"]
        return f"%n{i}"

    def _units(self) -> int:
        """What tasks are made of: strips of rows, or the tiles of the only one."""
        return math.prod(x.extent for x in self.strips) if self.strips else self.down + bool(self.left)

    def _tasks(self, members: int) -> int:
        total, floor = self.contraction.products, THREADS_FLOOR_IN_LOOPS if self.w.depth else THREADS_FLOOR
        return min(MOST_TASKS, total // TASK) if total >= floor else 1

    def _by_columns(self, tasks: int, members: int) -> bool:
        if self.after is not None:
            return False
        wanted = min(-(-tasks // members), 4)
        return self._units() < wanted and self.plan.panels > self._units()

    # ---- one task ------------------------------------------------------------------------------------------

    def _task(self, units: int, each: int, blocks: int, by_columns: bool) -> str:
        e = self.e
        a, b, rest, c = (e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}") for i in range(4))
        member, block, low, high = "%k", "0", "0", self._number(units)
        if blocks > 1:
            member, block = _divide(e, "%k", self._number(blocks)) if self.contraction.batch else ("0", "%k")
            each = self._number(each)
            low = e.op(f"mul nuw nsw i64 {block}, {each}")
            high = e.op(f"call i64 @llvm.smin.i64(i64 {e.op(f'add nuw nsw i64 {low}, {each}')}, i64 {high})")
        a, b, rest, c = self._member(member, a, b, rest, c)
        if self.outside is not None:
            self._parts(a, b, rest, c, low, high, by_columns, block, blocks)
        else:
            length = self._number(self.inside[-1].extent)
            self._columns(a, b, rest, c, length, "false", low, high, by_columns, block, blocks)
        if self.after is not None:
            self._follow(member, low, high)
        return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])

    def _follow(self, member: str, low: str, high: str) -> None:
        """The call of what comes after, for the rows of this task."""
        e, (name, pointers) = self.e, self.after
        unit = self.row.extent if self.strips else self.plan.rows
        count = self._number(math.prod(x.extent for x in self.contraction.rows))
        before = e.op(f"mul nuw nsw i64 {member}, {count}")
        end = e.op(f"call i64 @llvm.smin.i64(i64 {e.op(f'mul nuw nsw i64 {high}, {unit}')}, i64 {count})")
        bounds = [e.op(f"add nuw nsw i64 {before}, {x}") for x in (e.op(f"mul nuw nsw i64 {low}, {unit}"), end)]
        own = [e.op(f"load ptr, ptr {e.element('%args', 'ptr', 4 + i)}") for i in range(len(pointers))]
        e.do(f"call void @{name}({', '.join([*(f'ptr {p}' for p in own), *(f'i64 {x}' for x in bounds)])})")

    def _member(self, member: str, a: str, b: str, rest: str, c: str) -> list[str]:
        """The pointers of a batch member."""
        e, p = self.e, self.plan
        length = math.prod(x.extent for x in self.contraction.terms)
        for i, x in enumerate(reversed(self.contraction.batch)):
            last = i == len(self.contraction.batch) - 1
            member, at = (None, member) if last else _divide(e, member, x.extent)
            a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            b = self._moved(b, at, x.b * length * p.panels * p.columns if p.packed else x.b)
            rest = self._moved(rest, at, x.b * length * p.rest if p.packed else x.b)
        return [a, b, rest, c]

    def _parts(self, a, b, rest, c, low, high, by_columns, block, blocks) -> None:
        """A part of the terms after the other; all but the first are added to what is there."""
        e, (count, axis, size) = self.e, self.outside
        part, opened = e.begin_loop(0, self._number(count))
        length, at = self._number(self.inside[-1].extent), part
        if size is not None:
            size = self._number(size)
            at = e.op(f"mul nuw nsw i64 {part}, {size}")
            left = e.op(f"sub nuw nsw i64 {self._number(axis.extent)}, {at}")
            length = e.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {size})")
        adds = e.op(f"icmp ne i64 {part}, 0")
        a, b = self._moved(a, at, axis.a), self._moved(b, at, self._b(axis.b, self.plan.columns))
        rest = self._moved(rest, at, self._b(axis.b, self.plan.rest))
        self._columns(a, b, rest, c, length, adds, low, high, by_columns, block, blocks)
        e.end_loop(opened)

    def _b(self, stride: int, columns: int) -> int:
        """A stride of a term axis in B: in panels, the axes' strides count terms."""
        return stride * columns if self.plan.packed else stride

    def _columns(self, a, b, rest, c, length, adds, low, high, by_columns, block, blocks) -> None:
        """Panel after panel of columns, then those beyond."""
        e, p = self.e, self.plan
        rows = ("0", self._number(self._units())) if by_columns else (low, high)
        if p.panels:
            j, opened = e.begin_loop(*((low, high) if by_columns else (0, p.panels)))
            at = j
            if p.packed:
                at = e.op(f"mul nuw nsw i64 {j}, {self._number(math.prod(x.extent for x in self.contraction.terms))}")
            b = self._moved(b, at, p.columns)
            self._rows(a, b, self._moved(c, j, p.columns), length, adds, p.columns, *rows)
            e.end_loop(opened)
        if p.rest:
            c = e.element(c, self.type.memory, p.panels * p.columns)
            if by_columns:
                last = e.op(f"icmp eq i64 {block}, {self._number(blocks - 1)}")
                self._if(last, lambda: self._rows(a, rest, c, length, adds, p.rest, *rows))
            else:
                self._rows(a, rest, c, length, adds, p.rest, *rows)

    def _rows(self, a, b, c, length, adds, columns: int, low, high) -> None:
        """Every row from `low` to `high` (see `_units`) of some columns."""
        e, p = self.e, self.plan
        u, opened = e.begin_loop(low, high)
        if self.strips:
            for i, x in enumerate(reversed(self.strips)):
                u, at = (u, u) if i == len(self.strips) - 1 else _divide(e, u, x.extent)
                a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            if self.down:
                t, tiles_opened = e.begin_loop(0, self.down)
                self._call(self._moved(a, t, p.rows * self.row.a), b, self._moved(c, t, p.rows * self.row.c),
                           length, adds, p.rows, columns)  # fmt: skip
                e.end_loop(tiles_opened)
            if self.left:
                a, c = (
                    e.element(x, self.type.memory, self.down * p.rows * by)
                    for x, by in ((a, self.row.a), (c, self.row.c))
                )
                self._call(a, b, c, length, adds, self.left, columns)
        else:
            a, c = self._moved(a, u, p.rows * self.row.a), self._moved(c, u, p.rows * self.row.c)
            if not self.left:
                self._call(a, b, c, length, adds, p.rows, columns)
            else:
                short = e.op(f"icmp eq i64 {u}, {self._number(self.down)}")
                self._if(short, lambda: self._call(a, b, c, length, adds, self.left, columns),
                         lambda: self._call(a, b, c, length, adds, p.rows, columns))  # fmt: skip
        e.end_loop(opened)

    def _call(self, a, b, c, length, adds, rows: int, columns: int) -> None:
        *outer, inner = (tiles.Term(x.extent, x.a, self._b(x.b, columns)) for x in self.inside)
        tile = tiles.Tile(self.type, self.plan.width, rows, columns, tuple(outer), self.outside is not None)
        name = self.w.function(tiles.text(tile))
        strides = f"i64 {self.row.a}, i64 {inner.a}, i64 {inner.b}, i64 {self.row.c}"
        self.e.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c}, i64 {length}, {strides}, i1 {adds})")

    def _if(self, condition: str, then, otherwise=None) -> None:
        e = self.e
        yes, no, done = e.label(), e.label(), e.label()
        e.branch(condition, yes, no)
        for label, action in ((yes, then), (no, otherwise)):
            e.start(label)
            if action is not None:
                action()
            e.jump(done)
        e.start(done)

    def _moved(self, pointer: str, steps: str, by: int) -> str:
        if not by:
            return pointer
        offset = self.e.op(f"mul nsw i64 {steps}, {by}") if by != 1 else steps
        return self.e.element(pointer, self.type.memory, offset)


def _blocked(p: Plan, terms: tuple[Axis, ...]):
    """What is looped over around the tiles (count, axis, steps of it at a time or None for one), and the terms
    of a tile.
    """
    first, *others = terms
    if not others and first.extent > TERMS + TERMS // 2:
        count = -(-first.extent // TERMS)
        size = -(-first.extent // count)
        return (-(-first.extent // size), first, size), (first._replace(extent=size),)
    panel = math.prod(x.extent for x in terms) * min(p.columns, p.contraction.columns) * p.contraction.type.bytes
    if others and panel > PANEL_BYTES:
        return (first.extent, first, None), tuple(others)
    return None, terms


def _divide(e: Emitter, x: str, n: int | str) -> tuple[str, str]:
    """Quotient and remainder."""
    if n == 1:
        return x, "0"
    quotient = e.op(f"udiv i64 {x}, {n}")
    return quotient, e.op(f"sub i64 {x}, {e.op(f'mul i64 {quotient}, {n}')}")
