"""Integrals: Dawson's, exponential, sine, cosine and Fresnel integrals, the dilogarithm, the scaled error function.

Sources: NIST DLMF 6.2, 6.9, 6.12 (exponential, sine and cosine integrals), 7.5 (Fresnel integrals), 8.19 (E_n), 25.12
(the dilogarithm, in powers of the logarithm after Debye); Cody and Thacher, Chebyshev approximations for the
exponential integral Ei(x) (1969), for the pieces and the form around the zero. Polynomials are those of ``fits.py``.
"""

import math

from . import fitted, placed, tables
from .factorials import gamma
from .polynomials import fitted_to, horner
from .zeta import BERNOULLI

INF, NAN = math.inf, math.nan
STEPS = 2000.0  # of a continued fraction or series


def exp_of_square(m, x, factor: float):
    """exp(factor x^2), with what is rounded off the square; ``factor`` is a power of two, or less zero."""
    square = x * x
    large = m.exp(factor * square)
    lost = factor * m.product_error(x, x, m.where(square < INF, square, 1.0))
    return m.where((large < INF) & (square < INF), large + large * lost, large)


# ------------------------------------------------------------------------------------------------------------
# Error functions


FAR = 25.0  # from which on the asymptotic series of erfcx has all digits
ASYMPTOTIC = tuple((-1) ** k * math.prod(range(1, 2 * k, 2)) / 2**k / math.sqrt(math.pi) for k in range(9))


def erfcx_of_tail(m, a, precision):
    """exp(a^2) erfc(a) for a >= 1/2."""
    b = m.where(a < FAR, a, FAR)
    near = horner(m, tables.ERFC["double"], (b - 3.0) / (b + 3.0)) / (2.0 * b + 1.0)

    def series():
        inverse = 1.0 / m.maximum(a, FAR)
        return inverse * horner(m, ASYMPTOTIC[:5] if precision > 1e-12 else ASYMPTOTIC, inverse * inverse)

    return m.where_any(a >= FAR, series, near)


def _erfcx_in_single(m, x, a):
    """Below 0 by 2 exp(x^2), which is beyond single precision from 10 on."""
    inverse = 1.0 / (a + 3.0)
    tail = inverse * fitted_to(m, fitted.ERFCX_SINGLE, 1.0 - 6.0 * inverse)
    bound = m.where(a < 10.0, a, 10.0)
    return m.where_any(x < 0.0, lambda: 2.0 * m.short_exp(bound * bound) - tail, tail)


def erfcx(m, x, precision):
    """exp(x^2) erfc(x)."""
    a = m.abs(x)
    if precision > 1e-12:
        return _erfcx_in_single(m, x, a)
    tail = erfcx_of_tail(m, a, precision)

    def not_of_tail():
        exp = exp_of_square(m, m.where(x < 0.5, x, 0.0), 1.0)
        around_zero = exp * (1.0 - m.small_erf(m.where(a < 0.5, x, 0.0)))
        return m.where(a < 0.5, around_zero, 2.0 * exp - tail)

    return m.where_any(x < 0.5, not_of_tail, m.where(m.equal(x, x), tail, NAN))


DOUBLE_FACTORIALS = tuple(float(math.prod(range(1, 2 * k, 2))) for k in range(1, 18))


def _erfcx_slope_in_single(m, x, a):
    """Below 0, that of 2 exp(x^2) less the same function of -x, whose slopes have one sign."""
    inverse = 1.0 / (a + 3.0)
    falling = inverse * inverse * fitted_to(m, fitted.ERFCX_SLOPE_SINGLE, 1.0 - 6.0 * inverse)
    bound = m.where(a < 10.0, a, 10.0)
    return m.where_any(x < 0.0, lambda: -4.0 * bound * m.short_exp(bound * bound) - falling, -falling)


def erfcx_slope(m, x, precision):
    """The derivative 2 x erfcx(x) - 2 / sqrt(pi), whose terms cancel beyond 1; beyond 8 its divergent series."""
    if precision > 1e-12:
        return _erfcx_slope_in_single(m, x, m.abs(x))
    middle = -fitted_to(m, fitted.ERFCX_SLOPE, m.where(x < 8.0, m.maximum(x, 1.0), 8.0))

    def around():
        near = m.where(x < 1.0, x, 1.0)
        return 2.0 * near * erfcx(m, near, precision) - 2.0 * ASYMPTOTIC[0]

    def series():
        half = 0.5 / m.where(x < 8.0, m.like(x, 8.0), x)
        u = 2.0 * (half * half)
        return -(2.0 * ASYMPTOTIC[0] * (u * horner(m, DOUBLE_FACTORIALS, -u)))

    value = m.where_any(x < 1.0, around, m.where(m.equal(x, x), middle, NAN))
    return m.where_any(x >= 8.0, series, value)


