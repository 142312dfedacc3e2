"""Reductions that skip NaN: ``nansum``, ``nanmax``, ``nanmean``, ``nanargmax``, ``nancumsum`` and their kin."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.policy import MANY_ROWS, folds_long
from catena.lax.reductions import add_reduce
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy import reductions
from catena.numpy.averages import divide_by_degrees, squared_distance, variance_dtypes
from catena.numpy.boundary import (
    as_array_argument,
    broadcast_to,
    concrete_values,
    convert,
    direct,
    refuse_out,
    run,
    spread_together,
    user_dtype,
)
from catena.numpy.cumulative import cumprod, cumsum, running
from catena.numpy.hot import REAL
from catena.numpy.reductions import MAX, MIN, Axis, along_axes, mask_argument, plain_axis, position_along_axis
from catena.typing import ArrayLike, DTypeLike


def _numbers(x):
    """Where ``x`` is not NaN."""
    return lax.eq(x, x)


def _without_nan(name: str, a, value):
    """``a`` with ``value`` in the place of NaN."""
    a = as_array_argument(name, a)
    if found := concrete_values(REAL, a):  # the hot path
        return make_array(np.where(found[0] == found[0], found[0], found[0].dtype.type(value)))
    if not dtypes.is_inexact(a.dtype):
        return a
    return lax.select(_numbers(a), a, lax.full_like(a, value))


@along_axes
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The sum of elements along axes, without those that are NaN.

    Arguments:
      dtype: the dtype of the sum; by default that of ``a``, integers in the default width at least.
      initial: a scalar to add.
      where: booleans that broadcast with ``a``: which elements to add.

    >>> import catena.numpy as jnp
    >>> jnp.nansum(jnp.array([1.0, jnp.nan, 3.0]))
    Array(4., dtype=float32)
    """
    refuse_out("nansum", out)
    if initial is where is None and (found := _without_any(reductions.sum, a, axis, dtype, keepdims)) is not None:
        return found
    return _any_nansum(a, axis, dtype, keepdims, initial, where)


def _without_any(fold, a, axis, dtype, keepdims):
    """The sum or product of concrete floats none of which is NaN, which would be in it; None for all else."""
    if not (found := concrete_values(REAL, a)):
        return None
    result = fold(make_array(found[0]), axis, dtype, None, keepdims)
    return result if direct(result) and result._value.dtype in REAL and no_nan(result._value) else None


@whole
def _any_nansum(a, axis, dtype, keepdims, initial, where):
    return reductions.sum(_without_nan("nansum", a, 0), axis, dtype, None, keepdims, initial, where)


@along_axes
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The product of elements along axes, without those that are NaN.

    Arguments:
      dtype: the dtype of the product; by default that of ``a``, integers in the default width at least.
      initial: a scalar to multiply with.
      where: booleans that broadcast with ``a``: which elements to multiply.

    >>> import catena.numpy as jnp
    >>> jnp.nanprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array(6., dtype=float32)
    """
    refuse_out("nanprod", out)
    if initial is where is None and (found := _without_any(reductions.prod, a, axis, dtype, keepdims)) is not None:
        return found
    return reductions.prod(_without_nan("nanprod", a, 1), axis, dtype, None, keepdims, initial, where)


def _nan_extremum(name, reduction, a, axis, out, keepdims, initial, where):
    refuse_out(name, out)
    if initial is None and where is None and plain_axis(axis, a) and (found := _few_values(a, axis, True)):
        numpy_fun = np.fmax if reduction is MAX else np.fmin  # the hot path
        if found[0].size:
            try:
                value = run(numpy_fun.reduce, dense(found[0]), axis, out=..., keepdims=keepdims)
            except ValueError:  # the general path says what is wrong
                value = None
            if value is not None and not reductions.has_zeros(value):
                return make_array(value)
    return _any_nan_extremum(name, a, axis, keepdims, initial, where)


@whole
def _any_nan_extremum(name, a, axis, keepdims, initial, where):
    reduction = MAX if name == "nanmax" else MIN
    a = as_array_argument(name, a)
    extremum = getattr(reductions, reduction.name)
    if not dtypes.is_inexact(a.dtype):
        return extremum(a, axis, None, keepdims, initial, where)
    result = extremum(_without_nan(name, a, reduction.neutral(a.dtype)), axis, None, keepdims, initial, where)
    if initial is not None:
        return result
    only_nan = reductions.all(lax.ne(a, a), axis, keepdims=keepdims)
    return lax.select(only_nan, lax.full_like(result, np.nan), result)


@along_axes
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest of elements along axes, without those that are NaN; NaN where all are.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to compare; needs ``initial``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: there are no elements and no ``initial``, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.nanmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(3., dtype=float32)
    """
    return _nan_extremum("nanmax", MAX, a, axis, out, keepdims, initial, where)


