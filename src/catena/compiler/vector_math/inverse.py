"""Inverse circular and inverse hyperbolic functions.

asin: a polynomial to 1/2, and pi/2 - 2 asin(sqrt((1 - x) / 2)) beyond, with the root in two pieces (FDLIBM's
e_asin.c). atan: by the nearest multiple of pi/4. The hyperbolic ones are log1p of an algebraic
function computed as a pair (W. Kahan, "Branch Cuts for Complex Elementary Functions", 1987); floats go
through doubles, which is cheaper than pairs.
"""

from collections.abc import Callable
from functools import partial

from . import fitted, lookup, tables, text
from .constants import HALF_PI, LN2, ONE_FIFTH, ONE_SEVENTH, ONE_THIRD
from .double_double import Pair, add, constant, divide, fast_two_sum, multiply, square_root, total, two_product, two_sum
from .inverses import short_sqrt
from .logarithm import INFINITY, log1p_of_pair, log_pair, short_log
from .polynomials import fitted_to, in_pairs
from .text import Value, copysign, fabs, fma, horner, minimum, select, sqrt, without_tiny


def through_double(
    function: Callable[..., Value], *, floats: Callable[..., Value] | None = None
) -> Callable[..., Value]:
    """A function of doubles as one of floats too: widen, compute, round once; or ``floats``, which computes what need
    not be right to the last bits of a double.
    """

    def widened(*args: Value) -> Value:
        if args[0].elem == "double":
            return function(*args)
        return floats(*args) if floats else function(*(a.to_double() for a in args)).to_float()

    return widened


def arcsine_parts(x: Value) -> tuple[Value, Value, Pair]:
    """|x|, whether it is below 1/2, and asin of |x| or of sqrt((1 - |x|) / 2) as an unrounded pair."""
    a, safe = fabs(x), without_tiny(x, x.format.epsilon)
    small = a < 0.5
    z = select(small, safe * safe, fma(a, -0.5, 0.5))
    root = sqrt(z)
    root_error = select(z.equals(0.0), 0.0, fma(-root, root, z) / (root + root))
    s, low = select(small, a, root), select(small, 0.0, root_error)
    return a, small, Pair(s, fma(s * z, horner(z, tables.ASIN[x.elem]), low))


def asin(x: Value) -> Value:
    _, small, part = arcsine_parts(x)
    half_pi, half_pi_low, _ = HALF_PI[x.elem]
    difference = two_sum(part.high * -2.0, half_pi)
    large = difference.high + (difference.low + fma(part.low, -2.0, half_pi_low))
    return copysign(select(small, total(part), large), x)


def acos(x: Value) -> Value:
    """pi/2 - asin(x) to 1/2; 2 asin(sqrt((1 - x) / 2)) beyond, and pi minus that on the negative side."""
    _, small, part = arcsine_parts(x)
    half_pi, half_pi_low, _ = HALF_PI[x.elem]
    sign = copysign(1.0, x)
    base = select(small, half_pi, select(x < 0.0, x.like(2.0 * half_pi), 0.0))
    base_low = select(small, half_pi_low, select(x < 0.0, x.like(2.0 * half_pi_low), 0.0))
    factor = select(small, -sign, sign * 2.0)
    leading = two_sum(base, factor * part.high)
    return leading.high + (leading.low + fma(factor, part.low, base_low))


def arctangent_polynomial(q: Value, table: tuple) -> Value:
    """atan(q) for 0 <= q <= 1."""
    z = q * q
    return fma(q * z, horner(z, table), q)


TAN_EIGHTH = 0.41421356237309503  # the tangent of pi/8
BEYOND = 2.0**100  # from here on atan is pi/2


def atan(x: Value) -> Value:
    """By the nearest of 0, pi/4 and pi/2: the rest is the arc tangent of a quotient of at most tan(pi/8)."""
    if x.elem == "float":
        return short_atan(x.to_double()).to_float()
    a = minimum(fabs(x), BEYOND)
    middle, far = a > TAN_EIGHTH, a > 1.0 / TAN_EIGHTH
    above = two_sum(select(far, 0.0, a), select(middle, a.like(-1.0), 0.0))
    below = two_sum(select(middle, a, 1.0), select(middle & ~far, a.like(1.0), 0.0))
    rest = _small_atan(divide(above, below))
    half_pi, half_pi_low = HALF_PI[x.elem][:2]
    half = select(far, a.like(1.0), 0.5)
    base = Pair(*(select(middle, half * h, 0.0) for h in (half_pi, half_pi_low)))
    return copysign(total(add(base, rest)), x)


def _small_atan(t: Pair) -> Pair:
    """t - t z (1/3 - z (1/5 - z (1/7 - ...))), z = t^2: three terms as pairs, the others in doubles."""
    z = multiply(t, t)
    seventh, seventh_low = ONE_SEVENTH
    rest = fast_two_sum(z.high.like(-seventh), z.high * horner(z.high, tables.ATAN_SMALL[z.high.elem]))
    series = Pair(rest.high, rest.low - seventh_low)
    for sign, reciprocal in ((1.0, ONE_FIFTH), (-1.0, ONE_THIRD)):
        series = add(constant(z.high, *(sign * c for c in reciprocal)), multiply(z, series))
    return add(t, multiply(multiply(t, z), series))


def short_atan(x: Value) -> Value:
    """atan to the precision of floats, in doubles."""
    a = fabs(x)
    inverted = a > 1.0
    quotient = select(inverted, 1.0, a) / select(inverted, a, 1.0)
    part = arctangent_polynomial(quotient, tables.ATAN_SHORT["double"])
    return copysign(select(inverted, HALF_PI["double"][0] - part, part), x)


