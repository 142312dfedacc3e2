"""Conversions between f32 registers and floats of 8 bits and fewer, on SIMD lanes, by integer arithmetic.

The codes of such a format, read as integers, are in the order of its positive values, as those of f32 are. So f32
bits become a code by rounding off the bits that the format lacks and moving the exponent's bias; numbers below
the least normal one are rounded by adding a power of two whose last place is theirs. What becomes of overflow,
NaN and negative zeros, which formats do not have alike, is asked of NumPy when the function is written.
`float8_e8m0fnu`, which has neither sign nor zero, is looked up in tables, one lane at a time.
"""

from __future__ import annotations

import struct
from functools import cache

import ml_dtypes
import numpy as np

from catena.compiler.graph.types import DTYPES, vector
from catena.core.dtypes import itemsize_bits

BY_TABLE = frozenset({"float8_e8m0fnu"})
MANTISSA, BIAS = 23, 127  # of f32


def symbol(what: str, name: str, width: int) -> str:
    """The function that does `what` (encode or decode) for `width` lanes of the dtype `name`."""
    return f"catena_{what}_{1 if name in BY_TABLE else width}_{name}"


@cache
def define(symbol: str) -> str:
    """The definition of a function that is called so."""
    _, what, width, name = symbol.split("_", 3)
    if name in BY_TABLE:
        return (_decode_by_table if what == "decode" else _encode_by_table)(symbol, DTYPES[name])
    return (_decode if what == "decode" else _encode)(symbol, Format(DTYPES[name]), int(width))


class Format:
    """What a small float is made of, beside f32."""

    def __init__(self, dtype: np.dtype):
        info = ml_dtypes.finfo(dtype)
        self.sign = 1 << (itemsize_bits(dtype) - 1)  # the sign's bit
        self.drop = MANTISSA - info.nmant  # bits of f32's mantissa that it lacks
        self.rebias = (BIAS + info.minexp - 1) << info.nmant  # between its codes and f32's leading bits
        self.least_normal = 2.0**info.minexp
        self.step = 2.0 ** (info.minexp - info.nmant)  # between subnormal numbers
        self.greatest = int(np.asarray(info.max, dtype).view(np.uint8))  # the code of the greatest number
        self.codes = {x: _code(float(x), dtype) for x in ("inf", "-inf", "nan", "-nan", "-0")}
        self.values = np.arange(2 * self.sign, dtype=np.uint8).view(dtype).astype(np.float32)


def _code(x: float, dtype: np.dtype) -> int:
    with np.errstate(all="ignore"):
        return int(np.float32(x).astype(dtype).view(np.uint8))


