# ruff: noqa: F722, F821  (shapes are written as strings)
"""Functions whose arguments' shapes and dtypes are annotated and checked."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, jaxtyped


def example():
    @jax.jit
    @jaxtyped(typechecker=None)
    def attend(q: Float[Array, "n d"], k: Float[Array, "m d"], v: Float[Array, "m e"]) -> Float[Array, "n e"]:
        return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])) @ v

    def make(key: PRNGKeyArray, n: int) -> Float[Array, "n 16"]:
        return jax.random.normal(key, (n, 16))

    q, k, v = (make(key, n) for key, n in zip(jax.random.split(jax.random.key(0), 3), (64, 128, 128)))
    assert isinstance(q, Float[Array, "64 16"]) and not isinstance(q, Int[Array, "..."])

    def step(q):
        out = attend(q, k, v)
        return out, out.sum()

    return step, q
