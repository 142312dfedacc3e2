"""The Laplacian of a wave function in one pass forward, for a batch of electrons."""

import folx
import jax
import jax.numpy as jnp


def example():
    weights = [jax.random.normal(jax.random.key(i), shape) * 0.4 for i, shape in enumerate([(12, 32), (32, 32)])]

    def log_psi(x):
        h = x
        for w in weights:
            h = jnp.tanh(h @ w)
        return jnp.sum(h) - jnp.linalg.norm(x)

    @jax.jit
    def step(x):
        found = jax.vmap(folx.forward_laplacian(log_psi))(x)
        return x + 0.01 * found.jacobian.dense_array, found.laplacian

    return step, jax.random.normal(jax.random.key(9), (64, 12))
