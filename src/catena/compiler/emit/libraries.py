"""Calls out of the program: LAPACK routines and host callbacks."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from catena.compiler.emit import subnormals, tasks
from catena.compiler.emit.emitter import Emitter
from catena.compiler.plan.steps import Host, Lapack
from catena.runtime import kernels

CALLBACK_RAISED = -1


def host(w, step: Host) -> None:
    """Calls `i32 callback(ptr pointers)` with the addresses of operands and results; nonzero ends the program."""
    e = w.e
    if isinstance(step.callback, kernels.ForeignCall):
        return foreign(w, step)
    pointers = [w.pointer(b) for b in (*step.ins, *step.outs)]
    table = e.slot(f"[{max(len(pointers), 1)} x ptr]", 16)
    for k, p in enumerate(pointers):
        e.do(f"store ptr {p}, ptr {e.element(table, 'ptr', k)}")
    target = w.external(kernels.Callback(step.callback, *step.specs))
    with subnormals.as_before(w):
        status = e.op(f"call i32 {target}(ptr {table})")
    w.stop_if(e.op(f"icmp ne i32 {status}, 0"), CALLBACK_RAISED)


def foreign(w, step: Host) -> None:
    """Calls a C function; nonzero ends the program. Meanwhile the process's cell says that the program is in it."""
    e, call = w.e, cast(Any, step.callback)  # what `jax.ffi` makes
    words, waiting = w.external(call.cell), w.external(kernels.WAITING)
    word = lambda j: e.element(words, "i64", j)
    read = lambda kind, j: f"{kind} {e.op(f'load {kind}, ptr {word(j)}')}"
    arguments = {
        "in": lambda k: f"ptr {w.pointer(step.ins[k])}",
        "out": lambda k: f"ptr {w.pointer(step.outs[k])}",
        "int": lambda j: read("i32", j),
        "handle": lambda j: read(f"i{call.bits}", j),
        "space": lambda j: f"ptr {word(j)}",
    }
    given = [f"i32 {a}" if isinstance(a, int) else arguments[a[0]](a[1]) for a in call.arguments]
    count = e.element(waiting, "i64", 1)
    before = e.op(f"load i64, ptr {count}")
    e.do(f"store i64 {e.op(f'add i64 {before}, 1')}, ptr {count}")
    e.do(f"store i64 {call.site}, ptr {waiting}")
    with subnormals.as_before(w):
        status = e.op(f"call i32 {w.external(call)}({', '.join(given)})")
    e.do(f"store i64 0, ptr {waiting}")
    w.stop_if(e.op(f"icmp ne i32 {status}, 0"), CALLBACK_RAISED)


def lapack(w, step: Lapack) -> None:
    """Calls a routine for every batch member, in chunks on the threads of the pool where that pays."""
    w.uses.add("blas")
    pointers = [w.pointer(b) for b in (*step.ins, *step.outs, *step.work.values())]
    pointers.append(w.external(kernels.Routine(step.routine)))
    batch, groups = step.batch, step.groups
    share = lambda e, own: _members(w, e, own, step)
    if groups > 1:
        run = lambda part: tasks.in_tasks(w, [*pointers, part], step.chunks, share)
        tasks.in_groups(w, batch, groups, run, step.units)
    else:
        tasks.in_tasks(w, pointers, step.chunks, share)


def _members(w, e: Emitter, own: list[str], step: Lapack) -> None:
    """Calls the routine for the members of chunk %k, of a batch or of a group of it. The text tells no sizes."""
    operands = [*step.ins, *step.outs]
    names = [("in", k) for k in range(len(step.ins))] + [("out", k) for k in range(len(step.outs))]
    work = {
        k: _shifted(e, own[len(operands) + i], "%k", buffer.bytes // step.chunks)
        for i, (k, buffer) in enumerate(step.work.items())
    }
    routine = own[len(operands) + len(work)]
    whole = ("0", e.size(step.batch))
    start, count = tasks.part_of_group(e, own[-1]) if step.groups > 1 else whole
    t, opened = e.begin_loop(*tasks.balanced(e, start, count, step.chunks))
    steps = {name: _shifted(e, pointer, t, x.bytes // step.batch) for name, pointer, x in zip(names, own, operands)}
    args = ", ".join(f"ptr {_argument(w, e, a, steps, work.get(k))}" for k, a in enumerate(step.arguments))
    e.do(f"call void {routine}({args})")
    e.end_loop(opened)


def _shifted(e: Emitter, pointer: str, count: str, size: int) -> str:
    """An address `count` times `size` bytes further."""
    return e.op(f"getelementptr i8, ptr {pointer}, i64 {e.op(f'mul nsw i64 {count}, {e.size(size)}')}")


def _argument(w, e: Emitter, arg, steps: dict, work) -> str:
    """The address of an argument; a table's words are integers of the routines' width where they begin."""
    if isinstance(arg, str):
        return w.literal("i8", ord(arg))
    if isinstance(arg, int) or arg[0] == "size":
        assert e.sizes is not None  # the text tells none
        return e.sizes.address(arg if isinstance(arg, int) else arg[1])
    if arg[0] in ("in", "out"):
        return steps[arg]
    if arg[0] == "one":
        bits = np.ones((), arg[1]).tobytes()
        return w.literal(f"i{8 * len(bits)}", int.from_bytes(bits, "little"))
    return "null" if arg[0] == "null" else work
