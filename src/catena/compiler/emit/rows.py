"""A row group as one function: for each block of rows, every kernel in turn (see `compiler.rows`).

Each nest is a function of the pointers, the indices of the outer row dimensions, and a range of the innermost
one. Private values have a scratch block on the stack; their pointer is moved back by the rows before the
block, so that nests address them as if the whole array were there.
"""

from __future__ import annotations

import math

from catena.compiler import loops
from catena.compiler.affine import coefficient
from catena.compiler.emit import interrupts, parallel, pauses
from catena.compiler.emit.emitter import Emitter
from catena.compiler.loops import Nest
from catena.compiler.rows import RowGroup


def write(w, frame, group: RowGroup, writes: list[int]) -> None:
    """Writes the group's function and its call, through the pool when it pays."""
    for n in writes:
        w.define(frame, frame.fused.region.values[n])
    merge_rows(group)
    for nest in group.nests:
        loops.schedule(nest, w.machine.vector_bytes)
        w.count(nest)
        if w.keep_nests:
            w.shown.append(loops.show(nest))
    buffers = list(dict.fromkeys(b for nest in group.nests for b in nest.buffers() if b not in group.private))
    pointers = [w.buffer(frame, b) for b in buffers]
    extents = [group.nests[0].extents[d] for d in group.nests[0].rows]
    block = min(group.block, extents[-1])
    blocks = math.prod(extents[:-1]) * -(-extents[-1] // block)
    work = sum(parallel.work(nest) for nest in group.nests)
    chunks = min(parallel.chunks(work), blocks) if work > parallel.WORTHWHILE else 1
    each = -(-blocks // chunks)
    stops = [pauses.plan(nest, block / math.prod(extents)) for nest in group.nests]
    ask = interrupts.table(w) if any(stops) else None
    body = _body(w, group, stops, buffers, len(extents), block)
    pointers = [*pointers, *([ask] if ask else [])]
    parallel.through_pool(w, body, pointers, -(-blocks // each), [each, blocks, *extents], work, ask)


def merge_rows(group: RowGroup) -> None:
    """Makes row dimensions one where every access of every nest crosses them contiguously."""
    dims = [d for d in range(group.rows) if group.nests[0].extents[d] != 1]
    kept = dims[-1:]
    for d, e in reversed(list(zip(dims, dims[1:]))):
        if all(_crosses(nest, d, e) for nest in group.nests):
            for nest in group.nests:
                loops.merge_into(nest, d, e)
        else:
            kept.insert(0, d)
    for nest in group.nests:
        nest.rows = tuple(kept)


def _crosses(nest: Nest, d: int, e: int) -> bool:
    return all(coefficient(a, d) == coefficient(a, e) * nest.extents[e] for a in nest.offsets())


def _body(w, group: RowGroup, stops: list, buffers: list[int], dims: int, block: int) -> str:
    """The text of the function that runs chunk %k. Its table holds the blocks in each chunk, all blocks, and the
    extents of the row dimensions, so that any number of rows shares it. `stops` are the pauses of the nests.
    """
    e, asks = Emitter(), any(stops)
    pointers = {b: parallel.load_pointer(e, i) for i, b in enumerate(buffers)}
    ask = parallel.load_pointer(e, len(buffers)) if asks else None
    each, blocks, *extents = parallel.load_numbers(e, len(buffers) + asks, 2 + dims)
    scratch = {n: e.slot(f"[{size * block} x i8]", 64) for n, size in group.private.items()}
    first = e.op(f"mul nsw i64 %k, {each}")
    end = e.op(f"add nsw i64 {first}, {each}")
    last = e.op(f"call i64 @llvm.smin.i64(i64 {end}, i64 {blocks})")
    k, opened = e.begin_loop(first, last)
    outer, inner = "0", k
    if dims > 1:
        across = e.op(f"udiv i64 {e.op(f'add i64 {extents[-1]}, {block - 1}')}, {block}")
        outer, inner = _divide(e, k, across)
    low = e.op(f"mul i64 {inner}, {block}")
    end = e.op(f"add i64 {low}, {block}")
    high = e.op(f"call i64 @llvm.smin.i64(i64 {end}, i64 {extents[-1]})")
    before = low
    if dims > 1:
        before = e.op(f"add i64 {low}, {e.op(f'mul i64 {outer}, {extents[-1]}')}")
    for n, slot in scratch.items():
        back = e.op(f"mul i64 {before}, {-group.private[n]}")
        pointers[n] = e.op(f"getelementptr i8, ptr {slot}, i64 {back}")
    indices = [f"i64 {x}" for x in (*_outer_indices(e, outer, extents[:-1]), low, high)]
    for nest, pause in zip(group.nests, stops):
        names = nest.buffers()
        name = w.row_function(nest, names, pause)
        given = [f"ptr {p}" for p in (*(pointers[b] for b in names), *([ask] if pause else []))]
        e.do(f"call void @{name}({', '.join(given + indices)})")
    e.end_loop(opened)
    return "\n".join(["(ptr %args, i64 %k) nounwind {", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _outer_indices(e: Emitter, position: str, extents: list[str]) -> list[str]:
    """The position in row-major order as one index per dimension."""
    out = []
    for n in reversed(extents[1:]):
        position, index = _divide(e, position, n)
        out.insert(0, index)
    return [position, *out] if extents else []


def _divide(e: Emitter, x: str, n: str) -> tuple[str, str]:
    """Quotient and remainder."""
    quotient = e.op(f"udiv i64 {x}, {n}")
    whole = e.op(f"mul i64 {quotient}, {n}")
    return quotient, e.op(f"sub i64 {x}, {whole}")
