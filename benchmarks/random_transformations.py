"""Random programs through eight modes beside JAX: eager, jit, grad, jit grad, jvp, vmap, jit vmap grad, vjp of jit.

`python benchmarks/random_transformations.py --jax-python PYTHON --count N --seed S` writes programs as lists of steps,
the same for a seed everywhere, runs each under both libraries (each in a process of its own, so that a crash is a
finding), and compares dtypes, shapes, weak types and numbers: equal where arithmetic is exact (bounds of values and
derivatives are followed while a program is written; zeros of either sign are equal), else within `RTOL` of the largest
element. What differs is shrunk, step by step, to the smallest program that still does, and printed.

Most of the time was JAX's, which compiles for 0.5 s what takes us 0.15 s. So JAX is asked for all modes by one
compilation, and for each by itself only where that differs from ours; and its answers are kept in ``ANSWERS``.
"""

import argparse
import gzip
import hashlib
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import shrinking
from random_steps import OPERATIONS, Meta

MODES = ("eager", "jit", "grad", "jit grad", "jvp", "vmap", "jit vmap grad", "vjp of jit")
RTOL = 2e-4  # derivatives of a dozen float32 operations, some of which cancel
EXACT = 2.0**23  # integers below are exact in float32, however they are added up
SHAPES = [(4,), (3, 4), (2, 3), (3, 3), (2, 2, 3), ()]
BATCH = 3
HERE = Path(__file__).resolve().parent
ANSWERS = HERE.parent / ".jax-answers"


class Program(NamedTuple):
    """Two float arguments and one of integers, and the steps, each an operation, the values that it reads and its
    parameters. ``exact`` says of values and of derivatives whether rounding takes part in them.
    """

    shapes: list
    seed: int
    steps: list
    exact: tuple


def write(seed: int, count: int) -> Program:
    """A program of some steps."""
    rng = np.random.default_rng(seed)
    shapes = [SHAPES[int(k)] for k in rng.integers(len(SHAPES), size=2)] + [(3,)]
    return follow(rng, Program(shapes, seed, [None] * count, (True, True)))


def follow(rng, program: Program) -> Program:
    """The program with steps that are ``None`` chosen, and exactness followed; a program without steps where one of
    those that are given does not fit.
    """
    metas = [Meta(tuple(s), "f", 4.0, 2) for s in program.shapes[:2]] + [Meta(tuple(program.shapes[2]), "i", 5.0, 0)]
    steps, gain = [], 1.0
    names = sorted(OPERATIONS)
    for step in program.steps:
        chosen = step
        for _ in range(1 if step else 8):
            if step is None:
                chosen = [names[int(rng.integers(len(names)))], None, None]
            made = OPERATIONS[chosen[0]].write(rng, metas, *chosen[1:])
            if made is not None:
                args, params, meta, local = made
                steps.append([chosen[0], args, params])
                metas.append(meta)
                gain *= local
                break
        else:
            if step is not None:
                return program._replace(steps=[])
    values = all(m.exact for m in metas)
    q = max(m.q for m in metas)
    return Program(program.shapes, program.seed, steps, (values, values and gain * 64 * 2.0**q < EXACT))


def arguments(program: Program, batch: tuple = ()) -> list[np.ndarray]:
    rng = np.random.default_rng(program.seed + 1)
    x, y = (rng.integers(-16, 17, (*batch, *s)).astype(np.float32) / 4 for s in program.shapes[:2])
    return [x, y, rng.integers(-5, 6, (*batch, *program.shapes[2])).astype(np.int32)]


def function(jax, program: Program):
    """The program as a function of its arguments to the list of all values that it makes."""

    def run(*given):
        values = list(given)
        for name, args, params in program.steps:
            values.append(OPERATIONS[name].run(jax, *[values[i] for i in args], **params))
        return values[3:]

    return run


def loss_of(jax, program: Program):
    """The sum of the last float values that the program makes."""
    jnp, f = jax.numpy, function(jax, program)

    def loss(*given):
        made = [v for v in f(*given) if jnp.issubdtype(v.dtype, jnp.floating)] or [given[0]]
        return sum(jnp.sum(v) for v in made[-3:])

    return loss


