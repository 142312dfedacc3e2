"""A mixture and a transformed normal: densities, draws, entropies and divergences, climbed by gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
from distreqx import bijectors, distributions


def example():
    x = jax.random.normal(jax.random.key(0), (200, 3)) * 0.3 + 0.5

    def loss(parameters):
        mean, scale = parameters
        normal = distributions.MultivariateNormalTri(mean, jnp.tril(scale) + 2 * jnp.eye(3))
        unit = distributions.MultivariateNormalDiag(jnp.zeros(3), jnp.ones(3))
        components = eqx.filter_vmap(distributions.Normal)(mean, jnp.exp(scale[0]))
        mixture = distributions.MixtureSameFamily(distributions.Categorical(scale[1]), components)
        squashed = distributions.Transformed(distributions.Normal(mean[0], jnp.exp(scale[2, 0])), bijectors.Tanh())
        drawn = squashed.sample(jax.random.key(1))
        fit = jax.vmap(normal.log_prob)(x).mean() + jax.vmap(mixture.log_prob)(x[:, 0]).mean()
        return normal.kl_divergence(unit) - normal.entropy() - fit + drawn**2 - 0.01 * squashed.log_prob(drawn)

    @jax.jit
    def step(parameters):
        value, slope = jax.value_and_grad(loss)(parameters)
        return jax.tree.map(lambda p, s: p - 0.05 * s, parameters, slope), value

    return step, (jnp.arange(3.0) / 3, jax.random.normal(jax.random.key(2), (3, 3)) * 0.1)
