"""The distribution of von Mises: a normal one wrapped around a circle, nearly."""

from __future__ import annotations

import math

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import i0e
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("vonmises", kappa="the concentration, positive.")


@_method
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The logarithm of the density of the distribution of von Mises.

    >>> from catena.scipy.stats import vonmises
    >>> vonmises.logpdf(0.0, 1.0).item()
    -1.07379
    """
    density = -2 * kappa * jnp.square(jnp.sin(x / 2)) - jnp.log(2 * math.pi * i0e(kappa))
    return unless(kappa <= 0, density, jnp.nan)


@_method
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """The density of the distribution of von Mises.

    >>> from catena.scipy.stats import vonmises
    >>> vonmises.pdf(0.0, 1.0).item()
    0.34171
    """
    return jnp.exp(logpdf(x, kappa))
