"""Products of float32 by tiles of bfloat16 (AMX): each number is the sum of three of those, whose tiles multiply at
sixteen times the rate of floats; six of the nine products of parts are added up, and the others are less than what
rounding to float32 leaves. The steps, their plan, and for which products they take less time than tiles of floats.

Both operands are split into panels before (see `emit.split_packing`), from where they lie: their terms, or what is
beside these, have to lie side by side, else they are copied so that they do. Operands that do not change in the loop
around are split before it.

The method is that of the `BF16_BF16_F32_X6` algorithm of `DotAlgorithmPreset`: Henry, Tang, Heinecke, "Leveraging the
bfloat16 artificial intelligence datatype for higher-precision computations", ARITH 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from catena.compiler.graph.region import Value
from catena.compiler.graph.types import NAMES
from catena.compiler.machine import Machine
from catena.compiler.plan import amx, product_kinds, tiled, views
from catena.compiler.plan.amx import SIDE, Members
from catena.compiler.plan.copies import copied
from catena.compiler.plan.fuse import Step as FusedStep
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import Buffer, Step
from catena.compiler.plan.steps import Product
from catena.core.named import NamedTuple

PARTS = 3  # that a number is the sum of
TERMS = 32  # of a step: of a tile
HALF = SIDE // 2  # rows or columns of a tile
TILE = HALF * 64  # bytes
STEP = PARTS * 2 * TILE  # bytes of a panel
SIZES = 2 * 4 * SIDE  # bytes behind its steps: the least and greatest sizes of each row or column
AT_A_TIME = 32  # steps, of which a task multiplies all its blocks before the next ones: panels of them stay near

LEAST_SIDE = 64  # rows, columns and terms
LEAST = 1 << 22  # multiplications
WORTHWHILE = 240  # harmonic mean of rows and columns: with fewer, splitting takes what multiplying gains

TASK = 1 << 23  # multiplications that make a task: some 40 us
MOST_TASKS = 64
BLOCKS = 16  # of rows of a task, at most
PANELS = 4  # of columns at least, or half of all: for each, blocks of rows come from a far cache again
SPLIT_AT_A_TIME = 4  # panels of an operand that a task splits, where a line of memory holds parts of several
SPLIT = 1 << 14  # elements that a task splits, about
MOST_BYTES = 1 << 24  # of an operand's panels: of larger ones some are made and multiplied at a time


class Lines(NamedTuple):
    """An operand as it lies; steps are elements of it, from a row or column to the next, and from term to term."""

    members: int
    side: int  # rows of a left operand, columns of a right one
    terms: int
    by_member: Members
    by_side: int
    by_term: int
    is_left: bool

    @property
    def steps(self) -> int:
        return -(-self.terms // TERMS)

    @property
    def panels(self) -> int:
        """Of a member."""
        return -(-self.side // SIDE)

    @property
    def panel(self) -> int:
        """Bytes of a panel."""
        return self.steps * STEP + SIZES

    @property
    def bytes(self) -> int:
        """Of all panels."""
        return self.members * self.panels * self.panel

    def some(self, members: int, side: int, terms: int) -> Lines:
        """So many of them."""
        return self._replace(members=members, side=side, terms=terms)

    @property
    def has_terms_side_by_side(self) -> bool:
        return self.by_term == 1

    @property
    def is_turned(self) -> bool:
        """Whether numbers lie along a line that tiles have across lines: terms in tiles of a left operand's rows."""
        return self.is_left != self.has_terms_side_by_side

    @property
    def each(self) -> int:
        """Panels that a task splits."""
        if self.has_terms_side_by_side:
            return max(min(SPLIT // (SIDE * self.terms), SPLIT_AT_A_TIME), 1)
        return SPLIT_AT_A_TIME


class Part(NamedTuple):
    """Members, rows, columns and terms that are multiplied at a time."""

    members: int
    rows: int
    columns: int
    terms: int

    @property
    def left(self) -> tuple[int, int, int]:
        """Of the left operand."""
        return self.members, self.rows, self.terms

    @property
    def right(self) -> tuple[int, int, int]:
        return self.members, self.columns, self.terms

    @property
    def of_operands(self) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return self.left, self.right


class Tasks(NamedTuple):
    """How a part is shared out."""

    row_blocks: int  # tasks of a member down its rows
    blocks: int  # of `SIDE` rows of a task
    column_blocks: int
    panels: int  # of a task


class Plan(NamedTuple):
    """C[member, row, column], row major, is A times B, part by part."""

    a: Lines
    b: Lines
    part: Part
    has_whole_rows: bool  # whether tasks do

    @property
    def products(self) -> int:
        return self.a.members * self.a.side * self.b.side * self.a.terms

    def tasks(self, part: Part) -> Tasks:
        """The tasks of a part, or of a smaller one that is left, by sizes alone."""
        down, across = -(-part.rows // SIDE), -(-part.columns // SIDE)
        wanted = -(-max(_wanted(math.prod(part)), 1) // part.members)
        blocks = min(BLOCKS, down)
        if self.has_whole_rows:
            blocks = min(blocks, max(1, down // wanted))
        row_blocks = -(-down // blocks)
        most = 1 if self.has_whole_rows else min(across, -(-wanted // row_blocks))
        panels = max(-(-across // most), min(PANELS, -(-across // 2)))
        return Tasks(row_blocks, blocks, -(-across // panels), panels)


@dataclass(eq=False)
class Splitting(Step):
    """Splits the numbers of an operand into panels, with zeros beyond the last term and row or column."""

    lines: Lines
    source: Buffer
    target: Buffer
    name: ClassVar[str] = "split"

    def reads(self):
        return [self.source]

    def writes(self):
        return [self.target]

    def detail(self):
        x = self.lines
        side = "rows" if x.is_left else "columns"
        sizes = f"{f'batch {x.members}, ' if x.members > 1 else ''}terms {x.terms}, {side} {x.side}"
        return f"float32 {sizes}; three bfloat16 each, panels of {SIDE}"


class Operand(NamedTuple):
    """An operand where it lies, how, and its panels, which the product itself `splits` it to, part by part, if that was
    not done before a loop around; and which memory is for this product alone.
    """

    lies: Buffer
    lines: Lines
    panels: Buffer
    splits: bool
    own: tuple[Buffer, ...]


@dataclass(eq=False)
class SplitProduct(Product):
    """A product by parts. A and B where they lie are also for the blocks whose numbers are very large or small."""

    plan: Plan
    a: Operand
    b: Operand
    name: ClassVar[str] = "split product"

    def factors(self):
        return [self.a.lies, self.b.lies, *(x.panels for x in (self.a, self.b) if not x.splits)]

    def panels(self):
        return [x.panels for x in (self.a, self.b) if x.splits]

    def multiplications(self):
        return self.plan.products

    def form(self):
        a, b = self.plan.a, self.plan.b
        sizes = f"{f'batch {a.members}, ' if a.members > 1 else ''}rows {a.side}, columns {b.side}, terms {a.terms}"
        return f"float32 {sizes}; by parts of bfloat16, blocks {SIDE} x {SIDE}"


def _wanted(products: int) -> int:
    return min(MOST_TASKS, products // TASK)


def is_split(v: Value, machine: Machine) -> bool:
    """Whether a product is by parts: where the user has said that it may be, and by its sizes."""
    if (
        v.form != "dot"
        or not v.params.by_parts
        or not NAMES[v.dtype] == NAMES[v.args[0].dtype] == NAMES[v.args[1].dtype] == "float32"
    ):
        return False
    if "bfloat16" not in machine.multiplied_in_tiles:
        return False
    _, m, n, terms = product_kinds.sizes(v)
    if min(m, n, terms) < LEAST_SIDE or m * n * terms < LEAST:
        return False
    return 2 * m * n >= WORTHWHILE * (m + n)


def multiply(p: Planner, frame: Frame, step: FusedStep) -> None:
    """The step of a product by parts, and those before it."""
    v = step.own_node
    (lhs, rhs), (lc, rc, lb, rb) = v.args, v.params.numbers
    part = _part(*product_kinds.sizes(v))
    a = _operand(p, frame, lhs, (lb, amx.others(lhs, lc, lb), lc), True, part.left)
    b = _operand(p, frame, rhs, (rb, amx.others(rhs, rc, rb), rc), False, part.right)
    plan = Plan(a.lines, b.lines, part, True)
    tiled.count(p, plan.products, (lhs, rhs, v))
    after, in_place = tiled.epilogue(p, frame, step, _has_rows_enough(plan, p.machine))
    plan = plan._replace(has_whole_rows=after is not None)
    of_after = {} if after is None else p.operands(frame, after)
    c = p.address(frame, v)
    frame.steps.append(SplitProduct(plan, a, b, c=c, after=after, in_place=in_place, operands=of_after))
    p.free_here(frame, [*a.own, *b.own])
    tiled.follow(p, frame, step, after, in_place)


def _operand(
    p: Planner, frame: Frame, x: Value, dims, is_left: bool, part: tuple[int, int, int], anew: bool = False
) -> Operand:
    """An operand, whose dimensions are members, rows or columns, and terms, where it lies, or as a copy, with memory
    for the panels of a part; split before the loop, in memory that is there `anew`, where it does not change in one.
    """
    outside, shape = frame.outside, tuple(math.prod(x.shape[d] for d in group) for group in dims)
    if part == shape and outside is not None and views.is_fixed(outside, x):
        with p.before(outside):
            made = _operand(p, outside.frame, views.fixed(outside, x), dims, is_left, part, anew=True)
            if made.splits:
                outside.frame.steps.append(Splitting(made.lines, made.lies, made.panels))
            outside.made.extend(made.own)
        return made._replace(splits=False, own=())
    found, own = views.lies(frame, x), []
    lines = None if found is None else _as_it_lies(x, found.strides, shape, dims, is_left)
    if found is not None and lines is not None:
        lies = views.address(p, frame, found)
    else:
        members, side, terms = shape
        lies = copied(p, frame, amx.moved(frame, x, [d for group in dims for d in group], shape), anew)
        lines = Lines(members, side, terms, Members(members, 0, side * terms), terms, 1, is_left)
        own.append(lies)
    size = lines.some(*part).bytes
    own.append(p.allocate_anew(size) if anew else p.allocate(size))
    return Operand(lies, lines, own[-1], True, tuple(own))


def _as_it_lies(x: Value, steps: list[int], shape: tuple, dims, is_left: bool) -> Lines | None:
    """How an operand lies whose terms, or rows or columns, are side by side."""
    by_member, by_side, by_term = amx.member_steps(x, steps, dims[0]), *(views.group(x, steps, g) for g in dims[1:])
    if by_member is None or by_side is None or by_term is None or 1 not in (by_side, by_term):
        return None
    members, side, terms = shape
    return Lines(members, side, terms, by_member, by_side, by_term, is_left)


def _part(members: int, rows: int, columns: int, terms: int) -> Part:
    """What is multiplied at a time, so that no operand's panels are too much memory: all; else some members, or of one
    some rows, columns and terms.
    """
    most = max(_bytes(rows, terms), _bytes(columns, terms))
    if members * most <= MOST_BYTES:
        return Part(members, rows, columns, terms)
    if most <= MOST_BYTES:
        return Part(MOST_BYTES // most, rows, columns, terms)
    terms = min(terms, AT_A_TIME * TERMS)
    some = MOST_BYTES // _bytes(BLOCKS * SIDE, terms) * BLOCKS * SIDE
    return Part(1, min(rows, some), min(columns, some), terms)


def _bytes(side: int, terms: int) -> int:
    """Of the panels of so many rows or columns."""
    return Lines(1, side, terms, amx.ALONE, 1, 1, True).bytes


def _has_rows_enough(plan: Plan, machine: Machine) -> bool:
    """Whether tasks of whole rows are enough, and there are whole rows."""
    part = plan.part
    wanted = min(_wanted(plan.products), machine.sharing.row_tasks)
    return part.columns == plan.b.side and part.members * plan.tasks(part).row_blocks >= wanted
