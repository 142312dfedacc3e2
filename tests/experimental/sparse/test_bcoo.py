"""BCOO arrays: making them, and their products, sums and derivatives against dense arrays, over all layouts."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import sparse
from sparse_reference import LAYOUTS, SHAPE, check, dense_of, random_mat

MATRIX = jnp.array([[0, 1.0, 0], [2, 0, 3]])
MATVEC = ((1,), (0,)), ((), ())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_to_dense_and_back(layout):
    mat = random_mat(SHAPE, *layout)
    dense = dense_of(mat)
    check(mat.todense(), dense)
    check(sparse.bcoo_sort_indices(mat), dense)
    summed = mat.sum_duplicates()
    check(summed, dense)
    assert summed.unique_indices and summed.nse <= mat.nse
    back = sparse.BCOO.fromdense(dense, n_batch=layout[0], n_dense=layout[1])
    check(back, dense)
    check(sparse.bcoo_extract(back, 2 * dense), 2 * dense)


def contractions(n_batch: int, n_dense: int):
    """(contracted axes, batch axes) of products with an array of this layout; not all, by far."""
    for batch in [(), (0,), (0, 1)][: n_batch + 1]:
        left = [d for d in range(3 - n_dense) if d not in batch]
        yield from ((c, batch) for r in range(3) for c in itertools.combinations(left[::-1], r))


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products_with_dense_arrays(layout):
    mat = random_mat(SHAPE, *layout)
    dense, rng = dense_of(mat).astype(np.float32), np.random.default_rng(0)
    for contracted, batch in list(contractions(*layout))[::2]:
        order = rng.permutation(len(batch) + len(contracted) + 1)
        sizes = [*(SHAPE[d] for d in (*batch, *contracted)), 5]
        other = rng.normal(size=[sizes[o] for o in order]).astype(np.float32)
        place = [int(np.flatnonzero(order == i)[0]) for i in range(len(sizes))]
        other_batch, other_contracted = tuple(place[: len(batch)]), tuple(place[len(batch) : -1])
        numbers = (contracted, other_contracted), (batch, other_batch)
        check(sparse.bcoo_dot_general(mat, other, dimension_numbers=numbers), lax.dot_general(dense, other, numbers))
        turned = (other_contracted, contracted), (other_batch, batch)
        check(sparse.bcoo_dot_general(other, mat, dimension_numbers=turned), lax.dot_general(other, dense, turned))


@pytest.mark.parametrize("layout", [(0, 1), (0, 0), (1, 1), (1, 0), (2, 0)], ids=str)
def test_elements_of_dense_products(layout):
    mat, rng = random_mat((3, 4, 5), *layout), np.random.default_rng(0)
    for a, b, numbers, words in [
        ((3, 4, 6), (3, 5, 6), (((2,), (2,)), ((0,), (0,))), "bij,bkj->bik"),
        ((3, 6), (6, 4, 5), (((1,), (0,)), ((), ())), "ij,jkl->ikl"),
    ]:
        a, b = rng.normal(size=a).astype(np.float32), rng.normal(size=b).astype(np.float32)
        found = sparse.bcoo_dot_general_sampled(a, b, mat.indices, dimension_numbers=numbers)
        every = sparse.bcoo_extract(mat, jnp.einsum(words, a, b), assume_unique=True)
        np.testing.assert_allclose(found, every.data, rtol=1e-5, atol=1e-5)


def test_products_of_sparse_arrays():
    left, right = random_mat((6, 7), nse=9), random_mat((7, 5), nse=8)
    out = left @ right
    assert out.nse == 30
    check(out, dense_of(left) @ dense_of(right))
    left, right = random_mat((2, 6, 7), 1, nse=3), random_mat((2, 7, 50), 1, nse=4)
    out = left @ right
    assert out.nse == 12 and out.n_batch == 1
    check(out, dense_of(left) @ dense_of(right))
    a, b = random_mat((4, 5), nse=6), random_mat((4, 5), nse=5, seed=1)
    check(a * b, dense_of(a) * dense_of(b))
    check(a * b[:1], dense_of(a) * dense_of(b)[:1])
    check(a + b, dense_of(a) + dense_of(b))
    check(a - b, dense_of(a) - dense_of(b))
    with pytest.raises(ValueError, match="would come after"):
        sparse.bcoo_dot_general(left[0], right, dimension_numbers=(((1,), (1,)), ((), ())))


def test_elementwise_operators():
    mat = random_mat((4, 5), nse=8)
    dense, other = dense_of(mat), np.arange(1.0, 21).reshape(4, 5).astype(np.float32)
    for found, expected in [
        (mat * other, dense * other),
        (other * mat, dense * other),
        (mat * other[:1], dense * other[:1]),
        (mat * other[:, :1], dense * other[:, :1]),
        (mat * other[0], dense * other[0]),
        (mat / other, dense / other),
        (3 * mat, 3 * dense),
        (mat / 4, dense / 4),
        (mat + other, dense + other),
        (other + mat, dense + other),
        (-mat, -dense),
        (abs(mat), abs(dense)),
        (mat**2, dense**2),
        (mat.sum(), dense.sum()),
        (mat.sum(1, keepdims=True), dense.sum(1, keepdims=True)),
        (mat.T, dense.T),
        (mat.astype(jnp.float16), dense.astype(np.float16)),
    ]:
        tolerance = 1e-3 if getattr(found, "dtype", None) == jnp.float16 else 1e-5
        found = dense_of(found) if isinstance(found, sparse.BCOO) else np.asarray(found)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    for operation in [
        lambda: mat + 1, lambda: 1 - mat, lambda: 2 / mat, lambda: mat**0, lambda: 2**mat, lambda: mat == mat
    ]:  # fmt: skip
        with pytest.raises(NotImplementedError, match="todense"):
            operation()


def test_derivatives():
    mat, rng = random_mat((6, 7), nse=9, shared=True), np.random.default_rng(0)
    v, w = rng.normal(size=7).astype(np.float32), rng.normal(size=6).astype(np.float32)
    with_data = lambda data: sparse.BCOO((data, mat.indices), shape=mat.shape)

    def by_sparse(data, v):
        return jnp.sum(jnp.sin(with_data(data) @ v) * w)

    def by_dense(data, v):
        return jnp.sum(jnp.sin(with_data(data).todense() @ v) * w)

    for argnum in (0, 1):
        expected = jax.grad(by_dense, argnum)(mat.data, v)
        for f in (jax.grad(by_sparse, argnum), jax.jit(jax.grad(by_sparse, argnum))):
            np.testing.assert_allclose(f(mat.data, v), expected, rtol=1e-5, atol=1e-6)
        hessians = [jax.hessian(f, argnum)(mat.data, v) for f in (by_sparse, by_dense)]
        np.testing.assert_allclose(*hessians, rtol=1e-4, atol=1e-5)
    both = jax.vmap(by_sparse, (None, 0))(mat.data, np.stack([v, 2 * v]))
    np.testing.assert_allclose(both, [by_dense(mat.data, v), by_dense(mat.data, 2 * v)], rtol=1e-5)
    (product, tangent) = jax.jvp(lambda d: (with_data(d) @ with_data(d).T).todense(), (mat.data,), (mat.data,))
    np.testing.assert_allclose(tangent, 2 * product, rtol=1e-5, atol=1e-6)
    summed = jax.grad(lambda d: jnp.sum(with_data(d).sum_duplicates(nse=9).data ** 2))(mat.data)
    where = jax.grad(lambda d: jnp.sum(with_data(d).todense() ** 2))(mat.data)
    np.testing.assert_allclose(summed, where, rtol=1e-5, atol=1e-6)
    padded = sparse.BCOO((jnp.ones(2), jnp.array([[0], [2]])), shape=(2,))
    assert jax.grad(lambda d: ((sparse.BCOO((d, padded.indices), shape=(2,))) / jnp.array([2.0, 0])).sum())(
        padded.data
    ).tolist() == [0.5, 0]
    made = jax.grad(lambda x: jnp.sum(sparse.BCOO.fromdense(x, nse=4).data ** 2))(MATRIX)
    np.testing.assert_allclose(made, 2 * MATRIX)


@pytest.mark.parametrize("kind", [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR])
def test_elements_are_counted_where_the_values_are_known(kind):
    """As under an eager derivative: no nse is needed."""
    primal, tangent = jax.jvp(lambda x: kind.fromdense(x).todense(), (MATRIX,), (MATRIX + 1,))
    np.testing.assert_array_equal(primal, MATRIX)
    np.testing.assert_array_equal(tangent, np.where(MATRIX != 0, MATRIX + 1, 0))
    slope = jax.grad(lambda x: jnp.sum(kind.fromdense(x).todense() ** 2))(MATRIX)
    np.testing.assert_array_equal(slope, 2 * MATRIX)


def test_duplicates_are_counted_where_the_indices_are_known():
    indices = jnp.array([[3], [0], [3]])
    slope = jax.grad(lambda d: jnp.sum(sparse.BCOO((d, indices), shape=(4,)).sum_duplicates().data ** 2))
    np.testing.assert_array_equal(slope(jnp.array([1.0, 2.0, 5.0])), [12, 4, 12])


def test_vmap_over_batch_axes():
    mat = random_mat((3, 4, 5), 1)
    dense, v = dense_of(mat), jnp.arange(5.0)
    check(jax.vmap(lambda m: m @ v)(mat), dense @ np.arange(5.0))
    check(jax.jit(jax.vmap(lambda m: m.T))(mat), dense.transpose(0, 2, 1))
    check(jax.vmap(lambda m: m.sum(0))(mat), dense.sum(1))
    check(jax.vmap(lambda x: sparse.BCOO.fromdense(x, nse=20))(jnp.asarray(dense)), dense)
    scaled = jax.vmap(lambda m, x: m * x, in_axes=(None, 0))(random_mat((4, 5)), jnp.arange(3.0))
    assert scaled.n_batch == 1
    check(scaled, np.arange(3.0)[:, None, None] * dense_of(random_mat((4, 5))))
    total, rows = lax.scan(lambda c, m: (c + (m @ v).sum(), m @ v), 0.0, mat)
    check(rows, dense @ np.arange(5.0))
    check(jax.tree.map(lambda x: x[1], mat), dense[1])


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8", "complex64"])
def test_dtypes(dtype):
    mat = sparse.BCOO.fromdense(MATRIX.astype(dtype))
    v = jnp.arange(3).astype(dtype)
    assert (mat @ v).dtype == mat.todense().dtype == (v[:2] @ mat).dtype == dtype
    assert (mat @ v).tolist() == (MATRIX.astype(dtype) @ v).tolist() and (mat @ jnp.ones(3)).dtype != jnp.int32


def test_edges():
    for shape in [(0, 3), (3, 0), (0,), ()]:
        mat = sparse.BCOO.fromdense(jnp.ones(shape))
        check(mat.todense(), np.ones(shape))
        check(mat.sum_duplicates(), np.ones(shape))
    assert (sparse.BCOO._empty((2, 3)) @ jnp.ones(3)).tolist() == [0, 0]
    negative = sparse.BCOO((jnp.ones(2), jnp.array([[-1, 0], [1, -1]])), shape=(2, 3))
    assert negative.todense().tolist() == [[0, 0, 0], [1, 0, 1]]
    assert (negative @ jnp.array([1.0, 2, 4])).tolist() == [0, 5] and (jnp.ones(2) @ negative).tolist() == [1, 0, 1]
    assert sparse.BCOO.fromdense(jnp.array([jnp.nan, 0, jnp.inf])).nse == 2
    assert (np.ones((2, 3)) + sparse.BCOO.fromdense(MATRIX)).tolist() == (1 + MATRIX).tolist()


def test_duplicates():
    mat = sparse.BCOO((jnp.array([1.0, 5, 0]), jnp.array([[1, 0], [1, 0], [0, 1]])), shape=(2, 3))
    assert mat.sum_duplicates().data.tolist() == [6]
    assert mat.sum_duplicates(remove_zeros=False).data.tolist() == [0, 6]
    assert mat.sum_duplicates(nse=3).indices.tolist() == [[1, 0], [2, 3], [2, 3]]
    assert jax.jit(lambda m: m.sum_duplicates(nse=2))(mat).data.tolist() == [6, 0]
    with pytest.raises(ValueError, match="give nse"):
        jax.jit(lambda m: m.sum_duplicates())(mat)
    assert sparse.bcoo_extract(mat, MATRIX).data.tolist() == [2, 0, 1]
    wide = sparse.BCOO((jnp.ones(3), jnp.array([[9, 70000], [3, 5], [9, 70000]])), shape=(100000, 100000))
    assert wide.sum_duplicates(nse=2).indices.tolist() == [[3, 5], [9, 70000]]


def test_what_it_is():
    mat = sparse.BCOO.fromdense(MATRIX, nse=4)
    assert repr(mat) == "BCOO(float32[2, 3], nse=4)" and len(mat) == 2 and mat.size == 6 and not hasattr(mat, "at")
    assert repr(sparse.BCOO.fromdense(MATRIX, n_batch=1)) == "BCOO(float32[2, 3], nse=2, n_batch=1)"
    leaves, tree = jax.tree.flatten(mat)
    assert [x.shape for x in leaves] == [(4,), (4, 2)]
    assert jax.tree.unflatten(tree, leaves).indices_sorted
    assert repr(jax.tree.unflatten(tree, [1, 2])) == "BCOO(<invalid>)"
    assert jax.jit(lambda m: repr(m) and m)(mat).nse == 4
    program = str(jax.make_jaxpr(lambda m, v: m @ v)(mat, jnp.ones(3)))
    assert "bcoo_dot_general" in program and "gather" not in program
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)


@pytest.mark.parametrize(
    ("error", "match", "args", "shape"),
    [
        (ValueError, "has 1 axes", ((3,), (3, 2)), (2,)),
        (ValueError, "Invalid data.shape", ((3,), (2, 2)), (2, 3)),
        (ValueError, "have 2 axes", ((3,), (3, 2)), (2, 3, 4)),
        (ValueError, "batch axes of data", ((2, 3), (1, 3, 2)), (4, 2, 3)),
        (ValueError, "two axes or more", ((3,), (3,)), (3,)),
    ],
)
def test_buffers_that_do_not_fit(error, match, args, shape):
    data, indices = args
    with pytest.raises(error, match=match):
        sparse.BCOO((jnp.ones(data), jnp.zeros(indices, int)), shape=shape)


def test_what_is_refused():
    mat = sparse.BCOO.fromdense(MATRIX)
    with pytest.raises(TypeError, match="must be integers"):
        sparse.BCOO((jnp.ones(3), jnp.ones((3, 2))), shape=(2, 3))
    with pytest.raises(jax.errors.ConcretizationTypeError, match="nse"):
        jax.jit(sparse.BCOO.fromdense)(MATRIX)
    with pytest.raises(ValueError, match="n_batch=3"):
        sparse.BCOO.fromdense(MATRIX, n_batch=3)
    with pytest.raises(TypeError, match="contracting dimensions"):
        mat @ jnp.ones(2)
    with pytest.raises(NotImplementedError, match="batch axes"):
        sparse.bcoo_dot_general(mat, MATRIX, dimension_numbers=(((1,), (1,)), ((0,), (0,))))
    with pytest.raises(NotImplementedError, match="dense axes"):
        sparse.bcoo_dot_general(random_mat(SHAPE, 0, 1), jnp.ones(4), dimension_numbers=(((2,), (0,)), ((), ())))
    with pytest.raises(ValueError, match="of shape"):
        sparse.bcoo_extract(mat, MATRIX[:1])


def test_from_scipy():
    found = sparse.BCOO.from_scipy_sparse(scipy.sparse.csr_array(np.asarray(MATRIX)))
    check(found, MATRIX)
    with pytest.raises(NotImplementedError):
        sparse.BCOO.from_scipy_sparse(scipy.sparse.csr_array(np.asarray(MATRIX)), n_batch=1)
