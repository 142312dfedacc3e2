"""Calls out of the program: host callbacks and library kernels. Each is one call with an array of pointers."""

from __future__ import annotations

from catena.compiler.graph import Value
from catena.runtime import kernels

CALLBACK_RAISED = -1


def _call(w, frame, node: Value, target) -> None:
    """Calls `i32 target(ptr pointers)` with the addresses of operands, then results; nonzero ends the program."""
    e = w.e
    pointers = [w.address(frame, x) for x in node.args] + [
        w.define(frame, out) for out in node.params["results"]
    ]
    table = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for k, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(table, 'ptr', k)}")
    status = e.op(f"call i32 {w.external(target)}(ptr {table})")
    w.stop_if(e.op(f"icmp ne i32 {status}, 0"), CALLBACK_RAISED)


def specs(values) -> tuple:
    return tuple((v.shape, v.dtype) for v in values)


def host(w, frame, i: int, node: Value) -> None:
    ins, outs = specs(node.args), specs(node.params["results"])
    _call(w, frame, node, kernels.Callback(node.params["callback"], ins, outs))


def library(w, frame, i: int, node: Value) -> None:
    ins, outs = specs(node.args), specs(node.params["results"])
    attrs = tuple(sorted(node.params["attrs"].items()))
    _call(w, frame, node, kernels.library(node.params["name"], ins, outs, attrs))
