"""BLAS and LAPACK routines as C pointers.

They come from the OpenBLAS that NumPy's wheel has loaded already (64-bit integers; no import, and the same
sums as eager evaluation). Where NumPy was built otherwise they come from the capsules that SciPy exports for
Cython (32-bit integers). All arguments are passed by address, as Fortran has it.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

import numpy as np

from catena.core.lazy import load

_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@cache
def path() -> str | None:
    """Where the OpenBLAS of NumPy's wheel lies; its name tells releases apart."""
    folder = os.path.dirname(os.path.abspath(np.__file__))
    places = [
        os.path.join(os.path.dirname(folder), "numpy.libs"),
        *(os.path.join(folder, x) for x in (".libs", ".dylibs")),
    ]
    names = ((place, name) for place in places if os.path.isdir(place) for name in sorted(os.listdir(place)))
    return next((os.path.join(*found) for found in names if "openblas64_" in found[1]), None)


@cache
def bundled() -> ctypes.CDLL | None:
    """The OpenBLAS inside NumPy's wheel, if it has the routines under the names that we know."""
    library = ctypes.CDLL(path()) if path() is not None else None
    known = hasattr(library, "scipy_dgemm_64_") and hasattr(library, "scipy_dpotrf_64_")
    return library if known else None


def integer_bits() -> int:
    """The width of the routines' integers."""
    return 64 if bundled() is not None else 32


@cache
def address(name: str) -> int:
    """The address of a BLAS or LAPACK routine such as `dgemm` or `dpotrf`."""
    library = bundled()
    if library is not None:
        return ctypes.cast(getattr(library, f"scipy_{name}_64_"), ctypes.c_void_p).value
    for module in ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"):
        capsule = load(module).__pyx_capi__.get(name)
        if capsule is not None:
            return _get_pointer(capsule, _get_name(capsule))
    raise LookupError(f"no BLAS or LAPACK routine is called {name!r}")


@cache
def thread_control(name: str) -> int:
    """The address of `set_num_threads` or `get_num_threads` of the bundled OpenBLAS, or 0."""
    library = bundled()
    function = getattr(library, f"scipy_openblas_{name}64_", None) if library is not None else None
    return ctypes.cast(function, ctypes.c_void_p).value if function is not None else 0
