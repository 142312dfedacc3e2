"""The inner loop of a NumPy ufunc: an elementwise graph over a block of elements, run along strided operands.

NumPy gives the addresses of the operands, their number of elements and the distances between these. Operands that lie
side by side are read where they are; others, and the rest of an array that is no whole block, go through a block on
the stack, which one number fills once. So one code computes each element, wherever it lies and however many there are.
"""

from __future__ import annotations

from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.module import Module
from catena.compiler.emit.program import ProgramWriter
from catena.compiler.graph.region import Value
from catena.compiler.plan.program import Program


def write_loop(w: ProgramWriter, program: Program, operands: list[Value]) -> Module | None:
    """The module with the function ``loop`` for a program over a block of elements, given the values that are its
    arguments and results; None where it needs more than memory on the stack: tables, routines, large temporaries.
    """
    w.tells = True  # of one size
    w.sites = None  # no checks of bounds: blocks are as long as the nests that run over them
    e, inputs, block = w.e, len(program.inputs), operands[-1].size
    sizes = [v.dtype.itemsize for v in operands]
    total = e.op("load i64, ptr %dims")
    bases = [e.op(f"load ptr, ptr {e.element('%args', 'ptr', i)}") for i in range(len(operands))]
    steps = [e.op(f"load i64, ptr {e.element('%steps', 'i64', i)}") for i in range(len(operands))]
    dense = [e.op(f"icmp eq i64 {step}, {size}") for step, size in zip(steps, sizes)]
    staged = [_cleared_block(e, block * size) for size in sizes]
    with when(e, e.op(f"icmp sgt i64 {total}, 0")):
        spread = [_spread(e, sizes[i], block, (bases[i], steps[i]), staged[i]) for i in range(inputs)]
        start, opened = e.begin_loop(0, total, block)
        count = e.least(e.op(f"sub i64 {total}, {start}"), block)
        whole = e.op(f"icmp eq i64 {count}, {block}")
        there = []
        for i, buffer in enumerate([*program.inputs, *program.outputs]):
            first = e.op(f"getelementptr i8, ptr {bases[i]}, i64 {e.op(f'mul i64 {start}, {steps[i]}')}")
            apart = e.op(f"xor i1 {e.op(f'and i1 {whole}, {dense[i]}')}, true")
            there.append((first, apart))
            if i < inputs:
                needed = e.op(f"and i1 {apart}, {e.op(f'xor i1 {spread[i]}, true')}")
                _copy_when(e, needed, sizes[i], count, (first, steps[i]), (staged[i], sizes[i]))
            w.place(buffer, e.op(f"select i1 {apart}, ptr {staged[i]}, ptr {first}"))
        w.block(program.body)
        for i in range(inputs, len(operands)):
            first, apart = there[i]
            _copy_when(e, apart, sizes[i], count, (staged[i], sizes[i]), (first, steps[i]))
        e.end_loop(opened)
    if not w.texts.is_plain or program.arena_bytes or w.uses or w.asks:
        return None
    lines = ["define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %data) {", "entry:", *e.slots, *e.lines]
    return w.finish("\n".join([*lines, "  ret void", "}"]))


def _cleared_block(e: Emitter, size: int) -> str:
    """A block on the stack. Its elements beyond the last operand's are computed with, so they are numbers."""
    block = e.slot(f"[{size} x i8]", 64)
    e.do(f"store <{size} x i8> zeroinitializer, ptr {block}, align 64")
    return block


def _spread(e: Emitter, size: int, block: int, source: tuple, staged: str) -> str:
    """Whether an operand is one number, of which a block is then filled once."""
    is_one = e.op(f"icmp eq i64 {source[1]}, 0")
    _copy_when(e, is_one, size, block, source, (staged, size))
    return is_one


def _copy_when(e: Emitter, condition: str, size: int, count: str | int, source: tuple, target: tuple) -> None:
    """Copies ``count`` elements of ``size`` bytes, each side an address and the bytes from one element to the next."""
    with when(e, condition):
        k, opened = e.begin_loop(0, count)
        read, written = (
            e.op(f"getelementptr i8, ptr {address}, i64 {e.op(f'mul i64 {k}, {step}')}")
            for address, step in (source, target)
        )
        x = e.op(f"load i{8 * size}, ptr {read}, align 1")
        e.do(f"store i{8 * size} {x}, ptr {written}, align 1")
        e.end_loop(opened)
