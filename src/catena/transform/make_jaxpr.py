"""Looking at what a function traces to: ``make_jaxpr`` and ``eval_shape``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.source import function_place
from catena.core.staging import DebugInfo, trace_to_jaxpr
from catena.core.struct import struct_of
from catena.core.traceback import api_boundary, boundary
from catena.core.tree import tree_flatten, tree_unflatten
from catena.transform import stateful, symbolic_shapes
from catena.transform.arguments import argument_names, as_int_tuple, bad_leaf, check_may_trace, leaf_aval
from catena.transform.functions import check_callable, check_function, wraps


def make_jaxpr(fun: Callable, static_argnums=(), axis_env=None, return_shape: bool = False, **options) -> Callable:
    """A function that returns the jaxpr of ``fun`` for given arguments.

    Arguments:
      fun: a function of trees of arrays.
      static_argnums: positions of arguments that are passed to ``fun`` as they are.
      axis_env: a sequence of ``(name, size)``: named axes that collectives in ``fun`` may refer to.
      return_shape: whether to return the shapes of the result as well.
      options: ``abstracted_axes`` is not supported and must be ``None``.
    Returns:
      A function of the arguments of ``fun``, or of ``ShapeDtypeStruct``s, that returns a ``ClosedJaxpr``.

    >>> import catena as jax
    >>> jax.make_jaxpr(lambda x: 2.0 * x)(1.0)
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """
    check_callable(fun)
    if any(v is not None for v in options.values()):
        raise TypeError(f"make_jaxpr does not take {', '.join(options)}")
    static = as_int_tuple(static_argnums, "static_argnums")

    @wraps(fun)
    @api_boundary
    def make_jaxpr_f(*args, **kwargs):
        with named_axes(axis_env or ()):
            closed, out_tree = trace(fun, args, kwargs, static, "make_jaxpr")
        if not return_shape:
            return closed
        return closed, tree_unflatten(out_tree, [struct_of(a) for a in closed.out_avals])

    return make_jaxpr_f


class named_axes:  # noqa: N801
    """Bring named axes into scope within a ``with`` block."""

    def __init__(self, axes):
        self.axes = dict(axes)

    def __enter__(self):
        self.previous = context.axis_env
        context.axis_env = {**self.previous, **self.axes}

    def __exit__(self, *exc_info):
        context.axis_env = self.previous


def trace(fun, args, kwargs, static: tuple, traced_for: str):
    """The closed jaxpr of ``fun`` at these arguments and the tree of its result."""
    check_may_trace(fun)
    places = {i % len(args) for i in static if -len(args) <= i < len(args)} if args else set()
    dynamic = tuple(x for i, x in enumerate(args) if i not in places)
    leaves, in_tree = tree_flatten((dynamic, kwargs))
    names = argument_names(fun, args, kwargs, places)
    avals = [leaf_aval(x) for x in leaves]
    if None in avals:
        position = avals.index(None)
        raise bad_leaf(fun, leaves[position], names[position])
    result = {}

    def flat_fun(*xs):
        call_args, call_kwargs = tree_unflatten(in_tree, xs)
        dynamic_args = iter(call_args)
        full = [x if i in static else next(dynamic_args) for i, x in enumerate(args)]
        outs, result["tree"] = tree_flatten(fun(*full, **call_kwargs))
        return outs

    jaxpr, consts = trace_to_jaxpr(flat_fun, avals, DebugInfo(traced_for, function_place(fun), names))
    return ClosedJaxpr(jaxpr, consts), result["tree"]


def eval_shape(fun, *args, **kwargs):
    """The shapes and dtypes of what ``fun`` would return, without computing anything.

    Arguments:
      fun: a function of trees of arrays.
      args, kwargs: its arguments, or ``ShapeDtypeStruct``s in their place, whose dimensions may be symbolic
        (``jax.export.symbolic_shape``): ``fun`` is then traced several times, with numbers in place of these.
    Returns:
      A tree like the result of ``fun``, with a ``ShapeDtypeStruct`` for each array; of a jitted function with the
      shardings that its ``out_shardings`` asked for.

    >>> import catena as jax, catena.numpy as jnp
    >>> jax.eval_shape(jnp.dot, jax.ShapeDtypeStruct((2, 3), jnp.float32), jnp.ones(3))
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    check_function(fun)
    jitted: Any = fun
    if getattr(fun, "_places", None) is not None:  # says where its results lie
        return jitted.eval_shape(*args, **kwargs)
    if given := symbolic_shapes.symbolic((args, kwargs)):
        return symbolic_shapes.shapes(functools.partial(eval_shape, fun), args, kwargs, given)
    with boundary:
        (args, kwargs), objects = (
            stateful.to_parts((args, kwargs)) if stateful.any_in((args, kwargs)) else ((args, kwargs), [])
        )
        closed, out_tree = trace(stateful.on_parts(fun) if objects else fun, args, kwargs, (), "eval_shape")
    out = tree_unflatten(out_tree, [struct_of(a) for a in closed.out_avals])
    return out[0] if objects else out
