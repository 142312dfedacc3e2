"""Incomplete gamma and beta functions, their derivatives, the Hurwitz zeta function and polygamma, as algorithms.

Sources: Numerical Recipes, 3rd ed., 5.2 (Lentz's evaluation of continued fractions), 6.2 (incomplete gamma), 6.4
(incomplete beta); Loader, Fast and accurate computation of binomial probabilities (2000), for the factor before the
series; NIST DLMF 25.11(iii) (Euler-Maclaurin summation of the zeta function), 8.12 (Temme's uniform expansion);
Figurnov, Mohamed and Mnih, Implicit reparameterization gradients (2018), for the derivative of gamma samples.

Known imperfections: near x = a, the incomplete gamma functions take about 5 sqrt(a) steps (up to a = 1e6, where an
asymptotic expansion takes over), and for small a and large x, or far from x = a, their relative error grows with the
logarithm of the result.
"""

import math

import numpy as np

from . import fitted
from .polynomials import fitted_to

TINY = 1e-290
HUGE_SHAPE = 1e6
LIMIT = 20000.0  # steps

NAN, INF = math.nan, math.inf
GREATEST_FLOAT, GREATEST = (float(np.finfo(d).max) for d in (np.float32, np.float64))


def _nonzero(m, x):
    """``x``, or a tiny number where it is so near zero that a division would overflow."""
    return m.where(m.abs(x) < TINY, TINY, x)


# ------------------------------------------------------------------------------------------------------------
# Incomplete gamma functions


def _by_series(a, x):
    """Where the power series converges faster than the continued fraction."""
    return (x <= 1.0) | (x <= a)


def _proper(a, x):
    return (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF)


def _series(m, on, a, x, precision):
    """The sum of x^n / ((a + 1) ... (a + n))."""

    def step(on, r, term, total, n):
        r = r + 1.0
        term = m.where(on, term * x / r, term)
        total = m.where(on, total + term, total)
        n = n + 1.0
        return on & (term > precision * total) & (n < LIMIT), r, term, total, n

    one, x = m.like(x, 1.0), m.where(on, x, 1.0)
    return m.iterate(step, (on, a, one, one, m.like(x, 0.0)))[3]


def _fraction(m, on, a, x, precision):
    """1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(...)))."""

    def step(on, b, c, d, h, n):
        n, b = n + 1.0, b + 2.0
        factor = n * (a - n)
        new_d = 1.0 / _nonzero(m, factor * d + b)
        new_c = _nonzero(m, b + factor / c)
        ratio = new_d * new_c
        c, d, h = m.where(on, new_c, c), m.where(on, new_d, d), m.where(on, h * ratio, h)
        return on & (m.abs(ratio - 1.0) > precision * 2.0) & (n < LIMIT), b, c, d, h, n

    a, x = m.where(on, a, 1.0), m.where(on, x, 2.0)
    b = x + 1.0 - a
    d = 1.0 / _nonzero(m, b)
    return m.iterate(step, (on, b, m.like(x, 1e290), d, d, m.like(x, 0.0)))[4]


def _series_with_slope(m, on, a, x, precision):
    """The series, and its derivative by a."""

    def step(on, r, term, total, d_term, d_total, n):
        r, n = r + 1.0, n + 1.0
        d_term = m.where(on, (d_term * x - term * x / r) / r, d_term)
        term = m.where(on, term * x / r, term)
        total, d_total = m.where(on, total + term, total), m.where(on, d_total + d_term, d_total)
        going = (term > precision * total) | (m.abs(d_term) > precision * m.abs(d_total))
        return on & going & (n < LIMIT), r, term, total, d_term, d_total, n

    one, zero, x = m.like(x, 1.0), m.like(x, 0.0), m.where(on, x, 1.0)
    state = m.iterate(step, (on, a, one, one, zero, zero, zero))
    return state[3], state[5]


