"""Division by a constant as two products: by its inverse, and by what is rounded off that.

N. Brisebarre and J.-M. Muller, "Correctly rounded multiplication by arbitrary precision constants" (2008). The sum is
rounded as the quotient is wherever that is not too near to the middle between two floats. Of an odd divisor of a few
bits less than floats have, no quotient is; of others the few dividends are asked whose quotients are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from .text import FORMATS, Format

MODERATE = {"float": 2.0**30, "double": 2.0**300}  # divisors are from one over this to it
# Quotients from here on have a second product that is a normal number, where what is rounded off the inverse is this
# part of it at least.
LEAST = {"float": 2.0**-92, "double": 2.0**-960}
LEAST_LOST = {"float": Fraction(1, 2**34), "double": Fraction(1, 2**62)}
NEAR = 8  # see `_nearly_middles`


@cache
def inverse_pair(y: float, elem: str) -> tuple[float, float] | None:
    """The inverse of a divisor, rounded towards zero, and what is rounded off, by which all quotients are found.

    >>> high, low = inverse_pair(6.0, "double")
    >>> float(5 * Fraction(high) + 5 * Fraction(low)) == 5.0 / 6.0
    True
    """
    form, most = FORMATS[elem], MODERATE[elem]
    y = float(form.scalar(y))
    if not 1 / most <= abs(y) <= most or math.frexp(y)[0] in (0.5, -0.5):
        return None
    inverse = 1 / Fraction(y)
    high = _rounded(inverse, form, to_zero=True)
    low = _rounded(inverse - high, form)
    if abs(low) < abs(high) * LEAST_LOST[elem]:
        return None
    for x in _nearly_middles(abs(Fraction(y)), form):
        if _rounded(high * x + _rounded(low * x, form), form) != _rounded(x * inverse, form):
            return None
    return float(high), float(low)


def _nearly_middles(y: Fraction, form: Format) -> list[Fraction]:
    """Dividends whose quotients are nearly in the middle between two floats, all but for powers of two.

    Integers x have as many bits as floats, middles m one more, and are odd: x 2^s = m d + r, where d is odd, and the
    divisor times a power of two. What two products are off by is less than 2^(3 - bits), so r is less than
    8; it is not zero.
    """
    bits, d = form.mantissa_bits + 1, y.numerator
    d //= d & -d
    if d < 1 << bits - 3:
        return []
    found = []
    for s in (d.bit_length(), d.bit_length() + 1):
        inverse = pow(d, -1, 1 << s)
        for r in range(1 - NEAR, NEAR):
            first = -r * inverse % (1 << s)
            for m in range(first + (1 << bits) - (first >> s << s), 1 << bits + 1, 1 << s):
                x = (m * d + r) >> s
                if r and x.bit_length() == bits:
                    found.append(Fraction(x))
    return found


def _rounded(x: Fraction, form: Format, to_zero: bool = False) -> Fraction:
    """The nearest number of as many bits as floats have, of any exponent."""
    if not x:
        return x
    shift = form.mantissa_bits - (x.numerator.bit_length() - x.denominator.bit_length())
    while abs(x) * Fraction(2) ** shift >= 2 << form.mantissa_bits:
        shift -= 1
    while abs(x) * Fraction(2) ** shift < 1 << form.mantissa_bits:
        shift += 1
    scaled = x * Fraction(2) ** shift
    return (int(scaled) if to_zero else round(scaled)) / Fraction(2) ** shift
