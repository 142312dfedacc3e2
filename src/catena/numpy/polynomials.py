"""Polynomials as 1-D arrays of coefficients, the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.trace import find_concrete
from catena.lax.policy import FEW
from catena.lax.whole import whole
from catena.numpy import linalg
from catena.numpy.arithmetic import power
from catena.numpy.boundary import (
    as_array_argument,
    broadcast_to,
    concrete_or_error,
    convert,
    direct,
    like,
    promoted_dtype,
    run,
    strong,
)
from catena.numpy.diagonals import diag
from catena.numpy.editing import trim_zeros
from catena.numpy.index_update import IndexUpdateRef
from catena.numpy.joining import stack
from catena.numpy.products import dot
from catena.numpy.promotion import promote_dtypes, promote_dtypes_inexact
from catena.numpy.reading import read
from catena.numpy.shaping import matrix_transpose, ravel
from catena.numpy.statistics import convolve
from catena.typing import ArrayLike

_FEW_POWERS = 8  # columns of powers that are products, with three units' error at most


def _line(p):
    """Coefficients as a 1-D array."""
    if p.ndim > 1:
        raise ValueError(f"coefficients of polynomials must be 1-D, got shape {p.shape}")
    return ravel(p) if p.ndim == 0 else p


def _coefficients(name: str, p, position=0):
    """Coefficients as a 1-D array of an inexact dtype."""
    p = _line(as_array_argument(name, p, position))
    return convert(p, dtypes.to_inexact_dtype(p.dtype))


# ----------------------------------------------------------------------------------------------------
# Evaluation and arithmetic


@whole
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial, by Horner's scheme.

    Arguments:
      p: the coefficients along the first axis; those of several polynomials broadcast with ``x``.
      x: where to evaluate.
      unroll: how many steps of the compiled loop to write out.
    Returns:
      An array of the shape of ``x``, broadcast.
    Raises:
      ValueError: coefficients and ``x`` do not broadcast together.

    >>> import catena.numpy as jnp
    >>> jnp.polyval(jnp.array([1, 0, 2]), jnp.array([1, 2, 3]))
    Array([ 3,  6, 11], dtype=int32)
    """
    if type(p) is Array and type(x) is Array and direct(p) and p.dtype is x.dtype and p.ndim == 1 and len(p) <= unroll:
        return make_array(np.asarray(run(_horner, p._value, x._value)))
    p, x = map(strong, promote_dtypes("polyval", p, x))
    p = p if p.ndim else ravel(p)
    x = broadcast_to(x, lax.broadcast_shapes(p.shape[1:], x.shape))
    if len(p) > unroll:
        return _polyval_of_many(p, x, unroll)
    if direct(p) and direct(x):
        return make_array(np.asarray(run(_horner, p._value, x._value)))
    step = _step_of_horner(x)
    total = lax.full_like(x, 0)
    for i in range(len(p)):
        total, _ = step(total, read(p, i))
    return total


@whole
def _polyval_of_many(p, x, unroll):
    """By a loop, whose steps are rounded once each: evaluated step by step it would have other bits."""
    return lax.scan(_step_of_horner(x), lax.full_like(x, 0), p, unroll=unroll)[0]


def _step_of_horner(x):
    plus, times = (lax.bitwise_or, lax.bitwise_and) if x.dtype == dtypes.BOOL else (lax.add, lax.mul)

    def step(total, coefficient):
        return plus(times(total, x), broadcast_to(coefficient, x.shape)), None

    return step


def _horner(p, x):
    total = np.zeros_like(x)
    for coefficient in p:
        total = np.multiply(total, x, out=total)
        total += coefficient
    return total


