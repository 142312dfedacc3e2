"""Exponential, sine and cosine integrals, and the dilogarithm."""

from __future__ import annotations

import numpy as np

from catena import numpy as jnp
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import broadcast_together
from catena.scipy.special.arguments import numbers, plain_float, plain_floats, real, strong
from catena.scipy.special.primitives import cosine_integral_p, exp1_p, expi_p, expn_p, sine_integral_p, spence_p
from catena.transform.jit import jit
from catena.typing import ArrayLike


@numbers
def exp1(x: ArrayLike) -> Array:
    """The exponential integral of order 1: that of ``exp(-x * t) / t`` from 1 on; NaN for negative numbers.

    Source: NIST DLMF 6.6.2; polynomials in ``(x - 3) / (x + 3)`` beyond 1.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.exp1(jnp.array([0.5, 1.0]))
    Array([0.5597736 , 0.21938394], dtype=float32)
    """
    return exp1_p.bind(*real("exp1", x))


@numbers
def expi(x: ArrayLike) -> Array:
    """The exponential integral: that of ``exp(t) / t`` up to ``x``, its principal value.

    Source: Cody and Thacher, "Chebyshev approximations for the exponential integral Ei(x)" (1969).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.expi(jnp.array([-1.0, 1.0]))
    Array([-0.21938394,  1.8951178 ], dtype=float32)
    """
    return expi_p.bind(*real("expi", x))


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral of order ``n``: that of ``exp(-x * t) / t**n`` from 1 on.

    Arguments:
      n: orders, whole or not.
      x: numbers, of a shape that broadcasts with ``n``.
    Returns:
      An array of the float dtype that the arguments promote to; NaN for negative ``x``.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: an argument is complex, or shapes do not broadcast.

    Source: NIST DLMF 8.19.8 up to 1, 8.19.17 beyond.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.expn(jnp.array([0, 1, 2]), 1.0)
    Array([0.36787945, 0.21938394, 0.14849551], dtype=float32)
    """
    return expn_p.bind(*broadcast_together("expn", real("expn", n, x), ValueError))


@whole
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The integrals of ``sin(t) / t`` from 0 to ``x`` and, as a principal value, of ``cos(t) / t`` up to it.

    Arguments:
      x: numbers.
    Returns:
      The sine integral and the cosine integral: arrays of the float dtype that ``x`` promotes to.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.
      ValueError: ``x`` is complex.

    Source: NIST DLMF 6.2.17-20; polynomials, around the first zero of the cosine integral too.

    >>> from catena.scipy import special
    >>> special.sici(1.0)
    (Array(0.94608307, dtype=float32), Array(0.33740392, dtype=float32))
    """
    (x,) = real("sici", x)
    return _sici(strong(x))


@jit
def _sici(x):
    magnitude = jnp.where(x == -np.inf, np.nan, jnp.where(x < 0, -x, x))
    return sine_integral_p.bind(x), cosine_integral_p.bind(magnitude)


@plain_floats
def spence(x: Array) -> Array:
    """Spence's function: the integral of ``log(t) / (1 - t)`` from 1 to ``x``, the dilogarithm of ``1 - x``.

    Source: Debye's series in the logarithm; NIST DLMF 25.12.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.spence(jnp.array([0.0, 1.0, 2.0]))
    Array([ 1.644934,  0.      , -0.822467], dtype=float32)
    """
    return spence_p.bind(plain_float("spence", x))
