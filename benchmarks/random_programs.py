"""Random programs: compiled = eager, within stated ulps, and compiled gives the same bits on one thread and on two.

`make random-programs` runs 2000; `python benchmarks/random_programs.py --count N --seed S` others. A program takes
arrays of up to a million elements and applies up to a dozen operations: elementwise ones, views, reductions,
gathers, scatters, products, sorts, cumulative operations, loops and branches. It runs eagerly, by NumPy operation
by operation, and compiled as a whole. Their difference, in units of the last place of the greatest element of a
result (of 1, where that is less: operations keep values near 1, and what cancels has the errors of what it was
made of), must not exceed `ULPS` for each operation of the program: sums are added up in another order, and every
operation passes on the errors of those before it.
"""

import argparse
import sys
import time

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.native import workers

ULPS = 16  # for each operation
LARGEST = 1 << 20  # elements


def elementwise(f):
    return lambda rng, x, y: f(x)


def along(f):
    """An operation along a random axis."""
    return lambda rng, x, y: f(x, int(rng.integers(x.ndim)))


def softmax(x, axis):
    e = jnp.exp(x - jnp.max(x, axis, keepdims=True))
    return e / jnp.mean(e, axis, keepdims=True) - 1


def normalise(x, axis):
    centred = x - jnp.mean(x, axis, keepdims=True)
    return centred * lax.rsqrt(jnp.mean(centred**2, axis, keepdims=True) + 1.0)


def transpose(rng, x, y):
    return jnp.transpose(x, rng.permutation(x.ndim).tolist())


def window(rng, x, y):
    bounds = [sorted(int(k) for k in rng.integers(0, n + 1, 2)) for n in x.shape]
    return x[tuple(slice(a, max(b, a + 1)) if a < n else slice(None) for (a, b), n in zip(bounds, x.shape))]


def strided(rng, x, y):
    return x[tuple(slice(None, None, int(rng.choice([-1, 1, 2, 3]))) for _ in x.shape)]


def pad(rng, x, y):
    widths = [tuple(int(k) for k in rng.integers(0, 4, 2)) for _ in x.shape]
    return jnp.pad(x, widths, constant_values=0.5)


