"""Shapes, slices and layouts of BCOO arrays against the dense operations, over all layouts."""

import itertools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import sparse
from sparse_reference import LAYOUTS, SHAPE, check, dense_of, random_mat


@pytest.fixture(params=LAYOUTS, ids=str)
def mat(request):
    return random_mat(SHAPE, *request.param)


def kept_apart(mat, permutation) -> bool:
    """Whether batch, sparse and dense axes stay among themselves."""
    kinds = [0] * mat.n_batch + [1] * mat.n_sparse + [2] * mat.n_dense
    return [kinds[d] for d in permutation] == kinds


def test_transpose(mat):
    for p in itertools.permutations(range(3)):
        if kept_apart(mat, p):
            check(sparse.bcoo_transpose(mat, permutation=p), dense_of(mat).transpose(p))
        else:
            with pytest.raises(NotImplementedError, match="stay among themselves"):
                sparse.bcoo_transpose(mat, permutation=p)


def test_sums_and_reversal(mat):
    dense = dense_of(mat)
    for axes in [(0,), (2,), (0, 1), (0, 2), (0, 1, 2)]:
        check(sparse.bcoo_reduce_sum(mat, axes=axes), dense.sum(axes))
        check(sparse.bcoo_rev(mat, axes), np.flip(dense, axes))


def test_slices(mat):
    dense = dense_of(mat)
    for start, limit, strides in [
        ((1, 0, 0), (2, 3, 4), None),
        ((0, 1, 1), (2, 3, 3), (1, 2, 1)),
        ((0, 0, 0), (2, 3, 4), (2, 2, 2)),
        ((0, 1, 0), (2, 1, 4), None),
    ]:
        expected = dense[tuple(map(slice, start, limit, strides or (1, 1, 1)))]
        check(sparse.bcoo_slice(mat, start_indices=start, limit_indices=limit, strides=strides), expected)
    for start, sizes in [((1, 1, 1), (1, 2, 3)), ((0, 5, 1), (2, 1, 2))]:
        check(sparse.bcoo_dynamic_slice(mat, start, sizes), lax.dynamic_slice(dense, start, sizes))


def test_layouts(mat):
    for n_batch, n_dense in LAYOUTS:
        out = sparse.bcoo_update_layout(mat, n_batch=n_batch, n_dense=n_dense, on_inefficient=None)
        assert (out.n_batch, out.n_dense) == (n_batch, n_dense)
        check(out, dense_of(mat))


def test_reshape(mat):
    done = 0
    for shape in [(6, 4), (2, 12), (24,), (2, 3, 2, 2), (1, 2, 3, 4), (2, 1, 3, 4), (2, 3, 1, 4), (2, 3, 4, 1)]:
        try:
            out = sparse.bcoo_reshape(mat, new_sizes=shape)
        except ValueError as error:
            assert "mixes" in str(error) and len(shape) < 4
            continue
        check(out, dense_of(mat).reshape(shape))
        done += 1
    assert done >= 4


def test_concatenate(mat):
    other = random_mat(SHAPE, mat.n_batch, mat.n_dense, nse=7, seed=1)
    for d in range(3 - mat.n_dense):
        check(sparse.bcoo_concatenate([mat, other], dimension=d), np.concatenate([dense_of(mat), dense_of(other)], d))
    if mat.n_dense:
        with pytest.raises(NotImplementedError, match="dense axes"):
            sparse.bcoo_concatenate([mat, other], dimension=2)


def test_new_axes(mat):
    for shape, dims in [((5, 2, 3, 4), (1, 2, 3)), ((2, 1, 3, 4), (0, 2, 3)), ((2, 3, 4, 1), (0, 1, 2))]:
        out = sparse.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=dims)
        check(out, lax.broadcast_in_dim(dense_of(mat), shape, dims))
    thin = random_mat((2, 1, 4), mat.n_batch, mat.n_dense)
    check(sparse.bcoo_squeeze(thin, dimensions=(1,)), dense_of(thin)[:, 0])


