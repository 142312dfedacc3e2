"""How a value gets from one layout to another: the collectives that it takes, and what they send.

A device's part of a value has a *form*: a split, and the axes of the mesh over which the parts are terms of a sum that
is still to be taken. ``moves`` lists what leads from form to form, ``cost`` says what that sends, ``apply`` does it.
Bytes are those that each device sends where devices stand in a ring (Thakur, Rabenseifner and Gropp, 2005).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from catena.core.named import NamedTuple
from catena.core.propagation import Split
from catena.core.zeros import get_aval
from catena.lax.arithmetic import mul
from catena.lax.collectives import psum_p
from catena.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from catena.lax.exchanges import all_gather, all_to_all, ppermute, psum_scatter
from catena.lax.named_axes import axis_index, axis_size
from catena.random.dtype import generator_of, is_key_dtype
from catena.random.primitives import random_unwrap_p, random_wrap_p


class Form(NamedTuple):
    """How the parts of devices make a value: along axes as ``split`` says, added up over ``partial``."""

    split: Split
    partial: tuple = ()


class Move(NamedTuple):
    """One step from form to form.

    ``kind`` is "slice" (each device keeps its part of the axis ``axis``), "gather" (it gets the others' parts of it),
    "exchange" (it gets those of ``axis``, and keeps its part of the axis ``to``), "permute" (of ``axis``, which the
    axes ``new`` of the mesh split in place of ``names``, another device has its part), "sum", or "scatter" (the sum, of
    which each device keeps its part of ``axis``).
    """

    kind: str
    names: tuple
    axis: int = 0
    to: int = 0
    new: tuple = ()

    @property
    def all_names(self) -> tuple:
        """The axes of the mesh that it works along."""
        return tuple(dict.fromkeys(self.names + self.new))


COLLECTIVES = {
    "gather": "all_gather",
    "exchange": "all_to_all",
    "permute": "ppermute",
    "sum": "psum",
    "scatter": "psum_scatter",
}


def moves(have: Form, want: Form, sizes) -> list[tuple[Move, Form]]:
    """The steps from one form to another, each with the form that it leads to. What makes parts smaller comes first,
    what makes them larger last. ``sizes`` are those of the mesh's axes.
    """
    if have == want:
        return []
    way = Way(have, want, sizes)
    way.take_slices()
    way.take_sums()
    way.exchange()
    way.permute()
    way.gather()
    way.take_slices()
    return way.steps


class Way:
    """The way from one form to another, and how far it has come."""

    def __init__(self, have: Form, want: Form, sizes):
        self.sizes = sizes
        self.now, self.goal = list(have.split), want.split
        self.partial, self.kept = have.partial, want.partial
        self.steps: list[tuple[Move, Form]] = []

    def missing(self, axis: int) -> tuple:
        """The names that are still to split an axis; none where others are in the way."""
        now, goal = self.now[axis], self.goal[axis]
        return goal[len(now) :] if goal[: len(now)] == now else ()

    def surplus(self, axis: int) -> tuple:
        """The names that split an axis and should not."""
        now, goal = self.now[axis], self.goal[axis]
        pairs = enumerate(zip(now, goal, strict=False))
        common = next((i for i, (a, b) in pairs if a != b), min(len(now), len(goal)))
        return now[common:]

    def take_slices(self) -> None:
        """Split axes by names that are free: nothing is sent; by names that are summed over: the sum is scattered."""
        for axis in range(len(self.now)):
            for names, kind in runs(self.missing(axis), self.kind_of_slice):
                if kind == "no":
                    break
                self.now[axis] += names
                if kind == "scatter":
                    self.partial = tuple(n for n in self.partial if n not in names)
                self.step(kind, names, axis)

    def kind_of_slice(self, name) -> str:
        if any(name in split for split in self.now) or name in self.kept:
            return "no"
        return "scatter" if name in self.partial else "slice"

    def take_sums(self) -> None:
        names = tuple(n for n in self.partial if n not in self.kept)
        if names:
            self.partial = tuple(n for n in self.partial if n in self.kept)
            self.step("sum", names)

    def exchange(self) -> None:
        """Names that split the wrong axis go to the right one."""
        for axis in range(len(self.now)):
            surplus = self.surplus(axis)
            for names in (surplus[k:] for k in range(len(surplus))):
                to = next((j for j in range(len(self.now)) if names == self.missing(j)[: len(names)]), None)
                if to is not None:
                    self.now[axis] = self.now[axis][: -len(names)]
                    self.now[to] += names
                    self.step("exchange", names, axis, to)
                    break

    def permute(self) -> None:
        """Other names split an axis into as many parts, or into parts of these: somebody has the new one."""
        for axis in range(len(self.now)):
            names = self.surplus(axis)
            kept = self.now[axis][: len(self.now[axis]) - len(names)]
            new = self.goal[axis][len(kept) :]
            free = not any(set(new) & {*split} for k, split in enumerate(self.now) if k != axis)
            if names and new and free and not count(new, self.sizes) % count(names, self.sizes):
                self.now[axis] = (*kept, *new)
                self.step("permute", names, axis, new=new)

    def gather(self) -> None:
        for axis in range(len(self.now)):
            names = self.surplus(axis)
            if names:
                self.now[axis] = self.now[axis][: -len(names)]
                self.step("gather", names, axis)

    def step(self, kind: str, names: tuple, axis: int = 0, to: int = 0, new: tuple = ()) -> None:
        self.steps.append((Move(kind, names, axis, to, new), Form(tuple(self.now), self.partial)))


def count(names: tuple, sizes) -> int:
    """The number of devices along axes of the mesh."""
    return math.prod(sizes[n] for n in names)


def runs(names: tuple, kind) -> list[tuple[tuple, str]]:
    """The names in runs of one kind each, with it."""
    return [(tuple(run), k) for k, run in itertools.groupby(names, kind)]


def sent(move: Move, size: float, sizes) -> float:
    """What each device sends for a step, of a part of ``size``."""
    ways = count(move.names, sizes)
    if move.kind == "slice":
        return 0
    if move.kind == "permute":
        return grown(move, size, sizes)
    return {"gather": ways * size, "exchange": size, "sum": 2 * size, "scatter": size}[move.kind] * (ways - 1) / ways


def grown(move: Move, size: float, sizes) -> float:
    """The size of the part after a step."""
    ways = count(move.names, sizes)
    if move.kind == "permute":
        return size * ways / count(move.new, sizes)
    return size * {"gather": ways, "slice": 1 / ways, "scatter": 1 / ways}.get(move.kind, 1)


def cost(steps: list[tuple[Move, Form]], size: float, sizes) -> float:
    """What the steps send, from a part of ``size``; ``sizes`` are those of the mesh's axes."""
    total = 0.0
    for move, _ in steps:
        total += sent(move, size, sizes)
        size = grown(move, size, sizes)
    return total


def apply(move: Move, x):
    """Take a step with a device's part."""
    aval = get_aval(x)
    if is_key_dtype(aval.dtype):
        impl = generator_of(x)
        return random_wrap_p.bind(apply(move, random_unwrap_p.bind(x, impl=impl)), impl=impl)
    return APPLY[move.kind](x, move)


def own_part(x, move: Move):
    """This device's part of an axis."""
    size = get_aval(x).shape[move.axis] // ways_of(move.names)
    return dynamic_slice_in_dim(x, mul(axis_index(move.names), np.int32(size)), size, move.axis)


def ways_of(names: tuple) -> int:
    """The number of devices along axes of the mesh that are in scope."""
    return math.prod(map(axis_size, names))


def matching(names: tuple, new: tuple, sizes) -> tuple[list[tuple], list[int]]:
    """For a permutation: who sends to whom, and for each device which part of its own it sends.

    Devices are numbered along the axes ``names`` and ``new`` together. A part along ``new`` is a part of one along
    ``names``, which as many devices have as need something of it; whoever has what it needs keeps it.
    """
    axes = tuple(dict.fromkeys(names + new))
    places = [dict(zip(axes, p, strict=True)) for p in np.ndindex(*[sizes[n] for n in axes])]
    number = lambda place, of: int(np.ravel_multi_index([place[n] for n in of], [sizes[n] for n in of]))  # noqa: E731
    parts = count(new, sizes) // count(names, sizes)
    has = [number(place, names) for place in places]
    needs = [number(place, new) for place in places]
    givers = {k: k for k, need in enumerate(needs) if has[k] == need // parts}
    free = [k for k in range(len(places)) if k not in givers]
    for k, need in enumerate(needs):
        if k not in givers:
            giver = next(g for g in free if has[g] == need // parts)
            free.remove(giver)
            givers[k] = giver
    sends = [0] * len(places)
    for taker, giver in givers.items():
        sends[giver] = needs[taker] % parts
    return [(giver, taker) for taker, giver in givers.items()], sends


def permuted(x, move: Move):
    """This device's part of an axis that other axes of the mesh split."""
    sizes = {n: axis_size(n) for n in move.all_names}
    pairs, sends = matching(move.names, move.new, sizes)
    size = get_aval(x).shape[move.axis] * ways_of(move.names) // ways_of(move.new)
    start = dynamic_index_in_dim(np.array(sends, np.int32) * np.int32(size), axis_index(move.all_names), 0, False)
    return ppermute(dynamic_slice_in_dim(x, start, size, move.axis), move.all_names, pairs)


APPLY = {
    "slice": own_part,
    "permute": permuted,
    "gather": lambda x, move: all_gather(x, move.names, axis=move.axis, tiled=True),
    "exchange": lambda x, move: all_to_all(x, move.names, move.to, move.axis, tiled=True),
    "sum": lambda x, move: psum_p.bind(x, axes=move.names, axis_index_groups=None)[0],
    "scatter": lambda x, move: psum_scatter(x, move.names, scatter_dimension=move.axis, tiled=True),
}
