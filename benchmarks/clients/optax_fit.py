"""A small network fitted with Adam, a schedule and clipped gradients."""

import jax
import jax.numpy as jnp
import optax


def example():
    keys = jax.random.split(jax.random.key(0), 4)
    x = jax.random.normal(keys[0], (256, 8))
    y = jnp.sin(x @ jax.random.normal(keys[1], (8, 1)))
    params = {"w1": 0.3 * jax.random.normal(keys[2], (8, 64)), "b1": jnp.zeros(64)}
    params |= {"w2": 0.3 * jax.random.normal(keys[3], (64, 1)), "b2": jnp.zeros(1)}
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-2, 10, 100)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-4))

    def loss(params):
        hidden = jnp.tanh(x @ params["w1"] + params["b1"])
        return optax.losses.huber_loss(hidden @ params["w2"] + params["b2"], y).mean()

    @jax.jit
    def step(state):
        params, inner = state
        value, gradient = jax.value_and_grad(loss)(params)
        updates, inner = optimizer.update(gradient, inner, params)
        return (optax.apply_updates(params, updates), inner), value

    return step, (params, optimizer.init(params))
