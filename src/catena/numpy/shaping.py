"""The same elements in another shape: ``reshape``, ``transpose``, ``squeeze``, ``broadcast_to`` and their kin.

For concrete arrays all of these are views: arrays are immutable, so nothing is copied but where the order of
elements in memory demands it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core import shapes as core_shapes
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.core.shapes import check_axes
from catena.core.trace import Tracer
from catena.lax.structure import told
from catena.numpy import boundary
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    canonical_axes,
    canonical_axis,
    static_axis,
    static_int,
)
from catena.numpy.creation import shape_argument
from catena.numpy.placement import placed
from catena.typing import ArrayLike


def reshape(a: ArrayLike, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Array:
    """The elements of an array, in order, in another shape.

    Arguments:
      a: an array or a scalar.
      shape: the new shape, of the same size; one length may be -1, which is then inferred.
      order: "C" to take and put the elements with the last index changing fastest, "F" with the first.
      copy: whether a copy is wanted; arrays are immutable, so it makes no difference.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape; of a NumPy array a NumPy array, as it is in JAX, where libraries count on its being known
      while a function is traced.
    Raises:
      TypeError: the sizes differ, two lengths are -1, or a length is not an integer known while tracing. ValueError:
        the same of NumPy arrays.

    >>> import catena.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, reshape, a, shape, order, copy=copy)
    del copy
    if isinstance(a, np.ndarray | np.generic):
        return a.reshape(shape, order=order)  # type: ignore[return-value, arg-type]
    a = as_array_argument("reshape", a)
    return placed(reshaped(a, shape, order))


def reshaped(a, shape, order: str = "C"):
    """``a`` in the shape that the user wrote."""
    if order not in ("C", "F"):
        name = f"np.reshape order={order}"
        if order == "A":
            raise NotImplementedError(f"{name} is not implemented.")
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    sizes = inferred_shape(a, shape)
    if order == "C":
        return _view(a, sizes)
    backwards = _view(_reversed_axes(a), sizes[::-1])
    return _reversed_axes(backwards)


def _view(a, sizes: tuple):
    if type(a) is Array and context.trace is None:
        return make_array(a._value.reshape(sizes), a._weak)
    return a if a.shape == sizes else lax.reshape(a, sizes)


def _reversed_axes(a):
    return lax.transpose(a, tuple(range(a.ndim))[::-1]) if a.ndim > 1 else a


def inferred_shape(a, shape) -> tuple:
    """``shape`` as a tuple of lengths, -1 replaced by what is left of the size."""
    sizes = _lengths(shape)
    check_axes(sizes)
    if -1 in sizes:
        if sizes.count(-1) > 1:
            raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {sizes}")
        known = int(np.prod([s for s in sizes if s != -1]))
        if not known or a.size % known:
            raise TypeError(
                f"cannot reshape array of shape {a.shape} (size {a.size}) into shape {shape} because the "
                f"product of specified axis sizes ({known}) does not evenly divide {a.size}"
            )
        return tuple(a.size // known if s == -1 else s for s in sizes)
    size = 1
    for s in sizes:
        size *= s
    if size != a.size or any(s < 0 for s in sizes):
        raise TypeError(f"cannot reshape array of shape {a.shape} (size {a.size}) into shape {shape} (size {size})")
    return sizes


def _lengths(shape) -> tuple:
    if type(shape) is tuple and all(type(s) is int for s in shape):
        return shape
    negative_one = object()
    given = list(shape) if np.iterable(shape) and getattr(shape, "ndim", 1) and not isinstance(shape, str) else [shape]
    checked = [negative_one if not isinstance(s, Tracer | float) and s == -1 else s for s in given]
    known = iter(shape_argument([s for s in checked if s is not negative_one]) if len(checked) else ())
    return tuple(-1 if s is negative_one else next(known) for s in checked)


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements of an array in one axis.

    Arguments:
      a: an array or a scalar.
      order: "C" to take the elements with the last index changing fastest, "F" with the first.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array with one axis.
    Raises:
      TypeError: ``a`` is neither an array nor a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, ravel, a, order)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    a = as_array_argument("ravel", a)
    return placed(reshaped(a, (a.size,), order))


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """An array with its axes in another order.

    Arguments:
      a: an array or a scalar.
      axes: for each axis of the result, the axis of ``a`` that it is; None to reverse them.
    Returns:
      An array.
    Raises:
      ValueError: ``a`` has no such axis.
      TypeError: ``axes`` is not a permutation of the axes.

    >>> import catena.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    a = as_array_argument("transpose", a)
    if axes is None:
        return _permuted(a, tuple(range(a.ndim))[::-1])
    return _permuted(a, permutation(a, axes))


def permutation(a, axes) -> tuple:
    """A permutation argument with axes counted from the front."""
    axes = tuple(static_int(i, "axes of transpose") for i in axes)
    counted = tuple(canonical_axis(i, a.ndim) for i in axes)
    if sorted(counted) != list(range(a.ndim)):
        raise TypeError(
            f"transpose permutation isn't a permutation of operand dimensions, got permutation {axes} for operand "
            f"shape {a.shape}."
        )
    return counted


def _permuted(a, axes: tuple):
    if type(a) is Array and context.trace is None:
        return make_array(a._value.transpose(axes), a._weak)
    return lax.transpose(a, axes)


def permute_dims(a: ArrayLike, /, axes: tuple[int, ...]) -> Array:
    """An array with its axes in another order, as the array API standard calls it.

    Arguments:
      a: an array.
      axes: for each axis of the result, the axis of ``a`` that it is.
    Returns:
      An array.
    Raises:
      TypeError: ``axes`` is not a permutation of the axes, counted from the front.

    >>> import catena.numpy as jnp
    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    return lax.transpose(as_array_argument("permute_dims", a), axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """An array with its last two axes exchanged.

    Arguments:
      x: an array with at least two axes.
    Returns:
      An array.
    Raises:
      ValueError: ``x`` has fewer than two axes.

    >>> import catena.numpy as jnp
    >>> jnp.matrix_transpose(jnp.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    x = as_array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return _permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """An array with two axes exchanged.

    Arguments:
      a: an array.
      axis1, axis2: the axes.
    Returns:
      An array.
    Raises:
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    a = as_array_argument("swapaxes", a)
    i, j = (canonical_axis(static_int(n, "axis of swapaxes"), a.ndim) for n in (axis1, axis2))
    axes = list(range(a.ndim))
    axes[i], axes[j] = j, i
    return _permuted(a, tuple(axes))


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """An array without axes of length 1.

    Arguments:
      a: an array or a scalar.
      axis: which axes to leave out, each of length 1; None for all such.
    Returns:
      An array.
    Raises:
      ValueError: an axis has another length or is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape
    (3,)
    """
    a = as_array_argument("squeeze", a)
    if axis is None:
        axes = tuple(i for i, size in enumerate(a.shape) if size == 1)
    else:
        axes = canonical_axes(axis, a.ndim)
    if any(a.shape[i] != 1 for i in axes):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one, got shape={a.shape} and "
            f"dimensions={axes}"
        )
    if not axes:
        return a
    if type(a) is Array and context.trace is None:
        return make_array(a._value.squeeze(axes), a._weak)
    return lax.squeeze(a, axes)


