"""What a live bar costs a loop, counted so that other work on the machine does not matter: by time of the processor.

    python benchmarks/progress.py            # bars by what is installed
    python benchmarks/progress.py --plain    # bars of characters

Three things are measured apart and put together for a loop of a second. The loop of loops that a loop with a bar is,
without its calls of Python, beside the plain loop: many short turns, now the one first, now the other, and the least
of each; a turn is some hundredth of a second, and has a hundredth of the parts of a long loop. What one call of
Python, one drawing of the bar and its first half second of waiting cost, each by itself. How many of them a second
has is what ``progress_bars.PERIOD`` says: two of each, and a call at each quadrupling of the steps.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax, tools
from catena.tools import progress_bars
from catena.tools.progress_bars import PERIOD, Meter, Run

SIZE, STEPS, TURNS = 2000, 6000, 100
PARTS = 2  # in a turn, instead of `progress_bars.PARTS`
LIMIT = 0.01  # of the time of a loop of a second


def step(x):
    return jnp.sin(x) * 1.01 + 0.1


def scan(loop):
    return lambda x, n: loop(lambda c, _: (step(c), c[0]), x, None, length=STEPS)


def fori_loop(loop):
    return lambda x, n: loop(0, STEPS, lambda i, c: step(c) + 0.1 * i, x)


def fori_loop_of_unknown_length(loop):
    return lambda x, n: loop(0, n, lambda i, c: step(c) + 0.1 * i, x)


def while_loop(loop):
    return lambda x, n: loop(lambda state: state[0] < n, lambda state: (state[0] + 1, step(state[1])), (0, x))


LOOPS = {
    scan: lax.scan,
    fori_loop: lax.fori_loop,
    fori_loop_of_unknown_length: lax.fori_loop,
    while_loop: lax.while_loop,
}


class Silent(Meter):
    """A meter that calls no Python: what is left of a bar is the loop of loops."""

    def show(self, done, total) -> None:
        """Nobody is told."""

    def ask(self, done, total):
        return np.int32(1 << 30)


def seconds(function, *args) -> float:
    """The processor time of a call, of this process."""
    start = time.process_time()
    jax.block_until_ready(function(*args))
    return time.process_time() - start


def each(run: Callable[[], object], count: int) -> float:
    """The processor time of one of so many runs: the median of five times as many."""
    taken = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            run()
        taken.append((time.process_time() - start) / count)
    return statistics.median(taken)


def call_of_python() -> float:
    """What a compiled loop's call of Python costs: a loop that asks at every step, beside one that never does."""
    count = 1000
    meter = Meter("", None)
    meter.arrived(0, count)
    loop = lambda ask: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, t: t + (ask(i + 1, n) if ask else i), 0))  # noqa: E731
    asking, plain = loop(meter.ask), loop(None)
    return (each(lambda: asking(count), 3) - each(lambda: plain(count), 3)) / count


def drawing() -> float:
    bar, done = progress_bars.new_bar("a loop", 10**6), iter(range(10**6))
    cost = each(lambda: bar.show(next(done)), 20)
    bar.close()
    return cost


def start_and_end() -> float:
    """A run that is over before its bar is drawn."""
    return each(lambda: Run("a loop", 100).end(), 20)


def loop_of_loops(make, loop) -> tuple[float, float]:
    """The least processor time of a turn of the plain loop, and of the same as a loop of loops."""
    plain = jax.jit(make(loop))
    nested = jax.jit(make(tools.progress(loop)))
    x, functions = jnp.ones(SIZE), (plain, nested)
    times: dict = {function: [] for function in functions}
    for function in functions:
        seconds(function, x, STEPS)
    for turn in range(TURNS):
        for function in functions if turn % 2 else reversed(functions):
            times[function].append(seconds(function, x, STEPS))
    return min(times[plain]), min(times[nested])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", action="store_true", help="bars of characters, whatever is installed")
    options = parser.parse_args()
    progress_bars.is_watched = lambda: True
    if options.plain:
        progress_bars.new_bar = progress_bars.PlainBar
    sys.stderr = open(os.devnull, "w")
    call, draw, ends = call_of_python(), drawing(), start_and_end()
    kind = type(progress_bars.new_bar("", 1)).__name__
    print(f"a call of Python {1e6 * call:.0f} us, a drawing ({kind}) {1e6 * draw:.0f} us, a run {1e6 * ends:.0f} us")
    progress_bars.Meter, progress_bars.PARTS, worst = Silent, PARTS, 0.0
    for make, loop in LOOPS.items():
        plain, nested = loop_of_loops(make, loop)
        calls = math.log(PERIOD / (plain / STEPS), 4) + 1 / PERIOD + 2  # at the start and at the end
        python = calls * call + draw / PERIOD + ends
        cost = nested / plain - 1 + python
        worst = max(worst, cost)
        print(
            f"{make.__name__:28} {1e3 * plain:.2f} ms, as a loop of loops {1e3 * nested:.2f} ms; in a loop of a second "
            f"{1e3 * python:.2f} ms of Python; together {100 * cost:+.2f} %",
            flush=True,
        )
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
