"""Sparse arrays at random, of every layout, and what they mean, by loops in NumPy."""

import numpy as np

import catena.numpy as jnp
from catena.experimental import sparse

SHAPE = (2, 3, 4)
LAYOUTS = [(n_batch, n_dense) for n_batch in range(4) for n_dense in range(4 - n_batch)]


def random_mat(shape, n_batch: int = 0, n_dense: int = 0, nse: int = 5, seed: int = 0, shared: bool = False):
    """A BCOO array with duplicates, and with padding, whose data are NaN, on some of its indices."""
    rng = np.random.default_rng([seed, n_batch, n_dense, nse])
    end = len(shape) - n_dense
    batch, sizes, dense = shape[:n_batch], shape[n_batch:end], shape[end:]
    columns = [rng.integers(0, n + 1, (*batch, nse)) for n in sizes]
    indices = np.stack(columns, -1) if sizes else np.zeros((*batch, nse, 0), int)
    data = rng.normal(size=(*batch, nse, *dense))
    data[(indices >= np.array(sizes, int)).any(-1)] = np.nan
    if shared:  # the first example's indices are those of all, and nothing is padding
        one = tuple(slice(0, 1) for _ in batch)
        indices = np.minimum(indices[one], np.array(sizes, int) - 1)
        data = rng.normal(size=data.shape)
    buffers = jnp.asarray(data.astype(np.float32)), jnp.asarray(indices.astype(np.int32))
    return sparse.BCOO(buffers, shape=shape)


def dense_of(mat) -> np.ndarray:
    """The dense form, element by element."""
    n, sizes = mat.n_batch, mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    data, indices = np.asarray(mat.data, np.float64), np.asarray(mat.indices)
    out = np.zeros(mat.shape)
    for example in np.ndindex(*mat.shape[:n]):
        in_data, in_indices = (
            tuple(i if size > 1 else 0 for i, size in zip(example, x.shape, strict=False)) for x in (data, indices)
        )
        for k in range(mat.nse):
            position = tuple(indices[in_indices][k])
            if all(i < size for i, size in zip(position, sizes, strict=True)):
                out[example + position] += data[in_data][k]
    return out


def check(mat, expected):
    """A sparse or dense result against the dense reference."""
    expected = np.asarray(expected)
    found = dense_of(mat) if isinstance(mat, sparse.BCOO) else np.asarray(mat)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
