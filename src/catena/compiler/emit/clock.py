"""A clock around every step: programs that are profiled add up how long each step took and how often it ran."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from catena.compiler.plan.program import Program, Step

TEXT = """
declare i32 @clock_gettime(i32, ptr)
define internal i64 @catena_clock() {{
entry:
  %time = alloca [2 x i64]
  %ignored = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}
"""


def is_available() -> bool:
    """Whether the system has the clock."""
    return hasattr(time, "clock_gettime")


class Clock:
    """What is known of each step, in the order of `Program.steps`: row 0 of `table` nanoseconds, row 1 runs."""

    def __init__(self, program: Program):
        self.steps = list(program.steps())
        self.table = np.zeros((2, max(len(self.steps), 1)), np.int64)
        self._number = {id(step): i for i, (_, step) in enumerate(self.steps)}

    def around(self, w, step: Step, write: Callable) -> None:
        """Writes a step, and the questions before and after it."""
        e, number = w.e, self._number[id(step)]
        w.helpers["catena_clock"] = ("text", TEXT.format(clock=time.CLOCK_MONOTONIC))
        table = w.constant(self.table)
        before = e.op("call i64 @catena_clock()")
        write(w, step)
        took = e.op(f"sub i64 {e.op('call i64 @catena_clock()')}, {before}")
        for row, by in ((0, took), (1, "1")):
            at = e.element(table, "i64", row * self.table.shape[1] + number)
            total = e.op(f"load i64, ptr {at}")
            e.do(f"store i64 {e.op(f'add i64 {total}, {by}')}, ptr {at}")
