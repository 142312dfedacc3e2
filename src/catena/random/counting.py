"""What generators that encrypt counters share: positions as pairs of words, and words as results."""

import math

import numpy as np

from catena import lax
from catena.core.array import make_array
from catena.core.zeros import get_aval
from catena.lax.random_bits import add_64
from catena.lax.random_bits import fit as fit_dtype

U32 = np.uint32
ZEROS = [U32(0), U32(0)]


def positions(shape: tuple) -> list:
    """The row-major position of each element of an array, as high and low words."""
    count = math.prod(shape)
    if count <= 1 << 32:
        low = lax.reshape(lax.iota(U32, count), shape)
        return [U32(0), low]
    return long_positions(shape)


def long_positions(shape: tuple) -> list:
    """Positions beyond 32 bits, by long multiplication over the axes."""
    high, low = lax.full(shape, U32(0)), lax.full(shape, U32(0))
    stride = 1
    for axis in reversed(range(len(shape))):
        index = lax.broadcasted_iota(U32, shape, axis)
        part = lax.mul(index, U32(stride & 0xFFFFFFFF))
        carry = lax.mulhi(index, lax.full(shape, U32(stride & 0xFFFFFFFF)))
        high = lax.add(high, lax.add(carry, lax.mul(index, U32(stride >> 32))))
        high, low = add_64(high, low, part)
        stride *= shape[axis]
    return [high, low]


def positions_from(high, low, count: int) -> list:
    """``count`` positions from ``(high, low)``, a multiple of ``count``, a power of two: so nothing is carried."""
    return [high, lax.add(lax.iota(U32, count), low)]


def seed_words(seed) -> list:
    """The high and the low word of an integer scalar, negative ones in two's complement."""
    dtype = get_aval(seed).dtype
    if dtype.itemsize < 8:
        signed = lax.convert_element_type(seed, U32)
        return [U32(0), signed]
    bits = lax.convert_element_type(seed, np.uint64)
    high = lax.convert_element_type(lax.shift_right_logical(bits, np.uint64(32)), U32)
    return [high, lax.convert_element_type(lax.bitwise_and(bits, np.uint64(0xFFFFFFFF)), U32)]


def narrow(x, bit_width: int):
    """The low bits of words."""
    return lax.convert_element_type(x, np.dtype(f"uint{bit_width}")) if bit_width < 32 else x


def fit(words, bit_width: int):
    """Words as integers of another width: the low bits of one, or two of them, low word first."""
    return fit_dtype(words, np.dtype(f"uint{bit_width}")) if bit_width != 32 else words


def concatenate_words(words: list):
    """Keys from their words: a new last axis."""
    return lax.concatenate([lax.expand_dims(w, (w.ndim,)) for w in words], words[0].ndim)


def words(key) -> list:
    """The words of one key, as scalars."""
    return [lax.squeeze(lax.slice(key, (i,), (i + 1,)), (0,)) for i in range(key.shape[0])]


def combine_2x32(block: list, bit_width: int):
    """Bits of one width from encrypted counters."""
    if bit_width == 64:
        return two_words(*block)
    return narrow(lax.bitwise_xor(block[0], block[1]), bit_width)


def two_words(high, low):
    """Numbers of 64 bits from their halves."""
    high, low = (lax.convert_element_type(x, np.uint64) for x in (high, low))
    return lax.bitwise_or(lax.shift_left(high, _WORD), low)


_WORD = make_array(np.array(32, np.uint64))  # an Array keeps its dtype whether or not x64 is on


def xor_all(block: list):
    """All words of a block in one."""
    out = block[0]
    for word in block[1:]:
        out = lax.bitwise_xor(out, word)
    return out


def enough_counts(count: int):
    """Raise where a stream of 32-bit counters is too short."""
    if count > 0xFFFFFFFF:
        raise ValueError(f"this stream has 2**32 words, {count} are needed; use jax_threefry_partitionable=True")
