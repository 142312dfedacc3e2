"""Products of BCOO arrays: rows are gathered where indices point to, multiplied, and added where others point to."""

from __future__ import annotations

import math

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.aval import ShapedArray
from catena.core.evaluate import abstract_eval
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_sorting import sum_rows
from catena.experimental.sparse.composed import composed
from catena.experimental.sparse.layout import (
    add_rows,
    columns,
    common_batch,
    in_bounds,
    layout_of,
    masked,
    over_batch,
    read_rows,
    wrapped,
)
from catena.lax.contraction import canonical_numbers, canonicalize_precision, dot_general_p

# ----------------------------------------------------------------------------------------------------
# Sparse times dense


def dot_general_of(data, indices, rhs, *, dimension_numbers, preferred_element_type, lhs_spinfo):
    (lc, rc), (lb, rb) = dimension_numbers
    shape, dtype = lhs_spinfo.shape, sum_dtype(data.dtype, rhs.dtype)
    n_batch, n_sparse, _, _ = layout_of(data.shape, indices.shape, shape)
    partner = dict(zip([*lb, *lc], [*rb, *rc], strict=True))
    kept = [*lb, *(d for d in range(n_batch) if d not in partner)]
    mapped = [*kept, *(d for d in lc if d < n_batch)]  # the batch axes, those that are contracted last
    contracted = [d - n_batch for d in lc if d >= n_batch]
    free = [d for d in range(n_sparse) if d not in contracted]
    sizes = shape[n_batch : n_batch + n_sparse]
    taken = [partner[d] for d in mapped if d in partner]
    left = [d for d in range(rhs.ndim) if d not in taken]
    axes = [left.index(partner[d + n_batch]) for d in contracted]

    def one(data, indices, rhs):
        read, written = (columns(indices, own) for own in (contracted, free))
        over, into = ([sizes[d] for d in own] for own in (contracted, free))
        data = masked(data, in_bounds(read, over, [-n for n in over]))
        products = outer(data, read_rows(rhs, wrapped(read, over), axes), dtype)
        return add_rows(products, wrapped(written, into), into)

    buffers = [lax.transpose(x, [*mapped, *range(n_batch, x.ndim)]) for x in (data, indices)]
    rhs = lax.expand_dims(lax.transpose(rhs, [*taken, *left]), [i for i, d in enumerate(mapped) if d not in partner])
    products = over_batch(one, [shape[d] for d in mapped])(*buffers, rhs)
    return jnp.sum(products, axis=tuple(range(len(kept), len(mapped))), dtype=dtype).astype(preferred_element_type)


def outer(x, y, dtype):
    """The outer product of each row of ``x`` with that of ``y``: (nse, *row of x, *row of y)."""
    rank = x.ndim + y.ndim - 1
    x = lax.expand_dims(x.astype(dtype), range(x.ndim, rank))
    return x * lax.expand_dims(y.astype(dtype), range(1, 1 + rank - y.ndim))


def sum_dtype(*operands):
    """The dtype in which products of these are added up: floats of 32 bits or more."""
    dtype = jnp.promote_types(*operands)
    return jnp.promote_types(dtype, jnp.float32) if dtypes.is_inexact(dtype) else dtype


bcoo_dot_general_p = composed("bcoo_dot_general", dot_general_of, linear=(0, 2))


def product_type(lhs, rhs, dimension_numbers, preferred) -> tuple:
    """The dimension numbers as tuples of integers, and the type of the product of dense arrays of these types.

    Raises:
      TypeError: they have no such product.
    """
    numbers = canonical_numbers(dimension_numbers)
    dtype = jnp.promote_types(lhs.dtype, rhs.dtype)
    avals = ShapedArray(tuple(lhs.shape), dtype), ShapedArray(tuple(rhs.shape), dtype)
    preferred = dtype if preferred is None else dtypes.check_user_dtype_supported(preferred, "bcoo_dot_general")
    params = {"dimension_numbers": numbers, "precision": None, "preferred_element_type": preferred}
    return numbers, abstract_eval(dot_general_p, avals, params)


