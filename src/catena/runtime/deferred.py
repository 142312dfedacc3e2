"""Code that is made when it is first called: what hardly ever runs costs a program nothing until then.

Callers are given a few bytes that jump to where a cell says: to a function of Python, which makes the code and has the
cell say where it is, and from then on to the code itself.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable

from catena.runtime import images
from catena.runtime.native import Code, Unit, offer

_JUMPS = platform.machine().lower() in ("x86_64", "amd64")
_Make = Callable[[], Code]
_Instead = Callable[..., None]


class Deferred(Code):
    """The code of a function that is made later: as long as this object, callers find it."""

    def __init__(self, pages, kept: tuple, unit: Unit):  # nothing is loaded yet
        self.object_code, self.unit, self.linked = b"", unit, ()
        self._pages, self._kept = pages, kept
        for key in unit.exports.values():
            offer(key, self)

    def address(self, name: str) -> int:
        """Where the function is called; 0 for others."""
        return images.address(self._pages) if self.unit is not None and name in self.unit.exports else 0


def deferred(
    unit: Unit, arguments: int, make: _Make, is_needless: Callable[..., bool], instead: _Instead
) -> Deferred | None:
    """The only function of a unit, which takes so many integers and addresses, to be made by `make` when it is first
    called, unless it `is_needless`, which does what is to be done then. Where that fails, another is called `instead`,
    and the error is printed: it has no other way out. None where no code can be written here, or the function calls
    others.
    """
    (name,) = unit.exports
    cell = (ctypes.c_uint64 * 1)()
    made: list[Code] = []
    pages = images.pages(_jump(ctypes.addressof(cell))) if _JUMPS and not unit.imports else None
    if pages is None:
        return None
    type_ = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)

    def first(*given: int) -> None:
        try:
            if is_needless(*given):
                return
            made.append(make())  # twice where two threads come at once: both stay
        except BaseException:
            instead(*given)
            raise
        cell[0] = made[-1].address(name)
        type_(cell[0])(*given)

    function = type_(first)
    cell[0] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return Deferred(pages, (cell, made, function), unit)


def _jump(cell: int) -> bytes:
    """The code `mov rax, cell; jmp [rax]`."""
    return struct.pack("<2sQ2s", b"\x48\xb8", cell, b"\xff\x20")
