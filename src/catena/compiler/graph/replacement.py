"""Scalar replacement: what an iteration reads where one before it wrote is handed on, and not read from memory.

``x[k] = 0.5 * (x[k - 1] + x[k + 1])`` reads what the iteration before wrote. By way of memory, each iteration waits
until the processor has found the value among its pending writes, which takes as long as the arithmetic; as a carry of
its own the value stays in a register (D. Callahan, S. Carr, K. Kennedy, "Improving register allocation for
subscripted variables", 1990).

A carry that is changed by updates of parts, and by nothing else, is followed back from where it is read. Starts of
parts are sums of a constant, of what the loop counts, and of what does not change in it; so it is known by how much a
part that is read lies beside one that was written so many iterations ago. It is the same one, or has no element in
common with it, or else the search ends.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import LOOPS, NOTHING, Constant, Input, Map, Output
from catena.compiler.graph.insertion import insert, number
from catena.compiler.graph.intervals import MOST_ELEMENTS, Interval, bounds_of, interval, limits, of_operation, span
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.symbols import whole
from catena.core.named import NamedTuple

MOST_BYTES = 64  # of a part that is handed on: more are read again
MOST_ITERATIONS = 4  # that a part is handed on
MOST_UPDATES = 32  # that are looked at for a read


def replace(region: Region) -> Region:
    """The region, in place: in its loops, and those in them, reads of what was written before are replaced."""
    for each in region.walk():
        loops = [v for v in each.control() if v.form in LOOPS]
        made: dict[int, list[Value]] = {}
        for node in loops:
            made[node.number] = _Loop(node).replace()
        if any(made.values()):
            insert(each, made)
    return region


class Part(NamedTuple):
    """A window of an array: where it starts, and how large it is."""

    starts: tuple[Affine, ...]
    sizes: tuple[int, ...]
    exact: tuple[bool, ...]  # dimensions along which the start is within bounds, so that it is not moved


class Update(NamedTuple):
    """A version of a carry, and what it has in place of a part of the version before."""

    after: Value
    new: Value
    part: Part


class Carry(NamedTuple):
    """A new carry: as the body has it, what it makes of it, and what it is first."""

    taken: Value
    given: Value
    first: Value


class _Loop:
    """A `scan` or `while` while reads are replaced in it."""

    def __init__(self, node: Value):
        self.node, p = node, node.params
        self.body: Region = p.body
        self.is_scan = node.form == "scan"
        self.consts = p.consts if self.is_scan else p.body_consts  # inputs of the body before its carries
        self.first = p.consts  # operands of the loop before the initial values of its carries
        self.carries = p.carries if self.is_scan else len(node.args) - p.consts
        self.made: list[Value] = []  # outside, before the loop
        self.taken: dict[int, Value] = {}
        self.new: dict[tuple[int, int], Carry] = {}  # what an update wrote, so many iterations ago
        self.shaped: dict[int, list[Value]] = {}  # what these updates write, in the operand's shape

    def replace(self) -> list[Value]:
        """Replaces what can be; returns the values that the region around the loop gets."""
        live = self.body.live()
        chains = {k: chain for k in range(self.carries) if (chain := self._updates(k))}
        versions = {v.number: (k, n) for k, chain in chains.items() for n, v in enumerate(chain)}
        small = [v for v in live if v.form == "dynamic_slice" and 0 < v.nbytes <= MOST_BYTES]
        reads = [v for v in small if v.args[0].number in versions]
        if not reads:
            return []
        self.forms = _forms(live)
        self.counted = dict(self._counted())
        updates = {k: [self._update(v) for v in chain[1:]] for k, chain in chains.items()}
        for v in reads:
            k, version = versions[v.args[0].number]
            found = self._last_write(updates[k], version, self._part(v.args[1:], v.shape, v.args[0].shape))
            if found is not None:
                self.taken[v.number] = self._handed_on(k, updates[k][found[0]], found[1])
        return self._rewritten() if self.taken else []

    # ---- what is written

    def _updates(self, k: int) -> list[Value] | None:
        """The versions of a carry in an iteration, each an update of the one before; None where there are others."""
        carry, v, found = self.body.inputs[self.consts + k], self.body.outputs[k], []
        while _is_update(v):
            found.append(v)
            v = v.args[0]
        return [carry, *found[::-1]] if v is carry and found else None

    def _update(self, v: Value) -> Update:
        shape = v.args[0].shape
        if v.form == "dynamic_update_slice":
            _, new, *starts = v.args
            return Update(v, new, self._part(starts, new.shape, shape))
        p, (_, indices, new) = v.params.indices, v.args
        if new.shape != p.slice_sizes:
            new = Value("reshape", p.slice_sizes, new.dtype, (new,), NOTHING, -1, new.source)
            self.shaped[v.number] = [new]
        rows = indices.args if indices.form == "concatenate" else (indices,)
        given = dict(zip(p.start_index_map, rows))
        return Update(v, new, self._part([given.get(d) for d in range(len(shape))], p.slice_sizes, shape))

    def _part(self, starts: Sequence[Value | None], sizes: tuple, shape: tuple) -> Part:
        """The part of an array of this shape that these say; where nothing is said, it starts at the beginning."""
        rooms = [n - m for n, m in zip(shape, sizes)]
        given = [s if room else None for s, room in zip(starts, rooms)]
        forms = tuple(affine.ZERO if s is None else self.forms[s.number] for s in given)
        exact = tuple(s is None or interval(s).within(Interval(0, room)) for s, room in zip(given, rooms))
        return Part(forms, sizes, exact)

    def _counted(self) -> Iterator[tuple[int, tuple[Value | int, int]]]:
        """Inputs of the body that grow by the same number in each iteration: what they are first, and that number."""
        inputs, outputs = self.body.inputs, self.body.outputs
        operands = self.node.args[self.first - self.consts :]
        for k, (v, x) in enumerate(zip(inputs, operands)):
            if v.shape or limits(v.dtype) is None:
                continue
            if k < self.consts:
                yield v.number, (x, 0)
            elif k < self.consts + self.carries:
                form = self.forms.get(outputs[k - self.consts].number)
                if form is not None and form[1:] == affine.term(v.number)[1:]:
                    yield v.number, (x, form[0])
            elif (found := _progression(x)) is not None:
                start, step = found
                reverse = self.node.params.reverse
                yield v.number, (start + step * (self.node.params.length - 1), -step) if reverse else found

    def _before(self, starts: tuple[Affine, ...], count: int) -> tuple[Affine, ...] | None:
        """Starts as they are said so many iterations earlier; None where what they hang on is not counted."""
        if any(n not in self.counted for a in starts for n, _ in a[2]):
            return None
        return tuple(affine.shift(a, count * sum(c * self.counted[n][1] for n, c in a[2])) for a in starts)

    def _last_write(self, updates: list[Update], version: int, part: Part) -> tuple[int, int] | None:
        """The update that wrote what is read last of all, and how many iterations ago."""
        for n, count in _earlier(len(updates), version):
            starts = self._before(part.starts, count) if count else part.starts
            if starts is None:
                return None
            written = updates[n].part
            if part.sizes == written.sizes and starts == written.starts:
                return n, count
            if not _are_apart(part._replace(starts=starts), written):
                return None
        return None

    # ---- what is handed on

    def _handed_on(self, k: int, update: Update, count: int) -> Value:
        """What an update wrote so many iterations ago, as a carry of its own."""
        if not count:
            return update.new
        key = update.after.number, count
        if key not in self.new:
            later, new = self._handed_on(k, update, count - 1), update.new
            taken = Value("input", new.shape, new.dtype, (), Input(), -1, new.source)
            self.new[key] = Carry(taken, later, self._first(k, update, count))
        return self.new[key].taken

    def _first(self, k: int, update: Update, count: int) -> Value:
        """What lies, before the loop, where an update would have written so many iterations before the first."""
        x, starts = self.node.args[self.first + k], self._before(update.part.starts, -count)
        assert starts is not None  # it was looked up for this, so what it hangs on is counted
        at = [self._outside(a) for a in starts]
        return self._made("dynamic_slice", update.new.shape, x.dtype, (x, *at), NOTHING)

    def _outside(self, a: Affine) -> Value:
        """A start as it is in the first iteration."""
        first = [(self.counted[n][0], c) for n, c in a[2]]
        known = [(int(x.params.array) if isinstance(x, Value) else x, c) for x, c in first if _is_known(x)]
        total = self._constant(a[0] + sum(x * c for x, c in known))
        for x, c in first:
            if not _is_known(x):
                wide = self._made("map", (), INDEX, (x,), Map("convert"))
                term = self._made("map", (), INDEX, (wide, self._constant(c)), Map("mul"))
                total = self._made("map", (), INDEX, (total, term), Map("add"))
        return total

    def _constant(self, number: int) -> Value:
        return self._made("constant", (), INDEX, (), Constant(np.asarray(number, INDEX)))

    def _made(self, form: str, shape, dtype, args: tuple, params) -> Value:
        v = Value(form, shape, np.dtype(dtype), args, params, -1, self.node.source)
        v.bounds = bounds_of(v) if limits(v.dtype) is not None else None
        self.made.append(v)
        return v

    # ---- the loop with its new carries

    def _rewritten(self) -> list[Value]:
        node, body, count = self.node, self.body, len(self.new)
        taken, given, first = zip(*self.new.values()) if self.new else ((), (), ())
        for v in (*body.values, *itertools.chain(*self.shaped.values())):
            v.args = tuple(map(self._now, v.args))
        outputs = [*body.outputs[: self.carries], *given, *body.outputs[self.carries :]]
        body.outputs = list(map(self._now, outputs))
        insert(body, self.shaped)
        end, at = self.consts + self.carries, self.first + self.carries
        body.inputs[end:end] = taken
        number(body, [*taken, *body.values])
        node.args = (*node.args[:at], *first, *node.args[at:])
        results = node.results
        for v in results[self.carries :]:
            v.params = Output(v.params.index + count)
        new = [
            Value("output", x.shape, x.dtype, (node,), Output(self.carries + j), -1, node.source)
            for j, x in enumerate(taken)
        ]
        node.results = [*results[: self.carries], *new, *results[self.carries :]]
        if self.is_scan:
            node.params = node.params._replace(carries=self.carries + count)
        else:
            asked = [Value("input", x.shape, x.dtype, (), Input(), -1, x.source) for x in taken]
            node.params.cond.inputs += asked
            number(node.params.cond, [*asked, *node.params.cond.values])
        return [*self.made, *new]

    def _now(self, v: Value) -> Value:
        """A value, or what takes its place."""
        while v.number in self.taken:
            v = self.taken[v.number]
        return v


INDEX = np.dtype(np.int64)


def _is_known(x: Value | int) -> bool:
    return isinstance(x, int) or x.form == "constant"


def _is_update(v: Value) -> bool:
    """Whether a value is another one but for one part, which is replaced."""
    if v.form == "dynamic_update_slice":
        return True
    if v.form != "scatter" or v.params.kind != "set":
        return False
    p, (x, indices, new) = v.params.indices, v.args
    count = len(p.start_index_map)
    rows = indices.args if indices.form == "concatenate" else (indices,)
    single = not p.batching and new.size == math.prod(p.slice_sizes) and len(rows) == indices.size == count
    rooms = [x.shape[d] - p.slice_sizes[d] for d in p.start_index_map]
    within = [r.size == 1 and interval(r).within(Interval(0, room)) for r, room in zip(rows, rooms)]
    return single and (p.mode != "fill" or all(within))


def _earlier(updates: int, version: int) -> Iterator[tuple[int, int]]:
    """The updates before a version of a carry, the last one first, and how many iterations ago they were made."""
    here = ((n, 0) for n in reversed(range(version)))
    before = ((n, count) for count in range(1, MOST_ITERATIONS + 1) for n in reversed(range(updates)))
    yield from itertools.islice(itertools.chain(here, before), MOST_UPDATES)


def _are_apart(a: Part, b: Part) -> bool:
    """Whether two parts have no element in common."""
    for x, y, m, n, exact in zip(a.starts, b.starts, a.sizes, b.sizes, map(all, zip(a.exact, b.exact))):
        if exact and x[2] == y[2] and (x[0] >= y[0] + n or y[0] >= x[0] + m):
            return True
    return False


# ---- starts as sums ------------------------------------------------------------------------------------------


def _forms(live: list[Value]) -> dict[int, Affine]:
    """Integers of a region as sums of constants and of other integers, by their numbers."""
    found: dict[int, Affine] = {}
    for v in live:
        if limits(v.dtype) is not None and v.size == 1:
            found[v.number] = _form(v, found) or affine.term(v.number)
    return found


def _form(v: Value, found: dict[int, Affine]) -> Affine | None:
    """A number as a sum, if it does not wrap around."""
    if v.form == "constant":
        return affine.constant(whole(v.params.array.item()))
    if v.form in ("reshape", "broadcast"):
        return found.get(v.args[0].number)
    if v.form != "map" or any(a.number not in found for a in v.args):
        return None
    op, sides = v.params.op, [found[a.number] for a in v.args]
    exact = of_operation(op, [interval(a) for a in v.args])
    if exact is None or not exact.within(span(v.dtype)):
        return None
    if op == "convert":
        return sides[0]
    if op in ("add", "sub"):
        return affine.add(sides[0], affine.scale(sides[1], 1 if op == "add" else -1))
    if op == "mul" and any(map(affine.is_constant, sides)):
        by, other = sides if affine.is_constant(sides[0]) else sides[::-1]
        return affine.scale(other, by[0])
    return None


def _progression(x: Value) -> tuple[int, int] | None:
    """The first of numbers that lie equally far apart, and how far."""
    if x.form == "iota":
        return 0, 1
    if x.form != "constant" or not 0 < x.size <= MOST_ELEMENTS:
        return None
    numbers = x.params.array.tolist()
    step = numbers[1] - numbers[0] if x.size > 1 else 0
    return (numbers[0], step) if all(b - a == step for a, b in itertools.pairwise(numbers)) else None
