"""Spectra of signals cut into overlapping segments, and signals from such spectra.

Source: Welch, "The use of fast Fourier transform for the estimation of power spectra" (1967); for the way back,
Griffin and Lim, "Signal estimation from modified short-time Fourier transform" (1984).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.array import Array
from catena.core.lazy import LazyModule
from catena.core.named import NamedTuple
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis, convert
from catena.scipy.signal.trends import detrend as without_trend
from catena.typing import ArrayLike

_scipy_windows = LazyModule("scipy.signal.windows")


# ------------------------------------------------------------------------------------------------------------
# How a signal is cut


# Windows that are sums of cosines, and the coefficients of these: they are computed here, since the first import of
# SciPy's module of signals takes as long as compiling twenty programs.
COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 1.0 - 0.54),
    "blackman": (0.42, 0.50, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}


class Cuts(NamedTuple):
    """The window, the length of segments, how far one begins after another, and the length of transforms."""

    window: Any
    length: int
    step: int
    transform: int


def _window_of(name: str, window, length: int | None, longest: int | None):
    """A window as an array, and its length; one that is given by name has at most the signal's length."""
    if isinstance(window, str | tuple):
        length = longest if length is None else length if longest is None else min(length, longest)
        return _window_by_name(window, length), length
    window = jnp.asarray(window)
    if window.ndim != 1:
        raise ValueError(f"{name}: window must be a name, or a vector, got shape {window.shape}")
    if length is not None and length != len(window):
        raise ValueError(f"{name}: window must have nperseg = {length} elements, got {len(window)}")
    return window, len(window)


def _window_by_name(window, length: int):
    """One period of a window, as SciPy's ``get_window`` has it."""
    if not isinstance(window, str) or window not in COSINES or length < 2:
        return _scipy_windows.get_window(window, length)
    turn = np.linspace(-np.pi, np.pi, length + 1)[:-1]
    values = np.zeros(length)
    for k, coefficient in enumerate(COSINES[window]):  # in SciPy's order: the same bits
        values += coefficient * np.cos(k * turn)
    return values


def _cuts(name: str, window, nperseg, noverlap, nfft, longest=None) -> Cuts:
    length = None if nperseg is None else int(nperseg)
    if length is not None and length < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    window, length = _window_of(name, window, length, longest)
    transform = length if nfft is None else int(nfft)
    if transform < length:
        raise ValueError(f"{name}: nfft must be at least nperseg, got {nfft} and {length}")
    overlap = length // 2 if noverlap is None else int(noverlap)
    if overlap >= length:
        raise ValueError(f"{name}: noverlap must be less than nperseg, got {noverlap} and {length}")
    return Cuts(window, length, length - overlap, transform)


def _segments(x, cuts: Cuts):
    """The segments of the last axis, each a row; where they fit, from blocks of one step, without a gather."""
    count = (x.shape[-1] - cuts.length) // cuts.step + 1
    blocks, rest = divmod(cuts.length, cuts.step)
    if rest:
        places = np.arange(count)[:, None] * cuts.step + np.arange(cuts.length)
        return x[..., places]
    x = x[..., : (count + blocks - 1) * cuts.step].reshape(*x.shape[:-1], -1, cuts.step)
    return jnp.concatenate([x[..., i : i + count, :] for i in range(blocks)], -1)


def _overlapped(x, cuts: Cuts):
    """The sum of segments, each a row, at their places in a signal."""
    count = x.shape[-2]
    size = cuts.length + (count - 1) * cuts.step
    blocks, rest = divmod(cuts.length, cuts.step)
    if rest:
        places = np.arange(count)[:, None] * cuts.step + np.arange(cuts.length)
        return jnp.zeros((*x.shape[:-2], size), x.dtype).at[..., places].add(x)
    x = x.reshape(*x.shape[:-1], blocks, cuts.step)
    beside = [(0, 0)] * (x.ndim - 3)
    parts = [jnp.pad(x[..., i, :], [*beside, (i, blocks - 1 - i), (0, 0)]) for i in range(blocks)]
    return sum(parts[1:], parts[0]).reshape(*x.shape[:-3], size)


