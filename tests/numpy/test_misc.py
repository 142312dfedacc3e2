"""Sorting, sets, sums of products, statistics, polynomials, windows, bits: against NumPy, eagerly and
compiled.
"""

import random
import subprocess
import sys
import warnings

import numpy
import pytest

import catena
import catena.flatten_util
import catena.numpy as jnp
from catena import lax
from catena.errors import ConcretizationTypeError
from catena.numpy import einstein
from checkers import check_jit
from numpy_cases import check_gradient, check_mapped, check_values, leaves
from shares import alternate

RNG = numpy.random.default_rng(0)
Q = numpy.array([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0], dtype=numpy.float32)
X = numpy.arange(1, 6, dtype=numpy.float32)
M = numpy.array([[1, 5, 2, 8], [3, 1, 4, 1], [2, 7, 1, 8]], dtype=numpy.float32)
C = RNG.normal(size=(2, 3, 4)).astype(numpy.float32)
N = numpy.array([3, 1, 4, 1, 5, 9, 2, 6], dtype=numpy.int32)
Z = (RNG.normal(size=5) + 1j * RNG.normal(size=5)).astype(numpy.complex64)
B = numpy.array([True, False, True, True, False, False, True, False, True])
SPECIAL = numpy.array([numpy.nan, 1, -numpy.inf, 0.0, -0.0, numpy.inf, numpy.nan, -2], dtype=numpy.float32)


