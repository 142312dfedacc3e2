"""``replay``: run a program operation by operation up to a line of its source, and look at every variable there by its
name: in a function called by a function, in a turn of a loop, under ``vmap`` for all examples, under ``grad`` the
values and not the derivatives.

A jitted function is traced once for this, and what runs is the recorded program (``recording``). Any other function
has none: it runs in Python, as it does when it is called, with the jitted functions, loops and branches in it.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array
from catena.core.config import disable_jit
from catena.core.source import function_place
from catena.core.trace import Tracer
from catena.core.traceback import api_boundary, is_internal, is_library, shorten
from catena.tools.breakpoint import map_leaves
from catena.tools.debugger import Debugger
from catena.tools.frames import Frame
from catena.tools.recording import Recorder, Run
from catena.transform.batch import BatchTracer
from catena.transform.functions import check_callable
from catena.transform.jit import JitFunction
from catena.transform.jvp import JVPTracer


class Reached(BaseException):
    """Ends the run when the line is reached; no handler of the user's catches it."""


class Variables(dict):
    """Variables by their names; whoever asks for another one is told which there are."""

    def __missing__(self, name):
        raise KeyError(f"there is no variable {name!r}; there are {', '.join(self)}")


class Stop:
    """Where ``replay`` stopped: ``frames``, innermost first, and the ``variables`` of the innermost one by their names;
    ``stop["x"]`` is one of them.
    """

    def __init__(self, frames: list[Frame]):
        self.frames = frames
        self.variables = Variables(frames[0].variables)

    def __getitem__(self, name: str):
        return next((frame.variables for frame in self.frames if name in frame.variables), self.variables)[name]

    def __repr__(self) -> str:
        frame = self.frames[0]
        text = linecache.getline(frame.file_name, frame.line).strip()
        head = f"{frame.file_name}:{frame.line} ({frame.function}), before: {text}"
        return "\n".join([head, *(f"  {name} = {shown(x)}" for name, x in frame.variables.items())])

    def debug(self, **streams) -> None:
        """Open the debugger of ``debug.breakpoint`` on the frames.

        Arguments:
          streams: ``stdin`` and ``stdout``, text files in place of the process's.
        """
        Debugger(self.frames, **streams).cmdloop()


def shown(value, most: int = 90) -> str:
    """A value in a line: arrays by their types and a few of their numbers."""
    if isinstance(value, Array) and not dtypes.is_extended(value.dtype):
        numbers = np.array2string(np.asarray(value), threshold=8, edgeitems=2, separator=", ")
        text = f"{value.aval.str_short()} {' '.join(numbers.split())}"
    else:
        text = " ".join(repr(value).split())
    return text if len(text) <= most else f"{text[: most - 4]} ..."


@api_boundary
def replay(fun: Callable) -> Callable:
    """``fun`` as a function that runs operation by operation up to a line, and returns the variables there.

    Arguments:
      fun: a function, jitted or not, of arrays and whatever it takes. A jitted one is traced, once for each type of its
        arguments, and the recorded program runs; so what its Python does besides happens once, whatever is asked.
        Another one runs itself, each time.
    Returns:
      A function of the same arguments and ``until``: a line of the user's as ``"file.py:12"``, or its number where it
      is in the file of ``fun``. It stops when the line is about to run; with ``hit=n`` the n-th time, such as in turn n
      of a loop; with ``when=condition`` where the condition of the variables, a dict, holds first. It returns a
      ``Stop``: ``variables`` by name, ``frames`` of the callers, ``stop["x"]``, ``stop.debug()``.
    Raises:
      ValueError: the line is not reached.
      TypeError: ``fun`` is no function.

    >>> import catena as jax
    >>> from catena import tools
    >>> @jax.jit
    ... def f(x):
    ...     y = x + 1
    ...     z = y * 2
    ...     return z
    >>> tools.replay(f)(jax.numpy.float32(3), until=4)["y"]
    Array(4., dtype=float32)
    """
    check_callable(fun)
    recorder = Recorder(fun) if isinstance(fun, JitFunction) else None

    @functools.wraps(fun)
    def replayed(*args, until: str | int, hit: int = 1, when: Callable[[dict], Any] | None = None, **kwargs) -> Stop:
        python = fun
        while hasattr(python, "__wrapped__"):
            python = python.__wrapped__
        goal = Goal(*place_of(until, getattr(python, "__code__", None)), hit, when)
        try:
            if recorder is None or recorder.takes_references(args, kwargs):
                return step(fun, args, kwargs, goal)
            return run_recorded(recorder, args, kwargs, goal)
        except Exception as error:
            shorten(error)
            raise

    return replayed


