"""Products of quantized operands, eight bits forwards and backwards, in a network that is trained."""

import aqt.jax.v2.config as aqt_config
import jax
import jax.numpy as jnp
from aqt.jax.v2.flax import aqt_flax
from flax import linen as nn


class Net(nn.Module):
    config: object

    @nn.compact
    def __call__(self, x):
        product = lambda: aqt_flax.AqtDotGeneral(self.config)  # noqa: E731
        x = nn.relu(nn.Dense(32, dot_general_cls=product)(x))
        return nn.Dense(1, dot_general_cls=product)(x)


def example():
    net = Net(aqt_config.config_v4(fwd_bits=8, dlhs_bits=8, drhs_bits=None, rng_type="jax.uniform"))
    x = jax.random.normal(jax.random.key(0), (256, 16))
    y = jnp.sin(x.sum(axis=1, keepdims=True))

    @jax.jit
    def step(state):
        params, key = state
        key, noise = jax.random.split(key)

        def loss(params):
            return jnp.mean((net.apply(params, x, rngs={"params": noise}) - y) ** 2)

        value, slope = jax.value_and_grad(loss)(params)
        return (jax.tree.map(lambda p, s: p - 0.05 * s, params, slope), key), value

    return step, (net.init(jax.random.key(1), x), jax.random.key(2))


TOLERANCE = 2e-3  # a rounding to one of 255 steps turns over with the last bit of what is rounded
