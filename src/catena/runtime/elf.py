"""Object code as LLVM makes it, read: where its parts go in memory, and what in them refers to what.

The format is ELF for x86-64: System V ABI, AMD64 supplement, chapter 4. Parts that nobody writes to come first; those
that code writes to begin a page.
"""

from __future__ import annotations

import mmap
import struct

from catena.core.named import NamedTuple

_RELOCATIONS, _ZEROS, _SYMBOLS = 4, 8, 2  # section types
_WRITTEN, _ALLOCATED = 1, 2  # section flags: written by the code; in memory when it runs
_MACHINE, _RELOCATABLE = 62, 1  # EM_X86_64, ET_REL
_OTHER_REFERENCES = (9, 0x40000014)  # section types: without addends, compressed
_HEADER, _SECTION, _SYMBOL, _RELOCATION = "<16xHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"


class Symbol(NamedTuple):
    """A name; `place` is where in memory it stands for, None outside of the object."""

    name: str
    place: int | None


class Reference(NamedTuple):
    """A place that is to hold what hangs on where a symbol lies; `kind` is the number of the ABI's table 4.9."""

    place: int
    kind: int
    symbol: Symbol
    addend: int


class Object(NamedTuple):
    """What an object has in memory, from a place of its own on."""

    content: bytearray
    written: int  # where what the code writes to begins; 0 where it writes to none of this
    symbols: list[Symbol]
    references: list[Reference]


def read(code: bytes) -> Object | None:
    """An object; None where this is not ELF for x86-64, or has what is not read here."""
    if code[:6] != b"\x7fELF\x02\x01":
        return None
    form, machine, *_, start, _, _, _, _, size, count, names_at = struct.unpack_from(_HEADER, code)
    if (form, machine) != (_RELOCATABLE, _MACHINE) or names_at >= count:  # many are counted elsewhere
        return None
    sections = [struct.unpack_from(_SECTION, code, start + i * size) for i in range(count)]
    if not all(map(_is_plain, sections)):
        return None
    names = [_text(code, sections[names_at][4] + s[0]) for s in sections]
    content, laid, written = _laid(code, sections, names)
    tables = {i: _symbols(code, s, sections, laid) for i, s in enumerate(sections) if s[1] == _SYMBOLS}
    references = [
        Reference(laid[target] + place, info & 0xFFFFFFFF, tables[table][info >> 32], addend)
        for _, kind, _, _, at, length, table, target, _, _ in sections
        if kind == _RELOCATIONS and target in laid
        for place, info, addend in struct.iter_unpack(_RELOCATION, code[at : at + length])
    ]
    return Object(content, written, [symbol for table in tables.values() for symbol in table], references)


def _is_plain(section: tuple) -> bool:
    """Whether references of this section are read here, and its content may begin where any page does."""
    return section[1] not in _OTHER_REFERENCES and not (section[2] & _ALLOCATED and section[8] > mmap.PAGESIZE)


def _laid(code: bytes, sections: list, names: list[str]) -> tuple[bytearray, dict[int, int], int]:
    """The parts of an object one behind the other, where each section's begins, and where those begin that are written
    to. How to unwind the stack is left out.
    """
    content, laid = bytearray(), {}
    kept = [i for i, s in enumerate(sections) if s[2] & _ALLOCATED and names[i] != ".eh_frame"]
    plain = [i for i in kept if not sections[i][2] & _WRITTEN]
    for i in plain:
        _lay(content, laid, i, code, sections[i])
    written = 0
    if len(plain) < len(kept):
        content += b"\0" * (-len(content) % mmap.PAGESIZE)
        written = len(content)
    for i in kept:
        if i not in laid:
            _lay(content, laid, i, code, sections[i])
    return content, laid, written


def _lay(content: bytearray, laid: dict[int, int], i: int, code: bytes, section: tuple) -> None:
    _, kind, _, _, at, length, _, _, align, _ = section
    content += b"\0" * (-len(content) % max(align, 1))
    laid[i] = len(content)
    content += b"\0" * length if kind == _ZEROS else code[at : at + length]


def _symbols(code: bytes, section: tuple, sections: list, laid: dict[int, int]) -> list[Symbol]:
    at, length, strings = section[4], section[5], sections[section[6]][4]
    rows = struct.iter_unpack(_SYMBOL, code[at : at + length])
    return [
        Symbol(_text(code, strings + name), laid[number] + value if number in laid else None)
        for name, _, _, number, value, _ in rows
    ]


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()