def _sum(name: str, combine, a1, a2):
    a1, a2 = promote_dtypes(name, as_array_argument(name, a1), as_array_argument(name, a2, 1))
    a1, a2 = ravel(a1) if a1.ndim == 0 else a1, ravel(a2) if a2.ndim == 0 else a2
    longer, shorter = (a1, a2) if a1.shape[0] >= a2.shape[0] else (a2, a1)
    start = longer.shape[0] - shorter.shape[0]
    head, tail = lax.slice_in_dim(longer, 0, start), lax.slice_in_dim(longer, start, None)
    shorter = broadcast_to(shorter, tail.shape)
    if longer is a1:
        return lax.concatenate([head, combine(tail, shorter)], 0)
    return lax.concatenate([combine(lax.full_like(head, 0), head), combine(shorter, tail)], 0)


@whole
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Arguments:
      a1, a2: the coefficients along the first axis; further axes of the shorter one broadcast to those of the longer.
    Returns:
      The coefficients of the sum, as many as the longer has.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3, 0, 1]))
    Array([3, 1, 3], dtype=int32)
    """
    return _sum("polyadd", lax.add, a1, a2)


@whole
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Arguments:
      a1, a2: the coefficients along the first axis; further axes of the shorter one broadcast to those of the longer.
    Returns:
      The coefficients of the difference, as many as the longer has.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3, 0, 1]))
    Array([-3,  1,  1], dtype=int32)
    """
    return _sum("polysub", lax.sub, a1, a2)


@whole
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Arguments:
      a1, a2: the coefficients.
      trim_leading_zeros: whether to leave out leading zeros first, which must be known while tracing.
    Returns:
      The coefficients of the product, of an inexact dtype.
    Raises:
      ConcretizationTypeError: zeros of traced coefficients are to be left out.

    >>> import catena.numpy as jnp
    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([3, 0, 1]))
    Array([3., 6., 1., 2.], dtype=float32)
    """
    a1, a2 = map(_line, promote_dtypes_inexact("polymul", a1, a2))
    if trim_leading_zeros and (a1.size > 1 or a2.size > 1):
        a1, a2 = trim_zeros(a1, "f"), trim_zeros(a2, "f")
    a1 = a1 if a1.size else lax.full((1,), 0, a1.dtype)
    a2 = a2 if a2.size else lax.full((1,), 0, a2.dtype)
    return convolve(a1, a2)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Arguments:
      u: the dividend.
      v: the divisor.
      trim_leading_zeros: whether to leave out leading zeros of the remainder, which must be known while
        tracing.
    Returns:
      The coefficients of the quotient, and of the remainder, which has as many as ``u``.
    Raises:
      ConcretizationTypeError: zeros of a traced remainder are to be left out.

    >>> import catena.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, 3.0, 2.0]), jnp.array([1.0, 1.0]))
    (Array([1., 2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    u, v = map(_line, promote_dtypes_inexact("polydiv", u, v))
    quotient, remainder = (_few_digits if u.size - v.size < FEW else _digits)(u, v)
    return quotient, trim_zeros(remainder, "f") if trim_leading_zeros else remainder


def _digits(u, v) -> tuple:
    """The quotient and the remainder by long division."""
    degree, divisor_degree = u.size - 1, v.size - 1
    quotient = []
    remainder = u
    for k in range(degree - divisor_degree + 1):
        digit = lax.div(read(remainder, k), read(v, 0))
        quotient.append(digit)
        remainder = IndexUpdateRef(remainder, slice(k, k + v.size)).add(lax.neg(lax.mul(digit, v)))
    return lax.stack(quotient, 0) if quotient else lax.full((1,), 0, u.dtype), remainder


_few_digits = whole(_digits, "steps_of_polynomials")


# ----------------------------------------------------------------------------------------------------
# Derivatives and integrals


def _order(name: str, m, what: str) -> int:
    m = concrete_or_error(operator.index, m, f"'m' argument of jnp.{name}")
    if m < 0:
        raise ValueError(f"Order of {what} must be positive")
    return m


@whole
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial.

    Arguments:
      p: the coefficients.
      m: how often to differentiate.
    Returns:
      The coefficients of the derivative, of an inexact dtype.
    Raises:
      ValueError: ``m`` is negative.

    >>> import catena.numpy as jnp
    >>> jnp.polyder(jnp.array([1, 0, 2]))
    Array([2., 0.], dtype=float32)
    """
    p = _coefficients("polyder", p)
    m = _order("polyder", m, "derivative")
    if m == 0:
        return p
    n = p.size
    powers = np.arange(n - 1, m - 1, -1)
    factors = np.prod([powers - k for k in range(m)], axis=0, dtype=np.float64)
    return lax.mul(read(p, slice(None, max(n - m, 0))), like(p, factors))