def given_to(jax, program: Program) -> tuple[list, list]:
    """The arguments of one example, and those of several: the first is the one, and ``y`` is the same for all."""
    one, several = (arguments(program, batch) for batch in ((), (BATCH,)))
    several[0][0], several[1], several[2][0] = one
    return list(map(jax.numpy.asarray, one)), list(map(jax.numpy.asarray, several))


AXES, FLOATS = (0, None, 0), (0, 1)


def results(jax, program: Program, mode: str):
    """What a mode gives."""
    f, loss = function(jax, program), loss_of(jax, program)
    args, batches = given_to(jax, program)
    if mode == "eager":
        return f(*args)
    if mode == "jit":
        return jax.jit(f)(*args)
    if mode == "grad":
        return jax.grad(loss, FLOATS)(*args)
    if mode == "jit grad":
        return jax.jit(jax.value_and_grad(loss, FLOATS))(*args)
    if mode == "jvp":
        return jax.jvp(lambda x, y: loss(x, y, args[2]), args[:2], list(map(jax.numpy.ones_like, args[:2])))
    if mode == "vmap":
        return jax.vmap(f, AXES)(*batches)
    if mode == "jit vmap grad":
        return jax.jit(jax.vmap(jax.grad(loss, FLOATS), AXES))(*batches)
    value, pull = jax.vjp(lambda x, y: jax.jit(loss)(x, y, args[2]), *args[:2])
    return value, pull(jax.numpy.ones_like(value))


def of_each_mode(jax, program: Program) -> dict:
    return {mode: of_one_mode(jax, program, mode) for mode in MODES}


def of_one_mode(jax, program: Program, mode: str) -> list:
    try:
        return described(jax, results(jax, program, mode))
    except Exception as error:  # whatever a library raises is what is compared
        return [f"{type(error).__name__}: {str(error)[:300]}"]


def described(jax, tree) -> list:
    return [[str(x.dtype), list(x.shape), bool(x.weak_type), np.asarray(x).tolist()] for x in jax.tree.leaves(tree)]


def of_all_modes(jax, program: Program) -> dict:
    """The same, up to rounding, by one compilation: one example's results are those of the first of several, and the
    derivative along ones is the sum of the gradient.
    """
    f, loss = function(jax, program), loss_of(jax, program)
    example = lambda *given: (f(*given), jax.value_and_grad(loss, FLOATS)(*given))
    try:
        found = jax.jit(jax.vmap(example, AXES))(*given_to(jax, program)[1])
    except Exception:  # of some mode
        return of_each_mode(jax, program)
    values, losses, pulls = (described(jax, tree) for tree in (found[0], *found[1]))
    one, pull, (start,) = first(values), first(pulls), first(losses)
    tangent = [*start[:3], float(sum(np.sum(x[3]) for x in pull))]
    found = one, one, pull, [start, *pull], [start, tangent], values, pulls, [start, *pull]
    return dict(zip(MODES, found, strict=True))


def first(described: list) -> list:
    """Of results of several examples, those of the first."""
    return [[dtype, shape[1:], weak, values[0]] for dtype, shape, weak, values in described]


def serve(library: str) -> None:
    """Read requests, a line of JSON each: a program, and whether each mode is run by itself; write the results."""
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    for line in sys.stdin:
        program, by_itself = json.loads(line)
        print(json.dumps((of_each_mode if by_itself else of_all_modes)(jax, Program(*program))), flush=True)


# XLA compiles in less time, and multiplies and adds apart.
QUICK = {"XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"}


class Server:
    """A process that runs programs under one library; started again when it dies."""

    def __init__(self, python: str, library: str):
        self.command = [python, __file__, "--serve", library]
        self.process = None

    def send(self, program: Program, by_itself: bool):
        if self.process is None:
            pipe, environment = subprocess.PIPE, {**os.environ, **QUICK}
            self.process = subprocess.Popen(
                self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
            )
        self.process.stdin.write(json.dumps([program, by_itself]) + "\n")
        self.process.stdin.flush()

    def receive(self) -> dict:
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        code, self.process = self.process.wait(), None
        return {mode: [f"the process ended ({code})"] for mode in MODES}


