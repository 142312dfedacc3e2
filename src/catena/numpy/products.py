"""Products of vectors and matrices: ``matmul``, ``dot``, ``tensordot`` and their kin; all are ``lax.dot_general``."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.evaluate import quiet
from catena.core.shapes import broadcast_shapes
from catena.lax.policy import LONG_SUM, is_small_product
from catena.lax.structure import dense, told
from catena.lax.whole import whole
from catena.numpy.boundary import (
    broadcast_to,
    canonical_axis,
    concrete_values,
    convert,
    dtype_of,
    operands,
    promoted_dtype,
    refuse_out,
    static_int,
    user_dtype,
)
from catena.numpy.hot import C64, C128, F32, F64, INT, NUMBER
from catena.numpy.placement import placed
from catena.numpy.promotion import promote_dtypes
from catena.runtime import buffers
from catena.typing import ArrayLike, DTypeLike

_REAL = frozenset({F32, F64})
_FAST = frozenset({F32, F64, C64, C128})
FEW_INTEGERS = 256
_product = np.ndarray.dot  # the method has a third of the overhead of np.matmul


def fast_product(x, y, weak: bool):
    """The product of two concrete vectors or matrices by BLAS, or None where it is not that simple: large ones are for
    all threads, long sums for more precision. Few integers are multiplied by NumPy's loops, which are as exact.
    """
    if x.dtype is y.dtype and 1 <= x.ndim <= 2 and 1 <= y.ndim <= 2 and x.shape[-1] == y.shape[0]:
        if x.dtype not in _FAST and not (x.dtype in INT and x.size + y.size <= FEW_INTEGERS):
            return None
        if x.size + y.size > LONG_SUM:  # else neither sums nor work can be too large
            k = y.shape[0]
            if k > LONG_SUM or not is_small_product(x.size, y.size, k):
                return None
        if not x.flags.c_contiguous or not y.flags.c_contiguous:
            x, y = dense(x), dense(y)
        value = quiet.run(_product, x, y)
        value = value if type(value) is np.ndarray else np.asarray(value)
        return make_array(value, weak)
    return None


def _operands(name: str, a, b, preferred) -> tuple:
    """Operands of their own ranks and dtypes, the dtype of the result, and whether it is weak.

    A contraction takes operands of two dtypes, so that none has to be copied in full into a wider one; only a weak one,
    which has no dtype that it insists on, becomes what both promote to.
    """
    if type(a) is type(b) is Array and preferred is None and a.dtype is b.dtype and not (a._weak or b._weak):
        return a, b, a.dtype, False  # as nearly all are
    xs = operands(name, a, b)
    dtype, weak = promoted_dtype(xs)
    preferred = user_dtype(preferred, name)
    a, b = (convert(x, dtype if dtype_of(x)[1] else dtype_of(x)[0], dtype_of(x)[1]) for x in xs)
    return a, b, preferred or dtype, weak and preferred is None


def _contract(a, b, contracting, batch, precision, dtype, weak):
    result = lax.dot_general(a, b, (contracting, batch), precision=precision, preferred_element_type=dtype)
    return convert(result, dtype, weak)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The matrix product, for stacks of matrices too.

    Arguments:
      a: an array of shape (..., n, k), or (k,).
      b: an array of shape (..., k, m), or (k,); the leading axes of both broadcast together.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of shape (..., n, m), without the axis of an argument that is a vector.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the lengths that are contracted differ.
      ValueError: an argument is a scalar, or the leading axes do not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, matmul, a, b, precision=precision, preferred_element_type=preferred_element_type)
    if precision is None and preferred_element_type is None:  # the hot path
        product = _product_at_once(a, b)
        if product is not None:
            return product
    a, b, dtype, weak = _operands("matmul", a, b, preferred_element_type)
    for i, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul input operand {i} must have ndim at least 1, but it has ndim 0")
    return placed(_matmul(a, b, precision, dtype, weak))


def _product_at_once(a, b) -> Array | None:
    """The product of two concrete arrays, the hot path; None where it is not so simple."""
    if type(a) is Array and type(b) is Array and context.trace is None and not context.debug_checks:
        return fast_product(a._value, b._value, a._weak and b._weak)
    found = concrete_values(NUMBER, a, b)
    return fast_product(*found, False) if found else None


@whole
def _matmul(a, b, precision, dtype, weak):
    if b.ndim <= 2:  # one matrix on the right: no batch axes are needed
        return _contract(a, b, ((a.ndim - 1,), (0,)), ((), ()), precision, dtype, weak)
    if a.ndim <= 2:
        result = _contract(a, b, ((a.ndim - 1,), (b.ndim - 2,)), ((), ()), precision, dtype, weak)
        rows = tuple(range(a.ndim - 1))  # in front of the batch axes, where they must not stay
        batch = tuple(range(len(rows), result.ndim - 1))
        return lax.transpose(result, (*batch, *rows, result.ndim - 1)) if rows else result
    batch = _batch_shape(a, b)
    a, b = broadcast_to(a, (*batch, *a.shape[-2:])), broadcast_to(b, (*batch, *b.shape[-2:]))
    axes = tuple(range(len(batch)))
    return _contract(a, b, ((a.ndim - 1,), (b.ndim - 2,)), (axes, axes), precision, dtype, weak)


def _batch_shape(a, b) -> tuple:
    try:
        return broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        types = f"{a.aval.str_short()} and {b.aval.str_short()}"
        raise ValueError(f"Incompatible types for matmul arguments: {types}") from None


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum over the last axis of ``a`` and the last but one of ``b`` (the last of a vector) of their products.

    Arguments:
      a, b: arrays or scalars; with a scalar it is the ordinary product.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array with the other axes of ``a``, then those of ``b``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the lengths that are contracted differ.

    >>> import catena.numpy as jnp
    >>> jnp.dot(jnp.array([1, 2, 3]), jnp.array([4, 5, 6]))
    Array(32, dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, dot, a, b, precision=precision, preferred_element_type=preferred_element_type)
    if precision is None and preferred_element_type is None:  # the hot path
        product = _product_at_once(a, b)
        if product is not None:
            return product
    a, b, dtype, weak = _operands("dot", a, b, preferred_element_type)
    return placed(_dot(a, b, precision, dtype, weak))


@whole
def _dot(a, b, precision, dtype, weak):
    if not a.ndim or not b.ndim:
        return _scaled("dot", a, b, dtype, weak)
    contracting = ((a.ndim - 1,), (max(b.ndim - 2, 0),))
    return _contract(a, b, contracting, ((), ()), precision, dtype, weak)


def _scaled(name: str, a, b, dtype, weak):
    """The product of a scalar and an array."""
    a, b = promote_dtypes(name, a, b)
    return convert((lax.bitwise_and if a.dtype == bool else lax.mul)(a, b), dtype, weak)


def vdot(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The scalar product of two arrays as flat vectors, the first conjugated.

    Arguments:
      a, b: arrays of the same size.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
    Returns:
      A 0-d array.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the sizes differ.

    >>> import catena.numpy as jnp
    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1j, 1.0]))
    Array(3.+0.j, dtype=complex64)
    """
    if precision is None and preferred_element_type is None and (found := concrete_values(_REAL, a, b)):
        if found[0].size == found[1].size <= LONG_SUM:  # the hot path
            return make_array(np.asarray(quiet.run(np.dot, dense(found[0]).reshape(-1), dense(found[1]).reshape(-1))))
    return _any_vdot(a, b, precision, preferred_element_type)


