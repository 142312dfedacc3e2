"""Random numbers beside JAX's: each draw on both, in turn, as ratios of the best times.

    python benchmarks/sampling.py [--jax-python PATH] [--part draws|samplers|first|reuse] [--only NAME ...]

``draws`` are the six that matter most at three sizes, ``samplers`` is every sampler at 1e5 numbers, ``first`` is the
first draw in a fresh process, ``reuse`` what the levels of ``jax_debug_key_reuse`` cost here. The two libraries run
in processes of their own that take turns, so that neither takes the other's cores and other load on the machine hits
both.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

SIZES = (10**3, 10**6, 10**7)
DRAWS = ("bits", "uniform", "normal", "permutation", "categorical", "split")
SAMPLER_SIZE = 10**5
ROUNDS = 3
FRESH = 7  # processes of each library
BUDGET = 0.4  # seconds that one round of one draw may take

# What is drawn, by name; ``n`` is the number of results.
BODIES = {
    "bits": "random.bits(key, (n,))",
    "uniform": "random.uniform(key, (n,))",
    "normal": "random.normal(key, (n,))",
    "permutation": "random.permutation(key, n)",
    "categorical": "random.categorical(key, logits)",
    "split": "random.split(key, n)",
    "fold_in": "jax.vmap(random.fold_in, (None, 0))(key, counts)",
    "randint": "random.randint(key, (n,), 0, 1000)",
    "bernoulli": "random.bernoulli(key, 0.3, (n,))",
    "rademacher": "random.rademacher(key, (n,))",
    "truncated_normal": "random.truncated_normal(key, -2.0, 2.0, (n,))",
    "exponential": "random.exponential(key, (n,))",
    "gumbel": "random.gumbel(key, (n,))",
    "laplace": "random.laplace(key, (n,))",
    "logistic": "random.logistic(key, (n,))",
    "cauchy": "random.cauchy(key, (n,))",
    "pareto": "random.pareto(key, 3.0, (n,))",
    "rayleigh": "random.rayleigh(key, 1.0, (n,))",
    "triangular": "random.triangular(key, 0.0, 0.5, 1.0, (n,))",
    "weibull_min": "random.weibull_min(key, 1.0, 2.0, (n,))",
    "lognormal": "random.lognormal(key, 1.0, (n,))",
    "maxwell": "random.maxwell(key, (n,))",
    "double_sided_maxwell": "random.double_sided_maxwell(key, 0.0, 1.0, (n,))",
    "wald": "random.wald(key, 1.0, (n,))",
    "gamma": "random.gamma(key, 2.0, (n,))",
    "gamma of small a": "random.gamma(key, 0.3, (n,))",
    "loggamma": "random.loggamma(key, 0.5, (n,))",
    "beta": "random.beta(key, 2.0, 3.0, (n,))",
    "chisquare": "random.chisquare(key, 3.0, (n,))",
    "dirichlet": "random.dirichlet(key, alpha, (n // 10,))",
    "f": "random.f(key, 3.0, 4.0, (n,))",
    "t": "random.t(key, 3.0, (n,))",
    "generalized_normal": "random.generalized_normal(key, 1.5, (n,))",
    "ball": "random.ball(key, 3, 2.0, (n // 3,))",
    "geometric": "random.geometric(key, 0.3, (n,))",
    "poisson": "random.poisson(key, 3.0, (n,))",
    "poisson of large mean": "random.poisson(key, 50.0, (n,))",
    "binomial": "random.binomial(key, 10.0, 0.3, (n,))",
    "binomial of many": "random.binomial(key, 1000.0, 0.3, (n,))",
    "multinomial": "random.multinomial(key, jnp.full(n // 10, 20.0), probabilities)",
    "multivariate_normal": "random.multivariate_normal(key, mean, covariance, (n // 10,))",
    "orthogonal": "random.orthogonal(key, 10, (n // 100,))",
    "choice": "random.choice(key, n, (n,))",
    "choice without replacement": "random.choice(key, n, (n // 2,), replace=False)",
    "choice with p": "random.choice(key, 10, (n,), p=probabilities)",
    "choice with p, without replacement": "random.choice(key, n, (n // 2,), replace=False, p=weights)",
    "permutation of rows": "random.permutation(key, table)",
    "permutation, independent": "random.permutation(key, table, axis=1, independent=True)",
    "uniform, vmap over keys": "jax.vmap(random.uniform)(keys)",
    "gamma, vmap over keys": "jax.vmap(random.gamma, (0, None))(keys, 2.0)",
}

WORKER = """
import json, sys, time
library, bodies = sys.argv[1], json.loads(sys.argv[2])
if library == "jax":
    import jax, jax.numpy as jnp
    from jax import random
else:
    import catena as jax, catena.numpy as jnp
    from catena import random
