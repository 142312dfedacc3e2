"""Where compiled programs find the parts of Python's tuples and NumPy's arrays, and a check that they lie there.

Neither Python nor NumPy promises it. So the package looks at real objects when it is imported, and refuses to run where
they differ: a program would read, and write, memory that is something else.
"""

import ctypes
import struct
import sys

import numpy as np

HEAD = 16  # bytes of a Python object before its parts: a reference count and a type
TUPLE_ITEMS = tuple.__basicsize__
DATA, NDIM, SHAPE, STRIDES, BASE, DTYPE, FLAGS = (HEAD + 8 * i for i in range(7))  # of an array
READY = 0x0101  # NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED


def check_interpreter() -> None:
    """ImportError unless this is a Python whose objects can be looked at, and are laid out as in those we know."""
    name, version = sys.implementation.name, sys.version.split()[0]
    if name != "cpython":
        raise ImportError(f"catena needs CPython, since compiled programs read its objects in memory; this is {name}")
    if struct.calcsize("P") != 8:
        raise ImportError(f"catena needs a Python of 64 bits; this one has {8 * struct.calcsize('P')}")
    if object.__basicsize__ != HEAD:
        raise ImportError(
            f"catena cannot run on this build of Python {version}: its objects begin with {object.__basicsize__} bytes "
            f"of bookkeeping in place of {HEAD}, as those of free-threaded builds (python{version[:4]}t) do. Take an "
            "ordinary build of CPython."
        )


def check_layout() -> None:
    """ImportError unless tuples and arrays lie in memory as compiled programs expect."""
    whole, strided, nothing = np.zeros((3, 5)), np.zeros((3, 10))[:, ::2], np.zeros((), np.int8)
    arrays = (whole, strided, nothing)
    end = np.ndarray.__basicsize__
    fits = FLAGS + 4 <= end and tuple.__itemsize__ == 8
    if not (fits and _items(arrays) == list(map(id, arrays)) and all(map(_lies_as_expected, arrays))):
        python, numpy = sys.version.split()[0], np.__version__
        raise ImportError(
            f"catena cannot run with Python {python} and NumPy {numpy}: their tuples or arrays do not lie in memory as "
            "compiled programs expect. Versions that are known to work stand in pyproject.toml; a later catena may "
            "know these."
        )


def _items(values: tuple) -> list:
    return [_word(values, TUPLE_ITEMS + 8 * i) for i in range(len(values))]


def _lies_as_expected(a: np.ndarray) -> bool:
    flags = a.flags.c_contiguous * 0x0001 | a.flags.aligned * 0x0100
    shape, strides = (_word(a, place) for place in (SHAPE, STRIDES))
    return (
        _word(a, DATA) == a.__array_interface__["data"][0]
        and ctypes.c_int32.from_address(id(a) + NDIM).value == a.ndim
        and (_word(a, BASE) or id(None)) == id(a.base)
        and _word(a, DTYPE) == id(a.dtype)
        and ctypes.c_int32.from_address(id(a) + FLAGS).value & READY == flags
        and (strides == shape + 8 * a.ndim or not a.ndim)  # both in one piece; what is no address is not followed
        and (_words(shape, a.ndim), _words(strides, a.ndim)) == (a.shape, a.strides)
    )


def _word(x, offset: int) -> int:
    """The 64 bits at some offset in an object."""
    return ctypes.c_uint64.from_address(id(x) + offset).value


def _words(address: int, count: int) -> tuple:
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


check_interpreter()
check_layout()
