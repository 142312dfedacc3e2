"""Error functions, Dawson's and Fresnel's integrals, and the normal distribution."""

from __future__ import annotations

import operator

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import convert, promote_inexact
from catena.scipy.special.arguments import floats, maybe_weak_float, numbers, plain_float, plain_floats, real, strong
from catena.scipy.special.primitives import (
    dawsn_p,
    erfcx_p,
    faddeeva_imag_p,
    faddeeva_real_p,
    fresnel_c_p,
    fresnel_s_p,
    log_ndtr_p,
    ndtr_p,
    ndtri_p,
    owens_t_p,
)
from catena.typing import ArrayLike

# ---- error functions


@floats
def erf(x: ArrayLike) -> Array:
    """The error function.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.erf(jnp.array([0.0, 1.0])).round(4)
    Array([0.    , 0.8427], dtype=float32)
    """
    return lax.erf(*promote_inexact("erf", x))


@floats
def erfc(x: ArrayLike) -> Array:
    """The error function's complement, ``1 - erf(x)``.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.erfc(jnp.array([0.0, 5.0]))
    Array([1.0000000e+00, 1.5374598e-12], dtype=float32)
    """
    return lax.erfc(*promote_inexact("erfc", x))


@floats
def erfinv(x: ArrayLike) -> Array:
    """The inverse of the error function.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.erfinv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return lax.erf_inv(*promote_inexact("erfinv", x))


def erfcx(x: ArrayLike) -> Array:
    """The scaled complementary error function, ``exp(x**2) * erfc(x)``.

    Arguments:
      x: real or complex numbers.
    Returns:
      An array of the float or complex dtype that ``x`` promotes to.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    Source: for complex numbers that of `wofz`.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.erfcx(jnp.array([0.0, 100.0]))
    Array([1.        , 0.00564161], dtype=float32)
    """
    (x,) = promote_inexact("erfcx", x)
    if dtypes.is_complex(x.dtype):
        return _faddeeva(lax.neg(lax.imag(x)), lax.real(x))
    return strong(erfcx_p.bind(x))


@whole
def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function ``exp(-z**2) * erfc(-1j * z)``, the complex error function.

    Arguments:
      z: real or complex numbers.
    Returns:
      A complex array of the shape of ``z``.
    Raises:
      TypeError: ``z`` is neither an array nor a scalar.

    Source: Al Azah and Chandler-Wilde, "Computation of the complex error function using modified trapezoidal rules"
    (2021).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.wofz(jnp.array([0j, 1 + 1j]))
    Array([1.       +0.j        , 0.3047442+0.20821893j], dtype=complex64)
    """
    (z,) = promote_inexact("wofz", z)
    if dtypes.is_complex(z.dtype):
        return _faddeeva(lax.real(z), lax.imag(z))
    z = convert(z, max(z.dtype, np.dtype("float32"), key=lambda dtype: dtype.itemsize))
    return _faddeeva(z, lax.full_like(z, 0))


def _faddeeva(x, y):
    return strong(lax.complex(faddeeva_real_p.bind(x, y), faddeeva_imag_p.bind(x, y)))


@numbers
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    Source: a polynomial up to 1, then that of `wofz`.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.dawsn(jnp.array([0.0, 1.0]))
    Array([0.       , 0.5380795], dtype=float32)
    """
    return strong(dawsn_p.bind(*real("dawsn", x)))


@whole
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals of ``sin(pi / 2 * t**2)`` and of ``cos(pi / 2 * t**2)`` from 0 to ``x``.

    Arguments:
      x: numbers.
    Returns:
      The integral of the sine and that of the cosine: arrays of the float dtype that ``x`` promotes to.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      NotImplementedError: ``x`` is complex.

    Source: NIST DLMF 7.5.

    >>> from catena.scipy import special
    >>> special.fresnel(1.0)
    (Array(0.43825915, dtype=float32), Array(0.7798934, dtype=float32))
    """
    (x,) = real("fresnel", x, error=NotImplementedError)
    return strong(fresnel_s_p.bind(x)), strong(fresnel_c_p.bind(x))


# ---- the normal distribution


@plain_floats
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the normal distribution.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.ndtr(jnp.array([0.0, 40.0, -10.0]))
    Array([5.000000e-01, 1.000000e+00, 7.619853e-24], dtype=float32)
    """
    return ndtr_p.bind(plain_float("ndtr", x))


@plain_floats
def ndtri(p: ArrayLike) -> Array:
    """The inverse of the normal distribution function.

    Source: polynomials in ``sqrt(-2 * log(p))`` in the tails, as Wichura's "Algorithm AS 241" (1988) has quotients.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.ndtri(jnp.array([0.5, 0.975, 1e-30]))
    Array([  0.       ,   1.9599644, -11.464025 ], dtype=float32)
    """
    if isinstance(p, list | tuple):
        raise TypeError(f"ndtri requires an array or a scalar, got {type(p)}")
    return ndtri_p.bind(plain_float("ndtri", p))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of the normal distribution function, also where that is zero.

    Arguments:
      x: an array of float32 or float64, or a Python float.
      series_order: the terms of an asymptotic series that other implementations take far from zero, from 0 to 30;
        this one has all digits everywhere and takes none.
    Returns:
      An array of the dtype of ``x``.
    Raises:
      TypeError: ``x`` is of another dtype, or ``series_order`` is not an integer.
      ValueError: ``series_order`` is negative or greater than 30.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.log_ndtr(jnp.array([0.0, -100.0, 10.0]))
    Array([-6.9314718e-01, -5.0055244e+03, -7.6198528e-24], dtype=float32)
    """
    try:
        order = operator.index(series_order)
    except TypeError as error:
        raise TypeError(f"log_ndtr: series_order must be an integer, got {series_order!r}") from error
    if not 0 <= order <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 0 to 30, got {order}")
    return log_ndtr_p.bind(maybe_weak_float("log_ndtr", x))


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: the probability that ``X > h`` and ``0 < Y < a * X`` for independent normal ``X`` and ``Y``.

    Arguments:
      h: numbers.
      a: numbers, of a shape that broadcasts with ``h``.
    Returns:
      An array of the float dtype that the arguments promote to, of 32 bits at least.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: an argument is complex, or shapes do not broadcast.

    Source: Owen, "Tables for computing bivariate normal probabilities" (1956); Gauss-Legendre quadrature.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.owens_t(jnp.array([0.0, 1.0]), 1.0)
    Array([0.125     , 0.06674188], dtype=float32)
    """
    h, a = real("owens_t", h, a)
    wide = dtypes.canonical(np.dtype(float))  # as in JAX, with x64 on of narrower floats, too
    return owens_t_p.bind(convert(h, wide), convert(a, wide))
