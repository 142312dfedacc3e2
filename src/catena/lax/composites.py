"""Calls with something to say of themselves: a name (``composite``), a platform, or that they are to be kept."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from catena.core.context import context
from catena.core.effects import debug_effect
from catena.core.jaxpr import eval_jaxpr
from catena.core.primitive import Primitive, as_bodies_say
from catena.core.source import function_name
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.trace import Tracer, leaf_value
from catena.core.tree import tree_flatten, tree_unflatten
from catena.core.zeros import get_aval
from catena.lax.elementwise import NOT_LINEAR
from catena.lax.identity import copy_p
from catena.transform import interpreted
from catena.transform.batch import batch_flat
from catena.transform.discharge import call_rule
from catena.transform.execute import run_jaxpr
from catena.transform.functions import check_callable
from catena.transform.jit_primitive import jit_p
from catena.transform.jvp import jvp_flat

PLATFORM = "cpu"

# ---- composite: a call that keeps its name in jaxprs; derivatives and batches are those of what it is made of


def _run(jaxpr) -> Callable:
    return lambda *xs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *xs)


def annotated_call(name: str, title: Callable[[dict], str] | None = None) -> Primitive:
    """A primitive that calls a jaxpr, its parameter ``jaxpr``; its other parameters say something of the call.

    Arguments:
      name: how it is called in jaxprs.
      title: from the parameters to what errors call the program; by default ``name``.
    """
    named = title or (lambda params: name)
    primitive = Primitive(
        name,
        multiple_results=True,
        takes_arrays=True,
        takes_tokens=True,
        effects=lambda avals, params: params["jaxpr"].effects,
        abstract=lambda *avals, jaxpr, **params: jaxpr.out_avals,
        varying=as_bodies_say,
        evaluate=lambda *args, jaxpr, **params: run_jaxpr(jaxpr, args, primitive, (), named(params)),
        jvp=lambda primals, tangents, *, jaxpr, **params: jvp_flat(_run(jaxpr), primals, tangents),
        transpose=lambda cts, *args, jaxpr, **params: jit_p.transpose(cts, *args, jaxpr=jaxpr, name=name),
        batch=lambda axis, args, dims, *, jaxpr, **params: batch_flat(_run(jaxpr), axis, args, dims),
        lower=lambda b, *operands, jaxpr, **params: b.call(jaxpr, operands),
    )
    primitive.discharge = call_rule(primitive)
    interpreted.calls[primitive] = interpreted.call_of("jaxpr")
    return primitive


def call_annotated(primitive: Primitive, function: Callable, args: tuple, parameters: Callable[[Any], dict]) -> Any:
    """``function(*args)`` as one call by such a primitive; ``parameters`` gets the tree of the result."""
    leaves, tree = tree_flatten(args)
    leaves = [leaf_value(x) for x in leaves]
    trees = {}

    def flat(*xs):
        outs, trees["out"] = tree_flatten(function(*tree_unflatten(tree, xs)))
        return [leaf_value(x) for x in outs]

    info = DebugInfo(primitive.name, function_name(function))
    jaxpr, outer = trace_to_closed_jaxpr(flat, [get_aval(x) for x in leaves], info)
    outs = primitive.bind(*outer, *leaves, jaxpr=jaxpr, **parameters(trees["out"]))
    return tree_unflatten(trees["out"], outs)


composite_p = annotated_call("composite", lambda params: params["name"])


def composite(decomposition: Callable, name: str, version: int = 0) -> Callable:
    """A function whose calls keep a name of their own in jaxprs.

    Arguments:
      decomposition: the function that it is made of.
      name: what calls are called.
      version: a number that is kept beside the name.
    Returns:
      A function like ``decomposition``. Its keyword arguments are attributes of the call, and are not traced.

    >>> import catena as jax
    >>> double = jax.lax.composite(lambda x: x + x, "mine.double")
    >>> jax.make_jaxpr(double)(1.0).eqns[0].params["name"]
    'mine.double'
    """

    @functools.wraps(decomposition)
    def call(*args, **attributes):
        flattened = tuple((k, *map(_hashable, tree_flatten(v))) for k, v in attributes.items())
        parameters = {"name": name, "version": version, "attributes": flattened}
        function = functools.partial(decomposition, **attributes) if attributes else decomposition
        return call_annotated(composite_p, function, args, lambda tree: parameters)

    return call


def _hashable(x):
    return tuple(x) if isinstance(x, list) else x


# ---- platforms


def platform_dependent(
    *args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]
) -> Any:
    """The value of the function for the platform that runs the program, which is the CPU.

    Arguments:
      args: what the function is called with.
      default: the function for platforms that are not named.
      per_platform: functions by platform: ``cpu=...``, ``tpu=...``. Those for others are not called.
    Returns:
      What the function returns.
    Raises:
      TypeError: what is given for a platform is not callable.
      NotImplementedError: there is no function for the CPU.

    >>> import catena.lax as lax
    >>> lax.platform_dependent(1.0, cpu=lambda x: x + 1, tpu=lambda x: x + 2)
    2.0
    """
    for platform, function in per_platform.items():
        if not callable(function):
            raise TypeError(f"lax.platform_dependent: the {platform!r} branch must be a callable, got {function!r}")
    if default is not None:
        check_callable(default)
    function = per_platform.get(PLATFORM, default)
    if function is None:
        given = ", ".join(per_platform) or "none"
        raise NotImplementedError(
            f"lax.platform_dependent: no function for {PLATFORM!r}, and no default; given: {given}"
        )
    return function(*args)


# ---- what is to be kept

dce_sink_p = Primitive(
    "dce_sink",
    multiple_results=True,
    effects=lambda avals, params: frozenset([debug_effect]),
    abstract=lambda *avals, **params: [],
    evaluate=lambda *args, **params: [],
    jvp=lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), []),
    transpose=NOT_LINEAR,
    batch=lambda axis, args, dims, **params: (dce_sink_p.bind(*args, **params), []),
    lower=lambda b, *operands, **params: [],
)


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keep what a value is computed from: it is not dead code, though nobody reads the value.

    Arguments:
      val: a tree of arrays.
      prevent_mlir_dce: whether a compiler of MLIR is to keep it, too; there is none here.

    >>> import catena as jax
    >>> def f(x):
    ...     jax.lax.dce_sink(x + 1)
    ...     return x
    >>> len(jax.make_jaxpr(f)(1.0).eqns)
    2
    """
    dce_sink_p.bind(*[leaf_value(x) for x in tree_flatten(val)[0]], prevent_mlir_dce=prevent_mlir_dce)


def stage(x: Any, /) -> Any:
    """An array as a value of the function that is being traced: what is known of it stays out of the program.

    Arguments:
      x: an array or a scalar.
    Returns:
      The same value: a traced one where a function is being traced, else an array.
    Raises:
      TypeError: ``x`` is not an array or scalar.

    >>> import catena as jax
    >>> jax.lax.stage(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    x = leaf_value(x)
    return x if context.trace is None or isinstance(x, Tracer) else copy_p.bind(x)
