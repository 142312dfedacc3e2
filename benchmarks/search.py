"""A search for programs that run slower than in JAX 0.10.2, as `random_transformations.py` searches for wrong ones.

`make bench-search MINUTES=30` writes random programs of many elements: operations, models assembled from blocks,
layouts, sizes and dtypes, compiled as they are, differentiated, in a loop, under `vmap`, or evaluated eagerly. Each
is compiled in two processes that live long, at the same time, and timed beside JAX, in turns, by the least of short
runs: so a machine that does something else still gives a ratio, and ratios near 1 are measured again
(``BENCH_CLOCK=processor``, with both held to one core, counts the processor's time alone). What is slower is shrunk,
step by step, to the smallest program that still is, printed worst first, and kept in ``search_corpus.json``, which the
next search times first (`CORPUS=1`: only those). First calls are compared as well: those that were slower once more,
in new processes, one after the other.
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
import search_families  # noqa: F401  # whose operations are among the others
import search_fields  # noqa: F401  # likewise
import search_libraries  # noqa: F401  # likewise
import shrinking
from search_steps import OPERATIONS, meta
from side_by_side import OURS, THEIRS, WARMING, Pair, alternate, best, clock, show, time_calls

CORPUS = Path(__file__).with_name("search_corpus.json")
WAYS = ("jit", "grad", "loop", "vmap", "eager")  # how a program is run
OFTEN = (0.45, 0.25, 0.15, 0.1, 0.05)
STEPS_OFTEN = (0.3, 0.25, 0.15, 0.1, 0.1, 0.05, 0.05)  # 1 to 7 of them: what is slow hides in long programs
DTYPES = {"float32": 0.72, "float64": 0.1, "bfloat16": 0.07, "float16": 0.03}
DTYPES |= {"int32": 0.04, "uint8": 0.02, "bool": 0.02}  # of the first argument
SHAPES = (
    [(n,) for n in (10, 100, 10_000, 300_000, 2_000_000, 10_000_000)]
    + [(2, 100_000), (100_000, 2), (50_000, 7), (7, 50_000), (1000, 1000), (128, 784), (32, 64), (4096, 100), (300, 3)]
    + [(1, 512), (16, 16), (1_000_000, 4), (2048, 512), (10_000, 33)]
    + [(8, 64, 64), (1000, 3, 3), (2000, 8, 8), (16, 128, 48), (3, 300, 200), (64, 5, 100), (4, 256, 64)]
    + [(8, 32, 32, 3), (4, 28, 28, 16), (2, 8, 64, 64), (1, 64, 64, 3), (1, 28, 28, 1)]
)
MOST = 12_000_000  # elements of a value
LOOPS, MEMBERS = 20, 4
MOST_REPEATED = 500_000  # elements of what is computed so often
PATIENCE = 25  # seconds of one answer
SHORT, LONG = 0.02, 0.1  # seconds of a run
CLEAR, NEAR = 1.4, 1.2  # ratios that are believed after two turns, and after five
TURNS = ((2, SHORT, CLEAR), (3, SHORT, NEAR), (5, LONG, 0.0))
AGAIN = ((4, LONG, NEAR), (6, LONG, 0.0))
WORST = 10  # first calls that are measured again


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
    way, dtype = str(rng.choice(WAYS, p=OFTEN)), str(rng.choice(list(DTYPES), p=list(DTYPES.values())))
    steps = 1 + int(rng.choice(len(STEPS_OFTEN), p=STEPS_OFTEN))
    if way in ("loop", "vmap") and math.prod(x) > MOST_REPEATED:
        way = "jit"
    way = "jit" if dtype != floats(dtype) and way != "eager" else way
    return follow(Program([x, y, (count,)], dtype, seed, [None] * steps, way))


def floats(dtype: str) -> str:
    """The dtype of the second argument and of the weights."""
    return dtype if "float" in dtype else "float32"


def precision(jax, program: Program) -> None:
    jax.config.update("jax_enable_x64", program.dtype == "float64")


def follow(program: Program) -> Program:
    """The program with steps that are ``None`` chosen; one without steps where those that are given do not fit."""
    jax, rng = importlib.import_module(OURS), np.random.default_rng(program.seed)
    precision(jax, program)
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
    weights = [jax.ShapeDtypeStruct(tuple(s), floats(program.dtype)) for s in params.get("weights", ())]
    rest = {k: v for k, v in params.items() if k != "weights"}
    run = lambda given, ws: OPERATIONS[name].run(jax, *given, **rest, **({"weights": ws} if ws else {}))
    try:
        made = jax.eval_shape(run, [values[i] for i in args], weights)
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return None
    return made if 0 < made.size <= MOST else None


def abstract(jax, program: Program) -> list:
    dtypes = (program.dtype, floats(program.dtype), "int32")
    return [jax.ShapeDtypeStruct(tuple(s), d) for s, d in zip(program.shapes, dtypes, strict=True)]


def without(program: Program, k: int) -> Program:
    return follow(program._replace(steps=shrinking.without(program.steps, k, len(program.shapes))))


# ------------------------------------------------------------------------------ running them


def arguments(jax, program: Program) -> tuple:
    """The arguments, and the weights of each step."""
    rng, make, dtype = np.random.default_rng(program.seed), jax.numpy.asarray, floats(program.dtype)
    normal = lambda shape, scale=1.0: make(scale * rng.standard_normal(shape, np.float32), dtype)
    x, y = (normal(s) for s in program.shapes[:2])
    if program.dtype != dtype:
        x = make(rng.integers(0, 2 if program.dtype == "bool" else 100, program.shapes[0]), program.dtype)
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
    precision(jax, program)
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
            made = [v.astype("float32") for v in f(*carry, *rest)]  # without infinities, which would stay
            moved = sum(jax.numpy.mean(jax.numpy.where(jax.numpy.abs(v) < 1e3, v, 0)) for v in made) * 1e-3
            return tuple((z + moved).astype(z.dtype) for z in carry)

        return jax.lax.fori_loop(0, LOOPS, step, (x, y))

    return run


def mapped(jax, f):
    """The program for several first arguments."""
    return lambda x, *rest: jax.vmap(lambda x: f(x, *rest))(jax.numpy.stack([x * k for k in range(1, MEMBERS + 1)]))


WAY = {"jit": lambda jax, f: f, "grad": differentiated, "loop": looped, "vmap": mapped}


def serve(library: str) -> None:
    """Answer requests on stdin, a line of JSON each: a program, and for how long it runs; the last one is kept.

    For 0 seconds the answer is how long its first call took.
    """
    jax = importlib.import_module(library)
    for name in ("numpy", "nn", "ops", "image", "scipy.special", "scipy.stats", "scipy.signal"):
        importlib.import_module(f"{library}.{name}")
    prepare = functools.lru_cache(1)(lambda text: first(jax, call(jax, Program(*json.loads(text)))))
    prepare(json.dumps(Program([[8], [8], [1]], "float32", 0, [["add", [0, 1], {}]], "jit")))  # loads what compiles
    for line in sys.stdin:
        request = json.loads(line)
        signal.alarm(PATIENCE)  # ends this process
        try:
            made, compiled = prepare(json.dumps(request["program"]))
            seconds = request["seconds"]
            answer = {"seconds": time_calls(jax, made, seconds, 1)} if seconds else {"first": compiled}
        except Exception as error:  # what a library does not take is no question of speed
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        signal.alarm(0)
        print(json.dumps(answer), flush=True)


def first(jax, made) -> tuple:
    """The call, run until nothing more is compiled, and how long it took the first time."""
    start, since = clock(), time.perf_counter()
    jax.block_until_ready(made())
    seconds, waited = clock() - start, time.perf_counter() - since
    for _ in range(WARMING):
        if time.perf_counter() - since < waited + LONG:
            jax.block_until_ready(made())
    return made, seconds


# ------------------------------------------------------------------------------ the search


class Row(NamedTuple):
    program: Program
    ours: float
    theirs: float
    first: float  # JAX's first call by ours

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def measure(pair: Pair, program: Program, floor: float, turns=TURNS) -> Row:
    """Both libraries in turns; again, and longer, where the ratio is near the floor or below."""
    started = valid(pair.ask_all(program=program, seconds=0))
    kept: list[list] = [[], []]
    for rounds, seconds, enough in turns:
        asks = [functools.partial(ask, pair, each, program, seconds) for each in (OURS, THEIRS)]
        for answers, more in zip(kept, alternate(rounds, *asks), strict=True):
            answers += more
        row = Row(program, best(kept[0]), best(kept[1]), started[THEIRS]["first"] / started[OURS]["first"])
        if row.ratio > floor * enough:
            break
    return row


def ask(pair: Pair, library: str, program: Program, seconds: float) -> dict:
    return valid({library: pair.ask(library, program=program, seconds=seconds)})[library]


def valid(answers: dict) -> dict:
    for library, answer in answers.items():
        if "error" in answer:
            raise RuntimeError(f"{library}: {answer['error']}")
    return answers


def slower(pair: Pair, program: Program, floor: float) -> Row | None:
    try:
        row = measure(pair, program, floor)
    except RuntimeError:
        return None
    return row if row.ratio < floor else None


def first_calls(pythons: dict, program: Program) -> float:
    """JAX's first call by ours, in new processes that have nothing beside them."""
    pair = Pair(pythons, __file__)
    try:
        theirs, ours = (ask(pair, each, program, 0)["first"] for each in (THEIRS, OURS))
    finally:
        pair.close()
    return theirs / ours


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


