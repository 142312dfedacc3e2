"""The Gumbel distribution of the least of many: the other one, mirrored."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats import gumbel_r
from catena.scipy.stats.methods import distribution
from catena.typing import ArrayLike

_method = distribution("gumbel_l", loc="the mode.", p="probabilities; beyond [0, 1] the result is NaN.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Gumbel distribution of least values.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.logpdf(0.0).item()
    -1.0
    """
    return gumbel_r.logpdf(-x, -loc, scale)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Gumbel distribution of least values.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.pdf(0.0).item()
    0.367879
    """
    return gumbel_r.pdf(-x, -loc, scale)


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the Gumbel distribution of least values.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.cdf(0.0).item()
    0.632121
    """
    return gumbel_r.sf(-x, -loc, scale)


@_method
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.logcdf(-1000.0).item()
    -1000.0
    """
    return gumbel_r.logsf(-x, -loc, scale)


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the Gumbel distribution of least values.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.sf(0.0).item()
    0.367879
    """
    return gumbel_r.cdf(-x, -loc, scale)


@_method
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.logsf(0.0).item()
    -1.0
    """
    return gumbel_r.logcdf(-x, -loc, scale)


@_method
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Gumbel distribution of least values: the inverse of ``cdf``.

    >>> from catena.scipy.stats import gumbel_l
    >>> gumbel_l.ppf(0.5).item()
    -0.366513
    """
    return loc + scale * jnp.log(-jnp.log1p(-p))
