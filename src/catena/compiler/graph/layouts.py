"""Elementwise operations before a transpose, a reshape or a broadcast of what they read, where that is better."""

from __future__ import annotations

from catena.compiler.graph import reshapes, transposes


def before(b, f, *xs):
    """`f` of the operands as they were, transposed, reshaped or spread as they are; None where that gains nothing."""
    if (perm := transposes.common(xs)) is not None:
        return b.transpose(f(*(transposes.before(b, x, perm) for x in xs)), perm)
    if (shape := reshapes.common(xs)) is not None:
        return b.reshape(f(*(reshapes.before(b, x, shape) for x in xs)), xs[0].shape)
    if (found := reshapes.ungrouped(b, f, xs)) is not None:
        return found
    if (spread := _spread_alike(xs)) is not None:
        return b.broadcast_in_dim(f(*(_unspread(b, x, spread) for x in xs)), xs[0].shape, spread.params.dims)
    return None


def _spread_alike(xs):
    """One of the operands where all of them are spread along the same dimensions: rows, say, that are the same in each
    place of a batch, beside numbers. What is done to them is done once for all places.
    """
    rows = [x for x in xs if x.form == "broadcast" and x.args[0].size > 1]
    if not rows or any(x.form != "broadcast" or 0 < x.args[0].ndim and x.args[0].size <= 1 for x in xs):
        return None
    first = rows[0]
    alike = all(x.params.dims == first.params.dims and x.args[0].shape == first.args[0].shape for x in rows)
    return first if alike and (first.args[0].size < first.size or first.args[0].ndim < first.ndim) else None


def _unspread(b, x, spread):
    """One of these operands as it is before it is spread."""
    return x.args[0] if x.args[0].ndim else b.full(spread.args[0].shape, x.args[0])
