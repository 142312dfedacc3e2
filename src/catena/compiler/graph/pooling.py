"""The first greatest (or least) element of each window: derivatives of max pooling.

Which place of its window it has is a number for each window. What goes to it is chosen by the array's elements: each
knows the few windows that it lies in, and which of their places it has. So nothing is scattered.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from catena.compiler.graph import windows
from catena.compiler.graph.forms import Indices, Scatter
from catena.compiler.graph.types import TYPES
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

NOWHERE = -1  # the place that windows choose which are not there


class Windows(NamedTuple):
    """Windows over an array, of each dimension: its extent, a window's, the distance of two and the padding."""

    extents: tuple[int, ...]
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def sizes(self) -> tuple:
        """What a window hangs on, as `windows` takes it."""
        ones = (1,) * len(self.dims)
        return self.dims, self.strides, self.padding, ones, ones

    @property
    def covers(self) -> tuple[int, ...]:
        """How many windows an element lies in at most, along each dimension."""
        return tuple([-(-w // s) for w, s in zip(self.dims, self.strides)])

    @property
    def weights(self) -> tuple[int, ...]:
        """A place of a window is the sum of its indices, each times one of these: no other place has that number, nor
        would one behind the end of the window, as far as windows that cover an element reach.
        """
        reach = [n * s for n, s in zip(self.covers, self.strides)]
        return tuple([math.prod(reach[d + 1 :]) for d in range(len(reach))])

    def number(self, place) -> int:
        """The number of a place."""
        return sum(i * weight for i, weight in zip(place, self.weights))


def select_and_scatter_add(b, source, operand, select_op: str, dims, strides, padding):
    """Adds each element of `source` to the place in its window that `select_op` ('ge', 'le') chooses first."""
    if not source.size:
        return b.full(operand.shape, np.zeros((), source.dtype))
    over = _windows(operand, dims, strides, padding)
    wide = np.dtype(np.float32) if TYPES[source.dtype.name].narrow else source.dtype
    add = _collected if math.prod(dims) <= windows.SHORT else _scattered
    return b.convert(add(b, b.convert(source, wide), operand, _kind(select_op), over), source.dtype)


def select_and_gather_add(b, tangents, operand, select_op: str, first, dims, *sizes):
    """What `tangents` has where `select_op` ('ge', 'le') chooses first in each window. `first` is a jaxpr: of a place,
    what is there and a tangent, twice, to those of the place that is chosen.
    """
    kind, zero = _kind(select_op), b.constant(np.zeros((), tangents.dtype))
    both = (operand, _worst(b, operand, kind)), (tangents, zero)
    if 0 in (counts := windows.positions(operand.shape, dims, *sizes)):
        return b.full(counts, zero)
    if math.prod(dims) <= windows.SHORT:
        return _first_of(b, kind, *(windows.shifted(b, *x, dims, *sizes) for x in both))
    seen = [b.window(*x, dims, *sizes) for x in both]
    rank, shape = len(counts), seen[0].shape
    weights = [math.prod(dims[d + 1 :]) for d in range(rank)]
    places = _numbers(b, shape, {rank + d: weight for d, weight in enumerate(weights)})
    inits = [b.constant(np.int32(np.iinfo(np.int32).max)), both[0][1], zero]
    return b.reduce_general([places, *seen], inits, range(rank, 2 * rank), first)[2]


def _windows(x, dims, strides, padding) -> Windows:
    """The windows over an array. How far the next one lies is no matter where there is none."""
    ones = (1,) * x.ndim
    counts = windows.positions(x.shape, dims, strides, padding, ones, ones)
    steps = [s if n > 1 else max(sum(edge, whole), 1) for n, s, whole, edge in zip(counts, strides, x.shape, padding)]
    return Windows(x.shape, tuple(dims), tuple(steps), tuple(padding))


def _kind(select_op: str) -> str:
    return "max" if select_op in ("ge", "gt", "max") else "min"


def _worst(b, x, kind: str):
    return b.constant(windows.extreme(x.dtype, kind), x.dtype)


def _first_of(b, kind: str, parts: list, beside: list):
    """What is beside the first part that has the greatest (least) element of all; the first NaN is that."""
    (best, found), *others = zip(parts, beside)
    for x, own in others:
        wins = _wins(b, kind, x, best)
        best, found = b.map("select", wins, x, best), b.map("select", wins, own, found)
    return found


def _wins(b, kind: str, x, best):
    """Where `x` is greater (less) than the best so far, or the first NaN."""
    if KIND[x.dtype] != "f":
        return b.map("gt" if kind == "max" else "lt", x, best)
    not_worse = b.map("not", b.map("le" if kind == "max" else "ge", x, best))
    return b.map("and", not_worse, b.map("eq", best, best))


def _collected(b, source, x, kind: str, over: Windows):
    """What each element is given by the windows that choose it, in their order."""
    parts = windows.shifted(b, x, _worst(b, x, kind), *over.sizes)
    places = [b.full(source.shape, np.int32(over.number(at))) for at in itertools.product(*map(range, over.dims))]
    chosen, zero = _first_of(b, kind, parts, places), b.constant(np.zeros((), source.dtype))
    blocks = [-(-max(n + lo, 0) // s) for n, s, (lo, _) in zip(over.extents, over.strides, over.padding)]
    shape = tuple(itertools.chain(*zip(blocks, over.strides)))  # the padded array in blocks from window to window
    within = {2 * d + 1: weight for d, weight in enumerate(over.weights) if over.strides[d] > 1}
    total, numbers = b.full(shape, zero), _numbers(b, shape, within)
    spread = lambda x: b.broadcast_in_dim(x, shape, range(0, len(shape), 2))
    for back in itertools.product(*(range(n - 1, -1, -1) for n in over.covers)):
        config = [(k, n - k - count, 0) for k, n, count in zip(back, blocks, source.shape)]
        which = b.pad(chosen, b.constant(np.int32(NOWHERE)), config)
        place = over.number([k * s for k, s in zip(back, over.strides)])
        hit = b.map("eq", spread(which), b.map("add", numbers, b.constant(np.int32(place))))
        total = b.map("add", total, b.map("select", hit, spread(b.pad(source, zero, config)), b.full(shape, zero)))
    padded = b.reshape(total, [n * s for n, s in zip(blocks, over.strides)])
    edges = [(-lo, n + lo - m, 0) for n, m, (lo, _) in zip(over.extents, padded.shape, over.padding)]
    return b.pad(padded, zero, edges)


def _numbers(b, shape: tuple, weights: dict[int, int]):
    """The sum of the indices along some dimensions, each times its weight."""
    total = b.full(shape, np.int32(0))
    for d, weight in weights.items():
        total = b.map("add", total, b.map("mul", b.iota(np.int32, shape, d), b.constant(np.int32(weight))))
    return total


def _scattered(b, source, x, kind: str, over: Windows):
    """The same of long windows: each adds to the place that it chooses."""
    rank, seen = x.ndim, b.window(x, _worst(b, x, kind), *over.sizes)
    chosen = b.argreduce(kind, b.reshape(seen, (*source.shape, math.prod(over.dims))), rank, np.int64)
    starts, left = [None] * rank, chosen
    for d in reversed(range(rank)):
        size = b.constant(np.int64(over.dims[d]))
        inner, left = b.map("rem", left, size), b.map("div", left, size)
        corner = b.map("mul", b.iota(np.int64, chosen.shape, d), b.constant(np.int64(over.strides[d])))
        at = b.map("sub", b.map("add", corner, inner), b.constant(np.int64(over.padding[d][0])))
        starts[d] = b.reshape(at, (*chosen.shape, 1))
    zeros, every = b.full(over.extents, np.zeros((), source.dtype)), tuple(range(rank))
    places = Indices((), (), every, (), every, (1,) * rank, "fill")
    operands = [zeros, b.concatenate(starts, rank), source]
    return b.value("scatter", over.extents, source.dtype, operands, Scatter("add", places))
