"""Monte Carlo tree search: MuZero's and Gumbel MuZero's on a small random decision process."""

import jax
import jax.numpy as jnp
import mctx


def example():
    states, actions, batch = 50, 6, 32
    keys = jax.random.split(jax.random.key(0), 4)
    following = jax.random.randint(keys[0], (states, actions), 0, states)
    rewards = jax.random.normal(keys[1], (states, actions))
    logits, values = jax.random.normal(keys[2], (states, actions)), jax.random.normal(keys[3], (states,))

    def move(_, key, action, place):
        found = mctx.RecurrentFnOutput(
            reward=rewards[place, action],
            discount=jnp.full((batch,), 0.9),
            prior_logits=logits[following[place, action]],
            value=values[following[place, action]],
        )
        return found, following[place, action]

    @jax.jit
    def step(place):
        root = mctx.RootFnOutput(prior_logits=logits[place], value=values[place], embedding=place)
        key = jax.random.key(place[0])
        first = mctx.muzero_policy((), key, root, move, num_simulations=24)
        second = mctx.gumbel_muzero_policy((), key, root, move, num_simulations=24, max_num_considered_actions=4)
        value = jnp.stack([first.action_weights, second.action_weights])
        return following[place, second.action], value

    return step, jnp.arange(batch)
