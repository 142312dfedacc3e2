"""Eager evaluation by compiled code, where ``policy.py`` gives it an operation: loops and programs.

A loop is made once for a primitive, its dtypes and parameters. A program is compiled for shapes; an elementwise
operation on a large array of a new shape runs in pieces, by a program of a fixed size.
"""

import functools
import math
from collections import OrderedDict

import numpy as np

from catena.core import casts, dtypes
from catena.core.aval import ShapedArray
from catena.core.lazy import LazyModule, has_compiler
from catena.core.shapes import broadcast_shapes
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.lax.policy import COMPLEXES, FEW, LARGE, LIBRARY, NONE, PIECE, REPEATS, SHAPED, SHARED, Elementwise
from catena.runtime import buffers
from catena.transform import interpreted
from catena.transform.execute import program_of, run_entry

compiled_loops = LazyModule("catena.compiler.native.elementwise")

# ------------------------------------------------------------------------------------------------------------
# Loops


class Loops(dict):
    """NumPy ufuncs of our own for an elementwise function, made when asked for. The key is the dtype of the operands;
    where they have several, or there are parameters, a tuple of dtypes and the tuple of the parameters' items. Where
    there is no compiler, ``in_numpy`` stands for them.
    """

    __slots__ = ("name", "apply", "arity", "in_numpy")

    def __init__(self, name: str, apply, arity: int = 1, in_numpy=None):
        self.name, self.apply, self.arity, self.in_numpy = name, apply, arity, in_numpy

    def __missing__(self, key):
        operands, params = key if type(key) is tuple else ((key,) * self.arity, ())
        if not has_compiler():
            self[key] = made = functools.partial(self._evaluated, operands, dict(params))
            return made
        jaxpr_of = functools.partial(self._jaxpr, operands, params)
        self[key] = made = compiled_loops.ufunc(self.name, jaxpr_of, operands, params)
        return made

    def _evaluated(self, operands, params: dict, *xs, out=...):
        values = [np.asarray(x, dtype) for x, dtype in zip(xs, operands, strict=True)]
        return np.asarray(self.in_numpy(*values, **params))

    def _jaxpr(self, operands, params, length: int):
        avals = [ShapedArray((length,), dtype) for dtype in operands]
        apply = lambda *xs: [self.apply(*xs, **dict(params))]
        return trace_to_closed_jaxpr(apply, avals, DebugInfo("evaluation", self.name))[0]


LOOPS: dict[str, Loops] = {}  # by the name of the primitive


def elementwise(primitive, in_numpy, row: Elementwise, wider: dict, of_complex=None):
    """The evaluation of an elementwise primitive: ``in_numpy``, but for dtypes that ``row`` gives to others, and for
    those that are computed in ``wider`` ones. Where there is no compiler, ``of_complex`` serves complex numbers. On the
    hot path.
    """
    interpreted.formulas[primitive] = in_numpy, wider.keys() | (COMPLEXES if of_complex else NONE)

    def widened(*xs, **params):
        dtype = xs[0].dtype
        if dtype not in wider:
            return (of_complex if of_complex and dtype in COMPLEXES else in_numpy)(*xs, **params)
        out = np.asarray(evaluate(*[x.astype(wider[dtype]) for x in xs], **params))
        return casts.convert(out, dtype) if out.dtype == wider[dtype] else out

    if not has_compiler():
        loops = LOOPS[primitive.name] = Loops(primitive.name, primitive.bind, row.arity, widened)
        if isinstance(in_numpy, np.ufunc):
            loops.update(dict.fromkeys(row.loop - interpreted.formulas[primitive][1], in_numpy))
        evaluate = widened
        return evaluate
    special, compiled = row.loop | wider.keys(), by_loop(primitive, in_numpy, row.arity)
    by_all_threads = shared(primitive, in_numpy, SHARED)

    def evaluate(*xs, **params):
        first = xs[0]
        if first.dtype in special:
            return (compiled if first.dtype in row.loop else widened)(*xs, **params)
        if first.nbytes + xs[-1].nbytes >= SHARED and first.dtype in row.shared:
            return by_all_threads(*xs, **params)
        return in_numpy(*xs, **params)

    return evaluate


def by_loop(primitive, in_numpy, arity: int = 1):
    """The evaluation of an elementwise primitive by loops, and by programs of large arrays; ``in_numpy`` where there is
    no compiler. On the hot path.
    """
    loops = LOOPS[primitive.name] = Loops(primitive.name, primitive.bind, arity, in_numpy)

    def evaluate(*xs, **params):
        if any([x.size >= LARGE for x in xs]):
            done = _by_programs(primitive, xs, params)
            if done is not None:
                return done
        key = xs[0].dtype
        if params or len(xs) != arity or any([x.dtype is not key for x in xs]):
            key = tuple([x.dtype for x in xs]), tuple(params.items())
        return loops[key](*xs, out=...)

    return evaluate


