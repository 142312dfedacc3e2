"""Linear systems and eigenvalues of sparse matrices."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.experimental import sparse
from catena.experimental.sparse import linalg

MATRIX = np.array([[2, 1, 0], [0, 3, 0], [1, 0, 4]], np.float32)
M = sparse.BCSR.fromdense(MATRIX)
RIGHT = jnp.array([1.0, 2.0, 3.0])


def solve(data, b, **options):
    return linalg.spsolve(data, M.indices, M.indptr, b, **options)


def test_spsolve():
    expected = np.linalg.solve(MATRIX, RIGHT)
    for f in (solve, jax.jit(solve)):
        np.testing.assert_allclose(f(M.data, RIGHT), expected, rtol=1e-6)
    np.testing.assert_allclose(solve(M.data, RIGHT, reorder=0), expected, rtol=1e-6)
    half = solve(M.data.astype(jnp.float16), RIGHT.astype(jnp.float16))
    assert half.dtype == jnp.float16
    np.testing.assert_allclose(half, expected, rtol=1e-3)
    turned = solve(M.data * 1j, RIGHT + 0j)
    np.testing.assert_allclose(turned, -1j * expected, rtol=1e-6)
    assert jnp.isnan(solve(0 * M.data, RIGHT)).all()
    both = jax.vmap(solve, (None, 0))(M.data, jnp.stack([RIGHT, 2 * RIGHT]))
    np.testing.assert_allclose(both, [expected, 2 * expected], rtol=1e-6)


def test_derivatives_of_spsolve():
    dense = lambda data, b: jnp.linalg.solve(sparse.BCSR((data, M.indices, M.indptr), shape=(3, 3)).todense(), b)
    for f in (lambda d, b: jnp.sum(jnp.sin(solve(d, b))),):
        found = jax.grad(f, (0, 1))(M.data, RIGHT)
        expected = jax.grad(lambda d, b: jnp.sum(jnp.sin(dense(d, b))), (0, 1))(M.data, RIGHT)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), found, expected)
    assert abs(jax.jvp(solve, (M.data, RIGHT), (M.data, RIGHT))[1]).max() < 1e-6  # the same scale on both sides


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ("one axis each", {"b": jnp.ones((3, 2))}),
        ("one element more", {"b": jnp.ones(2)}),
        ("one dtype", {"b": jnp.ones(3, int)}),
        ("reorder", {"reorder": 5}),
    ],
)
def test_what_spsolve_refuses(match, change):
    arguments = {"data": M.data, "indices": M.indices, "indptr": M.indptr, "b": RIGHT, **change}
    with pytest.raises(ValueError, match=match):
        linalg.spsolve(**arguments)


def test_lobpcg():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    values = np.concatenate([[50.0, 40.0, 30.0], np.linspace(-5, 5, 27)])
    A = jnp.asarray((turn * values) @ turn.T, jnp.float32)
    X = jnp.asarray(rng.normal(size=(30, 3)), jnp.float32)
    for matrix in (A, lambda x: A @ x, sparse.BCOO.fromdense(A)):
        found, vectors, steps = linalg.lobpcg_standard(matrix, X)
        np.testing.assert_allclose(found, values[:3], rtol=1e-4)
        np.testing.assert_allclose(A @ vectors, vectors * found, atol=1e-2)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)
        assert 0 < steps < 100
    assert linalg.lobpcg_standard(A, X, m=2)[2] == 2
    for guesses, error in [(X[:, :0], ValueError), (X[:, 0], ValueError), (X + 0j, TypeError), (X[:12], ValueError)]:
        with pytest.raises(error):
            linalg.lobpcg_standard(A, guesses)
    with pytest.raises(TypeError, match="matrix or a function"):
        linalg.lobpcg_standard(3, X)
