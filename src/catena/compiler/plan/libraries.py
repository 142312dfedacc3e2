"""Calls out of the program as steps: LAPACK routines, Python functions, and the runtime's stacks."""

from __future__ import annotations

import math

import numpy as np

from catena.compiler.graph import forms
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import NAMES
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.steps import Host, Lapack, NewStack, ReadStack, SmallMatrices, StackLength, WriteStack

PASSES = 16  # that a routine makes over a matrix for each of its rows, when it is asked how long many will take
CALL = 64  # what a call costs besides, as so many more elements in each row
FEWEST = 16  # members of a batch between two questions whether somebody pressed Ctrl-C


def host(p: Planner, frame: Frame, i: int, node: Value) -> None:
    results = node.results
    ins, outs = [p.address(frame, x) for x in node.args], [p.define(frame, out) for out in results]
    specs = tuple(tuple((v.shape, v.dtype) for v in values) for values in (node.args, results))
    frame.steps.append(Host(node.params.callback, specs, ins, outs))


def lapack(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """A routine for every batch member, in chunks for the threads; each chunk has workspaces of its own."""
    n: forms.Lapack = node.params
    batch = n.batch
    ins = [p.address(frame, x) for x in node.args]
    outs = [_result(p, frame, i, node, k) for k in range(len(node.results))]
    if not batch:
        return
    work, sharing = _work(node), p.machine.sharing
    p.costs.units += work
    units = PASSES * sum(x.nbytes for x in node.args) // 4 * (_row(node) + CALL)
    groups = min(units // sharing.group, batch // FEWEST)
    group = batch // groups if groups > 1 else batch
    chunks = min(group, sharing.calls) if batch > 1 and work >= sharing.worthwhile else 1
    line = p.machine.memory.line
    spaces = {k: _workspace(a, line) for k, a in enumerate(n.plan) if isinstance(a, tuple) and a[0] == "work"}
    buffers = {k: p.allocate(size * chunks) for k, size in spaces.items()}
    step = Lapack(n.routine, n.plan, batch, ins, outs, buffers, chunks, groups, units)
    frame.steps.append(step)
    for buffer in buffers.values():
        p.free(buffer)


def small_matrices(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """A routine of our own for every batch member."""
    n: forms.SmallMatrices = node.params
    ins, outs = [p.address(frame, x) for x in node.args], [p.define(frame, out) for out in node.results]
    if not n.batch:
        return
    shapes = [x.shape[-2:] for x in node.args]
    work = max(math.prod(shape) for shape in shapes) * shapes[0][0]
    units = n.batch * work
    p.costs.units += units
    frame.steps.append(
        SmallMatrices(n.routine, n.how, NAMES[node.args[0].dtype], shapes, n.batch, ins, outs, work, units)
    )


def _result(p: Planner, frame: Frame, i: int, node: Value, k: int):
    """Memory of a result, which starts as an operand where the routine overwrites that."""
    out, copies = node.results[k], dict(node.params.copies)
    if k not in copies:
        return p.define(frame, out)
    operand = node.args[copies[k]]
    source = p.address(frame, operand)
    shared = sum(x is operand for x in node.args) > 1
    if shared or not p.take(frame, operand, out, i):
        if out.number not in frame.blocks:
            p.define(frame, out)
        p.copy(frame, frame.blocks[out.number], source, out.nbytes)
    return frame.blocks[out.number]


def _work(node: Value) -> int:
    """Units of work, as `sharing.work` estimates them: each element meets all others of its row."""
    return sum(x.size for x in node.args) * _row(node)


def _row(node: Value) -> int:
    return max((x.shape[-1] for x in node.args if x.ndim), default=1)


def _workspace(argument: tuple, line: int) -> int:
    """The bytes of a workspace, whole cache lines so that those of two threads share none."""
    return -(-argument[2] * np.dtype(argument[1]).itemsize // line) * line


# ---- stacks --------------------------------------------------------------------------------------------------


def new_stack(p: Planner, frame: Frame, i: int, node: Value) -> None:
    (out,) = node.results
    frame.steps.append(NewStack(node.params.item_bytes, p.define(frame, out)))


def stack_length(p: Planner, frame: Frame, i: int, node: Value) -> None:
    (out,) = node.results
    frame.steps.append(StackLength(p.address(frame, node.args[0]), p.define(frame, out)))


def write_stack(p: Planner, frame: Frame, i: int, node: Value) -> None:
    (out,) = node.results
    stack, at, item = (p.address(frame, x) for x in node.args)
    frame.steps.append(WriteStack(stack, at, item, p.define(frame, out)))


def read_stack(p: Planner, frame: Frame, i: int, node: Value) -> None:
    (out,) = node.results
    stack, at = (p.address(frame, x) for x in node.args)
    frame.steps.append(ReadStack(stack, at, p.define(frame, out)))


RULES = {
    "host": host,
    "lapack": lapack,
    "small_matrices": small_matrices,
    "stack_new": new_stack,
    "stack_length": stack_length,
    "stack_write": write_stack,
    "stack_read": read_stack,
}
