"""Programs that take subnormal numbers as zeros (the flag `jax_flush_subnormals`): the thread does while it runs them,
and is again as it was at the end, and in what they call of others, Python's callbacks among it. Threads of the pool
compute as the thread that asks them to (`runtime.threads`).
"""

from __future__ import annotations

from contextlib import contextmanager

from catena.core.context import context
from catena.runtime import float_control

KEPT = "%control"  # where the entry keeps the thread's register, and behind it what it is meanwhile


def around_program(w) -> tuple[list[str], list[str]]:
    """The lines of an entry before its body and behind it."""
    if not context.flush_subnormals:
        return [], []
    w.uses.add("control")
    w.helpers["flush_subnormals"] = ("text", float_control.text())
    w.e.slots.append(f"  {KEPT} = alloca [2 x i64], align 8")
    return [f"  call void @flush_subnormals(ptr {KEPT})"], [f"  call void @set_control(ptr {KEPT})"]


@contextmanager
def as_before(w):
    """What is written meanwhile runs as the caller of the program computes."""
    if "control" not in w.uses:
        yield
        return
    w.e.do(f"call void @set_control(ptr {KEPT})")
    yield
    w.e.do(f"call void @set_control(ptr {w.e.element(KEPT, 'i64', 1)})")
