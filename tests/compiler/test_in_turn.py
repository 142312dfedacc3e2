"""Zeros between elements: what a pad with an interior makes is written by iterations that do so many places each."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

RNG = np.random.default_rng(7)


def spread(x, low: int, high: int, between: int, axis: int, fill=0):
    """A pad along an axis, by NumPy."""
    x = np.moveaxis(np.asarray(x), axis, 0)
    whole = np.full((len(x) + max(len(x) - 1, 0) * between, *x.shape[1:]), fill, x.dtype)
    whole[:: between + 1] = x
    grown = [np.full((max(n, 0), *x.shape[1:]), fill, x.dtype) for n in (low, high)]
    out = np.concatenate([grown[0], whole[max(-low, 0) : len(whole) + min(high, 0)], grown[1]])
    return np.moveaxis(out, 0, axis)


def padded(x, low: int, high: int, between: int, axis: int, fill=0):
    config = [(low, high, between) if d == axis else (0, 0, 0) for d in range(x.ndim)]
    return lax.pad(x, jnp.asarray(fill, x.dtype), config)


@pytest.mark.share(21)
@pytest.mark.parametrize("between", [1, 2, 3, 6])
@pytest.mark.parametrize("edges", [(0, 0), (1, 0), (3, 2), (-1, 2), (0, -2), (-3, -1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "complex64"])
def test_pads(between, edges, dtype):
    for shape, axis in (((37,), 0), ((300,), 0), ((5, 33), 1), ((9, 20), 0), ((2, 7, 3), 1)):
        x = (RNG.standard_normal(shape) > 0) if dtype == "bool" else RNG.standard_normal(shape).astype(dtype)
        made = jax.jit(lambda x: padded(x, *edges, between, axis))(x)  # noqa: B023
        np.testing.assert_array_equal(made, spread(x, *edges, between, axis))


@pytest.mark.parametrize("n", [2, 3, 16, 17, 100, 1001])
def test_what_goes_into_and_comes_out_of_pads(n):
    """Several results, other operands, and pads of two axes and of pads."""
    x, y = RNG.standard_normal((2, n)).astype(np.float32)
    z = RNG.standard_normal(2 * n).astype(np.float32)

    def f(pad, x, y, z):
        both = pad(x * 2, 0, 1, 1, 0) + pad(y, 1, 0, 1, 0)
        return both, both * z, pad(pad(x + y, 0, 1, 1, 0), 1, 0, 1, 0, 2)

    made = jax.jit(lambda *xs: f(padded, *xs))(x, y, z)
    for a, b in zip(made, f(spread, x, y, z), strict=True):
        np.testing.assert_array_equal(a, b)
    rows = np.outer(x[:9], y)
    twice = jax.jit(lambda x: padded(padded(x, 0, 0, 1, 0), 0, 0, 1, 1, 1.5))(rows)
    np.testing.assert_array_equal(twice, spread(spread(rows, 0, 0, 1, 0), 0, 0, 1, 1, 1.5))
    joined = jax.jit(lambda x, y: jnp.concatenate([y, padded(x, 1, 0, 2, 0) - 1, y]))(x, y)
    np.testing.assert_array_equal(joined, np.concatenate([y, spread(x, 1, 0, 2, 0) - 1, y]))


@pytest.mark.parametrize("n", [5, 64, 333])
def test_an_argument_is_updated_in_place(n):
    x, y = RNG.standard_normal(n).astype(np.float32), RNG.standard_normal(2 * n - 1).astype(np.float32)
    f = jax.jit(lambda x, y: (padded(x, 0, 0, 1, 0) + y * 2, jnp.sum(x)), donate_argnums=1)
    np.testing.assert_array_equal(f(x, jnp.array(y))[0], spread(x, 0, 0, 1, 0) + y * 2)


def test_zeros_lose_their_sign_in_sums_with_zeros():
    x = np.asarray([-0.0, 1, -0.0], np.float32)
    made = jax.jit(lambda x: padded(x, 0, 1, 1, 0) + padded(x, 1, 0, 1, 0))(x)
    assert not np.signbit(made).any()


def test_folds_and_rows():
    x = RNG.standard_normal((64, 200)).astype(np.float32)
    wide = spread(x, 0, 1, 1, 1)
    np.testing.assert_allclose(jax.jit(lambda x: padded(x, 0, 1, 1, 1).sum(1))(x), wide.sum(1), rtol=1e-5, atol=1e-5)
    soft = jax.jit(lambda x: jax.nn.softmax(padded(x, 0, 1, 1, 1), 1))(x)
    e = np.exp(wide - wide.max(1, keepdims=True))
    np.testing.assert_allclose(soft, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_nothing_is_divided():
    """Each place of an iteration is written by itself, without a condition where the extent is a multiple."""
    x = jnp.ones(1000)
    f = lambda x, y: padded(x, 0, 1, 1, 0) + padded(y, 1, 0, 1, 0)  # noqa: E731
    text = jax.jit(f).lower(x, x).compile().as_text("nests")
    assert "nest for i0<1000" in text
    assert "div" not in text
    assert "select" not in text


def test_parts_of_long_rows_that_are_written_in_turn():
    """Beyond the caches: such nests share their rows, which stay one by one."""
    x, y = np.arange(1500 * 1003, dtype=np.float32).reshape(1500, 1003), np.ones((3000, 2001), np.float32)
    f = lambda x, y: jnp.concatenate([padded(x, 0, 1, 1, 0), y, padded(x, 0, 1, 1, 0) + 1], 1)  # noqa: E731
    wide = spread(x, 0, 1, 1, 0)
    np.testing.assert_array_equal(jax.jit(f)(x, y), np.concatenate([wide, y, wide + 1], 1))
