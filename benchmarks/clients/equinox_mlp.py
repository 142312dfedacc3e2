"""A module with norms and dropout, filtered transformations, an update of its arrays."""

import equinox as eqx
import jax
import jax.numpy as jnp


class Model(eqx.Module):
    layers: list
    norm: eqx.nn.LayerNorm
    scale: jax.Array

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.layers = [eqx.nn.Linear(8, 64, key=a), eqx.nn.Linear(64, 1, key=b)]
        self.norm = eqx.nn.LayerNorm(64)
        self.scale = jnp.ones(())

    def __call__(self, x):
        return self.scale * self.layers[1](self.norm(jax.nn.gelu(self.layers[0](x))))


def example():
    x = jax.random.normal(jax.random.key(1), (256, 8))
    y = jnp.cos(x.sum(1, keepdims=True))

    @eqx.filter_value_and_grad
    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model):
        value, gradient = loss(model)
        return eqx.apply_updates(model, jax.tree.map(lambda g: -0.05 * g, gradient)), value

    return step, Model(jax.random.key(0))
