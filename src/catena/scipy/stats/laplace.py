"""The Laplace distribution: two exponential ones, back to back."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution
from catena.typing import ArrayLike

_method = distribution("laplace", loc="the mean.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Laplace distribution.

    >>> from catena.scipy.stats import laplace
    >>> laplace.logpdf(0.0).item()
    -0.693147
    """
    return -jnp.abs((x - loc) / scale) - jnp.log(2 * scale)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Laplace distribution.

    >>> from catena.scipy.stats import laplace
    >>> laplace.pdf(0.0).item()
    0.5
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the Laplace distribution.

    >>> from catena.scipy.stats import laplace
    >>> laplace.cdf(0.0).item()
    0.5
    """
    z = (x - loc) / scale
    tail = jnp.exp(-jnp.abs(z)) / 2
    return jnp.where(z >= 0, 1 - tail, tail)
