"""Linear algebra by LAPACK, batched and not."""

import numpy as np
import pytest
import scipy.linalg

import catena as jax
import catena.numpy as jnp
from catena.runtime import fourier
from compiled import check, run

rng = np.random.default_rng(4)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def normal(*shape, dtype):
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def tol(dtype):
    return (
        {"rtol": 2e-3, "atol": 2e-4}
        if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4
        else {"rtol": 1e-9, "atol": 1e-10}
    )


def real(dtype):
    return np.zeros(0, dtype).real.dtype


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 2), (0,)])
def test_cholesky_and_triangular_solve(dtype, batch):
    a = normal(*batch, 5, 5, dtype=dtype)
    a = a @ np.conj(np.swapaxes(a, -1, -2)) + 5 * np.eye(5, dtype=dtype)
    low = np.linalg.cholesky(a).astype(dtype)
    check(lambda b, a: b.library("cholesky", [a], [(a.shape, a.dtype)]), low, a, **tol(dtype))
    y = normal(*batch, 5, 4, dtype=dtype)
    for left in (True, False):
        for lower in (True, False):
            for transposed in (0, 1, 2):
                tri = low if lower else np.swapaxes(low, -1, -2)
                op = [
                    lambda m: m,
                    lambda m: np.swapaxes(m, -1, -2),
                    lambda m: np.conj(np.swapaxes(m, -1, -2)),
                ][transposed]
                rhs = y if left else np.swapaxes(y, -1, -2)
                want = (
                    np.linalg.solve(op(tri), rhs)
                    if left
                    else np.swapaxes(np.linalg.solve(np.swapaxes(op(tri), -1, -2), y), -1, -2)
                )
                junk = tri.copy()
                check(
                    lambda b, a, y: b.library(
                        "triangular_solve",
                        [a, y],
                        [(y.shape, y.dtype)],
                        left_side=left,
                        lower=lower,
                        transpose_a=transposed,
                        unit_diagonal=False,
                    ),
                    want.astype(dtype),
                    junk,
                    np.ascontiguousarray(rhs),
                    **tol(dtype),
                )


def test_cholesky_of_an_indefinite_matrix_is_nan():
    a = np.stack([np.eye(3), -np.eye(3)])
    got = run(lambda b, a: b.library("cholesky", [a], [(a.shape, a.dtype)]), a)
    np.testing.assert_array_equal(got, np.stack([np.eye(3), np.full((3, 3), np.nan)]))


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [16, 17, 32, 33])
@pytest.mark.parametrize("size", [2.0**-100, 1, 2.0**20, 2.0**60])
def test_cholesky_of_covariances_of_what_lies_far_apart(n, size):
    """Many elements, or products of them, are subnormal: such matrices are multiplied before, each by its own number."""
    x = np.random.default_rng(n).normal(size=(4, n, 3)) * 4
    a = np.exp(-0.5 * np.sum((x[:, :, None] - x[:, None]) ** 2, -1)) + 0.1 * np.eye(n)
    a = np.concatenate([a * size, np.eye(n)[None] + 0.01, -np.eye(n)[None]]).astype(np.float32)
    made = np.asarray(jax.jit(jnp.linalg.cholesky)(a))
    wide = np.linalg.cholesky(a[:5].astype(np.float64))
    for factor in (made[:5], np.asarray(jnp.linalg.cholesky(a[:5]))):
        np.testing.assert_allclose(factor[4], wide[4], rtol=1e-5)
        np.testing.assert_allclose(factor[:4], wide[:4], rtol=1e-4, atol=1e-6 * np.sqrt(size))
    np.testing.assert_array_equal(jax.jit(jnp.linalg.cholesky)(a[2]), made[2])
    assert np.isnan(made[5][np.tril_indices(n)]).all()


def test_cholesky_of_subnormal_matrices():
    x = np.random.default_rng(7).normal(size=(40, 40))
    a = ((np.eye(40) + 0.1 * x @ x.T) * 2.0**-120).astype(np.float32)
    wide = np.linalg.cholesky(a.astype(np.float64))
    for factor in (jnp.linalg.cholesky, jax.jit(jnp.linalg.cholesky)):
        np.testing.assert_allclose(factor(a), wide, rtol=1e-3, atol=1e-6 * 2.0**-60)
        np.testing.assert_allclose(factor(a[:20, :20]), wide[:20, :20], rtol=1e-3, atol=1e-6 * 2.0**-60)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 4, 4), (1, 1)])
