"""lgamma, digamma and trigamma, computed in double precision (floats are widened, and need not all its digits).

From 2.5 (or 2) on, Stirling's expansion with a minimax polynomial in 1/z for its divergent remainder; around
the zeros of the functions, polynomials with the zero divided out; below, the recurrence; negative x by
reflection (Abramowitz & Stegun 6.1.15, 6.1.17, 6.1.40, 6.3.5, 6.3.7, 6.3.18, 6.4.6, 6.4.7, 6.4.12), in a
branch taken only by vectors that have a negative lane.
"""

import math
from collections.abc import Callable

from . import fitted, tables, text
from .constants import DIGAMMA_ZERO, LOG_TWO_PI_LESS_ONE_HALF, PI
from .double_double import Pair, add, constant, divide, fast_two_sum, multiply, total, two_product, two_sum
from .inverse import through_double
from .logarithm import INFINITY, log, log_pair, rounded_log, short_log
from .polynomials import fitted_to, in_pairs
from .text import Value, fabs, fma, horner, if_any, maximum, minimum, round_half_even, select
from .trigonometric import cos_kernel, sin_kernel

# Of sin(pi a) / (pi a) - 1 over a^2, in powers of a^2: its series, which at a half is cut off below a double's digits.
HALF_TURN_SINE = [(-1) ** k * PI[0] ** (2 * k) / math.factorial(2 * k + 1) for k in range(1, 12)]


def half_turn_sin_cos(x: Value) -> tuple[Pair, Pair]:
    """|sin(pi x)|, and cos(pi f) with the sign of f, the distance of x from the nearest integer."""
    f = x - round_half_even(x)
    a = fabs(f)
    swap = a > 0.25
    angle = multiply(Pair(select(swap, 0.5 - a, a), x.like(0.0)), constant(x, *PI))
    sine, cosine = fast_two_sum(*sin_kernel(angle)), fast_two_sum(*cos_kernel(angle))
    negative = f < 0.0
    big = Pair(*(select(swap, c, s) for s, c in zip(sine, cosine)))
    small = Pair(*(select(swap, s, c) for s, c in zip(sine, cosine)))
    return big, Pair(*(select(negative, -part, part) for part in small))


def half_turn_sine(x: Value) -> Value:
    """|sin(pi x)| / pi, to about a unit in the last place."""
    a = fabs(x - round_half_even(x))
    square = a * a
    return fma(a, square * horner(square, HALF_TURN_SINE), a)


def lgamma_of_double(x: Value) -> Value:
    """log |gamma(x)|."""
    return with_poles(x, reflected(x, positive_lgamma(reflection(x))))


def lgamma_of_float(x: Value) -> Value:
    """The same of a float, in doubles where digits count. Above -2 it is far from zero, and follows from that of a
    number below one by the recurrence, with the same logarithm. Below are zeros of the function: a difference there
    has as many digits as a float only if its terms have those of a double.
    """
    near, deep = (x < 0.0) & (x > -2.0), is_mirrored(x) & (x < -2.0)
    positive = select(x < 0.0, 1.0, x).to_double()

    def by_recurrence() -> list[Value]:
        wide = x.to_double()
        further, next_, is_near = wide < -1.0, wide + 1.0, (wide < 0.0) & (wide > -2.0)
        product = fabs(select(further, wide * next_, wide))
        return [select(is_near, select(further, next_ + 1.0, next_), positive), select(is_near, product, 1.0)]

    moved, product = if_any(near, by_recurrence, [positive, positive.like(1.0)])
    result = short_lgamma(moved, product).to_float()

    def rare() -> list[Value]:
        wide = select(deep, x, -2.5).to_double()
        below = -rounded_log(half_turn_sine(wide)) - plain_lgamma(1.0 - wide)
        return [select(deep, below.to_float(), result)]

    return with_poles(x, if_any(deep, rare, [result])[0])


lgamma = through_double(lgamma_of_double, floats=lgamma_of_float)


def is_pole(x: Value) -> Value:
    """Whether it is zero, or whole and below."""
    return (x <= 0.0) & round_half_even(x).equals(x)


