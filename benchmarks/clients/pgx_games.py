"""A hundred games of Othello, played at random."""

import jax
import jax.numpy as jnp
import pgx


def example():
    game = pgx.make("othello")
    start, play = jax.vmap(game.init), jax.vmap(game.step)

    @jax.jit
    def step(state):
        key, boards = state
        key, own = jax.random.split(key)
        moves = jax.random.categorical(own, jnp.where(boards.legal_action_mask, 0.0, -1e9), axis=-1)
        boards = play(boards, moves)
        return (key, boards), boards.observation.sum(axis=(1, 2, 3))

    return step, (jax.random.key(0), start(jax.random.split(jax.random.key(1), 100)))
