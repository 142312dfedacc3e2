"""Quotients of integers in lanes, which no processor divides.

Those of 64 bits go by way of doubles, where all are small enough.

The quotient of numbers below 2^50, times the inverse, is off by less than a half, so what is rounded to is the quotient
or the integer above: what is left, which doubles hold, is then negative. An inverse that is the same in all iterations
is taken once. Where some number is larger, lanes are divided one by one. Between doubles and integers of up to 52 bits
lie no instructions but the bits of 2^52. Source: folklore; the bounds are by the rounding errors of three operations.

Those of 32 bits by a constant are products with its inverse. The text does not tell a constant that may be an extent,
such as that of a position in rows: one form of product serves all. Source: Granlund and Montgomery, "Division by
invariant integers using multiplication", PLDI 1994, figure 4.1.
"""

from __future__ import annotations

import re

from catena.compiler.emit.emitter import Emitter
from catena.compiler.emit.sizes import LEAST_COUNT
from catena.compiler.graph.symbols import is_power_of_two, recorded
from catena.compiler.graph.types import Type, vector

MOST = 1 << 50  # beyond all that is divided so
BITS, POWER = 0x4330000000000000, "0x4330000000000000"  # of 2^52


def quotient(e: Emitter, kind: str, x: str, y: str, safe: str, width: int) -> str:
    """x / y towards zero, of signed (`i`) or unsigned (`u`) integers; `safe` is y where that can be, otherwise 1."""
    r, constant = f"<{width} x i64>", re.fullmatch(r"splat \(i64 (-?\d+)\)", y)
    if constant is not None and (by := abs(int(constant[1]))) > 1:
        if not by & (by - 1):
            return e.op(f"{'s' if kind == 'i' else 'u'}div {r} {x}, {y}")
        safe = y
    symbol = f"catena_quotient_{kind}64x{width}"
    e.needs.setdefault(symbol, ("text", _routine(symbol, kind, width)))
    return e.op(f"call {r} @{symbol}({r} {x}, {r} {safe})")


ROLES = {"multiplier": 7, "shift": 8, "divisor": 9}  # of numbers in a function's table


def is_untold(e: Emitter, t: Type, divisor: int) -> bool:
    """Whether the text does not tell a divisor, as it may be an extent: no power of two, by which it is a shift."""
    return e.sizes is not None and t.register == "i32" and divisor >= LEAST_COUNT and not is_power_of_two(divisor)


def by_constant(e: Emitter, t: Type, x: str, divisor: int, width: int) -> tuple[str, str]:
    """The quotient of integers of 32 bits by such a divisor, towards zero, and the divisor."""
    by = e.splat(_untold(e, divisor, "divisor"), "i32", width)
    return (_signed if t.kind == "i" else _unsigned)(e, x, divisor, width), by


def _signed(e: Emitter, x: str, divisor: int, width: int) -> str:
    """By an inverse of 32 bits, of which the highest is 1: it is multiplied by as if that were a sign."""
    r, (shift, last) = vector("i32", width), _shifts(e, divisor, width)
    high = e.op(f"add {r} {_high(e, x, _inverse(divisor), 'sext', width)}, {x}")
    return e.op(f"sub {r} {e.op(f'ashr {r} {high}, {shift}')}, {e.op(f'ashr {r} {x}, {last}')}")


def _unsigned(e: Emitter, x: str, divisor: int, width: int) -> str:
    """By an inverse of 33 bits, of which the highest is 1."""
    r, (shift, _) = vector("i32", width), _shifts(e, divisor, width)
    high = _high(e, x, _multiplier(divisor), "zext", width)
    half = e.op(f"lshr {r} {e.op(f'sub {r} {x}, {high}')}, {e.splat('1', 'i32', width)}")
    return e.op(f"lshr {r} {e.op(f'add {r} {half}, {high}')}, {shift}")


def _untold(e: Emitter, n: int, role: str) -> str:
    assert e.sizes is not None  # see `is_untold`
    return e.sizes.named("i32", n, ROLES[role])


def _shifts(e: Emitter, divisor: int, width: int) -> tuple[str, str]:
    """By how many bits quotients are less than what is above 32 bits; and to the sign."""
    less = _untold(e, (divisor - 1).bit_length() - 1, "shift")
    return e.splat(less, "i32", width), e.splat("31", "i32", width)


