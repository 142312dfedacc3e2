"""The Dirichlet distribution: of probabilities that add up to 1."""

from __future__ import annotations

from catena import numpy as jnp
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.documentation import family
from catena.numpy.promotion import promote_dtypes_inexact
from catena.scipy.special import gammaln, xlogy
from catena.scipy.stats.methods import unless
from catena.typing import ArrayLike

_TOLERANCE = 1e-6  # of the sum of probabilities

_explained = family(
    x="the probabilities, ``(k, ...)``; or all but the last, ``(k - 1, ...)``, which the others leave.",
    alpha="the concentrations, positive, ``(k,)``.",
    returns="An array of shape ``(...)``.",
    raises="""TypeError: an argument is neither an array nor a scalar.
  ValueError: ``alpha`` does not have one axis, or the first axis of ``x`` does not fit it.""",
)


@whole
@_explained
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The logarithm of the density of the Dirichlet distribution; minus infinity where ``x`` does not add up to 1.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import dirichlet
    >>> dirichlet.logpdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 1.0])).item()
    -0.693147
    """
    x, alpha = promote_dtypes_inexact("dirichlet.logpdf", x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet.logpdf: alpha must have one axis, got the shape {alpha.shape}")
    k = alpha.shape[0]
    if not x.ndim or x.shape[0] not in (k, k - 1):
        raise ValueError(
            f"dirichlet.logpdf: the first axis of x must have the length of alpha, {k}, or one less, got the "
            f"shape {x.shape}"
        )
    if x.shape[0] != k:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    alpha = alpha.reshape(k, *[1] * (x.ndim - 1))
    density = gammaln(jnp.sum(alpha, axis=0)) + jnp.sum(xlogy(alpha - 1, x) - gammaln(alpha), axis=0)
    outside = jnp.any((x < 0) | (x > 1), axis=0) | (jnp.abs(jnp.sum(x, axis=0) - 1) > _TOLERANCE)
    return unless(outside, density, -jnp.inf)


@_explained
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """The density of the Dirichlet distribution; 0 where ``x`` does not add up to 1.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import dirichlet
    >>> dirichlet.pdf(jnp.array([0.25, 0.75]), jnp.array([2.0, 1.0])).item()
    0.5
    """
    return jnp.exp(logpdf(x, alpha))
