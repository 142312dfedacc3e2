"""BCOO, batched coordinates: the class, and the way from dense arrays and back."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.errors import ConcretizationTypeError
from catena.core.trace import find_concrete
from catena.core.tree import register_pytree_node_class
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import (
    Layout,
    SparseInfo,
    add_rows,
    layout_of,
    masked,
    over_batch,
    read_rows,
    wrapped,
)


@register_pytree_node_class
class BCOO(JAXSparse):
    """An array of which some elements are specified by their coordinates; all others are 0.

    The axes are batch axes, then sparse ones, then dense ones. Each example of the batch has ``nse`` specified
    elements, each an array of the dense axes at a position along the sparse axes. Where several are at one position
    they add up; those whose position is out of bounds are padding, and count for nothing.

    Arguments:
      args: ``data``, of shape (\\*batch, nse, \\*dense), and ``indices``, integers of shape (\\*batch, nse, n_sparse).
        A batch axis of size 1 stands for all examples.
      shape: the shape of the array.
      indices_sorted: a promise that the positions of each example are in order.
      unique_indices: a promise that no position occurs twice in an example.
    Raises:
      ValueError: the buffers do not fit the shape.
      TypeError: the indices are no integers.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCOO((jnp.array([1.0, 2.0, 3.0]), jnp.array([[0, 1], [1, 0], [1, 2]])), shape=(2, 3))
    >>> M
    BCOO(float32[2, 3], nse=3)
    >>> M @ jnp.arange(3.0)
    Array([1., 6.], dtype=float32)
    """

    BUFFERS = "data", "indices"
    FACTS = "shape", "indices_sorted", "unique_indices"

    def __init__(self, args, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False):
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        if not dtypes.is_integer(self.indices.dtype):
            raise TypeError(f"indices of a BCOO array must be integers, got {dtypes.dtype_name(self.indices.dtype)}")
        layout_of(self.data.shape, self.indices.shape, self.shape)

    @property
    def layout(self) -> Layout:
        """How many axes are of which kind."""
        return layout_of(self.data.shape, self.indices.shape, self.shape)

    @property
    def nse(self) -> int:
        """The number of specified elements of each example."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple:
        return self.data, self.indices

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32, n_dense: int = 0, n_batch: int = 0):
        """The sparse form of an array. See ``bcoo_fromdense``."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense: int = 0, n_batch: int = 0):
        """A sparse matrix of SciPy's in this form.

        Arguments:
          mat: the matrix, in any of SciPy's formats.
          index_dtype: the dtype of the indices; by default that of SciPy's.
          n_dense, n_batch: 0: a matrix of SciPy's has sparse axes only.
        """
        if n_dense or n_batch:
            raise NotImplementedError("from_scipy_sparse makes arrays without batch and dense axes")
        mat = mat.tocoo()
        indices = jnp.column_stack((mat.row, mat.col))
        return cls((mat.data, indices if index_dtype is None else indices.astype(index_dtype)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0):
        """An array without elements that are not 0."""
        shape = tuple(shape)
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"an array of shape {shape} cannot have n_batch={n_batch}, n_dense={n_dense}, nse={nse}")
        batch, sparse, dense = shape[:n_batch], shape[n_batch : n_batch + n_sparse], shape[n_batch + n_sparse :]
        data = jnp.zeros((*batch, nse, *dense), dtype)
        indices = jnp.full((*batch, nse, n_sparse), jnp.array(sparse, index_dtype), index_dtype)
        return cls((data, indices), shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32", n_batch: int = 0, n_dense: int = 0):
        """Ones on a diagonal."""
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_batch < 0 or n_dense < 0:
            raise ValueError(f"a matrix cannot have n_batch={n_batch}, n_dense={n_dense}")
        if not n_batch and not n_dense:
            rows = np.arange(max(-k, 0), max(min(N, M - k), max(-k, 0)))
            indices = jnp.array(np.stack([rows, rows + k], axis=1), index_dtype)
            ones = jnp.ones(len(rows), dtype)
            return cls((ones, indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        eye = jnp.eye(N, M, k, dtype)
        return cls.fromdense(eye, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)

    def todense(self):
        """The array, with every element."""
        return bcoo_todense(self)

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The array of these buffers. Where batch axes came or went, as under ``vmap``, the shape follows."""
        new = super().tree_unflatten(aux_data, children)
        data, indices = children
        if hasattr(data, "shape") and hasattr(indices, "shape") and len(indices.shape) >= 2:
            new.shape = with_batch(data.shape, indices.shape, len(indices.shape) - 2, new.shape)
        return new


