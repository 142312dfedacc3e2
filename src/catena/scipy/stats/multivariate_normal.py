"""The normal distribution of vectors."""

from __future__ import annotations

import math

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.documentation import family
from catena.numpy.promotion import promote_dtypes_inexact
from catena.scipy.stats.methods import unless
from catena.typing import ArrayLike

_LOG_TAU = math.log(2 * math.pi)

_explained = family(
    x="where to evaluate, ``(..., n)``.",
    mean="the mean, ``(..., n)``; where it is a scalar, the normal distribution of each number in ``x`` is meant.",
    cov="""the covariance, ``(..., n, n)``, of which the symmetric part counts; a scalar for that times the
identity.""",
    returns="An array of shape ``(...)``, to which the axes of all before the last ones broadcast.",
    raises="""TypeError: an argument is neither an array nor a scalar, or the shapes do not broadcast.
  ValueError: ``cov`` is no stack of matrices whose size is that of the mean.""",
)


@whole
@_explained
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None) -> Array:
    """The logarithm of the density of a normal distribution of vectors.

    Arguments:
      allow_singular: whether ``cov`` may lack directions: the density is then that among the vectors which differ
        from the mean by what it has, and 0 elsewhere. Otherwise a matrix that is not positive definite gives NaN.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import multivariate_normal
    >>> multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.array([[2.0, 1.0], [1.0, 2.0]])).item()
    -2.38718
    """
    x, mean, cov = promote_dtypes_inexact("multivariate_normal.logpdf", x, mean, cov)
    if not mean.ndim:
        return -0.5 * (jnp.square(x - mean) / cov + _LOG_TAU + jnp.log(cov))
    n, deviation = mean.shape[-1], x - mean
    if not cov.ndim:
        distance = jnp.einsum("...i,...i->...", deviation, deviation) / cov
        return -0.5 * (distance + n * (_LOG_TAU + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal.logpdf: cov must have a shape (..., {n}, {n}), got {cov.shape}")
    if allow_singular:
        return _logpdf_of_singular(deviation, cov)
    root = lax.linalg.cholesky(cov)
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
    distance = jnp.sum(jnp.square(_whitened(deviation, root)), axis=-1)
    return -0.5 * (distance + n * _LOG_TAU) - half_log_det


def _whitened(deviation, root):
    """The vectors ``v`` for which ``root v`` is the deviation; under one matrix, many of them by its inverse, since a
    product of matrices takes a tenth of the time of a solution.
    """
    n = root.shape[-1]
    if root.ndim == 2 and deviation.size >= n * n:
        inverse = lax.linalg.triangular_solve(root, jnp.eye(n, dtype=root.dtype), left_side=True, lower=True)
        return deviation @ inverse.T
    batch = jnp.broadcast_shapes(deviation.shape[:-1], root.shape[:-2])
    rows = jnp.broadcast_to(deviation, (*batch, n))[..., None]
    return lax.linalg.triangular_solve(jnp.broadcast_to(root, (*batch, n, n)), rows, left_side=True, lower=True)[..., 0]


def _logpdf_of_singular(deviation, cov):
    """By eigenvalues: what is a rounding error beside the largest is a direction that the distribution lacks."""
    values, vectors = lax.linalg.eigh((cov + jnp.swapaxes(cov, -1, -2)) / 2)[::-1]
    least = jnp.max(jnp.abs(values), axis=-1, keepdims=True) * _rounding(cov.dtype)
    there = values > least
    safe = jnp.where(there, values, 1)
    parts = jnp.einsum("...ij,...i->...j", vectors, deviation)
    terms = jnp.where(there, jnp.square(parts) / safe + jnp.log(safe) + _LOG_TAU, 0)
    strays = jnp.sum(jnp.where(there, 0, jnp.square(parts)), axis=-1)
    reached = jnp.sum(jnp.square(deviation), axis=-1) * _rounding(cov.dtype)
    density = -0.5 * jnp.sum(terms, axis=-1)
    indefinite = jnp.any(values < -least, axis=-1)
    return unless(indefinite, unless(strays > reached, density, -jnp.inf), jnp.nan)


def _rounding(dtype) -> float:
    return 1e3 * float(dtypes.finfo(dtype).eps)


@whole
@_explained
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """The density of a normal distribution of vectors.

    >>> import catena.numpy as jnp
    >>> from catena.scipy.stats import multivariate_normal
    >>> multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.array([[2.0, 1.0], [1.0, 2.0]])).item()
    0.0918882
    """
    return jnp.exp(logpdf(x, mean, cov))
