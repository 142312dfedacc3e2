"""The same elements in another shape: transposes, reshapes, new axes, joined arrays; sums along axes.

The shape of each result, and what is wrong with arguments, is what ``lax`` says of the dense operation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.struct import ShapeDtypeStruct
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import columns_of, common_batch, layout_of, put_outside
from catena.transform.make_jaxpr import eval_shape


def dense_type(function: Callable, *mats: BCOO) -> ShapeDtypeStruct:
    """The shape and dtype of a function of dense arrays like these."""
    return eval_shape(function, *[ShapeDtypeStruct(m.shape, m.dtype) for m in mats])


def axes_by_kind(mat: BCOO, axes) -> tuple[list, list, list]:
    """The batch axes among ``axes``, the sparse ones and the dense ones, each counted from the first of its kind."""
    first_dense = mat.n_batch + mat.n_sparse
    return (
        [d for d in axes if d < mat.n_batch],
        [d - mat.n_batch for d in axes if mat.n_batch <= d < first_dense],
        [d - first_dense for d in axes if d >= first_dense],
    )


# ----------------------------------------------------------------------------------------------------
# transpose


def _transpose(data, indices, *, permutation, spinfo):
    n_batch, n_sparse, n_dense, _ = layout_of(data.shape, indices.shape, spinfo.shape)
    batch, first_dense = permutation[:n_batch], n_batch + n_sparse
    order = [d - n_batch for d in permutation[n_batch:first_dense]]
    dense = [d - n_sparse + 1 for d in permutation[first_dense:]]
    return (
        lax.transpose(data, [*batch, n_batch, *dense]),
        columns_of(lax.transpose(indices, [*batch, n_batch, n_batch + 1]), order),
    )


bcoo_transpose_p = composed("bcoo_transpose", _transpose, multiple_results=True)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A sparse array with its axes in another order.

    Arguments:
      mat: a sparse array.
      permutation: for each axis of the result, which one of ``mat`` it is; of the same kind as that.
    Raises:
      TypeError: ``permutation`` is none.
      NotImplementedError: batch, sparse and dense axes are mixed.

    >>> import catena.numpy as jnp
    >>> bcoo_transpose(BCOO.fromdense(jnp.ones((2, 3))), permutation=(1, 0))
    BCOO(float32[3, 2], nse=6)
    """
    permutation = tuple(operator.index(d) for d in permutation)
    shape = dense_type(lambda x: lax.transpose(x, permutation), mat).shape
    ends = 0, mat.n_batch, mat.n_batch + mat.n_sparse, mat.ndim
    for start, end in zip(ends, ends[1:], strict=False):
        if sorted(permutation[start:end]) != list(range(start, end)):
            raise NotImplementedError(
                f"bcoo_transpose: batch, sparse and dense axes stay among themselves, got {permutation} for {mat}"
            )
    if permutation == tuple(range(mat.ndim)):
        return mat
    buffers = bcoo_transpose_p.bind(*mat._bufs, permutation=permutation, spinfo=mat._info)
    is_sorted = mat.indices_sorted and permutation[ends[1] : ends[2]] == tuple(range(ends[1], ends[2]))
    return BCOO(buffers, shape=shape, indices_sorted=is_sorted, unique_indices=mat.unique_indices)