def is_mirrored(x: Value) -> Value:
    """Whether its value comes from that of a positive number; of poles, as whole numbers may all be, none does."""
    return (x < 0.0) & round_half_even(x).differs(x)


def reflection(x: Value) -> Value:
    return select(x < 0.0, 1.0 - x, x)


def reflected(x: Value, result: Value) -> Value:
    """``result`` for positive numbers; where there are negative ones, what follows from that of `reflection`."""
    mirrored = is_mirrored(x)

    def rare() -> list[Value]:
        sine, _ = half_turn_sin_cos(x)
        # sin(pi x) / pi is x itself near zero, where pi x may be subnormal and lose bits.
        ratio = select(fabs(x) < 2.0**-60, fabs(x), sine.high / PI[0])
        return [select(mirrored, -log(select(mirrored, ratio, 1.0)) - result, result)]

    return if_any(mirrored, rare, [result])[0]


def with_poles(x: Value, result: Value) -> Value:
    return select(is_pole(x) | x.equals(INFINITY), INFINITY, result)


def short_lgamma(z: Value, product: Value | None = None, factor: Value | None = None) -> Value:
    """To single precision, of positive doubles, NaN and infinity; less the logarithm of a `product`, which is one where
    z is 2.5 and more; `factor`: see `lgamma_of_parts`.
    """

    def log_(x: Value) -> Value:
        return short_log(x if product is None else x * product)

    return lgamma_of_parts(z, log_, short_around_two, short_stirling, factor=factor)


def short_factorial(a: Value, large: Value) -> Value:
    """1 + log(gamma(a + 1)) of a > -1, to single precision; where a is `large`, log(2 pi a) / 2 and the rest of
    Stirling's series, which is the same with a half as the factor of the logarithm.
    """
    z = select(large, a, a + 1.0)
    return short_lgamma(z, factor=select(large, 0.5, z - 0.5)) + 1.0


def short_around_two(d: Value) -> Value:
    return fitted_to(text, fitted.LGAMMA_SINGLE, d, in_pairs)


def plain_lgamma(z: Value) -> Value:
    """To a few units in the last place, of which results near a zero have fewer digits; of positive doubles."""
    return lgamma_of_parts(z, rounded_log, lambda d: horner(d, tables.LGAMMA_TWO["double"]), plain_stirling, True)


def short_stirling(t: Value) -> Value:
    return fitted_to(text, fitted.STIRLING_SINGLE, t, in_pairs)


def plain_stirling(t: Value) -> Value:
    return horner(t, tables.STIRLING["double"])


def lgamma_of_parts(
    z: Value, log: Callable, around_two: Callable, rest: Callable, seldom: bool = False, factor: Value | None = None
) -> Value:
    """As `positive_lgamma`, without the parts that are rounded off. Where numbers below 2.5 come `seldom`, as among
    sums of parameters, what these need is computed by vectors that have one. Other results follow from 2.5 on where the
    `factor` of the logarithm less one is not z - 1/2.
    """
    safe = minimum(z, 2.0**1000)  # of infinity, a number
    large, tiny, low = z >= 2.5, safe < 0.5, safe < 1.25
    logarithm = log(select(tiny, safe * (safe + 1.0), select(low | large, safe, 1.0)))
    t = 1.0 / maximum(safe, 2.5)
    factor = safe - 0.5 if factor is None else factor
    by_stirling = fma(factor, logarithm - 1.0, fma(t, rest(t), sum(LOG_TWO_PI_LESS_ONE_HALF)))

    def near_zeros() -> list[Value]:
        d = safe - select(tiny, 0.0, 2.0 - select(low, safe.like(1.0), 0.0))
        return [select(large, by_stirling, d * around_two(d) - logarithm)]

    (result,) = if_any(z < 2.5, near_zeros, [by_stirling]) if seldom else near_zeros()
    return select(z < INFINITY, result, z)