@whole
def _any_vdot(a, b, precision, preferred_element_type):
    a, b = (convert(x, *dtype_of(x)) for x in operands("vdot", a, b))
    a = lax.conj(a) if dtypes.is_complex(a.dtype) else a
    flat = (lax.reshape(x, (x.size,)) if x.ndim != 1 else x for x in (a, b))
    return dot(*flat, precision=precision, preferred_element_type=preferred_element_type)


def inner(
    a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sum over the last axes of two arrays of their products.

    Arguments:
      a, b: arrays whose last axes have the same length, or scalars.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
    Returns:
      An array with the other axes of ``a``, then those of ``b``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, or the lengths differ.

    >>> import catena.numpy as jnp
    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    if precision is None and preferred_element_type is None and (found := concrete_values(_FAST, a, b)):
        x, y = found  # the hot path
        if x.ndim in (1, 2) and y.ndim in (1, 2) and x.shape[-1] == y.shape[-1] <= LONG_SUM:
            if is_small_product(x.size, y.size, x.shape[-1]):
                return make_array(np.asarray(quiet.run(np.dot, dense(x), dense(y.T))))
    a, b, dtype, weak = _operands("inner", a, b, preferred_element_type)
    if not a.ndim or not b.ndim:
        return _scaled("inner", a, b, dtype, weak)
    return _contract(a, b, ((a.ndim - 1,), (b.ndim - 1,)), ((), ()), precision, dtype, weak)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The products of all elements of ``a`` with all elements of ``b``.

    Arguments:
      a, b: arrays or scalars, taken as flat vectors.
      out: not supported; arrays are immutable.
    Returns:
      An array of shape ``(a.size, b.size)``.
    Raises:
      TypeError: an argument is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.outer(jnp.array([1, 2]), jnp.array([1, 10]))
    Array([[ 1, 10],
           [ 2, 20]], dtype=int32)
    """
    refuse_out("outer", out)
    if (found := concrete_values(NUMBER, a, b)) and found[0].size * found[1].nbytes < buffers.SMALLEST:  # the hot path
        return make_array(quiet.run(np.multiply, found[0].reshape(-1, 1), found[1].reshape(1, -1)))
    return _outer(a, b)


def _outer_product(a, b):
    a, b = promote_dtypes("outer", a, b)
    product = lax.bitwise_and if a.dtype == dtypes.BOOL else lax.mul
    return product(lax.reshape(a, (a.size, 1)), lax.reshape(b, (1, b.size)))


_outer = whole(_outer_product, "elementwise")


@whole
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """The sum over pairs of axes of two arrays of their products.

    Arguments:
      a, b: arrays.
      axes: how many of the last axes of ``a`` to pair with the first of ``b``; or a pair of axes, or of lists
        of axes.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array with the other axes of ``a``, then those of ``b``.
    Raises:
      TypeError: an argument is neither an array nor a scalar, ``axes`` is malformed, or the lengths differ.

    >>> import catena.numpy as jnp
    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5)), axes=2).shape
    (2, 5)
    """
    if out_sharding is not None:
        return told(
            out_sharding, tensordot, a, b, axes, precision=precision, preferred_element_type=preferred_element_type
        )
    a, b, dtype, weak = _operands("tensordot", a, b, preferred_element_type)
    contracting = _paired_axes(a, b, axes)
    return placed(_contract(a, b, contracting, ((), ()), precision, dtype, weak))


def _paired_axes(a, b, axes) -> tuple:
    if isinstance(axes, int | np.integer):
        if axes > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {axes}) exceeds input ranks ({a.shape} and {b.shape})")
        if axes < 0:
            raise ValueError(f"tensordot: axes must not be negative, got {axes}")
        return tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    if not isinstance(axes, tuple | list) or len(axes) != 2:
        raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of lists/tuples of ints.")
    first, second = (tuple(x) if isinstance(x, tuple | list) else (operator.index(x),) for x in axes)
    if len(first) != len(second):
        raise TypeError(f"tensordot requires axes lists to have equal length, got {first} and {second}.")
    return tuple(canonical_axis(i, a.ndim) for i in first), tuple(canonical_axis(i, b.ndim) for i in second)


@whole
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The scalar products of vectors along an axis, the first conjugated.

    Arguments:
      x1, x2: arrays whose other axes broadcast together.
      axis: the axis of the vectors.
      precision: a ``lax.Precision`` or its name; products are always computed in full precision here.
      preferred_element_type: the dtype to accumulate in and return.
    Returns:
      An array of the broadcast shape without the axis.
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: the lengths along the axis differ, or the other axes do not broadcast.

    >>> import catena.numpy as jnp
    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    axis = static_int(axis, "'axis' argument of jnp.vecdot")
    a, b, dtype, weak = _operands("vecdot", x1, x2, preferred_element_type)
    if a.shape[canonical_axis(axis, a.ndim)] != b.shape[canonical_axis(axis, b.ndim)]:
        raise ValueError(f"axes must match; got shapes {a.shape} and {b.shape} with {axis=}")
    a, b = (_last(x, axis) for x in (lax.conj(a) if dtypes.is_complex(a.dtype) else a, b))
    batch = broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = (broadcast_to(x, (*batch, x.shape[-1])) for x in (a, b))
    axes = tuple(range(len(batch)))
    return _contract(a, b, ((len(batch),), (len(batch),)), (axes, axes), precision, dtype, weak)


def _last(x, axis: int):
    """``x`` with ``axis`` at the end."""
    axis = canonical_axis(axis, x.ndim)
    if axis == x.ndim - 1:
        return x
    return lax.transpose(x, (*(i for i in range(x.ndim) if i != axis), axis))


@whole
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of matrices and vectors.

    Arguments:
      x1: an array of shape (..., n, m).
      x2: an array of shape (..., m); the leading axes of both broadcast together.
    Returns:
      An array of shape (..., n).
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    a, b, dtype, weak = _operands("matvec", x1, x2, None)
    _check_core("matvec", "(n,m),(m)->(n)", a.ndim >= 2 and b.ndim >= 1, a, b, -1, -1)
    result = _matmul(a, lax.expand_dims(b, (b.ndim,)), None, dtype, weak)
    return lax.squeeze(result, (result.ndim - 1,))


@whole
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of vectors, conjugated, and matrices.

    Arguments:
      x1: an array of shape (..., n).
      x2: an array of shape (..., n, m); the leading axes of both broadcast together.
    Returns:
      An array of shape (..., m).
    Raises:
      TypeError: an argument is neither an array nor a scalar.
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
    Array([31, 42], dtype=int32)
    """
    a, b, dtype, weak = _operands("vecmat", x1, x2, None)
    _check_core("vecmat", "(n),(n,m)->(m)", a.ndim >= 1 and b.ndim >= 2, a, b, -1, -2)
    a = lax.conj(a) if dtypes.is_complex(a.dtype) else a
    result = _matmul(lax.expand_dims(a, (a.ndim - 1,)), b, None, dtype, weak)
    return lax.squeeze(result, (result.ndim - 2,))


