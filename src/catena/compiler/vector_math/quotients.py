"""The logarithm of a quotient, to all digits also next to 1, and where the quotient is no number of the format."""

INF = float("inf")
LARGE = 2.0**900  # beyond whose inverse what is rounded off a quotient is no normal number


def log_quotient(m, p, q, precision):
    """log(p / q) of numbers that are not negative. Doubles hold the quotient of floats to more digits than are asked
    for; of doubles, what is rounded off the quotient counts next to 1.
    """
    quotient = p / q
    if precision > 1e-12:
        usual = (quotient > 0.0) & (quotient < INF)
        return m.where_any(~usual, lambda: m.log(quotient), m.short_log(quotient))
    usual = (quotient > 1 / LARGE) & (quotient < LARGE) & (p > 1 / LARGE) & (q > 1 / LARGE)
    lost = m.where(usual, m.product_error(quotient, q, p) / q, 0.0)
    high, low = m.log_pair(m.where(usual, quotient, 1.0), -lost)
    return m.where_any(~usual, lambda: _unusual(m, p, q, quotient), high + low)


def _unusual(m, p, q, quotient):
    near, normal = m.abs(p - q) < 0.5 * q, (quotient >= 2.0**-1022) & (quotient < INF)
    plain = m.log(m.where(normal, quotient, p)) - m.log(m.where(normal, 1.0, q))
    return m.where(near, m.log1p(m.where(near, p - q, 0.0) / q), plain)
