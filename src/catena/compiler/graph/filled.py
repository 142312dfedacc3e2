"""Large results that are one number each, and equal: each is filled, not copied from another, which would be read.

So are zeros for all that an optimiser averages, and gradients of arguments that nothing hangs on.
"""

from __future__ import annotations

from catena.compiler.graph.insertion import number
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.thresholds import reaches

LEAST = 1 << 16  # bytes of a result; smaller ones are copied where they lie in a near cache


def fill_each(region: Region) -> Region:
    """The region of a whole program, in place: results that are spread numbers are values of their own."""
    outputs, seen, made = [], set(), []
    for out in region.outputs:
        is_number = out.form == "broadcast" and out.args[0].ndim == 0
        if out in seen and is_number and reaches(out.nbytes, LEAST):
            out = Value(out.form, out.shape, out.dtype, out.args, out.params, -1, out.source)
            made.append(out)
        seen.add(out)
        outputs.append(out)
    if made:
        region.outputs = outputs
        number(region, [*region.values, *made])
    return region
