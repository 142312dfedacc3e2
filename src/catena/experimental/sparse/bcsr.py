"""BCSR, batched compressed sparse rows: the class, its products, and the way to BCOO and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.tree import register_pytree_node_class
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_todense, extract_rows, with_batch
from catena.experimental.sparse.bcoo_products import bcoo_dot_general, check_axes, dot_general_of, product_type
from catena.experimental.sparse.bcoo_shape import bcoo_broadcast_in_dim, bcoo_concatenate
from catena.experimental.sparse.bcoo_sorting import bcoo_sort_indices, bcoo_sum_duplicates
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import SparseInfo, check_batch, over_batch, put_outside
from catena.experimental.sparse.runs import product_of_rows, row_numbers


@register_pytree_node_class
class BCSR(JAXSparse):
    """An array whose specified elements are listed row by row, with the column of each.

    The axes are batch axes, two sparse ones (rows and columns), then dense ones.

    Arguments:
      args: ``data``, of shape (\\*batch, nse, \\*dense); ``indices``, the columns, of shape (\\*batch, nse); and
        ``indptr``, of shape (\\*batch, rows + 1): row i has the elements from ``indptr[i]`` on, up to
        ``indptr[i + 1]``. Those after the last row are padding.
      shape: the shape of the array.
      indices_sorted: a promise that the columns of each row are in order.
      unique_indices: a promise that no position occurs twice in an example.
    Raises:
      ValueError: the buffers do not fit the shape.
      TypeError: indices or indptr are no integers.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.BCSR.fromdense(jnp.array([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]]))
    >>> M.indptr
    Array([0, 1, 3], dtype=int32)
    >>> M @ jnp.arange(3.0)
    Array([1., 6.], dtype=float32)
    """

    BUFFERS = "data", "indices", "indptr"
    FACTS = "shape", "indices_sorted", "unique_indices"

    def __init__(self, args, *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False):
        super().__init__(args, shape=shape)
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        check_bcsr(self.data, self.indices, self.indptr, self.shape)

    @property
    def nse(self) -> int:
        """The number of specified elements of each example."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch axes."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes: rows and columns."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense axes."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _sparse_shape(self) -> tuple:
        return self.shape[self.n_batch : self.n_batch + 2]

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple:
        return self.data, self.indices, self.indptr

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32, n_dense: int = 0, n_batch: int = 0):
        """The sparse form of an array. See ``bcsr_fromdense``."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat, *, index_dtype=None, n_dense: int = 0, n_batch: int = 0):
        """A sparse matrix of SciPy's in this form; the arguments are those of ``BCOO.from_scipy_sparse``."""
        if n_dense or n_batch:
            raise NotImplementedError("from_scipy_sparse makes arrays without batch and dense axes")
        mat = mat.tocsr()
        indices = [jnp.asarray(x, index_dtype) for x in (mat.indices, mat.indptr)]
        return cls((mat.data, *indices), shape=mat.shape)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """A ``BCOO`` array with two sparse axes in this form.

        Raises:
          NotImplementedError: it has another number of sparse axes.
        """
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR arrays have two sparse axes, got {arr}")
        n, sizes = arr.n_batch, arr.shape[arr.n_batch : arr.n_batch + 2]
        arr = BCOO((arr.data, put_outside(arr.indices, sizes)), **arr._info._asdict())
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        rows, columns = arr.indices[..., 0], arr.indices[..., 1]
        indptr = over_batch(lambda rows: row_pointers(rows, sizes[0]), rows.shape[:n])(rows)
        return cls((arr.data, columns, indptr), shape=arr.shape)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0):
        """An array without elements that are not 0."""
        shape = tuple(shape)
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError(f"BCSR arrays have two sparse axes, got shape {shape} with {n_batch=} and {n_dense=}")
        return cls.from_bcoo(
            BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch, nse=nse)
        )

    def to_bcoo(self) -> BCOO:
        """This array with the row of each element."""
        return BCOO((self.data, coordinates(self.indices, self.indptr)), **self._info._asdict())

    def todense(self):
        """The array, with every element."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """One element at a position; see ``bcsr_sum_duplicates``. Elements that are 0 go too, if ``remove_zeros``."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse=nse, remove_zeros=remove_zeros))

    def transpose(self, *args, **kwargs):
        """Not there: columns first would be another format; ``to_bcoo().transpose()`` is."""
        raise NotImplementedError("BCSR arrays are not transposed; M.to_bcoo().T is, as BCOO")

    @classmethod
    def tree_unflatten(cls, aux_data, children):
        """The array of these buffers. Where batch axes came or went, as under ``vmap``, the shape follows."""
        new = super().tree_unflatten(aux_data, children)
        data, indices, _ = children
        if hasattr(data, "shape") and hasattr(indices, "shape") and len(indices.shape) >= 1:
            new.shape = with_batch(data.shape, indices.shape, len(indices.shape) - 1, new.shape)
        return new


