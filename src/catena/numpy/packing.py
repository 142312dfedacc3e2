"""Bits packed into bytes and back."""

from __future__ import annotations

import functools
import operator

import numpy as np

from catena import lax
from catena.core import dtypes
from catena.core.array import Array
from catena.lax.whole import whole
from catena.numpy.boundary import as_array_argument, canonical_axis
from catena.numpy.editing import along
from catena.numpy.reading import read
from catena.numpy.shaping import ravel
from catena.typing import ArrayLike

_U8 = np.dtype("uint8")


def _places(bitorder: str) -> np.ndarray:
    """The place in a byte of each of eight bits that follow each other."""
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    places = np.arange(8, dtype=_U8)
    return places if bitorder == "little" else places[::-1].copy()


def _in_place(a, axis):
    """The array and the axis; of None the flattened array and its only one."""
    return (ravel(a), 0) if axis is None else (a, canonical_axis(operator.index(axis), a.ndim))


def _padded(a, axis: int, count: int):
    """The array with so many zeros behind it along an axis."""
    return lax.pad(a, np.zeros((), a.dtype), [(0, count if d == axis else 0, 0) for d in range(a.ndim)])


@whole
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Truth values packed into bytes, eight each; the last byte is filled with zeros.

    Arguments:
      a: integers or booleans; what is not zero is a set bit.
      axis: the axis; None packs the flattened array.
      bitorder: "big" for the first bit in the highest place of a byte, "little" for the lowest.
    Returns:
      An array of uint8.
    Raises:
      TypeError: ``a`` is of another dtype. ValueError: ``bitorder`` is unknown, or the axis out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    a = as_array_argument("packbits", a)
    if a.dtype != dtypes.BOOL and not dtypes.is_integer(a.dtype):
        raise TypeError("Expected an input array of integer or boolean data type")
    places = _places(bitorder)
    bits, axis = _in_place(lax.ne(a, lax.full_like(a, 0)), axis)
    bits = _padded(bits, axis, -bits.shape[axis] % 8)
    bits = lax.reshape(bits, (*bits.shape[:axis], bits.shape[axis] // 8, 8, *bits.shape[axis + 1 :]))
    each = [lax.index_in_dim(bits, k, axis + 1, keepdims=False) for k in range(8)]  # one of each byte's bits
    numbers = (lax.full(bit.shape, 1 << place, _U8) for bit, place in zip(each, places.tolist(), strict=True))
    none = lax.full(each[0].shape, 0, _U8)
    return functools.reduce(lax.bitwise_or, [lax.select(b, n, none) for b, n in zip(each, numbers, strict=True)])


@whole
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits of bytes.

    Arguments:
      a: an array of uint8.
      axis: the axis along which bits follow each other; None flattens the array.
      count: how many bits to return along the axis: more than there are adds zeros, negative leaves out the
        last ones.
      bitorder: "big" for the highest place of a byte first, "little" for the lowest.
    Returns:
      An array of uint8, 0 or 1.
    Raises:
      TypeError: ``a`` is of another dtype. ValueError: ``bitorder`` is unknown, or the axis out of bounds.

    >>> import catena.numpy as jnp
    >>> jnp.unpackbits(jnp.array([3], dtype="uint8"))
    Array([0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    a = as_array_argument("unpackbits", a)
    if a.dtype != _U8:
        raise TypeError("Expected an input array of unsigned byte data type")
    places = _places(bitorder)
    a, axis = _in_place(a, axis)
    shape = (*a.shape[: axis + 1], 8, *a.shape[axis + 1 :])
    spread = lax.broadcast_in_dim(a, shape, [d + (d > axis) for d in range(a.ndim)])
    shifted = lax.shift_right_logical(spread, lax.broadcast_in_dim(places, shape, (axis + 1,)))
    bits = lax.bitwise_and(shifted, lax.full_like(shifted, 1))
    bits = lax.reshape(bits, (*a.shape[:axis], a.shape[axis] * 8, *a.shape[axis + 1 :]))
    return bits if count is None else _counted(bits, axis, operator.index(count))


def _counted(bits, axis: int, count: int):
    n = bits.shape[axis]
    return _padded(bits, axis, count - n) if count > n else read(bits, along(axis, slice(0, count)))