# (call, arrays, also differentiate)
CASES = [
    (lambda np, x: np.sort(x), [Q], True),
    (lambda np, x: np.sort(x, axis=0), [M], True),
    (lambda np, x: np.sort(x, axis=None), [M], False),
    (lambda np, x: np.sort(x), [N], False),
    (lambda np, x: np.sort(x), [B], False),
    (lambda np, x: np.sort(x), [Z], False),
    (lambda np, x: np.sort(x), [SPECIAL], False),
    (lambda np, x: np.argsort(x, stable=True), [N], False),
    (lambda np, x: np.argsort(x, axis=0, stable=True), [M], False),
    (lambda np, x: np.argsort(x, stable=True), [SPECIAL], False),
    (lambda np, x, y: np.lexsort((x, y)), [N, N[::-1].copy() % 3], False),
    (lambda np, x: np.partition(x, 3)[3], [Q], True),
    (lambda np, x: np.sort(np.argpartition(x, 3)[:3]), [Q], False),
    (lambda np, x: np.sort_complex(x), [Q.astype(numpy.float64)], False),
    (lambda np, x, v: np.searchsorted(x, v), [numpy.sort(Q), Q + 0.5], False),
    (lambda np, x, v: np.searchsorted(x, v, side="right"), [numpy.sort(N), N], False),
    (lambda np, x, v: np.searchsorted(x, v), [numpy.sort(SPECIAL), SPECIAL], False),
    (lambda np, x, b: np.digitize(x, b), [Q, numpy.array([1.0, 2.0, 5.0])], False),
    (lambda np, x, b: np.digitize(x, b, right=True), [Q, numpy.array([5.0, 2.0, 1.0])], False),
    (lambda np, x, y: np.isin(x, y), [N, N[:3]], False),
    (lambda np, x, y: np.isin(x, y, invert=True), [N, numpy.arange(3, 50)], False),
    # sums of products
    (lambda np, x, y: np.einsum("ij,kj->ik", x, y), [M, M], True),
    (lambda np, x, y: np.einsum("ij,jk", x, y.T), [M, M], True),
    (lambda np, x: np.einsum("ii", x[:, :3]), [M], True),
    (lambda np, x: np.einsum("ii->i", x[:, :3]), [M], True),
    (lambda np, x: np.einsum("ij->j", x), [M], True),
    (lambda np, x: np.einsum("...i,...i", x, x), [C], True),
    (lambda np, x, y: np.einsum("i,j->ij", x, y), [X, Q], True),
    (lambda np, x, y: np.einsum("i,i,i->", x, y, x), [X, X + 1], True),
    (lambda np, x, y: np.einsum("abc,cd,de->abe", x, y.T, y), [C, M], True),
    (lambda np, x: np.einsum("bij,bkj->bik", x, x), [C], True),
    (lambda np, x: np.einsum("iij->ij", x[:, :2]), [C], True),
    (lambda np, x, y: np.einsum("ij,ij->ij", x, y), [M, M[:1]], True),
    (lambda np, x, y: np.einsum("i,i", x, y), [N, N], False),
    (lambda np, x: np.einsum(x, [0, 1], x, [0, 2], [1, 2]), [M], True),
    (lambda np, x, y: np.cross(x, y), [X[:3], Q[:3]], True),
    (lambda np, x, y: np.cross(x, y, axis=0), [M, M + X[:4]], True),
    (lambda np, x, y: np.cross(x, y), [M[:, :3], X[:3]], True),
    # differences
    (lambda np, x: np.diff(x), [Q], True),
    (lambda np, x: np.diff(x, n=2, axis=0), [M], True),
    (lambda np, x: np.diff(x), [B], False),
    (lambda np, x: np.diff(x, prepend=3, append=np.array([9.0, 8.0])), [Q], True),
    (lambda np, x: np.ediff1d(x, to_begin=7, to_end=np.array([8, 9])), [M], True),
    (lambda np, x: np.gradient(x), [Q], True),
    (lambda np, x: np.gradient(x, 2.0, axis=1), [M], True),
    (lambda np, x: tuple(np.gradient(x)), [M], True),
    (lambda np, x, y: np.gradient(x, y), [Q, numpy.arange(8.0) ** 2], True),
    (lambda np, x: np.trapezoid(x, dx=0.5), [Q], True),
    (lambda np, x, y: np.trapezoid(x, y), [M, X[:4] ** 2], True),
    (lambda np, x, y: np.trapezoid(x, y, axis=0), [M, X[:3] ** 2], True),
    (lambda np, x: np.unwrap(x), [Q], True),
    (lambda np, x: np.unwrap(x, period=4), [N], False),
    (lambda np, x, xp, fp: np.interp(x, xp, fp), [Q + 0.3, X, X**2], True),
    (lambda np, x, xp, fp: np.interp(x, xp, fp, left=-5, right=7), [Q - 2.2, X, X**2], True),
    (lambda np, x, xp, fp: np.interp(x, xp, fp, period=7), [Q * 3 + 0.3, X[::-1].copy(), X**2], True),
    # statistics
    (lambda np, x: np.cov(x), [M], True),
    (lambda np, x, y: np.cov(x, y, bias=True), [X, Q[:5]], True),
    (lambda np, x: np.cov(x, rowvar=False, ddof=0), [M], True),
    (
        lambda np, x: np.cov(x, fweights=np.array([1, 2, 1, 1]), aweights=np.array([1.0, 2.0, 0.5, 1.0])),
        [M],
        True,
    ),
    (lambda np, x: np.cov(np.stack([x, x * 1j])), [Z], False),
    (lambda np, x: np.corrcoef(x), [M], True),
    (lambda np, x, y: np.convolve(x, y), [X, Q], True),
    (lambda np, x, y: np.convolve(x, y, mode="same"), [Q, X[:4]], True),
    (lambda np, x, y: np.convolve(x, y, mode="valid"), [Q, X], True),
    (lambda np, x, y: np.correlate(x, y, mode="full"), [X, Q], True),
    (lambda np, x, y: np.correlate(x, y, mode="same"), [X[:4], Q], True),
    (lambda np, x, y: np.correlate(x, y), [Q, X], True),
    (lambda np, x, y: np.correlate(x, y, mode="full"), [Z, Z[:3] * 1j], False),
    # polynomials
    (lambda np, p, x: np.polyval(p, x), [X, M / 8], True),
    (lambda np, p, x: np.polyval(p, x), [RNG.normal(size=30).astype(numpy.float32), X / 8], True),
    (lambda np, p, q: np.polyadd(p, q), [X, Q], True),
    (lambda np, p, q: np.polysub(p, q), [N[:3], N], False),
    (lambda np, p, q: np.polysub(p, q), [X, Q], True),
    (lambda np, p, q: np.polymul(p, q), [X, Q], True),
    (lambda np, p: np.polyder(p, 2), [Q], True),
    (lambda np, p: np.polyint(p, 2, k=3), [Q], True),
    (lambda np, p: np.poly(p), [X[:4]], True),
    (lambda np, x: np.vander(x), [X], True),
    (lambda np, x: np.vander(x, 3, increasing=True), [N], False),
    (lambda np, x, y: np.polyfit(x, y, 2), [X, Q[:5]], False),
    (lambda np, x, y: np.polyfit(x, y, 1, w=x), [X, M[:, :1].repeat(2, 1).repeat(2, 0)[:5]], False),
    # bits
    (lambda np, x: np.packbits(x), [B], False),
    (lambda np, x: np.packbits(x > 3, axis=0, bitorder="little"), [M], False),
    (lambda np, x: [np.packbits(x > 0.3, k, order) for k in range(-3, 3) for order in ("big", "little")], [C], False),
    (lambda np, x: np.unpackbits(x), [numpy.array([[3, 200]], dtype=numpy.uint8)], False),
    (
        lambda np, x: [np.unpackbits(x, k, n) for k in (0, 1, 2) for n in (None, 5, -3, 80)],
        [RNG.integers(0, 255, (2, 3, 9)).astype("uint8")],
        False,
    ),
    (lambda np, x: np.unpackbits(x, axis=1, count=-3), [numpy.array([[3, 200]], dtype=numpy.uint8)], False),
]


@pytest.mark.share(2)
@pytest.mark.parametrize("call, arrays, _", CASES)
def test_values(call, arrays, _):
    exact = all(a.dtype.kind in "iub" for a in arrays)
    check_values(call, arrays, rtol=0 if exact else 2e-5, atol=0 if exact else 2e-5)


@pytest.mark.parametrize("call, arrays", [case[:2] for case in CASES if case[2]])
def test_gradients(call, arrays):
    check_gradient(call, arrays)


@pytest.mark.parametrize("call, arrays", [case[:2] for case in CASES if case[2]])
def test_mapped(call, arrays):
    check_mapped(call, arrays, rtol=1e-4, atol=1e-4)


# ---- sets


