"""The uniform distribution."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.numpy.boundary import strong
from catena.scipy.stats.methods import distribution, quantile, unless
from catena.typing import ArrayLike

_method = distribution("uniform", loc="where it begins.", scale="its length, positive.")


@_method
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the uniform distribution.

    >>> from catena.scipy.stats import uniform
    >>> uniform.logpdf(0.5, 0.0, 2.0).item()
    -0.693147
    """
    inside = unless((x < loc) | (x > loc + scale), -jnp.log(scale), -jnp.inf)
    return unless(x != x, inside, jnp.nan)


@_method
def pdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the uniform distribution.

    >>> from catena.scipy.stats import uniform
    >>> uniform.pdf(0.5, 0.0, 2.0).item()
    0.5
    """
    return jnp.exp(logpdf(x, loc, scale))


@_method
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the uniform distribution.

    >>> from catena.scipy.stats import uniform
    >>> uniform.cdf(0.5, 0.0, 2.0).item()
    0.25
    """
    return strong(jnp.clip((x - loc) / scale, 0, 1))


@_method
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The quantiles of the uniform distribution: the inverse of ``cdf``.

    >>> from catena.scipy.stats import uniform
    >>> uniform.ppf(0.25, 0.0, 2.0).item()
    0.5
    """
    return loc + scale * quantile(q, q)
