"""Quotients of integers of 64 bits in lanes, which no processor divides: by way of doubles, where all are small enough.

The quotient of numbers below 2^50, times the inverse, is off by less than a half, so what is rounded to is the quotient
or the integer above: what is left, which doubles hold, is then negative. An inverse that is the same in all iterations
is taken once. Where some number is larger, lanes are divided one by one. Between doubles and integers of up to 52 bits
lie no instructions but the bits of 2^52. Source: folklore; the bounds are by the rounding errors of three operations.
"""

from __future__ import annotations

import re

from catena.compiler.emit.emitter import Emitter

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