def with_batch(data_shape: tuple, indices_shape: tuple, n_batch: int, shape: tuple) -> tuple:
    """The shape of an array like one of ``shape`` whose buffers have this number of batch axes."""
    n_sparse = indices_shape[-1] if len(indices_shape) == n_batch + 2 else 2
    rank = len(data_shape) - 1 + n_sparse
    if rank == len(shape) or len(data_shape) <= n_batch:
        return shape
    batch = [max(a, b) for a, b in zip(data_shape[:n_batch], indices_shape[:n_batch], strict=False)]
    return (*batch, *shape[len(shape) - (rank - n_batch) :])


# ----------------------------------------------------------------------------------------------------
# To dense arrays


def _todense(data, indices, *, spinfo):
    n_batch, n_sparse, _, _ = layout_of(data.shape, indices.shape, spinfo.shape)
    sizes = spinfo.shape[n_batch : n_batch + n_sparse]
    one = lambda data, indices: add_rows(data, wrapped(indices, sizes), sizes)
    return over_batch(one, spinfo.shape[:n_batch])(data, indices)


bcoo_todense_p = composed("bcoo_todense", _todense, linear=(0,))


def bcoo_todense(mat: BCOO):
    """The dense form of a sparse array.

    Arguments:
      mat: the sparse array.
    Returns:
      The array of the shape of ``mat``, with duplicates added up and padding left out.

    >>> import catena.numpy as jnp
    >>> bcoo_todense(BCOO((jnp.array([1.0, 2.0]), jnp.array([[0], [0]])), shape=(2,)))
    Array([3., 0.], dtype=float32)
    """
    return bcoo_todense_p.bind(*mat._bufs, spinfo=mat._info)


# ----------------------------------------------------------------------------------------------------
# From dense arrays


def _fromdense(mat, *, nse, n_batch, n_dense, index_dtype):
    n_sparse = mat.ndim - n_batch - n_dense
    sizes = mat.shape[n_batch : n_batch + n_sparse]

    def one(mat):
        specified = jnp.any(mat != 0, axis=tuple(range(n_sparse, mat.ndim)))
        if not n_sparse:
            indices = jnp.zeros((nse, 0), index_dtype)
            rows = jnp.zeros((nse, *mat.shape), mat.dtype)
            return (rows.at[0].set(mat) if nse else rows), indices
        found = jnp.nonzero(specified, size=nse, fill_value=sizes)
        indices = jnp.stack(found, axis=1).astype(index_dtype)
        return read_rows(mat, indices, range(n_sparse)), indices

    return over_batch(one, mat.shape[:n_batch])(mat)


bcoo_fromdense_p = composed("bcoo_fromdense", _fromdense, multiple_results=True)


