"""The universal functions of the namespace: elementwise functions together with the reductions that go with them."""

from __future__ import annotations

import numpy as np

from catena.core.lazy import LazyModule
from catena.numpy import arithmetic, elementary, integers, logic
from catena.numpy.boundary import as_array_argument, canonical_axis, static_axis
from catena.numpy.logic import truth
from catena.numpy.reductions import all, any, max, min, prod, sum
from catena.numpy.ufunc_class import register, ufunc

cumulative = LazyModule("catena.numpy.cumulative")


def _without_dtype(reduction):
    """A reduction that has no ``dtype`` argument, with one that it applies to its result's operand."""

    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        a = as_array_argument("reduce", a)
        return reduction(a if dtype is None else a.astype(dtype), axis, None, keepdims, initial, where)

    return reduce


def _truth_reduction(reduction, neutral):
    def reduce(a, axis=0, dtype=None, keepdims=False, initial=None, where=None):
        result = reduction(as_array_argument("reduce", a), axis, None, keepdims, where=where)
        if initial is not None:
            combine = logic.logical_and if neutral else logic.logical_or
            result = combine(result, truth(as_array_argument("reduce", initial)))
        return result if dtype is None else result.astype(dtype)

    return reduce


def _cumulative(name: str):
    def accumulate(a, axis=0, dtype=None):
        a = as_array_argument("accumulate", a)
        if axis is not None:  # of a scalar there is none, unlike for `cumsum`
            canonical_axis(static_axis(axis), a.ndim)
        return getattr(cumulative, name)(a, axis, dtype)

    return accumulate


def _scatter_add(a, indices, b):
    return as_array_argument("add.at", a).at[indices].add(b)


def _scatter_multiply(a, indices, b):
    return as_array_argument("multiply.at", a).at[indices].multiply(b)


def _scatter_subtract(a, indices, b):
    return as_array_argument("subtract.at", a).at[indices].subtract(b)


def _binary(fun, identity=None, **methods) -> ufunc:
    return register(ufunc(fun, 2, 1, identity=identity, call=fun, **methods))


add = _binary(arithmetic.add, 0, reduce=sum, accumulate=_cumulative("cumsum"), at=_scatter_add)
subtract = _binary(arithmetic.subtract, at=_scatter_subtract)
multiply = _binary(arithmetic.multiply, 1, reduce=prod, accumulate=_cumulative("cumprod"), at=_scatter_multiply)
maximum = _binary(arithmetic.maximum, reduce=_without_dtype(max))
minimum = _binary(arithmetic.minimum, reduce=_without_dtype(min))
negative = register(ufunc(arithmetic.negative, 1, 1, call=arithmetic.negative))
logaddexp = _binary(elementary.logaddexp, -np.inf)
logaddexp2 = _binary(elementary.logaddexp2, -np.inf)
logical_and = _binary(logic.logical_and, True, reduce=_truth_reduction(all, True))
logical_or = _binary(logic.logical_or, False, reduce=_truth_reduction(any, False))
logical_xor = _binary(logic.logical_xor, False)
bitwise_and = _binary(integers.bitwise_and, -1)
bitwise_or = _binary(integers.bitwise_or, 0)
bitwise_xor = _binary(integers.bitwise_xor, 0)
