"""Slices of what is joined: one that lies in a single part is a slice of that, so others need not be computed."""

from __future__ import annotations

from typing import Any


def sliced(b, x, start: tuple, limit: tuple, strides: tuple) -> Any:
    """The slice of a concatenation `x` as that of one of its parts; None where it reaches several, or where parts that
    nobody reads are tested all the same.
    """
    if x.form != "concatenate" or b.checks.kinds:
        return None
    d, at = x.params.dimension, 0
    for part in x.args:
        first, last = start[d] - at, limit[d] - at
        if 0 <= first < last <= part.shape[d]:
            return b.slice(part, _at(start, d, first), _at(limit, d, last), strides)
        at += part.shape[d]
    return None


def _at(places: tuple, d: int, place: int) -> tuple:
    return (*places[:d], place, *places[d + 1 :])
