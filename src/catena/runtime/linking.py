"""Object code made to run in this process, without LLVM: a process that finds all its programs on disk never loads it.

LLVM's code for programs finds what it refers to from the place of one table of addresses, at distances of 64 bits: so
the code may lie anywhere, and so may what it calls. The names of the references' kinds are those of the System V ABI.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import weakref
from collections.abc import Mapping

from catena.runtime import elf, images

_64, _PC64, _GOTOFF64, _GOT64, _GOTPC64 = 1, 24, 25, 27, 29
_TABLE = "_GLOBAL_OFFSET_TABLE_"


class Linked:
    """Code in memory, which is given back when nobody holds this object any more."""

    def __init__(self, start: int, size: int, places: dict[str, int]):
        self._start, self._places = start, places
        # At the end of the process nothing is given back: threads may run the code until then.
        weakref.finalize(self, images.free, start, size).atexit = False

    def address(self, name: str) -> int:
        """Where a function or variable is; 0 where there is none."""
        place = self._places.get(name)
        return 0 if place is None else self._start + place


def linked(code: bytes, imports: Mapping[str, int]) -> Linked | None:
    """Object code that calls functions of other code, whose addresses are given by name, and of the process. None where
    this is not for us: it is of another format, refers to what we do not know, or there is no memory for code.
    """
    found = elf.read(code)
    if found is None or not all(_is_known(each) for each in found.references):
        return None
    addressed = dict.fromkeys(each.symbol for each in found.references if each.kind in (_64, _GOT64))
    outside = {s: imports.get(s.name) or _of_process(s.name) for s in addressed if s.place is None}
    if None in outside.values():
        return None
    content = found.content
    content += b"\0" * (-len(content) % 8)
    table, size = len(content), len(content) + 8 * len(addressed)
    start = images.reserve(size)
    if start is None:
        return None
    addresses = {s: outside[s] if s.place is None else start + s.place for s in addressed}
    slots = {s: 8 * i for i, s in enumerate(addressed)}
    for where, kind, symbol, addend in found.references:
        if kind == _GOTPC64:
            value = table - where
        elif kind in (_PC64, _GOTOFF64):
            value = symbol.place - (table if kind == _GOTOFF64 else where)
        else:
            value = slots[symbol] if kind == _GOT64 else addresses[symbol]
        struct.pack_into("<q", content, where, value + addend)
    content += struct.pack(f"<{len(addressed)}Q", *addresses.values())
    made = Linked(start, size, {s.name: s.place for s in found.symbols if s.name and s.place is not None})
    return made if images.fill(start, content, found.written or size) else None


def _is_known(reference: elf.Reference) -> bool:
    """Whether we know what is to be written: all but how far what lies outside is."""
    name, place = reference.symbol
    if reference.kind == _GOTPC64:
        return name == _TABLE
    return reference.kind in (_64, _GOT64) or reference.kind in (_PC64, _GOTOFF64) and place is not None


@functools.cache
def _of_process(name: str) -> int | None:
    """The address of a function of the libraries that Python itself is linked with."""
    try:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    except AttributeError:
        return None
