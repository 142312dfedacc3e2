"""The gamma distribution."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import gammainc, gammaincc
from catena.scipy.special.primitives import log_gamma_density_p, log_igamma_p, log_igammac_p
from catena.scipy.stats.methods import distribution, proper, unless
from catena.typing import ArrayLike

_method = distribution("gamma", a="the shape, positive.")


@_method
def logpdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the gamma distribution.

    >>> from catena.scipy.stats import gamma
    >>> gamma.logpdf(1.0, 2.0).item()
    -1.0
    """
    z = (x - loc) / scale
    none = z < 0
    return unless(none, log_gamma_density_p.bind(a - 1, jnp.where(none, 1, z)) - jnp.log(scale), -jnp.inf)


@_method
def pdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the gamma distribution.

    >>> from catena.scipy.stats import gamma
    >>> gamma.pdf(1.0, 2.0).item()
    0.367879
    """
    return jnp.exp(logpdf(x, a, loc, scale))


@_method
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the gamma distribution.

    >>> from catena.scipy.stats import gamma
    >>> gamma.cdf(1.0, 2.0).item()
    0.264241
    """
    z = (x - loc) / scale
    return unless(z <= 0, gammainc(a, jnp.where(z <= 0, 1, z)), proper(0, a))


@_method
def logcdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import gamma
    >>> gamma.logcdf(1.0, 2.0).item()
    -1.33089
    """
    z = (x - loc) / scale
    return unless(z <= 0, log_igamma_p.bind(a, jnp.where(z <= 0, 1, z)), proper(-jnp.inf, a))


@_method
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the gamma distribution.

    >>> from catena.scipy.stats import gamma
    >>> gamma.sf(1.0, 2.0).item()
    0.735759
    """
    z = (x - loc) / scale
    return unless(z <= 0, gammaincc(a, jnp.where(z <= 0, 1, z)), proper(1, a))


@_method
def logsf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import gamma
    >>> gamma.logsf(1.0, 2.0).item()
    -0.306853
    """
    z = (x - loc) / scale
    return unless(z <= 0, log_igammac_p.bind(a, jnp.where(z <= 0, 1, z)), proper(0, a))
