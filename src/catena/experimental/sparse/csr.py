"""CSR and CSC: matrices row by row, and column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena import numpy as jnp
from catena.core.tree import register_pytree_node_class
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO, bcoo_todense
from catena.experimental.sparse.bcsr import coordinates, row_pointers
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.coo import COOInfo, check_operands, checked_matrix, matrix_product, product, specified
from catena.experimental.sparse.runs import product_of_rows


class Compressed(JAXSparse):
    """What CSR and CSC share: elements, the column (row) of each, and where each row (column) begins."""

    BUFFERS = "data", "indices", "indptr"

    def __init__(self, args, *, shape: Sequence[int]):
        super().__init__(args, shape=shape)

    @property
    def _bufs(self) -> tuple:
        return self.data, self.indices, self.indptr


@register_pytree_node_class
class CSR(Compressed):
    """A matrix whose specified elements are listed row by row, with the column of each.

    ``BCSR`` does all that this class does, and more.

    Arguments:
      args: ``data`` and ``indices``, the columns, each of shape (nse,); ``indptr``, of shape (rows + 1,): row i has the
        elements from ``indptr[i]`` on, up to ``indptr[i + 1]``.
      shape: the numbers of rows and columns.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.CSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> M, M @ jnp.arange(2.0)
    (CSR(float32[2, 2], nse=2), Array([1., 0.], dtype=float32))
    """

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32):
        """The sparse form of a matrix. See ``csr_fromdense``."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        """A matrix of zeros."""
        if len(shape) != 2:
            raise ValueError(f"CSR arrays have two axes, got shape {shape}")
        pointers = jnp.zeros(shape[0] + 1, index_dtype)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype), pointers), shape=shape)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32"):
        """Ones on a diagonal."""
        rows = np.arange(max(-k, 0), max(min(N, M - k), max(-k, 0)))
        pointers = np.searchsorted(rows, np.arange(N + 1))
        indices = [jnp.asarray(x, index_dtype) for x in (rows + k, pointers)]
        return cls((jnp.ones(len(rows), dtype), *indices), shape=(N, M))

    def todense(self):
        """The matrix, with every element."""
        return csr_todense(self)

    def transpose(self, axes=None) -> CSC:
        """The matrix with rows for columns, whose columns are the rows here."""
        check_no_axes(axes)
        return CSC(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other):
        return matrix_product(self, other, csr_matvec, csr_matmat)


@register_pytree_node_class
class CSC(Compressed):
    """A matrix whose specified elements are listed column by column, with the row of each.

    Arguments:
      args: ``data`` and ``indices``, the rows, each of shape (nse,); ``indptr``, of shape (columns + 1,).
      shape: the numbers of rows and columns.

    >>> import catena.numpy as jnp
    >>> from catena.experimental import sparse
    >>> M = sparse.CSC.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> M, M @ jnp.arange(2.0)
    (CSC(float32[2, 2], nse=2), Array([1., 0.], dtype=float32))
    """

    @classmethod
    def fromdense(cls, mat, *, nse: int | None = None, index_dtype=np.int32):
        """The sparse form of a matrix; the arguments are those of ``csr_fromdense``."""
        return CSR.fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _empty(cls, shape, *, dtype=None, index_dtype="int32"):
        """A matrix of zeros."""
        return CSR._empty(tuple(shape)[::-1], dtype=dtype, index_dtype=index_dtype).T

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype=None, index_dtype="int32"):
        """Ones on a diagonal."""
        return CSR._eye(M, N, -k, dtype=dtype, index_dtype=index_dtype).T

    def todense(self):
        """The matrix, with every element."""
        return self.T.todense().T

    def transpose(self, axes=None) -> CSR:
        """The matrix with rows for columns, whose rows are the columns here."""
        check_no_axes(axes)
        return CSR(self._bufs, shape=self.shape[::-1])

    def __matmul__(self, other):
        return matrix_product(
            self,
            other,
            lambda mat, v: csr_matvec(mat.T, v, transpose=True),
            lambda mat, B: csr_matmat(mat.T, B, transpose=True),
        )


def check_no_axes(axes):
    if axes is not None:
        raise NotImplementedError(f"the transpose of a CSR or CSC matrix takes no axes, got {axes}")


# ---- the functions


def _todense(data, indices, indptr, *, shape):
    return bcoo_todense(BCOO((data, coordinates(indices, indptr)), shape=shape))


csr_todense_p = composed("csr_todense", _todense, linear=(0,))


def csr_todense(mat: CSR):
    """The dense form of a matrix.

    Arguments:
      mat: a CSR matrix.

    >>> import catena.numpy as jnp
    >>> csr_todense(CSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return csr_todense_p.bind(*mat._bufs, shape=mat.shape)


def _fromdense(mat, *, nse, index_dtype):
    data, row, col = specified(mat, nse=nse, index_dtype=index_dtype)
    used = jnp.arange(nse) < jnp.sum(mat != 0)
    return data, col, row_pointers(jnp.where(used, row, mat.shape[0]), mat.shape[0])


csr_fromdense_p = composed("csr_fromdense", _fromdense, multiple_results=True)


def csr_fromdense(mat, *, nse: int | None = None, index_dtype=np.int32) -> CSR:
    """The sparse form of a matrix: its elements that are not 0, row by row.

    Arguments:
      mat: a matrix.
      nse: how many elements to specify; by default as many as are not 0. Where there are fewer, the rest is padding.
      index_dtype: the dtype of the indices.

    >>> import catena.numpy as jnp
    >>> csr_fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])).indptr
    Array([0, 1, 2], dtype=int32)
    """
    mat, params = checked_matrix("csr_fromdense", mat, nse, index_dtype)
    return CSR(csr_fromdense_p.bind(mat, **params), shape=mat.shape)


def _product(data, indices, indptr, other, *, shape, transpose):
    if not transpose:
        return product_of_rows(data, indices, indptr, other).astype(data.dtype)
    where = coordinates(indices, indptr)
    return product(data, where[:, 0], where[:, 1], other, spinfo=COOInfo(shape), transpose=transpose)


csr_matvec_p = composed("csr_matvec", _product, linear=(0, 3))


def csr_matvec(mat: CSR, v, transpose: bool = False):
    """A matrix, or its transpose, times a vector of the same dtype.

    Arguments:
      mat: a CSR matrix.
      v: a vector.
      transpose: whether to multiply by the transpose.
    Raises:
      ValueError: the shapes or dtypes do not fit.

    >>> import catena.numpy as jnp
    >>> csr_matvec(CSR.fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])), jnp.array([1.0, 2.0]))
    Array([10.,  7.], dtype=float32)
    """
    v = jnp.asarray(v)
    check_operands("csr_matvec", mat, v, 1, transpose)
    return csr_matvec_p.bind(*mat._bufs, v, shape=mat.shape, transpose=bool(transpose))


csr_matmat_p = composed("csr_matmat", _product, linear=(0, 3))


def csr_matmat(mat: CSR, B, *, transpose: bool = False):
    """A matrix, or its transpose, times a dense matrix of the same dtype.

    Arguments:
      mat: a CSR matrix.
      B: a dense matrix.
      transpose: whether to multiply by the transpose.
    Raises:
      ValueError: the shapes or dtypes do not fit.

    >>> import catena.numpy as jnp
    >>> csr_matmat(CSR.fromdense(jnp.array([[0.0, 5.0], [7.0, 0.0]])), jnp.eye(2))
    Array([[0., 5.],
           [7., 0.]], dtype=float32)
    """
    B = jnp.asarray(B)
    check_operands("csr_matmat", mat, B, 2, transpose)
    return csr_matmat_p.bind(*mat._bufs, B, shape=mat.shape, transpose=bool(transpose))
