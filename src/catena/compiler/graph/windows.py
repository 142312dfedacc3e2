"""Windows over arrays: how many there are, and the scatter that is the gradient of max pooling."""

from __future__ import annotations

import numpy as np

from catena.compiler.graph.forms import Indices, Scatter


def positions(shape, dims, strides, padding, base_dilation, window_dilation) -> tuple:
    """The number of window positions along each dimension."""
    out = []
    for n, w, s, (lo, hi), bd, wd in zip(shape, dims, strides, padding, base_dilation, window_dilation):
        dilated = (n - 1) * bd + 1 if n else 0
        reach = (w - 1) * wd + 1 if w else 0
        out.append(max(0, (dilated + lo + hi - reach) // s + 1) if reach <= dilated + lo + hi else 0)
    return tuple(out)


def select_and_scatter_add(b, source, operand, select_op, dims, strides, padding):
    """Adds each element of `source` to the place in its window that `select_op` ('ge', 'le') chooses first."""
    rank, ones = operand.ndim, (1,) * operand.ndim
    kind = "max" if select_op in ("ge", "gt", "max") else "min"
    worst = b.constant(extreme(operand.dtype, kind), operand.dtype)
    seen = b.window(operand, worst, dims, strides, padding, ones, ones)
    count = int(np.prod(dims))
    flat = b.reshape(seen, seen.shape[:rank] + (count,))
    chosen = b.argreduce(kind, flat, rank, np.int64)
    starts, left = [None] * rank, chosen
    for d in reversed(range(rank)):
        size = b.constant(np.int64(dims[d]))
        inner = b.map("rem", left, size)
        left = b.map("div", left, size)
        corner = b.map("mul", b.iota(np.int64, chosen.shape, d), b.constant(np.int64(strides[d])))
        at = b.map("sub", b.map("add", corner, inner), b.constant(np.int64(padding[d][0])))
        starts[d] = b.reshape(at, (*chosen.shape, 1))
    indices = b.concatenate(starts, rank)
    zeros = b.full(operand.shape, np.zeros((), operand.dtype))
    every = tuple(range(rank))
    return b.value(
        "scatter",
        operand.shape,
        operand.dtype,
        [zeros, indices, source],
        Scatter("add", Indices((), (), every, (), every, (1,) * rank, "fill")),
    )


def extreme(dtype, kind: str):
    """The identity of max or min in `dtype`."""
    low = kind == "max"
    if dtype == np.bool_:
        return not low
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return info.min if low else info.max
    return -np.inf if low else np.inf
