"""The arena, where values live that are not small enough for slots on the stack: best fit, by liveness."""

from __future__ import annotations

from catena.compiler.graph.symbols import computed

SLOT_BYTES = 256  # values up to this size are stack slots,
SLOTS = 1 << 17  # as long as all of them together take no more than this
ALIGNMENT = 64


class Arena:
    """Best-fit allocation of offsets; the planner frees a block after its last use, so blocks that
    are in use never overlap. Which piece is taken decides nothing but numbers, so programs at other lengths find theirs
    by the same steps (see `symbols.computed`).
    """

    def __init__(self):
        self._state = EMPTY

    @property
    def peak(self) -> int:
        """The bytes that are in use at most."""
        return self._state[2]

    def allocate(self, size: int) -> tuple[int, int]:
        """Where a block lies, and how much it takes."""
        return self._taken(_allocated(self._state, size), size)

    def extend(self, size: int) -> tuple[int, int]:
        """A block that nothing had before."""
        return self._taken(_extended(self._state, size), size)

    def release(self, offset: int, size: int) -> None:
        self._state = _released(self._state, offset, size)

    def _taken(self, made, size: int) -> tuple[int, int]:
        self._state = made[0]
        return made[1], _aligned(size)


Free = tuple[tuple[int, int], ...]  # (offset, size) of what is free, by offset
State = tuple[Free, int, int]  # and the end of what was given so far, and the most there was
EMPTY: State = ((), 0, 0)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@computed
def _allocated(state: State, size: int) -> tuple[State, int]:
    free, top, peak = state
    size = _aligned(size)
    fits = [(s, o) for o, s in free if s >= size]
    if fits:
        room, offset = min(fits)
        kept = tuple([piece for piece in free if piece[0] != offset])
        return (_joined(kept, offset + size, room - size) if room > size else kept, top, peak), offset
    if free and sum(free[-1]) == top:
        *rest, (offset, _) = free
        return _topped(tuple(rest), offset, size, peak)
    return _topped(free, top, size, peak)


@computed
def _extended(state: State, size: int) -> tuple[State, int]:
    free, top, peak = state
    return _topped(free, top, _aligned(size), peak)


@computed
def _released(state: State, offset: int, size: int) -> State:
    free, top, peak = state
    return _joined(free, offset, size), top, peak


def _topped(free: Free, offset: int, size: int, peak: int) -> tuple[State, int]:
    """A block at the end."""
    return (free, offset + size, max(peak, offset + size)), offset


def _joined(free: Free, offset: int, size: int) -> Free:
    """What is free when this is, neighbours being one."""
    merged: list[tuple[int, int]] = []
    for o, s in sorted([*free, (offset, size)]):
        if merged and sum(merged[-1]) == o:
            merged[-1] = (merged[-1][0], merged[-1][1] + s)
        else:
            merged.append((o, s))
    return tuple(merged)
