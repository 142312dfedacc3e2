"""A Bayesian regression, sampled with NUTS."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS


def example():
    x = jax.random.normal(jax.random.key(0), (100, 3))
    y = x @ jnp.array([1.0, -2.0, 0.5]) + 0.1 * jax.random.normal(jax.random.key(1), (100,))

    def model(x, y):
        weights = numpyro.sample("weights", dist.Normal(0, 1).expand([3]).to_event(1))
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        numpyro.sample("y", dist.Normal(x @ weights, noise), obs=y)

    mcmc = MCMC(NUTS(model), num_warmup=200, num_samples=200, progress_bar=False)

    def step(seed):
        mcmc.run(jax.random.key(seed), x, y)
        samples = mcmc.get_samples()
        return seed, jnp.concatenate([samples["weights"].mean(0), samples["noise"].mean()[None]])

    return step, 2


TOLERANCE = 0.02  # means of 200 samples: rounding takes chains apart
