"""Sparse arrays out of nothing: empty ones, identities, random ones."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from catena import numpy as jnp
from catena import random
from catena.core import dtypes
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_sorting import bcoo_sort_indices
from catena.experimental.sparse.bcsr import BCSR
from catena.experimental.sparse.coo import COO
from catena.experimental.sparse.csr import CSC, CSR
from catena.experimental.sparse.layout import over_batch

FORMATS = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def empty(shape: Sequence[int], dtype=None, index_dtype="int32", sparse_format: str = "bcoo", **kwds) -> JAXSparse:
    """A sparse array of zeros.

    Arguments:
      shape: the shape.
      dtype, index_dtype: the dtypes of elements and indices.
      sparse_format: ``"bcoo"``, ``"bcsr"``, ``"coo"``, ``"csr"`` or ``"csc"``.
      kwds: for the first two formats ``n_batch``, ``n_dense`` and ``nse``.
    Raises:
      ValueError: there is no such format.

    >>> empty((2, 3), nse=4)
    BCOO(float32[2, 3], nse=4)
    """
    if sparse_format not in FORMATS:
        raise ValueError(f"sparse_format must be one of {list(FORMATS)}, got {sparse_format!r}")
    return FORMATS[sparse_format]._empty(tuple(shape), dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype=None, index_dtype="int32", sparse_format: str = "bcoo", **kwds
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Arguments:
      N, M: the numbers of rows and of columns; by default as many columns as rows.
      k: which diagonal: 0 is the main one, above it are those above 0.
      dtype, index_dtype: the dtypes of elements and indices.
      sparse_format: ``"bcoo"``, ``"coo"``, ``"csr"`` or ``"csc"``.
      kwds: for the first one ``n_batch`` and ``n_dense``.
    Raises:
      KeyError: there is no such format.

    >>> eye(2, 3, k=1).indices
    Array([[0, 1],
           [1, 2]], dtype=int32)
    """
    formats = {name: kind for name, kind in FORMATS.items() if kind is not BCSR}
    if sparse_format not in formats:
        raise KeyError(f"sparse_format must be one of {list(formats)}, got {sparse_format!r}")
    N, k = operator.index(N), operator.index(k)
    M = N if M is None else operator.index(M)
    return formats[sparse_format]._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)


def random_bcoo(
    key,
    shape: Sequence[int],
    *,
    dtype=jnp.float64,
    indices_dtype=None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable = random.uniform,
    **kwds,
) -> BCOO:
    """A sparse array with random elements at random positions.

    Arguments:
      key: a random key.
      shape: the shape.
      dtype, indices_dtype: the dtypes of elements and indices; by default that of integers.
      nse: how many elements each example specifies; below 1, which part of them.
      n_batch, n_dense: the numbers of batch axes and of dense axes.
      unique_indices: whether no position may occur twice in an example.
      sorted_indices: whether positions are in order.
      generator: what draws elements: a function of a key, and ``shape`` and ``dtype`` by keyword.
      kwds: further arguments of ``generator``.
    Raises:
      ValueError: numbers of axes or elements are not possible.

    >>> from catena import random
    >>> random_bcoo(random.key(0), (4, 5), nse=3, dtype="float32")
    BCOO(float32[4, 5], nse=3)
    """
    shape = tuple(operator.index(n) for n in shape)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise ValueError(f"random_bcoo: n_batch={n_batch} and n_dense={n_dense} are not possible for shape {shape}")
    batch, sizes, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
    size = math.prod(sizes)
    count = math.ceil(nse * size) if 0 < nse < 1 else operator.index(nse)
    if not 0 <= count <= size:
        raise ValueError(f"random_bcoo: nse must be in [0, {size}], got {nse}")
    keys = random.split(key, 1 + math.prod(batch))
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=dtype, **kwds)
    indices_dtype = dtypes.canonicalize_dtype(int if indices_dtype is None else indices_dtype)

    def positions(key):
        """The positions of one example; all or none of the axes may be sparse."""
        if not n_sparse:
            return jnp.zeros((count, 0), indices_dtype)
        flat = random.choice(key, size, shape=(count,), replace=not unique_indices).astype(indices_dtype)
        return jnp.stack(jnp.unravel_index(flat, sizes), axis=1).astype(indices_dtype) if size else flat[:, None]

    indices = over_batch(positions, batch)(keys[1:].reshape(*batch, *keys.shape[1:]))  # raw keys have an axis of words
    mat = BCOO((data, indices), shape=shape)
    return BCOO(bcoo_sort_indices(mat)._bufs, shape=shape, indices_sorted=True) if sorted_indices else mat
