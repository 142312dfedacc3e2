"""Operations on the bits of floats, and integer powers."""

from __future__ import annotations

import math

from catena.compiler.emit.emitter import Emitter
from catena.compiler.graph.types import DTYPES, TYPES, Type, constant, vector
from catena.compiler.vector_math.text import SELDOM
from catena.core.dtypes import itemsize_bits


def _bits_of(t: Type) -> Type:
    return TYPES["uint64" if t.register == "double" else "uint32"]


def to_bits(e: Emitter, x: str, t: Type, width: int) -> str:
    return e.op(f"bitcast {vector(t.register, width)} {x} to {vector(_bits_of(t).register, width)}")


def from_bits(e: Emitter, x: str, t: Type, width: int) -> str:
    return e.op(f"bitcast {vector(_bits_of(t).register, width)} {x} to {vector(t.register, width)}")


def round_bfloat16(e: Emitter, x: str, width: int, is_short_nan: bool = False) -> str:
    """Nearest even on the upper 16 bits; NaN stays NaN, as it does of itself where its lower bits are zero."""
    f, u = TYPES["float32"], TYPES["uint32"]
    r, i1 = vector("i32", width), vector("i1", width)

    def c(value):
        return constant(value, u, width)

    bits = to_bits(e, x, f, width)
    odd = e.op(f"and {r} {e.op(f'lshr {r} {bits}, {c(16)}')}, {c(1)}")
    up = e.op(f"add {r} {e.op(f'add {r} {bits}, {c(0x7FFF)}')}, {odd}")
    if not is_short_nan:
        nan = e.op(f"fcmp uno {vector('float', width)} {x}, {x}")
        quiet = e.op(f"or {r} {bits}, {c(0x400000)}")
        up = e.op(f"select {i1} {nan}, {r} {quiet}, {r} {up}")
    return from_bits(e, e.op(f"and {r} {up}, {c(0xFFFF0000)}"), f, width)


def reduce_precision(e: Emitter, t: Type, xs, width: int, attr) -> str:
    """Rounds to nearest even with `m` mantissa bits and the range of `ex` exponent bits."""
    ex, m = attr
    full, exponent = (52, 11) if t.register == "double" else (23, 8)
    u = _bits_of(t)
    r, i1, x = vector(u.register, width), vector("i1", width), xs[0]

    def c(value):
        return constant(value, u, width)

    bits = to_bits(e, x, t, width)
    nan = e.op(f"fcmp uno {vector(t.register, width)} {x}, {x}")
    out = bits
    if m < full:
        drop = full - m
        odd = e.op(f"and {r} {e.op(f'lshr {r} {bits}, {c(drop)}')}, {c(1)}")
        up = e.op(f"add {r} {e.op(f'add {r} {bits}, {c((1 << (drop - 1)) - 1)}')}, {odd}")
        out = e.op(f"and {r} {up}, {c(((1 << u.bits) - 1) ^ ((1 << drop) - 1))}")
    if ex < exponent:
        bias, reduced = (1 << (exponent - 1)) - 1, (1 << (ex - 1)) - 1
        sign = e.op(f"and {r} {out}, {c(1 << (u.bits - 1))}")
        size = e.op(f"and {r} {out}, {c(((1 << exponent) - 1) << full)}")
        over = e.op(f"icmp ugt {r} {size}, {c((bias + reduced) << full)}")
        under = e.op(f"icmp ule {r} {size}, {c((bias - reduced) << full)}")
        infinite = e.op(f"or {r} {sign}, {c(((1 << exponent) - 1) << full)}")
        out = e.op(f"select {i1} {over}, {r} {infinite}, {r} {out}")
        out = e.op(f"select {i1} {under}, {r} {sign}, {r} {out}")
    out = e.op(f"select {i1} {nan}, {r} {bits}, {r} {out}")
    return from_bits(e, out, t, width)


