"""Choosing elements: ``where``, ``select``, ``piecewise``, ``choose``, and positions where something holds.

Results whose size depends on data need ``size=`` while tracing: missing places are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.errors import ConcretizationTypeError
from catena.core.placed import follow
from catena.core.trace import Tracer, find_concrete
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    as_operand,
    broadcast_to,
    canonical_axis,
    convert,
    direct,
    operands,
    promote,
    refuse_out,
    static_int,
    strong,
)
from catena.numpy.conversion import from_object
from catena.numpy.creation import default_int, int_of_positions
from catena.numpy.hot import BOOL, REAL_OR_INT, joined_values
from catena.numpy.indexing import getitem
from catena.numpy.introspection import ndim
from catena.numpy.logic import truth
from catena.numpy.manipulation import atleast_1d
from catena.numpy.placement import placed
from catena.numpy.reading import read
from catena.numpy.shaping import ravel, reshaped
from catena.transform.jit import traced_once
from catena.typing import ArrayLike

# ----------------------------------------------------------------------------------------------------
# Choosing between arrays


@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]: ...


@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array: ...


def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | tuple[Array, ...]:
    """The elements of ``x`` where a condition holds, of ``y`` elsewhere; with one argument, where it holds.

    Arguments:
      condition: an array; what is not zero is true.
      x, y: arrays or scalars, of shapes that broadcast with it.
      size, fill_value: only without ``x`` and ``y``: as for ``nonzero``.
    Returns:
      An array of the dtype that ``x`` and ``y`` promote to; without them, what ``nonzero`` returns.
    Raises:
      TypeError: an argument is no array, or only one of ``x`` and ``y`` is given. ValueError: the shapes do
        not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), 1, jnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    if x is None and y is None:
        return nonzero(as_array_argument("where", condition), size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    if type(condition) is Array and context.trace is None and not context.debug_checks:
        result = _where_by_numpy(condition._value, x, y)
        if result is not None:
            return result
    return _any_where(condition, x, y)


@whole
def _any_where(condition, x, y):
    condition, x, y = operands("where", condition, x, y)
    x, y = promote("where", x, y)
    return chosen(truth(as_array_argument("where", condition)), x, y)


_MANY = 1 << 11
_JOINED = REAL_OR_INT | {BOOL}


def _where_by_numpy(condition, x, y):
    """The choice by NumPy, or None where its dtype or shape might not be ours."""
    if condition.dtype != dtypes.BOOL or condition.size > _MANY:  # programs choose quicker among many
        return None
    if type(x) is Array and type(y) is Array and x._value.dtype is y._value.dtype:
        a, b, weak = x._value, y._value, x._weak and y._weak
    elif type(x) is Array and type(y) is float and x._value.dtype.kind == "f":
        a, b, weak = x._value, np.asarray(y, x._value.dtype), x._weak
    elif type(y) is Array and type(x) is float and y._value.dtype.kind == "f":
        a, b, weak = np.asarray(x, y._value.dtype), y._value, y._weak
    elif found := joined_values(x, y, _JOINED, False):
        a, b, weak = found
    else:
        return None
    try:
        return placed(make_array(np.asarray(np.where(condition, a, b)), weak))
    except ValueError:  # said by the general path
        return None


def chosen(condition, x, y):
    """``lax.select`` of a boolean array and two arrays of one dtype, broadcast together."""
    if condition.shape != x.shape or x.shape != y.shape:
        shape = lax.broadcast_shapes(condition.shape, x.shape, y.shape)
        condition = broadcast_to(condition, shape) if condition.ndim else condition
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return lax.select(condition, x, y)


def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """Of each position, the element of the choice whose condition is the first to hold.

    Arguments:
      condlist: conditions, of shapes that broadcast together.
      choicelist: as many arrays.
      default: what stands where no condition holds.
    Returns:
      An array of the dtype that the choices and the default promote to.
    Raises:
      ValueError: the lists are empty or of different lengths.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(4)
    >>> jnp.select([x > 2, x > 0], [x, 10 * x], default=-1)
    Array([-1, 10, 20,  3], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    conditions = [truth(as_array_argument("select", c, i)) for i, c in enumerate(condlist)]
    *choices, result = promote("select", *choicelist, default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = chosen(condition, choice, result)
    return result


def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable],
    *args: Any,
    **kw: Any,
) -> Array:
    """A function defined by cases: of each element, the value of the function whose condition holds
    (the last that does).

    Arguments:
      x: an array.
      condlist: conditions: a list of boolean arrays of the shape of ``x``, or one array with them along its
        first axis.
      funclist: for each condition a function of an array, or a number; one more is for elements where none
        holds, which is 0 if it is left out.
      *args, **kw: further arguments of the functions.
    Returns:
      An array of the type of ``x``.
    Raises:
      ValueError: the numbers of conditions and functions do not fit.

    >>> import catena.numpy as jnp
    >>> x = jnp.array([-2.0, 3.0])
    >>> jnp.piecewise(x, [x < 0], [lambda x: -x, lambda x: 10 * x])
    Array([ 2., 30.], dtype=float32)
    """
    x = as_array_argument("piecewise", x)
    conditions = _conditions(condlist, x)
    count, functions = len(conditions), len(funclist)
    if functions not in (count, count + 1):
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got {functions}"
        )
    functions = list(funclist) if functions > count else [*funclist, 0]
    result = _piece(functions[-1], x, args, kw)
    for condition, function in zip(conditions, functions, strict=False):
        result = chosen(condition, _piece(function, x, args, kw), result)
    return strong(result)


def _conditions(condlist, x) -> list:
    """The conditions of ``piecewise``, which may also be one condition or one array of several."""
    if isinstance(condlist, list | tuple):
        if condlist and not isinstance(condlist[0], list | tuple) and ndim(condlist[0]) == 0 and x.ndim:
            condlist = [from_object(condlist)]
        return [truth(as_array_argument("piecewise", c, 1)) for c in condlist]
    array = as_array_argument("piecewise", condlist, 1)
    return [truth(c) for c in lax.unstack(array, 0)] if array.ndim else [truth(array)]


def _piece(function, x, args, kw):
    value = traced_once(function, x, *args, **kw) if callable(function) else function
    return broadcast_to(convert(as_operand("piecewise", value, 2), x.dtype, x.weak_type), x.shape)


def choose(a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise") -> Array:
    """Of each position, the element of the choice whose number stands there.

    Arguments:
      a: integers.
      choices: arrays of shapes that broadcast with it: a list, or one array with them along its first axis.
      out: must be None.
      mode: for numbers out of range: "raise" (not while tracing), "wrap" takes them modulo the number of
        choices, "clip" takes the nearest.
    Returns:
      An array of the dtype that the choices promote to.
    Raises:
      ValueError: ``a`` does not hold integers or holds one out of range, or the mode is unknown.
      ConcretizationTypeError: ``a`` is traced and the mode is "raise".

    >>> import catena.numpy as jnp
    >>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    a = as_array_argument("choose", a)
    if not dtypes.is_integer(a.dtype):
        raise ValueError("`a` array must be integer typed")
    if isinstance(choices, list | tuple):
        arrays = promote("choose", *choices)
    else:
        arrays = list(lax.unstack(as_array_argument("choose", choices, 1), 0))
    a = _choice_numbers(a, len(arrays), mode)
    shape = lax.broadcast_shapes(a.shape, *(x.shape for x in arrays))
    if len(arrays) == 1:
        return broadcast_to(arrays[0], shape)
    which = convert(broadcast_to(a, shape), np.dtype("int32"))
    return (
        lax.select_n(which, *(broadcast_to(x, shape) for x in arrays))
        if len(arrays) > 2
        else chosen(lax.eq(which, np.int32(1)), broadcast_to(arrays[1], shape), broadcast_to(arrays[0], shape))
    )


def _choice_numbers(a, n: int, mode: str):
    """The numbers of choices brought into range."""
    bound = np.asarray(n, a.dtype)
    if mode == "raise":
        known = find_concrete(a)
        if known is None:
            raise ConcretizationTypeError(
                a,
                "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or "
                "mode='clip' instead.",
            )
        if ((known._value < 0) | (known._value >= n)).any():
            raise ValueError("invalid entry in choice array")
        return a
    if mode == "wrap":
        left = lax.rem(a, bound)
        return lax.select(lax.lt(left, np.zeros((), a.dtype)), lax.add(left, bound), left)
    if mode == "clip":
        return lax.clamp(np.zeros((), a.dtype), a, np.asarray(n - 1, a.dtype))
    raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")


# ----------------------------------------------------------------------------------------------------
# Positions


def known_or_sized(x, size, name: str):
    """Raise where the size of a result depends on traced data and is not given."""
    if size is None and isinstance(x, Tracer) and find_concrete(x) is None:
        raise ConcretizationTypeError(
            x,
            f"The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX "
            "transformations.",
        )


def static_size(size, name: str) -> int:
    """The ``size`` argument of a function whose result depends on data."""
    size = static_int(size, f"The size argument of jnp.{name} must be known statically.")
    if size < 0:
        raise ValueError(f"size must be a nonnegative integer, got size={size}")
    return size


def nonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The positions of the elements that are not zero, in order.

    Arguments:
      a: an array of at least one dimension.
      size: the number of positions to return: the first ones, then fill values. Needed while tracing.
      fill_value: a number, or one for each dimension; by default 0.
    Returns:
      For each dimension a 1-D array of integers, or of the dtype that these and the fill value promote to.
    Raises:
      ValueError: ``a`` is a scalar. ConcretizationTypeError: ``a`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.nonzero(jnp.array([0, 3, 0, 5]))
    (Array([1, 3], dtype=int32),)
    """
    a = as_array_argument("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    known_or_sized(a, size, "nonzero")
    known = find_concrete(truth(a) if a.aval.extended else a)  # which refuses keys
    if size is not None:
        size = static_size(size, "nonzero")
    if known is not None and (fill_value is None or _is_known(fill_value)):
        return tuple(follow(x, "nonzero", (known,)) for x in _known_positions(known._value, size, fill_value))
    return _traced_positions(truth(a), size, fill_value)


def _is_known(fill_value) -> bool:
    values = fill_value if isinstance(fill_value, tuple | list) else (fill_value,)
    return all(find_concrete(v) is not None for v in values)


def _fill_values(fill_value, rank: int) -> tuple:
    """One fill value for each dimension."""
    if fill_value is None:
        return (0,) * rank
    fills = tuple(fill_value) if isinstance(fill_value, tuple | list) else (fill_value,) * rank
    if len(fills) != rank or any(map(np.ndim, fills)):
        raise ValueError(f"fill_value must be a scalar or a tuple of {rank}, one for each axis, got {fill_value}")
    return fills


def _known_positions(value, size, fill_value) -> tuple:
    dtype = int_of_positions("nonzero", max(value.shape, default=0))
    columns = np.nonzero(value)
    if size is None:
        return tuple(make_array(c.astype(dtype)) for c in columns)
    out = []
    for column, fill in zip(columns, _fill_values(fill_value, len(columns)), strict=True):
        number = type(fill) is int
        padded = np.full((size,), fill if number else 0, dtype)
        padded[: min(size, len(column))] = column[:size]
        out.append(make_array(padded) if number else _filled(make_array(padded), np.arange(size) >= len(column), fill))
    return tuple(out)


def _filled(positions, beyond, fill):
    """Positions with a fill value beyond the last; a float among them makes floats of all, as in ``where``."""
    fill, positions = promote("nonzero", as_operand("nonzero", fill), positions)
    return chosen(beyond, fill, positions)


def _traced_positions(mask, size: int, fill_value) -> tuple:
    """The positions by counting: the k-th true element is where the running count passes k."""
    dtype = int_of_positions("nonzero", mask.size + 1)
    flat = lax.reshape(mask, (mask.size,))
    fills = _fill_values(fill_value, mask.ndim)
    if size == 0 or mask.size == 0:
        return tuple(_filled(lax.full((size,), 0, dtype), np.ones(size, bool), f) for f in fills)
    counts = lax.cumsum(lax.convert_element_type(flat, dtype))
    bins = read_counts(counts, size, dtype)
    linear = lax.cumsum(bins)
    total = read(counts, -1)
    filled = lax.ge(lax.iota(dtype, size), total)
    out, stride = [], mask.size
    for n, fill in zip(mask.shape, fills, strict=True):
        stride //= n
        position = lax.div(linear, np.asarray(stride, dtype)) if stride > 1 else linear
        if out:  # of the first axis, it is below already
            position = lax.rem(position, np.asarray(n, dtype))
        out.append(_filled(position, filled, fill))
    return tuple(out)


def read_counts(counts, size: int, dtype):
    """How many of ``counts`` have each value below ``size``."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    zeros, ones = lax.full((size,), 0, dtype), lax.full(counts.shape, 1, dtype)
    return lax.scatter_add(zeros, lax.reshape(counts, (counts.size, 1)), ones, numbers)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions, in the flattened array, of the elements that are not zero.

    Arguments:
      a: an array.
      size, fill_value: as for ``nonzero``.
    Returns:
      A 1-D array of integers.
    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.flatnonzero(jnp.array([[0, 3], [0, 5]]))
    Array([1, 3], dtype=int32)
    """
    return nonzero(ravel(as_array_argument("flatnonzero", a)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The positions of the elements that are not zero, one a row.

    Arguments:
      a: an array.
      size, fill_value: as for ``nonzero``.
    Returns:
      An array of integers of shape (number of elements, ``a.ndim``).
    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.argwhere(jnp.array([[0, 3], [0, 5]]))
    Array([[0, 1],
           [1, 1]], dtype=int32)
    """
    a = as_array_argument("argwhere", a)
    rank = a.ndim
    columns = nonzero(atleast_1d(a), size=size, fill_value=fill_value)
    if rank == 0:
        return lax.full((columns[0].shape[0], 0), 0, default_int())
    if all(map(direct, columns)) and fill_value is None:
        return make_array(np.stack([c._value for c in columns], -1))
    return lax.stack(list(promote("argwhere", *columns)), 1)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
    """The elements of an array where a condition holds, in order.

    Arguments:
      condition: an array; what is not zero is true.
      arr: an array of the same size.
      size: the number of elements to return: the first ones, then fill values. Needed while tracing.
      fill_value: a number.
    Returns:
      A 1-D array.
    Raises:
      ConcretizationTypeError: the condition is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> x = jnp.arange(5)
    >>> jnp.extract(x > 2, x)
    Array([3, 4], dtype=int32)
    """
    condition, arr = as_array_argument("extract", condition, 0), as_array_argument("extract", arr, 1)
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """The slices of an array along an axis for which a condition holds.

    Arguments:
      condition: a 1-D array, at most as long as the axis; what is not zero is true.
      a: an array.
      axis: the axis; None flattens the array first.
      size: the number of slices to return: the first ones, then fill values. Needed while tracing.
      fill_value: a number.
      out: must be None.
    Returns:
      An array of the dtype of ``a``.
    Raises:
      ValueError: the condition is not 1-D, or ``size`` is greater than the axis. ConcretizationTypeError: the
        condition is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(3))
    Array([0, 2], dtype=int32)
    """
    condition, a = as_array_argument("compress", condition, 0), as_array_argument("compress", a, 1)
    fill_value = as_operand("compress", fill_value, "fill_value")
    refuse_out("compress", out)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        axis, a = 0, reshaped(a, (a.size,))
    axis = canonical_axis(static_int(axis, "axis argument of compress"), a.ndim)
    if condition.shape[0] > a.shape[axis]:
        rest = condition[a.shape[axis] :]
        known = find_concrete(rest)
        if known is not None and known._value.any():
            raise ValueError("condition contains entries that are out of bounds")
        condition = condition[: a.shape[axis]]
    known_or_sized(condition, size, "compress")
    if size is not None and not 0 <= size <= a.shape[axis]:
        raise ValueError(
            "size must be positive and not greater than the size of the array axis; "
            f"got {size=} for a.shape[axis]={a.shape[axis]}"
        )
    if size is None:
        known = np.flatnonzero(find_concrete(condition)._value)
        return getitem(a, (slice(None),) * axis + (known,))
    index = flatnonzero(condition, size=size, fill_value=a.shape[axis])
    fill = find_concrete(fill_value) if isinstance(fill_value, Tracer) else fill_value
    if fill is not None:
        fill = convert(fill, a.dtype)  # of complex numbers the real part
        return read(a, (slice(None),) * axis + (index,), mode="fill", fill_value=fill)
    taken = read(a, (slice(None),) * axis + (index,))
    missing = lax.broadcast_in_dim(lax.ge(index, np.asarray(a.shape[axis], index.dtype)), taken.shape, (axis,))
    return lax.select(missing, broadcast_to(convert(fill_value, a.dtype), taken.shape), taken)
