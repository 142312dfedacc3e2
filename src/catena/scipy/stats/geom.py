"""The geometric distribution: at which trial the first success comes."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import xlog1py
from catena.scipy.stats.methods import distribution, unless
from catena.typing import ArrayLike

_method = distribution("geom", p="the probability of success in each trial.")


@_method
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The logarithms of the probabilities of counts under the geometric distribution.

    >>> from catena.scipy.stats import geom
    >>> geom.logpmf(2, 0.25).item()
    -1.67398
    """
    k = k - loc
    return unless(k <= 0, xlog1py(k - 1, -p) + jnp.log(p), -jnp.inf)


@_method
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """The probabilities of counts under the geometric distribution.

    >>> from catena.scipy.stats import geom
    >>> geom.pmf(2, 0.25).item()
    0.1875
    """
    return jnp.exp(logpmf(k, p, loc))
