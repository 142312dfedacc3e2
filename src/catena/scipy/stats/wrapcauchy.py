"""The Cauchy distribution wrapped around a circle."""

from __future__ import annotations

import math

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("wrapcauchy", c="the concentration, between 0 and 1.")


@_method
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The logarithm of the density of the wrapped Cauchy distribution.

    >>> from catena.scipy.stats import wrapcauchy
    >>> wrapcauchy.logpdf(0.0, 0.5).item()
    -0.739265
    """
    chord = jnp.square(1 - c) + 4 * c * jnp.square(jnp.sin(x / 2))
    density = jnp.log1p(-c) + jnp.log1p(c) - jnp.log(2 * math.pi * chord)
    inside = unless((x < 0) | (x > 2 * math.pi), density, -jnp.inf)
    return unless((c <= 0) | (c >= 1), inside, jnp.nan)


@_method
def pdf(x: ArrayLike, c: ArrayLike) -> Array:
    """The density of the wrapped Cauchy distribution.

    >>> from catena.scipy.stats import wrapcauchy
    >>> wrapcauchy.pdf(0.0, 0.5).item()
    0.477465
    """
    return jnp.exp(logpdf(x, c))
