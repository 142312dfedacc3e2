"""Discrete Fourier transforms by SciPy's pocketfft, called without the Python wrapper around it: the wrapper takes 20
microseconds, a small transform one.
"""

from functools import cache

import numpy as np

from catena.core.lazy import load
from catena.runtime import threads

LARGE = 1 << 18  # elements from which on several threads share the work


@cache
def pocketfft():
    """SciPy's compiled module; None where this SciPy has none of that name, then its public functions do."""
    try:
        return load("scipy.fft._pocketfft.pypocketfft")
    except ImportError:
        return None


def transform(kind: str, x: np.ndarray, lengths: tuple) -> np.ndarray:
    """The transform of ``x`` over its last axes.

    Arguments:
      kind: ``"fft"``, ``"ifft"``, ``"rfft"`` or ``"irfft"``.
      x: values of single or double precision; real ones for ``rfft`` only.
      lengths: of the transformed axes; those of ``x``, or for ``irfft`` those of the result.
    """
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    workers = threads.count() if x.size >= LARGE else 1
    native = pocketfft()
    if native is None:
        return getattr(load("scipy.fft"), f"{kind}n")(x, s=lengths, axes=axes, workers=workers)
    if kind == "rfft":
        return native.r2c(x, axes, True, 0, None, workers)
    if kind == "irfft":
        return native.c2r(x, axes, lengths[-1], False, 2, None, workers)  # 2: divided by the number of elements
    return native.c2c(x, axes, kind == "fft", 0 if kind == "fft" else 2, None, workers)
