"""The normal distribution."""

from __future__ import annotations

import math

from catena import numpy as jnp
from catena.core.array import Array
from catena.numpy.boundary import like
from catena.scipy.special import log_ndtr, ndtr, ndtri
from catena.scipy.stats.methods import distribution
from catena.typing import ArrayLike

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)

_method = distribution("norm", loc="the mean.", scale="the standard deviation, positive.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the normal distribution; even in ``scale``, as users of JAX may rely on.

    >>> from catena.scipy.stats import norm
    >>> norm.logpdf(0.0).item()
    -0.918939
    """
    z = (x - loc) / scale
    return like(z, -0.5) * jnp.square(z) - jnp.log(jnp.abs(scale)) - _HALF_LOG_TAU


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the normal distribution: ``exp(-z**2 / 2) / (scale sqrt(2 pi))`` at ``z = (x - loc) / scale``.

    >>> from catena.scipy.stats import norm
    >>> norm.pdf(0.0).item()
    0.398942
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the normal distribution.

    >>> from catena.scipy.stats import norm
    >>> norm.cdf(1.0).item()
    0.841345
    """
    return ndtr((x - loc) / scale)


@_method
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise far out in the tail.

    >>> from catena.scipy.stats import norm
    >>> norm.logcdf(-30.0).item()
    -454.3212
    """
    return log_ndtr((x - loc) / scale)


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the normal distribution.

    >>> from catena.scipy.stats import norm
    >>> norm.sf(1.0).item()
    0.158655
    """
    return ndtr((loc - x) / scale)


@_method
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise far out in the tail.

    >>> from catena.scipy.stats import norm
    >>> norm.logsf(30.0).item()
    -454.3212
    """
    return log_ndtr((loc - x) / scale)


@_method
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the normal distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import norm
    >>> norm.ppf(0.975).item()
    1.959964
    """
    return loc + scale * ndtri(q)


@_method
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of ``sf``, precise for small probabilities.

    >>> from catena.scipy.stats import norm
    >>> norm.isf(0.025).item()
    1.959964
    """
    return loc - scale * ndtri(q)
