"""The program of a jaxpr: found on disk where it was compiled before, else compiled and kept."""

from __future__ import annotations

import functools

from catena.compiler.native import cache, lengths, stored
from catena.compiler.native.executable import Executable
from catena.compiler.native.fingerprint import fingerprint
from catena.core.jaxpr import ClosedJaxpr
from catena.core.lazy import LazyModule, without_collection

compiler = LazyModule("catena.compiler.native.compile")  # 0.2 s, which a program that is found does not need


def program(
    closed: ClosedJaxpr, *, name: str = "main", donated: tuple[bool, ...] = (), checks: frozenset = frozenset()
) -> Executable:
    """The executable of a closed jaxpr; arguments as for `compile.compile_jaxpr`."""
    if checks:  # what these say of lines holds in this process
        return compiler.compile_jaxpr(closed, name=name, donated=donated, checks=checks)
    with without_collection():
        return _program(closed, name, donated)


def _program(closed: ClosedJaxpr, name: str, donated: tuple[bool, ...]) -> Executable:
    told = lengths.read(closed)
    text, numbers = told or (None, [])
    family = None if text is None else lengths.family_of(text, donated, numbers)
    as_text = functools.partial(_text, closed, donated)
    executable = None if family is None else family.find(numbers, as_text)
    key, consts = name_on_disk(closed, donated, told), [getattr(x, "_value", x) for x in closed.consts]
    if executable is None:
        found = stored.find(key, consts, as_text)
        if found is not None:
            return found[0]
        executable = _compiled(closed, family, numbers, name, donated)
    stored.keep(key, executable, {}, consts)
    return executable


def _compiled(
    closed: ClosedJaxpr, family: lengths.Family | None, numbers: list, name: str, donated: tuple
) -> Executable:
    """Compiles a program: the second one of a family, and others that are none of its plans, so that it is one more."""
    if family is not None and numbers != family.first and family.is_worth_it():
        family.tries += 1
        given = family.recorded(numbers)
        compiled = compiler.compile_recorded(closed, given, name, donated)
        if compiled is not None:
            executable, made = compiled
            family.add(executable, given, made)
            return executable
    return compiler.compile_jaxpr(closed, name=name, donated=donated)


def _text(closed: ClosedJaxpr, donated: tuple[bool, ...]) -> str:
    return compiler.text_of(closed, donated)


def name_on_disk(closed: ClosedJaxpr, donated: tuple[bool, ...], told: tuple | None = None) -> str | None:
    """The name of the program in all processes; None where another process could not know it again, or none is kept.
    It may be `told` already what the jaxpr consists of (`lengths.read`).
    """
    text = (told or fingerprint(closed)) if cache.directory() is not None else None
    return None if text is None else stored.name_of("jaxpr", text, donated)
