"""Eager draws: fused native kernels of fixed size, called piece by piece.

A sampler whose element ``i`` depends on element ``i`` of the random bits alone is compiled once for pieces of 65,536
and of 1,024 elements that start at any position; a draw of any shape is a few calls of these. So new shapes compile
nothing, results do not depend on how they are computed, and the first draw in a process is quick.

The small kernels of the package's own samplers are kept on disk whole (``compiler/native/stored.py``): another process
finds them by name, and neither traces nor compiles.

While such a kernel is traced there is a *window*, ``window.place``: the 64-bit position of the first element, and the
size. Inside it a sampler that asks for bits of its shape is given those of the window (``primitives.bits_of``).
"""

import functools
import inspect
import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from catena.core.array import Array, ExtendedArray, as_array, live, typed_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.dtypes import as_dtype
from catena.core.evaluate import check_may_run, check_value
from catena.core.jaxpr import ClosedJaxpr
from catena.core.lazy import LazyModule, has_compiler
from catena.core.placed import place_result
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.traceback import shorten
from catena.random import reuse
from catena.random.dtype import U32, generator_of, storage_dtype, stored
from catena.transform.execute import run_entry

compiler = LazyModule("catena.compiler.native.compile")
stored_programs = LazyModule("catena.compiler.native.stored")

LARGE, SMALL = 1 << 16, 1 << 10
WORD = ShapedArray((), U32)


class Window(threading.local):
    """``place`` as above; ``latest`` the plan of the latest draw of this thread, and its result."""

    place = None
    latest = None, None


window = Window()


class NotPositional(Exception):
    """A sampler under a window draws something other than one number for each element."""


def is_positional(generator) -> bool:
    """Whether the generator can start its stream anywhere, under the flags in force."""
    return generator.bits_at is not None and generator.counts()


class Kernel:
    """A compiled piece of a sampler, or the fact that there is none."""

    __slots__ = ("name", "native", "entry", "aval", "dtype", "generator")

    def __init__(self, fun, statics: dict, key_aval, avals: tuple, size: int):
        self.name, self.generator, self.native, self.entry = fun.__name__, generator_of(key_aval), None, None
        if not has_compiler():
            return
        stored_name = name_on_disk(fun, statics, key_aval, avals, size)
        found = stored_programs.find(stored_name) if stored_name else None
        if found is not None:
            executable, note = found
            keys = note["dtype"] == KEYS
            aval = ShapedArray((size,), key_aval.dtype if keys else as_dtype(note["dtype"]), note["weak_type"])
            self.adopt(executable.native, aval)
            return
        closed = traced_piece(fun, statics, key_aval, avals, size)
        if closed is None:
            return
        aval = closed.out_avals[0]
        executable = compiler.compile_jaxpr(closed, name=f"draw{fun.__name__}")
        self.adopt(executable.native, aval)
        if stored_name:
            dtype = KEYS if aval.extended else aval.dtype.name
            stored_programs.keep(stored_name, executable, {"dtype": dtype, "weak_type": aval.weak_type})

    def adopt(self, native, aval):
        """Take a program and the type of what it draws."""
        self.native, self.entry, self.aval = native, native.entry, aval
        self.dtype = storage_dtype(generator_of(aval).words) if aval.extended else aval.dtype


KEYS = "keys"  # in place of a dtype: those that were split


def traced_piece(fun, statics: dict, key_aval, avals: tuple, size: int) -> ClosedJaxpr | None:
    """A sampler on a piece, as a program; None where it does not draw one number for each element."""

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
        return None
    return ClosedJaxpr(jaxpr, consts) if jaxpr.outvars[0].aval.shape == (size,) else None


def name_on_disk(fun, statics: dict, key_aval, avals: tuple, size: int) -> str | None:
    """The name of a kernel in all processes; None where a part of it is not the package's own."""
    generator = generator_of(key_aval)
    own = fun.__module__.startswith("catena.random.") and "<locals>" not in fun.__qualname__
    if not own or generator.stable_name is None:
        return None
    maker = f"{fun.__module__}.{fun.__qualname__}"
    return stored_programs.name_of(maker, generator.name, statics, key_aval, avals, size)


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


