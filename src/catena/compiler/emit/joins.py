"""Rows that a few vectors hold, and that are folded: the lanes of as many rows as a vector has are joined at once.

The lanes of one row are joined in halves, in four steps that wait for each other and fill ever fewer lanes; so long
rows take longer to read than short ones to join. Of sixteen rows, each step joins the halves of two vectors in one that
is full, and the last leaves a vector of results. Elements meet in the order in which those of a row alone do.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.thresholds import reaches
from catena.compiler.graph.types import Type, vector
from catena.compiler.kernels.loops import Fold, Nest, accumulator_type, is_one_by_one

LEAST = 4  # lanes
MOST = 16  # vectors of a row: longer ones are read for longer than it takes to join their lanes
FEWEST_ROWS = 128  # that are worth a text that takes twice as long to compile


def are_few(nest: Nest) -> bool:
    """Whether rows that lanes fold are too few to be joined at once, which is what a kernel's text tells of them."""
    if nest.vector not in nest.reduced:
        return False
    return not reaches(math.prod(n for d, n in enumerate(nest.extents) if d not in nest.reduced), FEWEST_ROWS)


def rows(nest: Nest, kept: int, ranges: Collection[int], cut: Collection[int]) -> Rows | None:
    """The rows that are folded, along the innermost of the `kept` loops around them; None where each row is joined
    alone. The text does not tell how many iterations loops with `ranges` have; others are `cut` into pieces.
    """
    if nest.vector not in nest.reduced or not kept or nest.together is not None or nest.run is not None:
        return None
    d, width = nest.order[kept - 1], nest.width
    long = reaches(math.prod(nest.extents[k] for k in nest.reduced), MOST * width + 1)
    if not are_halved(width) or long or d in cut or any(k in ranges for k in nest.reduced):
        return None
    return Rows(d) if not are_few(nest) and any(are_joined(nest, f, d) for f in nest.folds) else None


def are_halved(width: int) -> bool:
    """Whether lanes are enough to be joined at once, and can be halved up to the last."""
    return width >= LEAST and not width & (width - 1)


def are_joined(nest: Nest, fold: Fold, d: int) -> bool:
    """Whether the results of a fold for many rows are joined at once: they lie side by side. Booleans are bits."""
    if fold.kind == "general" or fold.running or fold.partial or accumulator_type(fold, fold.types[0]).kind == "b":
        return False
    if is_one_by_one(nest, fold):
        return False
    return all(not terms and dict(dims).get(d) == 1 for _, _, (_, dims, terms) in fold.dests)


class Rows:
    """The rows that are joined: along which dimension they lie, the one that is written, if one is, by its number among
    those that are joined with it, and the folds that wait for the last of these.
    """

    def __init__(self, d: int):
        self.d, self.number = d, ""
        self.waiting: list = []


class Kept:
    """The lanes of some rows, each of which has some components of `types`, until they are joined."""

    def __init__(self, e: Emitter, types: list, width: int):
        self.e, self.width = e, width
        self.vectors = [vector(t.register, width) for t in types]
        self.slots = [e.slot(f"[{width} x {v}]", 64) for v in self.vectors]

    def keep(self, row: list[str], number: str) -> None:
        for x, v, slot in zip(row, self.vectors, self.slots, strict=True):
            self.e.do(f"store {v} {x}, ptr {self.e.element(slot, v, number)}")

    def joined(self, combine) -> list[str]:
        """The components of all rows, one in each lane; `combine` is how two of a row become one."""
        rows = [
            [self.e.op(f"load {v}, ptr {self.e.element(slot, v, k)}") for v, slot in zip(self.vectors, self.slots)]
            for k in range(self.width)
        ]
        return _met(self.e, rows, self.vectors, self.width, combine)


def _met(e: Emitter, rows: list[list[str]], vectors: list[str], width: int, combine) -> list[str]:
    """The components of a power of two of rows in one vector, where each row has as many lanes as are left for it."""
    size = width
    while len(rows) > 1:
        half = len(rows) // 2
        pairs = zip(rows[:half], rows[half:])
        rows = [combine(*(_halves(e, a, b, vectors, width, size, start) for start in (0, size // 2))) for a, b in pairs]
        size //= 2
    return rows[0]


def _halves(e: Emitter, a: list[str], b: list[str], vectors: list[str], width: int, size: int, start: int) -> list[str]:
    """One half, from `start` on, of each block of `size` lanes, of two rows in turn."""
    blocks = range(2 * width // size)
    lanes = [q % 2 * width + q // 2 * size + start + k for q in blocks for k in range(size // 2)]
    return [e.op(f"shufflevector {v} {x}, {v} {y}, {_order(lanes)}") for v, x, y in zip(vectors, a, b)]


def _order(lanes: list[int]) -> str:
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {k}' for k in lanes)}>"


def across(e: Emitter, rows: list[str], t: Type, width: int, combine) -> str:
    """The results of some rows, not more than there are lanes, in the first lanes of a vector; `combine` is how two of
    a row become one, in so many lanes.
    """
    count = 1 << (len(rows) - 1).bit_length()
    each = [[x] for x in [*rows, *["poison"] * (count - len(rows))]]
    (x,) = _met(e, each, [vector(t.register, width)], width, lambda a, b: combine(a, b, width))
    size = width // count
    while size > 1:
        v = vector(t.register, width)
        halves = [[q * size + start + k for q in range(count) for k in range(size // 2)] for start in (0, size // 2)]
        low, high = (e.op(f"shufflevector {v} {x}, {v} poison, {_order(lanes)}") for lanes in halves)
        width, size = width // 2, size // 2
        (x,) = combine([low], [high], width)
    return x


def write(body, key, t: Type, offset, x: str, copy, width: int, mask: str) -> None:
    """Stores the results of rows that are there; `copy` is of the first of them."""
    pointer, _ = body.address(key, t.memory, offset, copy, 1)
    body.check("store", body.layout.buffers[key], pointer, t, width, 1, mask)
    body.e.store(t, x, pointer, width, 1, mask)


def there(e: Emitter, count: str, width: int) -> str:
    """The lanes of rows that are there, of which there are so many."""
    order = ", ".join(f"i32 {k}" for k in range(width))
    short = e.splat(e.op(f"trunc i64 {count} to i32"), "i32", width)
    return e.op(f"icmp slt {vector('i32', width)} <{order}>, {short}")
