"""From object code to an image: bytes that run wherever they are put, so that another process needs no linker.

Code generated with positions relative to itself, of functions that call nothing outside, refers to its own sections
alone. Once these lie at fixed distances, every reference is a number. The format is ELF for x86-64: System V ABI, AMD64
supplement, chapter 4.
"""

from __future__ import annotations

import struct

_RELOCATIONS, _ZEROS, _SYMBOLS = 4, 8, 2  # section types
_ALLOCATED = 2  # section flag: in memory when the code runs
_RELATIVE = (2, 4)  # R_X86_64_PC32, R_X86_64_PLT32: symbol + addend - place, in 32 bits
_MACHINE = 62  # EM_X86_64
_HEADER, _SECTION, _SYMBOL, _RELOCATION = "<16xHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"


def image(code: bytes, function: str) -> tuple[bytes, int] | None:
    """The image of object code and the place of a function in it; None where the code refers to something outside,
    or is not ELF for x86-64.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        return None
    _, machine, *_, start, _, _, _, _, size, count, names_at = struct.unpack_from(_HEADER, code)
    if machine != _MACHINE:
        return None
    sections = [struct.unpack_from(_SECTION, code, start + i * size) for i in range(count)]
    names = [_text(code, sections[names_at][4] + s[0]) for s in sections]
    laid: dict[int, int] = {}  # section -> its place in the image
    out = bytearray()
    for i, (_, kind, flags, _, at, length, _, _, align, _) in enumerate(sections):
        if flags & _ALLOCATED and names[i] != ".eh_frame":
            out += b"\0" * (-len(out) % max(align, 1))
            laid[i] = len(out)
            out += b"\0" * length if kind == _ZEROS else code[at : at + length]
    symbols = _symbols(code, sections, laid)
    for _, kind, _, _, at, length, table, target, _, _ in sections:
        if kind != _RELOCATIONS or target not in laid:
            continue
        for place, info, addend in struct.iter_unpack(_RELOCATION, code[at : at + length]):
            value = symbols[table][info >> 32][1]
            if info & 0xFFFFFFFF not in _RELATIVE or value is None:
                return None
            where = laid[target] + place
            struct.pack_into("<i", out, where, value + addend - where)
    places = [value for table in symbols.values() for name, value in table if name == function]
    return (bytes(out), places[0]) if places and places[0] is not None else None


def _symbols(code: bytes, sections: list, laid: dict[int, int]) -> dict[int, list]:
    """By symbol table, the symbols' names and places in the image; None for those that are not in it."""
    found = {}
    for i, (_, kind, _, _, at, length, strings, *_) in enumerate(sections):
        if kind == _SYMBOLS:
            rows = struct.iter_unpack(_SYMBOL, code[at : at + length])
            found[i] = [
                (_text(code, sections[strings][4] + name), laid[section] + value if section in laid else None)
                for name, _, _, section, value, _ in rows
            ]
    return found


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()
