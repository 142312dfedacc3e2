"""The Poisson distribution: how many of many rare things happen."""

from __future__ import annotations

import math

import numpy as np

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import gammaincc, xlogy
from catena.scipy.special.primitives import log_gamma_density_p
from catena.scipy.stats.methods import distribution, unless
from catena.transform.jit import jit
from catena.typing import ArrayLike

_LARGE = 100  # from where on the series in 1 / mu has all digits
_COUNTS = np.arange(250)  # beyond which a mean below that has nothing to add
_LOG_FACTORIALS = np.cumsum(np.log(np.maximum(_COUNTS, 1)))
_SERIES = (-1 / 12, -1 / 24, -19 / 360, -9 / 80, -863 / 2520, -1375 / 1008, -33953 / 5040)

_method = distribution("poisson", mu="the mean, nonnegative.")


@_method
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the Poisson distribution.

    >>> from catena.scipy.stats import poisson
    >>> poisson.logpmf(2, 1.5).item()
    -1.38222
    """
    k = k - loc
    return unless((k < 0) | (k > jnp.floor(k)), log_gamma_density_p.bind(k, mu), -jnp.inf)


@_method
def pmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the Poisson distribution.

    >>> from catena.scipy.stats import poisson
    >>> poisson.pmf(2, 1.5).item()
    0.251021
    """
    return jnp.exp(logpmf(k, mu, loc))


@_method
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probability of what is at most ``k`` under the Poisson distribution.

    >>> from catena.scipy.stats import poisson
    >>> poisson.cdf(2, 1.5).item()
    0.808847
    """
    k = jnp.floor(k - loc)
    return unless(k < 0, gammaincc(jnp.maximum(k, 0) + 1, mu), 0)


@_method
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The entropy of the Poisson distribution, in nats; ``loc`` does not change it.

    Source: the sum of its definition; for great means the series of Evans, Boersma, Blachman and Jagers, "The
    entropy of a Poisson distribution" (1988).

    >>> from catena.scipy.stats import poisson
    >>> poisson.entropy(1.5).item()
    1.5394
    """
    return _entropy(jnp.broadcast_to(mu, jnp.broadcast_shapes(mu.shape, loc.shape)))


@jit
def _entropy(mu):
    small = unless(mu > _LARGE, mu, 1)
    logs = xlogy(_COUNTS, small[..., None]) - _LOG_FACTORIALS - small[..., None]
    summed = -jnp.sum(jnp.exp(logs) * jnp.maximum(logs, -1e4), axis=-1)
    large = jnp.maximum(mu, _LARGE)
    series = 0.5 * (math.log(2 * math.pi) + 1 + jnp.log(large)) + jnp.polyval(np.array([*_SERIES[::-1], 0]), 1 / large)
    return unless(mu < 0, jnp.where(mu > _LARGE, series, summed), jnp.nan).astype(mu.dtype)
