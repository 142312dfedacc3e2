"""Matrices that are listed row by row, times dense arrays: each row of the product is a sum of a run of rows."""

from __future__ import annotations

import math

from catena import lax
from catena import numpy as jnp
from catena.core.dtypes import KIND
from catena.experimental.sparse.bcoo_products import outer, sum_dtype
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import add_rows, in_bounds, masked, read_rows, wrapped

WIDE = 4  # elements of a row, from which on a run is added up by itself


def row_numbers(indptr, nse: int):
    """The row of each of ``nse`` elements; the number of rows where there is none."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    begins = jnp.zeros(nse, indptr.dtype)
    begins = lax.scatter_add(begins, indptr[1:, None], jnp.ones_like(indptr[1:]), numbers, mode="drop")
    before = jnp.arange(nse, dtype=indptr.dtype) < indptr[0]  # elements that no row begins with
    return jnp.where(before, indptr.shape[0] - 1, jnp.cumsum(begins, dtype=indptr.dtype))


def _sums(rows, indptr):
    return add_rows(rows, row_numbers(indptr, rows.shape[0])[:, None], [indptr.shape[0] - 1])


def _written(b, rows, indptr):
    """As a loop over each run, whose sum stays in registers, where rows are wide enough for lanes."""
    wide = math.prod(rows.shape[1:]) >= WIDE and rows.shape[0] > 1
    return b.runs(rows, indptr) if wide and KIND[rows.dtype] in "fiu" else None


sum_of_runs_p = composed("sum_of_runs", _sums, linear=(0,), written=_written)


def product_of_rows(data, indices, indptr, other):
    """A matrix times an array, (columns, \\*row), in the dtype in which products are added up.

    Arguments:
      data, indices, indptr: the elements of the matrix, their columns, and where each row begins among them.
      other: the array.
    Returns:
      The product, (rows, \\*row).
    """
    columns, size = indices[:, None], [other.shape[0]]
    data = masked(data, in_bounds(columns, size, [-size[0]]))
    products = outer(data, read_rows(other, wrapped(columns, size), (0,)), sum_dtype(data.dtype, other.dtype))
    return sum_of_runs_p.bind(products, indptr)
