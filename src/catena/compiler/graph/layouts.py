"""Elementwise operations before a transpose or a reshape of what they read, where that is better."""

from __future__ import annotations

from catena.compiler.graph import reshapes, transposes


def before(b, f, *xs):
    """`f` of the operands as they were, transposed or reshaped as they are; None where nothing is gained by it."""
    if (perm := transposes.common(xs)) is not None:
        return b.transpose(f(*(transposes.before(b, x, perm) for x in xs)), perm)
    if (shape := reshapes.common(xs)) is not None:
        return b.reshape(f(*(reshapes.before(b, x, shape) for x in xs)), xs[0].shape)
    return None