def check_axes(name: str, mat, numbers):
    """Raise where a product uses axes of a sparse array that it cannot use so."""
    (lc, _), (lb, _) = numbers
    if any(d >= mat.n_batch for d in lb):
        raise NotImplementedError(
            f"{name}: batch axes of a product must be batch axes of the sparse array, got {lb} with "
            f"n_batch={mat.n_batch}"
        )
    if any(d >= mat.n_batch + mat.n_sparse for d in lc):
        raise NotImplementedError(f"{name}: dense axes of a sparse array are not contracted, got {lc} of {mat}")


# ----------------------------------------------------------------------------------------------------
# Elements of a dense product


def _sampled(A, B, indices, *, dimension_numbers):
    (ac, bc), (ab, bb) = dimension_numbers
    a_free = [d for d in range(A.ndim) if d not in (*ac, *ab)]
    b_free = [d for d in range(B.ndim) if d not in (*bc, *bb)]
    of_a = [*ab, *a_free, *[None] * len(b_free)]  # for each axis of the product the axis of A, and of B, that it is
    of_b = [*bb, *[None] * len(a_free), *b_free]
    shape = [A.shape[a] if a is not None else B.shape[b] for a, b in zip(of_a, of_b, strict=True)]
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    sizes = shape[n_batch : n_batch + n_sparse]

    def in_front(x, own):
        """``x`` with the batch axes of the indices in front, and where its other axes went."""
        front = [d for d in own[:n_batch] if d is not None]
        rest = [d for d in range(x.ndim) if d not in front]
        moved = lax.transpose(x, [*front, *rest])
        return lax.expand_dims(moved, [i for i, d in enumerate(own[:n_batch]) if d is None]), rest

    def rows(x, own, rest, indices):
        """What the indices read of one example of ``x``, and where the axes of ``x`` that they leave are in it."""
        of_x = [(i, d) for i, d in enumerate(own[n_batch : n_batch + n_sparse]) if d is not None]
        read = read_rows(x, columns(indices, [i for i, _ in of_x]), [rest.index(d) for _, d in of_x])
        left = [d for d in rest if d not in [d for _, d in of_x]]
        return read, {d: i + 1 for i, d in enumerate(left)}

    (A, a_rest), (B, b_rest) = in_front(A, of_a), in_front(B, of_b)

    def one(A, B, indices):
        indices = wrapped(indices, sizes)
        a, a_place = rows(A, of_a, a_rest, indices)
        b, b_place = rows(B, of_b, b_rest, indices)
        dense = [i for i in range(len(ab)) if of_a[i] in a_place]
        batch = (0, *(a_place[of_a[i]] for i in dense)), (0, *(b_place[of_b[i]] for i in dense))
        over = tuple(a_place[d] for d in ac), tuple(b_place[d] for d in bc)
        return masked(lax.dot_general(a, b, (over, batch)), in_bounds(indices, sizes))

    return over_batch(one, shape[:n_batch])(A, B, indices)


bcoo_dot_general_sampled_p = composed("bcoo_dot_general_sampled", _sampled, linear=(0, 1))


def bcoo_dot_general_sampled(A, B, indices, *, dimension_numbers):
    """Elements of a contraction of dense arrays, without computing the others.

    Arguments:
      A, B: dense arrays.
      indices: the positions of the elements, of shape (\\*batch, nse, n_sparse), as of a ``BCOO`` array of the shape
        of the product.
      dimension_numbers: as of ``lax.dot_general``.
    Returns:
      The elements, of shape (\\*batch, nse, \\*dense), 0 where positions are out of bounds.
    Raises:
      TypeError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> A = jnp.arange(4.0).reshape(2, 2)
    >>> bcoo_dot_general_sampled(A, A, jnp.array([[0, 0], [1, 1]]), dimension_numbers=(([1], [0]), ([], [])))
    Array([ 2., 11.], dtype=float32)
    """
    A, B, indices = jnp.asarray(A), jnp.asarray(B), jnp.asarray(indices)
    numbers, aval = product_type(A, B, dimension_numbers, None)
    if indices.ndim < 2 or indices.ndim - 2 + indices.shape[-1] > aval.ndim:
        raise ValueError(f"indices of shape {indices.shape} do not address a product of shape {aval.shape}")
    A, B = A.astype(aval.dtype), B.astype(aval.dtype)
    return bcoo_dot_general_sampled_p.bind(A, B, indices, dimension_numbers=numbers)


