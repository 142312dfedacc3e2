"""The gamma and beta functions themselves, beside their logarithms.

Sources: Abramowitz and Stegun 6.1.15, 6.1.17, 6.1.37; Didonato and Morris, Algorithm 708: Significant digit computation
of the incomplete beta function ratios (1992), for the logarithm of the beta function of large parameters.
"""

import math

from . import fitted
from .polynomials import fitted_to
from .series import LARGE_SHAPE, log_gamma, stirling_rest

INF, NAN = math.inf, math.nan
RECURRENCE = 12.0  # up to which gamma(x) is a product, beyond it Stirling's formula
HALF_LOG_TWO_PI, ROOT_TWO_PI = 0.9189385332046727, 2.5066282746310002


def sign_of_gamma(m, x):
    """The sign of gamma(x): it changes at every pole, at zero too."""
    whole = m.floor(x)
    even = m.equal(m.floor(whole * 0.5) * 2.0, whole)
    at_zero = m.where(m.equal(x, 0.0) & (1.0 / x < 0.0), m.like(x, -1.0), 1.0)
    return m.where((x > 0.0) | even, at_zero, -1.0)


def _product(m, on, x):
    """gamma(x) for |x| < 12 from that of a number in [2, 3): factors one by one, and what is rounded off them."""
    x = m.where(on, x, 2.5)
    down = x >= 3.0

    def outside(at):
        return down & (at >= 3.0) | ~down & (at < 2.0)  # next below 2, one more is rounded to 3

    def step(on, at, high, low):
        factor = m.where(down, at - 1.0, at)
        product = high * factor
        low = m.where(on, low * factor + m.product_error(high, factor, product), low)
        high = m.where(on, product, high)
        at = m.where(on, m.where(down, at - 1.0, at + 1.0), at)
        return outside(at) & on, at, high, low

    one = m.like(x, 1.0)
    _, at, high, low = m.iterate(step, (outside(x), x, one, m.like(x, 0.0)))
    value = fitted_to(m, fitted.GAMMA, at)
    return m.where(down, value * high + value * low, value / high * (1.0 - low / high))


def _stirling(m, x):
    """gamma(x) for x >= 12, as two factors whose product may overflow."""
    half = m.power(x, 0.5 * x)  # whose exponent is exact
    return half * m.exp(-x) * m.exp(stirling_rest(m, x)), half * (ROOT_TWO_PI / m.sqrt(x))


def _mirrored(m, b, first, second):
    """gamma(-b) for gamma(b) = first second, by reflection."""
    fraction = b - 2.0 * m.floor(b * 0.5)  # in [0, 2)
    nearest = m.floor(fraction + 0.5)
    sine = m.sin(math.pi * (fraction - nearest))
    sine = m.where(m.equal(nearest, 1.0), -sine, sine)
    return -(math.pi / (b * m.where(m.equal(sine, 0.0), 1.0, sine))) / first / second


def gamma(m, x, precision):
    """Gamma(x); NaN at the negative poles."""
    a = m.abs(x)
    if precision > 1e-12:
        b = m.where((a < 200.0) & (a > 0.0), a, 200.0)
        first = m.exp(m.plain_lgamma(b))
        value = m.where_any(x < 0.0, lambda: _mirrored(m, b, first, 1.0), first)
    else:
        small = (a < RECURRENCE) & ~m.equal(x, 0.0)
        near = _product(m, small & ~(m.equal(m.floor(x), x) & (x < 0.0)), x)

        def far():
            b = m.where(a >= RECURRENCE, m.where(a < 200.0, a, 200.0), RECURRENCE)
            first, second = _stirling(m, b)
            return m.where_any(x < 0.0, lambda: _mirrored(m, b, first, second), first * second)

        value = m.where_any(~(a < RECURRENCE), far, near)
    value = m.where(a < 2.0**-1000, 1.0 / x, value)
    value = m.where(x < -200.0, 0.0, m.where(m.equal(x, INF), INF, value))
    pole = (x < 0.0) & m.equal(m.floor(x), x)
    return m.where(pole | ~m.equal(x, x), NAN, value)


def gamma_of_float(m, x):
    return gamma(m, x, 2.0**-32)


def gamma_of_double(m, x):
    return gamma(m, x, 2.0**-53)


def gamma_apart(m, x, precision):
    """`gamma`, by a call, for functions that need it several times."""
    return m.apart(gamma_of_float if precision > 1e-12 else gamma_of_double, x)


