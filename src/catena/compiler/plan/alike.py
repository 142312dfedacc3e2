"""Equal loop nests and products, as those of layers or of an unrolled loop are: planned once in a program.

What a nest is, the values say that it is made of, down to those in memory, whatever their numbers. So its *structure*
is asked for before a nest is built: the first of a structure is built, scheduled and shared out. Others are launches of
the same nest on other values. So are products by tiles of the same plan.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from catena.compiler.graph.forms import FORMS, PARTS
from catena.compiler.graph.region import Value
from catena.compiler.plan.fuse import Fused, Kernel
from catena.compiler.plan.program import Buffer, Step
from catena.compiler.plan.steps import Contract, Launch
from catena.compiler.plan.storage import is_checked
from catena.core.named import NamedTuple


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
    """A step of a structure, which others of it are copies of."""

    step: Step
    touched: list[int]  # what it touches, by places in the order of telling
    costs: list[int]


def touched(step: Step, structure: Structure, blocks: Mapping[int, Buffer]) -> list[int] | None:
    """The values that a step touches, by their places in the order of telling; None where it has memory of its own."""
    numbers = structure.numbers
    if isinstance(step, Launch):
        return [numbers[b] for b in step.operands] if numbers.keys() >= step.operands.keys() else None
    if not isinstance(step, Contract) or step.after is not None or step.plan.packed or step.plan.in_tiles:
        return None
    places = {blocks.get(number): k for number, k in numbers.items()}
    found = [places.get(buffer) for buffer in (step.a, step.b, step.c)]
    return [k for k in found if k is not None] if len(places) == len(numbers) and None not in found else None


def on_others(step: Step, values: list[tuple[int, Buffer]]) -> Step:
    """The same step on other values, by number and where they are, in the order of `touched`."""
    made = copy.copy(step)
    if isinstance(made, Contract):
        (_, made.a), (_, made.b), (_, made.c) = values
    elif isinstance(made, Launch):
        made.names = {b: number for b, (number, _) in zip(made.operands, values)}
        made.operands = {b: buffer for b, (_, buffer) in zip(made.operands, values)}
    return made


def of_kernel(fused: Fused, kernel: Kernel) -> Structure:
    """What the nest of a kernel is."""
    found = Structure(fused, kernel.own)
    roots: list[tuple] = []
    for v in kernel.roots:
        if FORMS[v.form].fold:
            roots.append((v.form, v.params, found.read(v.args[0]), v.shape, v.dtype, found.memory(v.number)))
        else:
            kept = v.number not in kernel.dropped
            roots.append((found.read(v), kept and found.memory(v.number)))
    found.what = ("kernel", kernel.space, kernel.axes, *roots)
    return found


def of_values(fused: Fused, what: tuple, reads: Iterable[Value], v: Value) -> Structure:
    """What a nest is that reads values and writes `v`; `what` it makes of them is told by plain data."""
    found = Structure(fused)
    for x in reads:
        found.read(x)
    found.what = *what, found.memory(v.number), v.form, v.shape, v.dtype, v.params
    return found
