"""Distributions and bijectors: densities, samples, a flow."""

import distrax
import jax
import jax.numpy as jnp


def example():
    x = jnp.linspace(-2.0, 2.0, 50)
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(logits=jnp.array([0.1, 0.4])),
        distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.8])),
    )

    @jax.jit
    def step(shift):
        flow = distrax.Transformed(
            distrax.Normal(0.0, 1.0), distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(shift, 0.5)])
        )
        sample = flow.sample(seed=jax.random.PRNGKey(0), sample_shape=(100,))
        values = [mixture.log_prob(x).sum(), flow.log_prob(sample).sum(), distrax.Gamma(2.0, shift + 1.0).mean()]
        return shift * 0.9, jnp.stack(values)

    return step, jnp.array(0.3)
