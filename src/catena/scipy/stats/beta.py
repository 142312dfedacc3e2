"""The beta distribution."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import betainc, betaln, xlog1py, xlogy
from catena.scipy.special.primitives import betaincc_p, log_betainc_p, log_betaincc_p
from catena.scipy.stats.methods import distribution, proper, unless
from catena.typing import ArrayLike


def _share(a, b, z):
    """The regularized incomplete beta function, 0 below 0 and 1 beyond 1, where it has no slope."""
    return _inside(betainc, a, b, z, z >= 1)


def _inside(function, a, b, z, elsewhere):
    """``function(a, b, z)`` between 0 and 1, ``elsewhere`` beyond."""
    outside = (z <= 0) | (z >= 1)
    return unless(outside, function(a, b, jnp.where(outside, 0.5, z)), proper(elsewhere, a, b))


_method = distribution("beta", a="the first shape, positive.", b="the second shape, positive.")


@_method
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the beta distribution.

    >>> from catena.scipy.stats import beta
    >>> beta.logpdf(0.5, 2.0, 3.0).item()
    0.405465
    """
    z = (x - loc) / scale
    outside = (z < 0) | (z > 1)
    z = jnp.where(outside, 0.5, z)  # so that no slope is NaN there
    density = xlogy(a - 1, z) + xlog1py(b - 1, -z) - betaln(a, b) - jnp.log(scale)
    return unless((a <= 0) | (b <= 0), unless(outside, density, -jnp.inf), jnp.nan)


@_method
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the beta distribution.

    >>> from catena.scipy.stats import beta
    >>> beta.pdf(0.5, 2.0, 3.0).item()
    1.5
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@_method
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the beta distribution.

    >>> from catena.scipy.stats import beta
    >>> beta.cdf(0.5, 2.0, 3.0).item()
    0.6875
    """
    return _share(a, b, (x - loc) / scale)


@_method
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import beta
    >>> beta.logcdf(0.5, 2.0, 3.0).item()
    -0.374693
    """
    z = (x - loc) / scale
    return _inside(log_betainc_p.bind, a, b, z, jnp.where(z >= 1, 0, -jnp.inf))


@_method
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the beta distribution.

    >>> from catena.scipy.stats import beta
    >>> beta.sf(0.5, 2.0, 3.0).item()
    0.3125
    """
    z = (x - loc) / scale
    return _inside(betaincc_p.bind, a, b, z, z <= 0)


@_method
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import beta
    >>> beta.logsf(0.5, 2.0, 3.0).item()
    -1.16315
    """
    z = (x - loc) / scale
    return _inside(log_betaincc_p.bind, a, b, z, jnp.where(z >= 1, -jnp.inf, 0))
