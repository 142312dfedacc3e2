"""Densities estimated from samples: a normal distribution around each, of a width that suits their number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from catena import lax, random
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.tree import register_pytree_node_class
from catena.numpy.boundary import as_array_argument
from catena.numpy.promotion import promote_dtypes_inexact
from catena.scipy.special import logsumexp, ndtr
from catena.transform.jit import jit
from catena.typing import ArrayLike

# The width of a kernel in standard deviations of the samples, by their effective number and their dimension.
_RULES = {
    "scott": lambda n, d: n ** (-1 / (d + 4)),
    "silverman": lambda n, d: (n * (d + 2) / 4) ** (-1 / (d + 4)),
}


@register_pytree_node_class
@dataclass(frozen=True, init=False, eq=False)
class gaussian_kde:  # noqa: N801
    """A density estimated from samples, by a normal distribution around each of them.

    Arguments:
      dataset: the samples, ``(n,)``, or ``(d, n)`` where they have ``d`` coordinates.
      bw_method: the width of the kernels, in standard deviations of the samples: ``"scott"``, which is the default,
        or ``"silverman"`` for these rules, a number, or a function of the estimate that returns one.
      weights: what each sample counts, ``(n,)``; by default all count alike.
    Returns:
      The estimate: a function of points, and a tree of its arrays ``neff`` (the effective number of samples),
      ``dataset``, ``weights``, ``covariance`` of a kernel and ``inv_cov``, which cannot be changed.
    Raises:
      TypeError: ``dataset`` is neither an array nor a scalar.
      ValueError: there are less than two samples, ``weights`` do not fit them, or ``bw_method`` is none of these.
      NotImplementedError: the samples are complex.

    Source: Scott, "Multivariate density estimation" (1992); Silverman, "Density estimation" (1986).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import stats
    >>> stats.gaussian_kde(jnp.array([0.0, 1.0, 1.5]))(jnp.array([1.0, 3.0]))
    Array([0.42979074, 0.01193819], dtype=float32)
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: None | str | ArrayLike | Callable[[Any], ArrayLike] = None,
        weights: ArrayLike | None = None,
    ):
        dataset, weights = _checked(dataset, weights)
        self._set(dataset=dataset, weights=weights, neff=1 / jnp.sum(jnp.square(weights)))
        spread = jnp.atleast_2d(jnp.cov(dataset, bias=False, aweights=weights))
        covariance = spread * jnp.square(self._factor(bw_method))
        self._set(covariance=covariance, inv_cov=jnp.linalg.inv(covariance))

    def _set(self, **fields):
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _factor(self, bw_method):
        if callable(bw_method):
            return bw_method(self)
        if bw_method is None or isinstance(bw_method, str) and bw_method in _RULES:
            return _RULES[bw_method or "scott"](self.neff, self.d)
        if not isinstance(bw_method, str | list | tuple) and np.ndim(bw_method) == 0:
            return bw_method
        raise ValueError(
            f"gaussian_kde: bw_method must be {', '.join(map(repr, _RULES))}, a number or a function, got {bw_method!r}"
        )

    @property
    def d(self) -> int:
        """The number of coordinates of a sample."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    # ---- values

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points.

        Arguments:
          points: ``(m,)`` or ``(d, m)``; a single point may be ``(d,)``.
        Returns:
          An array ``(m,)``.
        Raises:
          ValueError: the points do not have the dimension of the samples.
        """
        return _mixture(self._points("evaluate", points), self.dataset, self.weights, self.covariance)

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """``evaluate`` under the name that distributions have for it."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points, also where the density is too small for a float.

        Arguments:
          x: ``(m,)`` or ``(d, m)``; a single point may be ``(d,)``.
        Returns:
          An array ``(m,)``.
        Raises:
          ValueError: the points do not have the dimension of the samples.
        """
        return _log_mixture(self._points("logpdf", x), self.dataset, self.weights, self.covariance)

    def _points(self, name: str, points):
        points = jnp.atleast_2d(as_array_argument(f"gaussian_kde.{name}", points))
        if points.ndim > 2:
            raise ValueError(f"gaussian_kde.{name}: points must have one or two axes, got the shape {points.shape}")
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.reshape(self.d, 1)
        if points.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde.{name}: points have {points.shape[0]} coordinates, but the samples have {self.d}"
            )
        return promote_dtypes_inexact(name, points, self.dataset)[0]

    # ---- integrals

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times that of a normal distribution.

        Arguments:
          mean: its mean, ``(d,)``.
          cov: its covariance, ``(d, d)``.
        Returns:
          A scalar.
        Raises:
          ValueError: ``mean`` or ``cov`` does not have the dimension of the samples.
        """
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(f"integrate_gaussian: mean must have the shape ({self.d},), got {mean.shape}")
        if cov.shape != (self.d, self.d):
            raise ValueError(f"integrate_gaussian: cov must have the shape ({self.d}, {self.d}), got {cov.shape}")
        return _mixture(mean[:, None], self.dataset, self.weights, self.covariance + cov)[0]

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of an interval.

        Arguments:
          low, high: its ends, scalars.
        Returns:
          A scalar.
        Raises:
          ValueError: the samples have several coordinates, or a bound is no scalar.
        """
        if self.d != 1:
            raise ValueError(f"integrate_box_1d takes samples of one coordinate, these have {self.d}")
        if np.ndim(low) or np.ndim(high):
            raise ValueError(f"integrate_box_1d takes scalars, got the shapes {np.shape(low)} and {np.shape(high)}")

        def below(bound):
            """The share of each kernel; of all, where there is no bound, whatever the samples are."""
            bounded = jnp.isfinite(bound)
            distance = jnp.where(bounded, bound, 0) - self.dataset[0]
            return ndtr(jnp.where(bounded, distance / jnp.sqrt(self.covariance[0, 0]), bound))

        return jnp.sum(self.weights * (below(high) - below(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of this density with another.

        Arguments:
          other: an estimate of the same dimension.
        Returns:
          A scalar.
        Raises:
          ValueError: the dimensions differ.
        """
        if other.d != self.d:
            raise ValueError(f"integrate_kde: the samples have {self.d} coordinates, those of the other {other.d}")
        covariance = self.covariance + other.covariance
        return jnp.sum(other.weights * _mixture(other.dataset, self.dataset, self.weights, covariance))

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> Array:
        """Not there, as in JAX: the probability of a box in several dimensions has no formula.

        Raises:
          NotImplementedError: always; of an interval ``integrate_box_1d`` gives the probability.
        """
        raise NotImplementedError("gaussian_kde.integrate_box is not supported; integrate_box_1d takes an interval")

    def set_bandwidth(self, bw_method: None | str | ArrayLike | Callable[[Any], ArrayLike] = None):
        """Not there, as in JAX: an estimate does not change.

        Raises:
          NotImplementedError: always; a new ``gaussian_kde`` takes another ``bw_method``.
        """
        raise NotImplementedError("a gaussian_kde does not change: make another one with the bw_method that is wanted")

    # ---- samples

    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
        """Random points with this density.

        Arguments:
          key: a key, typed or raw.
          shape: of the points.
        Returns:
          An array of shape ``(d, *shape)``.
        """
        of_samples, of_kernels = random.split(key)
        chosen = random.choice(of_samples, self.n, shape=shape, p=self.weights)
        steps = random.multivariate_normal(
            of_kernels, jnp.zeros(self.d, self.covariance.dtype), self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(steps, -1, 0)

    # ---- the tree

    def tree_flatten(self):
        """The arrays of the estimate, and nothing else."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The estimate of these arrays."""
        self = cls.__new__(cls)
        self._set(**dict(zip(cls.__dataclass_fields__, children, strict=True)))
        return self


def _checked(dataset, weights):
    """The samples as ``(d, n)``, and weights that add up to 1."""
    dataset = jnp.atleast_2d(as_array_argument("gaussian_kde", dataset))
    if dtypes.is_complex(dataset.dtype):
        raise NotImplementedError("gaussian_kde does not support complex data")
    if dataset.ndim > 2 or dataset.size < 2:
        raise ValueError(f"gaussian_kde takes several samples, (n,) or (d, n), got the shape {dataset.shape}")
    n = dataset.shape[1]
    if weights is None:
        (dataset,) = promote_dtypes_inexact("gaussian_kde", dataset)
        return dataset, jnp.full(n, 1 / n, dataset.dtype)
    dataset, weights = promote_dtypes_inexact("gaussian_kde", dataset, jnp.atleast_1d(weights))
    if weights.shape != (n,):
        raise ValueError(f"gaussian_kde: weights must have the shape ({n},), got {weights.shape}")
    return dataset, weights / jnp.sum(weights)


@jit
def _mixture(points, dataset, weights, covariance):
    """The sum of weighted normal densities around samples, at points; all as columns."""
    exponents, log_scale = _exponents(points, dataset, covariance)
    return jnp.sum(weights * jnp.exp(exponents), axis=1) * jnp.exp(log_scale)


@jit
def _log_mixture(points, dataset, weights, covariance):
    exponents, log_scale = _exponents(points, dataset, covariance)
    return logsumexp(exponents, axis=1, b=weights) + log_scale


def _exponents(points, dataset, covariance) -> tuple:
    """The exponents of normal densities around samples, at points, and the logarithm of their common factor."""
    dtype = jnp.result_type(points, dataset, covariance)
    points, dataset = points.astype(dtype), dataset.astype(dtype)
    root = lax.linalg.cholesky(covariance.astype(dtype))
    whiten = partial(lax.linalg.triangular_solve, root, left_side=True, lower=True)
    pairs = zip(whiten(points), whiten(dataset), strict=True)
    distance = sum(jnp.square(of_points[:, None] - of_samples) for of_points, of_samples in pairs)
    log_scale = -0.5 * len(points) * math.log(2 * math.pi) - jnp.sum(jnp.log(jnp.diagonal(root)))
    return -0.5 * distance, log_scale
