"""The Bernoulli distribution: one toss of a coin."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import xlog1py, xlogy
from catena.scipy.stats.methods import distribution, quantile, unless
from catena.typing import ArrayLike

_method = distribution("bernoulli", p="the probability of 1.")


@_method
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the Bernoulli distribution.

    >>> from catena.scipy.stats import bernoulli
    >>> bernoulli.logpmf(1, 0.25).item()
    -1.38629
    """
    k = k - loc
    return unless((k < 0) | (k > 1), xlogy(k, p) + xlog1py(1 - k, -p), -jnp.inf)


@_method
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the Bernoulli distribution.

    >>> from catena.scipy.stats import bernoulli
    >>> bernoulli.pmf(1, 0.25).item()
    0.25
    """
    return jnp.exp(logpmf(k, p, loc))


@_method
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """The probability of what is at most ``k`` under the Bernoulli distribution.

    >>> from catena.scipy.stats import bernoulli
    >>> bernoulli.cdf(0, 0.25).item()
    0.75
    """
    unknown = (k != k) | (p < 0) | (p > 1) | (p != p)
    return unless(unknown, jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1)), jnp.nan)


@_method
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """The quantiles of the Bernoulli distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import bernoulli
    >>> bernoulli.ppf(0.9, 0.25).item()
    1.0
    """
    return quantile(p, quantile(q, jnp.where(q <= 1 - p, jnp.zeros_like(q), 1)))
