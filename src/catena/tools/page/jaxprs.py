"""Jaxprs as lines that know the places in the user's source that they come from.

A line is a list: its text, the numbers of places, the numbers of steps; what is empty at the end is left out.
"""

from __future__ import annotations

import re

from catena.core.layout import render
from catena.core.printer import Names, Printer
from catena.tools.page.places import Places

MOST_LINES = 3000  # of one stage
MOST_CHARACTERS = 160_000

Line = list  # [text, places, steps]


def line(text: str, places=(), steps=()) -> Line:
    """A line, shortened where it is very long."""
    text = text if len(text) <= 400 else text[:400] + " ..."
    made = [text, list(places), list(steps)]
    while len(made) > 1 and not made[-1]:
        made.pop()
    return made


def bounded(lines: list[Line], programs: int = 1) -> list[Line]:
    """As many lines as a page of so many programs shows of one stage, and a line that says so."""
    room, count = MOST_CHARACTERS // programs, 0
    while count < min(len(lines), MOST_LINES // programs) and room > 0:
        room -= len(lines[count][0])
        count += 1
    if count == len(lines):
        return lines
    return [*lines[:count], line(f"... {len(lines) - count:,} more lines; compiled.as_text(...) has all of them")]


class MarkedPrinter(Printer):
    """Prints jaxprs with a character of no script before each equation: its place, by its number."""

    FIRST = 0xF0000

    def __init__(self, places: Places):
        super().__init__(False, False)
        self._places = places

    def equation(self, eqn, names, used=None):
        place = self._places.number(eqn.source)
        mark = "" if place is None else chr(self.FIRST + place)
        return [mark, super().equation(eqn, names, used)]


_MARK = re.compile("[\U000f0000-\U000ffffd]")


def lines(closed, places: Places) -> list[Line]:
    """The jaxpr, printed."""
    printer, names = MarkedPrinter(places), Names()
    printer.find_shared(closed)
    heads = printer.shared_definitions(names)
    text = render([*heads, printer.jaxpr(closed, names)], 100)
    marks = lambda row: dict.fromkeys(ord(m) - MarkedPrinter.FIRST for m in _MARK.findall(row))  # noqa: E731
    return [line(_MARK.sub("", row), marks(row)) for row in text.splitlines()]
