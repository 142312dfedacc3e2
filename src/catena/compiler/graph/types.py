"""How dtypes look in LLVM: in memory, in registers, and how a register value is rounded back to its dtype.

Booleans are i8 in memory and i1 in registers; floats of 16 bits and fewer are computed in f32 and rounded
after every operation, so that compiled and eager results agree; integers of 1, 2 and 4 bits are stored one per byte, as
ml_dtypes does.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from catena.core.dtypes import ALL, KIND, itemsize_bits
from catena.core.named import NamedTuple

LANES = 16  # of a vector of numbers of 32 bits: what the graph's choices go by on any machine, as bits hang on them


class Type(NamedTuple):
    name: str
    memory: str
    register: str
    kind: str  # b i u f
    bits: int  # significant bits: 4 for int4
    bytes: int  # in memory
    narrow: bool  # float computed in f32, or integer narrower than its register


def _describe(dtype: np.dtype) -> Type:
    kind, bits = KIND[dtype], 8 * dtype.itemsize
    if kind == "b":
        return Type("bool", "i8", "i1", "b", 1, 1, False)
    if kind in "iu":
        real = int(itemsize_bits(dtype))
        return Type(dtype.name, f"i{bits}", f"i{bits}", kind, real, dtype.itemsize, real != bits)
    if dtype.name in ("float32", "float64"):
        name = "float" if bits == 32 else "double"
        return Type(dtype.name, name, name, "f", bits, dtype.itemsize, False)
    memory = "half" if dtype.name == "float16" else f"i{bits}"
    return Type(dtype.name, memory, "float", "f", bits, dtype.itemsize, True)


TYPES: dict[str, Type] = {d.name: _describe(d) for d in ALL if KIND[d] != "c"}
NAMES: dict[np.dtype, str] = {d: d.name for d in ALL}  # `dtype.name` takes NumPy a microsecond
DTYPES: dict[str, np.dtype] = {d.name: d for d in ALL}


def vector(element: str, width: int) -> str:
    return element if width == 1 else f"<{width} x {element}>"


def mangled(memory: str) -> str:
    """A type of memory as the names of intrinsics have it."""
    return {"float": "f32", "double": "f64", "half": "f16"}.get(memory, memory)


def literal(value, t: Type) -> str:
    """A scalar constant of register type."""
    if t.kind == "b":
        return "true" if value else "false"
    if t.kind in "iu":
        return str(int(value))
    value = float(value) if t.register == "double" else _single(float(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _single(value: float) -> float:
    """The nearest f32."""
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def constant(value, t: Type, width: int) -> str:
    text = literal(value, t)
    return text if width == 1 else f"splat ({t.register} {text})"
