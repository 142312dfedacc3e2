"""One over a number, and over its root, without the dividers of processors, which take several times as long.

Bits of a float are nearly its logarithm (Blinn, "Floating-point tricks", 1997): what these are when subtracted from a
constant is the start of Householder's iteration, whose residual e, 1 - x y or 1 - x y^2, is rounded once.
"""

from collections.abc import Sequence

from . import tables
from .text import SELDOM, Value, copysign, either, fabs, fma, horner, if_any, maximum, raised, select, sqrt

INFINITY = float("inf")
# With these, the start is as far off on both sides: by 3.5 % of inverse roots, and 5 % of inverses.
INVERSE_ROOT = {"float": 0x5F374800, "double": 0x5FE6E90000000000}
INVERSE = 0x7FDE623822FC16E6
EXPONENT = 0x7FF << 52  # of a double
# What is divided by lies between the first two numbers, the quotient between the third and the second: their product
# does not overflow, and what it leaves of the dividend is zero or a normal number, which no rounding changed. The same
# where that is multiplied by `LIFT` meanwhile: of tails of a softmax, few are below these.
MODERATE = {"float": (2.0**-20, 2.0**60, 2.0**-60), "double": (2.0**-300, 2.0**300, 2.0**-600)}
MODERATE_LIFTED = {"float": (2.0**-20, 2.0**40, 2.0**-104), "double": MODERATE["double"]}
LIFT = {"float": 2.0**45, "double": 1.0}
LEAST_INVERTED = 2.0**-126
LIFTED = 774  # the exponent by which quotients of doubles that are less, of such, are far from both ends
SERIES = (1 / 2, 3 / 8)  # of (1 - e)^(-1/2) - 1, over e


def rsqrt(x: Value) -> Value:
    """To about a unit in the last place. Of numbers that are not normal, by dividers."""
    y = _nearer_inverse_root(x, _inverse_root(x), tables.RSQRT[x.elem])
    if x.elem == "double":
        y = _nearer_inverse_root(x, y, SERIES)
    normal = (x >= x.format.tiny) & (x < INFINITY)
    return if_any(~normal, lambda: [select(normal, y, 1.0 / sqrt(x))], [y])[0]


def short_rsqrt(x: Value) -> Value:
    """1 / sqrt(x) to single precision, of a double that is a positive normal number; something finite of zero."""
    y = _nearer_inverse_root(x, _inverse_root(x), tables.RSQRT["double"])
    return _nearer_inverse_root(x, y, SERIES[:1])


def short_sqrt(x: Value) -> Value:
    """sqrt(x) to single precision, of a double that is zero or a positive normal number."""
    return x * short_rsqrt(x)


def short_reciprocal(x: Value) -> Value:
    """1 / x to single precision, of a positive double from 2^-1000 to 2^1000."""
    y = (INVERSE - x.bits()).as_float(x.elem)
    e = fma(-x, y, 1.0)
    y = fma(y * e, horner(e, tables.RECIPROCAL["double"]), y)
    return fma(y, fma(-x, y, 1.0), y)


def inverse_power_of_two(x: Value) -> Value:
    """2^-n where 2^n <= |x| < 2^(n + 1), of a double from 2^-1022 to 2^1022."""
    return ((2 * x.format.bias << x.format.mantissa_bits) - (x.bits() & EXPONENT)).as_float(x.elem)


def quotient(x: Value, y: Value) -> Value:
    """x / y, rounded as by a divider, for loops in which y does not change: x times the inverse of y, corrected by the
    residual, which is exact (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000
    processor", 1990). Of zeros that has the right sign where y > 0; where not, they are divided. Small quotients,
    subnormal ones among them, are those of greater numbers, rounded once more; what is not moderate is divided.
    """
    inverse, low, size, apart = _inverted(x, y)

    def slow() -> Value:
        small = (size < low) & x.differs(0.0)
        return either(small, lambda: _immoderate(x, y, inverse, small, apart), lambda: x / y)

    return either(apart, slow, lambda: _corrected(x, y, inverse, LIFT[x.elem]))


def one_of_quotients(x: Value, y: Value) -> Value:
    """The same where a loop has several, which are short: what is not moderate is divided."""
    inverse, _, _, apart = _inverted(x, y)
    return either(apart, lambda: x / y, lambda: _corrected(x, y, inverse, LIFT[x.elem]), SELDOM)


def _inverted(x: Value, y: Value) -> tuple[Value, Value, Value, Value]:
    """One over y, below which size x is small, its size, and whether x is not moderate; all are not where y is not."""
    least, most, least_quotient = MODERATE_LIFTED[x.elem]
    divisor = fabs(y)
    good = (divisor >= least) & (divisor <= most)
    inverse, low = (select(good, v, float("nan")) for v in (1.0 / y, divisor * least_quotient))
    zero = select(good & (y > 0.0), 0.0, inverse.like(float("nan")))  # which is moderate, though it is small
    # Whether a size is between two is one comparison of integers: with all bits for the least one, none is. They are
    # moved by half of all integers, to be compared with signs: processors without AVX-512 know no other comparison.
    half = -1 << x.format.bits - 1
    first, span = select(good, low.bits(), -1), select(good, (divisor * most).bits() - low.bits(), 0)
    size = fabs(x)
    beyond = (span + half) < (size.bits() + (half - first))
    return inverse, low, size, beyond & x.differs(zero)


def inverse(y: Value) -> Value:
    """1 / y; NaN where y is not moderate."""
    least, most, _ = MODERATE[y.elem]
    size = fabs(y)
    return select((size >= least) & (size <= most), 1.0 / y, float("nan"))


