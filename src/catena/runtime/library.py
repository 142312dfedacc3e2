"""BLAS and LAPACK routines as C pointers, from the capsules that SciPy exports for Cython.

All arguments are passed by address and integers are 32 bits, as Fortran has it.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from catena.runtime.lazy import load

_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@lru_cache(maxsize=None)
def blas_address(name: str) -> int:
    """The address of a BLAS routine such as `dgemm`."""
    return _capsule("scipy.linalg.cython_blas", name)


@lru_cache(maxsize=None)
def lapack_address(name: str) -> int:
    """The address of a LAPACK routine such as `dpotrf`."""
    return _capsule("scipy.linalg.cython_lapack", name)


def _capsule(module: str, name: str) -> int:
    capsule = load(module).__pyx_capi__[name]
    return _get_pointer(capsule, _get_name(capsule))
