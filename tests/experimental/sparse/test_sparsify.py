"""Functions of dense arrays as functions of sparse ones, and derivatives by sparse arrays."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import sparse
from sparse_reference import check, dense_of, random_mat

MAT = random_mat((4, 5), nse=8)
DENSE = dense_of(MAT).astype(np.float32)
V = np.arange(5, dtype=np.float32)

FUNCTIONS = {
    "unary": lambda m: jnp.sin(m) + jnp.sqrt(abs(m)) - jnp.tanh(2 * m),
    "products": lambda m: (m @ V) @ m,
    "shapes": lambda m: jnp.concatenate([m, m[::-1]], axis=0).reshape(2, 20).T,
    "stack": lambda m: jnp.stack([m, 3 * m]),
    "sums": lambda m: m.sum(0) + m.mean(0),
    "converted": lambda m: m.astype(int),
    "todense": lambda m: jnp.exp(sparse.todense(m)),
    "jit": lambda m: jax.jit(lambda x: x * V)(m),
    "checkpoint": lambda m: jax.checkpoint(lambda x: jnp.sin(x) @ V)(m),
    "cond": lambda m: lax.cond(True, lambda x: 2 * x, lambda x: -x, m),
    "while": lambda m: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, 2 * c[1]), (0, m))[1],
    "fori": lambda m: lax.fori_loop(0, 3, lambda i, x: m @ V * x.sum(), jnp.ones(4)),
    "scan": lambda m: lax.scan(lambda c, x: (c * x, (c @ V) * x), m, jnp.arange(1.0, 4.0)),
    "nothing sparse": lambda m: V * 2,
}


@pytest.mark.share(2)
@pytest.mark.parametrize("use_tracer", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, use_tracer):
    f = FUNCTIONS[name]
    found = jax.tree.leaves(sparse.sparsify(f, use_tracer)(MAT), is_leaf=lambda x: isinstance(x, sparse.BCOO))
    for x, expected in zip(found, jax.tree.leaves(f(DENSE)), strict=True):
        check(x, expected)


def test_under_transformations():
    f = sparse.sparsify(lambda m, v: jnp.sum(jnp.sin(m) @ v))
    clean = random_mat((4, 5), nse=8, shared=True)
    loss = lambda data, v: f(sparse.BCOO((data, clean.indices), shape=(4, 5)), v)
    plain = lambda data, v: jnp.sum(jnp.sin(sparse.BCOO((data, clean.indices), shape=(4, 5)).todense()) @ v)
    np.testing.assert_allclose(jax.jit(loss)(clean.data, V), plain(clean.data, V), rtol=1e-5)
    gradients = [jax.grad(g, (0, 1))(clean.data, V) for g in (loss, plain)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), *gradients)
    found = jax.vmap(loss, (None, 0))(clean.data, np.stack([V, V + 1]))
    np.testing.assert_allclose(found, [plain(clean.data, V), plain(clean.data, V + 1)], rtol=1e-5)
    batch = random_mat((3, 4, 5), 1)
    rows = sparse.sparsify(lambda m: lax.scan(lambda c, x: (c, x @ V), 0.0, m)[1])(batch)
    check(rows, dense_of(batch) @ V)


def test_values_outside_and_trees():
    out = sparse.sparsify(lambda d, x: {"a": d["m"] * x, "b": MAT.sum()})({"m": MAT}, 2.0)
    check(out["a"], 2 * DENSE)
    check(out["b"], DENSE.sum())
    assert sparse.sparsify(lambda m: m.shape)(MAT) == (4, 5)
    seen = []
    sparse.sparsify(lambda m, n: seen.append(repr(m)) or m * (2 if n > 0 else 1), use_tracer=True)(MAT, 1)
    assert seen == [f"SparseTracer[{MAT}]"]
    with pytest.raises(jax.errors.TracerBoolConversionError):
        sparse.sparsify(lambda m, n: m if n > 0 else -m)(MAT, 1)


def test_what_would_be_dense():
    for f in [jnp.exp, lambda m: m + 1, lambda m: 1 / m, lambda m: m**0, lambda m: m > 0, jnp.max]:
        with pytest.raises(NotImplementedError, match="todense"):
            sparse.sparsify(f)(MAT)
    with pytest.raises(NotImplementedError, match="batch axis"):
        sparse.sparsify(lambda m: lax.scan(lambda c, x: (c, x), 0.0, m))(MAT)
    with pytest.raises(NotImplementedError, match="sparse rule for dot_general"):
        sparse.sparsify(jnp.matmul)(MAT, sparse.BCSR.fromdense(DENSE.T))
    with pytest.raises(TypeError):
        sparse.sparsify(3)


def test_derivatives_by_sparse_arrays():
    mat = random_mat((4, 5), nse=6, shared=True)
    f = lambda m, v: jnp.sum((m @ v) ** 2)
    value, (by_mat, by_v) = sparse.value_and_grad(f, argnums=(0, 1))(mat, V)
    dense = dense_of(mat).astype(np.float32)
    expected = 2 * np.outer(dense @ V, V)
    assert isinstance(by_mat, sparse.BCOO) and (by_mat.indices == mat.indices).all()
    np.testing.assert_allclose(by_mat.data, expected[tuple(np.asarray(mat.indices).T)], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(by_v, 2 * dense.T @ (dense @ V), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(value, f(dense, V), rtol=1e-5)
    assert sparse.grad(lambda m: (f(m, V), "aux"), has_aux=True)(mat)[1] == "aux"
    assert type(sparse.grad(f)(sparse.BCSR.from_bcoo(mat), V)) is sparse.BCSR
    for jacobian in (sparse.jacfwd, sparse.jacrev, sparse.jacobian):
        out = jacobian(lambda m, v: {"a": m @ v}, argnums=(0, 1))(mat, V)["a"]
        assert out[0].shape == (4, 4, 5) and out[0].n_batch == 1
        np.testing.assert_allclose(out[1], dense, rtol=1e-6)
        rows, columns = np.asarray(mat.indices).T
        expected = np.where(rows == np.arange(4)[:, None], V[columns], 0)
        np.testing.assert_allclose(out[0].data, expected)
    with pytest.raises(TypeError):
        sparse.grad(lambda m: m @ V)(mat)
