"""Parts of BCOO arrays: slices, and windows at positions that are computed."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_layout import bcoo_update_layout
from catena.experimental.sparse.bcoo_shape import bcoo_squeeze, bcoo_transpose, dense_type, inside_only
from catena.experimental.sparse.bcoo_sorting import bcoo_sum_duplicates
from catena.transform.vmap import vmap


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """A part of a sparse array between given positions.

    Arguments:
      mat: a sparse array.
      start_indices, limit_indices: for each axis the first position, and the one after the last.
      strides: for each axis the distance between positions; by default 1.
    Returns:
      A sparse array with as many specified elements, or as the part has, if these are fewer.
    Raises:
      ValueError: positions are not in the array, or not given for each axis.

    >>> import catena.numpy as jnp
    >>> bcoo_slice(BCOO.fromdense(jnp.arange(4.0)), start_indices=[1], limit_indices=[3]).todense()
    Array([1., 2.], dtype=float32)
    """
    starts, limits = list(map(operator.index, start_indices)), list(map(operator.index, limit_indices))
    steps = [1] * mat.ndim if strides is None else list(map(operator.index, strides))
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(
            f"bcoo_slice: {mat.ndim} starts, limits and strides are needed, got {starts}, {limits}, {steps}"
        )
    bounds = list(zip(starts, limits, mat.shape, strict=True))
    if any(not 0 <= start <= limit <= size for start, limit, size in bounds) or any(s <= 0 for s in steps):
        raise ValueError(f"bcoo_slice: starts {starts}, limits {limits} and strides {steps} are not in {mat}")
    shape = tuple(-(-(limit - start) // s) for (start, limit, _), s in zip(bounds, steps, strict=True))
    n, ends = mat.n_batch, mat.n_batch + mat.n_sparse

    def part(x, axes: dict):
        """``x`` cut along the axes of ``mat`` that are its own, but for those of size 1 that stand for all."""
        cut = [(0, size, 1) for size in x.shape]
        for own, d in axes.items():
            if not (d < n and x.shape[own] == 1 and shape[d]):
                cut[own] = starts[d], limits[d], steps[d]
        return lax.slice(x, *zip(*cut, strict=True)) if cut else x

    batch = {d: d for d in range(n)}
    data = part(mat.data, {**batch, **{n + 1 + i: d for i, d in enumerate(range(ends, mat.ndim))}})
    new = BCOO((data, part(mat.indices, batch)), shape=(*shape[:n], *mat.shape[n:ends], *shape[ends:]))
    return window(new, [(starts[d], limits[d], steps[d]) for d in range(n, ends)], shape)


def window(mat: BCOO, bounds: Sequence[tuple], shape: tuple) -> BCOO:
    """The part of the sparse axes of ``mat`` between (start, limit), by steps."""
    n, sizes = mat.n_batch, mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]
    if [(0, size, 1) for size in sizes] == [b if isinstance(b[0], int) else None for b in bounds]:
        return BCOO(mat._bufs, shape=shape)
    new = np.array(shape[n : n + mat.n_sparse], mat.indices.dtype)
    indices = inside_only(mat).indices
    moved, inside = [], True
    for d, (start, limit, step) in enumerate(bounds):
        i = indices[..., d]
        distance = i - jnp.asarray(start, i.dtype)
        inside &= (distance >= 0) & (i < jnp.asarray(limit, i.dtype)) & (distance % step == 0)
        moved.append(distance // step)
    inside &= jnp.all(indices < np.array(sizes, indices.dtype), axis=-1)
    indices = jnp.where(inside[..., None], jnp.stack(moved, axis=-1), new)
    inside = jnp.expand_dims(inside, tuple(range(n + 1, mat.data.ndim)))
    cut = BCOO((jnp.where(inside, mat.data, np.zeros((), mat.dtype)), indices), shape=shape)
    room = math.prod(new.tolist())
    return BCOO(bcoo_sum_duplicates(cut, nse=room)._bufs, shape=shape) if room < mat.nse else cut


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence, slice_sizes: Sequence[int]) -> BCOO:
    """A window of a sparse array at a position that may be computed.

    Arguments:
      mat: a sparse array.
      start_indices: for each axis the first position, an integer or a scalar array; windows that would stick out are
        moved inside.
      slice_sizes: the shape of the window.
    Raises:
      TypeError: the window is larger than the array.
      ValueError: there is not one position for each axis.

    >>> import catena.numpy as jnp
    >>> bcoo_dynamic_slice(BCOO.fromdense(jnp.arange(4.0)), [jnp.array(2)], [2]).todense()
    Array([2., 3.], dtype=float32)
    """
    starts, shape = list(start_indices), tuple(map(operator.index, slice_sizes))
    if not len(starts) == len(shape) == mat.ndim:
        raise ValueError(f"bcoo_dynamic_slice: {mat.ndim} starts and sizes are needed, got {starts} and {shape}")
    dense_type(lambda x: lax.dynamic_slice(x, [0] * mat.ndim, shape), mat)
    starts = [clamped(s, size - n) for s, size, n in zip(starts, mat.shape, shape, strict=True)]
    n, ends = mat.n_batch, mat.n_batch + mat.n_sparse

    def part(x, axes: dict):
        """The window of ``x`` along those of its axes that are axes of ``mat``; one of size 1 stands for all."""
        axes = {own: d for own, d in axes.items() if not (d < n and x.shape[own] == 1)}
        first = [starts[axes[i]] if i in axes else 0 for i in range(x.ndim)]
        return lax.dynamic_slice(x, first, [shape[axes[i]] if i in axes else x.shape[i] for i in range(x.ndim)])

    batch = {d: d for d in range(n)}
    data = part(mat.data, {**batch, **{n + 1 + i: d for i, d in enumerate(range(ends, mat.ndim))}})
    new = BCOO((data, part(mat.indices, batch)), shape=(*shape[:n], *mat.shape[n:ends], *shape[ends:]))
    return window(new, [(starts[d], starts[d] + shape[d], 1) for d in range(n, ends)], shape)


def clamped(start, most: int):
    """A position that is 0 at least and ``most`` at most; one below 0 is counted from where the axis ends."""
    return jnp.clip(jnp.asarray(start), 0, most) if most else 0


def bcoo_gather(
    operand: BCOO,
    start_indices,
    dimension_numbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode=None,
    fill_value=None,
) -> BCOO:
    """Windows of a sparse array at positions given by an array of indices.

    Arguments:
      operand: a sparse array.
      start_indices, dimension_numbers, slice_sizes: as of ``lax.gather``.
      unique_indices, indices_are_sorted: promises, which do not matter here.
      mode, fill_value: windows that stick out are moved inside, whatever the mode.
    Returns:
      A sparse array; the axes of the indices are batch axes, if they come first.
    Raises:
      TypeError: shapes and dimension numbers do not fit.

    >>> import catena.numpy as jnp
    >>> from catena import lax
    >>> numbers = lax.GatherDimensionNumbers((), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> bcoo_gather(BCOO.fromdense(jnp.arange(4.0)), jnp.array([[3], [1]]), numbers, (1,)).todense()
    Array([3., 1.], dtype=float32)
    """
    start_indices = jnp.asarray(start_indices)
    shape = dense_type(
        lambda x: lax.gather(x, start_indices, dimension_numbers, slice_sizes, mode=mode, fill_value=fill_value),
        operand,
    ).shape
    if dimension_numbers.operand_batching_dims:
        raise NotImplementedError("bcoo_gather: operand_batching_dims are not for sparse arrays")

    def read(position):
        starts = [0] * operand.ndim
        for i, d in enumerate(dimension_numbers.start_index_map):
            starts[d] = position[i]
        part = bcoo_dynamic_slice(operand, starts, slice_sizes)
        return bcoo_squeeze(part, dimensions=dimension_numbers.collapsed_slice_dims)

    for _ in range(start_indices.ndim - 1):
        read = vmap(read)
    out = read(start_indices)
    offsets = dimension_numbers.offset_dims
    order = [*(d for d in range(len(shape)) if d not in offsets), *offsets]
    if order == sorted(order):
        return out
    out = bcoo_update_layout(out, n_batch=0, n_dense=0)
    return bcoo_transpose(out, permutation=np.argsort(order).tolist())
