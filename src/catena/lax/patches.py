"""Convolutions in NumPy: one matrix product of patches with the kernel (im2col), in chunks of bounded size."""

import math

import numpy as np

from catena.core import dtypes
from catena.lax.contraction import product_in_numpy
from catena.lax.elementwise import WIDER_WITH_HALF
from catena.lax.window_shapes import dilated_operand, windows_of

_PATCH_BYTES = 1 << 25  # patches are made and multiplied in chunks of about this size


def convolution_in_numpy(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    out_dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    x = lhs.transpose((lhs_spec[0], *lhs_spec[2:], lhs_spec[1]))
    w = rhs.transpose((*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    groups = feature_group_count
    if batch_group_count > 1:
        x, groups = _batch_groups_as_features(x, batch_group_count), batch_group_count
    kernel = w.shape[:-2]
    ones = (1,)
    x = dilated_operand(x, 0, ((0, 0), *padding, (0, 0)), ones + tuple(lhs_dilation) + ones)
    seen = windows_of(x, ones + kernel + ones, ones + tuple(window_strides) + ones, ones + tuple(rhs_dilation) + ones)
    n = len(kernel)
    seen = seen.reshape((*seen.shape[: n + 2], *kernel))  # batch, space, features, kernel
    if w.shape[-2] == 1 and w.shape[-1] == groups > 1:
        out = _depthwise(seen, w, n, out_dtype)
    else:
        out = _by_chunks(seen, w, n, groups, out_dtype)
    return out.transpose(np.argsort((out_spec[0], *out_spec[2:], out_spec[1])))


def _batch_groups_as_features(x, groups: int):
    """``(groups * batch, space, features)`` as ``(batch, space, groups * features)``."""
    batch, *space, features = x.shape
    split = x.reshape((groups, batch // groups, *space, features))
    moved = np.moveaxis(split, 0, -2)
    return moved.reshape((batch // groups, *space, groups * features))


def _depthwise(seen, w, n_space: int, out_dtype):
    """One kernel for each feature: a sum over the kernel's elements, without patches."""
    wide = WIDER_WITH_HALF.get(out_dtype, out_dtype)
    out = np.zeros(seen.shape[: n_space + 2], wide)
    for place in np.ndindex(w.shape[:n_space]):
        out += seen[(..., *place)].astype(wide, copy=False) * w[place][0].astype(wide, copy=False)
    return out.astype(out_dtype, copy=False)


def _by_chunks(seen, w, n_space: int, groups: int, out_dtype):
    """Patches times kernel, a few examples of the batch at a time."""
    batch, taps = seen.shape[0], math.prod(w.shape[:n_space])
    weights = _weights(w, n_space, groups)
    out = np.empty((*seen.shape[: n_space + 1], w.shape[-1]), out_dtype)
    example_bytes = max(1, math.prod(seen.shape[1 : n_space + 2]) * taps * seen.dtype.itemsize)
    step = max(1, _PATCH_BYTES // example_bytes)
    for start in range(0, batch, step):
        out[start : start + step] = _product(seen[start : start + step], weights, n_space, groups, out_dtype)
    return out


def _weights(w, n_space: int, groups: int):
    """The kernel as ``(groups, kernel elements * features, output features)``."""
    *kernel, features, outs = w.shape
    split = w.reshape((*kernel, features, groups, outs // groups))
    return np.moveaxis(split, n_space + 1, 0).reshape((groups, -1, outs // groups))


def _product(seen, weights, n_space: int, groups: int, out_dtype):
    batch, *rest = seen.shape
    space, features, kernel = rest[:n_space], rest[n_space], rest[n_space + 1 :]
    split = seen.reshape((batch, *space, groups, features // groups, *kernel))
    order = (n_space + 1, *range(n_space + 1), *range(n_space + 3, 2 * n_space + 3), n_space + 2)
    rows = batch * math.prod(space)
    patches = split.transpose(order).reshape((groups, rows, weights.shape[1]))
    if groups == 1:
        patches, weights, numbers = patches[0], weights[0], (((1,), (0,)), ((), ()))
    else:
        numbers = (((2,), (1,)), ((0,), (0,)))
    out = product_in_numpy(
        patches, weights, dimension_numbers=numbers, precision=None, preferred_element_type=out_dtype
    )
    if weights.shape[-2] == 1 and dtypes.KIND[out.dtype] in "fc":
        out = out + np.zeros((), out.dtype)  # programs add to a zero: no sum is -0, nor that of one product
    if groups > 1:
        out = out.transpose((1, 0, 2))
    return out.reshape((batch, *space, -1) if rows else (batch, *space, groups * weights.shape[-1]))
