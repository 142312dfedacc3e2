"""Loops that two threads do at the same time, each for its half of the rows.

A step of a recurrent net on a batch takes a few microseconds: threads that shared its products would wait for each
other as long. But the members of the batch go through all iterations without reading each other. So each thread does
the whole loop for half of them, and they meet at its end.

That it is so is told by memory: every step of the body is cut in the middle, and nothing that one half of it writes,
in any step, is touched by the other half of any. Rows have the same bits in any half.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from catena.compiler.graph.affine import Affine
from catena.compiler.graph.symbols import decided
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.machine import Machine
from catena.compiler.plan import contraction, ranges
from catena.compiler.plan.planner import Planner
from catena.compiler.plan.program import ARENA, ARGUMENT, CONSTANT, NULL, PART, RESULT, SLICE, SLOT, Block, Buffer, Step
from catena.compiler.plan.steps import Contract, Copy, Launch, Scan
from catena.core.named import NamedTuple

LEAST = 1 << 19  # units of work of all iterations,
LEAST_STEP = 1 << 12  # and of a step, in the mean: each is a call then, by a table
KNOWN = ARENA, ARGUMENT, CONSTANT, RESULT, SLOT  # memory of which it is known what else is the same


class Span(NamedTuple):
    """The bytes of a buffer that each half of a step touches: the first one, and the one behind the last."""

    buffer: Buffer
    is_written: bool
    halves: tuple


def cut(block: Block, planner: Planner) -> None:
    """Has threads do the loops of a block by halves, where that may be."""
    for step in block.steps:
        if isinstance(step, Scan) and _is_worthwhile(step, planner.machine):
            step.halves = _halves(step, planner)


def _is_worthwhile(step: Scan, machine: Machine) -> bool:
    """Whether a loop is long enough, and none that a signal should end in between."""
    if step.frees_stacks or step.units < LEAST_STEP * len(step.body.steps):
        return False
    return LEAST <= step.units * step.length < machine.sharing.group


def _halves(step: Scan, planner: Planner) -> Block | None:
    body, found, spans = step.body, [], []
    for each in body.steps:
        made = _cut(each)
        if made is None:
            return None
        found.append(made[0])
        spans += made[1]
    beside = {x: y for pair in body.turns for x, y in (pair, pair[::-1])}
    spans += [span._replace(buffer=beside[span.buffer]) for span in spans if span.buffer in beside]
    own = _Own(step)
    places = _places([span for span in spans if not own.has(span.buffer)], planner.reused)
    of_own = [_are_apart(tuple(each)) for each in own.places(spans)]
    if places is None or not _are_apart(places) or not all(of_own):
        return None
    return Block([own.moved(each, planner) for each in found], body.values, body.turns)


class _Own:
    """Memory of what an iteration makes for itself alone. One piece holds several values, one after the other, whose
    halves lie in other places of it; where halves do not wait for each other, each value has memory of its own.
    """

    def __init__(self, step: Scan):
        outside = [*step.inputs, *step.carries, *(b for pair in step.body.turns for b in pair)]
        self.outside = {b.owner() for b in (*outside, *step.slices, *step.made)}
        self.new: dict[Buffer, Buffer] = {}

    def has(self, buffer: Buffer) -> bool:
        owner = buffer.owner()
        return owner.kind == ARENA and owner not in self.outside

    def places(self, spans: list[Span]) -> list[list[tuple]]:
        """Those of each value."""
        found: dict[Buffer, list] = {}
        for span in spans:
            if self.has(span.buffer):
                buffer, at = _whole(span.buffer)
                found.setdefault(buffer, []).append(_numbers(0, span, at))
        return list(found.values())

    def moved(self, step: Step, planner: Planner) -> Step:
        names = [f.name for f in dataclasses.fields(step) if isinstance(getattr(step, f.name), Buffer)]
        changed: dict = {name: self._moved(getattr(step, name), planner) for name in names}
        if isinstance(step, (Launch, Contract)):
            changed["operands"] = {number: self._moved(b, planner) for number, b in step.operands.items()}
        return dataclasses.replace(step, **changed)

    def _moved(self, buffer: Buffer, planner: Planner) -> Buffer:
        if not self.has(buffer):
            return buffer
        if buffer not in self.new:
            if buffer.base is None:
                self.new[buffer] = planner.allocate_anew(buffer.bytes)
            else:
                self.new[buffer] = dataclasses.replace(buffer, base=self._moved(buffer.base, planner))
        return self.new[buffer]


def _cut(step: Step) -> tuple[Step, list[Span]] | None:
    """A step in two tasks, and what these touch; None where it has no halves."""
    if isinstance(step, Launch):
        return _launch(step)
    if isinstance(step, Contract):
        return _contract(step)
    if isinstance(step, Copy) and step.bytes % 2 == 0:
        halves = _of(step.bytes // 2, lambda low, high: (low, high))
        return step, [Span(step.source, False, halves), Span(step.target, True, halves)]
    return None


def _of(half: int, span) -> tuple:
    """What a function makes of the ranges of the two halves."""
    return span(0, half), span(half, 2 * half)


# ---- loop nests ----------------------------------------------------------------------------------------------


def _launch(step: Launch) -> tuple[Step, list[Span]] | None:
    nest = step.nest
    if step.pause or step.parts or not nest.order:
        return None
    outer = nest.order[0]
    opened = ranges.choose(nest, step.in_place, outer)
    if opened.outer != outer or not _has_halves(nest, outer, nest.extents[outer]):
        return None
    halved = dataclasses.replace(step, opened=opened, chunk=nest.extents[outer] // 2, cut=0)
    return halved, list(_of_nest(nest, step.operands, outer))


def _has_halves(nest: Nest, d: int, extent: int) -> bool:
    """Whether the iterations of a dimension are two halves that do not wait for each other."""
    if nest.sequential or nest.is_checked or d in nest.reduced or any(f.running for f in nest.folds):
        return False
    return extent % (2 * (nest.block(d) if d == nest.vector else nest.step(d))) == 0


def _of_nest(nest: Nest, operands: dict[int, Buffer], d: int) -> Iterator[Span]:
    """What a nest touches, cut along a dimension."""
    half = nest.extents[d] // 2
    loads = [(s.attr[:3], False) for s in nest.stmts if s.op in LOADS]
    stores = [((s.buffer, s.dtype, s.offset), True) for s in nest.stores]
    folds = [(dest, True) for f in nest.folds for dest in f.dests]
    for (number, dtype, offset), is_written in (*loads, *stores, *folds):
        if number in operands:
            whole = dict(enumerate((0, n) for n in nest.extents))
            touched = _of(half, lambda *part: _span(offset, whole | {d: part}, TYPES[dtype].bytes, operands[number]))
            yield Span(operands[number], is_written, touched)


def _span(offset: Affine, ranges: dict, size: int, buffer: Buffer) -> tuple[int, int]:
    """The bytes that places lie in, whose dimensions have such ranges."""
    start, dims, terms = offset
    if terms:
        return 0, buffer.bytes
    low = high = start
    for d, by in dims:
        first, behind = ranges[d]
        ends = (by * first, by * (behind - 1))
        low, high = (low + ends[0], high + ends[1]) if by > 0 else (low + ends[1], high + ends[0])
    return low * size, (high + 1) * size


# ---- products ------------------------------------------------------------------------------------------------


def _contract(step: Contract) -> tuple[Step, list[Span]] | None:
    plan = step.plan
    form, after = plan.contraction, step.after
    if form.batch or len(form.rows) != 1 or plan.in_tiles or plan.row.extent % 2:
        return None
    if after is not None and (len(after.rows) != 1 or not _has_halves(after, after.rows[0], plan.row.extent)):
        return None
    rows = contraction.rows_of_half(plan)
    if not rows:
        return None
    plan = plan._replace(rows=rows)
    tasks = contraction.Tasks(2, 2, plan.units // 2, 1, plan.panels)
    return dataclasses.replace(step, plan=plan, tasks=tasks), list(_of_product(step))


def _of_product(step: Contract) -> Iterator[Span]:
    form, half = step.plan.contraction, step.plan.row.extent // 2
    size = form.type.bytes
    whole = dict(enumerate([(0, x.extent) for x in (form.rows[0], *form.terms)] + [(0, form.columns)]))
    of_a = 0, tuple([(d, x.a) for d, x in enumerate((form.rows[0], *form.terms)) if x.a]), ()
    of_c = 0, ((0, form.rows[0].c), (len(form.terms) + 1, 1)), ()
    for buffer, offset, is_written in ((step.a, of_a, False), (step.c, of_c, True)):
        yield Span(buffer, is_written, _of(half, lambda *part: _span(offset, whole | {0: part}, size, buffer)))
    for whole_of in filter(None, (step.b, step.rest)):
        yield Span(whole_of, False, ((0, whole_of.bytes), (0, whole_of.bytes)))
    if step.after is not None:
        yield from _of_nest(step.after, step.operands, step.after.rows[0])


# ---- memory --------------------------------------------------------------------------------------------------


def _places(spans: list[Span], reused: dict[int, int]) -> tuple | None:
    """Spans as numbers: of memory, whether it is written, first and last bytes of both halves; None where it is not
    known what else may be the same memory, or where that of slices is touched otherwise, too.
    """
    names: dict = {}
    found: list[tuple] = []
    for span in spans:
        if span.buffer.kind == NULL:
            continue
        (buffer, at), owner = _whole(span.buffer), span.buffer.owner()
        is_slice = buffer.kind == SLICE
        if owner.kind not in KNOWN or is_slice and buffer.base is not owner:
            return None
        name, size = names.setdefault(_memory(owner, reused), (len(names), buffer.bytes if is_slice else 0))
        if size != (buffer.bytes if is_slice else 0):
            return None
        found.append(_numbers(name, span, at))
    return tuple(found)


def _whole(buffer: Buffer) -> tuple[Buffer, int]:
    """What a buffer is a part of, or a slice, and where it begins there."""
    at = 0
    while buffer.kind == PART:
        assert buffer.base is not None
        buffer, at = buffer.base, at + buffer.place
    return buffer, at


def _memory(owner: Buffer, reused: dict[int, int]):
    """What two buffers have in common that may be the same memory. Slots each have their own, and so have temporaries
    that outlive an iteration.
    """
    if owner.kind in (ARENA, SLOT):
        return owner
    if owner.kind == RESULT and owner.place in reused:
        return ARGUMENT, reused[owner.place]
    return owner.kind, owner.place, id(owner.array)


def _numbers(name: int, span: Span, at: int) -> tuple:
    return name, int(span.is_written), *(at + x for half in span.halves for x in half)


@decided
def _are_apart(places: tuple) -> bool:
    """Whether nothing that one half writes is touched by the other."""
    for name, writes, low, high, low2, high2 in places:
        for other, writes_too, first, last, first2, last2 in places:
            if (
                name == other
                and (writes or writes_too)
                and (low < last2 and first2 < high or low2 < last and first < high2)
            ):
                return False
    return True
