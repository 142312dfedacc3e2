"""What is read at computed places and is the same at each of them: the gradient of a sum of updates reads ones.

Where nothing is read beyond the array, or what is read there is the same number, the result is what is spread over the
array, spread over the result, and the places are computed for nobody. Whether indices lie within is asked of their
bounds (`intervals`).
"""

from __future__ import annotations

from catena.compiler.graph import constants
from catena.compiler.graph.forms import Broadcast
from catena.compiler.graph.intervals import Interval, interval
from catena.compiler.graph.region import Region, Value


def spread(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is looked at as it is
    for each in region.walk():
        for v in each.values:
            spread_one(v)
    return region


def spread_one(v: Value) -> None:
    """Makes what is read of what is spread, if it is the same at each place, what is spread."""
    rule = _RULES.get(v.form)
    if rule and v.args[0].form == "broadcast" and (dims := rule(v)) is not None:
        v.form, v.args, v.params = "broadcast", v.args[0].args, Broadcast(dims)


def _gather(v: Value) -> tuple | None:
    """Where the dimensions of what is spread lie in the result; None where that differs from one place to another."""
    x, at = v.args[0], v.params
    whole = [d for d in at.window_dims if at.slice_sizes[d] == x.shape[d]]  # whatever its index, which is 0 within
    lies = {d: at.offset_dims[at.window_dims.index(d)] for d in whole}
    lies |= {d: at.batch_dims[k] for d, k in at.batching}
    dims = tuple(lies.get(d, -1) for d in x.params.dims)
    return None if -1 in dims or list(dims) != sorted(dims) or not _is_within(v) else dims


def _dynamic_slice(v: Value) -> tuple | None:
    """The same of a part, which always lies within."""
    x = v.args[0]
    return x.params.dims if all(v.shape[d] == x.shape[d] for d in x.params.dims) else None


def _is_within(v: Value) -> bool:
    """Whether all that is read is an element of the operand, or like all of them."""
    (x, indices, *fill), at = v.args, v.params
    if at.mode != "fill" or fill and constants.is_same(x, fill[0]):
        return True
    least = min((x.shape[d] - at.slice_sizes[d] for d in at.start_index_map), default=0)
    return interval(indices).within(Interval(0, least))


_RULES = {"gather": _gather, "dynamic_slice": _dynamic_slice}
