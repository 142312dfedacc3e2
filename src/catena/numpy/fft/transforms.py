"""Discrete Fourier transforms along any axes; ``lax.fft`` transforms the last ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axis,
    concrete_or_error,
    convert,
    direct,
    like,
    static_axis,
    user_dtype,
)
from catena.numpy.creation import default_float
from catena.numpy.documentation import family
from catena.numpy.editing import roll
from catena.numpy.manipulation import moveaxis
from catena.numpy.placement import placed
from catena.numpy.promotion import promote_dtypes_inexact
from catena.numpy.ranges import arange
from catena.numpy.reading import read
from catena.typing import ArrayLike, DTypeLike

_MOST_AXES = 3  # that lax.fft transforms at once
_NORMS = (None, "backward", "ortho", "forward")
Axes = Sequence[int] | None


def _lengths(name: str, s) -> tuple | None:
    return None if s is None else tuple(operator.index(n) for n in s)


def _axes(name: str, axes, s, rank: int) -> tuple:
    """The axes to transform; by default the last as many as there are lengths, or all."""
    if axes is None:
        count = rank if s is None else len(s)
        if count > rank:
            raise ValueError(f"{name}: {count} lengths were given for an array of {rank} dimensions")
        return tuple(range(rank - count, rank))
    axes = tuple(canonical_axis(operator.index(i), rank) for i in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name} does not support repeated axes. Got axes {list(axes)}.")
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{name}: s and axes must have the same length, got {len(s)} and {len(axes)}")
    return axes


def _check_norm(norm):
    if norm not in _NORMS:
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')


@whole
def _transform(name: str, kind: lax.FftType, a, s, axes, norm):
    """The transform of any kind over any axes."""
    _check_norm(norm)
    a = as_array_argument(name, a)
    s = _lengths(name, s)
    axes = _axes(name, axes, s, a.ndim)
    if s is not None and any(n < 1 for n in s):
        raise ValueError(f"Shape should be positive, got {s}")
    if not axes:
        dtype = dtypes.to_inexact_dtype(a.dtype)
        return convert(a, dtype if kind is lax.FftType.RFFT else dtypes.to_complex_dtype(dtype))
    if kind is lax.FftType.RFFT and dtypes.is_complex(a.dtype):
        raise ValueError("only real valued inputs supported for rfft")
    a = _widened(a, kind)
    last = tuple(range(a.ndim - len(axes), a.ndim))
    a = moveaxis(a, axes, last)
    lengths = _output_lengths(a, s, len(axes), kind)
    if s is None and not all(lengths):  # as in JAX; also the signal of a spectrum of one value
        return moveaxis(_nothing(a, lengths, kind), last, axes)
    a = _resized(a, lengths, kind)
    result = _scaled(_in_steps(a, kind, lengths), kind, norm, lengths)
    return moveaxis(result, last, axes)


def _widened(a, kind):
    """``a`` in a dtype that can be transformed: float32 or wider, complex but for RFFT."""
    dtype = dtypes.to_inexact_dtype(a.dtype)
    if dtypes.is_floating(dtype) and dtype.itemsize < 4:
        dtype = np.dtype("float32")
    return convert(a, dtype if kind is lax.FftType.RFFT else dtypes.to_complex_dtype(dtype))


def _output_lengths(a, s, count: int, kind) -> tuple:
    """The lengths of the signal along the transformed axes."""
    if s is not None:
        return s
    lengths = a.shape[a.ndim - count :]
    return (*lengths[:-1], max(2 * (lengths[-1] - 1), 0)) if kind is lax.FftType.IRFFT else lengths


def _nothing(a, lengths, kind):
    """The transform of no elements, which has none; but a real one of length 0 would have a value."""
    others, last = a.shape[: a.ndim - len(lengths)], lengths[-1]
    if kind is lax.FftType.RFFT:
        if not last:
            raise ValueError(f"rfft needs at least one element along the last of its axes, got shape {a.shape}")
        last = last // 2 + 1
    dtype = dtypes.to_real_dtype(a.dtype) if kind is lax.FftType.IRFFT else dtypes.to_complex_dtype(a.dtype)
    return lax.full((*others, *lengths[:-1], last), 0, dtype)


def _resized(a, lengths, kind):
    """``a`` cut, or padded with zeros, to the lengths that the transform reads."""
    wanted = [*lengths]
    if kind is lax.FftType.IRFFT:
        wanted[-1] = wanted[-1] // 2 + 1
    have = a.shape[a.ndim - len(lengths) :]
    if have == tuple(wanted):
        return a
    a = read(a, (..., *(slice(0, n) for n in wanted)))
    missing = [(0, n - m, 0) for n, m in zip(wanted, a.shape[a.ndim - len(lengths) :], strict=True)]
    return lax.pad(a, lax.full((), 0, a.dtype), [(0, 0, 0)] * (a.ndim - len(lengths)) + missing)


def _in_steps(a, kind, lengths):
    """The transform of the last axes, at most three at a time."""
    complex_kind = lax.FftType.IFFT if kind in (lax.FftType.IFFT, lax.FftType.IRFFT) else lax.FftType.FFT
    if len(lengths) <= _MOST_AXES:
        return lax.fft(a, kind, lengths)
    first, last = lengths[:-_MOST_AXES], lengths[-_MOST_AXES:]
    if kind is lax.FftType.RFFT:
        a = lax.fft(a, kind, last)
    source = tuple(range(a.ndim - len(lengths), a.ndim - _MOST_AXES))
    target = tuple(range(a.ndim - len(first), a.ndim))
    a = moveaxis(_in_steps(moveaxis(a, source, target), complex_kind, first), target, source)
    return a if kind is lax.FftType.RFFT else lax.fft(a, kind, last)


def _scaled(result, kind, norm, lengths):
    """``lax.fft`` divides inverse transforms by the number of elements, others not at all."""
    inverse = kind in (lax.FftType.IFFT, lax.FftType.IRFFT)
    n = float(np.prod(lengths))
    if norm == "ortho":
        return lax.mul(result, like(result, n**0.5 if inverse else n**-0.5))
    if norm == "forward":
        return lax.mul(result, like(result, n if inverse else 1 / n))
    return result


def _one(name: str, kind, a, n, axis, norm):
    """The transform along one axis."""
    if axis is None or isinstance(axis, tuple | list):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use jax.numpy.fft.{name}n. Got "
            f"axis = {axis!r}."
        )
    axis = operator.index(axis)
    a = as_array_argument(name, a)
    if name in _BY_NUMPY and direct(a) and a.dtype in NUMPY_FFT and 0 < a.size <= 1 << 12 and norm in _NORMS:
        if (n is None or (type(n) is int and n > 0)) and -a.ndim <= axis < a.ndim and a.shape[axis]:
            if not (name == "rfft" and a.dtype.kind == "c"):
                return make_array(getattr(np.fft, name)(a._value, n, axis, norm))
    return _transform(name, kind, a, None if n is None else (n,), (axis,), norm)


NUMPY_FFT = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))
_BY_NUMPY = frozenset(("fft", "ifft", "rfft"))


def _two(name: str, kind, a, s, axes, norm):
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


_along_axis = family(
    a="an array.",
    n="the length of the transform: longer than the axis pads with zeros, shorter cuts.",
    axis="the axis.",
    norm=(
        'where to divide by the length: "backward" (or None) in inverse transforms, "forward" in others,\n'
        '"ortho" by its root in both.'
    ),
    returns="A complex array.",
    raises="ValueError: the axis is out of bounds, ``n`` is not positive, or ``norm`` is unknown.",
)


@_along_axis
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis.

    >>> import catena.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 2.0, 1.0, 2.0]))
    Array([ 6.+0.j,  0.+0.j, -2.+0.j,  0.+0.j], dtype=complex64)
    """
    return _one("fft", lax.FftType.FFT, a, n, axis, norm)


