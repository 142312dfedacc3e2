"""Places in the user's program, numbered, and the source around them, as pages show it."""

from __future__ import annotations

import itertools
import linecache
import os
from collections.abc import Iterable
from types import CodeType

from catena.core.source import PlainSource, Source, position

AROUND = 3  # lines that are shown before and after
MODULE_AROUND = 12  # the same for what stands in no function
MOST_LINES = 4000  # of all files together


class Places:
    """The places that a page speaks of: each has a number, lines and columns."""

    def __init__(self):
        self._numbers: dict[tuple, int] = {}
        self._files: dict[str, int] = {}
        self._shown: dict[str, set[int]] = {}
        self._functions: dict[int, CodeType] = {}  # that are shown, by identity
        self.rows: list[list[int]] = []  # the file, first and last line, first and last column

    def number(self, source: Source | PlainSource | None) -> int | None:
        """The number of a place; None for none."""
        if source is None:
            return None
        position = extent(source)
        key = source.file_name, *position
        if key not in self._numbers:
            self._numbers[key] = len(self.rows)
            self.rows.append([self._file(source.file_name), *position])
            self._show(source)
        return self._numbers[key]

    def numbers(self, sources: Iterable) -> list[int]:
        """The numbers of several places, each once."""
        found = {self.number(source) for source in sources} - {None}
        return sorted(found)  # type: ignore[type-var]

    def line(self, file_name: str, line: int) -> int:
        """The number of a whole line."""
        return self.number(PlainSource(file_name, line, ""))  # type: ignore[return-value]

    def name(self, file: int) -> str:
        """The name of a file, without its folder."""
        return os.path.basename(list(self._files)[file])

    def files(self) -> list[dict]:
        """The files with the lines that are shown of them, in runs."""
        budget = MOST_LINES
        found = []
        for name in self._files:
            text = linecache.getlines(name)
            lines = sorted(n for n in self._shown[name] if 0 < n <= len(text))[: max(budget, 0)]
            budget -= len(lines)
            runs = [[n for _, n in run] for _, run in itertools.groupby(enumerate(lines), lambda x: x[1] - x[0])]
            blocks = [{"first": run[0], "lines": [text[n - 1].rstrip("\n") for n in run]} for run in runs]
            found.append({"name": os.path.basename(name), "path": name, "blocks": blocks})
        return found

    def _file(self, name: str) -> int:
        self._shown.setdefault(name, set())
        return self._files.setdefault(name, len(self._files))

    def _show(self, source) -> None:
        """Show the function that a place is in, or some lines around it."""
        code = getattr(source, "code", None)
        if code is None or code.co_name == "<module>":
            self._shown[source.file_name].update(range(source.line - MODULE_AROUND, source.line + MODULE_AROUND + 1))
        elif id(code) not in self._functions:
            self._functions[id(code)] = code
            self._shown[source.file_name].update(range(code.co_firstlineno - AROUND, last_line(code) + AROUND + 1))


def last_line(code: CodeType) -> int:
    """The last line of a function."""
    return max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)


def extent(source: Source | PlainSource) -> tuple[int, int, int, int]:
    """The lines of a place, first and last, and its columns; 0 and 0 for whole lines."""
    if not isinstance(source, Source):
        return source.line, source.line, 0, 0
    first, last, start, end = position(source.code, source.lasti)
    if first is None or last is None or start is None or end is None:
        return source.line, source.line, 0, 0
    return first, last, column(source.file_name, first, start), column(source.file_name, last, end)


def column(file_name: str, line: int, offset: int) -> int:
    """A column in characters, given in bytes of UTF-8."""
    text = linecache.getline(file_name, line)
    return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))
