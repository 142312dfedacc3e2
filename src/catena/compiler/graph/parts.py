"""Slices of what is joined: one that lies in a single part is a slice of that, so others need not be computed; slices
of what is spread, which are spread less far; parts along one axis; and pads that add nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catena.compiler.graph import constants


def padded(b, x, value, config: tuple, shape: list) -> Any:
    """A pad that is something simpler, as those of short axes in the gradient of an associative scan are: it changes
    nothing, cuts off only, or holds one number.
    """
    if all(c == (0, 0, 0) for c in config):
        return x
    if 0 in x.shape or constants.is_same(x, value):
        return b.full(shape, value)
    if 0 not in shape and all(lo <= 0 and hi <= 0 and mid == 0 for lo, hi, mid in config):
        return b.slice(x, [-lo for lo, _, _ in config], [n + hi for n, (_, hi, _) in zip(x.shape, config)])
    return None


def sliced(b, x, shape: tuple, start: tuple, limit: tuple, strides: tuple) -> Any:
    """The slice of a concatenation `x` as that of one of its parts; None where it reaches several, or where parts that
    nobody reads are tested all the same. Likewise, of that shape, of what is the same along all that is cut off.
    """
    if x.form == "broadcast" and all(shape[d] == x.shape[d] for d in x.params.dims):
        return b.broadcast_in_dim(x.args[0], shape, x.params.dims)
    if x.form != "concatenate" or b.checks.kinds:
        return None
    d = x.params.dimension
    for part, at in joined(x):
        first, last = start[d] - at, limit[d] - at
        if 0 <= first < last <= part.shape[d]:
            return b.slice(part, _at(start, d, first), _at(limit, d, last), strides)
    return None


def cut(b, x, axis: int, first: int, last: int) -> Any:
    """A part of an array along one axis."""
    start, limit = [0] * x.ndim, list(x.shape)
    start[axis], limit[axis] = first, last
    return b.slice(x, start, limit)


def joined(x) -> Iterator[tuple[Any, int]]:
    """The parts of a concatenation, and where each begins in it."""
    at = 0
    for part in x.args:
        yield part, at
        at += part.shape[x.params.dimension]


def _at(places: tuple, d: int, place: int) -> tuple:
    return (*places[:d], place, *places[d + 1 :])