class Search:
    """Programs that are timed one after the other: all rows, those found slower and shrunk, and what was not run."""

    def __init__(self, pair: Pair, options):
        self.pair, self.options = pair, options
        self.rows: list[Row] = []
        self.found: list[Row] = []
        self.doubted = 0  # programs that were slower at first, and not when they were measured again
        self.left: Counter = Counter()
        self.in_a_row = self.most_in_a_row = 0  # new programs, none of which was slower

    def run(self) -> None:
        end, options = time.monotonic() + 60 * self.options.minutes, self.options
        known = [] if options.new else kept_programs()
        seeds = [] if options.corpus else range(options.seed, options.seed + options.count)
        for program, seed in [*((p, None) for p in known), *((None, seed) for seed in seeds)]:
            if time.monotonic() > end:
                break
            self.take(program or write(seed), program is None)

    def take(self, program: Program, new: bool) -> None:
        if not program.steps:
            self.left["no step fits"] += 1
            return
        try:
            row = self.measured(program)
        except RuntimeError as error:
            self.left[":".join(str(error).split(":")[:2])] += 1
            if self.options.verbose:
                print(f"not run: {error}\n  {program}", file=sys.stderr, flush=True)
            return
        self.rows.append(row)
        if row.ratio < self.options.floor:
            row = shrunk(self.pair, row, self.options.floor) if new else row
            self.found.append(row)
            print(f"{described(row)}  [seed {program.seed}]", flush=True)
        self.in_a_row = 0 if row.ratio < self.options.floor else self.in_a_row + new
        self.most_in_a_row = max(self.most_in_a_row, self.in_a_row)
        if self.options.verbose and len(self.rows) % 25 == 0:
            print(self.so_far(), file=sys.stderr, flush=True)

    def measured(self, program: Program) -> Row:
        """What is slower is measured again, by itself."""
        row = measure(self.pair, program, self.options.floor)
        if row.ratio >= self.options.floor:
            return row
        again = measure(self.pair, program, self.options.floor, AGAIN)
        self.doubted += again.ratio >= self.options.floor
        return again

    def so_far(self) -> str:
        slow = f"{len(self.found)} below {self.options.floor}, {self.doubted} more were at first"
        return f"{len(self.rows)} programs, {slow}; in a row none below: {self.most_in_a_row} at most"


def mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / max(len(values), 1))


def report(search: Search, pythons: dict) -> None:
    floor = search.options.floor
    print("\nworst first:", *(described(r) for r in sorted(search.found, key=lambda r: r.ratio)[:20]), sep="\n")
    late = sorted((r for r in search.rows if r.first < floor), key=lambda r: r.first)[:WORST]
    print("\nfirst calls, measured again:")
    for row in late:
        try:
            print(f"{row.first:.2f}, {first_calls(pythons, row.program):.2f}  {described(row)}", flush=True)
        except RuntimeError as error:
            print(f"{row.first:.2f}, {error}  {described(row)}")
    for way in WAYS:
        of_way = [r for r in search.rows if r.program.way == way]
        if of_way:
            slow = sum(r.ratio < floor for r in of_way), sum(r.first < floor for r in of_way)
            ratios = f"{mean([r.ratio for r in of_way]):.2f}x, first calls {mean([r.first for r in of_way]):.2f}x"
            print(f"{way}: {len(of_way)} programs, geometric mean {ratios}; below {floor}: {slow[0]}, {slow[1]}")
    print(f"{search.so_far()}; not run: {dict(search.left)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=".venv-jax/bin/python", help="a Python that has JAX")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to search")
    parser.add_argument("--count", type=int, default=1_000_000, help="how many programs at most")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--floor", type=float, default=1.0, help="what ratio is slow")
    parser.add_argument("--corpus", action="store_true", help="only what earlier searches found")
    parser.add_argument("--new", action="store_true", help="only what no earlier search found")
    parser.add_argument("--keep", action="store_true", help="keep what is found in the corpus")
    parser.add_argument("--verbose", action="store_true", help="say what does not run")
    parser.add_argument("--serve", choices=(OURS, THEIRS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    os.environ |= {"CATENA_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
    pythons = {OURS: sys.executable, THEIRS: options.jax_python}
    pair = Pair(pythons, __file__)
    search = Search(pair, options)
    try:
        search.run()
    finally:
        pair.close()
    if options.keep:
        keep(search.found)
    report(search, pythons)
    return bool(search.found)


if __name__ == "__main__":
    sys.exit(main())
