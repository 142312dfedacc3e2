"""Special functions of floats, nearly as exact as doubles that are rounded, but in pairs of floats.

By pieces (`paired.py`) up to some number, beyond which Bessel functions are the polynomial of `bessel.py` in 1 / x over
the root of x, and Dawson's integral is its asymptotic series, with what is rounded off these added at the end.
"""

import math

import numpy as np

from . import paired
from .bessel import SINGLE
from .double_double import fast_two_sum, total
from .text import Value, copysign, fabs, fma, horner, if_any, maximum, minimum, select, sqrt


def i0e(x: Value) -> Value:
    a = fabs(x)
    return _or_beyond(a, total(paired.I0E(minimum(a, SINGLE["split"]))), 0)


def i1e(x: Value) -> Value:
    a = fabs(x)
    near = minimum(a, SINGLE["split"])
    ratio = paired.I1E(near)
    return copysign(_or_beyond(a, fma(near, ratio.high, near * ratio.low), 1), x)


DAWSON_SERIES = tuple(math.prod(range(1, 2 * k, 2)) / 2**k for k in range(1, 9))  # in 1 / x^2, DLMF 7.12.1
DAWSON_END = 7.5


def dawsn(x: Value) -> Value:
    """Dawson's integral."""
    a = fabs(x)
    near, far = minimum(a, DAWSON_END), a >= DAWSON_END
    ratio = paired.DAWSON(near)
    value = fma(near, ratio.high, near * ratio.low)
    return copysign(if_any(far, lambda: [select(far, _dawsn_beyond(a), value)], [value])[0], x)


def _dawsn_beyond(a: Value) -> Value:
    large = minimum(maximum(a, DAWSON_END), a.format.max)
    inverse = 1.0 / large
    u, half, lost = inverse * inverse, 0.5 * inverse, fma(-inverse, large, 1.0)
    lost_of_u = fma(inverse, inverse, -u) + 2.0 * u * lost
    series = horner(u, DAWSON_SERIES)
    more = fma(u, series, fma(lost_of_u, series, lost))
    return select(a < math.inf, fma(half, more, half), 0.0)


def _or_beyond(a: Value, near: Value, order: int) -> Value:
    far = a >= SINGLE["split"]  # where no piece is
    return if_any(far, lambda: [select(far, _beyond(a, order), near)], [near])[0]


def _beyond(a: Value, order: int) -> Value:
    first, *others = SINGLE[order][1]
    high = float(np.float32(first))
    large = minimum(maximum(a, SINGLE["split"]), a.format.max)
    root = sqrt(large)
    inverse = 1.0 / root
    u = inverse * inverse
    rest = horner(u, others)
    product = u * rest
    value = fast_two_sum(u.like(high), product)
    low = value.low + (fma(u, rest, -product) + fma(product, fma(-u, large, 1.0), first - high))
    result = value.high * inverse
    lost = fma(-result, root, value.high) + low - result * (0.5 * inverse) * fma(-root, root, large)
    return select(a < math.inf, fma(lost, inverse, result), 0.0)
