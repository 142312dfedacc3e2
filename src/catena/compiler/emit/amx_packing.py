"""Packing of the right operands of products of bfloat16 and int8 (see `emit.narrow_products`), by a plan of `plan.amx`:
in tasks of its own, or by the tasks of the product, each of the panels that it multiplies.

A panel is 32 columns. Of each, the terms that an instruction adds up at once, four bytes of them, lie side by side: of
16 columns, what lies in as many lines of B is brought together, and one permutation puts it in order. Lines are read
from end to end, some panels of them at a time, and are asked for some terms before: from line to line, processors do
not do so. Where terms lie side by side in B, squares of words are transposed.
"""

from __future__ import annotations

from functools import lru_cache

from catena.compiler.emit import parallel
from catena.compiler.emit.amx import lanes_of
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter, divide
from catena.compiler.graph.types import Type
from catena.compiler.plan.amx import BYTES, GROUP, SIDE, AmxPacking, Panels

HALF = 16  # columns of a register
AT_A_TIME = 8  # panels: all of them would be written to the same few places of a cache
AHEAD = 8  # terms


def pack(w, step: AmxPacking) -> None:
    """Writes the packing of an operand, in tasks."""
    p, size = step.plan, step.plan.type.bytes
    numbers = [p.parts, p.each, p.groups, p.terms, p.columns, p.panels, p.panel, size * p.by_term,
               *p.by_member.bytes(size)]  # fmt: skip
    pointers = [w.pointer(buffer) for buffer in (step.source, step.target)]
    elements = p.members * p.groups * p.panels * SIDE
    parallel.through_pool(w, _task(w.function(panels(p.type))), pointers, p.members * p.parts, numbers, elements)


def _task(function: str) -> str:
    """The function of task %k, which packs some groups of terms of a member, of all its columns."""
    e = Emitter()
    b, to = parallel.load_pointer(e, 0), parallel.load_pointer(e, 1)
    _, numbers = parallel.load_numbers(e, 2, 11)
    parts, each, groups, terms, columns, all_panels, panel, by_term, *by_member = numbers
    member = e.op(f"udiv i64 %k, {parts}")
    before = e.op(f"mul i64 {member}, {parts}")
    low = e.op(f"mul i64 {e.op(f'sub i64 %k, {before}')}, {each}")
    high = e.least(e.op(f"add nuw nsw i64 {low}, {each}"), groups)
    b = member_of(e, b, member, by_member)
    to = e.element(to, "i8", e.op(f"mul i64 {e.op(f'mul i64 {member}, {all_panels}')}, {panel}"))
    given = (low, high, 0, all_panels, terms, columns, panel, by_term)
    e.do(f"call void @{function}(ptr {b}, ptr {to}, {', '.join(f'i64 {x}' for x in given)})")
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def member_of(e: Emitter, operand: str, member: str, told: list[str]) -> str:
    """Where a member of an operand is, by the numbers of `Members.bytes`."""
    inner, by_outer, by_inner = told
    outer, at = divide(e, member, inner)
    operand = e.element(operand, "i8", e.op(f"mul nsw i64 {outer}, {by_outer}"))
    return e.element(operand, "i8", e.op(f"mul nsw i64 {at}, {by_inner}"))


def text_of(p: Panels) -> str:
    """The function that packs such an operand."""
    return turned_panels() if p.has_terms_side_by_side else panels(p.type)


PARAMETERS = (
    "ptr readonly %b, ptr %to, i64 %low, i64 %high, i64 %first, i64 %end, i64 %terms, i64 %columns, i64 %panel, i64 %by"
)


