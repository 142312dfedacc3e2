"""Student's distribution: of the mean of few, over its estimated error."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.scipy.special import betaln
from catena.scipy.stats.methods import distribution, log1p_square
from catena.typing import ArrayLike

_method = distribution("t", df="the degrees of freedom, positive.")


@_method
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of Student's distribution.

    >>> from catena.scipy.stats import t
    >>> t.logpdf(0.0, 3.0).item()
    -1.00089
    """
    z = (x - loc) / scale
    peak = -betaln(df / 2, 0.5) - 0.5 * jnp.log(df) - jnp.log(scale)
    return peak - (df + 1) / 2 * log1p_square(z * (1 / jnp.sqrt(df)))


@_method
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of Student's distribution.

    >>> from catena.scipy.stats import t
    >>> t.pdf(0.0, 3.0).item()
    0.367553
    """
    return jnp.exp(logpdf(x, df, loc, scale))
