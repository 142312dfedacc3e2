"""What users call at many lengths: results had from plans of other lengths, beside what is compiled by itself.

`make usual-lengths` calls each of a table of jitted functions (products and their batches, convolutions, attention,
losses, loops, indexing ...) at random lengths: small and large ones, powers of two, and some beside each other. Results
must have the bits of the same function compiled without `native.lengths`, as in `random_lengths.py`, whose programs are
other ones: those of the search, few of which are batches.
"""

import argparse
import importlib
import logging
import os
import random
import sys
import zlib
from collections.abc import Callable

import numpy as np
from random_lengths import is_as_alone


def programs(jax) -> dict[str, tuple[Callable, Callable]]:
    """Name -> a function, and the shapes of its arguments at a length."""
    jnp, lax, nn = jax.numpy, jax.lax, jax.nn
    half, multiply = jnp.bfloat16, lambda x, y: x @ y
    images = ("NHWC", "HWIO", "NHWC")

    def attention(x):
        q = x.reshape(-1, 4, 8)
        return jnp.einsum("hij,jhd->ihd", nn.softmax(jnp.einsum("ihd,jhd->hij", q, q) / 3), q)

    def convolve(stride, padding, numbers=None):
        return lambda x, w: lax.conv_general_dilated(x, w, stride, padding, dimension_numbers=numbers)

    def recurrent(x, w):
        return lax.scan(lambda h, v: (jnp.tanh(v @ w + h @ w), h), jnp.zeros((x.shape[1], 16)), x)

    def cross_entropy(x):
        labels = jnp.arange(x.shape[0]) % x.shape[1]
        return -jnp.mean(nn.log_softmax(x)[jnp.arange(x.shape[0]), labels])

    def rotated(x):
        angles = jnp.arange(x.shape[0])[:, None] * 0.1
        return jnp.concatenate([x[:, ::2] * jnp.cos(angles) - x[:, 1::2], x[:, 1::2]], 1)

    def solved(x):
        return jnp.linalg.solve(x @ x.transpose(0, 2, 1) + 9 * jnp.eye(4), x[:, :, :1])

    def iterated(x):
        return lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, jnp.sin(s[1]) + s[1].mean()), (0, x))[1]

    def integers(x, y):
        as_bytes = lambda z: (z * 40).astype(jnp.int8)
        return lax.dot(as_bytes(x), as_bytes(y), preferred_element_type=jnp.int32)

    def experts(x, w):
        return jnp.einsum("ne,nd,edf->nf", nn.softmax(x[:, :4]), x, w)

    def spread_rows(x):
        return jnp.zeros((x.shape[0], 3)).at[(jnp.arange(x.shape[0]) * 7) % x.shape[0]].add(x)

    def reflected(x):
        return jnp.pad(x, ((1, 2), (0, 3)), mode="reflect")

    squares = lambda f: lambda *xs: jnp.sum(f(*xs) ** 2)
    each_gradient = jax.vmap(jax.grad(squares(lambda w, x: jnp.tanh(x @ w))), (None, 0))
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    likelihood = lambda x: jnp.sum(jax.scipy.special.gammaln(1 + jnp.abs(x)))
    normalise = lambda axis: lambda x: (x - x.mean(axis, keepdims=True)) / jnp.sqrt(x.var(axis, keepdims=True) + 1e-5)
    nearest = lambda x, y: ((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T).argmin(1)
    return {
        "rows of a batch of products": (multiply, lambda n: [(16, n, 32), (16, 32, 32)]),
        "more of them": (multiply, lambda n: [(64, n, 32), (64, 32, 32)]),
        "members of a batch": (multiply, lambda n: [(n, 16, 16), (n, 16, 16)]),
        "terms of a batch": (multiply, lambda n: [(12, 24, n), (12, n, 24)]),
        "columns of a batch": (multiply, lambda n: [(12, 24, 24), (12, 24, n)]),
        "rows by rows": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), lambda n: [(8, n, 16), (8, n, 16)]),
        "columns by columns": (lambda x, y: jnp.einsum("bji,bjk->bik", x, y), lambda n: [(8, n, 16), (8, n, 24)]),
        "a layer of a batch": (lambda x, y, b: jnp.tanh(x @ y + b), lambda n: [(6, n, 48), (6, 48, 40), (40,)]),
        "heads": (attention, lambda n: [(n, 32)]),
        "gradient of heads": (jax.grad(squares(attention)), lambda n: [(n, 32)]),
        "vector by matrix": (multiply, lambda n: [(n,), (n, 70)]),
        "matrix by vector": (multiply, lambda n: [(70, n), (n,)]),
        "few rows": (multiply, lambda n: [(3, n), (n, 17)]),
        "few columns": (multiply, lambda n: [(n, 40), (40, 3)]),
        "inner products of columns": (lambda x: x.T @ x, lambda n: [(n, 16)]),
        "two layers": (lambda x, w: nn.relu(x @ w) @ w.T, lambda n: [(n, 64), (64, 128)]),
        "signals": (convolve((1,), "SAME"), lambda n: [(4, 8, n), (8, 8, 3)]),
        "signals, every other place": (convolve((2,), "VALID"), lambda n: [(4, 8, n + 4), (8, 8, 3)]),
        "gradient of filters": (
            jax.grad(squares(convolve((1,), "SAME")), 1),
            lambda n: [(4, 8, n), (8, 8, 3)],
        ),
        "images": (convolve((1, 1), "SAME", images), lambda n: [(n % 40 + 1, 12, 12, 8), (3, 3, 8, 16)]),
        "larger images": (convolve((1, 1), "SAME", images), lambda n: [(2, n % 60 + 3, 14, 8), (3, 3, 8, 16)]),
        "largest of squares": (pool, lambda n: [(2, n % 80 + 4, 16, 3)]),
        "sums of segments": (lambda x: jax.ops.segment_sum(x, jnp.arange(x.shape[0]) % 7, 7), lambda n: [(n, 5)]),
        "rows added at places": (spread_rows, lambda n: [(n, 3)]),
        "rows at places": (lambda x: x[(jnp.arange(x.shape[0]) * 5) % x.shape[0]], lambda n: [(n, 6)]),
        "largest of rows": (lambda x: lax.top_k(x, 5)[0], lambda n: [(6, n + 6)]),
        "largest": (lambda x: lax.top_k(x, 3), lambda n: [(n + 4,)]),
        "rows sorted": (lambda x: jnp.sort(x, 1), lambda n: [(9, n)]),
        "orders of columns": (lambda x: jnp.argsort(x, 0), lambda n: [(n, 4)]),
        "cross entropy": (cross_entropy, lambda n: [(n, 10)]),
        "a vocabulary": (nn.log_softmax, lambda n: [(5, n)]),
        "rows normalised": (normalise(-1), lambda n: [(n, 48)]),
        "columns normalised": (normalise(0), lambda n: [(n, 48)]),
        "a costly mean": (lambda x: jnp.mean(nn.softplus(x) - 0.3 * x), lambda n: [(n * 97,)]),
        "a likelihood": (jax.value_and_grad(likelihood), lambda n: [(n * 61,)]),
        "costly sums of rows": (lambda x: jnp.sum(jnp.tanh(x) * nn.softplus(x), 1), lambda n: [(3, n * 31)]),
        "many steps": (recurrent, lambda n: [(n, 5, 16), (16, 16)]),
        "many series": (recurrent, lambda n: [(6, n, 16), (16, 16)]),
        "running products": (lambda x: jnp.cumprod(1 + 0.01 * x, 0), lambda n: [(n, 3)]),
        "an associative scan": (lambda x: lax.associative_scan(jnp.add, x), lambda n: [(n,)]),
        "differences": (lambda x: jnp.diff(x, axis=0) * x[:-1], lambda n: [(n + 1, 7)]),
        "rolled and reversed": (lambda x: jnp.roll(x, 3, 0) + jnp.flip(x, 0), lambda n: [(n, 5)]),
        "reflected": (reflected, lambda n: [(n + 3, 9)]),
        "joined": (lambda x, y: jnp.concatenate([x, y * 2, x[:3]], 0), lambda n: [(n + 3, 5), (17, 5)]),
        "rows joined": (lambda x, y: jnp.concatenate([x, y], 1), lambda n: [(12, n), (12, 9)]),
        "transposed": (lambda x: jnp.transpose(x, (1, 0, 2)).reshape(x.shape[1], -1), lambda n: [(n, 6, 4)]),
        "turned": (lambda x: x.T * 2, lambda n: [(n, 33)]),
        "places of extremes": (lambda x: (jnp.argmax(x, 0), jnp.argmin(x, 1)), lambda n: [(n, 21)]),
        "quantiles": (lambda x: (jnp.quantile(x, 0.3, axis=0), jnp.median(x, 1)), lambda n: [(n, 4)]),
        "a histogram": (lambda x: jnp.histogram(x, bins=12)[0], lambda n: [(n,)]),
        "places in order": (lambda x: jnp.searchsorted(jnp.sort(x), x[:9]), lambda n: [(n + 9,)]),
        "a table": (lambda x: nn.one_hot(jnp.arange(x.shape[0]) % 11, 11) @ x[:11], lambda n: [(n + 11, 6)]),
        "covariances": (lambda x: jnp.cov(x.T), lambda n: [(n + 2, 5)]),
        "distances": (lambda x: jnp.sqrt(((x[:, None] - x) ** 2).sum(-1) + 1e-9), lambda n: [(n % 150 + 2, 3)]),
        "nearest": (nearest, lambda n: [(n, 8), (20, 8)]),
        "small systems": (solved, lambda n: [(n, 4, 4)]),
        "small inverses": (lambda x: jnp.linalg.inv(x + 9 * jnp.eye(3)), lambda n: [(n, 3, 3)]),
        "a while loop": (iterated, lambda n: [(n,)]),
        "a branch": (lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, jnp.cumsum, x), lambda n: [(n,)]),
        "a product of bfloat16": (lambda x, y: x.astype(half) @ y.astype(half), lambda n: [(n, 64), (64, 48)]),
        "a batch of bfloat16": (lambda x, y: x.astype(half) @ y.astype(half), lambda n: [(6, n, 32), (6, 32, 32)]),
        "a product of bytes": (integers, lambda n: [(n, 64), (64, 48)]),
        "bytes counted": (lambda x: ((x * 50).astype(jnp.uint8) > 20).sum(1), lambda n: [(11, n)]),
        "sums of float16": (lambda x: x.astype(jnp.float16).sum(0), lambda n: [(n, 9)]),
        "complex products": (lambda x: jnp.abs((x + 1j * x[::-1]) @ (x.T + 0j)), lambda n: [(n % 90 + 2, 7)]),
        "spectra": (lambda x: jnp.abs(jnp.fft.rfft(x, axis=0)), lambda n: [(n % 300 + 2, 4)]),
        "gradient of a net": (
            jax.grad(lambda w, x: jnp.mean((jnp.tanh(x @ w) @ w.T - x) ** 2)),
            lambda n: [(24, 40), (n, 24)],
        ),
        "several nets": (jax.vmap(lambda w, x: jnp.tanh(x @ w), (0, None)), lambda n: [(5, 24, 24), (n, 24)]),
        "gradients of examples": (each_gradient, lambda n: [(12, 10), (n, 12)]),
        "a Jacobian": (jax.jacfwd(lambda x: jnp.sin(x) * x[::-1]), lambda n: [(n % 70 + 2,)]),
        "a triangle": (lambda x: jnp.tril(x) @ x, lambda n: [(n % 150 + 2,) * 2]),
        "experts": (experts, lambda n: [(n, 16), (4, 16, 24)]),
        "rotated positions": (rotated, lambda n: [(n, 16)]),
        "windows": (
            lambda x: jnp.stack([x[i : x.shape[0] - 4 + i] for i in range(5)], 1).mean(1),
            lambda n: [(n + 5,)],
        ),
        "means without NaNs": (lambda x: jnp.nanmean(jnp.where(x > 0, x, jnp.nan), 0), lambda n: [(n, 6)]),
        "counts": (lambda x: jnp.bincount((jnp.abs(x) * 9).astype(int), length=20), lambda n: [(n,)]),
        "different ones": (lambda x: jnp.unique((x * 3).astype(int), size=9, fill_value=0), lambda n: [(n,)]),
        "rows written": (
            lambda x: lax.dynamic_update_slice(x, x[:2] * 3, (x.shape[0] // 2, 0)),
            lambda n: [(n + 4, 5)],
        ),
        "a cache of keys": (lambda k, q: nn.softmax(q @ k.T / 4) @ k, lambda n: [(n, 32), (4, 32)]),
    }


def drawn(draw: random.Random, many: int) -> list[int]:
    """So many lengths: near one, small, large, even ones."""
    base = draw.randrange(5, 700)
    kinds = (
        lambda: draw.randrange(1, 70),
        lambda: draw.randrange(3, 300),
        lambda: draw.randrange(3, 1500),
        lambda: 16 * draw.randrange(1, 70),
        lambda: 2 ** draw.randrange(1, 11),
        lambda: base + draw.randrange(6),
    )
    return [draw.choice(kinds)() for _ in range(many)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only functions whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--many", type=int, default=24, help="lengths of each function")
    options = parser.parse_args()
    os.environ["CATENA_CACHE"] = "0"
    logging.disable(logging.CRITICAL)
    jax, lengths = importlib.import_module("catena"), importlib.import_module("catena.compiler.native.lengths")
    calls, wrong = 0, 0
    for name, (f, shapes) in programs(jax).items():
        if options.only not in name:
            continue
        jitted = jax.jit(f)
        for n in drawn(random.Random(1000 * options.seed + zlib.crc32(name.encode())), options.many):
            arguments = [np.random.default_rng(k).normal(size=s).astype("f") for k, s in enumerate(shapes(n))]
            calls += 1
            if not is_as_alone(jax, lengths, f, arguments, jitted(*arguments)):
                wrong += 1
                print(f"wrong: {name}, length {n}", flush=True)
    found = sum(family.found for family in lengths._families.values())
    print(f"{calls} calls, {wrong} wrong; from plans of other lengths, of the families that are left: {found}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