@lru_cache(maxsize=2)
def panels(t: Type) -> str:
    """Parameters and body of what packs groups of terms `low` to `high` of panels `first` to `end`, from a member at
    `b`, whose terms lie `by` bytes apart, to panels of so many bytes at `to`.
    """
    e = Emitter()
    last = e.op("sub nsw i64 %terms, 1")
    first, by_panels = e.begin_loop("%first", "%end", AT_A_TIME)
    end = e.least(e.op(f"add nuw nsw i64 {first}, {AT_A_TIME}"), "%end")
    group, by_groups = e.begin_loop("%low", "%high")
    lines = [_line(e, "%b", e.op(f"add i64 {e.op(f'mul i64 {group}, {GROUP // t.bytes}')}, {i}"), last, "%by")
             for i in range(GROUP // t.bytes)]  # fmt: skip
    j, opened = e.begin_loop(first, end)
    column = e.op(f"mul nuw nsw i64 {j}, {SIDE}")
    there = e.op(f"sub nsw i64 %columns, {column}")
    place = e.op(f"add i64 {e.op(f'mul i64 {j}, %panel')}, {e.op(f'mul i64 {group}, {GROUP * SIDE}')}")
    _group(e, t, lines, column, e.least(there, SIDE), e.element("%to", "i8", place))
    e.end_loop(opened)
    e.end_loop(by_groups)
    e.end_loop(by_panels)
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


@lru_cache(maxsize=1)
def turned_panels() -> str:
    """The same of whole steps of terms and whole panels, where terms lie side by side, and columns `by` bytes apart."""
    e, words = Emitter(), f"<{HALF} x i32>"
    j, by_panels = e.begin_loop("%first", "%end")
    half, by_halves = e.begin_loop(0, SIDE, HALF)
    column = e.op(f"add nuw nsw i64 {e.op(f'mul nuw nsw i64 {j}, {SIDE}')}, {half}")
    lines = [e.element("%b", "i8", e.op(f"mul nsw i64 {column}, %by"))]
    for _ in range(HALF - 1):
        lines.append(e.element(lines[-1], "i8", "%by"))
    to = e.element("%to", "i8", e.op(f"mul i64 {j}, %panel"))
    to = e.element(to, "i8", e.op(f"mul nuw nsw i64 {half}, {GROUP}"))
    group, by_groups = e.begin_loop("%low", "%high", HALF)
    at = e.op(f"mul nuw nsw i64 {group}, {GROUP}")
    rows = [e.op(f"load {words}, ptr {e.element(line, 'i8', at)}, align 1") for line in lines]
    to = e.element(to, "i8", e.op(f"mul nuw nsw i64 {group}, {GROUP * SIDE}"))
    for row in e.transposed(rows, "i32"):
        e.do(f"store {words} {row}, ptr {to}, align {BYTES}")
        to = e.element(to, "i8", GROUP * SIDE)
    e.end_loop(by_groups)
    e.end_loop(by_halves)
    e.end_loop(by_panels)
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _line(e: Emitter, b: str, term: str, last: str, by_term: str) -> tuple[str, str, str]:
    """Where a term's columns are, and those of one that comes later; and whether there is such a term: in the place of
    those behind the last one, that is read, and not used.
    """
    place = e.element(b, "i8", e.op(f"mul nsw i64 {e.least(term, last)}, {by_term}"))
    later = e.element(place, "i8", e.op(f"mul nsw i64 {by_term}, {AHEAD}"))
    return place, later, e.op(f"icmp ule i64 {term}, {last}")


def _group(e: Emitter, t: Type, lines: list[tuple[str, str, str]], column: str, there: str, to: str) -> None:
    """Packs a group of terms of a panel, so many columns of which are there; where all are, without masks, which take
    longer than all else.
    """
    is_whole = e.op(f"icmp eq i64 {there}, {SIDE}")
    for _, _, is_there in lines[1:]:  # the first one is
        is_whole = e.op(f"and i1 {is_whole}, {is_there}")
    for whole in each_way(e, is_whole):
        for half in range(SIDE // HALF):
            some = None if whole else lanes_of(e, there, HALF, half * HALF)
            _half(
                e, t, lines, e.op(f"add nuw nsw i64 {column}, {half * HALF}"), some, e.element(to, "i8", half * BYTES)
            )
    for _, later, _ in lines:
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(later, t.memory, column)}, i32 0, i32 3, i32 1)")


def _half(e: Emitter, t: Type, lines: list[tuple[str, str, str]], column: str, some: str | None, to: str) -> None:
    """Packs a group of terms of a register of columns, `some` of them, or all that are there."""
    each, v, found, size = GROUP // t.bytes, f"<{HALF} x {t.memory}>", [], HALF
    for line, _, is_there in lines:
        place = e.element(line, t.memory, column)
        if some is None:
            found.append(e.op(f"load {v}, ptr {place}, align {t.bytes}"))
            continue
        mask = e.op(f"select i1 {is_there}, <{HALF} x i1> {some}, <{HALF} x i1> zeroinitializer")
        found.append(
            e.op(
                f"call {v} @llvm.masked.load.v{HALF}{t.memory}.p0(ptr {place}, i32 {t.bytes}, "
                f"<{HALF} x i1> {mask}, {v} zeroinitializer)"
            )
        )
    while len(found) > 1:
        found = [_joined(e, t, size, x, y) for x, y in zip(found[::2], found[1::2])]
        size *= 2
    order = ", ".join(f"i32 {i % each * HALF + i // each}" for i in range(each * HALF))
    v = f"<{size} x {t.memory}>"
    x = e.op(f"shufflevector {v} {found[0]}, {v} poison, <{size} x i32> <{order}>")
    e.do(f"store {v} {x}, ptr {to}, align {BYTES}")


def _joined(e: Emitter, t: Type, size: int, x: str, y: str) -> str:
    order = ", ".join(f"i32 {i}" for i in range(2 * size))
    v = f"<{size} x {t.memory}>"
    return e.op(f"shufflevector {v} {x}, {v} {y}, <{2 * size} x i32> <{order}>")
