"""A convolutional network with batch statistics, trained for some steps."""

import haiku as hk
import jax
import jax.numpy as jnp


def example():
    def net(x):
        x = hk.Conv2D(8, 3)(x)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training=True)
        return hk.Sequential([jax.nn.relu, hk.Flatten(), hk.Linear(10)])(x)

    model = hk.transform_with_state(net)
    x = jax.random.normal(jax.random.key(1), (16, 12, 12, 1))
    labels = jnp.arange(16) % 10
    params, state = model.init(jax.random.PRNGKey(0), x)

    @jax.jit
    def step(carry):
        params, state = carry

        def loss(params):
            logits, new = model.apply(params, state, None, x)
            return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(16), labels]), new

        (value, state), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        return (jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient), state), value

    return step, (params, state)
