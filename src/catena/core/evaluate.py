"""Evaluation of primitives on concrete arrays, and type inference with its cache.

This is the path of every eager operation that has no shortcut of its own: keep it short.
"""

import contextvars
import threading
from typing import Any

import numpy as np

from catena.core import dtypes
from catena.core.array import Array, as_array, typed_array
from catena.core.aval import AbstractRef, ShapedArray, abstract_token
from catena.core.context import context
from catena.core.errors import UnexpectedTracerError
from catena.core.factors import AS_CALLED, rule_of, split_results
from catena.core.lazy import LazyModule, load
from catena.core.manual_axes import ManualAxisType
from catena.core.placed import layout_of, place, place_result, results_placement, unplaced
from catena.core.ref import use_of_reference
from catena.core.source import user_source
from catena.core.usual import without_usual

propagation: Any = LazyModule("catena.core.propagation")  # for arrays on meshes
terms: Any = LazyModule("catena.core.terms")
value_checks: Any = LazyModule("catena.core.value_checks")


class _Quiet(threading.local):
    """A context of this thread in which NumPy does not warn about floating-point results.

    ``run`` costs 20 ns; ``np.errstate`` costs a microsecond.
    """

    def __init__(self):
        quiet = contextvars.copy_context()
        quiet.run(np.seterr, all="ignore")
        self.run = quiet.run


quiet = _Quiet()

watch_keys = None  # what checks the use of random keys in eager code; set by catena.random

abstract_cache: dict = {}
_CACHE_LIMIT = 1 << 16


def abstract_eval(primitive, avals: tuple, params: dict):
    """The type(s) of a primitive's result; cached, since programs ask the same question again and again.

    Not so those of primitives that call jaxprs and functions: the cache, which is everybody's, would keep alive what
    these close over.
    """
    if context.has_terms and rule_of(primitive) is not AS_CALLED and any(map(terms.has_terms, avals)):
        return types_with_terms(primitive, avals, params)
    if context.laid_out and any([a.said_sharding is not None for a in avals]):
        return types_of_split(primitive, avals, params)
    if primitive.takes_arrays or primitive.takes_tokens:
        found = _checked_types(primitive, avals, params)
        return tuple(found) if primitive.multiple_results else found
    key = (primitive, avals, tuple(params.items()) if params else ())
    try:
        found = abstract_cache.get(key)
    except TypeError:  # a parameter that cannot be hashed
        return _checked_types(primitive, avals, params)
    if found is None:
        found = _checked_types(primitive, avals, params)
        if primitive.multiple_results:
            found = tuple(found)
        if len(abstract_cache) >= _CACHE_LIMIT:
            abstract_cache.clear()
        abstract_cache[key] = found
    return found


def types_with_terms(primitive, avals: tuple, params: dict):
    """The types of results where those of operands say that sums are still to be taken, or were."""
    kept = terms.terms_of_results(primitive, avals, params)
    outs = abstract_eval(primitive, tuple(map(terms.without_terms, avals)), params)
    mesh = terms.mesh_of(avals)
    if not primitive.multiple_results:
        return terms.with_terms(outs, kept, mesh)
    each = kept if type(kept) is list else [kept] * len(outs)
    return tuple([terms.with_terms(a, t, mesh) for a, t in zip(outs, each, strict=True)])


def types_of_split(primitive, avals: tuple, params: dict):
    """The types of results where those of operands say how they are split."""
    if rule_of(primitive) is AS_CALLED:
        found = _checked_types(primitive, avals, params)
        return tuple(found) if primitive.multiple_results else found
    key: tuple | None = (primitive, avals, tuple(params.items()))
    try:
        found = abstract_cache.get(key)
    except TypeError:  # a parameter that cannot be hashed
        found, key = None, None
    if found is None:
        outs = abstract_eval(primitive, tuple([a.unsplit() if a.said_sharding else a for a in avals]), params)
        typed, certain = split_results(primitive, avals, outs if primitive.multiple_results else (outs,), params)
        found = tuple(typed) if primitive.multiple_results else typed[0]
        if certain and key is not None:
            abstract_cache[key] = found
    return found


def is_defined(primitive) -> bool:
    """Whether a primitive that was only declared has its rules; the module that defines it is loaded."""
    if primitive.abstract is None and primitive.home is not None:
        load(primitive.home)
    return primitive.abstract is not None


_NOTE = "In the operation "


