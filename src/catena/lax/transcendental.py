"""Exponentials, logarithms, circular and hyperbolic functions."""

import numpy as np

from catena.core.zeros import get_aval
from catena.lax import complex_edges
from catena.lax.arithmetic import add, div, integer_pow, mul, neg, sub
from catena.lax.declared import log_p
from catena.lax.elementwise import (
    INEXACT,
    WIDER_WITH_HALF,
    check_accuracy,
    elementwise,
    spread_operands,
)
from catena.lax.powers import rsqrt, square
from catena.lax.structure import constant_like, like

# ------------------------------------------------------------------------------------------------------------
# What several share


def _function(name, evaluate, tangent, **rules):
    return elementwise(name, evaluate, INEXACT, tangent, **rules)


def one_minus(x):
    return sub(like(x, 1), x)


# ---- exp

exp_p = _function("exp", np.exp, lambda t, x, y: mul(t, y))


def exp(x, *, accuracy=None):
    r"""Elementwise exponential: :math:`e^x`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.exp(0.0).item()
    1.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return exp_p.bind(x)


# ---- exp2


def _exp2_tangent(t, x, y):
    return mul(log(constant_like(x, 2)), mul(t, y))


exp2_p = _function("exp2", np.exp2, _exp2_tangent)


def exp2(x, *, accuracy=None):
    r"""Elementwise power of two: :math:`2^x`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.exp2(3.0).item()
    8.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return exp2_p.bind(x)


# ---- expm1

expm1_p = _function("expm1", np.expm1, lambda t, x, y: mul(t, add(y, like(y, 1))), of_complex=complex_edges.expm1)


