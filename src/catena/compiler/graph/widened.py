"""What is made wider and narrow again: the same numbers, where the wider dtype holds them all.

Users compute in float32 what they keep as halves. Where nothing happens in between, or zeros are added, it is the
number that it was, or -0 is 0: loops that carry such numbers find then that nothing changes.
"""

from __future__ import annotations

import functools

import numpy as np

from catena.compiler.graph import constants
from catena.core.dtypes import KIND, finfo, iinfo


def back(b, x, dtype: np.dtype):
    """The value as `dtype`, where it is what was of this dtype before, alone or with zeros added; else None."""
    if (given := _widened(x, dtype)) is not None:
        return given
    if x.form != "map" or x.params.op != "add":
        return None
    for term, other in (x.args, x.args[::-1]):
        if constants.is_zero(other) and (given := _widened(term, dtype)) is not None:
            return b.map("add", given, b.full(given.shape, np.zeros((), dtype)))
    return None


def _widened(x, dtype: np.dtype):
    """What was of this dtype before it was made wider."""
    if x.form != "map" or x.params.op != "convert" or x.args[0].dtype != dtype:
        return None
    return x.args[0] if _holds(x.dtype, dtype) else None


@functools.cache
def _holds(wide: np.dtype, narrow: np.dtype) -> bool:
    """Whether a dtype holds all numbers of another."""
    kinds = KIND[wide], KIND[narrow]
    if kinds == ("f", "f"):
        w, n = finfo(wide), finfo(narrow)
        return w.nmant >= n.nmant and w.maxexp >= n.maxexp and w.minexp <= n.minexp
    if kinds[1] not in "iu" or kinds[0] not in "iuf":
        return False
    least, most = int(iinfo(narrow).min), int(iinfo(narrow).max)
    if kinds[0] == "f":
        return max(-least, most) <= min(float(2 << finfo(wide).nmant), float(finfo(wide).max))
    return iinfo(wide).min <= least and most <= iinfo(wide).max
