"""Blocks of products by parts (see `emit.split_products`) whose numbers are so large or small that their parts, or
products of these, may not be what they must: what of them is not is computed anew, by sums of floats.

An element is, if its row or column has a number of 2^121 or more, infinite or no number, or greatest ones whose product
is; or if it is less than what numbers that count as zero, since they are subnormal, may be together, and its row or
column, or a product of theirs, has such small ones. All that hangs on the row and the column alone.

Then it is a sum of products in double precision, which loses none of them, one added after the other.
"""

from __future__ import annotations

from functools import lru_cache

from catena.compiler.emit import amx, masks
from catena.compiler.emit.branches import each_way, when
from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import TYPES
from catena.compiler.plan.amx import SIDE

FLOAT = TYPES["float32"]
INTS, FLOATS, DOUBLES, MASK = (f"<{SIDE} x {t}>" for t in ("i32", "float", "double", "i1"))
BIAS = 127  # of a float's exponent
LARGE = 120  # exponents up to which numbers and products are what they must be
SMALL = -100  # likewise, of the least ones: parts are 2^-24 of them at least
LOST = -97  # of what is lost of a term, at most, times the greatest number of the other operand, times 2^24
PARAMETERS = (
    "ptr readonly %sizes_of_a, ptr readonly %sizes_of_b, ptr readonly %a, ptr readonly %b, ptr %c, i64 %terms, "
    "i64 %a_by_row, i64 %a_by_term, i64 %b_by_column, i64 %b_by_term, i64 %across, i64 %rows, i64 %lanes"
)


@lru_cache(maxsize=1)
def text() -> str:
    """Parameters and body of what looks through a block of C, and computes what of it it must."""
    e = Emitter()
    (least_a, most_a), (least_b, most_b) = (_exponents(e, x) for x in ("%sizes_of_a", "%sizes_of_b"))
    least = [_reduced(e, x, "smin") for x in (least_a, least_b)]
    most = [_reduced(e, x, "smax") for x in (most_a, most_b)]
    too_small = e.op(f"icmp slt i32 {_extreme(e, least, 'smin')}, {SMALL}")
    too_large = e.op(f"icmp sgt i32 {_extreme(e, most, 'smax')}, {LARGE}")
    with when(e, e.op(f"or i1 {too_small}, {too_large}")):
        _look(e, (least_a, most_a), (least_b, most_b))
    return "\n".join([f"({PARAMETERS}) nounwind {{", "entry:", *e.slots, *e.lines, "  ret void", "}"])


def _exponents(e: Emitter, sizes: str) -> list[str]:
    """Of the least numbers of each row or column, and of the greatest ones."""
    found = []
    for kind in range(2):
        x = e.op(f"load {INTS}, ptr {e.element(sizes, 'i32', kind * SIDE)}, align 4")
        found.append(e.op(f"sub {INTS} {e.op(f'lshr {INTS} {x}, splat (i32 23)')}, splat (i32 {BIAS})"))
    return found


def _reduced(e: Emitter, x: str, kind: str) -> str:
    return e.op(f"call i32 @llvm.vector.reduce.{kind}.v{SIDE}i32({INTS} {x})")


def _extreme(e: Emitter, pair: list[str], kind: str, type_: str = "i32", name: str = "i32") -> str:
    """The least or greatest of two exponents and that of a product."""
    x, y = pair
    both = e.op(f"call {type_} @llvm.{kind}.{name}({type_} {x}, {type_} {y})")
    return e.op(f"call {type_} @llvm.{kind}.{name}({type_} {both}, {type_} {e.op(f'add {type_} {x}, {y}')})")


