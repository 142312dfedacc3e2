"""Convolutions as contractions over windows (im2col): patches read through an index map, then a batched
product.
"""

from __future__ import annotations

import math

import numpy as np

from catena.core.dtypes import KIND


def conv(
    b,
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    numbers,
    feature_groups,
    batch_groups,
    out_dtype,
):
    """The convolution of `lhs` with `rhs`; `numbers` holds the three layouts."""
    lhs_spec, rhs_spec, out_spec = (
        tuple(getattr(numbers, n, s)) for n, s in zip(("lhs_spec", "rhs_spec", "out_spec"), _specs(numbers))
    )
    x, w = b.transpose(lhs, lhs_spec), b.transpose(rhs, rhs_spec)  # N C *S and O I *K
    if batch_groups > 1:
        x, feature_groups = _fold_batch(b, x, batch_groups), batch_groups
    last = lhs_spec[1] == lhs.ndim - 1
    y = _conv(b, x, w, window_strides, padding, lhs_dilation, rhs_dilation, feature_groups, out_dtype, last)
    return b.transpose(y, np.argsort(out_spec))


def _specs(numbers):
    return (None, None, None) if hasattr(numbers, "lhs_spec") else numbers


def _fold_batch(b, x, groups: int):
    """Batch groups as feature groups: (G*n, C, ...) -> (n, G*C, ...)."""
    n, c, *space = x.shape
    split = b.reshape(x, (groups, n // groups, c, *space))
    moved = b.transpose(split, (1, 0, 2, *range(3, 3 + len(space))))
    return b.reshape(moved, (n // groups, groups * c, *space))


def _conv(b, x, w, strides, padding, lhs_dilation, rhs_dilation, groups: int, out_dtype, channels_last: bool):
    """NC*S and OI*K to NO*S. The patches are laid out so that their innermost dimension is the input's."""
    n, c, *space = x.shape
    o, i, *kernel = w.shape
    k = len(kernel)
    zero = b.constant(np.zeros((), x.dtype))
    seen = b.window(
        x,
        zero,
        (1, 1, *kernel),
        (1, 1, *strides),
        ((0, 0), (0, 0), *padding),
        (1, 1, *lhs_dilation),
        (1, 1, *rhs_dilation),
    )
    out = seen.shape[2 : 2 + k]
    if i == 1 and o == c:
        seen = b.reshape(seen, (n, c, *out, *kernel))
        return _depthwise(b, seen, w, k, out_dtype, channels_last)
    patches = b.reshape(seen, (n, groups, c // groups, *out, *kernel))
    weights = b.reshape(w, (groups, o // groups, i, *kernel))
    outs, taps = range(3, 3 + k), range(3 + k, 3 + 2 * k)
    places, length = n * math.prod(out), i * math.prod(kernel)
    if channels_last:
        patches = b.reshape(b.transpose(patches, (1, 0, *outs, *taps, 2)), (groups, places, length))
        weights = b.transpose(weights, (0, 1, *range(3, 3 + k), 2))
        weights = b.reshape(weights, (groups, o // groups, length))
        product = b.dot_general(patches, weights, (((2,), (2,)), ((0,), (0,))), out_dtype)
        y = b.reshape(product, (groups, n, *out, o // groups))
        y = b.transpose(y, (1, 0, 2 + k, *range(2, 2 + k)))
    else:
        patches = b.reshape(b.transpose(patches, (1, 2, *taps, 0, *outs)), (groups, length, places))
        weights = b.reshape(weights, (groups, o // groups, length))
        product = b.dot_general(weights, patches, (((2,), (1,)), ((0,), (0,))), out_dtype)
        y = b.reshape(product, (groups, o // groups, n, *out))
        y = b.transpose(y, (2, 0, 1, *range(3, 3 + k)))
    return b.reshape(y, (n, o, *out))


def _depthwise(b, seen, w, k: int, out_dtype, channels_last: bool):
    """Each channel with its own kernel: a reduction over the windows."""
    narrow = KIND[np.dtype(out_dtype)] == "f" and np.dtype(out_dtype).itemsize < 4
    wide = np.dtype(np.float32) if narrow else np.dtype(out_dtype)
    order = (0, *range(2, 2 + k), 1) if channels_last else tuple(range(2 + k))
    seen = b.convert(b.transpose(seen, (*order, *range(2 + k, 2 + 2 * k))), wide)
    channel = order.index(1)
    weights = b.convert(b.reshape(w, (w.shape[0], *w.shape[2:])), wide)
    spread = b.broadcast_in_dim(weights, seen.shape, (channel, *range(2 + k, 2 + 2 * k)))
    y = b.reduce("sum", b.map("mul", seen, spread), range(2 + k, 2 + 2 * k))
    return b.transpose(b.convert(y, out_dtype), np.argsort(order))
