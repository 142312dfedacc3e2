"""Modified Bessel functions of floats, exponentially scaled, nearly as exact as doubles that are rounded.

By pieces in pairs of floats, beyond which they are the polynomial of `bessel.py` in 1 / x over the root of x, with what
is rounded off these added at the end.
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
