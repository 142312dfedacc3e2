"""Convolutions and correlations: as sums of products, or by Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import canonical_axis, promote_inexact
from catena.typing import ArrayLike

_MODES = ("full", "same", "valid")


def _operands(name: str, in1, in2, mode: str) -> list:
    """The operands in one inexact dtype, the larger one first where only whole overlaps count."""
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    in1, in2 = promote_inexact(name, in1, in2)
    if in1.ndim != in2.ndim:
        raise ValueError(f"{name}: in1 and in2 must have the same rank, got shapes {in1.shape} and {in2.shape}")
    return [in1, in2]


def _larger_first(name: str, in1, in2, axes) -> list:
    """Whole overlaps are there where one operand is as large as the other in every dimension."""
    sizes = [(in1.shape[d], in2.shape[d]) for d in axes]
    if all(m >= n for m, n in sizes):
        return [in1, in2]
    if all(m <= n for m, n in sizes):
        return [in2, in1]
    raise ValueError(
        f"{name}: with mode 'valid' one operand must be at least as large as the other in every dimension, got shapes "
        f"{in1.shape} and {in2.shape}"
    )


def _window(m: int, n: int, mode: str) -> tuple[int, int]:
    """Start and length of what a mode keeps of the ``m + n - 1`` elements of a convolution.

    "same later" is SciPy's middle of correlations of matrices, which is one further where ``n`` is even.
    """
    if mode == "full":
        return 0, max(m + n - 1, 0)
    return {"same": ((n - 1) // 2, m), "same later": (n // 2, m), "valid": (n - 1, m - n + 1)}[mode]


def _sums_of_products(name: str, in1, in2, mode: str, precision):
    """The convolution as one call of the general one, whose windows are padded so that the mode's part is made."""
    if 0 in in1.shape or 0 in in2.shape:
        raise ValueError(f"{name}: operands must have elements, got shapes {in1.shape} and {in2.shape}")
    if mode == "valid":
        in1, in2 = _larger_first(name, in1, in2, range(in1.ndim))
    padding = []
    for m, n in zip(in1.shape, in2.shape, strict=True):
        start, length = _window(m, n, mode)
        padding.append((n - 1 - start, start + length - m))
    kernel = jnp.flip(in2)[None, None]
    out = lax.conv_general_dilated(in1[None, None], kernel, (1,) * in1.ndim, padding, precision=precision)
    return out[0, 0]


@whole
def convolve(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The convolution of two arrays of any rank.

    Arguments:
      in1, in2: arrays of one rank; integers become floats.
      mode: "full", "same", the part of the size of ``in1`` from the middle, or "valid", where they overlap wholly.
      method: "auto" or "direct", as sums of products; or "fft".
      precision: of the products, as for ``lax.dot_general``.
    Returns:
      An inexact array.
    Raises:
      ValueError: ranks differ, there are no elements, ``mode`` or ``method`` is unknown, or shapes do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 5., 3.], dtype=float32)
    """
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method not in ("auto", "direct"):
        raise ValueError(f"convolve: method must be 'auto', 'direct' or 'fft', got {method!r}")
    in1, in2 = _operands("convolve", in1, in2, mode)
    if not in1.ndim:
        return in1 * in2
    return _sums_of_products("convolve", in1, in2, mode, precision)


def _turned(x):
    x = jnp.flip(x)
    return jnp.conj(x) if dtypes.is_complex(x.dtype) else x


@whole
def correlate(in1: Array, in2: Array, mode: str = "full", method: str = "auto", precision: Any = None) -> Array:
    """The cross-correlation of two arrays of any rank: the convolution with the conjugate of ``in2``, turned around.

    Arguments:
      in1, in2, mode, method, precision: as for ``convolve``.
    Returns:
      An inexact array.
    Raises:
      ValueError: as ``convolve``.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
    Array([1., 2., 3., 0.], dtype=float32)
    """
    in1, in2 = _operands("correlate", in1, in2, mode)
    return convolve(in1, _turned(in2), mode, method, precision)


_BOUNDARIES = {"wrap": "wrap", "symm": "symmetric"}


def _of_matrices(name: str, in1, in2, mode: str, boundary: str, fillvalue, precision):
    """The convolution of matrices; ``in1`` is continued as far as ``in2`` reaches."""
    if in1.ndim != 2:
        raise ValueError(f"{name}: in1 and in2 must be matrices, got shapes {in1.shape} and {in2.shape}")
    if boundary not in ("fill", *_BOUNDARIES):
        raise ValueError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    zeros = boundary == "fill" and np.shape(fillvalue) == () and fillvalue == 0
    if mode == "valid" or 0 in in2.shape or zeros:
        return _sums_of_products(name, in1, in2, mode, precision)
    width = []
    for m, n in zip(in1.shape, in2.shape, strict=True):
        start, length = _window(m, n, mode)
        width.append((n - 1 - start, start + length - m))
    how = {"constant_values": fillvalue} if boundary == "fill" else {"mode": _BOUNDARIES[boundary]}
    return _sums_of_products(name, jnp.pad(in1, width, **how), in2, "valid", precision)


@whole
def convolve2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices, with a choice of what lies beyond the first.

    Arguments:
      in1, in2: matrices; integers become floats.
      mode: "full", "same" or "valid", as for ``convolve``.
      boundary: beyond ``in1`` there is ``fillvalue`` ("fill"), ``in1`` again ("wrap") or its reflection ("symm").
      fillvalue: a number.
      precision: of the products, as for ``lax.dot_general``.
    Returns:
      An inexact matrix.
    Raises:
      ValueError: they are no matrices, have no elements, shapes do not fit, or ``mode`` or ``boundary`` is unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.convolve2d(jnp.eye(2), jnp.ones((1, 2)), boundary="wrap")
    Array([[1., 1., 1.],
           [1., 1., 1.]], dtype=float32)
    """
    in1, in2 = _operands("convolve2d", in1, in2, mode)
    return _of_matrices("convolve2d", in1, in2, mode, boundary, fillvalue, precision)


