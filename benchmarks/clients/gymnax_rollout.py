"""Two of gymnax's environments, 64 of each side by side, driven by a linear policy; rewards and observations."""

from functools import partial

import gymnax
import jax
import jax.numpy as jnp


def example():
    players = [
        (*gymnax.make("CartPole-v1"), lambda x: (x @ jnp.array([0.1, 0.5, 2.0, 1.0]) > 0).astype(int)),
        (*gymnax.make("Pendulum-v1"), lambda x: x @ jnp.array([[-1.0], [-4.0], [-1.0]])),
    ]

    def play(game, settings, decide, key):
        reset, keys = jax.random.split(key)
        observation, state = game.reset(reset, settings)

        def one(carry, key):
            observation, state = carry
            observation, state, reward, _, _, _ = game.step(key, state, decide(observation), settings)
            return (observation, state), reward

        (observation, _), rewards = jax.lax.scan(one, (observation, state), jax.random.split(keys, 100))
        return observation, rewards

    @jax.jit
    def step(seed):
        keys = jax.random.split(jax.random.key(seed), 64)
        found = []
        for player in players:
            observations, rewards = jax.vmap(partial(play, *player))(keys)
            found += [observations.mean(0), rewards.sum()[None]]
        return seed + 1, jnp.concatenate(found)

    return step, 0


TOLERANCE = 1e-3
