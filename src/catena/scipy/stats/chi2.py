"""The chi-squared distribution: sums of squares of normal numbers; a gamma distribution."""

from __future__ import annotations

from catena.core.array import Array
from catena.scipy.stats import gamma
from catena.scipy.stats.methods import distribution
from catena.typing import ArrayLike

_method = distribution("chi2", df="the degrees of freedom, positive.")


@_method
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density of the chi-squared distribution.

    >>> from catena.scipy.stats import chi2
    >>> chi2.logpdf(1.0, 2.0).item()
    -1.19315
    """
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


@_method
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density of the chi-squared distribution.

    >>> from catena.scipy.stats import chi2
    >>> chi2.pdf(1.0, 2.0).item()
    0.303265
    """
    return gamma.pdf(x, df / 2, loc, 2 * scale)


@_method
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is at most ``x`` under the chi-squared distribution.

    >>> from catena.scipy.stats import chi2
    >>> chi2.cdf(1.0, 2.0).item()
    0.393469
    """
    return gamma.cdf(x, df / 2, loc, 2 * scale)


@_method
def logcdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``cdf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import chi2
    >>> chi2.logcdf(1.0, 2.0).item()
    -0.932752
    """
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


@_method
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The probability of what is greater than ``x`` under the chi-squared distribution.

    >>> from catena.scipy.stats import chi2
    >>> chi2.sf(1.0, 2.0).item()
    0.606531
    """
    return gamma.sf(x, df / 2, loc, 2 * scale)


@_method
def logsf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of ``sf``, precise in both tails, also where the probability itself is zero.

    >>> from catena.scipy.stats import chi2
    >>> chi2.logsf(1.0, 2.0).item()
    -0.5
    """
    return gamma.logsf(x, df / 2, loc, 2 * scale)
