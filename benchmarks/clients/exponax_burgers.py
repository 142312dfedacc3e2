"""Exponential time differencing on a periodic grid: Burgers in one dimension, vorticity in two, and a gradient."""

import exponax as ex
import jax
import jax.numpy as jnp


def example():
    burgers = ex.stepper.Burgers(1, 2.0, 128, 0.01, diffusivity=0.02)
    vorticity = ex.stepper.NavierStokesVorticity(2, 1.0, 32, 0.01, diffusivity=0.01)
    roll = ex.rollout(burgers, 10)
    wave = jnp.sin(jnp.pi * ex.make_grid(1, 2.0, 128))
    swirl = ex.ic.RandomTruncatedFourierSeries(2, cutoff=4)(32, key=jax.random.key(0))

    def energy(u):
        return jnp.mean(roll(u)[-1] ** 2)

    @jax.jit
    def step(state):
        u, omega = state
        value, slope = jax.value_and_grad(energy)(u)
        omega = vorticity(omega)
        rate = ex.derivative(u, 2.0)
        return (burgers(u) - slope, omega), jnp.stack([value, jnp.mean(omega**2), jnp.mean(rate**2)])

    return step, (wave, swirl)
