"""Means and variances: ``mean``, ``var``, ``std``, ``average``.

Values of float16 and bfloat16 are averaged in float32; the variance takes two passes, so that a great mean
costs no precision.
"""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.evaluate import quiet
from catena.core.shapes import broadcast_shapes
from catena.lax.policy import MANY_ROWS, folds_long
from catena.lax.reductions import add_reduce
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    broadcast_to,
    broadcast_together,
    canonical_axes,
    canonical_axis,
    convert,
    direct,
    like,
    refuse_out,
    spread_together,
    static_axis,
    user_dtype,
)
from catena.numpy.hot import BOOL, INT, REAL
from catena.numpy.reductions import (
    SUM,
    Axis,
    accumulator,
    along_axes,
    mask_argument,
    plain_axis,
    reduce_with,
    split_axes,
    sum,
)
from catena.typing import ArrayLike, DTypeLike

_COUNTED = INT | {BOOL}  # what NumPy converts to floats as we do


def count(x, axis, where, keepdims: bool) -> object:
    """How many elements are reduced: a float, or where a mask or named axes say so, an array."""
    axes, names = split_axes(axis, x.ndim)
    if where is not None:
        mask = broadcast_to(where, broadcast_shapes(where.shape, x.shape))
        return sum(convert(mask, dtypes.to_real_dtype(x.dtype)), axis, keepdims=keepdims)
    number = float(np.prod([x.shape[a] for a in axes]))
    return number if not names else lax.mul(like(x, number), lax.psum(like(x, 1), names))


def _mask(name: str, where, x):
    """A ``where`` argument of a mean, whose axes are those of ``x``: it has no more of them."""
    if where is None:
        return None
    where = mask_argument(name, where)
    if where.ndim > x.ndim:
        raise ValueError(
            f"jnp.{name}: where must broadcast to the shape of the array, {x.shape}, and have no more dimensions; it "
            f"has shape {where.shape}"
        )
    return where


def _mean_of(x, where, axis, keepdims):
    """The mean of an operand of the dtype of computation."""
    number = count(x, axis, where, keepdims)
    total = reduce_with(SUM, x, axis, keepdims, None, where)
    divisor = like(total, number) if isinstance(number, float) else convert(number, total.dtype)
    return lax.div(total, divisor)


@along_axes
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements along axes; NaN where there are none.

    Arguments:
      dtype: the dtype of the result; by default that of ``a`` if it is float or complex, else the default
        float.

    >>> import catena.numpy as jnp
    >>> jnp.mean(jnp.array([[1, 2], [3, 5]]), axis=0)
    Array([2. , 3.5], dtype=float32)
    """
    if direct(a) and dtype is None and where is None and out is None and plain_axis(axis, a):  # the hot path
        result = _of_values(_mean_value, a._value, axis, keepdims)
        if result is not None:
            return result
    return _any_mean(a, axis, dtype, out, keepdims, where)


@whole
def _any_mean(a, axis, dtype, out, keepdims, where):
    refuse_out("mean", out)
    dtype = user_dtype(dtype, "mean")
    a = as_array_argument("mean", a)
    dtype = dtypes.to_inexact_dtype(a.dtype) if dtype is None else dtype
    wide = accumulator(dtypes.to_inexact_dtype(dtype) if dtypes.is_inexact(dtype) else dtypes.to_inexact_dtype(a.dtype))
    where = _mask("mean", where, a)
    return convert(_mean_of(convert(a, wide), where, axis, keepdims), dtype)


def _of_values(numpy_fun, value, axis, *args):
    """``numpy_fun`` of a NumPy value of a common dtype, as floats, and the number of elements along axes; None
    where the general path has to see to it.
    """
    if value.dtype not in REAL:
        if value.dtype not in _COUNTED:
            return None
        value = value.astype(dtypes.to_inexact_dtype(value.dtype))
    if value.size >= MANY_ROWS and folds_long(value.shape, axis):
        return None
    try:
        if axis is None:
            number = value.size
        else:
            number = value.shape[axis] if type(axis) is int else math.prod([value.shape[i] for i in axis])
        return make_array(quiet.run(numpy_fun, value, axis, *args, number))
    except (ValueError, IndexError):  # the general path says what is wrong
        return None


def _mean_value(value, axis, keepdims, number):
    total = add_reduce(value, axis, out=..., keepdims=keepdims)
    return np.divide(total, number, total)


@along_axes
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The variance of elements along axes: the mean square of their distances from the mean.

    Returns:
      An array without the axes; NaN where fewer than ``ddof`` elements remain.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``ddof`` and ``correction`` are both given, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.var(jnp.array([[1.0, 2.0], [3.0, 6.0]]), axis=0)
    Array([1., 4.], dtype=float32)
    """
    refuse_out("var", out)
    return _variance("var", a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean)


