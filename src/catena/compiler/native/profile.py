"""What each step of a program takes: the program runs with a clock around every step."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from catena.compiler.emit import clock
from catena.compiler.emit.clock import Clock
from catena.compiler.graph.builder import Builder
from catena.compiler.graph.types import DTYPES
from catena.compiler.native import report
from catena.compiler.native.compile import compile_region, lower, settle
from catena.compiler.plan.program import Buffer, Step
from catena.core.dtypes import KIND
from catena.core.errors import CompileError

COPIED = 1 << 25  # bytes that are copied to measure memory: more than caches hold
NEAR = 1 << 16  # bytes that are copied to measure a cache
WIDTH = 768  # of the matrices whose product measures arithmetic


@dataclass(frozen=True)
class Row:
    """One step: how deep it is in loops and branches, what it is, the user's lines that it does; seconds of all its
    runs together, the bytes that one run reads and writes at most, its arithmetic operations, and how many of such
    this machine does at most in a second.
    """

    depth: int
    what: str
    places: str
    seconds: float
    runs: int
    bytes: int
    flops: int
    most_flops_per_second: float

    @property
    def bytes_per_second(self) -> float:
        return self.bytes * self.runs / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float:
        return self.flops * self.runs / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Ceilings:
    """What this machine does at most in a second, as measured: bytes copied, operations of a product of float32, bytes
    copied by one core within its caches.
    """

    bytes_per_second: float
    flops_per_second: float
    cached_bytes_per_second: float


def profile(closed_jaxpr, values: Sequence[np.ndarray], repeats: int) -> tuple[float, list[Row]]:
    """The seconds of the quickest of so many runs, and its steps in the order of the program's text.

    Raises: CompileError where the system has no clock that programs can read.
    """
    if not clock.is_available():
        raise CompileError("profile: this system has no clock_gettime, by which programs measure their steps")
    clocks: list[Clock] = []
    executable = compile_region(settle(lower(closed_jaxpr)), clocks=clocks)
    (found,) = clocks
    executable(*values)
    best, table = float("inf"), found.table
    for _ in range(repeats):
        found.table[:] = 0
        start = time.perf_counter()
        executable(*values)
        seconds = time.perf_counter() - start
        if seconds < best:
            best, table = seconds, found.table.copy()
    return best, [_row(depth, step, *table[:, i]) for i, (depth, step) in enumerate(found.steps)]


def _row(depth: int, step: Step, nanoseconds: int, runs: int) -> Row:
    what = f"{step.name} {step.detail()}".rstrip()
    size = sum(_touched(b) for b in (*step.reads(), *step.writes()))
    places = report.places(*step.origin) if step.origin is not None else ""
    flops = step.flops()
    most = products_per_second(step.multiplied()) if flops else 0.0
    return Row(depth, what, places, int(nanoseconds) * 1e-9, int(runs), size, flops, most)


def _touched(buffer: Buffer) -> int:
    return buffer.bytes


@functools.cache
def ceilings() -> Ceilings:
    """Measured once in a process, in some tens of milliseconds."""
    source, target = np.ones(COPIED, np.uint8), np.empty(COPIED, np.uint8)
    copying = _quickest(lambda: np.copyto(target, source))
    near = _quickest(lambda: np.copyto(target[:NEAR], source[:NEAR]))
    return Ceilings(2 * COPIED / copying, products_per_second("float32"), 2 * NEAR / near)


@functools.cache
def products_per_second(name: str) -> float:
    """Operations in a second of a product of matrices of the dtype of that name: two for each multiplication, eight of
    complex numbers. Measured once in a process, in a twentieth of a second.
    """
    dtype = DTYPES[name]
    b = Builder()
    x, y = (b.input((WIDTH, WIDTH), dtype) for _ in range(2))
    sums = np.dtype(np.int32) if KIND[dtype] in "iu" and dtype.itemsize < 4 else dtype
    b.region.outputs = [b.dot_general(x, y, (((1,), (0,)), ((), ())), sums)]
    product, a = compile_region(b.region), np.ones((WIDTH, WIDTH), dtype)
    return (8 if KIND[dtype] == "c" else 2) * WIDTH**3 / _quickest(lambda: product(a, a))


def _quickest(run) -> float:
    """The least time of a run, of those of a twentieth of a second, and of five at least: others compute here, too."""
    best, begun, runs = float("inf"), time.perf_counter(), 0
    while runs < 5 or time.perf_counter() - begun < 0.05:
        start = time.perf_counter()
        run()
        best, runs = min(best, time.perf_counter() - start), runs + 1
    return best
