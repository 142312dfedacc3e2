"""BCSR, COO, CSR and CSC arrays, and arrays out of nothing."""

import numpy as np
import pytest
import scipy.sparse

import catena as jax
import catena.numpy as jnp
from catena.experimental import sparse
from sparse_reference import check, dense_of, random_mat

MATRIX = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]], np.float32)
V, W = np.arange(4, dtype=np.float32), np.arange(3, dtype=np.float32)
B = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.mark.parametrize(("shape", "layout"), [((6, 5), (0, 0)), ((2, 4, 3), (1, 0)), ((4, 3, 2), (0, 1))], ids=str)
def test_bcsr(shape, layout):
    mat = random_mat(shape, *layout, nse=8)
    dense = dense_of(mat)
    rows = sparse.BCSR.from_bcoo(mat)
    assert rows.indptr.shape == (*shape[: layout[0]], shape[layout[0]] + 1) and rows.nse == 8
    check(rows.todense(), dense)
    check(rows.to_bcoo(), dense)
    check(rows.sum_duplicates().todense(), dense)
    check(sparse.BCSR.fromdense(dense, n_batch=layout[0], n_dense=layout[1]).todense(), dense)
    check(
        sparse.bcsr_concatenate([rows, rows], dimension=layout[0]).todense(), np.concatenate([dense, dense], layout[0])
    )
    wide = sparse.bcsr_broadcast_in_dim(rows, shape=(2, *shape), broadcast_dimensions=range(1, len(shape) + 1))
    check(wide.todense(), np.stack([dense, dense]))
    other = np.random.default_rng(0).normal(size=(shape[layout[0] + 1], 3)).astype(np.float32)
    numbers = (((layout[0] + 1,), (0,)), ((), ()))
    check(sparse.bcsr_dot_general(rows, other, dimension_numbers=numbers), np.tensordot(dense, other, numbers[0]))


def test_products_of_bcsr():
    mat = sparse.BCSR.fromdense(MATRIX)
    assert mat.indptr.tolist() == [0, 2, 2, 4] and mat.indices.tolist() == [1, 3, 0, 2] and repr(mat.nse) == "4"
    check(mat @ V, MATRIX @ V)
    check(jax.jit(lambda m, b: m @ b)(mat, B), MATRIX @ B)
    loss = lambda data, v: jnp.sum((sparse.BCSR((data, mat.indices, mat.indptr), shape=mat.shape) @ v) ** 2)
    by_data, by_v = jax.grad(loss, (0, 1))(mat.data, V)
    np.testing.assert_allclose(by_v, 2 * MATRIX.T @ (MATRIX @ V))
    expected = 2 * np.outer(MATRIX @ V, V)
    np.testing.assert_allclose(by_data, sparse.bcsr_extract(mat.indices, mat.indptr, expected))
    batch = sparse.BCSR.fromdense(np.stack([MATRIX, 2 * MATRIX]), n_batch=1)
    check(jax.vmap(lambda m: m @ V)(batch), np.stack([MATRIX @ V, 2 * MATRIX @ V]))
    padded = sparse.BCSR.fromdense(MATRIX, nse=6)
    assert padded.nse == 6 and padded.indptr.tolist() == [0, 2, 2, 4]
    check(padded @ V, MATRIX @ V)
    for operation in [lambda: W @ mat, lambda: mat @ mat.to_bcoo().T, lambda: mat + mat, lambda: mat.T, lambda: mat[0]]:
        with pytest.raises(NotImplementedError):
            operation()
    with pytest.raises(ValueError, match="one more"):
        sparse.BCSR((mat.data, mat.indices, mat.indptr[:2]), shape=mat.shape)
    with pytest.raises(ValueError, match="Invalid data.shape"):
        sparse.BCSR((mat.data, mat.indices[:2], mat.indptr), shape=mat.shape)
    check(sparse.BCSR.from_scipy_sparse(scipy.sparse.coo_array(MATRIX)).todense(), MATRIX)