@_along_axis
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of the discrete Fourier transform along an axis.

    >>> import catena.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([6.0, 0.0, -2.0, 0.0]))
    Array([1.+0.j, 2.+0.j, 1.+0.j, 2.+0.j], dtype=complex64)
    """
    return _one("ifft", lax.FftType.IFFT, a, n, axis, norm)


@_along_axis
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform of real values along an axis: the nonnegative half of the spectrum.

    Arguments:
      a: a real array.
    Returns:
      A complex array, with ``n // 2 + 1`` values along the axis.

    >>> import catena.numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1.0, 2.0, 1.0, 2.0]))
    Array([ 6.+0.j,  0.+0.j, -2.+0.j], dtype=complex64)
    """
    return _one("rfft", lax.FftType.RFFT, a, n, axis, norm)


@_along_axis
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``rfft``.

    Arguments:
      a: half of a spectrum.
      n: the length of the result; by default ``2 * (m - 1)`` for ``m`` values.
    Returns:
      A real array.

    >>> import catena.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([6.0, 0.0, -2.0]))
    Array([1., 2., 1., 2.], dtype=float32)
    """
    return _one("irfft", lax.FftType.IRFFT, a, n, axis, norm)


@_along_axis
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform of a Hermitian signal, given by its first half: a real spectrum.

    Arguments:
      a: half of a signal.
      n: the length of the result; by default ``2 * (m - 1)`` for ``m`` values.
    Returns:
      A real array.

    >>> import catena.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 2.0, 1.0]))
    Array([ 6.,  0., -2.,  0.], dtype=float32)
    """
    a = as_array_argument("hfft", a)
    a = lax.conj(a) if dtypes.is_complex(a.dtype) else a
    return _one("hfft", lax.FftType.IRFFT, a, n, axis, _reversed_norm(norm))


