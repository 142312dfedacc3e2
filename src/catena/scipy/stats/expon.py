"""The exponential distribution: how long until what may happen at any moment."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution, log1mexp, one_minus_exp, quantile, unless
from catena.typing import ArrayLike

_method = distribution("expon", loc="where it begins.", scale="the mean beyond that, positive.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the exponential distribution.

    >>> from catena.scipy.stats import expon
    >>> expon.logpdf(1.0).item()
    -1.0
    """
    z = (x - loc) / scale
    return unless(z < 0, -z - jnp.log(scale), -jnp.inf)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the exponential distribution.

    >>> from catena.scipy.stats import expon
    >>> expon.pdf(1.0).item()
    0.367879
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the exponential distribution.

    >>> from catena.scipy.stats import expon
    >>> expon.cdf(1.0).item()
    0.632121
    """
    return one_minus_exp(-logsf(x, loc, scale))


@_method
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import expon
    >>> expon.logcdf(1e-10).item()
    -23.0259
    """
    return log1mexp(-logsf(x, loc, scale))


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the exponential distribution.

    >>> from catena.scipy.stats import expon
    >>> expon.sf(1.0).item()
    0.367879
    """
    return jnp.exp(logsf(x, loc, scale))


@_method
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import expon
    >>> expon.logsf(1.0).item()
    -1.0
    """
    z = (x - loc) / scale
    return unless(z < 0, -z, 0)


@_method
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the exponential distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import expon
    >>> expon.ppf(0.5).item()
    0.693147
    """
    return loc - scale * quantile(q, jnp.log1p(-q))
