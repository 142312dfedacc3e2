"""Logarithms with care at the ends of their domains: entropies, log-odds, Box and Cox's transformation."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import promote_inexact, strong
from catena.numpy.documentation import family
from catena.scipy.special.arguments import numbers, real
from catena.scipy.special.primitives import entr_p, log_quotient_p, logit_p
from catena.transform.custom_call import SymbolicZero
from catena.transform.custom_jvp import custom_jvp
from catena.transform.jit import jit
from catena.typing import ArrayLike

# ---- products with logarithms

_pairs = family(
    x="real or complex numbers.",
    y="real or complex numbers, of a shape that broadcasts with ``x``.",
    returns="An array of the float or complex dtype that the arguments promote to.",
    raises="TypeError: an argument is neither an array nor a scalar.\nValueError: shapes do not broadcast.",
)


def _product(log, slope):
    """``x * log(y)``, 0 where x is; ``slope(x, y)`` is its derivative by y."""

    @custom_jvp
    @jit
    def product(x, y):
        none = (x == 0) & ~jnp.isnan(y)
        return jnp.where(none, jnp.zeros_like(x), x * log(jnp.where(none, jnp.ones_like(y), y)))

    @product.defjvp
    def _(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        out = product(x, y)
        slopes = dx * log(y) + dy * slope(x, y)
        return out, slopes.astype(out.dtype)

    return product


_xlogy = _product(jnp.log, lambda x, y: x / y)
_xlog1py = _product(jnp.log1p, lambda x, y: x / (1 + y))


@whole
@_pairs
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log(y)``, which is 0 where ``x`` is.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 3.0]))
    Array([0.       , 2.1972246], dtype=float32)
    """
    return _xlogy(*promote_inexact("xlogy", x, y))


@whole
@_pairs
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """``x * log1p(y)``, which is 0 where ``x`` is.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 2.0]))
    Array([0.       , 2.1972246], dtype=float32)
    """
    return _xlog1py(*promote_inexact("xlog1py", x, y))


# ---- entropies

_distributions = family(
    p="numbers.",
    q="numbers, of a shape that broadcasts with ``p``.",
    returns="An array of the float dtype that the arguments promote to.",
    raises="TypeError: an argument is neither an array nor a scalar.\n"
    "ValueError: an argument is complex, or shapes do not broadcast.",
)


@numbers
def entr(x: ArrayLike) -> Array:
    """``-x * log(x)``, the entropy of a probability: 0 at 0, ``-inf`` for negative numbers.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.entr(jnp.array([0.0, 0.5, 1.0]))
    Array([-0.       ,  0.3465736, -0.       ], dtype=float32)
    """
    return entr_p.bind(*real("entr", x))


@whole
@_distributions
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """``p * log(p / q)``, a term of the relative entropy: 0 where ``p`` is, else infinite where one is not positive.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.rel_entr(jnp.array([0.5, 0.0]), 0.25)
    Array([0.3465736, 0.       ], dtype=float32)
    """
    return _rel_entr(*real("rel_entr", p, q))


@jit
def _rel_entr(p, q):
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    inner, outer = jnp.where(both, p, 1), jnp.where(both, q, 1)
    value = jnp.where(both, _positive_rel_entr(inner, outer), jnp.where(none, 0, np.inf))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), np.nan, value)


@custom_jvp
@jit
def _positive_rel_entr(p, q):
    return p * log_quotient_p.bind(p, q)


