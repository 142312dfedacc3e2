"""A model of flax's whose products are quantized by rules, for training and afterwards."""

import jax
import jax.numpy as jnp
import qwix
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.relu(nn.Dense(64)(x)))


def example():
    trained = qwix.quantize_model(
        Net(), qwix.QtProvider([qwix.QtRule(weight_qtype=jnp.int8, act_qtype=jnp.int8, bwd_qtype=None)])
    )
    served = qwix.quantize_model(
        Net(), qwix.PtqProvider([qwix.QuantizationRule(weight_qtype=jnp.int8, act_qtype=jnp.int8)])
    )
    x = jax.random.normal(jax.random.key(0), (256, 32))
    y = jnp.sin(x[:, :4].sum(axis=1, keepdims=True))
    template = jax.eval_shape(served.init, jax.random.key(1), x)["params"]

    @jax.jit
    def step(params):
        value, slope = jax.value_and_grad(lambda p: jnp.mean((trained.apply({"params": p}, x) - y) ** 2))(params)
        after = served.apply({"params": qwix.quantize_params(params, template)}, x)
        quantized = qwix.einsum("ab,cb->ac", qwix.quantize(x, jnp.int8, channelwise_axes=[0]), x[:3])
        values = jnp.stack([value, jnp.mean((after - y) ** 2), jnp.linalg.norm(quantized) * 0.01])
        return jax.tree.map(lambda p, s: p - 0.05 * s, params, slope), values

    return step, Net().init(jax.random.key(1), x)["params"]


TOLERANCE = 2e-3  # the greatest of a row is 127.5 steps: the last bit of a step says which way it is rounded
