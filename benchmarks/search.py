"""A search for programs that run slower than in JAX 0.10.2, as `random_transformations.py` searches for wrong ones.

`make bench-search MINUTES=30` writes random programs of many elements: operations, models assembled from blocks,
layouts, sizes and dtypes, compiled as they are, differentiated, in a loop, under `vmap`, or evaluated eagerly. Each
is timed beside JAX, in turns, in two processes that live long, by the least of short runs: so a machine that does
something else still gives a ratio, and ratios near 1 are measured again (``BENCH_CLOCK=processor``, with both held
to one core, counts the processor's time alone). What is slower is shrunk, step by step, to the smallest program
that still is, printed worst first, and kept in ``search_corpus.json``, which the next search times first
(`CORPUS=1`: only those).
"""

import argparse
import functools
import importlib
import json
import math
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import shrinking
from search_steps import OPERATIONS, meta
from side_by_side import OURS, THEIRS, Pair, alternate, best, show, time_calls

CORPUS = Path(__file__).with_name("search_corpus.json")
WAYS = ("jit", "grad", "loop", "vmap", "eager")  # how a program is run
OFTEN = (0.45, 0.25, 0.15, 0.1, 0.05)
DTYPES, DTYPES_OFTEN = ("float32", "bfloat16", "float16"), (0.85, 0.1, 0.05)
SHAPES = (
    [(n,) for n in (100, 10_000, 300_000, 2_000_000)]
    + [(2, 100_000), (100_000, 2), (50_000, 7), (7, 50_000), (1000, 1000), (128, 784), (32, 64), (4096, 100), (300, 3)]
    + [(8, 64, 64), (1000, 3, 3), (2000, 8, 8), (16, 128, 48), (3, 300, 200), (64, 5, 100)]
    + [(8, 32, 32, 3), (4, 28, 28, 16), (2, 8, 64, 64)]
)
MOST = 4_000_000  # elements of a value
LOOPS, MEMBERS = 20, 4
PATIENCE = 90  # seconds of one answer
SHORT, LONG = 0.02, 0.1  # seconds of a run
NEAR = 1.25  # ratios below are measured again


class Program(NamedTuple):
    """Two float arguments and one of indices; the steps; how it is run."""

    shapes: list
    dtype: str
    seed: int
    steps: list
    way: str


# ------------------------------------------------------------------------------ writing programs


