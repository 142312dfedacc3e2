"""Correlating: ``cov``, ``corrcoef``, ``convolve``, ``correlate``."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy.arithmetic import absolute
from catena.numpy.averages import average
from catena.numpy.boundary import (
    as_array_argument,
    concrete_values,
    convert,
    direct,
    like,
    promoted_dtype,
    run,
    user_dtype,
)
from catena.numpy.hot import F32, F64, REAL
from catena.numpy.joining import concatenate
from catena.numpy.manipulation import atleast_2d
from catena.numpy.products import dot
from catena.numpy.promotion import promote_dtypes_inexact
from catena.numpy.reading import read
from catena.numpy.shaping import matrix_transpose, reshaped
from catena.typing import ArrayLike, DTypeLike


@whole
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of variables.

    Arguments:
      m: the observations: 1-D for one variable, 2-D for several.
      y: further variables of the same form.
      rowvar: whether variables are rows.
      bias: whether to divide by the number of observations instead of one less.
      ddof: what to subtract from that number; overrides ``bias``.
      fweights: integers: how often each observation counts.
      aweights: how much each observation counts.
      dtype: the dtype to compute in.
    Returns:
      A matrix, a row for each variable; a scalar for one variable.
    Raises:
      ValueError: the arrays have more than two dimensions, or the weights do not fit. TypeError: ``fweights``
        are no integers.

    >>> import catena.numpy as jnp
    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if y is fweights is aweights is dtype is None and (found := concrete_values(REAL, m)):  # the hot path
        if found[0].ndim == 2 and 0 < found[0].size <= _FEW and type(ddof) in (int, type(None)):
            degrees = (0 if bias else 1) if ddof is None else ddof
            return make_array(run(_covariance_value, found[0], rowvar, degrees))
    m = as_array_argument("cov", m)
    dtype = _inexact_dtype("cov", dtype)
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    if y is not None:
        m, y = promote_dtypes_inexact("cov", m, as_array_argument("cov", y, 1))
        if y.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    else:
        m = convert(m, dtypes.to_inexact_dtype(m.dtype))
    if dtype is not None:
        m, y = convert(m, dtype), None if y is None else convert(y, dtype)
    x = _variables(m, rowvar)
    if y is not None:
        x = concatenate([x, _variables(y, rowvar)], 0)
    if not x.size:
        return lax.full((x.shape[0],) * 2 if x.shape[0] != 1 else (), np.nan, x.dtype)
    if aweights is not None:
        aweights = as_array_argument("cov", aweights, 6)
        aweights = absolute(aweights)
        x = convert(x, promoted_dtype([x, aweights])[0])
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights, total, spread = _observation_weights(x, fweights, aweights, ddof)
    if weights is None:
        centre, degrees = average(x, 1), float(x.shape[1] - ddof)
        scale = like(_real(x), degrees)
    else:
        centre = average(x, 1, weights)
        scale = lax.sub(total, spread)
    x = lax.sub(x, lax.broadcast_in_dim(centre, x.shape, (0,)))
    weighted = x if weights is None else lax.mul(x, lax.broadcast_in_dim(convert(weights, x.dtype), x.shape, (1,)))
    product = dot(x, matrix_transpose(weighted if not dtypes.is_complex(x.dtype) else lax.conj(weighted)))
    result = lax.div(product, convert(scale, product.dtype))
    return reshaped(result, tuple(n for n in result.shape if n != 1)) if 1 in result.shape else result


_FEW = 1 << 12  # numbers that BLAS multiplies on one thread


def _comoments(x, rowvar: bool):
    """The products of the distances of variables from their means."""
    x = dense(x if rowvar else x.T)
    ones = _ones(x.shape[1], x.dtype)
    total = np.add.reduce(x, 1) if ones is None else x.dot(ones)
    x = x - (total / np.array(x.shape[1], x.dtype))[:, None]
    return np.dot(x, x.T)


@functools.lru_cache(64)
def _ones(n: int, dtype) -> np.ndarray | None:
    """Ones, where BLAS adds up ``n`` numbers as precisely as NumPy does: a product takes half the time of a sum."""
    return np.ones(n, dtype) if n <= 1 << 10 else None


def _covariance_value(x, rowvar: bool, ddof: int):
    result = _comoments(x, rowvar)
    degrees = x.shape[1 if rowvar else 0] - ddof
    np.divide(result, np.array(degrees, x.dtype), result)
    return result.squeeze() if 1 in result.shape else result


def _correlation_value(x, rowvar: bool):
    c = _comoments(x, rowvar)
    deviations = np.sqrt(c.diagonal())
    np.divide(c, np.dot(deviations[:, None], deviations[None]), c)
    low, high = _CORRELATIONS[c.dtype]
    np.maximum(c, low, out=c)
    return np.minimum(c, high, out=c)


_CORRELATIONS = {dtype: (np.array(-1, dtype), np.array(1, dtype)) for dtype in REAL}


def _inexact_dtype(name: str, dtype):
    """The dtype to compute in that a user asks for, if any."""
    found = user_dtype(dtype, name)
    if found is not None and not dtypes.is_inexact(found):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
    return found


def _real(x):
    return lax.real(x) if dtypes.is_complex(x.dtype) else x


def _variables(x, rowvar: bool):
    """Variables as the rows of a matrix; a vector is one variable."""
    return atleast_2d(x) if rowvar or x.ndim < 2 else matrix_transpose(x)


def _observation_weights(x, fweights, aweights, ddof) -> tuple:
    """The weight of each observation, the sum of weights, and what is to be subtracted from it."""
    if fweights is None and aweights is None:
        return None, None, None
    dtype = dtypes.to_real_dtype(x.dtype)
    weights = None
    if fweights is not None:
        fweights = as_array_argument("cov", fweights, 5)
        if not dtypes.is_integer(fweights.dtype):
            raise TypeError("fweights must be integer.")
        _check_weights("fweights", fweights, x)
        weights = lax.abs(convert(fweights, dtype))
    if aweights is not None:
        _check_weights("aweights", aweights, x)
        aweights = convert(aweights, dtype)
        weights = aweights if weights is None else lax.mul(weights, aweights)
    total = lax.reduce_sum(weights, (0,))
    degrees = like(total, ddof)
    if aweights is None:
        return weights, total, degrees
    share = lax.reduce_sum(lax.mul(weights, aweights), (0,))
    return weights, total, lax.div(lax.mul(degrees, share), total)


def _check_weights(name: str, weights, x):
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")  # NumPy's kind of error
    if weights.shape != x.shape[1:]:
        raise RuntimeError(f"incompatible numbers of samples and {name}")


@whole
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables.

    Arguments:
      x: the observations: 1-D for one variable, 2-D for several.
      y: further variables of the same form.
      rowvar: whether variables are rows.
      dtype: the dtype to compute in.
    Returns:
      A matrix, a row for each variable; a scalar for one variable.
    Raises:
      ValueError: the arrays have more than two dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    if y is dtype is None and (found := concrete_values(REAL, x)):  # the hot path
        if found[0].ndim == 2 and min(found[0].shape) > 1 and found[0].size <= _FEW:
            return make_array(run(_correlation_value, found[0], rowvar))
    c = cov(x, y, rowvar, dtype=_inexact_dtype("corrcoef", dtype))
    if c.ndim == 0:
        return lax.div(c, c)
    n = c.shape[0]
    variances = _real(read(c, (np.arange(n), np.arange(n))))
    deviations = convert(lax.sqrt(variances), c.dtype)
    c = lax.div(c, lax.broadcast_in_dim(deviations, c.shape, (0,)))
    c = lax.div(c, lax.broadcast_in_dim(deviations, c.shape, (1,)))
    low, high = like(_real(c), -1), like(_real(c), 1)
    if dtypes.is_complex(c.dtype):
        return lax.complex(lax.clamp(low, lax.real(c), high), lax.clamp(low, lax.imag(c), high))
    return lax.clamp(low, c, high)


_CONVOLUTION_MODES = ("full", "same", "valid")


def _sliding(name: str, a, v, mode: str, precision, preferred, numpy_fun):
    """Products of two sequences that slide along each other, the second one reversed by ``convolve``."""
    a, v = promote_dtypes_inexact(name, as_array_argument(name, a, 0), as_array_argument(name, v, 1))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if mode not in _CONVOLUTION_MODES:
        raise ValueError(f"mode must be one of {list(_CONVOLUTION_MODES)}")
    if not a.size or not v.size:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.")
    preferred = user_dtype(preferred, name)
    swap = a.size < v.size
    if direct(a) and direct(v) and precision is None and preferred is None and a.dtype in (F32, F64):
        shorter = a if swap else v
        if np.isfinite(shorter._value).all():  # else zeros around the longer are multiplied, as when compiled
            return make_array(np.asarray(run(numpy_fun, a._value, v._value, mode)), a.weak_type and v.weak_type)
    if name == "correlate":
        v = lax.conj(v) if dtypes.is_complex(v.dtype) else v
        a, v = (lax.rev(v, (0,)), lax.rev(a, (0,))) if swap else (a, v)
    else:
        a, v = (v, a) if swap else (a, v)
        v = lax.rev(v, (0,))
    result = _valid_products(a, v, _padding(name, mode, v.size, swap), precision, preferred)
    return result


def _padding(name: str, mode: str, n: int, swap: bool) -> tuple:
    """How far the shorter sequence may stick out at both ends of the longer."""
    if mode == "valid":
        return 0, 0
    if mode == "full":
        return n - 1, n - 1
    before = (n - 1) // 2 if swap and name == "correlate" else n // 2
    return before, n - 1 - before


def _valid_products(a, v, padding: tuple, precision, preferred):
    expand = lambda x: lax.reshape(x, (1, 1, x.size))  # noqa: E731
    out = lax.conv_general_dilated(
        expand(a), expand(v), (1,), [padding], precision=precision, preferred_element_type=preferred
    )
    return lax.reshape(out, (out.shape[-1],))


@whole
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two sequences.

    Arguments:
      a, v: 1-D arrays.
      mode: "full" for all places where they overlap, "same" for as many as the longer has, "valid" for those
        where the shorter lies wholly within the longer.
      precision: the precision of products, as for ``lax.conv_general_dilated``.
      preferred_element_type: the dtype to accumulate in, and of the result.
    Returns:
      A 1-D array of the inexact dtype that both promote to.
    Raises:
      ValueError: the arrays are empty or not 1-D, or the mode is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    return _sliding("convolve", a, v, mode, precision, preferred_element_type, np.convolve)


@whole
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The correlation of two sequences: sums of ``a[n + k] * conj(v[n])`` for all shifts ``k``.

    Arguments:
      a, v: 1-D arrays.
      mode: "full" for all places where they overlap, "same" for as many as the longer has, "valid" for those
        where the shorter lies wholly within the longer.
      precision: the precision of products, as for ``lax.conv_general_dilated``.
      preferred_element_type: the dtype to accumulate in, and of the result.
    Returns:
      A 1-D array of the inexact dtype that both promote to.
    Raises:
      ValueError: the arrays are empty or not 1-D, or the mode is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]), mode="full")
    Array([0.5, 2. , 3.5, 3. , 0. ], dtype=float32)
    """
    return _sliding("correlate", a, v, mode, precision, preferred_element_type, np.correlate)
