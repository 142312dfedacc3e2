"""Neighbouring dimensions of a loop nest as one, where every access crosses them as if they were: so loops are long,
and lanes have no rows to end at.

Conditions on rows that lie one behind the other, as those of a pad above and below, are conditions on the places of
all elements, and keep nothing apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.keys import Keys
from catena.compiler.kernels import conditions
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest

MOST_PLACES, MOST_STATEMENTS = 2, 40  # of a loop that is surely cut where its conditions change (see `emit.seams`)
SHORT = 8  # elements of rows that leave most lanes empty: conditions cost less,
MOST_OF_SHORT = 160  # in longer bodies too
LONG_ROW = 64  # elements, from which on rows are added up each by itself: whether others keep them apart does not show


def _offsets(nest: Nest) -> Collection[Affine]:
    keys = Keys()
    return {keys.of(a): a for a in nest.offsets()}.values()


def merge(nest: Nest) -> None:
    """Drops dimensions of one element and merges each d into the next one that is left, e, where every offset has
    c_d = c_e * extent_e.
    """
    accesses = _offsets(nest)
    gone = {d for d, n in enumerate(nest.extents) if n == 1}
    live = [d for d in range(len(nest.extents)) if d not in gone]
    if any(f.running for f in nest.folds):
        live = []
    e = live[-1] if live else 0
    for d in reversed(live[:-1]):
        n = nest.extents[e]
        same = (
            all((d in group) == (e in group) for group in (nest.reduced, nest.independent or ())) and d not in nest.rows
        )
        apart = nest.adds_floats and d in nest.reduced and n >= LONG_ROW
        if same and not apart and (all(_one_behind_the_other(a, d, e, n) for a in accesses) or _to_places(nest, d, e)):
            accesses = _offsets(nest)
            nest.extents[e] *= nest.extents[d]
            nest.extents[d] = 1
            gone.add(d)
        else:
            e = d
    if gone:
        _forget(nest, gone)


def merge_into(nest: Nest, d: int, e: int) -> None:
    """Makes dimensions `d` and `e` one; every access must cross them contiguously."""
    nest.extents[e] *= nest.extents[d]
    nest.extents[d] = 1
    _forget(nest, {d})


def _forget(nest: Nest, gone: set[int]) -> None:
    def clean(a: Affine) -> Affine:
        if not any(d in gone for d, _ in a[1]):
            return a
        return (a[0], tuple([x for x in a[1] if x[0] not in gone]), a[2])

    keep = ~sum(1 << d for d in gone)
    for i, s in enumerate(nest.stmts):
        if s.op in LOADS and (left := clean(s.attr[2])) is not s.attr[2]:
            nest.stmts[i] = s._replace(attr=(s.attr[0], s.attr[1], left))
        elif s.op == "affine":
            nest.stmts[i] = s._replace(attr=clean(s.attr))
    nest.depends = [m & keep for m in nest.depends]
    nest.stores = [s._replace(offset=clean(s.offset)) for s in nest.stores]
    nest.folds = [f._replace(dests=tuple((b, t, clean(o)) for b, t, o in f.dests)) for f in nest.folds]


def _one_behind_the_other(a: Affine, d: int, e: int, n: int) -> bool:
    """Whether an offset goes on from one iteration of dimension `d` to the next as along `e`, of `n` elements."""
    return affine.coefficient(a, d) == affine.coefficient(a, e) * n


# ---- conditions on rows ----------------------------------------------------------------------------------------


def _to_places(nest: Nest, d: int, e: int) -> bool:
    """Makes conditions on rows, of dimension `d`, conditions on the places of all elements, along `e`. False, and
    nothing is changed, where other accesses keep these apart, or so much hangs on conditions that each might be asked
    for each element.
    """
    seams = conditions.find(nest, d)
    if not seams or d in nest.reduced or nest.sequential:
        return False
    n = nest.extents[e]
    if len(nest.stmts) > (MOST_STATEMENTS if n > SHORT else MOST_OF_SHORT):
        return False
    apart = {a for a in nest.offsets() if not _one_behind_the_other(a, d, e, n)}
    rows = {i for i, s in enumerate(nest.stmts) if s.op == "affine" and s.attr in apart}
    users = {i for i, s in enumerate(nest.stmts) if rows.intersection(_reads(s))}
    places = sorted({p for i in users if i in seams and (p := seams[i].place) is not None})
    if not users <= seams.keys() or len(places) > MOST_PLACES or rows.intersection(conditions.results(nest)):
        return False
    if any(a in apart for a in _of_memory(nest)):
        return False
    for i in rows:  # which nobody reads then
        nest.stmts[i] = Stmt("const", conditions.INDEX, (), 0)
    nest.depends = [mask | (mask >> d & 1) << e for mask in nest.depends]
    place = Stmt("affine", conditions.INDEX, (), (0, tuple(sorted([(d, n), (e, 1)])), ()))
    _put_first(nest, [place, *(Stmt("const", conditions.INDEX, (), n * p) for p in places)], [1 << d | 1 << e])
    for i in users:
        first, p = seams[i]
        always = Stmt("const", "bool", (), first)
        compared = Stmt("lt" if first else "ge", "bool", (0, 1 + places.index(p)), None) if p in places else always
        nest.stmts[i + 1 + len(places)] = compared
    return True


def _reads(s: Stmt) -> list[int]:
    """The statements that a statement reads."""
    terms = s.attr[2][2] if s.op in LOADS else s.attr[2] if s.op == "affine" else ()
    return [*s.args, *(t for t, _ in terms)]


def _of_memory(nest: Nest) -> Iterator[Affine]:
    """The offsets of what is read and written."""
    yield from (s.attr[2] for s in nest.stmts if s.op in LOADS)
    yield from (s.offset for s in nest.stores)
    yield from (offset for f in nest.folds for _, _, offset in f.dests)


def _put_first(nest: Nest, stmts: list[Stmt], depends: list[int]) -> None:
    """Puts statements before all others, whose numbers move on; `depends` are those of the first ones."""
    by = len(stmts)
    moved: dict[int, int] = {i: i + by for i in range(len(nest.stmts))} | {-1: -1}

    def offset(a: Affine) -> Affine:
        return (a[0], a[1], tuple((t + by, c) for t, c in a[2]))

    def attr(s: Stmt):
        return (*s.attr[:2], offset(s.attr[2])) if s.op in LOADS else offset(s.attr) if s.op == "affine" else s.attr

    nest.stmts = [*stmts, *(s._replace(args=tuple(a + by for a in s.args), attr=attr(s)) for s in nest.stmts)]
    nest.depends = [*depends, *[0] * (by - len(depends)), *nest.depends]
    nest.ranges = {i + by: between for i, between in nest.ranges.items()}
    nest.stores = [s._replace(offset=offset(s.offset), stmt=s.stmt + by, mask=moved[s.mask]) for s in nest.stores]
    nest.folds = [
        f._replace(
            stmts=tuple(moved[i] for i in f.stmts),
            inits=tuple(moved[i] for i in f.inits),
            dests=tuple((b, t, offset(a)) for b, t, a in f.dests),
            run=None if f.run is None else f.run._replace(start=f.run.start + by, stop=f.run.stop + by),
        )
        for f in nest.folds
    ]
