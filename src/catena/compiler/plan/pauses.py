"""Pauses of long nests: loops that may take seconds are cut into blocks, and ask before each whether to go on.

Chunks are most often short, and the program asks between them (`emit.parallel.through_pool`). But the loop that is cut
into chunks may be short and one inside it long, a fold may be one that knows no chunks, or there is one thread and
nothing is cut. Then the nest itself asks, by a function whose address it is given (`emit.interrupts.table`). Which
iterations follow each other, and so every bit, is as without.
"""

from __future__ import annotations

import math

from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Sharing
from catena.compiler.plan import sharing
from catena.compiler.plan.cascades import Cascade
from catena.core.named import NamedTuple

PER_GROUP = 32  # pauses in as much work as a group of chunks has; nests that do less than two of these have none


class Pause(NamedTuple):
    """Which loop of a nest is cut into blocks, and of how many of its iterations."""

    level: int
    block: int


def plan(limits: Sharing, nest: Nest, part: float = 1.0) -> Pause | None:
    """The pauses of a scheduled nest, of whose iterations each call does a `part`; None where calls are short."""
    pace = limits.group // PER_GROUP
    if sharing.work(nest) * part < 2 * pace:
        return None
    cost = sharing.half_units(nest) / 2
    for level in reversed(range(len(nest.order))):
        d = nest.order[level]
        cost *= steps(nest, d)
        trips = _length(nest, d)
        if cost * trips >= pace:
            return Pause(level, max(int(pace / cost), 1))
        cost *= trips
    return None


def _length(nest: Nest, d: int) -> int:
    """The rounds of a loop; of one over a run, which all rows share out, those of a row in the mean."""
    shared = 1
    if nest.run is not None and d == nest.run.dim:
        shared = math.prod(n for k, n in enumerate(nest.extents) if nest.hangs_on(k))
    return -(-nest.extents[d] // (steps(nest, d) * shared))


def steps(nest: Nest, d: int) -> int:
    """The iterations that one round of a loop does."""
    return nest.width if d == nest.tile else nest.step(d)


def beside(pause: Pause, cascade: Cascade | None) -> Pause:
    """The pause of a nest whose sums go in blocks: theirs stay whole."""
    if cascade is None or cascade.level != pause.level:
        return pause
    return pause._replace(block=-(-pause.block // cascade.block) * cascade.block)