@along_axes
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: float | None = None,
) -> Array:
    """The standard deviation of elements along axes: the square root of the variance.

    Returns:
      An array without the axes; NaN where fewer than ``ddof`` elements remain.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: ``ddof`` and ``correction`` are both given, ``dtype`` is no float, or an axis is out of
        bounds.

    >>> import catena.numpy as jnp
    >>> jnp.std(jnp.array([[1.0, 2.0], [3.0, 6.0]]), axis=0)
    Array([1., 2.], dtype=float32)
    """
    refuse_out("std", out)
    if dtype is not None and not dtypes.is_inexact(user_dtype(dtype, "std")):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return _variance("std", a, axis, dtype, _degrees(ddof, correction), keepdims, where, mean)


def _degrees(ddof, correction):
    if correction is None:
        return ddof
    if not isinstance(ddof, int) or ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def variance_dtypes(name: str, dtype, found) -> tuple:
    """The dtype of computation and that of the result, for values of the dtype ``found``."""
    dtype = user_dtype(dtype, name)
    if dtype is None:
        wide = dtypes.to_inexact_dtype(found)
        return accumulator(wide), dtypes.to_real_dtype(wide)
    if dtypes.is_complex(found) and not dtypes.is_complex(dtype):
        raise ValueError(
            f"jax.numpy.{name} does not yet support real dtype parameters when computing the variance of an array of "
            "complex values, since its semantics are unclear."
        )
    unpromoted = dtypes.KIND[found] in "iu" and found.kind == "V"  # integers of 4 bits and less, which meet no other
    wide = dtypes.to_inexact_dtype(dtype if unpromoted else dtypes.least_common(found, dtype))
    return accumulator(wide), dtypes.to_inexact_dtype(dtype)


def squared_distance(x, center, mask=None):
    """``|x - center| ** 2``, real; zero where the mask is false.

    It is the distance that is masked, so that what is left out, NaN perhaps, takes no part in derivatives: that of
    the square has the distance as a factor, and zero times NaN is NaN.
    """
    distance = lax.sub(*broadcast_together("var", [x, center]))
    if mask is not None:
        mask, distance = spread_together("var", [mask, distance], ValueError)
        distance = lax.select(mask, distance, lax.full_like(distance, 0))
    if dtypes.is_complex(distance.dtype):
        return lax.real(lax.mul(distance, lax.conj(distance)))
    return lax.square(distance)


_FEW = 1 << 10  # numbers whose squares BLAS sums as precisely as NumPy


def _variance_value(value, axis, ddof, keepdims, root, number):
    """The variance of a NumPy array in two passes; its square root where that is asked for."""
    center = add_reduce(value, axis, out=..., keepdims=True)
    distance = np.subtract(dense(value), np.divide(center, number, center), out=...)
    if axis is None and not keepdims and number <= _FEW:
        total = np.array(np.vdot(distance, distance))
    else:
        np.multiply(distance, distance, distance)
        total = add_reduce(distance, axis, out=..., keepdims=keepdims)
    np.divide(total, number - ddof if number > ddof else np.nan, total)
    return np.sqrt(total, total) if root else total


def _variance(name, a, axis, dtype, ddof, keepdims, where, mean):
    if direct(a) and dtype is None and where is None and mean is None and plain_axis(axis, a):  # the hot path
        if type(ddof) in (int, float):
            result = _of_values(_variance_value, a._value, axis, ddof, keepdims, name == "std")
            if result is not None:
                return result
    return _any_variance(name, a, axis, dtype, ddof, keepdims, where, mean)


