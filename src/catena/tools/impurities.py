"""``purity``: what a function takes from, and does to, the world outside while it is traced.

The function is traced once under Python's tracing hooks. What it reads of globals and closures is seen in the
instructions of the lines that run. What it changes is seen by comparing: everything that can be reached from its
globals, closures, defaults and ``self`` is remembered, and looked at again after every line of the user's. What it does
to the rest of the world are calls of a few functions of Python.
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import inspect
import io
import os
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, BuiltinMethodType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from catena.core.context import extend_axis_env
from catena.core.named import NamedTuple
from catena.core.source import function_place
from catena.core.trace import Tracer
from catena.core.traceback import api_boundary, is_internal, is_library
from catena.transform.jit import JitFunction
from catena.transform.make_jaxpr import make_jaxpr

CURES = {
    "captured": "its value is fixed when the function is traced; pass it as an argument if it may change",
    "assigned": "it happens when the function is traced, not when it is called; return the value",
    "changed": "it happens when the function is traced, not when it is called; return what is new",
    "consumed": "it moves when the function is traced, not when it is called; pass an array, and scan over it",
    "effect": "it happens when the function is traced, not when it is called",
}


class Impurity(NamedTuple):
    """Something of the world outside: its kind (a key of ``CURES``), what it is, and where the function meets it."""

    kind: str
    what: str
    file_name: str
    line: int

    def __str__(self) -> str:
        return f"{self.file_name}:{self.line}: {self.what}: {CURES[self.kind]}"


class Report(list):
    """What ``purity`` found, a line each when it is printed; empty for a pure function."""

    def __init__(self, place: str, found: list[Impurity]):
        super().__init__(found)
        self.place = place

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or f"{self.place} is pure, as far as it ran"


def purity(fun: Callable) -> Callable:
    """``fun`` as a function that is traced for its arguments, watched, and reported on: the globals and closures that
    it reads, what it assigns and changes outside of itself, iterators that it consumes, and what it does to the world.

    Arguments:
      fun: the function; a jitted one with static arguments is traced with them.
    Returns:
      A function of the same arguments, which returns a list of what was found, each with ``kind``, ``what``,
      ``file_name`` and ``line``; it prints as a line each.

    >>> from catena import tools
    >>> history = []
    >>> def f(x):
    ...     history.append(x)
    ...     print("called")
    ...     return x
    >>> report = tools.purity(f)(1.0)
    called
    >>> [(found.kind, found.what, found.line) for found in report if found.kind != "captured"]
    [('changed', 'history (list) is changed, and keeps a tracer', 2), ('effect', 'print', 3)]
    """

    @api_boundary
    def watched(*args, **kwargs) -> Report:
        python = fun._fun if isinstance(fun, JitFunction) else fun
        watch = Watch(python)
        trace = traced_anew(fun)
        with (
            extend_axis_env(watch, 1),
            watch,
        ):  # an axis that nobody else has: functions that are jitted are traced anew
            trace(*args, **kwargs)
        return Report(function_place(python), sorted(watch.found, key=lambda x: (x.file_name, x.line)))

    return watched


def traced_anew(fun: Callable) -> Callable:
    """A function that traces ``fun``, whether it was traced before or not."""
    return fun.trace if isinstance(fun, JitFunction) else make_jaxpr(fun)


@functools.cache
def is_users(code: CodeType, package: str = "") -> bool:
    """Whether code is the user's: neither this package's nor a library's, nor what Python writes for classes.

    Arguments:
      code: the code.
      package: the folder of a library whose function is looked at, which then counts as the user's.
    """
    name = code.co_filename
    if name == "<string>" and code.co_name.startswith("__") or is_internal(name) or is_library(name):
        return False
    return "-packages" + os.sep not in name or bool(package) and name.startswith(package)


def package_of(fun) -> str:
    """The folder of the library that a function stands in; empty where it is the user's."""
    name = getattr(getattr(fun, "__code__", None), "co_filename", "")
    return os.path.dirname(name) if "-packages" + os.sep in name else ""


# ---- what a function can reach


class Place(NamedTuple):
    """Something that may change: how it is called, what kind it is, and a function that gives its parts."""

    name: str
    noun: str
    parts: Callable[[], list]


DEPTH, MOST = 3, 2000  # how far, and how much of it, is looked at
CONTAINERS: dict[type, Callable] = {
    list: list,
    set: list,
    collections.deque: list,
    dict: lambda d: [*d.keys(), *d.values()],
    bytearray: lambda b: [bytes(b)],
    random.Random: lambda r: [r.getstate()],
    np.random.Generator: lambda g: [repr(g.bit_generator.state)],
    np.random.RandomState: lambda r: [zlib.crc32(r.get_state()[1].tobytes()), repr(r.get_state()[2:])],
    np.ndarray: lambda x: [zlib.crc32(x.tobytes())] if x.nbytes <= 1 << 20 and x.dtype != object else [],
    GeneratorType: lambda g: [g.gi_frame and g.gi_frame.f_lasti, *(g.gi_frame.f_locals.values() if g.gi_frame else ())],
}
OPAQUE = (ModuleType, type, FunctionType, BuiltinFunctionType, CodeType, str, bytes, int, float, complex)


