"""The hyperparameters of a Gaussian process, trained; its conditional; and a quasiseparable one on a long series."""

import jax
import jax.numpy as jnp
import optax
import tinygp
from tinygp import GaussianProcess, kernels


def example():
    x = jnp.sort(jax.random.uniform(jax.random.key(0), (80,), maxval=10.0))
    y = jnp.sin(x) + 0.1 * jax.random.normal(jax.random.key(1), (80,))
    grid = jnp.linspace(0.0, 10.0, 40)
    optimizer = optax.adam(0.05)

    def process(p):
        kernel = jnp.exp(p["height"]) * kernels.ExpSquared(jnp.exp(p["length"])) + kernels.Matern32(2.0)
        return GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]), mean=p["mean"])

    def series(p):
        kernel = tinygp.kernels.quasisep.SHO(omega=jnp.exp(p["length"]), quality=2.0, sigma=jnp.exp(p["height"]))
        return GaussianProcess(kernel, x, diag=jnp.exp(p["noise"]))

    @jax.jit
    def step(state):
        p, memory = state

        def loss(p):
            return -process(p).log_probability(y) - series(p).log_probability(y)

        value, gradients = jax.value_and_grad(loss)(p)
        updates, memory = optimizer.update(gradients, memory)
        p = optax.apply_updates(p, updates)
        return (p, memory), jnp.append(process(p).condition(y, grid).gp.mean, value / 100)

    p = {name: jnp.array(start) for name, start in (("height", 0.0), ("length", 0.0), ("noise", -2.0), ("mean", 0.0))}
    return step, (p, optimizer.init(p))


TOLERANCE = 1e-3  # the matrices are close to singular
