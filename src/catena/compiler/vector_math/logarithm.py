"""log and its family.

x = 2^k m with sqrt(1/2) <= m < sqrt(2), f = m - 1, and log(1 + f) = f - f^2/2 + (a polynomial part): in f for
floats, and in s = f / (2 + f) for doubles, where log(1 + f) = 2 atanh(s) (the reduction of FDLIBM's e_log.c;
own coefficients).
"""

from collections.abc import Callable

from . import fitted, tables, text
from .constants import LN2, LOG2_E, LOG10_2, LOG10_E
from .double_double import Pair, constant, fast_two_sum, multiply, two_product, two_sum
from .double_double import add as add_pairs
from .lookup import part
from .polynomials import fitted_to, in_pairs
from .text import FORMATS, SELDOM, Value, either, fabs, fma, horner, raised, select, without_tiny

SQRT_HALF = 0.7071067811865476
INFINITY = float("inf")
REGISTERS = (256, 512)  # bits


def at_once(x: Value, function: Callable[[bool], Value], below: float = float("nan")) -> Value:
    """``function(False)``, for all numbers; what `normal_apart` is elsewhere."""
    return function(False)


def normal_apart(x: Value, function: Callable[[bool], Value], below: float = float("nan")) -> Value:
    """``function(True)``, which takes x for positive normal numbers, by vectors where all lanes are such;
    ``function(False)``, of the same bits for these, by others. Choosing what else there is among the lanes took a third
    of the time. Negative ones alone, whose results programs choose away by halves of their data, are one choice:
    ``below``. Only of whole registers: where a number comes alone, one waits for the last.
    """
    if x.type.width * x.format.bits not in REGISTERS:
        return function(False)

    def others() -> Value:
        negatives = lambda: select(x.bits() < 0, below, function(True))
        return either(~is_normal(fabs(x)), lambda: function(False), negatives)

    return either(~is_normal(x), others, lambda: function(True), SELDOM)


def is_normal(x: Value, below: float = INFINITY) -> Value:
    """Whether a number is a positive normal one, and `below` a number, which its bits say by one comparison."""
    least, beyond = (x.like(v).bits() for v in (x.format.tiny, below))
    return (beyond - least).is_above(x.bits() - least)


def reduce_log(x: Value, normal: bool = False) -> tuple[Value, Value]:
    """k (as a float) and f with x = 2^k (1 + f), for positive finite x, subnormals included."""
    if normal:
        return reduce_normal_log(x)
    fmt = x.format
    subnormal = x < fmt.tiny
    k, f = reduce_normal_log(select(subnormal, raised(x, fmt.mantissa_bits), x))
    return k - select(subnormal, x.like(fmt.mantissa_bits), 0.0), f


def reduce_normal_log(x: Value) -> tuple[Value, Value]:
    shift, bits = x.format.mantissa_bits, x.bits()
    k = (bits - x.like(SQRT_HALF).bits()) >> shift
    return small_integer_to_float(k, x.elem), (bits - (k << shift)).as_float(x.elem) - 1.0


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


def with_log_specials(x: Value, result: Value, normal: bool = False) -> Value:
    """log's values at zero, negative numbers, +infinity and NaN."""
    if normal:
        return result
    result = select(x < INFINITY, result, x)
    result = select(x < 0.0, float("nan"), result)
    return select(x.equals(0.0), -INFINITY, result)


def rounded_log(x: Value, correction: Value | None = None, normal: bool = False) -> Value:
    """log(x) + correction for positive finite x."""
    k, f = reduce_log(x, normal)
    high, low = LN2[x.elem]
    tail = fma(k, low, beyond_quadratic(f))
    if correction is not None:
        tail = tail + correction
    return fma(k, high, f + fma(f * -0.5, f, tail))


def log(x: Value, of: Callable = at_once) -> Value:
    return of(x, lambda normal: with_log_specials(x, rounded_log(x, None, normal), normal))


def entr(x: Value, of: Callable = at_once) -> Value:
    """-x log(x), with what is rounded off the logarithm; -0 at 0 of either sign, -infinity below 0."""
    return of(x, lambda normal: _entr(x, normal), -INFINITY)


