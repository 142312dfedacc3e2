"""Rearranging arrays without computing: shapes, the order of axes, reversal, broadcasting.

On concrete arrays all of these are views of NumPy, which are free because arrays are immutable.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from catena import lax
from catena.core.array import Array, make_array
from catena.core.context import context
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    canonical_axis,
    direct,
    static_axis,
    static_int,
)
from catena.numpy.creation import shape_argument
from catena.numpy.hot import Operand
from catena.numpy.placement import placed

Shape = int | Sequence[int]

# ----------------------------------------------------------------------------------------------------
# Shapes


def reshape(
    a: Operand, shape: Shape, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None
) -> Array:
    """The same elements in another shape.

    Arguments:
      a: an array or scalar.
      shape: the new shape; one size may be -1, which stands for what is left.
      order: "C" to read and place elements with the last axis changing fastest, "F" with the first.
      copy: whether to copy; arrays are immutable, so this changes nothing that a program could see.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      An array of ``shape``.
    Raises:
      TypeError: the sizes do not agree, or ``a`` is not an array or scalar.
      ValueError: the order is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.reshape(jnp.arange(6), (2, -1))
    ?
    """
    return placed(reshaped(as_array_argument("reshape", a), shape, order), None, out_sharding)


def reshaped(a, shape, order: str = "C"):
    """``a``, an array, in another shape."""
    if order == "C" and type(a) is Array and context.trace is None:
        try:
            return make_array(a._value.reshape(shape), a.weak_type)
        except (TypeError, ValueError):  # sizes that do not fit, or are no integers: said below
            pass
    sizes = resolved_shape(a.shape, shape_argument(shape))
    if order == "C":
        return lax.reshape(a, sizes)
    if order == "F":
        return transpose(lax.reshape(transpose(a), sizes[::-1]))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def resolved_shape(old: tuple, new: tuple) -> tuple:
    """``new`` with the size that -1 stands for."""
    total = int(np.prod(old, dtype=object)) if old else 1
    if sum(n == -1 for n in new) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
    known = 1
    for n in new:
        known *= 1 if n == -1 else n
    if -1 in new:
        if known == 0 or total % known:
            raise TypeError(
                f"cannot reshape array of shape {old} (size {total}) into shape {new} because the product of specified "
                f"axis sizes ({known}) does not evenly divide {total}"
            )
        return tuple(total // known if n == -1 else n for n in new)
    if known != total:
        raise TypeError(f"cannot reshape array of shape {old} (size {total}) into shape {new} (size {known})")
    return new


def ravel(a: Operand, order: str = "C", *, out_sharding: Any = None) -> Array:
    """All elements along one axis.

    Arguments:
      a: an array or scalar.
      order: "C" for the last axis changing fastest, "F" for the first.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      A 1-D array of ``a.size`` elements.
    Raises:
      TypeError: ``a`` is not an array or scalar. ValueError: the order is unknown.

    >>> import catena.numpy as jnp
    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    ?
    """
    a = as_array_argument("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return placed(reshaped(a, (a.size,), order), None, out_sharding)


def squeeze(a: Operand, axis: Shape | None = None) -> Array:
    """The array without axes of size 1.

    Arguments:
      a: an array or scalar.
      axis: the axes to remove; by default all of size 1.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: an axis is out of bounds or not of size 1.

    >>> import catena.numpy as jnp
    >>> jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
    ?
    """
    a = as_array_argument("squeeze", a)
    if axis is None:
        axes = tuple(i for i, n in enumerate(a.shape) if n == 1)
    else:
        axis = static_axis(axis)
        axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(canonical_axis(i, a.ndim) for i in axes)
    if direct(a) and len(set(axes)) == len(axes) and all(a.shape[i] == 1 for i in axes):
        return make_array(a._value.squeeze(axes), a.weak_type)
    return lax.squeeze(a, axes)


def expand_dims(a: Operand, axis: Shape) -> Array:
    """The array with new axes of size 1.

    Arguments:
      a: an array or scalar.
      axis: where the new axes are in the result.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: an axis is out of bounds or occurs twice.

    >>> import catena.numpy as jnp
    >>> jnp.expand_dims(jnp.arange(3), (0, -1)).shape
    ?
    """
    a = as_array_argument("expand_dims", a)
    if type(axis) is int and type(a) is Array and context.trace is None:
        value = a._value
        if -value.ndim - 1 <= axis <= value.ndim:
            before = axis if axis >= 0 else axis + value.ndim + 1
            return make_array(value[(slice(None),) * before + (None,)], a.weak_type)
    axis = static_axis(axis)
    axes = axis if isinstance(axis, tuple) else (axis,)
    return lax.expand_dims(a, axes) if axes else a


def broadcast_to(array: Operand, shape: Shape, *, out_sharding: Any = None) -> Array:
    """The array repeated along new axes and axes of size 1.

    Arguments:
      array: an array or scalar.
      shape: the shape of the result.
      out_sharding: the sharding of the result; None for that of a single device.
    Returns:
      An array of ``shape``.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.broadcast_to(jnp.arange(2), (2, 2))
    ?
    """
    array = as_array_argument("broadcast_to", array)
    shape = shape_argument(shape)
    if array.shape == shape:
        return placed(array, None, out_sharding)
    lead = len(shape) - array.ndim
    if lead < 0:
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: arr_shape={array.shape} shape={shape}"
        )
    if not all(m in (1, n) for m, n in zip(array.shape, shape[lead:], strict=True)):
        raise ValueError(
            f"Incompatible types for broadcasting: input type={array.aval.str_short()} and requested type="
            f"{array.aval.update(shape=shape).str_short()}"
        )
    if direct(array):
        return make_array(np.broadcast_to(array._value, shape), array.weak_type)
    return placed(lax.broadcast_in_dim(array, shape, tuple(range(lead, len(shape)))), None, out_sharding)


def broadcast_arrays(*args: Operand) -> list[Array]:
    """The arguments broadcast to one shape.

    Arguments:
      *args: arrays and scalars.
    Returns:
      A list of arrays of one shape, each of its own dtype.
    Raises:
      ValueError: the shapes do not fit.

    >>> import catena.numpy as jnp
    >>> jnp.broadcast_arrays(1, jnp.arange(2))
    ?
    """
    arrays = array_arguments("broadcast_arrays", *args)
    shape = lax.broadcast_shapes(*(a.shape for a in arrays))
    return [broadcast_to(a, shape) for a in arrays]


def _at_least(name: str, arys, raised) -> Array | list[Array]:
    arrays = [raised(a) for a in array_arguments(name, *arys)]
    return arrays[0] if len(arrays) == 1 else arrays


def atleast_1d(*arys: Operand) -> Array | list[Array]:
    """Arrays with at least one axis.

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_1d(3.0)
    ?
    """
    return _at_least("atleast_1d", arys, lambda a: a if a.ndim else reshaped(a, (1,)))


def atleast_2d(*arys: Operand) -> Array | list[Array]:
    """Arrays with at least two axes; new ones come first.

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_2d(jnp.arange(3)).shape
    ?
    """
    return _at_least("atleast_2d", arys, lambda a: a if a.ndim > 1 else reshaped(a, (1, a.size)))


def atleast_3d(*arys: Operand) -> Array | list[Array]:
    """Arrays with at least three axes; a 1-D array becomes (1, N, 1), a 2-D one (M, N, 1).

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_3d(jnp.arange(3)).shape
    ?
    """

    def raised(a):
        if a.ndim > 2:
            return a
        return reshaped(a, (*a.shape, 1) if a.ndim == 2 else (1, a.size, 1))

    return _at_least("atleast_3d", arys, raised)


# ----------------------------------------------------------------------------------------------------
# The order of axes


def transpose(a: Operand, axes: Sequence[int] | None = None) -> Array:
    """The array with its axes permuted.

    Arguments:
      a: an array or scalar.
      axes: for each axis of the result, the axis of ``a`` that it is; by default in reverse order.
    Returns:
      An array of the same elements.
    Raises:
      TypeError: ``axes`` is not a permutation. ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    ?
    """
    a = as_array_argument("transpose", a)
    if axes is None:
        if type(a) is Array and context.trace is None:
            return make_array(a._value.T, a.weak_type)
        return _permuted(a, tuple(range(a.ndim - 1, -1, -1)))
    return _permuted(a, tuple(canonical_axis(i, a.ndim) for i in _axes_argument(axes)))


def _axes_argument(axes) -> tuple:
    axes = static_axis(axes) if isinstance(axes, tuple | list) else axes
    if isinstance(axes, tuple):
        return axes
    return tuple(map(operator.index, axes)) if np.iterable(axes) else (operator.index(axes),)


def _permuted(a, axes: tuple):
    if type(a) is Array and context.trace is None and len(set(axes)) == len(axes) == a.ndim:
        return make_array(a._value.transpose(axes), a.weak_type)
    return lax.transpose(a, axes)


def permute_dims(a: Operand, /, axes: tuple[int, ...]) -> Array:
    """The array with its axes permuted.

    Arguments:
      a: an array or scalar.
      axes: for each axis of the result, the axis of ``a`` that it is.
    Returns:
      An array of the same elements.
    Raises:
      TypeError: ``axes`` is not a permutation. ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.permute_dims(jnp.ones((2, 3)), (1, 0)).shape
    ?
    """
    return transpose(a, axes)


def matrix_transpose(x: Operand, /) -> Array:
    """The array with its last two axes exchanged.

    Arguments:
      x: an array of at least two dimensions.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: ``x`` has fewer dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
    ?
    """
    x = as_array_argument("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"x must be at least two-dimensional for matrix_transpose; got ndim={x.ndim}")
    return _permuted(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def swapaxes(a: Operand, axis1: int, axis2: int) -> Array:
    """The array with two axes exchanged.

    Arguments:
      a: an array.
      axis1, axis2: the axes.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    ?
    """
    a = as_array_argument("swapaxes", a)
    axes = list(range(a.ndim))
    i, j = canonical_axis(operator.index(axis1), a.ndim), canonical_axis(operator.index(axis2), a.ndim)
    axes[i], axes[j] = j, i
    return _permuted(a, tuple(axes))


def moveaxis(a: Operand, source: Shape, destination: Shape) -> Array:
    """The array with some axes moved, the others in order.

    Arguments:
      a: an array.
      source: the axes to move.
      destination: where they are in the result.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: an axis is out of bounds or occurs twice, or the numbers of axes differ.

    >>> import catena.numpy as jnp
    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    ?
    """
    a = as_array_argument("moveaxis", a)
    sources, destinations = _axes_argument(source), _axes_argument(destination)
    if len(sources) != len(destinations):
        raise ValueError(f"Inconsistent number of elements: {len(sources)} vs {len(destinations)}")
    sources = [canonical_axis(i, a.ndim) for i in sources]
    destinations = [canonical_axis(i, a.ndim) for i in destinations]
    if len(set(sources)) != len(sources) or len(set(destinations)) != len(destinations):
        raise ValueError(f"moveaxis: axes must not repeat, got source={source}, destination={destination}")
    order = [i for i in range(a.ndim) if i not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return _permuted(a, tuple(order))


def rollaxis(a: Operand, axis: int, start: int = 0) -> Array:
    """The array with one axis moved before another.

    Arguments:
      a: an array.
      axis: the axis to move.
      start: the axis that it is put before; ``a.ndim`` for the end.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: ``axis`` or ``start`` is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    ?
    """
    a = as_array_argument("rollaxis", a)
    start = static_int(start, "'start' argument of jnp.rollaxis()")
    axis = canonical_axis(static_int(axis, "'axis' argument of jnp.rollaxis()"), a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


# ----------------------------------------------------------------------------------------------------
# Reversal and rotation


def flip(m: Operand, axis: Shape | None = None) -> Array:
    """The array with the order of elements reversed along some axes.

    Arguments:
      m: an array.
      axis: the axes; by default all.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: an axis is out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.flip(jnp.arange(3))
    ?
    """
    return _flipped(as_array_argument("flip", m), axis)


def _flipped(m, axis):
    axis = static_axis(axis)
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(canonical_axis(i, m.ndim) for i in axes)
    if direct(m):
        return make_array(np.flip(m._value, axes), m.weak_type)
    return lax.rev(m, axes)


def fliplr(m: Operand) -> Array:
    """The array with the order of elements reversed along the second axis.

    Arguments:
      m: an array of at least two dimensions.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: ``m`` has fewer dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    ?
    """
    return _flipped(as_array_argument("fliplr", m), 1)


def flipud(m: Operand) -> Array:
    """The array with the order of elements reversed along the first axis.

    Arguments:
      m: an array of at least one dimension.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: ``m`` is a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    ?
    """
    return _flipped(as_array_argument("flipud", m), 0)


def rot90(m: Operand, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """The array rotated by quarter turns in the plane of two axes, from the first towards the second.

    Arguments:
      m: an array of at least two dimensions.
      k: the number of quarter turns.
      axes: the plane.
    Returns:
      An array of the same elements.
    Raises:
      ValueError: ``m`` has fewer dimensions, an axis is out of bounds, or the axes are equal.

    >>> import catena.numpy as jnp
    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    ?
    """
    m = as_array_argument("rot90", m)
    if m.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument of shape "
            f"{m.shape}, which has ndim {m.ndim}"
        )
    first, second = (canonical_axis(operator.index(i), m.ndim) for i in axes)
    if first == second:
        raise ValueError("Axes must be different")
    turns = operator.index(k) % 4
    if turns == 0:
        return m
    if turns == 2:
        return _flipped(m, (first, second))
    if turns == 1:
        return swapaxes(_flipped(m, second), first, second)
    return _flipped(swapaxes(m, first, second), second)
