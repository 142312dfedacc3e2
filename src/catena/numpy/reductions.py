"""Reductions: ``sum``, ``max``, ``mean``, ``var``, ``argmax`` and their kin; those that skip
NaN are in ``nan_reductions``.

Axes are integers, or names of axes mapped by ``vmap`` or ``shard_map``, along which the values of all
instances are reduced too. Sums of float16 and bfloat16 are accumulated in float32.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import casts, dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.core.named import NamedTuple
from catena.core.namespace import alias
from catena.lax.policy import LARGE, MANY_EXTREMA, MANY_ROWS, folds_long
from catena.lax.reductions import add_reduce
from catena.lax.structure import dense
from catena.lax.whole import whole
from catena.numpy.boundary import (
    as_array_argument,
    canonical_axes,
    canonical_axis,
    convert,
    direct,
    refuse_out,
    spread_together,
    static_axis,
    strong,
    user_dtype,
)
from catena.numpy.creation import default_int
from catena.numpy.documentation import family
from catena.numpy.hot import BOOL, INT, REAL, REAL_OR_INT
from catena.numpy.logic import truth
from catena.typing import ArrayLike, DTypeLike

Axis = int | Sequence[int] | None
_F32 = np.dtype("float32")
_TESTED = REAL_OR_INT | {BOOL}


class Reduction(NamedTuple):
    """What a reduction is made of: over axes, over named axes, with an initial value, and its neutral element."""

    name: str
    over_axes: Any
    over_names: Any
    combine: Any
    neutral: Any  # from a dtype to the value that changes nothing


def lowest(dtype):
    """The value that changes no maximum."""
    kind = dtypes.KIND[dtype]
    if kind == "b":
        return False
    return complex(-np.inf, -np.inf) if kind == "c" else _end(dtype, kind, "min")


def highest(dtype):
    """The value that changes no minimum."""
    kind = dtypes.KIND[dtype]
    if kind == "b":
        return True
    return complex(np.inf, np.inf) if kind == "c" else _end(dtype, kind, "max")


def _end(dtype, kind, which):
    """The least or greatest value of a dtype: infinite for floats that have infinities."""
    if kind != "f":
        return getattr(dtypes.iinfo(dtype), which)
    infinity = np.array(-np.inf if which == "min" else np.inf, _F32).astype(dtype)
    return infinity if np.isinf(infinity.astype(_F32)) else getattr(dtypes.finfo(dtype), which)


def _gathered_prod(x, names):
    """The product over named axes, by way of all the values."""
    for name in names:
        x = lax.reduce_prod(lax.all_gather(x, name), (0,))
    return x


SUM = Reduction("sum", lax.reduce_sum, lambda x, names: lax.psum(x, names), lax.add, lambda dtype: 0)
PROD = Reduction("prod", lax.reduce_prod, _gathered_prod, lax.mul, lambda dtype: 1)
MAX = Reduction("max", lax.reduce_max, lambda x, names: lax.pmax(x, names), lax.max, lowest)
MIN = Reduction("min", lax.reduce_min, lambda x, names: lax.pmin(x, names), lax.min, highest)
ALL = Reduction(
    "all",
    lax.reduce_and,
    lambda x, names: truth(lax.pmin(convert(x, np.dtype("int32")), names)),
    lax.bitwise_and,
    lambda dtype: True,
)
ANY = Reduction(
    "any",
    lax.reduce_or,
    lambda x, names: truth(lax.pmax(convert(x, np.dtype("int32")), names)),
    lax.bitwise_or,
    lambda dtype: False,
)


# ----------------------------------------------------------------------------------------------------
# The general form


def split_axes(axis, ndim: int) -> tuple:
    """An axis argument as sorted axes counted from the front, and names of mapped axes."""
    if isinstance(axis, str):
        return (), (axis,)
    if isinstance(axis, tuple | list) and builtins.any(isinstance(a, str) for a in axis):
        numbers = tuple(a for a in axis if not isinstance(a, str))
        return canonical_axes(numbers, ndim), tuple(a for a in axis if isinstance(a, str))
    return canonical_axes(axis, ndim), ()


def keep_axes(x, ndim: int, axes: tuple):
    """The result of a reduction with axes of size 1 in the place of those reduced."""
    return lax.expand_dims(x, axes) if axes else x


def reduce_with(reduction: Reduction, x, axis, keepdims, initial, where):
    """The reduction of an operand of its final dtype; result not weak."""
    name = reduction.name
    x = strong(x)
    axes, names = split_axes(axis, x.ndim)
    if where is not None:
        x = _masked(reduction, x, where)
    if reduction in (MAX, MIN):
        _check_not_empty(name, x, axes, initial, where)
    result = reduction.over_axes(x, axes) if axes else x
    if names:
        result = reduction.over_names(result, names)
    if initial is not None:
        result = reduction.combine(_initial(name, initial, x.dtype), result)
    return keep_axes(result, x.ndim, axes) if keepdims else result


def _check_not_empty(name, x, axes, initial, where):
    if initial is not None:
        return
    if where is not None:
        raise ValueError(
            f"reduction operation {name} does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    if builtins.any(x.shape[a] == 0 for a in axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")


def _masked(reduction, x, where):
    """``x`` with the neutral element where the mask is false."""
    where = mask_argument(reduction.name, where)
    x, where = spread_together(reduction.name, [x, where], ValueError)
    return lax.select(where, x, lax.full_like(x, reduction.neutral(x.dtype)))


def mask_argument(name: str, where):
    """A ``where`` argument, which must be boolean."""
    where = as_array_argument(name, where, "at argument 'where'")
    if where.dtype != dtypes.BOOL:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.dtype={where.dtype!r}.")
    return where


def _initial(name: str, initial, dtype):
    initial = as_array_argument(name, initial, "at argument 'initial'")
    if initial.shape:
        raise ValueError(f"initial value must be a scalar. Got array of shape {initial.shape}")
    return convert(initial, dtype)


def accumulator(dtype):
    """The dtype in which values of ``dtype`` are accumulated."""
    return _F32 if dtypes.is_floating(dtype) and dtype.itemsize == 2 else dtype


def widened(dtype):
    """The dtype of sums of integers: at least the default width, in every mode of promotion."""
    kind = dtypes.KIND[dtype]
    if kind not in "biu":
        return dtype
    found, least = dtypes.available(dtype), dtypes.canonical(np.dtype("uint64" if kind == "u" else "int64"))
    return found if found.itemsize >= least.itemsize else least


def plain_axis(axis, x) -> bool:
    """Whether an axis argument says to NumPy what it says to us: None, an integer, or a tuple of these. NumPy takes the
    axis 0 of scalars, which they do not have.
    """
    if axis is None:
        return True
    known = type(axis) is int or (type(axis) is tuple and _INTS.issuperset(map(type, axis)))
    return known and type(x) is Array and x._value.ndim > 0


_INTS = frozenset({int})


NARROW = frozenset(map(np.dtype, ("int8", "int16", "uint8", "uint16")))  # NumPy converts them as it adds them up


def _fast(reduction, numpy_fun, a, axis, dtype, keepdims, where, promote_integers):
    """A sum or product of a concrete array of a common dtype by NumPy, or None."""
    if context.trace is not None or context.debug_checks or not plain_axis(axis, a):
        return None
    value = a._value
    found = value.dtype
    is_long = value.size >= MANY_ROWS and folds_long(value.shape, axis)
    if is_long:
        return None  # a program, on all threads
    if dtype is None:
        dtype = found
        if found not in REAL:
            if found not in INT and found not in NARROW and (found is not BOOL or not promote_integers):
                return None
            dtype = widened(found) if promote_integers else found
    else:
        dtype = user_dtype(dtype, reduction.name)
        if found not in _TESTED or dtype not in REAL_OR_INT:
            return None
        value = casts.convert(value, dtype)
    if where is not None:
        if not (direct(where) and where._value.dtype is BOOL and where._value.ndim in (0, value.ndim)):
            return None
    try:
        if where is not None:
            value = np.where(where._value, value, dtype.type(reduction.neutral(dtype)))
        return make_array(quiet.run(numpy_fun, value, axis, dtype, out=..., keepdims=keepdims))
    except ValueError:  # the general path says what is wrong
        return None


@whole
def _accumulate(name, a, axis, dtype, out, keepdims, initial, where, promote_integers):
    """Sums and products: dtypes widen, and short floats are accumulated in float32."""
    reduction = PROD if name == "prod" else SUM
    refuse_out(name, out)
    dtype = user_dtype(dtype, name)
    a = as_array_argument(name, a)
    if dtype is None:
        dtype = widened(a.dtype) if promote_integers and not dtypes.is_inexact(a.dtype) else a.dtype
    if dtype == dtypes.BOOL:  # in the arithmetic of booleans
        return reduce_with(ANY if reduction is SUM else ALL, truth(a), axis, keepdims, initial, where)
    wide = accumulator(dtype)
    result = reduce_with(reduction, convert(a, wide), axis, keepdims, initial, where)
    return convert(result, dtype)


def _multiply_reduce(value, axis, dtype, out, keepdims):
    return np.multiply.reduce(dense(value), axis, dtype, out=out, keepdims=keepdims)


along_axes = family(
    a="an array or a scalar.",
    axis="an axis or a tuple of them; None for all.",
    out="not supported; arrays are immutable.",
    keepdims="whether the axes stay, with length 1.",
    initial="a scalar to compare with, too.",
    where="booleans that broadcast with ``a``: which elements to take.",
    returns="An array without the axes.",
    raises=("TypeError: ``a`` is neither an array nor a scalar.\nValueError: an axis is out of bounds or given twice."),
    dtype="the dtype of the result; by default the real dtype of ``a``, or the default float.",
    ddof="what to subtract from the number of elements that the sum of squares is divided by.",
    mean="the mean, if it is known, with the axes kept.",
    correction="the name of ``ddof`` in the array API standard.",
)


@along_axes
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of elements along axes.

    Arguments:
      dtype: the dtype of the sum; by default that of ``a``, integers in the default width at least.
      initial: a scalar to add.
      where: booleans that broadcast with ``a``: which elements to add.
      promote_integers: False to add integers in their own dtype.

    >>> import catena.numpy as jnp
    >>> jnp.sum(jnp.arange(6).reshape(2, 3), axis=1)
    Array([ 3, 12], dtype=int32)
    """
    if type(a) is Array and initial is None and out is None:  # the hot path
        result = _fast(SUM, add_reduce, a, axis, dtype, keepdims, where, promote_integers)
        if result is not None:
            return result
    return _accumulate("sum", a, axis, dtype, out, keepdims, initial, where, promote_integers)


