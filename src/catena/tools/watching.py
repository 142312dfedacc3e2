"""A stretch of a program, watched: which compiled functions ran, when, from which line, how often and for how long."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catena.core import events
from catena.core.context import context
from catena.core.lazy import LazyModule, has_compiler
from catena.core.source import Source, function_place, user_source
from catena.core.tree import tree_leaves
from catena.transform.jit import JitFunction
from catena.transform.profile import Profile, duration, share
from catena.transform.stages import Compiled

page = LazyModule("catena.tools.page.document")

WORTH = 0.01  # seconds of running from which a function is looked into
LONG = 1.0  # seconds of a call from which it is not run again to look into it
MOST_SPANS = 400  # calls of a function that a page draws


@dataclass
class Calls:
    """The calls of one function: ``running`` and ``compiling`` are seconds."""

    function: Any
    name: str
    running: float = 0.0
    compiling: float = 0.0
    count: int = 0
    traced: int = 0  # calls that traced or compiled
    quickest: float = float("inf")
    spans: list[tuple[float, float, bool]] = field(default_factory=list)  # start, seconds, whether it was compiled
    lines: dict[Source | None, list] = field(default_factory=dict)  # number of calls and seconds
    profile: Profile | None = None
    why_not: str = f"less than {WORTH * 1000:.0f} ms"

    @property
    def where(self) -> str:
        """The lines that call it, the one that takes most first."""
        order = sorted(self.lines, key=lambda s: -self.lines[s][1])
        places = list(dict.fromkeys(map(place_of, order)))
        return ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")


def place_of(source) -> str:
    return "" if source is None else f"{os.path.basename(source.file_name)}:{source.line}"


class Watch:
    """What ``watch`` saw: ``calls``, those of the function that took most first, and the ``seconds`` of all.

    It prints as a table, and ``save`` writes a page: each function beside its source, step by step.
    """

    def __init__(self, title: str = "program"):
        self.title = title
        self.seconds = 0.0
        self._found: dict[tuple, Calls] = {}
        self._compiling: list[tuple[float, float]] = []
        self._inside = threading.local()
        self._paused = 0.0

    @property
    def calls(self) -> list[Calls]:
        """The functions that were called, by the time that they took, the greatest first."""
        return sorted(self._found.values(), key=lambda c: -(c.running + c.compiling))

    @property
    def compiling(self) -> float:
        """Seconds of tracing and compiling."""
        return covered(self._compiling)

    def __enter__(self) -> Watch:
        if _watching:
            raise RuntimeError("watch: somebody is watching already; there can be one at a time")
        _watching.append(self)
        events.attempts.append(self._told)
        self._start, self._clock = time.time(), time.perf_counter()
        for kind in KINDS:
            kind.__call__ = watched(kind.__call__)  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc_info) -> None:
        self.seconds += time.perf_counter() - self._clock - self._paused
        for kind in KINDS:
            kind.__call__ = kind.__call__.__wrapped__  # type: ignore[method-assign, attr-defined]
        events.remove(events.attempts, self._told)
        _watching.remove(self)

    def called(self, call: Callable, function, args: tuple, kwargs: dict):
        """Run a call and write it down."""
        if context.trace is not None or getattr(self._inside, "call", False):
            return call(function, *args, **kwargs)
        found = self._calls_of(function)
        self._look_into(found, args, kwargs)
        self._inside.call, before, start = True, len(self._compiling), time.perf_counter()
        try:
            return call(function, *args, **kwargs)
        finally:
            took = time.perf_counter() - start
            self._inside.call = False
            compiling = covered(self._compiling[before:])
            self._note(found, start, took, compiling)
            if found.count == 1:  # it may be the only one
                self._look_into(found, args, kwargs)

    def _note(self, found: Calls, start: float, took: float, compiling: float) -> None:
        found.count += 1
        found.running += max(took - compiling, 0.0)
        found.quickest = min(found.quickest, max(took - compiling, 0.0))
        found.compiling += compiling
        found.traced += compiling > 0
        line = found.lines.setdefault(user_source(), [0, 0.0])
        line[0] += 1
        line[1] += took
        if len(found.spans) < MOST_SPANS:
            found.spans.append((start - self._clock - self._paused, took, compiling > 0))

    def _calls_of(self, function) -> Calls:
        name = function._name if isinstance(function, JitFunction) else function.fun_name
        key = name, function_place(function._fun)
        return self._found.setdefault(key, Calls(function, name))

    def _look_into(self, found: Calls, args: tuple, kwargs: dict) -> None:
        """Profile a function, once, when it has run for long enough."""
        if found.profile is not None or found.running < WORTH or found.why_not.startswith("not possible"):
            return
        begun = time.perf_counter()
        self._inside.call = True
        told, self._compiling = self._compiling, []
        try:
            found.why_not = self._profile(found, args, kwargs)
        finally:
            self._inside.call, self._compiling = False, told
            self._paused += time.perf_counter() - begun

    def _profile(self, found: Calls, args: tuple, kwargs: dict) -> str:
        """Why there is no profile, if there is none."""
        if not has_compiler():
            return "not possible: there is no compiler"
        if found.quickest > LONG:
            return "a call takes more than a second, and would be run again"
        if any(getattr(x, "is_deleted", bool)() for x in tree_leaves((args, kwargs))):
            return "its arguments were given up"  # the next call has others
        try:
            compiled = found.function
            if isinstance(compiled, JitFunction):
                compiled = compiled.lower(*args, **kwargs).compile()
            if compiled._call.closed.jaxpr.effects:
                return "not possible: it has side effects, and would be run again"
            found.profile = compiled.profile(*args, **kwargs)
        except (RuntimeError, TypeError, ValueError) as error:
            return f"not possible: {error}"
        return ""

    def _told(self, event: str, start: float, end: float, **metadata) -> None:
        self._compiling.append((start, end))

    def __repr__(self) -> str:
        calls = self.calls
        running, compiling = sum(c.running for c in calls), self.compiling
        rest = duration(max(self.seconds - running - compiling, 0.0))
        head = (
            f"{self.title}: {duration(self.seconds)}; compiled functions ran {duration(running)}, tracing and "
            f"compiling took {duration(compiling)}, the rest {rest}"
        )
        titles = ("time", "share", "calls", "compiling", "function")
        lines = [titles, *((
            duration(c.running), share(c.running, self.seconds), str(c.count),
            duration(c.compiling) if c.compiling else "", f"{c.name}   ({c.where})",
        ) for c in calls)]  # fmt: skip
        widths = [max(len(line[i]) for line in lines) for i in range(len(titles) - 1)]
        shown = ["  ".join([*(x.rjust(n) for x, n in zip(line, widths, strict=False)), line[-1]]) for line in lines]
        return "\n".join([head, *("  " + line for line in shown)])

    def save(self, path: str | os.PathLike) -> None:
        """Write a page for any browser: the calls over time, and each function that ran long, step by step."""
        Path(path).write_text(page.of_watch(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return page.framed(page.of_watch(self))


KINDS: tuple[Any, ...] = (JitFunction, Compiled)
_watching: list[Watch] = []


def watched(call: Callable) -> Callable:
    """The ``__call__`` of compiled functions while somebody watches. It stands in the class for that time only: calls
    have no room for the question whether somebody does.
    """

    def __call__(self, *args, **kwargs):
        return _watching[0].called(call, self, args, kwargs) if _watching else call(self, *args, **kwargs)

    __call__.__wrapped__ = call  # type: ignore[attr-defined]
    return __call__


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """The length of what intervals cover together."""
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total


def watch(title: str = "program") -> Watch:
    """Watch the compiled functions that a ``with`` block calls: when, from which line, how often and for how long.

    Arguments:
      title: what tables and the page call it.
    Returns:
      What was seen, when the block ends. Functions that run for more than a few milliseconds are run a few times more,
      to see what each of their steps takes; not those with side effects, nor those that take longer than a second.

    >>> import catena as jax
    >>> @jax.jit
    ... def double(x):
    ...     return x * 2
    >>> with jax.tools.watch() as seen:
    ...     _ = double(3), double(4.0), double(5.0)
    >>> [(calls.name, calls.count, calls.traced) for calls in seen.calls]
    [('double', 3, 2)]
    """
    return Watch(title)
