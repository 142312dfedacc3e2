"""How the special functions are computed that neither NumPy nor the compiler has as an operation.

Sources: Numerical Recipes, 3rd ed., 5.2 (Lentz's evaluation of continued fractions), 6.2 (incomplete gamma),
6.4 (incomplete beta); NIST DLMF 25.11(iii) (Euler-Maclaurin summation of the Hurwitz zeta function);
Figurnov, Mohamed and Mnih, Implicit reparameterization gradients (2018), for the derivative of gamma samples.

Known imperfections: near x = a, the incomplete gamma functions take about 5 sqrt(a) steps (up to a = 1e6, an
asymptotic expansion serves beyond), and their relative error grows like a times the rounding error, because
of the factor x^a e^-x / gamma(a).
"""

import functools
import math

from catena.core.lazy import load
from catena.lax.iteration import Loop

EPS = 2.0**-53
TINY = 1e-290
HUGE_SHAPE = 1e6
LIMIT = 20000

NAN, INF = math.nan, math.inf


def _nonzero(m, x):
    """``x``, or a tiny number where it is so near zero that a division would overflow."""
    return m.where(m.abs(x) < TINY, TINY, x)


# ------------------------------------------------------------------------------------------------------------
# Incomplete gamma functions and their derivatives by the shape parameter


def _by_series(m, a, x):
    """Where the power series converges faster than the continued fraction."""
    return (x <= 1.0) | (x <= a)


def _proper(m, a, x):
    return (a > 0.0) & (x > 0.0) & (a < INF) & (x < INF)


def _series_start(m, a, x):
    one, zero = x * 0.0 + 1.0, x * 0.0
    on = _proper(m, a, x) & _by_series(m, a, x)
    return on, a, m.where(on, x, 1.0), one, one, zero, zero, zero


def _series_step(m, on, r, x, term, total, d_term, d_total, n):
    """The sum of x^n / ((a + 1) ... (a + n)) and its derivative by a."""
    r, n = r + 1.0, n + 1.0
    d_term = m.where(on, (d_term * x - term * x / r) / r, d_term)
    term = m.where(on, term * x / r, term)
    total, d_total = total + m.where(on, term, 0.0), d_total + m.where(on, d_term, 0.0)
    on = on & ((term > EPS * total) | (m.abs(d_term) > EPS * m.abs(d_total))) & (n < LIMIT)
    return on, r, x, term, total, d_term, d_total, n


def _fraction_start(m, a, x):
    one, zero = x * 0.0 + 1.0, x * 0.0
    on = _proper(m, a, x) & ~_by_series(m, a, x)
    a, x = m.where(on, a, 1.0), m.where(on, x, 2.0)
    b = x + 1.0 - a
    d = 1.0 / _nonzero(m, b)
    return on, a, b, one * 1e290, zero, d, d * d, d, d * d, zero


def _fraction_step(m, on, a, b, c, dc, d, dd, h, dh, n):
    """Lentz's step for 1/(x+1-a- 1(1-a)/(x+3-a- 2(2-a)/(...))), with derivatives by a alongside."""
    n, b = n + 1.0, b + 2.0
    factor = n * (a - n)
    new_d = _nonzero(m, factor * d + b)
    new_dd = n * d + factor * dd - 1.0
    new_dc = n / c - factor * (dc / c) / c - 1.0
    new_c = _nonzero(m, b + factor / c)
    inverse = 1.0 / new_d
    d, dd = m.where(on, inverse, d), m.where(on, -new_dd * inverse * inverse, dd)
    c, dc = m.where(on, new_c, c), m.where(on, new_dc, dc)
    ratio, d_ratio = d * c, dd * c + d * dc
    dh = m.where(on, dh * ratio + h * d_ratio, dh)
    h = m.where(on, h * ratio, h)
    going = (m.abs(ratio - 1.0) > EPS * 2.0) | (m.abs(h * d_ratio) > EPS * 2.0 * m.abs(dh))
    return on & going & (n < LIMIT), a, b, c, dc, d, dd, h, dh, n


SERIES = 8  # the length of the series' state


def _gamma_start(m, a, x):
    series, fraction = _series_start(m, a, x), _fraction_start(m, a, x)
    return (series[0] | fraction[0], *series, *fraction)


def _gamma_step(m, on, *state):
    series, fraction = _series_step(m, *state[:SERIES]), _fraction_step(m, *state[SERIES:])
    return (series[0] | fraction[0], *series, *fraction)


def _sums(state):
    """The sum of the series and of the fraction, each with its derivative."""
    return state[1 + 4], state[1 + 6], state[1 + SERIES + 7], state[1 + SERIES + 8]


def _edges(m, a, x, inside, at_zero, at_infinity):
    """``inside`` within the domain; the limits at the ends of it; NaN outside."""
    valid = (a >= 0.0) & (x >= 0.0)
    out = m.where(x == 0.0, at_zero, m.where(x == INF, at_infinity, inside))
    return m.where(valid, out, NAN)


