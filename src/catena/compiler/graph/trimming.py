"""Parts of what is joined that nobody reads, left out where whoever reads it reads but some of the other dimensions.

The first rows of several arrays that are stacked are slices of the stack; as a stack of slices, the other rows of these
arrays are not computed. (A slice that lies in one part is a slice of that from the start: see `parts`.)
"""

from __future__ import annotations

import math

from catena.compiler.graph.forms import FORMS, Concatenate, Slice
from catena.compiler.graph.graph import Region, Value
from catena.compiler.graph.replacement import insert

FEW = 2  # one row of so many is read at most


def trim(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    pending = [] if region.sites else [region]  # what is tested is computed, whoever reads it
    while pending:
        each = pending.pop()
        pending += [inner for v in each.values if FORMS[v.form].control for inner in v.params.regions]
        if any(v.form == "concatenate" for v in each.values) and (made := _trimmed(each)):
            insert(each, made)
    return region


def _trimmed(region: Region) -> dict[int, list[Value]]:
    """New slices, for each value of the region the ones that go before it; joined ones are followed to their parts."""
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    place = {id(v): v.number for v in live}  # of a value, or of the one before which it goes
    for v in reversed(live):
        if v.form == "concatenate" and v.number not in kept and all(_leaves_out(u, v) for u in users[v.number]):
            for user in users[v.number]:
                before = place[id(user)]
                slices = _join(user, v)
                made[before] = [*slices, *made.get(before, ())]
                for each in slices or [user]:
                    place[id(each)] = before
                    users[each.args[0].number].append(each)
            for part in {x.number for x in v.args}:
                users[part] = [u for u in users[part] if u is not v]
    return made


def _leaves_out(user: Value, v: Value) -> bool:
    """Whether `user` reads some rows of `v`, of whatever is joined as many neighbours as it likes."""
    if user.form not in ("slice", "dynamic_slice") or not user.size or user.args[0] is not v:
        return False
    d = v.params.dimension
    read, all_ = (math.prod(n for e, n in enumerate(x.shape) if e != d) for x in (user, v))
    whole = user.params.strides[d] == 1 if user.form == "slice" else user.shape[d] == v.shape[d]
    return whole and FEW * read <= all_


def _join(user: Value, v: Value) -> list[Value]:
    """Makes a slice of what `v` joins what joins the slices that are returned, or a slice of the one part it reads."""
    d, at, slices = v.params.dimension, 0, []
    begin = user.params.start[d] if user.form == "slice" else 0
    for part in v.args:
        first = max(begin - at, 0)
        count = min(begin + user.shape[d] - at, part.shape[d]) - first
        if count > 0:
            slices.append(_slice(part, user, d, first, count))
        at += part.shape[d]
    if len(slices) == 1:
        user.args, user.params = slices[0].args, slices[0].params
        return []
    user.form, user.args, user.params = "concatenate", tuple(slices), Concatenate(d)
    return slices


def _slice(part: Value, user: Value, d: int, first: int, count: int) -> Value:
    """What `user` reads, of a part; `count` elements along `d`."""
    params, shape = user.params, (*user.shape[:d], count, *user.shape[d + 1 :])
    if user.form == "slice":
        params = Slice((*params.start[:d], first, *params.start[d + 1 :]), params.strides)
    new = Value(user.form, shape, user.dtype, (part, *user.args[1:]), params, user.number, user.source)
    new.bounds = user.bounds
    return new
