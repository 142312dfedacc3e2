"""Functions of whole axes: means of exponentials, standardization, and indicators of classes."""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.structure import canonical_axis
from catena.lax.whole import whole
from catena.numpy.averages import count
from catena.numpy.boundary import as_array_argument, broadcast_to, concrete_or_error, convert, user_dtype
from catena.numpy.creation import default_float
from catena.numpy.reductions import Axis, accumulator, mask_argument
from catena.numpy.softmax import logsumexp
from catena.typing import ArrayLike


@whole
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))`` along axes, without overflow.

    Arguments:
      x: numbers.
      axis: an axis or a tuple of them; None for all.
      where: booleans that broadcast to the shape of ``x``: which elements to take.
      keepdims: whether the axes stay, with length 1.
    Returns:
      An array without the axes, of the float or complex dtype of ``x``; NaN where nothing is taken.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: ``where`` is not boolean or does not broadcast, or an axis is out of bounds or given twice.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    x = as_array_argument("logmeanexp", x)
    where = None if where is None else jnp.broadcast_to(mask_argument("logmeanexp", where), x.shape)
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    return total - jnp.log(jnp.asarray(count(x, axis, where, keepdims), dtypes.to_real_dtype(total.dtype)))


@whole
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """``(x - mean) / sqrt(variance + epsilon)``, which along axes has mean 0 and variance 1.

    Arguments:
      x: numbers.
      axis: an axis or a tuple of them; None for all.
      mean: the mean to take; by default that of ``x`` along the axes.
      variance: the variance to take; by default that of ``x`` along the axes.
      epsilon: what is added to the variance.
      where: booleans that broadcast with ``x``: which elements the mean and the variance are of.
      algorithm: ``"fast"`` for a variance that is the mean of squares less the square of the mean, ``"stable"`` for
        the mean of squared distances from the mean. They differ where a ``mean`` is given that is not that of ``x``;
        both are computed from distances, so that a great mean costs no precision.
    Returns:
      An array of the shape of ``x``; integers become floats.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: shapes do not broadcast, ``where`` is not boolean, ``algorithm`` is neither of the two, or ``x`` is
        complex and it is ``"fast"``.
      IndexError: an axis is out of bounds.

    Source: Ba, Kiros, Hinton, "Layer normalization" (2016).

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.standardize(jnp.array([1.0, 2.0, 3.0]))
    Array([-1.2247,  0.    ,  1.2247], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = as_array_argument("standardize", x)
    own_mean = mean is None
    mean = jnp.mean(x, axis, keepdims=True, where=where) if own_mean else as_array_argument("standardize", mean, 2)
    if variance is None:
        variance = _variance(x, axis, mean, where, algorithm == "fast" and not own_mean)
        if algorithm == "fast" and dtypes.is_complex(variance.dtype):
            raise ValueError("standardize: the variance of complex numbers has no 'fast' algorithm; use 'stable'")
    else:
        variance = as_array_argument("standardize", variance, 3)
    distance = jnp.subtract(x, mean)
    return distance * lax.rsqrt(variance + as_array_argument("standardize", epsilon, 4))


def _variance(x, axis, mean, where, raw: bool):
    """The mean of squared distances; ``raw`` for the mean of squares less the square of the mean, which is greater by
    ``2 mean (E[x] - mean)``. Values of 16 bits are computed in float32.
    """
    squared = dtypes.to_inexact_dtype(x.dtype) if raw else x  # a mean of integers is no weak number's
    narrow = dtypes.to_inexact_dtype(jnp.result_type(squared, mean))
    wide = accumulator(narrow)
    x, mean = convert(x, wide), convert(mean, wide)
    distance = jnp.subtract(x, mean)
    found = jnp.mean(jnp.square(distance), axis, keepdims=True, where=where)
    if raw:
        found = jnp.maximum(found + 2 * mean * jnp.mean(distance, axis, keepdims=True, where=where), 0)
    return convert(found, narrow)


@whole
def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: Any = -1) -> Array:
    """Indicators of classes: 1 in the place that ``x`` names, 0 elsewhere.

    Arguments:
      x: integers, an array or nested lists; those outside of ``range(num_classes)`` give zeros.
      num_classes: the number of classes, known while tracing.
      dtype: the dtype of the result; by default the default float.
      axis: the axis of the result for the classes, or the name of a mapped axis of ``num_classes`` instances.
    Returns:
      An array with one axis more than ``x``, of length ``num_classes``; for a mapped axis, of the shape of ``x``.
    Raises:
      TypeError: ``x`` does not hold numbers, or ``num_classes`` is no integer or negative.
      ValueError: the axis is out of bounds, or the mapped axis has another size.
      NameError: no axis of that name is mapped.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.nn.one_hot(jnp.array([0, 2, 7]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    count = concrete_or_error(operator.index, num_classes, "The argument num_classes of jax.nn.one_hot must be known.")
    dtype = user_dtype(dtype, "one_hot", default_float())
    x = jnp.asarray(x)
    if not dtypes.is_integer(x.dtype):
        warnings.warn(
            f"jax.nn.one_hot takes integers, got {dtypes.dtype_name(x.dtype)}",
            DeprecationWarning,
            stacklevel=dtypes.levels_to_user(),
        )
        if dtypes.KIND.get(x.dtype) not in ("f", "c"):
            raise TypeError(f"one_hot takes numbers, got {dtypes.dtype_name(x.dtype)}")
    if count < 0:
        raise TypeError(f"one_hot: num_classes must not be negative, got {count}")
    return convert(_named(x, count, axis) if not isinstance(axis, int) else _placed(x, count, axis), dtype)


def _named(x, count: int, axis):
    """Whether ``x`` names the instance of a mapped axis."""
    size = lax.axis_size(axis)
    if size != count:
        raise ValueError(f"one_hot: num_classes must be the size {size} of axis {axis}, got {count}")
    return lax.eq(*_comparable(x, lax.axis_index(axis)))


def _placed(x, count: int, axis: int):
    """Whether ``x`` names a place along a new axis."""
    axis = canonical_axis(axis, x.ndim + 1)
    shape = (*x.shape[:axis], count, *x.shape[axis:])
    x, classes = _comparable(lax.expand_dims(x, (axis,)), np.arange(count, dtype=np.int32))
    return lax.eq(broadcast_to(x, shape), lax.broadcast_in_dim(classes, shape, (axis,)))


def _comparable(x, classes) -> tuple:
    """The arrays in a dtype that has all the classes: int8 has no 200."""
    dtype = x.dtype if dtypes.is_inexact(x.dtype) or x.dtype.itemsize > 4 else np.dtype(np.int32)
    return convert(x, dtype), convert(jnp.asarray(classes), dtype)
