"""Primitives that are names for functions: one equation in a jaxpr each, compiled as what the function does."""

from __future__ import annotations

import functools
from collections.abc import Callable

from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.jaxpr import ClosedJaxpr
from catena.core.primitive import Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import Zero, add_tangents, get_aval
from catena.transform.execute import run_jaxpr
from catena.transform.jit_primitive import jit_p


def composed(
    name: str,
    function: Callable,
    *,
    linear: tuple = (),
    multiple_results: bool = False,
    written: Callable = lambda b, *operands, **params: None,
) -> Primitive:
    """A primitive that stands for a function: its rules are those of a ``jit`` of the function.

    Arguments:
      name: how it prints in jaxprs.
      function: of arrays, by position, and static parameters, by keyword; made of functions of ``lax`` and ``numpy``.
      linear: the operands in each of which the one result is linear. Their tangents go through the primitive itself,
        so that what the backward pass keeps are its operands and nothing that it computes between.
      multiple_results: whether the function returns a sequence.
      written: writes the one result as a node of the compiler's graph; None where the function serves.
    Returns:
      The primitive.
    """

    def program(avals, params: dict) -> ClosedJaxpr:
        flags = context.global_key, context.local_key
        return traced(function, name, multiple_results, tuple(avals), tuple(params.items()), flags)

    def called(rule: Callable, avals, params: dict) -> Callable:
        return functools.partial(rule, jaxpr=program(avals, params), name=name)

    def packed(outs):
        return outs if multiple_results else outs[0]

    def abstract(*avals, **params):
        return packed(program(avals, params).out_avals)

    def evaluate(*args, **params):
        return packed(run_jaxpr(program(map(get_aval, args), params), args, primitive, (), name))

    def jvp(primals, tangents, **params):
        given = [i for i, t in enumerate(tangents) if type(t) is not Zero]
        if all(i in linear for i in given):
            parts = [primitive.bind(*primals[:i], tangents[i], *primals[i + 1 :], **params) for i in given]
            return primitive.bind(*primals, **params), functools.reduce(add_tangents, parts)
        outs, tangents_out = called(jit_p.jvp, map(get_aval, primals), params)(primals, tangents)
        return packed(outs), packed(tangents_out)

    def transpose(ct, *args, **params):
        avals = [x.aval if hasattr(x, "aval") else get_aval(x) for x in args]
        return called(jit_p.transpose, avals, params)(ct if multiple_results else [ct], *args)

    def batch(axis, args, dims, **params):
        avals = [without_axis(get_aval(x), d) for x, d in zip(args, dims, strict=True)]
        outs, dims_out = called(jit_p.batch, avals, params)(axis, args, dims)
        return packed(outs), packed(dims_out)

    def lower(b, *operands, **params):
        node = written(b, *operands, **params)
        if node is not None:
            return node
        avals = [ShapedArray(x.shape, x.dtype) for x in operands]
        return packed(b.call(program(avals, params), operands))

    primitive = Primitive(
        name,
        multiple_results=multiple_results,
        takes_arrays=True,
        abstract=abstract,
        evaluate=evaluate,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        lower=lower,
    )
    return primitive


@functools.lru_cache(maxsize=4096)
def traced(function, name: str, multiple_results: bool, avals: tuple, params: tuple, flags) -> ClosedJaxpr:
    """The program of ``function`` for operands of these types."""

    def flat(*args):
        out = function(*args, **dict(params))
        return list(out) if multiple_results else [out]

    return trace_to_closed_jaxpr(flat, avals, DebugInfo("evaluation", name))[0]


def without_axis(aval, dim: int | None):
    """The type of one example."""
    return aval if dim is None else aval.without_axis(dim)