SETS = {
    "union1d": lambda np, x, y, **o: np.union1d(x, y, **o),
    "intersect1d": lambda np, x, y, **o: np.intersect1d(x, y, **o),
    "setdiff1d": lambda np, x, y, **o: np.setdiff1d(x, y, **o),
    "setxor1d": lambda np, x, y, **o: np.setxor1d(x, y, **o),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("pair", [(N, N[:3] + 1), (Q, Q[2:5]), (N[:0], N), (N, N[:0]), (N, N + 100)], ids=str)
def test_sets(name, pair):
    expected = SETS[name](numpy, *pair)
    numpy.testing.assert_array_equal(SETS[name](jnp, *pair), expected)
    size = len(expected) + 2
    compiled = catena.jit(lambda x, y: SETS[name](jnp, x, y, size=size, fill_value=-7))(*pair)
    numpy.testing.assert_array_equal(compiled, [*expected, -7, -7])
    with pytest.raises(ConcretizationTypeError, match="size"):
        catena.jit(lambda x, y: SETS[name](jnp, x, y))(*pair)


@pytest.mark.parametrize("name", ["intersect1d", "setxor1d", "setdiff1d"])
@pytest.mark.parametrize(
    "pair", [([1, 1, 2], [2, 3, 3]), ([], [2, 1, 2, 3]), ([3, 0, 0, 0], []), ([2, 3, 2], [2, 0, 0])]
)
def test_sets_of_which_too_much_is_promised(name, pair):
    """assume_unique=True of elements that are not: what NumPy gives, and JAX."""
    x, y = (numpy.array(v, dtype="int32") for v in pair)
    expected = SETS[name](numpy, x, y, assume_unique=True)
    numpy.testing.assert_array_equal(SETS[name](jnp, x, y, assume_unique=True), expected)


def test_sums_of_many_polynomials():
    """The further axes of the shorter one broadcast to those of the longer."""
    p, q = numpy.array([[1, 2, 3]]), numpy.array([[4, 5, 6], [7, 8, 9]])
    numpy.testing.assert_array_equal(jnp.polyadd(p, q), [[4, 5, 6], [8, 10, 12]])
    numpy.testing.assert_array_equal(jnp.polysub(p, q), [[-4, -5, -6], [-6, -6, -6]])
    numpy.testing.assert_array_equal(jnp.polyadd(q, numpy.array([2])), [[4, 5, 6], [9, 10, 11]])
    with pytest.raises(ValueError):
        jnp.polyadd(numpy.arange(3), q)


@pytest.mark.share(2)
@pytest.mark.parametrize("rowvar", [True, False])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1), (3,), (0,), (0, 1), (0, 0), (0, 3), (1, 0)])
def test_covariances_have_the_shape_of_numpy(shape, rowvar):
    x = numpy.arange(1.0, 1 + numpy.prod(shape)).reshape(shape)
    for call in (lambda np: np.cov(x, rowvar=rowvar, ddof=0), lambda np: np.cov(x, rowvar=rowvar, aweights=None)):
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call(numpy)
        found = call(jnp)
        assert found.shape == (expected.shape if x.size or expected.shape != (1, 1) else ())
        numpy.testing.assert_allclose(found, expected if found.ndim else expected.item(), rtol=1e-6)


def test_default_fill_values():
    numpy.testing.assert_array_equal(jnp.setdiff1d(jnp.arange(5) + 3, jnp.array([4]), size=6), [3, 5, 6, 7, 0, 0])
    numpy.testing.assert_array_equal(jnp.setxor1d(jnp.arange(5) + 3, jnp.array([4]), size=6), [3, 5, 6, 7, 3, 3])
    numpy.testing.assert_array_equal(jnp.intersect1d(jnp.arange(5), jnp.array([7]), size=2), [0, 0])
    numpy.testing.assert_array_equal(jnp.union1d(jnp.arange(2) + 3, jnp.array([4]), size=4), [3, 4, 3, 3])
    numpy.testing.assert_array_equal(jnp.unique(jnp.array([3, 1, 1]), size=4), [1, 3, 1, 1])


def test_intersection_with_positions():
    y = numpy.array([9, 2, 2, 1])
    for ours, theirs in zip(
        jnp.intersect1d(N, y, return_indices=True), numpy.intersect1d(N, y, return_indices=True), strict=True
    ):
        numpy.testing.assert_array_equal(ours, theirs)
    values, first, second = catena.jit(lambda x, y: jnp.intersect1d(x, y, return_indices=True, size=5))(N, y)
    numpy.testing.assert_array_equal(values, [1, 2, 9, 1, 1])
    numpy.testing.assert_array_equal(first, [1, 6, 5, 8, 8])
    numpy.testing.assert_array_equal(second, [3, 1, 0, 4, 4])


