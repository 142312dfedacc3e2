"""The Hurwitz and Riemann zeta functions and polygamma, as algorithms.

Source: NIST DLMF 25.11(iii) (Euler-Maclaurin summation), 25.4.1 (the functional equation).
"""

import math

from .series import LIMIT

NAN, INF = math.nan, math.inf

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
