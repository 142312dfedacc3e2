"""Dimensions of a loop nest as two, where what is read lies by the quotient and the remainder of an index.

The heads of an attention are a part of its columns: `x.transpose(0, 2, 1, 3).reshape(n, t, h * d)` reads column c of
its result at head c // d, place c % d. As one dimension, columns would be read one by one, at places that are
computed; as a loop over heads with one over the places inside, they lie side by side.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.kernels import unused
from catena.compiler.kernels.body import INDEX, Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest

EACH_TIME = ("accumulator", "load_now")  # what another iteration has changed meanwhile
LEAST = 16  # iterations of the loop inside: a vector, where that is all that lanes can run along


def split(nest: Nest) -> None:
    """Cuts kept dimensions in two by whose quotients the nest reads or writes, as long as there are such."""
    if nest.sequential or nest.run is not None or any(f.running for f in nest.folds):
        return
    before = len(nest.extents)
    while (found := _quotient(nest)) is not None:
        _cut(nest, *found)
    if len(nest.extents) > before:
        unused.leave_out(nest)


def _quotient(nest: Nest) -> tuple[int, int, int] | None:
    """A statement that is a dimension divided by a number and tells where something lies, the dimension, the number."""
    telling = {t for a in nest.offsets() for t, _ in a[2]}
    for q in sorted(telling):
        found = _divided(nest, q)
        if found is not None and _may_cut(nest, *found):
            return q, *found
    return None


def _divided(nest: Nest, q: int) -> tuple[int, int] | None:
    """The dimension and the number by which it is divided, if a statement is such a quotient (see `body.unflatten`)."""
    quotient = nest.stmts[q]
    if quotient.op != "convert" or nest.stmts[quotient.args[0]].op != "div":
        return None
    whole, by = (nest.stmts[a] for a in nest.stmts[quotient.args[0]].args)
    place = nest.stmts[whole.args[0]] if whole.op == "convert" and whole.type == "uint32" else whole
    if place.op != "affine" or by.op != "const":
        return None
    start, dims, terms = place.attr
    if start or terms or len(dims) != 1:
        return None
    ((d, c),) = dims
    return (d, by.attr // c) if c > 0 and by.attr % c == 0 else None


def _may_cut(nest: Nest, d: int, n: int) -> bool:
    inside_rows = any(d <= row for row in nest.rows)
    return d not in nest.reduced and not inside_rows and _leaves_lanes(nest, d, n) and nest.extents[d] % n == 0


def _leaves_lanes(nest: Nest, d: int, n: int) -> bool:
    """Whether the loop inside is long enough for lanes, or these run along other dimensions, since neither what is read
    nor what is written lies side by side along this one.
    """
    return n >= LEAST or not any(abs(affine.coefficient(a, d)) == 1 for a in _places(nest))


def _places(nest: Nest) -> list[Affine]:
    """Where the nest reads and writes."""
    read = [s.attr[2] for s in nest.stmts if s.op in LOADS]
    return [*read, *(s.offset for s in nest.stores), *(o for f in nest.folds for _, _, o in f.dests)]


def _cut(nest: Nest, q: int, d: int, n: int) -> None:
    """Makes dimension `d` a loop over its quotients by `n`, which statement `q` is, and one over the remainders."""

    def moved(a: Affine) -> Affine:
        c = affine.coefficient(a, d)
        of_quotient = c * n + sum(k for t, k in a[2] if t == q)
        dims = [(e + (e > d), k) for e, k in a[1] if e != d]
        dims += [(e, k) for e, k in ((d, of_quotient), (d + 1, c)) if k]
        return a[0], tuple(sorted(dims)), tuple((t, k) for t, k in a[2] if t != q)

    nest.extents = [*nest.extents[:d], nest.extents[d] // n, n, *nest.extents[d + 1 :]]
    nest.reduced = frozenset(e + (e > d) for e in nest.reduced)
    for i, s in enumerate(nest.stmts):
        if s.op in LOADS:
            nest.stmts[i] = s._replace(attr=(*s.attr[:2], moved(s.attr[2])))
        elif s.op == "affine":
            nest.stmts[i] = s._replace(attr=moved(s.attr))
    nest.stores = [s._replace(offset=moved(s.offset)) for s in nest.stores]
    nest.folds = [f._replace(dests=tuple((b, t, moved(o)) for b, t, o in f.dests)) for f in nest.folds]
    nest.stmts[q] = Stmt("affine", INDEX, (), affine.dim(d))
    nest.depends = _depends(nest)


def _depends(nest: Nest) -> list[int]:
    """On which dimensions each statement hangs."""
    found: list[int] = []
    for s in nest.stmts:
        if s.op in EACH_TIME:
            found.append((1 << len(nest.extents)) - 1)
            continue
        place = s.attr[2] if s.op in LOADS else s.attr if s.op == "affine" else affine.ZERO
        mask = sum(1 << d for d, _ in place[1])
        for i in (*s.args, *(t for t, _ in place[2])):
            mask |= found[i]
        found.append(mask)
    return found
