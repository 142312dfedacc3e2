"""Steps that threads would not share, two sequences of them at the same time.

Of a small product, threads that share it would each read half of what the other core has written, which takes as long
as it gives. But the gradient by the weights of a layer and the gradient by what it was given are two products, and
neither reads the other: each thread does one whole, with what follows on it alone.

Which steps these are is told by the memory that they read and write, after that was planned. Each step computes what
it does by itself.
"""

from __future__ import annotations

import itertools

from catena.compiler.graph.symbols import decided
from catena.compiler.plan import sharing
from catena.compiler.plan.program import ARENA, ARGUMENT, NULL, RESULT, SLOT, Block, Buffer, Step
from catena.compiler.plan.steps import Concurrent, Contract, Launch

FEWEST = 12  # steps of a program: of shorter ones, threads are not likely awake
AHEAD = 16  # steps to look over for those that go beside one
LEAST = 1 << 15  # units of work of each sequence
UNIT = 8  # multiplications that take as long as a unit of work
OWN = ARENA, SLOT  # memory of the program's own, which it has just written
MOVED = 2  # units of work that it takes to have a byte from another core


def pair(block: Block, reused: dict[int, int]) -> None:
    """Has sequences of the steps of a block run at the same time; `reused` are results in the memory of arguments."""
    steps, found, i = block.steps, [], 0
    while i < len(steps):
        sequences = _from(steps, i, reused) if len(steps) >= FEWEST and isinstance(steps[i], Contract) else None
        if sequences is None:
            found.append(steps[i])
            i += 1
        else:
            found.append(Concurrent([Block(each, block.values) for each in sequences], origin=steps[i].origin))
            i += sum(map(len, sequences))
    block.steps = found


def _from(steps: list[Step], start: int, reused: dict[int, int]) -> list[list[Step]] | None:
    """Two sequences, from a product on, that do not touch what the other writes; None where that gains nothing."""
    listed = list(itertools.takewhile(_is_alone, steps[start : start + AHEAD]))
    if len(listed) < 2:
        return None
    which = _sequences(tuple(map(_work, listed)), tuple(touched(listed, reused)))
    return [[step for step, k in zip(listed, which) if k == side] for side in (0, 1)] if which else None


@decided
def _sequences(works: tuple, memory: tuple) -> tuple:
    """For each step, as far as they go, in which sequence it is; nothing where that gains nothing. Of these numbers
    alone, so that it is one decision. The sequence 0 is the caller's, who has most likely written what both read, and
    reads what they write.
    """
    sides: list[int] = []
    of = lambda each, values: [x for x, side in zip(values, sides) if side == each]
    for own in memory:
        meets = [any(meet(own, other) for other in of(each, memory)) for each in (0, 1)]
        if all(meets):
            break
        done = [sum(of(each, works)) for each in (0, 1)]
        sides.append(meets.index(True) if any(meets) else int(done[1] < done[0]))
    done = [sum(of(each, works)) for each in (0, 1)]
    moved = [_moved(of(each, memory)) for each in (0, 1)]
    caller = int(moved[1] > moved[0])
    if min(done[caller], done[1 - caller] - MOVED * moved[1 - caller]) < LEAST:
        return ()
    return tuple([int(side != caller) for side in sides])


def _is_alone(step: Step) -> bool:
    """Whether one thread does a step, by one call."""
    if isinstance(step, Contract):
        return step.tasks.total == 1 and (step.after is None or not step.after.is_checked)
    if isinstance(step, Launch) and step.opened is not None and step.chunk is None:
        return not (step.pause or step.parts or step.nest.is_checked)
    return False


# ---- work ----------------------------------------------------------------------------------------------------


def _work(step: Step) -> int:
    """Units of work, see `Sharing`."""
    products = step.plan.contraction.products // UNIT if isinstance(step, Contract) else 0
    return products + sum(map(sharing.work, step.nests()))


# ---- memory --------------------------------------------------------------------------------------------------


def touched(steps: list[Step], reused: dict[int, int]) -> list[tuple]:
    """What each of some steps reads and writes: pieces of memory, as a number for each, its first byte, the one behind
    its last, and how much of it other cores may have to be given. The number of all parts of the block of temporaries
    is the same.
    """
    names: dict = {}
    return [_touched(step, reused, names) for step in steps]


def _touched(step: Step, reused: dict[int, int], names: dict) -> tuple[tuple, tuple]:
    return _pieces(step.reads(), reused, names), _pieces((*step.writes(), *step.scratch()), reused, names)


def _pieces(buffers, reused: dict[int, int], names: dict) -> tuple:
    owners = dict.fromkeys(b.owner() for b in buffers if b.kind != NULL)
    return tuple([_piece(b, names.setdefault(_key(b, reused), len(names))) for b in owners])


def _piece(b: Buffer, name: int) -> tuple[int, int, int, int]:
    start = b.place if b.kind == ARENA else 0
    return name, start, start + b.bytes, b.bytes if b.kind in OWN else 0


def _key(b: Buffer, reused: dict[int, int]):
    """What two buffers have in common that are the same memory, or parts of the block of temporaries."""
    kind, place = (ARGUMENT, reused[b.place]) if b.kind == RESULT and b.place in reused else (b.kind, b.place)
    return b if kind == SLOT else kind if kind == ARENA else (kind, place, id(b.array))


def meet(one: tuple, other: tuple) -> bool:
    """Whether one step writes what another reads or writes."""
    reads, writes = one
    return _overlap(writes, (*other[0], *other[1])) or _overlap(reads, other[1])


def _overlap(some: tuple, others: tuple) -> bool:
    return any(a == b and start < end and first < stop for a, start, stop, _ in some for b, first, end, _ in others)


def _moved(memory: list) -> int:
    """The bytes of some steps that another core has written, or reads later, at most."""
    return sum({piece[:2]: piece[3] for reads, writes in memory for piece in (*reads, *writes)}.values())
