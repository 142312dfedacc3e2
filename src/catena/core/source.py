"""Where in the user's program an equation was made, captured cheaply and resolved only when somebody asks."""

from __future__ import annotations

import opcode
import os
import sys
from types import CodeType, FrameType
from typing import Any

from catena.core.named import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Transformation(str):
    """The name of a transformation in a name stack: it stands around the scope that follows it there."""

    __slots__ = ()


class NameStack(tuple):
    """The scopes and transformations that an operation was applied in, outermost first: ``vmap(foo)/bar``.

    Arguments:
      stack: their names.
    """

    __slots__ = ()

    def __new__(cls, stack=()):
        return tuple.__new__(cls, stack)

    @property
    def stack(self) -> tuple:
        """The names."""
        return tuple(self)

    def extend(self, name: str) -> NameStack:
        """These names and a scope inside."""
        return NameStack((*self, name))

    def transform(self, name: str) -> NameStack:
        """These names and a transformation inside."""
        return NameStack((*self, Transformation(name)))

    def inside(self, outer: tuple) -> NameStack:
        """These names without those of ``outer``, where they begin with them."""
        return NameStack(self[len(outer) :]) if self[: len(outer)] == outer else self

    def __str__(self) -> str:
        parts, around = [], []
        for name in self:
            around.append(name)
            if type(name) is not Transformation:
                parts.append("(".join(around) + ")" * (len(around) - 1))
                around = []
        if around:
            parts.append("(".join([*around, ""]) + ")" * len(around))
        return "/".join(parts)


NO_NAMES = NameStack()


class Surroundings(NamedTuple):
    """What was in force where an equation was made: where it is to be computed (``compute_on``), which stream random
    numbers are drawn from, the mesh, and notes (``set_xla_metadata``), as pairs.
    """

    compute_type: str | None = None
    threefry_partitionable: bool = True
    mesh: Any = None
    notes: tuple = ()


NOTHING_SAID = Surroundings()


class Source(NamedTuple):
    """A place in the user's program: a code object and an instruction in it, the names of enclosing scopes, and
    whether what is done is the backward pass of what stands there. Where checks are made, it is known too which
    examples of a ``vmap`` the elements of the result belong to; and always what was in force.

    The line is computed on demand: capturing costs two attribute loads, a line table lookup costs
    microseconds.
    """

    code: CodeType
    lasti: int
    name_stack: NameStack = NO_NAMES
    backward: bool = False
    examples: tuple = ()  # the shape of the result, and its axes that stand for a vmap, with their names
    surroundings: Surroundings = NOTHING_SAID

    @property
    def file_name(self) -> str:
        return self.code.co_filename

    @property
    def function_name(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        line, *_ = position(self.code, self.lasti)
        return self.code.co_firstlineno if line is None else line

    def mapped(self, dim: int, name, shape: tuple) -> Source:
        """The source of a result of this shape, one more axis of which stands for a vmap."""
        before, known = self.examples or (None, ())
        if before != shape:  # it is inside what is mapped now
            known = tuple((d + (d >= dim), n) for d, n in known)
            return self._replace(examples=(shape, ((dim, name), *known)))
        return self._replace(examples=(shape, (*known, (dim, name))))

    @property
    def exact(self) -> str:
        """The place with the column and the function's qualified name."""
        _, _, column, _ = position(self.code, self.lasti)
        at = "" if column is None else f":{column}"
        return f"{shown_name(self.file_name)}:{self.line}{at} ({self.code.co_qualname})"

    def __reduce__(self):
        return PlainSource, (self.file_name, self.line, self.function_name, self.name_stack, self.backward)

    def __str__(self) -> str:
        return f"{shown_name(self.file_name)}:{self.line} ({self.function_name})"


_positions: dict[int, tuple[CodeType, list]] = {}  # by the identity of the code object


def position(code: CodeType, lasti: int) -> tuple:
    """The first and last line and column of an instruction, None where they are not known. The tables of the last
    functions are kept: each is as long as its function, and who asks for one place soon asks for the next.
    """
    found = _positions.get(id(code))
    if found is None or found[0] is not code:
        if len(_positions) >= 64:
            _positions.clear()
        found = _positions[id(code)] = code, list(code.co_positions())
    at = lasti // 2
    return found[1][at] if 0 <= at < len(found[1]) else (None,) * 4


class PlainSource(NamedTuple):
    """A place in a user's program whose code is not here: what is left of a ``Source`` after pickling."""

    file_name: str
    line: int
    function_name: str
    name_stack: NameStack = NO_NAMES
    backward: bool = False

    @property
    def exact(self) -> str:
        """The place as far as it is known."""
        return str(self)

    def __str__(self) -> str:
        return f"{shown_name(self.file_name)}:{self.line} ({self.function_name})"


def transposed(source: Source | None, outer: tuple, around: NameStack) -> Source | None:
    """The source of the backward pass of an operation.

    Arguments:
      source: that of the operation.
      outer: the name stack in which its function was differentiated.
      around: the name stack of the backward pass.
    """
    if source is None:
        return None
    names = NameStack((*around, *source.name_stack.inside(outer)))
    return source._replace(name_stack=names, backward=True)


def user_source(name_stack: NameStack = NO_NAMES, surroundings: Surroundings = NOTHING_SAID) -> Source | None:
    """The innermost frame outside this package, or None when there is none (a call from C)."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name not in _own_files:
            if not name.startswith(PACKAGE):
                return Source(code, frame.f_lasti, name_stack, False, (), surroundings)
            _own_files.add(name)
        frame = frame.f_back
    return None


_own_files: set[str] = set()  # the package's, as far as they were met: to find a name takes half of looking at it


_POP_TOP, _CACHE = opcode.opmap["POP_TOP"], opcode.opmap.get("CACHE", 0)


def drops_its_call(frame) -> bool:
    """Whether a frame throws away the result of the call that it is in: a statement of its own, not assigned, returned
    or passed on. What is typed at a prompt is shown, so it is not dropped; what ``timeit`` runs always is.
    """
    code = frame.f_code
    instructions, i = code.co_code, frame.f_lasti + 2
    while i < len(instructions) and instructions[i] == _CACHE:
        i += 2
    return i < len(instructions) and instructions[i] == _POP_TOP and "timeit" not in code.co_filename


def function_place(fun) -> str:
    """A function's name and the place of its definition, as error messages print it: ``f at file.py:12``."""
    target = fun
    while hasattr(target, "__wrapped__") or hasattr(target, "func"):
        target = getattr(target, "__wrapped__", None) or target.func
    name = function_name(fun)
    code = getattr(target, "__code__", None)
    return f"{name} at {shown_name(code.co_filename)}:{code.co_firstlineno}" if code is not None else name


def shown_name(file_name: str) -> str:
    """The name of a file as users know it: a cell of a notebook, which IPython keeps in a file, by its number."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)
    return " ".join((named and named(file_name)) or [file_name])


def function_name(fun) -> str:
    """The name of a callable; for a partial, that of the function inside."""
    while not hasattr(fun, "__name__") and hasattr(fun, "func"):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)