# ----------------------------------------------------------------------------------------------------
# New axes, and axes of size 1


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding=None
) -> BCOO:
    """A sparse array with new axes, and batch and dense ones of size 1 repeated.

    Arguments:
      mat: a sparse array.
      shape: of the result.
      broadcast_dimensions: for each axis of ``mat``, which axis of the result it is.
      sharding: on one device, nothing.
    Raises:
      NotImplementedError: a sparse axis would be repeated, or a new one between sparse axes not be of size 1.

    >>> import catena.numpy as jnp
    >>> bcoo_broadcast_in_dim(BCOO.fromdense(jnp.ones(2)), shape=(3, 2), broadcast_dimensions=(1,))
    BCOO(float32[3, 2], nse=2, n_batch=1)
    """
    shape, dims = tuple(shape), tuple(broadcast_dimensions)
    dense_type(lambda x: lax.broadcast_in_dim(x, shape, dims), mat)
    batch, sparse, dense = dims[: mat.n_batch], dims[mat.n_batch : mat.n_batch + mat.n_sparse], dims[mat.n_batch :]
    dense = dense[mat.n_sparse :]
    end = min(dense, default=len(shape))
    n_batch = min(sparse, default=end)
    places = [sparse.index(d) if d in sparse else None for d in range(n_batch, end)]
    for d, place in enumerate(places, n_batch):
        if shape[d] != (1 if place is None else mat.shape[mat.n_batch + place]):
            raise NotImplementedError(
                f"bcoo_broadcast_in_dim: a sparse axis of size {shape[d]} cannot be added to {mat}"
            )
    sizes = [mat.data.shape[: mat.n_batch], mat.indices.shape[: mat.n_batch]]
    batch_of = lambda own: tuple(own[batch.index(d)] if d in batch else shape[d] for d in range(n_batch))
    data = lax.broadcast_in_dim(
        mat.data,
        (*batch_of(sizes[0]), mat.nse, *shape[end:]),
        (*batch, n_batch, *(d - end + n_batch + 1 for d in dense)),
    )
    indices = jnp.concatenate(
        [
            jnp.zeros((*sizes[1], mat.nse, 1), mat.indices.dtype) if p is None else mat.indices[..., p : p + 1]
            for p in places
        ]
        or [mat.indices],
        axis=-1,
    )
    new = (*batch_of(sizes[1]), mat.nse, len(places))
    return BCOO((data, lax.broadcast_in_dim(indices, new, (*batch, n_batch, n_batch + 1))), shape=shape)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A sparse array without some of its axes of size 1.

    Arguments:
      arr: a sparse array.
      dimensions: the axes.
    Raises:
      ValueError: one of them is not of size 1.

    >>> import catena.numpy as jnp
    >>> bcoo_squeeze(BCOO.fromdense(jnp.ones((1, 3))), dimensions=(0,))
    BCOO(float32[3], nse=3)
    """
    shape = dense_type(lambda x: lax.squeeze(x, dimensions), arr).shape
    batch, sparse, dense = axes_by_kind(arr, [operator.index(d) % arr.ndim for d in dimensions])
    kept = put_outside(arr.indices, arr.shape[arr.n_batch : arr.n_batch + arr.n_sparse])
    indices = columns_of(kept, [d for d in range(arr.n_sparse) if d not in sparse])
    data = arr.data if len(sparse) < arr.n_sparse or not sparse else inside_only(arr).data
    data = lax.squeeze(data, [*batch, *(arr.n_batch + 1 + d for d in dense)])
    return BCOO((data, lax.squeeze(indices, batch)), shape=shape)


def inside_only(mat: BCOO) -> BCOO:
    """The same array with padding that is 0, and whose indices are all out of bounds."""
    sizes = mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    indices = put_outside(mat.indices, sizes)
    inside = jnp.all(indices < np.array(sizes, indices.dtype), axis=-1)
    inside = jnp.expand_dims(inside, tuple(range(mat.n_batch + 1, mat.data.ndim)))
    data = jnp.where(inside, mat.data, np.zeros((), mat.dtype))
    return BCOO((data, indices), shape=mat.shape)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A sparse array with the order along some axes reversed.

    Arguments:
      operand: a sparse array.
      dimensions: the axes.

    >>> import catena.numpy as jnp
    >>> bcoo_rev(BCOO.fromdense(jnp.arange(3.0)), (0,)).todense()
    Array([2., 1., 0.], dtype=float32)
    """
    dense_type(lambda x: lax.rev(x, dimensions), operand)
    batch, sparse, dense = axes_by_kind(operand, dimensions)
    sizes = operand.shape[operand.n_batch : operand.n_batch + operand.n_sparse]
    indices = put_outside(operand.indices, sizes)
    last = np.array(sizes, indices.dtype) - 1
    turned = np.isin(np.arange(operand.n_sparse), sparse) & (indices <= last)
    indices = lax.rev(jnp.where(turned, last - indices, indices), batch)
    data = lax.rev(operand.data, [*batch, *(operand.n_batch + 1 + d for d in dense)])
    return BCOO((data, indices), shape=operand.shape)


