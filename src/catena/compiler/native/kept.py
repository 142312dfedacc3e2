"""Kernels on disk, found by what their machine code depends on: a program that is new to a machine compiles what no
other program of the user has.

For each function that programs share there is a note of the object code that has it. Of a script that was changed, or
another one of the same layers, LLVM compiles what is new.
"""

from __future__ import annotations

import functools
import json

from catena.compiler.native import cache, host, link, stored
from catena.core import lazy
from catena.runtime.native import Code, Unit, known


def find(key: str) -> Code | None:
    """The code that has the function of this key: it is in this process, or a program that ran before left it."""
    return known(key) or _on_disk(key)


def keep(unit: Unit) -> None:
    """Notes which functions are in the object code of a unit, which is on disk."""
    if cache.directory() is None:
        return
    note = json.dumps([unit.name, unit.exports, unit.imports]).encode()
    for key in unit.exports.values():
        if (name := _name(key)) is not None:
            cache.save(name, note)


def _on_disk(key: str) -> Code | None:
    name = _name(key) if cache.directory() is not None else None
    note = cache.load(name) if name is not None else None
    if note is None:
        return None
    try:
        unit = stored.unit_of(*json.loads(note))
        called = [find(function.key) for function in unit.imports]  # held until what calls them is loaded
        codes = stored.codes_of([unit]) if None not in called else None
    except stored.UNREADABLE:
        return None
    return None if codes is None else known(key)


def _name(key: str) -> str | None:
    """What the disk cache calls the note of a function; None where it could be that of other source."""
    stamp = stored.source_stamp(lazy.LOADED)
    return cache.key("function", key, _maker(stamp, link.PASSES, host.identity())) if stamp else None


@functools.cache
def _maker(stamp: str, passes: tuple[str, ...], identity: tuple[str, ...]) -> str:
    """Stands for what makes machine code of a function: a stamp of the source has 40 KB."""
    return cache.key(stamp, *passes, *identity)