def expand_dims(a: ArrayLike, axis: int | Sequence[int] = 0) -> Array:
    """An array with new axes of length 1.

    Arguments:
      a: an array or a scalar.
      axis: where the new axes are in the result, an integer or several.
    Returns:
      An array.
    Raises:
      ValueError: an axis is out of bounds or given twice.

    >>> import catena.numpy as jnp
    >>> jnp.expand_dims(jnp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    a = as_array_argument("expand_dims", a)
    axis = static_axis(axis)
    rank = a.ndim + (len(axis) if isinstance(axis, tuple) else 1)
    axes = canonical_axes(axis, rank)
    check_axes((*a.shape, *(1 for _ in axes)))
    if type(a) is Array and context.trace is None:
        return make_array(np.expand_dims(a._value, axes), a._weak)
    return lax.expand_dims(a, axes)


def broadcast_to(array: ArrayLike, shape: int | Sequence[int], *, out_sharding: Any = None) -> Array:
    """An array repeated along new axes and axes of length 1, without memory for the repetitions.

    Arguments:
      array: an array or a scalar.
      shape: the new shape, with which that of ``array`` broadcasts.
      out_sharding: how types say that the result is split, a NamedSharding or PartitionSpec.
    Returns:
      An array of that shape.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(3), (2, 3))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return told(out_sharding, broadcast_to, array, shape)
    array = as_array_argument("broadcast_to", array)
    return placed(checked_broadcast(array, shape_argument(shape)))


def checked_broadcast(array, shape: tuple):
    """``array`` broadcast to ``shape``, or the error that says that it does not fit."""
    if array.ndim > len(shape):
        raise ValueError(f"Cannot broadcast to shape with fewer dimensions: arr_shape={array.shape} shape={shape}")
    if any(n not in (1, m) for n, m in zip(array.shape[::-1], shape[::-1], strict=False)):
        requested = f"{array.dtype}[{','.join(map(str, shape))}]"
        raise ValueError(
            f"Incompatible types for broadcasting: input type={array.aval.str_short()} and requested type={requested}"
        )
    return boundary.broadcast_to(array, shape)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape that arrays of the given shapes broadcast to.

    Arguments:
      *shapes: shapes.
    Returns:
      A shape.
    Raises:
      ValueError: the shapes do not broadcast together.

    >>> import catena.numpy as jnp
    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if not shapes:
        return ()
    given = [shape_argument(s) for s in shapes]
    try:
        return core_shapes.broadcast_shapes(*given)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={given}") from None


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Arrays broadcast to one shape.

    Arguments:
      *args: arrays or scalars.
    Returns:
      A list of arrays.
    Raises:
      ValueError: the shapes do not broadcast together.

    >>> import catena.numpy as jnp
    >>> [x.shape for x in jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))]
    [(2, 3), (2, 3)]
    """
    arrays = array_arguments("broadcast_arrays", *args)
    shape = broadcast_shapes(*(a.shape for a in arrays))
    return [boundary.broadcast_to(a, shape) for a in arrays]