def parts_of(value) -> Callable | None:
    """A function that gives what may change of a value, or None."""
    for kind, parts in CONTAINERS.items():
        if isinstance(value, kind):
            return lambda: parts(value)
    if isinstance(value, io.IOBase):
        return lambda: [value.tell() if not value.closed and value.seekable() else None]
    if isinstance(value, Iterator):
        return lambda: [repr(position(value))]
    if not isinstance(value, OPAQUE) and isinstance(getattr(value, "__dict__", None), dict) and not own(value):
        return lambda: [*value.__dict__.keys(), *value.__dict__.values()]
    return None


def own(value) -> bool:
    """Whether a value is an object of this package, whose insides are nobody's concern."""
    return type(value).__module__.partition(".")[0] in ("catena", "jax")


def position(iterator) -> Any:
    """Where an iterator of Python's stands: how much is left, or what it would be copied as."""
    left = getattr(iterator, "__length_hint__", None)
    return left() if left is not None else repr(iterator)


def reached(name: str, value, depth: int, found: dict[int, Place]) -> None:
    """Collect what may change, from a value on."""
    parts = parts_of(value)
    if parts is None or id(value) in found or len(found) >= MOST:
        return
    noun = "iterator" if isinstance(value, Iterator) and not isinstance(value, io.IOBase) else type(value).__name__
    found[id(value)] = Place(name, noun, parts)
    if depth:
        for inner, x in named_parts(name, value):
            reached(inner, x, depth - 1, found)


def named_parts(name: str, value) -> list[tuple[str, Any]]:
    """What is in a container or object, as one would write it."""
    if isinstance(value, dict):
        return [(f"{name}[{k!r}]", x) for k, x in list(value.items())]
    if isinstance(value, (list, tuple, collections.deque)):
        return [(f"{name}[{i}]", x) for i, x in enumerate(value)]
    attributes = getattr(value, "__dict__", None)
    return [(f"{name}.{k}", x) for k, x in attributes.items()] if isinstance(attributes, dict) else []


def globals_of(code: CodeType) -> set[str]:
    """The global names in code, and in the functions that are written in it."""
    inner = [globals_of(c) for c in code.co_consts if isinstance(c, CodeType)]
    return set(code.co_names).union(*inner)


# ---- watching

EFFECTS: dict[Any, str] = {
    builtins.print: "print",
    builtins.input: "input",
    builtins.open: "open",
    io.open: "open",
    time.time: "the clock is read (time.time)",
    time.time_ns: "the clock is read (time.time_ns)",
    time.perf_counter: "the clock is read (time.perf_counter)",
    time.monotonic: "the clock is read (time.monotonic)",
    time.sleep: "time.sleep",
    os.urandom: "os.urandom",
}


