"""What compiled programs call: library routines and Python callbacks, each an object with an `address`.

A callback has the C signature `i32 f(ptr* pointers)`: the addresses of its operands, then those of its
results. An exception in it is kept for the thread that made the call and raised when the program returns.
"""

from __future__ import annotations

import ctypes
import functools
import math
import threading
import weakref

import numpy as np

from catena.runtime import library as routines

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_pending = threading.local()


class Routine:
    """A routine of BLAS or LAPACK."""

    def __init__(self, name: str):
        self.name = name

    @property
    def address(self) -> int:
        return routines.address(self.name)

    def __eq__(self, other):
        return isinstance(other, Routine) and other.name == self.name

    def __hash__(self):
        return hash(self.name)


class ThreadControl:
    """OpenBLAS's `set_num_threads` or `get_num_threads`."""

    def __init__(self, name: str):
        self.name = name

    @property
    def address(self) -> int:
        return routines.thread_control(self.name)

    def __eq__(self, other):
        return isinstance(other, ThreadControl) and other.name == self.name

    def __hash__(self):
        return hash(self.name)


class PythonRoutine:
    """A function of Python's C interface."""

    def __init__(self, name: str):
        self.name = name

    @property
    def address(self) -> int:
        return ctypes.cast(getattr(ctypes.pythonapi, self.name), ctypes.c_void_p).value

    def __eq__(self, other):
        return isinstance(other, PythonRoutine) and other.name == self.name

    def __hash__(self):
        return hash(self.name)


class Cell:
    """Some 64-bit words of the process."""

    def __init__(self, words: int):
        self.words = np.zeros(words, np.int64)
        self.address = self.words.ctypes.data


class ForeignCall:
    """A call of a C function that returns 0, beside the same in Python, for where programs are interpreted.

    Arguments:
      address: of the function.
      arguments: what it takes: ``("in", k)`` and ``("out", k)`` are addresses of operands and results, an integer is an
        ``int``, ``("int", j)`` one that stands in word ``j``, ``("handle", j)`` the ``bits`` of word ``j``, and
        ``("space", j)`` the address of words from ``j`` on.
      words: how many words there are.
      bits: the size of handles.
      python: the same as a function of NumPy arrays.
      where: the user's line.
    """

    def __init__(self, address: int, arguments: tuple, words: int, bits: int, python, where: str):
        self.address, self.arguments, self.bits = address, arguments, bits
        self.cell, self.python, self.where = Cell(words), python, where
        SITES.append(weakref.ref(self))
        self.site = len(SITES) - 1

    def __call__(self, *values):
        return self.python(*values)


SITES: list = [None]  # calls of C functions that may wait for another process, by number
WAITING = Cell(2)  # in which of them the program is, 0 for none; and how many there were before


def waits_in() -> tuple[int, str] | None:
    """In which call a program waits, if it does: how many there were before, and the user's line."""
    site, count = WAITING.words.tolist()
    call = SITES[site]() if site else None
    return (count, call.where) if call is not None else None


BLAS_USERS = Cell(2)  # running programs that use BLAS, and BLAS's number of threads before them
PENDING_ERROR = Cell(3)  # what a signal handler raised; handlers run in one thread only, the main thread
_restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))


def raise_interrupt() -> None:
    """Raises what a signal handler raised while a native program ran."""
    error = [int(word) or None for word in PENDING_ERROR.words]
    PENDING_ERROR.words[:] = 0
    _restore(*error)


@functools.cache
def table_of(count: int):
    """The type of a table of addresses; made once, since types are never freed without the cyclic collector."""
    return ctypes.c_void_p * count


class Callback:
    """A Python function of ndarrays; operands are read-only views of memory, valid during the call."""

    def __init__(self, function, ins: tuple, outs: tuple):
        self.function, self.ins, self.outs = function, ins, outs
        self._table = table_of(len(ins) + len(outs))
        unowned = weakref.ref(self)  # the program owns it; a cycle would keep the user's function alive
        self._native = _CALLBACK(lambda pointers: unowned()._run(pointers))

    @property
    def address(self) -> int:
        return ctypes.cast(self._native, ctypes.c_void_p).value

    def _run(self, pointers: int) -> int:
        try:
            addresses = self._table.from_address(pointers)[:]
            arrays = [view(p, *spec) for p, spec in zip(addresses, (*self.ins, *self.outs))]
            operands, outs = arrays[: len(self.ins)], arrays[len(self.ins) :]
            for x in operands:
                x.flags.writeable = False
            for out, result in zip(outs, _as_list(self.function(*operands)), strict=True):
                np.copyto(out, result, casting="unsafe")
            return 0
        except BaseException as error:  # raised again by the thread that called the program
            _pending.error = error
            return 1


def _as_list(results) -> list:
    return [] if results is None else list(results) if isinstance(results, (list, tuple)) else [results]


def view(pointer: int, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """The array at an address."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    return np.frombuffer(bytes_of(size).from_address(pointer), dtype).reshape(shape)


@functools.lru_cache(256)
def bytes_of(size: int):
    """The type of memory of this size."""
    return ctypes.c_char * size


def raise_pending() -> None:
    """Raises what a callback of the last program raised in this thread."""
    error = getattr(_pending, "error", None)
    _pending.error = None
    raise error if error is not None else RuntimeError("a native program failed without saying why")


def can_limit_threads() -> bool:
    return bool(routines.thread_control("set_num_threads") and routines.thread_control("get_num_threads"))