def check_bcsr(data, indices, indptr, shape):
    """Raise where these are not the buffers of an array of this shape."""
    for name, x in (("indices", indices), ("indptr", indptr)):
        if not dtypes.is_integer(x.dtype):
            raise TypeError(f"{name} of a BCSR array must be integers, got {dtypes.dtype_name(x.dtype)}")
        if not x.ndim:
            raise ValueError(f"{name} of a BCSR array have one axis or more, got a scalar")
    n_batch, nse = indices.ndim - 1, indices.shape[-1]
    n_dense = data.ndim - 1 - n_batch
    if n_dense < 0 or len(shape) != n_batch + 2 + n_dense:
        raise ValueError(
            f"a BCSR array with data of shape {data.shape} and indices of shape {indices.shape} has {n_batch} batch "
            f"axes, two sparse ones and {n_dense} dense ones, got shape {shape}"
        )
    for name, x in (("data", data), ("indices", indices), ("indptr", indptr)):
        check_batch(name, x.shape, shape, n_batch)
    if data.shape[n_batch:] != (nse, *shape[n_batch + 2 :]):
        raise ValueError(f"Invalid data.shape={data.shape} for nse={nse}, n_batch={n_batch}, n_dense={n_dense}")
    if indptr.shape[n_batch:] != (shape[n_batch] + 1,):
        raise ValueError(f"indptr of a BCSR array of {shape[n_batch]} rows has one more, got shape {indptr.shape}")


def row_pointers(rows, count: int):
    """Where each of ``count`` rows begins among sorted row numbers, and where the last one ends."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    counts = lax.scatter_add(jnp.zeros(count, rows.dtype), rows[:, None], jnp.ones_like(rows), numbers, mode="drop")
    return jnp.concatenate([jnp.zeros(1, rows.dtype), jnp.cumsum(counts, dtype=rows.dtype)])


def coordinates(indices, indptr):
    """The indices of a BCOO array, (\\*batch, nse, 2), of columns and row pointers."""
    n, nse = indices.ndim - 1, indices.shape[-1]
    rows = over_batch(lambda p: row_numbers(p, nse), indptr.shape[:n])(indptr).astype(indices.dtype)
    rows, columns = jnp.broadcast_arrays(rows, indices)
    return jnp.stack([rows, columns], axis=-1)


# ----------------------------------------------------------------------------------------------------
# Dense arrays


def _todense(data, indices, indptr, *, spinfo):
    return bcoo_todense(BCOO((data, coordinates(indices, indptr)), shape=spinfo.shape))


bcsr_todense_p = composed("bcsr_todense", _todense, linear=(0,))


def bcsr_todense(mat: BCSR):
    """The dense form of a sparse array.

    Arguments:
      mat: the sparse array.

    >>> import catena.numpy as jnp
    >>> bcsr_todense(bcsr_fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def _fromdense(mat, *, nse, n_batch, n_dense, index_dtype):
    return BCSR.from_bcoo(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))._bufs


bcsr_fromdense_p = composed("bcsr_fromdense", _fromdense, multiple_results=True)


