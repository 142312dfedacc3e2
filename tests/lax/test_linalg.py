"""Linear algebra and Fourier transforms: what factors multiply to, every rule, failures as NaN, errors."""

import itertools

import numpy as np
import pytest

import catena
import catena.numpy
from catena.lax import linalg
from catena.lax.fourier import FftType, fft
from checkers import check_grads, check_jit, check_primitive, check_vmap, raises


def normal(*shape, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.swapaxes(np.asarray(x), -1, -2).conj()


def definite(n=4, seed=0, dtype=np.float64, batch=()):
    a = normal(*batch, n, n, seed=seed, dtype=dtype)
    return (a @ adjoint(a) + n * np.eye(n)).astype(dtype)


def close(actual, expected):
    actual = np.asarray(actual)
    tol = 1e-4 if actual.dtype in (np.float32, np.complex64) else 1e-9
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def each_way(f, *args) -> list:
    """Results of ``f``, eager and compiled, as NumPy arrays; for what mathematics determines but up to some choice."""
    return [[np.asarray(x) for x in g(*args)] for g in (f, catena.jit(f))]


def both(f, *args):
    """Results of ``f``, eager; the compiled ones must agree."""
    check_jit(f, args, atol=1e-4 if args[0].dtype in (np.float32, np.complex64) else 1e-9)
    return f(*args)


DTYPES = ["float32", "float64", "complex64", "complex128"]
SHAPES = [(4, 4), (5, 3), (3, 5), (2, 3, 3), (1, 1)]


@pytest.fixture(autouse=True)
def wide():
    with catena.enable_x64(True):
        yield


# ---- what the factors are


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky(dtype):
    a = definite(dtype=dtype, batch=(2,))
    factor = both(linalg.cholesky, a)
    assert factor.dtype == dtype
    close(factor @ adjoint(factor), a)
    assert not np.triu(np.asarray(factor), 1).any()


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype):
    a = normal(*shape, dtype=dtype)
    lu, pivots, permutation = (np.asarray(x) for x in both(linalg.lu, a))
    m, n = shape[-2:]
    k = min(m, n)
    product = (np.tril(lu[..., :k], -1) + np.eye(m, k)) @ np.triu(lu[..., :k, :])
    close(product.astype(dtype), np.take_along_axis(a, permutation[..., None].astype(int), -2))
    assert pivots.dtype == permutation.dtype == np.int32 and pivots.shape[-1] == k


@pytest.mark.share(6)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape, dtype, full):
    a = normal(*shape, dtype=dtype)
    q, r = both(lambda a: linalg.qr(a, full_matrices=full), a)
    close(q @ r, a)
    close(adjoint(q) @ np.asarray(q), np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], *q.shape[-1:] * 2)))
    q, r, order = both(lambda a: linalg.qr(a, full_matrices=full, pivoting=True), a)
    close(q @ r, np.take_along_axis(a, np.asarray(order)[..., None, :].astype(int), -1))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reflections(dtype):
    a, taus, c = (
        normal(2, 5, 3, dtype=dtype),
        normal(2, 3, seed=1, dtype=dtype),
        normal(2, 5, 2, seed=2, dtype=dtype),
    )
    q = np.broadcast_to(np.eye(5), (2, 5, 5)).astype(dtype)
    for k in range(3):
        v = a[:, :, k].copy()
        v[:, :k], v[:, k] = 0, 1
        q = q @ (np.eye(5) - taus[:, k, None, None] * v[:, :, None] * v[:, None, :].conj())
    close(both(linalg.householder_product, a, taus), q[:, :, :3])
    for transpose in (False, True):
        op = adjoint(q) if transpose else q
        close(both(lambda *x: linalg.ormqr(*x, transpose=transpose), a, taus, c), op @ c)  # noqa: B023
        right = np.swapaxes(c, 1, 2).copy()
        close(both(lambda *x: linalg.ormqr(*x, left=False, transpose=transpose), a, taus, right), right @ op)  # noqa: B023


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype):
    a = definite(dtype=dtype, batch=(2,))
    for v, w in each_way(linalg.eigh, a):
        close(v * w[:, None, :] @ adjoint(v), a)
        assert (np.diff(w) > 0).all() and w.dtype == a.real.dtype
    v, w = linalg.eigh(a)
    part, values = linalg.eigh(a, subset_by_index=(1, 3))
    close(part, np.asarray(v)[..., 1:3])
    close(values, np.asarray(w)[..., 1:3])
    upper = both(lambda a: linalg.eigh(a, lower=False, symmetrize_input=False)[1], np.triu(a))
    close(upper, w)