def total_order_keys(e: Emitter, xs, t: Type, width: int) -> tuple[list[str], Type]:
    """Signed integers ordered like the floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    if t.kind != "f":
        return xs, t
    key = TYPES["int64" if t.register == "double" else "int32"]
    r = vector(key.register, width)

    def one(x):
        bits = to_bits(e, x, t, width)
        sign = e.op(f"ashr {r} {bits}, {constant(key.bits - 1, key, width)}")
        return e.op(f"xor {r} {bits}, {e.op(f'lshr {r} {sign}, {constant(1, key, width)}')}")

    return [one(x) for x in xs], key


def nextafter(e: Emitter, t: Type, xs, width: int, attr) -> str:
    """The neighbour of xs[0] towards xs[1], in the format's own bits; equal ones give the second, NaN wins."""
    u, i1 = TYPES[f"uint{8 * t.bytes}"], vector("i1", width)
    f, r, m = vector(t.register, width), vector(u.register, width), vector(t.memory, width)
    x, y = xs

    def c(value):
        return constant(value, u, width)

    def bits_of(value):
        raw = e.narrow(value, t, width)
        return raw if m == r else e.op(f"bitcast {m} {raw} to {r}")

    bits, zero = bits_of(x), e.op(f"fcmp oeq {f} {x}, {constant(0.0, t, width)}")
    down = e.op(f"fcmp olt {f} {y}, {x}")
    positive = e.op(f"fcmp ogt {f} {x}, {constant(0.0, t, width)}")
    shrink = e.op(f"icmp eq {i1} {down}, {positive}")
    less, more = e.op(f"sub {r} {bits}, {c(1)}"), e.op(f"add {r} {bits}, {c(1)}")
    moved = e.op(f"select {i1} {shrink}, {r} {less}, {r} {more}")
    below = e.op(f"fcmp olt {f} {y}, {constant(0.0, t, width)}")
    sign = 1 << (itemsize_bits(DTYPES[t.name]) - 1)
    tiny = e.op(f"select {i1} {below}, {r} {c(sign | 1)}, {r} {c(1)}")
    raw = e.op(f"select {i1} {zero}, {r} {tiny}, {r} {moved}")
    if t.name.endswith("fnuz"):  # formats with one zero, whose other one is NaN
        raw = e.op(f"select {i1} {e.op(f'icmp eq {r} {raw}, {c(sign)}')}, {r} {c(0)}, {r} {raw}")
    out = e.widen(raw if m == r else e.op(f"bitcast {r} {raw} to {m}"), t, width)
    out = e.op(f"select {i1} {e.op(f'fcmp oeq {f} {x}, {y}')}, {f} {y}, {f} {out}")
    nan = e.op(f"fcmp uno {f} {x}, {y}")
    return e.op(f"select {i1} {nan}, {f} {e.op(f'fadd {f} {x}, {y}')}, {f} {out}")


def integer_power(e: Emitter, t: Type, xs, width: int, attr) -> str:
    """x ** y for integers, in the ring of their width; the bits of y count as an integer without a sign."""
    symbol = f"catena_power_{t.register}x{width}"
    e.needs.setdefault(symbol, ("text", _power_by_squaring(symbol, t, width)))
    r = vector(t.register, width)
    return e.op(f"call {r} @{symbol}({r} {xs[0]}, {r} {xs[1]})")


START_BITS = 5  # of the inverse of an odd number, which three times it has, with the second bit turned (P. Montgomery)


def _power_by_squaring(symbol: str, t: Type, width: int) -> str:
    """Squares until no lane's exponent has bits left: most exponents are small. Those whose first bit is set, which are
    below zero with a sign, are made of the power without it: as 2^bits times an exponent is nothing to odd numbers, it
    is the inverse of theirs in the ring; of even ones, so often a factor, nothing is left.
    """
    r, i1, one, zero = vector(t.register, width), vector("i1", width), constant(1, t, width), constant(0, t, width)
    any_of = f"call i1 @llvm.vector.reduce.or.v{width}i1({i1} %s)" if width > 1 else "freeze i1 %s"
    return "\n".join(
        [
            f"define internal {r} @{symbol}({r} %x, {r} %y) alwaysinline nounwind {{",
            "entry:",
            f"%is_below = icmp slt {r} %y, {zero}",
            f"%size = call {r} @llvm.abs.{t.register if width == 1 else f'v{width}{t.register}'}({r} %y, i1 false)",
            f"%below = {any_of % '%is_below'}",
            "br label %next",
            "next:",
            f"%base = phi {r} [ %x, %entry ], [ %squared, %square ]",
            f"%left = phi {r} [ %size, %entry ], [ %shifted, %square ]",
            f"%power = phi {r} [ {one}, %entry ], [ %chosen, %square ]",
            f"%bit = and {r} %left, {one}",
            f"%odd = icmp ne {r} %bit, {zero}",
            f"%product = mul {r} %power, %base",
            f"%chosen = select {i1} %odd, {r} %product, {r} %power",
            f"%shifted = lshr {r} %left, {one}",
            f"%some = icmp ne {r} %shifted, {zero}",
            f"%any = {any_of % '%some'}",
            "br i1 %any, label %square, label %done",
            "square:",
            f"%squared = mul {r} %base, %base",
            "br label %next",
            "done:",
            f"br i1 %below, label %invert, label %out{SELDOM}",
            "invert:",
            *_inverted_in_ring("%chosen", t, width),
            f"%right = select {i1} %is_below, {r} %inverted, {r} %chosen",
            "br label %out",
            "out:",
            f"%result = phi {r} [ %chosen, %done ], [ %right, %invert ]",
            f"ret {r} %result",
            "}",
        ]
    )


