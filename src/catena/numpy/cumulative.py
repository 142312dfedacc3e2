"""Running sums and products: ``cumsum``, ``cumprod``, and their array-API kin with an initial element."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.evaluate import quiet
from catena.lax.policy import SCANNED
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axis,
    convert,
    direct,
    refuse_out,
    static_int,
    user_dtype,
)
from catena.numpy.documentation import family
from catena.numpy.hot import F64, I32, REAL_OR_INT
from catena.numpy.reductions import accumulator, widened
from catena.typing import ArrayLike, DTypeLike


def _running(name, numpy_fun, lax_fun, a, axis, dtype, out):
    refuse_out(name, out)
    dtype = user_dtype(dtype, name)
    a = as_array_argument(name, a)
    if axis is None:
        a, axis = (a if a.ndim == 1 else lax.reshape(a, (a.size,))), 0
    axis = canonical_axis(static_int(axis, "The axis argument must be known statically."), a.ndim)
    if direct(a) and dtype is None and a._value.dtype in REAL_OR_INT and a._value.size < SCANNED:  # the hot path
        value = a._value
        return make_array(quiet.run(numpy_fun, value, axis, value.dtype))
    return _any_running(name, a, axis, dtype)


@whole
def _any_running(name, a, axis, dtype):
    lax_fun = lax.cumprod if name == "cumprod" else lax.cumsum
    if dtype is None:
        dtype = dtypes.canonicalize_dtype(int) if a.dtype == dtypes.BOOL else a.dtype
    if dtype == dtypes.BOOL:  # whether any, or all, so far are true
        return convert(lax_fun(convert(convert(a, dtype), I32), axis), dtype)
    return convert(lax_fun(convert(a, accumulator(dtype)), axis), dtype)


def _sums(x, axis, dtype):
    """As compiled programs compute them: in float64, from 0 on, so that the sum of -0 is 0."""
    if dtype.kind != "f":
        return np.add.accumulate(x, axis, dtype)
    out = np.add.accumulate(x.astype(F64), axis)  # in half the time of doing both at once
    np.add(out, _ZERO, out)
    return out.astype(dtype, copy=False)


_ZERO = np.zeros((), F64)


running = family(
    a="an array or a scalar.",
    axis="the axis; None for the flattened array.",
    out="not supported; arrays are immutable.",
    returns="An array of the shape of ``a``, or with one axis.",
    raises=("TypeError: ``a`` is neither an array nor a scalar.\nValueError: the axis is out of bounds."),
    x="an array with at least one axis.",
)


@running
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running sums along an axis.

    Arguments:
      dtype: the dtype of the sums; by default that of ``a``, booleans as the default integer.

    >>> import catena.numpy as jnp
    >>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[1, 3],
           [3, 7]], dtype=int32)
    """
    return _running("cumsum", _sums, lax.cumsum, a, axis, dtype, out)


@running
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
    """Running products along an axis.

    Arguments:
      dtype: the dtype of the products; by default that of ``a``, booleans as the default integer.

    >>> import catena.numpy as jnp
    >>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _running("cumprod", np.multiply.accumulate, lax.cumprod, a, axis, dtype, out)


def _cumulative(name, word, fun, first, x, axis, dtype, include_initial):
    x = as_array_argument(name, x)
    if not x.ndim:
        raise ValueError(
            f"The input must be non-scalar to take a cumulative {word}, however a scalar value or scalar "
            "array was given."
        )
    if axis is None and x.ndim > 1:
        raise ValueError(
            f"The input array has rank {x.ndim}, however axis was not set to an explicit value. The axis argument is "
            "only optional for one-dimensional arrays."
        )
    axis = canonical_axis(
        0 if axis is None else static_int(axis, "The axis argument must be known statically."), x.ndim
    )
    result = fun(x, axis, dtype)
    if not include_initial:
        return result
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return lax.concatenate([lax.full(shape, first, result.dtype), result], axis)


@running
def cumulative_sum(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running sums along an axis, as the array API standard defines them.

    Arguments:
      axis: the axis; may be left out only where there is one.
      dtype: the dtype of the sums; by default that of ``x``, integers in the default width at least.
      include_initial: whether the result starts with a zero.
    Returns:
      An array of the shape of ``x``, one longer along the axis with ``include_initial``.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      ValueError: ``x`` is a scalar, or has several axes and none was given.

    >>> import catena.numpy as jnp
    >>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    x = as_array_argument("cumulative_sum", x)
    dtype = user_dtype(dtype, "cumulative_sum", widened(x.dtype))
    return _cumulative("cumulative_sum", "sum", cumsum, 0, x, axis, dtype, include_initial)


@running
def cumulative_prod(
    x: ArrayLike, /, *, axis: int | None = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """Running products along an axis, as the array API standard defines them.

    Arguments:
      axis: the axis; may be left out only where there is one.
      dtype: the dtype of the products; by default that of ``x``, integers in the default width at least.
      include_initial: whether the result starts with a one.
    Returns:
      An array of the shape of ``x``, one longer along the axis with ``include_initial``.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      ValueError: ``x`` is a scalar, or has several axes and none was given.

    >>> import catena.numpy as jnp
    >>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    x = as_array_argument("cumulative_prod", x)
    dtype = user_dtype(dtype, "cumulative_prod", widened(x.dtype))
    return _cumulative("cumulative_prod", "product", cumprod, 1, x, axis, dtype, include_initial)
