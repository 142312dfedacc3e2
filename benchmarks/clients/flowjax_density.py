"""A coupling flow of rational quadratic splines, fitted to two moons by its likelihood."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow
from paramax import NonTrainable, unwrap


def example():
    angle, noise = jax.random.split(jax.random.key(1))
    angle = jnp.pi * jax.random.uniform(angle, (256,))
    side = jnp.where(jnp.arange(256) % 2 == 0, 1.0, -1.0)
    moons = jnp.stack([side * jnp.cos(angle) + 0.5 * side, side * jnp.sin(angle) - 0.25 * side], 1)
    x = moons + 0.05 * jax.random.normal(noise, moons.shape)
    flow = coupling_flow(
        jax.random.key(0),
        base_dist=Normal(jnp.zeros(2)),
        transformer=RationalQuadraticSpline(knots=6, interval=4),
        flow_layers=3,
        nn_width=24,
    )
    learnt, fixed = eqx.partition(flow, eqx.is_inexact_array, is_leaf=lambda leaf: isinstance(leaf, NonTrainable))
    optimizer = optax.adam(5e-3)

    @eqx.filter_jit
    def step(state):
        learnt, memory = state

        def loss(learnt):
            return -unwrap(eqx.combine(learnt, fixed)).log_prob(x).mean()

        value, gradients = eqx.filter_value_and_grad(loss)(learnt)
        updates, memory = optimizer.update(gradients, memory)
        return (eqx.apply_updates(learnt, updates), memory), value

    return step, (learnt, optimizer.init(learnt))
