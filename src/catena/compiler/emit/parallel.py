"""Loop nests on several threads: which ones, in which chunks, and the call of the pool.

The outermost kept loop is cut into chunks of about the same work. Chunks depend on the nest alone, never on
the number of threads.
"""

from __future__ import annotations

from catena.compiler.costs import COSTLY
from catena.compiler.emit import bounds
from catena.compiler.loops import Nest

WORTHWHILE = 1 << 19  # units of work below which threads cost more than they give
CHUNK = 1 << 16  # units of work that make a chunk
MOST_CHUNKS = 64


def work(nest: Nest) -> int:
    """Units of about a fifth of a nanosecond: one element read, written or combined."""
    body = sum(8 if s.op in COSTLY else 0 if s.op == "const" else 1 for s in nest.stmts)
    return nest.trips * max(body + len(nest.stores), 1) // 2


def chunk(nest: Nest, in_place: bool) -> int | None:
    """Iterations of the outermost loop in one chunk; None when the nest stays on one thread."""
    total = work(nest)
    if total < WORTHWHILE or nest.sequential or any(f.running for f in nest.folds):
        return None
    _lift_long_loop(nest)
    outer = nest.order[0]
    extent = nest.extents[outer]
    if outer in nest.reduced:
        return None
    step = nest.width * nest.unroll if outer == nest.vector else 1
    if outer == nest.vector and (extent < 4 * step or (in_place and extent % step)):
        return None
    count = min(MOST_CHUNKS, max(total // CHUNK, 2), extent // step)
    if count < 2:
        return None
    size = -(-extent // count)
    return -(-size // step) * step


def _lift_long_loop(nest: Nest) -> None:
    """Puts the longest of the kept loops outside when the outermost is too short to share."""
    kept = [d for d in nest.order if d not in nest.reduced and d != nest.vector]
    if kept and nest.extents[nest.order[0]] < 8:
        longest = max(kept, key=lambda d: nest.extents[d])
        if nest.extents[longest] > nest.extents[nest.order[0]] and nest.order[0] != nest.vector:
            nest.order.remove(longest)
            nest.order.insert(0, longest)


def call(w, name: str, pointers: list[str], extent: int, size: int, each: list[int] | None = None) -> None:
    """Calls nest function `name` for all chunks through the pool; chunk k has its own part of a pointer's memory,
    k * `each` bytes further, where it leaves partial results.
    """
    n = len(pointers)
    each = each or [0] * n
    loads = [
        line
        for i in range(n)
        for line in (
            f"  %p{i} = getelementptr ptr, ptr %args, i64 {i}",
            f"  %w{i} = load ptr, ptr %p{i}",
            f"  %o{i} = mul nsw i64 %k, {each[i]}",
            f"  %b{i} = getelementptr i8, ptr %w{i}, i64 %o{i}",
        )
    ]
    arguments = ", ".join([f"ptr %b{i}" for i in range(n)] + ["i64 %lo", "i64 %hi"])
    body = "\n".join(
        [
            "(ptr %args, i64 %k) {",
            "entry:",
            *loads,
            f"  %lo = mul nsw i64 %k, {size}",
            f"  %end = add nsw i64 %lo, {size}",
            f"  %hi = call i64 @llvm.smin.i64(i64 %end, i64 {extent})",
            f"  call void @{name}({arguments})",
            "  ret void",
            "}",
        ]
    )
    through_pool(w, body, pointers, -(-extent // size))


def through_pool(w, body: str, pointers: list[str], chunks: int) -> None:
    """Runs a function `(ptr %args, i64 %k)`, given by its text, for all chunks; `%args` holds the pointers."""
    wrapper, e = w.wrappers.setdefault(body, f"chunk{len(w.wrappers)}"), w.e
    table = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for i, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(table, 'ptr', i)}")
    if w.pool is not None and chunks > 1:
        e.do(f"call void {w.external(w.pool)}(ptr @{wrapper}, ptr {table}, i64 {chunks})")
    else:
        k, opened = e.begin_loop(0, chunks)
        e.do(f"call void @{wrapper}(ptr {table}, i64 {k})")
        e.end_loop(opened)
    bounds.stop_if_violated(w)
