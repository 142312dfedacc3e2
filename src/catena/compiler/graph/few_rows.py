"""What is one number but in a few rows, up to a result: a step down the gradient of a table that is read by rows.

The gradient of ``table[i]`` is zeros to which rows are added, and ``table - rate * gradient`` the table, but in these
rows. Where they are few, they are computed by themselves, and written into the table or a copy of it: the zeros are
neither written nor read, and a table that a loop carries is changed in place. Updates of one row are added up first,
in their order, so the bits are those of the arrays.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from catena.compiler.graph import constants
from catena.compiler.graph.forms import NOTHING, Concatenate, Indices, Iota, Map, Reduce, Scatter
from catena.compiler.graph.insertion import Writer, insert, number
from catena.compiler.graph.region import Region, Value
from catena.core.dtypes import KIND

LEAST = 1 << 13  # bytes of the result
PART = 4  # of it, one over that at most are rows that are written: these are read and written a few times
LINE = 64  # bytes: a shorter row costs as much
FEW = 64  # rows that are compared with each other
MOST_OPS = 16  # elementwise operations of a result
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
        self.v = v
        self.updates: list[Value] = []
        self.is_known = self._look(users, kept)
        self.w = Writer(v.source)
        self._rows: dict[int, Value] = {}
        self._others: dict[int, Value] = {}

    @property
    def pays(self) -> bool:
        """Whether all that it is made of is known, and rows are few."""
        if not self.is_known or not self.updates or len(set(map(_extents, self.updates))) > 1:
            return False
        rows = sum(map(count_of, self.updates))
        return rows > 1 and are_few(self.v, rows, len(_extents(self.updates[0])))

    def _look(self, users: Readers, kept: set[int]) -> bool:
        """Finds the updates that the result is made of; whether of these, numbers and arrays in memory alone, by
        operations that nobody else reads.
        """
        inner: dict[int, Value] = {}
        pending = [self.v]
        while pending:
            x = pending.pop()
            if x.number in inner or x.form in ("input", "constant") or _number(x) is not None:
                continue
            inner[x.number] = x
            if _adds_rows(x):
                self.updates.append(x)
            elif x.form == "map" and x.params.op != "checked" and KIND[x.dtype] != "c":
                pending += reversed(x.args)
            else:
                return False
            if len(inner) > MOST_OPS + len(self.updates):
                return False
        own = [x for x in inner.values() if x is not self.v]
        return not any(x.number in kept or any(u.number not in inner for u in users[x.number]) for x in own)

    def write(self) -> list[Value]:
        """Makes the result rows that are written anew; returns the values that it needs before it."""
        v, w = self.v, self.w
        places = [_places(w, x) for x in self.updates]
        rows, dims = places[0], len(_extents(self.updates[0]))
        if len(places) > 1:
            shape = (sum(x.shape[0] for x in places), dims)
            rows = w.value("concatenate", shape, np.int32, tuple(places), Concatenate(0))
        self.indices, self.shape, self.at = rows, (rows.shape[0], *v.shape[dims:]), _by_rows(v, dims)
        self.first = w.reshape(first_of_each(w, rows, v.shape[:dims]), (rows.shape[0], 1))
        start = 0
        for x, own in zip(self.updates, places):
            self._rows[x.number] = self._summed(x, start, own.shape[0])
            start += own.shape[0]
        new, base = self._in_rows(v), self._elsewhere(v)
        v.form, v.args, v.params = "scatter", (base, self.indices, new), Scatter("set", self.at)
        return w.made

    def _summed(self, x: Value, start: int, count: int) -> Value:
        """The sum of the updates of each row, beside all of them."""
        w, zeros = self.w, self.w.full(self.shape, np.zeros((), x.dtype))
        at = _by_rows(zeros, 1, "promise")
        new = w.reshape(x.args[2], (count, *self.shape[1:]))
        first = self.first
        if count < first.size:
            first = w.part(first, start, count)
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
            return self.w.value("map", self.shape, x.dtype, tuple(map(self._in_rows, x.args)), x.params)
        return self.w.value("gather", self.shape, x.dtype, (x, self.indices), self.at._replace(mode="clip"))

    def _elsewhere(self, x: Value) -> Value:
        """A value in all other rows, where updates are zeros: a number, where it is one."""
        if x.number not in self._others:
            self._others[x.number] = self._made_elsewhere(x)
        return self._others[x.number]

    def _made_elsewhere(self, x: Value) -> Value:
        if _adds_rows(x):
            return self.w.full(x.shape, np.zeros((), x.dtype))
        if x.form != "map":
            return x
        args = tuple(map(self._elsewhere, x.args))
        if all(a is b for a, b in zip(args, x.args)):
            return x
        params, args = self._sum_with_zero(x.params, args)
        return constants.of_numbers(self.w, params, args, x) or self.w.value("map", x.shape, x.dtype, args, params)

    def _sum_with_zero(self, params: Map, args: tuple) -> tuple[Map, tuple]:
        """An operation, which is a sum where the product of an `fma` is known to be zero, and so is not rounded."""
        a, b, *_ = [*map(constants.scalar, args), None]
        if params.op != "fma" or a is None or b is None or 0 not in (a, b):
            return params, args
        with np.errstate(all="ignore"):
            product = np.multiply(a, b)
        return (Map("add"), (args[2], self.w.full(args[2].shape, product))) if product == 0 else (params, args)


def _number(x: Value) -> Value | None:
    """The number that all elements of an array are."""
    while x.form == "broadcast":
        (x,) = x.args
        if not x.ndim:
            return x
    return None


def adds_to_zeros(v: Value) -> bool:
    return v.form == "scatter" and v.params.kind == "add" and constants.is_zero(v.args[0])


def _extents(x: Value) -> tuple[int, ...]:
    """The extents of the dimensions, the first ones, by which an update says where its rows are."""
    return x.shape[: len(x.params.indices.start_index_map)]


def _adds_rows(x: Value) -> bool:
    """Whether a value is zeros to which rows are added, wherever 32 bits say."""
    if not adds_to_zeros(x) or not x.ndim:
        return False
    at, (_, indices, new), dims = x.params.indices, x.args, len(x.params.indices.start_index_map)
    behind = tuple(range(dims, x.ndim))
    rows = at.start_index_map == tuple(range(dims)) and at.window_dims == behind
    whole = at.slice_sizes == (*(1,) * dims, *x.shape[dims:])
    last = at.offset_dims == tuple(range(new.ndim - len(behind), new.ndim))
    return rows and whole and last and not at.batching and indices.dtype == np.int32


def count_of(x: Value) -> int:
    """The rows that an update adds."""
    return math.prod(x.args[1].shape[:-1])


def are_few(v: Value, rows: int, dims: int) -> bool:
    """Whether so many rows, which the first `dims` dimensions of a value name, are a small part of it."""
    row = v.nbytes // max(math.prod(v.shape[:dims]), 1)
    return PART * rows * max(row, LINE) <= v.nbytes


def _by_rows(v: Value, dims: int, mode: str = "fill") -> Indices:
    """Places of rows, `dims` numbers for each."""
    behind = tuple(range(dims, v.ndim))
    offsets = tuple(d - dims + 1 for d in behind)
    return Indices(offsets, behind, (0,), (), tuple(range(dims)), (*(1,) * dims, *v.shape[dims:]), mode)


def _places(w: Writer, x: Value) -> Value:
    """The rows that an update goes to, as numbers in columns; others are beyond the array."""
    extents = _extents(x)
    return inside(w, w.reshape(x.args[1], (count_of(x), len(extents))), extents, x.params.indices.mode)


def inside(w: Writer, index: Value, extents: tuple, mode: str) -> Value:
    """Indices that tell the same place are the same numbers."""
    if mode != "clip":
        return index
    most = np.minimum(np.asarray(extents) - 1, np.iinfo(index.dtype).max).astype(index.dtype)
    low = w.full(index.shape, np.zeros((), index.dtype))
    high = w.full(index.shape, most[0]) if len(most) == 1 else w.broadcast_in_dim(w.constant(most), index.shape, (1,))
    return w.map("min", w.map("max", index, low), high)


def first_of_each(w: Writer, rows: Value, extents: tuple) -> Value:
    """For each of some rows, which numbers in columns tell, the place of one that stands for all that are the same."""
    columns = [
        w.reshape(w.element(rows, 1, k) if len(extents) > 1 else rows, rows.shape[:1]) for k in range(len(extents))
    ]
    return _first_of_few(w, columns) if rows.shape[0] <= FEW else _noted(w, rows, columns, extents)


def _first_of_few(w: Writer, columns: list[Value]) -> Value:
    (count,) = columns[0].shape
    square = (count, count)
    pairs = [[w.broadcast_in_dim(index, square, (d,)) for d in (0, 1)] for index in columns]
    same = _all(w, [w.map("eq", *pair, dtype=bool) for pair in pairs])
    places = w.value("iota", square, np.int32, (), Iota(1))
    none = w.full(square, np.int32(count))
    return w.value("reduce", (count,), np.int32, (w.map("select", same, places, none, dtype=np.int32),),
                   Reduce("min", (1,)))  # fmt: skip


def _noted(w: Writer, rows: Value, columns: list[Value], extents: tuple) -> Value:
    """Of many rows each place of the array keeps a note, which is read where it was written."""
    places = w.value("iota", columns[0].shape, np.int32, (), Iota(0))
    notes = w.value("unset", extents, np.int32, (), NOTHING)
    at = _by_rows(notes, len(extents))
    noted = w.value("scatter", extents, np.int32, (notes, rows, places), Scatter("set", at))
    found = w.value("gather", places.shape, np.int32, (noted, rows), at._replace(mode="clip"))
    limits = [(w.full(x.shape, np.asarray(n, x.dtype)) for n in (0, extent)) for x, extent in zip(columns, extents)]
    inside = [
        w.map(op, x, n, dtype=bool) for x, (low, high) in zip(columns, limits) for op, n in (("ge", low), ("lt", high))
    ]
    return w.map("select", _all(w, inside), found, places, dtype=np.int32)


def _all(w: Writer, truths: list[Value]) -> Value:
    return functools.reduce(functools.partial(w.map, "and"), truths)