def _inverted_in_ring(x: str, t: Type, width: int) -> list[str]:
    """Lines that make `%inverted`: times an odd number it is 1, of even ones it is 0. By Newton's method."""
    r, last = vector(t.register, width), "%start"
    c = lambda number: constant(number, t, width)  # noqa: E731
    lines = [f"%thrice = mul {r} {x}, {c(3)}", f"%start = xor {r} %thrice, {c(2)}"]
    for k in range(math.ceil(math.log2(int(t.register[1:]) / START_BITS))):
        lines += [f"%product.{k} = mul {r} {x}, {last}", f"%less.{k} = sub {r} {c(2)}, %product.{k}"]
        lines.append(f"%inverse.{k} = mul {r} {last}, %less.{k}")
        last = f"%inverse.{k}"
    odd = [f"%last = and {r} {x}, {c(1)}", f"%has_inverse = icmp ne {r} %last, {c(0)}"]
    return [*lines, *odd, f"%inverted = select {vector('i1', width)} %has_inverse, {r} {last}, {r} {c(0)}"]


def sort_key(e: Emitter, t: Type, xs, types, merge_zeros, width: int) -> str:
    """Unsigned integers ordered like the operand, NaN last."""
    s, x = types[0], xs[0]
    r, i1 = vector(t.register, width), vector("i1", width)
    if s.kind == "u":
        return x
    if s.kind == "b":
        return e.op(f"zext {i1} {x} to {r}")
    high = constant(1 << (t.bits - 1), t, width)
    if s.kind == "i":
        return e.op(f"xor {r} {x}, {high}")
    f = vector(s.register, width)
    nan = e.op(f"fcmp uno {f} {x}, {x}")
    if merge_zeros:
        zero = e.op(f"fcmp oeq {f} {x}, {constant(0.0, s, width)}")
        x = e.op(f"select {i1} {zero}, {f} {constant(0.0, s, width)}, {f} {x}")
    raw = e.narrow(x, s, width)
    if vector(s.memory, width) != r:
        raw = e.op(f"bitcast {vector(s.memory, width)} {raw} to {r}")
    sign = e.op(f"ashr {r} {raw}, {constant(t.bits - 1, t, width)}")
    flip = e.op(f"or {r} {sign}, {high}")
    key = e.op(f"xor {r} {raw}, {flip}")
    return e.op(f"select {i1} {nan}, {r} {constant((1 << t.bits) - 1, t, width)}, {r} {key}")


def sort_unkey(e: Emitter, t: Type, xs, types, attr, width: int) -> str:
    """The element of a key."""
    s, key = types[0], xs[0]
    r, i1 = vector(s.register, width), vector("i1", width)
    if t.kind == "u":
        return key
    if t.kind == "b":
        return e.op(f"trunc {r} {key} to {i1}")
    high = constant(1 << (s.bits - 1), s, width)
    if t.kind == "i":
        return e.op(f"xor {r} {key}, {high}")
    positive = e.op(f"icmp slt {r} {key}, {constant(0, s, width)}")
    flip = e.op(f"select {i1} {positive}, {r} {high}, {r} {constant((1 << s.bits) - 1, s, width)}")
    raw = e.op(f"xor {r} {key}, {flip}")
    if vector(t.memory, width) != r:
        raw = e.op(f"bitcast {r} {raw} to {vector(t.memory, width)}")
    return e.widen(raw, t, width)
