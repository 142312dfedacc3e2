"""An environment of rigid bodies in brax's own pipeline, stepped."""

import jax
import jax.numpy as jnp
from brax import envs


def example():
    env = envs.get_environment("inverted_pendulum", backend="generalized")
    state = jax.jit(env.reset)(jax.random.PRNGKey(0))

    @jax.jit
    def step(state):
        state = env.step(state, 0.3 * jnp.ones(env.action_size))
        return state, state.obs

    return step, state
