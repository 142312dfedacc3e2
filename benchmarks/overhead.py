"""What a call costs beside JAX: imports, first results of scripts, eager operations, calls of jitted functions,
compilation.

`make bench-overhead` runs this. Two worker processes, one per library, take turns: the parent asks one of
them to time one workload, then the other, round after round, so that both meet the same noise; each number
is the least of its rounds. Everything is small on purpose: this measures overhead, not arithmetic. Results
must be equal too. JAX against itself gives 1.0 in every row, within a tenth.

Where there is a choice, it favours JAX: an operation's time ends when the call returns, although JAX may
still be computing; work is waited for once per batch of calls, and both have loaded their compilers before
compilation is timed. Compilation is measured in fresh processes with every disk cache off.

Imports, too, are measured in fresh processes, beside that of NumPy in turns; and from there to the first result of a
jitted function, where the script ran before and where nothing is on the disk: the processor's time, in all threads.
"""

import argparse
import functools
import importlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fresh import caches
from side_by_side import (
    OURS,
    THEIRS,
    Worker,
    alternate,
    best,
    check_equal,
    environment,
    numbers,
    options_of,
    serve,
    show,
)

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "digits.py"
NO_DISK_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "0", "CATENA_ENABLE_COMPILATION_CACHE": "0"}

# ----------------------------------------------------------------------- the workloads, written once


def ten_operations(jnp):
    def f(x):
        y = x * 2.0
        y = y + 1.0
        y = jnp.sin(y)
        y = y * x
        y = jnp.exp(y)
        y = y - x
        y = jnp.tanh(y)
        y = y / 3.0
        y = y * y
        return jnp.sum(y)

    return f


def workloads(jax):
    """Name -> a call without arguments, in the order of the list in `GOALS`."""
    jnp = jax.numpy
    x = jnp.arange(32.0) / 32
    square = jnp.arange(256.0).reshape(16, 16) / 256
    grad = jax.grad(ten_operations(jnp))
    one = jax.jit(lambda a: a + 1)
    two = jax.jit(lambda a, b: a * b + 1)
    eight = jax.jit(lambda a, b, c, d, e, f, g, h: a + b + c + d + e + f + g + h)
    leaves = {f"layer{i:02}": jnp.full(8, float(i)) for i in range(100)}
    total = jax.jit(lambda tree: sum(tree.values()))
    update = jax.jit(lambda tree: jax.tree.map(lambda leaf: leaf * 0.5, tree))
    return {
        "x + 1": lambda: x + 1,
        "sin(x)": lambda: jnp.sin(x),
        "sum(x)": lambda: jnp.sum(x),
        "matmul(m, m)": lambda: jnp.matmul(square, square),
        "x[0]": lambda: x[0],
        "x[2:5]": lambda: x[2:5],
        "x.at[0].set(1)": lambda: x.at[0].set(1),
        "m.reshape(32, 8)": lambda: square.reshape(32, 8),
        "m.T": lambda: square.T,
        "grad(ten operations)(x)": lambda: grad(x),
        "jit, 1 argument": lambda: one(x),
        "jit, 2 arguments": lambda: two(x, x),
        "jit, 8 arguments": lambda: eight(x, x, x, x, x, x, x, x),
        "jit, dict of 100 to one array": lambda: total(leaves),
        "jit, dict of 100 to the like": lambda: update(leaves),
    }


IMPORT, COMPILE = "import", "compile the demo's step"
IMPORT_BUDGET = 0.060  # seconds above NumPy's own import
FIRST = {"first result, ran before": 0.100, "first result, nothing kept": 0.250}  # seconds from the import on

# How many times faster than JAX each workload must be.
GOALS = {
    "x + 1": 3,
    "sin(x)": 3,
    "sum(x)": 3,
    "matmul(m, m)": 3,
    "x[0]": 10,
    "x[2:5]": 10,
    "x.at[0].set(1)": 10,
    "m.reshape(32, 8)": 10,
    "m.T": 10,
    "grad(ten operations)(x)": 10,
    "jit, 1 argument": 1.5,
    "jit, 2 arguments": 1.5,
    "jit, 8 arguments": 1.5,
    "jit, dict of 100 to one array": 1.5,
    "jit, dict of 100 to the like": 1.5,
    COMPILE: 3,
}

# ------------------------------------------------------------------------------ in the worker process


def demo(library):
    """The module of the example, under either library: one import line makes the difference."""
    source = EXAMPLE.read_text()
    line = f"import {OURS} as jax\n"
    if source.count(line) != 1:
        raise SystemExit(f"{EXAMPLE} should have exactly one line {line!r}")
    module = {"__name__": "demo"}
    exec(compile(source.replace(line, f"import {library} as jax\n"), str(EXAMPLE), "exec"), module)
    return module


def time_compilation(library):
    """Trace, lower and compile the demo's training step once; then run it for its numbers."""
    jax = importlib.import_module(library)
    module = demo(library)
    (images, labels), _ = module["load_data"]()
    params = module["init_params"]()
    arguments = (params, module["init_adam"](params), images[:64], labels[:64])
    jax.block_until_ready(jax.jit(lambda x: x * 3 - 1)(images[:2]))  # loads the compiler
    start = time.perf_counter()
    compiled = module["train_step"].lower(*arguments).compile()
    seconds = time.perf_counter() - start
    _, _, loss = compiled(*arguments)
    return {"seconds": seconds, "result": numbers(jax, loss)}


