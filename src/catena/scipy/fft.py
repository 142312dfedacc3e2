"""Cosine transforms.

Source: Makhoul, "A fast cosine transform in one and two dimensions" (1980): a transform of ``n`` elements is a Fourier
transform of ``n`` elements, the even ones first and the odd ones after them in reverse.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.namespace import shown as _shown
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis, convert

__all__ = ["dct", "dctn", "idct", "idctn"]


@whole
def dct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete cosine transform of type 2.

    Arguments:
      x: an array; integers and half precision become float32.
      type: 2.
      n: how many elements are transformed: ``x`` is cut, or filled up with zeros; all by default.
      axis: along which.
      norm: None or "backward" for no factor, "ortho" to make the transform orthogonal.
    Returns:
      An inexact array like ``x``.
    Raises:
      NotImplementedError: the type is another, as in JAX.
      ValueError: the norm is unknown, or the axis does not exist. TypeError: there are no elements to transform.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.fft.dct(jnp.array([1.0, 0.0])).round(4)
    Array([2.    , 1.4142], dtype=float32)
    """
    return _along_axes("dct", _cosines, x, type, None if n is None else (n,), (axis,), norm)


@whole
def dctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform of type 2 along several axes.

    Arguments:
      x, type, norm: as for ``dct``.
      s: how many elements are transformed along each of the axes.
      axes: the axes; by default the last ones if ``s`` is given, else all.
    Returns:
      An inexact array.
    Raises:
      NotImplementedError, ValueError, TypeError: as ``dct``.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.fft.dctn(jnp.ones((2, 2)), norm="ortho").round(4)
    Array([[2., 0.],
           [0., 0.]], dtype=float32)
    """
    return _along_axes("dctn", _cosines, x, type, s, axes, norm)


@whole
def idct(x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``dct``.

    Arguments:
      x, type, n, axis, norm: as for ``dct``.
    Returns:
      An inexact array like ``x``.
    Raises:
      NotImplementedError, ValueError, TypeError: as ``dct``.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.fft.idct(jnp.array([6.0, 0.0, 0.0])).round(4)
    Array([1., 1., 1.], dtype=float32)
    """
    return _along_axes("idct", _from_cosines, x, type, None if n is None else (n,), (axis,), norm)


@whole
def idctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of ``dctn``.

    Arguments:
      x, type, s, axes, norm: as for ``dctn``.
    Returns:
      An inexact array.
    Raises:
      NotImplementedError, ValueError, TypeError: as ``dct``.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> jsp.fft.idctn(jnp.array([[2.0, 0.0], [0.0, 0.0]]), norm="ortho").round(4)
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _along_axes("idctn", _from_cosines, x, type, s, axes, norm)


def _along_axes(name: str, transform, x, type, sizes, axes, norm):
    if type != 2:
        raise NotImplementedError(f"{name}: type must be 2: the others are not implemented; got {type!r}")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(f"{name}: norm must be None, 'backward' or 'ortho', got {norm!r}")
    x = as_array_argument(name, x)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    x = convert(x, dtype if dtypes.itemsize_bits(dtype) >= 32 else np.dtype("float32"))
    sizes = None if sizes is None else [operator.index(n) for n in np.atleast_1d(np.asarray(sizes, object)).tolist()]
    if axes is None:
        axes = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    axes = [canonical_axis(operator.index(d), x.ndim) for d in ([axes] if isinstance(axes, int) else axes)]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: axes must not be repeated, got {axes}")
    if sizes is not None and len(sizes) != len(axes):
        raise ValueError(f"{name}: there must be a size for each axis, got {sizes} and {axes}")
    for d, n in zip(axes, sizes or [x.shape[d] for d in axes], strict=True):
        if n < 0:
            raise ValueError(f"{name}: sizes must not be negative, got {n}")
        if n == 0:
            raise TypeError(f"{name}: there must be elements to transform along axis {d}")
        x = _of_size(x, d, n)
    for d in axes:
        x = jnp.moveaxis(transform(jnp.moveaxis(x, d, -1), norm == "ortho"), -1, d)
    return x


def _of_size(x, axis: int, n: int):
    """``x`` cut, or filled up with zeros, to ``n`` elements along an axis."""
    config = [(0, 0, 0)] * x.ndim
    config[axis] = (0, n - x.shape[axis], 0)
    return lax.pad(x, np.zeros((), x.dtype), config) if n != x.shape[axis] else x


def _turns(n: int, count: int, dtype) -> np.ndarray:
    """``exp(-i pi k / 2n)`` for ``k < count``."""
    return np.exp(-0.5j * np.pi / n * np.arange(count)).astype(dtypes.to_complex_dtype(dtype))


def _scale(n: int, orthogonal: bool, dtype) -> np.ndarray:
    """What ``dct`` multiplies its sums with."""
    factors = np.full(n, np.sqrt(2 / n) if orthogonal else 2.0)
    factors[0] = np.sqrt(1 / n) if orthogonal else 2.0
    return factors.astype(dtypes.to_real_dtype(dtype))


def _cosines(x, orthogonal: bool):
    """Sums of ``x[k] cos(pi j (2k + 1) / 2n)``, of the last axis."""
    if dtypes.is_complex(x.dtype):
        return lax.complex(_cosines(x.real, orthogonal), _cosines(x.imag, orthogonal))
    n = x.shape[-1]
    spectrum = jnp.fft.rfft(jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], -1))
    z = spectrum * _turns(n, n // 2 + 1, x.dtype)
    # element n - k of the spectrum is the conjugate of k, so that its turned real part is minus the imaginary one of k
    sums = jnp.concatenate([z.real, jnp.flip(-z.imag[..., 1 : (n + 1) // 2], -1)], -1)
    return sums * _scale(n, orthogonal, x.dtype)


def _from_cosines(x, orthogonal: bool):
    """The inverse of ``_cosines``."""
    if dtypes.is_complex(x.dtype):
        return lax.complex(_from_cosines(x.real, orthogonal), _from_cosines(x.imag, orthogonal))
    n = x.shape[-1]
    sums = x / _scale(n, orthogonal, x.dtype)
    half = n // 2 + 1
    beyond = jnp.concatenate([jnp.zeros_like(sums[..., :1]), jnp.flip(sums[..., 1:], -1)], -1)  # element n - k
    z = lax.complex(sums[..., :half], -beyond[..., :half]) * np.conj(_turns(n, half, x.dtype))
    ordered = jnp.fft.irfft(z, n)
    evens = ordered[..., : (n + 1) // 2]
    odds = jnp.flip(ordered[..., (n + 1) // 2 :], -1)
    if n % 2:
        odds = jnp.concatenate([odds, jnp.zeros_like(odds[..., :1])], -1) if n > 1 else jnp.zeros_like(evens)
    return jnp.stack([evens, odds], -1).reshape(*x.shape[:-1], 2 * evens.shape[-1])[..., :n]


__dir__ = _shown(globals())