def quotient_by_inverse(x: Value, y: Value, z: Value) -> Value:
    """x / y, rounded as by a divider, of z = `inverse(y)`: what is moderate, and zeros, as above. A product that is
    zero has the quotient's sign, which the correction may take from it.
    """
    low = z.like(MODERATE[x.elem][2])
    near = x * z
    span = z.like(1 / MODERATE[x.elem][2]).bits() - low.bits()
    is_zero = ((x.bits() | near.bits()) << 1).equals(0)
    apart = (fabs(near).bits() - low.bits()).is_above(span) & ~is_zero
    return either(apart, lambda: x / y, lambda: copysign(fma(fma(-near, y, x), z, near), near), SELDOM)


def quotient_of_integers(x: Value, y: Value) -> Value:
    """The same of integers of 32 bits and fewer, by what is moderate: so are all quotients, but zeros."""
    return _corrected(x, y, 1.0 / y)


def _corrected(x: Value, y: Value, inverse: Value, lift: float = 1.0) -> Value:
    near = x * inverse
    return fma(-fma(near, y * lift, -(x * lift)), inverse * (1 / lift), near)


def _immoderate(x: Value, y: Value, inverse: Value, small: Value, apart: Value) -> Value:
    """x / y where some are `apart`: by products that are not subnormal where it is `small`."""
    rest = apart & ~small
    if x.elem == "float":
        result = _by_doubles(x, y)
        return if_any(rest, lambda: [select(rest, x / y, result)], [result])[0]
    result = _corrected(select(apart, y, x), y, inverse, LIFT[x.elem])
    divided = if_any(rest, lambda: [select(rest, x / y, result)], [result])[0]
    divisor, sign = fabs(y), (x.bits() ^ y.bits()).as_float(x.elem)
    least = _small_quotient(select(small, fabs(x), divisor), divisor, fabs(inverse))
    return select(small, copysign(least, sign), divided)


def _by_doubles(x: Value, y: Value) -> Value:
    """x / y of floats, rounded twice as if once: a quotient that is no middle of two floats, subnormal ones too, is
    farther from it than a double tells. Of y whose inverse is a normal number, and x that is finite.
    """
    dividend, divisor = x.to_double(), y.to_double()
    return _corrected(dividend, divisor, 1.0 / divisor).to_float()


def _small_quotient(x: Value, y: Value, inverse: Value) -> Value:
    """x / y of doubles, x >= 0, in steps of the least number: these are counted, and what was rounded to the middle
    between two goes on to where the residual says.
    """
    count = x.format.mantissa_bits
    subnormal = x < x.format.tiny
    lifted = select(subnormal, raised(x, LIFTED), (x.bits() + (LIFTED << count)).as_float(x.elem))
    quotient = _corrected(lifted, y, inverse)
    off = fma(-quotient, y, lifted)
    steps = quotient * 2.0 ** (x.format.bias - 1 + count - LIFTED)
    base = 2.0**count
    middle = fabs(steps - ((steps + base) - base)).equals(0.5) & off.differs(0.0)
    whole = select(middle, steps + copysign(0.5, off), steps) + base
    counted = (whole.bits() - x.like(base).bits()).as_float(x.elem)
    normal = (steps.bits() - (x.format.bias - 1 + count << count)).as_float(x.elem)
    return select(steps < base, counted, normal)


def quotient_of_halves(x: Value, y: Value) -> Value:
    """The same of numbers of 11 bits and fewer, from 2^-24 to 2^17, which is rounded to such: no product overflows, and
    what is not corrected (zeros, infinities, NaN) is the product with the inverse. Ties, of which there are some below
    the least normal number, are exact in what is corrected.
    """
    inverse = 1.0 / y
    result = _corrected(x, y, inverse)
    return select((result < 0.0) | (result > 0.0), result, x * inverse)


def quotient_of_bfloat16(x: Value, y: Value) -> Value:
    """The same of numbers of 8 bits in the range of floats, which is rounded to such: the product with the inverse,
    whose error of 2^-23 is far below the distance of a quotient from the middle between two of these. Below the least
    normal number, where there are middles, the error is below half a step. What has no normal inverse is divided by.
    """
    inverse = _normal_inverse(y)
    return _or_divided(x * inverse, x, y)


def quotient_of_small_bfloat16(x: Value, y: Value) -> Value:
    """The same where some x may be small, of which quotients are made of doubles, of subnormal numbers too."""
    inverse, low = _normal_inverse(y), maximum(fabs(y), 1.0) * LEAST_INVERTED
    small = (fabs(x) < low) & x.differs(0.0)
    signed = lambda: copysign(_by_doubles(x, y), (x.bits() ^ y.bits()).as_float(x.elem))  # of zeros it would be lost
    return _or_divided(either(small, signed, lambda: x * inverse), x, y)


def _normal_inverse(y: Value) -> Value:
    """1 / y where that is a normal number; else NaN."""
    size = fabs(y)
    return select((size >= LEAST_INVERTED) & (size <= 1 / LEAST_INVERTED), 1.0 / y, float("nan"))


def _or_divided(quotient: Value, x: Value, y: Value) -> Value:
    """The quotient, where it is a number; else by the divider."""
    usual = quotient.equals(quotient)
    return if_any(~usual, lambda: [select(usual, quotient, x / y)], [quotient])[0]


def _inverse_root(x: Value) -> Value:
    return (INVERSE_ROOT[x.elem] - x.bits().shift_right_logical(1)).as_float(x.elem)


def _nearer_inverse_root(x: Value, y: Value, series: Sequence[float]) -> Value:
    e = fma(-(x * y), y, 1.0)
    return fma(y * e, horner(e, series), y)
