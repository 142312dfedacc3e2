"""Window functions: weights that fade out samples towards both ends."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.numpy.boundary import as_array_argument, concrete_or_error, convert, like
from catena.numpy.creation import default_float
from catena.numpy.documentation import family
from catena.numpy.elementary import i0
from catena.numpy.placement import placed
from catena.typing import ArrayLike


def _length(name: str, M) -> int:  # noqa: N803
    length = concrete_or_error(int, M, f"M argument of jnp.{name}")
    if length < 0:
        raise TypeError(f"{name}: M must be nonnegative, got {length}")
    return length


_PIECE = 1 << 12  # points whose intermediate results the second cache holds


def _window(name: str, M, formula) -> Array:  # noqa: N803
    """The window of a formula of positions from 0 to 1: it is symmetric."""
    n = _length(name, M)
    if n <= 1:
        return placed(make_array(np.ones(n, default_float())))
    half = _first_half(n, formula)
    return placed(make_array(np.concatenate([half, half[: n // 2][::-1]])))


def _first_half(n: int, formula) -> np.ndarray:
    """A formula of the first half of ``n`` positions from 0 to 1, in double precision, piece by piece."""
    values = np.empty((n + 1) // 2, default_float())
    for start in range(0, len(values), _PIECE):
        piece = np.arange(start, min(start + _PIECE, len(values)))
        values[start : start + _PIECE] = formula(piece / (n - 1))
    return values


_of_points = family(
    M="the number of points.",
    returns="A 1-D array of the default float dtype.",
    raises="TypeError: ``M`` is negative.",
)


@_of_points
def bartlett(M: int) -> Array:  # noqa: N803
    """The triangular window.

    >>> import catena.numpy as jnp
    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda x: 1 - np.abs(2 * x - 1))


@_of_points
def blackman(M: int) -> Array:  # noqa: N803
    """Blackman's window, of three cosine terms.

    >>> import catena.numpy as jnp
    >>> jnp.blackman(4).round(2)
    Array([-0.  ,  0.63,  0.63, -0.  ], dtype=float32)
    """
    return _window("blackman", M, lambda x: 0.42 - 0.5 * np.cos(2 * np.pi * x) + 0.08 * np.cos(4 * np.pi * x))


@_of_points
def hamming(M: int) -> Array:  # noqa: N803
    """Hamming's window: a cosine on a pedestal.

    >>> import catena.numpy as jnp
    >>> jnp.hamming(4)
    Array([0.08, 0.77, 0.77, 0.08], dtype=float32)
    """
    return _window("hamming", M, lambda x: 0.54 - 0.46 * np.cos(2 * np.pi * x))


@_of_points
def hanning(M: int) -> Array:  # noqa: N803
    """Von Hann's window: a raised cosine.

    >>> import catena.numpy as jnp
    >>> jnp.hanning(4)
    Array([0.  , 0.75, 0.75, 0.  ], dtype=float32)
    """
    return _window("hanning", M, lambda x: 0.5 * (1 - np.cos(2 * np.pi * x)))


@_of_points
def kaiser(M: int, beta: ArrayLike) -> Array:  # noqa: N803
    """Kaiser's window, of Bessel functions.

    Arguments:
      beta: the shape: 0 for a rectangle; the greater, the narrower.

    >>> import catena.numpy as jnp
    >>> jnp.kaiser(3, 5.0).round(4)
    Array([0.0367, 1.    , 0.0367], dtype=float32)
    """
    n = _length("kaiser", M)
    dtype = default_float()
    beta = as_array_argument("kaiser", beta, 1)
    if dtypes.is_complex(beta.dtype):
        raise ValueError(f"kaiser: beta must be real, got {dtypes.dtype_name(beta.dtype)}")
    beta = convert(beta, dtype)
    if n <= 1:
        return lax.full((n,), 1, dtype)
    roots = _first_half(n, lambda x: np.sqrt(np.maximum(1 - (2 * x - 1) ** 2, 0)))
    half = lax.div(i0(lax.mul(beta, like(beta, roots))), i0(beta))
    return lax.concatenate([half, lax.rev(lax.slice_in_dim(half, 0, n // 2), (0,))], 0)
