"""Hypergeometric functions of real arguments: Kummer's M(a, b, x) and Gauss's F(a, b; c; x).

Sources: NIST DLMF 13.2.39 (Kummer's transformation), 13.7.1-2 (large arguments), 15.8.1 (Pfaff's transformation),
15.8.4 and 15.8.10 (around 1); Pearson, Olver and Porter, Numerical methods for the computation of the confluent and
Gauss hypergeometric functions (2017), for the choice among them.

Known imperfections: of F, parameters above some hundreds, and negative ones of large size, lose digits where terms of
a series cancel, but for x < 0 < c; for c < 0 so do differences c - a - b next to an integer, for x next to 1.
"""

import math

from .factorials import gamma_apart, sign_of_gamma
from .series import log_gamma

INF, NAN = math.inf, math.nan
TERMS = 20000.0
FAR = 64.0  # from which on the asymptotic series of M has all digits, for moderate parameters
LONGEST = 700.0  # argument of the series of M, whose sum is near exp(x)
STEPS = 200000.0  # terms of all Taylor series together


def _is_pole(m, x):
    """Whether x is a pole of the gamma function: a whole number that is not positive."""
    return (x <= 0.0) & (x > -INF) & m.equal(m.floor(x), x)


def _ends(m, a):
    """Whether the parameter ends a series, and does so around its value where a derivative by it is taken."""
    return a < -INF if m.varies(a) else _is_pole(m, a)


def _allowed(precision):
    """Of the greatest term beside the sum of a series."""
    return 2.0**8 if precision < 1e-12 else 2.0**24


def _gamma_ratio(m, above: tuple, below: tuple, precision):
    """The product of gamma functions over that of others, whose poles make it zero: 1 / gamma(x) is (-1)^n n! (x + n)
    at -n, so that it has a derivative.
    """
    small, pole, nothing = above[0] < INF, above[0] > INF, above[0] > INF
    for x in (*above, *below):
        small = small & (m.abs(x) < 30.0)
    for x in above:
        pole = pole | _is_pole(m, x)
    product, log = m.like(above[0], 1.0), m.like(above[0], 0.0)
    for x in below:
        zero, n = _is_pole(m, x), m.held(-m.floor(m.where(_is_pole(m, x), x, 0.0)))
        nothing = nothing | zero
        factorial = m.held(gamma_apart(m, m.where(n < 170.0, n, 170.0) + 1.0, precision))
        odd = ~m.equal(m.floor(n * 0.5) * 2.0, n)
        product = product * m.where(zero, m.where(odd, -factorial, factorial) * (x + n), 1.0)
    for x, top in (*((x, True) for x in above), *((x, False) for x in below)):
        safe = m.where(_is_pole(m, x), 1.0, x)
        value = m.where(small, gamma_apart(m, m.where(small, safe, 1.0), precision), sign_of_gamma(m, safe))
        product = product * value if top else product / value
        log = log + m.apart(log_gamma, safe) if top else log - m.apart(log_gamma, safe)
    value = m.where(small, product, product * m.exp(log))
    value = m.where(nothing & ~(m.abs(value) < INF), 0.0, value)
    return m.where(pole, INF, value)


def _along(m, on, at, x, value, slope, turning, following, precision, inward=False):
    """A solution of an equation of second order and its derivative, from ``at`` to ``x`` on the same side of 0, away
    from 0 or ``inward``, by Taylor series: ``following`` is the next term after three, ``turning`` how much the
    solution turns per length.
    """

    def before(at):
        return m.abs(at) > m.abs(x) if inward else m.abs(at) < m.abs(x)

    def length(at):
        """Of a step, over which the solution turns by no more than some 1.5, and 0 is not near."""
        step = at / m.maximum(m.held(turning(at)) * m.abs(at) * (1.0 / 1.5), 3.0)
        there = at - step if inward else at + step
        return m.where(before(there), there - at, x - at)

    further = on & before(at)
    h = m.where(further, length(at), 1.0)
    zero, new = m.like(x, 0.0), slope * h

    def step(on, at, h, older, old, new, value, slope, k, count):
        """The next term, of (k + 2)-th power; when terms are small, the first two of the next step."""
        term = following(at, h, older, old, new, k)
        value, slope = m.where(on, value + term, value), m.where(on, slope + term * (k + 2.0), slope)
        done = (k + 2.0) * (m.size(term) + m.size(new)) < precision * 0.1 * (m.size(value) + m.size(slope))
        there = m.where(m.abs(h) < m.abs(x - at), at + h, x)
        on = on & ~(done & ~before(there)) & (count < STEPS)
        renew = on & done
        longer = length(m.where(renew, there, at))
        older, old = m.where(renew, 0.0, old), m.where(renew, value, new)
        new = m.where(renew, slope * (longer / h), term)
        value, slope = m.where(renew, value + new, value), m.where(renew, new, slope)
        at, h = m.where(renew, there, at), m.where(renew, longer, h)
        return on, at, h, older, old, new, value, slope, m.where(renew, 0.0, k + 1.0), count + 1.0

    state = (further, at, h, zero, value, new, m.where(further, value + new, value), new, zero, zero)
    _, _, h, _, _, _, value, slope, _, count = m.iterate(step, state)
    return m.where(count < STEPS, value, NAN), slope / h


