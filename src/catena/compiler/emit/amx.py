"""Blocks of products of bfloat16 and int8 by the tiles of the processor's own (AMX); see `emit.narrow_products`.

The instructions know eight registers of 16 rows by 64 bytes. One multiplies a tile of A, 16 rows of 32 terms, by one
of B, and adds the 16 x 16 sums, in float32, to a tile of C: 8192 multiplications in 16 cycles, sixteen times what
vectors of float32 do. Of B it wants pairs of terms: row i holds the terms 2i and 2i + 1 of column 0, then those of
column 1, and so on: so it is packed. Of A, whose rows are read as they lie, these pairs are neighbours anyhow.
Of int8 a row has 64 terms, in groups of four, and sums are int32, which wrap around as they do everywhere.

A block of C is two tiles by two, in registers 0 to 3, so each tile of A (4 and 5) and of B (6 and 7) that is loaded is
used twice: a load takes 8 cycles, half of what a multiplication does. Tiles of B are loaded with the hint that they
need not stay in the nearest cache, where the rows of A are that meet the next panel. All terms are added up before the
block is stored: in C, if it is whole, and numbers are stored as they are summed; else in memory of its own, from where
its rows go to C, as many rows and columns as there are, rounded to bfloat16 if C is that. A task goes along blocks of
rows, and for each along its panels, so that lines of C are written one behind the other.

An element of products of bfloat16 is this: for each 32 terms, in their order, the sums of the even and of the odd ones,
from zero, each term multiplied and added in one rounding; the two sums are added, and then what comes before. Terms
beyond the last are zeros in both operands. So it is a function of its row and column, whatever is beside them.
Subnormal operands and sums count as zero, NaN and infinity are what they are elsewhere.

The shapes of registers are set when a task begins (`ldtilecfg`), and all given back when it ends: while they are in
use, the kernel saves 8 KiB more when it changes threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from catena.compiler.emit import special, streams
from catena.compiler.emit.branches import each_way
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import TYPES, Type, vector
from catena.compiler.plan.amx import BYTES, SIDE

ROWS = 16  # of a register, each of `BYTES`
INSTRUCTIONS = {"bfloat16": "tdpbf16ps", "int8": "tdpbssd"}
ROUND = "@llvm.x86.avx512bf16.cvtne2ps2bf16.512"
SUMS = {"bfloat16": TYPES["float32"], "int8": TYPES["int32"]}
# What `ldtilecfg` reads, in words of 64 bits: the palette, then the bytes in a row of each register, then its rows.
CONFIGURATION = (1, 0, *[0x0001000100010001 * BYTES] * 2, 0, 0, 0x0101010101010101 * ROWS, 0)
LINE = 4 * SIDE  # bytes of a row of a block, and of a group of terms of a panel
STEP_OF_B = BYTES * SIDE  # bytes of a panel that one step reads
ASKED = 4  # rows of C that a step of the terms asks for, before they are written
AT_ONCE = 8  # rows that are written in a turn of a loop, where all are
PARAMETERS = (
    "ptr readonly %a, ptr readonly %b, ptr %c, i64 %steps, i64 %line, i64 %across, i64 %lanes, i64 %rows, i1 %past"
)


@lru_cache(maxsize=8)
def text(operands: str, t: Type, rounds: bool, is_low: bool) -> str:
    """Parameters and body of a block of C, of type `t`, from such operands: rows lie `line` bytes apart in A
    and `across` elements in C, so many `rows` and `lanes` are stored, `past` the caches if these are whole lines.
    Whether an instruction `rounds` two vectors of sums to bfloat16 is the processor's: it takes subnormal ones as
    zeros, and there are none. A block `is_low` where the tiles below would have no rows.
    """
    e = Emitter()
    block = e.slot(f"[{SIDE * LINE} x i8]", 64)
    below = e.element("%a", "i8", e.op(f"mul nsw i64 %line, {ROWS}"))
    line = e.op(f"mul nuw nsw i64 %across, {t.bytes}")
    for tile in range(2 if is_low else 4):
        e.do(f"call void @llvm.x86.tilezero(i8 {tile})")
    k, opened = e.begin_loop(0, "%steps")
    at = e.op(f"mul nuw nsw i64 {k}, {BYTES}")
    left = [e.element(rows, "i8", at) for rows in ("%a", below)]
    right = [e.element("%b", "i8", e.op(f"mul nuw nsw i64 {k}, {STEP_OF_B}"))]
    right.append(e.element(right[0], "i8", BYTES))
    _load(e, 4, left[0], "%line")
    _load(e, 6, right[0], LINE, "t1")
    if t.narrow:
        _ask_for_rows(e, k, block, line)
    multiply = f"call void @llvm.x86.{INSTRUCTIONS[operands]}"
    e.do(f"{multiply}(i8 0, i8 4, i8 6)")
    _load(e, 7, right[1], LINE, "t1")
    e.do(f"{multiply}(i8 1, i8 4, i8 7)")
    if not is_low:
        _load(e, 5, left[1], "%line")
        e.do(f"{multiply}(i8 2, i8 5, i8 6)")
        e.do(f"{multiply}(i8 3, i8 5, i8 7)")
    e.end_loop(opened)
    if is_low:
        _store_rows(e, operands, t, block, rounds, is_low)
    else:
        _store_block(e, operands, t, block, rounds, line)
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _store_block(e: Emitter, operands: str, t: Type, block: str, rounds: bool, line: str) -> None:
    """Writes what of a block is there, whose rows lie so many bytes apart."""
    is_whole = e.op(f"icmp eq i64 {e.op('add nuw nsw i64 %lanes, %rows')}, {2 * SIDE}")
    place = e.op("ptrtoint ptr %c to i64")
    beside = e.op(f"and i64 {e.op(f'or i64 {line}, {place}')}, {streams.LINE - 1}")
    goes_past = e.op(f"and i1 %past, {e.op(f'icmp eq i64 {beside}, 0')}")
    for whole in each_way(e, is_whole):
        if not whole:
            _store_rows(e, operands, t, block, rounds, is_low=False)
            continue
        for past in each_way(e, goes_past):
            if past or t.narrow:
                _store_whole_rows(e, operands, t, block, rounds, past)
            else:
                _store(e, "%c", line)


def _ask_for_rows(e: Emitter, step: str, block: str, line: str) -> None:
    """Asks for some rows of C, a line each, which else would be waited for; of a block that goes past the caches, for
    what is near. All at once would take the places of lines of B on their way here. Tiles of wide sums are stored as
    they are, and waiting for their lines ends no sooner.
    """
    place, apart = e.op(f"select i1 %past, ptr {block}, ptr %c"), e.op(f"select i1 %past, i64 {LINE}, i64 {line}")
    row = e.most(e.least(e.op(f"mul nuw nsw i64 {step}, {ASKED}"), e.op(f"sub nsw i64 %rows, {ASKED}")), 0)
    at = e.element(place, "i8", e.op(f"mul nuw nsw i64 {row}, {apart}"))
    for _ in range(ASKED):
        e.do(f"call void @llvm.prefetch.p0(ptr {at}, i32 1, i32 3, i32 1)")
        at = e.element(at, "i8", apart)


def _store(e: Emitter, place: str, line: str | int, is_low: bool = False) -> None:
    """Writes the four tiles of a block whose rows lie so many bytes apart, or the upper two."""
    places = [place, e.element(place, "i8", BYTES)]
    if not is_low:
        below = e.element(place, "i8", e.op(f"mul nuw nsw i64 {line}, {ROWS}"))
        places += [below, e.element(below, "i8", BYTES)]
    for tile, at in enumerate(places):
        e.do(f"call void @llvm.x86.tilestored64(i8 {tile}, ptr {at}, i64 {line})")


def _store_rows(e: Emitter, operands: str, t: Type, block: str, rounds: bool, is_low: bool) -> None:
    """Writes as much of the tiles as is there, by way of memory of its own."""
    _store(e, block, LINE, is_low)
    mask = lanes_of(e, "%lanes", SIDE)
    row, opened = e.begin_loop(0, "%rows")
    raw = _row(e, operands, t, e.element(block, "i8", e.op(f"mul nuw nsw i64 {row}, {LINE}")), rounds)
    e.store_raw(t, raw, e.element("%c", t.memory, e.op(f"mul nuw nsw i64 {row}, %across")), SIDE, mask)
    e.end_loop(opened)


def _store_whole_rows(e: Emitter, operands: str, t: Type, block: str, rounds: bool, past: bool) -> None:
    """Writes all of the four tiles in the same way, or past the caches; some rows in a turn: the processor looks ahead
    into the next block's terms.
    """
    _store(e, block, LINE)
    how = f"align {streams.LINE}, {streams.PAST}" if past else f"align {t.bytes}"
    first, opened = e.begin_loop(0, SIDE, AT_ONCE)
    of = e.element(block, "i8", e.op(f"mul nuw nsw i64 {first}, {LINE}"))
    to = e.element("%c", t.memory, e.op(f"mul nuw nsw i64 {first}, %across"))
    for row in range(AT_ONCE):
        raw = _row(e, operands, t, e.element(of, "i8", row * LINE), rounds)
        e.do(f"store {vector(t.memory, SIDE)} {raw}, ptr {to}, {how}")
        to = e.element(to, t.memory, "%across")
    e.end_loop(opened)


def _row(e: Emitter, operands: str, t: Type, place: str, rounds: bool) -> str:
    """A row of sums as C holds it."""
    if t.narrow and rounds:
        low, high = (e.load(SUMS[operands], e.element(place, "i8", at), SIDE // 2) for at in (0, LINE // 2))
        halves = f"<{SIDE // 2} x float>"
        x = e.op(f"call <{SIDE} x bfloat> {ROUND}({halves} {high}, {halves} {low})")
        return e.op(f"bitcast <{SIDE} x bfloat> {x} to {vector(t.memory, SIDE)}")
    x = e.load(SUMS[operands], place, SIDE)
    return e.narrow(special.round_bfloat16(e, x, SIDE) if t.narrow else x, t, SIDE)


def lanes_of(e: Emitter, there: str, width: int, first: int = 0) -> str:
    """Which of so many columns from the first one on are there."""
    order = ", ".join(f"i16 {first + i}" for i in range(width))
    count = e.splat(e.op(f"trunc i64 {there} to i16"), "i16", width)
    return e.op(f"icmp ult <{width} x i16> <{order}>, {count}")


def _load(e: Emitter, tile: int, place: str, line: str | int, hint: str = "") -> None:
    e.do(f"call void @llvm.x86.tileloadd{hint}64(i8 {tile}, ptr {place}, i64 {line})")


@contextmanager
def tiles(e: Emitter) -> Iterator[None]:
    """What is written while this goes on may use the registers, all of which are whole."""
    e.do(f"call void @llvm.x86.ldtilecfg(ptr {_configuration(e)})")
    yield
    e.do("call void @llvm.x86.tilerelease()")


def _configuration(e: Emitter) -> str:
    """Where the shapes of the registers are written."""
    place = e.slot(f"[{len(CONFIGURATION)} x i64]", 64)
    for i, word in enumerate(CONFIGURATION):
        e.do(f"store i64 {word}, ptr {e.element(place, 'i64', i)}")
    return place
