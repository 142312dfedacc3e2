"""Faddeeva's function w(z) = exp(-z^2) erfc(-i z), the complex error function, and its derivative.

Sources: Al Azah and Chandler-Wilde, Computation of the complex error function using modified trapezoidal rules (2021),
of which the derivative is taken term by term; NIST DLMF 7.4 (symmetries), 7.9 (Laplace's continued fraction) and 7.10
(w' = -2 z w + 2 i / sqrt(pi), whose terms cancel but near 0).
"""

import math

from .integrals import INF, NAN

SPACING = math.sqrt(math.pi / 12)
MIDPOINTS = tuple(SPACING * (k + 0.5) for k in range(12))
MULTIPLES = tuple(SPACING * (k + 1) for k in range(12))
SQUARES = 1e150  # beyond which they overflow
LAPLACE = 2e4  # from which on two terms of Laplace's continued fraction have all digits
NEAR = 4.0  # of |z|^2, up to which few digits cancel in the equation for w'
TURNS = 2 * math.pi / SPACING


def faddeeva_real(m, x, y, precision):
    """The real part of w(x + iy)."""
    return _faddeeva(m, x, y)[0]


def faddeeva_imag(m, x, y, precision):
    """Its imaginary part."""
    return _faddeeva(m, x, y)[1]


def faddeeva_slope_real(m, x, y, precision):
    """The real part of w'(x + iy)."""
    return _slope(m, x, y)[0]


def faddeeva_slope_imag(m, x, y, precision):
    """Its imaginary part."""
    return _slope(m, x, y)[1]


