"""Updates of one part of an array, at a place that is known, as choices between old and new elements.

``u.at[1:-1].add(v)`` is an update of one window. Written as one, it has the array in memory, and ``v`` often too, and
goes over it after whoever made it. As a choice, element by element, it is computed where it is read, with what makes
the array and what reads it, in one pass; and its conditions, which compare places with numbers, are where loops are cut
(`emit.seams`), so that nothing is chosen between these places. An update of a small part stays one where it writes
over an array that is in memory before and after.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.forms import FORMS, NOTHING, Broadcast, Constant, Map, Pad
from catena.compiler.graph.graph import Region, Value
from catena.compiler.graph.indexing import known_numbers, window
from catena.compiler.graph.replacement import insert

LARGE = 2  # the part of an array is that is 1 / LARGE of it
COMBINES = ("set", "add", "sub", "mul", "min", "max")  # kinds of updates that are an elementwise operation


def inset(region: Region) -> Region:
    """The region, in place, and the regions in it: updates at known places are choices where that takes less."""
    pending = [region]
    while pending:
        each = pending.pop()
        pending += [inner for v in each.values if FORMS[v.form].control for inner in v.params.regions]
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
        inlined = (FORMS[x.form].inline or x.number in found) and x.number in alone
        if inlined or LARGE * _new(v).size >= v.size:
            found.add(v.number)
    for v in reversed(starts):
        if v.number in alone and _is_inlined(users[v.number][0], v, found):
            found.add(v.number)
    return [(v, start) for v, start in starts.items() if v.number in found]


def _new(v: Value) -> Value:
    return v.args[1] if v.form == "dynamic_update_slice" else v.args[2]


def _is_inlined(user: Value, v: Value, found: set[int]) -> bool:
    """Whether `user` computes `v` where it reads it, once."""
    if user.number in found:
        return user.args[0] is v
    form = FORMS[user.form]
    return form.fold or form.inline and not form.rereads and user.form not in ("broadcast", "reshape")


def _start(v: Value) -> tuple | None:
    """Where the part begins that an update changes, where it is one that is known; else None."""
    if v.form == "dynamic_update_slice":
        x, new, *starts = v.args
        numbers = [number for s in starts if (number := known_numbers(s)) is not None]
        if len(numbers) < len(starts):
            return None
        return tuple(min(max(int(s), 0), n - m) for s, n, m in zip(numbers, x.shape, new.shape))
    if v.form != "scatter" or v.params.kind not in COMBINES or v.args[2].size == 0:
        return None
    return window(v.args[0].shape, v.args[1], v.params.indices)


# ---- the choice ----------------------------------------------------------------------------------------------


def _choice(v: Value, start: tuple) -> list[Value]:
    """Makes an update, in place, a choice; returns the values that it needs before it."""
    made: list[Value] = []

    def value(form: str, shape: tuple, dtype, args: tuple, params) -> Value:
        made.append(Value(form, shape, np.dtype(dtype), args, params, -1, v.source))
        return made[-1]

    def number(n, dtype) -> Value:
        return value("constant", (), dtype, (), Constant(np.asarray(n, dtype)))

    x, new = v.args[0], _new(v)
    kind, sizes = (
        ("set", new.shape) if v.form == "dynamic_update_slice" else (v.params.kind, v.params.indices.slice_sizes)
    )
    config = Pad(tuple((low, n - low - size, 0) for low, n, size in zip(start, v.shape, sizes)))
    if new.shape != sizes:
        new = value("reshape", sizes, new.dtype, (new,), NOTHING)
    if kind == "set" and x.form == "broadcast" and x.args[0].ndim == 0:
        v.form, v.args, v.params = "pad", (new, x.args[0]), config
        return made
    new = value("pad", v.shape, v.dtype, (new, number(0, v.dtype)), config)
    if kind != "set":
        new = value("map", v.shape, v.dtype, (x, new), Map(kind))
    true = value("broadcast", sizes, bool, (number(True, bool),), Broadcast(()))
    inside = value("pad", v.shape, bool, (true, number(False, bool)), config)
    v.form, v.args, v.params = "map", (inside, new, x), Map("select")
    return made
