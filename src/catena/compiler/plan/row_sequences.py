"""Sequences of steps that two threads do at the same time, each for its half of the rows (see `plan.row_halves`).

The members of a batch go through the layers of a net without reading each other, as they go through a loop. So threads
that would meet at each product of a small batch meet at the end of the sequence, and what a step has written is in the
cache of the core that reads it. All steps are cut at the same row, between two tiles of the products.

Which steps these are is told by sizes and by the memory that they touch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from catena.compiler.graph.symbols import computed, decided
from catena.compiler.plan import contraction, ranges
from catena.compiler.plan.concurrent import work
from catena.compiler.plan.planner import Planner
from catena.compiler.plan.program import Block, Step
from catena.compiler.plan.row_halves import Memory, Span, are_apart, may_cut, of_nest, of_product
from catena.compiler.plan.steps import ByHalves, Contract, Launch
from catena.core.named import NamedTuple

LONGEST = 32  # steps of a sequence
LEAST = 1 << 17  # units of work of a sequence,
MOST = 1 << 20  # and of a step, for which two threads are enough


class Form(NamedTuple):
    """What tells whether a step is of the sequence of the one before it: its rows, 0 where it has no halves; of a
    product, the rows of a tile; and its units of work.
    """

    rows: int
    tile: int
    work: int


NO_HALVES = Form(0, 0, 0)


def cut(block: Block, planner: Planner) -> None:
    """Has threads do sequences of the steps of a block by halves."""
    memory = Memory(planner.reused)
    steps: list[Step] = []
    start = 0
    for length, tile in _stretches(tuple(map(_form, block.steps))):
        some, start = block.steps[start : start + length], start + length
        steps += _by_halves(some, tile, block.values, memory) if tile else some
    block.steps = steps


def _by_halves(steps: list[Step], tile: int, values: list, memory: Memory) -> Iterator[Step]:
    """Steps that are the longest sequences of some, all of which have the same rows."""
    at, tiles = _middle(_rows(steps[0]), tile), _tiles(_rows(steps[0]), tile)
    places = tuple([memory.places(_touched(step, at)) for step in steps])
    start = 0
    for length in _lengths(tuple(map(work, steps)), places):
        some, start = steps[start : start + length], start + length
        if length == 1:
            yield some[0]
        else:
            halves = [_halved(step, at, tiles) for step in some]
            yield ByHalves(Block(some, values), Block(halves, values), at, origin=some[0].origin)


def is_apart(step: ByHalves) -> bool:
    """Whether neither half touches what the other writes."""
    memory = Memory({})
    places = [memory.places(_touched(each, step.at)) for each in step.body.steps]
    whole = tuple([place for each in places for place in each or ()])
    return None not in places and are_apart(whole, whole)


# ---- which steps -----------------------------------------------------------------------------------------------


def _form(step: Step) -> Form:
    if isinstance(step, Contract) and _is_cut_product(step):
        return Form(_rows(step), step.plan.rows, work(step))
    if isinstance(step, Launch) and _is_cut_nest(step):
        return Form(_rows(step), 0, work(step))
    return NO_HALVES


def _rows(step: Step) -> int:
    if isinstance(step, Contract):
        return step.plan.row.extent
    assert isinstance(step, Launch)
    return step.nest.extents[step.nest.order[0]]


def _is_cut_product(step: Contract) -> bool:
    form, after = step.plan.contraction, step.after
    if form.batch or len(form.rows) != 1 or step.plan.in_tiles:
        return False
    return after is None or len(after.rows) == 1 and may_cut(after, after.rows[0])


def _is_cut_nest(step: Launch) -> bool:
    nest = step.nest
    if step.pause or step.parts or not nest.order or nest.vector == nest.order[0]:
        return False
    return nest.step(nest.order[0]) == 1 and may_cut(nest, nest.order[0]) and _opened(step).outer == nest.order[0]


def _opened(step: Launch) -> ranges.Open:
    return ranges.choose(step.nest, step.in_place, step.nest.order[0])


@decided
def _stretches(forms: tuple) -> tuple:
    """How many steps each stretch has, and the rows of its tiles; 0 where it has no halves, or not work enough. Of
    these numbers alone, so that it is one decision.
    """
    found: list[list[int]] = []  # steps, rows, rows of a tile, units of work
    for rows, tile, units in forms:
        last = found[-1] if found else [0, 0, 0, 0]
        if last[1] and last[1] == rows and units <= MOST and (not tile or last[2] in (0, tile)):
            last[:] = last[0] + 1, rows, last[2] or tile, last[3] + units
        else:
            found.append([1, rows if units <= MOST else 0, tile, units])
    return tuple([(each[0], each[2] if _is_cut(*each) else 0) for each in found])


def _is_cut(steps: int, rows: int, tile: int, units: int) -> bool:
    """Whether a stretch is worth two threads: the smaller half has a quarter of the rows, or more."""
    return steps > 1 and units >= LEAST and tile > 0 and rows - _place(rows, tile) >= rows // 4 > 0


@decided
def _lengths(works: tuple, places: tuple) -> tuple:
    """How many steps each sequence has, 1 of a step that is in none. It ends where a half would touch what the other
    writes, or where that is not known.
    """
    lengths, start = [], 0
    while start < len(works):
        end, together = start, ()
        while end < min(start + LONGEST, len(works)) and _is_apart(places[end], together):
            together += places[end]
            end += 1
        is_worthwhile = end > start + 1 and sum(works[start:end]) >= LEAST
        lengths += [end - start] if is_worthwhile else [1] * max(end - start, 1)
        start = max(end, start + 1)
    return tuple(lengths)


def _is_apart(places: tuple | None, others: tuple) -> bool:
    """Whether the halves of a step do not meet each other, and none the other one of others."""
    return places is not None and are_apart(places, (*places, *others))


# ---- their halves ----------------------------------------------------------------------------------------------


def _tiles(rows: int, tile: int) -> int:
    """How many tiles the first half has."""
    return -(-rows // (2 * tile))


def _place(rows: int, tile: int) -> int:
    """The row at which all steps are cut, between two tiles, the last of which may have a row less than others."""
    return contraction.rows_of_tiles(_tiles(rows, tile), rows, tile)


_middle = computed(_place)


def _halved(step: Step, at: int, tiles: int) -> Step:
    """A step in two tasks, the first of which has so many rows, or tiles."""
    if isinstance(step, Launch):
        return dataclasses.replace(step, opened=_opened(step), chunk=at, cut=0)
    assert isinstance(step, Contract)
    return dataclasses.replace(step, tasks=contraction.Tasks(2, 2, tiles, 1, step.plan.panels))


def _touched(step: Step, at: int) -> list[Span]:
    if isinstance(step, Launch):
        return list(of_nest(step.nest, step.operands, step.nest.order[0], at))
    assert isinstance(step, Contract)
    return list(of_product(step, at))
