"""Shuffles between rows of a few elements, in the order of memory, and their columns, as LLVM IR.

`n` vectors, the *parts*, hold as many rows as a vector has lanes; so do `n` columns, each with a row in each lane.
"""

from __future__ import annotations

from catena.compiler.emit import masks
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import Type, vector


def shuffled(e: Emitter, vectors: list[str], order: list[int], element: str, w: int) -> str:
    """The lanes of vectors in an order, in which all lanes are numbered from the first vector on."""
    v = vector(element, w)
    out = vectors[0]
    if len(vectors) == 1 and order == list(range(w)):
        return out
    for k in range(1, max(len(vectors), 2)):
        other = vectors[k] if len(vectors) > 1 else "poison"
        lanes = []
        for lane, x in enumerate(order):
            if k == 1:
                lanes.append(str(x) if x < 2 * w else "poison")
            else:
                lanes.append(str(w + x - k * w) if k * w <= x < (k + 1) * w else str(lane))
        mask = ", ".join(f"i32 {x}" for x in lanes)
        out = e.op(f"shufflevector {v} {out}, {v} {other}, <{w} x i32> <{mask}>")
    return out


def from_parts(e: Emitter, parts: list[str], element: str, w: int) -> list[str]:
    """The parts as columns: by each prime factor of their number, what is as far apart is brought together."""
    n = len(parts)
    if n == 1:
        return parts
    p = _factor(n)
    streams = []
    for q in range(p):
        order = [q + p * k for k in range(w)]
        groups = [parts[k : k + p] for k in range(0, n, p)]
        streams.append(from_parts(e, [shuffled(e, g, order, element, w) for g in groups], element, w))
    return [streams[k % p][k // p] for k in range(n)]


def to_parts(e: Emitter, columns: list[str], element: str, w: int) -> list[str]:
    """Columns as parts: the same steps back."""
    n = len(columns)
    if n == 1:
        return columns
    p, out = _factor(n), []
    streams = [to_parts(e, columns[q::p], element, w) for q in range(p)]
    for group in zip(*streams):
        for t in range(p):
            order = [k % p * w + k // p for k in range(t * w, (t + 1) * w)]
            out.append(shuffled(e, list(group), order, element, w))
    return out


def _factor(n: int) -> int:
    """The least prime factor."""
    return next(p for p in range(2, n + 1) if n % p == 0)


def load(e: Emitter, t: Type, pointer: str, places: list[int], n: int, w: int) -> list[str]:
    """Columns of rows of `n`, raw, at such places from the first one on; nothing behind the last is read."""
    last = n * (w - 1) + places[-1]
    parts = []
    for start in range(0, last + 1, w):
        there = min(w, last + 1 - start)
        mask = None if there == w else masks.constant(k < there for k in range(w))
        parts.append(e.load_raw(t, e.element(pointer, t.memory, start), w, 1, mask))
    if places == list(range(n)):
        return from_parts(e, parts, t.memory, w)
    return [shuffled(e, parts, [at + n * k for k in range(w)], t.memory, w) for at in places]


def store(e: Emitter, t: Type, columns: list[str], pointer: str, w: int) -> None:
    """Writes all columns of rows, raw."""
    for k, part in enumerate(to_parts(e, columns, t.memory, w)):
        e.store_raw(t, part, e.element(pointer, t.memory, k * w), w, None)
