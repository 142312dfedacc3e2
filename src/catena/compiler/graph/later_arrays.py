"""Constants that a program of their own computes, where numbers record: at other lengths it is run again."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from catena.compiler.graph.symbols import Computed, Scalar, Symbol, Unrecorded


class LaterArray:
    """A constant that is another array at another length: what is asked of its elements is written down."""

    def __init__(self, made: Computed, shape: tuple):
        self.made, self.array = made, cast(np.ndarray, made.value)
        self.shape, self.ndim, self.dtype = shape, len(shape), self.array.dtype  # of which the lengths record

    @property
    def size(self) -> int:
        total: Any = 1
        for n in self.shape:
            total = total * n
        return total

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def first(self) -> Scalar | np.ndarray:
        """The first element."""
        return self.made.record.scalar(np.asarray(first(self.array)), first, self.made.name)

    @property
    def is_one_number(self) -> bool:
        """As `is_one_number` says it of arrays, which is written down."""
        return self.made.record.condition(is_one_number(self.array), is_one_number, self.made.name)

    def min(self) -> Symbol:
        return self.made.record.number(least(self.array), least, self.made.name)

    def max(self) -> Symbol:
        return self.made.record.number(greatest(self.array), greatest, self.made.name)

    def tobytes(self) -> bytes:
        """What tells it from others, in keys: its name."""
        return self.made.name.encode()

    def __array__(self, dtype=None, copy=None):
        raise Unrecorded("the elements of a constant")

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unrecorded(f"{name} of a constant")


def held(array) -> np.ndarray:
    """A constant as it is at the length at hand."""
    return array.array if type(array) is LaterArray else array


def first(array: np.ndarray) -> np.generic:
    """The first element."""
    return array.flat[0]


def least(array: np.ndarray):
    """The least element, as a number of Python's."""
    return array.min().item()


def greatest(array: np.ndarray):
    """The greatest element, as a number of Python's."""
    return array.max().item()


def is_one_number(array: np.ndarray) -> bool:
    """Whether all elements are the same, bit by bit: then they are written, not read from a constant."""
    if array.ndim == 0 or array.size == 0:
        return False
    rows = np.ascontiguousarray(array).reshape(array.size, 1).view(np.uint8)
    return not np.any(rows != rows[0])


def arrays(run: Callable, numbers: Sequence, made: Sequence[np.ndarray], shapes: Sequence) -> Sequence:
    """What `run` made of these numbers, and makes of others when all else that was written down holds."""
    record = next((x.record for x in numbers if type(x) is Symbol and not x.record.closed), None)
    if record is None:
        return made
    all_ = record.line(_run, (record.told(run), record.told(tuple(numbers))), is_late=True)
    found: list = []
    for i, (array, shape) in enumerate(zip(made, shapes, strict=True)):
        one = record.number(array, operator.getitem, all_, record.constant(i))
        later = LaterArray(Computed(record, cast(tuple, array), one.name), shape)
        found.append(later if shape else later.first)
    return found


def _run(run: Callable, numbers: tuple):
    return run(numbers)
