"""Conversions between f32 registers and floats of 8 bits and fewer, one lane at a time, from tables.

Decoding reads a table of all values, encoding one of what the upper halves of f32 are rounded to.
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