GATHERS = [
    (((1, 2), (0,), (0,)), [[0], [1], [0]], (1, 3, 4)),
    (((0, 2), (1,), (1,)), [[0], [2]], (2, 1, 4)),
    (((1,), (0, 2), (0, 2)), [[1, 3], [0, 2]], (1, 3, 1)),
]


@pytest.mark.parametrize("layout", [(0, 0), (1, 0), (0, 1), (1, 1)], ids=str)
def test_gather(layout):
    mat = random_mat(SHAPE, *layout)
    for numbers, indices, sizes in GATHERS:
        numbers, indices = lax.GatherDimensionNumbers(*numbers), jnp.array(indices)
        check(sparse.bcoo_gather(mat, indices, numbers, sizes), lax.gather(dense_of(mat), indices, numbers, sizes))


def test_batch_axes_of_size_1_stand_for_all():
    mat = random_mat(SHAPE, 1, shared=True)
    dense = dense_of(mat)
    assert mat.indices.shape[0] == 1 and mat.data.shape[0] == 2
    check(mat.todense(), dense)
    check(mat[1:], dense[1:])
    check(mat.sum(0), dense.sum(0))
    check(mat.sum_duplicates(), dense)
    check(sparse.bcoo_update_layout(mat, n_batch=0), dense)
    check(mat.reshape(1, 2, 12), dense.reshape(1, 2, 12))
    check(mat @ jnp.ones(4), dense @ np.ones(4))


def test_indices_of_numpys_kind():
    mat = random_mat((4, 5))
    dense = dense_of(mat)
    rows = np.array([3, 0, 3])
    for index in [0, -1, (slice(None), 2), (1, 2), slice(None, None, -2), None, (..., None), rows, (slice(None), rows)]:
        check(mat[index], dense[index])
    assert [dense_of(row).tolist() for row in mat] == dense.tolist()
    check(jax.jit(lambda mat, i: mat[i])(mat, 3), dense[3])


def test_what_is_refused():
    mat = random_mat(SHAPE)
    with pytest.raises(sparse.SparseEfficiencyError, match="increasing n_batch from 0 to 1"):
        mat.update_layout(n_batch=1)
    with pytest.warns(sparse.SparseEfficiencyWarning, match="increasing n_dense"):
        mat.update_layout(n_dense=1, on_inefficient="warn")
    with pytest.raises(ValueError, match="on_inefficient"):
        mat.update_layout(n_dense=1, on_inefficient="never")
    with pytest.raises(ValueError, match="not possible"):
        mat.update_layout(n_batch=3, n_dense=1)
    with pytest.raises(ValueError, match="are not in"):
        sparse.bcoo_slice(mat, start_indices=(0, 0, 0), limit_indices=(2, 3, 5))
    with pytest.raises(TypeError):
        mat.reshape(5)
    with pytest.raises(ValueError, match="takes BCOO arrays"):
        sparse.bcoo_concatenate([mat, dense_of(mat)], dimension=0)
    with pytest.raises(NotImplementedError, match="sparse axis"):
        sparse.bcoo_broadcast_in_dim(mat, shape=(2, 3, 4, 5), broadcast_dimensions=(0, 1, 2))


def test_convolution():
    signal, kernel = random_mat((1, 1, 9), nse=4), random_mat((1, 1, 3), nse=2)
    for padding in ["VALID", "SAME", [(2, 1)], [(-1, 0)]]:
        out = sparse.bcoo_conv_general_dilated(signal, kernel, window_strides=(1,), padding=padding)
        left, right = (jnp.asarray(dense_of(x), jnp.float32) for x in (signal, kernel))
        check(out, lax.conv_general_dilated(left, right, (1,), padding))
    with pytest.raises(NotImplementedError, match="strides"):
        sparse.bcoo_conv_general_dilated(signal, kernel, window_strides=(2,), padding="VALID")
