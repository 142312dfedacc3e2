"""A network of flax's nnx: attention, normalisation and dropout, trained with optax."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Block(nnx.Module):
    def __init__(self, width, rngs):
        self.attention = nnx.MultiHeadAttention(4, width, decode=False, rngs=rngs)
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return x + self.dropout(self.attention(self.norm(x)))


class Net(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(11, 32, rngs=rngs)
        self.blocks = nnx.List([Block(32, rngs) for _ in range(2)])
        self.head = nnx.Linear(32, 11, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def example():
    """Learns to say how far each token has come in a cycle of eleven."""
    start = jax.random.randint(jax.random.key(1), (64, 1), 0, 11)
    tokens = (start + 3 * jnp.arange(12)) % 11
    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(3e-3), wrt=nnx.Param)

    @nnx.jit
    def train(net, optimizer):
        def loss(net):
            logits = net(tokens[:, :-1])
            return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

        value, gradients = nnx.value_and_grad(loss)(net)
        optimizer.update(net, gradients)
        return value

    def step(state):
        return state, train(net, optimizer)

    return step, None
