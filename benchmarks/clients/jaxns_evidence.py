"""A line through points as a model of jaxns: its joint density over the unit cube, climbed by gradients."""

import jax
import jax.numpy as jnp
from jaxns.model import Model
from jaxns.priors import Prior
from tensorflow_probability.substrates import jax as tfp

tfpd = tfp.distributions


def line(x, y):
    offset = Prior(tfpd.Normal(0.0, 1.0), name="offset").realise()
    slope = Prior(tfpd.Uniform(-3.0, 3.0), name="slope").realise()
    return tfpd.Normal(offset + slope * x, 0.2).log_prob(y).sum()


def example():
    x = jnp.linspace(-1.0, 1.0, 50)
    data = x, 2 * x + 0.5 + 0.1 * jax.random.normal(jax.random.key(0), (50,))
    model = Model(prior_model=line)

    @jax.jit
    def step(u):
        value, gradient = jax.value_and_grad(lambda u: model.log_joint(u, args=data))(u)
        return jax.tree.map(lambda u, g: jnp.clip(u + 1e-5 * g, 0.01, 0.99), u, gradient), value

    return step, model.sample_U(jax.random.PRNGKey(1), args=data)
