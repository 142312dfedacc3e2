"""Kernels that programs share: those whose machine code is in this process already are linked, not compiled again.

A kernel's function is named by its text, which tells neither the extent of its outermost loop (see `plan.ranges`) nor
anything of the program around it. So a function at a new batch size, or another one with the same layer, finds most of
its kernels here. A program keeps the code of those that it calls; code that no program uses is freed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from catena.compiler.emit.module import Module, calls, digest
from catena.compiler.native import link
from catena.runtime.native import Code, known

_BOUND = re.compile(r"@(?:constants|externals|violation|arena_cache)\b")  # what differs between programs


@dataclass
class Plan:
    """What is compiled of a module, and what is linked."""

    text: str  # LLVM IR of all that is compiled
    exports: dict[str, str]  # functions that others may call: what their machine code depends on, by name
    imports: dict[str, str]  # functions that are linked, likewise
    codes: dict[str, Code]  # where these are
    linked: int  # functions that are not compiled: those, and what only they call


def plan(module: Module, whole: str, level: int, alone: bool = False) -> Plan:
    """Divides a module, of which `whole` is all text; one that is `alone` links nothing."""
    frequent = link.frequent(whole)
    keys = _keys(module, frequent, level)
    codes = {} if alone else _linked(module, keys)
    text = whole
    if codes:
        text = module.text(codes)
        text = link.with_helpers(text, link.used_helpers(text, module.helpers), frequent)
    exports = {name: keys[name] for name in module.exported(codes) if name in keys}
    linked = len(module.functions) - len(module.needed(codes)) + len(codes)
    return Plan(text, exports, {name: keys[name] for name in codes}, codes, linked)


def _linked(module: Module, keys: dict[str, str]) -> dict[str, Code]:
    """The functions that are linked: of those that the entry reaches, the first known on each way."""
    found: dict[str, Code] = {}
    seen, pending = set(), calls(module.entry)
    while pending:
        name = pending.pop()
        if name in seen or name not in module.functions:
            continue
        seen.add(name)
        code = known(keys[name]) if name in keys else None
        if code is not None:
            found[name] = code
        else:
            pending += calls(module.functions[name])
    return found


def _keys(module: Module, frequent: frozenset[str], level: int) -> dict[str, str]:
    """What the machine code of each function depends on, by name, for those that any program may call."""
    facts: dict[str, frozenset[str] | None] = {}
    for name, body in module.functions.items():  # callees come before their callers
        inner = [facts[c] for c in calls(body) if c in facts]
        own = {symbol for symbol in frequent if f"{symbol}(" in body}
        bound = _BOUND.search(body) or None in inner
        facts[name] = None if bound else frozenset(own).union(*[x for x in inner if x is not None])
    return {name: digest(f"{name} {level} {sorted(x)}") for name, x in facts.items() if x is not None}
