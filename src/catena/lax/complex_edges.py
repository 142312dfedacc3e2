"""Functions of complex numbers where there is no compiler: right where NumPy's own overflow, cancel or say NaN.

complex64 is computed in complex128, where little overflows.
"""

import functools

import numpy as np

WIDE = np.dtype(np.complex128)


def in_double(fun):
    """A function of the parts of complex128 numbers, as one of complex numbers."""

    @functools.wraps(fun)
    def wide(*zs):
        parts = [part for z in zs for part in (z.real.astype(np.float64), z.imag.astype(np.float64))]
        out = np.empty(np.broadcast_shapes(*[z.shape for z in zs]), WIDE)
        out.real, out.imag = fun(*parts)
        return out.astype(zs[0].dtype)

    return wide


@in_double
def square(x, y):
    return (x - y) * (x + y), 2 * x * y


@in_double
def expm1(x, y):
    half = np.sin(y / 2)
    real, imag = np.expm1(x) * np.cos(y) - 2 * half * half, np.exp(x) * np.sin(y)
    on_axis = (y == 0) | (x == -np.inf)
    return np.where(on_axis, np.expm1(x), real), np.where(y == 0, y, np.where(on_axis, 0.0, imag))


@in_double
def log1p(x, y):
    size = np.hypot(1 + x, y)
    near = (size > 0.5) & (size < 2)  # where the logarithm of a rounded size has few digits
    return np.where(near, np.log1p(np.where(near, x * (x + 2) + y * y, 0.0)) / 2, np.log(size)), np.arctan2(y, 1 + x)


@in_double
def sign(x, y):
    _, exponent = np.frexp(np.maximum(np.abs(x), np.abs(y)))
    x, y = np.ldexp(x, -exponent), np.ldexp(y, -exponent)
    size, zero = np.hypot(x, y), (x == 0) & (y == 0)
    return np.where(zero, x, x / size), np.where(zero, y, y / size)


@in_double
def divide(x, y, u, v):
    """Smith's algorithm, on a divisor near one; what is finite divided by infinity is zero."""
    _, exponent = np.frexp(np.maximum(np.abs(u), np.abs(v)))
    u, v = np.ldexp(u, -exponent), np.ldexp(v, -exponent)
    swap = np.abs(u) < np.abs(v)
    x, y, sign = np.where(swap, y, x), np.where(swap, x, y), np.where(swap, -1.0, 1.0)
    large, small = np.where(swap, v, u), np.where(swap, u, v)
    ratio = np.where(large == 0, 0.0, small / large)
    size = large + small * ratio
    real, imag = (x + y * ratio) / size, sign * (y - x * ratio) / size
    to_zero = (np.isinf(large) | np.isinf(small)) & np.isfinite(x) & np.isfinite(y)
    return [np.where(to_zero, 0.0, np.ldexp(part, -exponent)) for part in (real, imag)]
