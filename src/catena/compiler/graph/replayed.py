"""What a record wrote down (see `graph.symbols`), done again for other numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

FEW_LINES, FEW_CONDITIONS = 24, 8  # that are asked first


# A step: the name of what it makes ("" of a condition), a function, the names of its operands, and whether a condition
# holds. Plain tuples, as there are thousands.
Line = tuple[str, Callable, tuple[str, ...], bool]


class Function:
    """What a record wrote down, for other numbers, step by step. The condition by which numbers were turned away is
    asked first from then on: of many records that are gone through, the others cost next to nothing.
    """

    def __init__(self, arguments: list[str], lines: list[Line], told: list, constants: dict[str, Any]):
        self.arguments, self.lines, self.told, self.constants = arguments, lines, told, constants
        self.first: dict[int, list[Line]] = {}  # by their places: conditions, with what they need

    def __call__(self, *given) -> list[int] | None:
        begun = {**self.constants, **dict(zip(self.arguments, given, strict=True))}
        for lines in list(self.first.values()):  # other threads may add some meanwhile
            if not self._holds(lines, begun):
                return None
        failed = _turned_away(self.lines, begun)
        if failed is not None:
            self._ask_first(failed)
            return None
        return [begun[x] if type(x) is str else x for x in self.told]

    def _holds(self, lines: list[Line], begun: dict) -> bool:
        """Whether a condition holds, as far as it can be asked before those that come before it."""
        try:
            return _turned_away(lines, begun) is None
        except (ArithmeticError, LookupError, ValueError):  # of numbers that one of those turns away
            return True

    def _ask_first(self, at: int) -> None:
        """Keeps a condition, unless much has to be computed for it."""
        needed, lines = {*self.lines[at][2]}, [self.lines[at]]
        for line in reversed(self.lines[:at]):
            if line[0] in needed:
                needed.update(line[2])
                lines.append(line)
        if len(lines) <= FEW_LINES and len(self.first) < FEW_CONDITIONS:
            self.first[at] = lines[::-1]


def _turned_away(lines: Sequence[Line], found: dict[str, Any]) -> int | None:
    """Does the steps, whose results join what was `found`; the place of the first condition that is otherwise."""
    of = found.__getitem__
    for at, (name, function, read, holds) in enumerate(lines):
        if len(read) == 2:  # most have two, and are twice as fast so
            a, b = read
            made = function(found[a], found[b])
        else:
            made = function(*map(of, read))
        if name:
            found[name] = made
        elif (not made) is holds:
            return at
    return None
