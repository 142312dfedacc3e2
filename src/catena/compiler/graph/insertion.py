"""New values of a region: made, put before those that ask for them, and all numbered anew."""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.forms import NOTHING, Broadcast, Constant, Map, Pad, Slice
from catena.compiler.graph.region import Region, Value


def insert(region: Region, made: dict[int, list[Value]]) -> None:
    """Puts values before the loops that ask for them, and new results behind these; all values are numbered anew."""
    values: list[Value] = []
    for v in region.values:
        values += [x for x in made.get(v.number, ()) if x.form != "output"]
        values.append(v)
        values += [x for x in made.get(v.number, ()) if x.form == "output"]
    number(region, values)


def number(region: Region, values: list[Value]) -> None:
    region.values = values
    for n, v in enumerate(values):
        v.number = n


class Writer:
    """Makes the values that another needs before it: of a `Builder` it has what such rules ask for."""

    def __init__(self, source):
        self.source, self.made = source, []

    def value(self, form: str, shape: tuple, dtype, args: tuple, params) -> Value:
        self.made.append(Value(form, shape, np.dtype(dtype), args, params, -1, self.source))
        return self.made[-1]

    def constant(self, n, dtype=None) -> Value:
        array = np.asarray(n, dtype)
        return self.value("constant", array.shape, array.dtype, (), Constant(array))

    def full(self, shape: tuple, number) -> Value:
        return self.broadcast_in_dim(number if isinstance(number, Value) else self.constant(number), shape)

    def map(self, op: str, *args: Value, dtype=None) -> Value:
        return self.value("map", args[0].shape, dtype or args[0].dtype, args, Map(op))

    def convert(self, x: Value, dtype) -> Value:
        return x if x.dtype == dtype else self.map("convert", x, dtype=dtype)

    def reshape(self, x: Value, shape: tuple) -> Value:
        return x if x.shape == shape else self.value("reshape", shape, x.dtype, (x,), NOTHING)

    def broadcast_in_dim(self, x: Value, shape: tuple, dims: tuple = ()) -> Value:
        return x if x.shape == shape else self.value("broadcast", shape, x.dtype, (x,), Broadcast(dims))

    def element(self, x: Value, d: int, k: int) -> Value:
        """Element `k` along dimension `d`, which remains, of extent 1."""
        start = Slice(tuple(k * (j == d) for j in range(x.ndim)), (1,) * x.ndim)
        return self.value("slice", (*x.shape[:d], 1, *x.shape[d + 1 :]), x.dtype, (x,), start)

    def part(self, x: Value, start: int, count: int) -> Value:
        """So many rows of `x`."""
        begin = Slice((start, *(0,) * (x.ndim - 1)), (1,) * x.ndim)
        return self.value("slice", (count, *x.shape[1:]), x.dtype, (x,), begin)

    def pad(self, x: Value, number: Value, config: tuple) -> Value:
        return self.value(
            "pad", tuple(a + n + b for n, (a, b, _) in zip(x.shape, config)), x.dtype, (x, number), Pad(config)
        )
