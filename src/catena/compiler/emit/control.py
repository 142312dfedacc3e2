"""Loops and branches as native control flow.

A loop's carries live in the memory of its results, small ones in stack slots, which LLVM promotes to
registers; small constants of the loop are copied into such slots too. The body computes each new carry in
place where the old one is dead by then, else beside it and copies at the end of the iteration. Slices of
`scan` are pointers into the whole arrays.
"""

from __future__ import annotations

from catena.compiler.emit import interrupts, stack_steps
from catena.compiler.graph import Region, Value
from catena.compiler.memory import SLOT_BYTES


def _start_carries(w, frame, i: int, init: list[Value], results: list[Value]) -> list[str]:
    """Memory of the carries, holding their initial values: the operand's own where it dies here."""
    pointers, used = [], set()
    for x, out in zip(init, results):
        source, r = w.address(frame, x), frame.fused.root(x)
        shared = r in used or sum(frame.fused.root(y) == r for y in init) > 1
        used.add(r)
        if shared or not w.take(frame, x, out, i):
            if out.number not in frame.blocks:
                w.define(frame, out)
            pointer, size = frame.blocks[out.number].pointer, out.nbytes
            if out.number in frame.targets and 0 < size <= SLOT_BYTES:
                pointer = w.allocate(size).pointer
            w.copy(pointer, source, size)
            pointers.append(pointer)
        else:
            pointers.append(frame.blocks[out.number].pointer)
    return pointers


def starts_as(frame, node: Value, r: int, old: Value) -> bool:
    """Whether result `r` of a loop is a large carry that starts as `old`, which the loop reads nowhere else."""
    p = node.params
    if p["op"] not in ("while", "scan") or old.nbytes <= SLOT_BYTES:
        return False
    first = p["cond_consts"] + p["body_consts"] if p["op"] == "while" else p["consts"]
    roots = [frame.fused.root(x) for x in node.args]
    carries = len(node.results) if p["op"] == "while" else p["carries"]
    starts = {out.number: roots[first + j] for j, out in enumerate(node.results[:carries])}
    return starts.get(r) == old.number and roots.count(old.number) == 1


def while_loop(w, frame, i: int, node: Value) -> None:
    p, e = node.params, w.e
    nc, nb = p["cond_consts"], p["body_consts"]
    consts = [_close(w, frame, x) for x in node.args[: nc + nb]]
    keep = {frame.fused.root(x) for x in node.args[: nc + nb]}
    carries = _start_loop(w, frame, i, node.args[nc + nb :], node.results, keep)
    flag = e.slot("i8")
    head, body, done = e.label(), e.label(), e.label()
    e.jump(head)
    e.start(head)
    w.depth, w.loops, before = w.depth + 1, w.loops + 1, w.units
    w.region(p["cond"], consts[:nc] + carries, [flag])
    more = e.op(f"trunc i8 {e.op(f'load i8, ptr {flag}')} to i1")
    e.branch(more, body, done)
    e.start(body)
    iteration = lambda: w.region(p["body"], consts[nc:] + carries, carries, carried_inputs(len(carries), nb))
    stack_steps.in_iteration(w, p["body"], iteration)
    w.depth -= 1
    interrupts.end_of_iteration(w, w.units - before, None)
    e.jump(head)
    e.start(done)
    _finish_carries(w, frame, node.results, carries)


def carried_inputs(n: int, first: int) -> dict[int, int]:
    return {k: first + k for k in range(n)}


def _start_loop(w, frame, i, init, results, keep: set[int]) -> list[str]:
    """Like `_start_carries`, but operands that the loop also reads as constants keep their memory."""
    held = keep - frame.protected
    frame.protected |= held
    pointers = _start_carries(w, frame, i, list(init), list(results))
    frame.protected -= held
    return pointers


def scan(w, frame, i: int, node: Value) -> None:
    p, e = node.params, w.e
    nk, nc, length = p["consts"], p["carries"], p["length"]
    consts, init, xs = node.args[:nk], node.args[nk : nk + nc], node.args[nk + nc :]
    results = node.results
    inputs = [_close(w, frame, x) for x in consts]
    sources = [w.address(frame, x) for x in xs]
    keep = {frame.fused.root(x) for x in (*consts, *xs)}
    carries = _start_loop(w, frame, i, init, results[:nc], keep)
    stacks = [w.define(frame, y) for y in results[nc:]]
    if not length:
        _finish_carries(w, frame, results, carries)
        return
    k, opened = e.begin_loop(0, length)
    at = e.op(f"sub i64 {length - 1}, {k}") if p["reverse"] else k
    slices = [_slice(e, s, at, x.nbytes // length) for s, x in zip(sources, xs)]
    dests = [_slice(e, s, at, y.nbytes // length) for s, y in zip(stacks, results[nc:])]
    w.depth, w.loops, w.trips, before = w.depth + 1, w.loops + 1, w.trips * length, w.units
    iteration = lambda: w.region(p["body"], inputs + carries + slices, carries + dests, carried_inputs(nc, nk))
    stack_steps.in_iteration(w, p["body"], iteration)
    w.depth, w.trips = w.depth - 1, w.trips // length
    interrupts.end_of_iteration(w, w.units - before, length)
    w.units += (length - 1) * (w.units - before)
    e.end_loop(opened)
    _finish_carries(w, frame, results, carries)


def _close(w, frame, x: Value) -> str:
    """The address of a loop's constant: a slot, if it is small, that nothing else in the loop can touch."""
    source, size = w.address(frame, x), x.nbytes
    if not 0 < size <= SLOT_BYTES or source.startswith("%s"):
        return source
    slot = w.allocate(size).pointer
    w.copy(slot, source, size)
    return slot


def _finish_carries(w, frame, results: list[Value], carries: list[str]) -> None:
    """Moves carries out of their slots, to results that must lie elsewhere."""
    for out, pointer in zip(results, carries):
        w.copy(frame.blocks[out.number].pointer, pointer, out.nbytes)


def _slice(e, base: str, at: str, size: int) -> str:
    by = e.op(f"mul nsw i64 {at}, {size}")
    return e.op(f"getelementptr i8, ptr {base}, i64 {by}")


def branch(w, frame, i: int, node: Value) -> None:
    p, e = node.params, w.e
    index, *operands = node.args
    inputs = [w.address(frame, x) for x in operands]
    dests = [w.define(frame, out) for out in node.results]
    regions: list[Region] = p["branches"]
    bits = 8 * index.dtype.itemsize
    choice = e.op(f"load i{bits}, ptr {w.address(frame, index)}")
    labels, done = [e.label() for _ in regions], e.label()
    if index.dtype.kind != "b":
        low = e.op(f"call i{bits} @llvm.smax.i{bits}(i{bits} {choice}, i{bits} 0)")
        choice = e.op(f"call i{bits} @llvm.smin.i{bits}(i{bits} {low}, i{bits} {len(regions) - 1})")
    cases = " ".join(f"i{bits} {k}, label %{label}" for k, label in enumerate(labels[:-1]))
    e.do(f"switch i{bits} {choice}, label %{labels[-1]} [ {cases} ]")
    for label, region in zip(labels, regions):
        e.start(label)
        w.region(region, inputs, dests)
        e.jump(done)
    e.start(done)
