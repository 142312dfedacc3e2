"""How sparse arrays are laid out: batch, sparse and dense axes, and rows that are addressed by indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core.named import NamedTuple
from catena.transform.vmap import vmap


class SparseEfficiencyError(ValueError):
    """A layout was asked for that would take far more memory than the one there is."""


class SparseEfficiencyWarning(UserWarning):
    """A layout takes far more memory than it must."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation would be quicker in another layout on a GPU; never given on a CPU."""


class SparseInfo(NamedTuple):
    """What is known of a sparse array besides its buffers."""

    shape: tuple
    indices_sorted: bool = False
    unique_indices: bool = False


class Layout(NamedTuple):
    """How many axes of an array are batch, sparse and dense axes, and how many elements are specified."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def layout_of(data_shape: Sequence[int], indices_shape: Sequence[int], shape: Sequence[int]) -> Layout:
    """The layout of a BCOO array, from the shapes of its buffers.

    Raises:
      ValueError: they are not the buffers of an array of this shape.
    """
    if len(indices_shape) < 2:
        raise ValueError(f"indices of a BCOO array have two axes or more, (nse, n_sparse), got shape {indices_shape}")
    nse, n_sparse = indices_shape[-2:]
    n_batch = len(indices_shape) - 2
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"a BCOO array of shape {tuple(shape)} has {len(shape)} axes, but indices of shape {indices_shape} say "
            f"that {n_batch} are batch axes and {n_sparse} sparse"
        )
    if len(data_shape) != n_batch + 1 + n_dense:
        raise ValueError(
            f"data of a BCOO array with n_batch={n_batch}, n_dense={n_dense} have {n_batch + 1 + n_dense} axes, got "
            f"shape {tuple(data_shape)}"
        )
    found = Layout(n_batch, n_sparse, n_dense, nse)
    check_batch("data", data_shape, shape, n_batch)
    check_batch("indices", indices_shape, shape, n_batch)
    if tuple(data_shape[n_batch:]) != (nse, *shape[n_batch + n_sparse :]):
        raise ValueError(f"Invalid data.shape={tuple(data_shape)} for nse={nse}, n_batch={n_batch}, n_dense={n_dense}")
    return found


def check_batch(name: str, buffer_shape, shape, n_batch: int):
    """Raise where the batch axes of a buffer are neither those of the array nor of size 1."""
    if any(a not in (1, b) for a, b in zip(buffer_shape[:n_batch], shape[:n_batch], strict=True)):
        raise ValueError(
            f"the batch axes of {name} must be those of the array or of size 1, got {tuple(buffer_shape[:n_batch])} "
            f"for an array of shape {tuple(shape)}"
        )


def over_batch(function: Callable, sizes: Sequence[int]) -> Callable:
    """``function`` of one example, mapped over leading axes of these sizes that every array has; one of size 1 in an
    array says that all examples share it.
    """

    def mapped(*xs):
        f = function
        for i, size in reversed(list(enumerate(sizes))):
            f = vmap(f, in_axes=tuple(None if x.shape[i] == 1 else 0 for x in xs), axis_size=size)
        return f(*[lax.squeeze(x, [i for i in range(len(sizes)) if x.shape[i] == 1]) for x in xs])

    return mapped


def common_batch(n_batch: int, *buffers) -> tuple:
    """The sizes of the leading axes of buffers, where one of size 1 in a buffer fits any in another."""
    return tuple(
        max(sizes, key=lambda n: (n != 1, n)) for sizes in zip(*(x.shape[:n_batch] for x in buffers), strict=True)
    )


# ---- rows addressed by indices


def wrapped(indices, sizes: Sequence[int]):
    """The indices, (nse, k), with those below 0 counted from the end."""
    return jnp.where(indices < 0, indices + np.array(sizes, indices.dtype), indices)


def columns_of(indices, which: Sequence[int]):
    """Some columns of indices, (*batch, nse, k)."""
    return indices[..., np.array(which, int)] if len(which) else indices[..., :0]


def put_outside(indices, sizes: Sequence[int], outside: Sequence[int] | None = None):
    """Indices, (*batch, nse, k), those below 0 counted from the end; rows of which any is out of bounds are so in all.

    Arguments:
      indices: the indices.
      sizes: the sizes of the sparse axes.
      outside: what stands for out of bounds; by default ``sizes``.
    """
    ends = np.array(sizes, indices.dtype)
    indices = jnp.where(indices < 0, indices + ends, indices)
    inside = jnp.all((indices >= 0) & (indices < ends), axis=-1, keepdims=True)
    return jnp.where(inside, indices, ends if outside is None else np.array(outside, indices.dtype))


def columns(indices, which: Sequence[int]):
    """Some columns of indices, (nse, k)."""
    return jnp.concatenate([indices[:, :0], *(indices[:, d : d + 1] for d in which)], axis=1)


def in_bounds(indices, sizes: Sequence[int], least: Sequence[int] | None = None):
    """Which rows of indices, (nse, k), address something in an array of these sizes, (nse,); from ``least`` or 0 on."""
    inside = jnp.ones(indices.shape[0], bool)
    for d, size in enumerate(sizes):  # column by column, which is one loop with what reads the rows
        first, end = (np.array(n, indices.dtype) for n in (least[d] if least else 0, size))
        inside &= (indices[:, d] >= first) & (indices[:, d] < end)
    return inside


def read_rows(x, indices, axes: Sequence[int]):
    """What is in ``x`` where ``indices``, (nse, k), point to on these k axes: (nse, other axes), 0 out of bounds."""
    others = [d for d in range(x.ndim) if d not in axes]
    if not axes:
        return lax.broadcast(x, (indices.shape[0],))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(others) + 1)),
        collapsed_slice_dims=tuple(sorted(axes)),
        start_index_map=tuple(axes),
    )
    if any(x.shape[d] == 0 for d in axes):
        return jnp.zeros((indices.shape[0], *(x.shape[d] for d in others)), x.dtype)
    sizes = [1 if d in axes else n for d, n in enumerate(x.shape)]
    return lax.gather(x, indices, numbers, sizes, mode="fill", fill_value=0)


def add_rows(rows, indices, sizes: Sequence[int]):
    """The array of shape (*sizes, *row) with ``rows``, (nse, *row), added where ``indices``, (nse, k), point to; those
    out of bounds are dropped.
    """
    rank = len(sizes)
    if not rank:
        return jnp.sum(rows, axis=0, dtype=rows.dtype)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(1, rows.ndim)),
        inserted_window_dims=tuple(range(rank)),
        scatter_dims_to_operand_dims=tuple(range(rank)),
    )
    zeros = jnp.zeros((*sizes, *rows.shape[1:]), rows.dtype)
    return lax.scatter_add(zeros, indices, rows, numbers, mode="drop")


def masked(data, inside):
    """The rows of ``data`` that are inside, 0 in place of the others, whatever they hold."""
    return jnp.where(jnp.expand_dims(inside, tuple(range(1, data.ndim))), data, np.zeros((), data.dtype))
