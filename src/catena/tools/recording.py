"""Recorded programs: jaxprs that know, at every line of the user's, the values of the variables there by their names.

A function is traced once, with Python's own hook for lines in place. Where a line is about to run, an equation is
written that reads the variables of its frame: ``visit``. It has no results, and an effect, so that it stays where it
is. Transformations carry it along as they do everything else: in the body of a loop it is there once and runs in every
turn, under ``vmap`` it reads all examples, under ``grad`` the values and not the derivatives. Whoever runs the program,
equation by equation, is told of every visit; the user's function does not run again.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from types import FrameType
from typing import Any

from catena.core.array import as_array
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.config import overridden
from catena.core.context import context
from catena.core.effects import debug_effect
from catena.core.named import NamedTuple
from catena.core.primitive import NoRule, Primitive
from catena.core.ref import Ref
from catena.core.trace import Tracer, leaf_value
from catena.core.traceback import is_internal, is_library
from catena.core.zeros import Zero, get_aval
from catena.tools.breakpoint import Hole, fill_holes, map_leaves
from catena.tools.frames import Frame
from catena.transform.interpreted import steps
from catena.transform.jit import JitFunction


class Visit(NamedTuple):
    """A line that is about to run: the frame, with holes for traced values, and how many frames are around it."""

    frame: Frame
    depth: int

    __hash__ = object.__hash__  # each is another one, whatever it looks like
    __eq__ = object.__eq__

    def __repr__(self) -> str:
        return f"{self.frame.file_name}:{self.frame.line}"


class Listening(threading.local):
    """Whom visits are told in this thread."""

    visited: Callable[[Visit, tuple], Any] | None = None


listening = Listening()


def _evaluate(*values, visit):
    if listening.visited is not None:
        listening.visited(visit, values)
    return []


def _jvp(primals, tangents, *, visit):
    visit_p.bind(*primals, visit=visit)
    return [], []


def _batch(axis, args, dims, *, visit):
    """All examples are read at once, along an axis in front."""
    visit_p.bind(*(x if d is None else move_axis(x, d, 0) for x, d in zip(args, dims, strict=True)), visit=visit)
    return [], []


visit_p = Primitive(
    "visit",
    multiple_results=True,
    takes_arrays=True,
    effects=lambda avals, params: frozenset([debug_effect]),
    sharding=NoRule("it returns nothing, and hands over values as they lie"),
    abstract=lambda *avals, visit: (),
    evaluate=_evaluate,
    jvp=_jvp,
    partial_eval=lambda tape, args, *, visit: tape.record(visit_p, args, {"visit": visit}),
    transpose=lambda cts, *args, visit: [Zero(get_aval(x)) for x in args],
    batch=_batch,
    lower=lambda b, *operands, visit: [],
)


# ---- recording


class Recorder:
    """Traces a jitted function, once for each type of its arguments, and notes the user's lines as it goes."""

    numbers = itertools.count()

    def __init__(self, fun: JitFunction):
        self.fun, self.number = fun, next(self.numbers)
        self.traced: dict = {}
        self.lines: dict[str, set[int]] = {}  # those that were traced, by file

    def takes_references(self, args: tuple, kwargs: dict) -> bool:
        """Whether an argument is a reference, whose changes are to be seen outside."""
        return any(type(x) is Ref for x in self.fun.types_of(args, kwargs)[0])

    def program(self, args: tuple, kwargs: dict) -> tuple[Any, list]:
        """The recorded program, a closed jaxpr, and its arguments."""
        leaves, key = self.fun.types_of(args, kwargs)
        if key not in self.traced:
            with overridden("recorded", self.number), self.watching():
                self.traced[key] = self.fun.trace(*args, **kwargs)
        return self.traced[key].jaxpr, [as_array(leaf_value(x))._value for x in leaves]

    @contextmanager
    def watching(self):
        """Have lines noted in this thread within a ``with`` block."""
        before = sys.gettrace()
        sys.settrace(self.on_call)
        try:
            yield
        finally:
            sys.settrace(before)

    def on_call(self, frame: FrameType, event: str, arg):
        return self.on_line if is_users(frame) else None

    def on_line(self, frame: FrameType, event: str, arg):
        if event == "line" and context.recorded == self.number:
            self.lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
            if context.trace is not None:
                note(frame)
        return self.on_line


def is_users(frame: FrameType) -> bool:
    """Whether a frame is one of the user's; what makes named tuples is Python's."""
    file_name = frame.f_code.co_filename
    if file_name.startswith("<string>") and frame.f_globals.get("__name__", "").startswith("namedtuple_"):
        return False
    return not is_internal(file_name) and not is_library(file_name)


def note(frame: FrameType) -> None:
    """Write down, in the trace in force, a visit of the line that a frame is about to run."""
    taken: dict[int, tuple[int, Any]] = {}
    known = chain(context.trace)

    def take(x):
        if type(x) is Ref and not x.ended:
            x = x[...]
        if not isinstance(x, Tracer):
            return x
        if x._trace not in known or not isinstance(x.aval, ShapedArray):
            return f"<{x!r}, which is not known here>"
        return Hole(taken.setdefault(id(x), (len(taken), x))[0])

    variables = {name: map_leaves(take, x) for name, x in frame.f_locals.items()}
    code = frame.f_code
    found = Frame(code.co_filename, code.co_name, frame.f_lineno, variables, frame.f_globals)
    visit_p.bind(*(x for _, x in taken.values()), visit=Visit(found, depth(frame)))


def chain(trace) -> list:
    """A trace and those around it."""
    return [] if trace is None else [trace, *chain(trace.parent)]


def depth(frame: FrameType | None) -> int:
    """How many frames of the user's are around this one."""
    count = -1
    while frame is not None:
        count += is_users(frame)
        frame = frame.f_back
    return count


# ---- running


class Run:
    """A run of a recorded program, and where it is: the frames from the outermost one on."""

    def __init__(self, closed, values: list, at_line: Callable[[Frame], Any]):
        self.closed, self.values, self.at_line = closed, values, at_line
        self.stack: list[tuple[Visit, tuple]] = []

    def run(self) -> None:
        """Run to the end, if nothing stops it."""
        before, listening.visited = listening.visited, self.visited
        try:
            steps(self.closed)(*self.values)
        finally:
            listening.visited = before

    def visited(self, visit: Visit, values: tuple) -> None:
        while self.stack and self.stack[-1][0].depth >= visit.depth:
            self.stack.pop()
        self.stack.append((visit, values))
        self.at_line(self.frame(visit, values))

    def frame(self, visit: Visit, values: tuple) -> Frame:
        """The frame of a visit, with the values of its variables."""
        return fill_holes([visit.frame], values)[0]

    def frames(self) -> list[Frame]:
        """The frames where it is, innermost first."""
        return [self.frame(*each) for each in reversed(self.stack)]
