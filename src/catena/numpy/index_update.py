"""Writing elements without mutation: ``x.at[index].set(values)`` and its kin.

Eagerly an update is a copy and an assignment by NumPy. Where NumPy refuses (an index out of bounds, values
that do not fit), and under tracing, it is a scatter. A traced boolean mask has unknown positions, but an
update of them by values that do not depend on their number is ``where(mask, updated, x)``: that works under
tracing, too.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable
from itertools import chain, cycle, repeat
from typing import Any, Protocol

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context, settling
from catena.core.errors import NonConcreteBooleanIndexError
from catena.core.evaluate import quiet
from catena.core.source import drops_its_call
from catena.core.trace import same_value
from catena.core.traceback import shorten
from catena.lax.policy import UPDATED
from catena.lax.whole import whole
from catena.lax.windowed import WIDE_ROW, GatherScatterMode, combine_rows
from catena.numpy.arithmetic import divide, power
from catena.numpy.boundary import SCALARS, convert, convert_as_asked, dtype_of, strong
from catena.numpy.conversion import from_object
from catena.numpy.hot import F32, F64, I32, I64, NUMBER, REAL_OR_INT
from catena.numpy.indexers import Plan, check_not_empty, parse, traced_mask
from catena.numpy.indexing import numpy_key
from catena.numpy.masked import Selection
from catena.numpy.placement import placed
from catena.numpy.reading import masked_part, read
from catena.numpy.shaping import broadcast_to

DROPPED = (
    "the result of x.at[...].{0}(...) is dropped, and nothing else happened: arrays are immutable. Use the new array: "
    "x = x.at[...].{0}(...)"
)
# Whether to look what becomes of a result: the first times, then now and then, since it takes a tenth of an update
# (while tracing, always).
_looks = chain(repeat(True, 256), cycle([True, *[False] * 15]))


class IndexUpdateHelper:
    """``x.at``: index it to say which elements of ``x`` an update concerns."""

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self):
        return f"_IndexUpdateHelper({self.array!r})"

    def __getattr__(self, name):
        raise AttributeError(
            f"'_IndexUpdateHelper' object has no attribute '{name}': index it first, x.at[index].{name}"
        )


def __delitem__(self, i):  # noqa: N807
    """Refused: arrays are immutable."""
    raise AttributeError("__delitem__: arrays are immutable. Instead of del x[i], use x = jnp.delete(x, i).")


def __setitem__(self, i, x):  # noqa: N807
    """Refused: arrays are immutable."""
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of x[idx] = y, use "
        "x = x.at[idx].set(y) or another .at[] method."
    )


class _Operation:
    """One way to combine old elements and new values: by lax on arrays, by scatter, and by NumPy in place."""

    __slots__ = ("combine", "scatter", "ufunc", "fast")

    def __init__(self, combine, scatter, ufunc, fast):
        self.combine, self.scatter, self.ufunc, self.fast = combine, scatter, ufunc, fast


_ORDERED = frozenset({I32, I64})  # of floats, NumPy takes either of two zeros for the greater
SET = _Operation(lambda x, y: y, lax.scatter, None, NUMBER | {dtypes.BOOL})
ADD = _Operation(lax.add, lax.scatter_add, np.add, NUMBER)
SUBTRACT = _Operation(lax.sub, lax.scatter_sub, np.subtract, NUMBER)
MULTIPLY = _Operation(lax.mul, lax.scatter_mul, np.multiply, NUMBER)
MINIMUM = _Operation(lax.min, lax.scatter_min, np.minimum, _ORDERED)
MAXIMUM = _Operation(lax.max, lax.scatter_max, np.maximum, _ORDERED)


class Update(Protocol):
    """An updating method of ``x.at[index]``."""

    def __call__(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = ...,
        unique_indices: bool = ...,
        mode: str | GatherScatterMode | None = ...,
        out_sharding: Any = ...,
        wrap_negative_indices: bool = ...,
    ) -> Array: ...


class IndexUpdateRef:
    """``x.at[index]``: the elements of ``x`` that its methods read, or replace in a copy.

    All updating methods take, beside the values, which must broadcast to the shape of ``x[index]``:

      indices_are_sorted: a promise that the indices are in order.
      unique_indices: a promise that no element is addressed twice.
      mode: what happens out of bounds: "drop" or "fill" or None skip the update, "clip" moves it inside,
        "promise_in_bounds" says that it does not happen.
      wrap_negative_indices: whether negative indices count from the end.

    They return a new array like ``x``. Elements and values of a wider dtype are combined in that, and
    then converted.
    """

    __slots__ = ("array", "index")
    set: Update
    apply: Callable[..., Array]
    add: Update
    subtract: Update
    mul: Update
    multiply: Update
    divide: Update
    power: Update
    min: Update
    max: Update

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self):
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def __getattr__(self, name):
        raise AttributeError(
            f"'_IndexUpdateRef' object has no attribute '{name}'; x.at[index] has get, set, apply, "
            f"{', '.join(self.__class__.__annotations__)}"
        )

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: Any = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """The elements: ``x[index]``, with a choice of what happens out of bounds.

        Arguments:
          mode: "clip" (the default, also for None and "promise_in_bounds") moves indices inside; "fill" or
            "drop" yield ``fill_value`` for those out of bounds.
          fill_value: by default NaN, the smallest signed or the largest unsigned integer, or True.
          indices_are_sorted, unique_indices, wrap_negative_indices: as for updates.
        Returns:
          An array.
        Raises:
          IndexError, TypeError: the index does not fit the array. ValueError: the mode is unknown.

        >>> import catena.numpy as jnp
        >>> jnp.arange(3.0).at[5].get(mode="fill", fill_value=-1)
        Array(-1., dtype=float32)
        """
        how = mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices
        with settling(out_sharding is not None):
            result = read(self.array, self.index, *how)
        return placed(result, None, out_sharding)

    def apply(
        self,
        func: Callable[[Any], Any],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """A copy of ``x`` with ``func`` applied to the elements, once for each time that they are addressed.

        Arguments:
          func: an elementwise function that keeps the dtype.
        Returns:
          An array like ``x``.
        Raises:
          TypeError: ``func`` changes the dtype, or the index does not fit.

        >>> import catena.numpy as jnp
        >>> jnp.arange(3.0).at[1:].apply(lambda x: 10 * x)
        Array([ 0., 10., 20.], dtype=float32)
        """
        mask = traced_mask(self.index)
        if mask is not None:
            return _where_mask(self.array, self.index, mask, lambda part, mask, first: func(part))
        plan = _plan(self.array, self.index, wrap_negative_indices)
        shape = _without(plan.shape, plan.new_axes)
        return lax.scatter_apply(
            self.array,
            plan.indices(),
            func,
            plan.scatter_numbers(),
            update_shape=shape,
            indices_are_sorted=indices_are_sorted or not plan.advanced,
            unique_indices=unique_indices or not plan.advanced,
            mode=mode,
        )


def _method(name: str, purpose: str, update, example: str, result: str):
    """The updating method ``name``."""

    def method(
        self,
        values: Any,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        hints = (indices_are_sorted, unique_indices, mode, wrap_negative_indices)
        try:
            with settling(out_sharding is not None):
                result = update(self.array, self.index, values, hints)
            if out_sharding is not None:
                result = placed(result, None, out_sharding)
        except Exception as error:
            shorten(error)
            raise
        if (next(_looks) or context.trace is not None) and drops_its_call(sys._getframe(1)):
            warnings.warn(DROPPED.format(name), UserWarning, stacklevel=2)
        return result

    method.__name__, method.__qualname__ = name, f"IndexUpdateRef.{name}"
    method.__doc__ = f"""{purpose}

        Arguments:
          values: numbers that broadcast to the shape of ``x[index]``.
          indices_are_sorted, unique_indices, mode, wrap_negative_indices: as described at the class.
        Returns:
          An array like ``x``.
        Raises:
          IndexError, TypeError: the index does not fit the array. ValueError: the values do not fit, or the
            mode is
          unknown.

        >>> import catena.numpy as jnp
        >>> jnp.arange(3.0).at[{example}
        {result}
        """
    return method


# ----------------------------------------------------------------------------------------------------
# Updates


def _updating(operation: _Operation):
    def general(x, index, values, hints):
        return _general_update(operation, x, index, values, hints)

    if operation in (SET, MINIMUM, MAXIMUM):  # no sums, whose order might tell
        general = whole(general, "update")

    def update(x, index, values, hints):
        if type(x) is Array and context.trace is None and not context.debug_checks:
            if hints[3] and (hints[2] is None or GatherScatterMode.from_any(hints[2])):
                result = _by_numpy(operation, x, index, values)
                if result is not None:
                    return result
        return general(x, index, values, hints)

    return update


def _by_numpy(operation: _Operation, x, index, values):
    """The update by NumPy, or None where NumPy's meaning might differ."""
    old = x._value
    dtype = old.dtype
    values = _numpy_values(values, dtype)
    if values is None or dtype not in operation.fast:
        return None
    try:
        key = numpy_key(index)
        if operation.ufunc is not None and _of_many_rows(old, key):
            return None
        new = old.copy()
        if type(values) is np.ndarray and values.ndim and not _fits(new, key, values):
            return None
        quiet.run(_write, operation.ufunc, new, key, values)
    except (IndexError, TypeError, ValueError):  # the general path drops, or says what is wrong
        return None
    return make_array(new, x.weak_type)


def _numpy_values(values, dtype):
    """``values`` as NumPy may write them into an array of ``dtype``, or None."""
    kind = type(values)
    if kind is Array:
        value = values._value
        return value if value.dtype is dtype else None
    if kind is float:
        return values if dtype is F32 or dtype is F64 else None
    if kind is int:
        return values if dtype in REAL_OR_INT and -0x80000000 <= values <= 0x7FFFFFFF else None
    return None


def _fits(new: np.ndarray, key, values: np.ndarray) -> bool:
    """Whether the values have no more axes than the elements have; NumPy would drop leading axes of size 1."""
    if values.shape[0] != 1:
        return True
    return values.ndim <= new[key].ndim


def _of_many_rows(old: np.ndarray, key) -> bool:
    """Whether an index addresses rows of so many elements that a scatter, or a program, is quicker than ``ufunc.at``,
    which takes 10 ns for each of theirs.
    """
    if old.ndim < 2:
        return False
    entries = key if type(key) is tuple else (key,)
    arrays = [k for k in entries if isinstance(k, np.ndarray)]
    if not arrays or old.size * math.prod([k.size for k in arrays]) < UPDATED:  # hot: few elements, however they lie
        return False
    if any(k.dtype == dtypes.BOOL for k in arrays):
        return False
    row = np.size(old[tuple([0 if isinstance(k, np.ndarray) else k for k in entries])])
    return row > 1 and not _of_wide_rows(old, entries) and row * np.broadcast(*arrays).size >= UPDATED


def _of_wide_rows(x: np.ndarray, entries: tuple) -> bool:
    """Whether arrays of integers along the first axes address wide rows, which are combined one by one."""
    if math.prod(x.shape[len(entries) :]) < WIDE_ROW:
        return False
    return all([isinstance(k, np.ndarray) and k.dtype != dtypes.BOOL for k in entries])


def _write(ufunc, new, key, values):
    if ufunc is None:
        new[key] = values
        return
    entries = key if type(key) is tuple else (key,)
    arrays = [np.asarray(k) for k in entries if isinstance(k, np.ndarray | np.bool_ | bool)]
    if any(k.dtype != dtypes.BOOL for k in arrays):  # an element may be addressed twice
        values = np.asarray(values, new.dtype)  # a hundred times faster so
        if _of_wide_rows(new, entries):
            shape, row = new.shape[: len(entries)], new.shape[len(entries) :]
            rows = np.arange(math.prod(shape)).reshape(shape)[entries]
            values = np.broadcast_to(values, (*rows.shape, *row)).reshape(-1, *row)
            combine_rows(ufunc, new.reshape(-1, *row), rows.reshape(-1), values)
            return
        axes = max(k.ndim for k in arrays)
        if 0 < values.ndim < axes and new.ndim == 1:  # NumPy to 2.5, at least, reads past the end of such values
            values = values.reshape((1,) * (axes - values.ndim) + values.shape)
        ufunc.at(new, _machine_indices(key), values)
        return
    part = new[key]
    if arrays or type(part) is not np.ndarray:  # a copy, or a scalar
        new[key] = ufunc(part, values)
    else:
        ufunc(part, values, out=part)


def _machine_indices(key):
    """``key`` with its arrays of integers as NumPy's own index dtype."""
    if type(key) is tuple:
        return tuple(map(_machine_indices, key))
    return key.astype(np.intp) if isinstance(key, np.ndarray) and key.dtype.kind in "iu" else key


def _plan(x, index, wrap: bool) -> Plan:
    tokens = parse(x.shape, index)
    check_not_empty(tokens, x.shape)
    return Plan(tokens, x.shape, wrap)


def _without(shape, axes) -> tuple:
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def _general_update(operation: _Operation, x, index, values, hints):
    indices_are_sorted, unique_indices, mode, wrap = hints
    mask = traced_mask(index)
    if mask is not None:
        return _where_mask(x, index, mask, functools.partial(_combined, operation, values))
    values = _converted(operation, values, x)
    plan = _plan(x, index, wrap)
    if values.dtype != x.dtype:
        once = unique_indices or not plan.advanced
        return (_wide_part if once else _wide_whole)(operation, x, index, values, hints)
    operand = x
    if values.weak_type != x.weak_type:  # as operations with two operands have them
        values, operand = strong(values), strong(x)
    indices = plan.indices()
    values = broadcast_to(values, plan.shape)
    if plan.new_axes:
        values = lax.squeeze(values, tuple(plan.new_axes))
    if 0 in plan.shape:
        GatherScatterMode.from_any(mode)
        return x
    result = operation.scatter(
        operand,
        indices,
        values,
        plan.scatter_numbers(),
        indices_are_sorted=indices_are_sorted or not plan.advanced,
        unique_indices=unique_indices or not plan.advanced,
        mode=mode,
    )
    return convert(result, x.dtype, x.weak_type)


def _wide_part(operation: _Operation, x, index, values, hints):
    """An update by values of a wider dtype, of elements that are addressed once: computed in it, then converted."""
    part = convert(_read_back(x, index, hints), values.dtype)
    new = operation.combine(part, broadcast_to(values, part.shape))
    return set_(x, index, convert(new, x.dtype), hints)


def _wide_whole(operation: _Operation, x, index, values, hints):
    """The same where elements may be addressed several times. What is not addressed stays as it is: floats have fewer
    digits than integers as wide.
    """
    new = _general_update(operation, convert(x, values.dtype), index, values, hints)
    return set_(x, index, convert(_read_back(new, index, hints), x.dtype), hints)


def _read_back(x, index, hints):
    indices_are_sorted, unique_indices, mode, wrap = hints
    return read(x, index, mode, None, indices_are_sorted, unique_indices, wrap)


def _converted(operation: _Operation, values, x):
    """The values of an update in the dtype in which elements of ``x`` are combined with them: that of ``x``, or, with a
    warning, a wider one where that loses something and elements are not just replaced.
    """
    values = values if type(values) in SCALARS else from_object(values)
    dtype, weak = dtype_of(values)
    if dtype != x.dtype and not dtypes.is_extended(x.dtype):
        promoted = dtypes.promote_pair(x.dtype, x.weak_type, dtype, weak)[0]
        if promoted != x.dtype:
            warnings.warn(
                "scatter inputs have incompatible types: cannot safely cast value from "
                f"dtype={dtypes.dtype_name(dtype)} to dtype={dtypes.dtype_name(x.dtype)} with "
                f"jax_numpy_dtype_promotion={context.numpy_dtype_promotion}. In future JAX releases this will result "
                "in an error.",
                FutureWarning,
                stacklevel=dtypes.levels_to_user(),
            )
            if operation is not SET:
                return convert(values, promoted)
    if type(values) is int and values > 0 and dtypes.KIND.get(x.dtype) == "u" and values <= dtypes.iinfo(x.dtype).max:
        return convert_as_asked(values, x.dtype)  # the upper half of the widest unsigned integers
    return convert(values, x.dtype, x.weak_type) if type(values) in SCALARS or values.dtype != x.dtype else values


# ---- derived updates


def _through_ones(fun):
    """An update by ``fun(x, factors)``, where factors that meet are multiplied and are 1 elsewhere."""

    def update(x, index, values, hints):
        factors = multiply(lax.full_like(x, 1), index, values, hints)
        return fun(x, factors)

    return update


set_ = _updating(SET)
add = _updating(ADD)
subtract = _updating(SUBTRACT)
multiply = _updating(MULTIPLY)
minimum = _updating(MINIMUM)
maximum = _updating(MAXIMUM)

# ---- traced masks


def _where_mask(x, index, position: int, updated: Callable):
    """The update at a traced mask: made everywhere, then a choice by the mask."""
    part, mask, first, others = masked_part(x, index, position)
    spread = lax.broadcast_in_dim(mask, part.shape, tuple(range(first, first + mask.ndim)))
    new = lax.select(spread, updated(part, mask, first), part)
    return new if others is None else set_(x, others, new, (False, True, None, True))


def _combined(operation: _Operation, values, part, mask, first: int):
    """Every element of ``part`` combined with its value."""
    values = _spread_values(operation, values, part, mask, first)
    return convert(operation.combine(convert(part, values.dtype), values), part.dtype, part.weak_type)


def _spread_values(operation: _Operation, values, part, mask, first: int):
    """Values that do not depend on the number of true elements, for every element of ``part``."""
    if type(values) is Selection:
        return _corresponding(operation, values, part, mask, first)
    values = _converted(operation, values, part)
    rest = part.shape[:first] + part.shape[first + mask.ndim :]
    after = len(rest) - first
    if values.ndim > after:  # the axis of the selected elements: only one value for all of them will do
        axis = values.ndim - after - 1
        if values.shape[axis] != 1:
            raise NonConcreteBooleanIndexError(mask)
        values = lax.squeeze(values, (axis,))
    values = broadcast_to(values, rest)
    kept = [i for i in range(part.ndim) if not first <= i < first + mask.ndim]
    return lax.broadcast_in_dim(values, part.shape, tuple(kept))


def _corresponding(operation: _Operation, values: Selection, part, mask, first: int):
    """The elements of a selection by the same mask, in the places of those that they replace."""
    if not same_value(values.source, mask):
        values.refuse("an update at another mask")
    array, after = _converted(operation, values.array, part), part.ndim - first - mask.ndim
    before = array.shape[: values.axis]
    behind = array.shape[values.axis + 1 :]
    if len(behind) != after:
        values.refuse(f"an update of an array of {part.ndim} axes by a selection of {values.ndim}")
    return broadcast_to(lax.reshape(array, (*before, *mask.shape, *behind)), part.shape)


# ----------------------------------------------------------------------------------------------------

_METHODS = (
    ("set", "A copy of ``x`` with the elements replaced; where several values meet, the last stays.", set_,
     "1].set(5.0)", "Array([0., 5., 2.], dtype=float32)"),
    ("add", "A copy of ``x`` with values added to the elements; all that meet are added.", add,
     "jnp.array([1, 1])].add(5.0)", "Array([ 0., 11.,  2.], dtype=float32)"),
    ("subtract", "A copy of ``x`` with values subtracted from the elements.", subtract,
     "::2].subtract(1.0)", "Array([-1.,  1.,  1.], dtype=float32)"),
    ("multiply", "A copy of ``x`` with the elements multiplied by values.", multiply,
     "1:].multiply(3.0)", "Array([0., 3., 6.], dtype=float32)"),
    ("mul", "A copy of ``x`` with the elements multiplied by values.", multiply,
     "1:].mul(3.0)", "Array([0., 3., 6.], dtype=float32)"),
    ("divide", "``x`` divided by values at the elements, by 1 elsewhere.", _through_ones(divide),
     "2].divide(4.0)", "Array([0. , 1. , 0.5], dtype=float32)"),
    ("power", "``x`` raised to values at the elements, to 1 elsewhere.", _through_ones(power),
     "2].power(3.0)", "Array([0., 1., 8.], dtype=float32)"),
    ("min", "A copy of ``x`` with the lesser of elements and values.", minimum,
     "1:].min(1.5)", "Array([0. , 1. , 1.5], dtype=float32)"),
    ("max", "A copy of ``x`` with the greater of elements and values.", maximum,
     "1:].max(1.5)", "Array([0. , 1.5, 2. ], dtype=float32)"),
)  # fmt: skip
for _name, *_row in _METHODS:
    setattr(IndexUpdateRef, _name, _method(_name, *_row))
