"""From object code to an image: bytes that run wherever they are put, so that another process needs no linker.

Code generated with positions relative to itself, of functions that call nothing outside, refers to its own sections
alone. Once these lie at fixed distances, every reference is a number.
"""

from __future__ import annotations

import struct

from catena.runtime import elf

_RELATIVE = (2, 4)  # R_X86_64_PC32, R_X86_64_PLT32: symbol + addend - place, in 32 bits


def image(code: bytes, function: str) -> tuple[bytes, int] | None:
    """The image of object code and the place of a function in it; None where the code refers to something outside,
    writes to memory of its own, or is not ELF for x86-64.
    """
    found = elf.read(code)
    if found is None or found.written:
        return None
    for where, kind, (_, place), addend in found.references:
        if kind not in _RELATIVE or place is None:
            return None
        struct.pack_into("<i", found.content, where, place + addend - where)
    places = [symbol.place for symbol in found.symbols if symbol.name == function]
    return (bytes(found.content), places[0]) if places and places[0] is not None else None
