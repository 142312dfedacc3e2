"""The innermost function of products: one tile of C, kept in registers while all terms are added up.

A tile is a few rows by a few vectors of columns. For each term (one k) it loads the vectors of B's row, and each
element of A's column once, broadcast, and multiplies and adds them all. A is read through a stride between rows
and one for each term axis, B's columns lie side by side; so packed panels, matrices where they lie and the
windows of convolutions are all read by the same function. Strides of the innermost loop are arguments, and so are the
columns in a vector that is not full; those of the loops around it that may hang on an extent stand in a table. So
products of different sizes share one function.
"""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.emit import masks, subnormal_products
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.subnormal_products import MET, MET_EARLY
from catena.compiler.graph.keys import remembered
from catena.compiler.graph.types import Type, vector
from catena.core.named import NamedTuple


class Term(NamedTuple):
    """An axis that is summed over: how often, and how far its steps go in A and B, None where a table tells it."""

    extent: int | str
    a: int | str | None
    b: int | str | None


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
    watched: bool = False  # whether it leaves what has subnormal numbers to `subnormal_products`, where it is told to
    keeps: bool = False  # whether it copies the rows of B that it reads, for the tiles after it
    even: bool = False  # whether the terms of the innermost axis are an even number
    fetches: bool = False  # whether it asks for what the tile below reads of A, where rows lie side by side

    @property
    def parameters(self) -> str:
        to = ", ptr noalias %to, ptr %tile"
        others = (", ptr %watch", self.watched), (to, self.keeps), (", ptr readonly %far", self.is_far)
        return PARAMETERS + "".join(text * is_there for text, is_there in others)

    @property
    def is_far(self) -> bool:
        """Whether steps of the outer term axes stand in a table."""
        return any(None in x for x in self.outer)

    @property
    def may_pair(self) -> bool:
        """Whether two terms are done in one round of the innermost loop, if they are an even number: what counts rounds
        takes ports that multiply. Windows, whose loops are short, were 1 % slower so.
        """
        return not self.outer and self.rows * self.vectors >= SUMS_OF_TWO

    @property
    def terms(self) -> int:
        """How many are done in one round."""
        return 2 if self.even and self.may_pair else 1


ARGUMENT = 0
LINE = 64  # bytes
FIRST_TERMS = 4  # of a tile that is watched, after which it looks out first
LONGER = 4  # times as many terms as before are done until it does again
SUMS_OF_TWO = 12  # of a tile, from which one round is two terms
ROWS_AHEAD = 8  # of B, that packing asks for before it comes to them
PARAMETERS = ("ptr readonly %a, ptr readonly %b, ptr %c, i64 %k, i64 %step, i64 %by_a, i64 %by_b, i64 %across, "
              "i64 %lanes, i1 %adds, i64 %rows")  # fmt: skip


