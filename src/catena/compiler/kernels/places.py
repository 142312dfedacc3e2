"""Places that are computed: of which elements lanes read, and what is known of them before."""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES

VECTORS = 4  # of a table whose elements are chosen


def shares_place(nest, s, d: int) -> bool:
    """Whether lanes read at places of their own, which do not hang on dimension `d`."""
    if s.op != "load" or any(nest.depends[a] >> d & 1 for a in s.args):
        return False
    terms = [nest.depends[t] for t, _ in s.attr[2][2]]
    along = sum(mask >> nest.vector & 1 for mask in terms)
    return along == 1 and affine.coefficient(s.attr[2], d) != 0 and not any(mask >> d & 1 for mask in terms)


def table(nest, s, chooses: int, least: int) -> tuple[int, int] | None:
    """The bounds of the places that lanes read in a table of so few elements that these are lanes of vectors of
    `chooses` bytes, of which any are chosen if they have `least` (see `emit.places`); None for other loads.
    """
    if s.op != "load" or len(s.attr[2][2]) != 1 or not chooses:
        return None
    ((t, k),) = s.attr[2][2]
    if k != 1 or not nest.depends[t] >> nest.vector & 1 or affine.coefficient(s.attr[2], nest.vector):
        return None
    size, (bounds, alone) = TYPES[s.attr[1]].bytes, limits(nest, t, s.args[0] if s.args else -1)
    if bounds is None or not alone or size < least or (size != 4 and chooses != 64):
        return None
    lanes = chooses // size
    few = bounds[1] - bounds[0] < (VECTORS if chooses == 64 else 2) * lanes and nest.width <= lanes
    return bounds if few else None


def limits(nest, t: int, mask: int) -> tuple[tuple[int, int] | None, bool]:
    """The bounds of an integer that is computed, where a mask holds; and whether the mask says no more than that. Of
    one for which it never holds, there are none.
    """
    low = high = None
    alone, pending, own = True, [mask] if mask >= 0 else [], _unconverted(nest, t)
    while pending:
        s = nest.stmts[pending.pop()]
        if s.op == "and":
            pending += s.args
        elif s.op in ("ge", "lt") and s.args[0] == own and nest.stmts[s.args[1]].op == "const":
            bound = nest.stmts[s.args[1]].attr
            low, high = (bound, high) if s.op == "ge" else (low, bound - 1)
        else:
            alone = False
    if low is None and own in nest.ranges:
        low = nest.ranges[own][0]
    if high is None and own in nest.ranges:
        high = nest.ranges[own][1]
    known = nest.ranges.get(t) or (None if low is None or high is None else (low, high))
    return known if known is not None and known[0] <= known[1] else None, alone


def _unconverted(nest, t: int) -> int:
    """The integer that a statement is, in the type in which it was computed."""
    return nest.stmts[t].args[0] if nest.stmts[t].op == "convert" else t
