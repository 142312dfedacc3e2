"""The order of the specified elements of BCOO arrays: sorted by position, and added up where positions repeat."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.trace import Tracer, find_concrete
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import common_batch, in_bounds, layout_of, over_batch, read_rows, wrapped


def order_of(indices, sizes: Sequence[int]):
    """The permutation that sorts rows of indices, (nse, k), and keeps the order of equal ones."""
    nse, n_sparse = indices.shape
    numbers = jnp.arange(nse, dtype=jnp.int32)
    if not n_sparse:
        return numbers
    sizes = [n + 1 for n in sizes]  # one for what is out of bounds
    if math.prod(sizes) < 2**31:
        keys = [flat_position(jnp.clip(indices, 0, np.array(sizes, indices.dtype) - 1), sizes)]
    else:
        keys = [indices[:, d] for d in range(n_sparse)]
    return lax.sort((*keys, numbers), num_keys=len(keys), is_stable=True)[-1]


def flat_position(indices, sizes: Sequence[int]):
    """The position of each row of indices in an array of these sizes that is written row by row."""
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    return sum((indices[:, d].astype(jnp.int32) * np.int32(s) for d, s in enumerate(strides)), np.int32(0))


# ----------------------------------------------------------------------------------------------------
# Sorting


def _sort_indices(data, indices, *, spinfo):
    n_batch, n_sparse, _, _ = layout_of(data.shape, indices.shape, spinfo.shape)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]

    def sorted_indices(indices):
        order = order_of(wrapped(indices, sizes), sizes)
        return order, take(indices, order)

    order, indices_sorted = over_batch(sorted_indices, indices.shape[:n_batch])(indices)
    return over_batch(take, common_batch(n_batch, data, order))(data, order), indices_sorted


def take(rows, order):
    """The rows at these positions."""
    return read_rows(rows, order[:, None], (0,))


bcoo_sort_indices_p = composed("bcoo_sort_indices", _sort_indices, multiple_results=True)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with the specified elements of each example in the order of their positions.

    Arguments:
      mat: a sparse array.

    >>> import catena.numpy as jnp
    >>> bcoo_sort_indices(BCOO((jnp.array([1.0, 2.0]), jnp.array([[3], [0]])), shape=(4,))).data
    Array([2., 1.], dtype=float32)
    """
    buffers = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


# ----------------------------------------------------------------------------------------------------
# Duplicates


def _sum_duplicates(data, indices, *, spinfo, nse):
    n_batch, n_sparse, _, _ = layout_of(data.shape, indices.shape, spinfo.shape)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]
    of_indices = lambda indices: places_of(indices, sizes, nse)
    order, places, unique = over_batch(of_indices, indices.shape[:n_batch])(indices)
    one = lambda data, order, places: add_at(take(data, order), places, nse)
    return over_batch(one, common_batch(n_batch, data, order))(data, order, places), unique


def places_of(indices, sizes: Sequence[int], nse: int):
    """How duplicates are brought together.

    Returns:
      An order of the rows in which equal ones follow each other, for each in this order which of the unique rows it is
      (``nse`` or more: none), and the unique rows, ``nse`` of them, with those out of bounds last.
    """
    indices = wrapped(indices, sizes)
    inside = in_bounds(indices, sizes)
    outside = np.array(sizes, indices.dtype)
    indices = jnp.where(inside[:, None], indices, outside)
    order = order_of(indices, sizes)
    indices, inside = take(indices, order), in_bounds(take(indices, order), sizes)
    differs = jnp.any(indices[1:] != indices[:-1], axis=1)
    first = jnp.concatenate([jnp.ones(min(1, len(order)), bool), differs]) & inside
    places = jnp.where(inside, jnp.cumsum(first, dtype=jnp.int32) - 1, nse)
    unique = jnp.full((nse, len(sizes)), outside, indices.dtype)
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    where = jnp.where(first, places, nse)
    return order, places, lax.scatter(unique, where[:, None], indices, numbers, mode="drop", unique_indices=True)


def add_at(rows, places, nse: int):
    """``nse`` rows, the sums of those that have each place."""
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, rows.ndim)), (0,), (0,))
    zeros = jnp.zeros((nse, *rows.shape[1:]), rows.dtype)
    return lax.scatter_add(zeros, places[:, None], rows, numbers, mode="drop", indices_are_sorted=True)


def sum_rows(rows, indices, sizes: Sequence[int], nse: int):
    """Rows and indices of one example with duplicates added up."""
    order, places, unique = places_of(indices, sizes, nse)
    return add_at(take(rows, order), places, nse), unique


bcoo_sum_duplicates_p = composed("bcoo_sum_duplicates", _sum_duplicates, multiple_results=True)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with one specified element at a position, in the order of their positions.

    Arguments:
      mat: a sparse array.
      nse: how many elements each example is to specify: what is left over is padding, what does not fit is dropped.
        By default as many as the fullest example needs.
    Raises:
      ValueError: the array is traced, and ``nse`` is not given.

    >>> import catena.numpy as jnp
    >>> bcoo_sum_duplicates(BCOO((jnp.array([1.0, 2.0, 5.0]), jnp.array([[3], [0], [3]])), shape=(4,))).data
    Array([2., 6.], dtype=float32)
    """
    asked = mat.nse if nse is None else operator.index(nse)
    if nse is None and any(isinstance(x, Tracer) and x.concrete_value() is None for x in mat._bufs):
        raise ValueError("bcoo_sum_duplicates: give nse, the number of elements to specify, where the array is traced")
    data, indices = bcoo_sum_duplicates_p.bind(*mat._bufs, spinfo=mat._info, nse=asked)
    if nse is None:
        used = fullest(indices, mat.shape[mat.n_batch :])
        data = lax.slice_in_dim(data, 0, used, axis=mat.n_batch)
        indices = lax.slice_in_dim(indices, 0, used, axis=mat.n_batch)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def fullest(indices, sizes: Sequence[int]) -> int:
    """How many rows of the fullest example are in bounds."""
    value = np.asarray(find_concrete(indices))
    inside = (value < np.array(sizes[: value.shape[-1]])).all(axis=-1)
    return int(inside.sum(axis=-1).max(initial=0))


def without_zeros(mat: BCOO) -> BCOO:
    """The same array with specified zeros made padding."""
    zero = jnp.all(mat.data == 0, axis=tuple(range(mat.n_batch + 1, mat.data.ndim)))
    outside = np.array(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
    return BCOO((mat.data, jnp.where(zero[..., None], outside, mat.indices)), shape=mat.shape)
