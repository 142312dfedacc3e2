"""Indices as objects: ``s_``, ``r_``, ``c_``, ``ix_``, triangles, and positions in flattened arrays."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.errors import ConcretizationTypeError
from catena.core.trace import Tracer, find_concrete
from catena.lax.positions import as_position, constant, from_end
from catena.numpy.boundary import (
    SCALARS,
    array_arguments,
    as_array_argument,
    convert,
    direct,
    promote,
    promoted_dtype,
    user_dtype,
)
from catena.numpy.conversion import from_object
from catena.numpy.creation import default_int, ones, shape_argument
from catena.numpy.hot import INT
from catena.numpy.joining import concatenate
from catena.numpy.placement import placed
from catena.numpy.ranges import slice_range
from catena.numpy.selection import nonzero
from catena.numpy.shaping import reshaped
from catena.typing import ArrayLike, DTypeLike


class _IndexMaker:
    """``s_`` and ``index_exp``: what stands between the brackets, as a value."""

    def __init__(self, always_tuple: bool, doc: str):
        self._always_tuple = always_tuple
        self.__doc__ = doc

    def __getitem__(self, index: Any) -> Any:
        return (index,) if self._always_tuple and not isinstance(index, tuple) else index


s_ = _IndexMaker(False, "The index between the brackets: ``x[s_[1:, 0]]`` is ``x[1:, 0]``.")
index_exp = _IndexMaker(
    True, "The index between the brackets, always a tuple: ``index_exp[1:]`` is ``(slice(1, None),)``."
)


class _Joiner:
    """``r_`` and ``c_``: arrays, numbers and slices between the brackets, joined along an axis.

    A first string ``"axis,rank,place"`` says along which axis to join, to which rank to raise, and where the
    axes of lower-ranked arrays go; "r" and "c" make a vector a matrix of one row or column.
    """

    def __init__(self, name: str, axis: int, rank: int, place: int, doc: str):
        self._name, self._axis, self._rank, self._place = name, axis, rank, place
        self.__doc__ = doc

    def __getitem__(self, key: Any) -> Array:
        key = key if isinstance(key, tuple) else (key,)
        axis, rank, place, matrix = self._axis, self._rank, self._place, None
        if isinstance(key[0], str):
            matrix = {"r": (1, -1), "c": (-1, 1)}.get(key[0])
            axis, rank, place = (axis, rank, place) if matrix else _directive(key[0], axis, rank, place)
            key = key[1:]
        joined = concatenate([_raised(_part(item, self._name), rank, place) for item in key], axis)
        return reshaped(joined, matrix) if matrix and joined.ndim == 1 else joined


def _directive(text: str, axis: int, rank: int, place: int) -> tuple:
    """The axis, rank and place that a string asks for."""
    try:
        given = [int(part) for part in text.split(",")]
    except ValueError:
        given = []
    if not 1 <= len(given) <= 3:
        raise ValueError(f"could not understand directive {text!r}")
    return (*given, *(axis, rank, place)[len(given) :])


def _part(item, name: str):
    """One thing between the brackets as an array; a plain number stays weak."""
    if isinstance(item, slice):
        return slice_range(item, name)
    if isinstance(item, str):
        raise ValueError(f"string directive must be placed at the beginning, got {item!r} after it")
    if type(item) in SCALARS:
        return as_array_argument(name, item)
    return from_object(item)


def _raised(x, rank: int, place: int):
    """``x`` with at least ``rank`` axes; its own begin at ``place`` (-1: they are the last)."""
    rank = max(rank, 1)
    missing = rank - x.ndim
    if missing <= 0:
        return x
    start = missing if place == -1 else min(max(place, 0), missing) if place >= 0 else max(missing + place + 1, 0)
    return reshaped(x, (1,) * start + x.shape + (1,) * (missing - start))


class RClass(_Joiner):
    """The class of ``r_``."""

    def __init__(self):
        doc = "Arrays, numbers and slices joined along the first axis: ``r_[1:4, 0, jnp.ones(2)]``."
        super().__init__("jnp.r_", 0, 1, -1, doc)


class CClass(_Joiner):
    """The class of ``c_``."""

    def __init__(self):
        doc = "Arrays, numbers and slices joined as columns: ``c_[jnp.arange(3), jnp.ones(3)]``."
        super().__init__("jnp.c_", -1, 2, 0, doc)


r_ = RClass()
c_ = CClass()


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """1-D arrays of indices as an index of all their combinations.

    Arguments:
      *args: 1-D arrays of integers.
    Returns:
      A tuple of arrays, which broadcast to a grid.
    Raises:
      ValueError: an argument is not 1-D. NotImplementedError: an argument is boolean.

    >>> import catena.numpy as jnp
    >>> jnp.arange(9).reshape(3, 3)[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
    Array([[1, 2],
           [7, 8]], dtype=int32)
    """
    out = []
    for i, x in enumerate(array_arguments("ix_", *args)):
        if x.ndim != 1:
            raise ValueError(f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {x.shape}")
        if x.dtype == dtypes.BOOL:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
        if not x.size:
            x = lax.full((0,), 0, default_int())
        out.append(reshaped(x, (1,) * i + (x.size,) + (1,) * (len(args) - i - 1)))
    return tuple(out)


# ----------------------------------------------------------------------------------------------------
# Diagonals and triangles


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The positions of the main diagonal.

    Arguments:
      n: the length of each dimension.
      ndim: the number of dimensions.
    Returns:
      A tuple of ``ndim`` equal arrays.
    Raises:
      ValueError: an argument is negative.

    >>> import catena.numpy as jnp
    >>> jnp.diag_indices(2)
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    n, ndim = operator.index(n), operator.index(ndim)
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (lax.iota(default_int(), n),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The positions of the main diagonal of an array.

    Arguments:
      arr: an array of at least two dimensions, of equal lengths.
    Returns:
      For each dimension an array of integers.
    Raises:
      ValueError: the shape does not fit.

    >>> import catena.numpy as jnp
    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    arr = as_array_argument("diag_indices_from", arr)
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(arr.shape[0], arr.ndim)


def _positions(mask: np.ndarray) -> tuple[Array, Array]:
    rows, columns = np.nonzero(mask)
    dtype = default_int()
    return placed(make_array(rows.astype(dtype))), placed(make_array(columns.astype(dtype)))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions on and below a diagonal.

    Arguments:
      n: the number of rows.
      k: the diagonal: 0 the main one, positive ones above it.
      m: the number of columns; by default ``n``.
    Returns:
      The rows and the columns.
    Raises:
      TypeError: an argument is not an integer.

    >>> import catena.numpy as jnp
    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _positions(np.tri(operator.index(n), n if m is None else operator.index(m), operator.index(k), bool))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The positions on and above a diagonal.

    Arguments:
      n: the number of rows.
      k: the diagonal: 0 the main one, positive ones above it.
      m: the number of columns; by default ``n``.
    Returns:
      The rows and the columns.
    Raises:
      TypeError: an argument is not an integer.

    >>> import catena.numpy as jnp
    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return _positions(~np.tri(operator.index(n), n if m is None else operator.index(m), operator.index(k) - 1, bool))


def _matrix_shape(name: str, arr) -> tuple:
    shape = as_array_argument(name, arr).shape
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The positions on and below a diagonal of a matrix.

    Arguments:
      arr: a 2-D array.
      k: the diagonal: 0 the main one, positive ones above it.
    Returns:
      The rows and the columns.
    Raises:
      ValueError: the array is not 2-D.

    >>> import catena.numpy as jnp
    >>> jnp.tril_indices_from(jnp.ones((2, 2)))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The positions on and above a diagonal of a matrix.

    Arguments:
      arr: a 2-D array.
      k: the diagonal: 0 the main one, positive ones above it.
    Returns:
      The rows and the columns.
    Raises:
      ValueError: the array is not 2-D.

    >>> import catena.numpy as jnp
    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Callable, k: int = 0, *, size: int | None = None) -> tuple[Array, ...]:
    """The positions of an n x n matrix that a function such as ``triu`` keeps.

    Arguments:
      n: the number of rows and columns.
      mask_func: a function ``(matrix, k) -> matrix``.
      k: passed to the function.
      size: the number of positions to return; needed while tracing.
    Returns:
      The rows and the columns.
    Raises:
      ConcretizationTypeError: the mask is traced and there is no ``size``.

    >>> import catena.numpy as jnp
    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


# ----------------------------------------------------------------------------------------------------
# Positions in flattened arrays


def unravel_index(indices: ArrayLike, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """Positions in a flattened array as positions in the array.

    Arguments:
      indices: integers; those out of bounds give the nearest end.
      shape: the shape of the array, also a traced one.
    Returns:
      For each dimension an array of the shape of ``indices``.
    Raises:
      TypeError: the indices, or the lengths in ``shape``, are not integers.

    >>> import catena.numpy as jnp
    >>> jnp.unravel_index(jnp.array([1, 5]), (2, 3))
    (Array([0, 1], dtype=int32), Array([1, 2], dtype=int32))
    """
    indices = as_array_argument("unravel_index", indices)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError(f"unravel_index: indices must be integers, got {dtypes.dtype_name(indices.dtype)}")
    lengths = tuple(shape) if np.iterable(shape) else (shape,)
    if any(isinstance(n, Tracer) and find_concrete(n) is None for n in lengths):
        return _unravelled_by_traced(indices, lengths)
    sizes = shape_argument(shape)
    total = int(np.prod(sizes, dtype=np.int64))
    dtype, weak = indices.dtype, indices.weak_type
    if direct(indices) and dtype in INT:
        return tuple(make_array(c.astype(dtype), weak) for c in _unravelled(indices._value.astype(np.int64), sizes))
    left = from_end(indices, total)
    wide = left.dtype
    left = lax.clamp(constant(0, wide), left, constant(min(max(total - 1, 0), dtypes.iinfo(wide).max), wide))
    return _digits(left, [constant(max(size, 1), wide) for size in sizes], dtype, weak)


def _digits(left, bases: list, *dtype_and_weak) -> tuple:
    """The digits of numbers that are not negative, in a system where each place has its own base."""
    columns = []
    for base in reversed(bases):
        columns.append(convert(lax.rem(left, base), *dtype_and_weak))
        left = lax.div(left, base)
    return tuple(reversed(columns))


def _unravelled_by_traced(indices, lengths: tuple) -> tuple:
    """``unravel_index`` where lengths are known at run time only."""
    lengths = array_arguments("unravel_index", *lengths)
    if any(n.ndim or not dtypes.is_integer(n.dtype) for n in lengths):
        raise TypeError(f"unravel_index: shape must be integers, got {lengths}")
    wide = default_int()
    left, *sizes = (as_position(x, wide) for x in (indices, *lengths))
    zero, one = constant(0, wide), constant(1, wide)
    total = functools.reduce(lax.mul, sizes, one)
    left = lax.select(lax.lt(left, zero), lax.add(left, total), left)
    left = lax.clamp(zero, left, lax.max(lax.sub(total, one), zero))
    return _digits(left, [lax.max(size, one) for size in sizes], *promoted_dtype([indices, *lengths]))


def _unravelled(left, sizes: tuple) -> list:
    total = int(np.prod(sizes, dtype=np.int64))
    left = np.minimum(np.maximum(left + (left < 0) * total, 0), max(total - 1, 0), out=...)
    columns = []
    for size in reversed(sizes):
        rest = np.floor_divide(left, max(size, 1), out=...)
        columns.append(np.subtract(left, rest * max(size, 1), out=...))
        left = rest
    return columns[::-1]


_ORDERS = {"C": False, "F": True}


def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Positions in an array as positions in the flattened array.

    Arguments:
      multi_index: for each dimension integers, of shapes that broadcast together.
      dims: the shape of the array.
      mode: for positions out of bounds: "raise" (not while tracing), "wrap", "clip", or "ignore", which takes
        them as they are.
      order: "C" or "F": which axis changes fastest.
      dtype: the dtype of the result; by default that of the indices, at least the default integer.
    Returns:
      An array of integers.
    Raises:
      ValueError, TypeError: an index is out of bounds or not an integer, or ``mode`` or ``order`` is unknown.
      ConcretizationTypeError: an index is traced and the mode is "raise".

    >>> import catena.numpy as jnp
    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3))
    Array([1, 5], dtype=int32)
    """
    if len(multi_index) != len(dims):
        raise AssertionError(f"{len(multi_index)=} != {len(dims)=}")
    if order not in _ORDERS:
        raise ValueError(f"invalid {order=}. Expected 'C' or 'F'")
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(f"invalid {mode=}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    dims = tuple(operator.index(d) for d in dims)
    columns = array_arguments("ravel_multi_index", *multi_index)
    dtype = user_dtype(dtype, "ravel_multi_index")
    for given in (*(c.dtype for c in columns), default_int() if dtype is None else dtype):
        if not dtypes.is_integer(given):
            error = TypeError if given == dtypes.BOOL else ValueError
            raise error(f"ravel_multi_index: dtype={given!r} is not an integer type.")
    columns = promote("ravel_multi_index", *columns)
    dtype = dtypes.promote((columns[0].dtype, False), (default_int(), True))[0] if dtype is None else dtype
    if math.prod(dims) - 1 > dtypes.iinfo(dtype).max:
        raise ValueError(
            f"ravel_multi_index: {dtype} cannot hold the positions in an array of shape {dims}; give a wider dtype"
        )
    columns = [lax.convert_element_type(c, dtype) for c in columns]
    columns = [_in_range(c, n, mode) for c, n in zip(columns, dims, strict=True)]
    pairs = list(zip(columns, dims, strict=True))
    result = None
    for column, n in reversed(pairs) if _ORDERS[order] else pairs:
        result = column if result is None else _shifted(result, n, column)
    return result


def _shifted(result, n: int, column):
    result, column = promote("ravel_multi_index", result, column)
    return lax.add(lax.mul(result, np.asarray(n, result.dtype)), column)


def _in_range(column, n: int, mode: str):
    """The indices of one dimension brought into bounds."""
    low, high, bound = (np.asarray(v, column.dtype) for v in (0, n - 1, n))
    if mode == "raise":
        known = find_concrete(column)
        if known is None:
            raise ConcretizationTypeError(
                column,
                "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. Use mode='wrap' or "
                "mode='clip' instead.",
            )
        if ((known._value < 0) | (known._value >= n)).any():
            raise ValueError("invalid entry in coordinates array")
        return column
    if mode == "clip":
        return lax.clamp(low, column, high)
    if mode == "wrap":
        left = lax.rem(column, bound)
        return lax.select(lax.lt(left, low), lax.add(left, lax.full_like(left, n)), left)
    return column
