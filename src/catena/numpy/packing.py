"""Bits packed into bytes and back."""

from __future__ import annotations

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


def _along_last(a, axis):
    """The array with the axis last (flattened for None), and how to move it back."""
    if axis is None:
        return ravel(a), (0,)
    axis = canonical_axis(operator.index(axis), a.ndim)
    order = (*(i for i in range(a.ndim) if i != axis), axis)
    return lax.transpose(a, order), tuple(np.argsort(order).tolist())


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
    bits, back = _along_last(lax.convert_element_type(lax.ne(a, lax.full_like(a, 0)), _U8), axis)
    n = bits.shape[-1]
    bits = lax.pad(bits, np.zeros((), _U8), [*[(0, 0, 0)] * (bits.ndim - 1), (0, -n % 8, 0)])
    bits = lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    shifted = lax.shift_left(bits, np.broadcast_to(places, bits.shape))
    return lax.transpose(lax.reduce_sum(shifted, (bits.ndim - 1,)), back)


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
    a, back = _along_last(a, axis)
    shape = (*a.shape, 8)
    spread = lax.broadcast_in_dim(a, shape, tuple(range(a.ndim)))
    bits = lax.shift_right_logical(spread, np.broadcast_to(places, shape))
    bits = lax.bitwise_and(bits, lax.full_like(bits, 1))
    bits = lax.reshape(bits, (*a.shape[:-1], a.shape[-1] * 8))
    if count is not None:
        bits = _counted(bits, operator.index(count))
    return lax.transpose(bits, back)


def _counted(bits, count: int):
    n, axis = bits.shape[-1], bits.ndim - 1
    if count > n:
        return lax.pad(bits, np.zeros((), _U8), [*[(0, 0, 0)] * axis, (0, count - n, 0)])
    return read(bits, along(axis, slice(0, count)))
