"""Native Fourier transforms beside NumPy's in double precision: every way of laying transforms side by side."""

import numpy as np
import pytest

import catena as jax
from catena.compiler.emit.butterflies import Pass, define_pass
from catena.compiler.graph import fourier
from catena.lax import fft
from shares import alternate

REFERENCE = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
REAL = {np.complex64: np.float32, np.complex128: np.float64}

# Lengths: each radix, products of several, passes by loops, and those that have no pass.
LENGTHS = [*range(1, 14), 16, 17, 34, 49, 74, 100, 121, 127, 131, 157, 163, 210, 251, 256, 262, 499, 514, 1000]


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x if np.dtype(dtype).kind == "f" else x + 1j * rng.normal(size=shape)).astype(dtype)


def check(kind, x, lengths, compiled=None):
    """Compares with NumPy; errors may grow with the number of passes, that is with the logarithm of the length."""
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    wanted = REFERENCE[kind](x.astype(np.result_type(x.dtype, np.float64)), s=lengths, axes=axes)
    with jax.enable_x64(True):
        compiled = compiled or jax.jit(lambda x: fft(x, kind, lengths))
        got = np.asarray(compiled(x))
    assert got.shape == wanted.shape
    assert got.dtype.itemsize == x.dtype.itemsize * {"RFFT": 2, "IRFFT": 0.5}.get(kind, 1)
    eps, size = np.finfo(got.dtype).eps, np.abs(wanted).max(initial=0)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=max(2 * eps * (1 + np.log2(np.prod(lengths) + 1)) * size, 0))
    return got


