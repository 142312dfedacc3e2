"""erf, erfc and the inverse of erf."""

import math

import numpy as np

from . import pieces, tables
from .double_double import Pair, two_product
from .exponential import exp_sum_times, moderate_exp_sum_times
from .logarithm import INFINITY, log1p_up_to_zero, rounded_log
from .text import Value, copysign, fabs, fma, horner, if_any, maximum, minimum, select, sqrt, without_tiny

# M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011, single precision
# (table 5);
# random.normal is defined through exactly these polynomials.
GILES_CENTRE = (
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
)
GILES_TAIL = (
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
)


def small_erf(x: Value) -> Value:
    """erf(x) for |x| <= 1."""
    return fma(x, horner(x * x, tables.ERF[x.elem]), x)


def large_erfc(a: Value) -> Value:
    """erfc(a) for a >= 0.45: exp(-a^2) times a smooth function of q = (a - 3) / (a + 3)
    (Shepherd & Laframboise 1981).
    """
    a = minimum(a, 30.0)
    square = two_product(a, a)
    q = (a - 3.0) / (a + 3.0)
    smooth = horner(q, tables.ERFC[a.elem]) / fma(a, 2.0, 1.0)
    return exp_sum_times(-square.high, -square.low, smooth)


def erf(x: Value) -> Value:
    if x.elem == "float":
        return pieces.ERF(x)
    a = fabs(x)
    near = select(a < x.format.tiny, tiny_erf(x), small_erf(x))
    return select(a < 1.0, near, copysign(1.0 - large_erfc(a), x))


def tiny_erf(x: Value) -> Value:
    """2/sqrt(pi) x for subnormal x: one product, since the polynomial's fma would round twice at the coarse end."""
    return x * 1.1283791670955126


FAR = 10.21  # where exp(-x^2) is nothing beside the least float
LEAST = 2.0**-28  # in the square of which nothing underflows


def _minus_square(x: Value) -> tuple[Value, Pair]:
    """|x| as far as floats hang on it, and minus its square: both functions share it, and the exponential."""
    a = maximum(minimum(fabs(x), FAR), LEAST)
    square = two_product(a, a)
    return a, Pair(-square.high, -square.low)


def erfc(x: Value) -> Value:
    """Of floats, exp(-x^2) times a smooth function."""
    a = fabs(x)
    if x.elem == "float":
        a, square = _minus_square(x)
        tail = moderate_exp_sum_times(*square, pieces.ERROR_TAIL(a))
        return select(x < 0.0, 2.0 - tail, tail)
    tail = large_erfc(maximum(a, 0.25))
    near = 1.0 - small_erf(without_tiny(x, x.format.epsilon / 8))  # of less, 1 is the nearest number
    return select(a < 0.5, near, select(x < 0.0, 2.0 - tail, tail))


def error_density(x: Value) -> Value:
    """2 exp(-x^2) / sqrt(pi), the derivative of erf.

    A product of what exp gives would cost a hundred cycles where it is subnormal.
    """
    factor = 2 / math.sqrt(math.pi)
    if x.elem == "float":
        _, square = _minus_square(x)
        high = float(np.float32(64.0 * factor))
        return moderate_exp_sum_times(*square, Pair(x.like(high), x.like(64.0 * factor - high)))
    square = two_product(x, x)
    return exp_sum_times(-square.high, -square.low, x.like(factor))


def normal_density(x: Value) -> Value:
    """exp(-x^2 / 2) / sqrt(2 pi), the derivative of the normal distribution function."""
    square = two_product(x, x)
    return exp_sum_times(square.high * -0.5, square.low * -0.5, x.like(1 / math.sqrt(2 * math.pi)))


def normal_distribution(x: Value) -> Value:
    """The distribution function of the normal distribution, of floats: exp(-x^2 / 2) times a smooth function."""
    a = maximum(minimum(fabs(x), 14.5), 2.0**-28)  # where it is zero, and nearly a half, in which no square underflows
    square = two_product(a, a)
    tail = moderate_exp_sum_times(square.high * -0.5, square.low * -0.5, pieces.NORMAL_TAIL(a))
    return select(x < 0.0, tail, 1.0 - tail)


def erf_inv(x: Value) -> Value:
    """x times a polynomial in w = -log(1 - x^2), a normal number between -1 and 1, or in sqrt(w) for the tails."""
    a = fabs(x)
    result, inside = x * (giles_erf_inv(x) if x.elem == "float" else double_erf_inv(x)), a < 1.0

    def anywhere() -> list[Value]:
        return [select(inside, result, select(a.equals(1.0), x * INFINITY, float("nan")))]

    return if_any(~inside, anywhere, [result])[0]


def giles_erf_inv(x: Value) -> Value:
    w = -log1p_up_to_zero(-(x * x), True)
    centre, far = horner(w - 2.5, GILES_CENTRE), w >= 5.0
    return if_any(far, lambda: [select(far, horner(sqrt(w) - 3.0, GILES_TAIL), centre)], [centre])[0]


def double_erf_inv(x: Value) -> Value:
    """Giles's double-precision splits with coefficients of our own; 1 - x^2 is rounded once."""
    w = -rounded_log(fma(-x, x, 1.0), None, True)
    centre, far = horner(w - 3.125, tables.ERF_INV_CENTRE["double"]), w >= 6.25

    def beyond() -> list[Value]:
        root = sqrt(w)
        middle = horner(root - 3.25, tables.ERF_INV_MIDDLE["double"])
        tail = horner(root - 5.0, tables.ERF_INV_TAIL["double"])
        return [select(far, select(w < 16.0, middle, tail), centre)]

    return if_any(far, beyond, [centre])[0]
