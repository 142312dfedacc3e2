"""The generators ``rbg`` and ``unsafe_rbg``: bits from ``lax.rng_bit_generator``, quicker to compile than Threefry.

A key is four words, the state of the generator. ``rbg`` derives keys by Threefry, on each half of the state;
``unsafe_rbg`` derives them by drawing bits, too. Under ``vmap`` all draws come from the first key of the batch.
"""

import math

import numpy as np

from catena import lax
from catena.lax.ciphers import philox_4x32
from catena.lax.random_bits import rng_bit_generator
from catena.random.counting import add_64, fit, words
from catena.random.generator import register_generator
from catena.random.threefry import fold_in_2x32, seed_2x32, split_2x32

U32 = np.uint32
SPACING = 10  # unsafe_rbg keeps every tenth of the keys that it draws


def seed_rbg(seed):
    half = seed_2x32(seed)
    return lax.concatenate([half, half], 0)


def halves_of(key) -> list:
    return [lax.slice(key, (0,), (2,)), lax.slice(key, (2,), (4,))]


def split_rbg(key, shape: tuple):
    return lax.concatenate([split_2x32(half, shape) for half in halves_of(key)], len(shape))


def fold_in_rbg(key, data):
    return lax.concatenate([fold_in_2x32(half, data) for half in halves_of(key)], 0)


def bits_rbg(key, bit_width: int, shape: tuple):
    return rng_bit_generator(key, shape, np.dtype(f"uint{bit_width}"))[1]


def bits_at_rbg(key, bit_width: int, high, low, count: int):
    """The bits from position ``(high, low)``: of 64 bits two, of less four of them are one block."""
    shift = 1 if bit_width == 64 else 2
    blocks = count >> shift
    k = words(key)
    carried = lax.bitwise_or(lax.shift_right_logical(low, U32(shift)), lax.shift_left(high, U32(32 - shift)))
    start = add_64(k[3], k[2], carried)
    start[0] = lax.add(start[0], lax.shift_right_logical(high, U32(shift)))
    counter = add_64(start[0], start[1], lax.iota(U32, blocks))
    block = philox_4x32(k[:2], [counter[1], counter[0], k[0], k[1]])
    return fit(lax.reshape(lax.concatenate([lax.expand_dims(w, (1,)) for w in block], 1), (4 * blocks,)), bit_width)


def split_unsafe(key, shape: tuple):
    count = math.prod(shape)
    drawn = bits_rbg(key, 32, (SPACING * count, 4))
    return lax.reshape(lax.slice(drawn, (0, 0), (SPACING * count, 4), (SPACING, 1)), (*shape, 4))


def fold_in_unsafe(key, data):
    drawn = bits_rbg(seed_rbg(data), 32, (SPACING, 4))
    return lax.bitwise_xor(key, lax.squeeze(lax.slice(drawn, (SPACING - 1, 0), (SPACING, 4)), (0,)))


rbg = register_generator(
    "rbg",
    tag="rbg",
    key_shape=(4,),
    seed=seed_rbg,
    split=split_rbg,
    random_bits=bits_rbg,
    fold_in=fold_in_rbg,
    bits_at=bits_at_rbg,
    joint=True,
)
unsafe_rbg = register_generator(
    "unsafe_rbg",
    tag="urbg",
    key_shape=(4,),
    seed=seed_rbg,
    split=split_unsafe,
    random_bits=bits_rbg,
    fold_in=fold_in_unsafe,
    bits_at=bits_at_rbg,
    joint=True,
)
