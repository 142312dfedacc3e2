"""Hamiltonian Monte Carlo of a correlated Gaussian, in a scan."""

import blackjax
import jax
import jax.numpy as jnp


def example():
    precision = jnp.array([[2.0, 0.8], [0.8, 1.0]])
    kernel = blackjax.hmc(lambda x: -0.5 * x @ precision @ x, 0.3, jnp.ones(2), 8)

    @jax.jit
    def step(state):
        chain, seed = state
        keys = jax.random.split(jax.random.key(seed), 500)

        def one(chain, key):
            chain, info = kernel.step(key, chain)
            return chain, (chain.position, info.acceptance_rate)

        chain, (positions, rates) = jax.lax.scan(one, chain, keys)
        return (chain, seed + 1), jnp.append(positions.mean(0), rates.mean())

    return step, (kernel.init(jnp.array([1.0, -1.0])), 7)


TOLERANCE = 0.02  # rounding takes chains apart
