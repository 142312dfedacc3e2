"""The logistic distribution."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import logit
from catena.scipy.stats.methods import distribution, logistic_share
from catena.typing import ArrayLike

_method = distribution("logistic", loc="the mean.", x="where to evaluate; of ``ppf`` and ``isf``: probabilities.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the logistic distribution.

    >>> from catena.scipy.stats import logistic
    >>> logistic.logpdf(0.0).item()
    -1.38629
    """
    size = jnp.abs((x - loc) / scale)
    return -size - 2 * jnp.log1p(jnp.exp(-size)) - jnp.log(scale)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the logistic distribution.

    >>> from catena.scipy.stats import logistic
    >>> logistic.pdf(0.0).item()
    0.25
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the logistic distribution.

    >>> from catena.scipy.stats import logistic
    >>> logistic.cdf(1.0).item()
    0.731059
    """
    return logistic_share((x - loc) / scale)


@_method
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the logistic distribution.

    >>> from catena.scipy.stats import logistic
    >>> logistic.sf(1.0).item()
    0.268941
    """
    return logistic_share((loc - x) / scale)


@_method
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the logistic distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import logistic
    >>> logistic.ppf(0.75).item()
    1.09861
    """
    return loc + scale * logit(x)


@_method
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The inverse of ``sf``, precise for small probabilities.

    >>> from catena.scipy.stats import logistic
    >>> logistic.isf(0.25).item()
    1.09861
    """
    return loc - scale * logit(x)
