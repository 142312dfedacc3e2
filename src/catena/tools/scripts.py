"""Whole scripts, looked at while they run: ``python -m catena profile`` and ``explain``."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from catena.core.lazy import LazyModule, has_compiler
from catena.core.source import PACKAGE, function_place
from catena.tools.holding import memory
from catena.tools.watching import Watch, watch
from catena.transform.execute import as_values
from catena.transform.explain import all_traces
from catena.transform.jit import JitFunction

compiler = LazyModule("catena.compiler.native.compile")
FRAMES = 16  # that Python remembers of each allocation


def profile(run: Callable[[], dict], name: str, output: str | None, lines_of_memory: bool) -> str:
    """Run a program, write the page, and return the table.

    Arguments:
      run: runs the program, and returns its names.
      name: what the program is called.
      output: the path of the page; by default the program's name with ``-profile.html``, in the current folder.
      lines_of_memory: whether to say at the end which lines made the arrays that are alive then.
    """
    path = Path(output or f"{Path(name).stem}-profile.html")
    if lines_of_memory:
        if has_compiler():
            compiler.lower  # noqa: B018 (loaded now: what Python allocates while it traces memory takes ten times as long)
        tracemalloc.start(FRAMES)
    seen, names = watched(run, name)
    seen.save(path)
    texts = [repr(seen), f"page: {path}"]
    if lines_of_memory:
        held = memory()
        tracemalloc.stop()
        beside = path.with_name(f"{path.stem}-memory.html")
        held.save(beside)
        texts += [repr(held), f"page: {beside}"]
    names.clear()
    return "\n".join(texts)


def explain(run: Callable[[], dict], name: str) -> str:
    """Run a program, and say of each of its compiled functions why it was traced, and what became of it."""
    seen, _ = watched(run, name)
    functions = [c.function for c in seen.calls if isinstance(c.function, JitFunction)]
    own = [f for f in functions if PACKAGE not in function_place(f._fun)]
    if not own:
        return f"{name}: no compiled function of its own ran"
    return "\n\n".join(map(explained, own))


def explained(function: JitFunction) -> str:
    """Why a function was traced, and what it was compiled to last."""
    calls = dict(function._calls)
    lines = all_traces(function._fun, calls).splitlines()
    if calls and has_compiler():
        closed = list(calls.values())[-1].closed
        steps = compiler.explain(as_values(closed)[0])
        lines += [f"  {'the last one' if len(calls) > 1 else 'it'} became", *(f"    {line}" for line in steps)]
    return "\n".join(lines)


def watched(run: Callable[[], dict], name: str) -> tuple[Watch, dict]:
    """What was seen of a program, and its names; a program that ends by an error was seen up to there."""
    names: dict = {}
    with watch(Path(name).name) as seen:
        try:
            names = run()
        except SystemExit as end:
            if end.code:
                print(f"{name} ended with {end.code}", file=sys.stderr)
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
    return seen, names
