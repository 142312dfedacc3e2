"""What memory gives at most, and how much of that workloads take that do little but move numbers.

The ceiling is measured beside the workloads, in turns with them, so that both meet the same neighbours: arrays beyond
the caches are read, written and copied by NumPy's loops, on as many threads as programs run on. What a workload must
move is declared: its operands are read once and its results written once (of tables in which indices point, the rows
that they point to), so a pass more than needed counts against it.
"""

import concurrent.futures
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIZE = 1 << 28  # bytes of an array
GOAL = 0.7  # of the ceiling

WHOLE: tuple = ()  # of workloads that read their operands whole: none is a table
TABLE = (0,)  # of those whose first operand is a table

# Workloads that are bound by memory, and which of their operands are tables.
BOUND = {
    "x * 2 + 1, 1e7": WHOLE,
    "sum, 1e7": WHOLE,
    "max, 1e7": WHOLE,
    "argmax, 1e7": WHOLE,
    "sum of columns, 1e7": WHOLE,
    "max of columns, 1e7": WHOLE,
    "max of middle axis, 4e6": WHOLE,
    "mean and variance, 1e7": WHOLE,
    "softmax, 1e7": WHOLE,
    "layer norm, 1e7": WHOLE,
    "RMS norm, 1e7": WHOLE,
    "outer product, 2000": WHOLE,
    "vector times matrix, 4096": WHOLE,
    "matrix times vector, 4096": WHOLE,
    "transpose, 3000 x 3000": WHOLE,
    "embedding gradient": TABLE,
    "five arrays added, 5e6": WHOLE,
    "step of Adam, 5e6": WHOLE,
    "concatenation, 1e7": WHOLE,
    "pad of an image, 1e7": WHOLE,
    "columns reversed, 1e7": WHOLE,
    "swapped axes, 1e7": WHOLE,
    "gather of 40000 rows": TABLE,
    "scatter of 40000 rows": WHOLE,
    "choice by a mask, 1e7": WHOLE,
    "to bfloat16, 2e7": WHOLE,
    "sum and sum of squares, 1e7": WHOLE,
    "least and greatest of rows, 1e7": WHOLE,
    "differences, 1e7": WHOLE,
}


@dataclass(frozen=True)
class Moved:
    """Bytes that a workload must move."""

    read: int
    written: int

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.read + self.written


@dataclass(frozen=True)
class Ceiling:
    """Bytes in a second that are read, that are written, and that a copy reads and writes together."""

    read: float
    written: float
    copied: float

    def seconds(self, moved: Moved) -> float:
        """The least time of a workload: what it reads and writes is copied, what is left is only read, or written."""
        both = min(moved.read, moved.written)
        return 2 * both / self.copied + (moved.read - both) / self.read + (moved.written - both) / self.written


def best_of(ceilings: list[Ceiling]) -> Ceiling:
    """The best that was seen of each."""
    return Ceiling(*(max(getattr(c, name) for c in ceilings) for name in ("read", "written", "copied")))


class Measure:
    """Measures the ceiling, again and again, on so many threads."""

    def __init__(self, threads: int, size: int = SIZE):
        count = size // 4
        self.source, self.target = np.ones(count, np.float32), np.ones(count, np.float32)
        self.cuts = [slice(count * k // threads, count * (k + 1) // threads) for k in range(threads)]
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)

    def __call__(self) -> Ceiling:
        """What is reached now."""
        size, x, y = self.source.nbytes, self.source, self.target
        dots = self._seconds(lambda part: np.dot(x[part], y[part]))
        read = min(self._seconds(lambda part: np.max(x[part])), dots / 2)
        written = self._seconds(lambda part: y[part].fill(2.0))
        copied = self._seconds(lambda part: np.copyto(y[part], x[part]))
        return Ceiling(size / read, size / written, 2 * size / copied)

    def _seconds(self, work: Callable[[slice], object]) -> float:
        """The least time of some runs."""
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            list(self.pool.map(work, self.cuts))
            best = min(best, time.perf_counter() - start)
        return best


def moved(jax, name: str, function: Callable, arguments: list) -> Moved:
    """What a workload of this name must move, by its declaration and the sizes of its operands and results."""
    size = lambda leaves: sum(x.size * x.dtype.itemsize for x in leaves)
    results = size(jax.tree.leaves(jax.eval_shape(function, *arguments)))
    operands = [jax.tree.leaves(x) for k, x in enumerate(arguments) if k not in BOUND[name]]
    looked_up = sum(_rows_read(arguments[k], arguments[1]) for k in BOUND[name])
    return Moved(sum(map(size, operands)) + looked_up, results)


def _rows_read(table, indices) -> int:
    """The bytes of the rows that indices name, each as often as it is named."""
    return indices.size * (table.size // table.shape[0]) * table.dtype.itemsize
