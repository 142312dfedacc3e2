"""The negative binomial distribution: how many failures come before success number ``n``."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import betaln, xlog1py, xlogy
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("nbinom", n="the number of successes, positive.", p="the probability of success in each trial.")


@_method
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the negative binomial distribution.

    >>> from catena.scipy.stats import nbinom
    >>> nbinom.logpmf(2, 3, 0.5).item()
    -1.67398
    """
    k = k - loc
    outside = k < 0
    k = jnp.where(outside, 0, k)  # functions of negative numbers cost many times as much, for nothing
    ways = -jnp.log(k + n) - betaln(k + 1, n)
    return unless(outside, ways + xlogy(n, p) + xlog1py(k, -p), -jnp.inf)


@_method
def pmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the negative binomial distribution.

    >>> from catena.scipy.stats import nbinom
    >>> nbinom.pmf(2, 3, 0.5).item()
    0.1875
    """
    return jnp.exp(logpmf(k, n, p, loc))
