"""Products of what was multiplied by 2 or another such number before: the results are, where they have fewer elements.

``jnp.sum(w * w, 1) - 2 * x @ w.T``, as distances are written, would write all of ``2 * x`` to read it once. A power of
two takes nothing off the digits of products and sums, but among subnormal numbers, which are as many places apart
before as after. One of at least 1 makes no operand smaller, so nothing overflows that did not.
"""

from __future__ import annotations

import math

from catena.compiler.graph import constants
from catena.compiler.graph.forms import Map
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.symbols import as_float, is_power_of_two

DTYPES = ("float32", "float64")
LARGE, FEWER = 1 << 12, 2  # elements of an operand that is worth it, and times as many as a result has
FUSED = frozenset(("map", "broadcast", "iota", "pad", "concatenate"))  # what is computed with the multiplication


def scale_results(region: Region) -> Region:
    """The region, in place, and those in it."""
    for each in region.walk():
        live = each.live()
        scaled = [v for v in live if _factor(v) is not None] if any(v.form == "dot" for v in live) else []
        if scaled:
            users = each.users(live)
            kept = {v.number for v in (*each.outputs, *each.effects)}
            made: dict[int, list[Value]] = {}
            for v in scaled:
                _move(v, users, kept, made)
            insert(each, made)
    return region


def _factor(v: Value) -> tuple[Value, Value] | None:
    """What a product multiplies by a power of two of at least 1, and that constant before it."""
    if v.form != "map" or v.params.op != "mul" or v.dtype.name not in DTYPES:
        return None
    for factor, x in (v.args, v.args[::-1]):
        number = constants.scalar(factor)
        if number is not None and is_power_of_two(as_float(number.item())) and not number < 1:
            return factor, x
    return None


def _move(v: Value, users: dict[int, list[Value]], kept: set[int], made: dict[int, list[Value]]) -> None:
    """Lets products read what ``v`` multiplies, in place, if all that read ``v`` are such; notes what they need."""
    found = _factor(v)
    if found is None or found[1].form in FUSED and len(users[found[1].number]) == 1:
        return
    readers = _readers(v, users)
    between = [each.number for _, turns in readers for each in turns]
    once = len({reader.number for reader, _ in readers}) == len(readers)
    if not once or not kept.isdisjoint((v.number, *between)) or not all(_fits(v, *each, made) for each in readers):
        return
    if v.size < LARGE:  # asked last: it hangs on each length
        return
    for reader, turns in readers:
        made[reader.number] = _scale_result(reader, (v, *turns)[-1], *found, turns)


def _fits(v: Value, reader: Value, turns: list[Value], made: dict[int, list[Value]]) -> bool:
    """Whether what reads ``v`` or a transpose of it is a product, by something else, that has fewer elements; inner
    products of vectors compute these as they read them.
    """
    if reader.form != "dot" or reader.dtype != v.dtype or reader.number in made:
        return False
    is_inner = reader.size == math.prod(reader.shape[: len(reader.params.numbers[2])])
    return not is_inner and FEWER * reader.size <= v.size and reader.args.count((v, *turns)[-1]) == 1


def _readers(v: Value, users: dict[int, list[Value]]) -> list[tuple[Value, list[Value]]]:
    """What reads a value or a transpose of it, with the transposes between."""
    out: list[tuple[Value, list[Value]]] = []
    for user in users.get(v.number, ()):
        if user.form == "transpose":
            out += [(reader, [user, *between]) for reader, between in _readers(user, users)]
        else:
            out.append((user, []))
    return out


def _scale_result(dot: Value, operand: Value, factor: Value, x: Value, turns: list[Value]) -> list[Value]:
    """Makes a product, in place, the multiplication of one that reads ``x``; returns what that needs before it."""
    w = Writer(dot.source)
    for each in turns:
        x = w.value("transpose", each.shape, x.dtype, (x,), each.params)
    product = w.value("dot", dot.shape, dot.dtype, tuple(x if a is operand else a for a in dot.args), dot.params)
    dot.args = (w.broadcast_in_dim(w.constant(constants.scalar(factor), dot.dtype), dot.shape), product)
    dot.form, dot.params = "map", Map("mul")
    return w.made
