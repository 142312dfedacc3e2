"""What is one number but in a few rows, up to a result: a step down the gradient of a table that is read by rows.

The gradient of ``table[i]`` is zeros to which rows are added, and ``table - rate * gradient`` the table, but in these
rows. Where they are few, they are computed by themselves, and written into the table or a copy of it: the zeros are
neither written nor read, and a table that a loop carries is changed in place. Updates of one row are added up first,
in their order, so the bits are those of the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from catena.compiler.graph import constants
from catena.compiler.graph.forms import Concatenate, Indices, Iota, Reduce, Scatter
from catena.compiler.graph.insertion import Writer, insert, number
from catena.compiler.graph.region import Region, Value
from catena.core.dtypes import KIND

LEAST = 1 << 13  # bytes of the result
PART = 4  # of it, one over that at most are rows that are written: these are read and written a few times
LINE = 64  # bytes: a shorter row costs as much
FEW = 64  # rows that are compared with each other
OPS = frozenset(("add", "sub", "mul", "neg", "fma"))  # by which results are made of updates
MOST_OPS = 16  # of these in a result
Readers = Mapping[int, Sequence[Value]]


def write(region: Region) -> None:
    """Makes such results rows that are written anew, in place."""
    if not any(v.form == "scatter" for v in region.values):
        return
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    for v in live:
        if v.number in kept and v.form == "map" and not users.get(v.number) and v.nbytes >= LEAST:
            found = _Result(v, users, kept)
            if found.pays:
                made[v.number] = found.write()
    if made:
        last = [v for v in live if v.number in made]  # once all that reads what they are written into is computed
        insert(region, made)
        number(region, [*(v for v in region.values if v not in last), *last])


class _Result:
    """A result, the updates of rows that it is made of, and what makes it of these."""

    def __init__(self, v: Value, users: Readers, kept: set[int]):
        self.v, self.users, self.kept = v, users, kept
        self.updates: list[Value] = []
        self.ops = 0
        self.is_known = KIND[v.dtype] in "fiu" and self._look_at(v)
        self.w = Writer(v.source)
        self._rows: dict[int, Value] = {}

    @property
    def pays(self) -> bool:
        """Whether all that it is made of is known, and rows are few."""
        if not self.is_known or not self.updates:
            return False
        rows, row = sum(map(_count, self.updates)), self.v.nbytes // self.v.shape[0]
        return 1 < rows and PART * rows * max(row, LINE) <= self.v.nbytes

    def _look_at(self, x: Value) -> bool:
        """Finds the updates that a value is made of; whether of these, numbers and arrays in memory alone."""
        if x.form in ("input", "constant") or _number(x) is not None:
            return True
        if _adds_rows(x):
            if x not in self.updates:
                self.updates.append(x)
            return x.number not in self.kept and len(self.users[x.number]) == 1
        self.ops += 1
        if x.form != "map" or x.params.op not in OPS or self.ops > MOST_OPS or x.dtype != self.v.dtype:
            return False
        alone = x is self.v or x.number not in self.kept and len(self.users[x.number]) == 1
        return alone and all(map(self._look_at, x.args))

    def write(self) -> list[Value]:
        """Makes the result rows that are written anew; returns the values that it needs before it."""
        v, w = self.v, self.w
        places = [_places(w, x) for x in self.updates]
        rows = places[0]
        if len(places) > 1:
            rows = w.value("concatenate", (sum(x.size for x in places),), np.int32, tuple(places), Concatenate(0))
        self.indices, self.shape = w.reshape(rows, (rows.size, 1)), (rows.size, *v.shape[1:])
        self.first = w.reshape(_first_of_each(w, rows, v.shape[0]), self.indices.shape)
        start = 0
        for x, own in zip(self.updates, places):
            self._rows[x.number] = self._summed(x, start, own.size)
            start += own.size
        new, base = self._in_rows(v), self._elsewhere(v)
        if not isinstance(base, Value):
            base = w.broadcast_in_dim(w.constant(base, v.dtype), v.shape)
        v.form, v.args, v.params = "scatter", (base, self.indices, new), Scatter("set", _by_rows(v, "fill"))
        return w.made

    def _summed(self, x: Value, start: int, count: int) -> Value:
        """The sum of the updates of each row, beside all of them."""
        w, at = self.w, _by_rows(self.v, "promise")
        new = w.reshape(x.args[2], (count, *self.v.shape[1:]))
        first = self.first
        if count < first.size:
            first = w.part(first, start, count)
        zeros = w.broadcast_in_dim(w.constant(0, x.dtype), self.shape)
        sums = w.value("scatter", self.shape, x.dtype, (zeros, first, new), Scatter("add", at))
        return w.value("gather", self.shape, x.dtype, (sums, self.first), at)

    def _in_rows(self, x: Value) -> Value:
        """A value in the rows that are updated."""
        if x.number not in self._rows:
            self._rows[x.number] = self._made_in_rows(x)
        return self._rows[x.number]

    def _made_in_rows(self, x: Value) -> Value:
        if (number := _number(x)) is not None:
            return self.w.broadcast_in_dim(number, self.shape)
        if x.form == "map":
            return self.w.map(x.params.op, *map(self._in_rows, x.args))
        return self.w.value("gather", self.shape, x.dtype, (x, self.indices), _by_rows(self.v, "clip"))

    def _elsewhere(self, x: Value) -> Value | np.ndarray:
        """A value in all other rows, where updates are zeros: a constant, where it is one."""
        if _adds_rows(x):
            return np.zeros((), x.dtype)
        if (number := constants.scalar(x)) is not None:
            return number
        if x.form != "map":
            return x
        args = [self._elsewhere(a) for a in x.args]
        if all(a is b for a, b in zip(args, x.args)):
            return x
        op, args = _sum_with_zero(x.params.op, args)
        if op != "fma" and not any(isinstance(a, Value) for a in args):
            return np.asarray(constants.DONE[KIND[x.dtype]][op](*args), x.dtype)
        if _leaves_as_it_is(op, args[-1]):
            return args[0]
        full = (a if isinstance(a, Value) else self.w.constant(a, x.dtype) for a in args)
        return self.w.map(op, *(self.w.broadcast_in_dim(a, x.shape) for a in full))


def _number(x: Value) -> Value | None:
    """The number that all elements of an array are."""
    while x.form == "broadcast":
        (x,) = x.args
        if not x.ndim:
            return x
    return None


def _sum_with_zero(op: str, args: list) -> tuple[str, list]:
    """An operation, which is a sum where the product of an `fma` is known to be zero, and so is not rounded."""
    if op != "fma" or any(isinstance(a, Value) for a in args[:2]):
        return op, args
    product = np.multiply(*args[:2])
    return ("add", [args[2], product]) if product == 0 and 0 in args[:2] else (op, args)


def _leaves_as_it_is(op: str, last: Value | np.ndarray) -> bool:
    """Whether an operation with this number is what its other operand is: x - 0 and x + -0 are x for all x."""
    if isinstance(last, Value) or last != 0 or op not in ("add", "sub"):
        return False
    return KIND[last.dtype] != "f" or bool(np.signbit(last)) == (op == "add")


def adds_to_zeros(v: Value) -> bool:
    return v.form == "scatter" and v.params.kind == "add" and constants.is_zero(v.args[0])


def _adds_rows(x: Value) -> bool:
    """Whether a value is zeros to which rows are added, wherever 32 bits say."""
    if not adds_to_zeros(x) or not x.ndim:
        return False
    at, (_, indices, new) = x.params.indices, x.args
    behind = tuple(range(1, x.ndim))
    rows = at.start_index_map == (0,) and at.window_dims == behind and at.slice_sizes == (1, *x.shape[1:])
    last = at.offset_dims == tuple(range(new.ndim - len(behind), new.ndim))
    return rows and last and not at.batching and indices.dtype == np.int32 and indices.size == _count(x)


def _count(x: Value) -> int:
    """The rows that an update adds."""
    return math.prod(x.args[1].shape[:-1])


def _by_rows(v: Value, mode: str) -> Indices:
    """Places of rows, one number for each."""
    behind = tuple(range(1, v.ndim))
    return Indices(behind, behind, (0,), (), (0,), (1, *v.shape[1:]), mode)


def _places(w: Writer, x: Value) -> Value:
    """The rows that an update goes to; others are beyond the array."""
    return inside(w, w.reshape(x.args[1], (_count(x),)), x.shape[0], x.params.indices.mode)


def inside(w: Writer, index: Value, extent: int, mode: str) -> Value:
    """Indices that tell the same place are the same numbers."""
    if mode != "clip":
        return index
    most = min(extent - 1, np.iinfo(index.dtype).max)
    low, high = (w.broadcast_in_dim(w.constant(n, index.dtype), index.shape) for n in (0, most))
    return w.map("min", w.map("max", index, low), high)


def _first_of_each(w: Writer, rows: Value, extent: int) -> Value:
    """For each of some rows, the place of one that stands for all that are the same."""
    return first_of_few(w, rows) if rows.size <= FEW else _last_of_many(w, rows, extent)


def first_of_few(w: Writer, index: Value) -> Value:
    """For each of some integers, the place of the first that is the same."""
    square = (index.size, index.size)
    same = w.map("eq", w.broadcast_in_dim(index, square, (0,)), w.broadcast_in_dim(index, square, (1,)), dtype=bool)
    places = w.value("iota", square, np.int32, (), Iota(1))
    none = w.broadcast_in_dim(w.constant(index.size, np.int32), square)
    return w.value("reduce", index.shape, np.int32, (w.map("select", same, places, none, dtype=np.int32),),
                   Reduce("min", (1,)))  # fmt: skip


def _last_of_many(w: Writer, rows: Value, extent: int) -> Value:
    """For each of some rows, the place of the last that is the same, of which each row of the array keeps a note."""
    places = w.value("iota", rows.shape, np.int32, (), Iota(0))
    none = w.broadcast_in_dim(w.constant(-1, np.int32), (extent,))
    at, indices = Indices((), (), (0,), (), (0,), (1,), "fill"), w.reshape(rows, (rows.size, 1))
    noted = w.value("scatter", none.shape, np.int32, (none, indices, places), Scatter("max", at))
    found = w.value("gather", rows.shape, np.int32, (noted, indices), at._replace(mode="clip"))
    low, high = (w.broadcast_in_dim(w.constant(n, np.int32), rows.shape) for n in (0, extent))
    is_there = w.map("and", w.map("ge", rows, low, dtype=bool), w.map("lt", rows, high, dtype=bool))
    return w.map("select", is_there, found, places, dtype=np.int32)
