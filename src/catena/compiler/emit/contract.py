"""The loops of products and convolutions around the tile function (`tiles`), by a plan of `plan.contraction`.

Source: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (2008).
"""

from __future__ import annotations

import functools
import math

from catena.compiler.emit import launches, parallel, tiles
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.contraction import Plan, Tasks
from catena.compiler.plan.program import Contract


def contract(w, step: Contract) -> None:
    """Writes a product by tiles, and what follows on the rows that a task has computed."""
    p = step.plan
    a, b, c = (w.pointer(buffer) for buffer in (step.a, step.b, step.c))
    if step.rest is None:
        rest = w.e.element(b, p.contraction.type.memory, w.number(p.panels * p.columns))
    else:
        rest = w.pointer(step.rest)
    after = None
    if step.after is not None:
        own = [w.pointer(buffer) for buffer in step.operands.values()]
        name = launches.row_function(w, step.after, list(step.operands), step.contract, in_place=step.in_place)
        after = name, own
    _Loops(w, p, step.tasks, after).write([a, b, rest, c])


NUMBERS = 64  # in a task's table, or twice as many: how many it needs is nothing that the entry's text tells


class _Loops:
    """Writes the function of a task: its table holds `pointers` to A, to B or its panels, to the columns beyond the
    panels, and to C, then those of `after`: a function that the task calls for the range of rows that it has computed.
    """

    def __init__(self, w, p: Plan, tasks: Tasks, after: tuple[str, list[str]] | None):
        self.w, self.plan, self.tasks, self.after = w, p, tasks, after
        self.contraction, self.type = p.contraction, p.contraction.type
        self.e = Emitter()
        self.pointers = 4 + (len(after[1]) if after else 0)
        self.numbers: list[int] = []  # that tasks read from their table, so that other batch sizes share their text

    def write(self, pointers: list[str]) -> None:
        extra = self.after[1] if self.after else []
        body, count = self._task(), self.tasks.count
        self.numbers += [0] * (-len(self.numbers) % NUMBERS)
        parallel.through_pool(self.w, body, [*pointers, *extra], count, self.numbers, self.contraction.products // 8)

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

    # ---- one task ------------------------------------------------------------------------------------------

    def _task(self) -> str:
        e, t = self.e, self.tasks
        a, b, rest, c = (e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}") for i in range(4))
        member, row_block, column_block = "%k", "0", "0"
        if t.column_blocks > 1:
            member, column_block = _divide(e, member, self._number(t.column_blocks))
        if t.row_blocks > 1:
            member, row_block = (
                _divide(e, member, self._number(t.row_blocks)) if self.contraction.batch else ("0", member)
            )
        rows = self._block(row_block, self.plan.units, t.rows, t.row_blocks)
        panels = ("0", str(self.plan.panels))
        if t.column_blocks > 1:
            panels = self._block(column_block, self.plan.panels, t.columns, t.column_blocks)
        last = e.op(f"icmp eq i64 {column_block}, {self._number(t.column_blocks - 1)}") if t.column_blocks > 1 else None
        a, b, rest, c = self._member(member, a, b, rest, c)
        if self.plan.outside is not None:
            self._parts(a, b, rest, c, rows, panels, last)
        else:
            length = self._number(self.plan.inside[-1].extent)
            self._columns(a, b, rest, c, length, "false", rows, panels, last)
        if self.after is not None:
            self._follow(member, *rows)
        return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])

    def _block(self, block: str, extent: int, each: int, blocks: int) -> tuple[str, str]:
        """Where a block of rows or panels begins and ends."""
        e, high = self.e, self._number(extent)
        if blocks == 1:
            return "0", high
        each = self._number(each)
        low = e.op(f"mul nuw nsw i64 {block}, {each}")
        return low, e.op(f"call i64 @llvm.smin.i64(i64 {e.op(f'add nuw nsw i64 {low}, {each}')}, i64 {high})")

    def _follow(self, member: str, low: str, high: str) -> None:
        """The call of what comes after, for the rows of this task."""
        e, (name, pointers) = self.e, self.after
        unit = self.plan.row.extent if self.plan.strips else self.plan.rows
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
            member, at = (None, member) if last else _divide(e, member, self._number(x.extent))
            a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            b = self._moved(b, at, x.b * length * p.panels * p.columns if p.packed else x.b)
            rest = self._moved(rest, at, x.b * length * p.rest if p.packed else x.b)
        return [a, b, rest, c]

    def _parts(self, a, b, rest, c, rows, panels, last) -> None:
        """A part of the terms after the other; all but the first are added to what is there."""
        e, (count, axis, size) = self.e, self.plan.outside
        part, opened = e.begin_loop(0, self._number(count))
        length, at = self._number(self.plan.inside[-1].extent), part
        if size is not None:
            size = self._number(size)
            at = e.op(f"mul nuw nsw i64 {part}, {size}")
            left = e.op(f"sub nuw nsw i64 {self._number(axis.extent)}, {at}")
            length = e.op(f"call i64 @llvm.smin.i64(i64 {left}, i64 {size})")
        adds = e.op(f"icmp ne i64 {part}, 0")
        a, b = self._moved(a, at, axis.a), self._moved(b, at, self._b(axis.b, self.plan.columns))
        rest = self._moved(rest, at, self._b(axis.b, self.plan.rest))
        self._columns(a, b, rest, c, length, adds, rows, panels, last)
        e.end_loop(opened)

    def _b(self, stride: int, columns: int) -> int:
        """A stride of a term axis in B: in panels, the axes' strides count terms."""
        return stride * columns if self.plan.packed else stride

    def _columns(self, a, b, rest, c, length, adds, rows, panels, last) -> None:
        """Panel after panel of columns, then, in the `last` block of them, those beyond."""
        e, p = self.e, self.plan
        if p.panels:
            j, opened = e.begin_loop(*panels)
            at = j
            if p.packed:
                at = e.op(f"mul nuw nsw i64 {j}, {self._number(math.prod(x.extent for x in self.contraction.terms))}")
            b = self._moved(b, at, p.columns)
            self._rows(a, b, self._moved(c, j, p.columns), length, adds, p.columns, *rows)
            e.end_loop(opened)
        if p.rest:
            c = e.element(c, self.type.memory, self._number(p.panels * p.columns))
            beyond = functools.partial(self._rows, a, rest, c, length, adds, p.rest, *rows)
            beyond() if last is None else self._if(last, beyond)

    def _rows(self, a, b, c, length, adds, columns: int, low, high) -> None:
        """Every row from `low` to `high` (see `_units`) of some columns."""
        e, p = self.e, self.plan
        u, opened = e.begin_loop(low, high)
        if self.plan.strips:
            for i, x in enumerate(reversed(self.plan.strips)):
                u, at = (u, u) if i == len(self.plan.strips) - 1 else _divide(e, u, self._number(x.extent))
                a, c = self._moved(a, at, x.a), self._moved(c, at, x.c)
            if self.plan.down:
                t, tiles_opened = e.begin_loop(0, self._number(self.plan.down))
                self._call(self._moved(a, t, p.rows * self.plan.row.a), b, self._moved(c, t, p.rows * self.plan.row.c),
                           length, adds, p.rows, columns)  # fmt: skip
                e.end_loop(tiles_opened)
            if self.plan.left:
                a, c = (
                    e.element(x, self.type.memory, self._number(self.plan.down * p.rows * by))
                    for x, by in ((a, self.plan.row.a), (c, self.plan.row.c))
                )
                self._call(a, b, c, length, adds, self.plan.left, columns)
        else:
            a, c = self._moved(a, u, p.rows * self.plan.row.a), self._moved(c, u, p.rows * self.plan.row.c)
            if not self.plan.left:
                self._call(a, b, c, length, adds, p.rows, columns)
            else:
                short = e.op(f"icmp eq i64 {u}, {self._number(self.plan.down)}")
                self._if(short, lambda: self._call(a, b, c, length, adds, self.plan.left, columns),
                         lambda: self._call(a, b, c, length, adds, p.rows, columns))  # fmt: skip
        e.end_loop(opened)

    def _call(self, a, b, c, length, adds, rows: int, columns: int) -> None:
        *outer, inner = (tiles.Term(x.extent, x.a, self._b(x.b, columns)) for x in self.plan.inside)
        vectors = -(-columns // self.plan.width)
        last = columns - (vectors - 1) * self.plan.width
        told = last if last == self.plan.width or not self.w.machine.masks(self.type.bytes) else tiles.ARGUMENT
        adding = self.plan.outside is not None
        tile = tiles.Tile(self.type, self.plan.width, rows, vectors, told, tuple(outer), adding)
        name, numbers = self.w.function(tiles.text(tile)), (self.plan.row.a, inner.a, inner.b, self.plan.row.c, last)
        given = ", ".join(f"i64 {self._number(n)}" for n in numbers)
        self.e.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c}, i64 {length}, {given}, i1 {adds})")

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
        offset = self.e.op(f"mul nsw i64 {steps}, {self._number(by)}") if by != 1 else steps
        return self.e.element(pointer, self.type.memory, offset)


def _divide(e: Emitter, x: str, n: int | str) -> tuple[str, str]:
    """Quotient and remainder."""
    if n == 1:
        return x, "0"
    quotient = e.op(f"udiv i64 {x}, {n}")
    return quotient, e.op(f"sub i64 {x}, {e.op(f'mul i64 {quotient}, {n}')}")
