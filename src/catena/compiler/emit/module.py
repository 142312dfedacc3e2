"""A program as one LLVM module: globals, functions, the entry; functions that are linked are left out of its text.

Functions are named by their text, so equal ones are one, in all programs.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

NOT_INLINED = "nounwind noinline {"  # ends the head of a function that stays one, for other programs to call


@dataclass
class Module:
    """What the linker needs."""

    head: str  # globals
    functions: dict[str, str]  # parameters and bodies by name, callees before callers
    entry: str
    constants: list[np.ndarray]
    externals: list  # addresses or callables, bound at load in this order
    helpers: dict
    arena_bytes: int
    flops: int = 0
    bytes: int = 0
    interruptible: bool = False
    sites: list[str] = field(default_factory=list)  # of bounds checks, in checked mode

    def text(self, linked: Collection[str] = ()) -> str:
        """LLVM IR, but for the helpers that it calls; functions that are `linked` are only declared."""
        needed, once = self.needed(linked), self._called_once(linked)
        parts = [self.head]
        for name in needed:
            body = self.functions[name]
            if name in linked:
                parts.append(f"declare void @{name}{_NAME.sub('', body[: body.index(')') + 1])}")
            elif name in once:
                parts.append(f"define internal void @{name}{_always_inline(body)}")
            else:
                parts.append(f"define dso_local void @{name}{body}")
        return "\n".join([*parts, self.entry])

    def exported(self, linked: Collection[str] = ()) -> list[str]:
        """The functions that the text defines as such, not as parts of others."""
        once = self._called_once(linked)
        return [name for name in self.needed(linked) if name not in linked and name not in once]

    def needed(self, linked: Collection[str]) -> list[str]:
        """The functions that the entry reaches, callees first; what only linked ones call is not needed."""
        needed = set(calls(self.entry))
        for name, body in reversed(self.functions.items()):
            if name in needed and name not in linked:
                needed.update(calls(body))
        return [name for name in self.functions if name in needed]

    def _called_once(self, linked: Collection[str]) -> set[str]:
        """Functions with one caller, which runs chunks: as parts of it, they cost LLVM half as much."""
        needed = [name for name in self.needed(linked) if name not in linked]
        inner = [called for name in needed for called in calls(self.functions[name])]
        count = Counter([*inner, *calls(self.entry)])
        return {n for n in inner if count[n] == 1 and n not in linked and NOT_INLINED not in self.functions[n]}


class Texts:
    """What a program's text consists of beside its entry, while it is being written."""

    def __init__(self):
        self.functions: dict[str, str] = {}  # text -> name
        self.kernels: dict[tuple, str] = {}  # structure of a loop nest -> name of its function
        self.helpers: dict = {}
        self._constants: list[np.ndarray] = []
        self._constant_at: dict[int, int] = {}
        self._externals: list = []
        self._literals: dict[str, str] = {}  # constants in memory, for routines that want addresses

    def constant(self, array: np.ndarray) -> tuple[int, bool]:
        """The number of a constant array, and whether it is new."""
        known = self._constant_at.get(id(array))
        if known is not None:
            return known, False
        self._constants.append(array)
        return self._constant_at.setdefault(id(array), len(self._constants) - 1), True

    def external(self, target) -> int:
        """The number of a library function or callback."""
        if target not in self._externals:
            self._externals.append(target)
        return self._externals.index(target)

    def literal(self, name: str, value: str) -> str:
        """The name of a constant in the module."""
        self._literals[f"@{name}"] = f"@{name} = private unnamed_addr constant {value}"
        return f"@{name}"

    def function(self, body: str) -> str:
        return self.functions.setdefault(body, f"f{digest(body)}")

    @property
    def is_plain(self) -> bool:
        """Whether nothing is bound at load."""
        return not self._constants and not self._externals

    def module(self, entry: str, globals_: list[str], program, interruptible: bool, sites: list[str]) -> Module:
        head = [
            f"@constants = global [{max(len(self._constants), 1)} x ptr] zeroinitializer, align 16",
            f"@externals = global [{max(len(self._externals), 1)} x ptr] zeroinitializer, align 16",
            *self._literals.values(),
            *globals_,
        ]
        functions = {name: body for body, name in self.functions.items()}
        return Module(
            head="\n".join(head),
            functions=functions,
            entry=entry,
            constants=self._constants,
            externals=self._externals,
            helpers=self.helpers,
            arena_bytes=program.arena_bytes,
            flops=program.flops,
            bytes=program.bytes,
            interruptible=interruptible,
            sites=sites,
        )


_FUNCTION = re.compile(r"@(f[0-9a-f]{24})\b")  # see `digest`
_NAME = re.compile(r" %\w+")


def calls(text: str) -> list[str]:
    """The functions of a module that a text calls or passes on, as often as it does."""
    return _FUNCTION.findall(text)


def _always_inline(body: str) -> str:
    return body.replace(") nounwind {", ") alwaysinline nounwind {", 1)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