@_along_axis
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of ``hfft``.

    Arguments:
      a: a real spectrum.
    Returns:
      A complex array, with ``n // 2 + 1`` values along the axis.

    >>> import catena.numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([6.0, 0.0, -2.0, 0.0]))
    Array([1.-0.j, 2.-0.j, 1.-0.j], dtype=complex64)
    """
    return lax.conj(_one("ihfft", lax.FftType.RFFT, a, n, axis, _reversed_norm(norm)))


def _reversed_norm(norm):
    """The norm by which a transform in the other direction divides."""
    _check_norm(norm)
    return {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}[norm]


_along_axes = family(
    a="an array.",
    s="the lengths of the transform: longer than the axes pad with zeros, shorter cut.",
    axes="the axes; by default the last as many as there are lengths, or all.",
    norm=(
        'where to divide by the number of elements: "backward" (or None) in inverse transforms, "forward"\n'
        'in others, "ortho" by its root in both.'
    ),
    returns="A complex array.",
    raises="ValueError: an axis is out of bounds or repeated, a length is not positive, or ``norm`` is unknown.",
)


@_along_axes
def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None) -> Array:
    """The discrete Fourier transform along several axes.

    >>> import catena.numpy as jnp
    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("fftn", lax.FftType.FFT, a, s, axes, norm)


@_along_axes
def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None) -> Array:
    """The inverse of ``fftn``.

    >>> import catena.numpy as jnp
    >>> jnp.fft.ifftn(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("ifftn", lax.FftType.IFFT, a, s, axes, norm)


@_along_axes
def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None) -> Array:
    """The discrete Fourier transform of real values along several axes: half of the spectrum along the last.

    >>> import catena.numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transform("rfftn", lax.FftType.RFFT, a, s, axes, norm)


