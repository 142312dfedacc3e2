"""Signals: convolutions, spectra, trends."""

from catena.core.namespace import shown as _shown
from catena.scipy.signal.convolutions import convolve as convolve
from catena.scipy.signal.convolutions import convolve2d as convolve2d
from catena.scipy.signal.convolutions import correlate as correlate
from catena.scipy.signal.convolutions import correlate2d as correlate2d
from catena.scipy.signal.convolutions import fftconvolve as fftconvolve
from catena.scipy.signal.spectral import csd as csd
from catena.scipy.signal.spectral import istft as istft
from catena.scipy.signal.spectral import stft as stft
from catena.scipy.signal.spectral import welch as welch
from catena.scipy.signal.trends import detrend as detrend

__dir__ = _shown(globals())