@whole
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of a polynomial.

    Arguments:
      p: the coefficients.
      m: how often to integrate.
      k: the constants of integration, one for all or one for each time; by default 0.
    Returns:
      The coefficients of the integral, of an inexact dtype.
    Raises:
      ValueError: ``m`` is negative, or the number of constants does not fit.

    >>> import catena.numpy as jnp
    >>> jnp.polyint(jnp.array([3.0, 2.0]), k=7)
    Array([1.5, 2. , 7. ], dtype=float32)
    """
    k = 0 if k is None else k
    p, k = promote_dtypes_inexact("polyint", as_array_argument("polyint", p), as_array_argument("polyint", k, 1))
    p, k = _coefficients("polyint", p), ravel(k)
    m = _order("polyint", m, "integral")
    if k.size == 1:
        k = broadcast_to(k, (m,))
    if k.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    if m == 0:
        return p
    powers = np.arange(p.size + m, 0, -1) - 1
    factors = np.prod([np.maximum(1, powers - i) for i in range(m)], axis=0, dtype=np.float64)
    return lax.div(lax.concatenate([p, k], 0), like(p, factors))


# ----------------------------------------------------------------------------------------------------
# Roots and fits


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with given roots, and leading coefficient 1.

    Arguments:
      seq_of_zeros: the roots, or a square matrix, whose eigenvalues are the roots.
    Returns:
      The coefficients, of an inexact dtype.
    Raises:
      ValueError: the argument is neither 1-D nor a square matrix.

    >>> import catena.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    roots_ = as_array_argument("poly", seq_of_zeros)
    roots_ = convert(roots_, dtypes.to_inexact_dtype(roots_.dtype))
    if roots_.ndim == 2 and roots_.shape[0] == roots_.shape[1] and roots_.shape[0]:
        roots_ = linalg.eigvals(roots_)
    roots_ = ravel(roots_) if roots_.ndim == 0 else roots_
    if roots_.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not roots_.size:
        return lax.full((), 1, roots_.dtype)
    return (_few_factors if roots_.size <= FEW else _factors)(roots_)


def _factors(roots_):
    """The product of ``x - root`` for all roots."""
    result = lax.full((1,), 1, roots_.dtype)
    for i in range(roots_.size):
        zero, scaled = lax.full((), 0, result.dtype), lax.mul(read(roots_, i), result)
        result = lax.sub(lax.pad(result, zero, [(0, 1, 0)]), lax.pad(scaled, zero, [(1, 0, 0)]))
    return result


_few_factors = whole(_factors, "steps_of_polynomials")


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Arguments:
      p: the coefficients.
      strip_zeros: whether to leave out zeros at both ends first, which must be known while tracing; without
        it leading zeros give NaN.
    Returns:
      A 1-D complex array.
    Raises:
      ConcretizationTypeError: zeros of traced coefficients are to be left out.

    >>> import catena.numpy as jnp
    >>> jnp.roots(jnp.array([1.0, 0.0, -4.0]))
    Array([-1.9999999+0.j,  2.0000002+0.j], dtype=complex64)
    """
    p = _coefficients("roots", p)
    if not strip_zeros:
        return _roots_with_leading_zeros(p)
    known = concrete_or_error(
        lambda x: x,
        p,
        "The error occurred in the jnp.roots() function. To use this within a JIT-compiled context, pass "
        "strip_zeros=False, but be aware that leading zeros will result in some returned roots being set "
        "to NaN.",
    )
    where = np.flatnonzero(np.asarray(find_concrete(known)._value))
    complex_dtype = dtypes.to_complex_dtype(p.dtype)
    if not where.size:
        return lax.full((0,), 0, complex_dtype)
    zeros = p.size - 1 - int(where[-1])
    inner = _companion_roots(read(p, slice(int(where[0]), int(where[-1]) + 1)))
    return lax.concatenate([inner, lax.full((zeros,), 0, complex_dtype)], 0) if zeros else inner