def _high(e: Emitter, x: str, inverse: int, widened: str, width: int) -> str:
    """What is above 32 bits of products with an inverse. Processors multiply every second lane."""
    name = _untold(e, inverse, "multiplier")
    r, lanes = vector("i32", width), width if width % 2 else width // 2
    wide, factor = vector("i64", lanes), e.splat(e.op(f"{widened} i32 {name} to i64"), "i64", lanes)
    half, right = e.splat("32", "i64", lanes), "ashr" if widened == "sext" else "lshr"
    if lanes == width:
        product = e.op(f"mul {wide} {e.op(f'{widened} {r} {x} to {wide}')}, {factor}")
        return e.op(f"trunc {wide} {e.op(f'lshr {wide} {product}, {half}')} to {r}")
    both = e.op(f"bitcast {r} {x} to {wide}")
    even, odd = e.op(f"shl {wide} {both}, {half}"), both
    products = [e.op(f"mul {wide} {e.op(f'{right} {wide} {x}, {half}')}, {factor}") for x in (even, odd)]
    even, odd = (e.op(f"bitcast {wide} {x} to {r}") for x in products)
    order = ", ".join(f"i32 {k + 1 if k % 2 == 0 else width + k}" for k in range(width))
    return e.op(f"shufflevector {r} {even}, {r} {odd}, <{width} x i32> <{order}>")


@recorded
def _multiplier(divisor: int) -> int:
    """The inverse of a divisor of 32 bits, without its highest bit."""
    return ((1 << 32) * ((1 << (divisor - 1).bit_length()) - divisor)) // divisor + 1


@recorded
def _inverse(divisor: int) -> int:
    """That of one of 31 bits."""
    return (1 << 31 + (divisor - 1).bit_length()) // divisor + 1


def _routine(symbol: str, kind: str, width: int) -> str:
    r, f, bits = f"<{width} x i64>", f"<{width} x double>", f"splat (i64 {BITS})"
    signed = kind == "i"
    a, b = ("%a", "%b") if signed else ("%x", "%y")
    sizes = [f"{p} = call {r} @llvm.abs.v{width}i64({r} {x}, i1 false)" for p, x in (("%a", "%x"), ("%b", "%y"))]
    signs = [
        f"%differ = xor {r} %x, %y",
        f"%minus = ashr {r} %differ, splat (i64 63)",
        f"%flipped = xor {r} %size, %minus",
        f"%small = sub {r} %flipped, %minus",
    ]
    lines = [
        f"define internal {r} @{symbol}({r} %x, {r} %y) alwaysinline nounwind {{",
        "entry:",
        *(sizes if signed else []),
        f"%both = or {r} {a}, {b}",
        f"%beyond = icmp uge {r} %both, splat (i64 {MOST})",
        f"%some = call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> %beyond)",
        "br i1 %some, label %large, label %near",
        "near:",
        *_double(f, r, a, "%p", bits),
        *_double(f, r, b, "%q", bits),
        f"%inverse = fdiv {f} splat (double 1.0), %q",
        f"%product = fmul {f} %p, %inverse",
        f"%raised = fadd {f} %product, splat (double {POWER})",
        f"%whole = fsub {f} %raised, splat (double {POWER})",
        f"%taken = fmul {f} %whole, %q",
        f"%left = fsub {f} %p, %taken",
        f"%leftbits = bitcast {f} %left to {r}",
        f"%above = ashr {r} %leftbits, splat (i64 63)",
        f"%raisedbits = bitcast {f} %raised to {r}",
        f"%nearest = xor {r} %raisedbits, {bits}",
        f"%{'size' if signed else 'small'} = add {r} %nearest, %above",
        *(signs if signed else []),
        "br label %done",
        "large:",
        f"%each = {'s' if signed else 'u'}div {r} %x, %y",
        "br label %done",
        "done:",
        f"%result = phi {r} [ %small, %near ], [ %each, %large ]",
        f"ret {r} %result",
        "}",
    ]
    return "\n".join(lines)


def _double(f: str, r: str, x: str, to: str, bits: str) -> list[str]:
    """An integer of up to 52 bits as a double."""
    return [
        f"{to}bits = or {r} {x}, {bits}",
        f"{to}raised = bitcast {r} {to}bits to {f}",
        f"{to} = fsub {f} {to}raised, splat (double {POWER})",
    ]
