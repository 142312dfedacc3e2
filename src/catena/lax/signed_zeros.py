"""Maximum and minimum in NumPy, with zeros ordered by their signs, as IEEE 754-2019 and compiled programs do.

NumPy returns any of several zeros; to compiled code and to XLA, -0 is less than +0.
"""

import numpy as np


def ordered(ufunc, fold, *xs):
    """``fold(ufunc, *xs)`` for a fold by ``np.maximum`` or ``np.minimum``."""
    out = fold(ufunc, *xs)
    if out.dtype.kind != "f" or not np.count_nonzero(out == 0):
        return out
    low = ufunc is np.minimum
    won = fold(np.logical_or, *[(x == 0) & (np.signbit(x) == low) for x in xs])
    winner, loser = (out.dtype.type(z) for z in ((-0.0, 0.0) if low else (0.0, -0.0)))
    return np.where(out == 0, np.where(won, winner, loser), out)


def _apply(ufunc, x, y):
    return ufunc(x, y)


def maximum(x, y):
    """The larger of two numbers; NaN where either is; the second of complex ones that are equal."""
    return ordered(np.maximum, _apply, y, x)


def minimum(x, y):
    """The smaller of two numbers; NaN where either is; the second of complex ones that are equal."""
    return ordered(np.minimum, _apply, y, x)


# ------------------------------------------------------------------------------------------------------------
# For folds that have no second pass: floats as integers in the order of IEEE 754


def has_both_zeros(*xs) -> bool:
    """Whether there are zeros of both signs among the elements of arrays of floats."""
    if xs[0].dtype.kind != "f":
        return False
    signs = [np.signbit(x[x == 0]) for x in xs]
    return any(s.any() for s in signs) and not all(s.all() for s in signs)


def as_integers(x, low: bool):
    """Integers that order as the floats do; NaN is the least (if ``low``) or the greatest of them."""
    bits = x.view(f"i{x.dtype.itemsize}")
    info = np.iinfo(bits.dtype)
    return np.where(np.isnan(x), info.min if low else info.max, _mirrored(bits)).astype(bits.dtype)


def as_floats(integers, dtype):
    """The floats that ``as_integers`` made integers of."""
    return _mirrored(np.ascontiguousarray(integers)).view(dtype)


def _mirrored(bits):
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