def _fraction_with_slope(m, on, a, x, precision):
    """The continued fraction, and its derivative by a."""

    def step(on, b, c, dc, d, dd, h, dh, n):
        n, b = n + 1.0, b + 2.0
        factor = n * (a - n)
        new_d, new_dd = _nonzero(m, factor * d + b), n * d + factor * dd - 1.0
        new_c, new_dc = _nonzero(m, b + factor / c), n / c - factor * (dc / c) / c - 1.0
        inverse = 1.0 / new_d
        d, dd = m.where(on, inverse, d), m.where(on, -(new_dd * inverse * inverse), dd)
        c, dc = m.where(on, new_c, c), m.where(on, new_dc, dc)
        ratio, d_ratio = d * c, dd * c + d * dc
        dh, h = m.where(on, dh * ratio + h * d_ratio, dh), m.where(on, h * ratio, h)
        going = (m.abs(ratio - 1.0) > precision * 2.0) | (m.abs(h * d_ratio) > precision * 2.0 * m.abs(dh))
        return on & going & (n < LIMIT), b, c, dc, d, dd, h, dh, n

    a, x = m.where(on, a, 1.0), m.where(on, x, 2.0)
    zero, b = m.like(x, 0.0), x + 1.0 - a
    d = 1.0 / _nonzero(m, b)
    state = m.iterate(step, (on, b, m.like(x, 1e290), zero, d, d * d, d, d * d, zero))
    return state[6], state[7]


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
LARGE_SHAPE = 10.0  # from which on seven terms of Stirling's series suffice


def log_gamma(m, x):
    """log |gamma(x)|, for `m.apart`."""
    return m.lgamma(x)


def _stirling_rest(m, a, terms: int = len(STIRLING)):
    """log(gamma(a)) less (a - 1/2) log(a) - a + log(2 pi) / 2; four terms do for single precision."""
    t = 1.0 / a
    square, rest = t * t, m.like(t, STIRLING[terms - 1])
    for c in reversed(STIRLING[: terms - 1]):
        rest = rest * square + c
    return t * rest


def _excess(m, x, ratio, log):
    """x - log(1 + x) for ``ratio`` = 1 + x, to all its digits where x is small: with s = x / (2 + x), the
    logarithm is 2 atanh(s), a series.
    """
    near = m.abs(x) < 0.25
    e = m.where(near, x, 0.0)
    s = e / (2.0 + e)
    square, series = s * s, m.like(s, 1 / 21)
    for k in range(19, 1, -2):
        series = series * square + 1 / k
    return m.where(near, s * (e - 2.0 * square * series), x - log(m.where(near, 1.0, ratio)))


def _density(m, a, x):
    """x^a e^-x / gamma(a + 1): from a = 10 on by Stirling's series, in which the large logarithms cancel."""
    return m.exp(_log_density(m, a, x))


def _log_density(m, a, x):
    large = a >= LARGE_SHAPE
    b = m.where(large, a, LARGE_SHAPE)
    excess = b * _excess(m, (x - b) / b, x / b, m.log)
    by_stirling = -excess - 0.5 * m.log(6.283185307179586 * b) - _stirling_rest(m, b)
    small = m.where(large, 1.0, a)
    return m.where(large, by_stirling, small * m.log(x) - x - m.lgamma(small + 1.0))


def _log_density_in_single(m, a, x):
    """To single precision. With y = 2^k (1 + f), the logarithm of y is k log(2) + f, less an excess, and y is 1 + f and
    what is beyond that. For large a, y is x / a, and near 1 the excess is all that counts, so that nothing cancels.
    For others y is x, and the terms are those of a log(x) - x - log(gamma(a + 1)).
    """
    finite = a < INF
    shape = m.where(finite, a, 1.0)
    large = shape >= LARGE_SHAPE
    b, small = m.where(large, shape, LARGE_SHAPE), m.where(large, 1.0, shape)
    y = m.where_any(b > 1e20, lambda: x / b, x * m.where(large, 1.0 / b, 1.0))  # where x is a, 1 without an error
    significand = m.significand(y)
    f = significand - 1.0
    excess = f * fitted_to(m, fitted.LOG_EXCESS_SINGLE, f)
    factor = m.fma(-shape, excess, m.where(large, 0.0, shape - 1.0))
    by_stirling = 0.5 * m.short_log(6.283185307179586 * b) + _stirling_rest(m, b, 4)
    constant = m.where(finite, m.where(large, by_stirling, m.short_lgamma(small + 1.0) + 1.0), a)
    rest = m.fma(m.where(large, b, 1.0), significand - y, m.fma(m.exponent(y), shape * math.log(2.0), -constant))
    return m.fma(f, factor, rest)