def test_factorisations(dtype, shape):
    a = normal(*shape, dtype=dtype)
    m, n = shape[-2:]
    k, batch = min(m, n), shape[:-2]
    lu, piv, info = run(
        lambda b, a: b.library("lu", [a], [(a.shape, a.dtype), ((*batch, k), np.int32), (batch, np.int32)]), a
    )
    want = [scipy.linalg.lapack.get_lapack_funcs("getrf", (x,))(x) for x in a.reshape(-1, m, n)]
    np.testing.assert_allclose(lu.reshape(-1, m, n), np.stack([w[0] for w in want]), **tol(dtype))
    np.testing.assert_array_equal(piv.reshape(-1, k), np.stack([w[1] for w in want]))

    def qr(b, a):
        f, taus = b.library("qr", [a], [(a.shape, a.dtype), ((*batch, k), a.dtype)])
        first = b.slice(f, (0,) * f.ndim, (*f.shape[:-1], k))
        return [f, b.library("householder_product", [first, taus], [(first.shape, a.dtype)])[0]]

    f, q = run(qr, a)
    np.testing.assert_allclose(q @ np.triu(f[..., :k, :]), a, **tol(dtype))
    np.testing.assert_allclose(
        np.conj(np.swapaxes(q, -1, -2)) @ q, np.broadcast_to(np.eye(k), (*batch, k, k)), **tol(dtype)
    )
    for full in (True, False):
        p, r = (m, n) if full else (k, k)
        s, u, vt = run(
            lambda b, a: b.library(
                "svd",
                [a],
                [((*batch, k), real(dtype)), ((*batch, m, p), a.dtype), ((*batch, r, n), a.dtype)],
                compute_uv=True,
                full_matrices=full,
            ),
            a,
        )
        np.testing.assert_allclose(u[..., :k] * s[..., None, :] @ vt[..., :k, :], a, **tol(dtype))
    alone = run(
        lambda b, a: b.library("svd", [a], [((*batch, k), real(dtype))], compute_uv=False, full_matrices=False),
        a,
    )
    np.testing.assert_allclose(alone, s, **tol(dtype))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_eigenvalues(dtype, batch):
    a = normal(*batch, 5, 5, dtype=dtype)
    h = a + np.conj(np.swapaxes(a, -1, -2))
    shape = (*batch, 5)
    v, w = run(lambda b, a: b.library("eigh", [a], [(a.shape, a.dtype), (shape, real(dtype))], lower=True), h)
    np.testing.assert_allclose(h @ v, v * w[..., None, :], **tol(dtype))
    c = np.result_type(dtype, np.complex64)
    w, left, right = run(
        lambda b, a: b.library("eig", [a], [(shape, c), (a.shape, c), (a.shape, c)], left=True, right=True), a
    )
    np.testing.assert_allclose(a @ right, right * w[..., None, :], **tol(dtype))
    np.testing.assert_allclose(
        np.conj(np.swapaxes(left, -1, -2)) @ a,
        w[..., :, None] * np.conj(np.swapaxes(left, -1, -2)),
        **tol(dtype),
    )
    t, z = run(lambda b, a: b.library("schur", [a], [(a.shape, a.dtype)] * 2, compute_vectors=True), a)
    np.testing.assert_allclose(z @ t @ np.conj(np.swapaxes(z, -1, -2)), a, **tol(dtype))
    hess, taus = run(lambda b, a: b.library("hessenberg", [a], [(a.shape, a.dtype), ((*batch, 4), a.dtype)]), a)
    one, n = (hess[0], a[0]) if batch else (hess, a)
    np.testing.assert_allclose(np.triu(one, -1), scipy.linalg.hessenberg(n), **tol(dtype))
    d, e = run(
        lambda b, a: b.library(
            "tridiagonal",
            [a],
            [
                (a.shape, a.dtype),
                (shape, real(dtype)),
                ((*batch, 4), real(dtype)),
                ((*batch, 4), a.dtype),
                (batch, np.int32),
            ],
            lower=True,
        )[1:3],
        h,
    )
    whole = np.zeros((*batch, 5, 5))
    i = np.arange(5)
    whole[..., i, i], whole[..., i[1:], i[:-1]], whole[..., i[:-1], i[1:]] = d, e, e
    np.testing.assert_allclose(np.linalg.eigvalsh(whole), np.linalg.eigvalsh(h), **tol(dtype))


def test_batches_shared_out_among_threads():
    """More members than chunks, and not a multiple of them, with workspaces: each is as it is alone."""
    a = normal(75, 40, 40, dtype=np.float64)
    a = a + np.swapaxes(a, 1, 2)
    specs = [(a.shape, a.dtype), (a.shape[:2], a.dtype)]
    together = run(lambda b, a: b.library("eigh", [a], specs, lower=True), a)
    for i in (0, 1, 2, 37, 73, 74):
        alone = run(lambda b, a: b.library("eigh", [a], [(s[1:], d) for s, d in specs], lower=True), a[i])
        for whole, one in zip(together, alone, strict=True):
            np.testing.assert_array_equal(whole[i], one)