@_along_axes
def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Axes = None, norm: str | None = None) -> Array:
    """The inverse of ``rfftn``.

    Arguments:
      s: the lengths of the result; by default those of ``a``, but ``2 * (m - 1)`` along the last axis.
    Returns:
      A real array.

    >>> import catena.numpy as jnp
    >>> jnp.fft.irfftn(jnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transform("irfftn", lax.FftType.IRFFT, a, s, axes, norm)


@_along_axes
def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The discrete Fourier transform along two axes.

    Arguments:
      axes: the axes.

    >>> import catena.numpy as jnp
    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _two("fft2", lax.FftType.FFT, a, s, axes, norm)


@_along_axes
def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of ``fft2``.

    Arguments:
      axes: the axes.

    >>> import catena.numpy as jnp
    >>> jnp.fft.ifft2(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _two("ifft2", lax.FftType.IFFT, a, s, axes, norm)


@_along_axes
def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The discrete Fourier transform of real values along two axes: half of the spectrum along the last.

    Arguments:
      axes: the axes.

    >>> import catena.numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _two("rfft2", lax.FftType.RFFT, a, s, axes, norm)


@_along_axes
def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of ``rfft2``.

    Arguments:
      s: the lengths of the result; by default those of ``a``, but ``2 * (m - 1)`` along the last axis.
      axes: the axes.
    Returns:
      A real array.

    >>> import catena.numpy as jnp
    >>> jnp.fft.irfft2(jnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _two("irfft2", lax.FftType.IRFFT, a, s, axes, norm)


# ----------------------------------------------------------------------------------------------------
# Frequencies


def _frequencies(name: str, n, d, dtype, device, places) -> Array:
    n = concrete_or_error(lambda v: v, n, f"The n argument of jnp.fft.{name} must be static")
    if np.ndim(n):
        raise ValueError(f"The n argument of jnp.fft.{name} only takes an int. Got n = {n}.")
    d = as_array_argument(name, d, 1)
    dtype = user_dtype(dtype, name, default_float())
    numbers = lax.convert_element_type(places(int(n)), dtype)  # no constants, of which each length would have its own
    spacing = lax.mul(convert(d, dtype), lax.full(d.shape, n, dtype))
    return placed(convert(lax.div(*promote_dtypes_inexact(name, numbers, spacing)), dtype), device)


def _centred(numbers: Array, n: int) -> Array:
    return lax.select(lax.ge(numbers, (n + 1) // 2), lax.sub(numbers, n), numbers)


_of_spectra = family(
    n="the length of the transform.",
    d="the distance of samples.",
    dtype="the dtype of the result; by default the default float.",
    device="the device to put the result on; None for the default one.",
    raises="ValueError: ``n`` is not a number.",
)


@_of_spectra
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the values that ``fft`` returns.

    Returns:
      A 1-D array of ``n`` frequencies: nonnegative ones, then negative ones.

    >>> import catena.numpy as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _frequencies("fftfreq", n, d, dtype, device, lambda n: _centred(arange(n), n))


@_of_spectra
def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the values that ``rfft`` returns.

    Returns:
      A 1-D array of ``n // 2 + 1`` frequencies.

    >>> import catena.numpy as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    return _frequencies("rfftfreq", n, d, dtype, device, lambda n: arange(n // 2 + 1))


def _shifted(name: str, x, axes, by) -> Array:
    x = as_array_argument(name, x)
    axes = static_axis(axes)
    axes = tuple(range(x.ndim)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    return roll(x, [by(x.shape[canonical_axis(i, x.ndim)]) for i in axes], axes) if axes else x


@whole
def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """A spectrum with frequency zero moved to the middle.

    Arguments:
      x: an array.
      axes: the axes; by default all.
    Returns:
      An array of the shape of ``x``.
    Raises:
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.fft.fftshift(jnp.array([0, 1, -2, -1]))
    Array([-2, -1,  0,  1], dtype=int32)
    """
    return _shifted("fftshift", x, axes, lambda n: n // 2)


@whole
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of ``fftshift``.

    Arguments:
      x: an array.
      axes: the axes; by default all.
    Returns:
      An array of the shape of ``x``.
    Raises:
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, lambda n: -(n // 2))
