"""The operators, methods and properties that arrays and traced values have from the NumPy API.

Both classes are core's, which knows nothing of these functions; ``install`` gives them to both by one table.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, ExtendedArray, make_array
from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.lazy import LazyModule
from catena.core.placed import PlacedArray
from catena.core.trace import Tracer
from catena.core.traceback import shorten
from catena.core.type_members import aval_method, shown_as_of_type
from catena.numpy import (
    arithmetic,
    concrete_methods,
    conversion,
    indexing,
    integers,
    late_methods,
    logic,
    placement,
    products,
    reductions,
    shaping,
)
from catena.numpy.boundary import as_array_argument, convert, user_dtype
from catena.numpy.hot import (
    BOOL,
    C64,
    C128,
    F32,
    F64,
    INTEGERS,
    NUMBER_OR_INTEGER,
    OWN,
    REAL,
    REAL_OR_INTEGER,
    Operator,
    is_operand,
    refuse,
)
from catena.numpy.late_methods import give, give_method
from catena.numpy.namespace_info import API_VERSION
from catena.numpy.placement import placed
from catena.numpy.protocol import overridable

float_parts = LazyModule("catena.numpy.float_parts")
selection = LazyModule("catena.numpy.selection")
_INEXACT = frozenset({F32, F64, C64, C128})
_COMPARED = REAL_OR_INTEGER | {BOOL}

# ----------------------------------------------------------------------------------------------------
# Operators


OPERATORS = (
    Operator("+", "add", arithmetic.add, np.add, NUMBER_OR_INTEGER),
    Operator("-", "sub", arithmetic.subtract, np.subtract, NUMBER_OR_INTEGER),
    Operator("*", "mul", arithmetic.multiply, (np.multiply, "mul"), NUMBER_OR_INTEGER),
    Operator("/", "truediv", arithmetic.true_divide, (np.divide, "div"), _INEXACT, True),
    Operator("//", "floordiv", arithmetic.floor_divide, (arithmetic.floor_quotient, OWN), REAL_OR_INTEGER),
    Operator("%", "mod", arithmetic.remainder, (arithmetic.floor_remainder, OWN), REAL_OR_INTEGER),
    Operator("divmod()", "divmod", arithmetic.divmod),
    Operator("** or pow()", "pow", arithmetic.power),
    Operator("@", "matmul", products.matmul),
    Operator("&", "and", integers.bitwise_and, np.bitwise_and, INTEGERS),
    Operator("|", "or", integers.bitwise_or, np.bitwise_or, INTEGERS),
    Operator("^", "xor", integers.bitwise_xor, np.bitwise_xor, INTEGERS),
    Operator("<<", "lshift", integers.left_shift, np.left_shift, INTEGERS),
    Operator(">>", "rshift", integers.right_shift, np.right_shift, INTEGERS),
)
COMPARISONS = (
    Operator("==", "eq", logic.equal, np.equal, _COMPARED),
    Operator("!=", "ne", logic.not_equal, np.not_equal, _COMPARED),
    Operator("<", "lt", logic.less, np.less, _COMPARED),
    Operator("<=", "le", logic.less_equal, np.less_equal, _COMPARED),
    Operator(">", "gt", logic.greater, np.greater, _COMPARED),
    Operator(">=", "ge", logic.greater_equal, np.greater_equal, _COMPARED),
)
SIGNS = {
    "__neg__": arithmetic.negative,
    "__pos__": arithmetic.positive,
    "__abs__": arithmetic.abs,
    "__invert__": integers.invert,
}


def _array_pow(self, other):
    """``self ** other``, fast for small integer powers, which are products, and for floats."""
    if context.trace is None and not context.debug_checks and self._value.dtype in REAL:
        if type(other) is int and other == 2:
            return make_array(np.multiply(self._value, self._value, out=...), self._weak)
    try:
        return (
            arithmetic.power(self, other)
            if is_operand(other, "pow", True)
            else refuse("** or pow()", "pow", self, other)
        )
    except Exception as error:
        shorten(error)
        raise


def _array_matmul(self, other):
    """``self @ other``, at once where BLAS takes it as it is."""
    if type(other) is Array and context.trace is None and not context.debug_checks:
        # The hot path asks what `products._product_at_once` asks, without its call: 7 % of a product of 4 rows.
        product = products.fast_product(self._value, other._value, self._weak and other._weak)
        if product is not None:
            return product
    try:
        return products.matmul(self, other) if is_operand(other, "matmul", True) else refuse("@", "matmul", self, other)
    except Exception as error:
        shorten(error)
        raise


def __round__(self, ndigits: int | None = None):  # noqa: N807
    """The elements rounded; without a number of digits, as integers."""
    rounded = float_parts.round(self, ndigits or 0)
    return conversion.astype(rounded, int) if ndigits is None else rounded


def __contains__(self, other) -> bool:  # noqa: N807
    """Whether an element equals the scalar ``other``."""
    query = as_array_argument("Array.__contains__", other)
    if query.ndim:
        raise ValueError(f"Array.__contains__: query value must be a scalar, got query.shape={query.shape}")
    return bool(reductions.any(logic.equal(self, query)))


def __reversed__(self):  # noqa: N807
    """The elements along the first axis, from the last to the first."""
    if not self.ndim:
        raise TypeError("iteration over a 0-d array")
    return (self[i] for i in reversed(range(self.shape[0])))


# ----------------------------------------------------------------------------------------------------
# Shape


def reshape(self, *args: Any, order: str = "C", out_sharding: Any = None) -> Array:
    """The elements in another shape.

    Arguments:
      *args: the shape, as one tuple or as several integers; one length may be -1, for as many as remain.
      order: "C" reads and writes with the last index changing fastest, "F" with the first.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of the same elements.
    Raises:
      TypeError: the shape has another number of elements.

    >>> import catena.numpy as jnp
    >>> jnp.arange(6).reshape(2, -1).shape
    (2, 3)
    """
    shape = args[0] if len(args) == 1 else args
    if type(shape) is tuple and order == "C" and type(self) is Array and context.trace is None:  # the hot path
        try:
            value = self._value.reshape(shape)
            if out_sharding is None and (value.shape == shape or -1 in shape):  # NumPy takes any negative length for -1
                plain = make_array(value, self._weak)
                return plain if context.default_placement is None else placed(plain)
        except (ValueError, TypeError):  # the general path says what is wrong
            pass
    try:
        return shaping.reshape(self, shape, order, out_sharding=out_sharding)
    except Exception as error:
        shorten(error)
        raise


def flatten(self, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one axis.

    Arguments:
      order: "C" with the last index changing fastest, "F" with the first.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array with one axis.

    >>> import catena.numpy as jnp
    >>> jnp.ones((2, 3)).flatten().shape
    (6,)
    """
    return shaping.ravel(self, order, out_sharding=out_sharding)


