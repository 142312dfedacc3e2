"""The binomial distribution: how many of ``n`` coins show 1."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import betaln, xlog1py, xlogy
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("binom", n="the number of trials.", p="the probability of success in each.")


@_method
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the binomial distribution.

    >>> from catena.scipy.stats import binom
    >>> binom.logpmf(1, 3, 0.25).item()
    -0.863046
    """
    k = k - loc
    outside = (k < 0) | (k > n)
    k = jnp.where(outside, 0, k)  # functions of negative numbers cost many times as much, for nothing
    ways = -jnp.log1p(n) - betaln(k + 1, n - k + 1)
    return unless(outside, ways + xlogy(k, p) + xlog1py(n - k, -p), -jnp.inf)


@_method
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the binomial distribution.

    >>> from catena.scipy.stats import binom
    >>> binom.pmf(1, 3, 0.25).item()
    0.421875
    """
    return jnp.exp(logpmf(k, n, p, loc))
