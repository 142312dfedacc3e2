"""Arrays of constants: ``zeros``, ``ones``, ``full``, ``eye`` and triangles; ranges are in ``ranges``.

Outside of traces they are NumPy arrays at once, ``full`` of one element without memory for the rest. While
tracing they are equations, so that programs do not carry large constants.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.errors import SizeError
from catena.core.shapes import check_axes, check_positions, is_plain
from catena.core.trace import Tracer
from catena.lax.whole import whole
from catena.numpy.boundary import (
    SCALARS,
    as_array_argument,
    as_operand,
    broadcast_to,
    convert,
    convert_as_asked,
    direct,
    dtype_of,
    static_int,
    user_dtype,
)
from catena.numpy.documentation import family
from catena.numpy.placement import placed
from catena.typing import ArrayLike, DTypeLike

Shape = int | Sequence[int]


def default_float() -> np.dtype:
    """The dtype of floats that nobody asked for otherwise."""
    return dtypes.canonical(np.dtype("float64"))


def int_of_positions(name: str, size: int, axis: int | None = None) -> np.dtype:
    """The default integer dtype, for positions among ``size`` elements: OverflowError where it cannot hold them."""
    check_positions(name, size, default_int(), axis)
    return default_int()


def default_int() -> np.dtype:
    """The dtype of integers that nobody asked for otherwise."""
    return dtypes.canonical(np.dtype("int64"))


def shape_argument(shape, what: str = "") -> tuple:
    """A shape, or one length, as a tuple of Python integers."""
    if type(shape) is int:
        sizes = (shape,)
    elif is_plain(shape):
        sizes = shape
    else:
        sizes = (
            tuple(shape) if np.iterable(shape) and not isinstance(shape, str) and not _is_scalar(shape) else (shape,)
        )
        sizes = tuple(size if type(size) is int else _static_size(size, sizes, what) for size in sizes)
    if min(sizes, default=0) < 0:
        raise TypeError(f"broadcast_in_dim shape must have every element be nonnegative, got {sizes}.")
    check_axes(sizes)
    return sizes


def _is_scalar(x) -> bool:
    return getattr(x, "ndim", 1) == 0


def _static_size(size, sizes, what: str) -> int:
    try:
        return static_int(size, "")
    except TypeError:
        hint = ""
        if any(isinstance(s, Tracer) for s in sizes):
            hint = "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions."
            hint += "".join(f"\n{s.describe_origin()}" for s in sizes if isinstance(s, Tracer) and s.describe_origin())
        raise TypeError(
            f"Shapes must be 1D sequences of concrete values of integer type, got {sizes}.{what}{hint}"
        ) from None


def asked_dtype(name: str, shape, dtype):
    """The dtype asked of a function that takes a shape first; a second length in its place is named for what it is."""
    if type(dtype) is int and hasattr(shape, "__index__"):
        raise TypeError(
            f"{name}: dtype must stand for a dtype, got {dtype}: Cannot interpret '{dtype}' as a data type.\n"
            f"Did you accidentally write `jax.numpy.{name}({shape}, {dtype})` when you meant "
            f"`jax.numpy.{name}(({shape}, {dtype}))`, i.e. with a single tuple argument for the shape?"
        )
    return user_dtype(dtype, name)


def constant(shape: tuple, value, dtype, weak: bool = False):
    """An array of one value, outside of traces without computing, else as an equation."""
    if dtypes.is_extended(dtype):
        return dtype._rules.full(shape, value, dtype)
    if context.trace is None:
        return make_array(_filled(shape, value, dtype), weak)
    scalar = make_array(np.full((), value, dtype), weak)
    return lax.broadcast_in_dim(scalar, shape, ()) if shape else scalar


def _filled(shape, value, dtype) -> np.ndarray:
    if value == 0:
        return np.zeros(shape, dtype)  # pages of zeros cost nothing until they are touched
    return np.full(shape, value, dtype)


_of_shape = family(
    shape="the lengths of its axes; an integer for one axis.",
    dtype="its dtype; None for the default float.",
    device="the device to put it on; None for the default one.",
    out_sharding="its sharding; None for that of a single device.",
    returns="An array.",
    raises="TypeError: ``shape`` is not made of non-negative integers known while tracing.",
)


@_of_shape
def zeros(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros.

    >>> import catena.numpy as jnp
    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    dtype = default_float() if dtype is None else asked_dtype("zeros", shape, dtype)
    return placed(constant(shape_argument(shape), 0, dtype), device, out_sharding)


@_of_shape
def ones(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones.

    >>> import catena.numpy as jnp
    >>> jnp.ones(3, dtype=int)
    Array([1, 1, 1], dtype=int32)
    """
    dtype = default_float() if dtype is None else asked_dtype("ones", shape, dtype)
    return placed(constant(shape_argument(shape), 1, dtype), device, out_sharding)