@whole
def _any_variance(name, a, axis, dtype, ddof, keepdims, where, mean):
    a = as_array_argument(name, a)
    where = _mask(name, where, a)
    mean = None if mean is None else as_array_argument(name, mean)
    axes, names = split_axes(axis, a.ndim)
    wide, dtype = variance_dtypes(name, dtype, a.dtype)
    return _in_two_passes(a, where, mean, (*axes, *names), wide, dtype, ddof, keepdims, name == "std")


def _in_two_passes(a, where, mean, axis, wide, dtype, ddof, keepdims, root):
    """The variance of elements around their mean, computed as ``wide``; its square root where that is asked for."""
    a = convert(a, wide)
    center = _mean_of(a, where, axis, True) if mean is None else convert(mean, wide)
    squares = squared_distance(a, center, where)
    total = reduce_with(SUM, squares, axis, keepdims, None, None)
    result = convert(divide_by_degrees(total, count(squares, axis, where, keepdims), ddof), dtype)
    return lax.sqrt(result) if root else result


def divide_by_degrees(total, number, ddof):
    """``total / (number - ddof)``, NaN where that is not positive."""
    if isinstance(number, float) and isinstance(ddof, int | float):
        divisor = number - ddof
        return lax.div(total, like(total, divisor)) if divisor > 0 else lax.full_like(total, np.nan)
    number = like(total, number) if isinstance(number, float) else convert(number, total.dtype)
    divisor = lax.sub(number, convert(as_array_argument("var", ddof, "at argument 'ddof'"), total.dtype))
    divisor, total = broadcast_together("var", [divisor, total])
    return lax.select(lax.gt(divisor, like(divisor, 0)), lax.div(total, divisor), lax.full_like(total, np.nan))


@whole
@along_axes
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The weighted mean of elements along axes.

    Arguments:
      weights: an array of the shape of ``a``, or of its lengths along ``axis``; None for equal weights.
      returned: whether to return the sum of the weights, too.
    Returns:
      An array without the axes; with ``returned``, a pair of it and the sums of weights.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: the shape of ``weights`` does not fit.

    >>> import catena.numpy as jnp
    >>> jnp.average(jnp.array([1.0, 2.0, 3.0]), weights=jnp.array([3, 1, 0]))
    Array(1.25, dtype=float32)
    """
    a = as_array_argument("average", a)
    if weights is None and not returned and direct(a) and plain_axis(axis, a):
        return mean(a, axis, keepdims=keepdims)
    axes = canonical_axes(axis, a.ndim)
    if weights is None:
        dtype = dtypes.to_inexact_dtype(a.dtype)
        result = mean(convert(a, dtype), axes, keepdims=keepdims)
        if not returned:
            return result
        return result, lax.full_like(result, float(np.prod([a.shape[i] for i in axes])))
    weights = as_array_argument("average", weights, 1)
    dtype = dtypes.to_inexact_dtype(dtypes.promote((a.dtype, a.weak_type), (weights.dtype, weights.weak_type))[0])
    weights = _aligned_weights(a, axis, axes, convert(weights, dtype))
    result, total = _weighted_mean(convert(a, dtype), weights, axes, keepdims)
    return (result, total) if returned else result


def _weighted_mean(a, weights, axes, keepdims):
    """The mean of ``a``, and the sums of the weights in its shape."""
    total = sum(weights, axes, keepdims=keepdims)
    weighted = sum(lax.mul(a, broadcast_to(weights, a.shape)), axes, keepdims=keepdims)
    total = broadcast_to(total, weighted.shape)
    return lax.div(weighted, total), total


def _aligned_weights(a, axis, axes, weights):
    """Weights in the shape of ``a``."""
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    given = static_axis(axis)
    given = tuple(canonical_axis(i, a.ndim) for i in (given if isinstance(given, tuple) else (given,)))
    if weights.shape != tuple(a.shape[i] for i in given):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    weights = lax.transpose(weights, tuple(np.argsort(given).tolist()))
    return broadcast_to(lax.expand_dims(weights, tuple(i for i in range(a.ndim) if i not in axes)), a.shape)
