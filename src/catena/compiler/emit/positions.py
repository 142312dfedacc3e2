"""Places of the largest or smallest, where lanes lie along what is folded: each vector tells its first place.

Of truths, a bit for each lane is kept, of which an instruction tells the first that is set.
"""

from __future__ import annotations

from catena.compiler.emit import folds, ops
from catena.compiler.graph.types import TYPES, Type, constant, vector
from catena.compiler.kernels.loops import PlacedFold

NOWHERE = -1  # behind all places, as an unsigned integer


class Places(folds.Accumulators):
    """The best value so far and its place, in lanes as large as those of the value; where several accumulators take
    turns, the place of the first lane of all, to which each adds its own in the end.
    """

    fold: PlacedFold

    def component_types(self) -> list[Type]:
        value, _ = super().component_types()
        return [value, TYPES[f"int{8 * self.fold.place_bytes}"]]

    @property
    def is_of_first(self) -> bool:
        """Whether what is kept is the place of the first of the lanes that are done at once."""
        return self.each > 1 and self.body.together is None

    def step(self, copies, first: int = 0, careful: bool = False) -> None:
        self.first: str | None = None  # place of these copies
        super().step(copies, first, careful)

    def _taken(self, c: int, new: list[str]) -> list[str]:
        value, place = new
        t, told = self.types[1], TYPES[self.body.nest.stmts[self.fold.stmts[1]].type]
        if not self.is_of_first:
            return super()._taken(c, [value, ops.convert(self.e, place, told, t, self.width)])
        if self.first is None:
            at = self._part(place, told, self.width, 0, 1)
            self.first = self.e.splat(ops.convert(self.e, at, told, t, 1), t.register, self.width)
        return super()._taken(c, [value, self.first])

    def _accumulated(self) -> list[list[str]]:
        rows = super()._accumulated()
        if not self.is_of_first:
            return rows
        t, w = self.types[1], self.width
        order = [", ".join(f"{t.register} {c * w + k}" for k in range(w)) for c in range(self.each)]
        add = f"add {vector(t.register, w)}"
        return [[value, self.e.op(f"{add} {at}, <{order[c % self.each]}>")] for c, (value, at) in enumerate(rows)]

    def _write(self, row: list[str], copy, width: int | None = None, mask: str | None = None) -> None:
        if self.fold.partial:
            value, place = row
            target = TYPES[self.fold.dests[1][1]]
            row = [value, ops.convert(self.e, place, self.types[1], target, 1)]
        super()._write(row, copy, width, mask)


class FirstTruth(folds.Accumulators):
    """The place of the first truth (of argmin, of the first that is none) so far, one for each copy; whether there is
    one, and the first place of all where there is none, are told when the loops end.
    """

    def _opened(self, copies) -> list[list[str]]:
        slots = []
        for _ in range(len(copies) * self.each):
            slots.append([self.e.slot("i64")])
            self.e.do(f"store i64 {NOWHERE}, ptr {slots[-1][0]}")
        return slots

    def step(self, copies, first: int = 0, careful: bool = False) -> None:
        for k, copy in enumerate(copies, first):
            slot = self.slots[self._taker(k)][0]
            at = self._earlier(self.e.op(f"load i64, ptr {slot}"), self._first(copy))
            self.e.do(f"store i64 {at}, ptr {slot}")

    def _first(self, copy) -> str:
        """The place of the first truth in this vector."""
        e, w = self.e, self.width
        found, place = (self.body.use(s, copy, w) for s in self.fold.stmts)
        i1, t = vector("i1", w), self.types[1]
        if self.fold.kind == "argmin":
            found = e.op(f"xor {i1} {found}, {constant(1, TYPES['bool'], w)}")
        if self.body.active is not None:
            found = e.op(f"and {i1} {found}, {self.body.active}")
        bits = e.op(f"bitcast {i1} {found} to i{w}") if w > 1 else found
        if w < 64:
            bits = e.op(f"zext i{w} {bits} to i64")
        start = e.op(f"extractelement {vector(t.register, w)} {place}, i64 0") if w > 1 else place
        if t.bits < 64:
            start = e.op(f"zext {t.register} {start} to i64")
        at = e.op(f"add i64 {start}, {e.op(f'call i64 @llvm.cttz.i64(i64 {bits}, i1 false)')}")
        return e.op(f"select i1 {e.op(f'icmp eq i64 {bits}, 0')}, i64 {NOWHERE}, i64 {at}")

    def _earlier(self, a: str, b: str) -> str:
        return self.e.op(f"call i64 @llvm.umin.i64(i64 {a}, i64 {b})")

    def _accumulated(self) -> list[list[str]]:
        return [[self.e.op(f"load i64, ptr {slot}")] for (slot,) in self.slots]

    def _joined(self, values: list[list[str]]) -> list[str]:
        at = values[0][0]
        for (other,) in values[1:]:
            at = self._earlier(at, other)
        return [at]

    def _across_lanes(self, row: list[str]) -> list[str]:
        """The value that was found, and its place."""
        (at,), t = row, self.types[1]
        is_found = self.e.op(f"icmp ne i64 {at}, {NOWHERE}")
        place = self.e.op(f"select i1 {is_found}, i64 {at}, i64 0")
        if t.bits < 64:
            place = self.e.op(f"trunc i64 {place} to {t.register}")
        value = is_found if self.fold.kind == "argmax" else self.e.op(f"xor i1 {is_found}, true")
        return [value, place]