# ------------------------------------------------------------------------------------------------------------
# Spectra


_BORDERS = {
    "even": ("reflect", "even"),
    "odd": ("reflect", "odd"),
    "constant": ("edge", None),
    "zeros": ("constant", None),
}


def _bordered(x, boundary: str | None, size: int):
    """``x`` with ``size`` more elements at both ends of its last axis."""
    if boundary is None or not size:
        return x
    mode, kind = _BORDERS[boundary]
    width = [(0, 0)] * (x.ndim - 1) + [(size, size)]
    return jnp.pad(x, width, mode=mode, **({"reflect_type": kind} if kind else {}))


def _trend(name: str, detrend, axis: int) -> Callable:
    """What is done to segments before the window; a function of the user's finds them along ``axis``."""
    if isinstance(detrend, str):
        return partial(without_trend, type=detrend)
    if callable(detrend):
        return lambda x: jnp.moveaxis(detrend(jnp.moveaxis(x, -1, axis)), axis, -1)
    if detrend is False:
        return lambda x: x
    raise ValueError(f"{name}: detrend must be 'constant', 'linear', False or a function, got {detrend!r}")


def _float_signal(name: str, x, position: int = 0):
    x = as_array_argument(name, x, position)
    return convert(x, dtypes.to_inexact_dtype(x.dtype))


