"""The buffer protocol for a class written in Python. Python 3.12 has it for every class with ``__buffer__``; in
CPython 3.11 the slot of the type is there, but only C can fill it, so it is filled here.
"""

import ctypes
import struct
import sys

SLOT = 160  # of ``tp_as_buffer`` in CPython 3.11's PyTypeObject, where pointers have 8 bytes
_Get = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_get_buffer = _Get(("PyObject_GetBuffer", ctypes.pythonapi))
_slots: list = []  # what the types point to must stay alive


def knows_the_slot() -> bool:
    """Whether this Python needs the slot filled and has it where ``SLOT`` says."""
    release = sys.implementation.name == "cpython" and not hasattr(sys, "gettotalrefcount")
    return release and sys.version_info[:2] == (3, 11) and struct.calcsize("P") == 8


def offer_buffer(kind: type) -> None:
    """Let ``memoryview(x)`` and its kin read instances of ``kind`` by what ``x.__buffer__`` gives."""
    if not knows_the_slot():
        return

    def fill(x, view: int, flags: int) -> int:
        try:
            return _get_buffer(x.__buffer__(flags), view, flags)
        except Exception:  # it cannot pass through C: the caller says that there is no such buffer
            return -1

    slot = _Get(fill)
    _slots.append(slot)
    table = ctypes.c_void_p.from_address(id(kind) + SLOT).value or 0
    ctypes.c_void_p.from_address(table).value = ctypes.cast(slot, ctypes.c_void_p).value
