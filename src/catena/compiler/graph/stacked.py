"""What is stacked and folded along that: the mean of a few arrays, the norm of a vector whose coordinates are arrays.

A fold of a stack is made of its parts one after the other, which is the order of a sum of so few elements anyway: no
stack is stored, and lanes need not hold short rows. Elementwise operations between are done to each part.
"""

from __future__ import annotations

from catena.compiler.graph.forms import Map
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value
from catena.core.dtypes import KIND

MOST_PARTS = 16  # of a stack
MOST = 64  # operations that are done to parts
COMBINED = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}  # kinds of folds
IN_ORDER = ("sum", "prod")


def unstack(region: Region, vector_bytes: int) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is looked at as it is
    for each in region.walk():
        if any(v.form == "concatenate" for v in each.values) and any(v.form == "reduce" for v in each.values):
            _unstack(each, vector_bytes)
    return region


def _unstack(region: Region, vector_bytes: int) -> None:
    live = region.live()
    users = region.users(live)
    kept = {v.number for v in (*region.outputs, *region.effects)}
    made: dict[int, list[Value]] = {}
    for v in live:
        if v.form == "reduce" and v.params.kind in COMBINED and len(v.params.axes) == 1 and KIND[v.dtype] != "c":
            (x,), (d,) = v.args, v.params.axes
            lanes = (
                vector_bytes // x.dtype.itemsize if v.params.kind in IN_ORDER and KIND[x.dtype] == "f" else MOST_PARTS
            )
            if 1 < x.shape[d] <= min(lanes, MOST_PARTS) and _is_of_stacks(x, d, users, kept):
                made[v.number] = _folded(v, x, d)
    if made:
        insert(region, made)


def _is_of_stacks(x: Value, d: int, users: dict[int, list[Value]], kept: set[int]) -> bool:
    """Whether nothing but elementwise operations, which nobody else reads, is done to stacks along `d`."""
    pending, seen, stacks, work = [x], {x.number}, 0, 0
    while pending:
        y = pending.pop()
        work += x.shape[d]
        if y.form == "broadcast":
            continue
        stack = y.form == "concatenate" and y.params.dimension == d and len(y.args) == y.shape[d]
        if not stack:
            if y.form != "map" or y.params.op == "checked":
                return False
            pending += [a for a in y.args if a.number not in seen]
            seen.update(a.number for a in y.args)
        if y.number in kept or y is not x and any(u.number not in seen for u in users[y.number]):
            return False
        stacks += stack
    return bool(stacks) and len(users[x.number]) == 1 and work <= MOST


def _folded(v: Value, x: Value, d: int) -> list[Value]:
    """Makes a fold the last operation of those that are returned. Of floats that are added up, zero is the last, as a
    sum is no -0.
    """
    w, op = Writer(v.source), COMBINED[v.params.kind]
    total, *others = (_part(w, x, k, d, {}) for k in range(x.shape[d]))
    if op == "add" and KIND[v.dtype] == "f":
        others.append(w.broadcast_in_dim(w.constant(0, v.dtype), v.shape))
    for part in others[:-1]:
        total = w.map(op, total, part)
    v.form, v.args, v.params = "map", (total, others[-1]), Map(op)
    return w.made


def _part(w: Writer, x: Value, k: int, d: int, known: dict[int, Value]) -> Value:
    """Element `k` along `d` of what is done to stacks."""
    if x.number not in known:
        known[x.number] = _new_part(w, x, k, d, known)
    return known[x.number]


def _new_part(w: Writer, x: Value, k: int, d: int, known: dict[int, Value]) -> Value:
    shape = (*x.shape[:d], *x.shape[d + 1 :])
    if x.form == "map":
        new = w.value("map", shape, x.dtype, tuple(_part(w, a, k, d, known) for a in x.args), x.params)
        new.bounds = x.bounds
        return new
    return _without(w, x.args[k], 0, d, shape) if x.form == "concatenate" else _without(w, x, k, d, shape)


def _without(w: Writer, x: Value, k: int, d: int, shape: tuple) -> Value:
    """Element `k` along dimension `d`, of this shape, of what is spread, or has one."""
    inner = x.args[0] if x.args else x
    if x.form == "reshape" and inner.shape == shape:
        return inner
    if x.form != "broadcast":
        return w.reshape(x, shape)
    dims = x.params.dims
    if d in dims:
        at = dims.index(d)
        own = (*inner.shape[:at], *inner.shape[at + 1 :])
        inner = w.reshape(w.element(inner, at, k) if inner.shape[at] > 1 else inner, own)
    return w.broadcast_in_dim(inner, shape, tuple(j - (j > d) for j in dims if j != d))
