"""COO: matrices as rows, columns and elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena import numpy as jnp
from catena.core.named import NamedTuple
from catena.core.tree import register_pytree_node_class
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO, bcoo_todense, specified_count
from catena.experimental.sparse.bcoo_products import bcoo_dot_general
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import read_rows


class COOInfo(NamedTuple):
    """What is known of a COO matrix besides its buffers."""

    shape: tuple
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(JAXSparse):
    """A matrix of which some elements are specified by row and column; those at one position add up.

    ``BCOO`` does all that this class does, and more.

    Arguments:
      args: ``data``, ``row`` and ``col``, each of shape (nse,).
      shape: the numbers of rows and columns.
      rows_sorted: a promise that the elements are in the order of their rows.
      cols_sorted: a promise that they are in the order of their columns.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.COO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> M, M @ jnp.arange(2.0)
    (COO(float32[2, 2], nse=2), Array([1., 0.], dtype=float32))
    """

    BUFFERS = "data", "row", "col"
    FACTS = "shape", "rows_sorted", "cols_sorted"

    def __init__(self, args, *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False):
        super().__init__(args, shape=shape)
        self.rows_sorted, self.cols_sorted = rows_sorted, cols_sorted

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self.rows_sorted, self.cols_sorted)

    @property
    def _bufs(self) -> tuple:
        return self.data, self.row, self.col

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32):
        """The sparse form of a matrix. See ``coo_fromdense``."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        """A matrix of zeros."""
        if len(shape) != 2:
            raise ValueError(f"COO arrays have two axes, got shape {shape}")
        none = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32"):
        """Ones on a diagonal."""
        rows = np.arange(max(-k, 0), max(min(N, M - k), max(-k, 0)))
        indices = [jnp.asarray(x, index_dtype) for x in (rows, rows + k)]
        return cls((jnp.ones(len(rows), dtype), *indices), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def _sort_indices(self) -> COO:
        """The same matrix with its elements row by row."""
        order = jnp.lexsort((self.col, self.row))
        return COO([x[order] for x in self._bufs], shape=self.shape, rows_sorted=True)

    def todense(self):
        """The matrix, with every element."""
        return coo_todense(self)

    def transpose(self, axes=None) -> COO:
        """The matrix with rows for columns."""
        if axes is not None:
            raise NotImplementedError(f"the transpose of a COO matrix takes no axes, got {axes}")
        promises = {"rows_sorted": self.cols_sorted, "cols_sorted": self.rows_sorted}
        return COO((self.data, self.col, self.row), shape=self.shape[::-1], **promises)

    def __matmul__(self, other):
        return matrix_product(self, other, coo_matvec, coo_matmat)


def matrix_product(mat: JAXSparse, other, matvec, matmat):
    """``mat @ other`` by the product with a vector or that with a matrix."""
    if isinstance(other, JAXSparse):
        raise NotImplementedError(
            f"the product of {mat} and {other}: one must be dense; BCOO has one of two sparse arrays"
        )
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"the product of {mat} and an array of shape {other.shape}")
    dtype = jnp.promote_types(mat.dtype, other.dtype)
    mat = type(mat).tree_unflatten(mat.tree_flatten()[1], (mat.data.astype(dtype), *mat.tree_flatten()[0][1:]))
    return (matvec if other.ndim == 1 else matmat)(mat, other.astype(dtype))


def check_operands(name: str, mat: JAXSparse, other, ndim: int, transpose: bool):
    """Raise where a matrix, or its transpose, has no product with this array."""
    if other.ndim != ndim or other.shape[0] != mat.shape[0 if transpose else 1]:
        of = "the transpose of " if transpose else ""
        raise ValueError(f"{name}: {of}{mat} has no product with an array of shape {other.shape}")
    if other.dtype != mat.dtype:
        raise ValueError(f"{name}: {mat} has no product with an array of dtype {other.dtype}; convert one")


def product(data, row, col, other, *, spinfo, transpose: bool):
    """A matrix times a dense array, by the product of BCOO arrays."""
    mat = BCOO((data, jnp.stack(jnp.broadcast_arrays(row, col), axis=-1)), shape=spinfo.shape)
    return bcoo_dot_general(mat, other, dimension_numbers=(((0 if transpose else 1,), (0,)), ((), ())))


def specified(mat, *, nse: int, index_dtype) -> tuple:
    """``nse`` elements of a matrix that are not 0, with zeros where there are fewer, their rows and columns."""
    row, col = jnp.nonzero(mat, size=nse, fill_value=mat.shape)
    data = read_rows(mat, jnp.stack([row, col], axis=1), (0, 1))
    found = row < mat.shape[0]
    return data, *(jnp.where(found, x, 0).astype(index_dtype) for x in (row, col))


def checked_matrix(name: str, mat, nse: int | None, index_dtype) -> tuple:
    """The matrix as an array, and the parameters of the primitive that makes it sparse."""
    mat = jnp.asarray(mat)
    if mat.ndim != 2:
        raise ValueError(f"{name}: a matrix has two axes, got shape {mat.shape}")
    nse = specified_count(mat, 0, 0) if nse is None else nse
    return mat, {"nse": nse, "index_dtype": np.dtype(index_dtype)}


# ---- the functions


def _todense(data, row, col, *, spinfo):
    return bcoo_todense(BCOO((data, jnp.stack(jnp.broadcast_arrays(row, col), axis=-1)), shape=spinfo.shape))


coo_todense_p = composed("coo_todense", _todense, linear=(0,))


def coo_todense(mat: COO):
    """The dense form of a matrix.

    Arguments:
      mat: a COO matrix.

    >>> import catena.numpy as jnp
    >>> coo_todense(COO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return coo_todense_p.bind(*mat._bufs, spinfo=mat._info)


coo_fromdense_p = composed("coo_fromdense", specified, multiple_results=True)


def coo_fromdense(mat, *, nse: int | None = None, index_dtype=jnp.int32) -> COO:
    """The sparse form of a matrix: its elements that are not 0, with their rows and columns.

    Arguments:
      mat: a matrix.
      nse: how many elements to specify; by default as many as are not 0. Where there are fewer, zeros at (0, 0) follow.
      index_dtype: the dtype of the indices.

    >>> import catena.numpy as jnp
    >>> coo_fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])).col
    Array([1, 0], dtype=int32)
    """
    mat, params = checked_matrix("coo_fromdense", mat, nse, index_dtype)
    return COO(coo_fromdense_p.bind(mat, **params), shape=mat.shape, rows_sorted=True)


coo_matvec_p = composed("coo_matvec", product, linear=(0, 3))


def coo_matvec(mat: COO, v, transpose: bool = False):
    """A matrix, or its transpose, times a vector of the same dtype.

    Arguments:
      mat: a COO matrix.
      v: a vector.
      transpose: whether to multiply by the transpose.
    Raises:
      ValueError: the shapes or dtypes do not fit.

    >>> import catena.numpy as jnp
    >>> coo_matvec(COO.fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])), jnp.array([1.0, 2.0]))
    Array([10.,  7.], dtype=float32)
    """
    v = jnp.asarray(v)
    check_operands("coo_matvec", mat, v, 1, transpose)
    return coo_matvec_p.bind(*mat._bufs, v, spinfo=mat._info, transpose=bool(transpose))


coo_matmat_p = composed("coo_matmat", product, linear=(0, 3))


def coo_matmat(mat: COO, B, *, transpose: bool = False):
    """A matrix, or its transpose, times a dense matrix of the same dtype.

    Arguments:
      mat: a COO matrix.
      B: a dense matrix.
      transpose: whether to multiply by the transpose.
    Raises:
      ValueError: the shapes or dtypes do not fit.

    >>> import catena.numpy as jnp
    >>> coo_matmat(COO.fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])), jnp.eye(2))
    Array([[0., 5.],
           [7., 0.]], dtype=float32)
    """
    B = jnp.asarray(B)
    check_operands("coo_matmat", mat, B, 2, transpose)
    return coo_matmat_p.bind(*mat._bufs, B, spinfo=mat._info, transpose=bool(transpose))
