"""Steps that sort and select: keys alone, the order of keys, keys of given ranks, and the least keys with their places.

For the order of keys up to 32 bits, a key and its position are sorted as one integer, which is faster than moving
two; wider keys have their positions beside them. Tasks depend on sizes alone, never on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

from catena.compiler.graph.region import Value
from catena.compiler.machine import Machine, Sorting
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.program import Buffer
from catena.compiler.plan.steps import Order, Ranks, Select, Sort

# Selection: the buffer for what passes the threshold.
LEAST_ROOM = 256  # keys in the buffer; at least, ROOM times k
ROOM = 4
FEW = 32  # up to so many, keys are inserted one by one
BLOCK = 64  # keys that are compared at once

QUICK = {(8, False), (16, False), (32, False), (64, False), (64, True)}  # bits and positions that quicksort takes


@dataclass(frozen=True)
class Keys:
    """Rows of `n` keys of `bits` bits, perhaps with 32-bit positions that order equal ones; `quick` where they
    are sorted by quicksort.
    """

    bits: int
    paired: bool
    n: int
    quick: bool
    limits: Sorting

    @property
    def sizes(self) -> list[int]:
        return [self.bits // 8, 4][: 1 + self.paired]

    @property
    def long(self) -> bool:
        return self.quick and self.n >= self.limits.long

    @property
    def chunk(self) -> int:
        """Keys of a chunk of a long row."""
        return min(max(self.n // 16, self.limits.least_chunk), self.limits.most_chunk)

    @property
    def buckets(self) -> int:
        s = self.limits
        bits = max((self.n // s.bucket).bit_length(), s.least_buckets.bit_length() - 1)
        return 1 << min(bits, s.most_buckets.bit_length() - 1)

    def tables(self) -> list[int]:
        """Bytes of what sorting a long row needs beside a spare row: a sample and a spare one, where the pieces of
        chunks begin, where they go, and where buckets begin.
        """
        if not self.long:
            return []
        chunks = -(-self.n // self.chunk)
        sample = [self.limits.samples * self.buckets * size for size in self.sizes * 2]
        return sample + [8 * count for count in (chunks * (self.buckets + 1), chunks * self.buckets, self.buckets + 1)]


def keys(machine: Machine, bits: int, paired: bool, n: int) -> Keys:
    return Keys(bits, paired, n, (bits, paired) in QUICK and machine.compresses(bits), machine.sorting)


def _rows_of(p: Planner, v: Value) -> Keys:
    return keys(p.machine, 8 * v.dtype.itemsize, False, v.shape[-1])


def sort_keys(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """Each row of unsigned keys, sorted where it lies."""
    (operand,), (out,) = node.args, node.results
    at = p.start_as(frame, operand, out, i)
    if out.size == 0:
        return
    r = _rows_of(p, out)
    rows = out.size // r.n
    p.costs.units += out.size
    spare = p.allocate(r.sizes[0] * r.n * (1 if r.long else p.machine.sharing.tasks(rows, r.n)))
    tables = _allocate(p, r.tables())
    frame.steps.append(Sort(r, rows, at, spare, tables))
    _free(p, [spare, *tables])


def ranked(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """The keys of given ranks of each row."""
    source, ranks = node.args
    (out,) = node.results
    result, wanted = p.define(frame, out), p.address(frame, ranks)
    if out.size == 0:
        return
    r = _rows_of(p, source)
    rows = source.size // r.n
    p.costs.units += source.size
    columns = _allocate(p, [r.sizes[0] * r.n * p.machine.sharing.tasks(rows, r.n)] * 2)
    frame.steps.append(Ranks(r, rows, out.shape[-1], p.address(frame, source), wanted, result, columns))
    _free(p, columns)


def argsort(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """The stable order of each row by several rows of unsigned keys, the first the most significant; of that, as much
    as the result has room for.
    """
    (out,) = node.results
    index = p.define(frame, out)
    if out.size == 0:
        return
    n, k = node.args[0].shape[-1], out.shape[-1]
    rows, sources = node.args[0].size // n, [p.address(frame, x) for x in node.args]
    p.costs.units += len(node.args) * node.args[0].size
    bits = [8 * x.dtype.itemsize for x in node.args]
    joined = [joined_keys(p.machine, b, n) for b in bits]
    tasks = 1 if all(r.long for r in joined) else p.machine.sharing.tasks(rows, n)
    wide, several = max(r.sizes[0] for r in joined), len(joined) > 1
    sizes = [wide, wide] + [4, 4] * several + [4, 4] * any(r.paired for r in joined)
    columns = _allocate(p, [tasks * n * size for size in sizes])
    tables = [_allocate(p, r.tables()) for r in joined] if all(r.long for r in joined) else []
    frame.steps.append(Order(joined, bits, rows, k, sources, index, columns, tables))
    _free(p, [*columns, *(b for each in tables for b in each)])


def joined_keys(machine: Machine, bits: int, n: int) -> Keys:
    """How keys are sorted together with their positions. One digit takes a single pass of the radix sort."""
    if not machine.compresses(64) or (bits == 8 and n >= machine.sorting.many_bytes):
        return keys(machine, bits, True, n)
    both = bits + position_bits(n)
    return keys(machine, 32, False, n) if both <= 32 else keys(machine, 64, both > 64, n)


def position_bits(n: int) -> int:
    return max(n - 1, 1).bit_length()


@dataclass(frozen=True)
class Selection:
    """The `k` least of `n` keys of each row, found in `parts` parts of it, by tasks with room for `room` keys."""

    n: int
    k: int
    bits: int
    rows: int
    parts: int
    room: int
    tasks: int

    @property
    def few(self) -> bool:
        """Whether keys are inserted one by one."""
        return self.k <= FEW


def select(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """The places of the k least keys of each row, without sorting it. Where k is not small beside the row, a quicksort
    that stops at k is faster, if there is one.
    """
    (source,), (out,) = node.args, node.results
    n, k, bits = source.shape[-1], out.shape[-1], 8 * source.dtype.itemsize
    limits = p.machine.sorting
    if n < limits.sparse * k and p.machine.compresses(64):
        argsort(p, frame, i, node)
        return
    index = p.define(frame, out)
    if out.size == 0:
        return
    rows, size = source.size // n, bits // 8
    parts = max(1, min(limits.parts, n // max(limits.part, 8 * k)))
    room = min(n // parts + parts, FEW + BLOCK if k <= FEW else max(ROOM * k, LEAST_ROOM) + BLOCK)
    tasks = min(limits.tasks, rows * parts) if source.size >= limits.long else 1
    columns = _allocate(p, [tasks * room * each for each in (size, size, 4, 4)])
    best = _allocate(p, [rows * parts * k * each for each in (size, 4)]) if parts > 1 else []
    p.costs.units += source.size
    plan = Selection(n, k, bits, rows, parts, room, tasks)
    frame.steps.append(Select(plan, p.address(frame, source), index, columns, best))
    _free(p, [*columns, *best])


def _allocate(p: Planner, sizes: list[int]) -> list[Buffer]:
    return [p.allocate(size) for size in sizes]


def _free(p: Planner, buffers: list[Buffer]) -> None:
    for buffer in buffers:
        p.free(buffer)


RULES = {"sort_keys": sort_keys, "argsort": argsort, "ranked": ranked, "select": select}