def log_gamma_density(m, a, x, precision):
    """The logarithm of x^a e^-x / gamma(a + 1), NaN for negative x; Loader (2000). Each operand is kept proper by
    itself: so what hangs on one alone is computed once where that does not change.
    """
    at_zero = m.where(m.equal(a, 0.0), 0.0, m.where(a > 0.0, m.like(a, -INF), m.where(a < 0.0, INF, a)))
    at_infinity = m.where(a < INF, m.like(a, -INF), -a)
    if precision > 1e-12:
        value, most = _log_density_in_single(m, a, x), GREATEST_FLOAT
    else:
        value, most = _log_density(m, m.where(a < INF, a, 1.0), m.where((x > 0.0) & (x < INF), x, 1.0)), GREATEST
        value = m.where(a < INF, value, -a)

    def at_ends():
        return m.where(m.equal(x, 0.0), at_zero, m.where(m.equal(x, INF), at_infinity, NAN))

    return m.where_any(~((x > 0.0) & (x <= most)), at_ends, value)


def _over_density(m, a, x, precision):
    """P(a, x) where the series is used, else Q(a, x), over ``_density``."""
    by_series = _by_series(a, x)
    on = _proper(a, x) & (a < HUGE_SHAPE)
    series = _series(m, on & by_series, a, x, precision)
    fraction = _fraction(m, on & ~by_series, a, x, precision)
    return by_series, m.where(by_series, series, a * fraction)


def _lower_gamma(m, a, x, precision):
    """P(a, x) where the series is used, else Q(a, x)."""
    by_series, share = _over_density(m, a, x, precision)
    return by_series, m.where(a < HUGE_SHAPE, _density(m, a, x) * share, _uniform(m, by_series, a, x)[0])


def _uniform(m, lower, a, x):
    """P (where ``lower``) or Q for a huge shape, and its logarithm, also where it is zero.

    One term of Temme's uniform expansion, DLMF 8.12.3-7.
    """
    delta = (x - a) / a
    half_square = m.maximum(_excess(m, delta, x / a, m.log), 0.0)
    size = m.sqrt(2.0 * half_square)
    eta = m.where(delta < 0.0, -size, size)
    near = m.abs(delta) < 1e-4
    first = 1.0 / m.where(near, 1.0, delta) - 1.0 / m.where(near, 1.0, eta)
    first = m.where(near, -1.0 / 3.0 + eta / 12.0, first)
    root = m.sqrt(2.0 * math.pi * a)
    rest = m.exp(-(a * half_square)) / root * first
    outward = m.where(lower, -eta, eta)
    value = 0.5 * m.erfc(outward * m.sqrt(a * 0.5)) + m.where(lower, -rest, rest)
    # Far out by the asymptotic series of erfc, of which the first term cancels that of the coefficient.
    far = a * half_square > 600.0
    w = 0.5 / m.where(far, a * half_square, 600.0)
    series = w * (w * (3.0 - w * (15.0 - w * (105.0 - w * 945.0))) - 1.0)
    share = (1.0 / m.where(far, m.abs(delta), 1.0) + series / m.where(far, size, 1.0)) / root
    return value, m.where(far, m.log(share) - a * half_square, m.log(m.where(far, 1.0, value)))


def _edges(m, a, x, inside, at_zero, at_infinity):
    """``inside`` within the domain; the limits at the ends of it; NaN outside."""
    valid = (a >= 0.0) & (x >= 0.0)
    out = m.where(m.equal(x, 0.0), at_zero, m.where(m.equal(x, INF), at_infinity, inside))
    return m.where(valid, out, NAN)


def _zero_or_infinite_shape(m, a, x, out, at_zero, at_infinity):
    """The limits where the shape parameter is zero or infinite; NaN where both limits meet."""
    zero, infinite = m.equal(a, 0.0), m.equal(a, INF)
    out = m.where(zero & (x > 0.0), at_zero, out)
    out = m.where(infinite & (x < INF) & (x >= 0.0), at_infinity, out)
    return m.where((zero & m.equal(x, 0.0)) | (infinite & m.equal(x, INF)), NAN, out)


def igamma(m, a, x, precision):
    """The regularised lower incomplete gamma function P(a, x)."""
    by_series, value = _lower_gamma(m, a, x, precision)
    out = _edges(m, a, x, m.where(by_series, value, m.maximum(1.0 - value, 0.0)), 0.0, 1.0)
    return _zero_or_infinite_shape(m, a, x, out, 1.0, 0.0)


