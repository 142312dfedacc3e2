"""Fourier transforms as steps: which transforms stand side by side in vectors, and which sweeps do a long one.

Where the axis is not the last one, its neighbours in memory fill the lanes. Along the last axis, short rows are brought
into lanes, one each. A long row, of length a b, is a matrix: its columns are transformed, times the roots that stand
between (the *twist*), then its rows, whose results are the columns of the result.

Source: Bailey, "FFTs in external or hierarchical memory", J. Supercomputing 4 (1990).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from catena.compiler.graph.fourier import REAL, cost, radices, smooth_lengths
from catena.compiler.graph.region import Value
from catena.compiler.graph.symbols import computed
from catena.compiler.graph.types import TYPES
from catena.compiler.machine import Machine
from catena.compiler.plan.planner import Frame, Planner
from catena.compiler.plan.steps import Transform
from catena.core.dtypes import KIND


@dataclass(frozen=True)
class Sweep:
    """Transforms of length `n` side by side, as many as there are `lanes`.

    They are columns, whose elements are `step` complex numbers apart, or rows, which are `step` apart; of operands
    and of results.
    """

    n: int
    lanes: int
    steps: tuple[int, int]
    rows: tuple[bool, bool]
    swapped: tuple[bool, bool]  # whether real and imaginary parts change places, which makes a transform its inverse
    scale: float | None = None
    twist: int | None = None  # the other length, if results are multiplied by the roots between two sweeps
    far: bool = False  # whether operands and results are in main memory
    times: bool = False  # whether results are multiplied by factors, that a table has as it has the roots of a twist
    apart: bool = False  # whether results are never written over operands


@dataclass(frozen=True)
class Half:
    """What lies between real rows, as `h` complex numbers, and their half spectrum."""

    h: int
    to_spectrum: bool


@dataclass(frozen=True)
class Chirp:
    """A row of length `n`, for which there are no passes, as a convolution that longer transforms do."""

    n: int
    inverse: bool


@dataclass(frozen=True)
class Numbers:
    """Complex numbers whose parts are of the type `real`, `width` of them to a vector."""

    real: str
    width: int
    machine: Machine

    @property
    def bytes(self) -> int:
        """Of a part of a number."""
        return TYPES[self.real].bytes

    def blocks(self, lanes: int) -> int:
        return -(-lanes // self.width)

    def overlaps(self, s: Sweep) -> bool:
        """Whether the last block of lanes goes back over some of the one before: cheaper than lanes that idle."""
        return s.apart and s.lanes >= self.width

    def scratch(self, n: int) -> int:
        """Bytes of the two buffers of lanes for transforms of length `n`; squares are whole there."""
        return 2 * -(-2 * n // self.width) * self.width * self.width * self.bytes


COLUMNS, SHORT, MANY, FEW, HALVES = "columns", "short rows", "many long rows", "few long rows", "half spectra"
ODD = "real rows of odd length"


@dataclass(frozen=True)
class Transforms:
    """How transforms are done: columns in one sweep; short rows brought into lanes; many long rows by two sweeps each;
    few long ones by two sweeps, each over all rows; or nothing but the half spectra. Many real rows of odd length are
    brought into lanes: their half spectra are made of what passes leave out.
    """

    how: str
    numbers: Numbers
    outer: int  # matrices of columns, or rows
    whole: Sweep
    sweeps: tuple[Sweep, ...]
    half: Half | None
    chirp: Chirp | None = None  # then the sweeps are of a transform of length `whole.n` and of its inverse

    @property
    def n(self) -> int:
        """The length of the transforms."""
        return self.whole.n if self.chirp is None else self.chirp.n

    @property
    def row_bytes(self) -> int:
        return 2 * self.numbers.bytes * self.whole.n

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers in the rows of operands and of results."""
        n = self.n
        if self.half is None:
            return n, n
        return (n, n + 1) if self.half.to_spectrum else (n + 1, n)

    def items(self, s: Sweep) -> tuple[int, int]:
        """What tasks are made of where one sweep goes over all columns, and the numbers in each."""
        return self.outer * self.numbers.blocks(s.lanes), s.n * min(self.numbers.width, s.lanes)

    def columns_scratch(self, s: Sweep) -> int:
        return self.numbers.scratch(s.n) * self.numbers.machine.sharing.tasks(*self.items(s))

    @property
    def short_items(self) -> tuple[int, int]:
        """What tasks are made of where rows are brought into lanes, and the numbers in each."""
        return self.numbers.blocks(self.outer), self.whole.n * min(self.numbers.width, self.outer)

    @property
    def task_bytes(self) -> list[int]:
        """Of the scratch memory of each task over rows: lanes, rows between sweeps, half spectra, convolutions."""
        v = self.numbers
        if self.how in (SHORT, ODD):
            return [v.scratch(max(self.sizes))]
        between = 2 if self.chirp is None else 4
        return [max(v.scratch(s.n) for s in self.sweeps), *[self.row_bytes] * between]

    def scratch(self) -> list[int]:
        """The bytes of all scratch memory."""
        if self.how == HALVES:
            return []
        if self.how == COLUMNS:
            return [self.columns_scratch(self.whole)]
        if self.how == FEW:
            between = [self.row_bytes * self.outer] * (1 if self.half is None else 2)
            return [*between, max(map(self.columns_scratch, self.sweeps))]
        items = self.short_items if self.how in (SHORT, ODD) else (self.outer, self.whole.n)
        tasks = self.numbers.machine.sharing.tasks(*items)
        return [size * tasks for size in self.task_bytes]

    def describe(self) -> str:
        by = f" by {' x '.join(str(s.n) for s in self.sweeps[:2])}" if self.sweeps else ""
        by = by if self.chirp is None else f" as convolutions of length {self.whole.n}{by}"
        return f"{self.outer} times {self.n}{by}, {self.how}{', of real numbers' * (self.half is not None)}"


