"""Nests that have a second text for when the processor has met subnormal numbers (see `plan.careful`).

Whether it has is noted for each task of a nest, in memory of the program's own: what one iteration, or call, met is
told to the next one. Where some have in a row, as many are done with care, and the quicker way goes on: of few such
numbers it is the plain one. Calls on several threads note in one place, and read what others noted: no bits hang on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.compiler.emit import subnormal_products
from catena.compiler.emit.branches import each_way, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.careful import MOST_TASKS

OFTEN = 4  # times in a row that a task has met subnormal numbers, from which on it is tried with care
LAST = 2 * OFTEN - 1  # of the runs that are compared
CAREFUL, PLAIN = LAST + 1, LAST + 2  # what is noted of a task that goes on so
PARTS = 3  # of what is noted: how often, or how it goes on, and the least cycles of plain runs and of careful ones
BYTES = 4 * PARTS  # of a task


def memory(w) -> str:
    """Where a nest's tasks note what they have met, nothing yet."""
    return w.constant(np.zeros(MOST_TASKS * PARTS, np.int32))


def text(pointers: int, tables: Sequence[bool], asks: bool, numbers: int) -> str:
    """The function that calls one nest or the other, which nests of as many arguments share: of what is noted, where
    both functions are, their pointers, the table of each (if it has one), where they ask whether to go on, and numbers.
    """
    e, given = Emitter(), [f"ptr %p{i}" for i in range(pointers)]
    each = [[f"ptr %sizes{k}"] if has else [] for k, has in enumerate(tables)]
    others = [*(["ptr %ask"] if asks else []), *(f"i64 %n{i}" for i in range(numbers))]
    before, start = e.op("load i32, ptr %noted"), e.slot("i64", 8)
    plain, careful = (e.op(f"load ptr, ptr {e.element('%functions', 'ptr', k)}") for k in range(2))
    subnormal_products.forget(e)
    has_before = e.op(f"icmp ne i32 {before}, 0")
    with when(e, has_before):
        e.do(f"store i64 {_cycles(e)}, ptr {start}")
    for is_careful in each_way(e, _is_within(e, before, OFTEN, CAREFUL)):
        name, first = (careful, [f"ptr {plain}"]) if is_careful else (plain, [])
        e.do(f"call void {name}({', '.join([*first, *given, *each[is_careful], *others])})")
    met = subnormal_products.has_noted(e)
    e.do(f"store i32 {e.op(f'zext i1 {met} to i32')}, ptr %noted")
    with when(e, e.op(f"and i1 {met}, {has_before}")):
        e.do(f"store i32 {_then(e, before, e.op(f'load i64, ptr {start}'))}, ptr %noted")
    head = f"({', '.join(['ptr %noted', 'ptr %functions', *given, *each[0], *each[1], *others])}) nounwind {{"
    return "\n".join([head, "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _then(e: Emitter, before: str, start: str) -> str:
    """What is noted after a run that has met subnormal numbers again. A plain one that takes longer than careful ones
    did is compared anew: there may be more such numbers now.
    """
    took = e.op(f"trunc i64 {e.op(f'sub i64 {_cycles(e)}, {start}')} to i32")
    is_careful = _is_within(e, before, OFTEN, CAREFUL)
    at = e.op(f"select i1 {is_careful}, ptr {e.element('%noted', 'i32', 2)}, ptr {e.element('%noted', 'i32', 1)}")
    is_first = e.op(f"or i1 {e.op(f'icmp eq i32 {before}, 1')}, {e.op(f'icmp eq i32 {before}, {OFTEN}')}")
    known = e.op(f"select i1 {is_first}, i32 {took}, i32 {e.op(f'load i32, ptr {at}')}")
    e.do(f"store i32 {e.op(f'call i32 @llvm.umin.i32(i32 {known}, i32 {took})')}, ptr {at}")
    plain, careful = (e.op(f"load i32, ptr {e.element('%noted', 'i32', k)}") for k in (1, 2))
    quicker = e.op(f"select i1 {e.op(f'icmp ult i32 {careful}, {plain}')}, i32 {CAREFUL}, i32 {PLAIN}")
    again = e.op(f"select i1 {e.op(f'icmp ult i32 {careful}, {took}')}, i32 1, i32 {PLAIN}")
    then = e.op(f"call i32 @llvm.umin.i32(i32 {e.op(f'add i32 {before}, 1')}, i32 {CAREFUL})")
    for state, value in ((LAST, quicker), (PLAIN, again)):
        then = e.op(f"select i1 {e.op(f'icmp eq i32 {before}, {state}')}, i32 {value}, i32 {then}")
    return then


def _cycles(e: Emitter) -> str:
    return e.op("call i64 @llvm.readcyclecounter()")


def _is_within(e: Emitter, state: str, first: int, last: int) -> str:
    return e.op(f"icmp ule i32 {e.op(f'sub i32 {state}, {first}')}, {last - first}")