class Kept(Server):
    """A server whose answers are kept on disk, named by the program and by what runs it."""

    def __init__(self, python: str, library: str):
        super().__init__(python, library)
        texts = [(HERE / name).read_bytes() for name in ("random_steps.py", "random_transformations.py")]
        self.version = hashlib.sha256(b"".join(texts)).hexdigest()
        self.answer = None
        ANSWERS.mkdir(exist_ok=True)

    def send(self, program: Program, by_itself: bool):
        request = json.dumps([program, by_itself, self.version])
        self.answer = ANSWERS / hashlib.sha256(request.encode()).hexdigest()
        if not self.answer.exists():
            super().send(program, by_itself)

    def receive(self) -> dict:
        if self.answer.exists():
            return json.loads(gzip.decompress(self.answer.read_bytes()))
        found = super().receive()
        partial = self.answer.with_suffix(f".{os.getpid()}")
        partial.write_bytes(gzip.compress(json.dumps(found).encode()))
        partial.replace(self.answer)
        return found


def is_error(found: list) -> bool:
    return bool(found) and isinstance(found[0], str)


def agree(ours: list, theirs: list, exact: bool) -> bool:
    if is_error(ours) or is_error(theirs):
        return is_error(ours) and is_error(theirs) and ours[0].split(":")[0] == theirs[0].split(":")[0]
    return len(ours) == len(theirs) and all(map(lambda a, b: equal(a, b, exact), ours, theirs))


def equal(a: list, b: list, exact: bool) -> bool:
    if a[:3] != b[:3]:
        return False
    x, y = np.asarray(a[3], float), np.asarray(b[3], float)
    if exact or a[0] not in ("float32", "bfloat16", "float16"):
        return np.array_equal(x, y, equal_nan=True)
    scale = max(1.0, np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return np.allclose(x, y, RTOL, RTOL * scale, equal_nan=True)


def faults(ours: Server, theirs: Server, program: Program) -> dict:
    """The modes in which the libraries differ, with what each gave."""
    ours.send(program, True)
    theirs.send(program, False)
    given, expected = ours.receive(), theirs.receive()
    if not differing(program, given, expected):
        return {}
    theirs.send(program, True)
    return differing(program, given, theirs.receive())


def differing(program: Program, ours: dict, theirs: dict) -> dict:
    exact = dict.fromkeys(MODES, program.exact[1]) | dict.fromkeys(("eager", "jit", "vmap"), program.exact[0])
    return {m: (ours[m], theirs[m]) for m in MODES if not agree(ours[m], theirs[m], exact[m])}


def without(program: Program, k: int) -> Program:
    """The program without its step ``k``, and without those that need it."""
    steps = shrinking.without(program.steps, k, len(program.shapes))
    return follow(np.random.default_rng(0), program._replace(steps=steps))


def shrunk(servers, program: Program, found: dict) -> tuple[Program, dict]:
    """The smallest program found by leaving out steps that differs still."""
    return shrinking.smallest(program, found, without, lambda smaller: faults(*servers, smaller))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", help="the interpreter of an environment with JAX")
    parser.add_argument("--count", type=int, default=5000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many")
    parser.add_argument("--serve", choices=("jax", "catena"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return 0
    if not options.jax_python:
        parser.error("--jax-python is needed")
    servers = Server(sys.executable, "catena"), Kept(options.jax_python, "jax")
    start, bad, done, exact = time.monotonic(), 0, 0, np.zeros(2, int)
    for seed in range(options.seed, options.seed + options.count):
        if time.monotonic() - start > 60 * options.minutes:
            break
        program = write(seed, 2 + seed % 9)
        done += 1
        exact += program.exact
        if done % 100 == 0:
            print(f"{done} programs, {bad} differ", file=sys.stderr, flush=True)
        if found := faults(*servers, program):
            bad += 1
            smallest, found = shrunk(servers, program, found)
            print(f"program {seed}, shapes {smallest.shapes}, exact {smallest.exact}:")
            for i, step in enumerate(smallest.steps):
                print(f"  {i + 3} = {step}")
            for mode, (ours, theirs) in found.items():
                print(f"  {mode}\n    catena {str(ours)[:600]}\n    jax    {str(theirs)[:600]}")
            sys.stdout.flush()
    print(
        f"{done} programs in {time.monotonic() - start:.0f} s through {len(MODES)} modes: {bad} differ; values of "
        f"{exact[0]} and derivatives of {exact[1]} were compared exactly"
    )
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
