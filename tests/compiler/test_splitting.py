"""Indices that are cut into quotients and remainders become loops of their own."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

rng = np.random.default_rng(0)


def heads(x):
    """Of (batch, heads, places, features): the features of all heads side by side."""
    n, h, t, d = x.shape
    return (x + 1).transpose(0, 2, 1, 3).reshape(n, t, h * d)


@pytest.mark.parametrize(
    "shape", [(2, 3, 5, 16), (3, 4, 7, 32), (2, 3, 5, 20), (1, 2, 64, 64), (2, 3, 5, 7), (2, 1, 5, 16)]
)
def test_heads_side_by_side(shape):
    x = rng.normal(size=shape).astype(np.float32)
    expected = (x + np.float32(1)).transpose(0, 2, 1, 3).reshape(shape[0], shape[2], -1)
    np.testing.assert_array_equal(jax.jit(heads)(x), expected)


def test_nothing_is_divided():
    x = jnp.ones((2, 3, 5, 32))
    assert "div" not in jax.jit(heads).lower(x).compile().as_text("nests")


def test_parts_beside_each_other():
    """The gradient of a projection to queries, keys and values: parts lie in different orders."""
    x, y = (rng.normal(size=(2, 4, 6, 16)).astype(np.float32) for _ in range(2))
    f = lambda x, y: jnp.concatenate([heads(x), y.transpose(0, 2, 3, 1).reshape(2, 6, 64), heads(y)], -1)  # noqa: E731
    own = lambda x: (x + np.float32(1)).transpose(0, 2, 1, 3).reshape(2, 6, 64)  # noqa: E731
    expected = np.concatenate([own(x), y.transpose(0, 2, 3, 1).reshape(2, 6, 64), own(y)], -1)
    np.testing.assert_array_equal(jax.jit(f)(x, y), expected)


def test_quotients_of_quotients():
    x = rng.normal(size=(2, 3, 16, 16, 5)).astype(np.float32)
    f = lambda x: jnp.exp(x.transpose(4, 1, 0, 2, 3).reshape(5, 3, -1)) + 1  # noqa: E731
    g = lambda x: (x.transpose(4, 2, 0, 3, 1) * 2).reshape(5, -1)  # noqa: E731
    np.testing.assert_array_equal(jax.jit(f)(x), f(jnp.asarray(x)))
    np.testing.assert_array_equal(jax.jit(g)(x), (x.transpose(4, 2, 0, 3, 1) * 2).reshape(5, -1))


def test_indices_that_are_values_too():
    """The quotient tells where an element lies, and is what another operation reads."""
    x = rng.normal(size=(3, 4, 16)).astype(np.float32)
    f = lambda x: (x.transpose(1, 0, 2) * jnp.arange(3.0)[None, :, None]).reshape(4, 48) + jnp.arange(48) // 16  # noqa: E731
    expected = (x.transpose(1, 0, 2) * np.arange(3, dtype=np.float32)[None, :, None]).reshape(4, 48) + np.arange(
        48
    ) // 16
    np.testing.assert_array_equal(jax.jit(f)(x), expected.astype(np.float32))


def test_sums_beside():
    """What is folded keeps its order."""
    x = rng.normal(size=(2, 3, 40, 32)).astype(np.float32)
    f = lambda x: jnp.sum(x.transpose(0, 2, 1, 3).reshape(2, 40, 96), 1)  # noqa: E731
    np.testing.assert_allclose(jax.jit(f)(x), x.transpose(0, 2, 1, 3).reshape(2, 40, 96).sum(1), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(jax.jit(f)(x), f(jnp.asarray(x)))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_few_heads_whose_lanes_run_elsewhere(count):
    """Keys of a few heads, their features one below the other, as a product packs them: places are the lanes."""
    x = rng.normal(size=(3, 48, count, 32)).astype(np.float32)
    f = lambda x: jnp.einsum("nqhd,nkhd->nhqk", x, 2 * x)  # noqa: E731
    nests = jax.jit(f).lower(x).compile().as_text("nests")
    assert "squares" in nests and "div" not in nests
    np.testing.assert_allclose(jax.jit(f)(x), np.einsum("nqhd,nkhd->nhqk", x, 2 * x), rtol=1e-5, atol=1e-4)


def test_folds_with_a_function_of_their_own():
    """The least of each column of heads side by side, and where it is. What is found so far changes each time."""

    def earlier(a, b):
        (x, i), (y, j) = a, b
        first = (x < y) | (x == y) & (i < j)
        return lax.select(first, x, y), lax.select(first, i, j)

    def least(x):
        y = heads(x)
        places = lax.broadcasted_iota(np.int32, y.shape, 1)
        return lax.reduce((y, places), (np.float32(np.inf), np.int32(-1)), earlier, (1,))

    x = rng.normal(size=(3, 4, 7, 32)).astype(np.float32)
    every = (x + np.float32(1)).transpose(0, 2, 1, 3).reshape(3, 7, -1)
    found, places = jax.jit(least)(x)
    np.testing.assert_array_equal(found, every.min(1))
    np.testing.assert_array_equal(places, every.argmin(1))
