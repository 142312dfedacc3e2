"""A linen network with normalisation and dropout, trained with optax."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.Dense(64)(x)
        x = nn.LayerNorm()(nn.gelu(x))
        x = nn.Dropout(0.1, deterministic=not train)(x)
        return nn.Dense(1)(x)


def example():
    x = jax.random.normal(jax.random.key(1), (256, 8))
    y = jnp.sin(x.sum(1, keepdims=True))
    net = Net()
    variables = net.init(jax.random.key(0), x, train=False)
    state = train_state.TrainState.create(apply_fn=net.apply, params=variables["params"], tx=optax.adam(1e-2))

    @jax.jit
    def step(state):
        def loss(params):
            key = jax.random.fold_in(jax.random.key(2), state.step)
            out = state.apply_fn({"params": params}, x, train=True, rngs={"dropout": key})
            return jnp.mean((out - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(state.params)
        return state.apply_gradients(grads=gradient), value

    return step, state
