"""Programs whose bits are the same on any number of threads. `python -m thread_programs` prints a digest of each."""

import hashlib
import importlib.util
from pathlib import Path

import numpy as np

import catena as jax
import catena.numpy as jnp
from catena.core.lazy import has_compiler

SPEC = importlib.util.spec_from_file_location(
    "same_bits", Path(__file__).resolve().parents[2] / "benchmarks" / "same_bits.py"
)
battery = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(battery)


def folds():
    """Elementwise, sums and places along every axis, a product and a transposition: eight times."""
    rng = np.random.default_rng(0)
    shapes = ((700, 901), (901, 300), (500_003, 3))
    args = [jnp.asarray(rng.normal(size=shape).astype(np.float32)) for shape in shapes]

    def f(x, y, z):
        e = jnp.tanh(x + jnp.exp(x))
        sums = [jnp.sum(e, axis) for axis in (0, 1, None)]
        return [e, *sums, x @ y, -x.T, jnp.sum(z), jnp.sum(z, 0), jnp.argmax(z, 0)]

    program = jax.jit(f)
    return [result for _ in range(8) for result in program(*args)]


def attention():
    """Its gradient, by blocks."""
    n, heads = 1050, 2
    rng = np.random.default_rng(0)
    args = [jnp.asarray(rng.standard_normal((n, heads, 16)).astype(np.float32)) for _ in range(3)]

    def loss(q, k, v):
        scores = jnp.where(jnp.tril(jnp.ones((n, n), bool)), jnp.einsum("qhd,khd->hqk", q, k), -jnp.inf)
        return jnp.sum(jnp.sin(jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v)))

    return jax.jit(jax.grad(loss, (0, 1, 2)))(*args)


def tiles():
    """Products of bfloat16, which some processors have tiles for."""
    x, y = (jnp.asarray(np.random.default_rng(i).standard_normal((700, 700)), jnp.bfloat16) for i in range(2))
    f = jax.jit(lambda x, y: (x @ y, jnp.sum(jnp.maximum(x.T @ y, 0), axis=1), jnp.einsum("mk,nk->mn", x, y)))
    return f(x, y)


def eager_products():
    """Of all shapes that BLAS has a way of its own for."""
    return [call(*map(jnp.asarray, xs)) for label, call, xs in battery.product_calls() if "float32 products" in label]


def digest(results) -> str:
    """Of the bytes of all results."""
    return hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in results)).hexdigest()


# Without a compiler, programs are NumPy's: how it sums hangs on BLAS's threads, but for those products.
PROGRAMS = (eager_products, *((folds, attention, tiles) if has_compiler() else ()))

if __name__ == "__main__":
    for program in PROGRAMS:
        print(program.__name__, digest(program()))