def _check_core(name, signature, ranks_fit, a, b, i, j):
    if not ranks_fit or a.shape[i] != b.shape[j]:
        raise ValueError(f"{name}: shapes {a.shape} and {b.shape} do not fit the signature {signature}")


@whole
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: each element of ``a`` times all of ``b``.

    Arguments:
      a, b: arrays or scalars; the one with fewer axes gets axes of length 1 in front.
    Returns:
      An array whose lengths are the products of those of ``a`` and ``b``.
    Raises:
      TypeError: an argument is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
    Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    if (found := concrete_values(NUMBER, a, b)) and found[0].ndim == found[1].ndim:  # the hot path
        return make_array(quiet.run(_kronecker, *found))
    a, b = promote_dtypes("kron", a, b)
    rank = max(a.ndim, b.ndim)
    a, b = (lax.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    spread_a, spread_b, shape = _kronecker_shapes(a.shape, b.shape)
    return lax.reshape(lax.mul(lax.reshape(a, spread_a), lax.reshape(b, spread_b)), shape)


def _kronecker(x, y) -> np.ndarray:
    """The product of two NumPy arrays of the same number of axes."""
    spread_x, spread_y, shape = _kronecker_shapes(x.shape, y.shape)
    return (x.reshape(spread_x) * y.reshape(spread_y)).reshape(shape)


@functools.lru_cache(64)
def _kronecker_shapes(x: tuple, y: tuple) -> tuple:
    """The shapes of the operands that are multiplied, and of the result; where one is of size 1, an axis is enough."""
    spread_x, spread_y = [], []
    for m, n in zip(x, y, strict=True):
        spread_x += (m,) if m == 1 or n == 1 else (m, 1)
        spread_y += (n,) if m == 1 or n == 1 else (1, n)
    return tuple(spread_x), tuple(spread_y), tuple(m * n for m, n in zip(x, y, strict=True))
