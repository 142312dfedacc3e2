"""The beta-binomial distribution: a binomial one whose probability has a beta distribution."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import betaln
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution(
    "betabinom",
    k="the counts at which to evaluate, rounded down.",
    n="the number of trials.",
    a="the first shape of the beta distribution, positive.",
    b="the second, positive.",
)


@_method
def logpmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the beta-binomial distribution.

    >>> from catena.scipy.stats import betabinom
    >>> betabinom.logpmf(1, 3, 2.0, 1.0).item()
    -1.60944
    """
    k = jnp.floor(k) - loc
    outside = (k < 0) | (k > n)
    k = jnp.where(outside, 0, k)  # functions of negative numbers cost many times as much, for nothing
    ways = -jnp.log1p(n) - betaln(k + 1, n - k + 1)
    inside = unless(outside, ways + betaln(k + a, n - k + b) - betaln(a, b), -jnp.inf)
    return unless((n < 0) | (a <= 0) | (b <= 0), inside, jnp.nan)


@_method
def pmf(k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the beta-binomial distribution.

    >>> from catena.scipy.stats import betabinom
    >>> betabinom.pmf(1, 3, 2.0, 1.0).item()
    0.2
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