def reshape(rng, x, y):
    n = x.size
    first = int(rng.choice([d for d in range(1, 65) if n % d == 0]))
    return jnp.reshape(x, (first, n // first))


def gather(rng, x, y):
    return x[jnp.asarray(rng.integers(-x.shape[0], x.shape[0], int(rng.integers(1, 50))))]


def scatter(rng, x, y):
    at = jnp.asarray(rng.integers(0, x.shape[0], int(rng.integers(1, 50))))
    return x.at[at].set(0.25) if rng.random() < 0.5 else x.at[at].add(0.5)


def update(rng, x, y):
    part = tuple(slice(0, max(1, n // 2)) for n in x.shape)
    return x.at[part].multiply(-0.5)


def product(rng, x, y):
    x = jnp.reshape(x, (x.shape[0], -1)) if x.ndim > 1 else x[:, None]
    return jnp.tanh(x.T @ x[:, : min(64, x.shape[1])] / x.size**0.5) if x.shape[1] <= 2048 else x


def scan(rng, x, y):
    if x.shape[0] > 300:
        x = x[:300]
    return lax.scan(lambda c, row: (0.5 * c + row, jnp.tanh(c) - row), jnp.zeros_like(x[0]), x)[1]


def loop(rng, x, y):
    n = int(rng.integers(1, 9))
    return lax.fori_loop(0, n, lambda k, v: 0.5 * v + jnp.sin(v * (k + 1)) / (k + 1), x)


def branch(rng, x, y):
    return lax.cond(int(rng.integers(2)), lambda v: jnp.cos(v), lambda v: v * 0.5, x)


def together(f):
    return lambda rng, x, y: f(x, y) if x.shape == y.shape else f(x, jnp.mean(y))


OPERATIONS = {
    "sin": elementwise(jnp.sin),
    "tanh": elementwise(jnp.tanh),
    "abs": elementwise(jnp.abs),
    "exp": elementwise(lambda x: jnp.exp(-x * x)),
    "log": elementwise(lambda x: jnp.log(x * x + 2)),
    "sqrt": elementwise(lambda x: jnp.sqrt(jnp.abs(x) + 1)),
    "where": elementwise(lambda x: jnp.where(x > 0, x, 0.1 * x)),
    "add": together(lambda x, y: (x + y) / 2),
    "mul": together(lambda x, y: jnp.tanh(x) * y),
    "div": together(lambda x, y: x / (y * y + 1.5)),
    "max": together(jnp.maximum),
    "mean": along(lambda x, axis: jnp.mean(x, axis, keepdims=True)),
    "max of": along(lambda x, axis: jnp.max(x, axis, keepdims=True)),
    "centre": along(lambda x, axis: x - jnp.mean(x, axis, keepdims=True)),
    "softmax": along(softmax),
    "normalise": along(normalise),
    "cumsum": along(lambda x, axis: jnp.cumsum(x, axis) / x.shape[axis]),
    "cummax": along(lax.cummax),
    "sort": along(jnp.sort),
    "flip": along(jnp.flip),
    "roll": along(lambda x, axis: jnp.roll(x, 3, axis)),
    "double": along(lambda x, axis: jnp.concatenate([x, -x], axis)),
    **{f.__name__: f for f in (transpose, window, strided, pad, reshape, gather, scatter, update, product)},
    **{f.__name__: f for f in (scan, loop, branch)},
}


def applied(names, seed: int, largest: int, x, y) -> list:
    """Two arrays, and what operations make of them in turn; results of more than ``largest`` elements, of none or
    without axes are dropped.
    """
    choose = np.random.default_rng(seed + 1)  # the same choices in every run
    seen = [x, y]
    for name in names:
        new = OPERATIONS[name](choose, seen[-1], seen[int(choose.integers(len(seen)))])
        if 0 < new.size <= largest and new.ndim:
            seen.append(new)
    return seen


def program(seed: int):
    """A function of two arrays, its arguments, and the names of its operations."""
    rng = np.random.default_rng(seed)
    names = [str(n) for n in rng.choice(sorted(OPERATIONS), int(rng.integers(1, 13)))]
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, [0, 300_000, 700, 70][rank], rank))
    arguments = [jnp.asarray(rng.normal(size=shape).astype(np.float32)) for _ in range(2)]

    def function(x, y):
        seen = applied(names, seed, LARGEST, x, y)
        return seen[-1], [jnp.mean(v) for v in seen[2:]]

    return function, arguments, names


def difference(got, expected) -> float:
    """In ulps of the greatest element."""
    got, expected = (np.asarray(x, np.float64) for x in (got, expected))
    if got.shape != expected.shape or not np.array_equal(np.isfinite(got), np.isfinite(expected)):
        return np.inf
    scale = np.max(np.abs(expected), initial=1.0)
    return float(np.max(np.abs(got - expected), initial=0.0) / (scale * 2.0**-23))


def check(seed: int) -> tuple[float, str]:
    """The greatest difference of one program in ulps for each operation, and what is wrong with it."""
    function, arguments, names = program(seed)
    leaves = jax.tree.leaves
    compiled = jax.jit(function)
    on_threads = {}
    for threads in (2, 1):
        workers.pool().resize(threads)
        on_threads[threads] = [np.asarray(x) for x in leaves(compiled(*arguments))]
    worst = max(map(difference, on_threads[2], leaves(function(*arguments)))) / len(names)
    if any(a.tobytes() != b.tobytes() for a, b in zip(on_threads[1], on_threads[2], strict=True)):
        return worst, "one thread and two give different bits"
    return worst, f"{worst:.0f} ulps for each operation" if worst > ULPS else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    options = parser.parse_args()
    start, bad, worst = time.perf_counter(), 0, 0.0
    for seed in range(options.seed, options.seed + options.count):
        ulps, fault = check(seed)
        worst = max(worst, ulps)
        if fault:
            bad += 1
            print(f"program {seed} ({', '.join(program(seed)[2])}): {fault}", flush=True)
    print(
        f"{options.count} programs in {time.perf_counter() - start:.0f} s: {bad} wrong; compiled and eager differ by "
        f"at most {worst:.2g} ulps for each operation (bound: {ULPS}), and threads change no bit of the others"
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