# ----------------------------------------------------------------------------------------------------
# Sparse times sparse


def _spdot_general(
    lhs_data, lhs_indices, rhs_data, rhs_indices, *, dimension_numbers, lhs_spinfo, rhs_spinfo, preferred_element_type
):
    (lc, rc), (lb, rb) = dimension_numbers
    lhs, rhs = lhs_spinfo.shape, rhs_spinfo.shape
    l_batch, l_sparse, _, l_nse = layout_of(lhs_data.shape, lhs_indices.shape, lhs)
    r_batch, r_sparse, _, r_nse = layout_of(rhs_data.shape, rhs_indices.shape, rhs)
    dtype = sum_dtype(lhs_data.dtype, rhs_data.dtype)
    l_over, r_over = [d - l_batch for d in lc], [d - r_batch for d in rc]
    l_free = [d for d in range(l_sparse) if d not in l_over]
    r_free = [d for d in range(r_sparse) if d not in r_over]
    sizes = [*(lhs[l_batch + d] for d in l_free), *(rhs[r_batch + d] for d in r_free)]
    nse = min(l_nse * r_nse, math.prod(sizes))

    def one(x, i, y, j):
        i, j = wrapped(i, lhs[l_batch : l_batch + l_sparse]), wrapped(j, rhs[r_batch : r_batch + r_sparse])
        x, y = masked(x, in_bounds(i, lhs[l_batch:])), masked(y, in_bounds(j, rhs[r_batch:]))
        meets = jnp.all(columns(i, l_over)[:, None] == columns(j, r_over)[None], axis=-1)
        products = jnp.where(meets, x.astype(dtype)[:, None] * y.astype(dtype), np.zeros((), dtype)).reshape(-1)
        pairs = [jnp.repeat(columns(i, l_free), r_nse, axis=0), jnp.tile(columns(j, r_free), (l_nse, 1))]
        dtype_of_indices = jnp.promote_types(i.dtype, j.dtype)
        where = jnp.concatenate([p.astype(dtype_of_indices) for p in pairs], axis=1)
        where = jnp.where(in_bounds(where, sizes)[:, None], where, np.array(sizes, where.dtype))
        return sum_rows(products, where, sizes, nse) if nse < l_nse * r_nse or l_over else (products, where)

    l_own = [d for d in range(l_batch) if d not in lb]
    r_own = [d for d in range(r_batch) if d not in rb]

    def with_axes(x, shared, own, before: int, after: int):
        moved = lax.transpose(x, [*shared, *own, *range(len(shared) + len(own), x.ndim)])
        new = [*range(len(shared), len(shared) + before)]
        return lax.expand_dims(moved, [*new, *range(len(lb) + before + len(own), len(lb) + before + len(own) + after)])

    buffers = [with_axes(x, lb, l_own, 0, len(r_own)) for x in (lhs_data, lhs_indices)]
    buffers += [with_axes(x, rb, r_own, len(l_own), 0) for x in (rhs_data, rhs_indices)]
    data, indices = over_batch(one, common_batch(len(lb) + len(l_own) + len(r_own), *buffers))(*buffers)
    return data.astype(preferred_element_type), indices


bcoo_spdot_general_p = composed("bcoo_spdot_general", _spdot_general, multiple_results=True)


