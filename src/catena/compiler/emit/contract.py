"""The loops of products and convolutions around the tile function (`tiles`), by a plan of `plan.contraction`.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from catena.compiler.emit import launches, parallel, subnormal_products, tiles
from catena.compiler.emit.branches import each_way, when
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.emit.sizes import is_size
from catena.compiler.graph import keys, symbols
from catena.compiler.graph.types import Type
from catena.compiler.plan.contraction import Axis, Part, Plan, Tasks
from catena.compiler.plan.steps import Contract
from catena.core.named import NamedTuple


def contract(w, step: Contract) -> None:
    """Writes a product by tiles, and what follows on the rows that a task has computed."""
    parallel.through_pool(w, *chunks(w, step))


def chunks(w, step: Contract) -> parallel.Chunks:
    """The function of a product's tasks, and what it is given."""
    p = step.plan
    operands = [step.a, step.b, step.c, *([] if step.rest is None else [step.rest])]
    kernel, own = launches.after(w, step)
    name = keys.of((p, step.tasks, kernel and (kernel.name, tuple(kernel.sizes)), len(own)))
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


class Numbers(NamedTuple):
    """What the tiles of a panel are told, as text."""

    kind: str  # 1 of the columns beyond the panels
    length: str  # of the innermost term axis
    adds: str
    step: str  # of B from one term to the next
    lanes: str  # of the last vector that are columns
    vectors: str  # where tiles are watched
    far: str  # the table of the outer term axes' steps, where tiles read them


TILES, PACKINGS = 4, 2  # of the functions of a task; the others are there where tasks pack
NUMBERS = 64  # in a task's table, or twice as many: how many it needs is nothing that the entry's text tells