def _lower_gamma(m, state, a, x):
    """P(a, x) where the series is used, else Q(a, x)."""
    series, _, fraction, _ = _sums(state)
    by_series = _by_series(m, a, x)
    scale = m.exp(a * m.log(x) - x - m.lgamma(m.where(by_series, a + 1.0, a)))
    value = scale * m.where(by_series, series, fraction)
    return by_series, m.where(a < HUGE_SHAPE, value, _uniform(m, by_series, a, x))


def _uniform(m, lower, a, x):
    """P (where ``lower``) or Q for a huge shape: one term of Temme's uniform expansion, DLMF 8.12.3-7."""
    delta = (x - a) / a
    half_square = m.maximum(delta - m.log1p(delta), 0.0)
    eta = m.sqrt(2.0 * half_square)
    eta = m.where(delta < 0.0, -eta, eta)
    near = m.abs(delta) < 1e-3
    first = 1.0 / m.where(near, 1.0, delta) - 1.0 / m.where(near, 1.0, eta)
    first = m.where(near, -1.0 / 3.0 + eta / 12.0, first)
    rest = m.exp(-a * half_square) / m.sqrt(2.0 * math.pi * a) * first
    outward = m.where(lower, -eta, eta)
    return 0.5 * m.erfc(outward * m.sqrt(a * 0.5)) + m.where(lower, -rest, rest)


def _zero_or_infinite_shape(m, a, x, out, at_zero, at_infinity):
    """The limits where the shape parameter is zero or infinite; NaN where both limits meet."""
    out = m.where((a == 0.0) & (x > 0.0), at_zero, out)
    out = m.where((a == INF) & (x < INF) & (x >= 0.0), at_infinity, out)
    return m.where(((a == 0.0) & (x == 0.0)) | ((a == INF) & (x == INF)), NAN, out)


def _igamma(m, state, a, x):
    by_series, value = _lower_gamma(m, state, a, x)
    out = _edges(m, a, x, m.where(by_series, value, m.maximum(1.0 - value, 0.0)), 0.0, 1.0)
    return _zero_or_infinite_shape(m, a, x, out, 1.0, 0.0)


def _igammac(m, state, a, x):
    by_series, value = _lower_gamma(m, state, a, x)
    out = _edges(m, a, x, m.where(by_series, m.maximum(1.0 - value, 0.0), value), 1.0, 0.0)
    return _zero_or_infinite_shape(m, a, x, out, 0.0, 1.0)


def _log_derivatives(m, state, a, x):
    """The derivative by a of P relative to its scale: where the series is used, and elsewhere."""
    series, d_series, fraction, d_fraction = _sums(state)
    log_x = m.log(x)
    low = d_series + series * (log_x - m.digamma(a + 1.0))
    high = -(d_fraction + fraction * (log_x - m.digamma(a)))
    return low, high


def _igamma_grad_a(m, state, a, x):
    by_series = _by_series(m, a, x)
    low, high = _log_derivatives(m, state, a, x)
    scale = m.exp(a * m.log(x) - x - m.lgamma(m.where(by_series, a + 1.0, a)))
    out = _edges(m, a, x, scale * m.where(by_series, low, high), 0.0, 0.0)
    return m.where((a > 0.0) & (a < INF), out, NAN)


def _random_gamma_grad(m, state, a, x):
    """dx/da = -(dP/da) / (dP/dx), where the exponentials cancel."""
    low, high = _log_derivatives(m, state, a, x)
    out = _edges(m, a, x, -x * m.where(_by_series(m, a, x), low / a, high), 0.0, NAN)
    return m.where((a > 0.0) & (a < INF), out, NAN)


def _moderate_start(m, a, x):
    """As ``_gamma_start``, without the lanes of huge shapes, for which there is an asymptotic expansion."""
    return _gamma_start(m, m.where(a < HUGE_SHAPE, a, NAN), x)


igamma = Loop(_moderate_start, _gamma_step, _igamma)
igammac = Loop(_moderate_start, _gamma_step, _igammac)
igamma_grad_a = Loop(_gamma_start, _gamma_step, _igamma_grad_a)
random_gamma_grad = Loop(_gamma_start, _gamma_step, _random_gamma_grad)


# ------------------------------------------------------------------------------------------------------------
# Incomplete beta function


def _mirrored(m, a, b, x):
    """The parameters, reflected at x = 1/2 where the continued fraction converges faster there."""
    mirror = x > (a + 1.0) / (a + b + 2.0)
    return mirror, m.where(mirror, b, a), m.where(mirror, a, b), m.where(mirror, 1.0 - x, x)


def _beta_start(m, a, b, x):
    on = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a < INF) & (b < INF)
    a, b, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, x, 0.5)
    _, a, b, x = _mirrored(m, a, b, x)
    d = 1.0 / _nonzero(m, 1.0 - (a + b) * x / (a + 1.0))
    return on, a, b, x, x * 0.0 + 1.0, d, d, x * 0.0


