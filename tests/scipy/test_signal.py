"""``scipy.signal``, ``scipy.fft`` and ``scipy.ndimage`` beside SciPy."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.signal

import catena as jax
import catena.numpy as jnp
import catena.scipy as jsp
from catena.scipy.signal import spectral

RNG = np.random.default_rng(4)
X, Y, LONG = (RNG.normal(size=n).astype(np.float32) for n in (12, 5, 200))
IMAGE, KERNEL = RNG.normal(size=(6, 7)).astype(np.float32), RNG.normal(size=(3, 2)).astype(np.float32)
Z = (X + 1j * X[::-1]).astype(np.complex64)
PAIR = np.stack([LONG, LONG[::-1]])


def assert_same(found, expected):
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype.itemsize <= 8 and (
            ours.dtype.kind == np.asarray(theirs).dtype.kind or ours.dtype == np.float32
        )
        np.testing.assert_allclose(ours, theirs, 2e-5, 2e-5 * max(np.abs(theirs).max(initial=0), 1e-3))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["convolve", "correlate", "fftconvolve"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(name, mode):
    for a, b in ((X, Y), (Y, X), (Z, Y), (IMAGE, KERNEL), (X[None, None], X[None, None, :4])):
        assert_same(getattr(jsp.signal, name)(a, b, mode), getattr(scipy.signal, name)(a, b, mode))
        if name != "fftconvolve":
            by_fft = getattr(jsp.signal, name)(a, b, mode, method="fft")
            assert_same(by_fft, getattr(scipy.signal, name)(a, b, mode))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_matrices(name, mode):
    for boundary, fill in (("fill", 0), ("fill", 2.5), ("wrap", 0), ("symm", 0)):
        for kernel in (KERNEL, KERNEL.T + 1j * KERNEL.T, IMAGE[:3, :3]):
            kernel = kernel.astype(np.complex64) if np.iscomplexobj(kernel) else kernel
            ours = getattr(jsp.signal, name)(IMAGE, kernel, mode, boundary, fill)
            assert_same(ours, getattr(scipy.signal, name)(IMAGE, kernel, mode, boundary, fill))


def test_convolutions_along_axes():
    assert_same(jsp.signal.fftconvolve(IMAGE, IMAGE, axes=1), scipy.signal.fftconvolve(IMAGE, IMAGE, axes=1))
    same = scipy.signal.fftconvolve(IMAGE, IMAGE[:3], "same", axes=[0])
    assert_same(jsp.signal.fftconvolve(IMAGE, IMAGE[:3], "same", axes=[0]), same)
    assert jsp.signal.fftconvolve(np.zeros(0, np.float32), Y).shape == (4,)
    expected = np.array([np.sum(X[i : i + 12]) for i in range(5)])
    gradient = jax.grad(lambda y: jsp.signal.fftconvolve(X, y).sum())(Y)
    np.testing.assert_allclose(gradient, np.full(5, expected[0]), 1e-4, 1e-5)


def test_trends():
    for data, options in (
        (X, {}), (X, {"type": "constant"}), (X, {"bp": [3, 7]}), (PAIR.T, {"axis": 0}), (Z, {"bp": 5}),
    ):  # fmt: skip
        assert_same(jsp.signal.detrend(data, **options), scipy.signal.detrend(data, **options))


@pytest.mark.parametrize("name", spectral.COSINES)
def test_windows_by_name_are_those_of_scipy(name):
    for length in (1, 2, 5, 256):
        np.testing.assert_array_equal(spectral._window_by_name(name, length), scipy.signal.get_window(name, length))


def test_common_windows_are_had_without_loading_scipys_signals():
    program = """
import sys
import numpy as np
import catena
import catena.scipy.signal
catena.scipy.signal.stft(np.ones(64, np.float32), nperseg=16)
assert "scipy.signal" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


WINDOWS = [
    {"nperseg": 32},
    {"nperseg": 32, "noverlap": 20, "nfft": 40},
    {"nperseg": 31, "window": "hamming", "fs": 10.0},
    {"window": np.ones(24, np.float32), "nperseg": 24, "detrend": "linear"},
    {"nperseg": 64, "window": ("kaiser", 4.0), "detrend": False, "return_onesided": False},
]


@pytest.mark.parametrize("options", WINDOWS)
def test_spectra(options):
    assert_same(jsp.signal.stft(LONG, **options), scipy.signal.stft(LONG, **options))
    assert_same(jsp.signal.welch(PAIR, **options), scipy.signal.welch(PAIR, **options))
    extra = {"average": "median", "scaling": "spectrum"}
    assert_same(
        jsp.signal.csd(LONG, LONG[:150], **options, **extra),
        scipy.signal.csd(LONG, np.pad(LONG[:150], (0, 50)), **options, **extra),
    )


