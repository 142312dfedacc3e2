"""Types and parameters of equations as JSON, and back: what is here can be exported, and nothing else can be read."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.dtype_table import ALL, float0
from catena.core.stack import StackDType
from catena.lax.arithmetic import RoundingMethod
from catena.lax.contraction import DotAlgorithm, DotAlgorithmPreset, Precision
from catena.lax.control_flow.custom_linear_solve import LinearSolve
from catena.lax.convolution import ConvDimensionNumbers
from catena.lax.elementwise import AccuracyMode
from catena.lax.fourier import FftType
from catena.lax.linalg.eigen import EighImplementation, EigImplementation
from catena.lax.linalg.singular_values import SvdAlgorithm
from catena.lax.ragged import RaggedDotDimensionNumbers
from catena.lax.random_bits import RandomAlgorithm
from catena.lax.windowed import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from catena.random.dtype import KeyDType, key_dtype_of
from catena.random.generator import Generator, find_generator

DTYPES = {dtype.name: dtype for dtype in ALL} | {"float0": float0}
_ENUMS = (
    AccuracyMode, DotAlgorithmPreset, EigImplementation, EighImplementation, FftType, GatherScatterMode, Precision,
    RandomAlgorithm, RoundingMethod, SvdAlgorithm,
)  # fmt: skip
_RECORDS = (
    ConvDimensionNumbers, DotAlgorithm, GatherDimensionNumbers, LinearSolve, RaggedDotDimensionNumbers,
    ScatterDimensionNumbers,
)  # fmt: skip
ENUMS = {kind.__name__: kind for kind in _ENUMS}
RECORDS: dict[str, Any] = {kind.__name__: kind for kind in _RECORDS}
MAX_SIZE = 1 << 60  # of arrays, so that sizes in bytes are numbers of 64 bits


def expect(found: Any, kind: type | tuple, what: str) -> Any:
    """``found``, or a ValueError where it is not of this kind (booleans are no integers)."""
    if not isinstance(found, kind) or isinstance(found, bool) and kind is not bool:
        raise ValueError(f"{what} must be of {kind}, got {found!r:.80}")
    return found


# ---- dtypes and types


def write_dtype(dtype) -> Any:
    """A dtype by its name; of keys, by that of their generator; of stacks, by the type of their items."""
    if type(dtype) is KeyDType:
        return {"key": dtype._impl.name}
    if type(dtype) is StackDType:
        return {"stack": write_aval(dtype.item)}
    name = dtypes.dtype_name(dtype)
    if name not in DTYPES:
        raise NotImplementedError(f"arrays of dtype {name} cannot be exported")
    return name


def read_dtype(found) -> Any:
    if isinstance(found, str) and found in DTYPES:
        return DTYPES[found]
    if isinstance(found, dict) and found.keys() == {"key"}:
        return key_dtype_of(find_generator(expect(found["key"], str, "the name of a generator")))
    if isinstance(found, dict) and found.keys() == {"stack"}:
        return StackDType(read_aval(found["stack"]))
    raise ValueError(f"there is no dtype {found!r:.80}")


def write_aval(aval) -> list:
    """The type of an array: dtype, shape, and whether it is weak."""
    if type(aval) is not ShapedArray:
        raise NotImplementedError(f"only arrays can be exported, not a value of type {aval.str_short()}")
    if not aval.plain:
        raise NotImplementedError(f"types that say how arrays are laid out over a mesh cannot be exported: {aval}")
    return [write_dtype(aval.dtype), list(aval.shape), aval.weak_type]


def read_aval(found) -> ShapedArray:
    dtype, shape, weak = expect(found, list, "a type")
    shape = [expect(n, int, "a length") for n in expect(shape, list, "a shape")]
    if any(n < 0 for n in shape) or math.prod(shape) > MAX_SIZE:
        raise ValueError(f"no array has the shape {shape}")
    return ShapedArray(shape, read_dtype(dtype), expect(weak, bool, "weak_type"))


# ---- parameters


def write_parameter(x, program) -> Any:
    """A parameter; ``program`` writes jaxprs and gives their numbers."""
    if x is None or isinstance(x, (bool, str)):
        return x
    if isinstance(x, enum.Enum) and type(x).__name__ in ENUMS:
        return {"enum": [type(x).__name__, x.name]}
    if type(x) is int:
        return x
    if type(x) is float:
        return {"float": x.hex()}
    if type(x) is complex:
        return {"complex": [x.real.hex(), x.imag.hex()]}
    if type(x).__name__ in RECORDS and type(x) is RECORDS[type(x).__name__]:
        fields = x._fields if isinstance(x, tuple) else tuple(x.__dataclass_fields__)
        return {"record": [type(x).__name__, [write_parameter(getattr(x, f), program) for f in fields]]}
    if type(x) in (tuple, list):
        return {type(x).__name__: [write_parameter(item, program) for item in x]}
    if isinstance(x, (np.ndarray, np.generic)):
        data = np.ascontiguousarray(x)
        return {"array": [write_dtype(data.dtype), list(np.shape(x)), data.tobytes().hex(), isinstance(x, np.ndarray)]}
    if isinstance(x, Generator):
        return {"generator": x.name}
    if isinstance(x, ShapedArray):
        return {"type": write_aval(x)}
    if isinstance(x, (np.dtype, dtypes.ExtendedDType)):
        return {"dtype": write_dtype(x)}
    if isinstance(x, type) and issubclass(x, np.generic):
        return {"dtype": write_dtype(np.dtype(x))}
    return {"program": program(x)}


def read_parameter(found, program) -> Any:
    """The inverse of ``write_parameter``; ``program`` gives the jaxpr of a number."""
    if found is None or isinstance(found, (bool, str, int)):
        return found
    ((kind, x),) = expect(found, dict, "a parameter").items()
    if kind not in READERS:
        raise ValueError(f"there is no kind of parameter {kind!r}")
    return READERS[kind](x, program)


def _items(x, program) -> list:
    return [read_parameter(item, program) for item in expect(x, list, "the items of a parameter")]


def _array(x, program):
    dtype, shape, data, is_array = x
    found = np.frombuffer(bytes.fromhex(data), read_dtype(dtype)).reshape(shape)
    return found.copy() if is_array else found[()]


def _enum(x, program):
    kind, name = x
    return ENUMS[kind][name]


def _record(x, program):
    kind, fields = x
    return RECORDS[kind](*_items(fields, program))


READERS: dict[str, Any] = {
    "float": lambda x, program: float.fromhex(x),
    "complex": lambda x, program: complex(float.fromhex(x[0]), float.fromhex(x[1])),
    "tuple": lambda x, program: tuple(_items(x, program)),
    "list": _items,
    "enum": _enum,
    "record": _record,
    "array": _array,
    "generator": lambda x, program: find_generator(expect(x, str, "the name of a generator")),
    "type": lambda x, program: read_aval(x),
    "dtype": lambda x, program: read_dtype(x),
    "program": lambda x, program: program(expect(x, int, "the number of a program")),
}
