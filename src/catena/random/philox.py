"""The Philox generators, of two and of four 32-bit words: ten rounds of multiplication on a counter.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

import numpy as np

from catena.lax.ciphers import philox_2x32, philox_4x32
from catena.random.counting import (
    ZEROS,
    combine_2x32,
    concatenate_words,
    narrow,
    positions,
    positions_from,
    seed_words,
    words,
    xor_all,
)
from catena.random.generator import register_generator

U32 = np.uint32


# ---- philox2x32: the position of an element is the counter, the first word of a block is a key


def key_2x32(key, counter: list):
    return concatenate_words(philox_2x32(words(key)[0], counter)[:1])


philox2x32 = register_generator(
    "philox2x32",
    tag="phx2",
    key_shape=(1,),
    seed=lambda seed: concatenate_words(philox_2x32(U32(0), seed_words(seed))[:1]),
    split=lambda key, shape: key_2x32(key, positions(shape)),
    random_bits=lambda key, width, shape: combine_2x32(philox_2x32(words(key)[0], positions(shape)), width),
    fold_in=lambda key, data: key_2x32(key, seed_words(data)),
    bits_at=lambda key, width, high, low, count: combine_2x32(
        philox_2x32(words(key)[0], positions_from(high, low, count)), width
    ),
    split_at=lambda key, high, low, count: key_2x32(key, positions_from(high, low, count)),
)

# ---- philox4x32: bits count in the first half of the counter, keys in the second


def key_4x32(key: list, first: list, second: list):
    return concatenate_words(philox_4x32(key, [*first, *second])[:2])


def bits_4x32(key, where: list, bit_width: int):
    block = philox_4x32(words(key), [*where, *ZEROS])
    return combine_2x32(block[:2], 64) if bit_width == 64 else narrow(xor_all(block), bit_width)


philox4x32 = register_generator(
    "philox4x32",
    tag="phx4",
    key_shape=(2,),
    seed=lambda seed: key_4x32([U32(0), U32(0)], seed_words(seed), ZEROS),
    split=lambda key, shape: key_4x32(words(key), ZEROS, positions(shape)),
    random_bits=lambda key, width, shape: bits_4x32(key, positions(shape), width),
    fold_in=lambda key, data: key_4x32(words(key), ZEROS, seed_words(data)),
    bits_at=lambda key, width, high, low, count: bits_4x32(key, positions_from(high, low, count), width),
    split_at=lambda key, high, low, count: key_4x32(words(key), ZEROS, positions_from(high, low, count)),
)
