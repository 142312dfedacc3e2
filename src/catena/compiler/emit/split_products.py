"""Products of float32 by tiles of bfloat16, by a plan of `plan.split_products`: tasks, and how blocks of C are made.

A number is the sum of three parts, high, middle and low, each 2^-8 of the one before it or less. A block of C, two
tiles by two, adds up for each 32 terms the products of: high and high, high and middle, middle and middle, middle and
high, low and high, high and low. Each sum of 32 products is exact to a rounding of float32 or two (see `emit.amx`),
and is added to the block in one: fewer roundings than where each term is added by itself. The products that are left
out are 2^-23 of a term at most, and 2^-26 as a rule.

Where a task multiplies more than 32 steps of terms, all its blocks get those of the first 32 before the next ones, from
panels that stay in the second cache meanwhile; blocks of C are read again. So an element is a function of its row and
column alone.

The instructions take subnormal parts and sums as zeros, and infinity less itself is no part of infinity. So blocks in
which that may matter are looked through by `emit.split_exceptions`, which computes what it must anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from catena.compiler.emit import amx, launches, parallel, split_exceptions
from catena.compiler.emit.amx_packing import member_of
from catena.compiler.emit.branches import each_way, when
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.emit.split_packing import split_part
from catena.compiler.graph.types import TYPES
from catena.compiler.machine import Machine
from catena.compiler.plan.amx import SIDE
from catena.compiler.plan.split_products import AT_A_TIME, STEP, TILE, Lines, Part, SplitProduct
from catena.core.named import NamedTuple

FLOAT = TYPES["float32"]
LINE = 64  # bytes of a line of a tile
ROW = 4 * SIDE  # bytes of a row of a block
ASKED = 4  # rows of C that a step of the terms asks for, before they are written
NUMBERS = 14
OF_OPERAND = 6
# What a step does: loads tiles of A into registers 4 and 5 (of the upper and the lower rows) or of B into 6 and 7 (of
# the left and the right columns), of the part that is told, and multiplies what is there. Of either operand high parts
# come before middle ones, and these before low ones: so a number times one is itself.
HIGH, MIDDLE, LOW = range(3)
ORDER = (
    ("a", HIGH, "b", HIGH),
    ("b", MIDDLE),
    ("a", MIDDLE),
    ("b", HIGH),
    ("a", LOW),
    ("a", HIGH, "b", LOW),
)


def product(w, step: SplitProduct) -> None:
    """Writes a product, part by part, and what follows on the rows that a task has computed. The right operand is split
    once for all rows, unless it is so, too, for some terms at a time.
    """
    p, writer = step.plan, _Writer(w, step)
    by_terms = p.part.terms < p.a.terms
    for member, members in _parts(w, p.a.members, p.part.members):
        for column, columns in _parts(w, p.b.side, p.part.columns):
            if not by_terms:
                writer.split(1, (member, column, 0), (members, columns, p.a.terms))
            for row, rows in _parts(w, p.a.side, p.part.rows):
                for term, terms in _parts(w, p.a.terms, p.part.terms):
                    writer.split(0, (member, row, term), (members, rows, terms))
                    if by_terms:
                        writer.split(1, (member, column, term), (members, columns, terms))
                    writer.multiply((member, row, column, term), Part(members, rows, columns, terms))


def _parts(w, extent: int, each: int) -> Iterator[tuple[int | str, int]]:
    """What is written while this goes on runs for parts of so many: where one begins, and its size."""
    many = extent // each
    if many > 1:
        first, opened = w.e.begin_loop(0, w.number(many * each), w.number(each))
        yield first, each
        w.e.end_loop(opened)
    elif many:
        yield 0, each
    if extent % each:
        yield w.number(many * each), extent % each


class _Writer:
    """What writes a product's parts: the function that all their tasks are, and where it is told which part they do."""

    def __init__(self, w, step: SplitProduct):
        self.w, self.plan, self.operands = w, step.plan, (step.a, step.b)
        after, own = launches.after(w, step)
        self.begin, *self.begins = (w.e.slot(f"[{n} x i64]", 8) for n in (4, 3, 3))
        self.lies, self.panels = (
            [w.pointer(x) for x in pair] for pair in zip(*((x.lies, x.panels) for x in self.operands))
        )
        self.pointers = [*self.lies, *self.panels, w.pointer(step.c), self.begin, *map(w.pointer, own)]
        self.sizes = after.sizes if after else []
        block, look = w.function(block_text()), w.function(split_exceptions.text())
        self.body = _text(block, look, after, len(self.pointers))

    def split(self, k: int, begin: tuple, part: tuple[int, int, int]) -> None:
        """Splits a part of an operand, if that was not done before."""
        x = self.operands[k]
        if x.splits:
            self._store(self.begins[k], begin)
            pointers = [self.lies[k], self.panels[k], self.begins[k]]
            split_part(self.w, x.lines, pointers, x.lines.some(*part), x.lines.some(*self.plan.part.of_operands[k]))

    def multiply(self, begin: tuple, part: Part) -> None:
        """Writes the tasks of a part."""
        p, tasks = self.plan, self.plan.tasks(part)
        room = [x.some(*some) for x, some in zip((p.a, p.b), p.part.of_operands)]
        steps = p.a.some(*part.left).steps
        at_a_time = min(AT_A_TIME, steps)
        at_once = _panels_at_a_time(tasks.panels, at_a_time, self.w.machine)
        numbers = [tasks.column_blocks, tasks.row_blocks, tasks.blocks, tasks.panels, steps, at_a_time, at_once,
                   p.a.terms, *(x.panels for x in room), room[0].panel, part.rows, part.columns, part.terms,
                   *_of_operand(p.a), *_of_operand(p.b), *self.sizes]  # fmt: skip
        self._store(self.begin, begin)
        many = part.members * tasks.row_blocks * tasks.column_blocks
        parallel.through_pool(self.w, self.body, self.pointers, many, numbers, math.prod(part) // 64)

    def _store(self, place: str, numbers: tuple) -> None:
        e = self.w.e
        for i, x in enumerate(numbers):
            e.do(f"store i64 {x}, ptr {e.element(place, 'i64', i)}, align 8")


def _of_operand(x: Lines) -> list[int]:
    return [x.side, 4 * x.by_side, 4 * x.by_term, *x.by_member.bytes(4)]


def _panels_at_a_time(panels: int, steps: int, machine: Machine) -> int:
    """Panels of B that stay in the second cache, beside a block of rows of A."""
    return max(1, min(panels, machine.memory.second_cache // (steps * STEP) - 1))


@lru_cache(maxsize=1)
def block_text() -> str:
    """Parameters and body of a block of C from so many `steps` of panels at `a` and `b`, whose rows lie `across` bytes
    apart; `rows` and `lanes` of them are there. Where it `adds`, to what C holds.
    """
    e = Emitter()
    block = e.slot(f"[{SIDE * ROW} x i8]", LINE)
    is_whole = e.op(f"icmp eq i64 {e.op('add nuw nsw i64 %lanes, %rows')}, {2 * SIDE}")
    where = e.op(f"select i1 {is_whole}, ptr %c, ptr {block}")
    apart = e.op(f"select i1 {is_whole}, i64 %across, i64 {ROW}")
    tiles = _tiles(e, where, apart)
    for adds in each_way(e, "%adds"):
        if adds:
            with when(e, e.op(f"xor i1 {is_whole}, true")):
                _rows(e, "%c", "%across", block, ROW)
        for number, place in enumerate(tiles):
            fill = f"tileloadd64(i8 {number}, ptr {place}, i64 {apart})" if adds else f"tilezero(i8 {number})"
            e.do(f"call void @llvm.x86.{fill}")
    k, opened = e.begin_loop(0, "%steps")
    at = e.op(f"mul nuw nsw i64 {k}, {STEP}")
    of = {"a": e.element("%a", "i8", at), "b": e.element("%b", "i8", at)}
    _ask_for_rows(e, k, where, apart)
    for loaded in ORDER:
        for operand, part in zip(loaded[::2], loaded[1::2]):
            _load(e, operand, e.element(of[operand], "i8", 2 * TILE * part))
        for tile, (left, right) in enumerate(((4, 6), (4, 7), (5, 6), (5, 7))):
            e.do(f"call void @llvm.x86.tdpbf16ps(i8 {tile}, i8 {left}, i8 {right})")
    e.end_loop(opened)
    for number, place in enumerate(tiles):
        e.do(f"call void @llvm.x86.tilestored64(i8 {number}, ptr {place}, i64 {apart})")
    with when(e, e.op(f"xor i1 {is_whole}, true")):
        _rows(e, block, ROW, "%c", "%across")
    given = "ptr readonly %a, ptr readonly %b, ptr %c, i64 %steps, i64 %across, i64 %lanes, i64 %rows, i1 %adds"
    return "\n".join([f"({given}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _tiles(e: Emitter, block: str, apart: str) -> list[str]:
    """Where the tiles of a block are."""
    below = e.element(block, "i8", e.op(f"mul nuw nsw i64 {apart}, {SIDE // 2}"))
    return [block, e.element(block, "i8", LINE), below, e.element(below, "i8", LINE)]


def _ask_for_rows(e: Emitter, step: str, where: str, apart: str) -> None:
    """Asks for some rows of C, which else would be waited for when they are written."""
    row = e.op(f"and i64 {e.op(f'mul nuw nsw i64 {step}, {ASKED}')}, {SIDE - 1}")
    at = e.element(where, "i8", e.op(f"mul nuw nsw i64 {row}, {apart}"))
    for _ in range(ASKED):
        for half in range(2):
            e.do(f"call void @llvm.prefetch.p0(ptr {e.element(at, 'i8', half * LINE)}, i32 1, i32 3, i32 1)")
        at = e.element(at, "i8", apart)


def _load(e: Emitter, operand: str, place: str) -> None:
    first = 4 if operand == "a" else 6
    for half in range(2):
        e.do(
            f"call void @llvm.x86.tileloadd64(i8 {first + half}, ptr {e.element(place, 'i8', half * TILE)}, i64 {LINE})"
        )


def _rows(e: Emitter, of: str, apart_of: str | int, to: str, apart_to: str | int) -> None:
    """Copies as much of a block as is there."""
    mask = amx.lanes_of(e, "%lanes", SIDE)
    row, opened = e.begin_loop(0, "%rows")
    x = e.load_raw(FLOAT, e.element(of, "i8", e.op(f"mul nuw nsw i64 {row}, {apart_of}")), SIDE, 1, mask)
    e.store_raw(FLOAT, x, e.element(to, "i8", e.op(f"mul nuw nsw i64 {row}, {apart_to}")), SIDE, mask)
    e.end_loop(opened)


class _Side(NamedTuple):
    """Rows of A or columns of B of a task."""

    lies: str  # where the first of the part is
    panels: str  # likewise
    by_line: str
    by_term: str
    extent: str  # of the part
    low: str  # of the panels of the task
    high: str


class _Turns(NamedTuple):
    """The steps of a part; those that are multiplied before the next ones, by so many panels of columns."""

    steps: str
    at_a_time: str
    at_once: str


class _Task:
    """What a task is told: its table has the pointers to A, B, their panels, C, where its part begins, and those of a
    function that is called for its rows in the end, then numbers.
    """

    def __init__(self, pointers: int):
        self.e = e = Emitter()
        a, b, panels_of_a, panels_of_b, c, begin, *own = (parallel.load_pointer(e, i) for i in range(pointers))
        before, first_row, first_column, self.first_term = (
            e.op(f"load i64, ptr {e.element(begin, 'i64', i)}, align 8") for i in range(4)
        )
        table, numbers = parallel.load_numbers(e, pointers, NUMBERS + 2 * OF_OPERAND)
        self.own = *own, e.element(table, "i64", NUMBERS + 2 * OF_OPERAND)  # pointers of that function, and its sizes
        across, down, blocks, panels, steps, at_a_time, at_once, self.terms, *numbers = numbers
        self.turns = _Turns(steps, at_a_time, at_once)
        *rooms, self.panel, rows, columns, part_of_terms = numbers[:6]
        of_a, of_b = numbers[6 : 6 + OF_OPERAND], numbers[6 + OF_OPERAND :]
        rest, column_block = divide(e, "%k", across)
        member, row_block = divide(e, rest, down)
        self.ends = e.op(f"icmp eq i64 {e.op(f'add nuw nsw i64 {self.first_term}, {part_of_terms}')}, {self.terms}")
        members = member, e.op(f"add nuw nsw i64 {before}, {member}")
        self.rows = self._side((a, panels_of_a), rooms[0], of_a, members, (first_row, rows), (row_block, blocks))
        self.columns = self._side(
            (b, panels_of_b), rooms[1], of_b, members, (first_column, columns), (column_block, panels)
        )
        self.first_row = e.op(f"add nuw nsw i64 {e.op(f'mul nuw nsw i64 {members[1]}, {of_a[0]}')}, {first_row}")
        self.line = e.op(f"mul nuw nsw i64 {of_b[0]}, {FLOAT.bytes}")
        c = e.element(c, "i8", e.op(f"mul nuw nsw i64 {self.first_row}, {self.line}"))
        self.c = e.element(c, FLOAT.memory, first_column)

    def _side(self, places: tuple, room: str, told: list[str], members: tuple, part: tuple, block: tuple) -> _Side:
        """The lines of an operand: of the member of the part for its panels, of all members for where it lies."""
        e, (_, by_line, by_term, *by_member) = self.e, told
        lies = member_of(e, places[0], members[1], by_member)
        lies = e.element(lies, "i8", e.op(f"mul nsw i64 {part[0]}, {by_line}"))
        before = e.op(f"mul i64 {e.op(f'mul i64 {members[0]}, {room}')}, {self.panel}")
        low = e.op(f"mul nuw nsw i64 {block[0]}, {block[1]}")
        all_panels = e.op(f"udiv i64 {e.op(f'add nuw nsw i64 {part[1]}, {SIDE - 1}')}, {SIDE}")
        high = e.least(e.op(f"add nuw nsw i64 {low}, {block[1]}"), all_panels)
        return _Side(lies, e.element(places[1], "i8", before), by_line, by_term, part[1], low, high)

    def block(self, multiply: str, look: str, step: str, some: str, i: str, j: str) -> None:
        """Multiplies so many steps of a panel of rows and one of columns; the last ones, and looks through it then."""
        e, sides = self.e, (self.rows, self.columns)
        firsts = [e.op(f"mul nuw nsw i64 {x}, {SIDE}") for x in (i, j)]
        there = [e.least(e.op(f"sub nsw i64 {side.extent}, {first}"), SIDE) for side, first in zip(sides, firsts)]
        panels = [
            e.element(side.panels, "i8", e.op(f"mul nuw nsw i64 {k}, {self.panel}")) for side, k in zip(sides, (i, j))
        ]
        c = e.element(self.c, "i8", e.op(f"mul nuw nsw i64 {firsts[0]}, {self.line}"))
        c = e.element(c, FLOAT.memory, firsts[1])
        before = e.op(f"mul nuw nsw i64 {step}, {STEP}")
        places = ", ".join(f"ptr {x}" for x in (*(e.element(panel, "i8", before) for panel in panels), c))
        adds = e.op(f"icmp ne i64 {e.op(f'or i64 {step}, {self.first_term}')}, 0")
        given = f"i64 {some}, i64 {self.line}, i64 {there[1]}, i64 {there[0]}, i1 {adds}"
        e.do(f"call void @{multiply}({places}, {given})")
        later = e.op(f"add nuw nsw i64 {step}, {some}")
        with when(e, e.op(f"and i1 {self.ends}, {e.op(f'icmp eq i64 {later}, {self.turns.steps}')}")):
            at_sizes = e.op(f"sub nsw i64 {self.panel}, {8 * SIDE}")
            sizes = [e.element(panel, "i8", at_sizes) for panel in panels]
            lines = [
                e.element(side.lies, "i8", e.op(f"mul nsw i64 {first}, {side.by_line}"))
                for side, first in zip(sides, firsts)
            ]
            steps = [by for side in sides for by in (side.by_line, side.by_term)]
            places = ", ".join(f"ptr {x}" for x in (*sizes, *lines, c))
            numbers = ", ".join(f"i64 {x}" for x in (self.terms, *steps, self.line, *there))
            e.do(f"call void @{look}({places}, {numbers})")

    def follow(self, after: launches.Kernel) -> None:
        """Calls what follows for the rows of the task, when all their terms are added up."""
        e, own = self.e, self.own if after.sizes else self.own[:-1]
        bounds = [
            e.op(f"add nuw nsw i64 {self.first_row}, {e.least(e.op(f'mul i64 {x}, {SIDE}'), self.rows.extent)}")
            for x in (self.rows.low, self.rows.high)
        ]
        with when(e, self.ends):
            launches.on_rows(e, f"@{after.name}", list(own), *bounds)


def _text(multiply: str, look: str, after: launches.Kernel | None, pointers: int) -> str:
    """The function of task %k: some steps at a time, of these some panels of columns, and of these rows by rows."""
    task = _Task(pointers)
    e, columns = task.e, task.columns
    with amx.tiles(e):
        step, by_steps = e.begin_loop(0, task.turns.steps, task.turns.at_a_time)
        some = e.least(task.turns.at_a_time, e.op(f"sub nsw i64 {task.turns.steps}, {step}"))
        group, by_groups = e.begin_loop(columns.low, columns.high, task.turns.at_once)
        end = e.least(e.op(f"add nuw nsw i64 {group}, {task.turns.at_once}"), columns.high)
        i, by_rows = e.begin_loop(task.rows.low, task.rows.high)
        j, by_columns = e.begin_loop(group, end)
        task.block(multiply, look, step, some, i, j)
        for opened in (by_columns, by_rows, by_groups, by_steps):
            e.end_loop(opened)
    if after is not None:
        task.follow(after)
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])
