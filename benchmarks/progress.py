"""What a live bar costs: loops with one beside loops without, run by turns, now the one first, now the other, in
seconds of processor time. On a busy machine give it priority: `chrt -f 10`.

python benchmarks/progress.py            # bars by what is installed
python benchmarks/progress.py --plain    # bars of characters
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time

import catena as jax
import catena.numpy as jnp
from catena import lax, tools
from catena.tools import progress_bars

SIZE, STEPS, REPEATS = 2000, 200_000, 20
LIMIT = 0.01  # of a loop's time


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


def seconds(function, *args) -> float:
    start = time.process_time()
    jax.block_until_ready(function(*args))
    return time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plain", action="store_true", help="bars of characters, whatever is installed")
    options = parser.parse_args()
    progress_bars.is_watched = lambda: True
    if options.plain:
        progress_bars.new_bar = progress_bars.PlainBar
    sys.stderr = open(os.devnull, "w")
    x, worst = jnp.ones(SIZE), 0.0
    for make, loop in LOOPS.items():
        plain, shown = jax.jit(make(loop)), jax.jit(make(tools.progress(loop)))
        for function in (plain, shown):
            seconds(function, x, STEPS)
        pairs = []
        for turn in range(REPEATS):
            order = (plain, shown) if turn % 2 else (shown, plain)
            times = {function: seconds(function, x, STEPS) for function in order}
            pairs.append((times[plain], times[shown]))
        a, b = (min(column) for column in zip(*pairs, strict=True))
        cost = statistics.median(shown / plain for plain, shown in pairs) - 1
        worst = max(worst, cost)
        print(f"{make.__name__:28} {a:.3f} s without a bar, {b:.3f} s with one; median {100 * cost:+.1f} %", flush=True)
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
