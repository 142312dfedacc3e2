"""Equal loop nests, as those of layers or of a loop that is written out in Python are: planned once in a program.

What a nest is, the values say that it is made of, down to those in memory, whatever their numbers. So its *structure*
is asked for before a nest is built: the first of a structure is built, scheduled and shared out. Others are launches of
the same nest on other values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from catena.compiler.graph.forms import FORMS, PARTS
from catena.compiler.graph.region import Value
from catena.compiler.plan.fuse import Fused, Kernel
from catena.compiler.plan.program import Launch
from catena.compiler.plan.storage import is_checked


class Structure:
    """What decides a nest of a region, as plain data, while it is asked for."""

    def __init__(self, fused: Fused, own: frozenset[int] = frozenset()):
        self.values, self.stored, self.roots, self.own = fused.region.values, fused.stored, fused.roots, own
        self.what: tuple = ()  # is built of the values
        self.told: list[tuple] = []
        self.is_whole = True  # whether all that decides the nest is told
        self.numbers: dict[int, int] = {}  # values in memory that it may touch -> their places in the order of telling
        self._known: dict[int, int] = {}

    def memory(self, number: int) -> int:
        """A value in memory, by its place among those that the nest may touch."""
        return self.numbers.setdefault(number, len(self.numbers))

    def read(self, v: Value) -> int:
        """Tells of a value that the nest reads, and of what that is computed from, each once."""
        found = self._known.get(v.number)
        if found is not None:
            return found
        how: tuple
        if v.number in self.stored and v.number not in self.own:
            root = self.roots.get(v.number, v.number)
            self.is_whole &= v.form != "broadcast"  # of a number, which would be told
            how = self.memory(root), self.values[root].shape, self.values[root].dtype
        elif v.form == "constant":
            how = v.form, v.params.array.tobytes()
        else:
            self.is_whole &= FORMS[v.form].inline and not is_checked(v) or v.form in PARTS
            how = v.form, v.params, *map(self.read, v.args)
        self.told.append((v.shape, v.dtype, v.bounds, how))
        self._known[v.number] = found = len(self._known)
        return found


class Planned(NamedTuple):
    """A launch of a structure, which others of it are copies of."""

    step: Launch
    touched: list[int]  # what it touches, by places in the order of telling
    costs: tuple[int, int, int]


def of_kernel(fused: Fused, kernel: Kernel) -> Structure:
    """What the nest of a kernel is."""
    found, roots = Structure(fused, kernel.own), []
    for v in kernel.roots:
        if FORMS[v.form].fold:
            roots.append((v.form, v.params, found.read(v.args[0]), v.shape, v.dtype, found.memory(v.number)))
        else:
            kept = v.number not in kernel.dropped
            roots.append((found.read(v), kept and found.memory(v.number)))
    found.what = ("kernel", kernel.space, kernel.axes, *roots)
    return found


def of_values(fused: Fused, what: tuple, reads: Iterable[Value], written: Value) -> Structure:
    """What a nest is that reads and writes values; `what` it makes of them is told by plain data."""
    found = Structure(fused)
    for v in reads:
        found.read(v)
    v = written
    found.what = *what, found.memory(v.number), v.form, v.shape, v.dtype, v.params
    return found
