"""Incomplete beta functions and their logarithms, as algorithms.

Sources: Numerical Recipes, 3rd ed., 6.4; Didonato and Morris, Algorithm 708: Significant digit computation of the
incomplete beta function ratios (1992), for the factor before the fraction; NIST DLMF 8.17.22 (the continued fraction),
8.18.9 (the uniform expansion).
"""

import math

from .series import LARGE_SHAPE, LIMIT, log_excess, log_gamma, nonzero, stirling_rest

NAN, INF = math.nan, math.inf


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
    return state[1] / nonzero(m, state[2])


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
        rests = stirling_rest(m, s + q) - stirling_rest(m, q) - m.apart(log_gamma, 1.0 + s)
        return m.power(scaled, s) * s * m.exp(q * log_y + (q - 0.5) * m.log1p(s / q) - s + rests)

    def large():
        _, excess = _beta_distance(m, p, q, x, y)
        rests = stirling_rest(m, total) - stirling_rest(m, p) - stirling_rest(m, q)
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
    rests = stirling_rest(m, s + q) - stirling_rest(m, q) - m.apart(log_gamma, 1.0 + s)
    mixed = s * (log_x + m.log(total)) + m.log(s) + q * log_y + (q - 0.5) * m.log1p(s / q) - s + rests
    _, excess = _beta_distance(m, p, q, x, y)
    rests = stirling_rest(m, total) - stirling_rest(m, p) - stirling_rest(m, q)
    large = 0.5 * m.log(p * (q / total) / 6.283185307179586) + rests - excess
    return m.where(both, large, m.where(some, mixed, small))


def _beta_distance(m, p, q, x, y):
    """For two large parameters, p + q times how far x is from its mean p / (p + q), with what was rounded off the sum
    and the product; and the logarithm of x^p y^q less its value there.
    """
    total = p + q
    product, rounded = total * x, p - (total - q)
    away = (product - p) + (m.product_error(total, x, product) + rounded * x)
    return away, p * log_excess(m, away / p, product / p, m.log) + q * log_excess(m, -(away / q), total * y / q, m.log)


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
