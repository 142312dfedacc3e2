"""Few rows that are added to zeros, and the zeros that updates and loops begin with.

The gradient of ``x[i]`` is zeros to which rows are added; that of a function which reads `x` elsewhere too is added to
it. Where the rows are few, the sum is what is elsewhere, but in these rows: zeros are neither written nor read. Rows of
one place are added up first, beside each other, in their order, so the bits are those of the sum of both arrays.
"""

from __future__ import annotations

import numpy as np

from catena.compiler.graph import few_rows
from catena.compiler.graph.forms import LOOPS, Scatter
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.thresholds import reaches
from catena.core.dtypes import KIND

LEAST = 1 << 16  # bytes of what they are added to, and of what loops begin with
PART = 4  # they are at most 1 / PART of it


def spare(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is looked at as it is
    for each in region.walk():
        if any(v.form in UPDATES for v in each.values):
            few_rows.write(each)
            _add_rows(each)
        if any(v.form in UPDATES or v.form in LOOPS for v in each.values):
            _begin_apart(each)
    return region


UPDATES = ("scatter", "dynamic_update_slice")


def _add_rows(region: Region) -> None:
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    unsigned = {v.number for v in live if few_rows.adds_to_zeros(v)}  # that have no -0
    for v in live:
        if v.form != "map" or v.params.op != "add" or KIND[v.dtype] not in "fiu" or not reaches(v.nbytes, LEAST):
            continue
        for rows, other in (v.args, v.args[::-1]):
            alone = rows.number not in kept and users[rows.number] == [v] and rows is not other
            if alone and _are_few(rows, v.number in kept):
                made[v.number] = _write_over(v, rows, other, other.number in unsigned)
                unsigned |= {v.number} if other.number in unsigned else set()
                break
    if made:
        insert(region, made)


def _are_few(v: Value, is_result: bool) -> bool:
    """Whether a value is few rows that are added to zeros: windows that are one element long along some dimensions, one
    behind the other, and have the whole of the others. Of a result, which stays where it is, they may be more.
    """
    if not few_rows.adds_to_zeros(v):
        return False
    at, count, dims = v.params.indices, few_rows.count_of(v), v.params.indices.start_index_map
    if at.batching or not dims or not 1 < count or PART * v.args[2].size > v.size:
        return False
    if dims != tuple(range(dims[0], dims[0] + len(dims))) or not set(dims).isdisjoint(at.window_dims):
        return False
    if at.slice_sizes != tuple([1 if d in dims else n for d, n in enumerate(v.shape)]):
        return False
    return count <= few_rows.FEW or is_result and not dims[0] and few_rows.are_few(v, count, len(dims))


def _write_over(v: Value, rows: Value, other: Value, unsigned: bool) -> list[Value]:
    """Makes the sum of `rows` and another value that with some rows written anew; returns what it needs before it."""
    w, at, (_, indices, new) = Writer(v.source), rows.params.indices, rows.args
    count, dims = few_rows.count_of(rows), len(at.start_index_map)
    d = at.start_index_map[0]
    before, extents, behind = v.shape[:d], v.shape[d : d + dims], v.shape[d + dims :]
    zero = np.zeros((), v.dtype)
    base = other if unsigned or KIND[v.dtype] != "f" else w.map("add", other, w.full(v.shape, zero))
    places = few_rows.inside(w, w.reshape(indices, (count, dims)), extents, at.mode)
    first = w.reshape(few_rows.first_of_each(w, places, extents), (*indices.shape[:-1], 1))
    among = at._replace(
        window_dims=tuple([k if k < d else k - dims + 1 for k in at.window_dims]),
        start_index_map=(d,),
        slice_sizes=(*before, 1, *behind),
        mode="promise",
    )
    beside = w.full((*before, count, *behind), zero)
    summed = w.value("scatter", beside.shape, v.dtype, (beside, first, new), Scatter("add", among))
    own = w.value("gather", new.shape, v.dtype, (summed, first), among)
    there = w.value("gather", new.shape, v.dtype, (base, indices), at._replace(mode="clip"))
    v.form, v.args, v.params = "scatter", (base, indices, w.map("add", own, there)), Scatter("set", at)
    return w.made


def _begin_apart(region: Region) -> None:
    """Updates and loops that begin with one number everywhere, which others read too, begin with an array of their own:
    writing it takes half as long as a copy.
    """
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    for v in live:
        for k in _written_over(v):
            x = v.args[k]
            shared = x.number in kept or len(users[x.number]) > 1 or v.args.count(x) > 1
            if x.form == "broadcast" and not x.args[0].ndim and shared:
                own = Value(x.form, x.shape, x.dtype, x.args, x.params, -1, x.source)
                v.args = (*v.args[:k], own, *v.args[k + 1 :])
                made.setdefault(v.number, []).append(own)
    if made:
        insert(region, made)


def _written_over(v: Value) -> list[int]:
    """Which operands have the memory of results; of loops, the large ones."""
    if v.form in LOOPS:
        first = v.params.consts
        last = first + v.params.carries if v.form == "scan" else len(v.args)
        return [k for k in range(first, last) if v.args[k].nbytes >= LEAST]
    return [0] if v.form in UPDATES else []
