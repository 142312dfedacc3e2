"""DLPack, both ways, without copying where that is safe.

Export is NumPy's, of a read-only view: NumPy's versioned capsules say that the memory must not be written to,
and consumers that know only the older protocol, which cannot say so, get a copy. Import shares the memory of other
libraries' arrays, which is what they offer it for: who writes to it there writes to an Array. NumPy arrays that can
still be written to are copied, as they are by ``asarray``; a view of NumPy's may be read-only while the array that it
is a view of is not: then it is copied too.

NumPy has none of the dtypes of machine learning. Their bits travel as unsigned integers, with the dtype written into
the capsule behind NumPy's back. Layout and codes: DLPack 1.1 (https://dmlc.github.io/dlpack/latest/c_api.html).
"""

import ctypes
import enum
from typing import Any

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import Array, as_base, live, make_array, read_only


class DLDeviceType(enum.IntEnum):
    """The device types of the DLPack standard that arrays can be on."""

    kDLCPU = 1


CODES = {
    "bfloat16": 4,
    "float8_e3m4": 7,
    "float8_e4m3": 8,
    "float8_e4m3b11fnuz": 9,
    "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11,
    "float8_e5m2": 12,
    "float8_e5m2fnuz": 13,
    "float8_e8m0fnu": 14,
}
NAMES = {code: name for name, code in CODES.items()}
UNSIGNED = 1  # the code of unsigned integers
CODE_AT = {b"dltensor": 20, b"dltensor_versioned": 52}  # where a capsule of this name has the code of its dtype

_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def code_of(capsule: Any) -> ctypes.c_uint8:
    """The code of a capsule's dtype, in the capsule: it can be read and written."""
    name = _name(capsule)
    return ctypes.c_uint8.from_address(_pointer(capsule, name) + CODE_AT[name])


def is_supported(dtype: np.dtype) -> bool:
    """Whether arrays of a dtype can be handed to other libraries."""
    return dtype.name in CODES or (dtype.kind in "biufc" and dtype.isbuiltin == 1)


def device(array: Array) -> tuple:
    """What ``__dlpack_device__`` returns: the CPU."""
    live(array)
    return DLDeviceType.kDLCPU, 0


def export(array: Array, stream=None, max_version=None, dl_device=None, copy=None):
    """The DLPack capsule of ``array``.

    Raises:
      BufferError: the protocol has no such dtype (int4, float4 ...), or another device is asked for.
    """
    if stream is not None:
        raise BufferError(f"__dlpack__: stream must be None for arrays on the CPU, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (DLDeviceType.kDLCPU, 0):
        raise BufferError(f"__dlpack__: dl_device must be the CPU, {(1, 0)}, got {dl_device!r}")
    value = live(array)
    if type(value) is not np.ndarray:
        raise BufferError(f"__dlpack__: {value.error()}")
    if not is_supported(value.dtype):
        raise BufferError(f"__dlpack__: arrays of dtype {value.dtype} cannot be exported; cast to another dtype first")
    code = CODES.get(value.dtype.name)
    if code:
        value = value.view(f"uint{8 * value.itemsize}")
    if max_version is None or max_version[0] < 1:
        if copy is False:
            raise BufferError(
                "__dlpack__: sharing memory needs max_version=(1, 0) or later, since older capsules cannot be read-only"
            )
        capsule = value.copy().__dlpack__()
    else:
        capsule = read_only(value).__dlpack__(max_version=max_version, copy=copy)
    if code:
        code_of(capsule).value = code
    return capsule


class Reader:
    """Another library's array, as NumPy can read it: dtypes that NumPy lacks are bits, and are remembered."""

    def __init__(self, x: Any):
        self.x, self.dtype = x, None

    def __dlpack__(self, **asked: Any) -> Any:
        capsule = self.x.__dlpack__(**asked)
        code = code_of(capsule)
        if code.value in NAMES:
            self.dtype = dtypes.as_dtype(NAMES[code.value])
            code.value = UNSIGNED
        return capsule

    def __dlpack_device__(self) -> tuple:
        return self.x.__dlpack_device__()


def from_dlpack(x, copy=None) -> Array:
    """An Array of the values of ``x``, which has the DLPack protocol."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.")
    if x.__dlpack_device__()[0] not in (DLDeviceType.kDLCPU, 3, 11, 13):  # memory that the CPU can read
        raise BufferError(f"from_dlpack: x must be on the CPU, got device {x.__dlpack_device__()}")
    if type(x) is Array:
        value = live(x)
        return make_array(value.copy() if copy else value, x.weak_type)
    reader = Reader(x)
    value = np.from_dlpack(reader)
    if reader.dtype is not None:
        value = value.view(reader.dtype)
    shares = value.flags.aligned and dtypes.canonical(value.dtype) == value.dtype and is_settled(x, value)
    if shares and not copy:
        return make_array(read_only(value))
    if copy is False:
        raise ValueError(
            "from_dlpack: copy must not be False here, since x is a NumPy array that can still be written to, or "
            f"has a dtype that arrays cannot have: {value.dtype}"
        )
    return make_array(casts.convert(np.array(value, order="C"), dtypes.canonical(value.dtype)))


def is_settled(x, value: np.ndarray) -> bool:
    """Whether the memory of ``x`` may be shared: it is another library's, or nobody can write to it."""
    return not isinstance(x, np.ndarray) or (not value.flags.writeable and is_locked(x))


def is_locked(x) -> bool:
    """Whether nothing that ``x`` is a view of can be written to: NumPy arrays, and the buffer that these lie in."""
    while isinstance(x, np.ndarray):
        x = as_base(x)
        if x.flags.writeable:
            return False
        x = x.base
    try:
        return memoryview(x).readonly
    except TypeError:  # no buffer: another library's memory, of which the capsule speaks
        return True
