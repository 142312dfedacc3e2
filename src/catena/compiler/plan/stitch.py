"""Row groups: kernels over the same rows that run block by block, so that rows stay in cache between them.

A softmax is three kernels: the greatest element of each row, exponentials and their sum, quotients. Run one
after the other over a large array they read it from memory three times. A row group runs all of its kernels
on a block of rows before it moves on; what only the group reads never goes to memory, it lives in a scratch
block on the stack. So softmax, layer norm, their gradients and cross entropy are one pass over memory.

The rows of a group are the leading dimensions that all its kernels share and none reduces. A kernel joins
when each element that it reads of what the group writes lies in the row that it works on: offsets are affine,
so that is checked on the loop nests themselves (`reads_own_rows`). Kernels move up over steps they do not
depend on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from catena.compiler.graph import affine
from catena.compiler.graph.types import TYPES
from catena.compiler.kernels import merging, places, scheduling
from catena.compiler.kernels.loops import LOADS, Nest
from catena.compiler.machine import Machine
from catena.compiler.plan import bands
from catena.compiler.plan.fuse import Fused, Step, is_sum_of_floats
from catena.core.dtypes import KIND

AHEAD = 24  # steps to look over for members


@dataclass
class RowGroup:
    """Kernels that run together on blocks of `block` rows; `private` values: bytes per row."""

    nests: list[Nest]
    rows: int  # leading dimensions that are rows
    count: int  # rows in all
    private: dict[int, int]
    block: int
    members: list[Step]


def group_rows(fused: Fused, nest_of, machine: Machine) -> None:
    """Puts kernels into row groups; `nest_of(step)` gives a step's loop nest."""
    steps, readers = fused.steps, None
    taken: set[int] = set()
    out: list[Step] = []
    for i, step in enumerate(steps):
        if i in taken:
            continue
        members = _members(fused, i, taken, nest_of, machine) if _may_lead(step, machine) else [i]
        if len(members) > 1 and _adds_one_by_one(fused, members, machine):
            members = [i]
        grouped = None
        if len(members) > 1:
            readers = readers or _readers(fused)
            grouped = _grouped(fused, members, nest_of, readers, machine)
        if grouped is not None:
            taken.update(members)
        out.append(grouped or step)
    fused.steps = out


def _readers(fused: Fused) -> dict[int, set[int]]:
    """The steps that read each value; the end of the region is one more."""
    found: dict[int, set[int]] = {}
    for i, step in enumerate(fused.steps):
        for n in step.reads:
            found.setdefault(n, set()).add(i)
    for v in fused.region.outputs:
        found.setdefault(fused.root(v), set()).add(len(fused.steps))
    return found


def _may_lead(step: Step, machine: Machine) -> bool:
    kernel = step.kernel
    if kernel is None or not kernel.axes or kernel.axes[0] == 0:
        return False
    size, rows = math.prod(kernel.space), math.prod(kernel.space[: kernel.axes[0]])
    large = size >= machine.memory.least_kernel and size // rows >= machine.memory.least_row
    return large and rows > 1 and not bands.are_in(kernel)


