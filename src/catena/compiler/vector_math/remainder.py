"""The remainder of division towards zero, exact: what is left is always a number of the same format.

A quotient of few enough digits is off by at most one when it is rounded and cut to an integer, so one fused
multiplication leaves the remainder, or the remainder less the divisor. Larger quotients take a long division of the
significands, as many binary digits at a time as such a quotient has. Source: C's fmod; the steps are folklore.
"""

import math

from .exponential import scale
from .text import Value, copysign, fabs, fma, if_any, minimum, power_of_two, raised, select, trunc, while_any


def rem(x: Value, y: Value) -> Value:
    """x - trunc(x / y) y with the sign of x; NaN for infinite x and for y = 0."""
    a, b = fabs(x), fabs(y)
    quotient = a / b
    proper = (a < math.inf) & (b > 0.0)
    near = _left(a, quotient, b)
    far = proper & ~(quotient < 2.0 ** _digits(x))
    (rest,) = if_any(far, lambda: [select(far, _long_division(far, a, b), near)], [near])
    rest = select(b.equals(math.inf), a, rest)
    return copysign(select(proper, rest, math.nan), x)


def _digits(x: Value) -> int:
    """Binary digits of a quotient that is cut correctly, or one too large."""
    return x.format.mantissa_bits - 1


def _left(a: Value, quotient: Value, b: Value) -> Value:
    rest = fma(-trunc(quotient), b, a)
    return select(rest < 0.0, rest + b, rest)


def _long_division(on: Value, a: Value, b: Value) -> Value:
    """The remainder in the lanes that are ``on``, where a > b."""
    (rest, a_exponent), (divisor, b_exponent) = (_parts(select(on, x, 1.0)) for x in (a, b))

    def step(going, rest, places):
        some = minimum(places, _digits(a))
        rest = rest * power_of_two(some, a.elem)
        left = places - some
        return left > 0, _left(rest, rest / divisor, divisor), left

    places = a_exponent - b_exponent
    return scale(while_any(step, (on, rest, places))[1], b_exponent)


def _parts(x: Value) -> tuple[Value, Value]:
    """The significand in [1, 2) of a positive number, and its exponent."""
    fmt = x.format
    subnormal = x < fmt.tiny
    bits = select(subnormal, raised(x, fmt.mantissa_bits), x).bits()
    exponent = bits.shift_right_logical(fmt.mantissa_bits) - fmt.bias
    significand = (bits - (exponent << fmt.mantissa_bits)).as_float(x.elem)
    return significand, exponent - select(subnormal, exponent.like(fmt.mantissa_bits), 0)