# ----------------------------------------------------------------------------------------------------
# reshape


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding=None
) -> BCOO:
    """A sparse array with the same elements, in row-major order, in another shape.

    Arguments:
      mat: a sparse array.
      new_sizes: the shape. Its first axes are made of the batch axes of ``mat``, its last ones of the dense axes.
      dimensions: the order in which the axes are read, if not their own.
      sharding: on one device, nothing.
    Raises:
      TypeError: the number of elements differs.
      ValueError: batch, sparse and dense axes are mixed.

    >>> import catena.numpy as jnp
    >>> bcoo_reshape(BCOO.fromdense(jnp.arange(6.0)), new_sizes=(2, 3))
    BCOO(float32[2, 3], nse=5)
    """
    shape = dense_type(lambda x: lax.reshape(x, new_sizes, dimensions), mat).shape
    if shape == mat.shape and dimensions is None:
        return mat
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    first_dense = mat.n_batch + mat.n_sparse
    batch = leading(shape, math.prod(mat.shape[: mat.n_batch]))
    dense = leading(shape[::-1], math.prod(mat.shape[first_dense:])) if mat.n_dense else 0
    while batch is not None and dense is not None and batch + dense > len(shape):
        batch -= 1
    if batch is None or dense is None or math.prod(shape[:batch]) != math.prod(mat.shape[: mat.n_batch]):
        raise ValueError(f"bcoo_reshape: shape {shape} mixes batch, sparse and dense axes of {mat}")
    return reshaped(mat, shape, batch, len(shape) - dense)


def leading(shape: Sequence[int], size: int) -> int | None:
    """How many of the first axes have so many elements together, those of size 1 that follow included."""
    counts = [math.prod(shape[:i]) for i in range(len(shape) + 1)]
    return max((i for i, n in enumerate(counts) if n == size), default=None)


def reshaped(mat: BCOO, shape: tuple, n_batch: int, first_dense: int) -> BCOO:
    """``mat`` in a shape of which the first axes are batch axes, and the last ones dense axes."""
    n, batch, sizes = mat.n_batch, shape[:n_batch], shape[n_batch:first_dense]
    data, indices = mat.data, flat_index(mat.indices, mat.shape[n : n + mat.n_sparse], sizes)
    if mat.shape[:n] != batch:
        data, indices = (jnp.broadcast_to(x, (*mat.shape[:n], *x.shape[n:])) for x in (data, indices))
    batch_of = lambda x: x.shape[:n] if mat.shape[:n] == batch else batch
    data = lax.reshape(data, (*batch_of(data), mat.nse, *shape[first_dense:]))
    return BCOO((data, lax.reshape(indices, (*batch_of(indices), mat.nse, len(sizes)))), shape=shape)


def flat_index(indices, own: Sequence[int], sizes: Sequence[int]):
    """Indices in an array of sizes ``own`` as those of the same elements in one of ``sizes``."""
    indices = put_outside(indices, own)
    inside = jnp.all(indices < np.array(own, indices.dtype), axis=-1, keepdims=True)
    flat = jnp.zeros(indices.shape[:-1], indices.dtype)
    for d, size in enumerate(own):
        flat = flat * size + jnp.where(inside[..., 0], indices[..., d], 0)
    parts = []
    for size in reversed(sizes):
        parts.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    new = jnp.stack(parts[::-1], axis=-1) if parts else indices[..., :0]
    return jnp.where(inside, new, np.array(sizes, indices.dtype)).astype(indices.dtype)