@pytest.mark.share(18)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n, dtype):
    for kind, rows in alternate(2, (("FFT", 1), ("IFFT", 1), ("IFFT", 20), ("FFT", 20)), LENGTHS.index(n)):
        check(kind, numbers((rows, n), dtype), (n,))
    check("RFFT", numbers((3, n), REAL[dtype]), (n,))
    check("IRFFT", numbers((3, n // 2 + 1), dtype), (n,))


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("rows", [1, 7, 8, 15, 16, 17, 33])
@pytest.mark.parametrize("n", [6, 40, 420])
def test_rows_that_do_not_fill_the_lanes(n, rows, dtype):
    check("FFT", numbers((rows, n), dtype), (n,))
    check("IRFFT", numbers((rows, n // 2 + 1), dtype), (n,))
    check("RFFT", numbers((rows, n), REAL[dtype]), (n,))


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("rows", [16, 21])
@pytest.mark.parametrize("n", [3, 9, 15, 27, 37, 99, 127, 147, 625, 999])
def test_many_real_rows_of_odd_length(n, rows, dtype):
    """They stand in lanes, and passes leave out what is the conjugate of something else."""
    x = numbers((rows, n), REAL[dtype])
    got = check("RFFT", x, (n,))
    assert not got[:, 0].imag.any()
    x[5, n // 2] = np.nan
    bad = np.isnan(check_rows(x))
    assert bad[5].all() and bad.sum() == bad.shape[1]


def check_rows(x):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(lambda x: fft(x, "RFFT", x.shape[1:]))(x))


@pytest.mark.parametrize("whole", [True, False])
def test_only_columns_that_do_not_fill_the_lanes_need_masks(whole):
    """Stores by masks take some forty operations on processors without registers for masks."""
    kind = Pass("float32", 8, 4, columns=(True, True), whole=whole)
    assert ("masked" not in define_pass(kind)) == whole


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", [(4, 3), (2, 12, 33), (3, 8, 9, 10), (1, 20, 1), (20, 1, 5)])
def test_several_axes(shape, dtype):
    for count in range(1, len(shape) + 1):
        check("FFT", numbers(shape, dtype), shape[-count:])
        check("IFFT", numbers(shape, dtype), shape[-count:])
        check("RFFT", numbers(shape, REAL[dtype]), shape[-count:])
        check("IRFFT", np.fft.rfftn(numbers(shape, np.float64), axes=range(-count, 0)).astype(dtype), shape[-count:])


LARGE = [(1 << 16,), (3, 20000), (40, 3000), (20000, 6), (300, 1100), (70000, 2)]


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", LARGE)
def test_large_arrays_on_all_threads(shape, dtype):
    check("FFT", numbers(shape, dtype), shape[-1:])
    check("IFFT", numbers(shape, dtype), shape)
    check("RFFT", numbers(shape, REAL[dtype]), shape[-1:])
    half = (*shape[:-1], shape[-1] // 2 + 1)
    check("IRFFT", numbers(half, dtype), shape[-1:])


@pytest.mark.parametrize("n", [2, 24, 37, 320, 5000])
def test_every_element_of_a_basis(n):
    """The transform of one element is a wave: it tells at once if two roots were exchanged."""
    places = [0, 1, n // 2, n - 1]
    x = np.zeros((4, n), np.complex64)
    x[range(4), places] = 1
    waves = np.exp(-2j * np.pi * np.outer(places, np.arange(n)) / n)
    np.testing.assert_allclose(jax.jit(lambda x: fft(x, "FFT", (n,)))(x), waves, rtol=0, atol=1e-6)


def test_results_stay_within_their_memory():
    """Transforms of all kinds beside each other in one program: none writes into its neighbour."""

    def program(x):
        parts = [x[:, :k] for k in (5, 6, 34, 40, 63)]
        return [
            (p, fft(p, "FFT", p.shape[1:]), fft(fft(p.real, "RFFT", p.shape[1:]), "IRFFT", p.shape[1:])) for p in parts
        ]

    x = numbers((13, 63), np.complex64)
    for part, spectrum, back in jax.jit(program)(x):
        np.testing.assert_array_equal(part, x[:, : part.shape[1]])
        np.testing.assert_allclose(spectrum, np.fft.fft(part), rtol=0, atol=2e-5)
        np.testing.assert_allclose(back, part.real, rtol=0, atol=2e-6)


@pytest.mark.parametrize("shape", [(30, 64), (3, 1 << 15), (64, 20)])
def test_donated_memory(shape):
    x = numbers(shape, np.complex64)
    both = jax.jit(lambda x: fft(x, "FFT", shape), donate_argnums=0)
    check("FFT", x, shape, lambda x: both(jax.numpy.array(x)))


def test_not_a_number_stays_in_its_row():
    x = numbers((33, 40), np.complex64)
    x[5, 7] = np.nan
    bad = np.isnan(np.asarray(jax.jit(lambda x: fft(x, "FFT", (40,)))(x)))
    assert bad[5].all() and bad.sum() == 40


def test_half_spectra_ignore_what_real_rows_cannot_have():
    """The imaginary parts of the first and the last element of a half spectrum, as in NumPy."""
    x = numbers((3, 9), np.complex64)
    changed = x.copy()
    changed[:, [0, 8]] += 5j
    inverse = jax.jit(lambda x: fft(x, "IRFFT", (16,)))
    np.testing.assert_array_equal(inverse(x), inverse(changed))
    np.testing.assert_allclose(inverse(x), np.fft.irfft(changed), rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 12, 16, 40, 997, 1000])
def test_roots_of_unity_are_exact(n):
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workprec(100):
        wanted = [complex(mpmath.expjpi(mpmath.mpf(-2 * k) / n)) for k in range(n)]
    found = fourier.roots_of_unity(np.arange(n), n).astype(np.complex128)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2**-53)


@pytest.mark.parametrize("rows", [1, 3])
def test_roots_of_unity_some_at_a_time(rows):
    powers = np.arange(3 * fourier.AT_ONCE).reshape(rows, -1)
    found = fourier.roots_of_unity(powers, 10007, np.float64)
    wanted = [fourier.roots_of_unity(x, 10007, np.float64) for x in powers.reshape(-1, 1000 + 24)]
    np.testing.assert_array_equal(found.ravel(), np.concatenate(wanted))


@pytest.mark.share(2)
@pytest.mark.parametrize("h", [4, 4096, 4100, 4102, 5004])
@pytest.mark.parametrize("real", ["float32", "float64"])
def test_half_the_roots(h, real):
    powers = np.arange(h + 3)
    wanted = fourier.roots_of_unity(powers, 2 * h)
    found = fourier.half_roots(h, 3, real)
    assert found.dtype == real
    for part, exact in zip(found, (wanted.real, wanted.imag), strict=True):
        np.testing.assert_allclose(part, exact.astype(real), rtol=0, atol=np.finfo(real).eps)
        assert not part[exact == 0].any()


@pytest.mark.parametrize(("a", "b"), [(3, 5), (10, 100), (256, 300)])
def test_roots_between_two_sweeps(a, b):
    width = 16
    table = fourier.twist_roots(a, b, width, "float64")
    blocks = -(-b // width)
    lanes = width if fourier.is_split(a, b) else blocks * width
    roots = table[:, :lanes] + 1j * table[:, lanes : 2 * lanes]
    if fourier.is_split(a, b):
        common = table[:, 2 * lanes :: 2] + 1j * table[:, 2 * lanes + 1 :: 2]
        products = (common[:, :, None] * roots[:, None, :]).reshape(a, -1)
        rest = width - b % width if b % width else 0  # by which the last vector goes back
        roots = np.concatenate([products[:, : -width or None], products[:, -width + rest :]], 1)
    wanted = np.exp(-2j * np.pi * np.outer(np.arange(a), np.arange(b)) / (a * b))
    np.testing.assert_allclose(roots[:, :b], wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 60, 127, 128, 1001, 2**20])
def test_radices_make_the_length(n):
    assert np.prod(fourier.radices(n), dtype=int) == n


@pytest.mark.share(3)
@pytest.mark.parametrize("n", [257, 2 * 257, 2 * 3 * 263, 10007])
def test_large_primes_have_no_passes(n):
    assert fourier.radices(n) is None
    assert fourier.radices(fourier.smooth_length(2 * n - 1))
    check("FFT", numbers((5, n), np.complex128), (n,))
    check("IFFT", numbers((n, 2), np.complex64), (n, 2))
    check("RFFT", numbers((2, n), np.float64), (n,))
    check("IRFFT", numbers((n // 2 + 1,), np.complex64), (n,))


@pytest.mark.parametrize("columns", [(False, False), (True, False), (False, True)])
def test_addresses_of_a_pass_are_not_computed_one_by_one(columns):
    kind = Pass("float32", 16, 8, columns, turned=not columns[1], twisted=columns[1])
    assert define_pass(kind).count(" = mul i64") <= 13
