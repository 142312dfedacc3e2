"""The generalised normal distribution: of the exponential of a power."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import gammaincc, gammaln
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("gennorm", beta="the power, positive: 1 for the Laplace, 2 for a normal distribution.")


@_method
def logpdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The logarithm of the density of the generalised normal distribution.

    >>> from catena.scipy.stats import gennorm
    >>> gennorm.logpdf(0.0, 1.0).item()
    -0.693147
    """
    return jnp.log(beta / 2) - gammaln(1 / beta) - jnp.abs(x) ** beta


@_method
def pdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The density of the generalised normal distribution.

    >>> from catena.scipy.stats import gennorm
    >>> gennorm.pdf(0.0, 1.0).item()
    0.5
    """
    return jnp.exp(logpdf(x, beta))


@_method
def cdf(x: ArrayLike, beta: ArrayLike) -> Array:
    """The probability of what is at most ``x`` under the generalised normal distribution.

    >>> from catena.scipy.stats import gennorm
    >>> gennorm.cdf(-1.0, 1.0).item()
    0.18394
    """
    peak = x == 0  # where the power of the tail has no slope, but the distribution has
    tail = gammaincc(1 / beta, jnp.abs(jnp.where(peak, 1, x)) ** beta) / 2
    share = unless(peak, jnp.where(x > 0, 1 - tail, tail), 0.5 + x * pdf(0, beta))
    return unless(beta <= 0, share, jnp.nan)