SMALL_SHAPE = 0.01  # up to which Q is small itself where P is by the series
# log(gamma(1 + a)) / a, in powers of -a: Euler's constant, and zeta(k) / k
LOG_GAMMA_NEAR_ONE = (
    *(-0.5772156649015329, -0.8224670334241132, -0.40068563438653143, -0.27058080842778454, -0.20738555102867398),
    *(-0.1695571769974082, -0.1440498967688461, -0.12550966952474304),
)


def _upper_of_small_shape(m, on, a, x, precision):
    """Q(a, x) for a small shape and x up to 1: 1 - x^a / gamma(1 + a), which is small, less the rest of P's series in
    powers of -x (DLMF 8.7.1).
    """
    a, x = m.where(on, a, SMALL_SHAPE), m.where(on, x, 0.5)

    def step(on, term, total, n):
        n = n + 1.0
        term = m.where(on, -(term * x / n), term)
        part = term / (a + n)
        total = m.where(on, total + part, total)
        return on & (m.abs(part) > precision * m.abs(total)) & (n < LIMIT), term, total, n

    rest = m.iterate(step, (on, m.like(x, 1.0), m.like(x, 0.0), m.like(x, 0.0)))[2]
    series = m.like(a, LOG_GAMMA_NEAR_ONE[-1])
    for c in reversed(LOG_GAMMA_NEAR_ONE[:-1]):
        series = c - a * series
    log = a * (m.log(x) - series)
    front = m.exp(log)
    unlike = m.where(m.equal(front, 1.0), m.like(x, 2.0), front)
    less = m.where(m.equal(front, 1.0), log, (unlike - 1.0) * log / m.log(unlike))  # exp(log) - 1, after Kahan
    return -less - front * a * rest


def igammac(m, a, x, precision):
    """The upper one, Q(a, x)."""
    by_series, value = _lower_gamma(m, a, x, precision)
    small = by_series & (a < SMALL_SHAPE) & _proper(a, x)
    upper = m.where(small, _upper_of_small_shape(m, small, a, x, precision), 1.0 - value)
    out = _edges(m, a, x, m.where(by_series, m.maximum(upper, 0.0), value), 1.0, 0.0)
    return _zero_or_infinite_shape(m, a, x, out, 0.0, 1.0)


def _slopes(m, a, x, precision):
    """P where the series is used, else Q, and the derivative of P by a, both over ``_density``."""
    by_series = _by_series(a, x)
    series, d_series = _series_with_slope(m, _proper(a, x) & by_series, a, x, precision)
    fraction, d_fraction = _fraction_with_slope(m, _proper(a, x) & ~by_series, a, x, precision)
    difference = m.log(x) - m.digamma(m.where(by_series, a + 1.0, a))
    low, high = d_series + series * difference, -(a * (d_fraction + fraction * difference))
    return by_series, m.where(by_series, series, a * fraction), m.where(by_series, low, high)


def igamma_grad_a(m, a, x, precision):
    """The derivative of P(a, x) by a."""
    _, _, slope = _slopes(m, a, x, precision)
    out = _edges(m, a, x, _density(m, a, x) * slope, 0.0, 0.0)
    return m.where((a > 0.0) & (a < INF), out, NAN)


def random_gamma_grad(m, a, x, precision):
    """dx/da = -(dP/da) / (dP/dx), where the exponentials cancel."""
    _, _, slope = _slopes(m, a, x, precision)
    out = _edges(m, a, x, -(x * slope / a), 0.0, NAN)
    return m.where((a > 0.0) & (a < INF), out, NAN)


# Their logarithms, also where they are zero themselves.


def _log_of_gamma(m, a, x, precision):
    """Whether the series is used; log P there, else log Q; and Q."""
    by_series, share = _over_density(m, a, x, precision)
    log = m.where(a < HUGE_SHAPE, _log_density(m, a, x) + m.log(share), _uniform(m, by_series, a, x)[1])
    small = by_series & (a < SMALL_SHAPE) & _proper(a, x)
    upper = m.where(by_series, m.maximum(1.0 - m.exp(log), 0.0), m.exp(log))
    return by_series, log, m.where(small, _upper_of_small_shape(m, small, a, x, precision), upper)


def log_igamma(m, a, x, precision):
    """log P(a, x)."""
    by_series, log, upper = _log_of_gamma(m, a, x, precision)
    low = m.where(by_series & ((upper > 0.5) | (a >= SMALL_SHAPE)), log, m.log1p(-upper))
    return _zero_or_infinite_shape(m, a, x, _edges(m, a, x, low, -INF, 0.0), 0.0, -INF)