def atan2(y: Value, x: Value) -> Value:
    """The sign is set last, in the type of the result: LLVM makes of the sign of a double that becomes a half a call of
    ``__truncdfhf2``, which nobody has.
    """
    if x.elem == "float":
        return copysign(octant(y.to_double(), x.to_double(), tables.ATAN_SHORT["double"]).to_float(), y)
    return copysign(octant(y, x, tables.ATAN["double"]), y)


def octant(y: Value, x: Value, table: tuple) -> Value:
    """|atan2| by the signs and which of |x|, |y| is greater; the quotient is at most one."""
    a, b = fabs(y), fabs(x)
    steep = a > b
    quotient = select(steep, b, a) / select(steep, a, b)
    quotient = select(a.equals(b), select(a.equals(0.0), 0.0, a.like(1.0)), quotient)
    part = arctangent_polynomial(quotient, table)
    half_pi, half_pi_low, _ = HALF_PI[x.elem]
    left = copysign(1.0, x) < 0.0
    base = select(steep, half_pi, select(left, x.like(2.0 * half_pi), 0.0))
    base_low = select(steep, half_pi_low, select(left, x.like(2.0 * half_pi_low), 0.0))
    signed = select(left ^ steep, -part, part)
    return select(base.equals(0.0), part, base + (signed + base_low))


def asinh_of_float(x: Value) -> Value:
    """log(a + sqrt(a^2 + 1)) in doubles, with the sign of x; a - a^3/6 to 1/128. Here and below what is beside that is
    chosen in floats, of which vectors hold twice as many.
    """
    size = fabs(x)
    a = size.to_double()
    square = a * a
    result = short_log(a + short_sqrt(square + 1.0))
    found = select(a < 2.0**-7, fma(square * a, -1 / 6, a), result).to_float()
    return copysign(select(size < INFINITY, found, size), x)


def acosh_of_float(x: Value) -> Value:
    """log(x + sqrt(t (t + 2))), t = x - 1, in doubles.

    Outside of the domain it is that of another number: roots of negative ones, begun from their bits, became subnormal.
    """
    b = select(x > 1.0, x, 1.0).to_double()
    t = b - 1.0
    result = short_log(b + short_sqrt(fma(t, t, t + t))).to_float()
    return select(x < INFINITY, select(x < 1.0, float("nan"), result), x)


def atanh_of_float(x: Value) -> Value:
    """As `atanh`."""
    a = fabs(x)
    b = select(a < 1.0, a, 0.5).to_double()
    result = (log1p_short((b + b) / (1.0 - b)) * 0.5).to_float()
    result = select(a < FLOAT_EPSILON, a, result)
    outside = select(a.equals(1.0), INFINITY, a.like(float("nan")))
    return copysign(select(a < 1.0, result, outside), x)


def log1p_short(t: Value) -> Value:
    """log(1 + t) of a double t >= 0 to single precision."""
    u = t + 1.0
    k, f = lookup.part("exponent", u), lookup.part("significand", u) - 1.0
    lost = select(u < 2.0, t - (u - 1.0), 0.0)  # of t; a greater t loses nothing that counts
    return fma(f, fitted_to(text, fitted.LOG_SINGLE, f, in_pairs), fma(k, LN2[u.elem][0], lost))


FLOAT_EPSILON = 2.0**-23

# Beyond these, x^2 + 1 is x^2 to double precision, and asinh(x) = acosh(x) = log(2x).
HUGE = 2.0**28


@partial(through_double, floats=asinh_of_float)
def asinh(x: Value) -> Value:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))) with the sign of x."""
    a = fabs(x)
    huge = a > HUGE
    b = select(huge, 1.0, a)
    square = two_product(b, b)
    root = square_root(add(Pair(b.like(1.0), b.like(0.0)), square))
    fraction = divide(square, add(root, Pair(b.like(1.0), b.like(0.0))))
    result = total(log1p_or_log_of_double(add(Pair(b, b.like(0.0)), fraction), huge, a))
    return copysign(select(a < INFINITY, select(a < x.format.epsilon, a, result), a), x)


@partial(through_double, floats=acosh_of_float)
def acosh(x: Value) -> Value:
    """log1p(t + sqrt(t (t + 2))), t = x - 1."""
    huge = x > HUGE
    b = select(huge, 2.0, x)
    square = two_product(b, b)
    difference = two_sum(square.high, -1.0)
    root = square_root(fast_two_sum(difference.high, difference.low + square.low))
    result = total(log1p_or_log_of_double(add(Pair(b - 1.0, b.like(0.0)), root), huge, x))
    result = select(x.equals(1.0), 0.0, result)  # the root of zero is 0/0 in its low part
    return select(x < INFINITY, select(x < 1.0, float("nan"), result), x)


def log1p_or_log_of_double(t: Pair, huge: Value, x: Value) -> Pair:
    """log(1 + t), or log(2x) where huge: one logarithm for both."""
    u = two_sum(t.high, 1.0)
    finite = select(x < INFINITY, x, 1.0)
    return log_pair(select(huge, finite, u.high), select(huge, 0.0, u.low + t.low), select(huge, 1.0, u.high.like(0.0)))


@partial(through_double, floats=atanh_of_float)
def atanh(x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2 with the sign of x."""
    a = fabs(x)
    inside = a < 1.0
    b = select(inside, a, 0.5)
    t = divide(Pair(b + b, b.like(0.0)), two_sum(-b, 1.0))
    result = select(a < x.format.epsilon, a, total(log1p_of_pair(t)) * 0.5)
    outside = select(a.equals(1.0), INFINITY, a.like(float("nan")))
    return copysign(select(inside, result, outside), x)
