"""Discrete Fourier transforms."""

from catena.core.namespace import shown as _shown
from catena.numpy import protocol as _protocol
from catena.numpy.fft.transforms import fft as fft
from catena.numpy.fft.transforms import fft2 as fft2
from catena.numpy.fft.transforms import fftfreq as fftfreq
from catena.numpy.fft.transforms import fftn as fftn
from catena.numpy.fft.transforms import fftshift as fftshift
from catena.numpy.fft.transforms import hfft as hfft
from catena.numpy.fft.transforms import ifft as ifft
from catena.numpy.fft.transforms import ifft2 as ifft2
from catena.numpy.fft.transforms import ifftn as ifftn
from catena.numpy.fft.transforms import ifftshift as ifftshift
from catena.numpy.fft.transforms import ihfft as ihfft
from catena.numpy.fft.transforms import irfft as irfft
from catena.numpy.fft.transforms import irfft2 as irfft2
from catena.numpy.fft.transforms import irfftn as irfftn
from catena.numpy.fft.transforms import rfft as rfft
from catena.numpy.fft.transforms import rfft2 as rfft2
from catena.numpy.fft.transforms import rfftfreq as rfftfreq
from catena.numpy.fft.transforms import rfftn as rfftn

_protocol.open_namespace(globals(), "catena.numpy.fft")

__dir__ = _shown(globals())
