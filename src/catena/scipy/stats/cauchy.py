"""The Cauchy distribution: what a light that turns throws on a line."""

from __future__ import annotations

import math

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution, log1p_square, log_probability, quantile
from catena.typing import ArrayLike

_method = distribution("cauchy", loc="the median.", scale="half the width at half height, positive.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Cauchy distribution.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.logpdf(0.0).item()
    -1.14473
    """
    return -math.log(math.pi) - jnp.log(scale) - log1p_square((x - loc) / scale)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Cauchy distribution.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.pdf(0.0).item()
    0.31831
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the Cauchy distribution.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.cdf(-1e10).item()
    3.1831e-11
    """
    return jnp.arctan2(jnp.ones_like(x), (loc - x) / scale) / math.pi


@_method
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.logcdf(-1e10).item()
    -24.1706
    """
    return log_probability(cdf(x, loc, scale), sf(x, loc, scale))


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the Cauchy distribution.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.sf(1e10).item()
    3.1831e-11
    """
    return jnp.arctan2(jnp.ones_like(x), (x - loc) / scale) / math.pi


@_method
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.logsf(1e10).item()
    -24.1706
    """
    return log_probability(sf(x, loc, scale), cdf(x, loc, scale))


@_method
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Cauchy distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.ppf(0.75).item()
    1.0
    """
    near = jnp.abs(q - 0.5) < 0.25  # of the median, where the tangent is precise; its inverse is so in the tails
    center = jnp.tan(math.pi * (jnp.where(near, q, 0.5) - 0.5))
    tail = 1 / jnp.tan(math.pi * jnp.where(near, 0.25, jnp.minimum(q, 1 - q)))
    return loc + scale * quantile(q, jnp.where(near, center, jnp.where(q < 0.5, -tail, tail)))


@_method
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of ``sf``, precise for small probabilities.

    >>> from catena.scipy.stats import cauchy
    >>> cauchy.isf(0.25).item()
    1.0
    """
    return 2 * loc - ppf(q, loc, scale)