def _sum_and_rest(x, y):
    """x + y, and what is rounded off it (D. E. Knuth, TAOCP 4.2.2)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _beta_of_small(m, on, a, b, precision):
    """B(a, b) as a quotient of gamma functions, where these do not overflow."""
    a, b = m.where(on, a, 1.0), m.where(on, b, 1.0)
    total, lost = _sum_and_rest(a, b)
    ratio = gamma(m, a, precision) * gamma(m, b, precision) / gamma(m, total, precision)
    # of counts and other short numbers nothing is lost
    return m.where_any(~m.equal(lost, 0.0), lambda: ratio - ratio * (lost * m.digamma(total)), ratio)


LARGE_IN_SINGLE = 32.0  # from which on differences of the logarithms of gamma functions have too few digits for floats


def _log_beta_in_single(m, a, b):
    """Of positive numbers, with enough digits for single precision also where it is small, as at B(1, 1). Vectors
    seldom have parameters of every size. Each is kept proper by itself: so what hangs on one alone is computed once
    where that does not change.
    """
    of_a, of_b = m.where(a < LARGE_IN_SINGLE, a, 1.0), m.where(b < LARGE_IN_SINGLE, b, 1.0)
    first, second = m.plain_lgamma(of_a), m.plain_lgamma(of_b)
    swap = a > b
    p, q = m.where(swap, b, a), m.where(swap, a, b)
    large, both = q >= LARGE_IN_SINGLE, p >= LARGE_IN_SINGLE
    one = m.where(swap, second, first)
    value = m.where_any(~large, lambda: first + (second - m.plain_lgamma(of_a + of_b)), one)
    t = m.where(large, m.where(q < INF, q, 1e300), LARGE_SHAPE)

    def mixed():
        return _log_beta_of_one_large(m, one, m.where(large & ~both, p, 1.0), t)

    def even():
        s = m.where(both, p, LARGE_SHAPE)
        quotient = s / t
        rests = stirling_rest(m, s) + stirling_rest(m, t) - stirling_rest(m, s + t)
        longer = m.log1p(quotient)
        return HALF_LOG_TWO_PI - 0.5 * m.log(t) + rests + (s - 0.5) * (m.log(quotient) - longer) - t * longer

    value = m.where_any(large & ~both, mixed, value)
    value = m.where_any(both, even, value)
    return m.where(m.equal(q, INF), -INF, value)


def log_beta_by_gammas(m, a, b):
    """log |B(a, b)| to single precision where a parameter is not positive."""
    swap = a > b
    p, q = m.where(swap, b, a), m.where(swap, a, b)
    large = (p < 0.0) & (q >= 2.0 * LARGE_SHAPE) & (2.0 * p > -q)  # so that the sum is large, too
    first = m.apart(log_gamma, p)
    value = first + (m.apart(log_gamma, q) - m.apart(log_gamma, p + q))
    t = m.where(large, m.where(q < INF, q, 1e300), LARGE_SHAPE)
    value = m.where_any(large, lambda: _log_beta_of_one_large(m, first, m.where(large, p, 1.0), t), value)
    return m.where(m.equal(a, a) & m.equal(b, b), value, NAN)


def _log_beta_of_one_large(m, log_gamma_of_s, s, t):
    """Of a large t, by Stirling's series."""
    rests = stirling_rest(m, t) - stirling_rest(m, s + t)
    return log_gamma_of_s + rests - (t + (s - 0.5)) * m.log1p(s / t) - s * (m.log(t) - 1.0)


def log_beta(m, a, b, precision):
    """log |B(a, b)|: Stirling's series are combined where parameters are large, so that nothing cancels."""
    if precision > 1e-12:
        value = _log_beta_in_single(m, m.where(a > 0.0, a, 1.0), m.where(b > 0.0, b, 1.0))
        return m.where_any(~((a > 0.0) & (b > 0.0)), lambda: m.apart(log_beta_by_gammas, a, b), value)
    return _log_beta_in_double(m, a, b, precision)


def _log_beta_in_double(m, a, b, precision):
    swap = a > b
    p, q = m.where(swap, b, a), m.where(swap, a, b)
    positive = p > 0.0
    slightly_negative = (p < 0.0) & (q >= 2.0 * LARGE_SHAPE) & (2.0 * p > -q)  # so that the sum is large, too
    large, both = (q >= LARGE_SHAPE) & positive | slightly_negative, p >= LARGE_SHAPE
    # Both parameters are small, or one is negative.
    tiny = (p < 1e-290) | (p * q < 1e-290)  # where the product of their gamma functions is beyond doubles
    t = m.where(large, m.where(q < INF, q, 1e300), LARGE_SHAPE)

    def of_small():
        apart = lambda: m.apart(log_gamma, p) + (m.apart(log_gamma, q) - m.apart(log_gamma, p + q))
        ratio = _beta_of_small(m, positive & ~large & ~tiny, p, q, precision)
        return m.where_any(~(positive & ~tiny), apart, m.log(m.abs(ratio)))

    def mixed():
        s = m.where(large, p, 1.0)
        return _log_beta_of_one_large(m, m.lgamma(s), s, t)

    def even():
        s = m.where(both & large, p, LARGE_SHAPE)
        quotient = s / t
        rests = stirling_rest(m, t) - stirling_rest(m, m.where(large, p, 1.0) + t) + stirling_rest(m, s)
        longer = m.log1p(quotient)
        return HALF_LOG_TWO_PI - 0.5 * m.log(t) + rests + ((s - 0.5) * (m.log(quotient) - longer) - t * longer)

    value = m.where_any(~large, of_small, m.like(p, 0.0))
    value = m.where_any(large & ~both, mixed, value)
    value = m.where_any(large & both, even, value)
    value = m.where(m.equal(q, INF) & positive, -INF, value)
    return m.where(m.equal(a, a) & m.equal(b, b), value, NAN)


