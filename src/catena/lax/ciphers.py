"""Ciphers on counters, the source of random bits: Threefry and Philox, of two and of four 32-bit words.

A counter is encrypted under a key; the encrypted counters are as good as random. All are made of a few
operations on uint32 values, each word of key and counter a value of its own, of shapes that broadcast.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
"""

import functools
from collections.abc import Callable

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.context import context
from catena.core.jaxpr import Jaxpr
from catena.core.staging import DebugInfo, JaxprTrace, trace_to_jaxpr
from catena.core.zeros import get_aval
from catena.lax.arithmetic import add, mul
from catena.lax.bitwise import bitwise_or, bitwise_xor, mulhi, shift_left, shift_right_logical

U32 = np.uint32
PARITY = 0x1BD11BDA
ROTATIONS_2 = (13, 15, 26, 6, 17, 29, 16, 24)
ROTATIONS_4 = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
PHILOX_ROUNDS = 10
WEYL = (0x9E3779B9, 0xBB67AE85)
FACTOR_2 = U32(0xD256D193)
FACTORS_4 = (U32(0xD2511F53), U32(0xCD9E8D57))


def rotate(x, by: int):
    """The bits of ``x`` rotated to the left."""
    return bitwise_or(shift_left(x, U32(by)), shift_right_logical(x, U32(32 - by)))


def key_schedule(key: list) -> list:
    """The words of the key and their parity, which the cipher adds in turn."""
    parity = U32(PARITY)
    for word in key:
        parity = bitwise_xor(parity, word)
    return [*key, parity]


def written_at_once(cipher: Callable) -> Callable:
    """A cipher whose hundred equations are written down at once while a function is traced: they are those of other
    shapes, for which they were traced before, which takes ten times as long.
    """

    @functools.lru_cache(maxsize=64)
    def traced(of_key: tuple, of_counter: tuple) -> Jaxpr:
        split = len(of_key)
        fun = lambda *words: cipher([*words[:split]], [*words[split:]])  # noqa: E731
        return trace_to_jaxpr(fun, [*of_key, *of_counter], DebugInfo(cipher.__name__, cipher.__name__))[0]

    @functools.wraps(cipher)
    def apply(key: list, counter: list) -> list:
        trace, avals = context.trace, [get_aval(x) for x in (*key, *counter)]
        shapes = {a.shape for a in avals if a.shape}
        if type(trace) is not JaxprTrace or len(shapes) > 1 or context.typed_axes or not all(map(_is_word, avals)):
            return cipher(key, counter)
        kinds = tuple([SOME if a.shape else ONE for a in avals])
        jaxpr = traced(kinds[: len(key)], kinds[len(key) :])
        return trace.write(jaxpr, [*key, *counter], {ONE: ONE, SOME: ShapedArray(next(iter(shapes), ()), U32)})

    return apply


ONE, SOME = ShapedArray((), U32), ShapedArray((2,), U32)  # what a cipher is traced for


def _is_word(aval) -> bool:
    return aval.plain and not aval.weak_type and aval.dtype == U32


@written_at_once
def threefry_2x32(key: list, counter: list) -> list:
    """Twenty rounds on two words.

    Arguments:
      key: two uint32 values.
      counter: two uint32 arrays.
    Returns:
      Two uint32 arrays.
    """
    schedule = key_schedule(key)
    x, y = add(counter[0], schedule[0]), add(counter[1], schedule[1])
    for r in range(20):
        x = add(x, y)
        y = bitwise_xor(rotate(y, ROTATIONS_2[r % 8]), x)
        if r % 4 == 3:
            s = r // 4 + 1
            x = add(x, schedule[s % 3])
            y = add(y, add(schedule[(s + 1) % 3], U32(s)))
    return [x, y]


@written_at_once
def threefry_4x32(key: list, counter: list) -> list:
    """Twenty rounds on four words."""
    schedule = key_schedule(key)
    x = [add(c, k) for c, k in zip(counter, key, strict=True)]
    for r in range(20):
        first, second = ROTATIONS_4[r % 8]
        x[0] = add(x[0], x[1])
        x[2] = add(x[2], x[3])
        x = [x[0], bitwise_xor(rotate(x[3], second), x[2]), x[2], bitwise_xor(rotate(x[1], first), x[0])]
        if r % 4 == 3:
            s = r // 4 + 1
            x = [add(x[i], schedule[(s + i) % 5]) for i in range(4)]
            x[3] = add(x[3], U32(s))
    return x


def philox_2x32(key, counter: list) -> list:
    """Ten rounds on two words under a key of one."""
    x, y = counter
    for r in range(PHILOX_ROUNDS):
        k = add(key, U32(r * WEYL[0] & 0xFFFFFFFF))
        x, y = bitwise_xor(bitwise_xor(mulhi(x, FACTOR_2), k), y), mul(x, FACTOR_2)
    return [x, y]


def philox_4x32(key: list, counter: list) -> list:
    """Ten rounds on four words under a key of two."""
    a, b, c, d = counter
    for r in range(PHILOX_ROUNDS):
        k, l = (add(word, U32(r * weyl & 0xFFFFFFFF)) for word, weyl in zip(key, WEYL, strict=True))  # noqa: E741
        a, b, c, d = (
            bitwise_xor(bitwise_xor(mulhi(c, FACTORS_4[1]), b), k),
            mul(c, FACTORS_4[1]),
            bitwise_xor(bitwise_xor(mulhi(a, FACTORS_4[0]), d), l),
            mul(a, FACTORS_4[0]),
        )
    return [a, b, c, d]