@pytest.mark.share(3)
@pytest.mark.parametrize("equal_nan", [True, False])
@pytest.mark.parametrize("x", [N, SPECIAL, M, numpy.array([[1, 2], [1, 2], [0, 1]]), N[:0]], ids=str)
@pytest.mark.parametrize("axis", [None, 0])
def test_unique(x, axis, equal_nan):
    if axis is not None and x is SPECIAL and (not equal_nan or numpy.isnan(numpy.unique(x, axis=0)).sum() > 1):
        pytest.skip("this NumPy cannot tell NaN rows apart, or together")
    options = dict(return_index=True, return_inverse=True, return_counts=True, axis=axis, equal_nan=equal_nan)
    expected = numpy.unique(x, **options)
    for ours, theirs in zip(jnp.unique(x, **options), expected, strict=True):
        numpy.testing.assert_array_equal(ours, theirs.reshape(ours.shape))
    size = expected[0].shape[axis or 0]
    compiled = catena.jit(lambda x: jnp.unique(x, size=size, fill_value=0, **options))(x)
    for ours, theirs in zip(compiled, expected, strict=True):
        numpy.testing.assert_array_equal(ours, theirs.reshape(ours.shape))
    check_jit(lambda x: jnp.unique(x, size=size + 2, fill_value=0, **options), [x])


# ---- orders that NumPy does not know


def test_descending():
    numpy.testing.assert_array_equal(jnp.sort(Q, descending=True), numpy.sort(Q)[::-1])
    numpy.testing.assert_array_equal(jnp.argsort(jnp.array([3, 1, 2, 1]), descending=True), [0, 2, 1, 3])
    numpy.testing.assert_array_equal(jnp.argsort(jnp.array([3, 1, 2, 1]), descending=True, stable=False), [0, 2, 3, 1])
    numpy.testing.assert_array_equal(jnp.partition(jnp.array([4, 1, 3, 2, 0]), 2), [0, 1, 2, 4, 3])
    numpy.testing.assert_array_equal(jnp.argpartition(jnp.array([4, 1, 3, 2, 0]), 2), [4, 1, 3, 0, 2])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_methods_of_searching(method, side):
    a = numpy.sort(numpy.concatenate([SPECIAL, SPECIAL, Q]))
    v = numpy.concatenate([SPECIAL, Q + 0.5, Q])
    found = catena.jit(lambda a, v: jnp.searchsorted(a, v, side=side, method=method))(a, v)
    numpy.testing.assert_array_equal(found, numpy.searchsorted(a, v, side=side))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
@pytest.mark.parametrize("size", [1, 7, 8, 100])
def test_a_search_in_data_that_are_not_sorted_has_one_answer(size, dtype, side):
    """By operations, as a program from the third time on, of each value alone, and with NaN anywhere."""
    rng = numpy.random.default_rng(size)
    a, v = ((50 * rng.normal(size=n)).astype(dtype) for n in (size, 40))
    if dtype != "int32":
        a[size // 2] = v[3] = numpy.nan

    def search(a, v):
        return jnp.searchsorted(a, v, side=side), jnp.digitize(v, a, right=side == "left")

    expected = catena.jit(search)(a, v)
    for _ in range(4):
        for found, places in zip(search(jnp.asarray(a), jnp.asarray(v)), expected, strict=True):
            numpy.testing.assert_array_equal(found, places)
    alone = [[int(found) for found in search(jnp.asarray(a), x)] for x in v]
    numpy.testing.assert_array_equal(alone, numpy.stack(expected, 1))


@pytest.mark.parametrize("method", ["compare_all", "binary_search", "sort", "auto"])
def test_methods_of_membership(method):
    found = catena.jit(lambda x, y: jnp.isin(x, y, method=method))(SPECIAL, SPECIAL[:4])
    numpy.testing.assert_array_equal(found, numpy.isin(SPECIAL, SPECIAL[:4]))


# ---- histograms


@pytest.mark.share(2)
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"bins": 3}, {"bins": numpy.array([0.0, 3.0, 5.0])}, {"bins": 4, "range": (0, 10)}], ids=str
)
def test_histograms(options, density):
    weights = numpy.arange(8, dtype=numpy.float32)
    for extra in ({}, {"weights": weights}):
        expected = numpy.histogram(Q.astype(float), density=density, **options, **extra)
        for fun in (
            jnp.histogram,
            catena.jit(lambda x: jnp.histogram(x, density=density, **options, **extra)),
        ):
            found = fun(Q) if fun is not jnp.histogram else fun(Q, density=density, **options, **extra)
            for ours, theirs in zip(found, expected, strict=True):
                numpy.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_histograms_of_points():
    points = numpy.stack([Q, Q[::-1]], 1)
    expected = numpy.histogramdd(points, bins=(2, 3))
    found = jnp.histogramdd(points, bins=(2, 3))
    numpy.testing.assert_array_equal(found[0], expected[0])
    assert isinstance(found[1], list)
    density = jnp.histogram2d(Q, Q[::-1], bins=3, density=True)
    for ours, theirs in zip(density, numpy.histogram2d(Q, Q[::-1], bins=3, density=True), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_counting():
    numpy.testing.assert_array_equal(jnp.bincount(jnp.array([1, 1, 3])), [0, 2, 0, 1])
    numpy.testing.assert_array_equal(jnp.bincount(jnp.array([-1, 1, 5]), length=3), [1, 1, 0])
    weighted = catena.jit(lambda x, w: jnp.bincount(x, w, length=5))(N % 5, Q)
    numpy.testing.assert_allclose(weighted, numpy.bincount(N % 5, Q), rtol=1e-6)
    with pytest.raises(ConcretizationTypeError, match="bincount"):
        catena.jit(jnp.bincount)(N)


# ---- polynomials, windows


def test_roots_of_traced_coefficients_are_in_the_order_of_eigenvalues():
    """As without jit, and as in JAX; zeros are behind the others, and what leading zeros take away is behind those."""
    coefficients = jnp.array([1.0, -6.0, 11.0, -6.0])
    roots = catena.jit(lambda p: jnp.roots(p, strip_zeros=False))
    numpy.testing.assert_allclose(roots(coefficients), jnp.roots(coefficients), rtol=1e-6)
    padded = roots(jnp.array([0.0, 0.0, 1.0, -6.0, 11.0, -6.0, 0.0]))
    numpy.testing.assert_allclose(padded, [1, 2, 3, 0, numpy.nan, numpy.nan], rtol=1e-5)
    assert numpy.isnan(roots(jnp.zeros(3)).imag).all()


def test_roots_and_division():
    roots = jnp.roots(jnp.array([0.0, 1.0, -3.0, 2.0, 0.0]))
    numpy.testing.assert_allclose(numpy.sort(roots.real), [0, 1, 2], atol=1e-5)
    unstripped = jnp.roots(jnp.array([0.0, 1.0, -3.0, 2.0]), strip_zeros=False)
    numpy.testing.assert_allclose(numpy.sort(unstripped.real), [1, 2, numpy.nan], atol=1e-5)
    with pytest.raises(ConcretizationTypeError, match="strip_zeros=False"):
        catena.jit(jnp.roots)(Q)
    quotient, remainder = jnp.polydiv(Q, jnp.array([1.0, 2.0]))
    expected, left = numpy.polydiv(Q, [1.0, 2.0])
    numpy.testing.assert_allclose(quotient, expected, rtol=1e-6)
    numpy.testing.assert_allclose(remainder[-len(left) :], left, rtol=1e-6)
    assert remainder.shape == Q.shape


def test_fits_with_covariances():
    for cov in (True, "unscaled"):
        found = jnp.polyfit(X, Q[:5], 1, cov=cov)
        for ours, theirs in zip(found, numpy.polyfit(X, Q[:5], 1, cov=cov), strict=True):
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-3)
    assert len(jnp.polyfit(X, Q[:5], 2, full=True)) == 5


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_windows(name, n):
    numpy.testing.assert_allclose(getattr(jnp, name)(n), getattr(numpy, name)(n), atol=1e-7)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
