"""Special functions of floats, nearly as exact as doubles that are rounded, but in pairs of floats.

By pieces (`paired.py`) up to some number, beyond which Bessel functions are polynomials in 1 / x over the root of x,
and Dawson's integral is its asymptotic series, with what is rounded off these added at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from catena.core.named import NamedTuple

from . import fitted, paired
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


def bessel_difference(x: Value) -> Value:
    """i0e(x) less i1e(|x|)."""
    a = fabs(x)
    near, far = total(paired.BESSEL_DIFFERENCE(minimum(a, SINGLE["split"]))), a >= SINGLE["split"]
    return if_any(far, lambda: [select(far, _difference_beyond(a), near)], [near])[0]


def _difference_beyond(a: Value) -> Value:
    ratio = _over_root(a, fitted.BESSEL_DIFFERENCE_FAR_SINGLE[0][2])
    result = ratio.u * ratio.value
    lost = fma(ratio.rest, ratio.inverse, ratio.value * ratio.off)
    lost = fma(ratio.u, lost, fma(ratio.u, ratio.value, -result))
    return select(a < math.inf, result + lost, 0.0)


def _or_beyond(a: Value, near: Value, order: int) -> Value:
    far = a >= SINGLE["split"]  # where no piece is

    def beyond() -> Value:
        ratio = _over_root(a, SINGLE[order][1])
        return select(a < math.inf, fma(ratio.rest, ratio.inverse, ratio.value), 0.0)

    return if_any(far, lambda: [select(far, beyond(), near)], [near])[0]


class Ratio(NamedTuple):
    """value + rest * inverse, where inverse is that of a root; u is that of a number, over 1 + off."""

    value: Value
    rest: Value
    inverse: Value
    u: Value
    off: Value


def _over_root(a: Value, numbers: Sequence[float]) -> Ratio:
    """A polynomial in 1 / a over the root of a, beyond the pieces."""
    first, *others = numbers
    high = float(np.float32(first))
    large = minimum(maximum(a, SINGLE["split"]), a.format.max)
    root = sqrt(large)
    inverse = 1.0 / root
    u = inverse * inverse
    series, off = horner(u, others), fma(-u, large, 1.0)
    product = u * series
    top = fast_two_sum(u.like(high), product)
    low = top.low + (fma(u, series, -product) + fma(product, off, first - high))
    value = top.high * inverse
    rest = fma(-value, root, top.high) + low - value * (0.5 * inverse) * fma(-root, root, large)
    return Ratio(value, rest, inverse, u, off)
