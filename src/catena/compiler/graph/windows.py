"""Windows over arrays: how many there are, and short ones as shifted arrays."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from catena.compiler.graph.types import TYPES
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

SHORT = 32  # places of a window, of which each is an operation
OPERATIONS = {"sum": "add", "max": "max", "min": "min"}


class Sizes(NamedTuple):
    """Of each spatial dimension."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]

    def along(self, first: int, last: int, before: int, after: int) -> Sizes:
        """Those of some dimensions, with so many others before and after that nothing is done along."""
        ones = (1, (0, 0), 1, 1)
        return Sizes._make((*[x] * before, *s[first:last], *[x] * after) for s, x in zip(self, ones))

    def without_padding(self) -> Sizes:
        """Those in an array that is padded already."""
        rank = len(self.strides)
        return self._replace(padding=((0, 0),) * rank, lhs_dilation=(1,) * rank)


def positions(shape, dims, strides, padding, base_dilation, window_dilation) -> tuple:
    """The number of window positions along each dimension."""
    out = []
    for n, w, s, (lo, hi), bd, wd in zip(shape, dims, strides, padding, base_dilation, window_dilation):
        dilated = (n - 1) * bd + 1 if n else 0
        reach = (w - 1) * wd + 1 if w else 0
        out.append(max(0, (dilated + lo + hi - reach) // s + 1) if reach <= dilated + lo + hi else 0)
    return tuple(out)


def shifted(b, x, fill, dims, strides, padding, base_dilation, window_dilation) -> list:
    """The array as each place of a window sees it, in the windows' order: parts of the padded array."""
    config = [(lo, hi, n - 1) for (lo, hi), n in zip(padding, base_dilation)]
    padded = b.pad(x, fill, config)
    counts = positions(x.shape, dims, strides, padding, base_dilation, window_dilation)
    parts = []
    for place in itertools.product(*map(range, dims)):
        start = [i * n for i, n in zip(place, window_dilation)]
        limit = [lo + (n - 1) * s + 1 if n else lo for lo, n, s in zip(start, counts, strides)]
        parts.append(b.slice(padded, start, limit, strides))
    return parts


def reduce(b, kind: str, x, fill, dims, *sizes):
    """The reduction of each window: of short ones, operations on shifted arrays, whose lanes are places side by side
    and which know where the padding lies.
    """
    if 0 in (counts := positions(x.shape, dims, *sizes)):  # what is padded by less than nothing may have no extents
        return b.full(counts, np.zeros((), x.dtype))
    if not _is_short(kind, x.dtype, math.prod(dims)):
        return b.reduce(kind, b.window(x, fill, dims, *sizes), range(x.ndim, 2 * x.ndim))
    first, *others = shifted(b, x, fill, dims, *sizes)
    if kind == "sum":
        first = b.map("add", first, b.constant(np.zeros((), x.dtype)))  # as of a zero and the elements: no -0
    return functools.reduce(functools.partial(b.map, OPERATIONS[kind]), others, first)


def _is_short(kind: str, dtype, count: int) -> bool:
    """Whether a reduction of so many elements is written out. Sums of narrow floats are rounded once, at their end."""
    if not 1 < count <= SHORT:
        return False
    if KIND[dtype] == "c":
        return kind == "sum"
    return kind in OPERATIONS and not (kind == "sum" and TYPES[dtype.name].narrow)


def extreme(dtype, kind: str):
    """The identity of max or min in `dtype`."""
    low = kind == "max"
    if dtype == np.bool_:
        return not low
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return info.min if low else info.max
    return -np.inf if low else np.inf
