"""Steps that sort and select, by NumPy's stable sorts of unsigned keys."""

from __future__ import annotations

import numpy as np

from catena.compiler.interpret.memory import Memory
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.steps import Order, Ranks, Select, Sort


def sort(memory: Memory, step: Sort) -> None:
    _rows(memory, step.at, step.keys.bits, step.rows).sort(axis=1)


def order(memory: Memory, step: Order) -> None:
    keys = [_rows(memory, source, bits, step.rows) for source, bits in zip(step.sources, step.bits)]
    _places(memory, step.out, step.rows)[:] = np.lexsort(keys[::-1], axis=1)[:, : step.k]


def ranks(memory: Memory, step: Ranks) -> None:
    ordered = np.sort(_rows(memory, step.source, step.keys.bits, step.rows), axis=1)
    wanted = _places(memory, step.ranks, step.rows)
    _rows(memory, step.out, step.keys.bits, step.rows)[:] = np.take_along_axis(ordered, wanted, axis=1)


def select(memory: Memory, step: Select) -> None:
    p = step.plan
    found = np.argsort(_rows(memory, step.source, p.bits, p.rows), axis=1, kind="stable")
    _places(memory, step.out, p.rows)[:] = found[:, : p.k]


def _rows(memory: Memory, buffer: Buffer, bits: int, rows: int) -> np.ndarray:
    return memory[buffer].view(f"uint{bits}").reshape(rows, -1)


def _places(memory: Memory, buffer: Buffer, rows: int) -> np.ndarray:
    return memory[buffer].view(np.int32).reshape(rows, -1)
