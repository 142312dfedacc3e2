"""log and its family.

x = 2^k m with sqrt(1/2) <= m < sqrt(2), f = m - 1, and log(1 + f) = f - f^2/2 + (a polynomial part): in f for floats, and in
s = f / (2 + f) for doubles, where log(1 + f) = 2 atanh(s) (the reduction of FDLIBM's e_log.c; own coefficients).
"""

from typing import NamedTuple

from . import tables
from .constants import LN2, LOG2_E, LOG10_2, LOG10_E
from .double_double import Pair, constant, divide, fast_two_sum, multiply, square_root, two_product, two_sum
from .double_double import add as add_pairs
from .text import FORMATS, Value, copysign, fabs, fma, horner, select

SQRT_HALF = 0.7071067811865476


class Reduced(NamedTuple):
    """log(x) = k ln2 + log1p(f)."""

    k: Value
    f: Value
    exponent: Value


def reduce_log(x: Value) -> Reduced:
    """Split positive finite x, subnormals included; `exponent` is k as an integer."""
    fmt = x.format
    subnormal = x < fmt.tiny
    bits = select(subnormal, x * 2.0**fmt.mantissa_bits, x).bits()
    offset = bits - x.like(SQRT_HALF).bits()
    k = offset >> fmt.mantissa_bits
    f = (bits - (k << fmt.mantissa_bits)).as_float(x.elem) - 1.0
    k = k - select(subnormal, k.like(fmt.mantissa_bits), 0)
    return Reduced(small_integer_to_float(k, x.elem), f, k)


def small_integer_to_float(k: Value, elem: str) -> Value:
    """k as a float, |k| < 2^(mantissa_bits - 2): the reverse of `round_to_integer`."""
    fmt = FORMATS[elem]
    magic = 1.5 * 2.0**fmt.mantissa_bits
    return (k + int(fmt.scalar(magic).view(f"i{fmt.bits // 8}"))).as_float(elem) - magic


def beyond_quadratic(f: Value) -> Value:
    """log1p(f) - f + f^2/2."""
    if f.elem == "float":
        return f * f * f * horner(f, tables.LOG_FLOAT["float"])
    s = f / (f + 2.0)
    z = s * s
    return s * fma(f * 0.5, f, z * horner(z, tables.LOG["double"]))


def log1p_pair(f: Value) -> Pair:
    """log1p(f) of a reduced f with a few bits beyond working precision."""
    half_square = two_product(f * 0.5, f)
    high = fast_two_sum(f, -half_square.high)
    return fast_two_sum(high.high, (high.low - half_square.low) + beyond_quadratic(f))


def with_log_specials(x: Value, result: Value) -> Value:
    """log's values at zero, negative numbers, +infinity and NaN."""
    result = select(x < float("inf"), result, x)
    result = select(x < 0.0, float("nan"), result)
    return select(x.equals(0.0), float("-inf"), result)


def log(x: Value) -> Value:
    k, f, _ = reduce_log(x)
    high, low = LN2[x.elem]
    tail = fma(k, low, beyond_quadratic(f))
    return with_log_specials(x, fma(k, high, f + fma(f * -0.5, f, tail)))


def log_pair(x: Value, correction: Value, extra_exponent: Value | None = None) -> Pair:
    """log((x + correction) 2^extra) for finite x > 0 and a correction within a few ulps of x."""
    k, f, _ = reduce_log(x)
    if extra_exponent is not None:
        k = k + extra_exponent
    part = log1p_pair(f)
    high, low = LN2[x.elem]
    total = add_pairs(two_product(k, high), part)
    return fast_two_sum(total.high, total.low + fma(k, low, correction / x))


def log1p(x: Value) -> Value:
    u = two_sum(x, 1.0)
    pair = log_pair(u.high, select(u.high < float("inf"), u.low, 0.0))
    result = with_log_specials(u.high, pair.high + pair.low)
    return select(fabs(x) < x.format.epsilon, x, result)


def log2(x: Value) -> Value:
    k, f, _ = reduce_log(x)
    part = multiply(log1p_pair(f), constant(x, *LOG2_E[x.elem]))
    total = two_sum(k, part.high)
    return with_log_specials(x, total.high + (total.low + part.low))


def log10(x: Value) -> Value:
    k, f, _ = reduce_log(x)
    part = multiply(log1p_pair(f), constant(x, *LOG10_E[x.elem]))
    high, low = LOG10_2[x.elem]
    total = add_pairs(two_product(k, high), part)
    return with_log_specials(x, total.high + fma(k, low, total.low))