def positive_lgamma(z: Value) -> Value:
    """One logarithm serves every range: log z for Stirling, -log z below 1.25, -log z(z + 1) below 0.5."""
    large = z >= 2.5
    finite = select(z < INFINITY, z, 1.0)
    safe = select(finite > 0.0, finite, 1.0)
    below = two_sum(safe, 1.0)
    product = two_product(safe, below.high)
    tiny, low = safe < 0.5, safe < 1.25
    argument = select(tiny, product.high, select(low | large, safe, 1.0))
    correction = select(tiny, fma(safe, below.low, product.low), 0.0)
    logarithm = log_pair(argument, correction)
    d = select(tiny, safe, select(low, safe - 1.0, safe - 2.0))
    around_two = d * horner(d, tables.LGAMMA_TWO["double"])
    small = add(Pair(-logarithm.high, -logarithm.low), Pair(around_two, d.like(0.0)))
    result = select(large, stirling(safe, logarithm), total(small))
    return select(z.is_nan(), z, result)


def stirling(z: Value, logarithm: Pair) -> Value:
    """(z - 1/2) (log z - 1) + (log(2 pi) - 1) / 2 + remainder, the cancelling terms as pairs."""
    t = 1.0 / z
    factor = z - 0.5
    less_one = two_sum(logarithm.high, -1.0)
    less_one = fast_two_sum(less_one.high, less_one.low + logarithm.low)
    leading = two_product(factor, less_one.high)
    high, low = LOG_TWO_PI_LESS_ONE_HALF
    rest = fma(t, horner(t, tables.STIRLING["double"]), low)
    result = two_sum(leading.high, high)
    result = result.high + (result.low + (fma(factor, less_one.low, leading.low) + rest))
    # Infinity minus infinity in the error terms would be NaN.
    return select(leading.high.equals(INFINITY), INFINITY, result)


@through_double
def digamma(x: Value) -> Value:
    """The derivative of lgamma; NaN at its poles."""
    result, mirrored = positive_digamma(reflection(x)), is_mirrored(x)

    def reflected() -> list[Value]:
        sine, cosine = half_turn_sin_cos(x)
        cotangent = divide(multiply(cosine, constant(x, *PI)), sine)
        difference = two_sum(-cotangent.high, result)
        value = difference.high + (difference.low - cotangent.low)
        # Next to zero the cotangent overflows, or its error terms do.
        return [select(mirrored, select(fabs(x) < 2.0**-100, -1.0 / x, value), result)]

    (result,) = if_any(mirrored, reflected, [result])
    return select(is_pole(x), float("nan"), result)


def positive_digamma(z: Value) -> Value:
    t = 1.0 / z
    below_one = z < 1.0
    d = select(below_one, z, z - 1.0)
    high, low = DIGAMMA_ZERO
    distance = (d - (high - 1.0)) - low
    around_zero = distance * horner(d - 0.5, tables.DIGAMMA_ROOT["double"])
    small = select(below_one, around_zero - t, around_zero)
    large = log(z) - fma(t * t, horner(t, tables.DIGAMMA_LARGE["double"]), t * 0.5)
    return select(z < 2.0, small, large)


@through_double
def trigamma(x: Value) -> Value:
    """The derivative of digamma; infinite at its poles."""
    result, mirrored = positive_trigamma(reflection(x)), is_mirrored(x)

    def reflected() -> list[Value]:
        sine, _ = half_turn_sin_cos(x)
        root = PI[0] / sine.high  # less what is rounded off both
        rest = (PI[1] - root * sine.low) + fma(-root, sine.high, PI[0])
        square = two_product(root, root)
        value = (square.high - result) + fma(root + root, rest / sine.high, square.low)
        value = select(fabs(x) < 2.0**-100, 1.0 / (x * x), value)
        return [select(mirrored, value, result)]

    return select(is_pole(x), INFINITY, if_any(mirrored, reflected, [result])[0])


def positive_trigamma(z: Value) -> Value:
    t = 1.0 / z
    square = t * t
    below_one = z < 1.0
    d = select(below_one, z, z - 1.0)
    around_one = horner(d - 0.5, tables.TRIGAMMA_ONE["double"])
    small = select(below_one, around_one + square, around_one)
    large = fma(square, fma(t, horner(t, tables.TRIGAMMA_LARGE["double"]), 0.5), t)
    return select(z < 2.0, small, large)
