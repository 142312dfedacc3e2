"""Conditions that compare the index of one loop with a number: where they change, and what follows there.

The border of a pad, and where the parts of a concatenation meet, are such conditions. Each changes at one place at
most, its seam: on either side the condition is known, and with it what it chooses, and which statements nobody needs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping

from catena.core.named import NamedTuple

COMPARED = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
LOADS = ("load", "load_now")
INDEX = "int64"  # of places


class Seam(NamedTuple):
    """What a condition is up to a place, and is not from there on; it never changes where there is none."""

    first: bool
    place: int | None


def find(nest, d: int) -> dict[int, Seam]:
    """The seams of statements that compare the index of dimension `d`, of any extent, with a number."""
    found = {}
    for i, s in enumerate(nest.stmts):
        if s.op in COMPARED:
            sides = [side for x in s.args if (side := _of_place(nest, x, d)) is not None]
            if len(sides) == len(s.args) and (sides[0][1] or sides[1][1]):
                found[i] = _seam(s.op, *sides)
    return found


def _of_place(nest, i: int, d: int) -> tuple[int, int] | None:
    """A statement as a number and what each step of dimension `d` adds to it; None where it is something else."""
    s = nest.stmts[i]
    if s.op == "const" and s.type == INDEX:
        return s.attr, 0
    if s.op == "affine" and not s.attr[2] and all(k == d for k, _ in s.attr[1]):
        return s.attr[0], dict(s.attr[1]).get(d, 0)
    return None


def _seam(op: str, one: tuple[int, int], other: tuple[int, int]) -> Seam:
    """Where it changes how a number compares with another, as both move on."""
    (a, by), (b, also) = one, other
    first, step = COMPARED[op](a, b), by - also
    # What decides is whether this is negative, which is `step` more at each place.
    ahead = a - b - 1 if op in ("le", "gt") else a - b
    if first == (op in ("lt", "le")):
        return Seam(first, -(ahead // step) if step > 0 else None)
    return Seam(first, ahead // -step + 1 if step < 0 else None)


def settled(seams: Mapping[int, Seam], start: int, stop: int | None) -> dict[int, bool]:
    """The conditions that are the same at all these places, which may have no end."""
    out = {}
    for i, (first, place) in seams.items():
        if place is None or (stop is not None and stop <= place):
            out[i] = first
        elif start >= place:
            out[i] = not first
    return out


# ---- what follows ----------------------------------------------------------------------------------------------


def follow(nest, conditions: Mapping[int, bool]) -> dict[int, bool]:
    """These conditions, and those that they settle."""
    known = dict(conditions)
    for i, s in enumerate(nest.stmts):
        if s.type == "bool" and i not in known and (x := _followed(nest, s, known)) is not None:
            known[i] = x
    return known


def without(nest, conditions: Mapping[int, bool]):
    """The nest, in place, where these conditions are known: what is chosen by them is read instead."""
    known = follow(nest, conditions)
    chosen: dict[int, int] = {}

    def now(i: int) -> int:
        return chosen.get(i, i)

    offset = lambda a: (*a[:2], tuple((now(t), c) for t, c in a[2]))
    stmts = []
    for i, s in enumerate(nest.stmts):
        if s.op == "select" and s.args[0] in known:
            chosen[i] = now(s.args[1] if known[s.args[0]] else s.args[2])
        s = s._replace(args=tuple(now(a) for a in s.args))
        if i in known:
            s = s._replace(op="const", args=(), attr=known[i])
        elif s.op in LOADS:
            args = () if s.args and known.get(s.args[0]) else s.args
            s = s._replace(args=args, attr=(*s.attr[:2], offset(s.attr[2])))
        elif s.op == "affine":
            s = s._replace(attr=offset(s.attr))
        stmts.append(s)
    nest.stmts = stmts
    nest.stores = [s._replace(stmt=now(s.stmt), mask=now(s.mask), offset=offset(s.offset)) for s in nest.stores]
    dests = lambda f: tuple((b, t, offset(o)) for b, t, o in f.dests)
    nest.folds = [
        f._replace(stmts=tuple(map(now, f.stmts)), inits=tuple(map(now, f.inits)), dests=dests(f)) for f in nest.folds
    ]
    return nest


def _followed(nest, s, known: Mapping[int, bool]) -> bool | None:
    value = lambda i: bool(nest.stmts[i].attr) if nest.stmts[i].op == "const" else known.get(i)
    if s.op in ("and", "or"):
        sides, rules = [value(a) for a in s.args], s.op == "or"  # the side that decides alone
        return rules if rules in sides else None if None in sides else not rules
    if s.op == "select" and (which := value(s.args[0])) is not None:
        return value(s.args[1 if which else 2])
    if s.op == "not" and (x := value(s.args[0])) is not None:
        return not x
    return None


def results(nest) -> Iterator[int]:
    """The statements that are written, and those that tell where."""
    for s in nest.stores:
        yield from (s.stmt, *([s.mask] if s.mask >= 0 else []), *(t for t, _ in s.offset[2]))
    for f in nest.folds:
        yield from (*f.stmts, *f.inits, *(f.run.ends if f.run is not None else ()))
        yield from (t for _, _, offset in f.dests for t, _ in offset[2])


def needed(nest, known: Mapping[int, bool]) -> set[int]:
    """The statements that the nest's results and tests hang on, where these conditions are known."""
    pending = [*results(nest), *(i for i, s in enumerate(nest.stmts) if s.op == "check")]
    found: set[int] = set()
    while pending:
        i = pending.pop()
        if i not in found:
            found.add(i)
            pending += _reads(nest, i, known)
    return found


def _reads(nest, i: int, known: Mapping[int, bool]) -> list[int]:
    """What a statement is computed of, where these conditions are known."""
    s = nest.stmts[i]
    if i in known:
        return []
    if s.op == "select" and s.args[0] in known:
        return [s.args[1 if known[s.args[0]] else 2]]
    if s.op in LOADS and s.args and known.get(s.args[0]) is False:
        return []
    terms = s.attr[2][2] if s.op in LOADS else s.attr[2] if s.op == "affine" else ()
    return [*s.args, *(t for t, _ in terms)]