@along_axes
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of elements along axes.

    Arguments:
      dtype: the dtype of the product; by default that of ``a``, integers in the default width at least.
      initial: a scalar to multiply with.
      where: booleans that broadcast with ``a``: which elements to multiply.
      promote_integers: False to multiply integers in their own dtype.

    >>> import catena.numpy as jnp
    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([3, 8], dtype=int32)
    """
    if type(a) is Array and initial is None and out is None:  # the hot path
        result = _fast(PROD, _multiply_reduce, a, axis, dtype, keepdims, where, promote_integers)
        if result is not None:
            return result
    return _accumulate("prod", a, axis, dtype, out, keepdims, initial, where, promote_integers)


def _nonzero(values) -> int:
    """How many numbers are not zero. NumPy counts many floats sooner as booleans."""
    return np.count_nonzero(values if values.dtype.kind != "f" or values.size < MANY_ROWS else np.not_equal(values, 0))


def has_zeros(found) -> bool:
    """Whether there are zeros among extreme floats: NumPy gives one of any sign, the general path orders them."""
    return found.dtype.kind == "f" and _nonzero(found) != found.size


def _extremum(reduction, numpy_fun, a, axis, out, keepdims, initial, where):
    refuse_out(reduction.name, out)
    if direct(a) and initial is None and where is None and plain_axis(axis, a):
        value = a._value
        is_long = value.size >= MANY_ROWS and folds_long(value.shape, axis, extremes=True)
        if value.dtype in REAL_OR_INT and value.size and not is_long:
            try:
                found = quiet.run(numpy_fun, value, axis, out=..., keepdims=keepdims)
            except ValueError:  # the general path says what is wrong
                found = None
            if found is not None and not has_zeros(found):
                return make_array(found)
    return _any_extremum(reduction.name, a, axis, keepdims, initial, where)


@whole
def _any_extremum(name, a, axis, keepdims, initial, where):
    return reduce_with(MAX if name == "max" else MIN, as_array_argument(name, a), axis, keepdims, initial, where)


@along_axes
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The greatest of elements along axes; NaN if one is NaN.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to compare; needs ``initial``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: there are no elements and no ``initial``, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [4, 2]]), axis=0)
    Array([4, 5], dtype=int32)
    """
    return _extremum(MAX, np.maximum.reduce, a, axis, out, keepdims, initial, where)