@_positive_rel_entr.defjvp
def _positive_rel_entr_jvp(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    return _positive_rel_entr(p, q), dp * (log_quotient_p.bind(p, q) + 1) - dq * (p / q)


@whole
@_distributions
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """``p * log(p / q) - p + q``, a term of the Kullback-Leibler divergence that is never negative.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.kl_div(jnp.array([0.5, 0.0]), 0.25)
    Array([0.09657359, 0.25      ], dtype=float32)
    """
    p, q = real("kl_div", p, q)
    return _kl_div(p, q)


@jit
def _kl_div(p, q):
    """What is greatest is added last."""
    entropy, proper = _rel_entr(p, q), (p >= 0) & (q >= 0)
    first, last = jnp.where(q > 2 * p, -p, q - p), jnp.where(q > 2 * p, q, 0)
    return jnp.where(proper, entropy + first + last, entropy)


# ---- log-odds


def logit(x: ArrayLike) -> Array:
    """The logarithm of the odds, ``log(x / (1 - x))``: the inverse of `expit`.

    Arguments:
      x: real or complex numbers.
    Returns:
      An array of the float or complex dtype that ``x`` promotes to.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.logit(jnp.array([0.0, 0.5, 0.9]))
    Array([     -inf, 0.       , 2.1972244], dtype=float32)
    """
    (x,) = promote_inexact("logit", x)
    odds = jnp.log(x / (1 - x)) if dtypes.is_complex(x.dtype) else logit_p.bind(x)
    return strong(odds) if x.ndim else odds


def expit(x: ArrayLike) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Arguments:
      x: real or complex numbers.
    Returns:
      An array of the float or complex dtype that ``x`` promotes to.
    Raises:
      TypeError: ``x`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.expit(jnp.array([-jnp.inf, 0.0, 2.0]))
    Array([0.      , 0.5     , 0.880797], dtype=float32)
    """
    return lax.logistic(*promote_inexact("expit", x))


# ---- Box and Cox's transformation

_powers = family(
    x="real or complex numbers.",
    lmbda="the exponents, numbers of a shape that broadcasts with ``x``.",
    returns="An array of the float or complex dtype that the arguments promote to.",
    raises="TypeError: an argument is neither an array nor a scalar.\nValueError: shapes do not broadcast.",
)


@whole
@_powers
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation ``(x**lmbda - 1) / lmbda``, whose limit for 0 is the logarithm.

    Source: Box and Cox, "An analysis of transformations" (1964).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.boxcox(jnp.array([1.0, 2.0]), 2.0)
    Array([0. , 1.5], dtype=float32)
    """
    return _boxcox(*promote_inexact("boxcox", x, lmbda))


@whole
@_powers
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation of ``1 + x``.

    Source: Box and Cox, "An analysis of transformations" (1964).

    >>> import catena.numpy as jnp
    >>> from catena.scipy import special
    >>> special.boxcox1p(jnp.array([0.0, 1e-8]), 2.0)
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    x, exponent = promote_inexact("boxcox1p", x, lmbda)
    return _power_of_log(jnp.log1p(x), exponent)


@custom_jvp
@jit
def _boxcox(x, exponent):
    return _power_of_log(jnp.log(x), exponent)


@partial(_boxcox.defjvp, symbolic_zeros=True)
def _boxcox_jvp(primals, tangents):
    """By x the power of an exponent less by one, which is rounded where the quotient of the power itself is not. It may
    be infinite, so that of a constant x there is no product.
    """
    (x, exponent), (dx, dexponent) = primals, tangents
    zero, parts = x == 0, []
    if type(dx) is not SymbolicZero:
        parts.append(dx * jnp.where(zero, x ** (exponent - 1), x**exponent / jnp.where(zero, 1, x)))
    if type(dexponent) is not SymbolicZero:
        parts.append(dexponent * _slope_by_exponent(jnp.log(x), exponent))
    return _boxcox(x, exponent), sum(parts)


@custom_jvp
@jit
def _power_of_log(log, exponent):
    """(exp(exponent log) - 1) / exponent: where the exponent is small, by the series."""
    u = exponent * log
    small = jnp.abs(u) < 1e-3
    none = exponent == 0
    v = jnp.where(small, u, 0)
    series = log * (1 + v * (1 / 2 + v * (1 / 6 + v * (1 / 24 + v / 120))))
    power = jnp.expm1(u) / jnp.where(none, 1, exponent)
    return jnp.where(small, series, jnp.where(none, log, power))


@_power_of_log.defjvp
def _power_of_log_jvp(primals, tangents):
    (log, exponent), (dlog, dexponent) = primals, tangents
    slope = dlog * jnp.exp(exponent * log) + dexponent * _slope_by_exponent(log, exponent)
    return _power_of_log(log, exponent), slope


LEAST_POWER = -2000.0  # from which down exp(u) is zero, and u exp(u) too: of -infinity it would not be a number
# Of (u exp(u) - exp(u) + 1) / u^2, whose terms cancel: 1 / (k! (k + 2)).
SLOPE_OF_POWER = tuple(1 / (math.factorial(k) * (k + 2)) for k in range(18))


@jit
def _slope_by_exponent(log, exponent):
    u = exponent * log
    if not dtypes.is_complex(u.dtype):
        u = jnp.maximum(u, LEAST_POWER)
    small = jnp.abs(u) < 1
    v, series = jnp.where(small, u, 0), 0
    for coefficient in reversed(SLOPE_OF_POWER):
        series = series * v + coefficient
    divisor = jnp.where(small, 1, exponent)
    return jnp.where(small, log * log * series, ((u - 1) / divisor * jnp.exp(u) + 1 / divisor) / divisor)
