"""The innermost function of products: one tile of C, kept in registers while all terms are added up.

A tile is a few rows by a few vectors of columns. For each term (one k) it loads the vectors of B's row, and each
element of A's column once, broadcast, and multiplies and adds them all. A is read through a stride between rows
and one for each term axis, B's columns lie side by side; so packed panels, matrices where they lie and the
windows of convolutions are all read by the same function. Strides of the innermost loop are arguments, and so are the
columns in a vector that is not full: products of different sizes share one function.
"""

from __future__ import annotations

from typing import NamedTuple

from catena.compiler.emit import masks
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.symbols import remembered
from catena.compiler.graph.types import Type, vector


class Term(NamedTuple):
    """An axis that is summed over: how often, and the elements of A and B from one step to the next."""

    extent: int | str
    a: int | str
    b: int | str


class Tile(NamedTuple):
    """What distinguishes one tile function from another."""

    type: Type
    width: int  # lanes of a vector
    rows: int
    vectors: int
    last: int  # lanes of the last vector that are columns; `ARGUMENT` where an argument tells it
    outer: tuple[Term, ...]  # term axes around the innermost one, outermost first
    adds: bool  # whether the tile may be added to what is in C
    ragged: bool = False  # whether an argument tells how many of the rows there are


ARGUMENT = 0
LINE = 64  # bytes
ROWS_AHEAD = 8  # of B, that packing asks for before it comes to them
PARAMETERS = ("ptr readonly %a, ptr readonly %b, ptr %c, i64 %k, i64 %step, i64 %by_a, i64 %by_b, i64 %across, "
              "i64 %lanes, i1 %adds, i64 %rows")  # fmt: skip


@remembered(256)
def text(tile: Tile) -> str:
    """Parameters and body of a tile: rows lie `step` elements apart in A and `across` in C, the innermost term
    axis has `k` steps of `by_a` and `by_b` elements, so many `lanes` of the last vector are columns, and the sums are
    added to C where they may be and `adds` is true. Of a ragged tile, `rows` are there; in the place of each of
    the others the last of A is read again, and what that gives goes to the stack: a row's bits do not hang on its tile.
    """
    e = Emitter()
    v = vector(tile.type.register, tile.width)
    if tile.last == ARGUMENT:
        _note_lanes(e, tile)
    there = [e.op(f"icmp ugt i64 %rows, {i}") if tile.ragged and i else None for i in range(tile.rows)]
    rows = ["%a"]
    for is_there in there[1:]:
        step = "%step" if is_there is None else e.op(f"select i1 {is_there}, i64 %step, i64 0")
        rows.append(e.element(rows[-1], tile.type.memory, step))
    if tile.adds and tile.rows > 1:  # a row alone comes back to its lines soon
        _fetch(e, tile)
    zeros = ["zeroinitializer" if tile.width > 1 else _zero(tile.type)] * (tile.rows * tile.vectors)
    sums = _terms(e, tile, tile.outer, rows, "0", "%b", zeros, v)
    if tile.adds:
        plain, adding, done = e.label(), e.label(), e.label()
        e.branch("%adds", adding, plain)
        for label, adds in ((plain, False), (adding, True)):
            e.start(label)
            _store(e, tile, sums, v, adds, there)
            e.jump(done)
        e.start(done)
    else:
        _store(e, tile, sums, v, False, there)
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _fetch(e: Emitter, tile: Tile) -> None:
    """Asks for the lines of C that a long sum is added to, while it is computed: each row lies in another page, so that
    processors do not guess them.
    """
    row, opened = e.begin_loop(0, "%rows")
    place = e.element("%c", tile.type.memory, e.op(f"mul nsw i64 {row}, %across"))
    for at in range(0, tile.vectors * tile.width, LINE // tile.type.bytes):
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(place, tile.type.memory, at)}, i32 1, i32 3, i32 1)")
    e.end_loop(opened)


PACKING = "ptr readonly %b, ptr noalias %to, i64 %k, i64 %by_b, i64 %lanes"


class Panel(NamedTuple):
    """What distinguishes one packing function from another (see `Tile`)."""

    type: Type
    width: int
    vectors: int
    last: int


