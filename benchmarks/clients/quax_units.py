"""Quantities with units, and a low-rank matrix in place of a full one, through functions that know of neither."""

import equinox as eqx
import jax
import jax.numpy as jnp
import quax
from quax.examples import lora, unitful


def example():
    x = jax.random.normal(jax.random.key(1), (64, 16))
    layer = lora.loraify(eqx.nn.MLP(16, 1, 32, 1, key=jax.random.key(0)), rank=2, key=jax.random.key(2))
    length = unitful.Unitful(jnp.linspace(1.0, 2.0, 8), {unitful.meters: 1})

    @eqx.filter_jit
    def step(layer):
        def loss(layer):
            predicted = quax.quaxify(lambda layer, x: jax.vmap(layer)(x))(layer, x)
            return jnp.mean((predicted - jnp.sin(x.sum(1, keepdims=True))) ** 2)

        value, gradient = eqx.filter_value_and_grad(loss)(layer)
        area = quax.quaxify(lambda a: a * a + 2 * (a * a))(length)
        return eqx.apply_updates(layer, jax.tree.map(lambda g: -0.05 * g, gradient)), value + area.array.sum()

    return step, layer