def expm1(x, *, accuracy=None):
    r"""Elementwise :math:`e^x - 1`, accurate near zero.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.expm1(0.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return expm1_p.bind(x)


# ---- log

log_p = _function(log_p, np.log, lambda t, x, y: div(t, x))


def log(x, *, accuracy=None):
    r"""Elementwise natural logarithm: :math:`\log x`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.log(1.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return log_p.bind(x)


# ---- log1p

log1p_p = _function("log1p", np.log1p, lambda t, x, y: div(t, add(x, like(x, 1))), of_complex=complex_edges.log1p)


def log1p(x, *, accuracy=None):
    r"""Elementwise :math:`\log(1 + x)`, accurate near zero.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.log1p(0.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return log1p_p.bind(x)


# ---- logistic


def _logistic(x):
    if x.dtype.kind == "c":
        return np.reciprocal(np.exp(-x) + x.dtype.type(1))
    one = x.dtype.type(1)
    small = np.exp(-np.abs(x))  # at most one, so that neither half of the line overflows
    return np.where(x < 0, small, one) / (one + small)


def _logistic_tangent(t, x, y):
    return mul(t, mul(y, one_minus(y)))


logistic_p = _function("logistic", _logistic, _logistic_tangent, wider=WIDER_WITH_HALF)


def logistic(x, *, accuracy=None):
    r"""Elementwise logistic function: :math:`1 \over 1 + e^{-x}`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.logistic(0.0).item()
    0.5
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return logistic_p.bind(x)


# ---- sin

sin_p = _function("sin", np.sin, lambda t, x, y: mul(t, cos(x)))


def sin(x, *, accuracy=None):
    r"""Elementwise sine.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.sin(0.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return sin_p.bind(x)


# ---- cos

cos_p = _function("cos", np.cos, lambda t, x, y: neg(mul(t, sin(x))))


def cos(x, *, accuracy=None):
    r"""Elementwise cosine.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.cos(0.0).item()
    1.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return cos_p.bind(x)


# ---- tan

tan_p = _function("tan", np.tan, lambda t, x, y: mul(t, add(constant_like(y, 1), square(y))))


def tan(x, *, accuracy=None):
    r"""Elementwise tangent.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.tan(0.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return tan_p.bind(x)


# ---- asin

asin_p = _function("asin", np.arcsin, lambda t, x, y: mul(t, rsqrt(sub(constant_like(x, 1), square(x)))))


def asin(x):
    r"""Elementwise inverse of the sine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.asin(0.0).item()
    0.0
    """
    return asin_p.bind(x)


# ---- acos

acos_p = _function("acos", np.arccos, lambda t, x, y: mul(t, neg(rsqrt(sub(constant_like(x, 1), square(x))))))


def acos(x):
    r"""Elementwise inverse of the cosine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.acos(1.0).item()
    0.0
    """
    return acos_p.bind(x)


# ---- atan

atan_p = _function("atan", np.arctan, lambda t, x, y: div(t, add(constant_like(x, 1), square(x))))


def atan(x):
    r"""Elementwise inverse of the tangent.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.atan(0.0).item()
    0.0
    """
    return atan_p.bind(x)


# ---- sinh

sinh_p = _function("sinh", np.sinh, lambda t, x, y: mul(t, cosh(x)))


def sinh(x):
    r"""Elementwise hyperbolic sine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.sinh(0.0).item()
    0.0
    """
    return sinh_p.bind(x)


# ---- cosh

cosh_p = _function("cosh", np.cosh, lambda t, x, y: mul(t, sinh(x)))


def cosh(x):
    r"""Elementwise hyperbolic cosine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.cosh(0.0).item()
    1.0
    """
    return cosh_p.bind(x)


# ---- tanh


def _tanh_tangent(t, x, y):
    """``t (1 - y^2)``, as ``(t + t y)(1 - y)``, which keeps its digits where ``y`` is near one."""
    return mul(add(t, mul(t, y)), one_minus(y))


tanh_p = _function("tanh", np.tanh, _tanh_tangent)


def tanh(x, *, accuracy=None):
    r"""Elementwise hyperbolic tangent.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.tanh(0.0).item()
    0.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return tanh_p.bind(x)


# ---- asinh

asinh_p = _function("asinh", np.arcsinh, lambda t, x, y: mul(t, rsqrt(add(square(x), like(x, 1)))))


def asinh(x):
    r"""Elementwise inverse of the hyperbolic sine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.asinh(0.0).item()
    0.0
    """
    return asinh_p.bind(x)


# ---- acosh

acosh_p = _function("acosh", np.arccosh, lambda t, x, y: mul(t, rsqrt(sub(square(x), like(x, 1)))))


def acosh(x):
    r"""Elementwise inverse of the hyperbolic cosine.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.acosh(1.0).item()
    0.0
    """
    return acosh_p.bind(x)


# ---- atanh


def _atanh_tangent(t, x, y):
    """Of complex numbers by two quotients, since the product may be beyond the range."""
    above, below = add(like(x, 1), x), one_minus(x)
    if np.issubdtype(get_aval(x).dtype, np.complexfloating):
        return mul(integer_pow(above, -1), div(t, below))
    return div(t, mul(above, below))


atanh_p = _function("atanh", np.arctanh, _atanh_tangent)


def atanh(x):
    r"""Elementwise inverse of the hyperbolic tangent.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.atanh(0.0).item()
    0.0
    """
    return atanh_p.bind(x)


# ---- atan2


def _atan2(x, y):
    """The angle of the point (y, x); for complex arguments by the logarithm, as XLA continues it."""
    if x.dtype.kind != "c":
        return np.arctan2(x, y)
    i = x.dtype.type(1j)
    return -i * np.log((y + i * x) / np.sqrt(x * x + y * y))


def _atan2_lower(b, x, y):
    x, y = spread_operands(b, (x, y))
    if x.dtype.kind != "c":
        return b.map("atan2", x, y)
    i, minus_i = (b.constant(np.asarray(c, x.dtype)) for c in (1j, -1j))
    size = b.map("sqrt", b.map("add", b.map("mul", x, x), b.map("mul", y, y)))
    point = b.map("add", y, b.map("mul", i, x))
    return b.map("mul", minus_i, b.map("log", b.map("div", point, size)))


def _atan2_factor(x, y, numerator):
    return div(numerator, add(square(x), square(y)))


atan2_p = elementwise(
    "atan2", _atan2, INEXACT, lambda t, x, y, z: mul(t, _atan2_factor(x, y, y)),
    lambda t, x, y, z: mul(t, _atan2_factor(x, y, neg(x))), lower=_atan2_lower,
)  # fmt: skip


def atan2(x, y):
    r"""Elementwise angle of the points :math:`(y, x)`, between :math:`-\pi` and :math:`\pi`.

    Arguments:
      x, y: arrays of the same dtype, floats or complex numbers, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not admitted, or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.atan2(1.0, 0.0).item()
    1.5707963705062866
    """
    return atan2_p.bind(x, y)
