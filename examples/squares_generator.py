"""A random generator of one's own: Squares, by Widynski (2020, arXiv:2004.06278), in pure functions of arrays.

Four squarings turn a 64-bit counter and key into 32 random bits; done on pairs of 32-bit words it needs no x64. Once
registered, it works with every sampler, `vmap`, `jit` and key arrays.
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
    """Thirty-two random bits for each counter, (high, low) words under a key of two words, made odd."""
    key = (key[0], key[1] | U32(1))
    x = y = multiply(counter, key)
    z = add(y, key)
    for step in (y, z, y):  # square, add, swap the halves
        high, low = add(multiply(x, x), step)
        x = (low, high)
    return add(multiply(x, x), z)[0]


def numbered(key, number):
    """A key for a number: the number counts, since keys that resemble each other draw alike."""
    return squares((jnp.array([2, 3], U32), number.astype(U32)), key)


def draw(key, bit_width, shape, stream=0):
    """Bits numbered by their position; `stream` keeps bits and keys apart."""
    words = 2 if bit_width == 64 else 1
    low = lax.iota(U32, words * math.prod(shape)).reshape(*shape, words)
    drawn = squares((jnp.full_like(low, stream), low), key)
    bits = lax.bitcast_convert_type(drawn, jnp.uint64) if bit_width == 64 else drawn[..., 0]
    return bits.astype(f"uint{bit_width}")


random.register_generator(
    "squares", tag="sq", key_shape=(2,), random_bits=draw,
    seed=lambda seed: numbered((U32(0xC8E4FD15), U32(0x4CE32F6D)), seed), fold_in=numbered,
    split=lambda key, shape: draw(key, 32, (*shape, 2), 1),
)  # fmt: skip

if __name__ == "__main__":
    key = random.key(42, impl="squares")
    print(key, random.normal(key, (3,)), jax.jit(jax.vmap(random.uniform))(random.split(key, 3)), sep="\n")
