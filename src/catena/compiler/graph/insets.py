"""Updates of one part of an array as choices between old and new elements.

``u.at[1:-1].add(v)`` is an update of one window. Written as one, it has the array in memory, and ``v`` often too, and
goes over it after whoever made it. As a choice, element by element, it is computed where it is read, with what makes
the array and what reads it, in one pass; and its conditions, which compare places with numbers, are where loops are cut
(`emit.seams`), so that nothing is chosen between these places. An update of a small part stays one where it writes
over an array that is in memory before and after.

Along each dimension a part begins where the program says, or is one element at a place that is computed, as in
``x.at[i].set(v)``: then places are compared with that.
"""

from __future__ import annotations

from catena.compiler.graph.forms import FORMS, Iota, Map, Pad, Slice
from catena.compiler.graph.indexing import known_numbers, window
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.one_each import place_of
from catena.compiler.graph.region import Region, Value

LARGE = 2  # the part of an array is that is 1 / LARGE of it
COMBINES = ("set", "add", "sub", "mul", "min", "max")  # kinds of updates that are an elementwise operation


def inset(region: Region) -> Region:
    """The region, in place, and the regions in it: updates at known places are choices where that takes less."""
    for each in region.walk():
        if any(v.form in ("scatter", "dynamic_update_slice") for v in each.values):
            found = _found(each)
            insert(each, {v.number: _choice(v, start) for v, start in found})
    return region


def _found(region: Region) -> list[tuple[Value, tuple]]:
    """The updates that become choices, and where their parts begin."""
    live = region.live()
    users = region.users(live)
    starts = {v: start for v in live if (start := _start(v)) is not None}
    kept = {v.number for v in (*region.outputs, *region.effects)}
    alone = {v.number for v in live if len(users[v.number]) == 1 and v.number not in kept}
    found: set[int] = set()
    for v in starts:
        x = v.args[0]
        inlined = (FORMS[x.form].inline or x.number in found) and x.number in alone or _is_one_number(x)
        if inlined or LARGE * _new(v).size >= v.size:
            found.add(v.number)
    for v in reversed(starts):
        if v.number in alone and _is_inlined(users[v.number][0], v, found):
            found.add(v.number)
    return [(v, start) for v, start in starts.items() if v.number in found]


def _is_one_number(x: Value) -> bool:
    return x.form == "broadcast" and x.args[0].ndim == 0


def _new(v: Value) -> Value:
    return v.args[1] if v.form == "dynamic_update_slice" else v.args[2]


def _is_inlined(user: Value, v: Value, found: set[int]) -> bool:
    """Whether `user` computes `v` where it reads it, once."""
    if user.number in found:
        return user.args[0] is v
    form = FORMS[user.form]
    return form.fold or form.inline and not form.rereads and user.form not in ("broadcast", "reshape")


def _start(v: Value) -> tuple | None:
    """Where the part begins that an update changes: for each dimension a number, or the value that says so; else None.

    Values are for dimensions along which the part is one element. A scatter's are taken out of its indices later: here
    they stand for all of them.
    """
    if v.form == "dynamic_update_slice":
        x, new, *starts = v.args
        return _places(x.shape, new.shape, dict(enumerate(starts)))
    if v.form != "scatter" or v.params.kind not in COMBINES or v.args[2].size == 0:
        return None
    x, indices, _ = v.args
    p = v.params.indices
    if (known := window(x.shape, indices, p)) is not None or known_numbers(indices) is not None:
        return known
    if p.batching or indices.size != len(p.start_index_map):
        return None
    return _places(x.shape, p.slice_sizes, dict.fromkeys(p.start_index_map, indices), drops=p.mode != "clip")


def _places(shape: tuple, sizes: tuple, starts: dict[int, Value], drops: bool = False) -> tuple | None:
    """The numbers that are known of `starts`, moved to where the part is inside, and values for single elements. A part
    as long as a dimension begins at 0, unless what begins elsewhere is dropped.
    """
    places: list = [0] * len(shape)
    for d, start in starts.items():
        number = known_numbers(start) if start.size == 1 else None
        if number is not None:
            places[d] = min(max(int(number.item()), 0), shape[d] - sizes[d])
        elif sizes[d] == 1:
            places[d] = start
        elif sizes[d] < shape[d] or drops:
            return None
    return tuple(places)


# ---- the choice ----------------------------------------------------------------------------------------------


def _choice(v: Value, start: tuple) -> list[Value]:
    """Makes an update, in place, a choice; returns the values that it needs before it."""
    w, x, new = Writer(v.source), v.args[0], _new(v)
    scattered = v.form == "scatter"
    kind, sizes = (v.params.kind, v.params.indices.slice_sizes) if scattered else ("set", new.shape)
    computed = {d: s for d, s in enumerate(start) if isinstance(s, Value)}
    fixed = tuple(d for d in range(v.ndim) if d not in computed)
    new = w.reshape(new, tuple(sizes[d] for d in fixed))
    config = tuple((start[d], v.shape[d] - start[d] - sizes[d], 0) for d in fixed)
    if kind == "set" and not computed and _is_one_number(x):
        v.form, v.args, v.params = "pad", (new, x.args[0]), Pad(config)
        return w.made
    conditions = []
    if any(before or behind for before, behind, _ in config):
        true = w.broadcast_in_dim(w.constant(True, bool), new.shape)
        conditions.append(w.broadcast_in_dim(w.pad(true, w.constant(False, bool), config), v.shape, fixed))
        new = w.pad(new, w.constant(0, v.dtype), config)
    for d, index in computed.items():
        index = _of_dimension(w, v, index, d)
        place = place_of(w, index, v.shape[d], v.params.indices.mode if scattered else "clip")
        counter = w.value("iota", v.shape, place.dtype, (), Iota(d))
        conditions.append(w.map("eq", counter, w.broadcast_in_dim(place, v.shape), dtype=bool))
    new = w.broadcast_in_dim(new, v.shape, fixed)
    if kind != "set":
        new = w.map(kind, x, new)
    inside = conditions[0] if conditions else w.broadcast_in_dim(w.constant(True, bool), v.shape)
    for condition in conditions[1:]:
        inside = w.map("and", inside, condition)
    v.form, v.args, v.params = "map", (inside, new, x), Map("select")
    return w.made


def _of_dimension(w: Writer, v: Value, index: Value, d: int) -> Value:
    """The number that is for a dimension, among those of an update."""
    if v.form == "scatter" and index.size > 1:
        k = v.params.indices.start_index_map.index(d)
        index = w.value("slice", (1,), index.dtype, (w.reshape(index, (index.size,)),), Slice((k,), (1,)))
    return w.reshape(index, ())
