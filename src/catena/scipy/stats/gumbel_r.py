"""The Gumbel distribution: of the greatest of many."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution, log1mexp, one_minus_exp, unless
from catena.typing import ArrayLike

_method = distribution("gumbel_r", loc="the mode.")
FIRST = -8.0  # below, in scales from the mode, probabilities and densities are zero in all dtypes, and so their slopes


def _from_first(x, loc, scale):
    """The distance from the mode in scales, but where all is zero the least: exp(-z) and its slope may be infinite."""
    return jnp.maximum((x - loc) / scale, FIRST)


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Gumbel distribution of greatest values.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.logpdf(0.0).item()
    -1.0
    """
    z = (x - loc) / scale
    return unless(z == -jnp.inf, -z - jnp.exp(-z) - jnp.log(scale), -jnp.inf)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Gumbel distribution of greatest values.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.pdf(0.0).item()
    0.367879
    """
    z = _from_first(x, loc, scale)
    return jnp.exp(-z - jnp.exp(-z) - jnp.log(scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the Gumbel distribution of greatest values.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.cdf(0.0).item()
    0.367879
    """
    return jnp.exp(-jnp.exp(-_from_first(x, loc, scale)))


@_method
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.logcdf(0.0).item()
    -1.0
    """
    return -jnp.exp((loc - x) / scale)


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the Gumbel distribution of greatest values.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.sf(40.0).item()
    4.24835e-18
    """
    return one_minus_exp(jnp.exp(-_from_first(x, loc, scale)))


@_method
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.logsf(1000.0).item()
    -1000.0
    """
    z = _from_first(x, loc, scale)
    far = z > 16  # where the first term of the logarithm's series is all that counts
    return jnp.where(far, -z - jnp.exp(-z) / 2, log1mexp(jnp.exp(-jnp.where(far, 0, z))))


@_method
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Gumbel distribution of greatest values: the inverse of ``cdf``.

    >>> from catena.scipy.stats import gumbel_r
    >>> gumbel_r.ppf(0.5).item()
    0.366513
    """
    return loc - scale * jnp.log(-jnp.log(p))
