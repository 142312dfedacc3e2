"""What checks cost: programs with and without them, in turn, and the same in JAX by its `checkify`.

    python benchmarks/checks.py [--jax-python .venv-jax/bin/python] [--only TEXT]

Each row is the least time of many calls, plain and checked ones taking turns, so that both see the same machine. `at
most` is what is asked of a row: index checks under 10 % on kernels that gather, NaN checks under 25 % on a chain.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

SECONDS = 2.0  # for each row, in each library


def chain(jax):
    jnp = jax.numpy
    return lambda x: jnp.sqrt(jnp.exp(-x * x) * jnp.sin(x) ** 2 + jnp.tanh(x) ** 2)


def polynomial(jax):
    return lambda x: (((x * 0.5 + 1) * x - 2) * x + 3) * x


def look_up(jax):
    return lambda table, index: table[index]


def products(jax):
    return lambda table, index: jax.numpy.sum(table[index] * table[index[::-1]])


def rows(jax):
    return lambda table, index: table.reshape(-1, 8)[index]


def histogram(jax):
    return lambda table, index: table.at[index].add(1)


def recurrence(jax):
    def run(table, index):
        step = lambda total, i: (0.5 * total + table.reshape(-1, 8)[i], None)
        return jax.lax.scan(step, jax.numpy.zeros(8), index)[0]

    return run


def newton(jax):
    return lambda x: jax.lax.fori_loop(0, 100, lambda i, y: 0.5 * (y + x / y), x)


def operands(rng) -> dict:
    """The operands, by name."""
    return {
        "x": rng.uniform(0.5, 1.5, 10**6).astype(np.float32),
        "y": rng.uniform(0.5, 1.5, 1000).astype(np.float32),
        "table": rng.uniform(size=8000).astype(np.float32),
        "large": rng.uniform(size=10**6).astype(np.float32),
        "index": rng.integers(0, 1000, 10**6).astype(np.int32),
        "far": rng.integers(0, 10**6, 10**6).astype(np.int32),
        "few": rng.integers(0, 1000, 10**4).astype(np.int32),
    }


# what it is, the program, its operands, the checks, the share of time that they may take at most
ROWS = [
    ("NaN checks, chain of ten operations, 1e6", chain, "x", "nan", 0.25),
    ("NaN checks, polynomial, 1e6", polynomial, "x", "nan", 0.25),
    ("NaN checks, 100 Newton steps, 1e3", newton, "y", "nan", None),
    ("index checks, 1e6 of a table", look_up, "table index", "index", 0.10),
    ("index checks, 1e6 of 1e6", look_up, "large far", "index", 0.10),
    ("index checks, products of two gathers, 1e6", products, "table index", "index", 0.10),
    ("index checks, 1e6 rows of 8", rows, "table index", "index", 0.10),
    ("index checks, 1e6 updates", histogram, "table index", "index", 0.10),
    ("index checks, scan of 1e4 rows", recurrence, "table few", "index", None),
    ("all checks, chain of ten operations, 1e6", chain, "x", "all", None),
]


def checked(jax, f, kind: str):
    """The program with its checks: what raises here, in JAX what returns an error that is thrown."""
    if jax.__name__ != "jax":
        return jax.jit(f, checks=kind)
    from jax.experimental import checkify

    errors = {"nan": checkify.nan_checks, "index": checkify.index_checks, "all": checkify.automatic_checks}[kind]
    run = jax.jit(checkify.checkify(f, errors))

    def call(*args):
        error, out = run(*args)
        error.throw()
        return out

    return call


def measure(jax, only: str) -> dict:
    """The least times of plain and of checked calls, in microseconds, by row."""
    given = {name: jax.numpy.asarray(x) for name, x in operands(np.random.default_rng(0)).items()}
    found = {}
    for name, make, names, kind, _ in ROWS:
        if only not in name:
            continue
        args, f = [given[n] for n in names.split()], make(jax)
        calls = jax.jit(f), checked(jax, f, kind)
        times: list = [[], []]
        for call in calls:
            jax.block_until_ready(call(*args))
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for call, row in zip(calls, times, strict=True):
                start = time.perf_counter()
                jax.block_until_ready(call(*args))
                row.append(time.perf_counter() - start)
        found[name] = [1e6 * min(row) for row in times]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jax-python")
    parser.add_argument("--only", default="")
    parser.add_argument("--in-jax", action="store_true", help="what the comparison runs in JAX's environment")
    options = parser.parse_args()
    if options.in_jax:
        import jax

        print(json.dumps(measure(jax, options.only)))
        return
    import catena

    ours, theirs = measure(catena, options.only), {}
    if options.jax_python:
        command = [options.jax_python, __file__, "--in-jax", "--only", options.only]
        theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(
        f"{'':44}{'plain us':>10}{'checked':>10}{'more':>8}{'made to':>9}{'JAX plain':>12}{'checkify':>10}{'more':>8}"
    )
    missed = 0
    for name, _, _, _, most in ROWS:
        if name not in ours:
            continue
        plain, checks = ours[name]
        line = (
            f"{name:44}{plain:10.1f}{checks:10.1f}{checks / plain - 1:8.1%}{'' if most is None else f'{most:.0%}':>9}"
        )
        if name in theirs:
            line += f"{theirs[name][0]:12.1f}{theirs[name][1]:10.1f}{theirs[name][1] / theirs[name][0] - 1:8.0%}"
        missed += most is not None and checks / plain - 1 > most
        print(line)
    print(f"{missed} rows took more than they may")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
