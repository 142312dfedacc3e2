"""Nests of loops that have a second text for when the processor has met subnormal numbers (see `plan.careful`).

Whether it has is noted for each task of a nest, in memory of the program's own: what one iteration met is told to the
next one.
"""

from __future__ import annotations

from collections.abc import Sequence

from catena.compiler.emit import subnormal_products
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter

MOST_TASKS = 256  # of a nest: each has a byte, which counts the iterations in a row that have met subnormal numbers,
OFTEN = 4  # up to so many, from which on it is done with care


def memory(w) -> str:
    """What a nest's tasks note, which is nothing yet."""
    at = w.e.slot(f"[{MOST_TASKS} x i8]", 64)
    w.e.slots.append(f"  call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {MOST_TASKS}, i1 false)")
    return at


def text(plain: str, careful: str, pointers: int, tables: Sequence[bool], asks: bool, numbers: int) -> str:
    """The function that calls one nest or the other: of what is noted, their pointers, the table of each (if it has
    one), where they ask whether to go on, and their numbers.
    """
    e, given = Emitter(), [f"ptr %p{i}" for i in range(pointers)]
    each = [[f"ptr %sizes{k}"] if has else [] for k, has in enumerate(tables)]
    others = [*(["ptr %ask"] if asks else []), *(f"i64 %n{i}" for i in range(numbers))]
    before = e.op("load i8, ptr %noted")
    subnormal_products.forget(e)
    for is_careful in each_way(e, e.op(f"icmp uge i8 {before}, {OFTEN}")):
        name, first = (careful, [f"ptr @{plain}"]) if is_careful else (plain, [])
        e.do(f"call void @{name}({', '.join([*first, *given, *each[is_careful], *others])}) noinline")
    more = e.op(f"call i8 @llvm.umin.i8(i8 {OFTEN}, i8 {e.op(f'add i8 {before}, 1')})")
    now = e.op(f"select i1 {subnormal_products.has_noted(e)}, i8 {more}, i8 0")
    e.do(f"store i8 {now}, ptr %noted")
    head = f"({', '.join(['ptr %noted', *given, *each[0], *each[1], *others])}) nounwind {{"
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])