@remembered(256)
def text(tile: Tile) -> str:
    """Parameters and body of a tile: rows lie `step` elements apart in A and `across` in C, the innermost term
    axis has `k` steps of `by_a` and `by_b` elements, so many `lanes` of the last vector are columns, and the sums are
    added to C where they may be and `adds` is true. Of a ragged tile, `rows` are there; in the place of each of
    the others the last of A is read again, and what that gives goes to the stack: a row's bits do not hang on its tile.
    A tile that keeps B writes whole vectors of it, one after the other, from `to` on: what waits for B's lines, which
    lie apart, multiplies meanwhile; it is told the `tile` that does not, as `packing_first` is, which calls that one. A
    tile that is watched, where `watch` is an address, leaves C as it is if the processor has met subnormal numbers, be
    it before, and says so there.
    """
    e = Emitter()
    v = vector(tile.type.register, tile.width)
    if tile.last == ARGUMENT:
        _note_lanes(e, tile)
    if tile.watched and not tile.keeps:  # the tiles after that read what it copies
        subnormal_products.look_out(e)
    there = [e.op(f"icmp ugt i64 %rows, {i}") if tile.ragged and i else None for i in range(tile.rows)]
    rows = ["%a"]
    for is_there in there[1:]:
        step = "%step" if is_there is None else e.op(f"select i1 {is_there}, i64 %step, i64 0")
        rows.append(e.element(rows[-1], tile.type.memory, step))
    if tile.adds and tile.rows > 1:  # a row alone comes back to its lines soon
        _fetch(e, tile)
    zeros = ["zeroinitializer" if tile.width > 1 else _zero(tile.type)] * (tile.rows * tile.vectors)
    outer = _told_by_table(e, tile.outer)
    sums = (_watched if tile.watched else _terms)(e, tile, outer, rows, "0", "%b", zeros, v)
    _finish(e, tile, sums, v, there, "%c")
    return "\n".join([f"({tile.parameters}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _told_by_table(e: Emitter, outer: tuple[Term, ...]) -> list[Term]:
    """The axes with steps that are read in the first block of a function, where its text does not tell them."""
    found = []
    for i, term in enumerate(outer):
        names = [x if x is not None else _from_table(e, 2 * i + k) for k, x in enumerate((term.a, term.b))]
        found.append(Term(term.extent, *names))
    return found


def _from_table(e: Emitter, at: int) -> str:
    name = f"%far{at}"
    e.slots += [f"  {name}_at = getelementptr i64, ptr %far, i64 {at}", f"  {name} = load i64, ptr {name}_at"]
    return name


def _finish(e: Emitter, tile: Tile, sums: list[str], v: str, there: list[str | None], c: str) -> None:
    """Stores the sums, or adds them to what is in C."""
    if not tile.adds:
        _store(e, tile, sums, v, False, there, c)
        return
    for adds in each_way(e, "%adds"):
        _store(e, tile, sums, v, adds, there, c)


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
    source: Type  # of what is read, which may be narrower


@remembered(256)
def packing(panel: Panel) -> str:
    """Parameters and body of a function that copies `k` rows of B, `by_b` elements apart, to rows of whole vectors, one
    after the other. It asks for lines some rows before it comes to them: from row to row, processors do not.
    """
    e = Emitter()
    _pack(e, panel)
    return "\n".join([f"({PACKING}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


@remembered(256)
def packing_first(panel: Panel, watched: bool) -> str:
    """The same, and then the function `tile` on the copy: in place of a tile that keeps B where it does so for few
    columns, since it is a quarter of that one's text.
    """
    e = Emitter()
    _pack(e, panel)
    row = panel.vectors * panel.width
    e.do(f"call void %tile(ptr %a, ptr %to, ptr %c, i64 %k, i64 %step, i64 %by_a, i64 {row}, i64 %across, i64 %lanes, "
         f"i1 %adds, i64 %rows{', ptr %watch' * watched})")  # fmt: skip
    tile = Tile(panel.type, panel.width, 0, panel.vectors, panel.last, (), False, watched=watched, keeps=True)
    return "\n".join([f"({tile.parameters}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _pack(e: Emitter, panel: Panel) -> None:
    """The loop of a function that copies rows of B."""
    t, width, source = panel.type, panel.width, panel.source
    tile = Tile(t, width, 0, panel.vectors, panel.last, (), False)
    if panel.last == ARGUMENT:
        _note_lanes(e, tile)
    k, opened = e.begin_loop(0, "%k")
    row = e.element("%b", source.memory, e.op(f"mul nsw i64 {k}, %by_b"))
    to = e.element("%to", t.memory, e.op(f"mul nuw nsw i64 {k}, {panel.vectors * width}"))
    later = e.element(row, source.memory, e.op(f"mul nsw i64 %by_b, {ROWS_AHEAD}"))
    for j in range(panel.vectors):
        x = e.load(source, e.element(row, source.memory, j * width), width, mask=_mask(e, tile, j))
        e.store(t, x, e.element(to, t.memory, j * width), width)
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(later, source.memory, j * width)}, i32 0, i32 3, i32 1)")
    e.end_loop(opened)


@remembered(256)
def turning(panel: Panel) -> str:
    """The same of a B whose terms lie side by side, its columns `by_b` elements apart: squares are transposed in
    registers, the last of the terms by one that overlaps the one before.
    """
    e, width = Emitter(), panel.width
    partial = panel.last != width
    if panel.vectors > partial:
        j, opened = e.begin_loop(0, panel.vectors - partial)
        _turn(e, panel, j, None)
        e.end_loop(opened)
    if partial:
        _turn(e, panel, str(panel.vectors - 1), "%lanes" if panel.last == ARGUMENT else str(panel.last))
    return "\n".join([f"({PACKING}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _turn(e: Emitter, panel: Panel, j: str, lanes: str | None) -> None:
    """Writes vector `j` of the rows of a panel. Where so many of its `lanes` are columns, the last of these is read in
    the place of the others.
    """
    width, memory, source = panel.width, panel.type.memory, panel.source
    first = e.element("%b", source.memory, e.op(f"mul nsw i64 {e.op(f'mul nuw nsw i64 {j}, {width}')}, %by_b"))
    to = e.element("%to", memory, e.op(f"mul nuw nsw i64 {j}, {width}"))
    steps = ["%by_b"] * (width - 1)
    if lanes is not None:
        steps = [e.op(f"select i1 {e.op(f'icmp ugt i64 {lanes}, {i}')}, i64 %by_b, i64 0") for i in range(1, width)]
    last = e.op(f"sub nsw i64 %k, {width}")
    k, opened = e.begin_loop(0, "%k", width)
    at, v = e.least(k, last), vector(memory, width)
    places = [e.element(first, source.memory, at)]
    for step in steps:
        places.append(e.element(places[-1], source.memory, step))
    rows = [e.load(source, place, width) for place in places]
    row = panel.vectors * width
    start = e.element(to, memory, e.op(f"mul nuw nsw i64 {at}, {row}"))
    for i, x in enumerate(e.transposed(rows, memory)):
        e.do(f"store {v} {x}, ptr {e.element(start, memory, i * row)}, align {panel.type.bytes}")
    e.end_loop(opened)


def _zero(t: Type) -> str:
    return "0.0" if t.kind == "f" else "0"


class Loop(NamedTuple):
    """What changes from term to term: how many were before, the place in A's rows, the pointer to B, the sums."""

    i: str
    at: str
    b: str
    sums: list[str]


def _terms(e: Emitter, tile: Tile, outer, rows: list[str], at: str, b: str, sums: list[str], v: str) -> list[str]:
    """A loop over the first of the term axes, with the place in A's rows, the pointer to B and the sums in
    registers; the sums after it.
    """
    term = outer[0] if outer else Term("%k", "%by_a", "%by_b")
    return _loop(e, Loop("0", at, b, sums), v, lambda here: _round(e, tile, outer, term, rows, here, v)).sums


def _watched(e: Emitter, tile: Tile, outer, rows: list[str], at: str, b: str, sums: list[str], v: str) -> list[str]:
    """The same in parts, after each of which the tile looks out: where many numbers are subnormal, a few terms show it,
    and take as long as a tile without any. Each part is several times as long as what came before.
    """

    def part(before: Loop) -> tuple[Loop, str]:
        stop = e.least(e.most(e.op(f"mul nuw nsw i64 {before.i}, {LONGER}"), FIRST_TERMS), "%k")
        term = Term(stop, "%by_a", "%by_b")
        here = _loop(e, before, v, lambda here: _round(e, tile, outer, term, rows, here, v))
        more = e.op(f"icmp ult i64 {here.i}, %k")
        subnormal_products.look_out(e, e.op(f"select i1 {more}, i64 {MET_EARLY}, i64 {MET}"))
        return here, more

    return _loop(e, Loop("0", at, b, sums), v, part).sums


def _loop(e: Emitter, start: Loop, v: str, body: Callable[[Loop], tuple[Loop, str]]) -> Loop:
    """A loop of which `body` writes a round: what it leaves, and whether there are more."""
    before, head = e.block, e.label()
    e.jump(head)
    e.start(head)
    first, line = Loop(e.name(), e.name(), e.name(), [e.name() for _ in start.sums]), len(e.lines)
    e.lines += [""] * (3 + len(start.sums))
    here, more = body(first)
    types = ("i64", "i64", "ptr", *[v] * len(start.sums))
    changing = zip(types, *((x.i, x.at, x.b, *x.sums) for x in (first, start, here)))
    phis = [f"  {x} = phi {t} [ {s}, %{before} ], [ {y}, %{e.block} ]" for t, x, s, y in changing]
    e.lines[line : line + len(phis)] = phis
    after = e.label()
    e.branch(more, head, after)
    e.start(after)
    return here


def _round(e: Emitter, tile: Tile, outer, term: Term, rows: list[str], here: Loop, v: str) -> tuple[Loop, str]:
    """One term of an axis, or two of the innermost one; and whether there are more."""
    for _ in range(1 if outer else tile.terms):
        new = _term(e, tile, outer, rows, here, v)
        i, at = e.op(f"add nuw nsw i64 {here.i}, 1"), e.op(f"add nsw i64 {here.at}, {term.a}")
        here = Loop(i, at, e.element(here.b, tile.type.memory, term.b), new)
    return here, e.op(f"icmp ult i64 {here.i}, {term.extent}")


def _term(e: Emitter, tile: Tile, outer, rows: list[str], here: Loop, v: str) -> list[str]:
    """The sums after one more term, or all those of the axes inside."""
    if outer:
        return _terms(e, tile, outer[1:], rows, here.at, here.b, here.sums, v)
    return _step(e, tile, rows, here.at, here.b, here.sums, v, here.i)


def _step(e: Emitter, tile: Tile, rows: list[str], at: str, b: str, sums: list[str], v: str, i: str) -> list[str]:
    """Term `i`: the sums with the products of a column of A and a row of B."""
    t, out, ys = tile.type, [], _row_of_b(e, tile, b)
    if tile.keeps:
        _keep(e, tile, b, i, ys)
    if tile.fetches:
        _fetch_below(e, tile, e.element(rows[-1], t.memory, at))
    for k, row in enumerate(rows):
        x = e.splat(e.load(t, e.element(row, t.memory, at), 1), t.register, tile.width)
        out += [_multiply_add(e, t, v, x, y, sums[k * tile.vectors + j], tile.width) for j, y in enumerate(ys)]
    return out


def _row_of_b(e: Emitter, tile: Tile, b: str) -> list[str]:
    t = tile.type
    return [
        e.load(t, e.element(b, t.memory, j * tile.width), tile.width, mask=_mask(e, tile, j))
        for j in range(tile.vectors)
    ]


def _keep(e: Emitter, tile: Tile, b: str, i: str, ys: list[str]) -> None:
    """Writes row `i` of B to `to`, and asks for lines some rows ahead, as processors do not from row to row."""
    t, width = tile.type, tile.width
    to = e.element("%to", t.memory, e.op(f"mul nuw nsw i64 {i}, {tile.vectors * width}"))
    later = e.element(b, t.memory, e.op(f"mul nsw i64 %by_b, {ROWS_AHEAD}"))
    for j, y in enumerate(ys):
        e.store(t, y, e.element(to, t.memory, j * width), width)
        e.do(f"call void @llvm.prefetch.p0(ptr {e.element(later, t.memory, j * width)}, i32 0, i32 3, i32 1)")


def _fetch_below(e: Emitter, tile: Tile, last: str) -> None:
    """Asks for the line of A that holds the last row of the tile below: processors do not guess it where each term lies
    in another line, and the third level takes as long to bring it as several terms do.
    """
    later = e.element(last, tile.type.memory, tile.rows)
    e.do(f"call void @llvm.prefetch.p0(ptr {later}, i32 0, i32 2, i32 1)")


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


def _store(e: Emitter, tile: Tile, sums: list[str], v: str, adds: bool, there: list[str | None], row: str) -> None:
    t = tile.type
    for i in range(tile.rows):
        c = _place(e, tile, row, there[i], written=True)
        before = _place(e, tile, row, there[i], written=False) if adds else c
        for j in range(tile.vectors):
            at, mask = e.element(c, t.memory, j * tile.width), _mask(e, tile, j)
            x = sums[i * tile.vectors + j]
            if adds:
                place = at if before == c else e.element(before, t.memory, j * tile.width)
                x = e.op(f"{'fadd' if t.kind == 'f' else 'add'} {v} {e.load(t, place, tile.width, mask=mask)}, {x}")
            e.store(t, x, at, tile.width, mask=mask)
        if i + 1 < tile.rows:
            row = e.op(f"getelementptr {t.memory}, ptr {row}, i64 %across")


def _place(e: Emitter, tile: Tile, row: str, is_there: str | None, written: bool) -> str:
    """Where a row of C is read or written. Of one that is not there, zeros are read: what else lies on the stack may be
    subnormal numbers, which the processor notes, so that the tiles after this one would look for them.
    """
    if is_there is None:
        return row
    nowhere = masks.nowhere(e, tile.vectors * tile.width * tile.type.bytes, written)
    return e.op(f"select i1 {is_there}, ptr {row}, ptr {nowhere}")
