"""The loops over blocks that `blocks` finds, as nodes of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from catena.compiler.graph.forms import COSTLY, NOTHING, Broadcast, Constant, Input, Map, Output, Scan
from catena.compiler.graph.insertion import number
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.symbols import array_of
from catena.compiler.plan.block_places import SUMMED, needs

if TYPE_CHECKING:
    from catena.compiler.plan.blocks import Work

INDEX = np.dtype(np.int64)

FEW, LITTLE = 64, 16  # operations; and how much smaller what is read is than what is made of it


@dataclass
class Loop:
    """Makes its `results`, in blocks of so many steps of the axis."""

    work: Work
    level: int
    results: dict[int, Value] = field(default_factory=dict)
    size: int = 0

    def values(self) -> list[Value]:
        """What its iterations compute."""
        return list({v.number: v for v, _ in self._visited() if self.makes(v)}.values())

    def reads(self) -> list[Value]:
        """What it needs of other loops, and of what is around them."""
        return list(
            {v.number: v for v, at in self._visited() if not self.makes(v) and not self.is_inside(v, at)}.values()
        )

    def makes(self, v: Value) -> bool:
        return v.number in self.work.large or v.number in self.work.place and self.work.level[v.number] == self.level

    def place(self, v: Value) -> int:
        return self.work.axis if v.number in self.work.large else self.work.place[v.number]

    def is_inside(self, v: Value, at: int | None) -> bool:
        """Whether it computes a value that it needs by itself: numbers, views of others, and what is nearly as large as
        a member of the products, such as a mask.
        """
        if v.form in ("broadcast", "iota", "transpose"):
            return True
        if v.form == "constant":
            return v.ndim == 0
        if v.size < self.work.least or v.form != "map" or v.params.op == "checked":
            return False
        return at is not None or _is_made_of_little(v)

    def _visited(self) -> list[tuple[Value, int | None]]:
        """What results hang on, and where the axis is in it, up to what is not made inside."""
        found: dict[tuple, tuple] = {}
        pending: list[tuple[Value, int | None]] = [(v, self.place(v)) for v in self.results.values()]
        while pending:
            v, at = pending.pop()
            if (v.number, at) in found:
                continue
            found[v.number, at] = v, at
            if self.makes(v) or self.is_inside(v, at):
                pending += zip(v.args, operands(v, at))
        return list(found.values())


def operands(v: Value, at: int | None) -> list[int | None]:
    return [None] * len(v.args) if at is None else needs(v, at)


def _is_made_of_little(v: Value) -> bool:
    """Whether a large value is made by few cheap operations, of numbers and of arrays that are small beside it."""
    found, pending, read = {v.number}, [v], 0
    while pending:
        x = pending.pop()
        is_cheap = x.form == "map" and x.params.op not in COSTLY and x.params.op != "checked"
        if is_cheap or x.form in ("broadcast", "iota", "transpose"):
            new = [a for a in x.args if a.number not in found]
            found.update(a.number for a in new)
            pending += new
        else:
            read += x.size
        if len(found) > FEW or LITTLE * read > v.size:
            return False
    return True


class _Writer:
    """Writes what an iteration computes, or the same outside of a loop, for `size` steps from `start` on."""

    def __init__(self, loop: Loop, size: int, given: dict[int, Value]):
        self.loop, self.size, self.given = loop, size, given
        self.made: list[Value] = []
        self.known: dict[tuple, Value] = {}
        self.start: Any = None

    def value(self, form: str, shape, dtype, args: Sequence[Value], params: Any = NOTHING, source=None) -> Value:
        self.made.append(Value(form, tuple(shape), np.dtype(dtype), tuple(args), params, -1, source))
        return self.made[-1]

    def constant(self, n, dtype) -> Value:
        return self.value("constant", (), dtype, (), Constant(array_of(n, np.dtype(dtype))))

    def shape(self, v: Value, at: int | None) -> tuple:
        return v.shape if at is None or at == SUMMED else (*v.shape[:at], self.size, *v.shape[at + 1 :])

    def starts(self, v: Value, at: int) -> list[Value]:
        zero = self.constant(0, INDEX)
        return [self.start if d == at else zero for d in range(v.ndim)]

    def of(self, v: Value, at: int | None) -> Value:
        """A value, or its block where the axis is dimension `at` of it. Chains are long: there is no recursion."""
        pending = [(v, at)]
        while pending:
            v, at = key = pending[-1]
            if (v.number, at) in self.known:
                pending.pop()
                continue
            inside = self.loop.makes(v) or self.loop.is_inside(v, at)
            missing = [x for x in zip(v.args, operands(v, at)) if (x[0].number, x[1]) not in self.known]
            if inside and missing:
                pending += missing
                continue
            self.known[v.number, at] = self._inside(v, at) if inside else self._block(v, at)
            assert pending.pop() == key
        return self.known[v.number, at]

    def _block(self, v: Value, at: int | None) -> Value:
        whole = self.given[v.number]
        if at is None:
            return whole
        return self.value("dynamic_slice", self.shape(v, at), v.dtype, (whole, *self.starts(v, at)), source=v.source)

    def _inside(self, v: Value, at: int | None) -> Value:
        args = [self.known[a.number, need] for a, need in zip(v.args, operands(v, at))]
        shape = self.shape(v, at)
        if v.form != "iota" or at != v.params.dimension:
            return self.value(v.form, shape, v.dtype, args, v.params, v.source)
        counted = self.value("iota", shape, INDEX, (), v.params, v.source)
        start = self.value("broadcast", shape, INDEX, (self.start,), Broadcast(()))
        moved = self.value("map", shape, INDEX, (counted, start), Map("add"))
        return moved if v.dtype == INDEX else self.value("map", shape, v.dtype, (moved,), Map("convert"))

    def results(self, before: Sequence[Value]) -> list[Value]:
        """Results with what these steps make of them."""
        after = []
        for v, old in zip(self.loop.results.values(), before, strict=True):
            at = self.loop.place(v)
            new = self.of(v, at)
            if at == SUMMED:
                after.append(self.value("map", v.shape, v.dtype, (old, new), Map("add"), v.source))
            else:
                args = (old, new, *self.starts(v, at))
                after.append(self.value("dynamic_update_slice", v.shape, v.dtype, args, source=v.source))
        return after


def put(region: Region, loops: list[Loop]) -> None:
    """Puts loops in the place of what they compute; values are ordered and numbered anew."""
    owner = {n: loop for loop in loops for n in loop.results}
    taken: dict[int, Value] = {}
    values: list[Value] = list(region.inputs)
    done = {v.number for v in region.inputs}
    pending: list[Any] = [*reversed(region.effects), *reversed(region.outputs)]
    pending = sorted({v.number: v for v in pending}.values(), key=lambda v: -v.number)
    results = {v.number: v.results for v in region.values if v._results}
    written: set[int] = set()
    while pending:
        x = pending[-1]
        loop = x if isinstance(x, Loop) else owner.get(x.number)
        if x is not loop and x.number in done or loop is not None and loop.level in written:
            pending.pop()
            continue
        reads = loop.reads() if loop is not None else x.args
        missing = [a for a in reads if a.number not in done and not _is_written(a, owner, written)]
        if missing:
            pending += sorted(missing, key=lambda v: -v.number)
            continue
        pending.pop()
        if loop is not None:
            written.add(loop.level)
            new, outs = _written(loop, {v.number: taken.get(v.number, v) for v in reads})
            taken.update(zip(loop.results, outs))
            values += new
        else:
            done.add(x.number)
            x.args = tuple(taken.get(a.number, a) for a in x.args)
            values.append(x)
            for out in results.get(x.number, ()):
                if out.number not in done:
                    done.add(out.number)
                    values.append(out)
    region.outputs = [taken.get(v.number, v) for v in region.outputs]
    number(region, values)


def _is_written(v: Value, owner: dict[int, Loop], written: set[int]) -> bool:
    return v.number in owner and owner[v.number].level in written


def _written(loop: Loop, given: dict[int, Value]) -> tuple[list[Value], list[Value]]:
    """A loop, and what is left behind it, as values; and the results."""
    extent, size, summed = loop.work.shape[loop.work.axis], loop.size, SUMMED in map(loop.place, loop.results.values())
    before = _Writer(loop, extent, {})
    zero = before.constant(0, INDEX)
    init = [zero]
    for v in loop.results.values():
        x = before.constant(-0.0 if loop.place(v) == SUMMED else 0, v.dtype)  # to add anything to -0.0 is that
        init.append(before.value("broadcast", v.shape, v.dtype, (x,), Broadcast(())))
    count = extent // size if summed else -(-extent // size)
    body = _body(loop, given, init, extent - size)
    args = (*given.values(), *init)
    node = before.value("scan", (), np.int8, args, Scan(body, len(given), len(init), count, False))
    outs = [
        before.value("output", x.shape, x.dtype, (node,), Output(i), v.source)
        for i, (x, v) in enumerate(zip(init, [next(iter(loop.results.values())), *loop.results.values()]))
    ]
    node.results = outs
    if not summed or not extent % size:
        return before.made, outs[1:]
    rest = _Writer(loop, extent % size, given)
    rest.start = outs[0]  # no constant: an update at a known place would be a choice in whatever reads the result
    found = rest.results(outs[1:])
    return [*before.made, *rest.made], found


def _body(loop: Loop, given: dict[int, Value], init: list[Value], last: int) -> Region:
    """An iteration: its first carry is where its block starts; the last block may overlap the one before."""
    inputs = [Value("input", x.shape, x.dtype, (), Input(), -1, x.source) for x in (*given.values(), *init)]
    start, *carries = inputs[len(given) :]
    w = _Writer(loop, loop.size, dict(zip(given, inputs)))
    w.start = w.value("map", (), INDEX, (start, w.constant(last, INDEX)), Map("min"))
    after = w.results(carries)
    following = w.value("map", (), INDEX, (start, w.constant(loop.size, INDEX)), Map("add"))
    body = Region(inputs, [], [following, *after])
    number(body, [*inputs, *w.made])
    return body