class _Told:
    """Numbers that a task reads from its table, which is pointer `at` of those that it is given: so that products of
    other sizes share its text.
    """

    def __init__(self, e: Emitter, plan: Plan, at: int):
        self.e, self.plan = e, plan
        self.numbers: list[int] = []
        self._of_plan: dict[str, str] = {}
        e.slots += [f"  %numbers_at = getelementptr ptr, ptr %args, i64 {at}", "  %numbers = load ptr, ptr %numbers_at"]

    def number(self, value: int) -> str:
        i = len(self.numbers)
        self.numbers.append(value)
        self.e.slots += [f"  %n{i}_at = getelementptr i64, ptr %numbers, i64 {i}", f"  %n{i} = load i64, ptr %n{i}_at"]
        return f"%n{i}"

    def of_plan(self, name: str) -> str:
        """A number of the plan, by its name."""
        if name not in self._of_plan:
            self._of_plan[name] = self.number(getattr(self.plan, name))
        return self._of_plan[name]

    def either(self, kind: str, panel: int, rest: int) -> str:
        """A number of panels, or of the columns beyond them where `kind` is 1."""
        first = self.e.element("%numbers", "i64", len(self.numbers))
        self.numbers += [panel, rest]
        return self.e.op(f"load i64, ptr {self.e.element(first, 'i64', kind)}")


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
        self.watch = subnormal_products.Watch(self.e) if p.is_watched else None
        self.operands = 3 + p.packed
        self.functions = parallel.load_pointer(self.e, self.operands + self.own)
        self.told = _Told(self.e, p, self.operands + own + 1)
        self.scratch = self._scratch() if p.packs else "null"

    def written(self) -> Task:
        after = [] if self.after is None else [self.after.name]
        careful = [self.w.function(subnormal_products.text(self.type, self.plan.width))] if self.watch else []
        body, functions = self._task(), [*self._tile_names(), *self._packing_names(), *careful, *after]
        self.told.numbers += [0] * (-len(self.told.numbers) % NUMBERS)
        return Task(body, functions, self.told.numbers)

    def _scratch(self) -> str:
        """Memory for a panel, whose size the text does not tell: products of other terms and columns share it."""
        p, name = self.plan, self.e.name()
        size = self.told.number(p.panel_terms * self._vectors(p.columns) * p.width * self.type.bytes)
        self.e.slots.append(f"  {name} = alloca i8, i64 {size}, align 64")
        return name

    # ---- one task ------------------------------------------------------------------------------------------

    def _task(self) -> str:
        e, t = self.e, self.tasks
        a, b, c, *packed = (parallel.load_pointer(e, i) for i in range(self.operands))
        rest = packed[0] if packed else "null"
        opened = None
        if t.has_whole_members:
            row_block = column_block = "0"
            members = self.told.number(math.prod(x.extent for x in self.plan.contraction.batch))
            member, opened = e.begin_loop(*self._block("%k", members, t.members))
        else:
            member, column_block = divide(e, "%k", self.told.number(t.column_blocks))
            member, row_block = divide(e, member, self.told.number(t.row_blocks))
        rows = self._block(row_block, self.told.of_plan("units"), t.rows)
        panels = self._with_rest(*self._block(column_block, self.told.of_plan("panels"), t.columns))
        a, b, rest, c = self._member(member, a, b, rest, c)
        self._parts(a, b, rest, c, rows, panels, self.plan.outside, "false")
        if self.after is not None:
            self._follow(member, *rows, self.after.sizes)
        if opened is not None:
            e.end_loop(opened)
        return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])

    def _block(self, block: str, extent: str, each: int) -> tuple[str, str]:
        """Where a block of rows or panels begins and ends."""
        e, step = self.e, self.told.number(each)
        low = e.op(f"mul nuw nsw i64 {block}, {step}")
        return low, e.least(e.op(f"add nuw nsw i64 {low}, {step}"), extent)

    def _with_rest(self, low: str, high: str) -> tuple[str, str]:
        """A block of panels; of the last ones, with the columns beyond as one more, if there are any."""
        e = self.e
        is_last = e.op(f"icmp eq i64 {high}, {self.told.of_plan('panels')}")
        more = e.op(f"select i1 {is_last}, i64 {self.told.number(int(self.plan.rest > 0))}, i64 0")
        return low, e.op(f"add nuw nsw i64 {high}, {more}")

    def _follow(self, member: str, low: str, high: str, sizes: list[int]) -> None:
        """The call of what comes after, which reads such `sizes`, for the rows of this task."""
        e, p = self.e, self.plan
        unit = self.told.number(p.row.extent) if p.strips else self.told.of_plan("rows")
        full = self.told.of_plan("units" if p.strips else "full")
        count = self.told.number(math.prod(x.extent for x in self.plan.contraction.rows))
        before = e.op(f"mul nuw nsw i64 {member}, {count}")
        first, end = _first_row(e, low, unit, full), e.least(_first_row(e, high, unit, full), count)
        low, high = (e.op(f"add nuw nsw i64 {before}, {x}") for x in (first, end))
        own = [parallel.load_pointer(e, self.operands + i) for i in range(self.own)]
        own += [e.element("%numbers", "i64", len(self.told.numbers))] if sizes else []
        self.told.numbers += sizes
        after = self._function(TILES + PACKINGS * self.plan.packs + bool(self.watch))
        launches.on_rows(e, after, own, low, high)

    def _member(self, member: str, a: str, b: str, rest: str, c: str) -> list[str]:
        """The pointers of a batch member."""
        e, p = self.e, self.plan
        length = math.prod(x.extent for x in self.plan.contraction.terms)
        for i, x in enumerate(reversed(self.plan.contraction.batch)):
            last = i == len(self.plan.contraction.batch) - 1
            member, at = ("0", member) if last else divide(e, member, self.told.number(x.extent))
            a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            b = self._moved(b, at, x.b * length * p.panels * p.columns if p.packed else x.b, self.plan.read)
            if p.packed:
                rest = self._moved(rest, at, x.b * length * max(p.rest, 1))
        return [a, b, rest, c]

    def _parts(self, a, b, rest, c, rows, panels, parts: tuple[Part, ...], adds: str, length=None) -> None:
        """A part of the terms after the other; all but the first are added to what is there."""
        e = self.e
        if not parts:
            self._columns(a, b, rest, c, length or self.told.number(self.plan.inside[-1].extent), adds, rows, panels)
            return
        (axis, steps, is_innermost), *others = parts
        part, opened = e.begin_loop(0, self.told.number(parts[0].turns))
        at = part
        if steps > 1:
            size = self.told.number(steps)
            at = e.op(f"mul nuw nsw i64 {part}, {size}")
        if is_innermost:
            left = e.op(f"sub nuw nsw i64 {self.told.number(axis.extent)}, {at}")
            length = e.least(left, self.told.number(steps))
        later = e.op(f"icmp ne i64 {part}, 0")
        adds = later if adds == "false" else e.op(f"or i1 {adds}, {later}")
        a, b = self._moved(a, at, axis.a), self._moved(b, at, self._b(axis.b, self.plan.columns), self.plan.read)
        if self.plan.packed:
            rest = self._moved(rest, at, self._b(axis.b, max(self.plan.rest, 1)))
        self._parts(a, b, rest, c, rows, panels, tuple(others), adds, length)
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
        does nothing else. Where operands may be small, the first tile would meet them; it is whole. Where subnormal
        numbers have been met, none copies it.
        """
        p, c, last = self.plan, self.plan.contraction, (self.tasks.row_blocks - 1) * self.tasks.rows
        return p.packs and p.apart == 1 and p.read is self.type and len(p.inside) == 1 and not c.small and last < p.full

    def _columns(self, a, b, rest, c, length, adds, rows, panels) -> None:
        """Panel after panel of columns; those beyond are one more, with other numbers and tiles."""
        e, p = self.e, self.plan
        j, opened = e.begin_loop(*panels)
        is_rest = e.op(f"icmp eq i64 {j}, {self.told.of_plan('panels')}")
        at = j
        if p.packed:
            at = e.op(f"mul nuw nsw i64 {j}, {self.told.number(math.prod(x.extent for x in p.contraction.terms))}")
        b = self._moved(b, at, p.columns * p.apart, self.plan.read)
        if p.packed:
            b = e.op(f"select i1 {is_rest}, ptr {rest}, ptr {b}")
        self._panel(a, b, self._moved(c, j, p.columns), self._numbers_of_tiles(is_rest, length, adds), *rows)
        e.end_loop(opened)

    def _numbers_of_tiles(self, is_rest: str, length: str, adds: str) -> Numbers:
        """What all tiles of a panel are told, or of the columns beyond."""
        p = self.plan
        kind = self.e.op(f"zext i1 {is_rest} to i64")
        counts = [self._vectors(columns) for columns in (p.columns, p.rest)]
        lanes = [columns - (count - 1) * p.width for columns, count in zip((p.columns, p.rest), counts)]
        steps = [self._terms(columns)[-1].b for columns in (p.columns, p.rest)]
        step = self.told.either(kind, *steps) if p.packed or p.packs else self.told.number(steps[0])
        vectors = self.told.either(kind, *counts) if self.watch else ""
        return Numbers(kind, length, adds, step, self.told.either(kind, *lanes), vectors, _far(self, kind))

    def _panel(self, a, b, c, numbers: Numbers, low, high) -> None:
        """Some columns of rows from `low` to `high` (see `Plan.units`), from the task's memory, if it copies panels."""
        e, p = self.e, self.plan
        if self.watch:
            self.watch.begin_panel()
        if p.packs and not self._keeps:
            outer = math.prod(x.extent for x in p.inside[:-1])
            count = e.op(f"mul nuw nsw i64 {numbers.length}, {outer}") if outer > 1 else numbers.length
            step = self.told.number(p.inside[-1].b if p.apart == 1 else p.apart)
            copies = self._function(e.op(f"add nuw nsw i64 {numbers.kind}, {TILES}"))
            e.do(f"call void {copies}(ptr {b}, ptr {self.scratch}, i64 {count}, i64 {step}, i64 {numbers.lanes})")
            b = self.scratch
        if self._keeps and self.watch:
            self.watch.begin_copy()
        self._rows(a, b, c, numbers, low, high)

    def _rows(self, a, b, c, numbers: Numbers, low, high) -> None:
        """Every row from `low` to `high` (see `Plan.units`) of some columns."""
        e = self.e
        u, opened = e.begin_loop(low, high)
        if self.plan.strips:
            for i, x in enumerate(reversed(self.plan.strips)):
                u, at = (u, u) if i == len(self.plan.strips) - 1 else divide(e, u, self.told.number(x.extent))
                a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            t, tiles_opened = e.begin_loop(0, self.told.number(-(-self.plan.row.extent // self.plan.rows)))
            self._tile(a, b, c, t, numbers)
            e.end_loop(tiles_opened)
        else:
            self._tile(a, b, c, u, numbers, e.op(f"icmp eq i64 {u}, {low}") if self._keeps else None)
        e.end_loop(opened)

    def _tile(self, a, b, c, t: str, numbers: Numbers, is_first: str | None = None) -> None:
        """Tile `t` down the rows: one that is lower where it is behind the `full` ones. The first copies the panel
        meanwhile, if that is copied; the tiles after that read the copy.
        """
        e, p, step = self.e, self.plan, numbers.step
        is_below = e.op(f"icmp sge i64 {t}, {self.told.of_plan('full')}")
        which = e.op(f"shl nuw nsw i64 {numbers.kind}, 1")
        tile = self._function(e.op(f"add nuw nsw i64 {which}, {e.op(f'zext i1 {is_below} to i64')}"))
        count = e.op(f"select i1 {is_below}, i64 {self.told.of_plan('below')}, i64 {self.told.of_plan('rows')}")
        row = _first_row(e, t, self.told.of_plan("rows"), self.told.of_plan("full"))
        a, c = self._steps(a, row, p.row_step, self.type), self._steps(c, row, p.row.c, self.type)
        keeps = None
        if is_first:
            copied = self.watch.is_copied() if self.watch else "true"
            keeps = e.op(f"and i1 {is_first}, {copied}")
            has_copy = e.op(f"xor i1 {keeps}, {copied}")
            b = e.op(f"select i1 {has_copy}, ptr {self.scratch}, ptr {b}")
            step = e.op(f"select i1 {has_copy}, i64 {step}, i64 {self.told.number(p.inside[-1].b)}")
        steps = ", ".join(f"i64 {n}" for n in (self.told.number(p.row.a), self.told.number(p.inside[-1].a), step))
        given = f"ptr {a}, ptr {b}, ptr {c}, i64 {numbers.length}, {steps}, i64 {self.told.number(p.row.c)}"
        self._call(tile, f"{given}, i64 {numbers.lanes}, i1 {numbers.adds}, i64 {count}", numbers, keeps)

    def _call(self, tile: str, given: str, numbers: Numbers, keeps: str | None) -> None:
        """The call of a tile, or of one that copies the panel, and what multiplies where it met subnormal numbers."""
        e = self.e
        given_all = given + "".join(f", ptr {x}" for x in (self.watch and self.watch.at, numbers.far) if x)
        if keeps is None:
            e.do(f"call void {tile}({given_all})")
        else:
            for is_first in each_way(e, keeps):
                if is_first:
                    copies = self._function(e.op(f"add nuw nsw i64 {numbers.kind}, {TILES}"))
                    e.do(f"call void {copies}({given_all}, ptr {self.scratch}, ptr {tile})")
                    if self.watch:
                        self.watch.end_copy()
                else:
                    e.do(f"call void {tile}({given_all})")
        if self.watch:
            p = self.plan
            size = subnormal_products.room(p.panel_terms, p.rows, self._vectors(p.columns) * p.width, self.type.bytes)
            with when(e, self.watch.has_met()):
                careful = self._function(TILES + PACKINGS * p.packs)
                self.watch.multiply(careful, tile, given, numbers.vectors, self.told.number(size))

    def _function(self, at: int | str) -> str:
        return self.e.op(f"load ptr, ptr {self.e.element(self.functions, 'ptr', at)}")

    def _tile_names(self) -> list[str]:
        """The functions of the tiles of panels, of the rows that these leave, of columns beyond and of both; another
        stands for one that is not called.
        """
        p = self.plan
        forms = _forms((p.columns, p.rest), (p.rows, p.below, p.heights[2]), p.width, self.masks, p.odd)
        names = []
        for i, columns in enumerate((p.columns, p.columns, p.rest, p.rest)):
            tile = self._unshaped(_outer(self, columns))
            names.append(self.w.chosen(functools.partial(_tile_text, tile), forms[i]))
        return names

    def _unshaped(self, outer: tuple) -> tiles.Tile:
        """A tile of no form yet (see `_forms`)."""
        p = self.plan
        tile = tiles.Tile(self.type, p.width, 1, 1, 0, outer, bool(p.outside), watched=p.is_watched)
        return tile._replace(fetches=_fetches(p))

    def _packing_names(self) -> list[str]:
        """The functions that copy panels and the columns beyond, where tasks do; or one stands for the other."""
        p = self.plan
        if not p.packs:
            return []
        panel = tiles.Panel(self.type, p.width, 1, 0, p.read)
        if self._keeps:
            write: Callable[[tuple], str] = functools.partial(
                _first_tile_text, self._unshaped(())._replace(keeps=True), panel
            )
        else:
            write = functools.partial(_packing_text, tiles.packing if p.apart == 1 else tiles.turning, panel)
        forms = _forms_of_packing((p.columns, p.rest), p.rows, p.width, self.masks)
        return [self.w.chosen(write, form) for form in forms]

    @property
    def masks(self) -> bool:
        """Whether arguments tell the lanes of a vector."""
        return self.w.machine.masks(self.type.bytes)

    def _vectors(self, columns: int) -> int:
        return _vectors(columns, self.plan.width)

    def _moved(self, pointer: str, steps: str, by: int, of: Type | None = None) -> str:
        """So many steps of so many elements further on, which are `of` a type, or of the result's."""
        if not by:
            return pointer
        t = of or self.type
        return self._steps(pointer, steps, by, t) if by != 1 else self.e.element(pointer, t.memory, steps)

    def _steps(self, pointer: str, steps: str, by: int, of: Type) -> str:
        """The same; how long the steps are, the text does not tell."""
        return self.e.element(pointer, of.memory, self.e.op(f"mul nsw i64 {steps}, {self.told.number(by)}"))


@symbols.computed
def _vectors(columns: int, width: int) -> int:
    return max(-(-columns // width), 1)


@symbols.computed
def _forms(columns: tuple, heights: tuple, width: int, masks: bool, odd: int) -> tuple[tuple[int, ...], ...]:
    """Of the tiles of panels, of the rows that these leave, of columns beyond and of both: rows, vectors, lanes of the
    last one that are columns, or that an argument tells it, whether an argument tells how many rows there are, and
    whether terms are an even number, not `odd`. The first stands for one that is not called.
    """
    rows, below, is_ragged = heights
    found: list[tuple[int, ...]] = []
    for n in columns:
        vectors = _vectors(n, width)
        last = tiles.ARGUMENT if masks and n != vectors * width else n - (vectors - 1) * width
        found.append((rows, vectors, last, 0, int(not odd)) if n else found[0])
        lower = rows if is_ragged else below  # of others than full ones, a plan for any number is for all
        found.append((lower, vectors, last, is_ragged, 0) if n and below else found[0])
    return tuple(found)


def _tile_text(tile: tiles.Tile, form: tuple) -> str:
    """The text of a tile of this form (see `_forms`)."""
    rows, vectors, last, is_ragged, even = form
    return tiles.text(tile._replace(rows=rows, vectors=vectors, last=last, ragged=bool(is_ragged), even=bool(even)))


@symbols.computed
def _forms_of_packing(columns: tuple, rows: int, width: int, masks: bool) -> tuple[tuple[int, ...], ...]:
    """Of what copies panels, and the columns beyond: the forms of their tiles, and whether these are some beyond."""
    forms = _forms(columns, (rows, 0, 0), width, masks, 1)
    return (*forms[0], 0), (*forms[2], int(columns[1] > 0))


def _first_tile_text(tile: tiles.Tile, panel: tiles.Panel, form: tuple) -> str:
    """The text of what does the first tile of this form, and copies the panel: one function, or for the few columns
    beyond panels one that copies first.
    """
    *of_tile, is_beyond = form
    if not is_beyond:
        return _tile_text(tile, (*of_tile,))
    return _packing_text(lambda panel: tiles.packing_first(panel, tile.watched), panel, form)


def _packing_text(write: Callable[[tiles.Panel], str], panel: tiles.Panel, form: tuple) -> str:
    """The text of what copies panels for tiles of this form."""
    return write(panel._replace(vectors=form[1], last=form[2]))


def _fetches(p: Plan) -> bool:
    """Whether tiles ask for what those below them read of A: rows lie side by side, each term in another line."""
    return len(p.inside) == 1 and p.row.a == 1 and p.inside[0].a * p.contraction.type.bytes >= tiles.LINE


def _steps_outside(w: _Loops, columns: int) -> list[int]:
    """How far the term axes around the innermost one go in A and B, one behind the other."""
    return [n for x in w._terms(columns)[:-1] for n in (x.a, x.b)]


def _outer(w: _Loops, columns: int) -> tuple[tiles.Term, ...]:
    """The axes around the innermost one, as a tile is told them."""
    steps = [n if is_told else None for n, is_told in zip(_steps_outside(w, columns), _told_steps(w))]
    return tuple([tiles.Term(x.extent, *steps[2 * i : 2 * i + 2]) for i, x in enumerate(w.plan.inside[:-1])])


def _told_steps(w: _Loops) -> list[bool]:
    """Which of these the text of a tile tells, of panels and of the columns beyond; a table has all of them."""
    each = zip(*(_steps_outside(w, columns) for columns in (w.plan.columns, w.plan.rest)))
    return [not any(map(is_size, steps)) for steps in each]


def _far(w: _Loops, kind: str) -> str:
    """Where tiles of this `kind` find the steps of their outer axes; nothing where they read none."""
    told = _told_steps(w)
    if all(told):
        return ""
    at = w.e.op(f"mul nuw nsw i64 {kind}, {len(told)}")
    first = w.e.element("%numbers", "i64", len(w.told.numbers))
    for columns in (w.plan.columns, w.plan.rest):
        w.told.numbers += _steps_outside(w, columns)
    return w.e.element(first, "i64", at)


def _first_row(e: Emitter, t: str, rows: str, full: str) -> str:
    """The first row of tile `t`, where those behind the `full` ones have a row less."""
    lower = e.most(e.op(f"sub nsw i64 {t}, {full}"), "0")
    return e.op(f"sub nsw i64 {e.op(f'mul nuw nsw i64 {t}, {rows}')}, {lower}")
