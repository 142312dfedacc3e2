"""In which pieces small arrays on the stack are copied: as the loop nests around read and write them.

LLVM makes one vector of an array that something copies as a whole. Where all else takes single elements, each is put
into that vector and taken out again, and vectors of 512 bits leave processors half of their units for scalars: a step
of three Lorenz systems side by side took twice the time. Of a matrix whose rows are vectors, rows are copied: pieces
that two rows share would keep all of it in memory.
"""

from __future__ import annotations

from catena.compiler.graph import affine
from catena.compiler.graph.affine import Affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.plan.program import SLOT, Block, Buffer, walk
from catena.compiler.plan.steps import Copy, Launch

WIDER = 0
ELEMENT = 8  # bytes at most
MOST = 16  # pieces that are copied one by one


def tell(body: Block) -> None:
    """Says of the copies of slots whether elements, or rows, are copied one by one."""
    apart, copies = of_slots(body), [step for _, step in walk(body) if isinstance(step, Copy)]
    for step in copies:
        piece = apart.get(step.target) or apart.get(step.source, 0)
        if piece and step.bytes % piece == 0 and step.bytes <= MOST * piece:
            step.piece = piece


def of_slots(body: Block) -> dict[Buffer, int]:
    """The bytes of an element of each slot that is only touched element by element, but for copies, or of a row of one
    whose other accesses are to rows.
    """
    found: dict[Buffer, set[int]] = {}
    for _, step in walk(body):
        if isinstance(step, Launch) and step.opened is None:
            for b, size in _touched(step.nest):
                if b in step.operands:
                    found.setdefault(step.operands[b], set()).add(size)
        elif not isinstance(step, Copy) and not step.blocks():
            for buffer in (*step.reads(), *step.writes()):
                found.setdefault(buffer, set()).add(WIDER)
    return {b: max(sizes) for b, sizes in found.items() if b.kind == SLOT and _are_alike(sizes)}


def _are_alike(sizes: set[int]) -> bool:
    """Whether accesses are to elements, or to rows and their elements."""
    return WIDER not in sizes and (len(sizes) == 1 or (len(sizes) == 2 and min(sizes) <= ELEMENT < max(sizes)))


def _touched(nest: Nest):
    """The values that a nest reads and writes, and the bytes of each access: of a vector those of a row, or `WIDER`
    where it holds no whole row.
    """
    accesses = [(s.attr[0], s.attr[1], s.attr[2]) for s in nest.stmts if s.op in LOADS]
    accesses += [(s.buffer, s.dtype, s.offset) for s in nest.stores]
    accesses += [d for f in nest.folds for d in f.dests]
    for b, dtype, offset in accesses:
        yield b, _lanes(nest, offset) * TYPES[dtype].bytes


def _lanes(nest: Nest, offset: Affine) -> int:
    """The elements of an access, if they lie side by side, and where the row of so many is whole."""
    if nest.vector is None or not (stride := affine.coefficient(offset, nest.vector)):
        return 1
    n = nest.extents[nest.vector]
    begins = not offset[2] and all(c % n == 0 for c in (offset[0], *(c for d, c in offset[1] if d != nest.vector)))
    return n if stride == 1 and n <= nest.width and begins else WIDER
