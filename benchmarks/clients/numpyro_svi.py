"""Variational inference of a hierarchical regression: a guide that numpyro makes, trained by its Adam."""

import jax
import numpyro
import numpyro.distributions as dist
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoLowRankMultivariateNormal


def model(group, x, y):
    center = numpyro.sample("center", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.LogNormal(0.0, 0.5))
    with numpyro.plate("groups", 8):
        slope = numpyro.sample("slope", dist.Normal(center, spread))
    noise = numpyro.sample("noise", dist.Gamma(2.0, 4.0))
    with numpyro.plate("points", x.shape[0]):
        numpyro.sample("y", dist.StudentT(4.0, slope[group] * x, noise), obs=y)


def example():
    keys = jax.random.split(jax.random.key(3), 3)
    group = jax.random.randint(keys[0], (200,), 0, 8)
    x = jax.random.normal(keys[1], (200,))
    y = (1.0 + 0.2 * group) * x + 0.3 * jax.random.normal(keys[2], (200,))
    guide = AutoLowRankMultivariateNormal(model, rank=3)
    svi = SVI(model, guide, numpyro.optim.Adam(0.01), Trace_ELBO(num_particles=4))
    update = jax.jit(svi.update)

    def step(state):
        return update(state, group, x, y)

    return step, svi.init(jax.random.key(0), group, x, y)
