"""Incomplete gamma functions, their logarithms and derivatives, as algorithms.

Sources: Numerical Recipes, 3rd ed., 6.2; NIST DLMF 8.12 (Temme's uniform expansion); Loader, Fast and accurate
computation of binomial probabilities (2000), for the factor before the series; Figurnov, Mohamed and Mnih, Implicit
reparameterization gradients (2018), for the derivative of gamma samples.

Known imperfections: near x = a, they take about 5 sqrt(a) steps (up to a = 1e6, where an asymptotic expansion takes
over), and for small a and large x, or far from x = a, their relative error grows with the logarithm of the result.
"""

import math

import numpy as np

from . import fitted
from .polynomials import fitted_to
from .series import LARGE_SHAPE, LIMIT, log_excess, log_gamma, nonzero, stirling_rest

HUGE_SHAPE = 1e6

NAN, INF = math.nan, math.inf
GREATEST_FLOAT, GREATEST = (float(np.finfo(d).max) for d in (np.float32, np.float64))


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
        new_d = 1.0 / nonzero(m, factor * d + b)
        new_c = nonzero(m, b + factor / c)
        ratio = new_d * new_c
        c, d, h = m.where(on, new_c, c), m.where(on, new_d, d), m.where(on, h * ratio, h)
        return on & (m.abs(ratio - 1.0) > precision * 2.0) & (n < LIMIT), b, c, d, h, n

    a, x = m.where(on, a, 1.0), m.where(on, x, 2.0)
    b = x + 1.0 - a
    d = 1.0 / nonzero(m, b)
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
        new_d, new_dd = nonzero(m, factor * d + b), n * d + factor * dd - 1.0
        new_c, new_dc = nonzero(m, b + factor / c), n / c - factor * (dc / c) / c - 1.0
        inverse = 1.0 / new_d
        d, dd = m.where(on, inverse, d), m.where(on, -(new_dd * inverse * inverse), dd)
        c, dc = m.where(on, new_c, c), m.where(on, new_dc, dc)
        ratio, d_ratio = d * c, dd * c + d * dc
        dh, h = m.where(on, dh * ratio + h * d_ratio, dh), m.where(on, h * ratio, h)
        going = (m.abs(ratio - 1.0) > precision * 2.0) | (m.abs(h * d_ratio) > precision * 2.0 * m.abs(dh))
        return on & going & (n < LIMIT), b, c, dc, d, dd, h, dh, n

    a, x = m.where(on, a, 1.0), m.where(on, x, 2.0)
    zero, b = m.like(x, 0.0), x + 1.0 - a
    d = 1.0 / nonzero(m, b)
    state = m.iterate(step, (on, b, m.like(x, 1e290), zero, d, d * d, d, d * d, zero))
    return state[6], state[7]


def _density(m, a, x):
    """x^a e^-x / gamma(a + 1): from a = 10 on by Stirling's series, in which the large logarithms cancel."""
    return m.exp(_log_density(m, a, x))


def _log_density(m, a, x):
    large = a >= LARGE_SHAPE
    b = m.where(large, a, LARGE_SHAPE)
    excess = b * log_excess(m, (x - b) / b, x / b, m.log)
    by_stirling = -excess - 0.5 * m.log(6.283185307179586 * b) - stirling_rest(m, b)
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
    b = m.where(large, shape, LARGE_SHAPE)
    y = m.where_any(b > 1e20, lambda: x / b, x * m.where(large, 1.0 / b, 1.0))  # where x is a, 1 without an error
    significand = m.significand(y)
    f = significand - 1.0
    excess = f * fitted_to(m, fitted.LOG_EXCESS_SINGLE, f)
    factor = m.fma(-shape, excess, m.where(large, 0.0, shape - 1.0))
    constant = m.short_factorial(shape, large)
    constant = m.where_any(shape <= -1.0, lambda: m.apart(log_gamma, shape + 1.0) + 1.0, constant)
    constant = m.where(finite, constant, a)
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
    half_square = m.maximum(log_excess(m, delta, x / a, m.log), 0.0)
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
