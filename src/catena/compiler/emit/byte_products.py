"""Blocks of products of int8 by instructions that multiply four bytes of a lane and add them up (AVX-512 VNNI), for
processors without tiles of their own; `emit.narrow_products` writes the tasks around them.

One instruction does 64 multiplications, four times what a vector of floats does. Its bytes on one side have no sign: of
B, 128 is added to each, which flips one bit, and 128 times the sum of a row of A is taken off in the beginning. Sums
are int32, which wrap around as they do everywhere, so they are exact.
"""

from __future__ import annotations

from functools import lru_cache

from catena.compiler.emit.amx import LINE, PARAMETERS, lanes_of
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import TYPES, vector
from catena.compiler.plan.amx import BYTES, GROUP, SIDE

ROWS = 8  # of C at once: with two vectors of columns, as many sums as registers hold beside what they are made of
LANES = BYTES // GROUP
VECTORS = SIDE // LANES
WORDS = vector("i32", LANES)
SIGNS = f"splat (i32 {0x80808080 - (1 << 32)})"  # of all bytes
ADD = "llvm.x86.avx512.vpdpbusd.512"
NEEDS = {ADD: f"declare {WORDS} @{ADD}({WORDS}, {WORDS}, {WORDS})"}  # as all versions of LLVM take it


@lru_cache(maxsize=1)
def text() -> str:
    """Parameters and body of a block of C (see `amx.text`), which goes by way of the caches, however large C is."""
    e, t = Emitter(), TYPES["int32"]
    first, opened = e.begin_loop(0, "%rows", ROWS)
    rows = [e.element("%a", "i8", e.op(f"mul nsw i64 {first}, %line"))]
    for _ in range(ROWS - 1):
        rows.append(e.element(rows[-1], "i8", "%line"))
    sums = _products(e, rows, _taken_off(e, rows))
    for i in range(ROWS):
        row = e.op(f"add nuw nsw i64 {first}, {i}")
        is_there = e.op(f"icmp ult i64 {row}, %rows")
        to = e.element("%c", t.memory, e.op(f"mul nuw nsw i64 {row}, %across"))
        for j in range(VECTORS):
            some = lanes_of(e, "%lanes", LANES, j * LANES)
            mask = e.op(f"select i1 {is_there}, <{LANES} x i1> {some}, <{LANES} x i1> zeroinitializer")
            e.store(t, sums[i * VECTORS + j], e.element(to, t.memory, j * LANES), LANES, mask=mask)
    e.end_loop(opened)
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _taken_off(e: Emitter, rows: list[str]) -> list[str]:
    """What the sums of each row begin with: the sum of its bytes, times -128, in all lanes."""
    slots = _slots(e, ["zeroinitializer"] * len(rows))
    step, opened = e.begin_loop(0, "%steps")
    at = e.op(f"mul nuw nsw i64 {step}, {BYTES}")
    for slot, row in zip(slots, rows):
        _add(e, slot, f"splat (i32 {0x01010101})", _load(e, e.element(row, "i8", at)))
    e.end_loop(opened)
    found = []
    for slot in slots:
        sums = e.op(f"load {WORDS}, ptr {slot}")
        total = e.op(f"call i32 @llvm.vector.reduce.add.v{LANES}i32({WORDS} {sums})")
        found.append(e.splat(e.op(f"mul i32 {total}, -128"), "i32", LANES))
    return found


def _products(e: Emitter, rows: list[str], starts: list[str]) -> list[str]:
    """The sums of so many rows by the columns of a block, each row's from where it starts."""
    slots = _slots(e, [start for start in starts for _ in range(VECTORS)])
    k, opened = e.begin_loop(0, e.op(f"mul nuw nsw i64 %steps, {BYTES // GROUP}"))
    line = e.element("%b", "i8", e.op(f"mul nuw nsw i64 {k}, {LINE}"))
    columns = [e.op(f"xor {WORDS} {_load(e, e.element(line, 'i8', j * BYTES))}, {SIGNS}") for j in range(VECTORS)]
    for i, row in enumerate(rows):
        word = e.op(f"load i32, ptr {e.element(row, 'i32', k)}, align 1")
        for slot, column in zip(slots[i * VECTORS :], columns):
            _add(e, slot, column, e.splat(word, "i32", LANES))
    e.end_loop(opened)
    return [e.op(f"load {WORDS}, ptr {slot}") for slot in slots]


def _slots(e: Emitter, starts: list[str]) -> list[str]:
    """A place for each sum, which LLVM keeps in a register."""
    slots = [e.slot(WORDS, BYTES) for _ in starts]
    for slot, start in zip(slots, starts):
        e.do(f"store {WORDS} {start}, ptr {slot}")
    return slots


def _load(e: Emitter, place: str) -> str:
    return e.op(f"load {WORDS}, ptr {place}, align 1")


def _add(e: Emitter, slot: str, unsigned: str, signed: str) -> None:
    """Adds the products of four bytes of each lane to a sum."""
    before = e.op(f"load {WORDS}, ptr {slot}")
    sums = e.call(ADD, WORDS, [(WORDS, x) for x in (before, unsigned, signed)])
    e.do(f"store {WORDS} {sums}, ptr {slot}")
