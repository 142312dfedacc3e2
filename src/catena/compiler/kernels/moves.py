"""Loop nests that only bring elements elsewhere, by larger units where rows are short.

Rows of 2 bytes, which an array of many is made of, are integers of 16 bits for who moves them. Floats of 16 bits, which
would be computed in 32, are such integers, too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.types import DTYPES, TYPES
from catena.compiler.kernels import columns
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest

UNITS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}
MOST_BYTES = 8  # of a unit
FEWEST = 64  # elements, of which smaller arrays may be registers


def to_units(nest: Nest) -> bool:
    """Makes rows of a few elements that are moved one element each; says whether it did."""
    found = _moved(nest)
    if found is None or nest.trips < FEWEST:
        return False
    t, d = TYPES[found], _innermost(nest)
    count = 1 if d is None else _count(nest, d, t.bytes)
    if count == 1 and not (t.kind == "f" and t.narrow and t.bytes == 2):
        return False
    unit, values = UNITS[t.bytes * count], _values(nest)
    for i, s in enumerate(nest.stmts):
        if s.op == "load":
            buffer, _, offset = s.attr
            nest.stmts[i] = s._replace(type=unit, attr=(buffer, unit, _in_units(offset, d, count)))
        elif i in values:
            nest.stmts[i] = s._replace(type=unit, attr=_repeated(s.attr, found, count) if s.op == "const" else s.attr)
    nest.stores = [s._replace(dtype=unit, offset=_in_units(s.offset, d, count)) for s in nest.stores]
    if count > 1:
        assert d is not None
        nest.extents[d] = 1
    return count > 1


def _moved(nest: Nest) -> str | None:
    """The type of the elements of a nest that moves them, or puts a constant in their places, and does nothing else."""
    if not nest.stores or nest.folds or nest.sequential or nest.is_checked:
        return None
    values = _values(nest)
    types = {nest.stmts[i].type for i in values} | {s.dtype for s in nest.stores}
    loads = [(i, s) for i, s in enumerate(nest.stmts) if s.op in LOADS]
    if len(types) != 1 or not loads or any(i not in values or s.op != "load" for i, s in loads):
        return None
    others = {t for a in nest.offsets() for t, _ in a[2]} | {s.mask for s in nest.stores}
    for i, s in enumerate(nest.stmts):
        if i in values and s.op not in ("load", "const", "select"):
            return None
        others.update(s.args if i not in values else s.args[:1] if s.op in ("load", "select") else ())
    found = types.pop()
    return found if values.isdisjoint(others) and TYPES[found].bytes in UNITS and TYPES[found].kind != "b" else None


def _values(nest: Nest) -> set[int]:
    """The statements that are stored, and those that these are chosen from."""
    pending, found = [s.stmt for s in nest.stores], set()
    while pending:
        i = pending.pop()
        found.add(i)
        pending += nest.stmts[i].args[1:] if nest.stmts[i].op == "select" else ()
    return found


def _repeated(value, name: str, count: int) -> int:
    """The bits of so many equal constants, one behind the other."""
    return int.from_bytes(np.full(count, value, DTYPES[name]).tobytes(), sys.byteorder)


def _places(nest: Nest) -> Iterator[Affine]:
    yield from (s.attr[2] for s in nest.stmts if s.op == "load")
    yield from (s.offset for s in nest.stores)


def _innermost(nest: Nest) -> int | None:
    """The dimension along which the elements of all rows are neighbours, if nothing else hangs on it."""
    alive = [d for d, n in enumerate(nest.extents) if n != 1 and d not in nest.rows]
    along = [d for d in alive if all(affine.coefficient(a, d) == 1 for a in _places(nest))]
    values = _values(nest)
    others = [mask for i, mask in enumerate(nest.depends) if i not in values]
    return next((d for d in along if not any(mask >> d & 1 for mask in others)), None)


def _count(nest: Nest, d: int, size: int) -> int:
    """How many elements are a unit: a row, where rows lie side by side, or are columns of longer ones; else one."""
    if nest.extents[d] * size > MOST_BYTES:
        return 1
    count = int(nest.extents[d])
    if count not in (2, 4, 8):
        return 1
    for const, dims, terms in _places(nest):
        if const % count or any(k % count for e, k in dims if e != d) or any(k % count for _, k in terms):
            return 1
    others = (e for e, n in enumerate(nest.extents) if n != 1 and e != d)
    return count if any(_are_neighbours(nest, e, count) for e in others) else 1


def _are_neighbours(nest: Nest, e: int, count: int) -> bool:
    """Whether units along dimension `e` are read and written by whole vectors."""
    steps = {affine.coefficient(s.offset, e) for s in nest.stores}
    written = len(steps) == 1 and steps.pop() in (count, count * len(nest.stores))
    reads = [affine.coefficient(s.attr[2], e) for s in nest.stmts if s.op == "load"]
    return written and len(nest.stores) <= columns.MOST and all(0 <= k <= count * columns.MOST for k in reads)


def _in_units(a: Affine, d: int | None, count: int) -> Affine:
    const, dims, terms = a
    if count == 1:
        return a
    moved = tuple((e, k if e == d else k // count) for e, k in dims)
    return const // count, moved, tuple((t, k // count) for t, k in terms)
