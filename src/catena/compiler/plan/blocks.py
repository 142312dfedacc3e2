"""Blocks: products so large that they are not to be stored, with what makes them and what takes them, block by block.

Attention that a user writes by hand, ``softmax(q @ k.T) @ v``, has scores: as many as queries times keys, though what
goes in and comes out is few numbers for each query. Here such products are found, with the elementwise operations on
them, their reductions along rows, and the products that add them up again: a loop goes over blocks of rows (first of
heads, where there are any), in whose body they are small. They are computed again where something needs them that
hangs on a result of such a loop, as derivatives do.

Whole rows are in a block, so what is added up along them is added up in the same order. Sums over rows themselves (the
gradient by keys) are made in the parts that they are made in anyhow (`contraction.cut`), and these are added up in the
same order: a program has the bits that it would have without blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from catena.compiler.graph.forms import OPS
from catena.compiler.graph.region import Region, Value
from catena.compiler.machine import Machine
from catena.compiler.plan import contraction, product_kinds, turning
from catena.compiler.plan.block_loops import Loop, put
from catena.compiler.plan.block_places import SUMMED, needs, place_in
from catena.core.dtypes import KIND

LARGE = 1 << 22  # bytes of a product that is not to be stored
REPEATED = 3 << 24  # of all those, some of which are then rather computed twice
SLENDER = 8  # rows and columns of it for each of its terms, at least: it is then cheap to compute, and large to keep
FEWEST_ROWS = 32  # of a block, for products to be quick; and of the last one, where rows are added up


def block(region: Region, machine: Machine) -> Region:
    """The region, in place, and the regions in it, with loops over blocks of what is too large to be stored. Products
    are turned as who reads them wants before: from within a loop that is not seen.
    """
    if any(_is_large(v, machine) for each in region.walk() for v in each.values):
        turning.turn(region, machine)
    for each in region.walk():
        while not _has_order(each) and (found := _find(each, machine)) is not None:
            put(each, found)
    return region


def _has_order(region: Region) -> bool:
    """Whether steps of a region have an order that its values do not tell."""
    return bool(region.effects or region.sites) or any(v.form.startswith("stack") for v in region.values)


def _find(region: Region, machine: Machine) -> list[Loop] | None:
    """Loops that take the place of some large products and what is around them."""
    if not any(_is_large(v, machine) for v in region.values):
        return None
    live = region.live()
    users, kept = region.users(live), {v.number for v in region.outputs}
    for shape in dict.fromkeys(v.shape for v in live if _is_large(v, machine)):
        for axis in range(len(shape)):
            if shape[axis] > 1:
                work = Work(machine, live, users, kept, shape, axis)
                if work.mark() and (loops := work.loops()):
                    return loops
    return None


def _is_large(v: Value, machine: Machine) -> bool:
    """Whether a value is a product that should not be stored."""
    if v.form != "dot" or v.nbytes < LARGE or not _may_be_cut(v, machine):
        return False
    _, rows, columns, terms = product_kinds.sizes(v)
    return min(rows, columns) >= SLENDER * terms


def _may_be_cut(v: Value, machine: Machine) -> bool:
    if v.form != "dot" or KIND[v.dtype] != "f" or min(product_kinds.sizes(v)[1:3]) < 2:
        return False
    if product_kinds.has_tiles(v, machine) or product_kinds.few(v, machine) is not None:
        return True
    return product_kinds.is_written_by_rows(v, machine)


@dataclass
class Work:
    """What is done along one axis of large values of a shape, in blocks of that axis.

    `large` are the values of that shape that are never stored. `place` tells where the axis is in others that loops
    make, and `SUMMED` where these are sums over it; `level` by which loop they are made: values outside of the loops
    can be computed before the loop of their level.
    """

    machine: Machine
    live: list[Value]
    users: dict[int, list[Value]]
    kept: set[int]
    shape: tuple
    axis: int
    large: set[int] = field(default_factory=set)
    place: dict[int, int] = field(default_factory=dict)
    level: dict[int, int] = field(default_factory=dict)
    least: int = 0  # elements of other values that are too large to be stored

    # ---- what loops do

    def mark(self) -> bool:
        """Finds out what loops do; whether there is anything."""
        self.large = self._connected({v.number for v in self.live if self._may_be_large(v)})
        for v in reversed(self.live):
            if v.number in self.large and not self._is_taken(v):
                self.large.discard(v.number)
        found = [product_kinds.sizes(v) for v in self.live if v.number in self.large and _is_large(v, self.machine)]
        if not found:
            return False
        self.least = min(rows * columns for _, rows, columns, _ in found) // 4
        for v in self.live:
            self._place(v)
        for v in reversed(self.live):
            if v.number in self.place and not self._is_of_loop(v):
                del self.place[v.number]
                self.level[v.number] = max((self._after(a) for a in v.args), default=0)
        return True

    def _may_be_large(self, v: Value) -> bool:
        if v.shape != self.shape:
            return False
        if v.form == "dot":
            return _may_be_cut(v, self.machine)
        return v.form in ("broadcast", "iota") or is_plain(v) or v.form == "reshape" and v.args[0].shape == v.shape

    def _connected(self, numbers: set[int]) -> set[int]:
        """Those of some values that are around large products."""
        by_number = {v.number: v for v in self.live if v.number in numbers}
        pending = [v for v in by_number.values() if _is_large(v, self.machine)]
        found: set[int] = set()
        while pending:
            v = pending.pop()
            if v.number not in found:
                found.add(v.number)
                pending += [by_number[x.number] for x in (*v.args, *self.users[v.number]) if x.number in by_number]
        return found

    def _is_taken(self, v: Value) -> bool:
        """Whether everything that reads a large value can be done in blocks."""
        return v.number not in self.kept and all(self._takes(u) for u in self.users[v.number])

    def _takes(self, u: Value) -> bool:
        at = self.axis if u.number in self.large else self._place_in(u)
        if at is None:
            return False
        return all(need == self.axis for a, need in zip(u.args, needs(u, at)) if a.number in self.large)

    def _place_in(self, u: Value) -> int | None:
        """The place of the axis in a value that is made of large ones, and is none itself."""
        i = next(i for i, a in enumerate(u.args) if a.number in self.large)
        if u.form in ("reduce", "argreduce"):
            return place_in(u, i, self.axis)
        at = place_in(u, i, self.axis) if u.form == "dot" and _may_be_cut(u, self.machine) else None
        if at != SUMMED:
            return at
        is_added = product_kinds.has_tiles(u, self.machine) and not product_kinds.is_narrow(u)  # to what is there
        return SUMMED if is_added and len(u.params.numbers[0]) == 1 else None

    def _place(self, v: Value) -> None:
        """Notes where the axis is in a value, and at which level it is made."""
        args = v.args
        at = self.axis if v.number in self.large else None
        if at is None and any(a.number in self.large for a in args):
            at = self._place_in(v)
            assert at is not None  # else what it reads would not be large
            self.place[v.number] = at
        elif is_plain(v) or v.form in ("broadcast", "transpose", "reshape"):
            own = [i for i, a in enumerate(args) if self.place.get(a.number, SUMMED) != SUMMED]
            at = place_in(v, own[0], self.place[args[own[0]].number]) if own else None
            if at is not None:
                self.place[v.number] = at
        if at is None:
            self.level[v.number] = max((self._after(a) for a in args), default=0)
        else:
            found = [self.level[a.number] if self.is_here(a, n) else self._after(a) for a, n in zip(args, needs(v, at))]
            self.level[v.number] = max(found, default=0)

    def is_here(self, v: Value, need: int | None) -> bool:
        """Whether an iteration that makes a value can use it as it `needs` be."""
        return v.number in self.large or need is not None and self.place.get(v.number) == need

    def _after(self, v: Value) -> int:
        """The first level at which all of a value is there."""
        return self.level[v.number] + (v.number in self.place)

    def _is_of_loop(self, v: Value) -> bool:
        """Whether a value is better made in a loop: it is made of large ones, or another one there needs it at once."""
        if any(a.number in self.large for a in v.args):
            return True
        for u in self.users[v.number]:
            at = self.axis if u.number in self.large else self.place.get(u.number)
            if at is not None and self.level[u.number] == self.level[v.number]:
                return True
        return False

    # ---- the loops

    def loops(self) -> list[Loop] | None:
        """The loops, None where they would not have blocks of a good size."""
        found: dict[int, Loop] = {}
        for v in self.live:
            if v.number in self.place and self._is_read_outside(v):
                found.setdefault(self.level[v.number], Loop(self, self.level[v.number])).results[v.number] = v
        for level in range(max(found, default=-1), -1, -1):
            if level not in found:
                continue
            for v in found[level].reads():
                if v.number in self.place:
                    own = self.level[v.number]
                    found.setdefault(own, Loop(self, own)).results[v.number] = v
            made = found[level].values()
            if not any(v.number in self.large for v in made):  # of nothing large: it is made as it was
                del found[level]
                for v in made:
                    del self.place[v.number]
        loops = [found[level] for level in sorted(found)]
        if self._is_much_repeated(loops):
            return None
        for loop in loops:
            loop.size = self._size(loop)
        return loops if loops and all(loop.size for loop in loops) else None

    def _is_much_repeated(self, loops: list[Loop]) -> bool:
        """Whether products are computed again, and all of so little memory that they are better kept."""
        made = [v for loop in loops for v in loop.values() if v.form == "dot" and v.number in self.large]
        each = {v.number: v.nbytes for v in made}
        return len(each) < len(made) and sum(each.values()) < REPEATED

    def _is_read_outside(self, v: Value) -> bool:
        return v.number in self.kept or any(
            u.number not in self.large and u.number not in self.place for u in self.users[v.number]
        )

    def _size(self, loop: Loop) -> int:
        """The steps of a block: large values of it stay in a second-level cache; 0 where there is none."""
        extent, each = self.shape[self.axis], math.prod(self.shape) // self.shape[self.axis]
        made = loop.values()
        bytes_ = max(v.dtype.itemsize for v in made if v.number in self.large)
        is_row = any(v.form == "dot" and self._is_row(v) for v in made)
        near = self.machine.memory.second_cache // (each * bytes_)
        size = max(near // FEWEST_ROWS, 1) * FEWEST_ROWS if is_row else max(near, 1)
        if any(self.place.get(v.number) == SUMMED for v in made):
            part = contraction.cut(extent, self.machine.products.terms)
            size = max(size // part, 1) * part
            if size < extent and 0 < extent % size < FEWEST_ROWS:
                return 0
        return size if size < extent else 0

    def _is_row(self, v: Value) -> bool:
        """Whether blocks of the axis are fewer rows, or columns, of each member of a product."""
        at = self.axis if v.number in self.large else self.place.get(v.number)
        return at is not None and at >= len(v.params.numbers[2])


def is_plain(v: Value) -> bool:
    """Whether a value is made element by element, and nothing but computed."""
    return v.form == "map" and v.params.op != "checked" and v.params.op in OPS
