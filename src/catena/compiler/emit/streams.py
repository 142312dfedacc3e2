"""Stores that go past the caches, of loops that write more than stays there: no line is read before it is written."""

from __future__ import annotations

from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import Type, vector

LEAST = 16  # bytes that an instruction writes so
FENCE = "  call void @llvm.x86.sse.sfence()"  # after which other threads see what was written so


def store(e: Emitter, past_caches: bool, t: Type, x: str, pointer: str, width: int, stride: int, mask) -> None:
    """Writes a register value; `past_caches` where it is aligned, as the instruction for that wants it."""
    size = t.bytes * width
    if not past_caches or mask is not None or stride != 1 or size < LEAST or size & (size - 1):
        e.store(t, x, pointer, width, stride, mask)
        return
    raw, v = e.narrow(x, t, width), vector(t.memory, width)
    beside = e.op(f"and i64 {e.op(f'ptrtoint ptr {pointer} to i64')}, {size - 1}")
    past, through, done = e.label(), e.label(), e.label()
    e.branch(e.op(f"icmp eq i64 {beside}, 0"), past, through)
    e.start(past)
    e.do(f"store {v} {raw}, ptr {pointer}, align {size}, !nontemporal !{{i32 1}}")
    e.jump(done)
    e.start(through)
    e.do(f"store {v} {raw}, ptr {pointer}, align {t.bytes}")
    e.jump(done)
    e.start(done)
