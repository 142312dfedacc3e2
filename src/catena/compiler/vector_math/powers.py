"""cbrt, hypot, the size of a complex number, pow."""

from collections.abc import Callable
from functools import reduce
from operator import or_

from . import tables
from .constants import LN2, LOG2_E, ONE_THIRD
from .double_double import (
    Pair,
    add,
    constant,
    divide,
    fast_two_sum,
    multiply,
    square_root,
    two_product,
    two_sum,
)
from .exponential import exp_sum, scale_down
from .inverse import through_double
from .logarithm import INFINITY, log_pair, reduce_log, reduce_normal_log
from .text import (
    Value,
    copysign,
    fabs,
    fma,
    horner,
    if_any,
    maximum,
    minimum,
    power_of_two,
    raised,
    round_to_integer,
    select,
    sqrt,
    trunc,
)


def cbrt(x: Value) -> Value:
    """Halley's iteration for m^(-1/3) from a polynomial, then a Newton step for the root with its exact residual."""
    fmt, a = x.format, fabs(x)
    thirds = fmt.mantissa_bits // 3 + 1
    subnormal = a < fmt.tiny
    bits = select(subnormal, raised(a, 3 * thirds), a).bits()
    biased = bits >> fmt.mantissa_bits
    # exponent = 3 k + remainder, by a multiplication: u / 3 = u * 21846 / 2^16 for the u that occur.
    multiple = 3 * 400
    k = ((biased + (multiple - fmt.bias)) * 21846).shift_right_logical(16)
    remainder = (biased + (multiple - fmt.bias)) - k * 3
    significand = (bits - ((biased - fmt.bias) << fmt.mantissa_bits)).as_float(x.elem)
    m = significand * power_of_two(remainder, x.elem)
    start = horner(significand, tables.CBRT_START[x.elem])
    two_thirds = select(remainder.equals(1), 2.0 ** (-1 / 3), start.like(2.0 ** (-2 / 3)))
    y = start * select(remainder.equals(0), 1.0, two_thirds)
    for _ in range(1 if x.elem == "float" else 2):
        h = fma(m * y, -(y * y), 1.0)
        y = fma(y * h, fma(h, 2 / 9, 1 / 3), y)
    root = m * (y * y)
    square = two_product(root, root)
    residual = fma(-square.high, root, m) - square.low * root
    root = fma(residual * (y * y), 1 / 3, root)
    shift = k - multiple // 3 - select(subnormal, k.like(thirds), 0)
    result = copysign(root * power_of_two(shift, x.elem), x)
    return select(a.equals(0.0), x, select(a < INFINITY, result, x))


@through_double
def hypot_double(x: Value, y: Value) -> Value:
    """sqrt(x^2 + y^2) with the squares as pairs, scaled away from overflow and underflow."""
    p, q = fabs(x), fabs(y)
    a, b = select(p < q, q, p), select(p < q, p, q)
    factor = select(a > 2.0**500, 2.0**-600, select(a < 2.0**-450, 2.0**600, a.like(1.0)))
    back = select(a > 2.0**500, 2.0**600, select(a < 2.0**-450, 2.0**-600, a.like(1.0)))
    a, b = a * factor, b * factor
    root = square_root(add(two_product(a, a), two_product(b, b)))
    return select(a.equals(0.0), 0.0, root.high * back)


def hypot(x: Value, y: Value) -> Value:
    """Floats have exact squares as doubles."""
    if x.elem == "float":
        a, b = x.to_double(), y.to_double()
        result = sqrt(fma(a, a, b * b)).to_float()
    else:
        result = hypot_double(x, y)
    return select(fabs(x).equals(INFINITY) | fabs(y).equals(INFINITY), INFINITY, result)


# Sums of squares from the first number to the second one are usual; parts beyond the third or below the fifth, of which
# others are, are scaled before by the number behind.
SIZES = {
    "float": (2.0**-100, 2.0**120, (2.0**55, 2.0**-80), (2.0**-45, 2.0**100)),
    "double": (2.0**-900, 2.0**1000, (2.0**490, 2.0**-600), (2.0**-440, 2.0**600)),
}


def modulus(x: Value, y: Value) -> Value:
    """The size of a complex number to about a unit in the last place: the root of a sum of squares, one rounded.
    An infinite part wins over NaN.
    """
    least, most, (large, less), (small, more) = SIZES[x.elem]
    total = fma(x, x, y * y)
    usual = (total >= least) & (total <= most)

    def scaled() -> list[Value]:
        p, q = fabs(x), fabs(y)
        far, near = (p > large) | (q > large), (p < small) & (q < small)
        factor, back = (
            select(far, x.like(f), select(near, x.like(n), 1.0)) for f, n in ((less, more), (1 / less, 1 / more))
        )
        a, b = p * factor, q * factor
        size = sqrt(fma(a, a, b * b)) * back
        infinite = p.equals(INFINITY) | q.equals(INFINITY)
        return [select(usual, sqrt(total), select(infinite, INFINITY, size))]

    return if_any(~usual, scaled, [sqrt(total)])[0]


