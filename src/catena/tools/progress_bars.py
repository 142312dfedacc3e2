"""``progress``: live bars for loops that run inside compiled programs, and for compilation that takes long.

A loop with a bar is a loop of loops: the inner one does many steps, the outer one may call Python between them. Python
answers each call with how many steps to do until it wants to be called again, so that half a second passes, however
long a step takes: a call costs some ten microseconds. It only writes down how far the loop is; a thread draws it. The
steps themselves are as they were.
"""

from __future__ import annotations

import functools
import html
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from catena import lax
from catena.core.lazy import load
from catena.core.struct import ShapeDtypeStruct
from catena.core.trace import leaf_value
from catena.core.traceback import api_boundary
from catena.core.tree import tree_leaves, tree_map
from catena.lax.callbacks import debug_callback, pure_callback
from catena.transform.jit import JitFunction

PARTS = 100  # of a loop whose length is known; between them Python may be called
PERIOD = 0.5  # seconds between two calls, and between two looks at a bar
PATIENCE = 1.0  # seconds of compilation before a bar for it


@api_boundary
def progress(loop: Callable, text: str = "", total: int | None = None) -> Callable:
    """A loop with a live bar, also inside compiled programs; or a jitted function with a bar while it is compiled,
    where that takes longer than a second. Bars are those of ``rich``, or else of ``tqdm``, where these are installed;
    they go to standard error, in a notebook to the cell, and there are none where neither is there.

    Arguments:
      loop: ``lax.scan``, ``lax.fori_loop``, ``lax.while_loop``, ``lax.map`` or a jitted function.
      text: what stands before the bar; by default the loop's name.
      total: how many steps a ``while_loop`` takes, where somebody knows.
    Returns:
      A function of the same arguments and result.
    Raises:
      TypeError: ``loop`` is none of these.

    >>> from catena import lax, tools
    >>> tools.progress(lax.fori_loop, "summing")(0, 1000, lambda i, total: total + i, 0)
    Array(499500, dtype=int32, weak_type=True)
    """
    if isinstance(loop, JitFunction):
        return compiled_with_bar(loop, text or f"compiling {loop._name}")
    if loop not in LOOPS:
        raise TypeError(f"progress takes scan, fori_loop, while_loop or map of lax, or a jitted function, got {loop!r}")
    chunked = LOOPS[loop]

    @functools.wraps(loop)
    def with_bar(*args, **kwargs):
        if not is_watched():
            return loop(*args, **kwargs)
        return chunked(Meter(text or loop.__name__, total), *args, **kwargs)

    return with_bar


# ---- loops of loops


