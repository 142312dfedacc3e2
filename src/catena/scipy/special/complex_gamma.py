"""The logarithm of the gamma function of complex numbers, from its parts."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.transform.custom_jvp import custom_jvp
from catena.transform.jit import jit

SHIFT = 10  # to the right, from where on Stirling's series serves
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
DERIVATIVE = tuple(-(2 * k + 1) * c for k, c in enumerate(STIRLING))


@custom_jvp
def complex_loggamma(z):
    """Its principal branch: Stirling's series after ten steps to the right, and reflection left of 0 (Hare 1997)."""
    return _loggamma(z)


@jit
def _loggamma(z):
    upper = jnp.where(jnp.imag(z) < 0, jnp.conj(z), z)
    left = jnp.real(z) < 0
    right = jnp.where(left, 1 - upper, upper)
    steps = sum(jnp.log(right + k) for k in range(SHIFT))
    far = right + SHIFT
    value = (far - 0.5) * jnp.log(far) - far + 0.5 * np.log(2 * np.pi) + _series(far, STIRLING) - steps
    # log sin(pi z) in the upper half plane: its exponential that shrinks is taken beside 1.
    turn = jnp.where(left, upper, 0.5)
    log_sine = jnp.pi * (jnp.imag(turn) + 1j * (0.5 - jnp.real(turn))) + jnp.log1p(-_turned(turn)) - np.log(2)
    value = jnp.where(left, np.log(np.pi) - log_sine - value, value).astype(z.dtype)
    return jnp.where(jnp.imag(z) < 0, jnp.conj(value), value)


def _turned(z):
    """exp(2 pi i z), from the fraction of its real part."""
    whole = jnp.round(jnp.real(z))
    return jnp.exp(2j * np.pi * (z - whole)).astype(z.dtype)


def _series(z, coefficients):
    inverse = 1 / z
    total, square = 0, inverse * inverse
    for c in reversed(coefficients):
        total = total * square + c
    return inverse * total


@jit
def _digamma(z):
    left = jnp.real(z) < 0
    right = jnp.where(left, 1 - z, z)
    far = right + SHIFT
    value = jnp.log(far) - 0.5 / far + _series(far, DERIVATIVE) / far - sum(1 / (right + k) for k in range(SHIFT))
    fraction = jnp.where(left, z - jnp.round(jnp.real(z)), 0.25)
    return jnp.where(left, value - np.pi / jnp.tan(np.pi * fraction), value).astype(z.dtype)


@complex_loggamma.defjvp
def _complex_loggamma_jvp(primals, tangents):
    (z,), (t,) = primals, tangents
    return complex_loggamma(z), lax.mul(t, _digamma(z))
