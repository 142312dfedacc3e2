"""Calls out of a program that is interpreted: the same routines at the same addresses, and the user's functions."""

from __future__ import annotations

import ctypes

import numpy as np

from catena.compiler.interpret.memory import Memory
from catena.compiler.plan.steps import Host, Lapack
from catena.runtime import kernels, lapack_calls


def lapack(memory: Memory, step: Lapack) -> None:
    """Calls a routine for every member of a batch."""
    function = lapack_calls.function(step.routine, len(step.arguments))
    cells = [_cell(memory, step, k) for k in range(len(step.arguments))]
    operands = {("in", k): b for k, b in enumerate(step.ins)} | {("out", k): b for k, b in enumerate(step.outs)}
    for t in range(step.batch):
        addresses: list[int | None] = []
        for argument, cell in zip(step.arguments, cells):
            if cell is None:
                whole = memory[operands[argument]]
                addresses.append(whole.ctypes.data + t * (whole.size // step.batch))
            else:
                addresses.append(cell.ctypes.data if cell.size else None)
        function(*addresses)


def _cell(memory: Memory, step: Lapack, k: int) -> np.ndarray | None:
    """What holds an argument that is the same for all members; none for operands and results."""
    if k in step.work:
        return memory[step.work[k]]
    argument = step.arguments[k]
    if isinstance(argument, tuple) and argument[0] == "size":
        argument = argument[1]
    return lapack_calls.cell(argument)


def host(memory: Memory, step: Host) -> None:
    """Calls a function of the user's with a table of addresses, as a program does."""
    callback = kernels.Callback(step.callback, *step.specs)
    buffers = [memory[b] for b in (*step.ins, *step.outs)]
    table = kernels.table_of(len(buffers))(*(b.ctypes.data for b in buffers))
    if callback._run(ctypes.addressof(table)):
        kernels.raise_pending()