alpha, mean, covariance = jnp.ones(10), jnp.zeros(10), jnp.eye(10)
probabilities = jnp.full(10, 0.1)
print("ready", flush=True)
for line in sys.stdin:
    name, n, budget = json.loads(line)
    key = random.key(0)
    logits = jnp.zeros((n // 10, 10)) if name == "categorical" else None
    keys = random.split(key, n) if "vmap" in name else None
    counts = jnp.arange(n, dtype="uint32") if name == "fold_in" else None
    table = jnp.zeros((n // 10, 10)) if "permutation" in name else None
    weights = jnp.full(n, 1.0 / n) if "choice" in name else None
    run = eval("lambda: " + bodies[name])
    jax.block_until_ready(run())
    times, until = [], time.perf_counter() + budget
    while len(times) < 2 or time.perf_counter() < until and len(times) < 300:
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    print(json.dumps(min(times)), flush=True)
"""

FIRST = """
import json, sys, time
t0 = time.perf_counter()
if sys.argv[1] == "jax":
    import jax
else:
    import catena as jax
t1 = time.perf_counter()
jax.block_until_ready(jax.random.normal(jax.random.key(0), (1000,)))
print(json.dumps([t1 - t0, time.perf_counter() - t1]))
"""


REUSE = """
import itertools, time
import catena as jax
from catena import random

DRAWS = {
    "normal of 100": lambda key: random.normal(key, (100,)),
    "uniform of 1": random.uniform,
    "split": random.split,
    "normal of 1e5": lambda key: random.normal(key, (10**5,)),
}
for name, draw in DRAWS.items():
    batch, best = (20 if "1e5" in name else 200), {}
    for level in (False, "warn", True):
        with jax.debug_key_reuse(level):
            draw(random.key(0)), draw(random.key(1))
    for seed, level in itertools.product(range(40), (False, "warn", True)):
        keys = [random.key(seed * batch + i) for i in range(batch)]
        with jax.debug_key_reuse(level):
            start = time.perf_counter()
            for key in keys:
                draw(key)
            took = (time.perf_counter() - start) / batch
        best[level] = min(took, best.get(level, took))
    print(f"{name:14} a draw, in us:", ", ".join(f"{level} {1e6 * took:.2f}" for level, took in best.items()))
"""


class Worker:
    """A process with one library that times draws when told to."""

    def __init__(self, python: str, library: str):
        self.process = subprocess.Popen(
            [python, "-c", WORKER, library, json.dumps(BODIES)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        self.process.stdout.readline()

    def time(self, name: str, size: int) -> float:
        self.process.stdin.write(json.dumps([name, size, BUDGET]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the process that timed {name!r} ended")
        return json.loads(answer)


def environment() -> dict:
    """The environment, with byte code kept: else every import compiles anew."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def compare(theirs: Worker, ours: Worker, name: str, size: int) -> float:
    """The ratio of the best times, printed."""
    pairs = [(theirs.time(name, size), ours.time(name, size)) for _ in range(ROUNDS)]
    jax, catena = map(min, zip(*pairs, strict=True))
    print(f"{name:34} {size:>9}  jax {jax:10.6f}  catena {catena:10.6f}  ratio {jax / catena:6.2f}", flush=True)
    return jax / catena


def table(python: str, names, sizes):
    """One table of ratios and their summary."""
    workers = Worker(python, "jax"), Worker(sys.executable, "catena")
    ratios = [compare(*workers, name, size) for name in names for size in sizes]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, slowest {min(ratios):.2f}\n")


def first_draws(python: str):
    """Import, first key and first ``normal`` in fresh processes, in turn; the best of each."""
    executables = {"jax": python, "catena": sys.executable}
    runs = [{library: run_first(path, library) for library, path in executables.items()} for _ in range(FRESH)]
    best = {library: [min(x) for x in zip(*(run[library] for run in runs), strict=True)] for library in executables}
    for library, (load, draw) in best.items():
        print(f"fresh process, {library:6}: import {load:.3f} s, key and first normal {draw:.3f} s")
    (jax_import, jax_draw), (own_import, own_draw) = best["jax"], best["catena"]
    both = (jax_import + jax_draw) / (own_import + own_draw)
    print(f"first normal {jax_draw / own_draw:.1f} times sooner; with the import {both:.1f}")


def run_first(python: str, library: str) -> list:
    found = subprocess.run(
        [python, "-c", FIRST, library], capture_output=True, text=True, check=True, env=environment()
    )
    return json.loads(found.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jax-python", default="/root/jaxenv/bin/python")
    parser.add_argument("--part", choices=("draws", "samplers", "first", "reuse"))
    parser.add_argument("--only", nargs="*")
    chosen = parser.parse_args()
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores; seconds, best of several; above 1: catena is faster")
    for part, names, sizes in (("draws", DRAWS, SIZES), ("samplers", BODIES, (SAMPLER_SIZE,))):
        if chosen.part in (None, part):
            table(chosen.jax_python, [n for n in names if not chosen.only or n in chosen.only], sizes)
    if chosen.part in (None, "first"):
        first_draws(chosen.jax_python)
    if chosen.part in (None, "reuse"):
        subprocess.run([sys.executable, "-c", REUSE], check=True, env=environment())


if __name__ == "__main__":
    main()
