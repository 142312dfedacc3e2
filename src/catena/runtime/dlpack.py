"""DLPack, both ways, without copying where that is safe.

Export is NumPy's, of a read-only view: NumPy's versioned capsules say that the memory must not be written to,
and consumers that know only the older protocol, which cannot say so, get a copy. Import shares the memory of
another Array; anything else could still be written to by its owner and is copied, unless the capsule says it
is read-only. A view of NumPy's may be read-only while the array that it is a view of is not: then it is copied too.
"""

import enum

import numpy as np

from catena.core import casts, dtypes
from catena.core.array import Array, as_base, live, make_array, read_only


class DLDeviceType(enum.IntEnum):
    """The device types of the DLPack standard that arrays can be on."""

    kDLCPU = 1


def device(array: Array) -> tuple:
    """What ``__dlpack_device__`` returns: the CPU."""
    live(array)
    return DLDeviceType.kDLCPU, 0


def export(array: Array, stream=None, max_version=None, dl_device=None, copy=None):
    """The DLPack capsule of ``array``.

    Raises:
      BufferError: the dtype is not one that NumPy exports (bfloat16, float8, int4 ...), or another device is
        asked for.
    """
    if stream is not None:
        raise BufferError(f"__dlpack__: stream must be None for arrays on the CPU, got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (DLDeviceType.kDLCPU, 0):
        raise BufferError(f"__dlpack__: dl_device must be the CPU, {(1, 0)}, got {dl_device!r}")
    value = live(array)
    if value.dtype.kind == "V":
        raise BufferError(f"__dlpack__: arrays of dtype {value.dtype} cannot be exported; cast to another dtype first")
    if max_version is None or max_version[0] < 1:
        if copy is False:
            raise BufferError(
                "__dlpack__: sharing memory needs max_version=(1, 0) or later, since older capsules cannot be read-only"
            )
        return value.copy().__dlpack__()
    return read_only(value).__dlpack__(max_version=max_version, copy=copy)


def from_dlpack(x, copy=None) -> Array:
    """An Array of the values of ``x``, which has the DLPack protocol."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods.")
    if x.__dlpack_device__()[0] not in (DLDeviceType.kDLCPU, 3, 11, 13):  # memory that the CPU can read
        raise BufferError(f"from_dlpack: x must be on the CPU, got device {x.__dlpack_device__()}")
    if type(x) is Array:
        value = live(x)
        return make_array(value.copy() if copy else value, x.weak_type)
    value = np.from_dlpack(x)
    shares = not value.flags.writeable and is_locked(x) and dtypes.canonical(value.dtype) == value.dtype
    if shares and not copy:
        return make_array(value)
    if copy is False:
        raise ValueError(
            "from_dlpack: copy must not be False here, since the memory of x can still be written to by its owner or "
            "holds a dtype that arrays cannot have"
        )
    return make_array(casts.convert(np.array(value, order="C"), dtypes.canonical(value.dtype)))


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
