"""Updates of rows that hold one number everywhere, each of which gets one: choices between old and new elements.

The gradient of `take_along_axis(logits, labels[:, None], 1)`, the heart of a cross entropy, is zeros to which each row
adds one number, at its label. As an update, the zeros are written to memory first, and whoever reads them does so after
it. As a choice, place by place, it is computed in the kernels that read it, such as the gradient of a softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.compiler.graph.forms import Indices, Scatter
from catena.core.dtypes import KIND

COMBINES = ("set", "add", "sub", "mul", "min", "max")  # kinds of updates that are an elementwise operation


def choice(b, operand, indices, updates, p: Scatter) -> Any:
    """The updated `operand` as a choice; None where it is not one number, or its rows do not get an update each."""
    if p.kind not in COMBINES or not updates.size or _number(operand) is None:
        return None
    indices, at = _without_counters(operand.shape, indices, p.indices)
    if not _is_one_each(operand.shape, indices.shape[:-1], at):
        return None
    (d,) = at.start_index_map
    place = place_of(b, b.reshape(indices, indices.shape[:-1]), operand.shape[d], at.mode)
    place = _spread(b, place, {k: o for o, k in at.batching}, operand.shape)
    batch = {at.batch_dims[k]: o for o, k in at.batching}
    window = {u: o for u, o in zip(at.offset_dims, at.window_dims) if o != d}
    new = updates if p.kind == "set" else b.map(p.kind, b.full(updates.shape, _number(operand)), updates)
    here = b.map("eq", b.iota(place.dtype, operand.shape, d), place)
    return b.map("select", here, _spread(b, new, batch | window, operand.shape), operand)


def _number(x) -> Any:
    """The number that an array holds everywhere, where that is known; else None."""
    while x.form in ("broadcast", "reshape"):
        x = x.args[0]
    return x if x.form == "constant" and x.ndim == 0 else None


def _without_counters(shape: tuple, indices, at: Indices) -> tuple[Any, Indices]:
    """The indices of one dimension where those of others only count the rows, as in `x[arange(n), i]`; else all."""
    if indices.form != "concatenate" or len(indices.args) != len(at.start_index_map) or at.batching:
        return indices, at
    counters = {d: _counted(x) for d, x in zip(at.start_index_map, indices.args)}
    rows = {d: k for d, k in counters.items() if k is not None and _is_counter(indices, k, shape[d])}
    left = [(d, x) for d, x in zip(at.start_index_map, indices.args) if d not in rows]
    if len(left) != 1 or len(set(rows.values())) < len(rows) or any(d in at.window_dims for d in rows):
        return indices, at
    return left[0][1], at._replace(batching=tuple(rows.items()), start_index_map=(left[0][0],))


def _is_counter(indices, k: int, extent: int) -> bool:
    return k < indices.ndim - 1 and indices.shape[k] == extent


def _counted(x) -> int | None:
    """The dimension along which an array of integers counts from 0, where it does, and is the same along others."""
    if x.form == "iota":
        return x.params.dimension
    if x.form == "broadcast":
        d = _counted(x.args[0])
        return x.params.dims[d] if d is not None and x.shape[x.params.dims[d]] == x.args[0].shape[d] else None
    if x.form == "map" and x.params.op == "convert":
        d = _counted(x.args[0])
        holds = KIND[x.dtype] in "iu" and d is not None and x.shape[d] - 1 <= np.iinfo(x.dtype).max
        return d if holds else None
    return _counted(x.args[2]) if _counts_from_the_end(x) else None


def _counts_from_the_end(x) -> bool:
    """Whether it is another value where that is not negative: indices as NumPy has them."""
    if x.form != "map" or x.params.op != "select":
        return False
    negative, _, index = x.args
    below = negative.form == "map" and negative.params.op == "lt" and negative.args[0] is index
    zero = _number(negative.args[1]) if below else None
    return zero is not None and zero.params.array == 0


def _is_one_each(shape: tuple, positions: tuple, at: Indices) -> bool:
    """Whether updates have a row each of those along one dimension: the rest of their places are their own."""
    if len(at.start_index_map) != 1 or not at.batching:
        return False
    (d,) = at.start_index_map
    rows = {o for o, _ in at.batching}
    own = {k for _, k in at.batching}
    whole = {o for o in at.window_dims if at.slice_sizes[o] == shape[o]}
    single = at.slice_sizes[d] == 1 and all(n == 1 for k, n in enumerate(positions) if k not in own)
    return single and d not in rows and (rows | whole | {d}) == set(range(len(shape)))


def place_of(b, index, extent: int, mode: str):
    """An index as a number that is one of those below `extent`, or none of them where it is beyond."""
    if mode == "clip":
        least, most = 0, min(extent - 1, np.iinfo(index.dtype).max)
        index = b.map("min", b.map("max", index, b.constant(least, index.dtype)), b.constant(most, index.dtype))
    small = extent < 1 << 31 and (index.dtype.itemsize <= 4 or mode == "clip")
    return b.convert(index, np.int32 if small else np.int64)  # of an unsigned one that is too large: below zero


def _spread(b, x, dims: dict[int, int], shape: tuple):
    """`x`, whose dimensions lie along those of the result that `dims` says, or are of one element, in that shape."""
    kept = sorted(dims)
    x = b.reshape(x, [x.shape[k] for k in kept])
    return b.broadcast_in_dim(x, shape, [dims[k] for k in kept])
