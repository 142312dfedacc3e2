"""The arena, where values live that are not small enough for slots on the stack: best fit, by liveness."""

from __future__ import annotations

from dataclasses import dataclass

SLOT_BYTES = 256  # values up to this size are stack slots,
SLOTS = 1 << 17  # as long as all of them together take no more than this
ALIGNMENT = 64


@dataclass(eq=False)
class Block:
    """A piece of the arena; `size` 0 for memory that is not ours to free."""

    pointer: str
    offset: int = -1
    size: int = 0


class Arena:
    """Best-fit allocation of offsets; the planner frees a block after its last use, so blocks that
    are in use never overlap.
    """

    def __init__(self):
        self.free: list[tuple[int, int]] = []  # (offset, size), sorted by offset
        self.top = 0
        self.peak = 0

    def allocate(self, size: int) -> tuple[int, int]:
        size = -(-size // ALIGNMENT) * ALIGNMENT
        fits = [(s, o) for o, s in self.free if s >= size]
        if fits:
            room, offset = min(fits)
            self.free.remove((offset, room))
            if room > size:
                self._insert(offset + size, room - size)
            return offset, size
        if self.free and sum(self.free[-1]) == self.top:
            offset, _ = self.free.pop()
        else:
            offset = self.top
        self.top = offset + size
        self.peak = max(self.peak, self.top)
        return offset, size

    def extend(self, size: int) -> tuple[int, int]:
        """A block that nothing had before."""
        size = -(-size // ALIGNMENT) * ALIGNMENT
        offset, self.top = self.top, self.top + size
        self.peak = max(self.peak, self.top)
        return offset, size

    def release(self, offset: int, size: int) -> None:
        self._insert(offset, size)

    def _insert(self, offset: int, size: int) -> None:
        merged = []
        for o, s in sorted([*self.free, (offset, size)]):
            if merged and sum(merged[-1]) == o:
                merged[-1] = (merged[-1][0], merged[-1][1] + s)
            else:
                merged.append((o, s))
        self.free = merged
