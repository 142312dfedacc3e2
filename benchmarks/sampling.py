"""Random numbers beside JAX's: each draw on both, in turn, as ratios of the best times.

    python benchmarks/sampling.py [path of the Python with JAX]

The two libraries run in processes of their own, one at a time, so that neither takes the other's cores.
"""

import json
import math
import os
import subprocess
import sys
import time

SIZES = (10**3, 10**6, 10**7)
REPEATS = {10**3: 200, 10**6: 7, 10**7: 3}
DRAWS = ("bits", "uniform", "normal", "permutation", "categorical", "split")
ROUNDS = 2

BODY = """
import json, sys, time
t0 = time.perf_counter()
library, draw, size, repeats = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if library == "jax":
    import jax, jax.numpy as jnp
else:
    import catena as jax, catena.numpy as jnp
t1 = time.perf_counter()
key = jax.random.key(0)
if draw == "first":
    jax.block_until_ready(jax.random.normal(key, (1000,)))
    print(json.dumps([t1 - t0, time.perf_counter() - t1]))
    sys.exit()
logits = jnp.zeros((size // 10, 10)) if draw == "categorical" else None
run = {
    "bits": lambda: jax.random.bits(key, (size,)),
    "uniform": lambda: jax.random.uniform(key, (size,)),
    "normal": lambda: jax.random.normal(key, (size,)),
    "permutation": lambda: jax.random.permutation(key, size),
    "categorical": lambda: jax.random.categorical(key, logits),
    "split": lambda: jax.random.split(key, size),
}[draw]
jax.block_until_ready(run())
times = []
for _ in range(repeats):
    start = time.perf_counter()
    jax.block_until_ready(run())
    times.append(time.perf_counter() - start)
print(json.dumps(min(times)))
"""


def measure(python: str, library: str, draw: str, size: int, repeats: int):
    """What one process of a library reports."""
    found = subprocess.run(
        [python, "-c", BODY, library, draw, str(size), str(repeats)],
        capture_output=True, text=True, check=True, env=os.environ,
    )  # fmt: skip
    return json.loads(found.stdout.splitlines()[-1])


def best(python: str, library: str, draw: str, size: int) -> float:
    return min(measure(python, library, draw, size, REPEATS[size]) for _ in range(ROUNDS))


def main():
    jax_python = sys.argv[1] if len(sys.argv) > 1 else "/root/jaxenv/bin/python"
    print(
        f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores; seconds, best of several; ratio above 1: catena is faster"
    )
    ratios = []
    for draw in DRAWS:
        for size in SIZES:
            theirs, ours = best(jax_python, "jax", draw, size), best(sys.executable, "catena", draw, size)
            ratios.append(theirs / ours)
            print(
                f"{draw:12} {size:>9}  jax {theirs:10.6f}  catena {ours:10.6f}  ratio {theirs / ours:6.2f}",
                flush=True,
            )
    print(
        f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, slowest {min(ratios):.2f}"
    )
    first = {}
    for name, python in (("jax", jax_python), ("catena", sys.executable)):
        first[name] = [
            min(x) for x in zip(*[measure(python, name, "first", 0, 0) for _ in range(3)], strict=True)
        ]
        print(f"fresh process, {name}: import {first[name][0]:.3f}, first normal {first[name][1]:.3f}")
    print(f"first normal: {first['jax'][1] / first['catena'][1]:.1f} times sooner; with the import "
          f"{sum(first['jax']) / sum(first['catena']):.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