@remembered(256)
def packing(panel: Panel) -> str:
    """Parameters and body of a function that copies `k` rows of B, `by_b` elements apart, to rows of whole vectors, one
    after the other. It asks for lines some rows before it comes to them: from row to row, processors do not.
    """
    e, t, width = Emitter(), panel.type, panel.width
    tile = Tile(t, width, 0, panel.vectors, panel.last, (), False)
    if panel.last == ARGUMENT:
        _note_lanes(e, tile)
    k, opened = e.begin_loop(0, "%k")
    row = e.element("%b", t.memory, e.op(f"mul nsw i64 {k}, %by_b"))
    to = e.element("%to", t.memory, e.op(f"mul nuw nsw i64 {k}, {panel.vectors * width}"))
    later = e.element(row, t.memory, e.op(f"mul nsw i64 %by_b, {ROWS_AHEAD}"))
    for j in range(panel.vectors):
        x = e.load(t, e.element(row, t.memory, j * width), width, mask=_mask(e, tile, j))
        e.store(t, x, e.element(to, t.memory, j * width), width)
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(later, t.memory, j * width)}, i32 0, i32 3, i32 1)")
    e.end_loop(opened)
    return "\n".join([f"({PACKING}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _zero(t: Type) -> str:
    return "0.0" if t.kind == "f" else "0"


def _terms(e: Emitter, tile: Tile, outer, rows: list[str], at: str, b: str, sums: list[str], v: str) -> list[str]:
    """A loop over the first of the term axes, with the place in A's rows, the pointer to B and the sums in
    registers; the sums after it.
    """
    term = outer[0] if outer else Term("%k", "%by_a", "%by_b")
    before, head = e.block, e.label()
    e.jump(head)
    e.start(head)
    i, at_here, b_here = e.name(), e.name(), e.name()
    names = [e.name() for _ in sums]
    line = len(e.lines)
    e.lines += [""] * (3 + len(sums))
    if outer:
        new = _terms(e, tile, outer[1:], rows, at_here, b_here, names, v)
    else:
        new = _step(e, tile, rows, at_here, b_here, names, v)
    i_next, at_next = e.op(f"add nuw nsw i64 {i}, 1"), e.op(f"add nsw i64 {at_here}, {term.a}")
    b_next = e.element(b_here, tile.type.memory, term.b)
    back = e.block
    phis = [("i64", i, "0", i_next), ("i64", at_here, at, at_next), ("ptr", b_here, b, b_next)]
    phis += [(v, name, start, end) for name, start, end in zip(names, sums, new)]
    e.lines[line : line + len(phis)] = [f"  {x} = phi {t} [ {s}, %{before} ], [ {y}, %{back} ]" for t, x, s, y in phis]
    more = e.op(f"icmp ult i64 {i_next}, {term.extent}")
    after = e.label()
    e.branch(more, head, after)
    e.start(after)
    return new


def _step(e: Emitter, tile: Tile, rows: list[str], at: str, b: str, sums: list[str], v: str) -> list[str]:
    """One term: the sums with the products of a column of A and a row of B."""
    t, out = tile.type, []
    ys = [
        e.load(t, e.element(b, t.memory, j * tile.width), tile.width, mask=_mask(e, tile, j))
        for j in range(tile.vectors)
    ]
    for i, row in enumerate(rows):
        x = e.splat(e.load(t, e.element(row, t.memory, at), 1), t.register, tile.width)
        out += [_multiply_add(e, t, v, x, y, sums[i * tile.vectors + j], tile.width) for j, y in enumerate(ys)]
    return out


def _multiply_add(e: Emitter, t: Type, v: str, x: str, y: str, total: str, width: int) -> str:
    if t.kind == "f":
        name = {"float": "f32", "double": "f64"}[t.register]
        name = name if width == 1 else f"v{width}{name}"
        return e.op(f"call contract {v} @llvm.fmuladd.{name}({v} {x}, {v} {y}, {v} {total})")
    return e.op(f"add {v} {total}, {e.op(f'mul {v} {x}, {y}')}")


def _note_lanes(e: Emitter, tile: Tile) -> None:
    """Which lanes of the last vector are columns, as integers that are as wide as the data: processors without masks
    of their own would widen single bits again in each iteration.
    """
    t = f"i{8 * tile.type.bytes}"
    v, order = vector(t, tile.width), ", ".join(f"{t} {k}" for k in range(tile.width))
    count = "%lanes" if t == "i64" else e.op(f"trunc i64 %lanes to {t}")
    some = e.op(f"icmp ult {v} <{order}>, {e.splat(count, t, tile.width)}")
    e.lines.append(f"  %columns = sext {vector('i1', tile.width)} {some} to {v}")


def _mask(e: Emitter, tile: Tile, j: int) -> str | None:
    """The lanes of vector `j` that are columns; None for all."""
    if tile.last == tile.width or j < tile.vectors - 1:
        return None
    if tile.last != ARGUMENT:
        return f"<{', '.join('i1 true' if k < tile.last else 'i1 false' for k in range(tile.width))}>"
    return e.op(f"icmp slt {vector(f'i{8 * tile.type.bytes}', tile.width)} %columns, zeroinitializer")


def _store(e: Emitter, tile: Tile, sums: list[str], v: str, adds: bool, there: list[str | None]) -> None:
    t, row = tile.type, "%c"
    for i in range(tile.rows):
        nowhere = masks.nowhere(e, tile.vectors * tile.width * t.bytes, written=True) if there[i] else None
        c = row if nowhere is None else e.op(f"select i1 {there[i]}, ptr {row}, ptr {nowhere}")
        for j in range(tile.vectors):
            at, mask = e.element(c, t.memory, j * tile.width), _mask(e, tile, j)
            x = sums[i * tile.vectors + j]
            if adds:
                old = e.load(t, at, tile.width, mask=mask)
                x = e.op(f"{'fadd' if t.kind == 'f' else 'add'} {v} {old}, {x}")
            e.store(t, x, at, tile.width, mask=mask)
        if i + 1 < tile.rows:
            row = e.op(f"getelementptr {t.memory}, ptr {row}, i64 %across")
