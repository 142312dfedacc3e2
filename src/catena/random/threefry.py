"""The Threefry generators, of two and of four 32-bit words.

Threefry is a block cipher: it encrypts a counter under a key, and the encrypted counters are the random bits.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).

``threefry2x32`` has two streams. The first (``jax_threefry_partitionable``, the default) encrypts the 64-bit position
of each element, so an element does not depend on how many others are drawn. The older encrypts ``0 .. n - 1`` in two
halves.
"""

import math

import numpy as np

from catena import lax
from catena.core.context import context
from catena.lax.ciphers import threefry_2x32, threefry_4x32
from catena.random.counting import (
    ZEROS,
    combine_2x32,
    concatenate_words,
    enough_counts,
    narrow,
    positions,
    positions_from,
    seed_words,
    two_words,
    words,
    xor_all,
)
from catena.random.generator import register_generator

U32 = np.uint32


# ---- threefry2x32


def seed_2x32(seed):
    """A key from an integer scalar: its high and low words."""
    return lax.concatenate([lax.reshape(w, (1,)) for w in seed_words(seed)], 0)


def fold_in_2x32(key, data):
    """The key at position ``data`` of the stream of ``key``."""
    return concatenate_words(threefry_2x32(words(key), seed_words(data)))


def bits_2x32(key, bit_width: int, shape: tuple):
    """Random bits, in either of the two streams."""
    if not context.threefry_partitionable:
        return halves_bits(key, bit_width, shape)
    high, low = positions(shape)
    return combine_2x32(threefry_2x32(words(key), [high, low]), bit_width)


def split_2x32(key, shape: tuple):
    """Keys, in either of the two streams."""
    if not context.threefry_partitionable:
        return lax.reshape(halves(key, 2 * math.prod(shape)), (*shape, 2))
    high, low = positions(shape)
    return concatenate_words(threefry_2x32(words(key), [high, low]))


def bits_at_2x32(key, bit_width: int, high, low, count: int):
    return combine_2x32(threefry_2x32(words(key), positions_from(high, low, count)), bit_width)


def split_at_2x32(key, high, low, count: int):
    return concatenate_words(threefry_2x32(words(key), positions_from(high, low, count)))


# ---- threefry2x32, the older stream


def halves(key, count: int):
    """``count`` words: the counters ``0 .. count - 1``, first half beside second half, encrypted."""
    half = (count + 1) // 2
    low = lax.iota(U32, 2 * half)
    if count % 2:  # the missing counter is 0
        low = lax.concatenate([lax.slice(low, (0,), (count,)), lax.full((1,), U32(0))], 0)
    x, y = threefry_2x32(words(key), [lax.slice(low, (0,), (half,)), lax.slice(low, (half,), (2 * half,))])
    return lax.slice(lax.concatenate([x, y], 0), (0,), (count,))


def halves_bits(key, bit_width: int, shape: tuple):
    """Random bits of the older stream: narrow elements are cut out of words, lowest bits first."""
    size = math.prod(shape)
    enough_counts(size * bit_width // 32)
    whole = halves(key, -(-size * bit_width // 32))
    if bit_width == 64:
        x, y = lax.slice(whole, (0,), (size,)), lax.slice(whole, (size,), (2 * size,))
        whole = two_words(x, y)
    elif bit_width < 32:
        parts = [lax.shift_right_logical(whole, U32(k)) for k in range(0, 32, bit_width)]
        cut = lax.reshape(concatenate_words(parts), (len(parts) * whole.shape[0],))
        whole = lax.slice(narrow(lax.bitwise_and(cut, U32(2**bit_width - 1)), bit_width), (0,), (size,))
    return lax.reshape(whole, shape)


def is_partitionable() -> bool:
    return context.threefry_partitionable


threefry2x32 = register_generator(
    "threefry2x32",
    tag="fry",
    key_shape=(2,),
    seed=seed_2x32,
    split=split_2x32,
    random_bits=bits_2x32,
    fold_in=fold_in_2x32,
    bits_at=bits_at_2x32,
    split_at=split_at_2x32,
    counts=is_partitionable,
)


# ---- threefry4x32


def encrypt_4x32(key, first: list, second: list) -> list:
    """The cipher on a counter of two 64-bit halves: bits count in the first, keys in the second."""
    return threefry_4x32(words(key), [*first, *second])


def bits_4x32(block: list, bit_width: int):
    if bit_width == 64:
        return combine_2x32([lax.bitwise_xor(block[0], block[2]), lax.bitwise_xor(block[1], block[3])], 64)
    return narrow(xor_all(block), bit_width)


def seed_4x32(seed):
    return concatenate_words(threefry_4x32([*seed_words(seed), *ZEROS], [*ZEROS, *ZEROS]))


threefry4x32 = register_generator(
    "threefry4x32",
    tag="fry4",
    key_shape=(4,),
    seed=seed_4x32,
    split=lambda key, shape: concatenate_words(encrypt_4x32(key, ZEROS, positions(shape))),
    random_bits=lambda key, bit_width, shape: bits_4x32(encrypt_4x32(key, positions(shape), ZEROS), bit_width),
    fold_in=lambda key, data: concatenate_words(encrypt_4x32(key, ZEROS, seed_words(data))),
    bits_at=lambda key, bit_width, high, low, count: bits_4x32(
        encrypt_4x32(key, positions_from(high, low, count), ZEROS), bit_width
    ),
    split_at=lambda key, high, low, count: concatenate_words(
        encrypt_4x32(key, ZEROS, positions_from(high, low, count))
    ),
)
