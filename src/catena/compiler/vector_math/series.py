"""What series and continued fractions share, and the factors before them: Stirling's series, the logarithm around one.

Sources: Numerical Recipes, 3rd ed., 5.2 (Lentz's evaluation of continued fractions); Loader, Fast and accurate
computation of binomial probabilities (2000), for factors in which no large logarithms cancel.
"""

TINY = 1e-290
LIMIT = 20000.0  # steps


def nonzero(m, x):
    """``x``, or a tiny number where it is so near zero that a division would overflow."""
    return m.where(m.abs(x) < TINY, TINY, x)


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
LARGE_SHAPE = 10.0  # from which on seven terms of Stirling's series suffice


def log_gamma(m, x):
    """log |gamma(x)|, for `m.apart`."""
    return m.lgamma(x)


def stirling_rest(m, a, terms: int = len(STIRLING)):
    """log(gamma(a)) less (a - 1/2) log(a) - a + log(2 pi) / 2; four terms do for single precision."""
    t = 1.0 / a
    square, rest = t * t, m.like(t, STIRLING[terms - 1])
    for c in reversed(STIRLING[: terms - 1]):
        rest = rest * square + c
    return t * rest


def log_excess(m, x, ratio, log):
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
