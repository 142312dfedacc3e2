"""A loop nest as several, where conditions change along an outer dimension: each has rows that nothing is asked of.

Loops are cut where a condition changes when they are written (see `emit.seams`), and lanes lie there as they do in the
whole. Rows that are shorter than a vector are taken many at once (see `short_rows`) only where all of them are read.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.kernels import conditions, schedules, short_rows, unused
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine

MOST = 5  # nests


def cut(nest: Nest, machine: Machine) -> list[Nest]:
    """The nests of one that is not scheduled, where rows are taken together in one of them; else none."""
    if nest.folds or nest.sequential or nest.is_checked or nest.rows:
        return []
    live = [d for d, n in enumerate(nest.extents) if n != 1]
    found = [(d, seams) for d in live[:-1] if (seams := conditions.find(nest, d))]
    if len(found) != 1 or nest.extents[live[-1]] > short_rows.MOST:
        return []
    (d, seams), n = found[0], nest.extents[found[0][0]]
    cuts = sorted({s.place for s in seams.values() if s.place is not None and 0 < s.place < n})
    if not 0 < len(cuts) < MOST:
        return []
    ends = list(zip([0, *cuts], [*cuts, n]))
    tried = [schedules.schedule(_piece(nest, d, seams, *each), machine) for each in ends]
    return [_piece(nest, d, seams, *each) for each in ends] if any(x.short is not None for x in tried) else []


def _piece(nest: Nest, d: int, seams: dict[int, conditions.Seam], start: int, stop: int) -> Nest:
    """The nest over a part of dimension `d`, in which conditions are known."""

    def moved(a: Affine) -> Affine:
        return affine.shift(a, affine.coefficient(a, d) * start)

    read = [s._replace(attr=(*s.attr[:2], moved(s.attr[2]))) if s.op in LOADS else s for s in nest.stmts]
    stmts = [s._replace(attr=moved(s.attr)) if s.op == "affine" else s for s in read]
    part = Nest(
        [stop - start if k == d else n for k, n in enumerate(nest.extents)],
        nest.reduced,
        stmts,
        list(nest.depends),
        [s._replace(offset=moved(s.offset)) for s in nest.stores],
        ranges=dict(nest.ranges),
    )
    return unused.leave_out(conditions.without(part, conditions.settled(seams, start, stop)))
