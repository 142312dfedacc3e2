"""Eager evaluation by compiled kernels, of the elementwise operations in which NumPy is slow.

Kernels have a fixed size and are called piece by piece, so that a new shape compiles nothing: there is one
for each primitive, its dtypes and parameters. What is left over, and all small arrays, NumPy evaluates.
"""

import functools

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.transform.execute import program_of, run_entry

PIECES = (1 << 18, 1 << 14)  # large ones for all threads, small ones for the rest
SMALLEST = PIECES[-1]


class Kernel:
    """The compiled program of one primitive for operands of one size (or none, for scalars)."""

    __slots__ = ("program", "entry", "dtype")

    def __init__(self, primitive, operands, params):
        avals = [ShapedArray(shape, dtype) for shape, dtype in operands]
        info = DebugInfo("evaluation", primitive.name)
        closed, _ = trace_to_closed_jaxpr(lambda *xs: [primitive.bind(*xs, **dict(params))], avals, info)
        self.dtype = closed.out_avals[0].dtype
        self.program = program_of(closed, (), primitive.name)  # it owns the memory that the entry points to
        self.entry = self.program.entry


@functools.lru_cache(maxsize=1024)
def kernel(primitive, operands: tuple, params: tuple) -> Kernel:
    return Kernel(primitive, operands, params)


def in_pieces(primitive, in_numpy, xs, params):
    """The result of an elementwise ``primitive`` on large arrays; ``in_numpy`` evaluates the rest."""
    shape = np.broadcast_shapes(*[x.shape for x in xs])
    flat = [np.ascontiguousarray(np.broadcast_to(x, shape).reshape(-1)) if x.ndim else x for x in xs]
    size, start, out = int(np.prod(shape)), 0, None
    key = tuple(params.items())
    for piece in PIECES:
        if size - start < piece:
            continue
        operands = tuple([((piece,) if x.ndim else (), x.dtype) for x in flat])
        found = kernel(primitive, operands, key)
        out = np.empty(size, found.dtype) if out is None else out
        while size - start >= piece:
            stop = start + piece
            run_entry(found.entry, tuple([x[start:stop] if x.ndim else x for x in flat]), (out[start:stop],))
            start = stop
    if start < size:
        out[start:] = in_numpy(*[x[start:] if x.ndim else x for x in flat], **params)
    return out.reshape(shape)
