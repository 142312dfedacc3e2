"""Loop nests in NumPy: a statement is an array over a block of the iteration space.

Ranges of iterations are evaluated whole, in blocks of some size, those that are folded away inside of those that are
kept. Only where the order of iterations matters are they taken one after another: folds by a function of their own,
running ones, and updates of one element by several iterations of a scatter.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from operator import index
from typing import cast

import numpy as np

from catena.compiler.emit.folds import identity
from catena.compiler.graph.types import TYPES, Type
from catena.compiler.interpret import operations
from catena.compiler.interpret.operations import memory, narrow, register, widen
from catena.compiler.kernels import loops
from catena.compiler.kernels.loops import COMBINE, Fold, Nest, accumulator_type
from catena.core import failures
from catena.core.errors import CompileError
from catena.core.named import NamedTuple

BLOCK = 1 << 18  # iterations that are evaluated at once
Ranges = dict[int, tuple[int, int]]  # the iterations of each dimension


class Place(NamedTuple):
    """Where a value is: its bytes, from the byte `first` of the whole on."""

    bytes: np.ndarray
    first: int = 0


def run(nest: Nest, places: dict[int, Place], ranges: Ranges | None = None) -> None:
    """Evaluates a scheduled nest, or those of its iterations that `ranges` name, over values in memory.

    Arguments: `nest`; `places`, of the values that it reads and writes, by their numbers; `ranges`, of dimensions of
      which not all iterations are meant.
    Raises: CompileError: it reads or writes beyond a value.
    """
    whole = {d: (0, nest.extents[d]) for d in nest.order} | (ranges or {})
    if nest.sequential:
        for part in blocks(nest.order, whole):
            _Updates(nest, places, part).run()
        return
    if nest.run is not None:
        _run_of_each(nest, places, whole)
        return
    kept, reduced = ([d for d in nest.order if (d in nest.reduced) == inner] for inner in (False, True))
    in_order = any(f.kind == "general" for f in nest.folds)
    for outer in blocks(kept, whole):
        folds = [_kind(f)(nest, f, places) for f in nest.folds]
        size = 1 if in_order else BLOCK // max(_trips(outer), 1)
        for inner in blocks(reduced, whole, max(size, 1)):
            block = _Block(nest, places, outer | inner, folds)
            block.evaluate()
            block.store()
            for fold in folds:
                fold.step(block)
        last = _Block(nest, places, outer | dict.fromkeys(reduced, (0, 1)), folds)
        for fold in folds:
            fold.finish(last)


def _run_of_each(nest: Nest, places: dict[int, Place], whole: Ranges) -> None:
    """Evaluates a nest with a run, for one iteration after another of the dimensions that it hangs on."""
    kept = {d: ends for d, ends in whole.items() if d not in nest.reduced}
    assert nest.run is not None
    hangs = [d for d in kept if nest.hangs_on(d)]
    for at in itertools.product(*(range(*kept[d]) for d in hangs)):
        outer = kept | {d: (k, k + 1) for d, k in zip(hangs, at)}
        folds = [_kind(f)(nest, f, places) for f in nest.folds]
        last = _Block(nest, places, outer | {nest.run.dim: (0, 1)}, folds)
        start, stop = (int(last.value(s).item()) for s in nest.run.ends)
        if start < stop:
            block = _Block(nest, places, outer | {nest.run.dim: (start, stop)}, folds)
            block.evaluate()
            for fold in folds:
                fold.step(block)
        for fold in folds:
            fold.finish(last)


def blocks(dims: list[int], ranges: Ranges, size: int = BLOCK) -> Iterator[Ranges]:
    """The ranges of dimensions, the first outermost, cut into blocks of at most `size` iterations."""
    if not dims or not _trips({d: ranges[d] for d in dims}):
        yield from [] if dims else [{}]
        return
    first, *rest = dims
    inside = _trips({d: ranges[d] for d in rest})
    step = max(size // max(inside, 1), 1)
    for low in range(*ranges[first], step):
        here = {first: (low, min(low + step, ranges[first][1]))}
        for tail in blocks(rest, ranges, size) if inside > size else [{d: ranges[d] for d in rest}]:
            yield here | tail


def _trips(ranges: Ranges) -> int:
    return math.prod(high - low for low, high in ranges.values())


class _Block:
    """Statements over some of the iterations; each is an array with a dimension for each loop, of one element where it
    does not depend on that.
    """

    def __init__(self, nest: Nest, places: dict[int, Place], ranges: Ranges, folds: Sequence[_Fold] = ()):
        self.nest, self.places, self.ranges, self.folds = nest, places, ranges, folds
        self.shape = tuple(ranges[d][1] - ranges[d][0] if d in ranges else 1 for d in range(len(nest.extents)))
        self.values: dict[int, np.ndarray] = {}

    def evaluate(self) -> None:
        """All statements, where there are iterations."""
        if 0 not in self.shape:
            for i in range(len(self.nest.stmts)):
                self.values[i] = self._statement(i)

    def value(self, i: int) -> np.ndarray:
        """The value of a statement, which may be one that depends on no loop."""
        if i not in self.values:
            for a in self.nest.stmts[i].args:
                self.value(a)
            self.values[i] = self._statement(i)
        return self.values[i]

    def whole(self, i: int) -> np.ndarray:
        """The value of a statement for each iteration."""
        return np.broadcast_to(self.values[i], self.shape)

    def _statement(self, i: int) -> np.ndarray:
        s = self.nest.stmts[i]
        if s.op == "const":
            t = TYPES[s.type]
            return np.full((1,) * len(self.shape), s.attr, register(t))
        if s.op == "affine":
            return self.index(s.attr)
        if s.op in loops.LOADS:
            return self.load(s)
        if s.op == "accumulator":
            number, component = cast(tuple, s.attr)
            return cast(_General, self.folds[number]).current(component, self)
        if s.op == "check":
            return self.check(s)
        return apply(self.nest, i, self.values)

    def check(self, s) -> np.ndarray:
        """A test: the first failure that it finds is noted in the program's cell, if nothing is noted there."""
        failed, place, *shown = (self.values[a] for a in s.args)
        cell = typed(self.places[loops.CHECKS], np.dtype(np.int64))
        if failed.any() and not cell[0]:
            shape = np.broadcast_shapes(failed.shape, place.shape)
            at = int(np.argmax(np.broadcast_to(failed, shape)))
            cell[0], cell[failures.PLACE] = s.attr + 1, np.broadcast_to(place, shape).reshape(-1)[at]
            for k, x in enumerate(shown):
                x = np.broadcast_to(x, shape).reshape(-1)[at]
                cell[failures.VALUES + k] = np.float64(x).view(np.int64) if x.dtype.kind == "f" else x
            cell[failures.FROZEN : failures.LIVE] = cell[failures.LIVE :]
        return failed

    def index(self, a) -> np.ndarray:
        """The value of an index expression, whose numbers may be those of a plan for other lengths, too."""
        constant, dims, terms = a
        total = np.full((1,) * len(self.shape), constant, np.int64)
        for d, k in dims:
            along = np.arange(*self.ranges[d], dtype=np.int64) if d in self.ranges else np.zeros(1, np.int64)
            total = total + index(k) * along.reshape([-1 if e == d else 1 for e in range(len(self.shape))])
        for t, k in terms:
            total = total + index(k) * self.values[t]
        return total

    def load(self, s) -> np.ndarray:
        buffer, name, offset = s.attr
        mask = self.values[s.args[0]] if s.args else None
        t = TYPES[name]
        return widen(read(self.places[buffer], memory(t), self.index(offset), mask, buffer), t)

    def store(self) -> None:
        for s in self.nest.stores:
            if s.stmt in self.values:
                self.write(s.buffer, s.dtype, s.offset, self.values[s.stmt], s.mask)

    def write(self, buffer: int, name: str, offset, x: np.ndarray, mask: int = -1) -> None:
        """Writes a value for each iteration at its place."""
        at = self.index(offset)
        shape = np.broadcast_shapes(at.shape, x.shape, () if mask < 0 else self.values[mask].shape)
        at, x = (np.broadcast_to(y, shape).reshape(-1) for y in (at, narrow(x, TYPES[name])))
        if mask >= 0:
            chosen = np.broadcast_to(self.values[mask], shape).reshape(-1)
            at, x = at[chosen], x[chosen]
        typed(self.places[buffer], x.dtype)[checked(at, self.places[buffer], x.dtype, buffer)] = x