def dawsn(m, x, precision):
    """exp(-x^2) times the integral of exp(t^2) from 0 to x: over x, far out over the limit 1 / (2 x)."""
    a = m.abs(x)
    table = placed.DAWSON
    inverse = 1.0 / m.maximum(a, table.end)
    half, value = m.where(x < 0.0, -0.5, m.like(x, 0.5)) * inverse, table(m, a, inverse * inverse)
    return m.where(a > table.end, m.fma(half, value, half), x * value)


def dawsn_slope(m, x, precision):
    """The derivative 1 - 2 x dawsn(x), whose terms cancel far out."""
    a = m.abs(x)
    table = placed.DAWSON_SLOPE if precision < 1e-12 else placed.DAWSON_SLOPE_SINGLE
    inverse = 1.0 / m.maximum(a, table.end)
    u = inverse * inverse
    value = table(m, a, u)
    return m.where(a > table.end, u * value, value)


# ------------------------------------------------------------------------------------------------------------
# Exponential, sine and cosine integrals

EI_ZERO, EI_ZERO_LOW = 0.3725074107813666, 1.3140183414386028e-17
CI_ZERO, CI_ZERO_LOW = 0.6165054856207163, -4.209920321433186e-17


def _exp1_of_positive(m, x):
    small = m.where(x < 1.0, x, 1.0)
    near = fitted_to(m, fitted.EXP1_SMALL, small) - m.log(small)
    far = m.where(x < 800.0, m.maximum(x, 1.0), 800.0)
    beyond = m.exp(-far) * fitted_to(m, fitted.EXP1_LARGE, (far - 3.0) / (far + 3.0)) / (far + 1.0)
    return m.where(x < 1.0, near, m.where(x < 800.0, beyond, 0.0))


def exp1(m, x, precision):
    """E1(x), NaN for negative x."""
    value = _exp1_of_positive(m, m.where(x > 0.0, x, 1.0))
    return m.where(x > 0.0, value, m.where(m.equal(x, 0.0), INF, NAN))


def _log_over(m, x, zero: float, low: float):
    """log(x / (zero + low)) in two parts, with all digits around the zero."""
    distance = x - zero  # exact where it is small
    near = m.abs(distance) < zero / 2
    part = m.where(near, distance, x)
    quotient = part / zero
    lost = m.product_error(quotient, m.like(x, zero), part) + quotient * low + m.where(near, m.like(x, low), 0.0)
    whole = m.where(near, 1.0 + quotient, quotient)
    return m.log_pair(whole, m.where(near, quotient - (whole - 1.0), 0.0) - lost * (1 / zero))


def expi(m, x, precision):
    """Ei(x)."""
    a = m.maximum(x, 0.0)
    small = m.where((a > 0.0) & (a < 6.0), a, 6.0)
    distance = (small - EI_ZERO) - EI_ZERO_LOW
    log, rest = _log_over(m, small, EI_ZERO, EI_ZERO_LOW)
    around = log + (rest + distance * fitted_to(m, fitted.EI_SMALL, small))
    b = m.where(a > 6.0, m.where(a < 800.0, a, 800.0), 6.0)
    series = fitted_to(m, fitted.EI_LARGE, 1.0 / b) / b
    half = m.exp(m.where(b > 700.0, b * 0.5, b))
    large = m.where(b > 700.0, half * (half * series), half * series)
    value = m.where(a < 6.0, around, large)
    value = m.where(x < 0.0, -_exp1_of_positive(m, m.where(x < 0.0, -x, 1.0)), value)
    value = m.where(m.equal(x, 0.0), -INF, m.where(m.equal(x, INF), INF, value))
    return m.where(m.equal(x, x), value, NAN)


def expi_slope(m, x, precision):
    """exp(x) / x, with what is rounded off both."""
    if precision > 1e-12:
        bound = m.where(x > 700.0, 700.0, m.where(x < -200.0, -200.0, x))
        value = m.short_exp(bound) / x
    else:
        near = (m.abs(x) < 700.0) & (m.abs(x) > 0.0)
        y = m.where(near, x, 1.0)
        high, low = m.exp_pair(y)
        quotient = high / y
        value = quotient + (low - m.product_error(quotient, y, high)) / y

        def rare():
            half = m.exp(0.5 * x)
            return half * (half / x)

        value = m.where_any(~near, rare, value)
    return m.where(m.equal(x, INF), INF, value)