def log_igammac(m, a, x, precision):
    """log Q(a, x)."""
    by_series, log, upper = _log_of_gamma(m, a, x, precision)
    high = m.where(upper > 0.5, m.log1p(-m.where(by_series, m.exp(log), 1.0 - upper)), m.log(upper))
    high = m.where(by_series, high, log)
    return _zero_or_infinite_shape(m, a, x, _edges(m, a, x, high, 0.0, -INF), -INF, 0.0)


def log_igamma_grad_a(m, a, x, precision):
    """The derivative of log P(a, x) by a, in which exponentials cancel where P is small."""
    by_series, share, slope = _slopes(m, a, x, precision)
    density = _density(m, a, x)
    out = m.where(by_series, slope / share, density * slope / (1.0 - density * share))
    return m.where((a > 0.0) & (a < INF), _edges(m, a, x, out, -INF, 0.0), NAN)


def log_igammac_grad_a(m, a, x, precision):
    """The derivative of log Q(a, x) by a."""
    by_series, share, slope = _slopes(m, a, x, precision)
    density = _density(m, a, x)
    small = by_series & (a < SMALL_SHAPE) & _proper(a, x)
    upper = m.where(small, _upper_of_small_shape(m, small, a, x, precision), 1.0 - density * share)
    out = -m.where(by_series, density * slope / upper, slope / share)
    return m.where((a > 0.0) & (a < INF), _edges(m, a, x, out, 0.0, INF), NAN)


# ------------------------------------------------------------------------------------------------------------
# Incomplete beta function


def _beta_fraction(m, on, a, b, x, precision):
    """1 / (1 + d1 / (1 + d2 / (1 + ...))), DLMF 8.17.22, by the recurrences of its convergents p / q, which are divided
    by the power of two in q every two steps.
    """

    def coefficients(n):
        """d(2n) and d(2n + 1); to single precision by one quotient."""
        u = a + 2.0 * n
        even, odd = n * (b - n), -((a + n) * (a + b + n))
        if precision < 1e-12:
            return even * x / ((u - 1.0) * u), odd * x / (u * (u + 1.0))
        below, above = u - 1.0, u + 1.0
        product = below * u * above
        share = m.short_reciprocal(product)
        share = x * m.fma(share, m.fma(-product, share, 1.0), share)  # its errors add up where parameters are large
        return even * above * share, odd * below * share

    def step(on, found_p, found_q, p, q, last_p, last_q, n):
        """Two steps, from convergents that follow one another. What is found stays when a lane is done."""
        n = n + 1.0
        even, odd = coefficients(n)
        p, q = m.fma(even, p, last_p), m.fma(even, q, last_q)
        new_p, new_q = m.fma(odd, last_p, p), m.fma(odd, last_q, q)
        cross = new_p * last_q
        going = on & (m.abs(m.fma(-last_p, new_q, cross)) > precision * 2.0 * m.abs(cross)) & (n < LIMIT)
        found_p, found_q = m.where(on, new_p, found_p), m.where(on, new_q, found_q)
        scale = m.inverse_power_of_two(new_q)
        return going, found_p, found_q, p * scale, q * scale, new_p * scale, new_q * scale, n

    a, b, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, x, 0.5)
    one = m.like(x, 1.0)
    first = 1.0 - (a + b) * x / (a + 1.0)
    state = m.iterate(step, (on, one, first, one, one, one, first, m.like(x, 0.0)))
    return state[1] / _nonzero(m, state[2])


def _beta_front(m, p, q, x, y, log_x, log_y, precision):
    """x^p y^q / B(p, q) for p <= q and y = 1 - x. Logarithms of gamma functions that cancel are never computed: for
    two large parameters their Stirling series are combined, as in TOMS 708; for one the ratio of two is expanded.
    """
    total = p + q
    some, both = q >= LARGE_SHAPE, p >= LARGE_SHAPE

    def mixed():
        """gamma(p + q) / gamma(q) = (p + q)^p (1 + p / q)^(q - 1/2) e^-p ..."""
        s = m.where(both, 1.0, p)
        scaled = x * total
        scaled = m.where(scaled < 1e30, scaled, 1e30)  # where y^q is zero
        rests = _stirling_rest(m, s + q) - _stirling_rest(m, q) - m.apart(log_gamma, 1.0 + s)
        return m.power(scaled, s) * s * m.exp(q * log_y + (q - 0.5) * m.log1p(s / q) - s + rests)

    def large():
        _, excess = _beta_distance(m, p, q, x, y)
        rests = _stirling_rest(m, total) - _stirling_rest(m, p) - _stirling_rest(m, q)
        return m.sqrt(p * (q / total) / 6.283185307179586) * m.exp(rests - excess)

    r = m.where(some, 1.0, q)
    front = p * (r / (p + r)) * m.exp(_log_gamma_quotient(m, p, r))
    if precision < 1e-12:
        small = front * m.power(x, p) * m.power(y, r)
    else:
        small = front * m.exp(p * log_x + r * log_y)
    return m.where_any(both, large, m.where_any(some & ~both, mixed, small))