def bcsr_fromdense(mat, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype=jnp.int32) -> BCSR:
    """The sparse form of an array: its elements that are not 0, row by row.

    Arguments:
      mat: the array, with two axes that are neither batch nor dense axes.
      nse, n_batch, n_dense, index_dtype: as of ``bcoo_fromdense``.
    Raises:
      ValueError: there are not two such axes.

    >>> import catena.numpy as jnp
    >>> bcsr_fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]]))
    BCSR(float32[2, 2], nse=2)
    """
    mat = jnp.asarray(mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: two axes must be sparse, got {mat.ndim} with {n_batch=} and {n_dense=}")
    if nse is None:
        return BCSR.from_bcoo(bcoo_fromdense(mat, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))
    mat = mat.astype(jnp.int32) if mat.dtype == bool else mat
    params = {"nse": nse, "n_batch": n_batch, "n_dense": n_dense, "index_dtype": np.dtype(index_dtype)}
    return BCSR(bcsr_fromdense_p.bind(mat, **params), shape=mat.shape)


def _extract(indices, indptr, arr):
    return extract_rows(coordinates(indices, indptr), arr, assume_unique=True)


bcsr_extract_p = composed("bcsr_extract", _extract, linear=(2,))


def bcsr_extract(indices, indptr, mat):
    """The elements of a dense array at the positions of a BCSR array.

    Arguments:
      indices, indptr: the positions.
      mat: the dense array.
    Returns:
      The data: of shape (\\*batch, nse, \\*dense), 0 for padding.

    >>> import catena.numpy as jnp
    >>> M = bcsr_fromdense(jnp.eye(2))
    >>> bcsr_extract(M.indices, M.indptr, jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([1., 4.], dtype=float32)
    """
    return bcsr_extract_p.bind(jnp.asarray(indices), jnp.asarray(indptr), jnp.asarray(mat))


# ----------------------------------------------------------------------------------------------------
# Products


def _dot_general(data, indices, indptr, rhs, **params):
    (lc, rc), _ = params["dimension_numbers"]
    if data.ndim > 1 or lc != (1,):
        return dot_general_of(data, coordinates(indices, indptr), rhs, **params)
    out = product_of_rows(data, indices, indptr, jnp.moveaxis(rhs, rc[0], 0))
    return out.astype(params["preferred_element_type"])


bcsr_dot_general_p = composed("bcsr_dot_general", _dot_general, linear=(0, 3))


def bcsr_dot_general(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    """A contraction of a ``BCSR`` array with a dense one.

    Arguments:
      lhs: the sparse array, or a dense one.
      rhs: a dense array.
      dimension_numbers, precision, preferred_element_type, out_sharding: as of ``bcoo_dot_general``.
    Returns:
      A dense array.
    Raises:
      TypeError: the shapes do not fit.
      NotImplementedError: ``rhs`` is sparse, or axes are used in a way that ``bcoo_dot_general`` does not know.

    >>> import catena.numpy as jnp
    >>> M = bcsr_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> bcsr_dot_general(M, jnp.array([1.0, 10.0]), dimension_numbers=(([1], [0]), ([], [])))
    Array([20.,  3.], dtype=float32)
    """
    if isinstance(rhs, JAXSparse) or (isinstance(lhs, JAXSparse) and not isinstance(lhs, BCSR)):
        raise NotImplementedError(f"bcsr_dot_general takes a BCSR array and a dense one, got {lhs} and {rhs}")
    if not isinstance(lhs, BCSR):
        return bcoo_dot_general(
            lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
            preferred_element_type=preferred_element_type,
        )  # fmt: skip
    rhs = jnp.asarray(rhs)
    numbers, aval = product_type(lhs, rhs, dimension_numbers, preferred_element_type)
    check_axes("bcsr_dot_general", lhs, numbers)
    return bcsr_dot_general_p.bind(
        *lhs._bufs, rhs, dimension_numbers=numbers, preferred_element_type=aval.dtype, lhs_spinfo=lhs._info
    )


# ----------------------------------------------------------------------------------------------------
# By way of BCOO


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding=None
) -> BCSR:
    """A sparse array with new axes, and batch and dense ones of size 1 repeated; see ``bcoo_broadcast_in_dim``.

    Arguments:
      mat: a sparse array.
      shape, broadcast_dimensions, sharding: as there; two axes stay sparse.

    >>> import catena.numpy as jnp
    >>> bcsr_broadcast_in_dim(bcsr_fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    dims = {"shape": shape, "broadcast_dimensions": broadcast_dimensions, "sharding": sharding}
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(mat.to_bcoo(), **dims))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Sparse arrays joined along a batch axis or a sparse one; see ``bcoo_concatenate``.

    Arguments:
      operands: ``BCSR`` arrays.
      dimension: the axis.

    >>> import catena.numpy as jnp
    >>> bcsr_concatenate([bcsr_fromdense(jnp.eye(2))] * 2, dimension=0).indptr
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    operands = list(operands)
    if not all(isinstance(x, BCSR) for x in operands):
        raise ValueError(f"bcsr_concatenate takes BCSR arrays, got {operands}")
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """The same array with one specified element at a position; see ``bcoo_sum_duplicates``.

    Arguments:
      mat: a sparse array.
      nse: as there.

    >>> import catena.numpy as jnp
    >>> bcsr_sum_duplicates(bcsr_fromdense(jnp.eye(2))).nse
    2
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse))