def fourier(p: Planner, frame: Frame, i: int, node: Value) -> None:
    """The transform along one axis. Real rows count as rows of half as many complex numbers."""
    (x,), (out,) = node.args, node.results
    source, half = p.address(frame, x), None
    if x.dtype == out.dtype:
        p.take(frame, x, out, i)
    else:
        p.define(frame, out)
        half = Half(x.shape[-1] // 2, True) if KIND[x.dtype] == "f" else Half(out.shape[-1] // 2, False)
    if out.size == 0:
        return
    axis, inverse = node.params.axis, node.params.inverse
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    is_odd = KIND[x.dtype] == "f" and x.shape[-1] % 2 == 1
    n = x.shape[axis] if half is None or is_odd else half.h
    real = REAL[max(x.dtype.itemsize, out.dtype.itemsize)]
    v = Numbers(real, p.machine.vector_bytes // TYPES[real].bytes, p.machine)
    p.costs.units += 16 * out.size
    p.costs.flops += p.costs.trips * _flops(outer * inner, n)
    if is_odd:
        far = x.size * TYPES[real].bytes > p.machine.memory.second_cache
        whole = Sweep(n, outer, (n, n), (True, True), (False, False), far=far)
        plan = Transforms(ODD, v, outer, whole, (), None)
    elif radices(n) is None:
        plan = _as_convolutions(v, n, outer, inverse, half)
    else:
        plan = _plan(v, n, outer, inner, inverse, half)
    parts = [p.allocate(size) for size in plan.scratch()]
    frame.steps.append(Transform(plan, source, p.address(frame, out), parts))
    for part in parts:
        p.free(part)


@computed
def _flops(rows: int, n: int) -> int:
    """What so many transforms of this length cost, as one counts."""
    return int(5 * rows * n * math.log2(n))


def _plan(v: Numbers, n: int, outer: int, inner: int, inverse: bool, half: Half | None) -> Transforms:
    scale, far = 1 / n if inverse else None, outer * n * inner * 2 * v.bytes > v.machine.memory.second_cache
    swapped = (inverse, inverse)
    if inner > 1:
        s = Sweep(n, inner, (inner, inner), (False, False), swapped, scale, far=far)
        return Transforms(COLUMNS, v, outer, s, (), half)
    s = Sweep(n, outer, (n, n), (True, True), swapped, scale, far=far)
    if n == 1:
        return Transforms(HALVES, v, outer, s, (), half)
    halves = _halves(v, n)
    sweeps = () if halves is None else _two_sweeps(s, *halves)
    if not sweeps or _cost(v, s) <= outer * sum(_cost(v, each) for each in sweeps):
        return Transforms(SHORT, v, outer, s, (), half)
    limits = v.machine.sharing
    how = FEW if outer < limits.row_tasks and outer * n >= limits.long_rows else MANY
    return Transforms(how, v, outer, s, sweeps, half)


def _as_convolutions(v: Numbers, n: int, outer: int, inverse: bool, half: Half | None) -> Transforms:
    """Of the lengths that will do, those are looked at whose vectors are nearly all full."""
    lengths = smooth_lengths(2 * n - 1, v.width)

    def sweeps(m: int, **ends) -> tuple[Sweep, Sweep]:
        row = Sweep(m, outer, (m, m), (True, True), (False, False))
        factors = _halves(v, m)
        assert factors is not None  # of a smooth length
        return _two_sweeps(replace(row, **ends), *factors)

    m = min(lengths, key=lambda m: (sum(_cost(v, s) for s in sweeps(m)), m))
    first, second = sweeps(m)
    each = (first, replace(second, times=True), *sweeps(m, swapped=(True, True), scale=1 / m))
    return Transforms(
        MANY, v, outer, Sweep(m, outer, (m, m), (True, True), (False, False)), each, half, Chirp(n, inverse)
    )


def _two_sweeps(s: Sweep, a: int, b: int) -> tuple[Sweep, Sweep]:
    """The sweeps that transform a row of length a b."""
    first = Sweep(a, b, (b, b), (False, False), (s.swapped[0], False), twist=b, apart=True)
    return first, Sweep(b, a, (b, a), (True, False), (False, s.swapped[1]), s.scale, apart=True)


def _halves(v: Numbers, n: int) -> tuple[int, int] | None:
    """The factors of `n` that make the best two sweeps."""
    factors = [a for a in range(1, math.isqrt(n) + 1) if n % a == 0][1:][-8:]
    row = Sweep(n, 1, (n, n), (True, True), (False, False))
    pairs = {pair for a in factors for pair in ((a, n // a), (n // a, a))}
    return min(sorted(pairs), key=lambda pair: sum(_cost(v, s) for s in _two_sweeps(row, *pair)), default=None)


def _cost(v: Numbers, s: Sweep) -> float:
    costs = v.machine.transforms
    each = cost(radices(s.n)) + costs.exchange * sum(s.rows)
    vectors = v.blocks(s.lanes) + (costs.masked - 1) * (s.lanes % v.width > 0 and not v.overlaps(s))
    return vectors * s.n * each * (costs.slower if v.scratch(s.n) > costs.near else 1)


RULES = {"fourier": fourier}
