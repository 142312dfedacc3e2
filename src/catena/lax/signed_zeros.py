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
    """The larger of two numbers; NaN where either is."""
    return ordered(np.maximum, _apply, x, y)


def minimum(x, y):
    """The smaller of two numbers; NaN where either is."""
    return ordered(np.minimum, _apply, x, y)
