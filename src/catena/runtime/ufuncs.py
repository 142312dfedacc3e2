"""NumPy ufuncs around native loops: NumPy walks over the operands, of any strides, and the loop computes.

A call costs what a call of NumPy's own functions costs. Source: NumPy's C API, "Universal functions (ufuncs)".
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache

import numpy as np

_MAKE, _REGISTER = 1, 2  # places in the table of functions that NumPy exports for ufuncs
_BUILT_IN = 256  # type numbers from here on are dtypes that other packages registered
_NO_IDENTITY = -1
_kept: list = []  # NumPy does not copy the tables that a ufunc is made from


@cache
def _api(place: int, result, *types):
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = get_pointer(np._core._multiarray_umath._UFUNC_API, None)
    address = ctypes.c_void_p.from_address(table + place * ctypes.sizeof(ctypes.c_void_p)).value
    return ctypes.PYFUNCTYPE(result, *types)(address)


def ufunc(name: str, loop: int, operands: Sequence[np.dtype], keep=None) -> np.ufunc:
    """A ufunc of one loop.

    Arguments: `name`; `loop`, the address of its inner loop; `operands`, the dtypes of its operands and its result;
      `keep`, what owns the code.
    """
    numbers = [d.num for d in operands]
    built_in = all(n < _BUILT_IN for n in numbers)
    loops, data = (ctypes.c_void_p * 1)(loop), (ctypes.c_void_p * 1)(None)
    types = ctypes.create_string_buffer(bytes(numbers if built_in else []))
    label = ctypes.create_string_buffer(name.encode())
    integer = ctypes.c_int
    make = _api(
        _MAKE, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, integer, integer, integer, integer,
        ctypes.c_void_p, ctypes.c_void_p, integer,
    )  # fmt: skip
    made = make(
        ctypes.addressof(loops), ctypes.addressof(data), ctypes.addressof(types), int(built_in),
        len(operands) - 1, 1, _NO_IDENTITY, ctypes.addressof(label), None, 0,
    )  # fmt: skip
    _kept.append((loops, data, types, label, keep))
    if not built_in:
        pointer = ctypes.c_void_p
        register = _api(_REGISTER, integer, ctypes.py_object, integer, pointer, pointer, pointer)
        register(made, max(numbers), loop, (integer * len(numbers))(*numbers), None)
    return made