def _entr(x: Value, normal: bool) -> Value:
    k, f = reduce_log(x, normal)
    high, low = LN2[x.elem]
    tail = fma(f * -0.5, f, fma(k, low, beyond_quadratic(f)))
    part = f + tail
    total = fma(k, high, part)
    lost = (fma(k, high, -total) + part) + ((f - part) + tail)
    result = fma(x, total, x * lost)
    if normal:
        return -result
    result = select(x < INFINITY, result, x)
    return -select(x.equals(0.0), 0.0, select(x < 0.0, INFINITY, result))


def logit(x: Value) -> Value:
    """log(x / u) of u = 1 - x; vectors that lie inside, where u is not zero, choose nothing, as in `normal_apart`."""

    def anywhere() -> Value:
        beyond = select(x.equals(1.0), x.like(INFINITY), float("nan"))
        inside = (x > 0.0) & (x < 1.0)
        return select(x.equals(0.0), -INFINITY, select(inside, _logit(x, False), beyond))

    if x.type.width * x.format.bits not in REGISTERS:
        return anywhere()
    return either(~is_normal(x, 1.0), anywhere, lambda: _logit(x, True), SELDOM)


def _logit(x: Value, normal: bool) -> Value:
    """With what is rounded off u and off the quotient: both count where that is next to 1."""
    u = 1.0 - x
    odds = x / u
    rest = without_tiny((1.0 - u) - x, x.format.epsilon**2)  # less counts for nothing
    lost = fma(-odds, u, x) - odds * rest
    return rounded_log(odds, lost / x, normal)


def short_log(x: Value) -> Value:
    """log(x) to single precision, of a double that is a positive normal number; of others, anything."""
    f = part("significand", x) - 1.0
    return fma(f, fitted_to(text, fitted.LOG_SINGLE, f, in_pairs), part("exponent", x) * LN2["double"][0])


def log_pair(x: Value, correction: Value | None, extra_exponent: Value | float = 0.0) -> Pair:
    """log((x + correction) 2^extra) for finite x > 0 and a correction within a few ulps of x."""
    k, f = reduce_log(x)
    k = k + extra_exponent
    part = log1p_pair(f)
    high, low = LN2[x.elem]
    total = add_pairs(two_product(k, high), part)
    rest = k * low if correction is None else fma(k, low, correction / x)
    return fast_two_sum(total.high, total.low + rest)


def log1p(x: Value, of: Callable = at_once) -> Value:
    """log(u) + c / u, where u + c is 1 + x exactly. A tiny x, which is its own result, is no c: it may be subnormal,
    and processors take a hundred cycles for each operation on such a number.
    """
    u, tiny = two_sum(x, 1.0), fabs(x) < x.format.epsilon
    lost = select((u.high < INFINITY) & ~tiny, u.low, 0.0)
    return select(tiny, x, _log_of_sum(Pair(u.high, lost), of))


def log1p_up_to_zero(x: Value, normal: bool = False) -> Value:
    """`log1p` of x <= 0, where it does not matter how long subnormal ones take; 1 + x may be known to be `normal`."""
    return _log_of_sum(two_sum(x, 1.0), (lambda u, function: function(True)) if normal else at_once)


def _log_of_sum(u: Pair, of: Callable = at_once) -> Value:
    x, correction = u.high, u.low / u.high
    return of(x, lambda normal: with_log_specials(x, rounded_log(x, correction, normal), normal))


def log1p_of_pair(t: Pair) -> Pair:
    """log(1 + t) for a finite pair t > -1."""
    u = two_sum(t.high, 1.0)
    return log_pair(u.high, u.low + t.low)


def log2(x: Value, of: Callable = at_once) -> Value:
    return of(x, lambda normal: _log2(x, normal))


def _log2(x: Value, normal: bool) -> Value:
    k, f = reduce_log(x, normal)
    part = multiply(log1p_pair(f), constant(x, *LOG2_E[x.elem]))
    total = two_sum(k, part.high)
    return with_log_specials(x, total.high + (total.low + part.low), normal)


def log10(x: Value, of: Callable = at_once) -> Value:
    return of(x, lambda normal: _log10(x, normal))


def _log10(x: Value, normal: bool) -> Value:
    k, f = reduce_log(x, normal)
    part = multiply(log1p_pair(f), constant(x, *LOG10_E[x.elem]))
    high, low = LOG10_2[x.elem]
    total = add_pairs(two_product(k, high), part)
    return with_log_specials(x, total.high + fma(k, low, total.low), normal)
