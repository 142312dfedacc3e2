"""Rows that are divided, each by a number of its own, and folded away: quotients have the divider's bits."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of
from catena.core.dtypes import finfo

ROWS, COLUMNS = 5, 2048  # that are all alike: the extreme of a column is the quotient
DTYPES = ["float32", "float64", "float16", "bfloat16"]
AWKWARD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0, -7.0]


def numbers(rng, n, dtype, spread):
    """Numbers around one, or of any exponent; among the first half are zeros, among the others awkward ones."""
    info = finfo(dtype)
    least, most = (float(x) for x in (info.smallest_subnormal, info.max))
    exponents = rng.uniform(np.log2(least), np.log2(most), n) if spread else np.zeros(n)
    x = rng.uniform(1, 2, n) * rng.choice([-1, 1], n) * 2.0**exponents
    special = [*AWKWARD, most, -most, least, float(info.tiny)]
    others = np.where(np.arange(n) < n // 2, rng.choice([0.0, -0.0], n), rng.choice(special, n))
    return np.where(rng.random(n) < 0.1, others, x)


def codes(x):
    x = np.asarray(x)
    return np.where(np.isnan(x), 0, x.view(f"u{x.itemsize}"))


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_are_those_of_dividers(dtype, spread):
    rng = np.random.default_rng(3)
    largest = jax.jit(lambda x, y: (x / y[:, None]).max(0))
    with jax.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        line = jnp.asarray(numbers(rng, COLUMNS, dtype, spread), dtype)
        x = jnp.asarray(np.stack([line] * ROWS))
        for y in numbers(rng, 40, dtype, spread):
            y = jnp.full(ROWS, y, dtype)
            np.testing.assert_array_equal(codes(largest(x, y)), codes(np.asarray(line) / np.asarray(y[:1])))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_divided_each_by_its_own(dtype):
    """Also by what is negative, zero, or not moderate, and by two of them at once."""
    rng = np.random.default_rng(4)
    y = np.array([3, -0.7, 1e-30, 0.0, -2.5e33, 1 / 3, np.inf, 2.0**-22, -1.5])
    with jax.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        x = jnp.asarray(np.maximum(rng.standard_normal((len(y), 1000)), 0), dtype)
        y, z = jnp.asarray(y, dtype), jnp.asarray(y[::-1].copy(), dtype)
        for fold in (jnp.max, jnp.min):
            got = jax.jit(lambda x, y, z: fold(jnp.stack([x / y[:, None], x / z[:, None]]), (0, 1)))(x, y, z)  # noqa: B023
            quotients = np.stack([np.asarray(x) / np.asarray(by)[:, None] for by in (y, z)]).astype(np.float64)
            want = {jnp.max: np.max, jnp.min: np.min}[fold](quotients, (0, 1))
            np.testing.assert_array_equal(np.asarray(got, np.float64), want)


def test_what_few_vectors_share_is_inverted_there():
    """By the loop in which it changes; beside what takes long anyway, the divider does it."""
    x, y = jnp.ones((500, 512)), jnp.ones(500)
    divided = lambda f: text_of(jax.make_jaxpr(f)(x, y), machine=X86_64_V4).count("fdiv float 1.0")  # noqa: E731
    assert divided(lambda x, y: (x / y[:, None]).sum(0)) == 1
    assert divided(lambda x, y: (jnp.sin(x) / y[:, None]).sum(0)) == 0
    assert divided(lambda x, y: (x / y[:, None])[:, :40].sum(0)) == 0  # of two vectors
