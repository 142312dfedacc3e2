"""Transforms of functions on the sphere, forth and back."""

import jax
import jax.numpy as jnp
import numpy as np
import s2fft


def example():
    bandlimit = 32
    coefficients = s2fft.utils.signal_generator.generate_flm(np.random.default_rng(0), bandlimit)

    @jax.jit
    def step(flm):
        f = s2fft.inverse_jax(flm, bandlimit)
        return s2fft.forward_jax(f, bandlimit), jnp.stack([f.real, f.imag])

    return step, jnp.asarray(coefficients)


TOLERANCE = 1e-3  # in single precision, forth and back ten times
