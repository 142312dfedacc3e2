"""Rearranging arrays without computing: least ranks, moved axes, reversal, rotation.

On concrete arrays all of these are views of NumPy, which are free because arrays are immutable.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from catena import lax
from catena.core.array import Array, make_array
from catena.numpy.boundary import (
    array_arguments,
    as_array_argument,
    canonical_axis,
    direct,
    static_axis,
    static_int,
)
from catena.numpy.shaping import reshaped, swapaxes, transpose
from catena.typing import ArrayLike

Shape = int | Sequence[int]
_BACKWARDS = slice(None, None, -1)

# ----------------------------------------------------------------------------------------------------
# Shapes


def _at_least(name: str, arys, raised) -> Array | list[Array]:
    if len(arys) == 1:
        return raised(as_array_argument(name, arys[0]))
    arrays = [raised(a) for a in array_arguments(name, *arys)]
    return arrays[0] if len(arrays) == 1 else arrays


def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least one axis.

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_1d(3.0)
    Array([3.], dtype=float32, weak_type=True)
    """
    return _at_least("atleast_1d", arys, lambda a: a if a.ndim else reshaped(a, (1,)))


def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least two axes; new ones come first.

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_2d(jnp.arange(3)).shape
    (1, 3)
    """
    return _at_least("atleast_2d", arys, lambda a: a if a.ndim > 1 else reshaped(a, (1, a.size)))


def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least three axes; a 1-D array becomes (1, N, 1), a 2-D one (M, N, 1).

    Arguments:
      *arys: arrays and scalars.
    Returns:
      For one argument an array, else a list of arrays.
    Raises:
      TypeError: an argument is not an array or scalar.

    >>> import catena.numpy as jnp
    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """

    def raised(a):
        if a.ndim > 2:
            return a
        return reshaped(a, (*a.shape, 1) if a.ndim == 2 else (1, a.size, 1))

    return _at_least("atleast_3d", arys, raised)


# ----------------------------------------------------------------------------------------------------
# The order of axes


def _axes_argument(axes) -> tuple:
    axes = static_axis(axes)
    return axes if isinstance(axes, tuple) else (axes,)


def moveaxis(a: ArrayLike, source: Shape, destination: Shape) -> Array:
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
    (3, 4, 2)
    """
    a = as_array_argument("moveaxis", a)
    if type(source) is int and type(destination) is int and direct(a):
        rank = a.ndim
        if -rank <= source < rank and -rank <= destination < rank:
            order = list(range(rank))
            order.insert(destination % rank, order.pop(source))
            return make_array(a._value.transpose(order), a._weak)
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
    return transpose(a, tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
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
    (4, 2, 3)
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


def flip(m: ArrayLike, axis: Shape | None = None) -> Array:
    """The array with the order of elements reversed along some axes.

    Arguments:
      m: an array.
      axis: the axes; by default all.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: an axis is out of bounds. TypeError: an axis is repeated.

    >>> import catena.numpy as jnp
    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)
    """
    return _flipped(as_array_argument("flip", m), axis)


def _flipped(m, axis):
    if type(axis) is int and direct(m) and -m.ndim <= axis < m.ndim:  # the hot path
        key = (slice(None),) * (axis % m.ndim) + (_BACKWARDS,)
        return make_array(m._value[key], m.weak_type)
    axis = static_axis(axis)
    if axis is None and not m.ndim:
        return m
    axes = range(m.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(canonical_axis(i, m.ndim) for i in axes)
    if direct(m) and len(set(axes)) == len(axes):
        key = tuple(_BACKWARDS if i in axes else slice(None) for i in range(m.ndim))
        return make_array(m._value[key], m.weak_type)
    return lax.rev(m, axes)


def fliplr(m: ArrayLike) -> Array:
    """The array with the order of elements reversed along the second axis.

    Arguments:
      m: an array of at least two dimensions.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: ``m`` has fewer dimensions.

    >>> import catena.numpy as jnp
    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return _flipped(as_array_argument("fliplr", m), 1)


def flipud(m: ArrayLike) -> Array:
    """The array with the order of elements reversed along the first axis.

    Arguments:
      m: an array of at least one dimension.
    Returns:
      An array of the shape of ``m``.
    Raises:
      ValueError: ``m`` is a scalar.

    >>> import catena.numpy as jnp
    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return _flipped(as_array_argument("flipud", m), 0)


def _turned(value, turns: int, first: int, second: int):
    """A view of a NumPy array after so many quarter turns."""
    reversed_axes = ((), (second,), (first, second), (first,))[turns]
    value = value[tuple(_BACKWARDS if i in reversed_axes else slice(None) for i in range(value.ndim))]
    return value.swapaxes(first, second) if turns % 2 else value


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
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
    Array([[2, 4],
           [1, 3]], dtype=int32)
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
    if direct(m):
        return make_array(_turned(m._value, turns, first, second), m.weak_type)
    if turns == 0:
        return m
    if turns == 2:
        return _flipped(m, (first, second))
    if turns == 1:
        return swapaxes(_flipped(m, second), first, second)
    return _flipped(swapaxes(m, first, second), second)