def _log_gamma_quotient(m, p, r):
    """log gamma(1 + p + r) / (gamma(1 + p) gamma(1 + r))."""
    return m.apart(log_gamma, 1.0 + p + r) - m.apart(log_gamma, 1.0 + p) - m.apart(log_gamma, 1.0 + r)


def _log_beta_front(m, p, q, log_x, log_y, x, y):
    """The logarithm of ``_beta_front``, also where that is zero."""
    total = p + q
    some, both = q >= LARGE_SHAPE, p >= LARGE_SHAPE
    r = m.where(some, 1.0, q)
    small = m.log(p * (r / (p + r))) + _log_gamma_quotient(m, p, r) + p * log_x + r * log_y
    s = m.where(both, 1.0, p)
    rests = _stirling_rest(m, s + q) - _stirling_rest(m, q) - m.apart(log_gamma, 1.0 + s)
    mixed = s * (log_x + m.log(total)) + m.log(s) + q * log_y + (q - 0.5) * m.log1p(s / q) - s + rests
    _, excess = _beta_distance(m, p, q, x, y)
    rests = _stirling_rest(m, total) - _stirling_rest(m, p) - _stirling_rest(m, q)
    large = 0.5 * m.log(p * (q / total) / 6.283185307179586) + rests - excess
    return m.where(both, large, m.where(some, mixed, small))


def _beta_distance(m, p, q, x, y):
    """For two large parameters, p + q times how far x is from its mean p / (p + q), with what was rounded off the sum
    and the product; and the logarithm of x^p y^q less its value there.
    """
    total = p + q
    product, rounded = total * x, p - (total - q)
    away = (product - p) + (m.product_error(total, x, product) + rounded * x)
    return away, p * _excess(m, away / p, product / p, m.log) + q * _excess(m, -(away / q), total * y / q, m.log)


HUGE_BETA = 1e11  # two parameters as large need more steps than there are, and are nearly a normal distribution


def _beta_uniform(m, a, b, x):
    """The incomplete beta function of two huge parameters: the first two terms of its uniform expansion (DLMF 8.18.9);
    the second counts only so near the mean that its coefficient there will do.
    """
    swap = a > b
    p, q = m.where(swap, b, a), m.where(swap, a, b)
    rest = 1.0 - x
    away, excess = _beta_distance(m, p, q, m.where(swap, rest, x), m.where(swap, x, rest))
    outward = m.sqrt(m.maximum(excess, 0.0))
    outward = m.where((away > 0.0) & ~swap | (away < 0.0) & swap, -outward, outward)
    skew = (b - a) / (m.sqrt(a / (a + b)) * m.sqrt(b) * (a + b)) / 7.519884823893001  # 3 sqrt(2 pi)
    return 0.5 * m.erfc(outward) + m.exp(-excess) * skew


def _beta_factor(m, a, b, x, precision):
    """x^a (1 - x)^b / B(a, b)."""
    swap = a > b
    p, q = m.where(swap, b, a), m.where(swap, a, b)
    rest, log_x, log_rest = 1.0 - x, m.log(x), m.log1p(-x)
    logs = m.where(swap, log_rest, log_x), m.where(swap, log_x, log_rest)
    return _beta_front(m, p, q, m.where(swap, rest, x), m.where(swap, x, rest), *logs, precision)


def _beta_share(m, a, b, x, precision):
    """Whether x lies beyond the mean; the incomplete beta function, its complement where x does; what that is over
    ``_beta_factor``. It is reflected where the continued fraction converges faster there.
    """
    mirror = x > (a + 1.0) / (a + b + 2.0)
    a1, b1, x1 = m.where(mirror, b, a), m.where(mirror, a, b), m.where(mirror, 1.0 - x, x)
    on = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < INF) & (b < INF)
    huge = (a >= HUGE_BETA) & (b >= HUGE_BETA)
    share = _beta_fraction(m, on & ~huge, a1, b1, x1, precision) / a1
    value = _beta_factor(m, a, b, x, precision) * share

    def uniform():
        value = _beta_uniform(m, a, b, x)
        return m.where(mirror, 1.0 - value, value)

    return mirror, m.where_any(huge, uniform, value), share


