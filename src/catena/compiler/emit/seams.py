"""Seams: places along a loop where a condition changes that compares them with a number.

The border of a pad, and where the parts of a concatenation meet (those of a roll, say), are such places. Between them
such a condition is known when the loop is written: so the loop is cut there, and what lies between is read without
masks, chosen without selects, and left out where nobody needs it. Along the lanes, vectors that a seam goes through
have masks and selects.

A loop that is given its range (see `plan.ranges`) is cut at the same places, whatever its extent: of each piece, the
range has a part, which may be empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from catena.compiler.emit.branches import when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.forms import COSTLY
from catena.compiler.kernels import conditions
from catena.compiler.kernels.loops import Nest
from catena.core.named import NamedTuple

MOST_PIECES = 5  # of a loop
LONGEST = 256  # statements in all pieces
FUNCTION = 16  # statements that a function counts for


class Piece(NamedTuple):
    """A part of a loop, to its end where `stop` is None, and the conditions that are settled there."""

    start: int
    stop: int | None
    settled: dict[int, bool]


def pieces(nest: Nest, d: int, n: int | None, first: int = 0) -> list[Piece]:
    """The pieces of the loop over dimension `d` from `first` up to `n`, or up to any number; along the lanes, of whole
    blocks, but for the last, which is moved back over those before it where it is not.
    """
    seams = conditions.find(nest, d)
    places = {s.place for s in seams.values() if s.place is not None and s.place > first and (n is None or s.place < n)}
    at_once, size = (nest.width * nest.unroll, nest.block(d)) if d == nest.vector else (1, 1)
    cuts = {p - (p - first) % size for p in places} | {p + (first - p) % size for p in places}
    if n is not None and places:
        cuts.add(n - (n - first) % at_once)
    starts = [first, *sorted(c for c in cuts if first < c and (n is None or c < n))]
    out = []
    for start, stop in zip(starts, [*starts[1:], n]):
        begins = start if stop is None or d != nest.vector else max(min(start, stop - at_once), 0)
        out.append(Piece(start, stop, conditions.settled(seams, begins, stop)))
    return out


def plan(nest: Nest, along: Collection[int], opened: Collection[int]) -> set[int]:
    """Which of the loops `along` these dimensions are cut, the lanes first, then from the inside out, where that is not
    too much text. It hangs on no extent of `opened` loops, which the text does not tell.
    """
    chosen: dict[int, list[Piece]] = {}
    for d in sorted(along, key=lambda d: (d != nest.vector, -nest.order.index(d))):
        found = pieces(nest, d, None if d in opened else nest.extents[d])
        if d == nest.vector and d in opened and len(found) > 1:
            found.append(Piece(0, None, {}))  # the rest of the range
        if 1 < len(found) <= MOST_PIECES + (d in opened) and _length(nest, {**chosen, d: found}) <= LONGEST:
            chosen[d] = found
    return set(chosen)


@contextmanager
def part(e: Emitter, start, stop, piece: Piece) -> Iterator[tuple]:
    """Where a piece begins and ends in a range; where that is nowhere, what is written meanwhile is skipped."""
    first, end = start, stop
    if piece.start:
        first = e.most(start, e.size(piece.start))
    if piece.stop is not None:
        end = e.least(stop, e.size(piece.stop))
    with when(e, e.op(f"icmp slt i64 {first}, {end}")):
        yield first, end


def _length(nest: Nest, cut: dict[int, list[Piece]]) -> int:
    """Statements that are written."""
    weights = [0 if s.op == "const" else FUNCTION if s.op in COSTLY else 1 for s in nest.stmts]
    total = 0
    for each in itertools.product(*cut.values()):
        known = conditions.follow(nest, {i: x for piece in each for i, x in piece.settled.items()})
        total += sum(1 if i in known else weights[i] for i in conditions.needed(nest, known)) + len(nest.stores)
    return total * nest.unroll