class Plan:
    """How to draw one shape: the pieces, and the operands as the kernels take them.

    Operands that are arrays of the call are found again by ``places`` in those of another call.
    """

    __slots__ = ("shape", "size", "given", "values", "spread", "small", "large", "aval", "places")

    def __init__(self, fun, key_aval, shape: tuple, operands: tuple, statics: dict):
        arrays = [x if type(x) is Array else as_array(x) for x in operands]
        values = self.given = [live(x) for x in arrays]
        self.shape, self.size, self.places = shape, math.prod(shape), None
        self.spread = [bool(v.ndim) for v in values]
        self.values = self.as_taken(values)
        types = tuple((v.dtype, x.weak_type) for v, x in zip(values, arrays, strict=True))

        def kernel(size: int) -> Kernel:
            return kernel_of(fun, statics, key_aval, piece_avals(types, self.spread, size), size)

        self.small = kernel(SMALL)
        self.large = kernel(LARGE) if self.small.entry is not None and self.size >= LARGE else None
        if self.small.entry is not None:
            self.aval = self.small.aval.update(shape=shape)

    def as_taken(self, values: list) -> list:
        """Operands as the kernels take them."""
        return [spread_out(v, self.shape) if s else v for v, s in zip(values, self.spread, strict=True)]

    def is_of(self, arrays: list) -> bool:
        """Whether a call with other arrays of these types is the same draw, of these: each is an operand as it is, and
        no operand is anything else. Without arrays, operands are what they were.
        """
        given, self.given = self.given, []
        if not arrays:
            return not any(self.spread)
        known = {id(x._value): i for i, x in enumerate(arrays)}
        self.places = [known.get(id(value), -1) for value in given]
        self.values = []  # which are the first call's alone
        return sorted(self.places) == [*range(len(arrays))]

    def run(self, storage, arrays: list | tuple = ()):
        """The draw from a key, given by its storage, and the arrays of the call, if it is known by their types."""
        values = self.as_taken([live(arrays[i]) for i in self.places]) if arrays else self.values
        if context.debug_checks:
            return self.run_checked(storage, values)
        return self.compute(storage, values)

    def run_checked(self, storage, values: list):
        """A draw under the flags that forbid NaNs, infinities or running at all."""
        name = self.small.name.strip("_")
        check_may_run(name)
        out = self.compute(storage, values)
        check_value(name, out._value)
        return place_result(out, context.default_placement, ())

    def compute(self, storage, values: list):
        if self.size <= SMALL and not any(self.spread):
            out = np.empty(SMALL, self.small.dtype)
            run_entry(self.small.entry, (storage, ZERO, ZERO, *values), (out,))
            return typed_array(out[: self.size].reshape(self.shape), self.aval)
        out = np.empty(self.size, self.small.dtype)
        self.fill(out, storage, values)
        return typed_array(out.reshape(self.shape), self.aval)

    def fill(self, out, storage, values: list):
        """As many large pieces as fit, then small ones, the last through a spare piece."""
        start = 0
        for kernel, length in ((self.large, LARGE), (self.small, SMALL)):
            while self.size - start >= length:
                call(kernel, storage, start, self.pieces(values, start, length), out[start : start + length])
                start += length
        if start < self.size:
            rest = np.empty(SMALL, out.dtype)
            pieces = [pad(v[start:]) if s else v for v, s in zip(values, self.spread, strict=True)]
            call(self.small, storage, start, pieces, rest)
            out[start:] = rest[: self.size - start]

    def pieces(self, values: list, start: int, length: int) -> list:
        return [v[start : start + length] if s else v for v, s in zip(values, self.spread, strict=True)]


ZERO = np.zeros((), U32)


