"""What is padded, computed with, and cut where it was padded (gradients of pads), is computed of what it was before.

The rows that are read lie beside each other then, as one. Nothing else may read what is computed, else it would be
computed twice.
"""

from __future__ import annotations

from catena.compiler.graph.insertion import insert
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.trimming import sliced

MOST = 64  # operations that are looked through


def unpad(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is computed, whoever reads it
    for each in region.walk():
        if any(v.form == "pad" for v in each.values):
            _unpad(each)
    return region


def _unpad(region: Region) -> None:
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    for v in live:
        if v.form != "slice" or v.args[0].form != "map" or any(n != 1 for n in v.params.strides):
            continue
        within = _within(v)
        inner = {v.number, *within}
        if any(_is_undone(a, v) for x in within.values() for a in x.args) and not any(
            n in kept or any(u.number not in inner for u in users[n]) for n in within
        ):
            made[v.number] = _computed(v, within)
    if made:
        insert(region, made)


def _within(v: Value) -> dict[int, Value]:
    """The elementwise operations that lead to the slice, by their numbers; none where they are many."""
    found: dict[int, Value] = {}
    pending = [v.args[0]]
    while pending and len(found) < MOST:
        x = pending.pop()
        if x.number not in found:
            found[x.number] = x
            pending += [a for a in x.args if a.form == "map"]
    return {} if pending else found


def _is_undone(x: Value, v: Value) -> bool:
    """Whether `v` cuts off what the pad `x` has added, and nothing else."""
    if x.form != "pad" or x.args[0].shape != v.shape:
        return False
    return all(lo == start and hi >= 0 and mid == 0 for (lo, hi, mid), start in zip(x.params.config, v.params.start))


def _computed(v: Value, within: dict[int, Value]) -> list[Value]:
    """Makes the slice the last of these operations, and returns the others, and what they are done to, of its shape."""
    made: list[Value] = []
    taken: dict[int, Value] = {}
    for n in sorted(within):
        x = within[n]
        for a in x.args:
            if a.number in taken:
                continue
            if _is_undone(a, v):
                taken[a.number] = a.args[0]
            elif a.number not in within:
                made += sliced(a, v)
                taken[a.number] = made[-1]
        args = tuple(taken[a.number] for a in x.args)
        if x is v.args[0]:
            v.form, v.args, v.params, v.bounds = "map", args, x.params, x.bounds
            break
        taken[n] = Value("map", v.shape, x.dtype, args, x.params, v.number, x.source)
        taken[n].bounds = x.bounds
        made.append(taken[n])
    return made
