"""Convolutions of BCOO arrays along one axis: every pair of elements of signal and kernel gives one."""

from __future__ import annotations

import numpy as np

from catena import lax
from catena import numpy as jnp
from catena.experimental.sparse.bcoo import BCOO
from catena.experimental.sparse.bcoo_layout import bcoo_update_layout
from catena.experimental.sparse.bcoo_shape import bcoo_transpose, dense_type
from catena.experimental.sparse.layout import common_batch, masked, over_batch, put_outside


def bcoo_conv_general_dilated(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
) -> BCOO:
    """A convolution along one axis of arrays of which one or both are sparse.

    Arguments:
      lhs: the signals, one with one channel: a ``BCOO`` array or a dense one.
      rhs: the kernel, with one channel, likewise.
      window_strides, lhs_dilation, rhs_dilation, feature_group_count, batch_group_count: 1.
      padding: ``"SAME"``, ``"VALID"``, or a pair: how many zeros come before and after the signal.
      dimension_numbers: as of ``lax.conv_general_dilated``.
      precision: for accelerators.
      preferred_element_type: the dtype of the result.
      out_sharding: on one device, nothing.
    Returns:
      A ``BCOO`` array that has room for every pair of specified elements.
    Raises:
      NotImplementedError: there is more than one signal, channel or axis, or a stride, a dilation or a group.
      TypeError, ValueError: as ``lax.conv_general_dilated``.

    >>> import catena.numpy as jnp
    >>> signal = BCOO.fromdense(jnp.array([[[1.0, 0.0, 2.0]]]))
    >>> kernel = BCOO.fromdense(jnp.array([[[3.0, 1.0]]]))
    >>> bcoo_conv_general_dilated(signal, kernel, window_strides=(1,), padding="VALID").todense()
    Array([[[3., 2.]]], dtype=float32)
    """
    lhs, rhs = (x if isinstance(x, BCOO) else every_element(jnp.asarray(x)) for x in (lhs, rhs))
    convolution = lambda lhs, rhs: lax.conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
        batch_group_count, precision, preferred_element_type,
    )  # fmt: skip
    out = dense_type(convolution, lhs, rhs)
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    lhs, rhs = (bcoo_transpose(x, permutation=spec) for x, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec)))
    if lhs.ndim != 3:
        raise NotImplementedError(f"bcoo_conv_general_dilated: signals have one axis, got {lhs}")
    if {1} != {*window_strides, *(lhs_dilation or ()), *(rhs_dilation or ()), feature_group_count, batch_group_count}:
        raise NotImplementedError("bcoo_conv_general_dilated: strides, dilations and groups are 1 for sparse arrays")
    if lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError(f"bcoo_conv_general_dilated: one signal, kernel and channel, got {lhs} and {rhs}")
    lhs, rhs = (bcoo_update_layout(x, n_batch=2, n_dense=0) for x in (lhs, rhs))
    size, length, width = out.shape[numbers.out_spec[2]], lhs.shape[2], rhs.shape[2]
    ((before, _),) = lax.padtype_to_pads((length,), (width,), (1,), padding) if isinstance(padding, str) else padding

    def one(x, i, y, j):
        i, j = put_outside(i, (length,)), put_outside(j, (width,))
        dtype = jnp.promote_types(i.dtype, j.dtype)
        where = (i.astype(dtype) + np.array(before, dtype) - j[:, 0].astype(dtype)).reshape(-1)
        inside = ((i < length) & (j[:, 0] < width)).reshape(-1) & (where >= 0) & (where < size)
        products = (x[:, None] * y).reshape(-1)
        return masked(products, inside), jnp.where(inside, where, np.array(size, dtype))[:, None]

    buffers = [*lhs._bufs, *rhs._bufs]
    data, indices = over_batch(one, common_batch(2, *buffers))(*buffers)
    mat = BCOO((data.astype(out.dtype), indices), shape=(1, 1, size))
    return (
        bcoo_transpose(bcoo_update_layout(mat, n_batch=0), permutation=np.argsort(numbers.out_spec).tolist())
        if (numbers.out_spec != (0, 1, 2))
        else mat
    )


def every_element(x) -> BCOO:
    """A dense array as a sparse one that specifies each element along its last axis."""
    indices = jnp.broadcast_to(jnp.arange(x.shape[-1])[:, None], (*x.shape, 1))
    return BCOO((x, indices), shape=x.shape, indices_sorted=True, unique_indices=True)
