"""Epilogues: the kernel that reads a product next, run on each block of its rows as soon as they are computed.

Bias, activation, residual, a softmax's maximum: what follows a product row by row would read it from memory again,
in a loop with threads of its own. As an epilogue it reads the block while that is still in cache.

A kernel may follow a product when its leading dimensions are the product's rows, none of them is reduced, it
reads the product in the row that it works on, and all else that it reads exists before the product. One that folds
rows of a few elements, or computes functions of them, does not: a kernel of its own takes as many of these at once as a
vector has lanes.
"""

from __future__ import annotations

import math

from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.region import Value
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import short_rows
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine
from catena.compiler.plan import bands, product_kinds, stitch
from catena.compiler.plan.fuse import Fused, Step

AHEAD = 8  # steps to look over for the kernel
MANY_ROWS = 128  # from which on short ones have a kernel of their own


def attach(fused: Fused, nest_of, machine: Machine) -> None:
    """Gives steps of products their epilogues and removes these from the steps."""
    steps = fused.steps
    gone: set[int] = set()
    for i, step in enumerate(steps):
        v = step.node
        if v is None or not product_kinds.has_tiles(v, machine) or i in gone:
            continue
        j = _follower(steps, i, v.number, gone)
        if j is None or not _runs_by_rows(steps[j], v, nest_of, machine):
            continue
        step.epilogue = nest_of(steps[j])
        step.follower, step.operands = steps[j], frozenset(step.reads)
        step.reads |= steps[j].reads - set(step.writes)
        step.writes = [*step.writes, *steps[j].writes]
        gone.add(j)
    fused.steps = [step for i, step in enumerate(steps) if i not in gone]


def _follower(steps: list[Step], i: int, number: int, gone: set[int]) -> int | None:
    """The next step that reads the product, if it is a kernel that could run at once."""
    between: set[int] = set()
    for j in range(i + 1, min(i + 1 + AHEAD, len(steps))):
        step = steps[j]
        if number in step.reads:
            return j if step.kernel is not None and j not in gone and not step.reads & between else None
        between.update(step.writes)
    return None


def _runs_by_rows(step: Step, v: Value, nest_of, machine: Machine) -> bool:
    kernel, shape = step.own_kernel, product_kinds.row_shape(v)
    count = math.prod(shape)
    if not shape or kernel.space[: len(shape)] != shape or any(a < len(shape) for a in kernel.axes) or count < 2:
        return False
    nest, n = nest_of(step), math.prod(kernel.space) // count
    if n <= short_rows.MOST and (kernel.axes or _leaves_lanes(nest, n, machine)) and count >= MANY_ROWS:
        return False
    if bands.are_in(kernel):
        return False
    row_bytes = {v.number: v.nbytes // count}
    return stitch.reads_own_rows(nest, {v.number}, shape, row_bytes)


def _leaves_lanes(nest: Nest, n: int, machine: Machine) -> bool:
    """Whether functions of rows of `n` elements leave lanes empty."""
    functions = [TYPES[s.type].bytes for s in nest.stmts if s.op in COSTLY]
    return bool(functions) and n * max(functions) % machine.vector_bytes > 0
