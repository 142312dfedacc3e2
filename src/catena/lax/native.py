"""Eager evaluation by compiled kernels, of operations in which NumPy is slow.

Elementwise kernels have a fixed size and are called piece by piece, so that a new shape compiles nothing:
there is one for each primitive, its dtypes and parameters. Small arrays NumPy evaluates. Products, gathers, scatters
and folds cannot be cut so: those of large arrays are compiled for their shapes when the same shapes come again.
Elementwise ones are then, too: one call in place of several takes a tenth to a third less time.
"""

import functools
import math
from collections import OrderedDict

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.shapes import broadcast_shapes
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.runtime import buffers
from catena.transform.execute import program_of, run_entry

LARGE_PIECE, SMALL_PIECE = 1 << 18, 1 << 14  # elements: for all threads, for one
SHORT_PIECE, LEAST_PIECE = 1 << 8, 1 << 6  # where NumPy is slowest, and where kernels are used for their accuracy
SMALLEST = SMALL_PIECE  # from which on a kernel is quicker than NumPy where that is slow


class Kernel:
    """The compiled program of one primitive for operands of these shapes and dtypes."""

    __slots__ = ("program", "entry", "results")

    def __init__(self, primitive, operands, params):
        def apply(*xs):
            out = primitive.bind(*xs, **dict(params))
            return out if primitive.multiple_results else [out]

        avals = [ShapedArray(shape, dtype) for shape, dtype in operands]
        closed, _ = trace_to_closed_jaxpr(apply, avals, DebugInfo("evaluation", primitive.name))
        self.results = [(a.shape, a.dtype) for a in closed.out_avals]
        self.program = program_of(closed, (), primitive.name)  # it owns the memory that the entry points to
        self.entry = self.program.entry

    def __call__(self, xs: tuple) -> list:
        outs = [buffers.empty(shape, dtype) for shape, dtype in self.results]
        run_entry(self.entry, xs, tuple(outs))
        return outs


@functools.lru_cache(maxsize=512)
def kernel(primitive, operands: tuple, params: tuple) -> Kernel:
    return Kernel(primitive, operands, params)


def in_pieces(primitive, xs, params):
    """The result of an elementwise ``primitive``; arrays of less than ``LEAST_PIECE`` elements are padded."""
    shapes = {x.shape for x in xs}
    shape = shapes.pop() if len(shapes) == 1 else broadcast_shapes(*shapes)
    flat = [_flat(x, shape) if x.ndim else x for x in xs]
    size, key, out = math.prod(shape), tuple(params.items()), None
    if size < LEAST_PIECE:
        padded = tuple([_padded(x) if x.ndim or not shape else x for x in flat])
        return kernel(primitive, tuple([(x.shape, x.dtype) for x in padded]), key)(padded)[0][:size].reshape(shape)
    whole = repeated_kernel(primitive, flat, params) if size >= LARGE else None
    if whole is not None:
        return whole(tuple(flat))[0].reshape(shape)
    for piece, starts in _pieces(size):
        found = kernel(primitive, tuple([((piece,) if x.ndim else (), x.dtype) for x in flat]), key)
        out = buffers.empty((size,), found.results[0][1]) if out is None else out
        for start in starts:
            stop = start + piece
            run_entry(found.entry, tuple([x[start:stop] if x.ndim else x for x in flat]), (out[start:stop],))
    return out.reshape(shape)


def _flat(x, shape: tuple):
    """The elements of ``x``, broadcast to ``shape``, one after another in memory."""
    if x.shape != shape:
        x = np.broadcast_to(x, shape)
    return (x if x.flags.c_contiguous else np.ascontiguousarray(x)).reshape(-1)


def _padded(x):
    out = np.zeros(LEAST_PIECE, x.dtype)
    out[: x.size] = x
    return out


def _pieces(size: int) -> list:
    """Pairs of a length of pieces and where they start. The last one overlaps the one before, to end at ``size``:
    computing some elements twice costs less than a program for every length.
    """
    if size >= LARGE_PIECE and (size % LARGE_PIECE == 0 or size % LARGE_PIECE > LARGE_PIECE // 4):
        return [(LARGE_PIECE, _starts(0, size, LARGE_PIECE))]
    whole = size // LARGE_PIECE * LARGE_PIECE
    piece = next(n for n in (SMALL_PIECE, SHORT_PIECE, LEAST_PIECE) if size >= n)
    small = [(piece, _starts(whole, size, piece))]
    return [(LARGE_PIECE, range(0, whole, LARGE_PIECE)), *small] if whole else small


def _starts(start: int, stop: int, piece: int) -> list:
    return [*range(start, stop - piece, piece), stop - piece]


# ------------------------------------------------------------------------------------------------------------
# Operations that are compiled for their shapes when they are repeated

LARGE = 1 << 16  # elements, from which on a program may be worth its compilation
REPEATS = 2  # evaluations by NumPy before that
FEW = 16  # operands: of more, a program takes long to compile
_KEPT = 4096
_seen: OrderedDict = OrderedDict()  # how often NumPy evaluated an operation on these types


def when_repeated(primitive, in_numpy, narrow: bool = False, least: int = LARGE):
    """``in_numpy``, but for large arrays of types that come up again and again a compiled program. On the hot path.

    ``narrow``: for small floats too, which not every operation accumulates alike in NumPy and compiled.
    """

    def evaluate(*xs, **params):
        first = xs[0]
        if first.size + xs[-1].size < least or (not narrow and first.dtype.kind == "V"):
            return in_numpy(*xs, **params)
        compiled = repeated_kernel(primitive, xs, params)
        if compiled is None:
            return in_numpy(*xs, **params)
        outs = compiled(xs)
        return outs if primitive.multiple_results else outs[0]

    return evaluate


def by_all_threads(primitive, in_numpy, least: int):
    """``in_numpy``, which one thread runs as quickly as a program, but for a few arrays that come again and again a
    program that all threads run, if the first and the last have ``least`` bytes. Strided ones it would copy first. On
    the hot path.
    """

    def evaluate(*xs, **params):
        if xs[0].nbytes + xs[-1].nbytes >= least and len(xs) <= FEW and all([x.flags.c_contiguous for x in xs]):
            compiled = repeated_kernel(primitive, xs, params)
            if compiled is not None:
                return compiled(xs)[0]
        return in_numpy(*xs, **params)

    return evaluate


def repeated_kernel(primitive, xs, params) -> Kernel | None:
    """The program for an operation on arrays of these types if it was evaluated often enough; counts it."""
    key = primitive, tuple([(x.shape, x.dtype) for x in xs]), tuple(params.items())
    return kernel(*key) if _is_repeated(key) else None


def _is_repeated(key) -> bool:
    """Whether an operation was evaluated ``REPEATS`` times before; counts it."""
    count = _seen.pop(key, 0)
    _seen[key] = count + 1
    if len(_seen) > _KEPT:
        _seen.popitem(last=False)
    return count >= REPEATS
