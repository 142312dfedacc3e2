"""Loop nests of some length are written twice: once more for when the processor has met subnormal numbers.

What decays comes to them: the front of what spreads into zeros, an average of what is no longer there. Processors take
a hundred cycles for each product that has to do with one, and a loop, or a program that is called again and again,
would do so each time. The second text asks before its products whether something is so small (see `graph.small`), which
takes less than half as long again, and has the same bits. Which one runs is told by what the processor has noted while
the nest ran last.
"""

from __future__ import annotations

import dataclasses

from catena.compiler.graph.small import FACTORS, FLOATS, SQUARE
from catena.compiler.graph.thresholds import reaches
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import CarefulNest, Nest
from catena.compiler.machine import Machine
from catena.core.context import context

LEAST_BLOCKS = 128  # of lanes: of shorter nests it would take longer to ask
LEAST_OUTSIDE = 4096  # the same outside of loops, where a second text is written for fewer repetitions
MOST_PRODUCTS = 16
MOST_TASKS = 256  # of a nest, of which each notes what it has met


def nest(plain: Nest, machine: Machine, in_loop: bool, chunk: int | None) -> CarefulNest | None:
    """The nest whose products ask whether their factors are small; None where it would be of no use, or `chunk`
    iterations of its outermost loop make too many tasks.
    """
    if not machine.stops_at_subnormals or context.flush_subnormals or context.check_bounds:
        return None
    if plain.sequential or plain.is_checked or plain.vector is None or plain.staged is not None:
        return None
    if not reaches(plain.trips, (LEAST_BLOCKS if in_loop else LEAST_OUTSIDE) * plain.width):
        return None
    if chunk is not None and plain.extents[plain.order[0]] > MOST_TASKS * chunk:
        return None
    stmts = [_asking(plain, s) for s in plain.stmts]
    changed = sum(a is not b for a, b in zip(stmts, plain.stmts))
    same = {f.name: getattr(plain, f.name) for f in dataclasses.fields(plain)}
    return CarefulNest(**same | {"stmts": stmts}) if 0 < changed <= MOST_PRODUCTS else None


def _asking(nest: Nest, s: Stmt) -> Stmt:
    if (s.op, s.attr) == SQUARE[:2]:
        s = s._replace(op="square", attr=None)
    if s.op not in FACTORS or s.attr is not None or s.type not in FLOATS:
        return s
    asked = tuple(k for k, a in enumerate(s.args[:2]) if not _is_ordinary(nest, a))
    return s._replace(attr=asked) if asked else s


def _is_ordinary(nest: Nest, i: int) -> bool:
    """Whether a factor is taken to be no less than 2^-22, as coefficients are; `emit.small` looks at constants."""
    return nest.stmts[i].op == "const" or not nest.depends[i] >> (nest.vector or 0) & 1
