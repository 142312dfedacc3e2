"""The program of a jaxpr: found on disk where it was compiled before, else compiled and kept."""

from __future__ import annotations

from catena.compiler.native import cache, stored
from catena.compiler.native.executable import Executable
from catena.compiler.native.fingerprint import fingerprint
from catena.core.jaxpr import ClosedJaxpr
from catena.core.lazy import LazyModule

compiler = LazyModule("catena.compiler.native.compile")  # 0.2 s, which a program that is found does not need


def program(
    closed: ClosedJaxpr, *, name: str = "main", donated: tuple[bool, ...] = (), checks: frozenset = frozenset()
) -> Executable:
    """The executable of a closed jaxpr; arguments as for `compile.compile_jaxpr`."""
    if checks:  # what these say of lines holds in this process
        return compiler.compile_jaxpr(closed, name=name, donated=donated, checks=checks)
    key = name_on_disk(closed, donated)
    consts = [getattr(x, "_value", x) for x in closed.consts]
    found = stored.find(key, consts, lambda: compiler.text_of(closed, donated))
    if found is not None:
        return found[0]
    executable = compiler.compile_jaxpr(closed, name=name, donated=donated)
    stored.keep(key, executable, {}, consts)
    return executable


def name_on_disk(closed: ClosedJaxpr, donated: tuple[bool, ...]) -> str | None:
    """The name of the program in all processes; None where another process could not know it again, or none is kept."""
    text = fingerprint(closed) if cache.directory() is not None else None
    return None if text is None else stored.name_of("jaxpr", text, donated)
