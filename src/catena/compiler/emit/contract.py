"""The loops of products and convolutions around the tile function (`tiles`), by a plan of `plan.contraction`.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from catena.compiler.emit import launches, parallel, subnormal_products, tiles
from catena.compiler.emit.branches import each_way, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph import symbols
from catena.compiler.plan.contraction import Axis, Contraction, Part, Plan, Tasks
from catena.compiler.plan.steps import Buffer, Contract


def contract(w, step: Contract) -> None:
    """Writes a product by tiles, and what follows on the rows that a task has computed."""
    parallel.through_pool(w, *chunks(w, step))


def chunks(w, step: Contract) -> parallel.Chunks:
    """The function of a product's tasks, and what it is given."""
    p = step.plan
    kernel: launches.Kernel | None = None
    own: list[Buffer] = []
    operands = [step.a, step.b, step.c, *([] if step.rest is None else [step.rest])]
    if step.after is not None:
        own = [*step.operands.values()]
        kernel = launches.row_function(w, step.after, list(step.operands), in_place=step.in_place)
    name = symbols.key((p, step.tasks, kernel and (kernel.name, tuple(kernel.sizes)), len(own)))
    if name not in w.texts.tasks:
        w.texts.tasks[name] = _Loops(w, p, step.tasks, kernel, len(own)).written()
    task = w.texts.tasks[name]
    pointers = [*operands, *own, tuple(task.functions)]
    return parallel.Chunks(task.body, pointers, step.tasks.total, task.numbers, p.contraction.products // 8)


class Task(NamedTuple):
    """The function of a product's tasks, and what their table holds behind the pointers."""

    body: str
    functions: list[str]
    numbers: list[int]


TILES, PACKINGS = 4, 2  # of the functions of a task; the others are there where tasks pack
NUMBERS = 64  # in a task's table, or twice as many: how many it needs is nothing that the entry's text tells


class _Loops:
    """Writes the function of a task: its table holds `pointers` to A, to B or its panels, to C, and to the columns
    beyond the panels, then those of `after`: a function that the task calls for the range of rows that it has computed.
    Then come where its functions are, of its tiles and `after`, and its numbers: so tasks of all sizes are one
    function, each with tiles that suit it, whatever comes after.
    """

    def __init__(self, w, p: Plan, tasks: Tasks, after: launches.Kernel | None, own: int):
        self.w, self.plan, self.tasks, self.after, self.own = w, p, tasks, after, own
        self.type = p.contraction.type
        self.e = Emitter()
        self.scratch = self._scratch() if p.packs else "null"
        self.watch = subnormal_products.Watch(self.e) if p.is_watched else None
        self.operands = 3 + p.packed
        self.functions = parallel.load_pointer(self.e, self.operands + self.own)
        self.numbers: list[int] = []  # that tasks read from their table, so that other batch sizes share their text

    @property
    def contraction(self) -> Contraction:
        return self.plan.contraction

    def written(self) -> Task:
        after = [] if self.after is None else [self.after.name]
        careful = [self.w.function(subnormal_products.text(self.type, self.plan.width))] if self.watch else []
        body, functions = self._task(), [*self._tile_names(), *self._packing_names(), *careful, *after]
        self.numbers += [0] * (-len(self.numbers) % NUMBERS)
        return Task(body, functions, self.numbers)

    def _number(self, value: int) -> str:
        """A number that the task's text does not tell."""
        i = len(self.numbers)
        self.numbers.append(value)
        if not i:
            self.e.slots += [
                f"  %numbers_at = getelementptr ptr, ptr %args, i64 {self.operands + self.own + 1}",
                "  %numbers = load ptr, ptr %numbers_at",
            ]
        self.e.slots += [f"  %n{i}_at = getelementptr i64, ptr %numbers, i64 {i}", f"  %n{i} = load i64, ptr %n{i}_at"]
        return f"%n{i}"

    def _scratch(self) -> str:
        """Memory for a panel: for powers of two of terms, so that products of similar sizes share the task's text."""
        p = self.plan
        terms = 1 << (p.panel_terms - 1).bit_length()
        return self.e.slot(f"[{terms * self._vectors(p.columns) * p.width * self.type.bytes} x i8]", 64)

    # ---- one task ------------------------------------------------------------------------------------------

    def _task(self) -> str:
        e, t = self.e, self.tasks
        a, b, c, *packed = (parallel.load_pointer(e, i) for i in range(self.operands))
        beyond = self._number(self.plan.panels * self.plan.columns * self.plan.apart)
        rest = packed[0] if packed else e.element(b, self.type.memory, beyond)
        opened = None
        if t.has_whole_members:
            row_block = column_block = "0"
            members = math.prod(x.extent for x in self.contraction.batch)
            member, opened = e.begin_loop(*self._block("%k", members, t.members))
        else:
            member, column_block = _divide(e, "%k", self._number(t.column_blocks))
            member, row_block = _divide(e, member, self._number(t.row_blocks))
        rows = self._block(row_block, self.plan.units, t.rows)
        panels = self._block(column_block, self.plan.panels, t.columns)
        last = e.op(f"icmp eq i64 {column_block}, {self._number(t.column_blocks - 1)}")
        last = e.op(f"and i1 {last}, {e.op(f'icmp ne i64 {self._number(self.plan.rest)}, 0')}")
        a, b, rest, c = self._member(member, a, b, rest, c)
        self._parts(a, b, rest, c, rows, panels, last, self.plan.outside, "false")
        if self.after is not None:
            self._follow(member, *rows, self.after.sizes)
        if opened is not None:
            e.end_loop(opened)
        return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])

    def _block(self, block: str, extent: int, each: int) -> tuple[str, str]:
        """Where a block of rows or panels begins and ends."""
        e, high, step = self.e, self._number(extent), self._number(each)
        low = e.op(f"mul nuw nsw i64 {block}, {step}")
        return low, e.least(e.op(f"add nuw nsw i64 {low}, {step}"), high)

    def _follow(self, member: str, low: str, high: str, sizes: list[int]) -> None:
        """The call of what comes after, which reads such `sizes`, for the rows of this task."""
        e, p = self.e, self.plan
        unit, full = (self._number(n) for n in ((p.row.extent, p.units) if p.strips else (p.rows, p.full)))
        count = self._number(math.prod(x.extent for x in self.contraction.rows))
        before = e.op(f"mul nuw nsw i64 {member}, {count}")
        first, end = self._first_row(low, unit, full), e.least(self._first_row(high, unit, full), count)
        bounds = [e.op(f"add nuw nsw i64 {before}, {x}") for x in (first, end)]
        own = [parallel.load_pointer(e, self.operands + i) for i in range(self.own)]
        own += [e.element("%numbers", "i64", len(self.numbers))] if sizes else []
        self.numbers += sizes
        after = self._function(TILES + PACKINGS * self.plan.packs + bool(self.watch))
        e.do(f"call void {after}({', '.join([*(f'ptr {p}' for p in own), *(f'i64 {x}' for x in bounds)])})")

    def _member(self, member: str, a: str, b: str, rest: str, c: str) -> list[str]:
        """The pointers of a batch member."""
        e, p = self.e, self.plan
        length = math.prod(x.extent for x in self.contraction.terms)
        for i, x in enumerate(reversed(self.contraction.batch)):
            last = i == len(self.contraction.batch) - 1
            member, at = ("0", member) if last else _divide(e, member, self._number(x.extent))
            a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            b = self._moved(b, at, x.b * length * p.panels * p.columns if p.packed else x.b)
            rest = self._moved(rest, at, x.b * length * max(p.rest, 1) if p.packed else x.b)
        return [a, b, rest, c]

    def _parts(self, a, b, rest, c, rows, panels, last, parts: tuple[Part, ...], adds: str, length=None) -> None:
        """A part of the terms after the other; all but the first are added to what is there."""
        e = self.e
        if not parts:
            self._columns(a, b, rest, c, length or self._number(self.plan.inside[-1].extent), adds, rows, panels, last)
            return
        (axis, steps, is_innermost), *others = parts
        part, opened = e.begin_loop(0, self._number(parts[0].turns))
        at = part
        if steps > 1:
            size = self._number(steps)
            at = e.op(f"mul nuw nsw i64 {part}, {size}")
        if is_innermost:
            left = e.op(f"sub nuw nsw i64 {self._number(axis.extent)}, {at}")
            length = e.least(left, self._number(steps))
        later = e.op(f"icmp ne i64 {part}, 0")
        adds = later if adds == "false" else e.op(f"or i1 {adds}, {later}")
        a, b = self._moved(a, at, axis.a), self._moved(b, at, self._b(axis.b, self.plan.columns))
        rest = self._moved(rest, at, self._b(axis.b, max(self.plan.rest, 1)))
        self._parts(a, b, rest, c, rows, panels, last, tuple(others), adds, length)
        e.end_loop(opened)

    def _b(self, stride: int, columns: int) -> int:
        """A stride of a term axis in B: in panels, the axes' strides count terms."""
        return stride * columns if self.plan.packed else stride

    def _terms(self, columns: int) -> list[Axis]:
        """The terms of a tile, with their strides in B, or in the memory that it is copied to."""
        p = self.plan
        if not p.packs:
            return [x._replace(b=self._b(x.b, columns)) for x in p.inside]
        row = self._vectors(columns) * p.width
        return [x._replace(b=x.b // p.inside[-1].b * row) for x in p.inside]

    @property
    def _keeps(self) -> bool:
        """Whether the first tile of a panel copies it to the task's memory, for those after it; else, a function that
        does nothing else. Where operands may be small, the first tile would meet them; it is whole.
        """
        p, last = self.plan, (self.tasks.row_blocks - 1) * self.tasks.rows
        return p.packs and p.apart == 1 and len(p.inside) == 1 and not self.contraction.small and last < p.full

    def _panel(self, a, b, c, length, adds, columns: int, low, high) -> None:
        """Columns of rows from `low` to `high` (see `Plan.units`), from the task's memory, if it copies panels."""
        e, p, is_rest = self.e, self.plan, columns != self.plan.columns
        if self.watch:
            self.watch.begin_panel()
        if not p.packs or not columns:
            self._rows(a, b, c, length, adds, columns, low, high)
            return
        copies = self._function(TILES + is_rest)
        if self._keeps:
            self._tile(a, b, c, low, length, adds, columns, copies)
            low = e.op(f"add nuw nsw i64 {low}, 1")
            more = e.op(f"icmp slt i64 {low}, {high}")
            with when(e, more):
                self._rows(a, self.scratch, c, length, adds, columns, low, high)
            return
        outer = math.prod(x.extent for x in p.inside[:-1])
        count = e.op(f"mul nuw nsw i64 {length}, {outer}") if outer > 1 else length
        lanes = self._number(columns - (self._vectors(columns) - 1) * p.width)
        step = self._number(p.inside[-1].b if p.apart == 1 else p.apart)
        e.do(f"call void {copies}(ptr {b}, ptr {self.scratch}, i64 {count}, i64 {step}, i64 {lanes})")
        self._rows(a, self.scratch, c, length, adds, columns, low, high)

    def _columns(self, a, b, rest, c, length, adds, rows, panels, last) -> None:
        """Panel after panel of columns, then, in the `last` block of them, those beyond, if there are any."""
        e, p = self.e, self.plan
        j, opened = e.begin_loop(*panels)
        at = j
        if p.packed:
            at = e.op(f"mul nuw nsw i64 {j}, {self._number(math.prod(x.extent for x in self.contraction.terms))}")
        b = self._moved(b, at, p.columns * p.apart)
        self._panel(a, b, self._moved(c, j, p.columns), length, adds, p.columns, *rows)
        e.end_loop(opened)
        c = e.element(c, self.type.memory, self._number(p.panels * p.columns))
        with when(e, last):
            self._panel(a, rest, c, length, adds, p.rest, *rows)

    def _rows(self, a, b, c, length, adds, columns: int, low, high) -> None:
        """Every row from `low` to `high` (see `Plan.units`) of some columns."""
        e = self.e
        u, opened = e.begin_loop(low, high)
        if self.plan.strips:
            for i, x in enumerate(reversed(self.plan.strips)):
                u, at = (u, u) if i == len(self.plan.strips) - 1 else _divide(e, u, self._number(x.extent))
                a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            t, tiles_opened = e.begin_loop(0, self._number(-(-self.plan.row.extent // self.plan.rows)))
            self._tile(a, b, c, t, length, adds, columns)
            e.end_loop(tiles_opened)
        else:
            self._tile(a, b, c, u, length, adds, columns)
        e.end_loop(opened)

    def _tile(self, a, b, c, t: str, length, adds, columns: int, keeps: str | None = None) -> None:
        """Tile `t` down the rows: the one that `keeps` the panel, or, where rows are left and it is theirs, another."""
        p, full = self.plan, self._number(self.plan.full)
        row = self._first_row(t, self._number(p.rows), full)
        a, c = self._steps(a, row, p.row_step), self._steps(c, row, p.row.c)
        if keeps:
            self._call(keeps, a, b, c, length, adds, columns, p.rows, p.inside[-1].b, f", ptr {self.scratch}")
            return
        for below in each_way(self.e, self.e.op(f"icmp sge i64 {t}, {full}")):
            self._call_tile(a, b, c, length, adds, columns, below)

    def _first_row(self, t: str, rows: str, full: str) -> str:
        """The first row of tile `t`, where those behind the `full` ones have a row less."""
        e = self.e
        lower = e.most(e.op(f"sub nsw i64 {t}, {full}"), "0")
        return e.op(f"sub nsw i64 {e.op(f'mul nuw nsw i64 {t}, {rows}')}, {lower}")

    def _call_tile(self, a, b, c, length, adds, columns: int, below: bool) -> None:
        """The call of a tile of panels or of the columns beyond; of the one below them, for the rows that are left."""
        tile = self._function(2 * (columns != self.plan.columns) + below)
        count = self.plan.below if below else self.plan.rows
        self._call(tile, a, b, c, length, adds, columns, count, self._terms(columns)[-1].b)

    def _call(self, tile, a, b, c, length, adds, columns: int, rows: int, by_b: int, own: str = "") -> None:
        e, p = self.e, self.plan
        last = columns - (self._vectors(columns) - 1) * p.width
        numbers = (p.row.a, p.inside[-1].a, by_b, p.row.c, last)
        steps = ", ".join(f"i64 {self._number(n)}" for n in numbers)
        given = f"ptr {a}, ptr {b}, ptr {c}, i64 {length}, {steps}, i1 {adds}, i64 {self._number(rows)}"
        watch = f", ptr {self.watch.at}" if self.watch else ""
        e.do(f"call void {tile}({given}{watch}{own})")
        if self.watch:
            plain = self._function(2 * (columns != p.columns)) if own else tile
            with when(e, self.watch.has_met()):
                self._multiply_carefully(self.watch, plain, given, columns)

    def _multiply_carefully(self, watch: subnormal_products.Watch, tile: str, given: str, columns: int) -> None:
        p, vectors = self.plan, self._vectors(columns)
        size = subnormal_products.room(p.panel_terms, p.rows, self._vectors(p.columns) * p.width, self.type.bytes)
        careful = self._function(TILES + PACKINGS * p.packs)
        watch.multiply(careful, tile, given, self._number(vectors), self._number(size))

    def _function(self, at: int) -> str:
        return self.e.op(f"load ptr, ptr {self.e.element(self.functions, 'ptr', at)}")

    def _tile_names(self) -> list[str]:
        """The functions of the tiles of panels, of the rows that these leave, of columns beyond and of both; another
        stands for one that is not called.
        """
        p = self.plan
        names: list[str] = []
        for columns in (p.columns, p.rest):
            for below in (False, True):
                is_called = columns and (not below or p.has_left)
                names.append(self._tile_name(columns, below) if is_called else names[0])
        return names

    def _tile_name(self, columns: int, below: bool) -> str:
        p, vectors = self.plan, self._vectors(columns)
        outer = tuple(tiles.Term(x.extent, x.a, x.b) for x in self._terms(columns)[:-1])
        rows = p.below if below and not p.is_ragged else p.rows
        told, adds = self._told(columns), bool(p.outside)
        tile = tiles.Tile(self.type, p.width, rows, vectors, told, outer, adds, below and p.is_ragged, p.is_watched)
        tile = tile._replace(even=p.even)
        return self.w.function(tiles.text(tile))

    def _packing_names(self) -> list[str]:
        """The functions that copy panels and the columns beyond, where tasks do; or one stands for the other."""
        p = self.plan
        if not p.packs:
            return []
        each = [columns or p.columns or p.rest for columns in (p.columns * bool(p.panels), p.rest)]
        return [self.w.function(self._packing_text(columns)) for columns in each]

    def _packing_text(self, columns: int) -> str:
        p, vectors, told = self.plan, self._vectors(columns), self._told(columns)
        if not self._keeps:
            return (tiles.packing if p.apart == 1 else tiles.turning)(tiles.Panel(self.type, p.width, vectors, told))
        tile = tiles.Tile(self.type, p.width, p.rows, vectors, told, (), bool(p.outside), watched=p.is_watched)
        return tiles.text(tile._replace(keeps=True))

    def _told(self, columns: int) -> int:
        """The lanes of the last vector that are columns, or that an argument tells it."""
        p, vectors = self.plan, self._vectors(columns)
        if columns != vectors * p.width and self.w.machine.masks(self.type.bytes):
            return tiles.ARGUMENT
        return columns - (vectors - 1) * p.width

    def _vectors(self, columns: int) -> int:
        return max(-(-columns // self.plan.width), 1)

    def _moved(self, pointer: str, steps: str, by: int) -> str:
        if not by:
            return pointer
        return self._steps(pointer, steps, by) if by != 1 else self.e.element(pointer, self.type.memory, steps)

    def _steps(self, pointer: str, steps: str, by: int) -> str:
        """So many steps of so many elements further on; how long they are, the text does not tell."""
        return self.e.element(pointer, self.type.memory, self.e.op(f"mul nsw i64 {steps}, {self._number(by)}"))


def _divide(e: Emitter, x: str, n: int | str) -> tuple[str, str]:
    """Quotient and remainder."""
    if n == 1:
        return x, "0"
    quotient = e.op(f"udiv i64 {x}, {n}")
    return quotient, e.op(f"sub i64 {x}, {e.op(f'mul i64 {quotient}, {n}')}")
