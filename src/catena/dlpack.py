"""Arrays of other libraries, by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as _np

from catena.core import dtypes as _dtypes
from catena.core.array import Array as _Array
from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.numpy.conversion import from_dlpack as _from_dlpack
from catena.runtime.dlpack import is_supported as _is_supported
from catena.typing import DTypeLike as _DTypeLike


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> _Array:
    """An array of the values of another library's array.

    Arguments:
      external_array: an object with ``__dlpack__`` and ``__dlpack_device__``, on the CPU.
      device: the device to put the result on; None for the default one.
      copy: False to share memory or raise, True to copy; None copies what cannot be shared: NumPy arrays that can
        still be written to, and dtypes that arrays cannot have (64 bits where these are not enabled). Memory of other
        libraries is shared: what they write to it, the result has too.
    Returns:
      An array.
    Raises:
      TypeError: the object does not have the protocol. BufferError: it is not on the CPU.
      ValueError: ``copy`` is False and memory cannot be shared safely, or ``device`` is none.

    >>> import numpy as np
    >>> from catena import dlpack
    >>> dlpack.from_dlpack(np.arange(3.0, dtype="float32"))
    Array([0., 1., 2.], dtype=float32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: _DTypeLike) -> bool:
    """Whether arrays of a dtype can be handed to other libraries: DLPack has a name for it.

    Arguments:
      dtype: a dtype.
    Returns:
      A bool.
    Raises:
      TypeError: it is no dtype.

    >>> from catena import dlpack
    >>> dlpack.is_supported_dtype("float32"), dlpack.is_supported_dtype("int4")
    (True, False)
    """
    found = _dtypes.as_dtype(dtype)
    return isinstance(found, _np.dtype) and _is_supported(found)


_open_door(globals(), "catena.dlpack")

__dir__ = _shown(globals())
