"""Functions of several operations that are evaluated as one program: the rows of ``WHOLE`` in ``policy.py``.

Evaluated operation by operation, a function costs a call for each, and a pass over memory; as a program, one of each.
A call is known by the types of its arrays and the values of all else: what was seen is a look-up and the native entry.
NumPy's arrays are arrays like others, and so are arrays that were put on a device, where the results then are, and
objects that convert themselves. Traced values, and whatever is refused, go the function's own way, which
says what is wrong.
"""

import enum
import functools
import sys
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from catena.core.array import Array, as_array
from catena.core.context import context
from catena.core.dtypes import ALL, KIND, ScalarType, as_dtype, canonical
from catena.core.job import job
from catena.core.lazy import has_compiler
from catena.core.placed import PlacedArray
from catena.core.staging import DebugInfo, hoist_tracers, trace_to_jaxpr
from catena.core.tree import tree_flatten
from catena.lax.policy import REPEATS, WHOLE
from catena.transform.execute import program_of, run_program
from catena.transform.hot_path import how_to_run, run_fast
from catena.transform.jit import TracedCall
from catena.transform.memo import all_caches
from catena.transform.readable import readable_array

Fun = TypeVar("Fun", bound=Callable[..., Any])

NEVER = -1  # instead of how often a call came: it is evaluated step by step
_KNOWN = 2048  # calls that are known of one function
_ALIKE = 32  # programs of one function, of those that wait, for calls that differ in numbers alone, as in loops
_LONGEST = 16  # items of a tuple or a list that a call is known by
_PLAIN = frozenset((type(None), bool, int, str, type(...)))
_INEXACT = frozenset((float, complex))  # whose zeros have signs
_NUMPY_INEXACT = frozenset(dtype.type for dtype in ALL if KIND[dtype] in "fc")
_STATIC = _PLAIN - {str} | {slice} | _INEXACT
_NUMBERS = frozenset((int, float, bytes))  # as they stand in keys: those of NumPy by their bytes
_KNOWN_BOUNDS = frozenset((type(None), int))  # of slices
_NAMES = {dtype.name: dtype for dtype in ALL}
_DTYPES = ("float", "int", "uint", "complex", "bool", "bfloat")  # what text that names a dtype begins with


class Calls(dict):
    """The calls of one function, by types and values of arguments: how to run it, how often it came, or ``NEVER``."""

    __slots__ = ("__weakref__", "alike")
    __hash__ = object.__hash__

    def __init__(self):
        self.alike: dict = {}

    def clear_cache(self):
        self.clear()
        self.alike.clear()

    def are_many(self, key: tuple) -> bool:
        """Whether many calls that differ in numbers alone have programs; counts them."""
        kind = tuple([int if type(x) in _NUMBERS else x for x in key])
        self.alike[kind] = count = self.alike.get(kind, 0) + 1
        return count > _ALIKE


def whole(fun: Fun, name: str = "") -> Fun:
    """``fun``, evaluated as one program, by its row in the table: that of its name, or of its family's."""
    row, calls = WHOLE[name or fun.__name__.strip("_")], Calls()
    all_caches.add(calls)

    @functools.wraps(fun)
    def evaluate(*args, **kwargs):
        if context.trace is not None or context.debug_checks:
            return fun(*args, **kwargs)
        arrays: list = []
        try:
            given = _known_by((*args, *kwargs.items()), arrays, row.fixed, readable_array)
            key = (context.global_key, context.local_key, len(args), *given)
            known = calls.get(key)
        except (TypeError, ValueError, OverflowError):  # what cannot be hashed, and arrays that are none here
            key = None
        if key is None:  # not where that is handled: what the function raises is no consequence of it
            return fun(*args, **kwargs)
        if type(known) is tuple:
            return _run(known, row, arrays, args, kwargs)
        if known is None:
            if len(calls) >= _KNOWN:
                calls.clear_cache()
            known = 0 if _may_be_one(row, arrays, args, kwargs) else NEVER
        if known is NEVER or (row.exact and known < REPEATS):
            calls[key] = known if known is NEVER else known + 1
            return fun(*args, **kwargs)
        if row.fixed and calls.are_many(key):
            calls[key] = NEVER
            return fun(*args, **kwargs)
        try:
            known = calls[key] = _compiled(fun, row, arrays, args, kwargs)
        except Exception:  # the function says what is wrong, if anything is but that it looks at values, or warns
            known = calls[key] = NEVER
        return fun(*args, **kwargs) if known is NEVER else _run(known, row, arrays, args, kwargs)

    return evaluate


def _run(known: tuple, row, arrays: list, args, kwargs):
    """Runs what is known of a call. Where an argument may be a result, that must not share the memory of NumPy's."""
    if known[1] is None:
        arrays = []
        _known_by((*args, *kwargs.items()), arrays, row.fixed, as_array)
    return run_fast(known, arrays)