def parts_of(length: int) -> tuple[int, int, int]:
    """How many parts, of how many steps, and how many steps are left: none where some number divides the length."""
    if length <= PARTS:
        return length, 1, 0
    parts = next((p for p in range(2 * PARTS, PARTS // 4, -1) if length % p == 0), PARTS)
    return parts, length // parts, length % parts


def scan_with_bar(meter: Meter, f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False):
    options = {"reverse": reverse, "unroll": unroll, "_split_transpose": _split_transpose}
    leaves = tree_leaves(xs)
    if length is None and leaves and np.ndim(leaves[0]):
        length = len(leaves[0])
    if not isinstance(length, int) or length < 2:
        return lax.scan(f, init, xs, length, **options)
    parts, steps, rest = parts_of(length)
    whole = parts * steps

    def part(state, numbered):
        (carry, awaited), (number, rows) = state, numbered
        carry, ys = lax.scan(f, carry, rows, steps, **options)
        done = (parts - number if reverse else number + 1) * steps + rest * reverse
        return (carry, meter.tell(done, length, awaited)), ys

    def all_parts(carry):
        rows = tree_map(lambda x: lax.reshape(x[:whole], (parts, steps, *x.shape[1:])), xs)
        numbered = np.arange(parts, dtype=np.int32), rows
        (carry, _), ys = lax.scan(part, (carry, np.int32(0)), numbered, parts, reverse=reverse)
        return carry, tree_map(lambda y: lax.reshape(y, (whole, *y.shape[2:])), ys)

    def what_is_left(carry):
        return lax.scan(f, carry, tree_map(lambda x: x[whole:], xs), rest, **options)

    xs = tree_map(leaf_value, xs)
    meter.show(0, length)
    first, second = (what_is_left, all_parts) if reverse else (all_parts, what_is_left)
    if rest:
        carry, a = first(init)
        carry, b = second(carry)
        ys = tree_map(lambda u, v: lax.concatenate([v, u] if reverse else [u, v], 0), a, b)
    else:
        carry, ys = all_parts(init)
    meter.show(length, length)
    return carry, ys


def map_with_bar(meter: Meter, f, xs, *, batch_size=None):
    if batch_size:
        return lax.map(f, xs, batch_size=batch_size)
    return scan_with_bar(meter, lambda _, x: (None, f(x)), None, xs)[1]


def fori_with_bar(meter: Meter, lower, upper, body_fun, init_val, *, unroll=None):
    known = isinstance(lower, (int, np.integer)) and isinstance(upper, (int, np.integer))
    if not known:
        return counted_with_bar(meter, lower, upper, body_fun, init_val)
    if upper - lower < 2:
        return lax.fori_loop(lower, upper, body_fun, init_val, unroll=unroll)
    length = int(upper - lower)
    parts, steps, rest = parts_of(length)

    def part(number, state):
        value, awaited = state
        start = lower + number * steps
        value = lax.fori_loop(0, steps, lambda j, v: body_fun(start + j, v), value, unroll=unroll)
        return value, meter.tell((number + 1) * steps, length, awaited)

    meter.show(0, length)
    value, _ = lax.fori_loop(0, parts, part, (init_val, np.int32(0)))
    if rest:
        value = lax.fori_loop(lower + parts * steps, upper, body_fun, value)
    meter.show(length, length)
    return value


def counted_with_bar(meter: Meter, lower, upper, body_fun, init_val):
    """A loop whose bounds are known when it runs."""

    def part(state):
        start, steps, value = state
        end = lax.min(start + steps.astype(start.dtype), upper)
        value = lax.fori_loop(start, end, body_fun, value)
        return end, meter.ask(end - lower, upper - lower), value

    lower, upper = leaf_value(lower), leaf_value(upper)
    meter.show(0, lax.max(upper - lower, lower.dtype.type(0)))
    return lax.while_loop(lambda state: state[0] < upper, part, (lower, np.int32(1), init_val))[2]


def while_with_bar(meter: Meter, cond_fun, body_fun, init_val):
    def part(state):
        done, steps, value = state

        def step(inner):
            i, value = inner
            return i + 1, body_fun(value)

        count, value = lax.while_loop(lambda inner: (inner[0] < steps) & cond_fun(inner[1]), step, (np.int32(0), value))
        done = done + count
        return done, meter.ask(done, None), value

    meter.show(0, None)
    start = np.int32(0), np.int32(1), init_val
    done, _, value = lax.while_loop(lambda state: cond_fun(state[2]), part, start)
    meter.show(done, done)
    return value


LOOPS: dict[Callable, Callable] = {
    lax.scan: scan_with_bar,
    lax.map: map_with_bar,
    lax.fori_loop: fori_with_bar,
    lax.while_loop: while_with_bar,
}


class Meter:
    """What a compiled loop tells how far it is: here it is only written down, a thread draws it."""

    def __init__(self, text: str, total: int | None):
        self.text, self.total = text, total
        self.threads = threading.local()  # in which the loop may run at the same time

    def show(self, done, total) -> None:
        """Say how far it is when the program is here; ``total`` is None where nobody knows it."""
        debug_callback(self.arrived, done, -1 if total is None else total)

    def tell(self, done, total, awaited):
        """The same, if so many steps as were awaited are done; how many are awaited next."""
        return lax.cond(done >= awaited, lambda: done.astype(np.int32) + self.ask(done, total), lambda: awaited)

    def ask(self, done, total):
        """The same; how many steps to do next is the answer."""
        answer = ShapeDtypeStruct((), np.dtype(np.int32))
        return pure_callback(self.next_steps, answer, done, -1 if total is None else total, vmap_method="sequential")

    def arrived(self, done, total) -> None:
        done, total = int(done), int(total)
        run = getattr(self.threads, "run", None)
        if done == 0 or run is None:
            if run is not None:
                run.end()  # one that an error ended
            run = self.threads.run = Run(self.text, total if total >= 0 else self.total or 0)
        run.done = done
        if 0 <= total <= done:
            run.end()

    def next_steps(self, done, total):
        """As many steps as half a second has room for, but no more than four times as many as just now."""
        self.arrived(done, total)
        run, now = self.threads.run, time.perf_counter()
        steps, seconds = max(int(done) - run.asked[0], 1), max(now - run.asked[1], 1e-9)
        run.asked = int(done), now
        return np.int32(min(max(PERIOD * steps / seconds, 1), 4 * steps, 1 << 30))


class Run:
    """One run of a loop: how far it is, and the thread that draws it, once it has taken a while."""

    def __init__(self, text: str, total: int):
        self.text, self.total, self.done = text, total, 0
        self.asked = 0, time.perf_counter()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.draw, daemon=True)
        self.thread.start()

    def draw(self) -> None:
        if self.ended.wait(PERIOD):
            return
        bar = new_bar(self.text, self.total)
        while not self.ended.wait(PERIOD):
            bar.show(self.done)
        bar.show(self.done)
        bar.close()

    def end(self) -> None:
        self.ended.set()
        self.thread.join()


# ---- bars


def is_watched() -> bool:
    """Whether somebody sees standard error: a terminal, or a notebook."""
    return in_notebook() or sys.stderr.isatty()


def in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def new_bar(text: str, total: int):
    """A bar by what is installed; ``total`` is 0 where nobody knows it."""
    if in_notebook():
        return NotebookBar(text, total)
    for kind in (RichBar, TqdmBar):
        try:
            return kind(text, total)
        except ImportError:
            continue
    return PlainBar(text, total)


class RichBar:
    """A bar of ``rich``."""

    def __init__(self, text: str, total: int):
        rich, console = load("rich.progress"), load("rich.console").Console(file=sys.stderr)
        columns = [*rich.Progress.get_default_columns(), rich.MofNCompleteColumn()]
        self.progress = rich.Progress(*columns, console=console, auto_refresh=False)
        self.task = self.progress.add_task(text, total=total or None)
        self.progress.start()

    def show(self, done: int) -> None:
        self.progress.update(self.task, completed=done, refresh=True)

    def close(self) -> None:
        self.progress.stop()


class TqdmBar:
    """A bar of ``tqdm``."""

    def __init__(self, text: str, total: int):
        self.bar = load("tqdm").tqdm(desc=text, total=total or None, file=sys.stderr)

    def show(self, done: int) -> None:
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        self.bar.close()


class NotebookBar:
    """An output of a cell that changes as the loop goes on. Without widgets ``rich`` would show nothing there."""

    def __init__(self, text: str, total: int):
        self.text, self.total, self.began = text, total, time.perf_counter()
        self.shown = load("IPython.display").display(self.bundle(0), raw=True, display_id=True)

    def show(self, done: int) -> None:
        self.shown.update(self.bundle(done), raw=True)

    def close(self) -> None:
        """The last state stays."""

    def bundle(self, done: int) -> dict[str, str]:
        """What the notebook is given, by types; a bar without an end moves by itself."""
        ends = f' value="{min(done, self.total)}" max="{self.total}"' if self.total else ""
        count = f"{done:,}{f' of {self.total:,}' if self.total else ''} in {time.perf_counter() - self.began:.1f} s"
        return {
            "text/plain": f"{self.text} {count}",
            "text/html": f"<div>{html.escape(self.text)} <progress{ends}></progress> {count}</div>",
        }


class PlainBar:
    """A bar of characters, drawn over itself."""

    width = 30

    def __init__(self, text: str, total: int):
        self.text, self.total, self.began = text, total, time.perf_counter()

    def show(self, done: int) -> None:
        seconds = time.perf_counter() - self.began
        line = f"\r{self.text} {done:,}"
        if self.total:
            full = int(self.width * min(done / self.total, 1))
            line = f"\r{self.text} [{'#' * full}{'.' * (self.width - full)}] {done:,} of {self.total:,}"
        sys.stderr.write(f"{line} in {seconds:.1f} s")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\n")
        sys.stderr.flush()


# ---- compilation


def compiled_with_bar(fun: JitFunction, text: str) -> Callable:
    """A jitted function that is compiled under a bar before it is called."""

    @functools.wraps(fun)
    def with_bar(*args, **kwargs):
        if is_watched():
            with Waiting(text):
                fun.lower(*args, **kwargs).compile()
        return fun(*args, **kwargs)

    return with_bar


class Waiting:
    """Counts seconds on a bar, from the second one on, until the ``with`` block ends."""

    def __init__(self, text: str):
        self.text, self.ended = text, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.count, daemon=True)
        self.thread.start()

    def __exit__(self, *exc_info):
        self.ended.set()
        self.thread.join()

    def count(self) -> None:
        if self.ended.wait(PATIENCE):
            return
        began = time.perf_counter()
        while not self.ended.wait(PERIOD):
            sys.stderr.write(f"\r{self.text}: {PATIENCE + time.perf_counter() - began:.1f} s")
            sys.stderr.flush()
        sys.stderr.write("\n")
        sys.stderr.flush()
