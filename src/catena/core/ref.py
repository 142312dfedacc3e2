"""References: memory that a program reads and writes in place.

A ``Cell`` is the memory: one buffer, which nobody else writes to. A snapshot of all of it shares the buffer, and
whoever writes next takes a copy first if the snapshot is still about; so what was read never changes, and nothing is
copied that is not held twice. A ``Ref`` is what users hold: of a cell, or of the tracer that stands for one while a
function is traced. Its methods are given to it where the primitives stand (``lax/refs.py``).
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from catena.core.aval import AbstractRef


class Cell:
    """The memory of a reference; ``_value`` is None while a program works in it, ``source`` the line that made it."""

    __slots__ = ("_value", "aval", "source", "ended", "is_plain", "__weakref__")
    _placement = None

    def __init__(self, value: np.ndarray, aval: AbstractRef, source=None):
        self._value, self.aval, self.source = value, aval, source
        self.ended: str | None = None  # what ended its life, and where
        self.is_plain = aval is not None and not aval.inner_aval.extended  # its elements are NumPy's own

    _aval = property(lambda self: self.aval)

    @property
    def value(self) -> np.ndarray:
        """The buffer, to be read; whoever keeps it keeps it from being written to."""
        value = self._value
        if value is None:
            raise RuntimeError(f"{self.aval.str_short()} is read or written while a program that updates it runs")
        return value

    def writable(self, copy: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """The buffer, to be written to: a copy where somebody else holds it as well."""
        value = self.value
        shared = sys.getrefcount(value) > HELD_ALONE  # before its flags, which hold it as well
        flags = value.flags
        if shared or not (flags.owndata or is_own(value)) or not flags.c_contiguous:
            value = self._value = copy(value)
        elif not flags.writeable:  # NumPy has looked at it
            flags.writeable = True
        return value

    def __repr__(self):
        return f"Cell({self.aval})"


class Block(np.ndarray):
    """Memory that is made for one array, which lies in it where a line of memory begins."""

    __slots__ = ()


def is_own(value: np.ndarray) -> bool:
    """Whether memory that the array does not own is that of the pool, or a block, which are given to one array each."""
    return isinstance(value.base, (mmap.mmap, Block))


def _count(cell: Cell) -> int:
    value = cell.value
    return sys.getrefcount(value)


HELD_ALONE = _count(Cell(np.empty(0), None))  # type: ignore[arg-type]  # of a buffer that a cell and a variable hold


class Ref:
    """A mutable array: ``ref[index]`` reads, ``ref[index] = x`` writes in place.

    References are made by ``new_ref``, never by calling this class. They are passed to transformed functions and closed
    over by them, but not returned from them.
    """

    __slots__ = ("_core", "source", "ended", "__weakref__")
    _core: Any  # a Cell, or a tracer
    source: Any  # the line that made it
    ended: Any  # where it ended, once it has
    __iter__ = None

    def __init__(self, aval, refs):
        raise TypeError("Ref cannot be instantiated directly; use catena.new_ref")

    @property
    def aval(self) -> AbstractRef:
        """The type of the reference."""
        return self._core.aval

    _aval = aval

    @property
    def shape(self) -> tuple:
        """The length of each axis."""
        return self._core.aval.shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self._core.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._core.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._core.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype came from a Python scalar and yields to others."""
        return self._core.aval.weak_type

    def _refuse_as_value(self):
        raise TypeError(f"{use_of_reference(self.aval)}")


def use_of_reference(aval) -> str:
    """What to say where a reference stands for its value."""
    return (
        f"a reference of type {aval.str_short()} stands where an array is needed -- did you forget to unpack it? "
        "ref[...] is its value"
    )


def as_ref(core, source=None) -> Ref:
    """What users hold of a cell or a tracer that stands for one."""
    ref = object.__new__(Ref)
    ref._core, ref.source, ref.ended = core, source, None
    return ref


def made_at(ref: Ref) -> str:
    """Where a reference was made, for errors."""
    source = getattr(ref._core, "source", None) or ref.source
    return str(source) if source is not None else "an unknown line"


def for_users(leaves):
    """The values, references among them as ``Ref``. Most programs have none: to ask is quicker than to make a list."""
    for x in leaves:
        try:
            if type(x.aval) is AbstractRef:
                return [as_ref(x) if is_reference(x) and type(x) is not Ref else x for x in leaves]
        except AttributeError:  # not a value of the language
            pass
    return leaves


def core_of(x):
    """A value of the language, also for a ``Ref``: its cell or tracer.

    Raises:
      ValueError: the reference was frozen or freed.
    """
    if type(x) is not Ref:
        return x
    core = x._core
    ended = core.ended if type(core) is Cell else x.ended
    if ended is not None:
        raise ValueError(f"a reference of type {core.aval.str_short()} was used after {ended}")
    return core


def is_reference(x) -> bool:
    """Whether a value is a reference, concrete or traced."""
    return type(getattr(x, "aval", None)) is AbstractRef
