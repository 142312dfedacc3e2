"""Factorisations and solutions of small matrices: against NumPy and SciPy in any batch, and a member for itself."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of

BOUND = {np.float32: 2e-4, np.float64: 1e-11}  # of results of some units, for well-conditioned matrices
SIZES = [1, 2, 3, 4, 5, 9, 17, 32]
BATCHES = [1, 2, 15, 16, 37]  # fewer than a vector lanes, as many, and some beyond
STEPS = [(left, lower, transposed) for left in (True, False) for lower in (True, False) for transposed in (True, False)]


def normal(*shape):
    return np.random.default_rng(17).normal(size=shape)


def regular(*shape, dtype):
    """Matrices whose condition is moderate."""
    return (normal(*shape) / np.sqrt(shape[-1]) + 2 * np.eye(*shape[-2:])).astype(dtype)


def definite(*shape, dtype):
    a = normal(*shape) / np.sqrt(shape[-1])
    return (a @ a.swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


@pytest.fixture(autouse=True)
def wide():
    with jax.enable_x64(True):
        yield


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky_factors_are_numpys(n, dtype):
    for batch in BATCHES:
        a = definite(batch, n, n, dtype=dtype)
        got = np.asarray(jax.jit(lax.linalg.cholesky)(a))
        np.testing.assert_allclose(got, np.linalg.cholesky(a), rtol=BOUND[dtype], atol=BOUND[dtype])
        assert not np.triu(got, 1).any()


def test_cholesky_reads_the_lower_triangle_and_says_what_is_not_definite():
    a = definite(20, 6, 6, dtype=np.float32)
    odd = np.triu(np.full((6, 6), np.nan, np.float32), 1) + np.tril(a)
    odd[3, 5, 5], odd[7, 2, 2], odd[11, 0, 0] = -1.0, np.nan, 0.0  # some LAPACKs go on after NaN
    got = np.asarray(jax.jit(lambda a: lax.linalg.cholesky(a, symmetrize_input=False))(odd))
    bad = np.isin(np.arange(20), [3, 7, 11])
    assert np.isnan(got[[3, 11]][:, *np.tril_indices(6)]).all() and np.isnan(got[7, 5, 5])
    assert not np.isnan(got[~bad]).any()
    np.testing.assert_allclose(got[~bad], np.linalg.cholesky(a)[~bad], rtol=1e-5, atol=1e-5)


@pytest.mark.share(12)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("shape", [(n, n) for n in SIZES] + [(3, 5), (5, 3), (1, 7), (30, 2)])
def test_lu_factors_are_of_the_matrix_with_its_rows_exchanged(shape, dtype):
    m, n = shape
    for batch in BATCHES:
        a = normal(batch, m, n).astype(dtype)
        lu, pivots, order = (np.asarray(x) for x in jax.jit(lax.linalg.lu)(a))
        k = min(m, n)
        low = np.tril(lu[:, :, :k], -1) + np.eye(m, k, dtype=dtype)
        product = low @ np.triu(lu[:, :k])
        np.testing.assert_allclose(product, np.take_along_axis(a, order[:, :, None], 1), atol=20 * BOUND[dtype])
        assert (np.abs(np.tril(lu[:, :, :k], -1)) <= 1).all()
        assert (pivots >= np.arange(k)).all() and (pivots < m).all()


def test_of_equal_pivots_the_first_is_taken_and_singular_matrices_are_factorised():
    a = np.zeros((18, 3, 3), np.float32)
    a[:9] = [[1, 2, 3], [-1, 2, 5], [1, 2, 4]]
    lu, pivots, order = (np.asarray(x) for x in jax.jit(lax.linalg.lu)(a))
    assert (pivots[:9, 0] == 0).all() and (pivots[9:] == [0, 1, 2]).all()
    np.testing.assert_array_equal(lu[9:], np.zeros((9, 3, 3)))
    np.testing.assert_array_equal(lu[0], [[1, 2, 3], [-1, 4, 8], [1, 0, 1]])
    assert np.isinf(np.asarray(jax.jit(jnp.linalg.inv)(np.zeros((18, 2, 2), np.float32)))).any()


@pytest.mark.share(18)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("n", [1, 2, 4, 7, 32])
@pytest.mark.parametrize("step", STEPS)
def test_triangular_solutions_fulfil_their_equations(step, n, dtype):
    left, lower, transposed = step
    for batch in (1, 17):
        for unit_diagonal in (False, True):
            a = regular(batch, n, n, dtype=dtype)  # with what is not to be read
            b = normal(*((batch, n, 5) if left else (batch, 5, n))).astype(dtype)
            how = {"left_side": left, "lower": lower, "transpose_a": transposed, "unit_diagonal": unit_diagonal}
            x = np.asarray(jax.jit(lambda a, b, how=how: lax.linalg.triangular_solve(a, b, **how))(a, b))
            used = np.tril(a) if lower else np.triu(a)
            if unit_diagonal:
                used = used * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype)
            used = used.swapaxes(1, 2) if transposed else used
            scale = max(1.0, float(np.abs(x).max()))
            np.testing.assert_allclose(used @ x if left else x @ used, b, atol=5 * BOUND[dtype] * scale)


SIDES = [(1, 33), (4, 100), (32, 64), (33, 32), (47, 70), (64, 129), (128, 40), (129, 40), (513, 40), (1025, 40)]


@pytest.mark.share(24)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("size", SIDES)
@pytest.mark.parametrize("step", STEPS)
def test_triangular_systems_with_many_sides_fulfil_their_equations(step, size, dtype):
    (left, lower, transposed), (n, sides) = step, size
    for batch, unit_diagonal in ((), False), ((3,), True):
        a = regular(*batch, n, n, dtype=dtype)
        read = np.tril(a) if lower else np.triu(a)
        odd = np.where(read == 0, np.nan, a).astype(dtype)  # what is not to be read
        b = normal(*batch, *((n, sides) if left else (sides, n))).astype(dtype)
        how = {"left_side": left, "lower": lower, "transpose_a": transposed, "unit_diagonal": unit_diagonal}
        if unit_diagonal:
            small = dtype(0.1)  # or solutions grow with every row
            odd, read = odd * small, read * small * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype)
        x = np.asarray(jax.jit(lambda a, b, how=how: lax.linalg.triangular_solve(a, b, **how))(odd, b))
        used = read.swapaxes(-1, -2) if transposed else read
        scale = max(1.0, float(np.abs(x).max()))
        np.testing.assert_allclose(used @ x if left else x @ used, b, atol=5 * BOUND[dtype] * scale)


@pytest.mark.parametrize("left", [True, False])
def test_a_system_by_itself_has_vectors_along_its_sides(left):
    solve = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left, lower=True)  # noqa: E731
    a, b = np.ones((20, 20), np.float32), np.ones((20, 24) if left else (24, 20), np.float32)
    text = text_of(jax.make_jaxpr(solve)(a, b), machine=X86_64_V4)
    assert "fsub contract <16 x float>" in text and "fsub contract float" not in text


@pytest.mark.parametrize("n", [20, 200])
def test_sides_do_not_hang_on_each_other(n):
    """A side has the same solution among others, in another place, and with fewer."""
    a, b = regular(n, n, dtype=np.float32), normal(n, 200).astype(np.float32)
    solve = jax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
    x = np.asarray(solve(a, b))
    np.testing.assert_array_equal(solve(a, b[:, ::-1])[:, ::-1], x)
    np.testing.assert_array_equal(solve(a, b[:, 60:101]), x[:, 60:101])
    if n == 20:
        np.testing.assert_array_equal(solve(a, b[:, 60:61]), x[:, 60:61])


@pytest.mark.parametrize("lower", [True, False])
def test_unknowns_do_not_hang_on_those_that_are_found_later(lower):
    """Neither on the tiles and blocks of many of them."""
    n, first = 210, 101
    a, b = regular(n, n, dtype=np.float32), normal(n, 70).astype(np.float32)
    solve = jax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=lower))
    begun = slice(0, first) if lower else slice(n - first, n)
    np.testing.assert_array_equal(solve(a[begun, begun], b[begun]), np.asarray(solve(a, b))[begun])


def test_a_system_of_many_sides_is_one_step():
    solve = lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True)  # noqa: E731
    a, b = np.ones((3, 400, 400), np.float32), np.ones((3, 400, 300), np.float32)
    assert jax.jit(solve).lower(a, b).as_text().count("\n  v") == 1


@pytest.mark.parametrize("left", [True, False])
def test_one_system_is_divided_by_vectors(left):
    """Its sides lie beside each other; x86 divides four numbers in the time of one."""
    a, b = regular(20, 20, dtype=np.float32), normal(20, 20).astype(np.float32)
    f = jax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left, lower=True))
    text = f.lower(a, b).compile().as_text()
    assert "fdiv <" in text and "fdiv float" not in text


FUNCTIONS = {
    "cholesky": lambda a: lax.linalg.cholesky(a @ a.swapaxes(-1, -2)),
    "lu": lax.linalg.lu,
    "solve": lambda a: jnp.linalg.solve(a, a[..., ::-1]),
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.det,
    "det and its slope": lambda a: jax.jvp(jnp.linalg.det, (a,), (a[..., ::-1],)),
    "slogdet": jnp.linalg.slogdet,
    "solve from the right": lambda a: lax.linalg.triangular_solve(a, a[..., ::-1, :], left_side=False, lower=True),
}


@pytest.mark.share(12)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("n", [3, 8, 20])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_member_alone_has_the_bits_that_it_has_in_a_batch(name, n, dtype):
    a = regular(37, n, n, dtype=dtype)
    f = jax.jit(FUNCTIONS[name])
    whole = [np.asarray(x) for x in jax.tree.leaves(f(a))]
    for members in (slice(0, 1), slice(5, 9), slice(20, 37)):
        part = jax.tree.leaves(f(a[members]))
        for x, y in zip(part, whole, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y[members])
    np.testing.assert_array_equal(jax.tree.leaves(f(a[36]))[0], whole[0][36])


@pytest.mark.parametrize("n", [4, 7])
def test_a_complex_sign_has_the_bits_that_it_has_in_a_batch(n):
    a = (regular(37, n, n, dtype=np.float64) + 1j * normal(37, n, n)).astype(np.complex64)
    f = jax.jit(jnp.linalg.slogdet)
    whole = f(a)
    for k in range(37):
        np.testing.assert_array_equal(f(a[k]).sign, whole.sign[k])
        np.testing.assert_array_equal(f(a[k : k + 1]).logabsdet, whole.logabsdet[k : k + 1])
    expected = np.linalg.slogdet(a.astype(np.complex128)).sign
    np.testing.assert_allclose(whole.sign, expected, atol=1e-5)


def test_the_slope_of_a_complex_sign():
    """As the determinant turns by i dt, so does its sign, where only one row turns."""
    a = (regular(5, 5, dtype=np.float64) + 1j * normal(5, 5)).astype(np.complex128)
    turned = np.where(np.arange(5)[:, None] == 0, 1j * a, 0)
    with jax.enable_x64(True):
        sign, slope = jax.jvp(lambda a: jnp.linalg.slogdet(a).sign, (jnp.asarray(a),), (jnp.asarray(turned),))
    np.testing.assert_allclose(slope, 1j * np.asarray(sign), atol=1e-10)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager_within_rounding(name):
    a = regular(9, 6, 6, dtype=np.float64)
    compiled, eager = jax.jit(FUNCTIONS[name])(a), FUNCTIONS[name](jnp.asarray(a))
    for x, y in zip(jax.tree.leaves(compiled), jax.tree.leaves(eager), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)


def test_small_matrices_within_loops_and_under_derivatives():
    a = regular(6, 3, 3, dtype=np.float64)

    def steps(a):
        def step(x, m):
            x = jnp.linalg.solve(m, x) + 1.0
            return x, jnp.linalg.det(m) * x.sum()

        x, ys = lax.scan(step, jnp.ones((3, 2)), a)
        return x.sum() + ys.sum()

    jax.test_util.check_grads(jax.jit(steps), (a,), order=1, modes=("fwd", "rev"), atol=1e-5, rtol=1e-5)


# ---- eigenvalues


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9])
def test_eigenvalues_are_numpys_in_order(n, dtype):
    for batch in BATCHES:
        a = normal(batch, n, n)
        a = (a + a.swapaxes(1, 2)).astype(dtype)
        values = np.asarray(jax.jit(jnp.linalg.eigvalsh)(a))
        size = np.linalg.norm(a, axis=(1, 2), keepdims=True)[..., 0]
        expected = np.linalg.eigvalsh(a.astype(np.float64))
        assert (np.abs(values - expected) <= 40 * np.finfo(dtype).eps * size).all()
        assert (np.diff(values) >= 0).all() and values.dtype == dtype


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_eigenvalues_of_small_and_of_large_matrices(scale):
    a = (normal(20, 4, 4) * scale).astype(np.float32)
    a = a + a.swapaxes(1, 2)
    values = np.asarray(jax.jit(jnp.linalg.eigvalsh)(a))
    np.testing.assert_allclose(values / scale, np.linalg.eigvalsh(a / scale), atol=1e-5)


def test_eigenvalues_of_diagonal_matrices_are_the_diagonal_and_one_triangle_is_read():
    a = np.stack([np.diag([7.0, -3.0, 5.0]), np.zeros((3, 3)), np.diag([1e-30, 1e30, 0.0])]).astype(np.float32)
    np.testing.assert_array_equal(jax.jit(jnp.linalg.eigvalsh)(a), np.sort(np.einsum("bii->bi", a)))
    low = np.array([[2.0, np.nan], [1.0, 2.0]])
    for m, triangle in ((low, "L"), (low.T, "U")):
        f = jax.jit(lambda m, t=triangle: jnp.linalg.eigvalsh(m, t, symmetrize_input=False))
        np.testing.assert_allclose(f(m), [1.0, 3.0], rtol=1e-14)


def test_eigenvalues_of_what_is_not_finite_are_nan_and_its_neighbours_stay():
    a = definite(19, 4, 4, dtype=np.float32)
    expected = np.asarray(jax.jit(jnp.linalg.eigvalsh)(a))
    a[3, 2, 1] = a[3, 1, 2] = np.nan
    a[17, 0, 0] = np.inf
    values = np.asarray(jax.jit(jnp.linalg.eigvalsh)(a))
    odd = np.isin(np.arange(19), [3, 17])
    assert np.isnan(values[odd]).all()
    np.testing.assert_array_equal(values[~odd], expected[~odd])


@pytest.mark.parametrize("n", [2, 5, 8])
def test_eigenvalues_of_a_member_alone_are_those_in_a_batch(n):
    a = normal(37, n, n).astype(np.float32)
    a[7] = np.diag(np.arange(n))  # needs no rotation where its neighbours do
    f = jax.jit(jnp.linalg.eigvalsh)
    whole = np.asarray(f(a))
    for members in (slice(0, 1), slice(5, 9), slice(20, 37)):
        np.testing.assert_array_equal(np.asarray(f(a[members])), whole[members])


def test_eigenvalues_have_derivatives_and_belong_to_the_vectors():
    a = definite(3, 4, 4, dtype=np.float64) + np.diag([0.0, 1.0, 2.0, 3.0])
    f = jax.jit(lambda a: (jnp.linalg.eigvalsh(a) ** 2).sum())
    jax.test_util.check_grads(f, (a,), order=1, modes=("fwd", "rev"))
    values, vectors = jax.jit(jnp.linalg.eigh)(a)
    np.testing.assert_allclose(a @ np.asarray(vectors), np.asarray(vectors) * np.asarray(values)[:, None], atol=1e-12)


def rotated(*shape, dtype):
    """Complex matrices whose condition is moderate."""
    imag = np.random.default_rng(18).normal(size=shape) / np.sqrt(shape[-1])
    return (regular(*shape, dtype=np.float64) + 1j * imag).astype(dtype)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype, bound", [(np.complex64, 2e-4), (np.complex128, 1e-11)])
@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 16, 17])
def test_complex_matrices_are_factorised_and_solved(n, dtype, bound):
    for batch in BATCHES:
        a, b = rotated(batch, n, n, dtype=dtype), rotated(batch, 2, n, dtype=dtype).swapaxes(1, 2)
        factors, _, order = (np.asarray(x) for x in jax.jit(lax.linalg.lu)(a))
        product = (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
        np.testing.assert_allclose(product, np.take_along_axis(a, order[..., None], 1), rtol=bound, atol=bound)
        assert (np.abs(np.tril(factors, -1)) <= np.sqrt(2) + 0.001).all()  # the pivots are the largest
        got, wanted = np.asarray(jax.jit(jnp.linalg.solve)(a, b)), np.linalg.solve(a.astype(np.complex128), b)
        np.testing.assert_allclose(got, wanted, rtol=bound, atol=bound)


@pytest.mark.share(2)
@pytest.mark.parametrize("conjugated", [True, False])
@pytest.mark.parametrize("left, lower, transposed", STEPS)
def test_complex_triangular_systems(left, lower, transposed, conjugated):
    for batch, n in ((1, 5), (20, 3)):
        a, b = rotated(batch, n, n, dtype=np.complex128), rotated(batch, n, n, dtype=np.complex128)[..., :2]
        b = b if left else b.swapaxes(1, 2)
        how = dict(left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugated)
        x = np.asarray(jax.jit(lambda a, b: lax.linalg.triangular_solve(a, b, **how))(a, b))
        t = np.tril(a) if lower else np.triu(a)
        t = t.conj() if conjugated else t
        t = t.swapaxes(1, 2) if transposed else t
        np.testing.assert_allclose(t @ x if left else x @ t, b, rtol=1e-10, atol=1e-10)


def test_complex_members_have_the_bits_that_they_have_alone_and_extremes_do_not_overflow():
    a = rotated(37, 4, 4, dtype=np.complex64)
    f = jax.jit(lambda a: jnp.linalg.solve(a, jnp.conj(a)))
    whole = np.asarray(f(a))
    for k in (0, 20, 36):
        np.testing.assert_array_equal(f(a[k]), whole[k])
        np.testing.assert_array_equal(f(a[k : k + 1])[0], whole[k])
    for scale in (1e30, 1e-30):
        scaled = np.asarray(f((a * scale).astype(np.complex64)))
        np.testing.assert_allclose(scaled, whole, rtol=1e-3, atol=1e-4)
    singular = np.zeros((20, 3, 3), np.complex64)
    assert (np.asarray(lax.linalg.lu(singular)[0]) == 0).all() and not np.isfinite(f(singular)).any()
