"""Whole programs on disk, found by what they compute: no tracing, no compiler, just code that is loaded and called.

For programs that the package itself writes, such as the kernels of eager random draws: their makers name them by what
they are made from. The package's own source is part of every name, so a changed package finds none of the old ones.
"""

from __future__ import annotations

import functools
import json
import os

from catena.compiler import cache, host
from catena.core.config import TRACED
from catena.core.context import context
from catena.runtime.native import Native

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.cache
def source_stamp(loaded: int) -> str:
    """Stands for the source of the package: names, sizes and times of its files.

    Empty where they cannot be seen, or changed since the package was ``loaded`` (nanoseconds of the clock).
    """
    facts = []
    for folder, _, names in os.walk(ROOT):
        for name in names:
            if name.endswith(".py"):
                status = os.stat(os.path.join(folder, name))
                if status.st_mtime_ns > loaded:
                    return ""
                facts.append(f"{folder[len(ROOT) :]}/{name} {status.st_size} {status.st_mtime_ns}")
    return "\n".join(sorted(facts))


def name_of(loaded: int, *facts) -> str | None:
    """The name of the program that is made from these facts under the flags in force; None where none is kept."""
    stamp = source_stamp(loaded)
    if not stamp or context.dump_ir_to:
        return None
    flags = [repr(getattr(context, flag.attribute)) for flag in TRACED]
    return cache.key(stamp, *host.identity(), *flags, *map(repr, facts))


def find(name: str | None) -> tuple[Native, dict] | None:
    """The program of this name and what its maker noted of it, if it is there."""
    content = cache.load(name) if name else None
    if content is None:
        return None
    note, _, code = content.partition(b"\n")
    return Native(code, [], [], host.new_machine(1)), json.loads(note)


def keep(name: str | None, executable, note: dict) -> None:
    """Keep a program, with a note, where its code is all there is to it."""
    if name and executable.standalone:
        cache.save(name, json.dumps(note).encode() + b"\n" + executable.code)