def _beta_edges(m, a, b, x, inside, nothing, all_of_it):
    """``inside`` within the domain; the limits of a share of nothing and of all of it at the ends; NaN outside."""
    out = m.where(m.equal(x, 0.0), nothing, m.where(m.equal(x, 1.0), all_of_it, inside))
    no_a, no_b, all_a, all_b = m.equal(a, 0.0), m.equal(b, 0.0), m.equal(a, INF), m.equal(b, INF)
    out = m.where(no_a | all_b, all_of_it, m.where(no_b | all_a, nothing, out))
    valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    return m.where(valid & ~((no_a & no_b) | (all_a & all_b)), out, NAN)


def betainc(m, a, b, x, precision):
    """The regularised incomplete beta function."""
    mirror, value, _ = _beta_share(m, a, b, x, precision)
    return _beta_edges(m, a, b, x, m.where(mirror, 1.0 - value, value), 0.0, 1.0)


def betaincc(m, a, b, x, precision):
    """Its complement."""
    mirror, value, _ = _beta_share(m, a, b, x, precision)
    return _beta_edges(m, a, b, x, m.where(mirror, value, 1.0 - value), 1.0, 0.0)


NEARLY_ZERO = 1e-280  # below which logarithms are taken of the factors


def _log_beta_share(m, a, b, x, precision):
    """Whether x lies beyond the mean; the logarithm of the incomplete beta function, of its complement where x does;
    and that of the other one.
    """
    mirror, value, over_factor = _beta_share(m, a, b, x, precision)
    tiny = (value < NEARLY_ZERO) & (over_factor > 0.0)

    def log_of_factors():
        swap = a > b
        p, q = m.where(swap, b, a), m.where(swap, a, b)
        log_x, log_y = m.log(x), m.log1p(-x)
        logs = m.where(swap, log_y, log_x), m.where(swap, log_x, log_y)
        rest = 1.0 - x
        front = _log_beta_front(m, p, q, *logs, m.where(swap, rest, x), m.where(swap, x, rest))
        return front + m.log(over_factor)

    return mirror, m.where_any(tiny, log_of_factors, m.log(value)), m.log1p(-value)


def log_betainc(m, a, b, x, precision):
    """The logarithm of the incomplete beta function, also where that is zero."""
    mirror, log, other = _log_beta_share(m, a, b, x, precision)
    return _beta_edges(m, a, b, x, m.where(mirror, other, log), -INF, 0.0)


def log_betaincc(m, a, b, x, precision):
    """The logarithm of its complement."""
    mirror, log, other = _log_beta_share(m, a, b, x, precision)
    return _beta_edges(m, a, b, x, m.where(mirror, log, other), 0.0, -INF)


# ------------------------------------------------------------------------------------------------------------
# Hurwitz zeta function

# B(2j) / (2j)! for j = 1 ... 12
BERNOULLI = tuple(
    numerator / denominator / math.factorial(2 * j)
    for j, (numerator, denominator) in enumerate(
        ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798),
         (-174611, 330), (854513, 138), (-236364091, 2730)), 1,
    )
)  # fmt: skip


def _far_enough(m, s, precision):
    """From where on twelve terms of the asymptotic series suffice."""
    return m.maximum(1.5 * s + 4.0, 12.0) if precision < 1e-12 else m.maximum(0.75 * s + 2.0, 6.0)


def _power(m, q, s, precision):
    """q^-s for positive q."""
    return m.plain_power(q, -s) if precision < 1e-12 else m.exp(-(s * m.log(q)))


def _asymptotic(m, s, a, precision):
    """The sum of (a + n)^-s for large a: a^(1 - s) (1 / (s - 1) + 1 / 2a + ...), the second factor in two parts."""
    slope, inverse = s - 1.0, 1.0 / a
    rest, factor, term, square = m.like(a, 0.5), s, inverse, inverse * inverse
    for j, ratio in enumerate(BERNOULLI):
        rest = rest + ratio * factor * term
        factor = factor * (s + (2.0 * j + 1.0)) * (s + (2.0 * j + 2.0))
        term = term * square
    first = 1.0 / slope
    high = first + rest * inverse
    low = (first - high) + rest * inverse - m.product_error(first, slope, 1.0) * first
    power = _power(m, a, slope, precision)
    product = power * high
    return product + (m.product_error(power, high, product) + power * low)


