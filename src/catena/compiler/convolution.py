"""Convolutions as contractions over windows (im2col): patches read through an index map, then a batched
product.
"""

from __future__ import annotations

import math

import numpy as np


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
    """The convolution of `lhs` with `rhs`; `numbers` holds the three layouts as (batch/out, feature/in,
    *spatial).
    """
    lhs_spec, rhs_spec, out_spec = (
        tuple(getattr(numbers, n, s)) for n, s in zip(("lhs_spec", "rhs_spec", "out_spec"), _specs(numbers))
    )
    x, w = b.transpose(lhs, lhs_spec), b.transpose(rhs, rhs_spec)  # N C *S and O I *K
    if batch_groups > 1:
        x, feature_groups = _fold_batch(b, x, batch_groups), batch_groups
    y = _conv(b, x, w, window_strides, padding, lhs_dilation, rhs_dilation, feature_groups, out_dtype)
    return b.transpose(y, np.argsort(out_spec))


def _specs(numbers):
    return (None, None, None) if hasattr(numbers, "lhs_spec") else numbers


def _fold_batch(b, x, groups: int):
    """Batch groups as feature groups: (G*n, C, ...) -> (n, G*C, ...)."""
    n, c, *space = x.shape
    split = b.reshape(x, (groups, n // groups, c, *space))
    moved = b.transpose(split, (1, 0, 2, *range(3, 3 + len(space))))
    return b.reshape(moved, (n // groups, groups * c, *space))


def _conv(b, x, w, strides, padding, lhs_dilation, rhs_dilation, groups: int, out_dtype):
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
    patches = b.reshape(seen, (n, c, *out, *kernel))
    taps = math.prod(kernel)
    patches = b.reshape(patches, (n, groups, c // groups, *out, *kernel))
    order = (1, 0, *range(3, 3 + k), 2, *range(3 + k, 3 + 2 * k))  # G N *out C *kernel
    patches = b.reshape(b.transpose(patches, order), (groups, n * math.prod(out), (c // groups) * taps))
    weights = b.reshape(w, (groups, o // groups, i * taps))
    product = b.dot_general(patches, weights, (((2,), (2,)), ((0,), (0,))), out_dtype)  # G, N*out, O/G
    y = b.reshape(product, (groups, n, *out, o // groups))
    y = b.transpose(y, (1, 0, 2 + k, *range(2, 2 + k)))  # N G O/G *out
    return b.reshape(y, (n, o, *out))