# ----------------------------------------------------------------------------------------------------
# concatenate


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays joined along a batch axis or a sparse one.

    Arguments:
      operands: ``BCOO`` arrays with the same numbers of batch and dense axes.
      dimension: the axis.
    Raises:
      ValueError: there is no operand, or one of another kind or layout.
      TypeError: shapes or dtypes differ.
      NotImplementedError: it is a dense axis.

    >>> import catena.numpy as jnp
    >>> M = BCOO.fromdense(jnp.array([0.0, 4.0]))
    >>> bcoo_concatenate([M, M], dimension=0).todense()
    Array([0., 4., 0., 4.], dtype=float32)
    """
    operands = list(operands)
    if not all(isinstance(x, BCOO) for x in operands):
        raise ValueError(f"bcoo_concatenate takes BCOO arrays, got {operands}")
    shape = dense_type(lambda *xs: lax.concatenate(xs, dimension), *operands).shape
    layouts = {(m.n_batch, m.n_dense) for m in operands}
    if len(layouts) > 1:
        raise ValueError(f"bcoo_concatenate: numbers of batch and dense axes differ, got {operands}")
    ((n_batch, n_dense),) = layouts
    if dimension >= len(shape) - n_dense:
        raise NotImplementedError("bcoo_concatenate: dense axes are not joined")
    join = join_batch if dimension < n_batch else join_sparse
    return BCOO(join(operands, dimension, shape), shape=shape)


def join_batch(operands, dimension: int, shape: tuple) -> tuple:
    """The buffers of examples side by side."""
    nse = max(m.nse for m in operands)
    sizes = shape[operands[0].n_batch : operands[0].n_batch + operands[0].n_sparse]
    joined = []
    for which in (0, 1):
        buffers = [with_nse(m, nse, sizes)[which] for m in operands]
        batch = common_batch(operands[0].n_batch, *buffers)
        whole = [(*batch[:dimension], m.shape[dimension], *batch[dimension + 1 :]) for m in operands]
        n = operands[0].n_batch
        buffers = [jnp.broadcast_to(x, (*w, *x.shape[n:])) for x, w in zip(buffers, whole, strict=True)]
        joined.append(lax.concatenate(buffers, dimension))
    return tuple(joined)


def with_nse(mat: BCOO, nse: int, sizes) -> tuple:
    """The buffers of ``mat``, with padding up to ``nse`` elements."""
    more = nse - mat.nse
    if not more:
        return mat._bufs
    data, indices, n = mat.data, mat.indices, mat.n_batch
    padding = jnp.zeros((*data.shape[:n], more, *data.shape[n + 1 :]), data.dtype)
    outside = jnp.broadcast_to(np.array(sizes, indices.dtype), (*indices.shape[:n], more, len(sizes)))
    return lax.concatenate([data, padding], n), lax.concatenate([indices, outside], n)


def join_sparse(operands, dimension: int, shape: tuple) -> tuple:
    """The buffers of all elements of each example, those of later operands moved along the axis."""
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    dtype = jnp.result_type(*[m.indices.dtype for m in operands])
    offset, moved = 0, []
    for m in operands:
        indices = put_outside(m.indices, m.shape[n_batch : n_batch + n_sparse], shape[n_batch : n_batch + n_sparse])
        inside = jnp.all(indices < np.array(shape[n_batch : n_batch + n_sparse], indices.dtype), axis=-1, keepdims=True)
        step = np.zeros(n_sparse, indices.dtype)
        step[dimension - n_batch] = offset
        moved.append(jnp.where(inside, indices + step, indices).astype(dtype))
        offset += m.shape[dimension]
    joined = []
    for buffers in ([m.data for m in operands], moved):
        batch = common_batch(n_batch, *buffers)
        joined.append(lax.concatenate([jnp.broadcast_to(x, (*batch, *x.shape[n_batch:])) for x in buffers], n_batch))
    return tuple(joined)


# ----------------------------------------------------------------------------------------------------
# Sums


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums along some axes of a sparse array.

    Arguments:
      mat: a sparse array.
      axes: the axes. Along dense ones elements are added up; elsewhere their positions become the same, which says
        that they add up.
    Raises:
      ValueError: there is no such axis.

    >>> import catena.numpy as jnp
    >>> bcoo_reduce_sum(BCOO.fromdense(jnp.ones((2, 3))), axes=(0,)).todense()
    Array([2., 2., 2.], dtype=float32)
    """
    axes = sorted({operator.index(d) for d in axes})
    if any(not 0 <= d < mat.ndim for d in axes):
        raise ValueError(f"bcoo_reduce_sum: axes must be in [0, {mat.ndim}), got {tuple(axes)}")
    batch, sparse, dense = axes_by_kind(mat, axes)
    shape = tuple(n for d, n in enumerate(mat.shape) if d not in axes)
    if sparse:
        mat = inside_only(mat)
    n, nse = mat.n_batch, mat.nse
    data = jnp.sum(mat.data, axis=tuple(n + 1 + d for d in dense), dtype=mat.dtype)
    indices = columns_of(mat.indices, [d for d in range(mat.n_sparse) if d not in sparse])
    shared = [d for d in batch if data.shape[d] == indices.shape[d] == 1]  # every example adds the same
    data = data * np.array(math.prod(mat.shape[d] for d in shared), mat.dtype) if shared else data
    whole = common_batch(n, data, indices)
    kept = [d for d in range(n) if d not in batch]
    nse *= math.prod(whole[d] for d in batch)

    def merged(x):
        """The examples that are added up as one: (kept batch axes, nse, rest)."""
        own = tuple(whole[d] if d in batch else x.shape[d] for d in range(n))
        x = lax.transpose(jnp.broadcast_to(x, (*own, *x.shape[n:])), [*kept, *batch, *range(n, x.ndim)])
        return lax.reshape(x, (*x.shape[: len(kept)], nse, *x.shape[n + 1 :]))

    return BCOO((merged(data), merged(indices)), shape=shape)
