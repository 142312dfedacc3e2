"""``catena.scipy.linalg`` beside SciPy and by what mathematics determines: products, orthogonality, residuals."""

import re
import zlib

import numpy as np
import pytest
import scipy.linalg

import catena as jax
import catena.numpy as jnp
from catena.scipy import linalg

RNG = np.random.default_rng(15)


@pytest.fixture(autouse=True)
def numbers_of_its_own(request):
    """Each test draws the same numbers, whichever ran before it."""
    RNG.bit_generator.state = np.random.default_rng(zlib.crc32(request.node.name.encode())).bit_generator.state


DTYPES = (np.float32, np.complex64)


def matrices(*shape, dtype=np.float32) -> np.ndarray:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(n: int, dtype=np.float32) -> np.ndarray:
    x = matrices(n, n, dtype=dtype)
    return (x @ adjoint(x) + n * np.eye(n)).astype(dtype)


def assert_near(found, expected, tolerance=2e-5):
    """By the norm of what is expected."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= tolerance * max(np.linalg.norm(expected), 1)


def assert_unitary(q):
    assert_near(adjoint(np.asarray(q)) @ np.asarray(q), np.eye(np.shape(q)[-1]))


def check_slope(function, *primals, tolerance=1e-2):
    """Forward and reverse derivatives against a central difference, in a random direction."""
    directions = [RNG.normal(size=x.shape).astype(x.dtype) for x in primals]
    step = 1e-2
    forward = jax.jvp(function, primals, tuple(directions))[1]
    moved = [function(*[x + s * d for x, d in zip(primals, directions, strict=True)]) for s in (step, -step)]
    assert_near(forward, (moved[0] - moved[1]) / (2 * step), tolerance)
    value, pull = jax.vjp(function, *primals)
    weights = RNG.normal(size=value.shape).astype(value.dtype)
    reverse = sum(np.vdot(d, np.conj(g)) for d, g in zip(directions, pull(jnp.asarray(weights)), strict=True))
    assert_near(np.real(reverse), np.real(np.sum(weights * np.asarray(forward))), tolerance)


# ------------------------------------------------------------------------------------------------------------
# Structured matrices

V, C = np.float32([1, -2, 3, 5]), np.complex64([1, 2j, 3 - 1j])
STRUCTURED = {
    "circulant": [(V,), (C,)],
    "toeplitz": [(V,), (C,), (V, C), (V[:2], V)],
    "hankel": [(V,), (V, C), (V[:2], V)],
    "companion": [(V,), (C,)],
    "fiedler": [(V,)],
    "fiedler_companion": [(V,), (C,), (np.arange(1.0, 8, dtype=np.float32),), (V[:2],)],
    "leslie": [(V, V[1:])],
    "convolution_matrix": [(V, n, mode) for n in (1, 3, 4, 6) for mode in ("full", "same", "valid")],
    "hilbert": [(1,), (5,)],
    "invhilbert": [(1,), (6,)],
    "pascal": [(5,), (5, "lower"), (5, "upper"), (30,)],
    "invpascal": [(5,), (5, "lower"), (5, "upper")],
    "helmert": [(1,), (5,), (5, True)],
    "hadamard": [(1,), (8,), (4, np.float32)],
    "dft": [(1,), (5,), (7, "sqrtn"), (6, "n")],
    "block_diag": [(V, np.eye(2, dtype=np.float32), 3.0), (np.zeros((0, 2), np.float32), V)],
}


@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_matrices_are_scipys(name):
    for arguments in STRUCTURED[name]:
        found = getattr(linalg, name)(*arguments)
        expected = getattr(scipy.linalg, name)(*arguments)
        np.testing.assert_allclose(found, expected, 1e-6, 1e-6)
        assert found.dtype == np.asarray(found).dtype and found.dtype.itemsize <= 8


def test_pascals_matrix_is_of_floats():
    with jax.enable_x64(True):
        assert linalg.pascal(4).dtype == "float32" and linalg.invpascal(4).dtype == "float64"


def test_structured_matrices_of_stacks_are_those_of_their_vectors():
    stack = matrices(2, 3, 4)
    for function in (linalg.circulant, linalg.toeplitz, linalg.hankel, linalg.fiedler, linalg.companion):
        one_by_one = np.stack([np.stack([function(v) for v in row]) for row in stack])
        np.testing.assert_array_equal(function(stack), one_by_one)
        np.testing.assert_array_equal(jax.vmap(jax.vmap(function))(stack), one_by_one)
    check_slope(lambda c, r: linalg.toeplitz(c, r) * 2, V, V[1:])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: linalg.hadamard(3), ValueError),
        (lambda: linalg.hadamard(4, bool), TypeError),
        (lambda: linalg.helmert(0), ValueError),
        (lambda: linalg.pascal(3, "diagonal"), ValueError),
        (lambda: linalg.hilbert(2.5), TypeError),
        (lambda: linalg.hilbert(-1), TypeError),
        (lambda: linalg.dft(3, "half"), ValueError),
        (lambda: linalg.dft(3, dtype=np.float32), ValueError),
        (lambda: linalg.companion(V[:1]), ValueError),
        (lambda: linalg.leslie(V, V), ValueError),
        (lambda: linalg.hankel(1.0), ValueError),
        (lambda: linalg.block_diag(np.ones((1, 1, 1))), ValueError),
        (lambda: linalg.convolution_matrix(V, 0), ValueError),
        (lambda: linalg.convolution_matrix(V, 2, "other"), ValueError),
        (lambda: linalg.toeplitz([1.0]), TypeError),
        (lambda: linalg.cho_solve((np.eye(3), True), V), ValueError),
        (lambda: linalg.lu_solve(linalg.lu_factor(np.eye(4)), V, 3), ValueError),
        (lambda: linalg.solve_triangular(np.eye(4), V, "X"), ValueError),
        (lambda: linalg.solve(np.eye(4), V, assume_a="banded"), ValueError),
        (lambda: linalg.solve_sylvester(np.eye(2), np.eye(3), np.eye(2)), ValueError),
        (lambda: linalg.solve_sylvester(np.eye(2), np.eye(2), np.eye(2), method="other"), ValueError),
        (lambda: linalg.eigh(np.eye(2), np.eye(2)), NotImplementedError),
        (lambda: linalg.eigh(np.eye(2), type=2), NotImplementedError),
        (lambda: linalg.eigh_tridiagonal(np.arange(3), np.arange(2)), TypeError),
        (lambda: linalg.eigh_tridiagonal(V, V), TypeError),
        (lambda: linalg.eigh_tridiagonal(V, V[1:], select="i"), ValueError),
        (lambda: linalg.eigh_tridiagonal(V, V[1:], select="i", select_range=(0, 4)), ValueError),
        (lambda: linalg.schur(np.eye(2), "triangular"), ValueError),
        (lambda: linalg.schur(np.eye(2, dtype=int)), TypeError),
        (lambda: linalg.rsf2csf(np.eye(2), np.eye(3)), ValueError),
        (lambda: linalg.polar(np.eye(2), "both"), ValueError),
        (lambda: linalg.polar(np.eye(2), method="newton"), ValueError),
        (lambda: linalg.qr(np.eye(2), mode="raw"), ValueError),
        (lambda: linalg.qr_multiply(np.eye(2), V), ValueError),
        (lambda: linalg.expm(np.ones((2, 3))), ValueError),
        (lambda: linalg.expm(np.ones((2, 2), np.float16)), TypeError),
        (lambda: linalg.expm_frechet(np.eye(2), np.eye(3)), ValueError),
        (lambda: linalg.sqrtm(np.ones((2, 2, 2))), ValueError),
        (lambda: linalg.funm(np.eye(2), lambda x: 1.0), ValueError),
    ],
)
def test_bad_input_is_refused(call, error):
    with pytest.raises(error):
        call()


# ------------------------------------------------------------------------------------------------------------
# Factorisations and systems


@pytest.mark.parametrize("dtype", DTYPES)
def test_factorisations_make_their_matrices_again(dtype):
    a, p, tall = matrices(4, 4, dtype=dtype), positive(4, dtype), matrices(5, 3, dtype=dtype)
    upper, lower = linalg.cholesky(p), linalg.cholesky(p, lower=True)
    assert_near(adjoint(np.asarray(upper)) @ upper, p)
    assert_near(lower @ adjoint(np.asarray(lower)), p)
    for x in (a, tall, adjoint(tall)):
        permutation, left, right = linalg.lu(x)
        assert_near(np.asarray(permutation) @ left @ right, x)
        assert_near(np.matmul(*linalg.lu(x, permute_l=True)), x)
        q, r, order = linalg.qr(x, pivoting=True, mode="economic")
        assert_near(q @ r, x[:, order])
        assert_unitary(q)
        u, s, vh = linalg.svd(x, full_matrices=False)
        assert_near((u * s) @ vh, x)
    h, q = linalg.hessenberg(a, calc_q=True)
    assert_unitary(q)
    assert_near(q @ h @ adjoint(np.asarray(q)), a)
    assert not np.tril(h, -2).any()
    w, v = linalg.eigh(p)
    assert_near((v * w) @ adjoint(np.asarray(v)), p)


@pytest.mark.parametrize("dtype", DTYPES)
def test_polar_factors_of_every_shape(dtype):
    for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3)):
        a = matrices(*shape, dtype=dtype)
        for method in ("qdwh", "svd"):
            for side in ("right", "left"):
                u, p = map(np.asarray, linalg.polar(a, side, method=method))
                assert_near(u @ p if side == "right" else p @ u, a)
                assert_near(p, adjoint(p))
                assert np.linalg.eigvalsh(p).min() > -1e-5
                assert_unitary(u if shape[-2] >= shape[-1] else adjoint(u)) if len(shape) == 2 else None
    assert linalg.polar(np.zeros((0, 3)))[1].shape == (3, 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_schur_forms(dtype):
    a = matrices(2, 5, 5, dtype=dtype)
    form, vectors = map(np.asarray, linalg.schur(a))
    assert_near(vectors @ form @ adjoint(vectors), a)
    for t, z in (linalg.schur(a, "complex"), linalg.rsf2csf(form, vectors)):
        t, z = np.asarray(t), np.asarray(z)
        assert_near(z @ t @ adjoint(z), a)
        assert_near(adjoint(z) @ z, np.broadcast_to(np.eye(5), z.shape))
        assert not np.tril(t, -1).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems_are_solved(dtype):
    a = matrices(3, 4, 4, dtype=dtype) + 4 * np.eye(4, dtype=dtype)
    p = np.stack([positive(4, dtype) for _ in range(3)])
    lu, cho = linalg.lu_factor(a), linalg.cho_factor(p, lower=True)
    low = np.tril(a)
    turned = (lambda x: x, lambda x: np.swapaxes(x, -1, -2), adjoint)
    for b in (matrices(4), matrices(4, 2, dtype=dtype), matrices(3, 4, 2)):
        product = np.matmul if b.ndim > 1 else np.dot
        for trans, turn in enumerate(turned):
            assert_near(product(turn(a), linalg.lu_solve(lu, b, trans)), np.broadcast_to(b, (3, *b.shape[-2:]))) if (
                b.ndim > 1
            ) else assert_near(np.einsum("bij,bj->bi", turn(a), linalg.lu_solve(lu, b, trans)), np.stack([b] * 3))
        x = np.asarray(linalg.cho_solve(cho, b))
        assert_near(x, linalg.solve(p, b), 1e-4)
        assert_near(x, linalg.solve(p, b, assume_a="pos"), 1e-4)
        assert_near(linalg.solve_triangular(a, b, lower=True), linalg.solve(low, b), 1e-4)
        assert_near(linalg.solve_triangular(a, b, "C", lower=True), linalg.solve(adjoint(low), b), 1e-4)
    slopes = [
        jax.grad(lambda p, b, how=how: linalg.solve(p, b, assume_a=how).real.sum(), (0, 1))(p[0], p[1])
        for how in ("gen", "pos")
    ]
    for by_lu, by_cholesky in zip(*slopes, strict=True):
        assert_near(by_cholesky, by_lu, 1e-4)
    with pytest.warns(FutureWarning, match="stack of vectors"):
        assert linalg.cho_solve(cho, matrices(3, 4)).shape == (3, 4)


@pytest.mark.share(3)
@pytest.mark.parametrize("method", ["schur", "eigen"])
def test_sylvesters_equation(method):
    dtype = np.float32 if method == "schur" else np.complex64
    a, b, c = matrices(2, 3, 3, dtype=dtype), matrices(3, 3, dtype=dtype), matrices(2, 3, 3, dtype=dtype)
    x = np.asarray(linalg.solve_sylvester(a, b, c, method=method))
    assert x.dtype == dtype
    assert_near(a @ x + x @ b, c, 2e-4)
    a, b, c = matrices(3, 3) + 4 * np.eye(3, dtype=np.float32), matrices(3, 3), matrices(3, 3)
    if method == "schur":
        check_slope(linalg.solve_sylvester, a, b, c, tolerance=3e-2)
    assert np.isnan(linalg.solve_sylvester(a, -a, a, method=method)).all()
    assert linalg.solve_sylvester(np.zeros((0, 0)), b, np.zeros((0, 3)), method=method).shape == (0, 3)


def test_qr_multiply_is_the_product():
    for a in (matrices(5, 3, dtype=np.complex64), matrices(3, 5, dtype=np.complex64)):
        q = np.asarray(linalg.qr(a, mode="economic")[0])
        m, k = q.shape
        c, d = matrices(k, 2), matrices(2, m)
        assert_near(linalg.qr_multiply(a, c, "left")[0], q @ c)
        assert_near(linalg.qr_multiply(a, d)[0], d @ q)
        assert_near(linalg.qr_multiply(a, d[0], conjugate=True)[0], d[0] @ q.conj())
        assert_near(linalg.qr_multiply(a, c[:, 0], "left")[0], q @ c[:, 0])


# ------------------------------------------------------------------------------------------------------------
# Tridiagonal eigenvalues


def test_tridiagonal_eigenvalues():
    d, e = matrices(9), matrices(8)
    expected, _ = scipy.linalg.eigh_tridiagonal(d.astype(float), e.astype(float))
    np.testing.assert_allclose(linalg.eigh_tridiagonal(d, e, eigvals_only=True), expected, atol=3e-6)
    np.testing.assert_allclose(linalg.eigh_tridiagonal(d, e, eigvals_only=True, tol=0.1), expected, atol=0.1)
    some = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(2, 4))
    np.testing.assert_allclose(some, expected[2:5], atol=3e-6)
    low, high = expected[1:3].mean(), expected[5:7].mean()
    some = linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="v", select_range=(low, high))
    np.testing.assert_allclose(some, expected[2:6], atol=3e-6)
    assert linalg.eigh_tridiagonal(d, e, eigvals_only=True, select="v", select_range=(50, 51)).shape == (0,)
    w, v = linalg.eigh_tridiagonal(d, e)
    dense = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    assert_near(dense @ v, v * w)
    assert_unitary(v)
    apart = d + 4 * np.arange(9, dtype=np.float32)  # no two so close that differences see how their vectors turn
    check_slope(lambda d, e: linalg.eigh_tridiagonal(d, e, eigvals_only=True), apart, e, tolerance=2e-2)
    assert linalg.eigh_tridiagonal(d[:1], e[:0], eigvals_only=True).shape == (1,)


def test_tridiagonal_eigenvalues_of_split_and_equal_ones():
    for d, e in (
        (np.ones(5), np.zeros(4)),
        (np.float32([1, 1, 2, 2]), np.float32([0, 1, 0])),
        (np.zeros(4), np.ones(3)),
    ):
        d, e = d.astype(np.float32), e.astype(np.float32)
        expected = np.linalg.eigvalsh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1))
        np.testing.assert_allclose(linalg.eigh_tridiagonal(d, e, eigvals_only=True), expected, atol=2e-6)


# ------------------------------------------------------------------------------------------------------------
# Functions of matrices


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponentials(dtype):
    wide = np.float64 if dtype == np.float32 else np.complex128
    for scale in (0.0, 1e-3, 1.0, 3.0, 20.0):
        a = matrices(4, 4, dtype=dtype)
        a *= np.float32(scale / np.linalg.norm(a, 2))
        assert_near(linalg.expm(a), scipy.linalg.expm(a.astype(wide)), 1e-5 * max(scale, 1))
        assert_near(linalg.expm(np.triu(a), upper_triangular=True), linalg.expm(np.triu(a)), 1e-5 * max(scale, 1))
    stack = matrices(2, 3, 4, 4, dtype=dtype) * np.float32([[[[1]], [[8]], [[0.1]]]] * 2)
    one_by_one = np.stack([np.stack([linalg.expm(a) for a in row]) for row in stack])
    assert_near(linalg.expm(stack), one_by_one)
    assert linalg.expm(np.zeros((0, 0), dtype)).shape == (0, 0)


def test_exponentials_of_large_norm_are_not_squared_too_often():
    a = np.float32([[40.0, 1.0], [0.0, -40.0]])
    assert np.isfinite(linalg.expm(a)).all()
    assert np.isnan(linalg.expm(a, max_squarings=2)).all()
    assert np.isnan(linalg.expm(np.full((2, 2), np.inf, np.float32))).all()
    assert np.isnan(linalg.expm(np.full((2, 2), np.nan, np.float32))).all()


def test_the_derivative_of_the_exponential():
    a, e = matrices(3, 3), matrices(3, 3)
    value, derivative = linalg.expm_frechet(a, e)
    expected = scipy.linalg.expm_frechet(a.astype(float), e.astype(float))
    assert_near(value, expected[0])
    assert_near(derivative, expected[1])
    assert_near(linalg.expm_frechet(a, e, method="blockEnlarge", compute_expm=False), expected[1])
    check_slope(linalg.expm, a)
    check_slope(linalg.expm, 9 * a / np.linalg.norm(a, 1))
    np.testing.assert_allclose(jax.grad(lambda x: linalg.expm(x).sum())(np.zeros((2, 2), np.float32)), np.ones((2, 2)))
    assert_near(
        jax.vmap(jax.grad(lambda x: linalg.expm(x)[0, 0]))(np.stack([a, e]))[0],
        jax.grad(lambda x: linalg.expm(x)[0, 0])(a),
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_square_roots(dtype):
    for a in (
        positive(5, dtype),
        matrices(5, 5, dtype=dtype),
        np.triu(matrices(4, 4, dtype=dtype)),
        np.zeros((2, 2), dtype),
    ):
        root = np.asarray(linalg.sqrtm(a))
        assert_near(root @ root, a, 2e-4)
        assert np.linalg.eigvals(root).real.min() > -1e-4  # the principal one
    assert np.isnan(linalg.sqrtm(dtype([[0, 1], [0, 0]]))).any()
    assert_near(jax.vmap(linalg.sqrtm)(np.stack([positive(3)] * 2))[0] * 0 + linalg.sqrtm(np.eye(3)), np.eye(3))
    check_slope(lambda x: linalg.sqrtm(x).real, positive(3))


def test_functions_of_matrices_by_their_values():
    a = matrices(5, 5)
    for function, expected in (
        (jnp.exp, linalg.expm(a)),
        (lambda x: x * x, a @ a),
        (lambda x: 1 / x, np.linalg.inv(a)),
    ):
        found, error = linalg.funm(a, function, disp=False)
        assert_near(found, expected, 1e-3)
        assert 0 < error < 1e-2
    assert float(linalg.funm(np.eye(3, dtype=np.float32), jnp.exp, disp=False)[1]) <= 1


def test_all_of_it_under_jit():
    p, v = positive(4), matrices(4)

    def everything(p, v):
        return [
            linalg.cho_solve(linalg.cho_factor(p), v),
            linalg.solve_sylvester(p, p, p),
            linalg.expm(p / 8),
            linalg.polar(p)[1],
            linalg.eigh_tridiagonal(v, v[1:], eigvals_only=True),
            linalg.sqrtm(p).real,
            linalg.toeplitz(v),
        ]

    for found, expected in zip(jax.jit(everything)(p, v), everything(p, v), strict=True):
        assert_near(found, expected)
    np.testing.assert_allclose(everything(p, v)[1], np.eye(4) / 2, atol=1e-5)


def test_equations_of_real_matrices_go_by_the_real_schur_form():
    """Whose pairs of conjugate eigenvalues are rotated to complex ones."""
    turn = np.array([[1, -5, 2, 0], [5, 1, 0, 1], [0, 0, 3, -2], [0, 0, 2, 3]], np.float32)
    q = np.linalg.qr(matrices(4, 4))[0]
    a, c = q @ turn @ q.T, matrices(4, 4)
    for made in (jax.make_jaxpr(linalg.sqrtm)(a), jax.make_jaxpr(linalg.solve_sylvester)(a, a, c)):
        forms = re.findall(r":(\w+)\[4,4\] = schur", str(made))
        assert forms and set(forms) == {"f32"}
    root, x = linalg.sqrtm(a), linalg.solve_sylvester(a, a, c)
    assert root.dtype == np.complex64
    assert_near(root @ root, a)
    np.testing.assert_allclose(np.imag(root), 0, atol=1e-5)
    assert_near(a @ x + x @ a, c)


@pytest.mark.parametrize("lower", [False, True])
def test_which_triangle_a_cholesky_factor_is_stays_a_bool(lower):
    a = jnp.array([[4.0, 2.0], [2.0, 2.0]])
    for _ in range(4):  # functions of the library may be compiled when they are called again
        c, is_lower = linalg.cho_factor(a, lower=lower)
        assert is_lower is lower
        np.testing.assert_allclose(linalg.cho_solve((c, is_lower), jnp.array([8.0, 6.0])), [1.0, 2.0], rtol=1e-6)
