"""Sums and products of floats in NumPy, with what rounding took (T. J. Dekker 1971; D. E. Knuth, TAOCP 4.2.2)."""

from __future__ import annotations

import numpy as np

DOUBLE = np.dtype(np.float64)


def two_sum(x, y) -> tuple:
    """The sum of doubles, and by how much rounding made it too small."""
    total = x + y
    from_y = total - x
    return total, (x - (total - from_y)) + (y - from_y)


def two_product(x, y) -> tuple:
    """The product of doubles, and by how much rounding made it too small."""
    product = x * y
    return product, product_error(x, y, product)


def product_error(x, y, product):
    """x y - product of doubles, exact where that is the product rounded once: so is each of these sums then."""
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


def _halves(x) -> tuple:
    """Two doubles of 26 bits each whose sum is ``x``: the higher one is made of its bits, so that none overflows."""
    x = np.asarray(x, DOUBLE)
    high = ((x.view(np.int64) + (1 << 26)) & -(1 << 27)).view(DOUBLE)
    return high, x - high


def multiply_add(x, y, z):
    """x y + z, rounded once, of floats of 32 and 64 bits: the exact product and sum (S. Boldo and G. Melquiond,
    "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", IEEE TC 57, 2008).
    """
    if x.dtype.itemsize < 8:  # doubles hold the product
        return _odd(*two_sum(np.multiply(x, y, dtype=DOUBLE), z.astype(DOUBLE))).astype(x.dtype)
    high, low = two_product(x, y)
    middle, rest = two_sum(z, low)
    total, lost = two_sum(high, middle)
    rounded = total + _odd(*two_sum(lost, rest))
    return np.where(np.isfinite(rounded), rounded, x * y + z)


def _odd(total, lost):
    """The sum of both, rounded to the neighbour whose last bit is one, if it needs rounding: what is rounded again,
    to fewer bits, is then as if it had been rounded once.
    """
    bits = np.ascontiguousarray(total).reshape(np.shape(total)).view(np.int64)
    step = np.where((lost > 0) == (total > 0), 1, -1)
    inexact = (lost != 0) & np.isfinite(lost) & (bits & 1 == 0)
    return np.where(inexact, bits + step, bits).view(DOUBLE)
