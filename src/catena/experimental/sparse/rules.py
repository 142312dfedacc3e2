"""What operations of ``lax`` mean for sparse operands: a table, by primitive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.core import dtypes
from catena.core.structural import add_any_p
from catena.experimental.sparse.base import JAXSparse
from catena.experimental.sparse.bcoo import BCOO, bcoo_todense
from catena.experimental.sparse.bcoo_convolution import bcoo_conv_general_dilated
from catena.experimental.sparse.bcoo_layout import bcoo_update_layout
from catena.experimental.sparse.bcoo_multiply import bcoo_multiply_dense, bcoo_multiply_sparse
from catena.experimental.sparse.bcoo_products import bcoo_dot_general
from catena.experimental.sparse.bcoo_shape import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
    bcoo_transpose,
)
from catena.experimental.sparse.bcoo_slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from catena.experimental.sparse.bcoo_sorting import bcoo_sum_duplicates
from catena.experimental.sparse.dense import todense_p
from catena.experimental.sparse.layout import common_batch, put_outside


def is_sparse(x) -> bool:
    return isinstance(x, JAXSparse)


def refuse(operation: str):
    return NotImplementedError(
        f"{operation} of a sparse array is not implemented, since the result would be dense; sparse.todense(x) makes x "
        "dense where that is meant"
    )


# ---- elementwise functions


def with_data(mat: BCOO, data) -> BCOO:
    """A sparse array with other elements at the same positions."""
    return BCOO((data, mat.indices), **mat._info._asdict())


def linear(primitive) -> Callable:
    """The rule of a linear function of one operand."""
    return lambda x, **params: with_data(x, primitive.bind(x.data, **params))


def keeps_zero(primitive) -> Callable:
    """The rule of a function that is 0 at 0: it needs to know elements as a whole."""

    def rule(x, **params):
        x = x if x.unique_indices else bcoo_sum_duplicates(x, nse=x.nse)
        return with_data(x, primitive.bind(x.data, **params))

    return rule


def _integer_pow(x, *, y):
    if y <= 0:
        raise refuse(f"the power {y}")
    return keeps_zero(lax.integer_pow_p)(x, y=y)


def _convert(x, *, new_dtype, **params):
    loses = dtypes.is_inexact(x.dtype) and not dtypes.is_inexact(new_dtype)
    rule = keeps_zero if loses else linear
    return rule(lax.convert_element_type_p)(x, new_dtype=new_dtype, **params)


# ---- sums, products, quotients


def _add(x, y):
    if is_sparse(x) and is_sparse(y):
        return joined(x, y)
    sparse, other = (x, y) if is_sparse(x) else (y, x)
    if np.shape(other) != sparse.shape:
        raise refuse(f"the sum with an array of shape {np.shape(other)}")
    return bcoo_todense(sparse) + other


def _sub(x, y):
    if not (is_sparse(x) and is_sparse(y)):
        raise refuse("the difference from a dense array")
    return joined(x, with_data(y, -y.data))


def joined(x: BCOO, y: BCOO) -> BCOO:
    """The sum of two sparse arrays: the elements of both, specified one after the other."""
    if x.shape != y.shape:
        raise NotImplementedError(f"the sum of sparse arrays of different shapes, {x} and {y}")
    n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
    x, y = (bcoo_update_layout(m, n_batch=n_batch, n_dense=n_dense) for m in (x, y))
    buffers = []
    for pair in zip(x._bufs, y._bufs, strict=True):
        batch = common_batch(n_batch, *pair)
        dtype = jnp.result_type(*pair)
        whole = [jnp.broadcast_to(b, (*batch, *b.shape[n_batch:])).astype(dtype) for b in pair]
        buffers.append(lax.concatenate(whole, n_batch))
    return BCOO(buffers, shape=x.shape)


def _mul(x, y):
    if is_sparse(x) and is_sparse(y):
        return bcoo_multiply_sparse(x, y)
    sparse, other = (x, y) if is_sparse(x) else (y, x)
    return with_data(sparse, bcoo_multiply_dense(sparse, other))


def _div(x, y):
    if is_sparse(y):
        raise refuse("a quotient")
    ones = with_data(x, jnp.ones_like(x.data))
    divisor = bcoo_multiply_dense(ones, jnp.asarray(y))
    sizes = x.shape[x.n_batch : x.n_batch + x.n_sparse]
    inside = jnp.all(put_outside(x.indices, sizes) < np.array(sizes, x.indices.dtype), axis=-1)
    inside = jnp.expand_dims(inside, tuple(range(x.n_batch + 1, divisor.ndim)))
    return with_data(x, lax.div(x.data, jnp.where(inside, divisor, np.ones((), divisor.dtype))))


def _dot_general(x, y, *, dimension_numbers, precision=None, preferred_element_type=None):
    params = {"precision": precision, "preferred_element_type": preferred_element_type}
    return bcoo_dot_general(x, y, dimension_numbers=dimension_numbers, **params)


def _reduce_sum(x, *, axes):
    out = bcoo_reduce_sum(x, axes=axes)
    return out if out.ndim else bcoo_todense(out)


def _stack(*xs, axis):
    xs = [bcoo_broadcast_in_dim(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]),
          broadcast_dimensions=[d for d in range(x.ndim + 1) if d != axis]) for x in xs]  # fmt: skip
    return bcoo_concatenate(xs, dimension=axis)


def _dynamic_slice(x, *starts, slice_sizes):
    return bcoo_dynamic_slice(x, starts, slice_sizes)


def _gather(x, indices, *, dimension_numbers, slice_sizes, **params):
    if not is_sparse(x):
        raise refuse("an index")
    return bcoo_gather(x, indices, dimension_numbers, slice_sizes, **params)


def _broadcast_in_dim(x, *, shape, broadcast_dimensions, **params):
    return bcoo_broadcast_in_dim(x, shape=shape, broadcast_dimensions=broadcast_dimensions)


def _reshape(x, *, new_sizes, dimensions=None, **params):
    return bcoo_reshape(x, new_sizes=new_sizes, dimensions=dimensions)


LINEAR = lax.copy_p, lax.neg_p, lax.real_p, lax.imag_p, lax.conj_p, lax.reduce_precision_p
KEEPS_ZERO = (
    lax.abs_p, lax.asin_p, lax.asinh_p, lax.atan_p, lax.atanh_p, lax.cbrt_p, lax.ceil_p, lax.erf_p, lax.erf_inv_p,
    lax.expm1_p, lax.floor_p, lax.log1p_p, lax.round_p, lax.sign_p, lax.sin_p, lax.sinh_p, lax.sqrt_p, lax.square_p,
    lax.tan_p, lax.tanh_p,
)  # fmt: skip

# For each primitive a function of its operands, of which at least one is sparse, and its parameters.
RULES = {
    **{primitive: linear(primitive) for primitive in LINEAR},
    **{primitive: keeps_zero(primitive) for primitive in KEEPS_ZERO},
    lax.integer_pow_p: _integer_pow,
    lax.convert_element_type_p: _convert,
    lax.add_p: _add,
    add_any_p: _add,
    lax.sub_p: _sub,
    lax.mul_p: _mul,
    lax.div_p: _div,
    lax.dot_general_p: _dot_general,
    lax.reduce_sum_p: _reduce_sum,
    lax.broadcast_in_dim_p: _broadcast_in_dim,
    lax.concatenate_p: lambda *xs, dimension: bcoo_concatenate(xs, dimension=dimension),
    lax.stack_p: _stack,
    lax.reshape_p: _reshape,
    lax.rev_p: lambda x, *, dimensions: bcoo_rev(x, dimensions),
    lax.slice_p: lambda x, **params: bcoo_slice(x, **params),
    lax.squeeze_p: lambda x, *, dimensions: bcoo_squeeze(x, dimensions=dimensions),
    lax.transpose_p: lambda x, *, permutation: bcoo_transpose(x, permutation=permutation),
    lax.dynamic_slice_p: _dynamic_slice,
    lax.gather_p: _gather,
    lax.conv_general_dilated_p: bcoo_conv_general_dilated,
    todense_p: lambda x, *, tree: x.todense(),
}
