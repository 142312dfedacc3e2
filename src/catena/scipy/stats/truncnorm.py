"""The normal distribution within bounds."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import log_ndtr, ndtr
from catena.scipy.stats import norm
from catena.scipy.stats.methods import distribution, log1mexp, unless
from catena.typing import ArrayLike


def _log_mass(a, b):
    """The logarithm of what the normal distribution has between bounds, taken in the tail where they both lie."""
    mirrored = a > 0
    low, high = jnp.where(mirrored, -b, a), jnp.where(mirrored, -a, b)
    astride = high > 0
    rest = ndtr(jnp.where(astride, low, -1)) + ndtr(-jnp.where(astride, high, 1))
    below = log_ndtr(high)
    return jnp.where(astride, jnp.log1p(-rest), below + log1mexp(below - log_ndtr(low)))


def _between(a, b):
    """A number between bounds, of which either may be infinite."""
    low = jnp.where(jnp.isinf(a), jnp.minimum(b, 0) - 1, a)
    return (low + jnp.where(jnp.isinf(b), jnp.maximum(a, 0) + 1, b)) / 2


def _log_shares(x, a, b, loc, scale) -> tuple:
    """The logarithms of what lies below ``x``, and above: near 0 each by the other, which has the digits."""
    z = (x - loc) / scale
    low, high = z <= a, z >= b
    inside = jnp.where(low | high, _between(a, b), z)
    whole = _log_mass(a, b)
    below = unless(low, unless(high, _log_mass(a, inside) - whole, 0), -jnp.inf)
    above = unless(high, unless(low, _log_mass(inside, b) - whole, 0), -jnp.inf)
    below, above = [
        jnp.where(own > -0.1, log1mexp(-jnp.where(own > -0.1, other, -1)), own)
        for own, other in ((below, above), (above, below))
    ]
    return [unless(a >= b, share, jnp.nan) for share in (below, above)]


_method = distribution(
    "truncnorm",
    a="the lower bound, in standard deviations from ``loc``.",
    b="the upper bound, in standard deviations from ``loc``.",
    loc="the mean of the distribution without bounds.",
    scale="its standard deviation, positive.",
)


@_method
def logpdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the truncated normal distribution.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.logpdf(0.0, -1.0, 1.0).item()
    -0.537223
    """
    z = (x - loc) / scale
    return unless(a >= b, unless((z < a) | (z > b), norm.logpdf(x, loc, scale) - _log_mass(a, b), -jnp.inf), jnp.nan)


@_method
def pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the truncated normal distribution.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.pdf(0.0, -1.0, 1.0).item()
    0.584369
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


@_method
def cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the truncated normal distribution.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.cdf(0.0, -1.0, 2.0).item()
    0.416989
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))


@_method
def logcdf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.logcdf(0.0, -1.0, 2.0).item()
    -0.874696
    """
    return _log_shares(x, a, b, loc, scale)[0]


@_method
def sf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the truncated normal distribution.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.sf(0.0, -1.0, 2.0).item()
    0.583011
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


@_method
def logsf(x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import truncnorm
    >>> truncnorm.logsf(0.0, -1.0, 2.0).item()
    -0.539549
    """
    return _log_shares(x, a, b, loc, scale)[1]
