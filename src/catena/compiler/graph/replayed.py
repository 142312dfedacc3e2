"""What a record wrote down (see `graph.symbols`), done again for other numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

BLOCK = 64  # lines
FEW_LINES, FEW_CONDITIONS = 24, 8  # that are asked first

Line = tuple[str, str, tuple[str, ...]]  # name ("" of a condition), expression, names read


class Otherwise(Exception):
    """Something that was written down is not so for other numbers."""


NAMES = {"np": np, "math": math, "inf": math.inf, "nan": math.nan, "Otherwise": Otherwise}


class Function:
    """What a record wrote down, for other numbers; a block of lines is compiled when numbers come so far. The condition
    by which numbers were turned away is asked first from then on: of many records that are gone through, the others
    cost next to nothing.
    """

    def __init__(self, arguments: list[str], lines: list[Line], told: list, names: dict):
        self.arguments, self.lines, self.told, self.names = arguments, lines, told, {**NAMES, **names}
        self.blocks: list = [None] * -(-len(lines) // BLOCK)
        self.first: dict[int, Any] = {}  # by their places: conditions, with what they need

    def __call__(self, *given) -> list[int] | None:
        arguments = dict(zip(self.arguments, given, strict=True))
        conditions = list(self.first.values())  # other threads may add some meanwhile
        if not all([self._holds(condition, arguments) for condition in conditions]):
            return None
        found = dict(arguments)
        for i, block in enumerate(self.blocks):
            if block is None:
                block = self.blocks[i] = _compiled(self.lines[i * BLOCK : (i + 1) * BLOCK])
            try:
                exec(block, self.names, found)
            except Otherwise as failed:
                line = cast(Any, failed.__traceback__).tb_next.tb_lineno  # a name for the traceback would be a cycle
                self._ask_first(i * BLOCK + line - 1)
                return None
        return [found[x] if type(x) is str else x for x in self.told]

    def _holds(self, condition, arguments: dict) -> bool:
        """Whether a condition holds, as far as it can be asked before those that come before it."""
        try:
            exec(condition, self.names, dict(arguments))
        except Otherwise:
            return False
        except (ArithmeticError, LookupError, ValueError):  # of numbers that one of those turns away
            return True
        return True

    def _ask_first(self, at: int) -> None:
        """Keeps a condition, unless much has to be computed for it."""
        needed, lines = set(self.lines[at][2]), [self.lines[at]]
        for line in reversed(self.lines[:at]):
            if line[0] in needed:
                needed.update(line[2])
                lines.append(line)
        if len(lines) <= FEW_LINES and len(self.first) < FEW_CONDITIONS:
            self.first[at] = _compiled(lines[::-1])


def _compiled(lines: Sequence[Line]):
    written = [f"{name} = {text}" if name else f"if not ({text}): raise Otherwise" for name, text, _ in lines]
    return _code("\n".join(written))


@functools.lru_cache(maxsize=1024)
def _code(text: str):
    """The code of some lines: records of a family begin alike."""
    return compile(text, "<record>", "exec")
