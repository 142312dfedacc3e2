"""The multinomial distribution: how many of ``n`` throws show each side of a die."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import array_arguments
from catena.numpy.documentation import family
from catena.numpy.promotion import promote_dtypes_inexact
from catena.scipy.special import gammaln, xlogy
from catena.scipy.stats.methods import unless
from catena.typing import ArrayLike

_explained = family(
    x="how often each outcome occurs: integers of shape ``(..., k)``.",
    n="the number of trials: integers of a shape that broadcasts with ``(...)``.",
    p="the probabilities of the outcomes, ``(..., k)``; their sum is not looked at.",
    returns="An array of shape ``(...)``; probability 0 where the counts do not add up to ``n``.",
    raises="""TypeError: an argument is neither an array nor a scalar.
  ValueError: ``x`` or ``n`` are no integers, or the shapes do not broadcast.""",
)


@whole
@_explained
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The logarithms of the probabilities of counts under the multinomial distribution.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import multinomial
    >>> multinomial.logpmf(jnp.array([1, 2, 1]), 4, jnp.array([0.25, 0.5, 0.25])).item()
    -1.67398
    """
    x, n, p = array_arguments("multinomial.logpmf", x, n, p)
    if not (dtypes.is_integer(x.dtype) and dtypes.is_integer(n.dtype)):
        found = " and ".join(dtypes.dtype_name(a.dtype) for a in (x, n))
        raise ValueError(f"multinomial.logpmf takes integers as x and n, got {found}")
    impossible = (jnp.sum(x, axis=-1) != n) | jnp.any(x < 0, axis=-1)
    (p,) = promote_dtypes_inexact("multinomial.logpmf", p)
    x, n = x.astype(p.dtype), n.astype(p.dtype)
    return unless(impossible, gammaln(n + 1) + jnp.sum(xlogy(x, p) - gammaln(x + 1), axis=-1), -jnp.inf)


@_explained
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The probabilities of counts under the multinomial distribution.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import multinomial
    >>> multinomial.pmf(jnp.array([1, 2, 1]), 4, jnp.array([0.25, 0.5, 0.25])).item()
    0.1875
    """
    return jnp.exp(logpmf(x, n, p))
