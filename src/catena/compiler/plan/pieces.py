"""In which pieces small arrays on the stack are copied: as the loop nests around read and write them.

LLVM makes one vector of an array that something copies as a whole. Where all else takes single elements, each is put
into that vector and taken out again, and vectors of 512 bits leave processors half of their units for scalars: a step
of three Lorenz systems side by side took twice the time.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.plan.program import SLOT, Block, Buffer, Copy, Launch, walk

WIDER = 0
MOST = 16  # elements that are copied one by one


def tell(body: Block) -> None:
    """Says of the copies of slots whether elements are copied one by one."""
    apart, copies = of_slots(body), [step for _, step in walk(body) if isinstance(step, Copy)]
    for step in copies:
        piece = apart.get(step.target) or apart.get(step.source, 0)
        if piece and step.bytes % piece == 0 and step.bytes <= MOST * piece:
            step.piece = piece


def of_slots(body: Block) -> dict[Buffer, int]:
    """The bytes of an element of each slot that is only touched element by element, but for copies."""
    found: dict[Buffer, set[int]] = {}
    for _, step in walk(body):
        if isinstance(step, Launch) and step.opened is None:
            for b, size in _touched(step.nest):
                if b in step.operands:
                    found.setdefault(step.operands[b], set()).add(size)
        elif not isinstance(step, Copy) and not step.blocks():
            for buffer in (*step.reads(), *step.writes()):
                found.setdefault(buffer, set()).add(WIDER)
    return {b: max(sizes) for b, sizes in found.items() if b.kind == SLOT and len(sizes) == 1 and WIDER not in sizes}


def _touched(nest: Nest):
    """The values that a nest reads and writes, and the bytes of each access; of vectors they are `WIDER`."""
    accesses = [(s.attr[0], s.attr[1], s.attr[2]) for s in nest.stmts if s.op in LOADS]
    accesses += [(s.buffer, s.dtype, s.offset) for s in nest.stores]
    accesses += [d for f in nest.folds for d in f.dests]
    for b, dtype, offset in accesses:
        lanes = nest.vector is not None and affine.coefficient(offset, nest.vector)
        yield b, WIDER if lanes else TYPES[dtype].bytes
