"""Parts of what is joined or spread that nobody reads, left out where whoever reads it reads but some of it.

The first rows of several arrays that are stacked are slices of the stack; as a stack of slices, the other rows of these
arrays are not computed. (A slice that lies in one part is a slice of that from the start: see `parts`.) Likewise a
column of a sum of outer shape: as a sum of slices, what is spread is computed for that column. What is joined,
computed, and taken apart where it was joined (the gradient of a stack, for all parts or for some) is computed of the
parts, and is no array.
"""

from __future__ import annotations

from catena.compiler.graph.forms import Concatenate, Slice
from catena.compiler.graph.insertion import insert
from catena.compiler.graph.parts import joined
from catena.compiler.graph.region import Region, Value

SLICES = ("slice", "dynamic_slice")
FEW = 2  # one element of so many is read at most
PARTS = 4  # slices at most of what is joined, computed, and taken apart again
MOST = 16  # operations that are looked through


def trim(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is computed, whoever reads it
    for each in region.walk():
        if any(v.form in SLICES for v in each.values) and (made := _trimmed(each)):
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
        if v.number not in kept and _is_trimmed(v, users[v.number]):
            for user in users[v.number]:
                before = place[id(user)]
                slices = _compute(user, v) if v.form == "map" else _join(user, v)
                made[before] = [*slices, *made.get(before, ())]
                for each in slices or [user]:
                    place[id(each)] = before
                    for read in {x.number for x in each.args if x not in slices}:
                        users[read].append(each)
            for part in {x.number for x in v.args}:
                users[part] = [u for u in users[part] if u is not v]
    return made


def _is_trimmed(v: Value, users: list[Value]) -> bool:
    """Whether little is read of what is joined, or of an elementwise operation of such, by a single reader."""
    if v.form == "concatenate":
        fewer = sum(u.size for u in users) < v.size  # else all of it may be read, once or more often
        return fewer and all(_leaves_out(u, v) for u in users) or 0 < len(users) <= PARTS and _takes_apart(users, v, v)
    if v.form != "map" or not users or any(u.form != "slice" for u in users):
        return False
    if len(users) <= PARTS and (whole := _joins(v)) is not None and _takes_apart(users, v, whole):
        return True
    return len(users) == 1 and 0 < FEW * users[0].size <= v.size and _leads(v)


def _takes_apart(users: list[Value], v: Value, whole: Value) -> bool:
    """Whether `users` are slices of `v` that have no element in common, of one part each of what `whole` joins: then
    nothing is computed twice, and nothing need be joined.
    """
    d, found = whole.params.dimension, []
    for u in users:
        if u.form != "slice" or u.args[0] is not v or not u.size or u.params.strides[d] != 1:
            return False
        found.append((u.params.start[d], u.params.start[d] + u.shape[d]))
    ends = [(at, at + part.shape[d]) for part, at in joined(whole)]
    inside = all(any(first <= low and high <= last for first, last in ends) for low, high in found)
    found.sort()
    return inside and all(high <= low for (_, high), (low, _) in zip(found, found[1:]))


def _joins(v: Value) -> Value | None:
    """The concatenation that a few elementwise operations of it, of inputs and of what is spread lead to."""
    pending, left, found = [v], MOST, None
    while pending and left:
        x, left = pending.pop(), left - 1
        if x.form == "concatenate" and (found is None or _alike(x, found)):
            found = x
        elif x.form == "map":
            pending += x.args
        elif x.form not in ("input", "constant", "broadcast"):
            return None
    return found if left else None


def _alike(x: Value, y: Value) -> bool:
    """Whether two concatenations join parts of the same lengths."""
    d = x.params.dimension
    return d == y.params.dimension and [a.shape[d] for a in x.args] == [a.shape[d] for a in y.args]


def _leads(v: Value) -> bool:
    """Whether elementwise operations, a few at most, lead to what is joined, or to what is computed and then spread."""
    pending, left = [v], MOST
    while pending and left:
        x, left = pending.pop(), left - 1
        if x.form == "concatenate" or x.form == "broadcast" and x.args[0].form == "map":
            return True
        if x.form == "map":
            pending += x.args
    return False


def _leaves_out(user: Value, v: Value) -> bool:
    """Whether `user` reads some rows of `v`, or some of its parts; of whatever is joined neighbours."""
    if user.form not in SLICES or not user.size or user.args[0] is not v:
        return False
    d = v.params.dimension
    whole = user.params.strides[d] == 1 if user.form == "slice" else user.shape[d] == v.shape[d]
    return whole and FEW * user.size <= v.size


def _compute(user: Value, v: Value) -> list[Value]:
    """Makes a slice of an elementwise operation one of slices, which are returned."""
    made = {a.number: sliced(a, user) for a in v.args}
    user.form, user.args, user.params = "map", tuple(made[a.number][-1] for a in v.args), v.params
    return [x for each in made.values() for x in each]


def sliced(x: Value, user: Value) -> list[Value]:
    """What the slice `user` reads, of an operand; before it what it is made of. Of what is spread, that is spread."""

    def new(form: str, shape: tuple, args: tuple, params) -> Value:
        made = Value(form, shape, x.dtype, args, params, user.number, user.source)
        made.bounds = x.bounds
        return made

    p = user.params
    if x.form != "broadcast":
        return [new("slice", user.shape, (x,), p)]
    (inner,), dims = x.args, x.params.dims
    axes = [(0, 1, 1) if n == 1 else (p.start[d], user.shape[d], p.strides[d]) for d, n in zip(dims, inner.shape)]
    start, sizes, strides = zip(*axes) if axes else ((), (), ())
    part = [new("slice", sizes, (inner,), Slice(start, strides))] if sizes != inner.shape else []
    return [*part, new("broadcast", user.shape, tuple(part) or x.args, x.params)]


def _join(user: Value, v: Value) -> list[Value]:
    """Makes a slice of what `v` joins what joins the slices that are returned, or a slice of the one part it reads."""
    d, slices = v.params.dimension, []
    begin = user.params.start[d] if user.form == "slice" else 0
    for part, at in joined(v):
        first = max(begin - at, 0)
        count = min(begin + user.shape[d] - at, part.shape[d]) - first
        if count > 0:
            slices.append(_slice(part, user, d, first, count))
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