# ------------------------------------------------------------------------------------------------------------
# Kummer's function


def _kummer_series(m, on, a, b, x, precision):
    """The sum of (a)_k / (b)_k x^k / k!, and the greatest of its terms."""
    a, b, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, x, 0.5)

    def step(on, term, total, lost, peak, k):
        term = m.where(on, term * ((a + k) / (b + k)) * (x / (k + 1.0)), term)
        part = term - lost
        new = total + part
        total, lost = m.where(on, new, total), m.where(on, (new - total) - part, lost)
        peak = m.where(on, m.maximum(peak, m.abs(term)), peak)
        k = k + 1.0
        settling = (k < m.abs(x)) | (b + k < 1.0) | (m.size(term) > precision * 0.1 * m.size(total))
        return on & settling & (m.size(term) > 0.0) & (k < TERMS) & (m.abs(total) < INF), term, total, lost, peak, k

    one, zero = m.like(x, 1.0), m.like(x, 0.0)
    _, _, total, lost, peak, _ = m.iterate(step, (on, one, one, zero, one, zero))
    return total - lost, peak


def _kummer_far(m, on, a, b, x, precision):
    """The asymptotic series for large x, less its factor: the sum of (b - a)_k (1 - a)_k / (k! x^k), whose terms may
    grow until k is as large as the parameters.
    """
    p, q, x = m.where(on, b - a, 1.0), m.where(on, 1.0 - a, 1.0), m.where(on, x, 1e9)
    first = m.maximum(m.abs(p), m.abs(q))

    def step(on, term, total, k):
        new = term * ((p + k) * (q + k) / ((k + 1.0) * x))
        smaller = (m.size(new) < m.size(term)) | (k < first)
        term = m.where(on, new, term)
        total = m.where(on & smaller, total + term, total)
        settling = m.size(term) > precision * 0.1 * m.size(total)
        return on & smaller & settling & (k < TERMS), term, total, k + 1.0

    one = m.like(x, 1.0)
    return m.iterate(step, (on, one, one, m.like(x, 0.0)))[2]


def _kummer_start(m, on, a, b, x, precision):
    """M(a, b, x) and its derivative by x, for b > 0 and x so small, or a so great, that no terms cancel."""

    def step(on, term, value, slope, k):
        term, k = m.where(on, term * ((a + k) / (b + k)) * (x / (k + 1.0)), term), k + 1.0
        value, slope = m.where(on, value + term, value), m.where(on, slope + term * k, slope)
        settling = (k < x) | (m.size(term) * k > precision * 0.1 * m.size(slope))
        return on & settling & (k < TERMS), term, value, slope, k

    one, zero = m.like(x, 1.0), m.like(x, 0.0)
    _, _, value, slope, _ = m.iterate(step, (on, one, one, zero, zero))
    return value, slope / x


def _kummer_along(m, on, a, b, x, precision):
    """For b > 0 and x > 0, V(x) = exp(-x / 2) M(a, b, x) and exp(-x / 2) M'(a, b, x), where terms of the series cancel:
    from a small x on along x V'' + b V' + (b / 2 - a - x / 4) V = 0, of which V is the greatest solution.
    """
    a, b, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, x, 0.5)
    pull = 0.5 * b - a
    small = m.held(0.25 * m.maximum(b, 1.0) / m.maximum(-a, 0.25))
    start = m.where((a < 0.0) & (small < x), small, x)

    def turning(at):
        return m.sqrt(m.abs(pull / at - 0.25)) + 0.75 * b / at

    def following(at, h, older, old, new, k):
        term = (0.25 * (h * h)) * older - h * (pull - 0.25 * at) * old - ((k + 1.0) * (k + b)) * new
        return term * (h / (at * ((k + 1.0) * (k + 2.0))))

    value, slope = _kummer_start(m, on, a, b, start, precision)
    scale = m.exp(-0.5 * start)
    value, slope = scale * value, scale * (slope - 0.5 * value)
    value, slope = _along(m, on, start, x, value, slope, turning, following, precision)
    return value, slope + 0.5 * value