def bcoo_fromdense(mat, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype=jnp.int32) -> BCOO:
    """The sparse form of an array: its elements that are not 0, with their positions.

    Arguments:
      mat: the array.
      nse: how many elements each example specifies; by default as many as the one with the most needs. Where there
        are more, the last ones are left out; where there are fewer, the rest is padding.
      n_batch, n_dense: how many leading axes are batch axes, and how many trailing ones dense axes.
      index_dtype: the dtype of the indices.
    Returns:
      A ``BCOO`` array with sorted and unique indices.
    Raises:
      ConcretizationTypeError: ``mat`` is traced, and ``nse`` is not given.
      ValueError: there are fewer axes than ``n_batch`` and ``n_dense`` say.
      TypeError: ``index_dtype`` is not of integers.

    >>> import catena.numpy as jnp
    >>> M = bcoo_fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]]))
    >>> M.data, M.indices
    (Array([5., 7.], dtype=float32), Array([[0, 1],
                                            [1, 0]], dtype=int32))
    """
    mat = jnp.asarray(mat)
    n_batch, n_dense = operator.index(n_batch), operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"an array of {mat.ndim} axes cannot have n_batch={n_batch}, n_dense={n_dense}")
    if not dtypes.is_integer(np.dtype(index_dtype)):
        raise TypeError(f"index_dtype must be a dtype of integers, got {dtypes.dtype_name(np.dtype(index_dtype))}")
    if mat.dtype == bool:
        mat = mat.astype(jnp.int32)
    if nse is None:
        nse = specified_count(mat, n_batch, n_dense)
    nse = operator.index(nse)
    if nse < 0:
        raise TypeError(f"nse must not be negative, got {nse}")
    params = {"nse": nse, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": np.dtype(index_dtype)}
    buffers = bcoo_fromdense_p.bind(mat, **params)
    return BCOO(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def specified_count(mat, n_batch: int, n_dense: int) -> int:
    """How many elements of the fullest example are not 0."""
    known = find_concrete(mat)
    if known is None:
        raise ConcretizationTypeError(
            mat, "This is the array of fromdense; where it is traced, give the number of elements to specify as nse."
        )
    value = np.asarray(known)
    specified = (value != 0).any(axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    counts = specified.sum(axis=tuple(range(n_batch, mat.ndim - n_dense)))
    return int(counts.max(initial=0))


# ----------------------------------------------------------------------------------------------------
# Elements of dense arrays


def extract_rows(indices, arr, *, assume_unique):
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    sizes = arr.shape[n_batch : n_batch + n_sparse]

    def one(indices, arr):
        indices = wrapped(indices, sizes)
        rows = read_rows(arr, indices, range(n_sparse))
        return rows if assume_unique else masked(rows, first_of_each(indices, sizes))

    return over_batch(one, arr.shape[:n_batch])(indices, arr)


def first_of_each(indices, sizes: Sequence[int]):
    """Which rows of indices point where none before them does."""
    nse = indices.shape[0]
    order = jnp.arange(nse, dtype=jnp.int32)
    numbers = lax.ScatterDimensionNumbers((), tuple(range(len(sizes))), tuple(range(len(sizes))))
    first = lax.scatter_min(jnp.full(tuple(sizes), nse, jnp.int32), indices, order, numbers, mode="drop")
    return read_rows(first, indices, range(len(sizes))) == order


bcoo_extract_p = composed("bcoo_extract", extract_rows, linear=(1,))


def bcoo_extract(sparr: BCOO, arr, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array that a sparse one specifies.

    Arguments:
      sparr: the sparse array.
      arr: the dense array, of the same shape.
      assume_unique: whether every specified element is the array's. If not, the first of several at one position is,
        and the others are 0. By default what ``sparr`` promises.
    Returns:
      A sparse array with the indices of ``sparr``; its padding is 0.
    Raises:
      TypeError: ``sparr`` is no ``BCOO`` array.
      ValueError: the shapes differ.

    >>> import catena.numpy as jnp
    >>> bcoo_extract(BCOO.fromdense(jnp.eye(2)), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], dtype=float32)
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"bcoo_extract: sparr must be a BCOO array, got {type(sparr).__name__}")
    arr = jnp.asarray(arr)
    if sparr.shape != arr.shape:
        raise ValueError(f"bcoo_extract: sparr is of shape {sparr.shape} and arr of shape {arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    data = bcoo_extract_p.bind(sparr.indices, arr, assume_unique=unique)
    return BCOO((data, sparr.indices), **sparr._info._asdict())