@pytest.mark.parametrize("n", [2, 5, 6, 8191, 8192, 20001])
def test_windows_are_symmetric(name, n):
    """Their second half is the first one; computed piece by piece, both are what NumPy computes at once."""
    more = (4.5,) if name == "kaiser" else ()
    found = getattr(jnp, name)(n, *more)
    assert found.dtype == numpy.float32 and numpy.array_equal(found, found[::-1])
    numpy.testing.assert_allclose(found, getattr(numpy, name)(n, *more), rtol=1e-6, atol=1e-7)


def test_kaiser():
    numpy.testing.assert_allclose(jnp.kaiser(7, 3.0), numpy.kaiser(7, 3.0), rtol=1e-5)
    numpy.testing.assert_allclose(catena.jit(jnp.kaiser, static_argnums=0)(7, 3.0), numpy.kaiser(7, 3.0), rtol=1e-5)


# ---- functions of functions


def test_vectorize():
    vecmat = jnp.vectorize(jnp.dot, signature="(n),(n,m)->(m)")
    numpy.testing.assert_allclose(vecmat(C[:, 0, :3], M), C[:, 0, :3] @ M, rtol=1e-5)
    both = jnp.vectorize(lambda x: (x.sum(), x[::-1]), signature="(n)->(),(n)")(M)
    numpy.testing.assert_allclose(both[0], M.sum(1))
    numpy.testing.assert_array_equal(both[1], M[:, ::-1])
    numpy.testing.assert_array_equal(jnp.vectorize(lambda x, y: x + y)(X, X[:, None]), X + X[:, None])
    numpy.testing.assert_array_equal(jnp.vectorize(lambda x, n: x * n, excluded={1})(X, 2), 2 * X)
    ones = jnp.vectorize(lambda a, b: a @ b, signature="(i,j),(j,k)->(i,k)")(C, M.T[None])
    numpy.testing.assert_allclose(ones, C @ M.T, rtol=1e-5)
    scaled = jnp.vectorize(lambda a, w=None, **unused: a * (2 if w is None else w), excluded={"more", 7})
    for call in (lambda: scaled(X, None), lambda: scaled(X, w=None), lambda: scaled(list(X), 2), lambda: scaled(X)):
        numpy.testing.assert_array_equal(call(), 2 * X)
    with pytest.raises(ValueError, match="Cannot pass None at locations {1}"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(M, None)
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n': 5 vs 4"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(M, X)
    with pytest.raises(TypeError, match="wrong number of positional arguments: expected 2, got 1"):
        jnp.vectorize(jnp.dot, signature="(n),(n)->()")(M)
    with pytest.raises(ValueError, match="not a valid gufunc signature: bad"):
        jnp.vectorize(jnp.dot, signature="bad")(M, M)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_apply_along_axis(axis):
    for fun in (lambda np: lambda v: v[:2] * 2, lambda np: np.sum, lambda np: lambda v: np.outer(v, v)):
        ours, theirs = jnp.apply_along_axis(fun(jnp), axis, C), numpy.apply_along_axis(fun(numpy), axis, C)
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_apply_over_axes():
    ours = jnp.apply_over_axes(jnp.sum, C, [0, 2])
    numpy.testing.assert_allclose(ours, numpy.apply_over_axes(numpy.sum, C, [0, 2]), rtol=1e-5)


def test_einsum_path():
    path, text = jnp.einsum_path("ij,jk,kl->il", M, M.T, M)
    assert path == [(0, 1), (0, 1)] and "Complete contraction" in str(text)


def test_einsum_of_two_operands_loads_no_search_for_an_order():
    """Loading opt_einsum takes as long as a tenth of what a small script waits for us."""
    script = """
import sys, catena.numpy as jnp
x = jnp.ones((2, 3))
print(jnp.einsum("ij,kj->ik", x, x), jnp.einsum("ij,jk", x, x.T), jnp.einsum("ij->j", x), "opt_einsum" in sys.modules)
jnp.einsum("ij,...j->i", x, x)
print("opt_einsum" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()[-2:]] == ["False", "True"]


@pytest.mark.parametrize("seed", range(3))
def test_what_einsum_does_without_a_search_is_what_it_does_with_one(seed):
    draw, plain = random.Random(seed), 0
    for _ in range(400):
        sizes = {label: draw.choice([1, 2, 3]) for label in "abcd"}
        terms = ["".join(draw.choices("abcd", k=draw.randint(0, 3))) for _ in range(draw.choice([1, 2, 2, 3]))]
        size = lambda label: sizes[label] if draw.random() < 0.97 else draw.choice([1, 4])  # noqa: B023
        operands = [einstein._Shaped(tuple(map(size, names))) for names in terms]
        labels = sorted({*"".join(terms), *("z" if draw.random() < 0.02 else "")})
        result = "->" + "".join(draw.sample(labels, draw.randint(0, len(labels))))
        subscripts = ",".join(terms) + (result if draw.random() < 0.7 else "")
        found = einstein._single_contraction(subscripts, *operands)
        if found is not None:
            plain += 1
            expected = einstein._contraction_list((subscripts, *operands), "auto")
            assert found[:2] == expected[:2] and [sorted(p) for p in expected[2]] == [[*p] for p in found[2]], (
                subscripts
            )
    assert plain > 150


def test_einsum_adds_up_what_only_broadcasts_before_it_multiplies():
    """A label of size 1 in one operand is the other's alone: no outer product is made to be summed."""
    for labels, x, y in [("i,ij->j", X, M[:1]), ("ij,i->j", M[:1], X), ("bi,bij->j", M[:2], C[:, :1])]:
        numpy.testing.assert_allclose(jnp.einsum(labels, x, y), numpy.einsum(labels, x, y), rtol=1e-6)
    made = catena.make_jaxpr(lambda x, y: jnp.einsum("i,ij->j", x, y))(X, M[:1])
    assert max(v.aval.size for equation in made.eqns for v in equation.outvars) == M.shape[1]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: jnp.sort(X, kind="mergesort"), TypeError, "'kind' argument to sort is not supported"),
        (lambda: jnp.argsort(X, order="a"), TypeError, "'order' argument to argsort is not supported"),
        (lambda: jnp.lexsort(()), TypeError, "len > 0 in lexsort"),
        (lambda: jnp.partition(Z, 2), NotImplementedError, "complex dtype"),
        (lambda: jnp.searchsorted(M, 3), ValueError, "1-dimensional"),
        (lambda: jnp.searchsorted(X, 3, side="bad"), ValueError, "side='bad', expected 'left' or 'right'"),
        (lambda: jnp.searchsorted(X, 3, method="bad"), ValueError, "method='bad', expected one of"),
        (lambda: jnp.digitize(X, M), ValueError, "bins must be a 1-dimensional array"),
        (lambda: jnp.isin(X, X, method="bad"), ValueError, "method='bad' is not implemented"),
        (lambda: jnp.einsum("ij,jk", M, M), ValueError, "Size of label 'j' for operand 1"),
        (
            lambda: jnp.einsum("ij", X),
            ValueError,
            "does not contain the correct number of indices for operand 0",
        ),
        (lambda: jnp.einsum("i->a", X), ValueError, "Output character 'a' did not appear in the input"),
        (lambda: jnp.einsum("i,i", X, [1, 2, 3, 4, 5]), TypeError, "got <class 'list'> at position 1"),
        (lambda: jnp.cross(X[:4], X[:4]), ValueError, "Dimension must be either 2 or 3"),
        (lambda: jnp.diff(X, n=-1), ValueError, "order must be non-negative but got -1"),
        (lambda: jnp.gradient(X[:1]), ValueError, "at least 2 elements are required"),
        (lambda: jnp.gradient(X, edge_order=2), NotImplementedError, "'edge_order' argument"),
        (lambda: jnp.gradient(M, 1.0, 2.0, 3.0), TypeError, "Invalid number of spacing arguments 3"),
        (lambda: jnp.unwrap(Z), ValueError, "complex"),
        (lambda: jnp.interp(2.5, M, X), ValueError, "one-dimensional arrays of equal size"),
        (lambda: jnp.bincount(X), TypeError, "integer type; got float32"),
        (lambda: jnp.histogram(X, bins="auto"), TypeError, "bins"),
        (lambda: jnp.cov(C), ValueError, "more than 2 dimensions"),
        (lambda: jnp.convolve(M, X), ValueError, "1-dimensional inputs"),
        (lambda: jnp.convolve(X, X[:0]), ValueError, r"inputs cannot be empty, got shapes \(5,\) and \(0,\)"),
        (lambda: jnp.correlate(X, X, mode="bad"), ValueError, "mode must be one of"),
        (lambda: jnp.polyder(X, -1), ValueError, "Order of derivative must be positive"),
        (lambda: jnp.polyfit(X, Q, 1), TypeError, "same length"),
        (lambda: jnp.vander(M), ValueError, "one-dimensional"),
        (lambda: jnp.packbits(X), TypeError, "integer or boolean"),
        (lambda: jnp.packbits(B, bitorder="bad"), ValueError, "'little' or 'big'"),
        (lambda: jnp.apply_over_axes(lambda a, i: a.sum(), M, [0]), ValueError, "correct shape"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_leaves_are_arrays():
    assert all(isinstance(x, numpy.ndarray) for x in leaves(jnp.histogram(Q)))


def test_einsum_asks_a_given_product_for_its_own_dtype():
    asked = []

    def product(a, b, numbers, precision=None, preferred_element_type=None):
        asked.append((precision, preferred_element_type))
        return lax.dot_general(a, b, numbers, precision, preferred_element_type)

    half, single = jnp.ones((2, 3), "float16"), jnp.ones((3, 4))
    jnp.einsum("ij,jk", single.T, single, _dot_general=product)
    jnp.einsum("ij,jk", half, single, precision="highest", _dot_general=product)
    jnp.einsum("ij,jk", half, single, preferred_element_type="float16", _dot_general=product)
    assert [str(dtype) for _, dtype in asked] == ["float32", "float32", "float16"]
    assert [precision for precision, _ in asked] == [None, "highest", None]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("wrong", [numpy.nan, numpy.inf])
def test_a_filter_that_is_not_finite_gives_eagerly_what_it_gives_compiled(name, mode, wrong):
    """Both multiply the zeros around the longer sequence, where NumPy adds the terms that overlap alone."""
    longer, shorter = Q, numpy.array([1, wrong, 2], numpy.float32)
    for operands in ((longer, shorter), (shorter, longer)):
        slide = lambda a, v: getattr(jnp, name)(a, v, mode=mode)  # noqa: E731
        numpy.testing.assert_array_equal(slide(*operands), catena.jit(slide)(*operands))
    hole = numpy.where(longer == 4, wrong, longer)
    numpy.testing.assert_array_equal(slide(hole, X[:3]), getattr(numpy, name)(hole, X[:3], mode=mode))


@pytest.mark.parametrize("bits", [False, True])
def test_booleans_and_integers_take_the_default_dtypes_where_jax_s_do(bits):
    """Arithmetic counts booleans in 32 bits, sums in the default integer; roots of integers have their bits, what is
    rounded the default float.
    """
    with catena.enable_x64(bits):
        b = jnp.array([True, False])
        products = [jnp.square(b), b**2, jnp.power(b, b), b // jnp.array(True), b % jnp.array(True), b << b]
        products += [*jnp.divmod(b, jnp.array(True)), jnp.fmod(b, jnp.array(True)), jnp.remainder(b, jnp.array(True))]
        assert {str(x.dtype) for x in products} == {"int32"}
        assert {str(x.dtype) for x in (jnp.cumsum(b), jnp.cumprod(b), b.sum())} == {"int64" if bits else "int32"}
        assert jnp.sqrt(jnp.square(b) + 4).dtype == "float32" and catena.nn.squareplus(b).dtype == "float32"
        wide = "float64" if bits else "float32"
        assert jnp.rint(b).dtype == jnp.angle(b).dtype == jnp.rint(jnp.int8(1)).dtype == wide
        leaves = [jnp.zeros(2, jnp.float32), 2.0]
        assert catena.flatten_util.ravel_pytree(leaves)[0].dtype == wide
        assert catena.flatten_util.ravel_pytree(())[0].dtype == "float32"


@pytest.mark.parametrize("count", [16, 17, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_polynomial_has_the_same_bits_in_every_call(count, dtype):
    """With many coefficients it is a loop, in whose steps products are rounded with their sums; NumPy's is not."""
    with catena.enable_x64(dtype == "float64"):
        p, x = RNG.normal(size=count).astype(dtype), RNG.uniform(-1.2, 1.2, 50).astype(dtype)
        found = [jnp.polyval(jnp.asarray(p), jnp.asarray(x)) for _ in range(4)]
        found += [catena.jit(jnp.polyval)(p, x), jnp.polyval(p, x), jnp.polyval(p[:, None], x)]
        assert {numpy.asarray(v).tobytes() for v in found} == {numpy.asarray(found[0]).tobytes()}
        numpy.testing.assert_allclose(found[0], numpy.polyval(p, x), rtol=2e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_interpolation_has_the_same_bits_in_every_call(dtype):
    """Eager calls were once NumPy's, which works in double precision, and finds slopes first."""
    with catena.enable_x64(dtype == "float64"):
        x, f = numpy.sort(RNG.normal(size=30)).astype(dtype), RNG.normal(size=30).astype(dtype)
        at = RNG.normal(size=200).astype(dtype)
        found = [jnp.interp(jnp.asarray(at), jnp.asarray(x), jnp.asarray(f)) for _ in range(4)]
        found += [catena.jit(jnp.interp)(at, x, f), jnp.interp(at, x, f)]
        assert {numpy.asarray(v).tobytes() for v in found} == {numpy.asarray(found[0]).tobytes()}


def test_a_few_powers_are_products():
    """Of up to eight columns each is a power of its own, with the derivative of that."""
    x = numpy.array([0.0, -0.0, 1.5, -3, numpy.inf, numpy.nan], "f")
    for n in (1, 2, 3, 8):
        found = catena.jit(lambda x: jnp.vander(x, n))(x)  # noqa: B023
        numpy.testing.assert_allclose(found, numpy.vander(x, n), rtol=4e-7)
        assert "pow " not in str(catena.make_jaxpr(lambda x: jnp.vander(x, n))(x)).replace("integer_pow", "")  # noqa: B023
    slope = catena.jit(catena.grad(lambda x: jnp.vander(x, 4).sum()))(x[:4])
    numpy.testing.assert_allclose(slope, 1 + 2 * x[:4] + 3 * x[:4] ** 2, rtol=1e-6)
    numpy.testing.assert_array_equal(jnp.vander(jnp.array([True, False]), 3), numpy.vander([1, 0], 3))
    assert jnp.vander(jnp.ones(3, "bfloat16"), 5).dtype == "bfloat16" and jnp.vander(jnp.ones(3), 0).shape == (3, 0)


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 2), (3,)])
@pytest.mark.parametrize("dtype", ["int8", "bool", "bfloat16"])
def test_unwrapping_nothing_gives_the_dtype_of_unwrapping_something(shape, dtype):
    """Arrays without elements came back as they were."""
    x = jnp.zeros(shape, dtype)
    for period in (2 * numpy.pi, 4):
        assert jnp.unwrap(x, period=period).dtype == jnp.unwrap(jnp.zeros(4, dtype), period=period).dtype
    with pytest.raises(IndexError, match="axis 5"):
        jnp.unwrap(x, axis=5)


def test_distinct_columns_of_no_rows_are_one():
    assert jnp.unique(jnp.zeros((0, 3)), axis=1).shape == (0, 1)
    assert jnp.unique(jnp.zeros((0, 3)), axis=1, size=2).shape == (0, 2)
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(jnp.zeros((0, 3)), axis=0, size=2)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("k, dtype", [*enumerate(["float32", "int32", "float16", "uint8"])])
def test_values_are_found_in_tables_of_any_length(k, dtype, side):
    """Compiled, places are halved: tables of all lengths around powers of two, with equal elements, NaN, infinities."""
    rng = numpy.random.default_rng(8)
    find = catena.jit(lambda table, values: jnp.searchsorted(table, values, side=side))
    for n in alternate(3, (*range(1, 20), 31, 32, 33, 63, 64, 65, 100), k + (side == "right")):
        table = numpy.sort(rng.integers(0, 30, n).astype(dtype))
        values = numpy.concatenate([table, rng.integers(0, 40, 50).astype(dtype)])
        if dtype == "float32":
            table[-2:] = [numpy.inf, numpy.nan][-n:]
            values[:3] = numpy.nan, numpy.inf, -numpy.inf
        numpy.testing.assert_array_equal(find(table, values), numpy.searchsorted(table, values, side))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex64"])
def test_roots_of_untrimmed_coefficients_in_double_precision(dtype):
    """The default integer is wider there than the positions that are sorted."""
    with catena.enable_x64(True):
        found = jnp.roots(jnp.array([0, 1, -3, 2]).astype(dtype), strip_zeros=False)
        assert found.dtype == ("complex64" if dtype in ("float32", "complex64") else "complex128")
        numpy.testing.assert_allclose(numpy.sort_complex(numpy.asarray(found)[:2]), [1, 2], rtol=1e-5)
        assert numpy.isnan(found[2])


@pytest.mark.parametrize("product", [jnp.dot, jnp.inner])
def test_products_of_booleans_and_a_boolean_scalar(product):
    mask, yes = jnp.array([True, False, True]), jnp.asarray(True)
    for x, y in ((mask, yes), (yes, mask), (mask, True), (yes, yes)):
        for result in (product(x, y), catena.jit(product)(x, y)):
            assert result.dtype == bool
            numpy.testing.assert_array_equal(result, numpy.asarray(x) & numpy.asarray(y))
    assert product(mask, 2).dtype == "int32"


def test_floor_division_of_weak_integers_is_weak_eager_and_compiled():
    weak, mask = jnp.stack([jnp.asarray(3), jnp.asarray(4)]), jnp.array([True, False])
    for x in (weak, mask):
        for divide in (lambda x: x // 2, lambda x: divmod(x, 2)[0], lambda x: 2 // (x + 1 - x % 2)):
            assert divide(x).weak_type and catena.jit(divide)(x).weak_type
    assert not (weak // jnp.array([1, 2])).weak_type