def _kummer_hard(m, on, a, b, x, precision):
    """exp(-x / 2) M(a, b, x) for x > 0: where b is negative, from that of a positive b."""
    more = m.where(on & (b < 0.0), m.held(-m.floor(b)), 0.0)
    value, slope = _kummer_along(m, on, a, b + more, x, precision)

    def step(on, value, slope, more):
        """From b to b - 1 (DLMF 13.3.22 and 13.3.18)."""
        lower = b + (more - 1.0)
        less = value + x * slope / lower
        value, slope = m.where(on, less, value), m.where(on, less - value * ((lower - a) / lower), slope)
        more = m.where(on, more - 1.0, more)
        return on & (more > 0.0), value, slope, more

    return m.iterate(step, (on & (more > 0.0), value, slope, more))[1]


def hyp1f1(m, a, b, x, precision):
    """M(a, b, x)."""
    size, negative, c = m.abs(x), x < 0.0, b - a
    inside = (size < INF) & (m.abs(a) < INF) & (m.abs(b) < INF) & ~_is_pole(m, b)
    polynomial = _ends(m, a) & (a > -200.0)
    # Of M(a, b, x) = exp(x) M(b - a, b, -x), p is the parameter of the one at the positive argument, q of the other.
    p, q = m.where(negative, c, a), m.where(negative, a, c)
    ends = _is_pole(m, p)
    spread = m.maximum(m.abs((b - a) * (1.0 - a)), m.abs(a * (a - b + 1.0)))
    wide = 8.0 * m.maximum(m.abs(q), m.abs(1.0 - p)) + FAR
    settles = (size > FAR) & (size > 2.0 * spread + 10.0) | (size > wide) & (p < 0.0) & (q > 0.0)
    far = inside & ~polynomial & ~ends & (settles | (size > LONGEST) & ~((p < 0.0) & (b > 0.0)))
    # Whichever series has the lesser terms beside its sum.
    near = inside & ~far & ((size <= LONGEST) | ends | polynomial)
    direct, peak = _kummer_series(m, near, a, b, x, precision)
    other, other_peak = _kummer_series(m, near & ~polynomial, c, b, -x, precision)
    better = (peak * m.abs(other) > other_peak * m.abs(direct)) & ~polynomial
    half = m.exp(0.5 * m.where(inside & ~far, x, 0.0))
    value = m.where(better, half * (half * other), direct)
    allowed = _allowed(precision)
    known = better & (other_peak <= allowed * m.abs(other)) | ~better & (peak <= allowed * m.abs(direct))
    hard = inside & ~far & ~(near & known) & (size > 0.0) & ~(ends & (size > -4.0 * p))
    value = m.where(hard, half * _kummer_hard(m, hard, p, b, size, precision), value)
    series = _kummer_far(m, far, p, b, size, precision)
    factor = _gamma_ratio(m, (m.where(far, b, 1.0),), (m.where(far, p, 1.0),), precision)
    power = m.power(m.where(far, size, 1.0), -m.where(far, q, 0.0))
    growth = m.exp(0.5 * m.where(far & ~negative, x, 0.0))
    value = m.where(far, (factor * series * power * growth) * growth, value)
    value = m.where(polynomial & m.equal(a, 0.0) | m.equal(x, 0.0), 1.0, value)
    value = m.where(m.equal(x, INF) & ~m.equal(a, 0.0), INF, value)
    value = m.where(m.equal(x, -INF) & (a > 0.0), 0.0, value)
    grows = (a > 0.0) & (b > 0.0) & (b < INF) & (x > 0.0)
    value = m.where(m.equal(m.abs(a), INF) & ~m.equal(x, 0.0), m.where(grows, m.like(x, INF), NAN), value)
    known = m.equal(a, a) & m.equal(b, b) & m.equal(x, x)
    pole = _is_pole(m, b) & ~(polynomial & (a > b))
    return m.where(known, m.where(pole, INF, m.where(_is_pole(m, b) & ~pole, _short(m, a, b, x), value)), NAN)


