"""Signals without their trend."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import canonical_axis, convert
from catena.typing import ArrayLike


@whole
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """A signal without its mean, or without the straight lines that fit it best.

    Arguments:
      data: the signal; integers become floats.
      axis: the axis of time.
      type: "constant" or "linear".
      bp: where one line ends and the next begins, for "linear".
      overwrite_data: None: arrays are never changed.
    Returns:
      An inexact array like ``data``.
    Raises:
      ValueError: the type is unknown, or a breakpoint is out of range. TypeError: it is no integer.
      NotImplementedError: ``overwrite_data`` is not None.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.detrend(jnp.array([1.0, 2.0, 6.0]), type="constant")
    Array([-2., -1.,  3.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError(f"detrend: overwrite_data must be None, got {overwrite_data!r}")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: type must be 'constant' or 'linear', got {type!r}")
    data = jnp.asarray(data)
    data = convert(data, dtypes.to_inexact_dtype(data.dtype))
    axis = canonical_axis(axis, data.ndim)
    if type == "constant" or not data.size:
        return data - data.mean(axis, keepdims=True) if data.size else data
    n = data.shape[axis]
    points = sorted({0, n, *(operator.index(p) for p in np.atleast_1d(bp).tolist())})
    if points[0] < 0 or points[-1] > n:
        raise ValueError(f"detrend: breakpoints must be in the range from 0 to {n}, got {bp}")
    data = jnp.moveaxis(data, axis, -1)
    parts = [_without_line(data[..., i:j]) for i, j in zip(points, points[1:], strict=False)]
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)


def _without_line(x):
    """Least squares: the slope is the covariance of time and signal by the variance of time."""
    n = x.shape[-1]
    time = np.arange(n) - (n - 1) / 2
    slope = (x @ (time / (time @ time or 1)).astype(x.dtype))[..., None]
    return x - x.mean(-1, keepdims=True) - slope * time.astype(x.dtype)