@pytest.mark.parametrize("n", [1, 2, 8, 9, 33])
def test_eigenvalues_of_hermitian_matrices_alone(n):
    """No vectors are asked of LAPACK, but for derivatives."""
    a = np.random.default_rng(n).normal(size=(3, n, n)) + 1j * np.random.default_rng(n + 1).normal(size=(3, n, n))
    a = a + np.conj(a.swapaxes(1, 2))
    for x in (a.astype(np.complex64), a.real.astype(np.float32)):
        one = lambda x: catena.numpy.linalg.eigvalsh(x)
        for f in (one, catena.jit(one), catena.vmap(one)):
            np.testing.assert_allclose(f(x), np.linalg.eigvalsh(x), atol=1e-4)
        (equation,) = [e for e in catena.make_jaxpr(one)(x).jaxpr.eqns if e.primitive.name == "eigh"]
        assert not equation.params["compute_eigenvectors"] and len(equation.outvars) == 1
        sums = catena.grad(lambda x: one(x).sum())(x)  # the trace, whose derivative is known
        np.testing.assert_allclose(sums, np.broadcast_to(np.eye(n), x.shape), atol=1e-4)
    (vectors, values), (alone,) = (
        linalg.eigh_p.bind(x, lower=True, **how) for how in ({}, {"compute_eigenvectors": False})
    )
    np.testing.assert_allclose(values, alone, atol=1e-4)
    assert vectors.shape == x.shape


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    a = normal(2, 4, 4, dtype=dtype)
    known = np.linalg.eigvals(a)
    for w, left, right in each_way(linalg.eig, a):
        close(a @ right, right * w[:, None, :])
        close(adjoint(left) @ a, w[..., None] * adjoint(left))
        close(np.linalg.norm(right, axis=-2), np.ones((2, 4)))
        close(np.linalg.norm(left, axis=-2), np.ones((2, 4)))
        close(np.abs(w[..., :, None] - known[..., None, :]).min(-1), np.zeros((2, 4)))  # in any order
        alone = linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]
        close(np.abs(w[..., :, None] - np.asarray(alone)[..., None, :]).min(-1), np.zeros((2, 4)))


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape, dtype):
    a = normal(*shape, dtype=dtype)
    for u, s, vh in each_way(lambda a: linalg.svd(a, full_matrices=False), a):
        close(u * s[..., None, :] @ vh, a)
    close(both(lambda a: linalg.svd(a, compute_uv=False), a), s)
    for u, _, vh in each_way(linalg.svd, a):
        assert u.shape[-1] == shape[-2] and vh.shape[-2] == shape[-1]
        close(adjoint(u) @ u, np.broadcast_to(np.eye(shape[-2]), u.shape))
        close(vh @ adjoint(vh), np.broadcast_to(np.eye(shape[-1]), vh.shape))
    first = linalg.svd(a, full_matrices=False, subset_by_index=(0, 1))
    close(first[1], np.asarray(s)[..., :1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_forms(dtype):
    a, h = normal(2, 4, 4, dtype=dtype), definite(dtype=dtype, batch=(2,))
    for t, q in each_way(linalg.schur, a):
        close(q @ t @ adjoint(q), a)
        close(adjoint(q) @ q, np.broadcast_to(np.eye(4), (2, 4, 4)))
        assert not np.tril(t, -1 if t.dtype.kind == "c" else -2).any()
    for (t,) in each_way(lambda a: linalg.schur(a, compute_schur_vectors=False), a):
        close(np.linalg.norm(t, axis=(-2, -1)), np.linalg.norm(a, axis=(-2, -1)))
    ordered = np.asarray(linalg.schur(a, sort_eig_vals=True, select_callable=lambda z: z.real < 0)[0])
    signs = np.sign(np.diagonal(ordered, axis1=-2, axis2=-1).real)
    assert (np.diff(signs) >= 0).all() and (signs < 0).any()
    for packed, taus in each_way(linalg.hessenberg, a):
        q = np.tile(np.eye(4, dtype=dtype), (2, 1, 1))
        q[:, 1:, 1:] = linalg.householder_product(packed[:, 1:, :-1], taus)
        close(q @ np.triu(packed, -1) @ adjoint(q), a)
    for lower in (False, True):
        for _, d, e, _ in each_way(lambda h: linalg.tridiagonal(h, lower=lower), h):  # noqa: B023
            for i in range(2):
                small = np.diag(d[i]) + np.diag(e[i], 1) + np.diag(e[i], -1)
                close(np.linalg.eigvalsh(small).astype(d.dtype), np.linalg.eigvalsh(h[i]))


def test_polar_decomposition():
    a = normal(5, 3)
    u, h, count, converged = both(linalg.qdwh, a)
    close(u @ h, a)
    close(adjoint(u) @ np.asarray(u), np.eye(3))
    assert converged and 0 < int(count) <= 10
    padded = np.pad(a, ((0, 1), (0, 2)))
    part = linalg.qdwh(padded[:5], dynamic_shape=(5, 3))
    close(np.asarray(part[0])[:, :3], u)
    hermitian = linalg.qdwh(definite(), is_hermitian=True, max_iterations=20)
    close(hermitian[0], np.eye(4))


def test_permutation():
    assert both(lambda p: linalg.lu_pivots_to_permutation(p, 5), np.array([2, 2, 3], np.int32)).tolist() == [
        2,
        0,
        3,
        1,
        4,
    ]
    check_vmap(lambda p: linalg.lu_pivots_to_permutation(p, 3), [np.array([1, 2], np.int32)])


@pytest.mark.parametrize("count, size", [(0, 2), (1, 1), (1, 3), (2, 2), (2, 4), (3, 3), (4, 4), (4, 5), (5, 5)])
def test_every_permutation(count, size):
    """Row after row is exchanged with one below; a few are chosen without a loop."""
    pivots = np.array(list(itertools.product(*(range(i, size) for i in range(count)))), np.int32)
    expected = np.tile(np.arange(size), (len(pivots), 1))
    for i in range(count):
        for order, p in zip(expected, pivots[:, i], strict=True):
            order[[i, p]] = order[[p, i]]
    assert both(lambda p: linalg.lu_pivots_to_permutation(p, size), pivots).tolist() == expected.tolist()
    assert both(lambda p: linalg.lu_pivots_to_permutation(p, size), pivots[-1]).tolist() == expected[-1].tolist()


def test_products():
    a, c = normal(4, 3), definite(4)
    close(both(lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5), a, c), 2 * a @ a.T + 0.5 * c)
    r, w = np.triu(definite()), normal(4, seed=1)
    updated = np.asarray(both(linalg.cholesky_update, r, w))
    close(updated.T @ updated, r.T @ r + np.outer(w, w))
    assert not np.tril(updated, -1).any()


# ---- rules


@pytest.mark.share(3)
@pytest.mark.parametrize("left_side", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("unit_diagonal", [False, True])
@pytest.mark.parametrize("conjugate_a", [False, True])
def test_triangular_solve(left_side, lower, transpose_a, unit_diagonal, conjugate_a):
    options = dict(
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        unit_diagonal=unit_diagonal,
        conjugate_a=conjugate_a,
    )

    def solve(a, b):
        return linalg.triangular_solve(a, b, **options)

    def reference(a, b):
        a = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            a = a - np.diag(np.diag(a)) + np.eye(len(a))
        a = a.T if transpose_a else a
        a = a.conj() if conjugate_a else a
        return np.linalg.solve(a, b) if left_side else np.linalg.solve(a.T, b.T).T

    for dtype in (np.float64, np.complex128):
        a, b = (
            normal(3, 3, dtype=dtype) + 3 * np.eye(3),
            normal(*((3, 2) if left_side else (2, 3)), seed=1, dtype=dtype),
        )
        order = 2 if dtype is np.float64 and not transpose_a else 0
        check_primitive(solve, [a, b], reference=reference, atol=1e-9, order=order)


def test_a_vector_on_the_right():
    a, b = definite(3), normal(3)
    close(linalg.triangular_solve(a, b, left_side=True, lower=True), np.linalg.solve(np.tril(a), b))


def test_tridiagonal_solve():
    dl, d, du, b = normal(4), 5 + normal(4, seed=1), normal(4, seed=2), normal(4, 2, seed=3)
    matrix = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    close(linalg.tridiagonal_solve(dl, d, du, b), np.linalg.solve(matrix, b))
    check_primitive(linalg.tridiagonal_solve, [dl, d, du, b], atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_one_tridiagonal_matrix_of_a_batch_is_factored_once(axis):
    """Who of the batch asks has more right-hand sides."""
    dl, d, du = normal(3, 5) + np.array([[0], [5], [0]])
    b = normal(4, 5, 2, seed=1)
    matrix = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    solve = catena.vmap(lambda b: linalg.tridiagonal_solve(dl, d, du, b), axis, axis)
    close(solve(np.moveaxis(b, 0, axis)), np.moveaxis(np.linalg.solve(matrix, b), 0, axis))
    solves = [e for e in catena.make_jaxpr(solve)(np.moveaxis(b, 0, axis)).jaxpr.eqns if "tridiag" in e.primitive.name]
    assert [e.outvars[0].aval.shape for e in solves] == [(5, 8)]
    for args, dims in (((dl, d, du, b), (None, None, None, 0)), ((dl + b[..., 0], d, du, b), (0, None, None, 0))):
        got = catena.vmap(linalg.tridiagonal_solve, dims)(*args)
        of_each = [linalg.tridiagonal_solve(*(x if m is None else x[k] for x, m in zip(args, dims))) for k in range(4)]
        close(got, np.stack(of_each))


ONE_MATRIX = {
    "cholesky": (linalg.cholesky, definite()),
    "eigh": (linalg.eigh, definite()),
    "eig": (lambda a: linalg.eig(a, enable_eigvec_derivs=True), np.diag([1.0, 2, 4]) + 0.1 * normal(3, 3)),
    "eigenvalues": (
        lambda a: linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0].real,
        np.diag([1.0, 2, 4]) + 0.1 * normal(3, 3),
    ),
    "svd": (lambda a: linalg.svd(a, full_matrices=False), normal(4, 3)),
    "svd wide": (lambda a: linalg.svd(a, full_matrices=False), normal(3, 4)),
    "singular values": (lambda a: linalg.svd(a, compute_uv=False), normal(4, 3)),
    "lu": (lambda a: linalg.lu(a)[0], normal(3, 3)),
    "lu tall": (lambda a: linalg.lu(a)[0], normal(4, 3)),
    "lu wide": (lambda a: linalg.lu(a)[0], normal(3, 4)),
    "qr": (lambda a: linalg.qr(a, full_matrices=False), normal(4, 3)),
    "qr wide": (linalg.qr, normal(3, 4)),
    "qr pivoted": (lambda a: linalg.qr(a, full_matrices=False, pivoting=True)[:2], normal(3, 4)),
    "update": (lambda r: linalg.cholesky_update(r, normal(3)), np.triu(definite(3))),
    "symmetric product": (lambda a: linalg.symmetric_product(a, definite(3), beta=2.0), normal(3, 2)),
    "polar": (lambda a: linalg.qdwh(a)[:2], definite(3) + normal(3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(ONE_MATRIX))
def test_derivatives(name):
    fun, a = ONE_MATRIX[name]
    modes = ("fwd",) if name == "eig" else ("fwd", "rev")
    check_grads(fun, [a], order=1 if name in ("eig", "polar") else 2, modes=modes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in ONE_MATRIX if n not in ("update", "polar")])
def test_batches(name):
    fun, a = ONE_MATRIX[name]
    stack = np.stack([a, 1.5 * a, a + 0.1])
    rows = [catena.tree_util.tree_leaves(fun(x)) for x in stack]
    for in_axis, x in ((0, stack), (2, np.moveaxis(stack, 0, 2))):
        outs = catena.tree_util.tree_leaves(catena.vmap(fun, in_axes=in_axis)(x))
        for i, out in enumerate(outs):
            close(out, np.stack([np.asarray(r[i]) for r in rows]))


def test_full_singular_vectors_keep_their_product():
    """Of the vectors beyond the rank only the span is determined; their product with the rest is."""
    for a in (normal(4, 2), normal(2, 4)):
        t = normal(*a.shape, seed=1)
        (u, s, vh), (u_t, s_t, vh_t) = catena.jvp(linalg.svd, (a,), (t,))
        wide_s, wide_st = np.zeros(a.shape), np.zeros(a.shape)
        np.fill_diagonal(wide_s, s)
        np.fill_diagonal(wide_st, s_t)
        close(u_t @ wide_s @ vh + u @ wide_st @ vh + u @ wide_s @ vh_t, t)
        close(u_t.T @ u + u.T @ u_t, np.zeros((len(u), len(u))))


# ---- failures


def test_failures_are_nan_and_stay_with_their_matrix():
    bad = np.stack([np.full((2, 2), np.nan), np.eye(2)]).astype(np.float32)
    for f in (linalg.eigh, linalg.svd, linalg.eig, linalg.schur):
        with catena.disable_jit():
            found = f(bad)
        for out in [*found, *f(bad), *catena.jit(f)(bad), *catena.jit(f)(np.where(np.isnan(bad), np.inf, bad))]:
            assert np.isnan(np.asarray(out)[0]).all() and np.isfinite(np.asarray(out)[1]).all()
    indefinite = np.stack([-np.eye(2), np.eye(2)]).astype(np.float32)
    for f in (linalg.cholesky, catena.jit(linalg.cholesky)):
        out = np.asarray(f(indefinite))
        np.testing.assert_array_equal(out[0], [[np.nan, 0], [np.nan, np.nan]])
        np.testing.assert_array_equal(out[1], np.eye(2))


def test_singular_systems():
    zero, ones = np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32)
    for f in (linalg.triangular_solve, catena.jit(lambda a, b: linalg.triangular_solve(a, b))):
        out = np.asarray(f(zero, ones))
        np.testing.assert_array_equal(out, [[np.inf, np.nan]] * 2)
    d = np.ones(3, np.float32)
    for f in (linalg.tridiagonal_solve, catena.jit(linalg.tridiagonal_solve)):
        assert np.isnan(np.asarray(f(d, 0 * d, d, ones[:1].repeat(3, 0)))).all()
    perturbed = linalg.tridiagonal_solve(d, 0 * d, d, ones[:1].repeat(3, 0), perturb_singular=True)
    assert np.isfinite(np.asarray(perturbed)).all()


def test_empty_matrices():
    square, tall = np.zeros((2, 0, 0)), np.zeros((2, 3, 0))
    assert linalg.cholesky(square).shape == (2, 0, 0) and linalg.eigh(square)[1].shape == (2, 0)
    assert [x.shape for x in linalg.svd(tall)] == [(2, 3, 3), (2, 0), (2, 0, 0)]
    assert [x.shape for x in linalg.qr(tall)] == [(2, 3, 3), (2, 3, 0)]
    for lu in (linalg.lu, catena.jit(linalg.lu)):
        assert [x.shape for x in lu(tall)] == [(2, 3, 0), (2, 0), (2, 3)]
    assert linalg.triangular_solve(square, square).shape == (2, 0, 0)


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3), (3, 0), (0, 2, 2)])
def test_lu_of_empty_matrices_compiled_and_differentiated(shape):
    """No rows were joined one by one, which is an error, and tangents were taken from rows that are not there."""
    a = catena.numpy.zeros(shape)
    shapes = [x.shape for x in linalg.lu(a)]
    assert [x.shape for x in catena.jit(linalg.lu)(a)] == shapes
    for wrap in (lambda f: f, catena.jit):
        assert [x.shape for x in catena.jvp(wrap(linalg.lu), (a,), (a,))[1]][0] == shape
        assert [x.shape[1:] for x in wrap(catena.vmap(linalg.lu))(catena.numpy.stack([a, a]))] == shapes
    if shape[-2:] == (0, 0):
        sign, logarithm = catena.jit(catena.numpy.linalg.slogdet)(a)
        assert (sign == 1).all() and (logarithm == 0).all()
        assert catena.jit(catena.grad(lambda a: catena.numpy.linalg.det(a).sum()))(a).shape == shape


