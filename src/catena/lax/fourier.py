"""Discrete Fourier transforms: any lengths, batched, in single and double precision.

Compiled, they are native (`compiler/graph/fourier.py`), and so are those of some size that are evaluated again and
again. Small ones, and what is evaluated for the first time, SciPy transforms.
"""

from __future__ import annotations

import enum
import math
import operator

import numpy as np

from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.axes import move_axis
from catena.core.primitive import Primitive
from catena.core.zeros import Zero, get_aval, instantiate
from catena.lax import native
from catena.lax.arithmetic import mul
from catena.lax.complex_numbers import conj, real
from catena.lax.convert import convert_element_type
from catena.lax.shape import pad
from catena.lax.structure import broadcast_to, dense, like
from catena.runtime import fourier


class FftType(enum.IntEnum):
    """The kinds of Fourier transforms: complex, its inverse, real to half of complex, and its inverse.

    >>> FftType.RFFT
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


FFT, IFFT, RFFT, IRFFT = FftType


def _fft_abstract(x, *, fft_type, fft_lengths):
    n = len(fft_lengths)
    if x.ndim < n:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths {fft_lengths}."
        )
    if fft_type is RFFT:
        if x.dtype not in (np.float32, np.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {dtypes.dtype_name(x.dtype)}")
    elif not dtypes.is_complex(x.dtype):
        raise ValueError(f"{fft_type.name} input must be complex64 or complex128, got {dtypes.dtype_name(x.dtype)}")
    expected = _half(fft_lengths) if fft_type is IRFFT else fft_lengths
    if x.shape[x.ndim - n :] != expected:
        raise ValueError(
            f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to "
            + (f"fft_lengths {fft_lengths}" if fft_type is not IRFFT else f"{expected} for fft_lengths {fft_lengths}")
        )
    shape = x.shape[: x.ndim - n] + (_half(fft_lengths) if fft_type is RFFT else fft_lengths)
    if fft_type is RFFT:
        return ShapedArray(shape, dtypes.to_complex_dtype(x.dtype))
    return ShapedArray(shape, dtypes.to_real_dtype(x.dtype) if fft_type is IRFFT else x.dtype)


def _half(lengths: tuple) -> tuple:
    """The lengths of a real transform's spectrum, of which one half is redundant."""
    return (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)


def _in_scipy(x, *, fft_type, fft_lengths):
    if x.size == 0:
        lengths = _half(fft_lengths) if fft_type is RFFT else fft_lengths
        return np.zeros(x.shape[: x.ndim - len(lengths)] + lengths, _OUT_DTYPE[fft_type](x.dtype))
    return fourier.transform(fft_type.name.lower(), dense(x), fft_lengths)  # SciPy 1.18 goes by strides otherwise


_OUT_DTYPE = {
    FFT: lambda d: d,
    IFFT: lambda d: d,
    RFFT: dtypes.to_complex_dtype,
    IRFFT: dtypes.to_real_dtype,
}


def _fft_jvp(primals, tangents, **params):
    out = fft_p.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return out, Zero.of_primal(out)
    return out, fft_p.bind(tangents[0], **params)


def _fft_transpose(ct, x, *, fft_type, fft_lengths):
    ct = instantiate(ct)
    if fft_type is RFFT:
        return [_rfft_transpose(ct, fft_lengths)]
    if fft_type is IRFFT:
        return [_irfft_transpose(ct, fft_lengths)]
    return [fft_p.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]  # its matrix is symmetric


def _rfft_transpose(ct, lengths):
    """The full transform of the half spectrum filled up with zeros; of it the real part."""
    missing = lengths[-1] - _half(lengths)[-1]
    config = [(0, 0, 0)] * (get_aval(ct).ndim - 1) + [(0, missing, 0)]
    full = pad(ct, like(ct, 0), config)
    return real(fft_p.bind(full, fft_type=FFT, fft_lengths=lengths))


def _irfft_transpose(ct, lengths):
    """The half transform, its inner elements doubled, since each stands for two, and divided by the size."""
    half = fft_p.bind(ct, fft_type=RFFT, fft_lengths=lengths)
    n, m = lengths[-1], _half(lengths)[-1]
    weights = np.full(m, 2.0)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    aval = get_aval(half)
    weights = (weights / math.prod(lengths)).astype(aval.dtype).reshape((1,) * (aval.ndim - 1) + (m,))
    return conj(mul(half, broadcast_to(weights, aval.shape)))


def _fft_batch(axis, args, dims, **params):
    return fft_p.bind(move_axis(args[0], dims[0], 0), **params), 0


def _fft_lower(b, x, *, fft_type, fft_lengths):
    shape = x.shape[: len(x.shape) - len(fft_lengths)]
    shape += _half(fft_lengths) if fft_type is RFFT else fft_lengths
    out = (shape, _OUT_DTYPE[fft_type](x.dtype))
    return b.library("fft", [x], [out], kind=fft_type.name.lower(), lengths=fft_lengths)[0]


fft_p = Primitive(
    "fft",
    abstract=_fft_abstract,
    evaluate=_in_scipy,
    jvp=_fft_jvp,
    transpose=_fft_transpose,
    batch=_fft_batch,
    lower=_fft_lower,
)
fft_p.evaluate = native.shaped(fft_p, _in_scipy)


def fft(x, fft_type: FftType | str, fft_lengths):
    """The discrete Fourier transform over the last one or several axes.

    Arguments:
      x: the array. Real values are made complex for FFT, IFFT and IRFFT, integers float for RFFT.
      fft_type: FFT, IFFT (which divides by the number of elements), RFFT (real to the half spectrum) or
        IRFFT; a member of FftType or its name.
      fft_lengths: the lengths of the transformed axes: those of ``x``, or for IRFFT those of the result. Without any,
        ``x`` is the result.
    Returns:
      The transform; it has ``fft_lengths[-1] // 2 + 1`` elements along the last axis for RFFT.
    Raises:
      ValueError: the kind is unknown, the lengths are not those of ``x``, or RFFT gets complex values.

    >>> import numpy as np
    >>> fft(np.array([1.0, 2.0, 1.0, 2.0]), "RFFT", (4,)).real
    Array([ 6.,  0., -2.], dtype=float32)
    """
    kind = _fft_type(fft_type)
    lengths = tuple(map(operator.index, fft_lengths))
    dtype = get_aval(x).dtype
    if kind is RFFT:
        if dtypes.is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
        if not dtypes.is_inexact(dtype):
            x = convert_element_type(x, dtypes.to_inexact_dtype(dtype))
    elif not dtypes.is_complex(dtype):
        x = convert_element_type(x, dtypes.to_complex_dtype(dtype))
    if not lengths:
        return convert_element_type(x, get_aval(x).dtype)
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)


def _fft_type(kind) -> FftType:
    if isinstance(kind, FftType):
        return kind
    if isinstance(kind, str):
        if kind.upper() in FftType.__members__:
            return FftType[kind.upper()]
        raise ValueError(f"Unknown FFT type '{kind}'")
    raise TypeError(f"Unknown FFT type value '{kind}'")
