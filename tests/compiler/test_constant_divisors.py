"""Quotients by constants as two products: rounded as by a divider, whatever is divided, and only where they all are."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V3
from catena.compiler.native.compile import text_of
from catena.compiler.vector_math.constant_divisors import inverse_pair

FORMATS = {"float": np.float32, "double": np.float64}
DIVISORS = (6.0, -3.0, 10.0, 0.3, 1.7, -2.5, 1e4 / 3)


def divided(x, y):
    return np.asarray(jax.jit(lambda x: x / y)(x))


@pytest.mark.parametrize("y", DIVISORS)
def test_all_significands_are_rounded_as_by_a_divider(y):
    assert inverse_pair(y, "float") is not None
    x = np.arange(1 << 23, 1 << 24, dtype=np.float32)
    np.testing.assert_array_equal(divided(x, y), x / np.float32(y))


def test_divisors_by_which_some_quotients_would_be_off_have_no_pair():
    """What they would have, as the others do, is wrong somewhere."""
    x = np.arange(1 << 23, 1 << 24, dtype=np.float32)
    rng, found = np.random.default_rng(5), 0
    for y in rng.uniform(1.5, 2, 40).astype(np.float32):
        if inverse_pair(float(y), "float") is None:
            found += 1
            exact = 1 / np.longdouble(y)
            high = np.float32(exact)
            high = np.nextafter(high, np.float32(0)) if high > exact else high
            low = np.float32(exact - high)
            of_two = (x * np.longdouble(high) + x * low).astype(np.float32)
            assert (of_two != x / y).any()
            np.testing.assert_array_equal(divided(x, float(y)), x / y)
    assert 0 < found < 10


@pytest.mark.parametrize("y", [0.0, 1.0, 0.25, -8.0, 1e30, float("inf"), float("nan")])
def test_powers_of_two_and_divisors_of_other_sizes_have_no_pair(y):
    assert inverse_pair(y, "float") is None


@pytest.mark.parametrize("elem", FORMATS)
@pytest.mark.parametrize("y", DIVISORS)
def test_numbers_of_all_sizes(y, elem):
    scalar, rng = FORMATS[elem], np.random.default_rng(2)
    info = np.finfo(scalar)
    x = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(info.minexp - info.nmant, info.maxexp, 4000)).astype(scalar)
    ends = [0, -0.0, np.inf, -np.inf, np.nan, info.tiny, info.max, info.smallest_subnormal, 3 * info.smallest_subnormal]
    x = np.resize(np.concatenate([x, -x, np.array(ends, scalar)]), 8016)
    with np.errstate(all="ignore"):
        want = x / scalar(y)
    with jax.enable_x64(elem == "double"):
        got = divided(x, y)
    np.testing.assert_array_equal(got, want)
    there = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[there], np.signbit(want)[there])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs_give_the_bits_of_the_quotient(dtype):
    rng = np.random.default_rng(3)
    with jax.enable_x64(dtype == "float64"):
        for size in (3, 100, 1003):
            x = (rng.standard_normal(size) * 10.0 ** rng.integers(-44, 39, size)).astype(dtype)
            x[:2] = -0.0, np.inf
            for y in DIVISORS:
                got = jax.jit(lambda x: [x / y, jnp.minimum(x + 1, 5) / y])(x)  # noqa: B023
                with np.errstate(over="ignore", under="ignore"):
                    want = [x / x.dtype.type(y), np.minimum(x + 1, 5) / x.dtype.type(y)]
                np.testing.assert_array_equal(got, want)
                np.testing.assert_array_equal(np.signbit(got[0][0]), y > 0)


def test_what_waits_for_a_divider_is_by_two_products():
    """Not beside much else, by counts that hang on extents, powers of two, or what has no pair."""
    x = jnp.ones(1000)
    uses = lambda f: text_of(jax.make_jaxpr(f)(x), machine=X86_64_V3).count(", splat (i32 2147483647)")  # noqa: E731
    assert uses(jax.nn.hard_sigmoid) and uses(lambda x: x / 1.7)
    assert not uses(lambda x: x / 2) and not uses(lambda x: x / 1000)
    assert not uses(lambda x: jnp.sin(x) / 6) and not uses(lambda x: x / x[0])
    folded = jax.make_jaxpr(lambda x: jnp.sum((x - 1) / 1.7, axis=1))(jnp.ones((50, 300)))
    assert "llvm.smin" in text_of(folded, machine=X86_64_V3)  # what is small, of several vectors


@pytest.mark.parametrize("shape", [(40, 5), (7, 24), (3, 100), (200, 8), (5, 333)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_folded_has_the_bits_of_the_quotient(dtype, shape):
    """Small dividends among the vectors that are divided together, and none of them."""
    rng = np.random.default_rng(4)
    with jax.enable_x64(dtype == "float64"):
        info = np.finfo(dtype)
        usual = rng.standard_normal(shape).astype(dtype)
        small = np.where(rng.random(shape) < 0.1, rng.integers(0, 50, shape) * info.smallest_subnormal, usual)
        for x in (usual, small.astype(dtype), (usual * info.tiny).astype(dtype)):
            for y in (0.3, -6.0):
                quotients = x / x.dtype.type(y)
                for axis in (0, 1):
                    for fold in ("max", "min", "argmax", "argmin"):
                        got = jax.jit(lambda x: getattr(jnp, fold)(x / y, axis))(x)  # noqa: B023
                        np.testing.assert_array_equal(got, getattr(np, fold)(quotients, axis))