def hyp1f1_by_x(m, a, b, x, precision):
    """Its derivative by x; the parameters that are greater by one have the digits of doubles."""
    return a / b * hyp1f1(m, a + 1.0, b + 1.0, x, precision)


def _short(m, a, b, x):
    """The polynomial of a degree -a that ends before the pole of its coefficients."""
    on = _is_pole(m, a) & _is_pole(m, b) & (a > b)
    a, b = m.where(on, a, 0.0), m.where(on, b, -1.0)

    def step(on, term, total, k):
        term = term * ((a + k) / (b + k)) * (x / (k + 1.0))
        total = m.where(on, total + term, total)
        return on & (a + k + 1.0 < 0.0), term, total, k + 1.0

    one = m.like(x, 1.0)
    return m.iterate(step, (on & (a < 0.0), one, one, m.like(x, 0.0)))[2]


# ------------------------------------------------------------------------------------------------------------
# Gauss's function


def _gauss_series(m, on, a, b, c, x, precision):
    """The sum of (a)_k (b)_k / (c)_k x^k / k!, and the greatest of its terms."""
    a, b, c, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, c, 1.0), m.where(on, x, 0.0)

    def step(on, term, total, lost, peak, k):
        term = m.where(on, term * ((a + k) / (c + k)) * ((b + k) / (k + 1.0)) * x, term)
        part = term - lost
        new = total + part
        total, lost = m.where(on, new, total), m.where(on, (new - total) - part, lost)
        peak = m.where(on, m.maximum(peak, m.abs(term)), peak)
        k = k + 1.0
        ratio = (a + k) * (b + k) * x / ((c + k) * (k + 1.0))
        growing = (m.abs(ratio) > 1.0) | (c + k < 1.0)
        settling = growing | (m.size(term) > precision * 0.1 * (1.0 - m.abs(x)) * m.size(total))
        return on & settling & (m.size(term) > 0.0) & (k < TERMS) & (m.abs(total) < INF), term, total, lost, peak, k

    one, zero = m.like(x, 1.0), m.like(x, 0.0)
    _, _, total, lost, peak, _ = m.iterate(step, (on, one, one, zero, one, zero))
    return total - lost, peak


def _gauss_along(m, on, a, b, c, x, precision):
    """F(a, b; c; x) for c > 0 and x < 0, where terms of the series cancel: from a small x on along the equation
    x (1 - x) F'' + (c - (a + b + 1) x) F' = a b F.
    """
    a, b, c, x = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, c, 1.0), m.where(on, x, -0.5)
    small = m.held(-0.25 * m.maximum(c, 1.0) / ((m.abs(a) + c + 1.0) * (m.abs(b) + c + 1.0)))
    start = m.where(small > x, small, x)
    value, _ = _gauss_series(m, on, a, b, c, start, precision)
    slope, _ = _gauss_series(m, on, a + 1.0, b + 1.0, c + 1.0, start, precision)
    return _along(m, on, start, x, value, slope * (a * b / c), *_gauss_equation(m, a, b, c), precision)[0]


def _gauss_to_one(m, on, a, b, c, y, precision):
    """F(a, b; c; 1 - y), and the greatest term of the series that it begins with: along the equation for it in y, in
    which a + b + 1 - c is the third parameter, from 1 / 2 down. Nothing cancels where c - a - b is nearly whole.
    """
    a, b, c, y = m.where(on, a, 1.0), m.where(on, b, 1.0), m.where(on, c, 1.0), m.where(on, y, 0.5)
    half = m.like(y, 0.5)
    value, peak = _gauss_series(m, on, a, b, c, half, precision)
    slope, _ = _gauss_series(m, on, a + 1.0, b + 1.0, c + 1.0, half, precision)
    equation = _gauss_equation(m, a, b, a + b + 1.0 - c)
    return _along(m, on, half, y, value, slope * (-(a * b) / c), *equation, precision, inward=True)[0], peak


def _gauss_equation(m, a, b, c):
    """How much solutions of x (1 - x) F'' + (c - (a + b + 1) x) F' = a b F turn, and their terms (see `_along`)."""
    most = a + b + 1.0

    def turning(at):
        wide = at * (1.0 - at)
        return m.sqrt(m.abs(a * b / wide)) + m.abs((c - most * at) / wide)

    def following(at, h, older, old, new, k):
        term = h * ((k + a) * (k + b)) * old - (k + 1.0) * ((1.0 - 2.0 * at) * k + (c - most * at)) * new
        return term * (h / (at * (1.0 - at) * ((k + 1.0) * (k + 2.0))))

    return turning, following


