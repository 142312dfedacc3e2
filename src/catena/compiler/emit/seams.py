"""Seams: places along the lanes where a condition changes that compares them with a number.

The border of a pad, and where the parts of a concatenation meet (those of a roll, say), are such places. Between them
such a condition is the same in all lanes, and known when the loop is written: so the loop is cut there, and what lies
between is read without masks and chosen without selects. Only vectors that a seam goes through have both.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterator
from typing import NamedTuple

from catena.compiler.graph.forms import COSTLY
from catena.compiler.kernels.loops import Nest

COMPARED = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
MOST_PARTS = 5  # of a loop
LONGEST = 256  # statements in all parts
FUNCTION = 16  # statements that a function counts for


def cut(nest: Nest, d: int, segment) -> Iterator[tuple]:
    """The parts of a segment of dimension `d` (see `nest.Segment`), each with the conditions that are settled there."""
    found = find(nest, d)
    whole = segment.stop - segment.start == nest.extents[d] and segment.unroll == 1 and nest.together is None
    for start, stop in parts(nest, d, found) if whole else [(segment.start, segment.stop)]:
        first = min(start, stop - segment.width * segment.unroll)  # the last block is moved back
        yield segment._replace(start=start, stop=stop), settled(found, first, stop)


class Seam(NamedTuple):
    """What a condition is up to a place, and is not from there on."""

    first: bool
    place: int


def find(nest: Nest, d: int) -> dict[int, Seam]:
    """The seams of statements that compare the index of dimension `d` with a number."""
    found = {}
    for i, s in enumerate(nest.stmts):
        if s.op not in COMPARED:
            continue
        sides = [side for x in s.args if (side := _of_place(nest, x, d)) is not None]
        if len(sides) == len(s.args):
            (a, by), (b, also) = sides
            holds = lambda k: COMPARED[s.op](a + by * k, b + also * k)  # noqa: B023 - is called here
            first = holds(0)
            place = bisect.bisect_left(range(nest.extents[d]), True, key=lambda k: holds(k) is not first)
            found[i] = Seam(first, place)
    return found


def _of_place(nest: Nest, i: int, d: int) -> tuple[int, int] | None:
    """A statement as a number and what each step of dimension `d` adds to it; None where it is something else."""
    s = nest.stmts[i]
    if s.op == "const":
        return s.attr, 0
    if s.op == "affine" and not s.attr[2] and all(k == d for k, _ in s.attr[1]):
        return s.attr[0], dict(s.attr[1]).get(d, 0)
    return None


def parts(nest: Nest, d: int, seams: dict[int, Seam]) -> list[tuple[int, int]]:
    """The parts of the loop over the vectors of dimension `d`; one, where more would be too much text."""
    n, width = nest.extents[d], nest.width
    places = {s.place for s in seams.values() if s.place < n}
    cuts = {p // width * width for p in places} | {-(-p // width) * width for p in places}
    cuts |= {n // width * width} if places and n % width else set()  # the last vector is moved back over the one before
    bounds = [0, *sorted(c for c in cuts if 0 < c < n), n]
    text = len(nest.stmts) + FUNCTION * sum(s.op in COSTLY for s in nest.stmts)
    if len(bounds) - 1 > MOST_PARTS or text * (len(bounds) - 1) > LONGEST:
        return [(0, n)]
    return list(zip(bounds, bounds[1:]))


def settled(seams: dict[int, Seam], start: int, stop: int) -> dict[int, bool]:
    """The conditions that are the same at all these places."""
    return {i: s.first == (stop <= s.place) for i, s in seams.items() if not start < s.place < stop}