def _beta_step(m, on, a, b, x, c, d, h, n):
    """Two steps of Lentz's evaluation, an even and an odd one."""
    n = n + 1.0
    two = 2.0 * n
    even = n * (b - n) * x / ((a - 1.0 + two) * (a + two))
    new_d, new_c = 1.0 / _nonzero(m, 1.0 + even * d), _nonzero(m, 1.0 + even / c)
    new_h = h * new_d * new_c
    odd = -(a + n) * (a + b + n) * x / ((a + two) * (a + 1.0 + two))
    new_d, new_c = 1.0 / _nonzero(m, 1.0 + odd * new_d), _nonzero(m, 1.0 + odd / new_c)
    ratio = new_d * new_c
    c, d, h = m.where(on, new_c, c), m.where(on, new_d, d), m.where(on, new_h * ratio, h)
    return on & (m.abs(ratio - 1.0) > EPS * 2.0) & (n < LIMIT), a, b, x, c, d, h, n


def _betainc(m, state, a, b, x):
    mirror, a1, b1, x1 = _mirrored(m, a, b, x)
    front = a1 * m.log(x1) + b1 * m.log1p(-x1) - m.lgamma(a1) - m.lgamma(b1) + m.lgamma(a1 + b1)
    value = m.exp(front) * state[6] / a1
    out = m.where(mirror, 1.0 - value, value)
    out = m.where(x == 0.0, 0.0, m.where(x == 1.0, 1.0, out))
    out = m.where((a == 0.0) | (b == INF), 1.0, m.where((b == 0.0) | (a == INF), 0.0, out))
    undefined = ((a == 0.0) & (b == 0.0)) | ((a == INF) & (b == INF))
    valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    return m.where(valid & ~undefined, out, NAN)


betainc = Loop(_beta_start, _beta_step, _betainc)


# ------------------------------------------------------------------------------------------------------------
# Hurwitz zeta function


def _far_enough(m, s):
    """From where on twelve terms of the asymptotic series suffice."""
    return m.maximum(1.5 * s + 4.0, 12.0)


@functools.cache
def _bernoulli_ratios() -> tuple:
    """B(2j) / (2j)! for j = 1 ... 12."""
    numbers = load("scipy.special").bernoulli(24)
    return tuple(float(numbers[2 * j]) / math.factorial(2 * j) for j in range(1, 13))


def _zeta_start(m, s, q):
    on = (s > 1.0) & (s < INF) & (q < _far_enough(m, s)) & (q > -INF)
    on = on & ~((q <= 0.0) & (m.floor(q) == q))
    return on, s, q, s * 0.0, s * 0.0


def _signed_power(m, q, s):
    """q^-s; of negative q only for integer s."""
    size = m.power(m.abs(q), -s)
    odd = m.floor(s * 0.5) * 2.0 != s
    return m.where((q < 0.0) & odd, -size, size)


def _zeta_step(m, on, s, q, total, n):
    """One more term; done when the rest is an asymptotic series, or nothing beside the sum."""
    term = _signed_power(m, q, s)
    total = m.where(on, total + term, total)
    negligible = (q > 0.0) & (term <= EPS * 0.25 * total)
    q = m.where(on & ~negligible, q + 1.0, q)
    return on & ~negligible & (q < _far_enough(m, s)) & (n < LIMIT), s, q, total, n + 1.0


def _zeta(m, state, s, q):
    """The terms below the shift, then Euler-Maclaurin summation of the rest."""
    _, _, a, total, _ = state
    a = m.maximum(a, 1.0)
    power = m.power(a, -s)
    tail = power * a / (s - 1.0) + power * 0.5
    factor, term = s, power / a
    for j, ratio in enumerate(_bernoulli_ratios()):
        tail = tail + ratio * factor * term
        factor = factor * (s + (2.0 * j + 1.0)) * (s + (2.0 * j + 2.0))
        term = term / (a * a)
    out = total + m.where((tail == tail) & (a >= _far_enough(m, s)), tail, 0.0)
    whole_q, whole_s = m.floor(q) == q, m.floor(s) == s
    out = m.where((q < 0.0) & ~whole_s, NAN, out)
    out = m.where(q == INF, 0.0, out)
    out = m.where((q <= 0.0) & whole_q, INF, out)
    out = m.where(s == 1.0, INF, out)
    return m.where((s >= 1.0) & (q == q) & (s < INF), out, NAN)


zeta = Loop(_zeta_start, _zeta_step, _zeta)


def _polygamma_start(m, n, x):
    return _zeta_start(m, n + 1.0, x)


def _polygamma(m, state, n, x):
    """(-1)^(n+1) n! zeta(n + 1, x), and digamma where n is 0."""
    sign = m.where(m.floor(n * 0.5) * 2.0 == n, -1.0, 1.0)
    value = sign * m.exp(m.lgamma(n + 1.0)) * _zeta(m, state, n + 1.0, x)
    value = m.where(n == 0.0, m.digamma(x), value)
    return m.where((n >= 0.0) & (m.floor(n) == n), value, NAN)


polygamma = Loop(_polygamma_start, _zeta_step, _polygamma)