def _adds_one_by_one(fused: Fused, members: list[int], machine: Machine) -> bool:
    """Whether rows of floats are so short that they are added up one by one (see `loops.is_one_by_one`): by themselves,
    kernels do that to as many rows at once as a vector has lanes. From memory, it is the reading that takes long.
    """
    for kernel in (fused.steps[i].own_kernel for i in members):
        size, rows = math.prod(kernel.space), math.prod(d for k, d in enumerate(kernel.space) if k not in kernel.axes)
        sums = [v for v in kernel.roots if is_sum_of_floats(v) and KIND[v.dtype] == "f"]
        if size < machine.memory.least_kernel:
            continue  # that takes no time either way
        short = [v for v in sums if size // rows * scheduling.register_bytes(str(v.dtype)) <= machine.vector_bytes]
        if any(size * v.dtype.itemsize < machine.memory.streamed for v in short):
            return True
    return False


def _members(fused: Fused, lead: int, taken: set[int], nest_of, machine: Machine) -> list[int]:
    """The steps that can run with step `lead`, row by row, and whose rows all stay in cache together. Those that share
    nothing with the ones before them are members where one after them needs what they make.
    """
    first = fused.steps[lead].own_kernel
    rows = first.axes[0]
    shape, count = first.space[:rows], math.prod(first.space[:rows])
    members, written, read = [lead], set(fused.steps[lead].writes), set(fused.steps[lead].reads)
    skipped: set[int] = set()
    apart: set[int] = set()  # members that share nothing with others
    for i in range(lead + 1, min(lead + AHEAD, len(fused.steps))):
        step = fused.steps[i]
        kernel = step.kernel
        touched = {*written, *read, *step.writes, *step.reads}
        joins = (
            i not in taken
            and kernel is not None
            and kernel.space[:rows] == shape
            and all(a >= rows for a in kernel.axes)
            and not bands.are_in(kernel)
            and not step.reads & skipped
            and sum(_row_bytes(fused, touched, count).values()) <= _most(machine)
            and reads_own_rows(nest_of(step), written, shape, _row_bytes(fused, written, count))
        )
        if not joins:
            skipped.update(step.writes)
            continue
        members.append(i)
        if not step.reads & (written | read):
            apart.add(i)
        written.update(step.writes)
        read.update(step.reads)
    return _without_idle(fused, members, apart)


def _without_idle(fused: Fused, members: list[int], apart: set[int]) -> list[int]:
    """Members without those that stand `apart` and that nobody after them reads."""
    kept: list[int] = []
    for i in reversed(members):
        if i not in apart or any(fused.steps[j].reads & set(fused.steps[i].writes) for j in kept):
            kept.append(i)
    return kept[::-1]


def _most(machine: Machine) -> int:
    """Bytes of a row that stays in cache."""
    return machine.memory.second_cache // 2


def _row_bytes(fused: Fused, numbers, count: int) -> dict[int, int]:
    values = fused.region.values
    return {n: values[n].size * values[n].dtype.itemsize // count for n in numbers}


def reads_own_rows(nest: Nest, written: set[int], shape: tuple, row_bytes: dict[int, int]) -> bool:
    """Whether the nest reads each of the `written` buffers in the row of the iteration only."""
    rows = len(shape)
    for s in nest.stmts:
        if s.op not in LOADS or s.attr[0] not in written:
            continue
        number, dtype, offset = s.attr
        length = row_bytes[number] // TYPES[dtype].bytes
        for d in range(rows):
            stride = length * math.prod(shape[d + 1 :])
            if shape[d] != 1 and affine.coefficient(offset, d) != stride:
                return False
        inside = (offset[0], tuple(x for x in offset[1] if x[0] >= rows), offset[2])
        low, high = _bounds(nest, inside, s.args[0] if s.args else -1)
        if low is None or low < 0 or high >= length:
            return False
    return True


def _bounds(nest: Nest, a: affine.Affine, mask: int) -> tuple:
    """The least and greatest value of an offset, Nones when unknown; a mask may bound what is computed."""
    low = high = a[0]
    for d, c in a[1]:
        reach = c * max(nest.extents[d] - 1, 0)
        low, high = low + min(reach, 0), high + max(reach, 0)
    for t, c in a[2]:
        ends, _ = places.limits(nest, t, mask)
        if ends is None:
            return None, None
        low, high = low + min(c * ends[0], c * ends[1]), high + max(c * ends[0], c * ends[1])
    return low, high


def _grouped(fused: Fused, members: list[int], nest_of, readers: dict[int, set[int]], machine: Machine) -> Step | None:
    """The step of a group, or None where its rows are too long to stay in cache."""
    steps = [fused.steps[i] for i in members]
    lead = steps[0].own_kernel
    rows = lead.axes[0]
    count = math.prod(lead.space[:rows])
    writes = [n for s in steps for n in s.writes]
    reads = set().union(*(s.reads for s in steps)) - set(writes)
    sizes = _row_bytes(fused, [*reads, *writes], count)
    row = sum(sizes.values())
    if row > _most(machine):
        return None
    private = {n: sizes[n] for n in writes if readers.get(n, set()) <= set(members)}
    block = max(1, min(count, machine.memory.first_cache // 2 // max(row, 1)))
    group = RowGroup([nest_of(s) for s in steps], rows, count, private, block, steps)
    return Step(None, None, reads, [n for n in writes if n not in private], group=group)


def merge_rows(group: RowGroup) -> None:
    """Makes row dimensions one where every access of every nest crosses them contiguously."""
    dims = [d for d in range(group.rows) if group.nests[0].extents[d] != 1]
    kept = dims[-1:]
    for d in reversed(dims[:-1]):
        if all(_crosses(nest, d, kept[0]) for nest in group.nests):
            for nest in group.nests:
                merging.merge_into(nest, d, kept[0])
        else:
            kept.insert(0, d)
    for nest in group.nests:
        nest.rows = tuple(kept)


def _crosses(nest: Nest, d: int, e: int) -> bool:
    return all(affine.coefficient(a, d) == affine.coefficient(a, e) * nest.extents[e] for a in nest.offsets())


def blocks(group: RowGroup) -> tuple[int, int]:
    """The rows in a block of a merged group, and how many blocks there are."""
    extents = [group.nests[0].extents[d] for d in group.nests[0].rows]
    block = min(group.block, extents[-1])
    return block, math.prod(extents[:-1]) * -(-extents[-1] // block)
