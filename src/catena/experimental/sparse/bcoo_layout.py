"""One layout of a BCOO array as another: batch and dense axes become sparse ones, or these become those."""

from __future__ import annotations

import math
import operator
import warnings

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_shape import inside_only
from catena.experimental.sparse.layout import SparseEfficiencyError, SparseEfficiencyWarning


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Arguments:
      mat: a sparse array.
      n_batch, n_dense: the numbers; by default those of ``mat``.
      on_inefficient: what to do where the new layout stores more zeros: ``"error"``, ``"warn"``, or ``None`` for
        nothing.
    Raises:
      ValueError: the numbers are not possible, or ``on_inefficient`` is something else.
      SparseEfficiencyError: sparse axes of more than one element would become batch or dense ones.

    >>> import catena.numpy as jnp
    >>> M = BCOO.fromdense(jnp.ones((2, 3)), n_batch=1)
    >>> bcoo_update_layout(M, n_batch=0)
    BCOO(float32[2, 3], nse=6)
    """
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got {on_inefficient!r}")
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} are not possible for {mat}")
    grown = {
        "n_batch": (mat.n_batch, n_batch, mat.shape[mat.n_batch : n_batch]),
        "n_dense": (mat.n_dense, n_dense, mat.shape[mat.ndim - n_dense : mat.ndim - mat.n_dense]),
    }
    for name, (before, after, sizes) in grown.items():
        if after > before and math.prod(sizes) > 1:
            say_inefficient(f"increasing {name} from {before} to {after} repeats what {mat} stores", on_inefficient)
    if n_dense < mat.n_dense:
        mat = dense_to_sparse(mat, mat.n_dense - n_dense)
    if n_batch < mat.n_batch:
        mat = batch_to_sparse(mat, mat.n_batch - n_batch)
    if n_dense > mat.n_dense:
        mat = sparse_to_dense(mat, n_dense - mat.n_dense)
    if n_batch > mat.n_batch:
        mat = sparse_to_batch(mat, n_batch - mat.n_batch)
    return mat


def say_inefficient(what: str, on_inefficient: str | None):
    if on_inefficient == "error":
        raise SparseEfficiencyError(f"bcoo_update_layout: {what}; on_inefficient='warn' or None allows it")
    if on_inefficient == "warn":
        warnings.warn(f"bcoo_update_layout: {what}", SparseEfficiencyWarning, stacklevel=3)


def positions(sizes) -> np.ndarray:
    """Every position in an array of these sizes, in order: (number, axes)."""
    return np.indices(sizes).reshape(len(sizes), -1).T


def dense_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The first ``count`` dense axes as sparse ones: each element of them is specified."""
    n, sizes = mat.n_batch, mat.data.shape[mat.n_batch + 1 :][:count]
    where = positions(sizes).astype(mat.indices.dtype)
    data = lax.reshape(mat.data, (*mat.data.shape[:n], mat.nse * len(where), *mat.data.shape[n + 1 + count :]))
    batch, k = mat.indices.shape[:n], mat.n_sparse
    own = jnp.broadcast_to(mat.indices[..., None, :], (*batch, mat.nse, len(where), k))
    new = jnp.broadcast_to(where, (*batch, mat.nse, len(where), count))
    indices = lax.concatenate([own, new], n + 2)
    return BCOO((data, lax.reshape(indices, (*batch, mat.nse * len(where), k + count))), shape=mat.shape)


def batch_to_sparse(mat: BCOO, count: int) -> BCOO:
    """The last ``count`` batch axes as sparse ones: the elements of all examples are those of one."""
    n = mat.n_batch - count
    sizes = mat.shape[n : mat.n_batch]
    where = positions(sizes).astype(mat.indices.dtype).reshape(*sizes, 1, count)

    def whole(x):
        return jnp.broadcast_to(x, (*x.shape[:n], *sizes, *x.shape[mat.n_batch :]))

    def merged(x):
        return lax.reshape(x, (*x.shape[:n], math.prod(sizes) * mat.nse, *x.shape[mat.n_batch + 1 :]))

    own = whole(mat.indices)
    indices = lax.concatenate([jnp.broadcast_to(where, (*own.shape[:-1], count)), own], own.ndim - 1)
    return BCOO((merged(whole(mat.data)), merged(indices)), shape=mat.shape)


def sparse_to_dense(mat: BCOO, count: int) -> BCOO:
    """The last ``count`` sparse axes as dense ones: each specified element is alone in an array of them."""
    mat = inside_only(mat)
    n, k = mat.n_batch, mat.n_sparse - count
    data = mat.data
    for d in reversed(range(k, mat.n_sparse)):
        size = mat.shape[n + d]
        here = mat.indices[..., d : d + 1] == np.arange(size, dtype=mat.indices.dtype)
        here = jnp.expand_dims(here, tuple(range(n + 2, n + 2 + data.ndim - n - 1)))
        data = jnp.where(here, jnp.expand_dims(data, n + 1), np.zeros((), data.dtype))
    return BCOO((data, mat.indices[..., :k]), shape=mat.shape)


def sparse_to_batch(mat: BCOO, count: int) -> BCOO:
    """The first ``count`` sparse axes as batch axes: each example has all elements, those of others as zeros."""
    mat = inside_only(mat)
    n, sizes = mat.n_batch, mat.shape[mat.n_batch : mat.n_batch + count]
    where = positions(sizes).astype(mat.indices.dtype).reshape(*sizes, 1, count)
    here = jnp.all(jnp.expand_dims(mat.indices[..., :count], tuple(range(n, n + count))) == where, axis=-1)
    here = jnp.expand_dims(here, tuple(range(here.ndim, here.ndim + mat.n_dense)))
    data = jnp.where(here, jnp.expand_dims(mat.data, tuple(range(n, n + count))), np.zeros((), mat.dtype))
    rest = jnp.expand_dims(mat.indices[..., count:], tuple(range(n, n + count)))
    rest = jnp.broadcast_to(rest, (*mat.indices.shape[:n], *sizes, *rest.shape[n + count :]))
    return BCOO((data, rest), shape=mat.shape)
