"""Dataclasses that are trees, and assertions about shapes and numbers inside a compiled step."""

import chex
import jax
import jax.numpy as jnp


@chex.dataclass
class State:
    position: chex.Array
    velocity: chex.Array


def example():
    @jax.jit
    def step(state):
        chex.assert_rank(state.position, 1)
        chex.assert_equal_shape([state.position, state.velocity])
        force = -jnp.sin(state.position)
        state = state.replace(position=state.position + 0.1 * state.velocity, velocity=state.velocity + 0.1 * force)
        return state, jnp.sum(state.velocity**2)

    return step, State(position=jnp.linspace(-1, 1, 1000), velocity=jnp.zeros(1000))