# ------------------------------------------------------------------------------ in the parent process


@dataclass
class Row:
    name: str
    ours: float  # seconds
    theirs: float
    goal: str
    margin: float  # reached / required: 1 or more is met

    @property
    def met(self):
        return self.margin >= 1

    def __str__(self):
        times = f"{show(self.ours):>10} {show(self.theirs):>10} {self.theirs / self.ours:>8.1f}x"
        return f"{self.name:<30} {times}   {self.goal:<22} {'met' if self.met else 'MISSED'}"


def run_fresh(command, cache=NO_DISK_CACHE):
    """The JSON that a fresh process prints last; both libraries may keep byte code, as installed ones do."""
    done = subprocess.run(command, env=environment() | cache, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{command} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure_import(pythons, rounds):
    code = "import json, time; t = time.process_time(); import {}; print(json.dumps(time.process_time() - t))"

    def once(python, module):
        return lambda: run_fresh([python, "-c", code.format(module)])

    ours, theirs, plain = (
        min(times)
        for times in alternate(
            rounds,
            once(pythons[OURS], OURS),
            once(pythons[THEIRS], THEIRS),
            once(pythons[OURS], "numpy"),
        )
    )
    extra = max(ours - plain, 1e-9)
    goal = f"NumPy {show(plain)} + {show(IMPORT_BUDGET)}"
    return Row(IMPORT, ours, theirs, goal, IMPORT_BUDGET / extra)


FIRST_RESULT = """
import json, time, {0} as jax, {0}.numpy as jnp
start = time.process_time()
result = jax.block_until_ready(jax.jit(lambda x: jnp.sum(jnp.sin(x) * x))(jnp.arange(3.0)))
seconds = time.process_time() - start
print(json.dumps({{"seconds": seconds, "result": [{{"dtype": str(result.dtype), "values": float(result)}}]}}))
"""


def measure_first_result(name, pythons, rounds):
    """From the import to the first result of a jitted function, in processes that find what the one before them kept,
    or nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        cache = caches(folder) if name == "first result, ran before" else NO_DISK_CACHE

        def once(library):
            return lambda: run_fresh([pythons[library], "-c", FIRST_RESULT.format(library)], cache)

        calls = once(OURS), once(THEIRS)
        for call in calls:  # what is measured ran before
            call()
        ours, theirs = alternate(rounds, *calls)
    check_equal(name, ours[0]["result"], theirs[0]["result"])
    left, budget = best(ours), FIRST[name]
    return Row(name, left, best(theirs), f"<= {show(budget)}", budget / left)


def measure_compilation(pythons, rounds):
    def once(library):
        return lambda: run_fresh([pythons[library], __file__, "--compile", library])

    ours, theirs = alternate(rounds, once(OURS), once(THEIRS))
    return row(COMPILE, ours, theirs)


def row(name, ours, theirs):
    check_equal(name, ours[0]["result"], theirs[0]["result"])
    left, right = best(ours), best(theirs)
    return Row(name, left, right, f">= {GOALS[name]}x", right / left / GOALS[name])


def measure_calls(pythons, rounds, seconds, names):
    workers = [Worker(pythons[OURS], __file__, OURS), Worker(pythons[THEIRS], __file__, THEIRS)]
    try:
        for name in names:
            ask = {"workload": name, "seconds": seconds}
            yield row(name, *alternate(rounds, *(functools.partial(w.ask, **ask) for w in workers)))
    finally:
        for worker in workers:
            worker.close()


def report(rows):
    print(f"\n{'':<30} {OURS:>10} {THEIRS:>10} {'ratio':>9}   {'goal':<22}")
    for each in sorted(rows, key=lambda r: r.margin):
        print(each)
    missed = sum(not each.met for each in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} goals met; worst first. Each time is the least of its rounds.")
    return missed


def measure_all(options):
    pythons = {OURS: sys.executable, THEIRS: options.jax_python}
    names = [name for name in GOALS if options.only in name]
    rows = []
    for each in measure_calls(pythons, options.rounds, options.seconds, [n for n in names if n != COMPILE]):
        print(f"  measured {each.name}", file=sys.stderr)
        rows.append(each)
    if COMPILE in names:
        rows.append(measure_compilation(pythons, options.fresh_rounds))
    rows += [measure_first_result(name, pythons, options.fresh_rounds) for name in FIRST if options.only in name]
    if options.only in IMPORT:
        rows.append(measure_import(pythons, options.fresh_rounds))
    return rows


def main():
    parser = options_of(__doc__.splitlines()[0], rounds=9, seconds=0.05)
    parser.add_argument("--fresh-rounds", type=int, default=5, help="turns where each is a fresh process")
    parser.add_argument("--compile", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, workloads)
    elif options.compile:
        print(json.dumps(time_compilation(options.compile)))
    elif report(measure_all(options)) and options.strict:
        sys.exit(1)


if __name__ == "__main__":
    main()