def _companion_roots(p):
    """The roots of coefficients that begin and end with something."""
    n = p.size - 1
    dtype = dtypes.to_complex_dtype(p.dtype)
    if n < 1:
        return lax.full((0,), 0, dtype)
    first = lax.neg(lax.div(read(p, slice(1, None)), read(p, 0)))
    below = diag(lax.full((n - 1,), 1, p.dtype), -1) if n > 1 else lax.full((1, 1), 0, p.dtype)
    return convert(linalg.eigvals(IndexUpdateRef(below, 0).set(first)), dtype)


def _roots_with_leading_zeros(p):
    """As many roots as there are coefficients less one; those that leading zeros take away are NaN, at the end."""
    n = p.size
    dtype = dtypes.to_complex_dtype(p.dtype)
    if n < 2:
        return lax.full((0,), 0, dtype)
    nonzero, positions = lax.ne(p, lax.full_like(p, 0)), lax.iota(np.dtype("int32"), n - 1)
    leading = lax.select(lax.reduce_or(nonzero, (0,)), lax.argmax(nonzero, 0, np.dtype("int32")), np.int32(n))
    doubled = lax.concatenate([p, lax.full((n,), 0, p.dtype)], 0)
    stripped = lax.dynamic_slice(doubled, (leading,), (n,))  # zeros at the end instead
    # The roots of x**k p(x) are those of p, and k zeros, the smallest. Those of p stay in the order of eigenvalues,
    # but for zeros, which are behind the others.
    found = _companion_roots(stripped)
    ascending = lax.sort([lax.abs(found), positions], 0, num_keys=1)[1]
    rank = lax.sort([ascending, positions], 0, num_keys=1)[1]
    missing = lax.lt(rank, leading)
    last = lax.select(
        missing, lax.full((n - 1,), 2, "int32"), convert(lax.eq(found, lax.full_like(found, 0)), np.dtype("int32"))
    )
    marked = lax.select(missing, lax.full((n - 1,), complex(np.nan, np.nan), dtype), found)
    return read(marked, lax.sort([last, positions], 0, num_keys=1)[1])


