"""Random programs of exact operations over every dtype: compiled = eager, bit for bit.

`python benchmarks/random_exact_programs.py --count N --seed S` writes programs of integers, booleans and floats whose
arithmetic is exact: odd dimension numbers, empty and single elements, loops with several carries, branches, `vmap`
and nested `jit`. Each runs eagerly, compiled, and compiled with all arguments donated; `--vmap` adds a batch,
`--x64` the wide dtypes. Programs run in processes of their own, so that a crash is one program's.
"""

import argparse
import faulthandler
import subprocess
import sys
import traceback
import warnings

import ml_dtypes  # noqa: F401  (so that NumPy knows the names of its dtypes)
import numpy as np
from exact import control, elementwise, structured  # noqa: F401  (they register operations)
from exact.program import EXTENTS, LIMIT, Program

import catena as jax
import catena.numpy as jnp

AT_ONCE = 100  # programs in a process
SECONDS = 100  # for a program


def floats(rng, p, shape, dtype):
    """Multiples of a quarter, now and then with what is not finite."""
    x = rng.integers(-16, 17, shape) / 4
    if p.chance(0.15):
        x = np.where(rng.random(shape) < 0.2, rng.choice([np.nan, np.inf, -np.inf, -0.0], shape), x)
    return x + 1j * (rng.integers(-16, 17, shape) / 4) if jnp.issubdtype(dtype, jnp.complexfloating) else x


def integers(rng, p, shape, dtype):
    """Small ones, now and then all that there are."""
    info = jnp.iinfo(dtype)
    low, high = max(int(info.min), -(2**31)), min(int(info.max), 2**31 - 1)
    if p.chance(0.7):
        low, high = max(low, -8), min(high, 8)
    return rng.integers(low, high + 1, shape)


def argument(rng, p):
    dtype = p.dtype("biuffc")
    shape = [p.n(3000, 20000)] if p.chance(0.05) else [p.one(EXTENTS) for _ in range(p.n(0, 4))]
    while np.prod(shape, dtype=float) > LIMIT:
        shape.pop()
    if dtype == np.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    make = integers if jnp.issubdtype(dtype, jnp.integer) else floats
    return np.asarray(make(rng, p, shape, dtype)).astype(dtype)


def program(seed: int, x64: bool):
    """A function, and its arguments."""
    rng = np.random.default_rng(seed)
    choices = Program(rng, [], x64=x64)
    arguments = [argument(rng, choices) for _ in range(choices.n(1, 5))]
    steps = choices.n(1, 14)

    def function(*given):
        p = Program(np.random.default_rng(seed + 1), given, x64=x64)
        for _ in range(steps):
            p.step()
        function.log = p.log
        return tuple(p.values[len(given) :] or p.values)

    return function, arguments


def difference(got, expected) -> str:
    """What tells two arrays apart; zeros of two signs are equal, and so are NaNs."""
    a, b = np.asarray(got), np.asarray(expected)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype}{list(a.shape)} for {b.dtype}{list(b.shape)}"
    if a.dtype.kind not in "biuc":
        a, b = a.astype(float), b.astype(float)
    wrong = np.argwhere((a != b) & ~((a != a) & (b != b)))
    if not len(wrong):
        return ""
    at = tuple(map(int, wrong[0]))
    return f"{len(wrong)} of {a.size} differ, the first at {at}: {a[at]} for {b[at]}, {a.dtype}{list(a.shape)}"


def faults(results, expected, how: str) -> list[str]:
    pairs = enumerate(zip(results, expected, strict=True))
    return [f"{how}, result {i}: {text}" for i, (a, b) in pairs if (text := difference(a, b))]


def check(seed: int, x64: bool, vmap: bool) -> list[str]:
    """What is wrong with a program."""
    function, given = program(seed, x64)
    arrays = [jnp.asarray(a) for a in given]
    expected = function(*arrays)
    found = faults(jax.jit(function)(*arrays), expected, "compiled")
    donated = jax.jit(function, donate_argnums=tuple(range(len(given))))(*[jnp.array(a) for a in given])
    found += faults(donated, expected, "donated")
    if vmap:
        batches = [jnp.stack([a, a[::-1] if a.ndim else a]) for a in arrays]
        together = jax.jit(jax.vmap(function))(*batches)
        for k in range(2):
            alone = function(*[b[k] for b in batches])
            found += faults([t[k] for t in together], alone, f"example {k} of a batch")
    return [*found, " ".join(function.log)] if found else []


def run(first: int, count: int, x64: bool, vmap: bool):
    """Check programs in this process; print which begins, and what is wrong."""
    jax.config.update("jax_enable_x64", x64)
    warnings.simplefilter("ignore")
    faulthandler.enable()
    for seed in range(first, first + count):
        print(f"@{seed}", flush=True)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            found = check(seed, x64, vmap)
        except Exception:
            found = traceback.format_exc().splitlines()[-3:]
        faulthandler.cancel_dump_traceback_later()
        if found:
            print(f"program {seed}: " + "\n    ".join(found), flush=True)
    print("done", flush=True)


def apart(first: int, count: int, flags: list[str]) -> tuple[int, list[str]]:
    """Check programs in a process of their own: how many were begun, and what is wrong."""
    command = [sys.executable, __file__, "--here", "--seed", str(first), "--count", str(count), *flags]
    process = subprocess.run(command, capture_output=True, text=True)
    lines = process.stdout.splitlines()
    begun = sum(line.startswith("@") for line in lines)
    if not begun:
        sys.exit(process.stderr)
    shown = [line for line in lines if not line.startswith("@") and line != "done"]
    if lines[-1] != "done":
        ended = f"program {first + begun - 1}: it ended the process ({process.returncode})"
        shown.append(f"{ended}\n{process.stderr[-1000:]}")
    return begun, shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--x64", action="store_true", help="64-bit dtypes too")
    parser.add_argument("--vmap", action="store_true", help="run a batch of two as well")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return run(options.seed, options.count, options.x64, options.vmap)
    at, end, bad = options.seed, options.seed + options.count, 0
    flags = [f"--{f}" for f in ("x64", "vmap") if getattr(options, f)]
    while at < end:
        begun, shown = apart(at, min(AT_ONCE, end - at), flags)
        at += begun
        bad += sum(line.startswith("program ") for line in shown)
        print("".join(f"{line}\n" for line in shown), end="", flush=True)
    print(f"{options.count} programs, {bad} wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