def apply(nest: Nest, i: int, values: dict[int, np.ndarray]) -> np.ndarray:
    """The result of a statement that computes, given those of others."""
    s = nest.stmts[i]
    types = [TYPES[nest.stmts[a].type] for a in s.args]
    return operations.compute(s.op, TYPES[s.type], [values[a] for a in s.args], types, s.attr)


# ---- memory --------------------------------------------------------------------------------------------------


def typed(place: Place, dtype: np.dtype) -> np.ndarray:
    """The elements of a value."""
    return place.bytes[: place.bytes.size // dtype.itemsize * dtype.itemsize].view(dtype)


def checked(at: np.ndarray, place: Place, dtype: np.dtype, buffer: int) -> np.ndarray:
    """Positions in the memory that is there.

    Raises: CompileError: some are beyond.
    """
    if place.first:
        at = at - place.first // dtype.itemsize
    room = place.bytes.size // dtype.itemsize
    if at.size and not (0 <= at.min() and at.max() < room):
        raise CompileError(f"a loop nest reaches elements {at.min()} to {at.max()} of v{buffer}, which has {room}")
    return at


def read(place: Place, dtype: np.dtype, at: np.ndarray, mask: np.ndarray | None, buffer: int) -> np.ndarray:
    """Elements at these positions, zeros where the mask does not hold."""
    if mask is None:
        return typed(place, dtype)[checked(at, place, dtype, buffer)]
    at, mask = np.broadcast_arrays(at, mask)
    out = np.zeros(at.shape, dtype)
    out[mask] = typed(place, dtype)[checked(at[mask], place, dtype, buffer)]
    return out


# ---- folds ---------------------------------------------------------------------------------------------------


class _Fold:
    """One fold, over the blocks of a range of kept dimensions: an array for each component, none before the first."""

    def __init__(self, nest: Nest, fold: Fold, places: dict[int, Place]):
        self.nest, self.fold, self.places = nest, fold, places
        self.types = [accumulator_type(fold, t) for t in fold.types]
        self.state: list[np.ndarray] | None = None

    def step(self, block: _Block) -> None:
        """Takes in the values of a block."""
        taken = self.taken(self.operands(block))
        self.state = taken if self.state is None else self.joined(self.state, taken)

    def finish(self, last: _Block) -> None:
        """Stores the results; `last` has one iteration of each reduced dimension."""
        state = self.begin(last) if self.state is None else self.state
        self.write(last, state, partial=self.fold.partial)

    def begin(self, block: _Block) -> list[np.ndarray]:
        """What a fold over nothing gives."""
        kinds = zip(self.types, [identity(self.fold.kind, t) for t in self.fold.types])
        return [np.full(block.shape, value, self.wide(t)) for t, value in kinds]

    def operands(self, block: _Block) -> list[np.ndarray]:
        """The values that are folded, in their accumulators' types."""
        found, several = [], len(self.types) > 1  # the factors of a product that is summed have one type
        for k, i in enumerate(self.fold.stmts):
            t, name = self.types[k if several else 0], self.fold.types[k if several else 0]
            s, x = TYPES[self.nest.stmts[i].type], block.whole(i)
            if s.kind != "f" and t.kind == "f":  # floats that were read as their bits
                x = widen(np.ascontiguousarray(x).view(memory(TYPES[name])), TYPES[name])
            found.append(x)
        return found

    def wide(self, t: Type) -> np.dtype:
        """Sums of floats are computed in double precision, if in any order: it shows how good those of programs are."""
        is_sum = t.kind == "f" and self.fold.kind in ("sum", "dot") and not self.in_order
        return np.dtype(np.float64) if is_sum else register(t)

    @property
    def in_order(self) -> bool:
        """Whether what a run holds is added up one by one."""
        return self.fold.run is not None and self.fold.run.in_order

    def taken(self, xs: list[np.ndarray]) -> list[np.ndarray]:
        """A block's values folded along the reduced dimensions, which stay as ones of one element."""
        t, axes = self.types[0], tuple(self.nest.reduced)
        kind, xs = self.fold.kind, [x.astype(self.wide(self.types[0])) for x in xs]
        if self.in_order:
            (axis,) = axes
            return [
                np.add.accumulate(xs[0], axis=axis).take([-1], axis=axis) + xs[0].dtype.type(0)
            ]  # sums begin with 0
        if kind in ("sum", "dot"):
            total = np.logical_or if t.kind == "b" else np.add
            return [total.reduce(math.prod(xs), axis=axes, keepdims=True, dtype=xs[0].dtype)]
        if kind in ("max", "min") and t.kind == "f":
            return [_extreme(xs[0], kind, axes)]
        return [_FOLDED[kind].reduce(xs[0], axis=axes, keepdims=True, dtype=xs[0].dtype)]

    def joined(self, a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:
        """Two results as one."""
        t = self.types[0]
        if self.wide(t) != register(t):
            return [a[0] + b[0]]
        return [operations.compute(COMBINE[self.fold.kind], t, [a[0], b[0]], [t, t])]

    def write(self, block: _Block, row: list[np.ndarray], partial: bool = False) -> None:
        for x, t, (buffer, name, offset) in zip(row, self.types, self.fold.dests):
            block.write(buffer, name, offset, self.rounded(x, t, TYPES[name]))

    @staticmethod
    def rounded(x: np.ndarray, t: Type, target: Type) -> np.ndarray:
        """An accumulator as an element of a result."""
        x = x.astype(register(t))
        if t.kind == target.kind == "f":
            x = x.astype(register(target))
        return operations.round_to(x, target) if target.narrow else x


_FOLDED = {
    "prod": np.multiply, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


def _extreme(x: np.ndarray, kind: str, axes: tuple) -> np.ndarray:
    """The greatest or least of floats: NaN wins, and zeros are ordered by their signs."""
    keys = operations.order_keys(x)
    limits = np.iinfo(keys.dtype)
    keys = np.where(np.isnan(x), limits.max if kind == "max" else limits.min, keys)
    found = _FOLDED[kind].reduce(keys, axis=axes, keepdims=True)
    back = operations.order_keys(found.view(x.dtype))
    return np.asarray(back).view(x.dtype)


class _ArgFold(_Fold):
    """The place of the best value, NaN best of all, of equal ones the first."""

    def begin(self, block):
        value, place = self.types
        return [np.zeros(block.shape, register(value)), np.zeros(block.shape, register(place))]

    def taken(self, xs):
        axes, (value, place) = tuple(self.nest.reduced), xs
        kept = tuple(d for d in range(value.ndim) if d not in axes)
        rows = [np.transpose(x, (*kept, *axes)).reshape(*(value.shape[d] for d in kept), -1) for x in (value, place)]
        first = _first_best(*rows, self.fold.kind)
        shape = [1 if d in axes else n for d, n in enumerate(value.shape)]
        return [np.take_along_axis(x, first, -1).reshape(shape) for x in rows]

    def joined(self, a, b):
        rows = [np.stack(pair, -1) for pair in zip(a, b)]
        first = _first_best(*rows, self.fold.kind)
        return [np.take_along_axis(x, first, -1)[..., 0] for x in rows]

    def write(self, block, row, partial=False):
        if partial:
            super().write(block, row)
            return
        (buffer, name, offset), (_, place) = self.fold.dests[0], self.types
        block.write(buffer, name, offset, operations.convert(row[1], place, TYPES[name]))


def _first_best(values: np.ndarray, places: np.ndarray, kind: str) -> np.ndarray:
    """Where, along the last axis, the best value with the least place is."""
    best = np.max(values, -1, keepdims=True) if kind == "argmax" else np.min(values, -1, keepdims=True)
    chosen = values == best
    if values.dtype.kind == "f":
        nan = np.isnan(values)
        chosen = np.where(nan.any(-1, keepdims=True), nan, chosen)
    return np.argmin(np.where(chosen, places, np.iinfo(places.dtype).max), -1)[..., None]


class _General(_Fold):
    """A fold by statements of the nest, one iteration after another."""

    def current(self, j: int, block: _Block) -> np.ndarray:
        """What a component is before this iteration."""
        if self.state is None:
            self.state = self.begin(block)
        return self.state[j]

    def begin(self, block):
        starts = [block.value(i) for i in self.fold.inits] if self.fold.inits else super().begin(block)
        return [np.asarray(x) for x in starts]

    def step(self, block):
        self.state = [block.values[i] for i in self.fold.stmts]
        if self.fold.running:
            self.write(block, self.state)

    def finish(self, last):
        if not self.fold.running:
            super().finish(last)


class _Running(_Fold):
    """A fold whose results so far are stored at each iteration."""

    def step(self, block):
        t = self.types[0]
        (x,) = (operations.convert(y, TYPES[self.fold.types[0]], t) for y in self.operands(block))
        axes = [d for d in self.nest.order if d in self.nest.reduced]
        rows = np.moveaxis(x, axes, range(len(axes)))
        flat = rows.reshape(-1, *rows.shape[len(axes) :])
        out = np.empty_like(flat)
        state = np.full(flat.shape[1:], identity(self.fold.kind, self.fold.types[0]), register(t))
        state = state if self.state is None else self.state
        for k, new in enumerate(flat):
            state = out[k] = operations.compute(COMBINE[self.fold.kind], t, [state, new], [t, t])
        self.state = state
        self.write(block, [np.moveaxis(out.reshape(rows.shape), range(len(axes)), axes)])

    def finish(self, last):
        """All is stored."""


def _kind(fold: Fold) -> type[_Fold]:
    """How a fold is evaluated."""
    if fold.kind == "general":
        return _General
    return _Running if fold.running else _ArgFold if fold.kind.startswith("arg") else _Fold


# ---- iterations in order -------------------------------------------------------------------------------------


class _Updates(_Block):
    """A block of a nest that updates elements which its indices name, each as often as it is named, in order.

    What no update changes is evaluated for all iterations. The updates are done in rounds: the first of each element,
    then the second of each, and so on.
    """

    def run(self) -> None:
        stmts = self.nest.stmts
        late = [False] * len(stmts)
        for i, s in enumerate(stmts):
            late[i] = s.op == "load_now" or any(late[a] for a in s.args)
        for i in range(len(stmts)):
            if not late[i]:
                self.values[i] = self._statement(i)
        stores = self.nest.stores
        places = [self._flat(self.index(s.offset)) for s in stores]
        mask = self._flat(self.values[stores[0].mask]) if stores[0].mask >= 0 else slice(None)
        iterations = np.arange(math.prod(self.shape))[mask]
        flat = {i: self._flat(x) for i, x in self.values.items()}
        now = [i for i in range(len(stmts)) if late[i]]
        addresses = {i: self._flat(self.index(cast(tuple, stmts[i].attr)[2])) for i in now if stmts[i].op == "load_now"}
        for chosen in _rounds(iterations, places[0][iterations]):
            values = {i: x[chosen] for i, x in flat.items()}
            for i in now:
                values[i] = self._now(i, addresses, chosen) if i in addresses else apply(self.nest, i, values)
            for store, at in zip(stores, places):
                t, place = TYPES[store.dtype], self.places[store.buffer]
                there = checked(at[chosen], place, memory(t), store.buffer)
                typed(place, memory(t))[there] = narrow(values[store.stmt], t)

    def _now(self, i: int, addresses: dict, chosen: np.ndarray) -> np.ndarray:
        buffer, name, _ = cast(tuple, self.nest.stmts[i].attr)
        t = TYPES[name]
        return widen(read(self.places[buffer], memory(t), addresses[i][chosen], None, buffer), t)

    def _flat(self, x: np.ndarray) -> np.ndarray:
        """A value for each iteration, in their order."""
        rest = [d for d in range(len(self.shape)) if d not in self.nest.order]
        return np.broadcast_to(x, self.shape).transpose(*self.nest.order, *rest).reshape(-1)


def _rounds(iterations: np.ndarray, places: np.ndarray) -> Iterator[np.ndarray]:
    """The iterations that are the first to name their place, those that are the second, and so on."""
    if not iterations.size:
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    first = np.maximum.accumulate(np.where(is_new, np.arange(order.size), 0))
    turn = np.arange(order.size) - first
    by_turn = np.argsort(turn, kind="stable")
    bounds = np.searchsorted(turn[by_turn], np.arange(turn.max() + 2))
    for low, high in zip(bounds, bounds[1:]):
        yield iterations[np.sort(order[by_turn[low:high]])]
