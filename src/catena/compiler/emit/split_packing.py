"""Splitting of operands of products by parts, by a plan of `plan.split_products`: each float32 becomes the sum of three
bfloat16, which lie in tiles.

A float has 24 bits, a bfloat16 has 8: the first part is the number rounded to such, the second one what is left,
rounded likewise, and the third all that is left then. Rounded is by adding half of the last place to the bits and
clearing those below, and what is left is a difference without an error.

A panel is 32 rows of A or columns of B; of each step of 32 terms it has six tiles: for each part, of which the first
come first, one of 16 rows or columns and one of the others. Where a tile wants two terms side by side, these are a term
and the one 16 behind it, of A and B alike: two vectors become one by a shift and an "or". Behind the steps stand, for
each row or column, the least size of its numbers but zeros, less one, and the greatest one, as bits of floats.

A tile is split from 32 vectors of 16 numbers, in two blocks: vector i of one and of the other make its line i. They are
read from where the operand lies if its lines are whole and lie as those of tiles do; else they are brought together
first, with zeros where nothing is, and turned where numbers lie along a line that tiles have across lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from catena.compiler.emit import parallel
from catena.compiler.emit.amx import lanes_of
from catena.compiler.emit.amx_packing import member_of
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.plan.amx import SIDE
from catena.compiler.plan.split_products import HALF, PARTS, SPLIT_AT_A_TIME, STEP, TERMS, TILE, Lines, Splitting
from catena.core.named import NamedTuple

LINE = 64  # bytes of a vector, and of a line of a tile
WORDS, FLOATS = f"<{HALF} x i32>", f"<{HALF} x float>"
SIZE = 0x7FFFFFFF  # a float's bits but the sign
ROUNDING, KEPT = 0x8000, -0x10000  # half of a bfloat16's last place, and the bits that it keeps
SCRATCH = 2 * HALF * LINE
SIZES_OF_PANEL = 2 * SIDE * LINE  # bytes of the least sizes and of the greatest ones, a vector for each line
NUMBERS = 15


def split(w, step: Splitting) -> None:
    """Writes the splitting of a whole operand, in tasks."""
    x = step.lines
    begin = w.e.slot("[3 x i64]", 8)
    w.e.do(f"store [3 x i64] zeroinitializer, ptr {begin}, align 8")
    split_part(w, x, [w.pointer(step.source), w.pointer(step.target), begin], x, x)


def split_part(w, x: Lines, pointers: list[str], part: Lines, room: Lines) -> None:
    """Writes the splitting of a `part` of an operand, in tasks: the `pointers` are to it, to its panels, where there is
    `room` for a part of full size, and to what tells its first member, row or column, and term.
    """
    line, block = (x.by_side, 1) if x.has_terms_side_by_side else (x.by_term, x.by_term)
    tasks = -(-part.panels // part.each)
    numbers = [tasks, part.each, part.panels, room.panels, part.steps, room.panel, x.side, x.terms, 4 * line,
               4 * block * TERMS // 2, 4 * x.by_side, 4 * x.by_term, *x.by_member.bytes(4)]  # fmt: skip
    bring, tile = w.function(bringing(x.is_turned)), w.function(splitting(x.is_left))
    body = _task(bring, tile, x.is_left, x.is_turned)
    parallel.through_pool(w, body, pointers, part.members * tasks, numbers, part.members * part.side * part.terms)


@lru_cache(maxsize=16)
def _task(bring: str, tile: str, is_left: bool, is_turned: bool) -> str:
    """The function of task %k, which splits some panels of a member: step by step, and of each all panels, since a line
    of memory may hold parts of several.
    """
    task = _Task(is_left, is_turned)
    e = task.e
    with task.each_panel() as (q, sizes):
        for begins in each_way(e, e.op(f"icmp eq i64 {task.first_term}, 0")):
            _begin_sizes(e, sizes, None if begins else task.place_of_sizes(q), is_left)
    step, opened = e.begin_loop(0, task.steps)
    with task.each_panel() as (q, sizes):
        half, by_halves = e.begin_loop(0, 2)
        task.half_of_a_step(bring, tile, step, q, half, sizes)
        e.end_loop(by_halves)
    e.end_loop(opened)
    with task.each_panel() as (q, sizes):
        _end_sizes(e, sizes, task.place_of_sizes(q), is_left)
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])


class _Lies(NamedTuple):
    """An operand's part where it lies: its first number, bytes from line to line, to the second block of a tile, and to
    the next row or column and term; and how many of these are left from there.
    """

    first: str
    line: str
    block: str
    by_side: str
    by_term: str
    side: str
    terms: str


class _Task:
    """What a task is told, and where its panels are."""

    def __init__(self, is_left: bool, is_turned: bool):
        self.e, self.is_turned = Emitter(), is_turned
        self.lines_are_terms = is_left == is_turned
        e = self.e
        source, target, begin = (parallel.load_pointer(e, i) for i in range(3))
        member_before, first, self.first_term = (
            e.op(f"load i64, ptr {e.element(begin, 'i64', i)}, align 8") for i in range(3)
        )
        _, numbers = parallel.load_numbers(e, 3, NUMBERS)
        tasks, each, panels, room, self.steps, self.panel, side, terms, *numbers = numbers
        line, block, by_side, by_term, *by_member = numbers
        member, task = divide(e, "%k", tasks)
        self.low = e.op(f"mul nuw nsw i64 {task}, {each}")
        self.high = e.least(e.op(f"add nuw nsw i64 {self.low}, {each}"), panels)
        left = (e.op(f"sub nsw i64 {n}, {at}") for n, at in ((side, first), (terms, self.first_term)))
        self.target = e.element(target, "i8", e.op(f"mul i64 {e.op(f'mul i64 {member}, {room}')}, {self.panel}"))
        source = member_of(e, source, e.op(f"add nuw nsw i64 {member_before}, {member}"), by_member)
        for at, by in ((first, by_side), (self.first_term, by_term)):
            source = e.element(source, "i8", e.op(f"mul nsw i64 {at}, {by}"))
        self.lies = _Lies(source, line, block, by_side, by_term, *left)
        self.scratch = e.slot(f"[{SCRATCH} x i8]", LINE)
        self.sizes = e.slot(f"[{SPLIT_AT_A_TIME * SIZES_OF_PANEL} x i8]", LINE)

    @contextmanager
    def each_panel(self) -> Iterator[tuple[str, str]]:
        """What is written inside runs for each panel of the task; gives which, and where its sizes are noted."""
        e = self.e
        q, opened = e.begin_loop(self.low, self.high)
        at = e.op(f"mul nuw nsw i64 {e.op(f'sub nsw i64 {q}, {self.low}')}, {SIZES_OF_PANEL}")
        yield q, e.element(self.sizes, "i8", at)
        e.end_loop(opened)

    def place_of_sizes(self, q: str) -> str:
        """Where the sizes of a panel are told, in the end."""
        e = self.e
        end = e.op(f"mul i64 {e.op(f'add nuw nsw i64 {q}, 1')}, {self.panel}")
        return e.element(self.target, "i8", e.op(f"sub i64 {end}, {8 * SIDE}"))

    def half_of_a_step(self, bring: str, tile: str, step: str, q: str, half: str, sizes: str) -> None:
        """Splits the terms of a step of 16 rows or columns: from where they lie, if all are there and not turned."""
        e, lies = self.e, self.lies
        before, first = e.op(f"mul nuw nsw i64 {step}, {TERMS}"), e.op(f"mul nuw nsw i64 {q}, {SIDE}")
        first = e.op(f"add nuw nsw i64 {first}, {e.op(f'mul nuw nsw i64 {half}, {HALF}')}")
        terms, side = (e.op(f"sub nsw i64 {n}, {at}") for n, at in ((lies.terms, before), (lies.side, first)))
        of = e.element(lies.first, "i8", e.op(f"mul nsw i64 {before}, {lies.by_term}"))
        of = e.element(of, "i8", e.op(f"mul nsw i64 {first}, {lies.by_side}"))
        to = e.element(self.target, "i8", e.op(f"mul nuw nsw i64 {q}, {self.panel}"))
        to = e.element(to, "i8", e.op(f"mul nuw nsw i64 {step}, {STEP}"))
        to = e.element(to, "i8", e.op(f"mul nuw nsw i64 {half}, {TILE}"))
        sizes = e.element(sizes, "i8", e.op(f"mul nuw nsw i64 {half}, {SIZES_OF_PANEL // 2}"))
        later = e.op(f"mul nsw i64 {lies.by_term}, {TERMS}")
        fills = [e.op(f"icmp sge i64 {n}, {whole}") for n, whole in ((side, HALF), (terms, TERMS))]
        lies_so = "false" if self.is_turned else e.op(f"and i1 {fills[0]}, {fills[1]}")
        kind = str(self.lines_are_terms).lower()
        for here in each_way(e, lies_so):
            line, block = (lies.line, lies.block) if here else (LINE, HALF * LINE)
            if not here:
                given = f"i64 {lies.line}, i64 {lies.block}, i64 {terms}, i64 {side}, i1 {kind}"
                e.do(f"call void @{bring}(ptr {of}, {given}, ptr {self.scratch})")
            place = of if here else self.scratch
            e.do(f"call void @{tile}(ptr {place}, i64 {line}, i64 {block}, i64 {later}, ptr {to}, ptr {sizes})")


def _begin_sizes(e: Emitter, sizes: str, told: str | None, is_left: bool) -> None:
    """The least and the greatest sizes of a panel's rows or columns: of no numbers, or what is `told` of the terms
    before these. Halves have both, one behind the other.
    """
    for half in range(2):
        for kind in range(2):
            of = e.element(sizes, "i8", half * SIZES_OF_PANEL // 2 + kind * SIZES_OF_PANEL // 4)
            place = None if told is None else e.element(told, "i32", kind * SIDE + half * HALF)
            if place is not None and not is_left:
                e.do(f"store {WORDS} {e.op(f'load {WORDS}, ptr {place}, align 4')}, ptr {of}, align {LINE}")
                continue
            row, opened = e.begin_loop(0, HALF)
            one = f"{kind - 1}" if place is None else e.op(f"load i32, ptr {e.element(place, 'i32', row)}, align 4")
            e.do(f"store {WORDS} {e.splat(one, 'i32', HALF)}, ptr {e.element(of, WORDS, row)}, align {LINE}")
            e.end_loop(opened)


def _end_sizes(e: Emitter, sizes: str, to: str, is_left: bool) -> None:
    """The sizes of a panel, of which vectors have one for each lane, or all are of one row."""
    for kind, least in enumerate((True, False)):
        for half in range(2):
            of = e.element(sizes, "i8", half * SIZES_OF_PANEL // 2 + kind * SIZES_OF_PANEL // 4)
            place = e.element(to, "i32", kind * SIDE + half * HALF)
            if not is_left:
                e.do(f"store {WORDS} {e.op(f'load {WORDS}, ptr {of}, align {LINE}')}, ptr {place}, align 4")
                continue
            row, opened = e.begin_loop(0, HALF)
            x = e.op(f"load {WORDS}, ptr {e.element(of, WORDS, row)}, align {LINE}")
            one = e.op(f"call i32 @llvm.vector.reduce.u{'min' if least else 'max'}.v{HALF}i32({WORDS} {x})")
            e.do(f"store i32 {one}, ptr {e.element(place, 'i32', row)}, align 4")
            e.end_loop(opened)


@lru_cache(maxsize=2)
def bringing(turned: bool) -> str:
    """Parameters and body of what brings two blocks of 16 lines to memory of its own, turned or as they are, with zeros
    beyond the terms and rows or columns that are left: lines lie `line` bytes apart, blocks `block`.
    """
    e = Emitter()
    k, by_blocks = e.begin_loop(0, 2)
    terms = e.op(f"sub nsw i64 %terms, {e.op(f'mul nuw nsw i64 {k}, {TERMS // 2}')}")
    lines, lanes = (
        e.op(f"select i1 %lines_are_terms, i64 {x}, i64 {y}") for x, y in ((terms, "%side"), ("%side", terms))
    )
    lanes = e.most(e.least(lanes, HALF), 0)
    some = lanes_of(e, lanes, HALF)
    place, to, rows = e.element("%of", "i8", e.op(f"mul nsw i64 {k}, %block")), "%to", []
    to = e.element(to, "i8", e.op(f"mul nuw nsw i64 {k}, {HALF * LINE}"))
    for i in range(HALF):
        is_there = e.op(f"icmp sgt i64 {lines}, {i}")
        mask = e.op(f"select i1 {is_there}, <{HALF} x i1> {some}, <{HALF} x i1> zeroinitializer")
        masked = f"ptr {place}, i32 4, <{HALF} x i1> {mask}, {WORDS} zeroinitializer"
        rows.append(e.op(f"call {WORDS} @llvm.masked.load.v{HALF}i32.p0({masked})"))
        place = e.element(place, "i8", "%line")
    for i, row in enumerate(e.transposed(rows, "i32") if turned else rows):
        e.do(f"store {WORDS} {row}, ptr {e.element(to, 'i8', i * LINE)}, align {LINE}")
    e.end_loop(by_blocks)
    given = "ptr readonly %of, i64 %line, i64 %block, i64 %terms, i64 %side, i1 %lines_are_terms, ptr %to"
    return "\n".join([f"({given}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


@lru_cache(maxsize=2)
def splitting(is_left: bool) -> str:
    """Parameters and body of what splits two blocks of 16 vectors into three tiles, and notes the sizes of numbers, of
    each vector or, of a right operand, of each lane; those of the step behind, `later` bytes further, are asked for.
    """
    e = Emitter()
    i, opened = e.begin_loop(0, HALF)
    first = e.element("%of", "i8", e.op(f"mul nsw i64 {i}, %line"))
    places = [first, e.element(first, "i8", "%block")]
    numbers = [e.op(f"load {WORDS}, ptr {place}, align 4") for place in places]
    for place in places:
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(place, 'i8', '%later')}, i32 0, i32 3, i32 1)")
    least = e.element("%sizes", WORDS, i) if is_left else "%sizes"
    _note_sizes(e, numbers, least, e.element(least, "i8", SIZES_OF_PANEL // 4))
    to = e.element("%to", "i8", e.op(f"mul nuw nsw i64 {i}, {LINE}"))
    for part, (x, y) in enumerate(zip(*(_parts(e, x) for x in numbers))):
        word = e.op(f"or {WORDS} {e.op(f'lshr {WORDS} {x}, splat (i32 16)')}, {y}")
        e.do(f"store {WORDS} {word}, ptr {e.element(to, 'i8', 2 * TILE * part)}, align {LINE}")
    e.end_loop(opened)
    given = "ptr readonly %of, i64 %line, i64 %block, i64 %later, ptr %to, ptr %sizes"
    return "\n".join([f"({given}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _note_sizes(e: Emitter, numbers: list[str], least: str, greatest: str) -> None:
    sizes = [e.op(f"and {WORDS} {x}, splat (i32 {SIZE})") for x in numbers]
    below = [e.op(f"sub {WORDS} {x}, splat (i32 1)") for x in sizes]  # of a zero the greatest number
    for place, found, kind in ((least, below, "umin"), (greatest, sizes, "umax")):
        x = e.op(f"load {WORDS}, ptr {place}, align {LINE}")
        for other in found:
            x = e.op(f"call {WORDS} @llvm.{kind}.v{HALF}i32({WORDS} {x}, {WORDS} {other})")
        e.do(f"store {WORDS} {x}, ptr {place}, align {LINE}")


def _parts(e: Emitter, x: str) -> list[str]:
    """The parts of numbers, as bits of floats whose lower halves are zero."""
    parts = []
    for _ in range(PARTS - 1):
        up = e.op(f"add {WORDS} {x}, splat (i32 {ROUNDING})")
        parts.append(e.op(f"and {WORDS} {up}, splat (i32 {KEPT})"))
        whole, part = (e.op(f"bitcast {WORDS} {bits} to {FLOATS}") for bits in (x, parts[-1]))
        x = e.op(f"bitcast {FLOATS} {e.op(f'fsub {FLOATS} {whole}, {part}')} to {WORDS}")
    return [*parts, e.op(f"and {WORDS} {x}, splat (i32 {KEPT})")]  # of subnormal numbers more is left