def _checked_types(primitive, avals: tuple, params: dict):
    """What the ``abstract`` rule says; what it raises notes the operation, its operands and parameters."""
    try:
        if primitive.abstract is None and not is_defined(primitive):
            raise NotImplementedError(f"the primitive {primitive} is declared and not defined")
        if primitive.varying or not all([type(a) is ShapedArray and a.plain for a in avals]):
            check_kinds(primitive, avals)
            if primitive.varying or any(map(varying_axes, avals)):
                return types_that_vary(primitive, avals, params)
        return primitive.abstract(*avals, **params)
    except (TypeError, ValueError, IndexError) as error:
        if not any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
            shown = [f"{k}={v!r}" for k, v in params.items() if v and type(v) is tuple]
            error.add_note(f"{_NOTE}{primitive}({', '.join([*(a.str_short() for a in avals), *shown])})")
        raise


def check_kinds(primitive, avals: tuple) -> None:
    """Raise where operands are tokens or references, and the primitive takes none."""
    if abstract_token in avals and not primitive.takes_tokens:
        raise TypeError(f"{primitive} takes arrays, but operand {avals.index(abstract_token)} is a token")
    if not primitive.takes_tokens and not primitive.takes_references:
        for i, aval in enumerate(avals):
            if type(aval) is AbstractRef:
                raise ValueError(f"operand {i} of {primitive}: {use_of_reference(aval)}")


def varying_axes(aval) -> frozenset:
    """The axes of a mesh over which a value of this type varies; nothing is said of those of other types."""
    if type(aval) is AbstractRef:
        aval = aval.inner_aval
    return aval.vma if type(aval) is ShapedArray else frozenset()


def of_varying(aval, axes: frozenset):
    """The type of a value that varies over these axes."""
    if type(aval) is AbstractRef:
        return aval.update(of_varying(aval.inner_aval, axes))
    return aval if varying_axes(aval) == axes else aval.update(manual_axis_type=ManualAxisType(varying=axes))


def types_that_vary(primitive, avals, params: dict):
    """The type(s) of results, by the ``abstract`` rule, which sees nothing of axes, and the ``varying`` rule."""
    axes = [varying_axes(a) for a in avals]
    found = primitive.varying(axes, **params) if primitive.varying else frozenset().union(*axes)
    if found is None:
        return primitive.abstract(*avals, **params)
    plain = primitive.abstract(
        *[of_varying(a, frozenset()) if x else a for a, x in zip(avals, axes, strict=True)], **params
    )
    if not primitive.multiple_results:
        return of_varying(plain, found)
    each = found if isinstance(found, list) else [found] * len(plain)
    return [of_varying(a, x) for a, x in zip(plain, each, strict=True)]


def evaluate(primitive, args, params):
    """Apply ``primitive`` to concrete arguments, with the types (and errors) that tracing would give."""
    if primitive.takes_arrays:
        return evaluate_arrays(primitive, args, params)
    values, avals = [], []
    for x in args:
        if type(x) is not Array:
            x = concrete(x, primitive)
            if context.debug_key_reuse is True and x.aval.extended:
                return watch_keys(primitive, args, params, lambda: evaluate(primitive, args, params))
            if x._placement is not None:
                return evaluate_placed(primitive, args, params)
        aval = x._aval
        avals.append(x.aval if aval is None else aval)
        values.append(x._value)
    try:  # `abstract_eval`, without the call
        out_aval = abstract_cache.get((primitive, tuple(avals), tuple(params.items()) if params else ()))
    except TypeError:
        out_aval = None
    if out_aval is None:
        if primitive.usual:
            params = without_usual(primitive, params)
        out_aval = abstract_eval(primitive, tuple(avals), params)
    if context.debug_checks:
        out = evaluate_checked(primitive, values, params, out_aval)
        if context.default_placement is not None:
            return placed_results(primitive, typed_results(primitive, out, out_aval), context.default_placement, args)
    else:
        out = quiet.run(primitive.evaluate, *values, **params)
    if primitive.multiple_results:
        return [typed_array(o, a) for o, a in zip(out, out_aval, strict=True)]
    return typed_array(out, out_aval)


def typed_results(primitive, out, out_aval):
    """Results as Arrays."""
    if primitive.multiple_results:
        return [typed_array(o, a) for o, a in zip(out, out_aval, strict=True)]
    return typed_array(out, out_aval)