@pytest.mark.parametrize("kind", [sparse.COO, sparse.CSR, sparse.CSC])
def test_matrices(kind):
    mat = kind.fromdense(MATRIX)
    assert repr(mat) == f"{kind.__name__}(float32[3, 4], nse=4)"
    for m in (mat, kind.fromdense(MATRIX, nse=6)):
        check(m.todense(), MATRIX)
        check(m.T.todense(), MATRIX.T)
        check(m @ V, MATRIX @ V)
        check(jax.jit(lambda m, b: m @ b)(m, B), MATRIX @ B)
    by_v = jax.grad(lambda v: jnp.sum((mat @ v) ** 2))(V)
    np.testing.assert_allclose(by_v, 2 * MATRIX.T @ (MATRIX @ V))
    leaves, tree = jax.tree.flatten(mat)
    by_data = jax.grad(lambda d: jnp.sum(jax.tree.unflatten(tree, [d, *leaves[1:]]) @ V))(leaves[0])
    assert sorted(by_data.tolist()) == sorted((np.ones((3, 1)) * V)[MATRIX != 0].tolist())
    assert (mat @ V.astype(int)).dtype == jnp.float32
    for operation in [lambda: mat @ mat, lambda: W @ mat, lambda: -mat, lambda: mat * 2, lambda: mat.sum()]:
        with pytest.raises(NotImplementedError):
            operation()
    with pytest.raises(ValueError, match="no product"):
        mat @ W
    with pytest.raises(ValueError, match="two axes"):
        kind.fromdense(V) if kind is not sparse.CSC else sparse.csr_fromdense(V)


def test_products_by_the_transpose():
    coo, csr = sparse.COO.fromdense(MATRIX), sparse.CSR.fromdense(MATRIX)
    check(sparse.coo_matvec(coo, W, transpose=True), MATRIX.T @ W)
    check(sparse.csr_matvec(csr, W, transpose=True), MATRIX.T @ W)
    check(sparse.coo_matmat(coo, B[:3], transpose=True), MATRIX.T @ B[:3])
    check(sparse.csr_matmat(csr, B[:3], transpose=True), MATRIX.T @ B[:3])
    check(coo._sort_indices().todense(), MATRIX)
    with pytest.raises(ValueError, match="dtype"):
        sparse.coo_matvec(coo, V.astype(int))


@pytest.mark.parametrize("name", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_empty_and_eye(name):
    none = sparse.empty((2, 3), sparse_format=name)
    assert none.nse == 0 and not none.todense().any() and none.shape == (2, 3)
    for k in (0, 1, -2, 7):
        if name != "bcsr":
            check(sparse.eye(3, 4, k, sparse_format=name).todense(), np.eye(3, 4, k))
    with pytest.raises(KeyError):
        sparse.eye(3, sparse_format="dok")
    with pytest.raises(ValueError, match="sparse_format"):
        sparse.empty((2, 3), sparse_format="dok")
    for n_batch, n_dense in [(1, 0), (0, 1), (1, 1)]:
        check(sparse.eye(3, 4, 1, n_batch=n_batch, n_dense=n_dense), np.eye(3, 4, 1))
        assert not sparse.empty((2, 3), nse=2, n_batch=n_batch, n_dense=n_dense).todense().any()


def test_random():
    key = jax.random.key(0)
    mat = sparse.random_bcoo(key, (3, 8, 2), nse=0.5, n_batch=1, n_dense=1, dtype="float32", sorted_indices=True)
    assert mat.nse == 4 and (jnp.diff(mat.indices[..., 0]) > 0).all() and (mat.data >= 0).all() and (mat.data < 1).all()
    raw = sparse.random_bcoo(jax.random.key_data(key), (3, 8, 2), nse=0.5, n_batch=1, n_dense=1, dtype="float32")
    np.testing.assert_array_equal(raw.todense(), mat.todense())
    same = jax.jit(lambda key: sparse.random_bcoo(key, (4, 5), nse=20, dtype="float32"))(key)
    assert sorted(map(tuple, same.indices.tolist())) == [(i, j) for i in range(4) for j in range(5)]
    with jax.enable_x64(True):  # indices are of the integers' dtype, or of the one asked for
        assert sparse.random_bcoo(jax.random.key(0), (4, 5), nse=2).indices.dtype == "int64"
        assert sparse.random_bcoo(jax.random.key(0), (4, 5), nse=2, indices_dtype="int32").indices.dtype == "int32"
    for arguments in [{"nse": 21}, {"nse": -1}, {"n_batch": 3}]:
        with pytest.raises(ValueError):
            sparse.random_bcoo(key, (4, 5), **arguments)
