"""Rows of a few elements that lie in parts, as those of a tile or a pad do, as one statement for each column.

Lanes then lie along the rows, and all columns are read and written by whole vectors (see `columns`). What hangs on the
column alone, such as where a pad begins, is known.
"""

from __future__ import annotations

import itertools
import math

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import columns, conditions, unused
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import Nest

LEAST_ROWS = 2  # vectors of them
LEAST_TURNED, SMALL = 8, 2  # rows, where columns lie side by side in memory, and bytes of an element
MOST_STATEMENTS = 64  # of all columns
MOST_FOLDED, LEAST_FOLDED = 6, 8  # columns that are folded at once, and vectors of rows that they have
UNORDERED = frozenset("max min sum prod and or xor".split())


def unroll(nest: Nest, width: int) -> bool:
    """Writes a nest so; False, and nothing is changed, where lanes are better elsewhere."""
    kept = [d for d, n in enumerate(nest.extents) if n != 1]
    if nest.folds or nest.sequential or nest.is_checked or nest.rows or not nest.stores or len(kept) < 2:
        return False
    inner = _inner(nest, kept)
    rows, n = next((d for d in reversed(kept) if d not in inner), None), math.prod(nest.extents[d] for d in inner)
    if rows is None or not inner or nest.extents[kept[-1]] > width // 2:
        return False
    if nest.extents[rows] < (LEAST_TURNED if _are_turned(nest, rows, kept[-1]) else LEAST_ROWS * width):
        return False
    if any(s.op in COSTLY or s.op == "load_now" for s in nest.stmts) or not _are_columns(nest, rows, inner, n):
        return False
    if sum(n if any(mask >> d & 1 for d in inner) else 1 for mask in nest.depends) > MOST_STATEMENTS:
        return False
    _unroll(nest, inner)
    return True


def unroll_folds(nest: Nest, width: int) -> bool:
    """Folds columns, of which the order does not tell, each by itself, in lanes along the rows that are folded."""
    live = [d for d, n in enumerate(nest.extents) if n != 1]
    kept, reduced = ([d for d in live if (d in nest.reduced) is is_in] for is_in in (False, True))
    if nest.stores or nest.sequential or nest.is_checked or nest.rows or nest.run is not None or not (kept and reduced):
        return False
    column, rows = kept[-1], reduced[-1]
    n = nest.extents[column]
    if n > MOST_FOLDED or nest.extents[rows] < LEAST_FOLDED * width or len(nest.folds) * n > MOST_FOLDED:
        return False
    if any(f.is_ordered or f.running or f.kind not in UNORDERED for f in nest.folds):
        return False
    if any(s.op in COSTLY or s.op == "load_now" for s in nest.stmts):
        return False
    loads = [s for s in nest.stmts if s.op == "load"]
    if any(s.attr[2][2] or not 0 <= affine.coefficient(s.attr[2], rows) <= columns.MOST for s in loads):
        return False
    whole = any((affine.coefficient(s.attr[2], rows), affine.coefficient(s.attr[2], column)) == (n, 1) for s in loads)
    if not whole or n * len(nest.stmts) > MOST_STATEMENTS:
        return False
    _unroll(nest, [column])
    return True


def _are_turned(nest: Nest, rows: int, column: int) -> bool:
    """Whether matrices of few rows are transposed, each column of which lies side by side: of larger elements of which
    more is made than a copy, squares are as fast.
    """
    small = all(TYPES[s.dtype].bytes <= SMALL for s in nest.stores)
    if not small and any(s.op != "load" for s in nest.stmts):
        return False
    places = [s.attr[2] for s in nest.stmts if s.op == "load"]
    return any(affine.coefficient(a, rows) == 1 and affine.coefficient(a, column) > 1 for a in places)


def _inner(nest: Nest, kept: list[int]) -> list[int]:
    """The last dimensions, of which rows of a few elements are made."""
    count = 1
    for k in reversed(range(len(kept))):
        count *= nest.extents[kept[k]]
        if count > columns.MOST:
            return kept[k + 1 :]
    return kept[1:]


def _are_columns(nest: Nest, rows: int, inner: list[int], n: int) -> bool:
    """Whether whole rows are written, and lanes along them read columns of rows that are as short, or neighbours."""
    order, step = {}, 1
    for d in reversed(inner):
        order[d], step = step, step * nest.extents[d]
    for s in nest.stores:
        if s.mask >= 0 or s.offset[2] or affine.coefficient(s.offset, rows) % n:
            return False
        if any(affine.coefficient(s.offset, d) != order[d] for d in inner):
            return False
    whole = {affine.coefficient(s.offset, rows) for s in nest.stores}
    if len(whole) != 1 or not n * len(nest.stores) == whole.pop() <= columns.MOST:
        return False
    loads = [s for s in nest.stmts if s.op == "load"]
    return all(not s.attr[2][2] and 0 <= affine.coefficient(s.attr[2], rows) <= columns.MOST for s in loads)


def _unroll(nest: Nest, inner: list[int]) -> None:
    """Copies of what hangs on the inner dimensions, one for each column."""
    stmts: list[Stmt] = []
    depends: list[int] = []
    ranges: dict[int, tuple[int, int]] = {}
    shared: dict[int, int] = {}
    stores, folds, moves = [], [], sum(1 << d for d in inner)
    for at in itertools.product(*(range(nest.extents[d]) for d in inner)):
        place, new = dict(zip(inner, at)), dict(shared)
        for i, (s, mask) in enumerate(zip(nest.stmts, nest.depends)):
            if i in shared:
                continue
            new[i] = len(stmts)
            if not mask & moves:
                shared[i] = new[i]
            stmts.append(_at(s, place, new))
            depends.append(mask & ~moves)
            if i in nest.ranges:
                ranges[new[i]] = nest.ranges[i]
        stores += [s._replace(offset=_offset(s.offset, place, new), stmt=new[s.stmt]) for s in nest.stores]
        for f in nest.folds:
            dests = tuple((b, t, _offset(o, place, new)) for b, t, o in f.dests)
            folds.append(f._replace(stmts=tuple(new[i] for i in f.stmts), dests=dests))
    nest.stmts, nest.depends, nest.ranges, nest.stores, nest.folds = stmts, depends, ranges, stores, folds
    for d in inner:
        nest.extents[d] = 1
    conditions.without(nest, _known(nest))
    unused.leave_out(nest)


def _at(s: Stmt, place: dict[int, int], new: dict[int, int]) -> Stmt:
    args = tuple(new[a] for a in s.args)
    if s.op == "load":
        return s._replace(args=args, attr=(*s.attr[:2], _offset(s.attr[2], place, new)))
    if s.op == "affine":
        moved = _offset(s.attr, place, new)
        return Stmt("const", s.type, (), moved[0]) if affine.is_constant(moved) else s._replace(attr=moved)
    return s._replace(args=args)


def _offset(a: Affine, place: dict[int, int], new: dict[int, int]) -> Affine:
    const, dims, terms = a
    const += sum(k * place[d] for d, k in dims if d in place)
    return const, tuple((d, k) for d, k in dims if d not in place), tuple((new[t], k) for t, k in terms)


def _known(nest: Nest) -> dict[int, bool]:
    """The comparisons of constants."""
    known = {}
    for i, s in enumerate(nest.stmts):
        if s.op in conditions.COMPARED and all(nest.stmts[a].op == "const" for a in s.args):
            known[i] = bool(conditions.COMPARED[s.op](*(nest.stmts[a].attr for a in s.args)))
    return known
