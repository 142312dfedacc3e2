"""Eager draws: fused native kernels of fixed size, called piece by piece.

A sampler whose element ``i`` depends on element ``i`` of the random bits alone is compiled once for pieces of
65,536 and of 1,024 elements that start at any position; a draw of any shape is a few calls of these. So new
shapes compile
nothing, results do not depend on how they are computed, and the first draw in a process is quick.

While such a kernel is traced there is a *window*, ``window.place``: the 64-bit position of the first element,
and the size.
Inside it a sampler that asks for bits of its shape is given those of the window (``primitives.bits_of``).
"""

import threading

import numpy as np

from catena.core.array import Array, as_array, live, typed_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.random.dtype import STORAGE, U32, generator_of
from catena.runtime.lazy import compiler
from catena.transform.execute import run_entry

LARGE, SMALL = 1 << 16, 1 << 10
WORD = ShapedArray((), U32)


class Window(threading.local):
    place = None


window = Window()


class NotPositional(Exception):
    """A sampler under a window draws something other than one number for each element."""


def is_positional(generator) -> bool:
    """Whether the generator can start its stream anywhere, under the flags in force."""
    return generator.bits_at is not None and generator.counts()


class Kernel:
    """A compiled piece of a sampler, or the fact that there is none."""

    __slots__ = ("executable", "entry", "aval", "dtype")

    def __init__(self, fun, statics: dict, key_aval, avals: tuple, size: int):
        def piece(key, high, low, *operands):
            window.place = (high, low, size)
            try:
                return [fun(key, *operands, shape=(size,), **statics)]
            finally:
                window.place = None

        info = DebugInfo("an eager draw", fun.__name__)
        try:
            jaxpr, consts = trace_to_jaxpr(piece, [key_aval, WORD, WORD, *avals], info)
        except NotPositional:
            self.entry = None
            return
        self.aval = jaxpr.outvars[0].aval
        if self.aval.shape != (size,):
            self.entry = None
            return
        self.dtype = STORAGE[generator_of(self.aval).words] if self.aval.extended else self.aval.dtype
        self.executable = compiler.compile_jaxpr(ClosedJaxpr(jaxpr, consts), name=f"draw{fun.__name__}")
        self.entry = self.executable.entry


_kernels: dict = {}
_LIMIT = 1024


def kernel_of(fun, statics: dict, key_aval, avals: tuple, size: int) -> Kernel:
    signature = (fun, tuple(statics.items()), key_aval, avals, size, context.global_key, context.local_key)
    found = _kernels.get(signature)
    if found is None:
        if len(_kernels) >= _LIMIT:
            _kernels.clear()
        found = _kernels[signature] = Kernel(fun, statics, key_aval, avals, size)
    return found


def draw(fun, key, shape: tuple, operands: tuple, statics: dict):
    """A sampler's result, piece by piece, or None where that cannot be.

    Arguments:
      fun: ``fun(key, *operands, shape=, **statics)``; called under a window.
      key: one typed key of a positional generator.
      shape: the shape of the result.
      operands: scalars, or arrays that broadcast to ``shape``.
      statics: what is fixed at compile time.
    """
    if key.ndim or not is_positional(generator_of(key)):
        return None
    size = 1
    for n in shape:
        size *= n
    arrays = [x if type(x) is Array else as_array(x) for x in operands]
    values = [live(x) for x in arrays]
    spread = [bool(v.ndim) for v in values]
    values = [spread_out(v, shape) if s else v for v, s in zip(values, spread, strict=True)]
    types = tuple((v.dtype, x.weak_type) for v, x in zip(values, arrays, strict=True))
    small = kernel_of(fun, statics, key.aval, piece_avals(types, spread, SMALL), SMALL)
    if small.entry is None:
        return None
    out = np.empty(size, small.dtype)
    fill(
        out,
        live(key),
        values,
        spread,
        small,
        lambda: kernel_of(fun, statics, key.aval, piece_avals(types, spread, LARGE), LARGE),
    )
    return typed_array(out.reshape(shape), small.aval.update(shape=shape))


def spread_out(value, shape: tuple):
    return np.ascontiguousarray(np.broadcast_to(value, shape)).reshape(-1)


def piece_avals(types: tuple, spread: list, size: int) -> tuple:
    return tuple(ShapedArray((size,) if s else (), d, w) for (d, w), s in zip(types, spread, strict=True))


def fill(out, key, values: list, spread: list, small: Kernel, large):
    """Write a draw: as many large pieces as fit, then small ones, the last through a spare piece."""
    start, size = 0, len(out)
    if size >= LARGE:
        kernel = large()
        while size - start >= LARGE:
            call(kernel, key, start, values, spread, LARGE, out[start : start + LARGE])
            start += LARGE
    while size - start >= SMALL:
        call(small, key, start, values, spread, SMALL, out[start : start + SMALL])
        start += SMALL
    if start < size:
        rest = np.empty(SMALL, out.dtype)
        padded = [pad(v[start:]) if s else v for v, s in zip(values, spread, strict=True)]
        call(small, key, start, padded, [False] * len(padded), SMALL, rest)
        out[start:] = rest[: size - start]


def pad(value):
    """The last elements of an operand, and any more to make a piece."""
    return np.concatenate([value, np.broadcast_to(value[:1], (SMALL - len(value),))])


def call(kernel: Kernel, key, start: int, values: list, spread: list, size: int, out):
    pieces = [v[start : start + size] if s else v for v, s in zip(values, spread, strict=True)]
    high, low = np.array(start >> 32, U32), np.array(start & 0xFFFFFFFF, U32)
    run_entry(kernel.entry, (key, high, low, *pieces), (out,))


def one_key(fun, key, position: int):
    """The key at one position of a key's stream."""
    kernel = kernel_of(fun, {}, key.aval, (), 1)
    out = np.empty(1, kernel.dtype)
    call(kernel, live(key), position, [], [], 1, out)
    return typed_array(out.reshape(()), key.aval)