def _around_one(m, on, a, b, c, y, precision):
    """F(a, b; c; 1 - y) by two series in y, where s = c - a - b is no integer."""
    s = c - a - b
    a, b, c, s = m.where(on, a, 0.25), m.where(on, b, 0.25), m.where(on, c, 1.0), m.where(on, s, 0.5)
    y = m.where(on, y, 0.0)
    first = _gamma_ratio(m, (c, s), (c - a, c - b), precision)
    second = _gamma_ratio(m, (c, -s), (a, b), precision)
    low, high = (_gauss_series(m, on, *abc, y, precision)[0] for abc in ((a, b, 1.0 - s), (c - a, c - b, 1.0 + s)))
    return first * low + m.power(m.where(on, y, 1.0), s) * second * high


def _around_one_whole(m, on, a, b, n, y, precision):
    """F(a, b; a + b + n; 1 - y) for whole n >= 0, by logarithms (DLMF 15.8.10)."""
    a, b, n, y = m.where(on, a, 0.5), m.where(on, b, 0.5), m.where(on, n, 0.0), m.where(on, y, 0.5)
    c = a + b + n

    def finite_step(on, term, total, k):
        total = m.where(on, total + term, total)
        term = term * ((a + k) * (b + k) / ((k + 1.0) * (1.0 - n + k))) * y
        return on & (k + 1.0 < n), term, total, k + 1.0

    one, zero = m.like(y, 1.0), m.like(y, 0.0)
    finite = m.iterate(finite_step, (on & (n > 0.0), one, zero, zero))[2]
    finite = m.where(n > 0.0, finite * _gamma_ratio(m, (m.where(n > 0.0, n, 1.0), c), (a + n, b + n), precision), 0.0)

    def step(on, term, total, bracket, k):
        part = term * bracket
        total = m.where(on, total + part, total)
        p, q = a + n + k, b + n + k
        bracket = bracket + (1.0 / p + 1.0 / q - 1.0 / (k + 1.0) - 1.0 / (n + k + 1.0))
        term = m.where(on, term * (p * q / ((k + 1.0) * (n + k + 1.0))) * y, term)
        return on & (m.size(part) > precision * 0.1 * m.size(total)) & (k < TERMS), term, total, bracket, k + 1.0

    start = m.log(y) - m.digamma(one) - m.digamma(n + 1.0) + m.digamma(a + n) + m.digamma(b + n)
    total = m.iterate(step, (on, one, zero, start, zero))[2]
    odd = ~m.equal(m.floor(n * 0.5) * 2.0, n)
    front = _gamma_ratio(m, (c,), (a, b, n + 1.0), precision) * m.power(y, n)
    return finite - m.where(odd, -front, front) * total


NEAR_ONE = 0.9  # from which on the series in 1 - x is used
APART = 0.05  # how far c - a - b is from an integer where that series is two, which cancel the more the less it is
APART_AT_LEAST = 1e-6  # the same for c < 0, where a continued series may lose more digits than these two


def _gauss(m, on, a, b, c, z, y, precision, by_logarithms: bool):
    """F(a, b; c; z) for 0 <= z < 1 and y = 1 - z, and whether terms of a series cancel in it."""
    s = c - a - b
    nearest = m.floor(s + 0.5)
    distance = m.abs(s - nearest)
    whole = m.equal(distance, 0.0) if by_logarithms else distance > INF
    # F(a, b; c; z) = (1 - z)^s F(c - a, c - b; c; z), which is a polynomial where c - a or c - b ends it.
    short = _is_pole(m, c - a) | _is_pole(m, c - b)
    near = on & (z > NEAR_ONE) & ~_ends(m, m.where(short, c - a, a)) & ~_ends(m, m.where(short, c - b, b))
    apart = whole | (distance > m.where(c > 0.0, m.like(c, APART), APART_AT_LEAST))
    along, near = near & ~apart, near & apart
    most, its_most = m.maximum(-a, -b), m.maximum(a - c, b - c)  # terms of parameters far below zero cancel
    other = short | along & (s < 0.0) & (c > 0.0) & (its_most <= m.maximum(most, 0.0))
    factor = m.where(other, m.power(m.where(on & other, y, 1.0), m.where(on & other, s, 0.0)), 1.0)
    p, q = m.where(other, c - a, a), m.where(other, c - b, b)
    series, peak = _gauss_series(m, on & ~near & ~along, p, q, c, z, precision)
    continued, greatest = _gauss_to_one(m, along, p, q, c, y, precision)
    series, peak = m.where(along, continued, series), m.where(along, greatest, peak)
    cancels = on & ~near & (peak > _allowed(precision) * m.abs(series))
    value = m.where(near, _around_one(m, near & ~whole, a, b, c, y, precision), factor * series)
    if not by_logarithms:
        return value, cancels
    negative = s < 0.0
    p, q = m.where(negative, c - a, a), m.where(negative, c - b, b)
    factor = m.where(negative, m.power(m.where(near & whole, y, 1.0), m.where(near & whole, s, 0.0)), 1.0)
    around = factor * _around_one_whole(m, near & whole, p, q, m.abs(nearest), y, precision)
    return m.where(near & whole, around, value), cancels