# ------------------------------------------------------------------------------------------------------------
# Programs


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
        self.program = program_of(
            closed, (), primitive.name, checked=False
        )  # it owns the memory that the entry points to
        self.entry = self.program.entry

    def __call__(self, xs: tuple) -> list:
        outs = [buffers.empty(shape, dtype) for shape, dtype in self.results]
        run_entry(self.entry, xs, tuple(outs))
        return outs


@functools.lru_cache(maxsize=512)
def kernel(primitive, operands: tuple, params: tuple) -> Kernel:
    return Kernel(primitive, operands, params)


def _by_programs(primitive, xs, params):
    """The result of an elementwise primitive on large arrays, by a program for their shapes if these come again, else
    in pieces; None where a loop is quicker. All three give the same bits.
    """
    shapes = {x.shape for x in xs}
    shape = shapes.pop() if len(shapes) == 1 else broadcast_shapes(*shapes)
    size = math.prod(shape)
    again = _is_repeated((primitive, shape, *[x.dtype for x in xs], *params.items()))
    if (not again and size < PIECE) or not has_compiler():
        return None
    flat = tuple([_flat(x, shape) if x.ndim else x for x in xs])
    piece = size if again else PIECE
    found = kernel(primitive, tuple([((piece,) if x.ndim else (), x.dtype) for x in flat]), tuple(params.items()))
    out = buffers.empty((size,), found.results[0][1])
    for start in (*range(0, size - piece, piece), size - piece):  # the last piece ends where the arrays do
        stop = start + piece
        run_entry(found.entry, tuple([x[start:stop] if x.ndim else x for x in flat]), (out[start:stop],))
    return out.reshape(shape)


def _flat(x, shape: tuple):
    """The elements of ``x``, broadcast to ``shape``, one after another in memory."""
    if x.shape != shape:
        x = np.broadcast_to(x, shape)
    return (x if x.flags.c_contiguous else np.ascontiguousarray(x)).reshape(-1)


def shaped(primitive, in_numpy, row=None):
    """The evaluation of a primitive that is compiled for its shapes, by its row in the table: small operands
    ``in_numpy``, others by a program. Where both give the same bits, NumPy also computes what comes for the first time.
    On the hot path.
    """
    exact, narrow, least, longest = row or SHAPED[primitive.name]

    def evaluate(*xs, **params):
        first = xs[0]
        if first.size + xs[-1].size < least or (not narrow and first.dtype.kind == "V") or not has_compiler():
            return in_numpy(*xs, **params)
        key = primitive, tuple([(x.shape, x.dtype) for x in xs]), tuple(params.items())
        same = exact and first.dtype.kind != "c" or _is_exact(xs, params)  # complex numbers may have several NaNs
        if same and first.size < longest and not _is_repeated(key):
            return in_numpy(*xs, **params)
        outs = kernel(*key)(xs)
        return outs if primitive.multiple_results else outs[0]

    return evaluate


def library(primitive, in_numpy):
    """As ``shaped``, for LAPACK's functions."""
    return shaped(primitive, in_numpy, LIBRARY)


def _is_exact(xs, params) -> bool:
    """Whether all numbers are integers or booleans, operands and those of a dtype that is a parameter."""
    asked = [v for v in params.values() if isinstance(v, np.dtype)]
    return all([dtypes.KIND.get(d) in ("b", "i", "u") for d in (*[x.dtype for x in xs], *asked)])


def shared(primitive, in_numpy, least: int):
    """``in_numpy``, which one thread runs as quickly as a program and to the same bits, but for a few arrays that come
    again and again a program that all threads run, if the first and the last have ``least`` bytes. Strided ones it
    would copy first. On the hot path.
    """

    def evaluate(*xs, **params):
        if xs[0].nbytes + xs[-1].nbytes >= least and len(xs) <= FEW and all([x.flags.c_contiguous for x in xs]):
            compiled = repeated_kernel(primitive, xs, params)
            if compiled is not None:
                return compiled(xs)[0]
        return in_numpy(*xs, **params)

    return evaluate


_KEPT = 4096
_seen: OrderedDict = OrderedDict()  # how often an operation was evaluated on these types


def repeated_kernel(primitive, xs, params) -> Kernel | None:
    """The program for an operation on arrays of these types if it was evaluated often enough; counts it."""
    key = primitive, tuple([(x.shape, x.dtype) for x in xs]), tuple(params.items())
    return kernel(*key) if has_compiler() and _is_repeated(key) else None


def _is_repeated(key) -> bool:
    """Whether an operation was evaluated ``REPEATS`` times before; counts it."""
    count = _seen.pop(key, 0)
    _seen[key] = count + 1
    if len(_seen) > _KEPT:
        _seen.popitem(last=False)
    return count >= REPEATS
