"""Powers and roots."""

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.zeros import get_aval
from catena.lax import complex_edges
from catena.lax.arithmetic import div, integer_pow, integer_pow_p, mul, sub
from catena.lax.comparison import eq, select
from catena.lax.convert import convert
from catena.lax.declared import log_p
from catena.lax.elementwise import (
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    broadcast_operand_shapes,
    check_accuracy,
    check_admitted,
    elementwise,
    spread_operands,
)
from catena.lax.structure import broadcast_to, constant_like, like, strong_like

# ---- square

square_p = elementwise(
    "square", np.square, NUMBER, lambda t, x, y: mul(t, mul(constant_like(x, 2), x)), of_complex=complex_edges.square
)


def square(x):
    r"""Elementwise square: :math:`x^2`.

    Arguments:
      x: array of numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.square(3).item()
    9
    """
    return square_p.bind(x)


# ---- sqrt


def _sqrt_tangent(t, x, y):
    """By the inverse root, which of floats takes half the time of a quotient; of complex numbers it is one."""
    complex_ = dtypes.issubdtype(get_aval(x).dtype, np.complexfloating)
    return mul(t, div(constant_like(y, 0.5), y) if complex_ else mul(constant_like(y, 0.5), rsqrt(x)))


sqrt_p = elementwise("sqrt", np.sqrt, INEXACT, _sqrt_tangent)


def sqrt(x, *, accuracy=None):
    r"""Elementwise square root: :math:`\sqrt{x}`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.sqrt(9.0).item()
    3.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return sqrt_p.bind(x)


# ---- rsqrt


def _rsqrt(x):
    return np.divide(x.dtype.type(1), np.sqrt(x))


rsqrt_p = elementwise("rsqrt", _rsqrt, INEXACT, lambda t, x, y: mul(t, mul(constant_like(y, -0.5), div(y, x))))


def rsqrt(x, *, accuracy=None):
    r"""Elementwise reciprocal square root: :math:`1 \over \sqrt{x}`.

    Arguments:
      x: array of floats or complex numbers.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.rsqrt(4.0).item()
    0.5
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return rsqrt_p.bind(x)


# ---- cbrt


def _cbrt(x):
    """NumPy's in float64: in float32 it is off by more than one unit, at 27 for one."""
    return np.cbrt(x.astype(np.float64)).astype(x.dtype)


cbrt_p = elementwise("cbrt", _cbrt, FLOAT, lambda t, x, y: mul(t, mul(constant_like(y, 1 / 3), integer_pow(y, -2))))


def cbrt(x, *, accuracy=None):
    r"""Elementwise cube root: :math:`\sqrt[3]{x}`.

    Arguments:
      x: array of floats.
      accuracy: the accuracy asked for, an ``AccuracyMode`` or a ``Tolerance``.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.cbrt(-8.0).item()
    -2.0
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return cbrt_p.bind(x)


# ---- reciprocal


def reciprocal(x):
    r"""Elementwise reciprocal: :math:`1 \over x`.

    Arguments:
      x: array of floats or complex numbers.
    Returns:
      An array of the same type.
    Raises:
      TypeError: the dtype is not admitted.

    >>> import catena.lax as lax
    >>> lax.reciprocal(4.0).item()
    0.25
    """
    return integer_pow_p.bind(x, y=-1)


# ---- pow


def pow_derivative(x, y):
    """The derivative of ``x ** y`` by ``x``; exactly zero where an integer ``y`` is zero."""
    exact = dtypes.is_inexact(get_aval(y).dtype)
    y = y if exact else convert(y, get_aval(x).dtype)  # strong, as in JAX
    if exact:
        return mul(y, pow(x, sub(y, strong_like(y, 1))))
    is_zero, ones = eq(y, like(y, 0)), broadcast_to(like(y, 1), get_aval(y).shape)
    slope = mul(select(is_zero, ones, y), pow(x, sub(y, like(y, 1))))
    shape = get_aval(slope).shape
    return select(broadcast_to(is_zero, shape), broadcast_to(like(slope, 0), shape), slope)


def _pow(x, y):
    """NumPy's power, of real numbers by way of float64: NumPy's is off by up to 0.9 units."""
    if x.dtype.kind == "c":
        return np.power(x, y.astype(x.dtype, copy=False))
    return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


def _pow_tangent_x(t, x, y, z):
    return mul(t, pow_derivative(x, y))


def _pow_tangent_y(t, x, y, z):
    ones = broadcast_to(like(x, 1), get_aval(x).shape)
    return mul(t, mul(log_p.bind(select(eq(x, like(x, 0)), ones, x)), z))


def _pow_abstract(x, y):
    check_admitted("pow", x, INEXACT, 0)
    y_kind = dtypes.KIND.get(y.dtype, "-")
    if y_kind not in "iufc" or (y_kind in "fc" and x.dtype != y.dtype):
        raise TypeError(
            "the first argument to pow must have an inexact dtype (float or complex), and the second argument must "
            "have an inexact or integer dtype, and two inexact dtypes must match, but got "
            f"{dtypes.dtype_name(x.dtype)} and {dtypes.dtype_name(y.dtype)} respectively."
        )
    shape = broadcast_operand_shapes("pow", (x.shape, y.shape))
    return ShapedArray(shape, x.dtype, x.weak_type and y.weak_type)


def _pow_lower(b, x, y):
    x, y = spread_operands(b, (x, y))
    if x.dtype == y.dtype:
        return b.map("pow", x, y)
    if dtypes.is_complex(x.dtype):
        return b.map("pow", x, b.convert(y, x.dtype))
    wide = np.dtype(np.float64)
    return b.convert(b.map("pow", b.convert(x, wide), b.convert(y, wide)), x.dtype)


pow_p = elementwise(
    "pow",
    _pow,
    INEXACT,
    _pow_tangent_x,
    _pow_tangent_y,
    abstract=_pow_abstract,
    lower=_pow_lower,
)


def pow(x, y):
    r"""Elementwise power: :math:`x^y`.

    Arguments:
      x: array of floats or complex numbers.
      y: array of the dtype of ``x`` or of integers, of a shape that broadcasts with that of ``x``.
    Returns:
      An array of the dtype of ``x``.
    Raises:
      TypeError: the dtypes or the shapes do not fit.

    >>> import catena.lax as lax
    >>> lax.pow(2.0, 0.5).item(), lax.pow(-2.0, 3).item()
    (1.4142135381698608, -8.0)
    """
    return pow_p.bind(x, y)


# ---- wrapping_pow


def _wrapping_pow(x, y):
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    return np.power(x.view(unsigned), y.view(unsigned)).view(x.dtype)


wrapping_pow_p = elementwise("wrapping_pow", _wrapping_pow, INTEGER, None, None, op="pow")


def wrapping_pow(x, y):
    r"""Elementwise :math:`x^y` of integers, in the ring of their width; negative exponents count as unsigned.

    Arguments:
      x, y: integer arrays of the same dtype, of shapes that broadcast.
    Returns:
      An array of that dtype.
    Raises:
      TypeError: the dtypes differ or are not integers, or the shapes do not fit.

    >>> import numpy as np
    >>> from catena.lax.powers import wrapping_pow
    >>> wrapping_pow(np.int32(-3), np.int32(3)).item(), wrapping_pow(np.int32(2), np.int32(32)).item()
    (-27, 0)
    """
    return wrapping_pow_p.bind(x, y)
