"""The normal distribution: its function, the logarithm and the inverse of it, and Owen's T function.

Sources: NIST DLMF 7.12 (erfc); Owen, Tables for computing bivariate normal probabilities (1956), for the reflection of
T; Patefield and Tandy, Fast and accurate calculation of Owen's T function (2000), who compare quadratures of its
integral. Polynomials are those of ``fits.py``.
"""

import math

from numpy.polynomial.legendre import leggauss  # NumPy's attribute is missing where its import was interrupted once

from . import fitted
from .integrals import erfcx, erfcx_of_tail, exp_of_square
from .polynomials import fitted_to

INF, NAN = math.inf, math.nan
ROOT_HALF = math.sqrt(0.5)


def _tail_in_single(m, a):
    """For a >= 0, to single precision: the distribution function at -a over exp(-a^2 / 2), and at -a."""
    inverse = 1.0 / (a * ROOT_HALF + 3.0)
    scaled = 0.5 * inverse * fitted_to(m, fitted.ERFCX_SINGLE, 1.0 - 6.0 * inverse)
    near = m.where(a < 36.0, a, 36.0)  # where it is zero
    return scaled, scaled * m.short_exp(-0.5 * (near * near))


def ndtr(m, x, precision):
    """The distribution function."""
    if precision > 1e-12:
        _, tail = _tail_in_single(m, m.abs(x))
        return m.where(x < 0.0, tail, 1.0 - tail)
    low = x < -1.0
    tail = m.where(low, x, -1.0)
    scaled = erfcx(m, tail * -ROOT_HALF, precision)
    far = 0.5 * exp_of_square(m, tail, -0.5) * m.where(m.equal(tail, -INF), 0.0, scaled)
    return m.where(low, far, 0.5 * m.erfc(m.where(low, 0.0, x) * -ROOT_HALF))


def log_ndtr(m, x, precision):
    """Its logarithm, also where it is zero."""
    a = m.abs(x)
    if precision > 1e-12:
        return _log_ndtr_in_single(m, x, a)
    tail = m.maximum(a, 0.75)
    scaled = 0.5 * erfcx_of_tail(m, tail * ROOT_HALF, precision)
    square = 0.5 * tail * tail
    below = m.log(scaled) - square
    front = exp_of_square(m, tail, -0.5)
    upper = m.where(a < 0.75, 0.5 - 0.5 * m.small_erf(m.where(a < 0.75, x, 0.0) * ROOT_HALF), scaled * front)
    value = m.where(x <= -0.75, m.where(m.equal(a, INF), -INF, below), m.log1p(-upper))
    return m.where(m.equal(x, x), value, NAN)


def _log_ndtr_in_single(m, x, a):
    """By one logarithm: of what is left over exp(-x^2 / 2) below 0, of the function above."""
    low = x < 0.0
    scaled, upper = _tail_in_single(m, a)
    log = m.short_log(m.where(low, scaled, 1.0 - upper))
    above = m.where(upper < 2.0**-17, -(upper + 0.5 * (upper * upper)), log)
    return m.where(m.equal(x, x), m.where(low, log - 0.5 * (a * a), above), NAN)


CENTRE = 0.425  # of p - 1/2, up to which the inverse error function serves


def ndtri(m, p, precision):
    """The quantile of probability ``p``."""
    q = p - 0.5
    if precision > 1e-12:
        value = _quantile_in_single(m, p, q)
    else:
        centre = m.abs(q) <= CENTRE
        middle = math.sqrt(2.0) * m.erf_inv(2.0 * m.where(centre, q, 0.0))
        value = m.where_any(~centre, lambda: _far_quantile(m, p, q, centre), middle)
    value = m.where(m.equal(p, 0.0), -INF, m.where(m.equal(p, 1.0), INF, value))
    return m.where((p >= 0.0) & (p <= 1.0), value, NAN)


def _far_quantile(m, p, q, centre):
    """Beyond the centre, of which one number in seventy lies in another piece than the first."""
    tail = m.where(q > 0.0, 1.0 - p, p)
    r = m.sqrt(-2.0 * m.log(m.where((tail > 0.0) & ~centre, tail, 0.05)))
    first, *others = fitted.QUANTILE
    near = fitted_to(m, (first,), r)
    far = m.where_any(r > others[0][0], lambda: fitted_to(m, others, r), near) - r
    return m.where(q > 0.0, -far, far)


SELDOM = 5.5  # of -log(4 p (1 - p)), beyond which about one probability in a thousand lies


def _quantile_in_single(m, p, q):
    """q times a smooth function of w = -log(4 p (1 - p)), far out of its root (Giles 2011, as for ``erf_inv``)."""
    w = -m.short_log(m.where((p > 0.0) & (p < 1.0), 4.0 * p * (1.0 - p), 1.0))
    centre = fitted_to(m, fitted.QUANTILE_CENTRE_SINGLE, w)
    far = w > SELDOM
    return q * m.where_any(far, lambda: fitted_to(m, fitted.QUANTILE_SINGLE, m.sqrt(m.where(far, w, SELDOM))), centre)


NODES, WEIGHTS = (v.tolist() for v in leggauss(32))
FINE = 2.0**-53  # what the terms of a difference are computed to
WIDTH = 8.6  # beyond which exp(-t^2 / 2) is nothing beside its integral


def _owens_integral(m, h, a):
    """T(h, a) for 0 <= a <= 1: the integral of exp(-h^2 (1 + x^2) / 2) / (1 + x^2) over [0, a], where it counts."""
    end = m.where(h * a > WIDTH, WIDTH / m.where(h > 1.0, h, 1.0), a)
    total, half = m.like(h, 0.0), 0.5 * end
    for node, weight in zip(NODES, WEIGHTS):
        x = half * (1.0 + node)
        u = h * x
        total = total + weight * m.exp(-0.5 * (u * u)) / (1.0 + x * x)
    return exp_of_square(m, h, -0.5) * total * half / (2.0 * math.pi)


def owens_t(m, h, a, precision):
    """T(h, a), even in h and odd in a; beyond a = 1 by reflection, whose terms are no greater than the result."""
    g, b = m.abs(h), m.abs(a)
    g = m.where(g < 100.0, g, 100.0)  # where it is zero
    steep = b > 1.0
    product = m.where(steep, g * m.where(steep & (b < INF), b, 1.0), g)
    product = m.where(m.equal(b, INF) & (g > 0.0), INF, product)
    inner = _owens_integral(
        m, m.where(product < 100.0, product, 100.0), m.where(steep, 1.0 / m.where(steep, b, 1.0), b)
    )
    one = ndtr(m, -g, FINE)
    other = ndtr(m, -product, FINE)
    outer = 0.5 * one + other * (0.5 - one) - inner
    value = m.where(steep, outer, inner)
    value = m.where(a < 0.0, -value, value)
    return m.where(m.equal(h, h) & m.equal(a, a), value, NAN)