def transpose(self, *args: Any) -> Array:
    """The array with its axes in another order.

    Arguments:
      *args: the axes in their new order, as one tuple or as several integers; none reverses them.
    Returns:
      An array.
    Raises:
      ValueError: the axes are not a permutation.

    >>> import catena.numpy as jnp
    >>> jnp.ones((2, 3, 4)).transpose(1, 2, 0).shape
    (3, 4, 2)
    """
    if not args or args == (None,):
        return shaping.transpose(self)
    axes = args[0] if len(args) == 1 and np.iterable(args[0]) else args
    return shaping.transpose(self, axes)


def _transposed(self):
    """The array with its axes reversed."""
    if type(self) is Array and context.trace is None:
        value = self._value
        return self if value.ndim < 2 else make_array(value.T, self._weak)
    return self if self.ndim < 2 else shaping.transpose(self)


def _flat(self):
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


# ----------------------------------------------------------------------------------------------------
# Dtype and bits


def astype(self, dtype: Any, copy: bool = False, device: Any = None) -> Array:
    """The array cast to a dtype.

    Arguments:
      dtype: the dtype; None for the default float.
      copy: whether to copy even where the dtype is the same.
      device: the device to put the result on; None leaves it where it is.
    Returns:
      An array; floats are cut towards zero by integers, which saturate.
    Raises:
      TypeError: ``dtype`` is not a dtype.

    >>> import catena.numpy as jnp
    >>> jnp.array([1.9, -300.0]).astype("int8")
    Array([   1, -128], dtype=int8)
    """
    return conversion.astype(self, dtype, copy=copy, device=device)


