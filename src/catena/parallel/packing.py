"""Sums over the mesh, taken together: those that do not wait for each other are one message.

A message costs a few microseconds whatever is in it, and a backward pass ends in a sum for each parameter. Sums along
the same axes of the mesh are brought to the place of the first of them, with what they need; a small array goes in one
message with the others (as "tensor fusion" does: Sergeev and Del Balso, 2018, Horovod).
"""

from __future__ import annotations

from collections.abc import Iterator

from catena.core.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Literal
from catena.core.zeros import get_aval
from catena.lax.collectives import psum_p
from catena.lax.join import concatenate
from catena.lax.shape import reshape
from catena.lax.slicing import slice_in_dim
from catena.lax.varying import psum_invariant_p

LARGEST = 1 << 16  # bytes of an array that goes with others: copying more takes longer than a message


def packed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A program whose sums over the mesh stand together where they can."""
    jaxpr = closed.jaxpr
    groups = sums_of(jaxpr.eqns)
    if all(len(group) < 2 for group in groups.values()):
        return closed
    eqns = list(Packing(jaxpr.eqns, groups).ordered())
    return ClosedJaxpr(
        Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.effects, jaxpr.debug_info), closed.consts
    )


def is_sum(eqn: Eqn) -> bool:
    """Whether an equation is a sum over the mesh that can go with others."""
    plain = eqn.primitive is psum_invariant_p or eqn.primitive is psum_p and eqn.own_params["axis_index_groups"] is None
    return plain and bool(eqn.own_params["axes"])


def sums_of(eqns: list[Eqn]) -> dict[tuple, list[int]]:
    """The sums of a program by what they have in common: their axes, how many sums they wait for, one after the other,
    and how many equations with effects stand before them. Each by its number.
    """
    level: dict = {}
    groups: dict[tuple, list[int]] = {}
    effects = 0
    for i, eqn in enumerate(eqns):
        own = max((level.get(v, 0) for v in eqn.invars if type(v) is not Literal), default=0)
        if is_sum(eqn):
            groups.setdefault((tuple(eqn.own_params["axes"]), own, effects), []).append(i)
            own += 1
        level.update(dict.fromkeys(eqn.outvars, own))
        effects += bool(eqn.effects)
    return groups


class Packing:
    """Orders the equations of a program so that the sums of a group follow each other, as one equation."""

    def __init__(self, eqns: list[Eqn], groups: dict[tuple, list[int]]):
        self.eqns = eqns
        self.group = {i: group for group in groups.values() for i in group}
        self.makers = {v: i for i, eqn in enumerate(eqns) for v in eqn.outvars}
        self.done: set[int] = set()

    def ordered(self) -> Iterator[Eqn]:
        """All equations, each behind what it needs, the sums of a group where the first of them stands. Each is looked
        at twice at most: once for what it needs, and again when that is there.
        """
        wanted = list(range(len(self.eqns) - 1, -1, -1))  # the next one last
        while wanted:
            i = wanted[-1]
            group = self.group.get(i, [i])
            if i not in self.done and (missing := self.missing(group)):
                wanted += missing
                continue
            wanted.pop()
            if i not in self.done:
                self.done.update(group)
                yield self.together(group)

    def missing(self, group: list[int]) -> list[int]:
        """What is still to be computed before these equations, the first last."""
        read = (self.makers.get(v) for i in group for v in self.eqns[i].invars if type(v) is not Literal)
        return sorted({i for i in read if i is not None} - self.done, reverse=True)

    def together(self, group: list[int]) -> Eqn:
        """The sums of a group as one; an equation alone is what it was."""
        eqns = [self.eqns[i] for i in group]
        if len(eqns) == 1:
            return eqns[0]
        invars, outvars = [v for e in eqns for v in e.invars], [v for e in eqns for v in e.outvars]
        params = {"axes": tuple(eqns[0].own_params["axes"]), "axis_index_groups": None}
        return eqns[0]._replace(primitive=psum_p, invars=invars, outvars=outvars, own_params=params)


def in_messages(xs, send) -> list:
    """What ``send`` makes of each array, of which small ones of a dtype go together, as one with one axis."""
    outs: dict[int, object] = {}
    together: dict = {}
    for i, x in enumerate(xs):
        aval = get_aval(x)
        small = aval.size * aval.dtype.itemsize <= LARGEST
        together.setdefault(aval.dtype if small else i, []).append(i)
    for numbers in together.values():
        if len(numbers) == 1:
            outs[numbers[0]] = send(xs[numbers[0]])
            continue
        shapes = [get_aval(xs[i]).shape for i in numbers]
        rows = [reshape(xs[i], (get_aval(xs[i]).size,)) for i in numbers]
        sent, begin = send(concatenate(rows, 0)), 0
        for i, row, shape in zip(numbers, rows, shapes, strict=True):
            end = begin + get_aval(row).size
            outs[i], begin = reshape(slice_in_dim(sent, begin, end), shape), end
    return [outs[i] for i in range(len(xs))]
