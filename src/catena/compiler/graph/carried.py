"""Parts that loops add to arrays which they carry.

The gradient of `w[i]` in a loop, such as that of a layer's weights, is zeros with one part, added to those of the
iterations before. As it is written, each iteration goes over all of the array. Here the part is added where it
belongs, and the array is updated in place: what is added elsewhere is zero. That changes no bit but the sign of a zero,
so arrays are taken that cannot hold -0: what began as zeros, and was only added to.
"""

from __future__ import annotations

from catena.compiler.graph import constants
from catena.compiler.graph.forms import LOOPS, NOTHING, Indices, Scatter
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value
from catena.core.dtypes import KIND
from catena.core.named import NamedTuple

LEAST = 1 << 10  # bytes of an array
PART = 2  # what is added is at most 1 / PART of it
ROUNDS = 3  # after which carries of a loop are not asked any more
SAME = ("reshape", "transpose", "broadcast")  # forms of nodes that hold what their operand holds


def add_in_place(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    bodies = [body for each in region.walk() for v in each.control() if v.form in LOOPS for body in v.regions]
    found = [(body, sums) for body in bodies if (sums := _sums(body))]
    if found and not region.sites:
        unsigned = _unsigned(region, set())
        for body, sums in found:
            kept = [each for each in sums if each.of in unsigned or KIND[each.of.dtype] in "iu"]
            insert(body, {each.node.number: _added(each) for each in kept})
    return region


class Sum(NamedTuple):
    """The sum of an array and of zeros with one part."""

    node: Value
    of: Value
    part: Value


def _sums(body: Region) -> list[Sum]:
    """Such sums in the body of a loop, of what it carries and reads nowhere else."""
    if not any(v.form in ("dynamic_update_slice", "scatter") for v in body.values):
        return []
    live = body.live()
    users, kept = body.users(live), {v.number for v in (*body.outputs, *body.effects)}
    found, carried = [], {x.number for x in body.inputs}
    for v in live:
        if v.form != "map" or v.params.op != "add" or KIND[v.dtype] not in "fiu":
            continue
        for x, part in (v.args, v.args[::-1]):
            alone = x is not part and all(users[y.number] == [v] and y.number not in kept for y in (x, part))
            if alone and x.number in carried and _is_a_part(part) and v.nbytes >= LEAST:  # which hangs on each length
                found.append(Sum(v, x, part))
                carried.add(v.number)
                break
    return found


def _is_a_part(v: Value) -> bool:
    """Whether a value is zeros to which one part is written, or added."""
    if v.form == "dynamic_update_slice":
        return _is_zero(v.args[0]) and PART * v.args[1].size <= v.size
    if v.form != "scatter" or v.params.kind != "add" or not _is_zero(v.args[0]):
        return False
    at = v.params.indices
    return not at.batching and v.args[1].size == len(at.start_index_map) and PART * v.args[2].size <= v.size


def _is_zero(v: Value) -> bool:
    """Whether a value is 0 everywhere, and not -0."""
    while v.form in SAME:
        v = v.args[0]
    return constants.is_zero(v)


def _added(found: Sum) -> list[Value]:
    """Makes a sum an update of its array; returns what it needs before it."""
    v, x, part = found
    if part.form == "scatter":
        v.form, v.args, v.params = "scatter", (x, *part.args[1:]), part.params
        return []
    w, (_, new, *starts) = Writer(v.source), part.args
    apart = [d for d, (n, size) in enumerate(zip(new.shape, v.shape)) if n < size]
    if len(apart) == 1:
        window = tuple(range(v.ndim))
        at = Indices(window, window, (), (), (*apart,), new.shape, "clip")
        v.form, v.args, v.params = "scatter", (x, w.reshape(starts[apart[0]], (1,)), new), Scatter("add", at)
        return w.made
    there = w.value("dynamic_slice", new.shape, x.dtype, (x, *starts), NOTHING)
    v.form, v.args, v.params = "dynamic_update_slice", (x, w.map("add", there, new), *starts), NOTHING
    return w.made


# ---- what cannot hold -0 -------------------------------------------------------------------------------------


def _unsigned(region: Region, given: set[Value]) -> set[Value]:
    """The values of a region, and of those in it, that cannot hold -0, where some of its inputs are `given` as such."""
    known = set(given)
    for v in region.values:
        if v.form in LOOPS:
            known |= _of_loop(v, known)
        elif v.form in SAME and (v.args[0] in known or _is_zero(v)):
            known.add(v)
        elif v.form == "map" and v.params.op == "add" and not known.isdisjoint(v.args):
            known.add(v)
    return known


def _of_loop(node: Value, known: set[Value]) -> set[Value]:
    """The results of a loop that cannot hold -0, and such values in its body: what begins so, and stays so."""
    p = node.params
    first, body = (p.consts, p.body) if node.form == "scan" else (p.body_consts, p.body)
    operands = node.args if node.form == "scan" else node.args[p.cond_consts :]
    count = p.carries if node.form == "scan" else len(body.outputs)
    good = {x for x, y in zip(body.inputs, operands) if y in known}
    for _ in range(ROUNDS):
        inside = _unsigned(body, good)
        lost = {body.inputs[first + k] for k in range(count) if body.outputs[k] not in inside} & good
        if not lost:
            return inside | {node.results[k] for k in range(count) if body.inputs[first + k] in good}
        good -= lost
    return set()
