"""Indices that are computed from counters are places that move with the loops."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

rng = np.random.default_rng(0)
x = rng.standard_normal(300).astype("float32")
m = rng.standard_normal((40, 50)).astype("float32")
rows, columns = np.arange(20)[:, None], np.arange(8)


def windows(x):
    return x[jnp.arange(292)[:, None] + jnp.arange(8)]


def test_windows_are_read_where_they_lie():
    text = jax.jit(windows).lower(x).compile().as_text("nests")
    assert "v0[1*i0 + 1*i1]" in text and "affine" not in text
    np.testing.assert_array_equal(jax.jit(windows)(x), np.lib.stride_tricks.sliding_window_view(x, 8)[:292])


CASES = {
    "every third": (lambda x: x[3 * jnp.arange(90)[:, None] + jnp.arange(5)], x[3 * np.arange(90)[:, None] + np.arange(5)]),
    "backwards": (lambda x: x[299 - jnp.arange(300)], x[::-1]),
    "from the end": (lambda x: x[-1 - jnp.arange(300)], x[::-1]),
    "beyond": (lambda x: x[jnp.arange(310)], x[np.minimum(np.arange(310), 299)]),
    "filled": (lambda x: jnp.take(x, jnp.arange(310) - 5, mode="fill", fill_value=7.0),
               np.concatenate([x[-5:], x, np.full(5, 7, "float32")])),
    "of two axes": (lambda x: jnp.asarray(m)[jnp.arange(20)[:, None] + 3, 2 * jnp.arange(8) + 1],
                    m[rows + 3, 2 * columns + 1]),
    "a diagonal": (lambda x: jnp.asarray(m)[jnp.arange(40), jnp.arange(40)], m[np.arange(40), np.arange(40)]),
    "wrapping round": (lambda x: x[(jnp.arange(200, dtype="uint8") + jnp.uint8(100)).astype("int32")],
                       x[(np.arange(200) + 100) % 256]),
    "wrapping products": (lambda x: x[(jnp.arange(100, dtype="uint8") * jnp.uint8(5)).astype("int32")],
                          x[np.arange(100) * 5 % 256]),
    "added": (lambda x: jnp.zeros(300).at[jnp.arange(100) + 7].add(x[:100]),
              np.concatenate([np.zeros(7, "float32"), x[:100], np.zeros(193, "float32")])),
    "put beyond": (lambda x: jnp.zeros(50).at[jnp.arange(100) + 7].set(x[:100]),
                   np.concatenate([np.zeros(7, "float32"), x[:43]])),
    "summed": (lambda x: jnp.sum(x[jnp.arange(290)[:, None] + jnp.arange(4)] * 0 + 1.0, 1), np.full(290, 4, "float32")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    f, expected = CASES[name]
    np.testing.assert_array_equal(jax.jit(f)(x), expected)


@pytest.mark.parametrize("shift", [0, 3, 295, 400, -5, -400])
def test_a_start_that_is_computed(shift):
    """Windows from a place that the program is given: indices beyond are clamped one by one."""
    f = lambda x, i: x[i + jnp.arange(8)]  # noqa: E731
    at = shift + np.arange(8)
    expected = x[np.clip(np.where(at < 0, at + 300, at), 0, 299)]
    np.testing.assert_array_equal(jax.jit(f)(x, shift), expected)


def test_in_a_loop():
    """A counter and a row of places: a part of an array that moves on."""
    f = lambda x: jax.lax.scan(lambda c, i: (c + 1, x[i + jnp.arange(8)]), 0, jnp.arange(292))[1]  # noqa: E731
    np.testing.assert_array_equal(jax.jit(f)(x), windows(x))


def test_gradient():
    """Each element is in as many windows as reach it."""
    found = jax.jit(jax.grad(lambda x: windows(x).sum()))(jnp.asarray(x))
    np.testing.assert_array_equal(found, [*np.convolve(np.ones(292), np.ones(8)), 0])
