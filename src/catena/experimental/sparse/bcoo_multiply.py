"""Elementwise products of BCOO arrays."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.shapes import broadcast_shapes
from catena.experimental.sparse.bcoo import BCOO, bcoo_extract_p
from catena.experimental.sparse.bcoo_layout import bcoo_update_layout
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import (
    columns_of,
    common_batch,
    masked,
    over_batch,
    put_outside,
    read_rows,
    wrapped,
)

# ----------------------------------------------------------------------------------------------------
# Sparse times dense


def _extract_repeated(indices, arr, *, spinfo):
    """The elements of ``arr`` repeated along its axes of size 1; along those indices do not matter."""
    n, k = indices.ndim - 2, indices.shape[-1]
    sizes = spinfo.shape[n : n + k]
    read = [d for d in range(k) if arr.shape[n + d] != 1]
    arr = lax.squeeze(arr, [n + d for d in range(k) if d not in read])

    def one(indices, arr):
        return read_rows(arr, columns_of(wrapped(indices, sizes), read), range(len(read)))

    return over_batch(one, common_batch(n, indices, arr))(indices, arr)


bcoo_extract_repeated_p = composed("bcoo_extract_repeated", _extract_repeated, linear=(1,))


def bcoo_multiply_dense(sp_mat: BCOO, v):
    """The elementwise product of a sparse array and a dense one.

    Arguments:
      sp_mat: a sparse array.
      v: a dense array of the same dtype that broadcasts to its shape.
    Returns:
      The data of the product, whose indices are those of ``sp_mat``.
    Raises:
      NotImplementedError: the product is of another shape than ``sp_mat``.
      TypeError: the dtypes differ.

    >>> import catena.numpy as jnp
    >>> bcoo_multiply_dense(BCOO.fromdense(jnp.array([0.0, 2.0, 3.0])), jnp.arange(3.0))
    Array([2., 6.], dtype=float32)
    """
    v = jnp.asarray(v)
    if broadcast_shapes(sp_mat.shape, v.shape) != sp_mat.shape:
        raise NotImplementedError(f"bcoo_multiply_dense: v of shape {v.shape} does not broadcast to {sp_mat}")
    if not v.ndim:
        return lax.mul(sp_mat.data, v)
    if v.shape == sp_mat.shape:
        return lax.mul(sp_mat.data, bcoo_extract_p.bind(sp_mat.indices, v, assume_unique=True))
    v = jnp.expand_dims(v, tuple(range(sp_mat.ndim - v.ndim)))
    return lax.mul(sp_mat.data, bcoo_extract_repeated_p.bind(sp_mat.indices, v, spinfo=sp_mat._info))


# ----------------------------------------------------------------------------------------------------
# Sparse times sparse


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays.

    Arguments:
      lhs, rhs: sparse arrays of one dtype whose axes are of the same sizes, or of size 1.
    Returns:
      A sparse array that has room for every pair of specified elements; pairs at one position come first.
    Raises:
      TypeError: the numbers of axes differ, or the dtypes.
      NotImplementedError: the numbers of dense axes differ.

    >>> import catena.numpy as jnp
    >>> M = BCOO.fromdense(jnp.array([0.0, 2.0, 3.0]))
    >>> bcoo_multiply_sparse(M, M).todense()
    Array([0., 4., 9.], dtype=float32)
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError(f"bcoo_multiply_sparse: the numbers of axes of {lhs} and {rhs} differ")
    if lhs.dtype != rhs.dtype:
        raise TypeError(f"bcoo_multiply_sparse: the dtypes of {lhs} and {rhs} differ")
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError(f"bcoo_multiply_sparse: the numbers of dense axes of {lhs} and {rhs} differ")
    n = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = bcoo_update_layout(lhs, n_batch=n), bcoo_update_layout(rhs, n_batch=n)
    shape, k = broadcast_shapes(lhs.shape, rhs.shape), lhs.n_sparse
    sizes = shape[n : n + k]
    compared = [d for d in range(k) if lhs.shape[n + d] == rhs.shape[n + d]]

    def one(x, i, y, j):
        i, j = put_outside(i, lhs.shape[n : n + k]), put_outside(j, rhs.shape[n : n + k])
        inside = lambda i, mat: jnp.all(i < np.array(mat.shape[n : n + k], i.dtype), axis=-1)
        meets = jnp.all(columns_of(i, compared)[:, None] == columns_of(j, compared)[None], axis=-1)
        meets &= inside(i, lhs)[:, None] & inside(j, rhs)[None]
        room = len(i) * len(j)
        first, second = jnp.nonzero(meets, size=room, fill_value=(len(i), len(j)))
        found = first < len(i)
        dtype = jnp.promote_types(i.dtype, j.dtype)
        i, j = (read_rows(a.astype(dtype), b[:, None], (0,)) for a, b in ((i, first), (j, second)))
        wide = np.array([lhs.shape[n + d] != 1 for d in range(k)], bool)
        indices = jnp.where(found[:, None], jnp.where(wide, i, j), np.array(sizes, dtype))
        x, y = read_rows(x, first[:, None], (0,)), read_rows(y, second[:, None], (0,))
        return masked(x * y, found), indices

    buffers = [*lhs._bufs, *rhs._bufs]
    return BCOO(over_batch(one, common_batch(n, *buffers))(*buffers), shape=shape)
