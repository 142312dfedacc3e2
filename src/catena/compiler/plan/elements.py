"""Small arrays of loops that are read or written element by element somewhere in an iteration.

They live in slots on the stack, which LLVM keeps in registers where what is written is read in the same pieces, and
takes apart and joins otherwise: by shuffles, or by way of memory, where a vector waits for the elements that were
written one by one. So what is cheap to compute of all their elements is computed element by element too.
"""

from __future__ import annotations

from catena.compiler.graph.affine import Affine
from catena.compiler.graph.forms import COSTLY
from catena.compiler.graph.region import Value
from catena.compiler.kernels import merging, splitting
from catena.compiler.kernels.conditions import LOADS
from catena.compiler.kernels.loops import Nest
from catena.compiler.plan.fuse import Fused
from catena.compiler.plan.memory import SLOT_BYTES

PARTS = ("concatenate", "dynamic_update_slice", "scatter")  # forms of nodes that write part after part
SCALARS = 16  # iterations of a nest without lanes


def is_short_line(nest: Nest) -> bool:
    """Whether a nest is one loop of few and cheap iterations; rows of a matrix rather have lanes, which are few."""
    if nest.trips > SCALARS or any(s.op in COSTLY for s in nest.stmts):
        return False
    _merge(nest)
    return sum(n > 1 for n in nest.extents) == 1


def by_elements(fused: Fused) -> frozenset[int]:
    """The small arrays that something in a region does not read, or write, as one line of elements."""
    values, found = fused.region.values, set[int]()
    for step in fused.steps:
        if step.kernel is not None:
            nest = fused.nests.alone(step)
            found |= {b for b, offset in _accesses(nest) if not _is_line(values[b], nest.extents, offset)}
        elif step.node is not None and step.node.form == "dot":
            found |= {fused.root(x) for x in (*step.node.args, step.node) if sum(n > 1 for n in x.shape) > 1}
        elif step.node is not None and step.node.form in PARTS:
            found |= {*step.reads, *step.writes}
    return frozenset(n for n in found if 1 < values[n].size and values[n].nbytes <= SLOT_BYTES)


def _merge(nest: Nest) -> None:
    """Its dimensions as they are scheduled."""
    splitting.split(nest)
    merging.merge(nest)


def _accesses(nest: Nest):
    """The values that a nest reads and writes, and where; of one that is scheduled, the loops stay what they are."""
    if not nest.order:
        _merge(nest)
    yield from ((s.attr[0], s.attr[2]) for s in nest.stmts if s.op in LOADS)
    yield from ((s.buffer, s.offset) for s in nest.stores)
    yield from ((b, offset) for f in nest.folds for b, _, offset in f.dests)


def _is_line(v: Value, extents: list[int], offset: Affine) -> bool:
    """Whether an access goes through all elements of an array, one behind the other, along one loop."""
    const, dims, data = offset
    return not const and not data and len(dims) == 1 and dims[0][1] == 1 and extents[dims[0][0]] == v.size
