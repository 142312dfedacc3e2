"""How much each sample of a line weighs in each resampled one: a matrix for each method.

A kernel around the place that a new sample has in the line says how much the old ones count; the weights are then
divided by their sum, which keeps constants constant, up to the edges. Where the new samples are sparser than the old
ones, ``antialias`` stretches the kernel by as much, so that no old sample is missed (Heckbert 1989, "Fundamentals of
texture mapping and image warping"). Kernels: Keys 1981, "Cubic convolution interpolation for digital image
processing"; Duchon 1979, "Lanczos filtering in one and two dimensions".

The functions are written over ``xp``, which is NumPy where a scale is known, and `catena.numpy` where it is traced.
"""

from __future__ import annotations

import enum
from functools import partial
from typing import Any

import numpy as np


class ResizeMethod(enum.Enum):
    """How samples are interpolated.

    ``NEAREST`` takes the nearest sample, ``LINEAR`` a mean of two neighbours, ``CUBIC`` a cubic over four (of Keys,
    with -0.5), ``CUBIC_PYTORCH`` the same, but without ``antialias`` that with -0.75, the edges repeated, ``LANCZOS3``
    and ``LANCZOS5`` windowed sinc functions over six and ten, ``AREA`` the mean over the area that a new sample covers.

    >>> from catena.image import ResizeMethod
    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name.

        Arguments:
          s: the name, in lower case; "bilinear", "trilinear" and "triangle" are "linear", "bicubic" and "tricubic"
            are "cubic".
        Returns:
          The method.
        Raises:
          ValueError: there is no such method.

        >>> from catena.image import ResizeMethod
        >>> ResizeMethod.from_string("area")
        <ResizeMethod.AREA: 6>
        """
        if s not in NAMED:
            raise ValueError(f"Unknown resize method {s!r}; there are {', '.join(map(repr, NAMED))}")
        return NAMED[s]


NAMED = {name: ResizeMethod[name.upper()] for name in ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "area")}
NAMED |= dict.fromkeys(("bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR)
NAMED |= dict.fromkeys(("bicubic", "tricubic"), ResizeMethod.CUBIC)


def _triangle(xp, x):
    return xp.maximum(1 - x, 0)


def _keys(a: float, xp, x):
    """The piecewise cubic that is 1 at 0, 0 at the other integers, and leaves 1 with slope ``a``."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return xp.where(x < 1, near, xp.where(x < 2, far, 0))


def _lanczos(radius: int, xp, x):
    return xp.where(x < radius, xp.sinc(x) * xp.sinc(x / radius), 0)


KERNELS = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.CUBIC: partial(_keys, -0.5),
    ResizeMethod.CUBIC_PYTORCH: partial(_keys, -0.5),  # where it is antialiased; else see `_clamped`
    ResizeMethod.LANCZOS3: partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: partial(_lanczos, 5),
}


def weights(xp: Any, method: ResizeMethod, n: int, new: int, step, translation, antialias: bool, eps: float):
    """The matrix ``(n, new)`` of a method.

    Arguments:
      xp: NumPy, or `catena.numpy`.
      n, new: the lengths of the line.
      step: the distance between new samples, in old ones; a scalar of the dtype to compute in, as is
      translation: where the new line begins, in new samples.
      eps: sums of weights that are not a thousand times greater are none: such samples become zero, as do those
        beyond the edges.
    """
    places = (np.arange(new, dtype=step.dtype) + 0.5 - translation) * step
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        raw = _clamped(xp, partial(_keys, -0.75), 2, n, places)
    else:
        raw = _raw(xp, method, n, places, step, antialias)
    total = raw.sum(0)
    counts = (xp.abs(total) > 1000 * eps) & (places >= 0) & (places <= n)
    return xp.where(counts, raw / xp.where(counts, total, 1), 0)


def _raw(xp, method, n: int, places, step, antialias: bool):
    """What a kernel says of each old sample."""
    distance = xp.abs(places - _centres(0, n, places)[:, None])
    if method is ResizeMethod.AREA:
        return xp.clip((step + 1) / 2 - distance, 0, xp.minimum(step, 1))
    return KERNELS[method](xp, distance / xp.maximum(step, 1) if antialias else distance)


def _clamped(xp, kernel, radius: int, n: int, places):
    """The same where the line goes on beyond its ends with its first and last sample."""
    raw = kernel(xp, xp.abs(places - _centres(-radius, n + radius, places)[:, None]))
    if n < 2:
        return raw.sum(0, keepdims=True)[:n]
    ends = radius + 1
    return xp.concatenate([raw[:ends].sum(0)[None], raw[ends:-ends], raw[-ends:].sum(0)[None]])


def _centres(first: int, end: int, like):
    return np.arange(first, end, dtype=like.dtype) + 0.5