def evaluate_arrays(primitive, args, params):
    """Apply a primitive whose rule takes Arrays; its results follow its arguments."""
    if primitive.usual:
        params = without_usual(primitive, params)
    if context.debug_key_reuse is True:
        out = watch_keys(primitive, args, params, lambda: primitive.evaluate(*args, **params))
    else:
        out = primitive.evaluate(*args, **params)
    if primitive.places_results:
        return out
    placement = results_placement(primitive.name, args)
    return out if placement is None else placed_results(primitive, out, placement, args)


def evaluate_placed(primitive, args, params):
    """Apply a primitive to arrays some of which were put on devices."""
    placement = results_placement(primitive.name, args)
    bare = [unplaced(x) if isinstance(x, Array) else x for x in args]
    out = evaluate(primitive, bare, params)
    if placement is None or placement.layout is None:
        return placed_results(primitive, out, placement, args)
    outs = out if primitive.multiple_results else [out]
    avals = [concrete(x, primitive).aval for x in bare]
    layouts = propagation.layouts_of_results(
        primitive, avals, [x.aval for x in outs], params, map(layout_of, args), placement.layout.mesh
    )
    placed = [place(x, placement._replace(layout=own)) for x, own in zip(outs, layouts, strict=True)]
    return placed if primitive.multiple_results else placed[0]


def placed_results(primitive, out, placement, args):
    """Results on the devices that they belong to."""
    if placement is None or placement.layout is None:
        return [place(x, placement) for x in out] if primitive.multiple_results else place(out, placement)
    if primitive.multiple_results:
        return [place_result(x, placement, args) for x in out]
    return place_result(out, placement, args)


def evaluated_by(rule, values, params: dict, out_aval, multiple_results: bool):
    """What another ``evaluate`` rule of NumPy values than the primitive's own gives, as Arrays."""
    out = quiet.run(rule, *values, **params)
    if multiple_results:
        return [typed_array(o, a) for o, a in zip(out, out_aval, strict=True)]
    return typed_array(out, out_aval)


def concrete(x, primitive) -> Array:
    """``x`` as an Array; a tracer here has outlived its trace or was smuggled out of it."""
    if hasattr(x, "_trace"):
        raise UnexpectedTracerError(
            f"Encountered an unexpected tracer, {x!r}: the operation '{primitive}' was evaluated on it, but its "
            f"trace is not the current one. {x.describe_leak()}"
        )
    return x if isinstance(x, Array) else as_array(x)


def evaluate_checked(primitive, values, params, out_aval):
    """Evaluate under the flags ``jax_no_execution``, ``jax_checks``, ``jax_debug_nans`` and ``jax_debug_infs``."""
    check_may_run(primitive.name)
    out = quiet.run(primitive.evaluate, *values, **params)
    outs, avals = (out, out_aval) if primitive.multiple_results else ((out,), (out_aval,))
    if context.checks:
        value_checks.check_operation(primitive, params, values, outs)
    for value, aval in zip(outs, avals, strict=True):
        if not aval.extended:  # keys are held by numbers that mean nothing
            check_value(primitive.name, value, values)
    return out


def check_may_run(name: str):
    """Raise where the flag ``jax_no_execution`` forbids to run anything."""
    if context.no_execution:
        raise RuntimeError(f"catena tried to execute {name}, but the no_execution config option is set")


def check_results(name: str, outs, args, what: str = "operand"):
    """``check_value`` for the results of a computation on Arrays."""
    for x in outs:
        if isinstance(x, Array) and not x.aval.extended:
            check_value(name, x._value, [a._value for a in args if isinstance(a, Array)], what)


def check_value(name: str, value, operands=(), what: str = "operand"):
    """Raise FloatingPointError where ``value`` holds a NaN or an infinity that the debug flags forbid.

    Arguments:
      name: what gave the value.
      value: the value.
      operands: what it was computed from; those that hold the same are named.
      what: what to call them.
    """
    if not dtypes.is_inexact(np.asarray(value).dtype):
        return
    for forbidden, kind, test in (
        (context.debug_nans, "nan", np.isnan),
        (context.debug_infs, "inf", np.isinf),
    ):
        if forbidden and np.any(test(value)):
            place = context.source or user_source()
            at = f" at {place}{', in its derivative' if place.backward else ''}" if place else ""
            holding = [i for i, x in enumerate(operands) if dtypes.is_inexact(np.asarray(x).dtype) and np.any(test(x))]
            given = f"; {what} {holding[0]} of it is {kind} already" if holding else ""
            raise FloatingPointError(f"invalid value ({kind}) encountered in {name}{at}{given}")
