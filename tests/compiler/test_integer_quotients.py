"""Quotients of integers in lanes: those of 64 bits go by way of doubles where all lanes are small enough."""

import numpy as np
import pytest

import catena as jax
from catena import lax

RNG = np.random.default_rng(5)
EDGE = 1 << 50  # from which on lanes are divided one by one
COUNT = 4099


def small(count=COUNT):
    """Pairs below the edge whose quotients are whole, or next to a whole number."""
    shift = RNG.integers(0, 51, count)
    y = np.maximum(RNG.integers(0, EDGE, count) >> shift, 1)
    y = np.where(RNG.random(count) < 0.3, np.clip((1 << shift) + RNG.integers(-1, 2, count), 1, EDGE - 1), y)
    x = RNG.integers(0, EDGE, count) // y * y + RNG.integers(-1, 2, count)
    return np.clip(x, 0, EDGE - 1), y


def large(count=COUNT):
    """Pairs of any size, among them vectors in which one lane alone is large."""
    x, y = small(count)
    x = np.where(np.arange(count) % 11 == 0, np.iinfo(np.int64).max - x, x)
    return x, np.where(np.arange(count) % 13 == 0, np.iinfo(np.int64).max // 3 + y, y)


def quotient(x, y):
    """Towards zero, in Python's integers."""
    return [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(map(int, x), map(int, y))]


def check(f, x, y):
    with jax.enable_x64(True):
        div, rem = jax.jit(f)(x, y)
    want = quotient(x, y)
    assert list(map(int, div)) == want
    assert list(map(int, rem)) == [int(a) - int(b) * q for a, b, q in zip(x, y, want)]


def divided(x, y):
    return lax.div(x, y), lax.rem(x, y)


@pytest.mark.parametrize("numbers", [small, large])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_quotients_and_remainders(numbers, dtype):
    x, y = (v.astype(dtype) for v in numbers())
    if dtype == "int64":
        x, y = (v * RNG.choice([-1, 1], v.shape) for v in (x, y))
    check(divided, x, y)


def test_unsigned_numbers_beyond_the_signed_ones():
    x = np.iinfo(np.uint64).max - np.arange(COUNT, dtype=np.uint64)
    check(divided, x, (x >> RNG.integers(0, 64, COUNT).astype(np.uint64)).clip(1))


@pytest.mark.parametrize("by", [1, 2, 3, 7, -7, 8, -8, 1000, EDGE - 1, EDGE, EDGE + 1, -(1 << 63)])
def test_quotients_by_constants(by):
    x = np.concatenate([small()[0], -large()[0]])
    check(lambda x, y: divided(x, jax.numpy.full_like(x, by)), x, np.full(x.shape, by))


@pytest.mark.parametrize("by", [3, -7, EDGE + 1])
def test_quotients_by_one_number(by):
    x = np.concatenate([small()[0], -large()[0]])

    def spread(x, y):
        return divided(x, jax.numpy.broadcast_to(y[0], x.shape))

    check(spread, x, np.full(x.shape, by))


def test_zero_and_the_least_number_among_small_ones():
    x, y = small(64)
    least = np.iinfo(np.int64).min
    x[5], y[5], x[20], y[20], y[33], x[40], y[40] = 9, 0, least, -1, 0, least, 1
    with jax.enable_x64(True):
        div, rem = map(np.asarray, jax.jit(divided)(x, y))
    assert (div[5], rem[5], div[33], rem[33]) == (-1, 9, -1, x[33])
    assert (div[20], rem[20], div[40], rem[40]) == (least, 0, least, 0)
    others = np.delete(np.arange(64), [5, 20, 33, 40])
    assert list(map(int, div[others])) == quotient(x[others], y[others])


def test_no_lane_of_small_numbers_is_divided_by_itself():
    from catena.compiler.machine import X86_64_V4
    from catena.compiler.native import compile as compiler

    with jax.enable_x64(True):
        x = np.arange(1000)
        text = compiler.text_of(jax.make_jaxpr(divided)(x, x), machine=X86_64_V4)
        by_eight = compiler.text_of(jax.make_jaxpr(lambda x: x // 8)(x), machine=X86_64_V4)
    assert "@catena_quotient_i64x8" in text and "@catena_quotient" not in by_eight


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("count", [1, 5, 13, 4099])
def test_divisors_that_the_text_does_not_tell(dtype, count):
    """By any constant, in vectors of any number of lanes: exact, of the largest and smallest numbers too."""
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, info.max - 1, info.max]
    for by in [33, 100, 127, 641, 65537, (1 << 30) + 1, info.max, info.max - 1, info.max // 2 + 2]:
        near = RNG.integers(0, info.max // by + 1, count) * by - RNG.integers(0, 2, count)
        x = np.where(RNG.random(count) < 0.5, near, RNG.integers(info.min, info.max, count, endpoint=True))
        x[: len(edges)] = np.array(edges[:count])
        x, y = np.maximum(x, info.min).astype(dtype), np.array(by, dtype)
        div, rem, floor = jax.jit(lambda x: (*divided(x, y), x // y))(x)  # noqa: B023
        want = quotient(x, [by] * count)
        assert list(map(int, div)) == want
        assert list(map(int, rem)) == [int(a) - by * q for a, q in zip(x, want)]
        assert list(map(int, floor)) == [int(a) // by for a in x]
