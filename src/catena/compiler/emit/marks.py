"""Marks in a program's text: comments that say which step wrote a line of the entry, for those who show programs."""

from __future__ import annotations

from collections.abc import Callable

from catena.compiler.plan.program import Program, Step

MARK = " ; step "


class Marks:
    """Stands where a clock does (``emit/clock.py``), and ends the lines that each step writes with its number."""

    def __init__(self, program: Program):
        self._number = {id(step): i for i, (_, step) in enumerate(program.steps())}

    def around(self, w, step: Step, write: Callable) -> None:
        """Writes a step and marks its lines, but for those that steps within it have marked."""
        lines, number = w.e.lines, self._number[id(step)]
        start = len(lines)
        write(w, step)
        for i in range(start, len(lines)):
            if MARK not in lines[i]:
                lines[i] += f"{MARK}{number}"