@whole
def correlate2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The cross-correlation of two matrices.

    Arguments:
      in1, in2, mode, boundary, fillvalue, precision: as for ``convolve2d``.
    Returns:
      An inexact matrix.
    Raises:
      ValueError: as ``convolve2d``.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.correlate2d(jnp.eye(2), jnp.array([[0.0, 1.0]]), "same")
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    in1, in2 = _operands("correlate2d", in1, in2, mode)
    mode = "same later" if mode == "same" else mode
    return _of_matrices("correlate2d", in1, _turned(in2), mode, boundary, fillvalue, precision)


# ------------------------------------------------------------------------------------------------------------
# By Fourier transforms


def _smooth(n: int) -> int:
    """The least length from ``n`` on without prime factors beyond 5, which transforms are fastest for."""
    while True:
        rest = n
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return n
        n += 1


@whole
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None) -> Array:
    """The convolution of two arrays as a product of their Fourier transforms.

    Arguments:
      in1, in2: arrays of one rank; integers become floats.
      mode: "full", "same" or "valid", as for ``convolve``.
      axes: along which; all by default. In the others shapes must be equal.
    Returns:
      An inexact array.
    Raises:
      ValueError: ranks differ, shapes do not fit, the mode is unknown, or an axis does not exist.
      TypeError: an operand has no elements, and more of their convolution is asked for than there is.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])).round(4)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    in1, in2 = _operands("fftconvolve", in1, in2, mode)
    axes = range(in1.ndim) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    axes = sorted({canonical_axis(operator.index(d), in1.ndim) for d in axes})
    others = [d for d in range(in1.ndim) if d not in axes]
    if any(in1.shape[d] != in2.shape[d] for d in others):
        raise ValueError(f"fftconvolve: shapes must be equal but for axes {axes}, got {in1.shape} and {in2.shape}")
    if mode == "valid":
        in1, in2 = _larger_first("fftconvolve", in1, in2, axes)
    windows = {d: _window(in1.shape[d], in2.shape[d], mode) for d in axes}
    if not axes:
        return in1 * in2
    if not in1.size or not in2.size:
        if any(windows[d][1] > max(in1.shape[d] + in2.shape[d] - 1, 0) for d in axes):
            raise TypeError(f"fftconvolve: mode {mode!r} asks for elements, got {in1.shape} and {in2.shape}")
        return jnp.zeros([windows[d][1] if d in windows else n for d, n in enumerate(in1.shape)], in1.dtype)
    sizes = [_smooth(in1.shape[d] + in2.shape[d] - 1) for d in axes]
    if dtypes.is_complex(in1.dtype):
        out = jnp.fft.ifftn(jnp.fft.fftn(in1, sizes, axes) * jnp.fft.fftn(in2, sizes, axes), axes=axes)
    else:
        out = jnp.fft.irfftn(jnp.fft.rfftn(in1, sizes, axes) * jnp.fft.rfftn(in2, sizes, axes), sizes, axes)
    kept = (slice(windows[d][0], sum(windows[d])) if d in windows else slice(None) for d in range(in1.ndim))
    return out[tuple(kept)].astype(in1.dtype)
