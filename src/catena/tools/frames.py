"""A frame of the user's program, as the debugger sees it."""

from __future__ import annotations

import linecache

from catena.core.named import NamedTuple

CONTEXT_LINES = 5


class Frame(NamedTuple):
    """A user's frame at the breakpoint; ``variables`` are its local ones, ``globals`` those of its module."""

    file_name: str
    function: str
    line: int
    variables: dict
    globals: dict

    def listing(self, context: int = CONTEXT_LINES) -> str:
        """The lines around the current one, which is marked."""
        first = max(1, self.line - context)
        lines = [linecache.getline(self.file_name, n).rstrip("\n") for n in range(first, self.line + context + 1)]
        marked = [("->  " if n == self.line else "    ") + text for n, text in enumerate(lines, first)]
        return f"> {self.file_name}({self.line})\n" + "\n".join(marked).rstrip()
