"""Rows that many rows are divided by: one over them is computed once, and products with it are corrected.

Dividers take longer than all else where little is done beside them: 10 cycles a vector of 16 floats, 16 of doubles.
What lanes share is inverted before their loop (`emit.stages`); of a row, which differs in the lanes, the inverses are
an array. The quotients have the divider's bits (`vector_math.inverses.quotient_by_inverse`).
"""

from __future__ import annotations

from catena.compiler.graph.forms import Map
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value

LEAST_LANES = {"float32": 16, "float64": 4}  # of which a division takes as long as many other operations
MANY, ROWS = 1 << 17, 16  # bytes, and rows, beside which a row is nothing
LONG = 4  # vectors of a row at least, along which lanes lie then


def invert(region: Region, vector_bytes: int) -> Region:
    """The region, in place, and those in it."""
    for each in region.walk():
        made: dict[int, list[Value]] = {}
        inverses: dict[Value, Value] = {}
        for v in each.live():
            if _is_by_row(v, vector_bytes):
                made[v.number] = _invert(v, inverses)
        if made:
            insert(each, made)
    return region


def _is_by_row(v: Value, vector_bytes: int) -> bool:
    """Whether a value is what rows are divided by a row, as a processor does it, of many rows."""
    if v.form != "map" or v.params != Map("div") or v.dtype.name not in LEAST_LANES or v.nbytes < MANY:
        return False
    lanes, spread = vector_bytes // v.dtype.itemsize, v.args[1]
    if lanes < LEAST_LANES[v.dtype.name] or spread.form != "broadcast":
        return False
    (row,) = spread.args
    along = v.ndim - 1 in spread.params.dims and row.shape[-1] == v.shape[-1] >= LONG * lanes
    return along and row.size * ROWS <= v.size


def _invert(v: Value, inverses: dict[Value, Value]) -> list[Value]:
    """Makes a division, in place, one by what is inverted; returns what that needs before it."""
    w, spread = Writer(v.source), v.args[1]
    (row,) = spread.args
    if row not in inverses:
        inverses[row] = w.map("inverse", row)
    v.args = (*v.args, w.broadcast_in_dim(inverses[row], v.shape, spread.params.dims))
    v.params = Map("div_by_inverse")
    return w.made
