"""Where in the user's program an equation was made, captured cheaply and resolved only when somebody asks."""

import os
import sys
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Source(NamedTuple):
    """A place in the user's program: a code object and an instruction in it, and the names of enclosing
    scopes.

    The line is computed on demand: capturing costs two attribute loads, a line table lookup costs
    microseconds.
    """

    code: object
    lasti: int
    name_stack: tuple = ()

    @property
    def file_name(self) -> str:
        return self.code.co_filename

    @property
    def function_name(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        for start, stop, line in self.code.co_lines():
            if start <= self.lasti < stop and line is not None:
                return line
        return self.code.co_firstlineno

    def __reduce__(self):
        return PlainSource, (self.file_name, self.line, self.function_name, self.name_stack)

    def __str__(self) -> str:
        return f"{self.file_name}:{self.line} ({self.function_name})"


class PlainSource(NamedTuple):
    """A place in a user's program whose code is not here: what is left of a ``Source`` after pickling."""

    file_name: str
    line: int
    function_name: str
    name_stack: tuple = ()

    def __str__(self) -> str:
        return f"{self.file_name}:{self.line} ({self.function_name})"


def user_source(name_stack: tuple = ()) -> Source | None:
    """The innermost frame outside this package, or None when there is none (a call from C)."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return Source(code, frame.f_lasti, name_stack)
        frame = frame.f_back
    return None


def function_place(fun) -> str:
    """A function's name and the place of its definition, as error messages print it: ``f at file.py:12``."""
    target = fun
    while hasattr(target, "__wrapped__") or hasattr(target, "func"):
        target = getattr(target, "__wrapped__", None) or target.func
    name = function_name(fun)
    code = getattr(target, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code is not None else name


def function_name(fun) -> str:
    """The name of a callable; for a partial, that of the function inside."""
    while not hasattr(fun, "__name__") and hasattr(fun, "func"):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)
