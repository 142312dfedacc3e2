"""Elements are taken before they are computed with: `f(x)[i]` is `f(x[i])` where that is fewer.

Where all that reads the result of elementwise operations takes few of its elements (a gather, a slice), and nothing
else reads what lies between, the operations are done to elements that are taken from their operands: each element is
what it was. Views between, such as transposes, are put before the gather with it. What is taken of each part alike of
what is joined or stacked is taken of the parts, and joined; rows and columns of a product are products of rows and
columns (whose sums may be in another order, as those of products of fewer rows are).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from catena.compiler.graph import alike_places, trimming
from catena.compiler.graph.forms import COSTLY, NOTHING, Concatenate, Map, Transpose
from catena.compiler.graph.insertion import Writer, insert
from catena.compiler.graph.region import Region, Value
from catena.compiler.graph.ways_of_parts import Way, ways_of_parts
from catena.compiler.graph.ways_of_products import ways_of_operands

TAKES = ("gather", "slice", "dynamic_slice")
WHOLES = ("concatenate", "dot")  # of which parts, or operands, are taken
THROUGH = ("transpose", "reshape", "reverse", "slice", "dynamic_slice")
FEW = 2  # one element of so many is taken at most
GATHERED = 4  # what a gather takes one element in so many of, or fewer, is computed where it is read anyway
CHEAP = 2  # operations that are done there whatever it takes
AGAIN = 4  # operations that are done again for each reader
COUNTED = 1 << 10  # operations; more are not counted
ROW = 8  # elements side by side
MOST = 4  # ways in which elements of one value are taken
PARTS = 16  # that are joined at most
PRODUCTS = 1 << 12  # of two numbers, in a product that is worth it

Ways = dict[tuple, Way]  # by what the views are; the last one of a way takes few elements


def take_first(region: Region) -> Region:
    """The region, in place, and the regions in it."""
    if region.sites:
        return region  # what is tested is computed, whoever reads it
    for each in region.walk():
        if any(v.form in TAKES and v.args[0].form in ("map", *WHOLES, *THROUGH) for v in each.values):
            _Taking(each).apply()
    return region


class _Taking:
    def __init__(self, region: Region):
        self.region, self.live = region, region.live()
        self.users = region.users(self.live)
        self.kept = {v.number for v in (*region.outputs, *region.effects)}
        self.ways: dict[int, Ways] = {}  # of values of which nothing else is read
        self.paid: set[int] = set()  # what that is computed from of which elements are taken first
        self.work: dict[int, int] = {}  # operations that these values take
        self.made: dict[int, list[Value]] = {}  # what goes before a value
        self.taken: dict[tuple, Value] = {}  # what of a value is taken, by its number and the way

    def apply(self) -> None:
        for v in reversed(self.live):
            if (ways := self._ways(v)) is not None:
                self.ways[v.number] = ways
        for v in self.live:
            if v.form in THROUGH and v.args[0].number not in self.ways:
                self.ways.pop(v.number, None)  # a view of what is in memory
            if v.number in self.ways:
                below = sum(self.work.get(a.number, 0) for a in v.args)
                self.work[v.number] = min(below + (AGAIN + 1 if _is_costly(v) else v.form == "map"), COUNTED)
        takers = [v for v in self.live if v.form in TAKES and v.number not in self.ways and self._pays(v.args[0])]
        for v in self.live:
            for key, way in self.ways.get(v.number, {}).items() if v.number in self.paid else ():
                self.taken[v.number, key] = self._take(v, key, way)
        for v in takers:
            self._replace(v)
        insert(self.region, self.made)

    def _ways(self, v: Value) -> Ways | None:
        """The ways in which elements of `v` are taken; None where it is read otherwise, or most of it."""
        if v.number in self.kept or not (_is_elementwise(v) or _is_whole(v) or v.form in THROUGH):
            return None
        found: Ways = {}
        for key, way in self._read(v):
            if way is None or len(found) == MOST or v.form in WHOLES and _ways_below(v, way) is None:
                return None
            if key not in found or way[-1].number < found[key][-1].number:  # where the first one is, all can be made
                found[key] = way
        return found if FEW * sum(way[-1].size for way in found.values()) <= v.size else None

    def _read(self, v: Value) -> Iterator[tuple[tuple, Way | None]]:
        """The ways of each reader."""
        for u in self.users[v.number]:
            first = u.args[0] is v and v not in u.args[1:]
            ways = self.ways.get(u.number)
            if ways is not None and u.form == "map":
                yield from ways.items()
            elif ways is not None and u.form in WHOLES:
                for way in ways.values():
                    yield from ((_key_of(part), part or None) for a, part in zip(u.args, _below(u, way)[0]) if a is v)
            elif ways is not None and first:
                yield from (((_key(u), *key), (u, *way)) for key, way in ways.items())
            else:
                yield _key_of((u,)), (u,) if first and u.form in TAKES and u.size else None

    def _pays(self, v: Value) -> bool:
        """Whether what is computed for those that take elements of `v` would be stored, and taking elements of all
        operands costs no more than that.
        """
        if v.number not in self.ways or v.number in self.paid:
            return v.number in self.ways
        pending, seen, operands, costly, shared = [v], {v.number}, 0.0, False, False
        while pending:
            x = pending.pop()
            if x.number not in self.ways:
                operands += min(x.size / v.size, 1.0) if x.size > 1 and x.form not in ("broadcast", "iota") else 0.0
                continue
            costly = costly or _is_costly(x)
            shared = shared or len(self.users[x.number]) > 1 and self.work[x.number] > AGAIN or x.form in WHOLES
            new = {a.number: a for a in x.args if a.number not in seen}
            seen.update(new)
            pending += new.values()
        ways = self.ways[v.number].values()
        taken = sum(way[-1].size for way in ways)
        gathered = GATHERED * taken > v.size and any(way[-1].form == "gather" for way in ways)
        elements = 1 if all(_takes_rows(way[-1]) for way in ways) else max(operands, 1.0)
        if (shared or gathered and self.work[v.number] > CHEAP) and (costly or FEW * elements * taken <= v.size):
            self.paid |= seen
        return v.number in self.paid

    def _take(self, v: Value, key: tuple, way: Way) -> Value:
        """What is taken of a value of which nothing else is read."""
        if v.form in WHOLES:
            ways, how = _below(v, way)
            taken = tuple(self._of(a, _key_of(part), part) for a, part in zip(v.args, ways))
            return (self._join if v.form == "concatenate" else self._multiply)(v, way, taken, how)
        if v.form != "map":
            return self.taken[v.args[0].number, (_key(v), *key)]
        return self._new(way, v, "map", tuple(self._of(a, key, way) for a in v.args), v.params)

    def _join(self, v: Value, way: Way, parts: tuple, dimension: int) -> Value:
        return self._new(way, v, "concatenate", parts, Concatenate(dimension))

    def _multiply(self, v: Value, way: Way, operands: tuple, perm: tuple[int, ...]) -> Value:
        """A product of what is taken of operands, turned where it is read so; dimensions of one element come and go."""
        (lhs, rhs), (lc, rc, lb, rb) = operands, v.params.numbers
        sides = (lhs, (*lc, *lb)), (rhs, (*rc, *rb))
        free = (n for x, others in sides for d, n in enumerate(x.shape) if d not in others)
        made = self._new(way, v, "dot", operands, v.params, (*(lhs.shape[d] for d in lb), *free))
        if perm != tuple(range(v.ndim)):
            made = self._new(way, v, "transpose", (made,), Transpose(perm), tuple(made.shape[d] for d in perm))
        return made if made.shape == way[-1].shape else self._new(way, v, "reshape", (made,), NOTHING)

    def _of(self, x: Value, key: tuple, way: Way) -> Value:
        """What is taken of an operand; all of it where there is no way."""
        if not way:
            return x
        if (x.number, key) not in self.taken:
            self.taken[x.number, key] = self._viewed(x, way)
        return self.taken[x.number, key]

    def _viewed(self, x: Value, way: Way) -> Value:
        """What is taken of what is in memory, or of what is spread; a place where there is nothing is the last one."""
        if x.form == "broadcast" and not x.args[0].ndim:
            return self._new(way, x, "broadcast", x.args, x.params)
        if way[0].form == "slice":
            made = trimming.sliced(x, way[0])
            self.made.setdefault(way[-1].number, []).extend(made)
            x, way = made[-1], way[1:]
        for k, view in enumerate(way):
            args, params = view.args[1:], view.params
            if _fills(view):
                args, params = args[:1], params._replace(mode="clip")
            x = self._new(way, x, view.form, (x, *args), params, way[k].shape)
            alike_places.spread_one(x)
        return x

    def _replace(self, v: Value) -> None:
        """Makes what takes elements the last operation on those that are taken, or a choice of them."""
        found = self.taken[v.args[0].number, (_key(v),)]
        v.form, v.args, v.params = (
            ("map", self._filled(v, found), Map("select")) if _fills(v) else (found.form, found.args, found.params)
        )

    def _filled(self, v: Value, found: Value) -> tuple[Value, Value, Value]:
        """Where there is something, that, and what else is filled in."""
        w, (x, indices, fill) = Writer(v.source), v.args
        everywhere = w.broadcast_in_dim(w.constant(True, np.bool_), x.shape)
        inside = w.value("gather", v.shape, np.bool_, (everywhere, indices, w.constant(False, np.bool_)), v.params)
        alike_places.spread_one(inside)
        operands = inside, found, w.broadcast_in_dim(fill, v.shape)
        self.made[v.number] += w.made
        return operands

    def _new(self, way: Way, like: Value, form: str, args: tuple, params, shape: tuple | None = None) -> Value:
        """A value of the kind of another, before the one that takes it."""
        new = Value(form, way[-1].shape if shape is None else shape, like.dtype, args, params, -1, like.source)
        new.bounds = like.bounds
        self.made.setdefault(way[-1].number, []).append(new)
        return new


def _takes_rows(view: Value) -> bool:
    """Whether elements are taken that lie side by side."""
    return view.form != "gather" or view.ndim - 1 in view.params.offset_dims and view.shape[-1] >= ROW


def _is_costly(v: Value) -> bool:
    return v.form == "dot" or v.form == "map" and v.params.op in COSTLY


def _is_elementwise(v: Value) -> bool:
    return v.form == "map" and v.params.op != "checked"


def _is_whole(v: Value) -> bool:
    """Whether it is joined of a few parts, or a product that is worth it."""
    if v.form == "dot":
        return v.size * math.prod(v.args[0].shape[d] for d in v.params.numbers[0]) >= PRODUCTS
    return v.form == "concatenate" and len(v.args) <= PARTS and all(a.size for a in v.args)


def _ways_below(v: Value, way: Way) -> tuple[list[Way], Any] | None:
    """The ways that take of each part or operand what `way` takes of the whole, and how what they take is put together;
    None where there are none such.
    """
    return (ways_of_operands if v.form == "dot" else ways_of_parts)(v, way)


def _below(v: Value, way: Way) -> tuple[list[Way], Any]:
    """The same of a way that was found to lead there."""
    found = _ways_below(v, way)
    assert found is not None
    return found


def _key(view: Value) -> tuple:
    return view.form, view.shape, view.params, *(a.number for a in view.args[1:])


def _key_of(way: Way) -> tuple:
    return tuple(map(_key, way))


def _fills(view: Value) -> bool:
    return view.form == "gather" and view.params.mode == "fill"
