"""How one operation is computed by many devices: by which axes of the mesh its index ranges are split.

Its operands lie in some way, and its results should lie in some way. Each of them proposes a split of the index ranges
that it belongs to; several orders of listening to them make several ways, and the one that sends least is taken. Where
they send the same, that in which each device has least to do is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from catena.core.factors import REDUCTIONS, Factor, dealt
from catena.core.named import NamedTuple
from catena.core.propagation import Split


class Choice(NamedTuple):
    """By which names each factor is split, and how operands and results then are; ``reduced`` are the kinds of
    reductions that are left, with the names to reduce over.
    """

    names: tuple
    operands: list[Split]
    results: list[Split]
    reduced: list[tuple]


class Operation(NamedTuple):
    """One operation, to be split: the factors of operands and results together, how many of these values are operands,
    and which kinds of factors may be split.
    """

    factors: list[Factor]
    avals: list
    operands: int
    kinds: tuple


SPLITTABLE = ("pass", *[kind for kind in REDUCTIONS if kind != "fold"])  # what users fold with may be anything
WORK = 1 / 16  # bytes that may be sent to spare a device one product: 10 Gbyte/s beside 160 Gflop/s


def operation(factors: list[Factor], avals, outs, kinds: tuple = SPLITTABLE) -> Operation:
    """An operation with these factors."""
    joined = [f._replace(operands=f.operands + f.results) for f in factors]
    return Operation(joined, [*avals, *outs], len(avals), kinds)


def ways_of(names, sizes) -> int:
    return math.prod(sizes[n] for n in names)


def choose(op: Operation, proposals: list[Split], price: Callable[[Choice], float], sizes) -> Choice:
    """The way that costs least.

    Arguments:
      op: the operation.
      proposals: for each operand and result, how it lies or should lie.
      price: what a way sends, in bytes.
      sizes: those of the mesh's axes.
    """
    best, least = None, math.inf
    seen = set()
    for names in candidates(op, proposals, sizes):
        if names in seen:
            continue
        seen.add(names)
        way = made(op, names)
        sends = price(way)
        costs = sends + WORK * work(op, names, sizes)
        if costs < least:
            best, least = way, costs
        if not sends and len(seen) == 1:  # everything lies right, and all that anybody proposes is split
            break
    assert best is not None
    return best


def candidates(op: Operation, proposals: list[Split], sizes) -> Iterator[tuple]:
    """Splits of the factors: all listened to, the largest first; one first, then the others; one alone; nobody."""
    order = sorted(range(len(proposals)), key=lambda i: -op.avals[i].size)
    for first in [order] + [[i, *[j for j in order if j != i]] for i in order] + [[i] for i in order]:
        names, left = listened(op, proposals, first, sizes)
        yield names
        if left:
            yield spent(op, names, left, sizes)
    yield ((),) * len(op.factors)


def listened(op: Operation, proposals: list[Split], order: list[int], sizes) -> tuple[tuple, list]:
    """Split the factors as the values propose, in this order; and the names that could not be used so."""
    names: list[tuple] = [()] * len(op.factors)
    refused: dict = {}
    for i in order:
        for axis, proposed in enumerate(proposals[i]):
            if not proposed:
                continue
            given = dealt(op.factors, i, axis, proposed, sizes)[0]
            refused.update(dict.fromkeys(proposed))
            for k, taken in given.items():
                names[k] = lengthened(op.factors[k], names, k, taken, op.kinds, sizes)
    names = expressible(op, names, sizes)
    used = {n for split in names for n in split}
    return tuple(names), [n for n in refused if n not in used]


def lengthened(factor: Factor, names: list[tuple], k: int, proposed: tuple, kinds: tuple, sizes) -> tuple:
    """The names of factor ``k`` with those of a proposal that begins with them, as far as nobody else has them."""
    own = names[k]
    if factor.kind not in kinds or proposed[: len(own)] != own:
        return own
    used = {n for split in names for n in split}
    for name in proposed[len(own) :]:
        if name in used or factor.size % ways_of((*own, name), sizes):
            break
        own = (*own, name)
    return own


def expressible(op: Operation, names: list[tuple], sizes) -> list[tuple]:
    """The split of the factors without what no value's split can say: an inner part of an axis, where the outer one is
    not split to single elements.
    """
    names = list(names)
    for i, aval in enumerate(op.avals):
        for axis in range(getattr(aval, "ndim", 0)):
            full = True
            for k, factor in enumerate(op.factors):
                if factor.operands[i] == axis and factor.size > 1:
                    if not full:
                        names[k] = ()
                    full = full and ways_of(names[k], sizes) == factor.size
    return names


def spent(op: Operation, names: tuple, left: list, sizes) -> tuple:
    """Names that could not be used where they were proposed, used for the first index range that is not split."""
    found = list(names)
    order = sorted(range(len(found)), key=lambda k: -op.factors[k].size)
    for name in left:
        for k in order:
            if op.factors[k].kind == "pass" and not op.factors[k].size % ways_of((*found[k], name), sizes):
                found[k] = (*found[k], name)
                break
    return tuple(expressible(op, found, sizes))


def made(op: Operation, names: tuple) -> Choice:
    """How operands and results are when the factors are split by these names."""
    splits = []
    for i, aval in enumerate(op.avals):
        split: list[tuple] = [()] * getattr(aval, "ndim", 0)
        for factor, own in zip(op.factors, names, strict=True):
            axis = factor.operands[i]
            if axis is not None:
                split[axis] += own
        splits.append(tuple(split))
    reduced = [(f.kind, own) for f, own in zip(op.factors, names, strict=True) if own and f.kind in REDUCTIONS]
    return Choice(names, splits[: op.operands], splits[op.operands :], reduced)


def work(op: Operation, names: tuple, sizes) -> float:
    """How many times a device goes through the innermost loop."""
    return math.prod(f.size / ways_of(own, sizes) for f, own in zip(op.factors, names, strict=True))
