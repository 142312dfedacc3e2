"""Elements of several members of a batch, brought to the lanes of vectors, and back to their memory, as LLVM IR."""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import Type, vector

Index = int | str  # a number, or the name of a loop's variable


class Members:
    """Members of a batch, one to a lane. In memory, the elements of each lie side by side; in a slot, there is a vector
    for each element. Where there are fewer elements than lanes, masks say which are moved, if the processor has them.
    """

    def __init__(self, e: Emitter, lanes: int, masked: bool, pointers: list[str], first: str, batch: int):
        self.e, self.lanes, self.masked, self.pointers = e, lanes, masked, pointers
        # In the last group, lanes beyond the batch do as its last member's does, and write the same again.
        beyond = (e.op(f"add nsw i64 {first}, {k}") for k in range(lanes))
        self.members = [e.least(x, e.size(batch - 1)) for x in beyond]

    def bring(self, k: int, slot: str, count: int, t: Type) -> None:
        """Fills the slot with `count` elements of each member, from the memory of pointer `k`."""
        self._exchange(self._bring, k, slot, count, t)

    def give_back(self, k: int, slot: str, count: int, t: Type) -> None:
        """Writes the elements in the slot to the memory of pointer `k`."""
        self._exchange(self._return, k, slot, count, t)

    def _exchange(self, move: Callable, k: int, slot: str, count: int, t: Type) -> None:
        """Moves `count` elements of each lane in squares of as many as there are lanes; the last square begins where
        it ends with the last element, or is cut where there are fewer than it has.
        """
        offsets = (self.e.op(f"mul nsw i64 {member}, {count * t.bytes}") for member in self.members)
        places = [self.e.element(self.pointers[k], "i8", offset) for offset in offsets]
        whole, rest = divmod(count, self.lanes)
        if whole == 1:
            move(slot, places, 0, self.lanes, t)
        elif whole:
            at, opened = self.e.begin_loop(0, whole * self.lanes, self.lanes)
            move(slot, places, at, self.lanes, t)
            self.e.end_loop(opened)
        if rest:
            move(slot, places, max(count - self.lanes, 0), min(self.lanes, count), t)

    def _bring(self, slot: str, places: list[str], at: Index, count: int, t: Type) -> None:
        e, v = self.e, vector(t.memory, self.lanes)
        froms = [e.element(place, t.memory, at) for place in places]
        if count == self.lanes or self.masked:
            rows = [e.load_raw(t, place, self.lanes, 1, self._first(count)) for place in froms]
            columns = e.transposed(rows, t.memory)[:count]
        else:
            columns = [self._column(froms, i, t.memory) for i in range(count)]
        for i, column in enumerate(columns):
            e.do(f"store {v} {column}, ptr {e.element(slot, v, self._sum(at, i))}")

    def _column(self, places: list[str], i: int, memory: str) -> str:
        e, column = self.e, "poison"
        for k, place in enumerate(places):
            x = e.op(f"load {memory}, ptr {e.element(place, memory, i)}")
            column = e.op(f"insertelement {vector(memory, self.lanes)} {column}, {memory} {x}, i64 {k}")
        return column

    def _return(self, slot: str, places: list[str], at: Index, count: int, t: Type) -> None:
        e, v = self.e, vector(t.memory, self.lanes)
        columns = [e.op(f"load {v}, ptr {e.element(slot, v, self._sum(at, i))}") for i in range(count)]
        tos = [e.element(place, t.memory, at) for place in places]
        if count == self.lanes or (self.masked and count > 1):
            for row, place in zip(e.transposed(columns + ["poison"] * (self.lanes - count), t.memory), tos):
                e.store(t, row, place, self.lanes, mask=self._first(count))
            return
        for i, column in enumerate(columns):
            for k, place in enumerate(tos):
                x = e.op(f"extractelement {v} {column}, i64 {k}")
                e.do(f"store {t.memory} {x}, ptr {e.element(place, t.memory, i)}")

    def _first(self, count: int) -> str | None:
        """The mask of the first lanes; None for all."""
        if count == self.lanes:
            return None
        return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(self.lanes))}>"

    def _sum(self, i: Index, j: int) -> Index:
        return i + j if isinstance(i, int) else self.e.op(f"add nsw i64 {i}, {j}")
