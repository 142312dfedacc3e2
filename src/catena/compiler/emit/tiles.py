"""The innermost function of products: one tile of C, kept in registers while all terms are added up.

A tile is a few rows by a few vectors of columns. For each term (one k) it loads the vectors of B's row, and each
element of A's column once, broadcast, and multiplies and adds them all. A is read through a stride between rows
and one for each term axis, B's columns lie side by side; so packed panels, matrices where they lie and the
windows of convolutions are all read by the same function.
"""

from __future__ import annotations

from typing import NamedTuple

from catena.compiler.emit.emitter import Emitter
from catena.compiler.types import Type, vector


class Term(NamedTuple):
    """An axis that is summed over: how often, and the elements of A and B from one step to the next."""

    extent: int
    a: int
    b: int


class Tile(NamedTuple):
    """What distinguishes one tile function from another."""

    type: Type
    width: int  # lanes of a vector
    rows: int
    columns: int
    step: int  # elements of A from row to row
    terms: tuple[Term, ...]  # outermost first; the last one's extent is an argument

    @property
    def vectors(self) -> int:
        return -(-self.columns // self.width)


def text(tile: Tile) -> str:
    """Parameters and body of `tile(a, b, c, k, across, adds)`: C's rows lie `across` elements apart, the last
    term axis has `k` steps, and the tile is added to C where `adds` is true.
    """
    e = Emitter()
    v = vector(tile.type.register, tile.width)
    zeros = ["zeroinitializer" if tile.width > 1 else _zero(tile.type)] * (tile.rows * tile.vectors)
    sums = _terms(e, tile, tile.terms, "%a", "%b", zeros, v)
    plain, adding, done = e.label(), e.label(), e.label()
    e.branch("%adds", adding, plain)
    for label, adds in ((plain, False), (adding, True)):
        e.start(label)
        _store(e, tile, sums, v, adds)
        e.jump(done)
    e.start(done)
    head = "(ptr readonly %a, ptr readonly %b, ptr %c, i64 %k, i64 %across, i1 %adds) nounwind {"
    return "\n".join([head, "entry:", *e.lines, "  ret void", "}"])


def _zero(t: Type) -> str:
    return "0.0" if t.kind == "f" else "0"


def _terms(e: Emitter, tile: Tile, terms, a: str, b: str, sums: list[str], v: str) -> list[str]:
    """A loop over the first of the terms, with pointers and sums in registers; the sums after it."""
    term, *inner = terms
    extent = term.extent if inner else "%k"
    memory = tile.type.memory
    before, head = e.block, e.label()
    e.jump(head)
    e.start(head)
    i, a_here, b_here = e.name(), e.name(), e.name()
    names = [e.name() for _ in sums]
    at = len(e.lines)
    e.lines += [""] * (3 + len(sums))
    new = _terms(e, tile, inner, a_here, b_here, names, v) if inner else _step(e, tile, a_here, b_here, names, v)
    i_next = e.op(f"add nuw nsw i64 {i}, 1")
    a_next, b_next = e.element(a_here, memory, term.a), e.element(b_here, memory, term.b)
    back = e.block
    phis = [("i64", i, "0", i_next), ("ptr", a_here, a, a_next), ("ptr", b_here, b, b_next)]
    phis += [(v, name, start, end) for name, start, end in zip(names, sums, new)]
    e.lines[at : at + len(phis)] = [f"  {x} = phi {t} [ {s}, %{before} ], [ {y}, %{back} ]" for t, x, s, y in phis]
    more = e.op(f"icmp ult i64 {i_next}, {extent}")
    after = e.label()
    e.branch(more, head, after)
    e.start(after)
    return new


def _step(e: Emitter, tile: Tile, a: str, b: str, sums: list[str], v: str) -> list[str]:
    """One term: the sums with the products of a column of A and a row of B."""
    t, out = tile.type, []
    row = [
        e.load(t, e.element(b, t.memory, j * tile.width), tile.width, mask=_mask(tile, j)) for j in range(tile.vectors)
    ]
    for i in range(tile.rows):
        x = e.splat(e.load(t, e.element(a, t.memory, i * tile.step), 1), t.register, tile.width)
        out += [_multiply_add(e, t, v, x, y, sums[i * tile.vectors + j], tile.width) for j, y in enumerate(row)]
    return out


def _multiply_add(e: Emitter, t: Type, v: str, x: str, y: str, total: str, width: int) -> str:
    if t.kind == "f":
        name = {"float": "f32", "double": "f64"}[t.register]
        name = name if width == 1 else f"v{width}{name}"
        return e.op(f"call contract {v} @llvm.fmuladd.{name}({v} {x}, {v} {y}, {v} {total})")
    return e.op(f"add {v} {total}, {e.op(f'mul {v} {x}, {y}')}")


def _mask(tile: Tile, j: int) -> str | None:
    """The lanes of vector `j` that are columns; None for all."""
    left = tile.columns - j * tile.width
    if left >= tile.width:
        return None
    return f"<{', '.join('i1 true' if k < left else 'i1 false' for k in range(tile.width))}>"


def _store(e: Emitter, tile: Tile, sums: list[str], v: str, adds: bool) -> None:
    t, c = tile.type, "%c"
    for i in range(tile.rows):
        for j in range(tile.vectors):
            at, mask = e.element(c, t.memory, j * tile.width), _mask(tile, j)
            x = sums[i * tile.vectors + j]
            if adds:
                old = e.load(t, at, tile.width, mask=mask)
                x = e.op(f"{'fadd' if t.kind == 'f' else 'add'} {v} {old}, {x}")
            e.store(t, x, at, tile.width, mask=mask)
        if i + 1 < tile.rows:
            c = e.op(f"getelementptr {t.memory}, ptr {c}, i64 %across")
