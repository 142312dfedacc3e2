"""Adaptive quadrature of integrals with a parameter, and their derivatives by it."""

import jax
import jax.numpy as jnp
from quadax import quadcc, quadgk, quadts


def example():
    def gamma(a, method):
        value, _ = method(lambda t: t ** (a - 1) * jnp.exp(-t), jnp.array([0.0, jnp.inf]), epsabs=1e-5, epsrel=1e-5)
        return value

    def wave(a, method):
        value, _ = method(lambda t: jnp.cos(a * t) / (1 + t**2), jnp.array([0.0, 1.0, 4.0]), epsabs=1e-5, epsrel=1e-5)
        return value

    @jax.jit
    def step(a):
        found = [jax.value_and_grad(lambda a: wave(a, method))(a) for method in (quadgk, quadcc, quadts)]  # noqa: B023
        found.append(jax.value_and_grad(lambda a: gamma(a, quadgk))(1.0 + a))
        return a + 0.1, jnp.array(found).ravel()

    return step, jnp.float32(1.3)


TOLERANCE = 1e-3  # what the integrals are asked for
