"""A Kalman filter and smoother in square-root form, one after the other and in parallel, and a gradient through it."""

import jax
import jax.numpy as jnp
from cuthbert import filter as run_filter
from cuthbert import smoother as run_smoother
from cuthbert.gaussian import kalman


def example():
    dynamics, noise = jnp.array([[1.0, 0.1], [-0.1, 0.95]]), 0.2 * jnp.eye(2)
    seen = jnp.sin(jnp.arange(41.0) / 4)[:, None] + 0.1 * jax.random.normal(jax.random.key(0), (41, 1))
    times = jnp.arange(41)

    def states(weights, parallel=False):
        def moves(_):
            return dynamics, jnp.zeros(2), noise

        def seeing(t):
            return weights[None], jnp.zeros(1), 0.3 * jnp.eye(1), seen[t]

        forwards = kalman.build_filter(jnp.zeros(2), jnp.eye(2), moves, seeing)
        filtered = run_filter(forwards, times, forwards.init_prepare(), parallel=parallel)
        return filtered, run_smoother(kalman.build_smoother(moves), filtered, parallel=parallel)

    @jax.jit
    def step(weights):
        value, slope = jax.value_and_grad(lambda w: states(w)[0].log_normalizing_constant[-1] / 40)(weights)
        smoothed = states(weights, parallel=True)[1]
        return weights + 0.1 * slope, jnp.stack([value, smoothed.mean[:, 0].std(), smoothed.mean[20, 1]])

    return step, jnp.array([0.5, 0.2])


TOLERANCE = 1e-3
