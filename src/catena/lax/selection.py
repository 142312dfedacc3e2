"""select_and_scatter: in every window one element is chosen, and what belongs to the window is scattered to it."""

from __future__ import annotations

import functools
import math
from functools import lru_cache

import numpy as np

from catena.core.array import as_array
from catena.core.aval import ShapedArray
from catena.core.evaluate import abstract_eval
from catena.core.jaxpr import ClosedJaxpr, Jaxpr, eval_jaxpr
from catena.core.primitive import NoRule, Primitive
from catena.core.staging import DebugInfo, trace_to_closed_jaxpr
from catena.core.zeros import get_aval
from catena.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from catena.lax.comparison import ge, select_n
from catena.lax.elementwise import ANY, NOT_LINEAR, check_admitted, check_same_dtypes
from catena.lax.scatter_by_function import scatter_apply_p
from catena.lax.shape import broadcast, iota, reshape
from catena.lax.windowed import FILL_OR_DROP, ScatterDimensionNumbers
from catena.lax.windows import reduce_window_p, result_shape
from catena.transform.batch import batch_flat

NUMBER = np.dtype(np.int32)  # of the places that are chosen
NONE = -1


def _undilated(window_dimensions, window_strides, padding) -> dict:
    ones = (1,) * len(window_dimensions)
    sizes = {"window_dimensions": window_dimensions, "window_strides": window_strides, "padding": padding}
    return {**sizes, "base_dilation": ones, "window_dilation": ones}


def _abstract(operand, source, init_value, *, window_dimensions, window_strides, padding, **functions):
    name = "select_and_scatter"
    check_admitted(name, operand, ANY)
    check_same_dtypes(name, (operand, source, init_value))
    expected = result_shape(name, operand, _undilated(window_dimensions, window_strides, padding))
    if source.shape != expected:
        raise TypeError(f"{name} requires a source of the shape of the windows, {expected}, got {source.shape}")
    if init_value.shape:
        raise TypeError(f"{name} requires a scalar to start from, got {init_value}")
    return ShapedArray(operand.shape, operand.dtype)


@lru_cache(64)
def _better(select: Jaxpr, consts: tuple, dtype) -> ClosedJaxpr:
    """Of two elements with their numbers the one that is selected; what has no number is never."""

    def choose(value, number, other, other_number):
        (first,) = eval_jaxpr(select, consts, value, other)
        zero = np.zeros((), NUMBER)
        first = bitwise_or(bitwise_not(ge(other_number, zero)), bitwise_and(ge(number, zero), first))
        return [select_n(first, other, value), select_n(first, other_number, number)]

    avals = [ShapedArray((), dtype), ShapedArray((), NUMBER)] * 2
    return trace_to_closed_jaxpr(choose, avals, DebugInfo("select_and_scatter", "select"))[0]


def compose(
    operand,
    source,
    init_value,
    *,
    select_jaxpr: Jaxpr,
    select_consts: tuple,
    scatter_jaxpr: Jaxpr,
    scatter_consts: tuple,
    window_dimensions: tuple,
    window_strides: tuple,
    padding: tuple,
):
    """The places that are chosen, by a reduction over windows, and a scatter to them."""
    shape, dtype = get_aval(operand).shape, get_aval(operand).dtype
    size, count = math.prod(shape), get_aval(source).size
    (_, chosen) = reduce_window_p.bind(
        operand,
        reshape(iota(NUMBER, size), shape),
        np.zeros((), dtype),
        np.full((), NONE, NUMBER),
        jaxpr=_better(select_jaxpr, tuple(select_consts), dtype),
        **_undilated(window_dimensions, window_strides, padding),
    )
    nowhere = np.full(get_aval(source).shape, size, NUMBER)  # the scatter drops what is behind the end
    flat = scatter_apply_p.bind(
        broadcast(init_value, (size,)),
        reshape(select_n(ge(chosen, np.zeros((), NUMBER)), nowhere, chosen), (count, 1)),
        reshape(source, (count,)),
        dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        mode=FILL_OR_DROP,
        unique_indices=False,
        update_consts=(),
        update_jaxpr=ClosedJaxpr(scatter_jaxpr, list(scatter_consts)),
    )
    return reshape(flat, shape)


def _evaluate(*args, **params):
    arrays = [as_array(x) for x in args]
    abstract_eval(select_and_scatter_p, tuple([x.aval for x in arrays]), params)  # raises what is to be raised
    return compose(*arrays, **params)


def _batch(axis, args, dims, **params):
    (out,), (dim,) = batch_flat(lambda *xs: [compose(*xs, **params)], axis, args, dims)
    return out, dim


@lru_cache(64)
def _program(avals: tuple, params: tuple) -> ClosedJaxpr:
    body = functools.partial(compose, **dict(params))
    return trace_to_closed_jaxpr(lambda *xs: [body(*xs)], avals, DebugInfo("select_and_scatter", "compose"))[0]


def _lower(b, *operands, **params):
    avals = tuple([ShapedArray(x.shape, x.dtype) for x in operands])
    return b.call(_program(avals, tuple(sorted(params.items()))), list(operands))[0]


select_and_scatter_p = Primitive(
    "select_and_scatter",
    takes_arrays=True,
    abstract=_abstract,
    evaluate=_evaluate,
    jvp=NoRule("what scatters may be any function; select_and_scatter_add has one"),
    transpose=NOT_LINEAR,
    batch=_batch,
    lower=_lower,
)