def run_recorded(recorder: Recorder, args: tuple, kwargs: dict, goal: Goal) -> Stop:
    """Run the recorded program up to the line."""

    def at_line(frame: Frame) -> None:
        if goal.is_at(frame.file_name, frame.line) and goal.counts(lambda: frame.variables):
            raise Reached

    run = Run(*recorder.program(args, kwargs), at_line)
    try:
        run.run()
    except Reached:
        return Stop(run.frames())
    goal.files |= recorder.lines.keys()
    for file_name, lines in recorder.lines.items():
        if goal.is_of(file_name):
            goal.lines |= lines
    raise ValueError(goal.missed(function_place(recorder.fun)))


def step(fun: Callable, args: tuple, kwargs: dict, goal: Goal) -> Stop:
    """Run a Python function up to the line."""
    stepper, before = Stepper(goal), sys.gettrace()
    try:
        with disable_jit():
            sys.settrace(stepper.on_call)
            fun(*args, **kwargs)
    except Reached:
        return Stop(stepper.frames)
    finally:
        sys.settrace(before)
    raise ValueError(goal.missed(function_place(fun)))


def place_of(until: str | int, code: CodeType | None) -> tuple[str, int]:
    """The end of a file's name, and a line."""
    file_name, _, line = str(until).rpartition(":")
    if not line.isdigit():
        raise ValueError(f"until must be a line, as 'file.py:12' or 12, got {until!r}")
    if not file_name and code is None:
        raise ValueError(f"until must name the file, as 'file.py:12', since the function has no source; got {until!r}")
    return file_name or code.co_filename, int(line)  # type: ignore[union-attr]


class Goal:
    """The line that a run is to stop at, and when."""

    def __init__(self, file_name: str, line: int, hit: int, when: Callable | None):
        self.file_name, self.line, self.left, self.when = file_name, line, hit, when
        self.reached = False
        self.lines: set[int] = set()  # those of the file that were reached
        self.files: set[str] = set()  # those that ran, where it is known

    def is_of(self, file_name: str) -> bool:
        return file_name == self.file_name or file_name.endswith("/" + self.file_name.lstrip("./"))

    def is_at(self, file_name: str, line: int) -> bool:
        return line == self.line and self.is_of(file_name)

    def counts(self, variables: Callable[[], dict]) -> bool:
        """Whether this time at the line is the one."""
        self.reached = True
        if self.when is not None and not self.when(Variables(variables())):
            return False
        self.left -= 1
        return self.left == 0

    def missed(self, place: str) -> str:
        """What is said where the line is not reached."""
        head = f"{place} did not stop at {self.file_name}:{self.line}"
        if not self.lines:
            others = f"; {', '.join(sorted(self.files))} did" if self.files else ""
            return f"{head}: no line of this file ran{others}"
        if self.reached:
            return f"{head}: the line ran, but not so often, or the condition never held"
        if self.line in self.lines:
            return f"{head}: it stands in a branch or a loop that did not run"
        near = sorted(sorted(self.lines, key=lambda line: abs(line - self.line))[:8])
        return f"{head}: the line did not run; lines near it that ran: {', '.join(map(str, near))}"


class Stepper:
    """Watches the user's lines in Python, and stops at one."""

    def __init__(self, goal: Goal):
        self.goal = goal
        self.frames: list[Frame] = []

    def on_call(self, frame: FrameType, event: str, arg):
        return self.on_line if self.goal.is_of(frame.f_code.co_filename) else None

    def on_line(self, frame: FrameType, event: str, arg):
        if event == "line":
            self.goal.lines.add(frame.f_lineno)
            if frame.f_lineno == self.goal.line and self.goal.counts(lambda: known_variables(frame)):
                self.frames = users_frames(frame)
                raise Reached
        return self.on_line


def users_frames(frame: FrameType | None) -> list[Frame]:
    """The frames of the user's from here to the call of ``replay``, innermost first."""
    frames = []
    while frame is not None and frame.f_code is not STEP:
        code = frame.f_code
        if not is_internal(code.co_filename) and not is_library(code.co_filename):
            variables = known_variables(frame)
            frames.append(Frame(code.co_filename, code.co_name, frame.f_lineno, variables, frame.f_globals))
        frame = frame.f_back
    return frames


STEP = step.__code__


def known_variables(frame: FrameType) -> dict:
    """The variables of a frame, traced values as arrays."""
    return {name: map_leaves(known, x) for name, x in frame.f_locals.items()}


def known(x):
    """The value of a tracer of an eager transformation: all examples under ``vmap``, the value under ``grad``."""
    while isinstance(x, Tracer):
        if isinstance(x, BatchTracer):
            x = x.value
        elif isinstance(x, JVPTracer):
            x = x.primal
        else:
            value = x.concrete_value()
            return x if value is None else value
    return x