def zeta(m, s, q, precision):
    """The sum of (q + n)^-s: terms one by one, then Euler-Maclaurin summation of the rest."""
    far = _far_enough(m, s, precision)
    whole_q, whole_s = m.equal(m.floor(q), q), m.equal(m.floor(s), s)
    half = s * 0.5
    odd = ~m.equal(m.floor(half), half)

    def step(on, at, total, lost, n):
        """One more term (by Kahan's sum); done when the rest is an asymptotic series, or nothing beside the sum."""
        size = _power(m, m.abs(at), s, precision)
        term = m.where((at < 0.0) & odd, -size, size) - lost
        new, n = total + term, n + 1.0
        total, lost = m.where(on, new, total), m.where(on, (new - total) - term, lost)
        going = ~((at > 0.0) & (term <= precision * 0.25 * total))
        at = m.where(on & going, at + 1.0, at)
        return on & going & (at < far) & (n < LIMIT), at, total, lost, n

    zero = m.like(q, 0.0)
    on = (s > 1.0) & (s < INF) & (q < far) & (q > -INF) & ~((q <= 0.0) & whole_q)
    _, a, total, lost, _ = m.iterate(step, (on, q, zero, zero, zero))
    tail = _asymptotic(m, s, m.maximum(a, 1.0), precision)
    out = m.where(total < INF, total + (m.where(m.equal(tail, tail) & (a >= far), tail, 0.0) - lost), total)
    out = m.where((q < 0.0) & ~whole_s, NAN, out)
    out = m.where(m.equal(q, INF), 0.0, out)
    out = m.where((q <= 0.0) & whole_q, INF, out)
    out = m.where(m.equal(s, 1.0), INF, out)
    return m.where((s >= 1.0) & m.equal(q, q) & (s < INF), out, NAN)


FAR = 24  # terms, after which the asymptotic series serves for exponents from 0 to 1, too


def riemann_zeta(m, s, precision):
    """The Riemann zeta function: of negative numbers by the functional equation (DLMF 25.4.1)."""
    negative, beyond = s < 0.0, s > 60.0
    t = m.where(negative, 1.0 - s, m.where(beyond | m.equal(s, 1.0), 60.0, s))
    total = m.like(s, 0.0)
    for k in range(FAR - 1, 0, -1):
        total = total + m.power(m.like(s, float(k)), -t)
    total = total + _asymptotic(m, t, m.like(s, float(FAR)), precision)
    quarter = m.where(negative, s, 0.0) * 0.5
    turn = quarter - 2.0 * m.floor(quarter * 0.5)  # of pi, in [0, 2)
    back = turn > 1.0
    turn = m.where(back, turn - 1.0, turn)
    sine = m.sin(math.pi * m.where(turn > 0.5, 1.0 - turn, turn))
    sine = m.where(back, -sine, sine)
    growth = m.exp(m.lgamma(m.where(negative, t, 1.0)) - m.where(negative, t, 0.0) * 1.8378770664093453)
    value = m.where(negative, 2.0 * growth * sine * total, total)
    value = m.where(m.equal(s, 1.0), INF, m.where(beyond, 1.0, value))
    return m.where(m.equal(s, s) & (s > -INF), value, NAN)


def polygamma(m, n, x, precision):
    """(-1)^(n+1) n! zeta(n + 1, x), where n is neither 0 nor 1."""

    def by_zeta():
        half = n * 0.5
        value = m.exp(m.lgamma(n + 1.0)) * zeta(m, n + 1.0, x, precision)
        return m.where(m.equal(m.floor(half), half), -value, value)

    value = m.where_any(m.equal(n, 0.0), lambda: m.digamma(x), m.like(x, NAN))
    value = m.where_any(m.equal(n, 1.0), lambda: m.trigamma(x), value)
    return m.where_any((n >= 2.0) & m.equal(m.floor(n), n), by_zeta, value)


ALGORITHMS = {
    fun.__name__: fun for fun in (igamma, igammac, igamma_grad_a, random_gamma_grad, betainc, betaincc, zeta, polygamma)
}