@_of_shape
def empty(shape: Shape, dtype: DTypeLike | None = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros: programs are pure, so there is no memory whose content is left to chance.

    >>> import catena.numpy as jnp
    >>> jnp.empty(2)
    Array([0., 0.], dtype=float32)
    """
    dtype = default_float() if dtype is None else asked_dtype("empty", shape, dtype)
    return placed(constant(shape_argument(shape), 0, dtype), device, out_sharding)


@_of_shape
def full(
    shape: Shape,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with a value.

    Arguments:
      fill_value: a scalar, or an array that broadcasts to ``shape``.
      dtype: its dtype; by default that of ``fill_value``, weak where it is a Python number.
    Raises:
      TypeError: ``shape`` is not made of non-negative integers known while tracing, or ``fill_value`` is no
        array.
      ValueError: ``fill_value`` does not broadcast to ``shape``.

    >>> import catena.numpy as jnp
    >>> jnp.full((2,), 7, dtype="int8")
    Array([7, 7], dtype=int8)
    """
    dtype = user_dtype(dtype, "full")
    if dtype is not None and dtypes.is_extended(dtype) and type(fill_value) in SCALARS:
        return placed(constant(shape_argument(shape), fill_value, dtype), device, out_sharding)
    fill_value = as_operand("full", fill_value)
    if dtype is None:
        value = convert(fill_value, *dtype_of(fill_value))
    else:
        value = convert_as_asked(fill_value, dtype)
    return placed(_broadcast_fill(value, shape_argument(shape)), device, out_sharding)


def _broadcast_fill(value, shape):
    if not value.ndim and direct(value):
        return make_array(np.full(shape, value._value, value.dtype), value.weak_type)
    if value.ndim and (value.ndim > len(shape) or not _broadcasts(value.shape, shape)):
        requested = f"{value.dtype}[{','.join(map(str, shape))}]"
        raise ValueError(
            f"Incompatible types for broadcasting: input type={value.aval.str_short()} and requested type={requested}"
        )
    return broadcast_to(value, shape)


def _broadcasts(source: tuple, target: tuple) -> bool:
    return all(a in (1, b) for a, b in zip(reversed(source), reversed(target), strict=False))


# ---- arrays like others


def _prototype(name: str, a, dtype, shape) -> tuple:
    """The ``(shape, dtype, weak)`` of an array like ``a``, where the user did not say otherwise."""
    if hasattr(a, "shape") and hasattr(a, "dtype") and not getattr(type(a), "_is_array", False):
        found, weak, own_shape = dtypes.canonical(np.dtype(a.dtype)), getattr(a, "weak_type", False), a.shape
    else:
        a = as_array_argument(name, a)
        found, weak, own_shape = a.dtype, a.weak_type, a.shape
    shape = tuple(own_shape) if shape is None else shape_argument(shape)
    return shape, user_dtype(dtype, name, found), bool(weak and dtype is None)


_like = family(
    a="an array, a scalar, or anything with ``shape`` and ``dtype``.",
    device="the device to put it on; None for the default one.",
    out_sharding="its sharding; None for that of a single device.",
    returns="An array.",
    raises="TypeError: ``a`` is neither an array nor a scalar.",
)


@_like
def zeros_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of zeros like another array.

    Arguments:
      dtype, shape: those of the result; by default those of ``a``.

    >>> import catena.numpy as jnp
    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return placed(_constant_like("zeros_like", a, 0, dtype, shape), device, out_sharding, a)


@_like
def ones_like(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array of ones like another array.

    Arguments:
      dtype, shape: those of the result; by default those of ``a``.

    >>> import catena.numpy as jnp
    >>> jnp.ones_like(jnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    return placed(_constant_like("ones_like", a, 1, dtype, shape), device, out_sharding, a)


@_like
def empty_like(prototype: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *, device: Any = None) -> Array:
    """An array of zeros like another array.

    Arguments:
      prototype: an array, a scalar, or anything with ``shape`` and ``dtype``.
      dtype, shape: those of the result; by default those of ``prototype``.
    Raises:
      TypeError: ``prototype`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.empty_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return placed(_constant_like("empty_like", prototype, 0, dtype, shape), device, like=prototype)


def _constant_like(name, a, value, dtype, shape):
    shape, dtype, weak = _prototype(name, a, dtype, shape)
    return constant(shape, value, dtype, weak)


@_like
def full_like(
    a: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """An array filled with a value, like another array.

    Arguments:
      fill_value: a scalar, or an array that broadcasts to the shape.
      dtype, shape: those of the result; by default those of ``a``.
    Raises:
      TypeError: ``a`` or ``fill_value`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.full_like(jnp.arange(3.0), 2)
    Array([2., 2., 2.], dtype=float32)
    """
    shape, dtype, weak = _prototype("full_like", a, dtype, shape)
    if dtypes.is_extended(dtype) and type(fill_value) in SCALARS:
        return placed(constant(shape, fill_value, dtype), device, out_sharding)
    value = as_operand("full_like", fill_value, 1)
    value = convert_as_asked(value, dtype, weak and not np.ndim(value))
    return placed(_broadcast_fill(value, shape), device, out_sharding, a)


# ---- identity and triangles


def _size(n, name: str, argument: str) -> int:
    size = shape_argument(_checked_length(n, name), f" argument of '{argument}' jnp.{name}().")
    return size[0]


def _checked_length(n, name: str):
    if isinstance(n, int | np.integer) and n < 0:
        raise SizeError(f"{name}: negative dimensions are not allowed, got {n}")
    return n


def eye(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = None, *, device: Any = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Arguments:
      N, M: the numbers of rows and columns; ``M`` is ``N`` by default.
      k: which diagonal: 0 the main one, positive above it, negative below.
      dtype: its dtype; None for the default float.
      device: the device to put it on; None for the default one.
    Returns:
      An array of shape ``(N, M)``.
    Raises:
      TypeError: ``N`` or ``M`` is not an integer known while tracing.
      ValueError: ``N`` or ``M`` is negative, or ``k`` is not an integer.

    >>> import catena.numpy as jnp
    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    dtype = default_float() if dtype is None else user_dtype(dtype, "eye")
    shape = _size(N, "eye", "N"), _size(N if M is None else M, "eye", "M")
    return placed(_diagonal_mask(shape, _diagonal("eye", k, ValueError), lax.eq, np.eye, dtype), device)


def _diagonal(name: str, k, error: type):
    """The number of a diagonal, which may be traced."""
    k = as_operand(name, k, 2)
    if not dtypes.is_integer(dtype_of(k)[0]) or getattr(k, "ndim", 0):
        raise error(f"{name}: k must be a scalar integer; got {k}")
    return k


def _diagonal_mask(shape, k, compare, numpy_fun, dtype):
    """The matrix that is 1 where ``compare(row + k, column)`` holds."""
    if context.trace is None and type(k) is int:
        return make_array(numpy_fun(*shape, k, dtype))
    rows, columns = (lax.broadcasted_iota(np.dtype("int32"), shape, i) for i in (0, 1))
    return convert(compare(lax.add(rows, convert(k, np.dtype("int32"))), columns), dtype)


def identity(n: int, dtype: DTypeLike | None = None) -> Array:
    """A square matrix with ones on the main diagonal and zeros elsewhere.

    Arguments:
      n: the number of rows and columns.
      dtype: its dtype; None for the default float.
    Returns:
      An array of shape ``(n, n)``.
    Raises:
      TypeError: ``n`` is not an integer known while tracing.

    >>> import catena.numpy as jnp
    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal and zeros above.

    Arguments:
      N, M: the numbers of rows and columns; ``M`` is ``N`` by default.
      k: which diagonal: 0 the main one, positive above it, negative below.
      dtype: its dtype; float32 by default.
    Returns:
      An array of shape ``(N, M)``.
    Raises:
      TypeError: ``N`` or ``M`` is not an integer known while tracing, or ``k`` is not an integer.

    >>> import catena.numpy as jnp
    >>> jnp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    dtype = user_dtype(dtype, "tri", np.dtype("float32"))
    shape = _size(N, "tri", "N"), _size(N if M is None else M, "tri", "M")
    return placed(_diagonal_mask(shape, _diagonal("tri", k, TypeError), lax.ge, np.tri, dtype))


def _triangle_of(value, k: int, lower: bool) -> np.ndarray:
    rows, columns = value.shape[-2:]
    bits = _BITS.get(value.itemsize)
    if rows * columns > _REMEMBERED or bits is None:
        return (np.tril if lower else np.triu)(value, k)
    return (value.view(bits) & _triangle_mask(rows, columns, k, lower, bits)).view(value.dtype)


_REMEMBERED = 1 << 14  # elements of a mask that is kept
_BITS = {1: np.dtype("int8"), 2: np.dtype("int16"), 4: np.dtype("int32"), 8: np.dtype("int64")}


@functools.lru_cache(64)
def _triangle_mask(rows: int, columns: int, k: int, lower: bool, bits) -> np.ndarray:
    """All bits of the elements that stay in the lower or upper triangle of a matrix, and none of the others.

    A bitwise "and" takes a third of the time of ``np.where``.
    """
    kept = np.tri(rows, columns, k, bool) if lower else ~np.tri(rows, columns, k - 1, bool)
    return -kept.astype(bits)


def _triangle(name: str, m, k, lower: bool):
    m = as_array_argument(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    k = static_int(k, f"'k' argument of jnp.{name}")
    if direct(m) and m.dtype.kind != "V":
        return make_array(_triangle_of(m._value, k, lower), m.weak_type)
    mask = tri(*m.shape[-2:], k=k if lower else k - 1, dtype=bool)
    mask = broadcast_to(mask, m.shape)
    zero = lax.full_like(m, 0)
    return lax.select(mask, m, zero) if lower else lax.select(mask, zero, m)


@whole
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above a diagonal.

    Arguments:
      m: an array with at least two axes, the last two of which are those of the matrices.
      k: which diagonal: 0 the main one, positive above it, negative below.
    Returns:
      An array of the shape and dtype of ``m``.
    Raises:
      ValueError: ``m`` has fewer than two axes.

    >>> import catena.numpy as jnp
    >>> jnp.tril(jnp.ones((2, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    return _triangle("tril", m, k, lower=True)


@whole
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below a diagonal.

    Arguments:
      m: an array with at least two axes, the last two of which are those of the matrices.
      k: which diagonal: 0 the main one, positive above it, negative below.
    Returns:
      An array of the shape and dtype of ``m``.
    Raises:
      ValueError: ``m`` has fewer than two axes.

    >>> import catena.numpy as jnp
    >>> jnp.triu(jnp.ones((2, 3)))
    Array([[1., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k, lower=False)
