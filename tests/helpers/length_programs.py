"""Functions of arrays of any length, and their arguments: what a length does not change is in its values alone.

`python -m length_programs LENGTH...` prints the bytes of the results of each at these lengths, by their digest.
"""

import hashlib
import json
import sys

import numpy as np

import catena as jax
import catena.numpy as jnp
from shares import alternate


def values(n: int, *shape: int) -> np.ndarray:
    """Numbers around zero that tell their place and the length."""
    count = int(np.prod(shape))
    return np.sin(np.arange(1, count + 1) * 0.7 + n).reshape(shape).astype("float32")


def loss(weights, x, y):
    hidden = jnp.tanh(x @ weights[0] + weights[1])
    logits = hidden @ weights[2]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, -1))


def step(w, b, v, x, y):
    weights = w, b, v
    return [p - 0.1 * g for p, g in zip(weights, jax.grad(loss)(weights, x, y), strict=True)]


def attention(q, k, v):
    n = q.shape[0]
    scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), q @ k.T / 4, -1e9)
    return jax.nn.softmax(scores, -1) @ v


def chain(x):
    for _ in range(20):
        x = jnp.sin(x) * 0.5 + x
    return x


def scanned(x):
    return jax.lax.scan(lambda c, y: (0.9 * c + jnp.tanh(y), c), jnp.zeros(x.shape[1]), x)


def dropped(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x, 0), jax.random.normal(key, x.shape[:1])


def in_place(x):
    light = jax.lax.fori_loop(0, 3, lambda _, c: c * 0.5 + 1, x)
    return light, jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(c) * x, x)


def spread(x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.var(x, -1, keepdims=True) + 1e-5)


def heated(x):
    """A step of heat's equation in a loop, inside of borders."""
    inside = lambda u: u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
    return jax.lax.fori_loop(0, 3, lambda _, u: u.at[1:-1, 1:-1].add(0.1 * inside(u)), x)


def filtered(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=("NCH", "OIH", "NCH"))


def below_length(x):
    key = jax.random.key((9 * x[0]).astype("int32"))
    return jax.random.randint(key, x.shape, 0, x.size), jnp.arange(2 * x.size + 40) // x.size


def divergence(w, x):
    mean, log = jnp.split(x @ w, 2, -1)
    return -0.5 * jnp.mean(1 + log - mean**2 - jnp.exp(log))


