"""Two of gymnax's environments, 64 of each side by side, driven by a linear policy; rewards and observations."""

import gymnax
import jax
import jax.numpy as jnp


def example():
    games = [gymnax.make(name) for name in ("CartPole-v1", "Pendulum-v1")]
    weights = [jnp.array([0.1, 0.5, 2.0, 1.0]), jnp.array([[-1.0], [-4.0], [-1.0]])]

    def play(game, settings, weights, key, decide):
        reset, keys = jax.random.split(key)
        observation, state = game.reset(reset, settings)

        def one(carry, key):
            observation, state = carry
            observation, state, reward, _, _ = game.step(key, state, decide(observation @ weights), settings)
            return (observation, state), reward

        (observation, _), rewards = jax.lax.scan(one, (observation, state), jax.random.split(keys, 100))
        return observation, rewards

    @jax.jit
    def step(seed):
        keys = jax.random.split(jax.random.key(seed), 64)
        found = []
        for (game, settings), w, decide in zip(games, weights, (lambda x: (x > 0).astype(int), lambda x: x), strict=True):
            observations, rewards = jax.vmap(lambda key: play(game, settings, w, key, decide))(keys)  # noqa: B023
            found += [observations.mean(0), rewards.sum()[None]]
        return seed + 1, jnp.concatenate(found)

    return step, 0


TOLERANCE = 1e-3