def _sine_and_cosine_parts(m, a):
    """f(a) and g(a), DLMF 6.2.17-18, for a >= 4."""
    inverse = 1.0 / a
    u = inverse * inverse
    return inverse * fitted_to(m, fitted.SICI_F, u), u * fitted_to(m, fitted.SICI_G, u)


def _ends(m, a):
    """The argument where it is small, where it is large, and what trigonometric functions are taken of."""
    large = m.where(a > 4.0, a, 4.0)
    return m.where(a < 4.0, a, 4.0), large, m.where(large < INF, large, 0.0)


def sine_integral(m, x, precision):
    """Si(x)."""
    a = m.abs(x)
    small, large, angle = _ends(m, a)
    f, g = _sine_and_cosine_parts(m, large)
    far = math.pi / 2 - (f * m.cos(angle) + g * m.sin(angle))
    near = x * fitted_to(m, fitted.SI, small * small)
    return m.where(a < 4.0, near, m.where(m.equal(x, x), m.where(x < 0.0, -far, far), NAN))


def cosine_integral(m, x, precision):
    """Ci(x), NaN for negative x."""
    small, large, angle = _ends(m, m.where(x > 0.0, x, 1.0))
    f, g = _sine_and_cosine_parts(m, large)
    distance = (small - CI_ZERO) - CI_ZERO_LOW
    log, rest = _log_over(m, small, CI_ZERO, CI_ZERO_LOW)
    near = log + (rest + distance * fitted_to(m, fitted.CI, small))
    value = m.where(x < 4.0, near, f * m.sin(angle) - g * m.cos(angle))
    return m.where(x > 0.0, value, m.where(m.equal(x, 0.0), -INF, NAN))


def expn(m, n, x, precision):
    """E_n(x): the power series up to 1 (DLMF 8.19.8), the continued fraction beyond (8.19.17); of orders below zero
    from the next order that is not.
    """
    proper_x = (x > 0.0) & (x < INF)
    downwards = proper_x & (n <= 0.0) & (n > -LEAST_ORDER)
    count = m.where(downwards, -m.floor(n), 0.0)
    order = m.where(downwards, n + count, n)
    series, on = x <= 1.0, proper_x & (order > 0.0)
    value = m.where(series, _expn_series(m, on & series, order, x, precision), 0.0)
    value = m.where(series, value, _expn_fraction(m, on & ~series, order, x, precision))
    value = _expn_downwards(m, count, order, m.where(proper_x, x, 1.0), value)
    at_zero = m.where(n > 1.0, 1.0 / m.where(n > 1.0, n - 1.0, 1.0), INF)
    value = m.where(m.equal(x, 0.0), at_zero, m.where(m.equal(x, INF), 0.0, value))
    return m.where((n > -LEAST_ORDER) & (x >= 0.0), value, NAN)


LEAST_ORDER = 1000.0


def _expn_downwards(m, count, order, x, value):
    """E_(order - count)(x) from that of an order between 0 and 1, by E_(n-1) = (exp(-x) + (1 - n) E_n) / x, DLMF
    8.19.12; where there is nothing to count, ``value``.
    """
    front = m.exp(-x)

    def step(on, value, k):
        value = m.where(on, (front + (k - order) * value) / x, value)
        return on & (k < count), value, k + 1.0

    value = m.where(m.equal(order, 0.0), front / x, value)
    return m.iterate(step, (count > 0.0, value, m.like(x, 1.0)))[1]


def _expn_series(m, on, n, x, precision):
    n, x = m.where(on, n, 1.0), m.where(on, x, 0.5)
    less = n - 1.0
    odd = ~m.equal(m.floor(less * 0.5), less * 0.5)
    whole = m.equal(m.floor(n), n)
    front = m.exp(less * m.log(x) - m.lgamma(n)) * (m.digamma(n) - m.log(x))
    between = gamma(m, m.where(whole, 0.5, 1.0 - n), precision) * m.power(x, less)
    start = m.where(m.equal(n, 1.0), m.like(x, 0.0), 1.0 / m.where(m.equal(n, 1.0), 1.0, less))

    def step(on, term, total, k):
        k = k + 1.0
        term = term * -x / k
        part = term / m.where(m.equal(k, less), 1.0, k - less)
        total = m.where(on & ~m.equal(k, less), total - part, total)
        return on & ((m.abs(part) > precision * 0.1 * m.abs(total)) | (k <= less) & (k < 40.0)), term, total, k

    one = m.like(x, 1.0)
    total = m.iterate(step, (on, one, start, m.like(x, 0.0)))[2]
    return total + m.where(whole, m.where(odd, -front, front), between)