def log2_pair(x: Value) -> Pair:
    """log2 of a positive finite double with a relative error below 2^-64.

    log(1 + f) = 2 atanh(s), s = f / (2 + f) as a pair; the series' first two terms as pairs, the rest in
    doubles.
    """
    k, f = reduce_log(x)
    s = divide(Pair(f, f.like(0.0)), two_sum(f, 2.0))
    z = multiply(s, s)
    third = multiply(z, constant(f, *ONE_THIRD))
    rest = z.high * z.high * horner(z.high, tables.ATANH["double"])
    series = add(third, Pair(rest, f.like(0.0)))
    series = add(Pair(f.like(1.0), f.like(0.0)), series)
    log2_m = multiply(multiply(Pair(s.high * 2.0, s.low * 2.0), series), constant(f, *LOG2_E["double"]))
    return add(Pair(k, f.like(0.0)), log2_m)


def exp2_pair(high: Value, low: Value) -> Value:
    """2^(high + low)."""
    bounded = maximum(minimum(high, 1025.0), -1100.0)
    low = select(bounded.equals(high), low, 0.0)
    n, n_integer = round_to_integer(bounded, offset=bounded.format.bias - 1)
    ln2, ln2_low = LN2["double"]
    r = two_product(bounded - n, ln2)
    r = fast_two_sum(r.high, r.low + fma(bounded - n, ln2_low, low * ln2))
    tail = fma(r.high * r.high, horner(r.high, tables.EXP["double"]), r.low)
    one = two_sum(r.high, 1.0)
    return scale_down(2.0 * (one.high + (one.low + tail)), n, n_integer, 1)


def positive_power(a: Value, y: Value) -> Value:
    """a^y for a >= 0 as a double; NaN at 1^inf and the like, which `pow` settles."""
    regular = (a > 0.0) & (a < INFINITY)
    logarithm = log2_pair(select(regular, a, 1.0))
    log_high = select(regular, logarithm.high, select(a.equals(0.0), -INFINITY, a))
    product = two_product(y, log_high)
    return exp2_pair(product.high, fma(y, logarithm.low, product.low))


def _two_chains(x: Value, coefficients: tuple) -> Value:
    """`horner` of even and of odd powers side by side, for half the latency where rounding does not count."""
    square = x * x
    return fma(x, horner(square, coefficients[1::2]), horner(square, coefficients[::2]))


@through_double
def float_power(a: Value, y: Value) -> Value:
    """a^y for widened floats (hence normal doubles), by logarithm and exponential of 35 and 28 bits."""
    k, f = reduce_normal_log(a)
    logarithm = fma(f, _two_chains(f, tables.LOG2_SHORT["double"]), k)
    logarithm = select(a.equals(0.0), -INFINITY, select(a < INFINITY, logarithm, a))
    exponent = maximum(minimum(y * logarithm, 200.0), -200.0)
    n, n_integer = round_to_integer(exponent, offset=exponent.format.bias)
    r = exponent - n
    return fma(r, _two_chains(r, tables.EXP2_SHORT["double"]), 1.0) * power_of_two(n_integer, "double")


def pow(x: Value, y: Value) -> Value:
    """IEEE 754's pow: with exponents of `SHORT` by a few operations, a tenth of the time where all are such."""
    chosen = [y.equals(exponent) for exponent in SHORT]
    short = reduce(or_, chosen)
    (result,) = if_any(~short, lambda: [_any_power(x, y)], [x])

    def by_few_operations() -> list[Value]:
        found = result
        for where, function in zip(chosen, SHORT.values(), strict=True):
            found = _where(where, function, x, found)
        return [found]

    return if_any(short, by_few_operations, [result])[0]


def _where(condition: Value, function: Callable[[Value], Value], x: Value, others: Value) -> Value:
    """A function of x where the condition holds, `others` elsewhere."""
    return if_any(condition, lambda: [select(condition, function(x), others)], [others])[0]


def _root(x: Value) -> Value:
    return select(x.equals(-INFINITY), INFINITY, sqrt(x) + 0.0)  # without the sign of zero


def _square(x: Value) -> Value:
    return x * x


def _inverse(x: Value) -> Value:
    return 1.0 / x


def _cube(x: Value) -> Value:
    """x^3, rounded once: of floats in doubles, of doubles as a pair, which zeros and infinities are not."""
    if x.elem == "float":
        wide = x.to_double()
        return (wide * wide * wide).to_float()
    square = two_product(x, x)
    high = square.high * x
    low = fma(square.low, x, fma(square.high, x, -high))
    return select(high.equals(0.0) | fabs(high).equals(INFINITY), high, high + low)


SHORT = {2.0: _square, 0.5: _root, -1.0: _inverse, 3.0: _cube}  # of constant ones, the first is no call of `pow`


def _any_power(x: Value, y: Value) -> Value:
    """The sign and the exceptional cases around a^y of a = |x|."""
    a = fabs(x)
    if x.elem == "float":
        magnitude = float_power(a, y)
    else:
        magnitude = positive_power(a, y)
    half = y * 0.5
    integer, odd = trunc(y).equals(y), trunc(half).differs(half)
    negative = copysign(1.0, x) < 0.0
    result = select(negative & integer & odd, -magnitude, magnitude)
    result = select((x < 0.0) & (x > -INFINITY) & ~integer, float("nan"), result)
    result = select(a.equals(1.0) & fabs(y).equals(INFINITY), 1.0, result)
    result = select(x.is_nan() | y.is_nan(), float("nan"), result)
    return select(x.equals(1.0) | y.equals(0.0), 1.0, result)


def plain_power(x: Value, y: Value) -> Value:
    """x^y of finite x > 0, with two units' error at most where the result is a normal number; half as long as `pow`."""
    log = log_pair(x, None)
    product = two_product(log.high, y)
    return exp_sum(product.high, fma(log.low, y, product.low))