@along_axes
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least of elements along axes, without those that are NaN; NaN where all are.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to compare; needs ``initial``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: there are no elements and no ``initial``, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.nanmin(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", MIN, a, axis, out, keepdims, initial, where)


def _number_mask(name, a, where):
    """Which elements count: those that are not NaN and, where there is a mask, not masked."""
    mask = _numbers(a)
    return mask if where is None else lax.bitwise_and(*spread_together(name, [mask, where], ValueError))


@along_axes
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of elements along axes, without those that are NaN; NaN where all are.

    Arguments:
      dtype: the dtype of the result; by default that of ``a`` if it is float or complex, else the default
        float.

    >>> import catena.numpy as jnp
    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    if dtype is None and where is None and plain_axis(axis, a) and (found := _few_values(a, axis)):
        try:  # the hot path
            return make_array(run(_mean_value, found[0], axis, keepdims))
        except ValueError:  # the general path says what is wrong
            pass
    return _any_nanmean(a, axis, dtype, keepdims, where)


@whole
def _any_nanmean(a, axis, dtype, keepdims, where):
    a = as_array_argument("nanmean", a)
    dtype = user_dtype(dtype, "nanmean", dtypes.to_inexact_dtype(a.dtype))
    a = convert(a, reductions.accumulator(dtypes.to_inexact_dtype(dtype)))
    axis = tuple(range(a.ndim)) if axis is None else axis  # of the array, where the mask has more
    where = None if where is None else mask_argument("nanmean", where)
    return convert(_mean_of_numbers(a, where, axis, keepdims), dtype)


def _mean_of_numbers(a, where, axis, keepdims):
    number = reductions.sum(convert(_number_mask("nanmean", a, where), a.dtype), axis, keepdims=keepdims)
    return lax.div(nansum(a, axis, keepdims=keepdims, where=where), number)


def _few_values(a, axis, extremes: bool = False):
    """The values of an array that NumPy may fold along axes right now, where that takes it no long time."""
    found = concrete_values(REAL, a)
    is_long = found and found[0].size >= MANY_ROWS and folds_long(found[0].shape, axis, extremes)
    return None if is_long else found


def no_nan(total) -> bool:
    """Whether sums show that no NaN went into them: the common case."""
    if total.ndim:
        return bool((total == total).all())
    total = total.item()
    return total == total


def _mean_value(value, axis, keepdims):
    total = add_reduce(value, axis, keepdims=keepdims)
    if no_nan(total):
        return np.divide(total, value.size // max(total.size, 1), total)
    mask = value == value
    total = add_reduce(np.where(mask, value, value.dtype.type(0)), axis, keepdims=keepdims)
    number = np.add.reduce(mask, axis, value.dtype, keepdims=keepdims)
    return np.divide(total, number, total)


def _variance_value(value, axis, ddof, keepdims):
    center = add_reduce(value, axis, keepdims=True)
    number = value.size // max(center.size, 1)
    distance = np.subtract(value, np.divide(center, number, center), out=...)
    total = add_reduce(np.square(distance, distance), axis, keepdims=keepdims)
    if number > ddof and no_nan(total):
        return np.divide(total, number - ddof if type(ddof) is int else number - value.dtype.type(ddof), total)
    mask = value == value
    distance = np.subtract(value, _mean_value(value, axis, True), out=...)
    distance[~mask] = 0
    total = add_reduce(np.square(distance), axis, keepdims=keepdims)
    divisor = np.add.reduce(mask, axis, value.dtype, keepdims=keepdims) - value.dtype.type(ddof)
    return np.divide(total, np.where(divisor > 0, divisor, value.dtype.type(np.nan)), total)


@along_axes
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of elements along axes, without those that are NaN.

    Returns:
      An array without the axes; NaN where fewer than ``ddof`` numbers remain.

    >>> import catena.numpy as jnp
    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("nanvar", out)
    plain = dtype is None and where is None and mean is None and type(ddof) in (int, float)
    if plain and plain_axis(axis, a) and (found := _few_values(a, axis)):  # the hot path
        try:
            return make_array(run(_variance_value, found[0], axis, ddof, keepdims))
        except ValueError:  # the general path says what is wrong
            pass
    return _any_nanvar(a, axis, dtype, ddof, keepdims, where, mean)


@whole
def _any_nanvar(a, axis, dtype, ddof, keepdims, where, mean):
    a = as_array_argument("nanvar", a)
    where = None if where is None else mask_argument("nanvar", where)
    mean = None if mean is None else as_array_argument("nanvar", mean)
    wide, dtype = variance_dtypes("nanvar", dtype, a.dtype)
    return _variance_of_numbers(a, where, mean, axis, wide, dtype, ddof, keepdims)


def _variance_of_numbers(a, where, mean, axis, wide, dtype, ddof, keepdims):
    a = convert(a, wide)
    mask = _number_mask("nanvar", a, where)
    center = nanmean(a, axis, keepdims=True, where=where) if mean is None else mean
    squares = squared_distance(broadcast_to(a, mask.shape), convert(center, wide), mask)
    total = reductions.sum(squares, axis, keepdims=keepdims)
    number = reductions.sum(convert(mask, squares.dtype), axis, keepdims=keepdims)
    return convert(divide_by_degrees(total, number, ddof), dtype)


@whole
@along_axes
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of elements along axes, without those that are NaN.

    Returns:
      An array without the axes; NaN where fewer than ``ddof`` numbers remain.

    >>> import catena.numpy as jnp
    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


@whole
def _nan_arg(name, a, axis, out, keepdims, fill, lax_fun):
    refuse_out(name, out)
    a = as_array_argument(name, a)
    plain = name.removeprefix("nan")
    result = reductions.any_position(plain, lax_fun, _without_nan(name, a, fill), axis, keepdims)
    if not dtypes.is_inexact(a.dtype):
        return result
    only_nan = reductions.all(lax.ne(a, a), axis, keepdims=bool(keepdims))
    return lax.select(only_nan, lax.full_like(result, -1), result)


@position_along_axis
def nanargmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the greatest element along an axis, not of NaN; -1 where all are NaN.

    >>> import catena.numpy as jnp
    >>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg("nanargmax", a, axis, out, keepdims, -np.inf, lax.argmax)


@position_along_axis
def nanargmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the least element along an axis, not of NaN; -1 where all are NaN.

    >>> import catena.numpy as jnp
    >>> jnp.nanargmin(jnp.array([1.0, jnp.nan, 3.0]))
    Array(0, dtype=int32)
    """
    return _nan_arg("nanargmin", a, axis, out, keepdims, np.inf, lax.argmin)


@running
def nancumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along an axis, NaN counting as zero.

    Arguments:
      dtype: the dtype of the sums; by default that of ``a``, booleans as the default integer.

    >>> import catena.numpy as jnp
    >>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 3.0]))
    Array([1., 1., 4.], dtype=float32)
    """
    refuse_out("nancumsum", out)
    return cumsum(_without_nan("nancumsum", a, 0), axis, dtype)


@running
def nancumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along an axis, NaN counting as one.

    Arguments:
      dtype: the dtype of the products; by default that of ``a``, booleans as the default integer.

    >>> import catena.numpy as jnp
    >>> jnp.nancumprod(jnp.array([2.0, jnp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    refuse_out("nancumprod", out)
    return cumprod(_without_nan("nancumprod", a, 1), axis, dtype)
