"""sin, cos, tan.

x = n pi/2 + r. For moderate |x| the three pieces of pi/2 are subtracted with fma, the first one exactly (Cody
& Waite); beyond, Payne & Hanek ("Radian Reduction for Trigonometric Functions", SIGNUM Newsletter 1983): a
vector with a large lane calls a cold function that multiplies, lane by lane, with the 192 bits of 2/pi that
matter. Then minimax polynomials on |r| <= pi/4, with r in two pieces for doubles (the kernels of FDLIBM; own
coefficients). Floats go through doubles, with shorter polynomials: the result is rounded once.
"""

import math

from . import payne_hanek, tables
from .constants import HALF_PI
from .double_double import Pair, divide, fast_two_sum, total, two_product, two_sum
from .text import Type, Value, call, fabs, fma, horner, if_any, round_to_integer, select

# Up to here the remainder keeps full relative accuracy: no double comes closer than about 2^-62 to a multiple of pi/2,
# no float closer than 2^-31, beside which what three pieces, or two, leave of n pi/2 is nothing. The quotient has some
# bits behind the point, so that no remainder of doubles is beyond pi/4, and none of floats farther than 2^-13.
MODERATE = {"float": 2.0**40, "double": 2.0**26}

SIXTH_LOW = -9.25185853854297e-18  # -1/6 less the nearest double


def is_large(x: Value) -> Value:
    """Whether an angle is finite, but not moderate."""
    size = fabs(x)
    return (size >= MODERATE[x.elem]) & (size < math.inf)


def reduce_angle(x: Value, large: Value, as_pair: bool) -> tuple[Value, Pair]:
    """n (an integer, only its low bits matter) and r = x - n pi/2; its low part is zero unless asked for."""
    n_integer, remainder = reduce_moderate_angle(x, as_pair)

    def slow() -> list[Value]:
        result = Type(f"{{ {x.type}, {x.type}, {n_integer.type} }}", 1)
        width = x.type.width
        reduced = call(result, payne_hanek.NAME, x.elem, width, x)
        fields = [
            x.writer.emit(type_, f"extractvalue {result} {reduced.name}, {k}")
            for k, type_ in enumerate([x.type, x.type, n_integer.type])
        ]
        fast = [remainder.high, remainder.low, n_integer]
        return [select(large, s, f) for s, f in zip(fields, fast, strict=True)]

    high, low, n_integer = if_any(large, slow, [remainder.high, remainder.low, n_integer])
    return n_integer, Pair(high, low)


def reduce_moderate_angle(x: Value, as_pair: bool) -> tuple[Value, Pair]:
    first, second, third = HALF_PI[x.elem]
    n, n_integer = round_to_integer(x * 0.6366197723675814)
    r = fma(n, -first, x)
    if not as_pair:
        return n_integer, Pair(fma(n, -second, r), r.like(0.0))  # of floats: n third is below 2^-68
    product = two_product(n, second)
    difference = two_sum(r, -product.high)
    return n_integer, fast_two_sum(difference.high, fma(n, -third, difference.low - product.low))


def sin_kernel(r: Pair) -> Pair:
    """sin(r.high + r.low) for |r| <= pi/4, the sum of the two parts not yet rounded; the cubic term is a pair."""
    x, z = r.high, r.high * r.high
    first, *others = tables.SIN[x.elem]
    cube = two_product(x, z)
    term = two_product(cube.high, first)
    leading = fast_two_sum(x, term.high)
    term_low = fma(cube.high, SIXTH_LOW, fma(fma(x, fma(x, x, -z), cube.low), first, term.low))
    tail = fma(cube.high * z, horner(z, others), term_low)
    return Pair(leading.high, leading.low + (tail + fma(z * -0.5, r.low, r.low)))


def cos_kernel(r: Pair) -> Pair:
    """The quartic term is a pair, too."""
    x, z = r.high, r.high * r.high
    z_low = fma(x, x, -z)
    first, *others = tables.COS[x.elem]
    fourth = two_product(z, z)
    term = two_product(fourth.high, first)
    half = z * 0.5
    difference = 1.0 - half
    leading = fast_two_sum(difference, term.high)
    tail = fma(fourth.high * z, horner(z, others), fma(fma(z + z, z_low, fourth.low), first, term.low))
    low = ((1.0 - difference) - half) + leading.low
    return Pair(leading.high, low + (fma(z_low, -0.5, tail) - fma(z, -1.0 / 6.0, 1.0) * x * r.low))


def short_sin_kernel(x: Value) -> Value:
    """sin(x) for |x| <= pi/4, to the precision of floats."""
    z = x * x
    return fma(x * z, horner(z, tables.SIN_SHORT[x.elem]), x)


def short_cos_kernel(x: Value) -> Value:
    z = x * x
    return fma(z * z, horner(z, tables.COS_SHORT[x.elem]), fma(z, -0.5, 1.0))


def circular(x: Value, quarter_turns: int) -> Value:
    """sin(x + quarter_turns pi/2)."""
    if x.elem == "float":
        n, r = reduce_angle(x.to_double(), is_large(x), as_pair=False)
        sine, cosine = short_sin_kernel(r.high), short_cos_kernel(r.high)
    else:
        n, r = reduce_angle(x, is_large(x), as_pair=True)
        sine, cosine = total(sin_kernel(r)), total(cos_kernel(r))
    n = n + quarter_turns
    value = select((n & 1).equals(0), sine, cosine)
    sign = (n & 2) << (value.format.bits - 2)
    value = (value.bits() ^ sign).as_float(value.elem)
    return value.to_float() if x.elem == "float" else value


def sin(x: Value) -> Value:
    # Zero and subnormals pass through: adding the (positive) zero tail would lose the sign of -0.
    return select(fabs(x) < x.format.tiny, x, circular(x, 0))


def cos(x: Value) -> Value:
    return circular(x, 1)


def tan(x: Value) -> Value:
    """sin / cos or -cos / sin; of doubles both as pairs: single roundings would add up to three ulps."""
    if x.elem == "float":
        n, r = reduce_angle(x.to_double(), is_large(x), as_pair=False)
        even, sine, cosine = (n & 1).equals(0), short_sin_kernel(r.high), short_cos_kernel(r.high)
        result = (select(even, sine, -cosine) / select(even, cosine, sine)).to_float()
    else:
        n, r = reduce_angle(x, is_large(x), as_pair=True)
        even, sines, cosines = (n & 1).equals(0), fast_two_sum(*sin_kernel(r)), fast_two_sum(*cos_kernel(r))
        above = Pair(*(select(even, s, -c) for s, c in zip(sines, cosines, strict=True)))
        below = Pair(*(select(even, c, s) for s, c in zip(sines, cosines, strict=True)))
        result = divide(above, below).high
    return select(fabs(x) < x.format.tiny, x, result)