def copy(self) -> Array:
    """A copy of the array.

    Returns:
      An array of its own memory.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(3)
    >>> x.copy() is x
    False
    """
    return conversion.copy(self)


def view(self, dtype: Any = None, type: None = None) -> Array:
    """The bits of the array as elements of another dtype; the last axis grows or shrinks where their sizes differ.

    Arguments:
      dtype: the dtype; None for that of the array.
      type: not supported.
    Returns:
      An array.
    Raises:
      ValueError: the last axis does not have a whole number of the new elements.

    >>> import catena.numpy as jnp
    >>> jnp.array([1.0]).view("int32")
    Array([1065353216], dtype=int32)
    """
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    dtype = user_dtype(dtype, "view", self.dtype)
    if dtype == self.dtype:
        return self if not self.weak_type else convert(self, dtype)
    old, new = dtypes.itemsize_bits(_bits_dtype(self.dtype)), dtypes.itemsize_bits(_bits_dtype(dtype))
    if not self.ndim and old != new:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if new > old and (self.shape[-1] * old) % new:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in bytes of the last axis "
            "of the array."
        )
    return _view_bits(self, dtype, old, new)


def _bits_dtype(dtype):
    return np.dtype("uint8") if dtype == BOOL else dtype


def _view_bits(x, dtype, old: int, new: int):
    if type(x) is Array and context.trace is None and x.dtype.kind != "V" and dtype.kind != "V":
        return make_array(np.ascontiguousarray(x._value).view(dtype) if x.ndim else x._value.view(dtype))
    if not x.ndim:
        return lax.reshape(_view_bits(lax.reshape(x, (1,)), dtype, old, new), ())
    if dtypes.is_complex(x.dtype):  # a pair of floats
        pairs = lax.stack([lax.real(x), lax.imag(x)], x.ndim)
        return _view_bits(lax.reshape(pairs, (*x.shape[:-1], 2 * x.shape[-1])), dtype, old // 2, new)
    if dtypes.is_complex(dtype):
        pairs = _view_bits(x, dtypes.to_real_dtype(dtype), old, new // 2)
        return lax.complex(*(lax.slice_in_dim(pairs, i, None, 2, -1) for i in (0, 1)))
    x = convert(x, np.dtype("uint8")) if x.dtype == BOOL else x
    if new > old:
        x = lax.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    result = lax.bitcast_convert_type(x, _bits_dtype(dtype))
    if new < old:
        result = lax.reshape(result, (*x.shape[:-1], x.shape[-1] * old // new))
    return convert(result, dtype)


def byteswap(self) -> Array:
    """The array with the bytes of each element in reverse order.

    Returns:
      An array of the same dtype.

    >>> import catena.numpy as jnp
    >>> jnp.array([1, 256], "int16").byteswap()
    Array([256,   1], dtype=int16)
    """
    if self.dtype.itemsize == 1:
        return self
    if dtypes.is_complex(self.dtype):
        return lax.complex(byteswap(lax.real(self)), byteswap(lax.imag(self)))
    parts = lax.bitcast_convert_type(self, np.dtype("uint8"))
    return lax.bitcast_convert_type(lax.rev(parts, (parts.ndim - 1,)), self.dtype)


def clip(self, min: Any = None, max: Any = None) -> Array:
    """The elements kept within bounds.

    Arguments:
      min, max: arrays that broadcast with this one, or scalars; None for no bound.
    Returns:
      An array.
    Raises:
      ValueError: a bound is complex.

    >>> import catena.numpy as jnp
    >>> jnp.array([1, 5, 9]).clip(2, 6)
    Array([2, 5, 6], dtype=int32)
    """
    return overridable(arithmetic.clip)(self, min, max)


def nonzero(self, *, fill_value: Any = None, size: int | None = None) -> tuple:
    """The indices of the elements that are not zero.

    Arguments:
      fill_value: what fills the places beyond the last index; by default 0.
      size: the number of indices to return; needed while tracing.
    Returns:
      A tuple with an array of indices for each axis.
    Raises:
      ConcretizationTypeError: the array is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.array([0, 4, 5]).nonzero()
    (Array([1, 2], dtype=int32),)
    """
    return selection.nonzero(self, size=size, fill_value=fill_value)


def compress(
    self,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Array:
    """The slices along an axis where a condition is true.

    Arguments:
      condition: an array of booleans with one axis.
      axis: the axis; None for the flattened array.
      out: not supported; arrays are immutable.
      size: the number of slices to return; needed where the condition is traced.
      fill_value: what fills those beyond the last.
    Returns:
      An array.
    Raises:
      ConcretizationTypeError: the condition is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.arange(3).compress(jnp.array([True, False, True]))
    Array([0, 2], dtype=int32)
    """
    compressed = overridable(selection.compress)
    return compressed(condition, self, axis, out=out, size=size, fill_value=fill_value)


def __array_namespace__(self, *, api_version: str | None = None) -> Any:  # noqa: N807
    """The module that has the functions of the array API standard."""
    if api_version not in (None, API_VERSION):
        raise ValueError(f"{api_version=} is not available; available versions are: {[API_VERSION]}")
    return sys.modules["catena.numpy"]


def to_device(self, device: Any, *, stream: None = None) -> Array:
    """The array on a device.

    Arguments:
      device: a device or a sharding.
      stream: not supported.
    Returns:
      An array.

    >>> import catena.numpy as jnp
    >>> x = jnp.ones(2)
    >>> x.to_device(x.device).shape
    (2,)
    """
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return placement.moved(self, device)


# ----------------------------------------------------------------------------------------------------
# The tables

METHODS = {
    "compress": compress,
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "astype": astype,
    "byteswap": byteswap,
    "clip": clip,
    "copy": copy,
    "dot": overridable(products.dot),
    "flatten": flatten,
    "max": reductions.max,
    "min": reductions.min,
    "nonzero": nonzero,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": shaping.ravel,
    "reshape": reshape,
    "squeeze": shaping.squeeze,
    "sum": reductions.sum,
    "swapaxes": shaping.swapaxes,
    "to_device": to_device,
    "transpose": transpose,
    "view": view,
    "__round__": __round__,
    "__contains__": __contains__,
    "__reversed__": __reversed__,
    "__getitem__": indexing.getitem,
    "__array_namespace__": __array_namespace__,
}
PROPERTIES = {
    "T": (_transposed, "The array with its axes reversed."),
    "mT": (lambda self: shaping.matrix_transpose(self), "The array with its last two axes exchanged."),
    "flat": (_flat, "Refused; use ``flatten``."),
}


def install():
    """Give Array and Tracer what the tables say. Called once, when the namespace is imported."""
    without_values = PlacedArray, ExtendedArray  # what these keep is not what they are: keys are kept as numbers
    for operator in OPERATORS:
        setattr(Array, f"__{operator.name}__", operator.on_arrays())
        setattr(Array, f"__r{operator.name}__", operator.on_arrays_reflected())
        setattr(Tracer, f"__{operator.name}__", shown_as_of_type(operator.on_tracers()))
        setattr(Tracer, f"__r{operator.name}__", shown_as_of_type(operator.on_tracers_reflected()))
        for kind in without_values:
            setattr(kind, f"__{operator.name}__", operator.on_tracers())
            setattr(kind, f"__r{operator.name}__", operator.on_tracers_reflected())
    for operator in COMPARISONS:
        for kind in without_values:
            setattr(kind, f"__{operator.name}__", operator.on_tracers())
        setattr(Array, f"__{operator.name}__", operator.on_arrays())
        setattr(Tracer, f"__{operator.name}__", shown_as_of_type(operator.on_tracers()))
    Array.__pow__, Array.__matmul__ = _array_pow, _array_matmul
    for name, method in METHODS.items():
        give_method(name, method)
    late_methods.install()
    properties = {name: property(getter, doc=doc) for name, (getter, doc) in PROPERTIES.items()}
    for name, member in (SIGNS | properties).items():
        give(name, member)
    ShapedArray.broadcast = aval_method(lax.broadcast)  # type: ignore[attr-defined]
    Array.__hash__ = Tracer.__hash__ = None  # defining __eq__ does not take it away after the class is made
    concrete_methods.install()
