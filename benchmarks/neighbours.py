"""Whether the bits of a reduction depend on anything but the reduction: `make neighbours`.

Each reduction is compiled alone, and then in many surroundings that leave the numbers that it folds as they are: behind
elementwise operations whose values are exact, behind broadcasts and selections, views and joins, beside other results,
in a loop, and under `vmap` of several members. All must give the bits that it has alone.

    python benchmarks/neighbours.py --only "sum of rows"
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np  # noqa: E402

import catena  # noqa: E402
import catena.numpy as jnp  # noqa: E402
from catena import lax  # noqa: E402


class Reduction(NamedTuple):
    """A function of one array, the shapes of arrays that it is tried on, and their dtypes."""

    function: Callable
    shapes: tuple
    dtypes: tuple = ("float32",)


ROWS = (
    (1, 7),
    (5, 12),
    (300, 12),
    (3, 40),
    (3, 63),
    (200, 64),
    (4, 100),
    (300, 100),
    (7, 1000),
    (2, 5000),
    (1, 70_001),
)
LINES = ((3,), (12,), (17,), (63,), (100,), (1000,), (5000,), (70_000,), (300_001,), (1_200_000,))
PLANES = ((3, 3), (70, 3), (40, 17), (30, 64), (50, 100), (300, 301), (3, 5000), (900, 1100), (40_000, 3))
COLUMNS = ((7, 1), (12, 40), (40, 2), (100, 3), (5000, 2), (70, 33), (1000, 100), (3000, 4), (2000, 700), (70_000, 5))
FLOATS = ("float32", "float64", "bfloat16")


def _last(fun):
    return lambda x: fun(x, axis=-1)


def _first(fun):
    return lambda x: fun(x, axis=0)


REDUCTIONS = {
    "sum of all": Reduction(jnp.sum, LINES + PLANES, FLOATS),
    "sum of rows": Reduction(_last(jnp.sum), ROWS, FLOATS),
    "sum of columns": Reduction(_first(jnp.sum), COLUMNS, FLOATS),
    "product of rows": Reduction(_last(jnp.prod), ROWS),
    "product of columns": Reduction(_first(jnp.prod), COLUMNS),
    "sum of middle": Reduction(lambda x: jnp.sum(x, axis=1), ((3, 5, 7), (4, 40, 30), (3, 500, 4), (2, 100, 130))),
    "sum of outer": Reduction(lambda x: jnp.sum(x, axis=(0, 2)), ((3, 5, 7), (4, 40, 30), (30, 50, 64), (9, 3, 1000))),
    "sum of two": Reduction(lambda x: jnp.sum(x, axis=(1, 2)), ((3, 5, 7), (4, 40, 30), (30, 50, 64), (9, 3, 1000))),
    "sum of leading": Reduction(
        lambda x: jnp.sum(x, axis=(0, 1)), ((3, 5, 7), (4, 40, 30), (30, 50, 64), (100, 80, 6))
    ),
    "mean of rows": Reduction(_last(jnp.mean), ROWS),
    "variance of rows": Reduction(_last(jnp.var), ROWS),
    "variance of columns": Reduction(_first(jnp.var), COLUMNS),
    "logsumexp of rows": Reduction(_last(catena.nn.logsumexp), ROWS),
    "softmax": Reduction(catena.nn.softmax, ROWS),
    "norm": Reduction(jnp.linalg.norm, LINES),
    "square": Reduction(lambda x: jnp.vdot(x, x), LINES),
    "argmax of rows": Reduction(_last(jnp.argmax), ROWS, FLOATS),
    "argmin of columns": Reduction(_first(jnp.argmin), COLUMNS, FLOATS),
    "cumulative sum of rows": Reduction(lambda x: jnp.cumsum(x, axis=-1), ROWS, FLOATS),
    "cumulative sum of columns": Reduction(lambda x: jnp.cumsum(x, axis=0), COLUMNS, FLOATS),
    "gram": Reduction(lambda x: x.T @ x, ((40, 2), (100, 3), (5000, 2), (3000, 4), (70, 33))),
    "product with itself": Reduction(lambda x: x @ x.T, ((2, 40), (3, 100), (2, 5000), (33, 70))),
    "complex sum": Reduction(lambda x: jnp.sum(lax.complex(x, -x), axis=-1), ROWS),
}


class Case(NamedTuple):
    """A surrounding of a reduction: a program of some arrays, the first of which may be other than what is reduced; and
    which of its results are the reduction's, None where it is the only one.
    """

    program: Callable
    arrays: tuple


def _scaled(count: int):
    """So many multiplications by powers of two, which are arguments."""

    def program(f, x, up, down):
        for k in range(count):
            x = x * (down if k % 2 else up)
        return f(x * down if count % 2 else x)

    return program


def _chosen(count: int):
    """So many selections that all choose the same."""

    def program(f, x, yes, other):
        for k in range(count):
            x = jnp.where(yes, x, other + x * k)
        return f(x)

    return program


def surroundings(f, x: np.ndarray) -> Iterator[tuple[str, Case]]:
    """What a reduction is compared in."""
    two, half, t = (np.asarray(k, x.dtype) for k in (2, 0.5, 1))
    for count in (1, 2, 3, 5, 8, 13, 20):
        yield f"{count} products", Case(lambda *xs, c=count: _scaled(c)(f, *xs), (x, two, half))
    for count in (1, 4):
        chosen = lambda *xs, c=count: _chosen(c)(f, *xs)  # noqa: E731
        yield f"{count} choices", Case(chosen, (x, np.ones(x.shape, bool), np.ones_like(x)))
        yield f"{count} choices by number", Case(chosen, (x, np.asarray(True), np.ones_like(x)))
    last, first = np.ones(x.shape[-1], x.dtype), np.ones((x.shape[0],) + (1,) * (x.ndim - 1), x.dtype)
    yield "spread row", Case(lambda x, w: f(x * w), (x, last))
    yield "spread column", Case(lambda x, w: f(x * w), (x, first))
    yield "both spread", Case(lambda x, w, u: f(x * w * u), (x, last, first))
    yield (
        "wide neighbour",
        Case(lambda x, w: f((x.astype("float64") * w).astype(x.dtype)), (x, np.ones_like(x, "float64"))),
    )
    yield "narrow neighbour", Case(lambda x, w: f(x * w.astype(x.dtype)), (x, np.ones(x.shape, np.int8)))
    yield "transposed neighbour", Case(lambda x, w: f(x * w.T), (x, np.ones_like(x.T)))
    yield "reversed", Case(lambda x: f(x[::-1]), (x[::-1].copy(),))
    yield "reversed within", Case(lambda x: f(x[..., ::-1]), (x[..., ::-1].copy(),))
    yield "part", Case(lambda x: f(x[tuple(slice(1, -2) for _ in x.shape)]), (np.pad(x, [(1, 2)] * x.ndim),))
    yield "every second", Case(lambda x: f(x[..., ::2]), (np.repeat(x, 2, -1),))
    yield "gathered rows", Case(lambda x, i: f(x[i]), (x[::-1].copy(), np.arange(len(x))[::-1].copy()))
    cut = len(x) // 3
    yield "joined", Case(lambda x, y: f(jnp.concatenate([x, y])), (x[:cut], x[cut:]))
    cut = x.shape[-1] // 3
    yield "joined within", Case(lambda x, y: f(jnp.concatenate([x, y], -1)), (x[..., :cut], x[..., cut:]))
    yield "reshaped", Case(lambda x, one: f((x * one).reshape(x.shape[::-1]).reshape(x.shape)), (x, t))
    yield "flat", Case(lambda x, one: f((x * one).reshape(shape)), (x.reshape(-1), t)) if (shape := x.shape) else None
    yield "beside maximum", Case(lambda x: (f(x), jnp.max(x), jnp.max(x, 0), jnp.max(x, -1)), (x,))
    yield "beside sums", Case(lambda x: (f(x), jnp.sum(x * x), jnp.sum(x, 0), jnp.sum(jnp.sin(x), -1)), (x,))
    yield "beside itself", Case(lambda x, a: (f(x * a), x * a), (x * half, two))
    yield "beside functions", Case(lambda x, a: (f(x * a), jnp.exp(x * a), jnp.tanh(x)), (x * half, two))
    yield (
        "beside wide sums",
        Case(lambda x: (f(x), jnp.sum(x.astype("float64"), -1), jnp.sum(x.astype("float64"))), (x,)),
    )
    yield (
        "of what is needed again",
        Case(lambda x, a: (lambda y: (f(y), y - jnp.max(y, -1, keepdims=True)))(x * a), (x * half, two)),
    )
    yield "in a loop", Case(lambda x, a: lax.fori_loop(0, 2, lambda i, c: (f(c[1] * a), c[1]), (f(x), x))[0], (x, t))
    yield "in a scan", Case(lambda xs: lax.map(f, xs), (np.stack([x, x]),))
    yield "after a constant", Case(lambda x: (f(x), f(jnp.ones(x.shape, x.dtype))), (x,))
    for count in (1, 2, 7, 100):
        if count * x.size < 3_000_000:
            yield f"{count} members", Case(lambda xs: catena.vmap(f)(xs), (np.stack([x] * count),))
            yield (
                f"{count} members in the middle",
                Case(lambda xs: catena.vmap(f, in_axes=1)(xs), (np.stack([x] * count, 1),)) if x.ndim > 1 else None,
            )


def _bits(x) -> bytes:
    return np.ascontiguousarray(np.asarray(x)).tobytes()


def differences(label: str, f, x: np.ndarray, some=lambda name: True) -> list[str]:
    """The surroundings in which a reduction has other bits than alone."""
    alone = _bits(catena.jit(f)(x))
    found = []
    for name, case in filter(lambda row: row[1] is not None and some(row[0]), surroundings(f, x)):
        out = catena.jit(case.program)(*case.arrays)
        result = np.asarray(out[0] if isinstance(out, (tuple, list)) else out)
        same = [_bits(result)] if "member" not in name and name != "in a scan" else [_bits(r) for r in result]
        if any(bits != alone for bits in same):
            found.append(f"{label}: {name}")
    return found


def numbers(shape, dtype, seed: int = 0) -> np.ndarray:
    """Numbers of many sizes, whose sum tells its order."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 1.5, shape) * np.exp2(rng.integers(-3, 4, shape))
    return (x * rng.choice([-1.0, 1.0], shape)).astype(np.float32).astype(dtype)


def cases(only: str = "") -> Iterator[tuple[str, Callable, np.ndarray]]:
    for name, r in REDUCTIONS.items():
        for dtype, shape in itertools.product(r.dtypes, r.shapes):
            label = f"{name}, {dtype}{list(shape)}"
            if only in label:
                x = numbers(shape, np.dtype(dtype))
                if "product of" in name:
                    x = np.exp2(x / 16).astype(x.dtype)
                yield label, r.function, x


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the labels")
    parser.add_argument("--within", default="", help="a part of the names of surroundings")
    options = parser.parse_args()
    start, count, found = time.time(), 0, []
    with catena.enable_x64(True):
        for label, f, x in cases(options.only):
            more = differences(label, f, x, lambda name: options.within in name)
            count, found = count + 1, found + more
            for line in more:
                print(line, flush=True)
    print(f"{count} reductions, {len(found)} differences, {time.time() - start:.0f} s")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
