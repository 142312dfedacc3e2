"""The Pareto distribution: the tail is a power."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.stats.methods import distribution, log1mexp, one_minus_exp, quantile, unless
from catena.typing import ArrayLike


def _from_one(z):
    return unless(z < 1, z, 1)


_method = distribution(
    "pareto",
    b="the power, positive.",
    loc="by how much the distribution is shifted.",
    scale="where it begins, less ``loc``; positive.",
)


@_method
def logpdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the Pareto distribution.

    >>> from catena.scipy.stats import pareto
    >>> pareto.logpdf(2.0, 1.0).item()
    -1.38629
    """
    z = (x - loc) / scale
    return unless(z < 1, jnp.log(b / scale) - (b + 1) * jnp.log(_from_one(z)), -jnp.inf)


@_method
def pdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the Pareto distribution.

    >>> from catena.scipy.stats import pareto
    >>> pareto.pdf(2.0, 1.0).item()
    0.25
    """
    return jnp.exp(logpdf(x, b, loc, scale))


@_method
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the Pareto distribution.

    >>> from catena.scipy.stats import pareto
    >>> pareto.cdf(2.0, 1.0).item()
    0.5
    """
    return one_minus_exp(-logsf(x, b, loc, scale))


@_method
def logcdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails.

    >>> from catena.scipy.stats import pareto
    >>> pareto.logcdf(2.0, 1.0).item()
    -0.693147
    """
    return log1mexp(-logsf(x, b, loc, scale))


@_method
def sf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the Pareto distribution.

    >>> from catena.scipy.stats import pareto
    >>> pareto.sf(2.0, 1.0).item()
    0.5
    """
    return jnp.exp(logsf(x, b, loc, scale))


@_method
def logsf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails.

    >>> from catena.scipy.stats import pareto
    >>> pareto.logsf(2.0, 1.0).item()
    -0.693147
    """
    return -b * jnp.log(_from_one((x - loc) / scale))


@_method
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the Pareto distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import pareto
    >>> pareto.ppf(0.5, 1.0).item()
    2.0
    """
    return loc + scale * quantile(q, jnp.exp(-jnp.log1p(-q) / b))