def write(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    x = SHAPES[int(rng.integers(len(SHAPES)))]
    y = [x, x[-1:], (*x[:-1], 1), x[::-1], x][int(rng.integers(5))]
    count = min(x[0], int(rng.choice([10, 1000, 50_000])))
    way, dtype = str(rng.choice(WAYS, p=OFTEN)), str(rng.choice(DTYPES, p=DTYPES_OFTEN))
    return follow(Program([x, y, (count,)], dtype, seed, [None] * int(rng.integers(1, 8)), way))


def follow(program: Program) -> Program:
    """The program with steps that are ``None`` chosen; one without steps where those that are given do not fit."""
    jax, rng = importlib.import_module(OURS), np.random.default_rng(program.seed)
    values, steps, names = abstract(jax, program), [], sorted(OPERATIONS)
    for step in program.steps:
        for _ in range(1 if step else 20):
            chosen = step or choose(rng, values, names)
            made = chosen and result(jax, program, values, chosen)
            if made is not None:
                steps.append(chosen)
                values.append(made)
                break
        else:
            if step:
                return program._replace(steps=[])
    return program._replace(steps=steps)


def choose(rng, values, names):
    """An operation, the values that it reads and its parameters, if it fits."""
    name = names[int(rng.integers(len(names)))]
    metas = [meta(v.shape, v.dtype) for v in values]
    args = [OPERATIONS[name].pick(rng, metas, kind) for kind in OPERATIONS[name].kinds]
    params = None if None in args else OPERATIONS[name].choose(rng, *[metas[i] for i in args])
    return None if params is None else [name, args, json.loads(json.dumps(params))]


def result(jax, program: Program, values: list, step: list):
    """What tracing says that a step makes; None where it does not fit."""
    name, args, params = step
    weights = [jax.ShapeDtypeStruct(tuple(s), program.dtype) for s in params.get("weights", ())]
    rest = {k: v for k, v in params.items() if k != "weights"}
    run = lambda given, ws: OPERATIONS[name].run(jax, *given, **rest, **({"weights": ws} if ws else {}))
    try:
        made = jax.eval_shape(run, [values[i] for i in args], weights)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return None
    return made if 0 < made.size <= MOST else None


def abstract(jax, program: Program) -> list:
    dtypes = (program.dtype, program.dtype, "int32")
    return [jax.ShapeDtypeStruct(tuple(s), d) for s, d in zip(program.shapes, dtypes, strict=True)]


def without(program: Program, k: int) -> Program:
    return follow(program._replace(steps=shrinking.without(program.steps, k, len(program.shapes))))


# ------------------------------------------------------------------------------ running them


def arguments(jax, program: Program) -> tuple:
    """The arguments, and the weights of each step."""
    rng, make = np.random.default_rng(program.seed), jax.numpy.asarray
    normal = lambda shape, scale=1.0: make(scale * rng.standard_normal(shape, np.float32), program.dtype)
    x, y = (normal(s) for s in program.shapes[:2])
    i = make(rng.integers(0, program.shapes[0][0], program.shapes[2]), "int32")
    weights = [
        [normal(s, 0.5 * (s[0] if len(s) > 1 else 4) ** -0.5) for s in params.get("weights", ())]
        for _, _, params in program.steps
    ]
    return x, y, weights, i


def function(jax, program: Program):
    """The program, to the values that it does not read itself."""
    read = {i for _, args, _ in program.steps for i in args}

    def run(x, y, weights, i):
        values = [x, y, i]
        for (name, args, params), ws in zip(program.steps, weights, strict=True):
            given = params | ({"weights": ws} if ws else {})
            values.append(OPERATIONS[name].run(jax, *[values[k] for k in args], **given))
        return [v for k, v in enumerate(values) if k >= 3 and k not in read]

    return run


def call(jax, program: Program):
    """What is timed: a call of the program, run in its way."""
    f, given = function(jax, program), arguments(jax, program)
    if program.way == "eager":
        return lambda: f(*given)
    made = jax.jit(WAY[program.way](jax, f))
    return lambda: made(*given)


def differentiated(jax, f):
    jnp = jax.numpy
    loss = lambda *given: sum(jnp.sum(v).astype("float32") for v in f(*given) if jnp.issubdtype(v.dtype, jnp.floating))
    return jax.grad(lambda *given: loss(*given) + 0.0, (0, 1, 2))


def looped(jax, f):
    """The program again and again: what it makes moves both arguments, so that nothing is the same in each turn."""

    def run(x, y, *rest):
        def step(_, carry):
            moved = sum(jax.numpy.mean(v) for v in f(*carry, *rest)) * 1e-3
            return tuple((z + moved).astype(z.dtype) for z in carry)

        return jax.lax.fori_loop(0, LOOPS, step, (x, y))

    return run


def mapped(jax, f):
    """The program for several first arguments."""
    return lambda x, *rest: jax.vmap(lambda x: f(x, *rest))(jax.numpy.stack([x * k for k in range(1, MEMBERS + 1)]))


WAY = {"jit": lambda jax, f: f, "grad": differentiated, "loop": looped, "vmap": mapped}


def serve(library: str) -> None:
    """Answer requests on stdin, a line of JSON each: a program, and for how long it runs; the last one is kept."""
    jax = importlib.import_module(library)
    for name in ("numpy", "nn", "ops", "scipy.special", "scipy.stats"):
        importlib.import_module(f"{library}.{name}")
    prepare = functools.lru_cache(1)(lambda text: first(jax, call(jax, Program(*json.loads(text)))))
    for line in sys.stdin:
        request = json.loads(line)
        signal.alarm(PATIENCE)  # ends this process
        try:
            made, compiled = prepare(json.dumps(request["program"]))
            answer = {"seconds": time_calls(jax, made, request["seconds"]), "first": compiled}
        except Exception as error:  # what a library does not take is no question of speed
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        signal.alarm(0)
        print(json.dumps(answer), flush=True)


def first(jax, made) -> tuple:
    start = time.perf_counter()
    jax.block_until_ready(made())
    return made, time.perf_counter() - start


# ------------------------------------------------------------------------------ the search


class Row(NamedTuple):
    program: Program
    ours: float
    theirs: float
    first: float  # JAX's first call by ours

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def measure(pair: Pair, program: Program, floor: float) -> Row:
    """Both libraries in turns; again, and longer, where the ratio is near the floor or below."""
    kept = [[], []]
    for rounds, seconds in ((3, SHORT), (4, SHORT), (5, LONG)):
        asks = [functools.partial(pair.ask, each, program=program, seconds=seconds) for each in (OURS, THEIRS)]
        for answers, more in zip(kept, alternate(rounds, *asks), strict=True):
            if errors := [a["error"] for a in more if "error" in a]:
                raise RuntimeError(errors[0])
            answers += more
        row = Row(program, best(kept[0]), best(kept[1]), kept[1][0]["first"] / kept[0][0]["first"])
        if row.ratio > floor * NEAR:
            break
    return row


def slower(pair: Pair, program: Program, floor: float) -> Row | None:
    try:
        row = measure(pair, program, floor)
    except RuntimeError:
        return None
    return row if row.ratio < floor else None


def simpler(program: Program) -> list:
    """The program run plainly, and with smaller arguments."""
    plain = [program._replace(way="jit")] if program.way not in ("jit", "eager") else []
    halves = [[max(1, n // 4) if n > 64 else n for n in s] for s in program.shapes]
    return plain + ([program._replace(shapes=halves)] if halves != [list(s) for s in program.shapes] else [])


def shrunk(pair: Pair, row: Row, floor: float) -> Row:
    again = lambda program: slower(pair, program, floor)
    _, row = shrinking.smallest(row.program, row, without, again)
    for program in simpler(row.program):
        if (smaller := follow(program)).steps and (found := again(smaller)):
            row = found
    return row


def kept_programs() -> list[Program]:
    return [Program(*entry["program"]) for entry in json.loads(CORPUS.read_text())] if CORPUS.exists() else []


def keep(rows: list[Row]) -> None:
    """The corpus with what was found, a program once."""
    known = json.loads(CORPUS.read_text()) if CORPUS.exists() else []
    texts = {json.dumps(entry["program"]) for entry in known}
    for row in rows:
        program = json.loads(json.dumps(row.program))
        if json.dumps(program) not in texts:
            known.append({"program": program, "ratio": round(row.ratio, 2)})
    lines = ",\n".join(json.dumps(entry) for entry in known)
    CORPUS.write_text(f"[\n{lines}\n]\n")


def described(row: Row) -> str:
    p = row.program
    steps = "; ".join(f"{k + len(p.shapes)} = {name}({', '.join(map(str, args))}{parameters(params)})"
                      for k, (name, args, params) in enumerate(p.steps))  # fmt: skip
    shapes = " ".join(map(str, (tuple(s) for s in p.shapes)))
    return f"{row.ratio:.2f}  {show(row.ours)} / {show(row.theirs)}  {p.way} {p.dtype} {shapes}: {steps}"


def parameters(params: dict) -> str:
    return "".join(f", {key}={value}" for key, value in params.items() if len(str(value)) < 60)


def searched(pair: Pair, options) -> tuple[list[Row], list[Row], Counter]:
    """All rows, those found slower and shrunk, and what was not run, by reason."""
    end, rows, found, left = time.monotonic() + 60 * options.minutes, [], [], Counter()
    seeds = range(options.seed, options.seed + options.count)
    todo = [(program, True) for program in kept_programs()] + [(None, seed) for seed in seeds]
    for program, which in todo if not options.corpus else [t for t in todo if t[0]]:
        if time.monotonic() > end:
            break
        program = program or write(which)
        if not program.steps:
            left["no step fits"] += 1
            continue
        try:
            row = measure(pair, program, options.floor)
        except RuntimeError as error:
            left[str(error).split(":")[0]] += 1
            if options.verbose:
                print(f"not run: {error}\n  {program}", file=sys.stderr, flush=True)
            continue
        rows.append(row)
        if row.ratio < options.floor:
            row = row if which is True else shrunk(pair, row, options.floor)
            found.append(row)
            print(described(row), flush=True)
    return rows, found, left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to search")
    parser.add_argument("--count", type=int, default=1_000_000, help="how many programs at most")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--floor", type=float, default=1.0, help="what ratio is slow")
    parser.add_argument("--corpus", action="store_true", help="only what earlier searches found")
    parser.add_argument("--keep", action="store_true", help="keep what is found in the corpus")
    parser.add_argument("--verbose", action="store_true", help="say what does not run")
    parser.add_argument("--serve", choices=(OURS, THEIRS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    os.environ |= {"CATENA_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    pair = Pair({OURS: sys.executable, THEIRS: options.jax_python}, __file__)
    try:
        rows, found, left = searched(pair, options)
    finally:
        pair.close()
    if options.keep:
        keep(found)
    print("\nworst first:", *(described(r) for r in sorted(found, key=lambda r: r.ratio)[:20]), sep="\n")
    mean = lambda values: math.exp(sum(map(math.log, values)) / max(len(values), 1))
    for way in WAYS:
        of_way = [r for r in rows if r.program.way == way]
        if of_way:
            slow = sum(r.ratio < options.floor for r in of_way)
            ratios = f"{mean([r.ratio for r in of_way]):.2f}x, first calls {mean([r.first for r in of_way]):.2f}x"
            print(f"{way}: {len(of_way)} programs, geometric mean {ratios}; {slow} below {options.floor}")
    print(f"not run: {dict(left)}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