@whole
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of a degree that is nearest to given points, by least squares.

    Arguments:
      x: the coordinates: 1-D.
      y: the values: 1-D, or several sets of values as columns.
      deg: the degree.
      rcond: singular values less than this times the greatest count as 0; by default the number of points
        times the machine epsilon.
      full: whether to return the residuals, rank, singular values and ``rcond``, too.
      w: weights of the points.
      cov: whether to return the covariances of the coefficients, too; "unscaled" for those of known
        variances.
    Returns:
      The coefficients; more as asked for.
    Raises:
      TypeError: the arrays do not fit. ValueError: ``deg`` is negative, or there are too few points for
        ``cov``.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(4.0)
    >>> jnp.polyfit(x, 2 * x + 1, 1).round(4)
    Array([2., 1.], dtype=float32)
    """
    x, y = _fit_arguments(x, y)
    deg = concrete_or_error(operator.index, deg, "deg must be int")
    order = deg + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    if not x.size:
        raise TypeError("expected non-empty vector for x")
    if y.ndim < 1 or y.ndim > 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    rcond = x.size * float(dtypes.finfo(x.dtype).eps) if rcond is None else rcond
    left, right = vander(x, order), y
    if w is not None:
        left, right = _weighted(left, right, w)
    scale = lax.sqrt(lax.reduce_sum(lax.mul(left, left), (0,)))
    left = lax.div(left, lax.broadcast_in_dim(scale, left.shape, (1,)))
    found, residuals, rank, singular = linalg.lstsq(left, right, rcond)
    found = lax.div(found, lax.broadcast_in_dim(scale, found.shape, (0,)))
    if full:
        return found, residuals, rank, singular, as_array_argument("polyfit", rcond)
    if not cov:
        return found
    base = linalg.inv(dot(matrix_transpose(left), left))
    base = lax.div(base, lax.mul(*(lax.broadcast_in_dim(scale, base.shape, (i,)) for i in range(2))))
    factor = _variance(cov, residuals, x.size, order, found.dtype)
    if y.ndim == 1:
        return found, lax.mul(base, factor if factor.ndim == 0 else lax.reshape(factor, ()))
    shape = (*base.shape, y.shape[1])
    spread = lax.broadcast_in_dim(base, shape, (0, 1))
    factor = broadcast_to(factor, (y.shape[1],)) if factor.ndim == 0 else factor
    return found, lax.mul(spread, lax.broadcast_in_dim(factor, shape, (2,)))


def _fit_arguments(x, y) -> tuple:
    """The coordinates and values in one inexact dtype."""
    x, y = as_array_argument("polyfit", x), as_array_argument("polyfit", y, 1)
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    dtype = dtypes.to_inexact_dtype(promoted_dtype([x, y])[0])
    return convert(x, dtype), convert(y, dtype)


def _weighted(left, right, w):
    w = as_array_argument("polyfit", w, 5)
    dtype = dtypes.to_complex_dtype(left.dtype) if dtypes.is_complex(w.dtype) else left.dtype
    left, right, w = (convert(x, dtype) for x in (left, right, w))
    if w.ndim != 1:
        raise TypeError("expected a 1-d array for weights")
    if w.shape[0] != right.shape[0]:
        raise TypeError("expected w and y to have the same length")
    return (lax.mul(m, lax.broadcast_in_dim(w, m.shape, (0,))) for m in (left, right))


def _variance(cov, residuals, n: int, order: int, dtype):
    if cov == "unscaled":
        return lax.full((), 1, dtype)
    if n <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    return lax.div(residuals, lax.full_like(residuals, n - order))


@whole
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:  # noqa: N803
    """The powers of numbers, one number a row.

    Arguments:
      x: a 1-D array.
      N: the number of columns; by default as many as rows.
      increasing: whether powers grow from left to right.
    Returns:
      A matrix.
    Raises:
      ValueError: ``x`` is not 1-D, or ``N`` is negative.

    >>> import catena.numpy as jnp
    >>> jnp.vander(jnp.array([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array_argument("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    n = x.shape[0] if N is None else concrete_or_error(operator.index, N, "'N' argument of jnp.vander()")
    if n < 0:
        raise ValueError("N must be nonnegative")
    exponents = np.arange(n, dtype=np.int32)
    exponents = exponents if increasing else exponents[::-1]
    if 0 < n <= _FEW_POWERS and (x.dtype.itemsize > 2 or not dtypes.is_inexact(x.dtype)):
        x = convert(x, dtypes.to_numeric_dtype(x.dtype))
        return stack([lax.integer_pow(x, int(k)) for k in exponents], 1)
    columns = lax.broadcast_in_dim(x, (x.size, n), (0,))
    exponents = make_array(np.ascontiguousarray(np.broadcast_to(exponents, (x.size, n))))
    if dtypes.is_inexact(x.dtype):
        return convert(lax.pow(columns, exponents), x.dtype)
    numeric = dtypes.to_numeric_dtype(x.dtype)
    return convert(power(convert(columns, numeric), convert(exponents, numeric)), x.dtype)
