"""Results that go past the caches by way of the stack (`loops.Staged`, `emit/staged.py`).

Memory takes whole lines. Short rows that lie one behind the other, and begin inside of lines, share these; and so do
rows of a transposition, whose squares begin where they do. What is written in part goes through the caches, and is read
before. So some rows are written to the stack, and from there to memory, from line to line.
"""

from __future__ import annotations

import math

from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.loops import Nest, Staged
from catena.compiler.machine import Machine

LINES = 8  # of each row of a transposition, at a time; one more is read again
ROWS = 128  # of it
BYTES = 1 << 13  # of short rows at a time: the lines at the ends are few
LEAST, MOST = 2, 32  # lines of short rows; of longer ones, what is written in part is little


def plan(machine: Machine, nest: Nest) -> None:
    """Has a scheduled nest that writes past the caches do so by way of the stack, where that pays."""
    if not may_be(machine, nest):
        return
    (store,) = nest.stores
    size = TYPES[store.dtype].bytes
    if nest.tile is not None:
        staged = Staged(ROWS, LINES * machine.memory.line // size, machine.vector_bytes)
    else:
        staged = Staged(BYTES // (nest.extents[nest.order[-1]] * size), 0, machine.vector_bytes)
    nest.stores = [store._replace(staged=staged)]


def may_be(machine: Machine, nest: Nest) -> bool:
    """Whether a scheduled nest has the form for it, and rows that share lines."""
    if len(nest.stores) != 1 or nest.folds or nest.sequential or nest.is_checked or nest.rows or len(nest.order) < 2:
        return False
    (store,), line = nest.stores, machine.memory.line
    offset, size = store.offset, TYPES[store.dtype].bytes
    if store.mask >= 0 or offset[2] or nest.vector is None or affine.coefficient(offset, nest.vector) != 1:
        return False
    whole = not any(c * size % line for d, c in offset[1] if d != nest.vector)
    row = nest.extents[nest.vector] * size
    if nest.tile is not None:
        squares = nest.order[-2:] == [nest.vector, nest.tile] and row >= 2 * LINES * line
        large = math.prod(nest.extents) * size >= machine.memory.staged_squares
        return squares and (nest.width * size < line or large and not whole)
    if nest.together is not None or nest.order[-1] != nest.vector or whole:
        return False
    return LEAST * line <= row < MOST * line and affine.coefficient(offset, nest.order[-2]) == row // size


def chunk(nest: Nest, chunk: int | None) -> int | None:
    """The chunks of a nest, of which those that are cut along the lanes hold whole blocks."""
    if chunk is None or nest.staged is None or nest.order[0] != nest.vector:
        return chunk
    return -(-chunk // nest.staged.lanes) * nest.staged.lanes