def beta(m, a, b, precision):
    """B(a, b)."""
    total = a + b
    sign = sign_of_gamma(m, a) * sign_of_gamma(m, b) * sign_of_gamma(m, total)
    value = sign * m.exp(log_beta(m, a, b, precision))
    if precision < 1e-12:
        small = (m.abs(a) < 60.0) & (m.abs(b) < 60.0) & (a > 1e-100) & (b > 1e-100)
        value = m.where(small, _beta_of_small(m, small, a, b, precision), value)
    pole = (a < 0.0) & m.equal(m.floor(a), a) | (b < 0.0) & m.equal(m.floor(b), b)
    return m.where(m.equal(a, a) & m.equal(b, b) & ~pole, value, NAN)


def binomial(m, n, k, precision):
    """gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1))."""
    return 1.0 / ((n + 1.0) * beta(m, n - k + 1.0, k + 1.0, precision))


def poch(m, z, n, precision):
    """gamma(z + n) / gamma(z): as a quotient where these are small, else by Stirling's series or logarithms."""
    total, lost = _sum_and_rest(z, n)
    at_pole, from_pole = (total <= 0.0) & m.equal(m.floor(total), total), (z <= 0.0) & m.equal(m.floor(z), z)
    small = (m.abs(z) < 100.0) & (m.abs(total) < 100.0) & ~at_pole & ~from_pole
    near = m.where(small, total, 1.0)
    ratio = gamma(m, near, precision) / gamma(m, m.where(small, z, 1.0), precision)
    ratio = ratio + ratio * (m.where(small, lost, 0.0) * m.digamma(near))
    large = (z >= LARGE_SHAPE) & (total >= LARGE_SHAPE) & (total < INF)

    def by_logarithms():
        s, t = m.where(large, z, LARGE_SHAPE), m.where(large, n, 0.0)
        whole = s + t
        rests = stirling_rest(m, whole) - stirling_rest(m, s)
        log = (s - 0.5) * m.log1p(t / s) + t * (m.log(whole) - 1.0) + rests
        bad = large | at_pole | from_pole
        parts = [m.apart(log_gamma, m.where(bad, 1.5, x)) for x in (total, z)]
        log = m.where(large, log, parts[0] - parts[1])
        return sign_of_gamma(m, total) * sign_of_gamma(m, z) * m.exp(log)

    value = m.where_any(~small, by_logarithms, ratio)
    value = m.where(from_pole, 0.0, m.where(at_pole, INF, value))
    # Both are poles: (z)_n = (-1)^n (1 - z - n)_n, where gamma functions of positive numbers are.
    both = from_pole & at_pole & m.equal(m.floor(n), n)

    def between_poles():
        p, q = m.where(both, 1.0 - z, 1.0), m.where(both, 1.0 - total, 1.0)
        mirrored = m.exp(m.apart(log_gamma, p) - m.apart(log_gamma, q))
        odd = ~m.equal(m.floor(n * 0.5) * 2.0, n)
        return m.where(odd, -mirrored, mirrored)

    value = m.where_any(both, between_poles, value)
    value = m.where(m.equal(z, INF) & (m.abs(n) < INF), m.where(n > 0.0, INF, 0.0), value)
    value = m.where(m.equal(n, 0.0), 1.0, value)
    return m.where(m.equal(z, z) & m.equal(n, n), value, NAN)


SHIFT = 10  # the argument from which the series is good; what is below is moved there
DIGAMMA_SERIES = tuple(
    b / (2 * k) for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510), 1)
)


def digamma_difference(m, x, d, precision):
    """digamma(x + d) - digamma(x), where no difference of the two has digits: DLMF 5.5.2 and 5.11.2, term by term."""
    total = x + d
    proper = (x >= 0.0) & (total >= 0.0) & (x < INF) & (total < INF)
    p, q, r = m.where(proper, x, 1.0), m.where(proper, d, 1.0), m.where(proper, total, 2.0)
    value = q / r / p
    for k in range(1, SHIFT):
        value = value + q / ((p + float(k)) * (r + float(k)))
    p, r = p + float(SHIFT), r + float(SHIFT)
    ratio = q / p
    value = value + m.where(ratio < -0.5, m.log(r / p), m.log1p(m.where(ratio < -0.5, 0.0, ratio)))
    u, v = 1.0 / p, 1.0 / r
    low = q * v * u  # u - v
    square, other = u * u, v * v
    quotient, power, series = 1.0, other, DIGAMMA_SERIES[0]  # of the difference of their powers and of themselves
    for c in DIGAMMA_SERIES[1:]:
        quotient = square * quotient + power
        power = power * other
        series = series + c * quotient
    value = value + low * (0.5 + (u + v) * series)
    apart = m.where(proper, m.like(x, 2.0), total), m.where(proper, m.like(x, 1.0), x)
    improper = m.where(m.equal(x, INF) & (m.abs(d) < INF), 0.0, m.digamma(apart[0]) - m.digamma(apart[1]))
    return m.where(proper, value, improper)