def test_tridiagonal_solve():
    d, dl, du = normal(6, dtype=np.float64) + 5, normal(6, dtype=np.float64), normal(6, dtype=np.float64)
    x = normal(6, 2, dtype=np.float64)
    a = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    check(
        lambda b, *xs: b.library("tridiagonal_solve", xs, [(x.shape, x.dtype)]),
        np.linalg.solve(a, x),
        dl,
        d,
        du,
        x,
        rtol=1e-10,
    )


def test_fft():
    x = normal(3, 16, dtype=np.complex64)
    check(
        lambda b, x: b.library("fft", [x], [(x.shape, x.dtype)], kind="fft", lengths=(16,)),
        np.fft.fft(x).astype(np.complex64),
        x,
        rtol=1e-4,
        atol=1e-5,
    )
    r = normal(3, 16, dtype=np.float32)
    check(
        lambda b, x: b.library("fft", [x], [((3, 9), np.complex64)], kind="rfft", lengths=(16,)),
        np.fft.rfft(r).astype(np.complex64),
        r,
        rtol=1e-4,
        atol=1e-5,
    )


# ---- Fourier transforms


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(8,), (3, 12), (2, 5, 6), (0, 4), (2,)])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_fourier_transforms_in_loops(shape, kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(np.float32)
    if kind != "rfft":
        x = (x + 1j * rng.normal(size=shape)).astype(np.complex64)
    transform = getattr(jnp.fft, kind)
    total = jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda i, y: y + transform(x * (i + 1)), transform(x) * 0))(x)
    wanted = 10 * getattr(np.fft, kind)(x)
    assert total.dtype == jnp.asarray(transform(x)).dtype
    np.testing.assert_allclose(total, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
@pytest.mark.parametrize("public", [False, True], ids=["compiled module", "public functions"])
def test_fourier_transforms_by_scipy(kind, public, monkeypatch):
    if public:
        monkeypatch.setattr(fourier, "pocketfft", lambda: None)
    x = normal(3, 12, dtype=np.float32 if kind == "rfft" else np.complex64)
    lengths = (22,) if kind == "irfft" else (12,)
    np.testing.assert_allclose(fourier.transform(kind, x, lengths), getattr(np.fft, kind)(x), rtol=1e-5, atol=1e-5)


# ---- what is asked for twice

RESULTS = {  # what the step is called, what is asked for, and NumPy's
    "eigh": (
        "lapack ssyevd",
        lambda x: jnp.sum(jnp.linalg.eigh(x)[0]) + jnp.abs(jnp.linalg.eigh(x)[1]),
        lambda x: np.trace(x) + np.abs(np.linalg.eigh(x)[1]),
    ),
    "svd": (
        "lapack sgesdd",
        lambda x: jnp.linalg.norm(x, "nuc") / jnp.linalg.norm(x, 2),
        lambda x: np.linalg.norm(x, "nuc") / np.linalg.norm(x, 2),
    ),
    "qr": (
        "lapack sgeqrf",
        lambda x: jnp.linalg.qr(x)[0] @ jnp.linalg.qr(x)[1],
        lambda x: x,
    ),
    "lu": (
        "small_matrices lu",
        lambda x: jnp.linalg.inv(x) * jnp.linalg.det(x),
        lambda x: np.linalg.inv(x) * np.linalg.det(x),
    ),
    "sort": (
        "sort 12 rows",
        lambda x: jnp.sort(x)[:, 0] - jnp.sort(x)[:, -1],
        lambda x: x.min(1) - x.max(1),
    ),
    "fft": (
        "short rows",
        lambda x: jnp.abs(jnp.fft.fft(x)) + jnp.imag(jnp.fft.fft(x)),
        lambda x: np.abs(np.fft.fft(x)) + np.imag(np.fft.fft(x)),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_what_is_asked_for_twice_is_done_once(name):
    step, f, expected = RESULTS[name]
    x = normal(12, 12, dtype=np.float32)
    x = x + x.T + 8 * np.diag(np.arange(12, dtype=np.float32))
    assert jax.jit(f).lower(x).compile().as_text("program").count(step) == 1
    np.testing.assert_allclose(jax.jit(f)(x), expected(x.astype(np.float64)), rtol=2e-4, atol=2e-3)


def test_the_gradient_of_singular_values_decomposes_once():
    x = normal(12, 9, dtype=np.float32)
    gradient = jax.jit(jax.value_and_grad(lambda x: jnp.linalg.norm(x, 2)))
    assert gradient.lower(x).compile().as_text("program").count("lapack") == 1
    u, s, vh = np.linalg.svd(x.astype(np.float64))
    value, slope = gradient(x)
    np.testing.assert_allclose(value, s[0], rtol=1e-5)
    np.testing.assert_allclose(slope, np.outer(u[:, 0], vh[0]), atol=1e-4)