def _expn_fraction(m, on, n, x, precision):
    n, x = m.where(on, n, 1.0), m.where(on, x, 2.0)
    first = 1.0 / (x + n)

    def step(on, b, d, part, h, k):
        """The next convergent is greater by a term that never cancels (Steed's evaluation)."""
        k, b = k + 1.0, b + 2.0
        factor = k * (n - 1.0 + k)
        new = 1.0 / (b - factor * d)
        part = m.where(on, part * (factor * d * new), part)
        d, h = m.where(on, new, d), m.where(on, h + part, h)
        return on & (part > precision * 0.1 * h) & (k < STEPS), b, d, part, h, k

    h = m.iterate(step, (on, x + n, first, first, first, m.like(x, 0.0)))[4]
    return h * m.exp(-x)


# ------------------------------------------------------------------------------------------------------------
# Fresnel integrals


def _fresnel_parts(m, x):
    """|x|, and for x >= 1.6 the functions f and g (DLMF 7.5.2) with the cosine and sine of pi x^2 / 2."""
    a = m.abs(x)
    b = m.where(a < 1e17, m.maximum(a, 1.6), 1e17)
    angle = _fresnel_angle(m, b)
    inverse = 1.0 / b
    u = inverse * inverse
    f = inverse * fitted_to(m, fitted.FRESNEL_F, u * u)
    g = inverse * u * fitted_to(m, fitted.FRESNEL_G, u * u)
    return a, f, g, m.cos(angle), m.sin(angle)


def _fresnel_angle(m, b):
    """pi b^2 / 2 less whole turns, of which the square is exact."""
    square = b * b
    lost = m.product_error(b, b, square)
    turns = (square - 4.0 * m.floor(square * 0.25)) + (lost - 4.0 * m.floor(lost * 0.25 + 0.5))
    return turns * (math.pi / 2)


def fresnel_s_slope(m, x, precision):
    """sin(pi x^2 / 2)."""
    a = m.abs(x)
    return m.where(a < INF, m.sin(_fresnel_angle(m, m.where(a < 1e17, a, 1e17))), NAN)


def fresnel_c_slope(m, x, precision):
    """cos(pi x^2 / 2)."""
    a = m.abs(x)
    return m.where(a < INF, m.cos(_fresnel_angle(m, m.where(a < 1e17, a, 1e17))), NAN)


def _odd(m, x, a, near, far):
    return m.where(a < 1.6, near, m.where(m.equal(x, x), m.where(x < 0.0, -far, far), NAN))


def fresnel_s(m, x, precision):
    """S(x), the integral of sin(pi t^2 / 2)."""
    a, f, g, cosine, sine = _fresnel_parts(m, x)
    square = m.where(a < 1.6, x * x, 1.0)
    near = x * square * fitted_to(m, fitted.FRESNEL_S, square * square)
    return _odd(m, x, a, near, 0.5 - (f * cosine + g * sine))


def fresnel_c(m, x, precision):
    """C(x), the integral of cos(pi t^2 / 2)."""
    a, f, g, cosine, sine = _fresnel_parts(m, x)
    square = m.where(a < 1.6, x * x, 1.0)
    near = x * fitted_to(m, fitted.FRESNEL_C, square * square)
    return _odd(m, x, a, near, 0.5 + (f * sine - g * cosine))


# ------------------------------------------------------------------------------------------------------------
# The dilogarithm

DEBYE = tuple(b / (2 * k + 1) for k, b in enumerate(BERNOULLI[:9], 1))  # B(2k) / (2k + 1)!


def spence(m, x, precision):
    """Li2(1 - x): with w = -log(x), w - w^2 / 4 + ... around 1, elsewhere by reflection and inversion."""
    low, high = x < 0.5, x > 2.0
    inner = m.where(low, x, m.where(high, 1.0 / m.where(high, x, 1.0), 0.5))
    other = m.log1p(-inner)
    log = m.log(m.where(x > 0.0, x, 1.0))
    w = 0.0 - m.where(low | high, other, log)
    square = w * w
    series = w * (1.0 + square * horner(m, DEBYE, square)) - 0.25 * square
    sixth = math.pi**2 / 6
    value = m.where(low, sixth - log * other - series, series)
    value = m.where(high, series - sixth - log * (0.5 * log + other), value)
    value = m.where(m.equal(x, INF), -INF, value)
    return m.where(x > 0.0, value, m.where(m.equal(x, 0.0), sixth, NAN))
