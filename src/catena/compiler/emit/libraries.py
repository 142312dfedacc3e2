"""Calls out of the program: LAPACK routines and host callbacks."""

from __future__ import annotations

import numpy as np

from catena.compiler.graph import Value
from catena.runtime import kernels
from catena.runtime import library as routines

CALLBACK_RAISED = -1


def host(w, frame, i: int, node: Value) -> None:
    """Calls `i32 callback(ptr pointers)` with the addresses of operands and results; nonzero ends the program."""
    e = w.e
    results = node.params["results"]
    pointers = [w.address(frame, x) for x in node.args] + [w.define(frame, out) for out in results]
    table = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for k, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(table, 'ptr', k)}")
    ins, outs = (tuple((v.shape, v.dtype) for v in values) for values in (node.args, results))
    target = w.external(kernels.Callback(node.params["callback"], ins, outs))
    status = e.op(f"call i32 {target}(ptr {table})")
    w.stop_if(e.op(f"icmp ne i32 {status}, 0"), CALLBACK_RAISED)


def lapack(w, frame, i: int, node: Value) -> None:
    """Calls a routine for every batch member; see `compiler/library.py` for the plan."""
    p, e, batch = node.params, w.e, node.params["batch"]
    sources = [w.address(frame, x) for x in node.args]
    outs = []
    for k, out in enumerate(p["results"]):
        if k in p["copies"]:
            operand = node.args[p["copies"][k]]
            source = w.address(frame, operand)
            shared = sum(x is operand for x in node.args) > 1
            if shared or not w.take(frame, operand, out, i):
                if out.number not in frame.blocks:
                    w.define(frame, out)
                w.copy(w.address(frame, out), source, out.size * out.dtype.itemsize)
        else:
            w.define(frame, out)
        outs.append(w.address(frame, out))
    if not batch:
        return
    w.uses_blas = True
    w.units += sum(x.size for x in node.args) * max((x.shape[-1] for x in node.args if x.ndim), default=1)
    work = {
        k: w.allocate(a[2] * np.dtype(a[1]).itemsize)
        for k, a in enumerate(p["plan"])
        if isinstance(a, tuple) and a[0] == "work"
    }
    t, opened = e.begin_loop(0, batch) if batch > 1 else (None, None)
    steps = {("in", k): _member(e, s, x, t, batch) for k, (s, x) in enumerate(zip(sources, node.args))}
    steps |= {("out", k): _member(e, s, x, t, batch) for k, (s, x) in enumerate(zip(outs, p["results"]))}
    function = w.external(kernels.Routine(p["routine"]))
    args = ", ".join(f"ptr {_argument(w, a, steps, work.get(k))}" for k, a in enumerate(p["plan"]))
    e.do(f"call void {function}({args})")
    if opened is not None:
        e.end_loop(opened)
    for block in work.values():
        w._free(block)


def _member(e, pointer: str, x: Value, t: str | None, batch: int) -> str:
    size = x.size * x.dtype.itemsize // batch
    return pointer if t is None else e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {t}, {size}')}")


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
    return "null" if arg[0] == "null" else work.pointer