class Watch:
    """Watches the user's lines while a function is traced; ``found`` is what they do."""

    def __init__(self, fun: Callable):
        self.found: list[Impurity] = []
        self.seen: set = set()  # what was said already
        self.functions: set[int] = set()
        self.places: list[list] = []  # a place and its parts as they were
        self.known: dict[int, Place] = {}
        self.at: tuple[str, int] | None = None  # the user's line that runs
        self.package = package_of(fun)
        self.look_at("random", random._inst)  # type: ignore[attr-defined]
        self.look_at("numpy.random", np.random.mtrand._rand)
        self.look_into(fun)

    # ---- what is looked at

    def look_into(self, fun) -> None:
        """Look at all that a function reaches, and the functions of the user's that it may call."""
        if isinstance(fun, MethodType):
            self.look_at("self", fun.__self__)
            fun = fun.__func__
        while hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        if id(fun) in self.functions:
            return
        self.functions.add(id(fun))
        if not isinstance(fun, FunctionType):
            call = getattr(type(fun), "__call__", None)  # noqa: B004  (the function itself)
            if isinstance(call, FunctionType):
                self.look_into(call)
            for inner in (getattr(fun, "func", None), *getattr(fun, "args", ())):
                self.look_at("self", inner)
            self.look_at("self", fun)
            return
        if not is_users(fun.__code__, self.package):
            return
        for name in globals_of(fun.__code__) & fun.__globals__.keys():
            self.watch_name(f"the global {name}", name, fun.__globals__)
        for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            self.watch_cell(name, cell)
        names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
        defaults = fun.__defaults__ or ()
        given = [*zip(names[len(names) - len(defaults) :], defaults, strict=True), *(fun.__kwdefaults__ or {}).items()]
        for name, value in given:
            self.look_at(f"the default of {name}", value)

    def look_at(self, name: str, value) -> None:
        before = set(self.known)
        reached(name, value, DEPTH, self.known)
        self.places += [[p, p.parts()] for i, p in self.known.items() if i not in before]
        if callable(value) and not isinstance(value, type):
            self.look_into(value)

    def watch_name(self, what: str, name: str, namespace: dict) -> None:
        place = Place(what, "", lambda: [namespace.get(name)])
        self.places.append([place, place.parts()])
        self.look_at(name, namespace[name])

    def watch_cell(self, name: str, cell) -> None:
        content = lambda: [getattr(cell, "cell_contents", None)]
        place = Place(f"the closure variable {name}", "", content)
        self.places.append([place, place.parts()])
        self.look_at(name, content()[0])

    # ---- Python's hooks

    def __enter__(self):
        self.before = sys.gettrace(), sys.getprofile()
        sys.setprofile(self.on_call)
        sys.settrace(self.on_line)

    def __exit__(self, *exc_info):
        trace, profile = self.before
        sys.settrace(trace)
        sys.setprofile(profile)
        self.compare()

    def on_line(self, frame, event, arg):
        """A line of the user's is about to run: what the one before did is seen now."""
        if (
            not is_users(frame.f_code, self.package) or frame.f_code.co_flags & inspect.CO_GENERATOR
        ):  # a generator's asker counts
            return None
        self.compare()
        self.at = frame.f_code.co_filename, frame.f_lineno
        if event == "line":
            self.captured(frame)
        return self.on_line

    def on_call(self, frame, event, arg):
        """A function of C is about to be called."""
        if (
            event == "c_call"
            and is_users(frame.f_code, self.package)
            and isinstance(arg, BuiltinFunctionType | BuiltinMethodType)
        ):
            try:
                what = EFFECTS.get(arg)
            except TypeError:  # a method of an object without a hash
                return
            if what is not None:
                self.report("effect", what, frame.f_code.co_filename, frame.f_lineno)

    def captured(self, frame) -> None:
        """Report the globals and closure variables that a line reads."""
        code, line = frame.f_code, frame.f_lineno
        if (code, line) in self.seen:
            return
        self.seen.add((code, line))
        for instruction in instructions_at(code, line):
            name = instruction.argval
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name in frame.f_globals:
                self.capture(f"the global {name}", frame.f_globals[name], frame)
            elif instruction.opname == "LOAD_DEREF" and name in code.co_freevars and self.is_outer(name):
                self.capture(f"the closure variable {name}", frame.f_locals.get(name), frame)

    def is_outer(self, name: str) -> bool:
        """Whether a free variable belongs to a function that is not being traced."""
        return any(place.name == f"the closure variable {name}" for place, _ in self.places)

    def capture(self, what: str, value, frame) -> None:
        if isinstance(value, (ModuleType, type)) or callable(value) or value is None or isinstance(value, Iterator):
            return
        text = " ".join(repr(value).split())
        text = text if len(text) <= 40 else f"{text[:36]} ..."
        self.report("captured", f"{what} = {text} is read", frame.f_code.co_filename, frame.f_lineno)

    def compare(self) -> None:
        """Report what changed since this was asked last, at the line that ran since."""
        for entry in self.places:
            place, before = entry
            now = place.parts()
            if len(now) == len(before) and all(a is b or simple_equal(a, b) for a, b in zip(now, before, strict=True)):
                continue
            entry[1] = now
            if self.at is None:
                continue
            keeps = ", and keeps a tracer" if any(isinstance(x, Tracer) for x in now) else ""
            if place.noun == "iterator" or place.noun == "generator":
                self.report("consumed", f"the iterator {place.name} is advanced", *self.at)
            elif place.noun:
                self.report("changed", f"{place.name} ({place.noun}) is changed{keeps}", *self.at)
            else:
                self.report("assigned", f"{place.name} is assigned{keeps}", *self.at)

    def report(self, kind: str, what: str, file_name: str, line: int) -> None:
        found = Impurity(kind, what, file_name, line)
        if found not in self.seen:
            self.seen.add(found)
            self.found.append(found)


def simple_equal(a, b) -> bool:
    """Whether two texts or numbers are equal, such as states of generators, which are made anew when asked for."""
    return type(a) is type(b) and isinstance(a, (str, bytes, int, tuple)) and a == b


def instructions_at(code: CodeType, line: int) -> list[dis.Instruction]:
    """The instructions of one line."""
    found, at = [], code.co_firstlineno
    for instruction in dis.get_instructions(code):
        start = instruction.positions.lineno if instruction.positions is not None else None
        at = start or at
        if at == line:
            found.append(instruction)
    return found