def test_spectra_of_other_forms():
    for boundary in ("even", "odd", "constant", "zeros", None):
        for padded in (True, False):
            options = {"nperseg": 30, "boundary": boundary, "padded": padded}
            assert_same(jsp.signal.stft(LONG, **options), scipy.signal.stft(LONG, **options))
    turned = jsp.signal.stft(PAIR.T, nperseg=32, axis=0)
    assert_same(turned, scipy.signal.stft(PAIR.T, nperseg=32, axis=0))
    assert_same(
        jsp.signal.welch(LONG, nperseg=32, detrend=lambda x: x - 1),
        scipy.signal.welch(LONG, nperseg=32, detrend=lambda x: x - 1),
    )
    complex_signal = (LONG + 1j).astype(np.complex64)
    assert_same(
        jsp.signal.welch(complex_signal, nperseg=32),
        scipy.signal.welch(complex_signal, nperseg=32, return_onesided=False),
    )
    assert jsp.signal.welch(np.zeros(0, np.float32))[1].shape == (0,)


def test_the_way_back_from_spectra():
    for options in ({"nperseg": 32}, {"nperseg": 30, "noverlap": 20}, {"nperseg": 31, "noverlap": 9}):
        z = jsp.signal.stft(PAIR, **options)[2]
        np.testing.assert_allclose(jsp.signal.istft(z, **options)[1][:, :200], PAIR, atol=1e-5)
        assert_same(jsp.signal.istft(z, **options)[1], scipy.signal.istft(np.asarray(z), **options)[1])
        assert jsp.signal.istft(z, **options)[0].shape == jsp.signal.istft(z, **options)[1].shape[1:]
    z = np.asarray(jsp.signal.stft(LONG, nperseg=32)[2])
    assert_same(jsp.signal.istft(z.T, time_axis=0, freq_axis=1), scipy.signal.istft(z.T, time_axis=0, freq_axis=1))
    two_sided = jsp.signal.stft(LONG, nperseg=32, return_onesided=False)[2]
    np.testing.assert_allclose(jsp.signal.istft(two_sided, input_onesided=False)[1][:200], LONG, atol=1e-5)


