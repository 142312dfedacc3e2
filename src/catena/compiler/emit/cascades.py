"""Long sums of floats in blocks of blocks (see `plan.cascades`): how the sums of a block are carried."""

from __future__ import annotations

from catena.compiler.plan.cascades import BLOCK


def count_block(e, counter: str, accumulators, levels: int) -> None:
    """After a block: its sums go to the second level, and full blocks of a level to the next."""
    for a in accumulators:
        a.carry(0)
    if levels == 1:
        return
    n = e.op(f"add nuw nsw i64 {e.op(f'load i64, ptr {counter}')}, 1")
    e.do(f"store i64 {n}, ptr {counter}")
    done = e.label()
    for k in range(1, levels):
        full = e.op(f"icmp eq i64 {e.op(f'and i64 {n}, {BLOCK**k - 1}')}, 0")
        carry = e.label()
        e.branch(full, carry, done)
        e.start(carry)
        for a in accumulators:
            a.carry(k)
    e.jump(done)
    e.start(done)
