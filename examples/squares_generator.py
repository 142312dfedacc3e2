"""A random generator of one's own: Squares, by Widynski (2020, arXiv:2004.06278), in pure functions of
arrays.

It turns a 64-bit counter and a 64-bit key into 32 random bits by squaring four times; here on pairs of 32-bit
words, so that it needs no x64. Once registered, it works with every sampler, `vmap`, `jit` and key arrays.
"""

import math

import catena as jax
import catena.numpy as jnp
from catena import lax, random

U32 = jnp.uint32


def multiply(a, b):
    """The low 64 bits of a product of numbers given as (high, low) words."""
    return lax.mulhi(a[1], b[1]) + a[1] * b[0] + a[0] * b[1], a[1] * b[1]


def add(a, b):
    low = a[1] + b[1]
    return a[0] + b[0] + (low < b[1]).astype(U32), low


def squares(counter, key):
    """Thirty-two random bits for each counter, (high, low) words under a key of two words."""
    x = y = multiply(counter, key)
    z = add(y, key)
    for step in (y, z, y):  # square, add, swap the halves
        high, low = add(multiply(x, x), step)
        x = (low, high)
    return add(multiply(x, x), z)[0]


def draw(key, bit_width, shape, stream=0):
    """Bits numbered by their position; `stream` keeps bits and keys apart."""
    words = 2 if bit_width == 64 else 1
    low = lax.iota(U32, words * math.prod(shape)).reshape(*shape, words)
    drawn = squares((jnp.full_like(low, stream), low), (key[0], key[1] | U32(1)))
    if bit_width == 64:
        return lax.bitcast_convert_type(drawn, jnp.uint64)
    return drawn[..., 0].astype(f"uint{bit_width}")


random.register_generator(
    "squares", tag="sq", key_shape=(2,), random_bits=draw,
    seed=lambda seed: draw(jnp.stack([U32(0x9E3779B9), seed.astype(U32) ^ U32(0x7F4A7C15)]), 32, (2,), 1),
    split=lambda key, shape: draw(key, 32, (*shape, 2), 2),
    fold_in=lambda key, data: draw(key ^ data, 32, (2,), 3),
)  # fmt: skip

if __name__ == "__main__":
    key = random.key(42, impl="squares")
    print(key, random.normal(key, (3,)), sep="\n")
    print(jax.jit(jax.vmap(random.uniform))(random.split(key, 3)))