def test_cosine_transforms():
    for x in (X, X[:7], X[:1], X[:2], IMAGE, Z):
        for norm in (None, "ortho"):
            assert_same(jsp.fft.dct(x, norm=norm), scipy.fft.dct(x, norm=norm))
            assert_same(jsp.fft.idct(x, norm=norm), scipy.fft.idct(x, norm=norm))
            np.testing.assert_allclose(jsp.fft.idct(jsp.fft.dct(x, norm=norm), norm=norm), x, atol=1e-5)
    for options in ({}, {"axes": [1]}, {"s": (4, 9)}, {"s": [3], "axes": [0]}, {"norm": "ortho"}):
        assert_same(jsp.fft.dctn(IMAGE, **options), scipy.fft.dctn(IMAGE, **options))
        assert_same(jsp.fft.idctn(IMAGE, **options), scipy.fft.idctn(IMAGE, **options))
    matrix = scipy.fft.dct(np.eye(12), axis=0)
    np.testing.assert_allclose(jax.jacrev(jsp.fft.dct)(X), matrix, atol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
def test_values_between_elements(order):
    places = np.float32([np.linspace(-9.3, 15.2, 30), np.linspace(14.9, -4.7, 30)])
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        theirs = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
        expected = scipy.ndimage.map_coordinates(IMAGE, places, order=order, mode=theirs, cval=1.5)
        assert_same(jsp.ndimage.map_coordinates(IMAGE, places, order, mode, 1.5), expected)
    rounded = jsp.ndimage.map_coordinates(np.int32([1, 2, 5]), [np.float32([0.5, 1.5, 7])], order=1)
    np.testing.assert_array_equal(rounded, [2, 4, 0])
    slope = jax.grad(lambda c: jsp.ndimage.map_coordinates(X, [c], order=order).sum())(np.float32([2.25, 4.5]))
    np.testing.assert_allclose(slope, [X[3] - X[2], X[5] - X[4]] if order else [0, 0], atol=1e-6)


def test_under_jit_and_vmap():
    @jax.jit
    def everything(x):
        return [
            jsp.signal.fftconvolve(x, Y),
            jsp.signal.convolve(x, Y, "same"),
            jsp.signal.detrend(x),
            jsp.signal.welch(x, nperseg=8)[1],
            jsp.signal.istft(jsp.signal.stft(x, nperseg=8)[2])[1],
            jsp.fft.dct(x),
        ]

    stack = np.stack([X, X[::-1]])
    for mapped, one, plain in zip(jax.vmap(everything)(stack), everything(X), everything.__wrapped__(X), strict=True):
        np.testing.assert_allclose(mapped[0], one, atol=2e-5)
        np.testing.assert_allclose(one, plain, atol=2e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: jsp.signal.convolve(X, IMAGE), ValueError),
        (lambda: jsp.signal.convolve(X, Y, "other"), ValueError),
        (lambda: jsp.signal.convolve(X, Y, method="other"), ValueError),
        (lambda: jsp.signal.convolve(X[:0], Y), ValueError),
        (lambda: jsp.signal.convolve(IMAGE, np.ones((8, 1)), "valid"), ValueError),
        (lambda: jsp.signal.convolve2d(X, Y), ValueError),
        (lambda: jsp.signal.convolve2d(IMAGE, KERNEL, boundary="other"), ValueError),
        (lambda: jsp.signal.fftconvolve(IMAGE, KERNEL, axes=0), ValueError),
        (lambda: jsp.signal.fftconvolve(IMAGE, IMAGE, axes=2), ValueError),
        (lambda: jsp.signal.detrend(X, type="other"), ValueError),
        (lambda: jsp.signal.detrend(X, bp=30), ValueError),
        (lambda: jsp.signal.detrend(X, bp=1.5), TypeError),
        (lambda: jsp.signal.detrend(X, overwrite_data=True), NotImplementedError),
        (lambda: jsp.signal.stft(LONG, nperseg=0), ValueError),
        (lambda: jsp.signal.stft(LONG, nperseg=16, noverlap=16), ValueError),
        (lambda: jsp.signal.stft(LONG, nperseg=16, nfft=8), ValueError),
        (lambda: jsp.signal.stft(LONG, window="other"), ValueError),
        (lambda: jsp.signal.stft(LONG, window=np.ones((2, 2))), ValueError),
        (lambda: jsp.signal.stft(LONG, detrend=True), ValueError),
        (lambda: jsp.signal.stft(LONG, boundary="other"), ValueError),
        (lambda: jsp.signal.welch(LONG, scaling="other"), ValueError),
        (lambda: jsp.signal.csd(LONG, PAIR), ValueError),
        (lambda: jsp.signal.istft(LONG), ValueError),
        (lambda: jsp.signal.istft(PAIR, time_axis=0, freq_axis=0), ValueError),
        (lambda: jsp.fft.dct(X, 3), NotImplementedError),
        (lambda: jsp.fft.dct(X, norm="forward"), ValueError),
        (lambda: jsp.fft.dct(X, n=0), TypeError),
        (lambda: jsp.fft.dctn(IMAGE, axes=(0, 0)), ValueError),
        (lambda: jsp.ndimage.map_coordinates(IMAGE, [X, X], 2), NotImplementedError),
        (lambda: jsp.ndimage.map_coordinates(IMAGE, [X, X], 1, "other"), NotImplementedError),
        (lambda: jsp.ndimage.map_coordinates(IMAGE, [X], 1), ValueError),
        (lambda: jsp.ndimage.map_coordinates(IMAGE, [Z, Z], 1), TypeError),
        (lambda: jsp.ndimage.map_coordinates(IMAGE, [X, Y], 1), TypeError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


def test_trends_of_few_elements():
    np.testing.assert_allclose(jsp.signal.detrend(X[:1]), [0], atol=1e-7)
    np.testing.assert_allclose(jsp.signal.detrend(X[:2]), [0, 0], atol=1e-6)


def test_integers_become_floats():
    assert jsp.signal.convolve(jnp.arange(3), jnp.arange(3)).dtype == np.float32
    assert jsp.fft.dct(jnp.arange(3)).dtype == np.float32
    assert jsp.signal.detrend(jnp.arange(3)).dtype == np.float32


@pytest.mark.parametrize("f", [jsp.signal.welch, lambda x, **how: jsp.signal.csd(x, x, **how)])
def test_medians_have_the_width_of_the_signal(f):
    with jax.enable_x64(True):
        powers = jax.eval_shape(lambda x: f(x, nperseg=64, average="median")[1], LONG)
    assert powers.dtype in (np.float32, np.complex64)


def test_convolutions_of_nothing_by_transforms():
    """More than the whole of it is not there: zeros of some other shape came before."""
    nothing, some = jnp.zeros(0), jnp.ones(5)
    assert jsp.signal.fftconvolve(nothing, some).shape == (4,)
    assert jsp.signal.fftconvolve(nothing, some, "same").shape == (0,)
    for operands, mode in [((some, nothing), "same"), ((nothing, some), "valid"), ((some, nothing), "valid")]:
        with pytest.raises(TypeError, match="asks for elements, got"):
            jsp.signal.fftconvolve(*operands, mode)
