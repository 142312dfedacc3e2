"""Discrete Fourier transforms: as which passes they run, and with which roots of unity.

A transform along several axes is one after another. Lengths whose prime factors are small are done by passes
(`emit/fourier`), real ones as complex ones of half the length, or, where that is odd and rows are many, by passes that
leave out what is the conjugate of something else. All others are convolutions with a *chirp*, which longer transforms
do: row by row within a cache where the rows are not very long.

Source: Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", IEEE Trans. Audio and
Electroacoustics 18 (1970), for convolutions.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from catena.compiler.graph.forms import Fourier
from catena.compiler.graph.keys import remembered
from catena.core.errors import CompileError

KINDS = ("fft", "ifft", "rfft", "irfft")
RADICES = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)
MOST_RADIX = 157  # greater primes have no pass: convolutions of twice their length take less
MOST_ROOTS = 1 << 15  # numbers between two parts of a transform that are kept
REAL = {8: "float32", 16: "float64"}  # by bytes of a complex number
STEP = 6  # what a pass costs an element beside its arithmetic, in operations
LONGEST_COLUMN = 1 << 12  # elements that many columns side by side may have
MANY_ROWS = 16  # from which on real rows of odd length, one to a lane, are quicker than each as a complex one
LONGEST_CHIRP = 1 << 14  # and a row that becomes a convolution of its own


def fft(b, x, *, outs, kind, lengths, **_) -> list:
    """The transform of `x` over its last axes; see `library` for the attributes."""
    name = str(getattr(kind, "name", kind)).lower()
    if name not in KINDS:
        raise CompileError(f"fft: kind must be one of {KINDS}, got {kind!r}")
    lengths = tuple(int(n) for n in lengths)
    axes = range(x.ndim - len(lengths), x.ndim)
    if name == "rfft":
        x, axes = _from_real(b, x), axes[:-1]
    for axis in reversed(axes[:-1] if name == "irfft" else axes):
        x = _along(b, x, axis, name in ("ifft", "irfft"))
    return [_to_real(b, x, lengths[-1]) if name == "irfft" else x]


def _along(b, x, axis: int, inverse: bool):
    """The complex transform along one axis."""
    if x.shape[axis] == 1 or x.size == 0:
        return x
    n, is_row = x.shape[axis], math.prod(x.shape[axis + 1 :]) == 1
    if not is_done_by_rows(n):
        return _by_chirp(b, x, axis, inverse)
    if (n > LONGEST_COLUMN or radices(n) is None) and not is_row:
        order = (*(d for d in range(x.ndim) if d != axis), axis)
        back = tuple(order.index(d) for d in range(x.ndim))
        return b.transpose(_along(b, b.transpose(x, order), x.ndim - 1, inverse), back)
    return b.multi("fourier", [x], [(x.shape, x.dtype)], Fourier(axis, inverse))[0]


def is_done_by_rows(n: int) -> bool:
    """Whether rows of length `n` are transformed one by one: by passes, or as convolutions that caches hold."""
    return radices(n) is not None or n <= LONGEST_CHIRP


def _by_chirp(b, x, axis: int, inverse: bool):
    """The transform of any length n: as 2 j k = j j + k k - (k - j)(k - j), times a chirp it is the convolution of `x`
    times the chirp with the conjugate chirp, done in a length that has passes.
    """
    n = x.shape[axis]
    m = smooth_length(2 * n - 1)
    chirp, spectrum = (c.conj() if inverse else c for c in chirps(n, m, REAL[x.dtype.itemsize]))

    def times(y, factors):
        return b.map("mul", y, b.broadcast_in_dim(b.constant(factors.astype(x.dtype)), y.shape, (axis,)))

    padding = [(0, m - n if d == axis else 0, 0) for d in range(x.ndim)]
    padded = b.pad(times(x, chirp), b.constant(np.zeros((), x.dtype)), padding)
    convolved = _along(b, times(_along(b, padded, axis, inverse), spectrum), axis, not inverse)
    return times(b.slice(convolved, (0,) * x.ndim, x.shape), chirp / n if inverse else chirp)


def _from_real(b, x):
    """The half spectrum of real rows. Rows of even length are taken for complex ones of half the length."""
    *batch, n = x.shape
    dtype = np.result_type(x.dtype, np.complex64)
    shape = (*batch, n // 2 + 1)
    if x.size == 0:
        return b.full(shape if n else x.shape, np.zeros((), dtype))
    many_odd = 1 < n <= LONGEST_COLUMN and radices(n) is not None and math.prod(batch) >= MANY_ROWS
    if not (many_odd if n % 2 else is_done_by_rows(n // 2)):
        whole = _along(b, b.map("complex", x, b.full(x.shape, np.zeros((), x.dtype))), x.ndim - 1, False)
        return b.slice(whole, (0,) * x.ndim, shape)
    return b.multi("fourier", [x], [(shape, dtype)], Fourier(x.ndim - 1, False))[0]


def _to_real(b, x, n: int):
    """The real rows of length `n` of a half spectrum."""
    *batch, m = x.shape
    dtype = np.zeros((), x.dtype).real.dtype
    if x.size == 0:
        return b.full((*batch, n), np.zeros((), dtype))
    if n % 2 or not is_done_by_rows(n // 2):
        rest = b.slice(x, (0,) * (x.ndim - 1) + (1,), (*batch, m - 1 + n % 2))
        rest = b.map("conj", b.reverse(rest, (x.ndim - 1,)))
        return b.map("real", _along(b, b.concatenate([x, rest], x.ndim - 1), x.ndim - 1, True))
    return b.multi("fourier", [x], [((*batch, n), dtype)], Fourier(x.ndim - 1, True))[0]


# ---- passes ------------------------------------------------------------------------------------------------


@remembered(4096)
def radices(n: int) -> tuple[int, ...] | None:
    """The radices of the passes of a transform of length `n`, those that cost least; None if there are none."""
    if n == 1:
        return ()
    best, factor = None, _least_factor(n)
    if factor is None:
        return None
    for r in {*RADICES, factor}:
        if n % r == 0 and (rest := radices(n // r)) is not None:
            best = min(best or (r, *rest), tuple(sorted((r, *rest), reverse=True)), key=cost)
    return best


@cache
def odd_radices(n: int) -> tuple[int, ...]:
    """The radices for real rows of odd length: the first pass, over real numbers, leaves out what is conjugate."""

    def each(r: int) -> float:
        rest = cost(radices(n // r) or ())
        return cost((r,)) / (2 if is_written_out(r) else 1) + (r // 2 + 1) / r * rest

    factors = [r for r in (*RADICES, _least_factor(n), n) if r and n % r == 0 and r <= MOST_RADIX]
    first = min((r for r in factors if radices(n // r) is not None), key=each)
    return first, *(radices(n // first) or ())


def smooth_length(least: int) -> int:
    """The length, of those from `least` on whose factors are 2, 3 and 5, that costs least."""
    lengths = [2**a * 3**b * 5**c for a in range(least.bit_length() + 1) for b in range(3) for c in range(3)]
    return min((n for n in lengths if n >= least), key=lambda n: (n * cost(radices(n) or ()), n))


@remembered(64)
def smooth_lengths(least: int, step: int) -> list[int]:
    """The multiples of `step` from `least` to twice as much whose other factors are 2, 3, 5 and 7."""
    found = {step}
    for r in (2, 3, 5, 7):
        for m in list(found):
            while (m := m * r) < 2 * least:
                found.add(m)
    return sorted(m for m in found if m >= least)


def _least_factor(n: int) -> int | None:
    """The least prime factor of `n` that has a pass."""
    return next((r for r in range(2, MOST_RADIX + 1) if n % r == 0), None)


def is_written_out(radix: int) -> bool:
    """Whether a pass of this radix is a text of its own; the others are loops over sums."""
    return radix in RADICES


def cost(passes: tuple[int, ...]) -> float:
    """What passes cost an element, in operations."""
    return sum(STEP + (_operations(r) + 6 * (r - 1)) / r for r in passes)


@cache
def _operations(n: int) -> int:
    """Arithmetic of a transform in registers."""
    a = next((a for a in range(2, n) if n % a == 0), None)
    if a is not None:
        return n // a * _operations(a) + a * _operations(n // a) + 6 * (a - 1) * (n // a - 1)
    half = n // 2
    return 4 if n == 2 else (4 if is_written_out(n) else 6) * half * half + 8 * half


# ---- roots of unity ----------------------------------------------------------------------------------------

# In which roots are found before they are rounded.
WIDER: dict[str, type[np.floating]] = {"float32": np.float64, "float64": np.longdouble}
LONG = 4096  # roots, from which they are products of few
AT_ONCE = 8192  # roots


def roots_of_unity(powers: np.ndarray, n: int, dtype=np.longdouble) -> np.ndarray:
    """The powers of exp(-2 pi i / n), some at a time: of many, what is computed on the way is no longer in cache."""
    made = np.empty(powers.shape, np.result_type(dtype, 1j))
    given, roots = powers.reshape(-1), made.reshape(-1)
    for at in range(0, powers.size, AT_ONCE):
        roots[at : at + AT_ONCE] = _roots_of_unity(given[at : at + AT_ONCE], n, dtype)
    return made


def _roots_of_unity(powers: np.ndarray, n: int, dtype) -> np.ndarray:
    """From angles of at most an eighth of the circle, where they are most exact."""
    powers = powers % n
    octant = 8 * powers // n
    near = np.where(octant % 2 == 0, 8 * powers - octant * n, (octant + 1) * n - 8 * powers)
    angle = near.astype(dtype) * (np.arctan(dtype(1)) / n)
    c, s = np.cos(angle), np.sin(angle)
    swap = (octant + 1) // 2 % 2 == 1
    real, imag = np.where(swap, s, c), np.where(swap, c, s)
    real = np.where((octant >= 2) & (octant < 6), -real, real)
    return real + 1j * np.where(octant < 4, -imag, imag)


def half_circle(n: int, dtype, parts: np.ndarray) -> None:
    """Fills rows of real and of imaginary parts with the powers 0 to n / 2 of exp(-2 pi i / n), where 8 divides n: with
    those of the first eighth of the circle, of which the others have the digits. Each of these is the product of one of
    a few and one of as many.
    """
    eighth = n // 8
    step = 1 << (eighth.bit_length() + 1) // 2
    near, far = (roots_of_unity(np.arange(0, end, by), n, dtype) for end, by in ((step, 1), (eighth + 1, step)))
    first = np.outer(far, near).ravel()[: eighth + 1]
    parts[:, : eighth + 1] = first.real, first.imag
    parts[:, eighth : 2 * eighth + 1] = -first.imag[::-1], -first.real[::-1]
    parts[:, 2 * eighth :] = parts[0, 2 * eighth :: -1], parts[1, 2 * eighth :: -1]
    np.negative(parts[0, 2 * eighth + 1 :], out=parts[0, 2 * eighth + 1 :])


def root_of_unity(power: int, n: int) -> complex:
    return complex(roots_of_unity(np.asarray(power), n))


@remembered(64)
def pass_roots(passes: tuple[int, ...], real: str) -> np.ndarray:
    """For each pass the cosines and sines that a radix without a text of its own needs, then the roots that the results
    are multiplied by: group by group, power by power.
    """
    n, parts = math.prod(passes), [np.zeros(0, np.complex128)]
    for r in passes:
        if not is_written_out(r):
            numbers = np.arange(1, r // 2 + 1)
            parts.append(roots_of_unity(np.outer(numbers, numbers), r, WIDER[real]).conj())
        if r < n:
            parts.append(roots_of_unity(np.outer(np.arange(n // r), np.arange(1, r)), n, WIDER[real]))
        n //= r
    return np.concatenate([x.astype(np.complex128).ravel() for x in parts]).view(np.float64).astype(real)


def roots_of_pass(radix: int, m: int) -> int:
    """How many numbers `pass_roots` has for a pass over `m` groups."""
    return (0 if is_written_out(radix) else (radix // 2) ** 2) + (m * (radix - 1) if m > 1 else 0)


@remembered(16)
def twist_roots(a: int, b: int, width: int, real: str) -> np.ndarray:
    """The roots between the two parts of a transform of length a b: rows j of the powers j k of the root, their real
    parts and then their imaginary parts, in whole vectors of `width`. Large tables are *split*: j k = j (f + u), so the
    powers j u, and behind them the powers j f, as complex numbers, for the first number f of each vector (the last
    vector goes back over the one before), are enough.
    """
    j, blocks = np.arange(a), -(-b // width)
    numbers = np.arange(width if is_split(a, b) else blocks * width)
    fine = roots_of_unity(np.outer(j, numbers), a * b, WIDER[real])
    parts = [fine.real, fine.imag]
    if is_split(a, b):
        first = np.minimum(width * np.arange(blocks), max(b - width, 0))
        coarse = roots_of_unity(np.outer(j, first), a * b, WIDER[real])
        parts.append(np.stack([coarse.real, coarse.imag], -1).reshape(a, -1))
    return np.concatenate(parts, 1).astype(real)


def is_split(a: int, b: int) -> bool:
    return a * b > MOST_ROOTS


@remembered(16)
def chirps(n: int, m: int, real: str) -> tuple[np.ndarray, np.ndarray]:
    """The chirp exp(-pi i k k / n), and the transform of length m of its conjugate, which goes to both sides of 0."""
    k = np.arange(n)
    chirp = roots_of_unity(k * k % (2 * n), 2 * n, WIDER[real])
    wave = np.zeros(m, chirp.dtype)
    wave[:n] = chirp.conj()
    wave[m - n + 1 :] = wave[n - 1 : 0 : -1]
    return chirp, np.fft.fft(wave)


@remembered(16)
def chirp_factors(n: int, m: int, lanes: int, width: int, inverse: bool, real: str) -> tuple[np.ndarray, ...]:
    """What a row is multiplied by, then the transform of length m of that, and at last the convolution. The second ones
    are in rows of as many as there are `lanes`: as `twist_roots` of one part has them.
    """
    chirp, spectrum = chirps(n, m, real)
    if inverse:
        chirp, spectrum = chirp.conj(), np.roll(spectrum[::-1], 1).conj()
    rows = np.zeros((m // lanes, -(-lanes // width) * width), spectrum.dtype)
    rows[:, :lanes] = spectrum.reshape(-1, lanes)
    middle = np.concatenate([rows.real, rows.imag], 1).astype(real)
    return _crosswise(chirp).astype(real), middle, _crosswise(chirp / n if inverse else chirp).astype(real)


def _crosswise(w: np.ndarray) -> np.ndarray:
    """Real parts twice, and imaginary parts with both signs: products of x by the first and of x, its parts exchanged,
    by the second add up to x w.
    """
    return np.stack([np.stack([w.real, w.real], 1), np.stack([-w.imag, w.imag], 1)])


@remembered(64)
def half_roots(h: int, padding: int, real: str) -> np.ndarray:
    """The first half of the powers of the root of order 2 h: real parts, then imaginary parts, each with some more."""
    wider, roots = WIDER[real], np.empty((2, h + padding), real)
    start = 0
    if h % 4 == 0 and h >= LONG and np.finfo(wider).eps < np.finfo(real).eps:
        half_circle(2 * h, wider, roots[:, : h + 1])
        start = h + 1
    others = roots_of_unity(np.arange(start, h + padding), 2 * h, wider)
    roots[:, start:] = others.real, others.imag
    return roots