def _hyp2f1(m, a, b, c, x, precision, by_logarithms: bool):
    known = m.equal(a, a) & m.equal(b, b) & m.equal(c, c) & m.equal(x, x)
    finite = (m.abs(a) < INF) & (m.abs(b) < INF) & (m.abs(c) < INF) & (m.abs(x) < INF)
    ends_a, ends_b = _ends(m, a), _ends(m, b)
    swap = ends_b & ~(ends_a & (a > b)) | ~ends_a & ~ends_b & (b < a)
    a, b = m.where(swap, b, a), m.where(swap, a, b)  # a ends the series first, or is the lesser
    polynomial = ends_a | ends_b
    pole = _is_pole(m, c) & ~(polynomial & (a > c))
    on = known & finite & ~pole & (m.abs(c) > 0.0)
    # Pfaff's transformation of negative arguments (1 - x)^-a F(a, c - b; c; x / (x - 1)).
    negative = (x < -0.25) & ~polynomial
    inside = on & (x < 1.0) & ~polynomial
    y = 1.0 / (1.0 - m.where(inside & negative, x, 0.0))
    z = m.where(negative, -x * y, x)
    y = m.where(negative, y, 1.0 - x)
    front = m.where(inside & negative, m.power(y, a), 1.0)
    other = m.where(negative, c - b, b)
    value, cancels = _gauss(m, inside, a, other, c, z, y, precision, by_logarithms)
    hard = cancels & (x < 0.0) & (c > 0.0)
    value = m.where(hard, _gauss_along(m, hard, a, b, c, x, precision), front * value)
    terms, _ = _gauss_series(m, on & polynomial, a, b, c, x, precision)
    value = m.where(polynomial, terms, value)
    s = c - a - b
    converges = m.equal(x, 1.0) & (s > 0.0) & on
    at_one = _gamma_ratio(m, tuple(m.where(converges, v, 1.0) for v in (c, s)),
                          tuple(m.where(converges, v, 1.0) for v in (c - a, c - b)), precision)  # fmt: skip
    value = m.where(m.equal(x, 1.0) & ~polynomial, m.where(s > 0.0, at_one, INF), value)
    value = m.where((x > 1.0) & ~polynomial, INF, value)
    value = m.where(
        m.equal(x, -INF) | m.equal(x, INF) & polynomial, m.where(polynomial | (a <= 0.0), m.like(x, NAN), 0.0), value
    )
    value = m.where(pole, INF, value)
    grows = (a > 0.0) & (b > 0.0) & (c > 0.0) & (c < INF) & (x > 0.0)
    unending = m.equal(m.abs(a), INF) | m.equal(m.abs(b), INF)
    value = m.where(unending, m.where(grows, m.like(x, INF), NAN), value)
    value = m.where(m.equal(x, 0.0) | polynomial & m.equal(a, 0.0), 1.0, value)
    return m.where(known, value, NAN)


def hyp2f1(m, a, b, c, x, precision):
    """F(a, b; c; x) for x <= 1, and polynomials everywhere; infinite beyond."""
    return _hyp2f1(m, a, b, c, x, precision, True)


def hyp2f1_off_integers(m, a, b, c, x, precision):
    """The same by formulas that hold around whole values of c - a - b too, and so have derivatives there."""
    return _hyp2f1(m, a, b, c, x, precision, False)


def hyp2f1_by_x(m, a, b, c, x, precision):
    """The derivative by x, as that of M."""
    return a * b / c * hyp2f1(m, a + 1.0, b + 1.0, c + 1.0, x, precision)