def sparse_product(lhs: BCOO, rhs: BCOO, dimension_numbers, preferred) -> BCOO:
    """The contraction of two sparse arrays: each pair of specified elements gives one; those at one position add up."""
    numbers, aval = product_type(lhs, rhs, dimension_numbers, preferred)
    (lc, rc), (lb, rb) = numbers
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError(f"bcoo_dot_general: sparse arrays with dense axes, got {lhs} and {rhs}")
    if any(d >= lhs.n_batch for d in lb) or any(d >= rhs.n_batch for d in rb):
        raise NotImplementedError(f"bcoo_dot_general: batch axes of a product must be so of both, got {lb} and {rb}")
    if any(d < lhs.n_batch for d in lc) or any(d < rhs.n_batch for d in rc):
        raise NotImplementedError(
            f"bcoo_dot_general: batch axes of sparse arrays are not contracted, got {lc} and {rc}"
        )
    if rhs.n_batch > len(rb) and lhs.n_sparse > len(lc):
        raise ValueError(
            f"bcoo_dot_general: free batch axes of {rhs} would come after free sparse axes of {lhs} in the product"
        )
    buffers = bcoo_spdot_general_p.bind(
        *lhs._bufs,
        *rhs._bufs,
        dimension_numbers=numbers,
        lhs_spinfo=lhs._info,
        rhs_spinfo=rhs._info,
        preferred_element_type=aval.dtype,
    )
    return BCOO(buffers, shape=aval.shape)


# ----------------------------------------------------------------------------------------------------
# The function


def bcoo_dot_general(lhs, rhs, *, dimension_numbers, precision=None, preferred_element_type=None, out_sharding=None):
    """A contraction of arrays of which one or both are sparse.

    Arguments:
      lhs, rhs: ``BCOO`` arrays or dense ones.
      dimension_numbers: as of ``lax.dot_general``: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)).
        Batch axes of the product are batch axes of sparse operands; dense axes are not contracted.
      precision: for accelerators.
      preferred_element_type: the dtype of the result; by default that to which the operands promote.
      out_sharding: on one device, nothing.
    Returns:
      A dense array; of two sparse ones a ``BCOO`` array, with the axes of ``lax.dot_general``'s result.
    Raises:
      TypeError: the shapes do not fit.
      NotImplementedError: axes are used in a way that is not said above.

    >>> import catena.numpy as jnp
    >>> M = BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> bcoo_dot_general(M, jnp.array([1.0, 10.0]), dimension_numbers=(([1], [0]), ([], [])))
    Array([20.,  3.], dtype=float32)
    """
    canonicalize_precision(precision)
    for operand in (lhs, rhs):
        if isinstance(operand, JAXSparse) and not isinstance(operand, BCOO):
            raise NotImplementedError(f"bcoo_dot_general takes BCOO arrays and dense ones, got {operand}")
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return sparse_product(lhs, rhs, dimension_numbers, preferred_element_type)
    if isinstance(rhs, BCOO):
        return _dense_times_sparse(jnp.asarray(lhs), rhs, dimension_numbers, preferred_element_type)
    rhs = jnp.asarray(rhs)
    if not isinstance(lhs, BCOO):
        return lax.dot_general(
            jnp.asarray(lhs), rhs, dimension_numbers, precision=precision, preferred_element_type=preferred_element_type
        )
    numbers, aval = product_type(lhs, rhs, dimension_numbers, preferred_element_type)
    check_axes("bcoo_dot_general", lhs, numbers)
    return _times_dense(lhs, rhs, numbers, aval.dtype)


def _times_dense(lhs: BCOO, rhs, numbers, dtype):
    return bcoo_dot_general_p.bind(
        lhs.data,
        lhs.indices,
        rhs,
        dimension_numbers=numbers,
        preferred_element_type=dtype,
        lhs_spinfo=lhs._info,
    )


def _dense_times_sparse(lhs, rhs: BCOO, dimension_numbers, preferred):
    """The product with the operands exchanged, and its axes in the order asked for."""
    numbers, aval = product_type(lhs, rhs, dimension_numbers, preferred)
    (lc, rc), (lb, rb) = numbers
    exchanged = (rc, lc), (rb, lb)
    check_axes("bcoo_dot_general", rhs, exchanged)
    out = _times_dense(rhs, lhs, exchanged, aval.dtype)
    batch, own = len(lb), lhs.ndim - len(lb) - len(lc)
    return lax.transpose(out, [*range(batch), *range(out.ndim - own, out.ndim), *range(batch, out.ndim - own)])
