"""Named axes and a model that is a tree of layers."""

import jax
import jax.numpy as jnp
from penzai import pz
from penzai.models import simple_mlp


def example():
    model = simple_mlp.MLP.from_config(name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[8, 32, 32, 1])
    model, parameters = pz.unbind_params(model)
    x = jax.random.normal(jax.random.key(1), (64, 8))
    y = jnp.sum(x, 1)

    def loss(parameters):
        out = pz.bind_variables(model, parameters)(pz.nx.wrap(x).tag("batch", "features"))
        return jnp.mean((out.unwrap("batch", "features")[:, 0] - y) ** 2)

    @jax.jit
    def step(parameters):
        value, slope = jax.value_and_grad(loss)(parameters)
        return jax.tree.map(lambda p, g: p - 0.05 * g, parameters, slope), value

    return step, [p.freeze() for p in parameters]
