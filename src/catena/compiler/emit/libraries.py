"""Calls out of the program: LAPACK routines and host callbacks."""

from __future__ import annotations

import numpy as np

from catena.compiler.emit import parallel, tasks
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph import Value
from catena.runtime import kernels
from catena.runtime import library as routines

CALLBACK_RAISED = -1
CHUNKS = 32  # that the members of a batch are shared out in, at most
PASSES = 16  # that a routine makes over a matrix for each of its rows, when it is asked how long many will take
CALL = 64  # what a call costs besides, as so many more elements in each row
FEWEST = 16  # members of a batch between two questions whether somebody pressed Ctrl-C
LINE = 64  # bytes


def host(w, frame, i: int, node: Value) -> None:
    """Calls `i32 callback(ptr pointers)` with the addresses of operands and results; nonzero ends the program."""
    e = w.e
    results = node.results
    pointers = [w.address(frame, x) for x in node.args] + [w.define(frame, out) for out in results]
    table = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for k, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(table, 'ptr', k)}")
    ins, outs = (tuple((v.shape, v.dtype) for v in values) for values in (node.args, results))
    target = w.external(kernels.Callback(node.params["callback"], ins, outs))
    status = e.op(f"call i32 {target}(ptr {table})")
    w.stop_if(e.op(f"icmp ne i32 {status}, 0"), CALLBACK_RAISED)


def lapack(w, frame, i: int, node: Value) -> None:
    """Calls a routine for every batch member; see `runtime/lapack_calls.py` for the plan."""
    p, batch = node.params, node.params["batch"]
    sources = [w.address(frame, x) for x in node.args]
    outs = []
    for k, out in enumerate(node.results):
        if k in p["copies"]:
            operand = node.args[p["copies"][k]]
            source = w.address(frame, operand)
            shared = sum(x is operand for x in node.args) > 1
            if shared or not w.take(frame, operand, out, i):
                if out.number not in frame.blocks:
                    w.define(frame, out)
                w.copy(w.address(frame, out), source, out.nbytes)
        else:
            w.define(frame, out)
        outs.append(w.address(frame, out))
    if batch:
        w.uses_blas = True
        w.units += _work(node)
        _for_all(w, node, sources, outs)


def _work(node: Value) -> int:
    """Units of work, as `parallel.work` estimates them: each element meets all others of its row."""
    return sum(x.size for x in node.args) * _row(node)


def _row(node: Value) -> int:
    return max((x.shape[-1] for x in node.args if x.ndim), default=1)


def _for_all(w, node: Value, sources: list[str], outs: list[str]) -> None:
    """Calls the routine for all members of a batch, in chunks on the threads of the pool where that pays; each chunk
    has workspaces of its own.
    """
    p, batch = node.params, node.params["batch"]
    units = PASSES * sum(x.nbytes for x in node.args) // 4 * (_row(node) + CALL)
    groups = min(units // parallel.GROUP, batch // FEWEST)
    group = batch // groups if groups > 1 else batch
    chunks = min(group, CHUNKS) if batch > 1 and _work(node) >= parallel.WORTHWHILE else 1
    sizes = {k: _workspace(a) for k, a in enumerate(p["plan"]) if isinstance(a, tuple) and a[0] == "work"}
    work = {k: w.allocate(size * chunks) for k, size in sizes.items()}
    target = w.external(kernels.Routine(p["routine"]))
    pointers = [*sources, *outs, *[block.pointer for block in work.values()], target]
    text = _chunk(w, node, sizes, chunks, groups > 1)
    if groups > 1:
        tasks.in_groups(w, batch, groups, lambda part: parallel.through_pool(w, text, [*pointers, part], chunks), units)
    else:
        parallel.through_pool(w, text, pointers, chunks)
    for block in work.values():
        w._free(block)


def _workspace(arg: tuple) -> int:
    """The bytes of a workspace, whole cache lines so that those of two threads share none."""
    return -(-arg[2] * np.dtype(arg[1]).itemsize // LINE) * LINE


def _chunk(w, node: Value, sizes: dict[int, int], chunks: int, in_groups: bool) -> str:
    """The text of the function that calls the routine for the members of chunk %k, of a batch or of a group of it."""
    p, batch, e = node.params, node.params["batch"], Emitter()
    operands = [*node.args, *node.results]
    names = [("in", k) for k in range(len(node.args))] + [("out", k) for k in range(len(node.results))]
    loaded = [parallel.load_pointer(e, i) for i in range(len(operands) + len(sizes) + 1)]
    work = {k: _shifted(e, loaded[len(operands) + i], "%k", size) for i, (k, size) in enumerate(sizes.items())}
    whole = ("0", str(batch))
    part = tasks.part_of_group(e, parallel.load_pointer(e, len(loaded))) if in_groups else whole
    t, opened = e.begin_loop(*tasks.balanced(e, *part, chunks))
    steps = {name: _shifted(e, pointer, t, x.nbytes // batch) for name, pointer, x in zip(names, loaded, operands)}
    args = ", ".join(f"ptr {_argument(w, a, steps, work.get(k))}" for k, a in enumerate(p["plan"]))
    e.do(f"call void {loaded[-1]}({args})")
    e.end_loop(opened)
    return "\n".join(["(ptr %args, i64 %k) {", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _shifted(e: Emitter, pointer: str, count: str, size: int) -> str:
    """An address `count` times `size` bytes further."""
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {count}, {size}')}")


def _argument(w, arg, steps: dict, work) -> str:
    if isinstance(arg, str):
        return w.literal("i8", ord(arg))
    if isinstance(arg, int):
        return w.literal(f"i{routines.integer_bits()}", arg)
    if arg[0] in ("in", "out"):
        return steps[arg]
    if arg[0] == "size":
        return w.literal(f"i{routines.integer_bits()}", arg[1])
    if arg[0] == "one":
        bits = np.ones((), arg[1]).tobytes()
        return w.literal(f"i{8 * len(bits)}", int.from_bytes(bits, "little"))
    return "null" if arg[0] == "null" else work