@along_axes
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The least of elements along axes; NaN if one is NaN.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to compare; needs ``initial``.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.
      ValueError: there are no elements and no ``initial``, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [4, 2]]), axis=0)
    Array([1, 2], dtype=int32)
    """
    return _extremum(MIN, np.minimum.reduce, a, axis, out, keepdims, initial, where)


amax, amin = alias(max, "amax"), alias(min, "amin")


def _logical(reduction, numpy_fun, a, axis, out, keepdims, where):
    refuse_out(reduction.name, out)
    by_numpy = direct(a) and where is None and plain_axis(axis, a) and a._value.dtype in _TESTED
    if by_numpy and axis is not None and a._value.size >= MANY_ROWS:  # of all elements, NumPy ends where it is known
        by_numpy = not folds_long(a._value.shape, axis)
    if by_numpy:
        try:
            return make_array(quiet.run(numpy_fun, a._value, axis, out=..., keepdims=keepdims))
        except ValueError:  # the general path says what is wrong
            pass
    return _any_logical(reduction.name, a, axis, keepdims, where)


@whole
def _any_logical(name, a, axis, keepdims, where):
    a = as_array_argument(name, a)
    truths = lax.convert_element_type(a, dtypes.BOOL) if dtypes.is_extended(a.dtype) else truth(a)  # which refuses keys
    return reduce_with(ALL if name == "all" else ANY, truths, axis, keepdims, None, where)


@along_axes
def all(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether all elements along axes are true, that is, not zero; true where there are none.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to look at.
    Returns:
      An array of booleans without the axes.

    >>> import catena.numpy as jnp
    >>> jnp.all(jnp.array([[1, 0], [1, 1]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _logical(ALL, np.logical_and.reduce, a, axis, out, keepdims, where)


@along_axes
def any(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None
) -> Array:
    """Whether any element along axes is true, that is, not zero; false where there are none.

    Arguments:
      where: booleans that broadcast with ``a``: which elements to look at.
    Returns:
      An array of booleans without the axes.

    >>> import catena.numpy as jnp
    >>> jnp.any(jnp.array([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _logical(ANY, np.logical_or.reduce, a, axis, out, keepdims, where)


@along_axes
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements along axes that are not zero.

    Returns:
      An array of the default integer dtype without the axes.

    >>> import catena.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([[1, 0], [1, 1]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    if axis is None and not keepdims and direct(a) and a._value.dtype in _TESTED:  # the hot path
        return make_array(np.array(_nonzero(a._value), default_int()))
    return _any_count(a, axis, keepdims)


@whole
def _any_count(a, axis, keepdims):
    true = truth(as_array_argument("count_nonzero", a))
    if axis is None and not keepdims and direct(true):  # a sum would be of integers, each of four or eight bytes
        return make_array(np.array(np.count_nonzero(true._value), default_int()))
    return sum(true, axis, default_int(), keepdims=keepdims)


@whole
@along_axes
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The range of elements along axes: the greatest minus the least.

    Arguments:
      a: an array or a scalar; not boolean.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar, or is boolean.
      ValueError: there are no elements, or an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.ptp(jnp.array([[1, 5], [4, 2]]), axis=0)
    Array([3, 3], dtype=int32)
    """
    refuse_out("ptp", out)
    a = as_array_argument("ptp", a)
    if direct(a) and plain_axis(axis, a) and a._value.dtype in REAL_OR_INT and a._value.size:  # the hot path
        try:
            return make_array(quiet.run(_range_value, a._value, axis, keepdims))
        except ValueError:  # the general path says what is wrong
            pass
    return lax.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def _range_value(value, axis, keepdims):
    high = np.maximum.reduce(value, axis, keepdims=keepdims)
    return np.subtract(high, np.minimum.reduce(value, axis, keepdims=keepdims), out=...)


# ----------------------------------------------------------------------------------------------------
# Positions of extrema


@whole
def any_position(name: str, lax_fun, a, axis, keepdims):
    """The index of an extremum along one axis, or in the flattened array."""
    if a.size == 0 and (axis is None or a.shape[canonical_axis(operator.index(axis), a.ndim)] == 0):
        raise ValueError(f"attempt to get {name} of an empty sequence")
    if axis is None:
        result = lax_fun(lax.reshape(a, (a.size,)) if a.ndim != 1 else a, 0, default_int())
        return lax.expand_dims(result, tuple(range(a.ndim))) if keepdims else result
    axis = static_axis(axis)
    if isinstance(axis, tuple):
        raise TypeError(f"{name}: axis must be an integer or None, got {axis!r}")
    axis = canonical_axis(axis, a.ndim)
    result = lax_fun(a, axis, default_int())
    return lax.expand_dims(result, (axis,)) if keepdims else result


def _has_many_rows(value, axis: int) -> bool:
    """Whether NumPy looks at so many rows, one after the other, that it may be worth a program."""
    if value.size < MANY_ROWS or not -value.ndim <= axis < value.ndim:
        return False
    return value.size >= LARGE or value.size // value.shape[axis] >= MANY_EXTREMA


def _position(value, method: str, axis, keepdims):
    """The index of an extremum of a NumPy value, or None where the general path has to see to it."""
    if value.dtype not in _TESTED or not 0 < value.size < 2**31:
        return None
    if axis is not None and (type(axis) is not int or not value.ndim or _has_many_rows(value, axis)):
        return None
    try:
        found = getattr(value, method)(axis, keepdims=bool(keepdims))
    except ValueError:  # the general path says what is wrong
        return None
    return make_array(np.array(found, default_int()))


position_along_axis = family(
    a="an array or a scalar; not complex.",
    axis="the axis; None for the index in the flattened array.",
    out="not supported; arrays are immutable.",
    keepdims="whether the axis stays, with length 1.",
    returns="An array of the default integer dtype without the axis.",
    raises=(
        "TypeError: ``a`` is neither an array nor a scalar, or is complex.\n"
        "ValueError: there are no elements, or the axis is out of bounds."
    ),
)


@position_along_axis
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the greatest element along an axis; of the first NaN if there is one.

    >>> import catena.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 5, 2], [4, 3, 4]]), axis=1)
    Array([1, 0], dtype=int32)
    """
    refuse_out("argmax", out)
    if direct(a) and (found := _position(a._value, "argmax", axis, keepdims)) is not None:  # the hot path
        return found
    return any_position("argmax", lax.argmax, as_array_argument("argmax", a), axis, keepdims)


@position_along_axis
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the least element along an axis; of the first NaN if there is one.

    >>> import catena.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 5, 2], [4, 3, 4]]), axis=1)
    Array([0, 1], dtype=int32)
    """
    refuse_out("argmin", out)
    if direct(a) and (found := _position(a._value, "argmin", axis, keepdims)) is not None:  # the hot path
        return found
    return any_position("argmin", lax.argmin, as_array_argument("argmin", a), axis, keepdims)