# ---- Fourier transforms


@pytest.mark.parametrize(
    ("shape", "lengths"), [((3, 4), (4,)), ((3, 5), (3, 5)), ((2, 3, 4, 6), (3, 4, 6)), ((7,), (7,))]
)
def test_fft(shape, lengths):
    axes = tuple(range(-len(lengths), 0))
    z, x = normal(*shape, dtype=np.complex128), normal(*shape)
    for kind, reference in (("FFT", np.fft.fftn), ("IFFT", np.fft.ifftn)):
        check_primitive(
            lambda z: fft(z, kind, lengths), [z],  # noqa: B023
            reference=lambda z: reference(z, axes=axes), atol=1e-10, order=0,  # noqa: B023
        )  # fmt: skip
        check_grads(lambda x: fft(x, kind, lengths).real, [x])  # noqa: B023
    check_primitive(
        lambda x: fft(x, "RFFT", lengths), [x],
        reference=lambda x: np.fft.rfftn(x, axes=axes), atol=1e-10, order=0,
    )  # fmt: skip
    check_grads(lambda x: fft(x, "RFFT", lengths).imag, [x])
    half = np.fft.rfftn(x, axes=axes)
    close(both(lambda h: fft(h, "IRFFT", lengths), half), x)

    def round_trip(x):
        return fft(fft(x, "RFFT", lengths) ** 2, "IRFFT", lengths)

    check_grads(round_trip, [x])


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_fft_of_nothing(kind):
    """Empty axes, and none at all, as in JAX."""
    dtype = np.float32 if kind == "RFFT" else np.complex64
    for transform in (fft, catena.jit(fft, static_argnums=(1, 2))):
        assert transform(np.ones((2, 3), dtype), kind, ()).dtype == dtype
        for shape, lengths in (((3, 0), (0,)), ((0, 4), (4,)), ((0, 4), (0, 4)), ((2, 0, 4), (4,))):
            shape = (*shape[:-1], shape[-1] // 2 + 1) if kind == "IRFFT" and shape[-1] else shape
            assert transform(np.zeros(shape, dtype), kind, lengths).size == 0


def test_fft_dtypes_and_errors():
    x = np.ones((3, 4), np.float32)
    assert fft(x, "fft", (4,)).dtype == np.complex64
    assert fft(x.astype(np.int32), FftType.RFFT, (4,)).dtype == np.complex64
    assert fft(x[:, :0] + 0j, "FFT", (0,)).shape == (3, 0)
    raises(ValueError, "Unknown FFT type 'bad'", fft, x, "bad", (4,))
    raises(ValueError, "only real valued inputs supported for rfft", fft, x + 0j, "RFFT", (4,))
    raises(
        ValueError, "RFFT input shape (3, 4) minor dimensions must be equal to fft_lengths (5,)",
        fft, x, "RFFT", (5,),
    )  # fmt: skip


# ---- what errors say


def test_errors():
    a = np.ones((3, 3), np.float32)
    raises(
        ValueError, "Incompatible shapes for arguments to triangular_solve: (3, 3) and (2, 4).",
        linalg.triangular_solve, a, np.ones((2, 4), np.float32),
    )  # fmt: skip
    raises(
        ValueError, "The first input to triangular_solve must be a square matrix. Got shape (2, 3).",
        linalg.triangular_solve, a[:2], np.ones((2, 3), np.float32),
    )  # fmt: skip
    raises(
        TypeError,
        "Argument to cholesky must have shape [..., n, n], got shape (2, 3)",
        linalg.cholesky,
        a[:2],
    )
    raises(
        ValueError, "Argument to Hessenberg reduction must have shape [..., n, n], got shape (2, 3)",
        linalg.hessenberg, a[:2],
    )  # fmt: skip
    raises(NotImplementedError, "svd does not accept dtype float16 at position 0.", linalg.svd, a.astype(np.float16))
    raises(TypeError, "svd does not accept dtype int32 at position 0.", linalg.svd, a.astype(np.int32))
    raises(
        ValueError,
        "full_matrices and subset_by_index cannot both be set",
        lambda: linalg.svd(a, subset_by_index=(0, 1)),
    )
    raises(
        TypeError, "Input 3 to tridiagonal_solve must have rank at least 2, but got shape=(3,)",
        linalg.tridiagonal_solve, a[0], a[0], a[0], a[0],
    )  # fmt: skip
    with pytest.raises(NotImplementedError, match="enable_eigvec_derivs=True"):
        catena.jvp(linalg.eig, (a,), (a,))


@pytest.mark.share(2)
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (2, 0, 3), (2, 3, 0), (0, 0), (0, 3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_bases_of_empty_matrices_are_whole_compiled_too(shape, dtype):
    """Compiled, the full bases of a matrix without elements were memory that nobody had written."""
    a = catena.numpy.zeros(shape, dtype)
    for f in (catena.numpy.linalg.svd, lambda x: catena.numpy.linalg.qr(x, mode="complete"), lambda x: linalg.svd(x)):
        for eager, compiled in zip(catena.tree.leaves(f(a)), catena.tree.leaves(catena.jit(f)(a)), strict=True):
            assert eager.dtype == compiled.dtype
            np.testing.assert_array_equal(eager, compiled)
