"""Conversions between f32 registers and floats of 8 bits and fewer, one lane at a time, from tables.

Decoding reads a table of all values. Encoding searches a table of the least f32 that rounds to each value.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from catena.compiler.types import DTYPES
from catena.core.dtypes import itemsize_bits


def _bits(x: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"


@cache
def define(symbol: str) -> str:
    """The definition of `catena_decode_<dtype>` or `catena_encode_<dtype>`."""
    _, what, name = symbol.split("_", 2)
    return _decode(symbol, DTYPES[name]) if what == "decode" else _encode(symbol, DTYPES[name])


def _values(dtype: np.dtype) -> np.ndarray:
    count = 1 << itemsize_bits(dtype)
    return (np.arange(256) % count).astype(np.uint8).view(dtype).astype(np.float32)


def _decode(symbol: str, dtype: np.dtype) -> str:
    table = ", ".join(f"float {_bits(x)}" for x in _values(dtype))
    return f"""@{symbol}_table = internal constant [256 x float] [{table}]
define internal float @{symbol}(i8 %x) {{
  %i = zext i8 %x to i64
  %p = getelementptr float, ptr @{symbol}_table, i64 %i
  %y = load float, ptr %p
  ret float %y
}}"""


def _encode(symbol: str, dtype: np.dtype) -> str:
    """Counts the rounding boundaries below |x|; what NumPy gives for each boundary decides the ties."""
    boundaries, codes, special = _rounding(dtype)
    n = len(boundaries)
    limits = ", ".join(f"float {_bits(b)}" for b in boundaries)
    outs = ", ".join(f"i8 {c}" for c in codes)
    return f"""@{symbol}_limits = internal constant [{n} x float] [{limits}]
@{symbol}_codes = internal constant [{len(codes)} x i8] [{outs}]
define internal i8 @{symbol}(float %x) {{
entry:
  %nan = fcmp uno float %x, %x
  br i1 %nan, label %isnan, label %search
isnan:
  %nanbits = bitcast float %x to i32
  %minus = icmp slt i32 %nanbits, 0
  %which = select i1 %minus, i8 {_one(np.copysign(np.nan, -1.0), dtype)}, i8 {special}
  ret i8 %which
search:
  br label %loop
loop:
  %low = phi i64 [ 0, %search ], [ %low2, %next ]
  %high = phi i64 [ {n}, %search ], [ %high2, %next ]
  %more = icmp ult i64 %low, %high
  br i1 %more, label %next, label %done
next:
  %sum = add i64 %low, %high
  %mid = lshr i64 %sum, 1
  %p = getelementptr float, ptr @{symbol}_limits, i64 %mid
  %limit = load float, ptr %p
  %above = fcmp oge float %x, %limit
  %after = add i64 %mid, 1
  %low2 = select i1 %above, i64 %after, i64 %low
  %high2 = select i1 %above, i64 %high, i64 %mid
  br label %loop
done:
  %q = getelementptr i8, ptr @{symbol}_codes, i64 %low
  %code = load i8, ptr %q
  %bits = bitcast float %x to i32
  %isneg0 = icmp eq i32 %bits, {-(1 << 31)}
  %y = select i1 %isneg0, i8 {_one(-0.0, dtype)}, i8 %code
  ret i8 %y
}}"""


def _one(x: float, dtype: np.dtype) -> int:
    with np.errstate(all="ignore"):
        return int(np.float32(x).astype(dtype).reshape(1).view(np.uint8)[0])


def _from_key(key: int) -> float:
    """Floats in order, as signed integers."""
    bits = key if key >= 0 else (1 << 31) | (-key - 1)
    return struct.unpack("<f", struct.pack("<I", bits))[0]


@cache
def _rounding(dtype: np.dtype) -> tuple[list[float], list[int], int]:
    """The least f32 of each run of floats that NumPy rounds to one code, by bisection."""
    top = struct.unpack("<I", struct.pack("<f", np.inf))[0]
    finite = sorted({float(v) for v in _values(dtype) if np.isfinite(v)})
    keys = [-top - 1] + [_key(v) for v in finite] + [top]
    limits, codes = [], [_one(-np.inf, dtype)]
    for low, high in zip(keys, keys[1:]):
        _boundaries(low, high, dtype, limits, codes)
    return limits, codes, _one(np.nan, dtype)


def _key(x: float) -> int:
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return bits if bits < 1 << 31 else -(bits & 0x7FFFFFFF) - 1


def _boundaries(low: int, high: int, dtype, limits: list, codes: list) -> None:
    """Appends each change of code between two floats; there are at most two."""
    a, b = _one(_from_key(low), dtype), _one(_from_key(high), dtype)
    while a != b and low < high:
        left, right = low, high
        while right - left > 1:
            mid = (left + right) // 2
            left, right = (mid, right) if _one(_from_key(mid), dtype) == a else (left, mid)
        a = _one(_from_key(right), dtype)
        limits.append(_from_key(right))
        codes.append(a)
        low = right
