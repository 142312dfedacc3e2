"""The entries of native programs as functions of two tuples, each with its program's table as its third argument.

Programs of one text share their machine code; what is a program's own lies in its table. Where a few bytes of code may
be written, a stub gives the table to the entry, and a call costs what a call of the entry itself does. Elsewhere
Python does.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

from catena.runtime import images

ENTRY_TYPE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object)
_WITH_TABLE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.py_object, ctypes.c_void_p)
# x86-64: the third argument is in rdx by the System V ABI, in r8 on Windows.
_THIRD = b"\x49\xb8" if sys.platform == "win32" else b"\x48\xba"
_STUBS = platform.machine().lower() in ("x86_64", "amd64")


def bound(address: int, table: ctypes.Array):
    """The entry at this address with its table, which it keeps."""
    place = ctypes.addressof(table)
    pages = images.pages(_stub(address, place)) if _STUBS else None
    if pages is None:
        return Entry(address, table)
    entry = ENTRY_TYPE(images.address(pages))
    entry._kept = pages, table  # type: ignore[attr-defined]
    return entry


def _stub(address: int, table: int) -> bytes:
    """The code `mov <third argument>, table; mov rax, address; jmp rax`."""
    return struct.pack("<2sQ2sQ2s", _THIRD, table, b"\x48\xb8", address, b"\xff\xe0")


class Entry:
    """An entry whose table Python hands on."""

    def __init__(self, address: int, table: ctypes.Array):
        self._function, self._table, self._place = _WITH_TABLE(address), table, ctypes.addressof(table)

    def __call__(self, args: tuple, outs: tuple) -> int:
        return self._function(args, outs, self._place)

    @property
    def errcheck(self):
        """What looks at the status of each call, as for functions of ctypes."""
        return self._function.errcheck

    @errcheck.setter
    def errcheck(self, check) -> None:
        self._function.errcheck = check