def draw(fun, key, shape: tuple, operands: tuple, statics: dict):
    """A sampler's result, piece by piece, or None where that cannot be.

    Arguments:
      fun: ``fun(key, *operands, shape=, **statics)``; called under a window.
      key: one typed key.
      shape: the shape of the result.
      operands: scalars, or arrays that broadcast to ``shape``.
      statics: what is fixed at compile time.
    """
    if key.ndim or not is_positional(generator_of(key)):
        return None
    plan = Plan(fun, key.aval, shape, operands, statics)
    if plan.small.entry is None:
        return None
    out = plan.run(live(key))
    window.latest = plan, out
    return out


def spread_out(value, shape: tuple):
    """An operand broadcast to the shape of the result, flat."""
    return np.ascontiguousarray(value if value.shape == shape else np.broadcast_to(value, shape)).reshape(-1)


def piece_avals(types: tuple, spread: list, size: int) -> tuple:
    return tuple(ShapedArray((size,) if s else (), d, w) for (d, w), s in zip(types, spread, strict=True))


def pad(value):
    """The last elements of an operand, and any more to make a piece."""
    piece = np.empty(SMALL, value.dtype)
    piece[: len(value)], piece[len(value) :] = value, value[0]
    return piece


def call(kernel: Kernel, storage, start: int, pieces: list, out):
    """Run a kernel from a position on."""
    high, low = (np.array(start >> 32, U32), np.array(start & 0xFFFFFFFF, U32)) if start else (ZERO, ZERO)
    run_entry(kernel.entry, (storage, high, low, *pieces), (out,))


def one_key(fun, key, position: int):
    """The key at one position of a key's stream."""
    kernel = kernel_of(fun, {}, key.aval, (), 1)
    out = np.empty(1, kernel.dtype)
    call(kernel, live(key), position, [], out)
    return typed_array(out.reshape(()), key.aval)


# ---- draws that were made before

Fun = TypeVar("Fun", bound=Callable[..., Any])
_plans: dict = {}


def remembered(function: Fun) -> Fun:
    """Let a sampler's public function remember the plan of each call with static arguments, or with arrays of the same
    types that are operands as they are: then it costs 3 us.
    """

    @functools.wraps(function)
    def sampler(key, *args, **kwargs):
        try:
            watch = context.debug_key_reuse
            if context.trace is not None or watch is True or type(key) not in (ExtendedArray, Array):
                return function(key, *args, **kwargs)
            if type(key) is Array and context.legacy_prng_key != "allow":
                return function(key, *args, **kwargs)
            types = [type(x) if type(x) is not tuple else tuple(map(type, x)) for x in (*args, *kwargs.values())]
            signature = (function, args, *kwargs.items(), *types, key.aval, context.global_key, context.local_key)
            arrays: list = []
            try:
                plan = _plans.get(signature)
            except TypeError:  # an array among the arguments
                arrays = [x for x in (*args, *kwargs.values()) if type(x) is Array]
                signature = (function, *by_types(args), *kwargs, *by_types(kwargs.values()), *types, *signature[-3:])
                try:
                    plan = _plans.get(signature)
                except TypeError:
                    return function(key, *args, **kwargs)
            if plan is not None:
                if watch and type(key) is ExtendedArray:
                    reuse.note(key, function.__name__)
                return plan.run(storage_of(key, plan), arrays)
            window.latest = None, None
            out = function(key, *args, **kwargs)
            plan, made = window.latest
            if made is out and plan.is_of(arrays):
                if len(_plans) >= _LIMIT:
                    _plans.clear()
                _plans[signature] = plan
            window.latest = None, None
            return out
        except Exception as error:
            if isinstance(error, TypeError):  # often what belongs to a later parameter
                error.add_note(f"The parameters are {function.__name__}{plain_signature(function)}.")
            shorten(error)
            raise

    return sampler


def by_types(values) -> list:
    """Arguments, arrays by their types."""
    return [x.aval if type(x) is Array else x for x in values]


def plain_signature(function) -> inspect.Signature:
    """A signature without annotations."""
    signature = inspect.signature(function)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


def storage_of(key, plan: Plan):
    """The storage of a key, typed or raw."""
    value = live(key)
    return value if type(key) is ExtendedArray else stored(value, plan.small.generator)
