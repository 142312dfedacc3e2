"""Large results that are equal: each is written where it is computed, not copied from another, which would be read.

So are zeros for all that an optimiser averages, and gradients of arguments that nothing hangs on: each is filled.
What is computed element by element is written twice by its kernel.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.forms import Map
from catena.compiler.graph.insertion import number
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.thresholds import reaches

LEAST = 1 << 16  # bytes of a number that is spread; smaller ones are copied where they lie in a near cache
LEAST_COMPUTED = 1 << 20  # likewise of what is computed


def fill_each(region: Region) -> Region:
    """The region of a whole program, in place: results that were given before are values of their own."""
    outputs, seen, made = [], set(), []
    for out in region.outputs:
        if out in seen and (again := _written_again(out)) is not None:
            out = again
            made.append(out)
        seen.add(out)
        outputs.append(out)
    if made:
        region.outputs = outputs
        number(region, [*region.values, *made])
    return region


def _written_again(v: Value) -> Value | None:
    """The same array as a value of its own, where it need not be copied; kernels write truths as bytes, more slowly."""
    if v.form == "broadcast" and v.args[0].ndim == 0 and reaches(v.nbytes, LEAST):
        return Value(v.form, v.shape, v.dtype, v.args, v.params, -1, v.source)
    if v.form == "map" and v.dtype != np.bool_ and reaches(v.nbytes, LEAST_COMPUTED):
        return Value("map", v.shape, v.dtype, (v,), Map("convert"), -1, v.source)
    return None