def _transformed(name, signals, fs, cuts, detrend, onesided: bool, axis: int, boundary, padded: bool):
    """The transforms of the segments of signals, ``(..., time, frequency)``; their times and frequencies."""
    trend = _trend(name, detrend, axis)
    out = []
    for x in signals:
        x = _bordered(x, boundary, cuts.length // 2)
        if padded:
            missing = -(x.shape[-1] - cuts.length) % cuts.step
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
        rows = trend(_segments(x, cuts)) * jnp.asarray(cuts.window).astype(x.dtype)
        out.append((jnp.fft.rfft if onesided else jnp.fft.fft)(rows, cuts.transform))
    real_dtype = dtypes.to_real_dtype(out[0].dtype)
    frequencies = (jnp.fft.rfftfreq if onesided else jnp.fft.fftfreq)(cuts.transform, dtype=real_dtype) * fs
    first = 0.0 if boundary is not None else cuts.length / 2
    times = jnp.asarray((first + cuts.step * np.arange(out[0].shape[-2])).astype(real_dtype)) / fs
    return out, convert(frequencies, real_dtype), convert(times, real_dtype)


def _scale(name: str, scaling: str, window, fs):
    """What powers are multiplied by."""
    window = jnp.asarray(window)
    if scaling == "density":
        return 1 / (fs * jnp.sum(window * window))
    if scaling == "spectrum":
        return 1 / jnp.sum(window) ** 2
    raise ValueError(f"{name}: scaling must be 'density' or 'spectrum', got {scaling!r}")


@whole
def stft(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: bool = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: a spectrum of each segment of a signal.

    Arguments:
      x: a signal; integers become floats.
      fs: how many samples there are in one unit of time.
      window: a name, or name and parameters, that SciPy's ``get_window`` knows; or a vector of ``nperseg`` elements.
      nperseg: the length of segments; with a window by name at most that of the signal.
      noverlap: how many samples segments share; half of ``nperseg`` by default.
      nfft: the length of transforms; segments are filled up with zeros. ``nperseg`` by default.
      detrend: what is taken off segments first: "constant", "linear", False for nothing, or a function.
      return_onesided: whether to leave out the negative frequencies of real signals.
      boundary: what to put before and after the signal: "zeros", "even", "odd", "constant", or None for nothing.
      padded: whether to fill the signal up to whole segments with zeros.
      axis: the axis of time.
    Returns:
      Frequencies, times, and the transforms: frequencies along ``axis``, times along a last axis.
    Raises:
      ValueError: an argument is out of range or unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> f, t, z = jsp.signal.stft(jnp.ones(64), nperseg=16)
    >>> z.shape, abs(z[0, 3]).round(4)
    ((9, 9), Array(1., dtype=float32))
    """
    x = _float_signal("stft", x)
    if boundary is not None and boundary not in _BORDERS:
        raise ValueError(f"stft: boundary must be one of {', '.join(_BORDERS)} or None, got {boundary!r}")
    axis = canonical_axis(axis, x.ndim)
    if not x.size:
        real_dtype = dtypes.to_real_dtype(x.dtype)
        empty = jnp.zeros(x.shape, real_dtype)
        return empty, empty, jnp.zeros(x.shape, dtypes.to_complex_dtype(x.dtype))
    x = jnp.moveaxis(x, axis, -1)
    cuts = _cuts("stft", window, nperseg, noverlap, nfft, x.shape[-1])
    onesided = return_onesided and not dtypes.is_complex(x.dtype)
    (z,), frequencies, times = _transformed("stft", [x], fs, cuts, detrend, onesided, axis, boundary, padded)
    scale = jnp.sqrt(_scale("stft", "spectrum", cuts.window, fs)).astype(z.dtype)
    return frequencies, times, jnp.moveaxis(jnp.swapaxes(z * scale, -1, -2), -2, axis)


@whole
def csd(
    x: Array,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross power spectral density of two signals, by Welch's method: an average over segments.

    Arguments:
      x, y: signals of one rank; the shorter one is filled up with zeros. None for ``y`` means ``x``.
      fs, window, noverlap, nfft, return_onesided, axis: as for ``stft``.
      nperseg: the length of segments; by default that of the window, or, with a window by name, of the whole signal.
      detrend: what is taken off segments first, as for ``stft``.
      scaling: "density", power by frequency, or "spectrum", power.
      average: "mean" or "median" over segments.
    Returns:
      Frequencies, and the powers at them: complex, or real where ``y`` is None.
    Raises:
      ValueError: an argument is out of range or unknown, or shapes do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> x = jnp.sin(jnp.arange(256.0))
    >>> f, p = jsp.signal.csd(x, x, nperseg=64)
    >>> f[jnp.argmax(abs(p))]
    Array(0.15625, dtype=float32)
    """
    return _power("csd", x, y, fs, (window, nperseg, noverlap, nfft), detrend, return_onesided, scaling, axis, average)


@whole
def welch(
    x: Array,
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: an average over segments.

    Arguments:
      x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as for ``csd``.
    Returns:
      Frequencies, and the powers at them, real.
    Raises:
      ValueError: an argument is out of range or unknown.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> f, p = jsp.signal.welch(jnp.sin(jnp.arange(256.0)), nperseg=64)
    >>> f[jnp.argmax(p)]
    Array(0.15625, dtype=float32)
    """
    cut = (window, nperseg, noverlap, nfft)
    return _power("welch", x, None, fs, cut, detrend, return_onesided, scaling, axis, average)


def _power(name: str, x, y, fs, cut: tuple, detrend, return_onesided, scaling, axis, average):
    if average not in ("mean", "median"):
        raise ValueError(f"{name}: average must be 'mean' or 'median', got {average!r}")
    signals = [_float_signal(name, v, i) for i, v in enumerate((x, y)) if v is not None]
    if len({v.ndim for v in signals}) > 1:
        raise ValueError(f"{name}: x and y must have the same rank, got shapes {signals[0].shape}, {signals[1].shape}")
    axis = canonical_axis(axis, signals[0].ndim)
    dtype = jnp.result_type(*signals)
    signals = [jnp.moveaxis(v, axis, -1).astype(dtype) for v in signals]
    stack = lax.broadcast_shapes(*(v.shape[:-1] for v in signals))
    real_dtype = dtypes.to_real_dtype(dtype)
    if not all(v.size for v in signals):
        shape = (*stack, min(v.shape[-1] for v in signals))
        powers = jnp.zeros(shape, real_dtype if y is None else dtypes.to_complex_dtype(dtype))
        return jnp.zeros(shape, real_dtype), jnp.moveaxis(powers, -1, axis)
    longest = max(v.shape[-1] for v in signals)
    signals = [jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, longest - v.shape[-1])]) for v in signals]
    cuts = _cuts(name, *cut, longest)
    onesided = return_onesided and not dtypes.is_complex(dtype)
    scale = _scale(name, scaling, cuts.window, fs)
    out, frequencies, _ = _transformed(name, signals, fs, cuts, detrend, onesided, axis, None, False)
    powers = jnp.real(jnp.conj(out[0]) * out[0]) if y is None else jnp.conj(out[0]) * out[1]
    powers = powers * _weights(cuts.transform, onesided).astype(real_dtype) * scale.astype(real_dtype)
    return frequencies, jnp.moveaxis(_averaged(powers, average), -1, axis)


def _weights(n: int, onesided: bool) -> np.ndarray:
    """Two for frequencies that stand for their negatives, too."""
    if not onesided:
        return np.ones(n)
    return np.where((np.arange(n // 2 + 1) == 0) | (2 * np.arange(n // 2 + 1) == n), 1.0, 2.0)


def _averaged(powers, average: str):
    """The average over segments; of medians without their bias, which is that of exponential variables."""
    n = powers.shape[-2]
    if average == "mean" or n == 1:
        return powers.mean(-2)
    even = 2.0 * np.arange(1, (n - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if not dtypes.is_complex(powers.dtype):
        return jnp.median(powers, -2) / bias
    return lax.complex(jnp.median(powers.real, -2), jnp.median(powers.imag, -2)) / bias


# ------------------------------------------------------------------------------------------------------------
# And back


@whole
def istft(
    Zxx: Array,  # noqa: N803
    fs: ArrayLike = 1.0,
    window: str = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal for its short-time Fourier transform, by weighted overlaps.

    Arguments:
      Zxx: the transforms, as ``stft`` returns them.
      fs, window, noverlap: as they were for ``stft``.
      nperseg: the length of segments; by default what frequencies tell.
      nfft: the length of transforms; ``nperseg`` by default.
      input_onesided: whether negative frequencies were left out.
      boundary: whether ``stft`` put something before and after the signal, which is to be left out.
      time_axis, freq_axis: the axes of times and of frequencies.
    Returns:
      Times, and the signal: real where ``input_onesided``, with time along ``time_axis``.
    Raises:
      ValueError: an argument is out of range or unknown, or shapes do not fit.

    >>> import catena.numpy as jnp, catena.scipy as jsp
    >>> x = jnp.arange(8.0)
    >>> jsp.signal.istft(jsp.signal.stft(x, nperseg=4)[2])[1].round(4)
    Array([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float32)
    """
    z = as_array_argument("istft", Zxx)
    z = convert(z, dtypes.to_complex_dtype(z.dtype))
    if z.ndim < 2:
        raise ValueError(f"istft: Zxx must have at least two dimensions, got shape {z.shape}")
    time_axis, freq_axis = canonical_axis(time_axis, z.ndim), canonical_axis(freq_axis, z.ndim)
    if time_axis == freq_axis:
        raise ValueError(f"istft: time_axis and freq_axis must differ, got {time_axis} for both")
    z = jnp.moveaxis(z, (time_axis, freq_axis), (-2, -1))
    told = 2 * (z.shape[-1] - 1) if input_onesided else z.shape[-1]
    length = int(nperseg) if nperseg else told
    nfft = length if nfft is None and input_onesided and length == told + 1 else (told if nfft is None else nfft)
    cuts = _cuts("istft", window, length, noverlap, nfft)
    rows = (jnp.fft.irfft if input_onesided else jnp.fft.ifft)(z, cuts.transform)[..., : cuts.length]
    weights = jnp.asarray(cuts.window).astype(rows.dtype)
    norm = _overlapped(jnp.broadcast_to(weights * weights, rows.shape[-2:]), cuts)
    x = _overlapped(rows * weights * jnp.sum(weights), cuts) / jnp.where(jnp.abs(norm) > 1e-10, norm, 1)
    if boundary:
        half = cuts.length // 2
        x = x[..., half : x.shape[-1] - half]
    real_dtype = dtypes.to_real_dtype(x.dtype)
    times = convert(jnp.arange(x.shape[-1], dtype=real_dtype) / fs, real_dtype)
    return times, jnp.moveaxis(x, -1, time_axis - (freq_axis < time_axis))