def _product(a, b):
    """Of two complex numbers in parts."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


# ------------------------------------------------------------------------------------------------------------
# The quadrant of x, y >= 0: the trapezoidal or the midpoint rule, that whose poles are farther, with its error added


def _is_trapezoidal(m, x):
    phase = x * (1 / SPACING)
    phase = phase - m.floor(phase)
    return (phase >= 0.25) & (phase <= 0.75)


def _terms(m, x, y, trapezoidal):
    """Of each node t the parts of exp(-t^2) / (z^2 - t^2), and 2 t^2 exp(t^2)."""
    both = 2.0 * x * y
    for middle, multiple in zip(MIDPOINTS, MULTIPLES):
        node = m.where(trapezoidal, m.like(x, multiple), middle)
        weight = m.where(trapezoidal, m.like(x, math.exp(-(multiple**2))), math.exp(-(middle**2)))
        a = (x - node) * (x + node) - y * y
        part = weight / (a * a + both * both)
        yield part * a, -(part * both), 2.0 * (node * node) / weight


def _correction(m, x, y, trapezoidal):
    """Where it counts, what the poles of the rule add, 2 q exp(-z^2) / (q +- 1) with q = exp(i TURNS z), and the
    derivative of the logarithm of that.
    """
    theta, e = x * TURNS, m.exp(y * -TURNS)
    cosine, sine = e * m.cos(theta), e * m.sin(theta)
    sign = m.where(trapezoidal, m.like(x, -1.0), 1.0)
    below = cosine + sign
    norm = below * below + sine * sine
    size, both = 2.0 * _exp_of_difference(m, x, y) / norm, 2.0 * x * y
    up = cosine * below + sine * sine, sine * below - cosine * sine
    c, s = m.cos(both), m.sin(both)
    value = size * (up[0] * c + up[1] * s), size * (up[1] * c - up[0] * s)
    turn = TURNS * sign / norm
    counts = (y < x) | (y < math.pi / SPACING)
    return counts, value, (turn * sine - 2.0 * x, turn * below - 2.0 * y)


def _exp_of_difference(m, x, y):
    """exp(y^2 - x^2), with what is rounded off the squares and their difference."""
    p, q = y * y, x * x
    d = p - q
    back = d - p
    lost = (p - (d - back)) - (q + back)
    return m.exp(d) * (1.0 + (lost + m.product_error(y, y, p) - m.product_error(x, x, q)))


def _in_quadrant(m, x, y):
    trapezoidal = _is_trapezoidal(m, x)
    real, imag = m.like(x, 0.0), m.like(x, 0.0)
    for more_real, more_imag, _ in _terms(m, x, y, trapezoidal):
        real, imag = real + more_real, imag + more_imag
    scale = 2 * SPACING / math.pi
    real, imag = -(scale * (y * real + x * imag)), scale * (x * real - y * imag)
    norm = x * x + y * y
    pole = m.where(trapezoidal, SPACING / math.pi / m.where(trapezoidal, norm, 1.0), 0.0)
    real, imag = real + pole * y, imag + pole * x
    counts, more, _ = _correction(m, x, y, trapezoidal)
    return m.where(counts, real + more[0], real), m.where(counts, imag + more[1], imag)


def _slope_in_quadrant(m, x, y):
    """The derivative of `_in_quadrant`: of z / (z^2 - t^2) it is the negative of r + 2 t^2 r^2, where r is the
    quotient without z, and no terms cancel.
    """
    trapezoidal = _is_trapezoidal(m, x)
    real, imag = m.like(x, 0.0), m.like(x, 0.0)
    for r, s, factor in _terms(m, x, y, trapezoidal):
        real, imag = real + (r + factor * (r * r - s * s)), imag + (s + 2.0 * factor * (r * s))
    scale = 2 * SPACING / math.pi
    real, imag = scale * imag, -(scale * real)
    norm = m.where(trapezoidal, x * x + y * y, 1.0)
    pole = m.where(trapezoidal, SPACING / math.pi / norm / norm, 0.0)
    real, imag = real - pole * (2.0 * x * y), imag - pole * ((x - y) * (x + y))
    counts, value, rate = _correction(m, x, y, trapezoidal)
    more = _product(value, rate)
    return m.where(counts, real + more[0], real), m.where(counts, imag + more[1], imag)


# ------------------------------------------------------------------------------------------------------------
# The whole plane, by symmetries


def _by_laplace(m, a, b, large):
    """w(a + ib) far out: i / sqrt(pi) / (z - 1 / (2 z)), of quotients by the greater of a and b."""
    scale = 1.0 / m.where(large, m.maximum(a, b), 1.0)
    u, v = m.where(large, a, 1.0) * scale, m.where(large, b, 1.0) * scale
    both_infinite = m.equal(a, INF) & m.equal(b, INF)
    u, v = m.where(both_infinite, 1.0, m.where(m.equal(a, INF), 1.0, u)), m.where(m.equal(b, INF), 1.0, v)
    small = 0.5 * (scale * scale) / (u * u + v * v)
    u, v = u - small * u, v + small * v
    front = scale * (1 / math.sqrt(math.pi)) / (u * u + v * v)
    return front * v, front * u


def _reflected(m, x, y):
    """Below the axis, 2 exp(y^2 - x^2) and 2 x y; what is far out of reach has its limit, and no angle."""
    a, b = m.abs(x), m.abs(y)
    below, beyond = y < 0.0, m.maximum(a, b) > SQUARES
    p, q = m.where(below & ~beyond, x, 0.0), m.where(below & ~beyond, y, 0.0)
    size = m.where(beyond, m.where(b > a, m.like(x, INF), 0.0), 2.0 * _exp_of_difference(m, p, q))
    return below, beyond, size, 2.0 * p * q


def _faddeeva(m, x, y):
    """w(x + iy)."""
    a, b = m.abs(x), m.abs(y)
    large = m.maximum(a, b) > LAPLACE
    real, imag = _in_quadrant(m, m.where(large, 1.0, a), m.where(large, 1.0, b))
    far = _by_laplace(m, a, b, large)
    real, imag = m.where(large, far[0], real), m.where(large, far[1], imag)
    imag = m.where(x < 0.0, -imag, imag)
    below, beyond, size, angle = _reflected(m, x, y)
    real = m.where(below, size * m.cos(angle) - real, real)
    imag = m.where(below & ~beyond, imag - size * m.sin(angle), imag)
    known = m.equal(x, x) & m.equal(y, y)
    return m.where(known, real, NAN), m.where(known, imag, NAN)


def _slope(m, x, y):
    """w'(x + iy); far below the axis, where it is infinite and has no angle, NaN."""
    a, b = m.abs(x), m.abs(y)
    large = m.maximum(a, b) > LAPLACE
    real, imag = _slope_in_quadrant(m, m.where(large, 1.0, a), m.where(large, 1.0, b))
    far = _slope_by_laplace(m, a, b, large)
    real, imag = m.where(large, far[0], real), m.where(large, far[1], imag)
    below, beyond, size, angle = _reflected(m, x, y)
    real = m.where((x < 0.0) ^ below, -real, real)
    turned = _product((-2.0 * size * m.cos(angle), 2.0 * size * m.sin(angle)), (x, y))
    turned = [m.where(beyond, m.where(b > a, m.like(x, NAN), 0.0), part) for part in turned]
    real, imag = (m.where(below, part + more, part) for part, more in zip((real, imag), turned))
    near = a * a + b * b < NEAR
    around = _slope_around_zero(m, m.where(near, x, 0.0), m.where(near, y, 0.0))
    known = m.equal(x, x) & m.equal(y, y)
    return tuple(m.where(known, m.where(near, close, part), NAN) for close, part in zip(around, (real, imag)))


def _slope_by_laplace(m, a, b, large):
    """i sqrt(pi) w^2 (1 - pi / 2 w^2), which is that of two terms of the series."""
    w = _by_laplace(m, a, b, large)
    square = (w[0] - w[1]) * (w[0] + w[1]), 2.0 * w[0] * w[1]
    real, imag = _product(square, (1.0 - 0.5 * math.pi * square[0], -0.5 * math.pi * square[1]))
    return -math.sqrt(math.pi) * imag, math.sqrt(math.pi) * real


def _slope_around_zero(m, x, y):
    real, imag = _product((-2.0 * x, -2.0 * y), _faddeeva(m, x, y))
    return real, imag + 2.0 / math.sqrt(math.pi)