def _bits(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"


class _Lines:
    """The body of a function on vectors: instructions with numbered results."""

    def __init__(self, width: int):
        self.width = width
        self.lines: list[str] = []

    def op(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def type(self, scalar: str) -> str:
        return vector(scalar, self.width)

    def splat(self, scalar: str, value) -> str:
        return f"splat ({scalar} {value})" if self.width > 1 else str(value)

    def of_ints(self, op: str, x: str, value) -> str:
        """An integer operation on `x` and a constant."""
        return self.op(f"{op} {self.type('i32')} {x}, {self.splat('i32', value)}")

    def select(self, condition: str, yes: str, no: str, scalar: str = "i32") -> str:
        t = self.type(scalar)
        return self.op(f"select {self.type('i1')} {condition}, {t} {yes}, {t} {no}")

    def text(self, symbol: str, source: str, target: str, result: str) -> str:
        head = f"define internal {self.type(target)} @{symbol}({self.type(source)} %x) alwaysinline nounwind {{"
        return "\n".join([head, *self.lines, f"  ret {self.type(target)} {result}", "}"])


def _encode(symbol: str, form: Format, width: int) -> str:
    e = _Lines(width)
    ints, floats = e.type("i32"), e.type("float")
    bits = e.op(f"bitcast {floats} %x to {ints}")
    size = e.of_ints("and", bits, 0x7FFFFFFF)
    negative = e.of_ints("icmp slt", bits, 0)
    # To the nearest, ties to even: half a place less one, and one more where the last bit that stays is set.
    odd = e.of_ints("and", e.of_ints("lshr", size, form.drop), 1)
    up = e.op(f"add {ints} {e.of_ints('add', size, (1 << (form.drop - 1)) - 1)}, {odd}")
    normal = e.of_ints("sub", e.of_ints("lshr", up, form.drop), form.rebias)
    ruler = form.step * 2.0**MANTISSA
    absolute = e.op(f"bitcast {ints} {size} to {floats}")
    laid = e.op(f"fadd {floats} {absolute}, {e.splat('float', _bits(ruler))}")
    small = e.of_ints("sub", e.op(f"bitcast {floats} {laid} to {ints}"), int(np.float32(ruler).view(np.int32)))
    is_small = e.op(f"fcmp olt {floats} {absolute}, {e.splat('float', _bits(form.least_normal))}")
    code = e.select(is_small, small, normal)
    negated = e.select(
        e.of_ints("icmp eq", code, 0), e.splat("i32", form.codes["-0"]), e.of_ints("or", code, form.sign)
    )
    too_large = e.of_ints("icmp sgt", code, form.greatest)
    is_nan = e.op(f"fcmp uno {floats} %x, %x")
    chosen = []
    for finite, infinity, nan in ((code, "inf", "nan"), (negated, "-inf", "-nan")):
        bounded = e.select(too_large, e.splat("i32", form.codes[infinity]), finite)
        chosen.append(e.select(is_nan, e.splat("i32", form.codes[nan]), bounded))
    out = e.op(f"trunc {ints} {e.select(negative, chosen[1], chosen[0])} to {e.type('i8')}")
    return e.text(symbol, "float", "i8", out)


def _decode(symbol: str, form: Format, width: int) -> str:
    e = _Lines(width)
    ints, floats = e.type("i32"), e.type("float")
    wide = e.op(f"zext {e.type('i8')} %x to {ints}")
    code = e.of_ints("and", wide, form.sign - 1)
    normal = e.of_ints("shl", e.of_ints("add", code, form.rebias), form.drop)
    count = e.op(f"uitofp {ints} {code} to {floats}")
    small = e.op(f"fmul {floats} {count}, {e.splat('float', _bits(form.step))}")
    is_small = e.of_ints("icmp slt", code, 1 << (MANTISSA - form.drop))
    size = e.select(is_small, e.op(f"bitcast {floats} {small} to {ints}"), normal)
    for special in np.flatnonzero(~np.isfinite(form.values[: form.sign])):  # infinity, and some NaN
        value = int(form.values[special].view(np.int32)) & 0x7FFFFFFF
        size = e.select(e.of_ints("icmp eq", code, special), e.splat("i32", value), size)
    sign = e.of_ints("shl", e.of_ints("and", wide, form.sign), 32 - form.sign.bit_length())
    out = e.op(f"or {ints} {size}, {sign}")
    if np.isnan(form.values[form.sign]):  # the code of the negative zero that some formats do not have
        nan = int(form.values[form.sign].view(np.int32))
        out = e.select(
            e.of_ints("icmp eq", e.of_ints("and", wide, 2 * form.sign - 1), form.sign), e.splat("i32", nan), out
        )
    return e.text(symbol, "i8", "float", e.op(f"bitcast {ints} {out} to {floats}"))


# ---- one lane at a time, from tables -------------------------------------------------------------------------


def _decode_by_table(symbol: str, dtype: np.dtype) -> str:
    table = ", ".join(f"float {_bits(float(x))}" for x in np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32))
    return f"""@{symbol}_table = internal constant [256 x float] [{table}]
define internal float @{symbol}(i8 %x) {{
  %i = zext i8 %x to i64
  %p = getelementptr float, ptr @{symbol}_table, i64 %i
  %y = load float, ptr %p
  ret float %y
}}"""


def _encode_by_table(symbol: str, dtype: np.dtype) -> str:
    """Rounds to 16 bits towards odd, and looks up what NumPy makes of those.

    Of the bits below only whether there are any is kept, in the last place; since the 16 bits have more than one
    place beyond those of `dtype`, that decides every tie and every comparison with a middle as the whole would.
    """
    table = "".join(f"\\{code:02X}" for code in _codes(dtype))
    return f"""@{symbol}_table = internal constant [65536 x i8] c"{table}"
define internal i8 @{symbol}(float %x) {{
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %low = and i32 %bits, 65535
  %any = icmp ne i32 %low, 0
  %last = zext i1 %any to i32
  %odd = or i32 %high, %last
  %i = zext i32 %odd to i64
  %p = getelementptr i8, ptr @{symbol}_table, i64 %i
  %y = load i8, ptr %p
  ret i8 %y
}}"""


def _codes(dtype: np.dtype) -> bytes:
    """The code of every f32 whose lower half is zero."""
    values = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        return values.astype(dtype).view(np.uint8).tobytes()