def _look(e: Emitter, of_a: tuple[str, str], of_b: tuple[str, str]) -> None:
    """Row by row, computes what must be anew."""
    kept = e.slot(f"[{2 * SIDE} x i32]", 64)
    for kind, x in enumerate(of_a):
        e.do(f"store {INTS} {x}, ptr {e.element(kept, INTS, kind)}, align 64")
    there = amx.lanes_of(e, "%lanes", SIDE)
    zeros = e.op("call i64 @llvm.ctlz.i64(i64 %terms, i1 false)")
    lost = e.op(f"trunc i64 {e.op(f'sub nsw i64 {64 + LOST}, {zeros}')} to i32")
    name = f"v{SIDE}i32"
    row, opened = e.begin_loop(0, "%rows")
    own = [e.op(f"load i32, ptr {e.element(kept, 'i32', e.op(f'add i64 {row}, {k * SIDE}'))}, align 4") for k in (0, 1)]
    least, most = ([e.splat(x, "i32", SIDE), y] for x, y in zip(own, of_b))
    large = e.op(f"icmp sgt {INTS} {_extreme(e, most, 'smax', INTS, name)}, splat (i32 {LARGE})")
    small = e.op(f"icmp slt {INTS} {_extreme(e, least, 'smin', INTS, name)}, splat (i32 {SMALL})")
    place = e.element("%c", "i8", e.op(f"mul nuw nsw i64 {row}, %across"))
    raw = e.op(
        f"call {INTS} @llvm.masked.load.v{SIDE}i32.p0(ptr {place}, i32 4, {MASK} {there}, {INTS} zeroinitializer)"
    )
    bits = e.op(f"and {INTS} {raw}, splat (i32 2147483647)")
    exponent = e.op(f"sub {INTS} {e.op(f'lshr {INTS} {bits}, splat (i32 23)')}, splat (i32 {BIAS})")
    greatest = e.op(f"call {INTS} @llvm.smax.{name}({INTS} {most[0]}, {INTS} {most[1]})")
    greatest = e.op(f"call {INTS} @llvm.smax.{name}({INTS} {greatest}, {INTS} zeroinitializer)")
    limit = e.op(f"add {INTS} {greatest}, {e.splat(lost, 'i32', SIDE)}")
    hidden = e.op(f"and {MASK} {small}, {e.op(f'icmp sle {INTS} {exponent}, {limit}')}")
    anew = e.op(f"and {MASK} {e.op(f'or {MASK} {large}, {hidden}')}, {there}")
    some = e.op(f"call i1 @llvm.vector.reduce.or.v{SIDE}i1({MASK} {anew})")
    with when(e, some):
        sums = _sums(e, row, there)
        masked = f"ptr {place}, i32 4, {MASK} {anew}"
        e.do(f"call void @llvm.masked.store.v{SIDE}f32.p0({FLOATS} {sums}, {masked})")
    e.end_loop(opened)


def _sums(e: Emitter, row: str, there: str) -> str:
    """The sums of a row's products with all columns."""
    sums = e.slot(f"[{SIDE} x double]", 64)
    e.do(f"store {DOUBLES} zeroinitializer, ptr {sums}, align 64")
    a = e.element("%a", "i8", e.op(f"mul nsw i64 {row}, %a_by_row"))
    are_side_by_side = e.op(f"icmp eq i64 %b_by_column, {FLOAT.bytes}")
    steps = e.op(f"mul nsw <{SIDE} x i64> {e.splat('%b_by_column', 'i64', SIDE)}, {e.lanes(SIDE)}")
    for beside in each_way(e, are_side_by_side):
        term, by_terms = e.begin_loop(0, "%terms")
        x = e.op(f"load float, ptr {e.element(a, 'i8', e.op(f'mul nsw i64 {term}, %a_by_term'))}, align 4")
        x = e.splat(e.op(f"fpext float {x} to double"), "double", SIDE)
        b = e.element("%b", "i8", e.op(f"mul nsw i64 {term}, %b_by_term"))
        y = masks.load(e, FLOAT, b, SIDE, there) if beside else _gathered(e, b, steps, there)
        y = e.op(f"fpext {FLOATS} {y} to {DOUBLES}")
        sum_ = e.op(f"load {DOUBLES}, ptr {sums}, align 64")
        added = e.op(f"call {DOUBLES} @llvm.fma.v{SIDE}f64({DOUBLES} {x}, {DOUBLES} {y}, {DOUBLES} {sum_})")
        e.do(f"store {DOUBLES} {added}, ptr {sums}, align 64")
        e.end_loop(by_terms)
    return e.op(f"fptrunc {DOUBLES} {e.op(f'load {DOUBLES}, ptr {sums}, align 64')} to {FLOATS}")


def _gathered(e: Emitter, b: str, steps: str, there: str) -> str:
    return e.gather(FLOAT, e.op(f"getelementptr i8, ptr {b}, <{SIDE} x i64> {steps}"), SIDE, there)