def _known_by(values, arrays: list, static: bool, read: Callable) -> list:
    """What arguments are known by: types of arrays, which are collected, types and values of the rest. Hot.

    Floats and complex numbers, NumPy's too, are values where they are ``static``, and arrays elsewhere; ``read`` makes
    NumPy's arrays ours.
    """
    key: list = []
    for x in values:
        kind = type(x)
        if kind is Array:
            arrays.append(x)
            if x._aval is None and type(x._value) is np.ndarray:
                x.aval  # noqa: B018  (noted from then on)
            key.append(x._aval)
        elif kind in _PLAIN:
            key += kind, x
        elif kind is np.ndarray:
            arrays.append(read(x))
            key.append(arrays[-1].aval)
        elif kind is tuple or kind is list:
            if len(x) > _LONGEST:
                raise TypeError("too long to look at each time")
            key += kind, len(x), *_known_by(x, arrays, static, read)
        elif kind in _INEXACT and not static:
            arrays.append(as_array(x))
            key.append(kind)
        elif kind in _INEXACT:
            key += kind, x.real or repr(x.real), x.imag or repr(x.imag)
        elif kind in _NUMPY_INEXACT and not static:
            arrays.append(as_array(x))
            key.append(arrays[-1].aval)
        elif kind in _NUMPY_INEXACT:
            key += kind, x.tobytes()
        elif kind is slice and _KNOWN_BOUNDS.issuperset(map(type, bounds := (x.start, x.stop, x.step))):
            key += kind, *bounds
        elif kind is PlacedArray and (found := x._aval) is not None and _is_on_a_device(found):
            arrays.append(x)
            key.append(found)
        elif kind is FunctionType and not _is_ours(x):
            raise TypeError("a function of the user's, which may do another thing each time")
        elif _converts_itself(kind):
            key += kind, *_known_by((x.__jax_array__(),), arrays, static, read)
        else:
            key += kind, x
    return key


def _is_on_a_device(found) -> bool:
    """Whether an array of this type and place is on one device, on which its user put it."""
    placement = found.placement
    return placement.committed and placement.layout is None and found.aval.plain and not job.shared


def _converts_itself(kind: type) -> bool:
    """Whether objects of a class are arrays once asked, and no function is to ask the class first."""
    return (
        hasattr(kind, "__jax_array__") and not hasattr(kind, "__jax_function__") and not hasattr(kind, "__jax_wrap__")
    )


def _may_be_one(row, arrays: list, args, kwargs) -> bool:
    """Whether a call may be one program: since all but arrays are values that mean one thing."""
    if context.disable_jit or context.axis_env or not has_compiler():
        return False
    values = [x._value for x in arrays]
    if any(type(x) is not np.ndarray or x.dtype not in KIND for x in values):
        return False
    if not row.of_numbers and not any(x.ndim for x in values):
        return False
    return all(map(_means_one_thing, (*args, *kwargs.values())))


def _means_one_thing(x) -> bool:
    """Whether what equals ``x``, and has its type, is as good as it. What names of dtypes mean hangs on more."""
    kind = type(x)
    if kind is tuple or kind is list:
        return all(map(_means_one_thing, x))
    if kind is str:
        dtype = _NAMES.get(x)
        return not x.startswith(_DTYPES) if dtype is None else canonical(dtype) == dtype
    if isinstance(x, np.dtype | ScalarType):
        dtype = as_dtype(x)
        return dtype in KIND and canonical(dtype) == dtype
    return kind in _STATIC or _is_array(kind, False) or isinstance(x, enum.Enum) or _is_ours(x)


def _is_array(kind: type, static: bool) -> bool:
    """Whether arguments of this class are operands of the program; inexact numbers unless they are ``static``."""
    if kind in _INEXACT or kind in _NUMPY_INEXACT:
        return not static
    return kind is Array or kind is np.ndarray or kind is PlacedArray or _converts_itself(kind)


def _is_ours(x) -> bool:
    """Whether this is a function of the package, which does not change."""
    module = getattr(x, "__module__", None)
    return type(module) is str and module.startswith("catena.") and callable(x) and _named(module, x) is x


def _named(module: str, x):
    return getattr(sys.modules.get(module), getattr(x, "__name__", ""), None)


def _compiled(fun, row, arrays: list, args, kwargs) -> tuple:
    """How to run the program of ``fun`` for arguments of these types and values."""

    def apply(*leaves):
        given = iter(leaves)
        positional, named = _with(args, given, row.fixed), _with(kwargs.values(), given, row.fixed)
        out = fun(*positional, **dict(zip(kwargs, named, strict=True)))
        outs, found["tree"] = tree_flatten(out)
        return outs

    found: dict = {}
    avals = [x.aval for x in arrays]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        closed, outer = hoist_tracers(*trace_to_jaxpr(apply, avals, DebugInfo("evaluation", fun.__name__)))
    if said:
        raise UserWarning("what is said at each call would be said once")
    call = TracedCall(closed, found["tree"], outer, (False,) * len(avals))
    program = program_of(closed, (), fun.__name__, checked=False)
    if not any(type(x) is PlacedArray for x in arrays):
        return how_to_run(program, call, False)
    return how_to_run(program, call, True, run_program(program, arrays, closed.out_avals))


def _with(values, given, static: bool) -> list:
    """Arguments with what is given in the place of arrays, in containers too."""
    out: list = []
    for x in values:
        kind = type(x)
        if kind is tuple or kind is list:
            out.append(kind(_with(x, given, static)))
        else:
            out.append(next(given) if _is_array(kind, static) else x)
    return out
