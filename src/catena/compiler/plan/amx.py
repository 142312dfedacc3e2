"""Products of bfloat16 and int8 as they are, by tiles: the step, its plan, and how operands are laid out for it.

The left operand is read where it lies if its terms lie side by side, in whole steps of a tile; else it is copied to
such a layout, with zeros behind the terms, by a loop nest like any other. The right one is packed: columns in panels,
of which each group of terms lies side by side (see `emit.amx_packing`); where its columns do not lie side by side, it
is copied so that they do first. Both before the loop around where they do not change in it. Where a task of the product
has all rows of its panels, it packs these itself, some at a time: then they are in a near cache when they are read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.forms import Constant, Pad, Transpose
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import NAMES, TYPES, Type
from catena.compiler.kernels import loops
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine
from catena.compiler.plan import nests, product_kinds, tiled, views
from catena.compiler.plan.copies import beside, copied
from catena.compiler.plan.fuse import Step as FusedStep
from catena.compiler.plan.launches import launch
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import Buffer, Step
from catena.compiler.plan.steps import Product
from catena.compiler.plan.strided import Lies
from catena.core.named import NamedTuple

SIDE = 32  # rows and columns of a block of C: two tiles by two
BYTES = 64  # of the terms of a row, that one instruction takes
GROUP = 4  # bytes of a column's terms that lie side by side in B
WORD = np.dtype(np.uint32)  # of so many

TASK = 1 << 23  # multiplications that make a task: some 10 us
SHARED = 1 << 24  # from which on threads pay
MOST_TASKS = 64
PANELS = 8  # of a task at least, or half of all: for each, a block of rows is read again
PACKED = 1 << 17  # bytes that a task packs, and of the panels that a task of the product packs at a time
BLOCKS = 8  # of rows, of a task at most
FEW_BLOCKS = 2  # likewise where tasks take whole rows, to be enough


class Members(NamedTuple):
    """Steps of an operand from member to member, along two dimensions at most, of which the second has so many."""

    inner: int
    by_outer: int
    by_inner: int

    def bytes(self, size: int) -> list[int]:
        """The same, steps in bytes."""
        return [self.inner, size * self.by_outer, size * self.by_inner]


ALONE = Members(1, 0, 0)


class Plan(NamedTuple):
    """C[member, row, column], row major, is A times B; steps in A are elements, from a member or row to the next."""

    operands: Type
    type: Type  # of C
    members: int
    rows: int
    columns: int
    terms: int
    by_member: Members
    by_row: int
    row_blocks: int  # tasks of a member down its rows
    blocks: int  # of `SIDE` rows of a task; the last one of a member has the rows that are left, too
    column_blocks: int
    panels: int  # of a task

    @property
    def steps(self) -> int:
        """Instructions along the terms."""
        return -(-self.terms * self.operands.bytes // BYTES)

    @property
    def all_panels(self) -> int:
        return -(-self.columns // SIDE)

    @property
    def panel(self) -> int:
        """Bytes of a panel of B."""
        return self.steps * BYTES * SIDE

    @property
    def tasks(self) -> int:
        return self.members * self.row_blocks * self.column_blocks

    @property
    def products(self) -> int:
        return self.members * self.rows * self.columns * self.terms


class Panels(NamedTuple):
    """B as it lies, columns or terms side by side, and what panels it makes; steps are in elements, to the next one."""

    type: Type
    members: int
    terms: int
    columns: int
    by_member: Members
    by_term: int
    by_column: int = 1

    @property
    def has_terms_side_by_side(self) -> bool:
        """Whether it is packed by words, of terms that lie side by side."""
        return self.by_column != 1

    @property
    def panels(self) -> int:
        """Of a member."""
        return -(-self.columns // SIDE)

    @property
    def groups(self) -> int:
        """Of terms, in whole steps."""
        return -(-self.terms * self.type.bytes // BYTES) * (BYTES // GROUP)

    @property
    def panel(self) -> int:
        """Bytes of a panel."""
        return self.groups * GROUP * SIDE

    @property
    def each(self) -> int:
        """Groups of terms that a task packs, of all columns: lines are read one behind the other."""
        steps = max(PACKED // (self.panels * SIDE * BYTES), 1)
        return min(steps * (BYTES // GROUP), self.groups)

    @property
    def parts(self) -> int:
        """Tasks of a member."""
        return -(-self.groups // self.each)


@dataclass(eq=False)
class AmxPacking(Step):
    """Copies the right operand of products into panels, of which each group of terms lies side by side, with zeros
    beyond the last term and column.
    """

    plan: Panels
    source: Buffer
    target: Buffer
    name: ClassVar[str] = "pack"

    def reads(self):
        return [self.source]

    def writes(self):
        return [self.target]

    def detail(self):
        p = self.plan
        sizes = f"{f'batch {p.members}, ' if p.members > 1 else ''}terms {p.terms}, columns {p.columns}"
        return f"{p.type.name} {sizes}; panels of {SIDE}"


@dataclass(eq=False)
class AmxProduct(Product):
    """A product of narrow numbers."""

    plan: Plan
    a: Buffer
    b: Buffer
    packs: Panels | None  # how B lies, where tasks pack it; else it is packed
    past_caches: bool  # whether C goes to memory so, where its blocks are whole lines
    name: ClassVar[str] = "amx"

    def factors(self):
        return [self.a, self.b]

    def multiplications(self):
        return self.plan.products

    def multiplied(self):
        return self.plan.operands.name

    def form(self):
        p = self.plan
        sizes = f"{f'batch {p.members}, ' if p.members > 1 else ''}rows {p.rows}, columns {p.columns}, terms {p.terms}"
        packs = ", which tasks pack" if self.packs else ""
        return f"{p.operands.name} {sizes}; blocks {SIDE} x {SIDE}{packs} -> {p.type.name}"


def multiply(p: Planner, frame: Frame, step: FusedStep) -> None:
    """The steps of a product of narrow numbers as they are."""
    v = step.node
    assert v is not None
    (lhs, rhs), (lc, rc, lb, rb) = v.args, v.params.numbers
    lfree, rfree = others(lhs, lc, lb), others(rhs, rc, rb)
    members, rows, columns, terms = product_kinds.sizes(v)
    types = TYPES[NAMES[lhs.dtype]], TYPES[NAMES[v.dtype]]
    form = Plan(*types, members, rows, columns, terms, ALONE, 0, 1, 1, 1, 1)
    by_rows, by_columns = (_tasks(form, p.machine, whole_rows) for whole_rows in (True, False))
    enough = by_rows.tasks >= min(_wanted(form), p.machine.sharing.row_tasks) or form.products < SHARED
    likely = by_rows if enough and step.epilogue is not None else by_columns
    a, by_member, by_row, is_copy = _left(p, frame, lhs, (lb, lfree, lc), rows)
    b, packs = _right(p, frame, rhs, (rb, rc, rfree), (members, terms, columns), _packs(likely, p.machine))
    tiled.count(p, form.products, (lhs, rhs, v))
    after, in_place = tiled.epilogue(p, frame, step, enough)
    plan = (by_columns if after is None else by_rows)._replace(by_member=by_member, by_row=by_row)
    past = after is None and not p.depth and v.nbytes >= p.machine.memory.streamed
    of_after = {} if after is None else p.operands(frame, after)
    c = p.address(frame, v)
    frame.steps.append(AmxProduct(plan, a, b, packs, past, c=c, after=after, in_place=in_place, operands=of_after))
    p.free_here(frame, [buffer for buffer, is_own in ((a, is_copy), (b, packs is None)) if is_own])
    tiled.follow(p, frame, step, after, in_place)


def others(x: Value, *taken) -> list[int]:
    return [d for d in range(x.ndim) if not any(d in dims for dims in taken)]


# ---- operands ------------------------------------------------------------------------------------------------


def _left(p: Planner, frame: Frame, x: Value, dims, rows: int) -> tuple[Buffer, Members, int, bool]:
    """Where the left operand is, its elements from a member and from a row to the next, and whether it is a copy."""
    members, _, terms = (math.prod(x.shape[d] for d in group) for group in dims)
    found, each = views.lies(frame, x), BYTES // x.dtype.itemsize
    if found is not None and rows >= SIDE and terms % each == 0:
        by_member, (by_row, by_term) = (
            member_steps(x, found.strides, dims[0]),
            (views.group(x, found.strides, group) for group in dims[1:]),
        )
        if by_member is not None and by_row is not None and by_term == 1:
            return views.address(p, frame, found), by_member, by_row, False
    room = [members, max(rows, SIDE), -(-terms // each) * each]
    order = [d for group in dims for d in group]
    by_member = Members(members, 0, room[1] * room[2])
    return _in_room(p, frame, x, order, (members, rows, terms), room), by_member, room[2], True


def member_steps(x: Value, steps: list[int], dims) -> Members | None:
    """The steps from member to member; None where these are along more dimensions."""
    dims = [d for d in dims if x.shape[d] != 1]
    for cut in range(len(dims)):
        by_outer, by_inner = (views.group(x, steps, part) for part in (dims[:cut], dims[cut:]))
        if by_outer is not None and by_inner is not None:
            return Members(math.prod(x.shape[d] for d in dims[cut:]), by_outer, by_inner)
    return None if dims else ALONE


def _in_room(p: Planner, frame: Frame, x: Value, order, shape: tuple, room: list[int], anew: bool = False) -> Buffer:
    """A copy of `x`, its dimensions in another order and as another shape, with zeros behind it; before the loop, in
    memory that is there `anew`, where it does not change in one.
    """
    outside = frame.outside
    if outside is not None and views.is_fixed(outside, x):
        with p.before(outside):
            made = _in_room(p, outside.frame, views.fixed(outside, x), order, shape, room, True)
        outside.made.append(made)
        return made
    return copied(p, frame, _padded(frame, moved(frame, x, order, shape), room), anew)


def _right(
    p: Planner, frame: Frame, x: Value, dims, shape: tuple[int, int, int], in_tasks: bool, anew: bool = False
) -> tuple[Buffer, Panels | None]:
    """The right operand, whose dimensions are members, terms and columns, packed as (members, panels, groups of terms,
    columns of a panel, a group): from where it lies, or from a copy whose columns lie side by side; or where it lies,
    and how, if tasks may pack it.
    """
    outside = frame.outside
    if outside is not None and views.is_fixed(outside, x):
        with p.before(outside):
            made, _ = _right(p, outside.frame, views.fixed(outside, x), dims, shape, False, True)
        outside.made.append(made)
        return made, None
    form, packed = Panels(TYPES[NAMES[x.dtype]], *shape, ALONE, 0), None
    found, size = views.lies(frame, x), form.members * form.panels * form.panel
    lies = None if found is None else _as_it_lies(form, x, found, dims)
    if found is not None and lies is not None and lies.has_terms_side_by_side and not in_tasks:
        made = p.allocate_anew(size) if anew else p.allocate(size)
        launch(p, frame, _words(frame, found, made, lies))
        return made, None
    if found is not None and lies is not None and in_tasks:
        return views.address(p, frame, found), lies
    if found is not None and lies is not None:
        source, form = views.address(p, frame, found), lies
    else:
        source = packed = copied(p, frame, moved(frame, x, [d for group in dims for d in group], shape))
        form = form._replace(by_member=Members(form.members, 0, form.terms * form.columns), by_term=form.columns)
    made = p.allocate_anew(size) if anew else p.allocate(size)
    frame.steps.append(AmxPacking(form, source, made))
    if packed is not None:
        p.free(packed)
    return made, None


def _packs(plan: Plan, machine: Machine) -> bool:
    """Whether tasks pack the panels that they multiply: each is packed once, and is not much."""
    return plan.operands.name in machine.multiplied_in_tiles and plan.row_blocks == 1 and plan.panel <= PACKED


def _as_it_lies(form: Panels, x: Value, view: Lies, dims) -> Panels | None:
    """How an operand lies that is packed from where it is: columns side by side, or terms in whole steps and panels, of
    which each group is a word.
    """
    by_member, (by_term, by_column) = (
        member_steps(x, view.strides, dims[0]),
        (views.group(x, view.strides, group) for group in dims[1:]),
    )
    if by_member is None or by_term is None or by_column is None:
        return None
    form = form._replace(by_member=by_member, by_term=by_term, by_column=1 if form.columns == 1 else by_column)
    return form if form.by_column == 1 or _is_of_words(form, view.first) else None


def _is_of_words(form: Panels, first: int) -> bool:
    size, (_, *by_member) = form.type.bytes, form.by_member
    whole = form.terms * size % BYTES == 0 and form.columns % SIDE == 0
    return form.by_term == 1 and whole and all(step * size % GROUP == 0 for step in (first, *by_member, form.by_column))


def _words(frame: Frame, view: Lies, made: Buffer, form: Panels) -> Nest:
    """What packs such an operand of words, a view of a stored value: a transposition."""
    x = view.base
    each, (inner, *by) = GROUP // form.type.bytes, form.by_member
    members = [(n, step) for n, step in zip((form.members // inner, inner), by) if n > 1] or [(1, 0)]
    body = frame.nests.body((*(n for n, _ in members), form.panels, form.groups, SIDE))
    *outer, panel, group, column = index = nests.dims(len(members) + 3)
    steps = [(d, step // each) for d, (_, step) in zip(outer, members)]
    steps += [(column, form.by_column // each), (panel, SIDE * form.by_column // each), (group, 1)]
    first, *by_dims = affine.combination(steps)
    place = (first + view.first // each, *by_dims)
    word = body.stmt("load", WORD.name, (), (frame.fused.root(x), WORD.name, place))
    panels = beside(frame, "beside", body.extents, (x,), dtype=WORD)
    frame.blocks[panels.number] = made
    return loops.from_body(body, (), nests.store_value(body, panels, index, word))


def moved(frame: Frame, x: Value, order, shape: tuple) -> Value:
    """`x` with its dimensions in another order, and as another shape."""
    x = beside(frame, "transpose", [x.shape[d] for d in order], (x,), Transpose(tuple(order)))
    return beside(frame, "reshape", shape, (x,))


def _padded(frame: Frame, x: Value, room: list[int]) -> Value:
    """`x` with zeros behind it, as far as there is room."""
    if list(x.shape) == room:
        return x
    zero = beside(frame, "constant", (), (), Constant(np.zeros((), x.dtype)), x.dtype)
    return beside(frame, "pad", room, (x, zero), Pad(tuple((0, n - m, 0) for n, m in zip(room, x.shape))))


# ---- tasks ---------------------------------------------------------------------------------------------------


def _wanted(plan: Plan) -> int:
    return min(MOST_TASKS, plan.products // TASK) if plan.products >= SHARED else 1


def _tasks(plan: Plan, machine: Machine, by_rows: bool) -> Plan:
    """The plan with its tasks, by sizes alone: blocks of rows of which A stays in the second cache, and of columns
    where these are not enough and tasks need not have whole rows.
    """
    whole = max(plan.rows // SIDE, 1)
    near = machine.memory.second_cache // (SIDE * plan.steps * BYTES)
    each = max(1, min(BLOCKS, near, whole))
    wanted = -(-_wanted(plan) // plan.members)
    if by_rows and -(-whole // each) < wanted:
        each = min(each, max(FEW_BLOCKS, whole // wanted))
    down = -(-whole // each)
    across = 1 if by_rows else min(plan.all_panels, -(-wanted // down))
    panels = max(-(-plan.all_panels // across), min(PANELS, -(-plan.all_panels // 2)))
    return plan._replace(row_blocks=down, blocks=each, column_blocks=-(-plan.all_panels // panels), panels=panels)
