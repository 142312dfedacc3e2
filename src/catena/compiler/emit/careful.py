"""Nests that have a second text for when the processor has met subnormal numbers (see `plan.careful`).

Whether it has is noted for each task of a nest, in memory of the program's own: what one iteration, or call, met is
told to the next one. Calls on several threads note in one place, and read what others noted: no bits hang on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.compiler.emit import subnormal_products
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.careful import MOST_TASKS

OFTEN = 4  # times in a row that a task has met subnormal numbers, from which on it is done with care


def memory(w) -> str:
    """Where a nest's tasks note how often in a row they have: a byte for each, nothing yet."""
    return w.constant(np.zeros(MOST_TASKS, np.uint8))


def text(pointers: int, tables: Sequence[bool], asks: bool, numbers: int) -> str:
    """The function that calls one nest or the other, which nests of as many arguments share: of what is noted, where
    both functions are, their pointers, the table of each (if it has one), where they ask whether to go on, and numbers.
    """
    e, given = Emitter(), [f"ptr %p{i}" for i in range(pointers)]
    each = [[f"ptr %sizes{k}"] if has else [] for k, has in enumerate(tables)]
    others = [*(["ptr %ask"] if asks else []), *(f"i64 %n{i}" for i in range(numbers))]
    before = e.op("load i8, ptr %noted")
    plain, careful = (e.op(f"load ptr, ptr {e.element('%functions', 'ptr', k)}") for k in range(2))
    subnormal_products.forget(e)
    for is_careful in each_way(e, e.op(f"icmp uge i8 {before}, {OFTEN}")):
        name, first = (careful, [f"ptr {plain}"]) if is_careful else (plain, [])
        e.do(f"call void {name}({', '.join([*first, *given, *each[is_careful], *others])})")
    more = e.op(f"call i8 @llvm.umin.i8(i8 {OFTEN}, i8 {e.op(f'add i8 {before}, 1')})")
    now = e.op(f"select i1 {subnormal_products.has_noted(e)}, i8 {more}, i8 0")
    e.do(f"store i8 {now}, ptr %noted")
    head = f"({', '.join(['ptr %noted', 'ptr %functions', *given, *each[0], *each[1], *others])}) nounwind {{"
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])
