"""Kernels that programs share: those whose machine code is in this process already are linked, not compiled again.

A kernel's function is named by its text, which tells neither the extent of its outermost loop (see `plan.ranges`) nor
anything of the program around it. So a function at a new batch size, or another one with the same layer, finds most of
its kernels here. A program keeps the code of those that it calls; code that no program uses is freed. The entry is
compiled by itself: that of a function at another size is the same text, whose machine code is here too.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from catena.compiler.emit.module import COLD, Choice, Module, calls, digest, facts
from catena.compiler.native import kept, link
from catena.compiler.native.later import Written
from catena.runtime.native import Code, Function


@dataclass
class Part:
    """What is compiled by itself."""

    text: str  # LLVM IR
    level: int  # LLVM's effort
    exports: dict[str, str]  # functions that others may call: what their machine code depends on, by name
    imports: list[Function]  # functions that it calls
    later: Written | None = None  # the only function, where that hardly ever runs


@dataclass
class Plan:
    """What is compiled of a module, and what is linked."""

    kernels: list[Part]  # those that are new, callees first
    entry: Part  # finds its imports in its table, in this order
    is_bound: bool  # whether the entry's code is the program's own, as where functions note what failed
    codes: dict[str, Code]  # where the others are
    linked: int  # functions that are not compiled: the others, and what only they call
    choices: list[tuple[int, Choice]]  # imports of the entry's that hang on numbers, by their places


def plan(module: Module, level: int) -> Plan:
    """Divides a module."""
    frequent = link.too_many(module.math_calls(), module.helpers)
    keys = _keys(module, frequent, level)
    own, new, codes = _reached(module, keys)
    cold = [name for name in new if COLD in module.functions[name]]
    together = [name for name in new if name not in cold]
    kernels = [_cold(module, name, keys, frequent) for name in cold]
    if together:
        kernels.append(_part(module, together, keys, frequent, level))
    text, called = module.of_entry(own)
    text = _whole(module, text, frequent)
    entry = Part(text, link.entry_level(text, level), {}, [Function(name, keys[name]) for name in called])
    named = enumerate(() if own else calls(module.entry))
    choices = [(i, module.choices[name]) for i, name in named if name in module.choices]
    return Plan(kernels, entry, bool(own), codes, len(module.functions) - len(new) - len(own), choices)


def alone(body: str, level: int) -> Part:
    """A function that calls no others."""
    name = f"f{digest(body)}"
    return Part(f"define dso_local void @{name}{body}", level, {name: _key(name, level)}, [])


def _part(module: Module, names: list[str], keys: dict[str, str], frequent: frozenset[str], level: int) -> Part:
    """Some functions, as one module."""
    exports = {name: keys[name] for name in module.exported(names)}
    text = _whole(module, module.of_functions(names, exports), frequent)
    called = {name for each in names for name in facts(module.functions[each]).calls}.difference(names)
    return Part(text, level, exports, [Function(name, keys[name]) for name in sorted(called)])


def _cold(module: Module, name: str, keys: dict[str, str], frequent: frozenset[str]) -> Part:
    """A function that hardly ever runs: at half of LLVM's effort it is nearly as quick as at all, at none half."""
    part = _part(module, [name], keys, frequent, 1)
    parameters = module.functions[name].partition(")")[0].split(",")
    part.later = Written(part.text, part.level, parameters[0].partition("%")[2], len(parameters))
    return part


def _whole(module: Module, text: str, frequent: frozenset[str]) -> str:
    """A text with the helpers that it calls."""
    return link.with_helpers(text, link.used_helpers(text, module.helpers), frequent)


def _reached(module: Module, keys: dict[str, str]) -> tuple[list[str], list[str], dict[str, Code]]:
    """What the entry reaches, callees first: functions of the program's own, those that are new, and where the first
    known ones on each way are.
    """
    codes: dict[str, Code] = {}
    seen, pending = set(), module.called
    while pending:
        name = pending.pop()
        if name in seen or name not in module.functions:
            continue
        seen.add(name)
        code = kept.find(keys[name]) if name in keys else None
        if code is not None:
            codes[name] = code
        else:
            pending += facts(module.functions[name]).calls
    compiled = [name for name in module.functions if name in seen and name not in codes]
    if any(name not in keys for name in compiled):  # all in one piece
        return module.needed(), [], {}
    return [], compiled, codes


def _keys(module: Module, frequent: frozenset[str], level: int) -> dict[str, str]:
    """What the machine code of each function depends on, by name, for those that any program may call."""
    found: dict[str, frozenset[str] | None] = {}
    for name, body in module.functions.items():  # callees come before their callers
        of_body = facts(body)
        inner = [found[c] for c in of_body.calls if c in found]
        own = frequent.intersection(of_body.math)
        bound = of_body.bound or None in inner
        found[name] = None if bound else own.union(*[x for x in inner if x is not None])
    return {name: _key(name, level, x) for name, x in found.items() if x is not None}


def _key(name: str, level: int, frequent: Collection[str] = ()) -> str:
    return digest(f"{name} {level} {sorted(frequent)}")