# Each with the shapes of its arguments at a length.
PROGRAMS = {
    "elementwise": (lambda x: jnp.exp(x) * 2 + x, lambda n: [(n,)]),
    "all folded": (lambda x: (jnp.sum(x * x), jnp.mean(x), jnp.max(x)), lambda n: [(n, 3)]),
    "rows folded": (lambda x: jnp.sum(x, 1), lambda n: [(7, n)]),
    "columns folded": (lambda x: jnp.sum(jnp.exp(x), 0), lambda n: [(n, 40)]),
    "rows made even": (spread, lambda n: [(5, n)]),
    "products": (lambda x, y: jnp.tanh(x @ y), lambda n: [(n, 20), (20, n)]),
    "rows of a batch of products": (lambda x, y: x @ y, lambda n: [(16, n, 32), (16, 32, 32)]),
    "members of a batch": (lambda x, y: x @ y, lambda n: [(n, 16, 16), (n, 16, 16)]),
    "terms of a batch": (lambda x, y: x @ y, lambda n: [(12, 24, n), (12, n, 24)]),
    "a training step": (step, lambda n: [(12, 24), (24,), (24, 10), (n, 12), (n, 10)]),
    "a divergence's gradient": (jax.grad(divergence), lambda n: [(9, 12), (n, 9)]),
    "attention": (attention, lambda n: [(n, 16)] * 3),
    "its gradient": (jax.grad(lambda *qkv: jnp.sum(attention(*qkv) ** 2), (0, 1, 2)), lambda n: [(n, 16)] * 3),
    "a chain": (chain, lambda n: [(n,)]),
    "a loop": (scanned, lambda n: [(n, 9)]),
    "sorting": (lambda x: (jnp.sort(x), jnp.argsort(x), jnp.median(x)), lambda n: [(n,)]),
    "parts far from each other": (
        lambda x, y: (jnp.concatenate([x, y, x[::-1]]), x[: x.size // 2] - x[-(x.size // 2) :]),
        lambda n: [(3 * n,), (n,)],
    ),
    "places": (lambda x: x[jnp.argsort(x[:, 0])[::2]] + x[-1], lambda n: [(n, 5)]),
    "interpolation": (lambda x, y: jnp.interp(x, jnp.linspace(-1, 1, y.shape[0]), y), lambda n: [(n,), (n // 2 + 2,)]),
    "running sums": (lambda x: (jnp.cumsum(x), jnp.cumsum(x.reshape(-1, 1) * x[:4], 0)), lambda n: [(n,)]),
    "running sums of rows": (lambda x: (jnp.cumsum(x, 1), jax.lax.cummax(x[:, ::2], axis=1)), lambda n: [(n, 7)]),
    "in place": (in_place, lambda n: [(n,)]),
    "a diagonal": (lambda x: (jnp.trace(x), jnp.diagonal(x)), lambda n: [(n, n)]),
    "draws": (lambda x: dropped(jax.random.key((9 * x[0, 0]).astype("int32")), x), lambda n: [(n, 3)]),
    "a linear system": (lambda x: jnp.linalg.solve(x + 999 * jnp.eye(x.shape[0]), x[0]), lambda n: [(n, n)]),
    "a matrix factorised": (lambda x: jnp.linalg.cholesky(x @ x.T + 9 * jnp.eye(x.shape[0])), lambda n: [(n, 8)]),
    "a tall matrix factorised": (jnp.linalg.qr, lambda n: [(n, 5)]),
    "small systems": (
        lambda x: jax.vmap(jnp.linalg.solve)(x.reshape(-1, 3, 3) + 9 * jnp.eye(3), x.reshape(-1, 3, 3)[:, 0]),
        lambda n: [(n, 9)],
    ),
    "least squares": (lambda x: jnp.linalg.lstsq(x[:, :4], x[:, 4])[0], lambda n: [(n, 5)]),
    "heat in a loop": (heated, lambda n: [(n, n)]),
    "filters": (filtered, lambda n: [(2, 3, n), (8, 3, 5)]),
    "draws below the length": (below_length, lambda n: [(n,)]),
    "second derivatives": (jax.hessian(lambda x: jnp.sum(x[1:] * jnp.sin(x[:-1]))), lambda n: [(n,)]),
    "a determinant": (lambda x: jnp.linalg.slogdet(x + 9 * jnp.eye(x.shape[0])), lambda n: [(n, n)]),
    "structured matrices": (
        lambda x: (jax.scipy.linalg.toeplitz(x), jax.scipy.linalg.circulant(x) * jnp.fft.fftfreq(x.shape[0])),
        lambda n: [(n,)],
    ),
    "transforms of rows": (lambda x: (jnp.fft.ifft(x), jnp.fft.rfft(x)), lambda n: [(n, 12)]),
    "its singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), lambda n: [(n, 5)]),
}


def results(f, shapes) -> list[bytes]:
    """The bytes of what a function gives for arguments of these shapes."""
    n = max(map(max, shapes))
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(f(*[values(n, *shape) for shape in shapes]))]


def told(found: list[bytes]) -> str:
    return hashlib.sha256(b"".join(found)).hexdigest()


# What another process computes, too.
ELSEWHERE = dict(alternate(4, PROGRAMS.items(), 0))

if __name__ == "__main__":
    for name, (f, shapes) in ELSEWHERE.items():
        print(json.dumps([name, *(told(results(jax.jit(f), shapes(int(n)))) for n in sys.argv[1:])]))
