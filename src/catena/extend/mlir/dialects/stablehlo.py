"""Operations of StableHLO: each is one of ``lax``, in the form that compilation rules write it.

A function gives its result: ``stablehlo.add(x, y)``. A class of the same name, ``stablehlo.AddOp(x, y)``, has it as
``result``. Types are of ``ir``; numbers may be attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps as _wraps
from typing import Any

import numpy as _np

from catena import lax as _lax
from catena.core.array import as_array as _as_array
from catena.core.dtypes import is_complex as _is_complex
from catena.core.unbuilt import absent as _absent
from catena.interpreters import ir as _ir
from catena.lax.convert import convert as _convert

_Value = Any


# ---- element by element


def _unary(name: str, fun: Callable) -> Callable:
    def operation(operand: _Value) -> _Value:
        return fun(operand)

    return _named(operation, name)


def _binary(name: str, fun: Callable) -> Callable:
    def operation(lhs: _Value, rhs: _Value) -> _Value:
        if (lhs.shape, lhs.dtype) != (rhs.shape, rhs.dtype):
            types = f"{lhs.dtype}{list(lhs.shape)} and {rhs.dtype}{list(rhs.shape)}"
            raise ValueError(f"stablehlo.{name} takes two values of one type, got {types}")
        return fun(lhs, rhs)

    return _named(operation, name)


def _named(operation: Callable, name: str) -> Callable:
    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"The operation {name.rstrip('_')}, element by element."
    return operation


abs = _unary("abs", _lax.abs)  # noqa: A001  (these are the names of the operations)
cbrt = _unary("cbrt", _lax.cbrt)
ceil = _unary("ceil", _lax.ceil)
cosine = _unary("cosine", _lax.cos)
count_leading_zeros = _unary("count_leading_zeros", _lax.clz)
exponential = _unary("exponential", _lax.exp)
exponential_minus_one = _unary("exponential_minus_one", _lax.expm1)
floor = _unary("floor", _lax.floor)
imag = _unary("imag", lambda x: _lax.imag(x) if _is_complex(x.dtype) else _lax.full_like(x, 0))
is_finite = _unary("is_finite", _lax.is_finite)
log = _unary("log", _lax.log)
log_plus_one = _unary("log_plus_one", _lax.log1p)
logistic = _unary("logistic", _lax.logistic)
negate = _unary("negate", _lax.neg)
not_ = _unary("not_", _lax.bitwise_not)
popcnt = _unary("popcnt", _lax.population_count)
real = _unary("real", lambda x: _lax.real(x) if _is_complex(x.dtype) else x)
round_nearest_afz = _unary("round_nearest_afz", lambda x: _lax.round(x, _lax.RoundingMethod.AWAY_FROM_ZERO))
round_nearest_even = _unary("round_nearest_even", lambda x: _lax.round(x, _lax.RoundingMethod.TO_NEAREST_EVEN))
rsqrt = _unary("rsqrt", _lax.rsqrt)
sign = _unary("sign", _lax.sign)
sine = _unary("sine", _lax.sin)
sqrt = _unary("sqrt", _lax.sqrt)
tan = _unary("tan", _lax.tan)
tanh = _unary("tanh", _lax.tanh)

add = _binary("add", _lax.add)
and_ = _binary("and_", _lax.bitwise_and)
atan2 = _binary("atan2", _lax.atan2)
complex = _binary("complex", _lax.complex)  # noqa: A001
divide = _binary("divide", _lax.div)
maximum = _binary("maximum", _lax.max)
minimum = _binary("minimum", _lax.min)
multiply = _binary("multiply", _lax.mul)
or_ = _binary("or_", _lax.bitwise_or)
power = _binary("power", _lax.pow)
remainder = _binary("remainder", _lax.rem)
shift_left = _binary("shift_left", _lax.shift_left)
shift_right_arithmetic = _binary("shift_right_arithmetic", _lax.shift_right_arithmetic)
shift_right_logical = _binary("shift_right_logical", _lax.shift_right_logical)
subtract = _binary("subtract", _lax.sub)
xor = _binary("xor", _lax.bitwise_xor)


class ComparisonDirectionAttr(_ir.StringAttr):
    """EQ, NE, GE, GT, LE or LT."""

    __slots__ = ()


class ComparisonTypeAttr(_ir.StringAttr):
    """How numbers are ordered: FLOAT, SIGNED, UNSIGNED or, with an order of zeros and NaNs, TOTALORDER."""

    __slots__ = ()


_compared = {"EQ": _lax.eq, "NE": _lax.ne, "GE": _lax.ge, "GT": _lax.gt, "LE": _lax.le, "LT": _lax.lt}
_orders = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED", "u": "UNSIGNED", "b": "UNSIGNED"}


def compare(lhs: _Value, rhs: _Value, comparison_direction: Any, *, compare_type: Any = None) -> _Value:
    """Whether numbers compare so.

    Arguments:
      lhs, rhs: values of one type.
      comparison_direction: a ``ComparisonDirectionAttr``, or its name.
      compare_type: a ``ComparisonTypeAttr`` that is right for the type, or its name.
    """
    direction, order = _plain(comparison_direction), _plain(compare_type)
    if direction not in _compared:
        raise ValueError(f"stablehlo.compare: comparison_direction must be one of {list(_compared)}, got {direction!r}")
    known = _orders["f" if _lax.dtype(lhs).kind == "V" else _lax.dtype(lhs).kind]
    if order not in (None, known):
        raise ValueError(f"stablehlo.compare: {lhs.dtype} is compared as {known}, got compare_type {order!r}")
    return _binary("compare", _compared[direction])(lhs, rhs)


def select(pred: _Value, on_true: _Value, on_false: _Value) -> _Value:
    """One or the other, element by element."""
    return _lax.select(pred, on_true, on_false)


def clamp(min: _Value, operand: _Value, max: _Value) -> _Value:  # noqa: A002
    """What lies between two bounds."""
    return _lax.clamp(min, operand, max)


# ---- types and shapes


def _plain(x: Any) -> Any:
    """What an attribute says."""
    return x.value if isinstance(x, _ir.Attribute) else x


def _numbers(xs: Any) -> list[int]:
    return [int(n) for n in _np.asarray(_plain(xs)).reshape(-1)]


def _dtype(result: Any) -> _np.dtype:
    return _ir.RankedTensorType(result).element_type.dtype


def _of_shape(x: _Value, result: Any, name: str) -> _Value:
    if list(x.shape) != result.shape:
        raise ValueError(f"stablehlo.{name} gives shape {list(x.shape)}, not {result.shape}")
    return x


def constant(value: _ir.DenseElementsAttr) -> _Value:
    """An array that is known."""
    return _as_array(_np.asarray(value))


def convert(result: _ir.Type, operand: _Value) -> _Value:
    """The same numbers in another dtype."""
    return _of_shape(_convert(operand, _dtype(result)), result, "convert")


def bitcast_convert(result: _ir.Type, operand: _Value) -> _Value:
    """The same bits in another dtype."""
    return _of_shape(_lax.bitcast_convert_type(operand, _dtype(result)), result, "bitcast_convert")


def iota(output: _ir.Type, iota_dimension: Any) -> _Value:
    """Positions along an axis."""
    return _lax.broadcasted_iota(_dtype(output), output.shape, int(_plain(iota_dimension)))  # type: ignore[attr-defined]


def broadcast_in_dim(result: _ir.Type, operand: _Value, broadcast_dimensions: Any) -> _Value:
    """The operand along more axes; its own are ``broadcast_dimensions`` of the result."""
    return _lax.broadcast_in_dim(operand, result.shape, _numbers(broadcast_dimensions))  # type: ignore[attr-defined]


def reshape(result: _ir.Type, operand: _Value) -> _Value:
    """The same elements in another shape."""
    return _lax.reshape(operand, result.shape)  # type: ignore[attr-defined]


def transpose(operand: _Value, permutation: Any) -> _Value:
    """Axes in another order."""
    return _lax.transpose(operand, _numbers(permutation))


def reverse(operand: _Value, dimensions: Any) -> _Value:
    """Axes the other way round."""
    return _lax.rev(operand, _numbers(dimensions))


def concatenate(inputs: Sequence[_Value], dimension: Any) -> _Value:
    """One after another along an axis."""
    return _lax.concatenate(list(inputs), int(_plain(dimension)))


def slice(operand: _Value, start_indices: Any, limit_indices: Any, strides: Any) -> _Value:  # noqa: A001
    """A part."""
    return _lax.slice(operand, _numbers(start_indices), _numbers(limit_indices), _numbers(strides))


def dynamic_slice(operand: _Value, start_indices: Sequence[_Value], slice_sizes: Any) -> _Value:
    """A part that begins at positions of the program."""
    return _lax.dynamic_slice(operand, list(start_indices), _numbers(slice_sizes))


def dynamic_update_slice(operand: _Value, update: _Value, start_indices: Sequence[_Value]) -> _Value:
    """The operand with another part, which begins at positions of the program."""
    return _lax.dynamic_update_slice(operand, update, list(start_indices))


def pad(
    operand: _Value, padding_value: _Value, edge_padding_low: Any, edge_padding_high: Any, interior_padding: Any
) -> _Value:
    """The operand with a value around and between its elements."""
    edges = zip(_numbers(edge_padding_low), _numbers(edge_padding_high), _numbers(interior_padding), strict=True)
    return _lax.pad(operand, padding_value, list(edges))


def optimization_barrier(operand: Sequence[_Value]) -> _Value:
    """The values, all of which are there before any is used; one value by itself."""
    values = _lax.optimization_barrier(list(operand))
    return values[0] if len(values) == 1 else values


# ---- operations as objects


class _Op:
    """An operation that was written."""

    _function: Callable

    def __init__(self, *operands: Any, **attributes: Any):
        out = type(self)._function(*operands, **attributes)
        self.results = list(out) if isinstance(out, (list, tuple)) else [out]

    @property
    def result(self) -> _Value:
        """The result, where there is one."""
        (value,) = self.results
        return value


_OTHER_NAMES = {
    "count_leading_zeros": "Clz",
    "divide": "Div",
    "exponential": "Exp",
    "exponential_minus_one": "Expm1",
    "log_plus_one": "Log1p",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negate": "Neg",
    "popcnt": "PopulationCount",
    "power": "Pow",
    "remainder": "Rem",
    "round_nearest_afz": "Round",
}


def _as_class(name: str, operation: Callable) -> type:
    """The class of a function's name."""
    words = _OTHER_NAMES.get(name) or "".join(part.capitalize() for part in name.split("_"))
    return type(f"{words}Op", (_Op,), {"_function": staticmethod(operation), "__doc__": f"``{name}`` as an object."})


def _value(operand: Any) -> Any:
    """An operand, for which an operation may stand that has one result; a list of operands as such a list."""
    if isinstance(operand, (list, tuple)):
        return [_value(x) for x in operand]
    return operand.result if isinstance(operand, _Op) else operand


def _of_operations(operation: Callable) -> Callable:
    """The function, whose operands may be operations."""

    @_wraps(operation)
    def taking(*operands: Any, **attributes: Any) -> _Value:
        return operation(*map(_value, operands), **{name: _value(x) for name, x in attributes.items()})

    return taking


for _name, _operation in list(globals().items()):
    if callable(_operation) and not isinstance(_operation, type) and not _name.startswith("_"):
        globals()[_name] = _of_operations(_operation)
        _made = _as_class(_name.rstrip("_"), globals()[_name])
        globals()[_made.__name__] = _made

_absent(globals())
