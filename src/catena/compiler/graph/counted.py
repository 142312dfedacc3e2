"""Rows of an array that a loop reads by its counter are items of the loop.

`w[i]` in a `fori_loop` over `i`, such as a layer's weights, is a slice at a computed place: products and others that
want it in memory have it copied there. Where the loop counts all rows of an array that does not change, the row is what
a `scan` over the array has in each iteration, which lies in memory already. A row that is stacked as a result, as what
derivatives need later is, makes the array itself: the result is that.
"""

from __future__ import annotations

from catena.compiler.graph.forms import NOTHING, Input, Output
from catena.compiler.graph.indexing import known_numbers
from catena.compiler.graph.insertion import number
from catena.compiler.graph.region import Region, Value
from catena.core.dtypes import KIND


def take_items(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is looked at as it is
    for each in region.walk():
        for v in each.control():
            if v.form == "scan" and v.params.length and not v.params.reverse:
                _take(v)
                _share_stacked(each, v)
    return region


def _take(node: Value) -> None:
    """Makes rows at the counter of a loop its items."""
    body, length, consts = node.params.body, node.params.length, node.params.consts
    counters = {x.number for x in _counters(node)}
    whole = {x.number: y for x, y in zip(body.inputs[:consts], node.args) if x.ndim and x.shape[0] == length}
    items: dict[int, Value] = {}
    for v in body.live() if counters and whole else ():
        if v.form == "dynamic_slice" and v.args[0].number in whole and _is_row(v, counters):
            x = v.args[0]
            if x.number not in items:
                items[x.number] = Value("input", x.shape[1:], x.dtype, (), Input(), -1, v.source)
                items[x.number].bounds = x.bounds
            v.form, v.args, v.params = "reshape", (items[x.number],), NOTHING
    if items:
        node.args = (*node.args, *(whole[n] for n in items))
        body.inputs = [*body.inputs, *items.values()]
        number(body, [*items.values(), *body.values])


def _counters(node: Value) -> list[Value]:
    """The carries of a loop that are the number of the iteration."""
    p = node.params
    found = []
    for x, start, out in zip(p.body.inputs[p.consts :], node.args[p.consts :][: p.carries], p.body.outputs):
        if KIND[x.dtype] in "iu" and not x.ndim and _is(start, 0) and out.form == "map" and out.params.op == "add":
            if any(a is x and _is(b, 1) for a, b in (out.args, out.args[::-1])):
                found.append(x)
    return found


def _is(v: Value, n: int) -> bool:
    known = known_numbers(v)
    return known is not None and known.size == 1 and int(known.item()) == n


def _is_row(v: Value, counters: set[int]) -> bool:
    """Whether a slice is one row of its operand, whose place is a counter. Where it is whole it begins at 0."""
    x, first, *_ = v.args
    while first.form == "map" and first.params.op == "convert" and KIND[first.dtype] in "iu":
        first = first.args[0]
    return v.shape == (1, *x.shape[1:]) and first.number in counters


# ---- what is stacked again -----------------------------------------------------------------------------------


def _share_stacked(region: Region, node: Value) -> None:
    """Has others read the operand of a loop for a result that is its items, stacked; and leaves that out."""
    p = node.params
    inputs = {x.number: k for k, x in enumerate(p.body.inputs)}
    same: dict[int, Value] = {}  # results that are operands
    for k, out in enumerate(p.body.outputs[p.carries :], p.carries):
        item = out
        while item.form == "reshape":
            item = item.args[0]
        at = inputs.get(item.number, -1)
        if at >= p.consts + p.carries and item.shape == out.shape:
            same[k] = node.args[at]
    if not same:
        return
    results = node.results
    instead = {results[k].number: x for k, x in same.items()}
    for v in region.values:
        if any(a.number in instead for a in v.args) and v.form != "output":
            v.args = tuple(instead.get(a.number, a) for a in v.args)
    region.outputs = [instead.get(v.number, v) for v in region.outputs]
    p.body.outputs = [v for k, v in enumerate(p.body.outputs) if k not in same]
    kept = [v for k, v in enumerate(results) if k not in same]
    for k, v in enumerate(kept):
        v.params = Output(k)
    node.results = kept
    number(region, [v for v in region.values if v.number not in instead])
