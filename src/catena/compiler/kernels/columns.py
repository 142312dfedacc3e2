"""Columns of rows of a few elements: what lanes along the rows read and write of them.

Coordinates of points and channels of pictures lie side by side. Lanes along the points read one column each, whose
elements lie apart: n columns of W rows are n whole vectors, whose lanes are brought to their columns by shuffles, and
back where all columns of the rows are written (see `emit.columns`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine

MOST = 12  # columns of a row
Access = tuple[Hashable, int, str, Affine]  # a key, the buffer, the type in memory, the place


def groups(accesses: Iterable[Access], d: int, whole: bool) -> list[list[Access]]:
    """Accesses to columns of the same rows, which lie along `d`, in the order of the columns: two at least, of pairs
    both, or, where that is wanted, the `whole` of them.
    """
    found: list[list[Access]] = []  # not by dictionary: the hash of a number that is not known tells which it is
    for access in accesses:
        if access[3][2] or not 2 <= affine.coefficient(access[3], d) <= MOST:
            continue
        same = next((g for g in found if g[0][1:3] == access[1:3] and g[0][3][1] == access[3][1]), None)
        if same is None:
            found.append([access])
        else:
            same.append(access)
    rows = [(affine.coefficient(same[0][3], d), _of_rows(same, d)) for same in found]
    return [g for n, each in rows for g in each if len(g) >= (n if whole or n == 2 else 2)]


def _of_rows(accesses: list[Access], d: int) -> list[list[Access]]:
    """Accesses that differ in where they begin alone, by rows."""
    n, last = affine.coefficient(accesses[0][3], d), None
    out: list[list[Access]] = []
    for access in sorted(accesses, key=lambda a: a[3][0]):
        const = access[3][0]
        if last is not None and const == last:
            continue
        last = const
        if out and const < out[-1][0][3][0] + n:
            out[-1].append(access)
        else:
            out.append([access])
    return out


def loads(nest, d: int) -> list[list[Access]]:
    """The loads of a nest that are done together."""
    return groups(((i, *s.attr) for i, s in enumerate(nest.stmts) if s.op == "load" and not s.args), d, False)


def stores(nest, d: int) -> list[list[Access]]:
    """Its stores, likewise."""
    given = ((i, s.buffer, s.dtype, s.offset) for i, s in enumerate(nest.stores) if s.mask < 0)
    return groups(given, d, True)


def offsets(nest, d: int) -> list[Affine]:
    """The places of all columns that are read or written together."""
    return [access[3] for g in (*loads(nest, d), *stores(nest, d)) for access in g]
