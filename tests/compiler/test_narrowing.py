"""Places of 64 bits are numbers of 32 where bounds say that these suffice, with the same results."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def wide():
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def turned(x, k):
    """Each row begins at a place that is computed."""
    n = x.shape[-1]
    return jnp.take_along_axis(x, (jnp.arange(n) + k) % n + jnp.zeros_like(x, jnp.int32), -1)


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool", "int16"])
@pytest.mark.parametrize("n", [2, 3, 7, 16, 33, 100])
@pytest.mark.parametrize("k", [0, 1, -5, 2**31 - 1, 2**40 + 3])
def test_rows_that_are_turned(n, dtype, k):
    x = RNG.integers(-50, 50, (600, n)).astype(dtype)
    np.testing.assert_array_equal(jax.jit(turned)(x, np.int64(k)), np.roll(x, -(k % n), -1))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "min", "rem", "abs", "clip", "where", "floor", "neg"])
def test_what_places_are_computed_by(op):
    x, i = RNG.standard_normal(5000), RNG.integers(-(2**62), 2**62, 3000)
    places = {
        "add": lambda i: i % 2000 + jnp.arange(3000),
        "sub": lambda i: 4000 - i % 3000,
        "mul": lambda i: i % 60 * (i % 80),
        "max": lambda i: jnp.maximum(i % 5000, 17),
        "min": lambda i: jnp.minimum(i % 5000, 170),
        "rem": lambda i: jnp.abs(jax.lax.rem(i, jnp.int64(4000))),
        "abs": lambda i: jnp.abs(i % 700 - 300),
        "clip": lambda i: jnp.clip(i, 5, 4500),
        "where": lambda i: jnp.where(i % 7 < 3, i % 100, i % 4000),
        "floor": lambda i: i % 4000 // 3,
        "neg": lambda i: -(i % 4000) + 4500,
    }[op]
    made = jax.jit(lambda x, i: x[places(i)] * 2)(x, i)
    np.testing.assert_array_equal(made, x[np.asarray(places(i))] * 2)


@pytest.mark.share(2)
@pytest.mark.parametrize("by", [1, 3, 10, -10, 2**40])
@pytest.mark.parametrize("first", [0, -700, 2**31 - 300, 2**33])
def test_updates_at_quotients(by, first):
    x = RNG.integers(-50, 50, 3000).astype(np.float64)
    places = (np.arange(3000) + first) // by
    wanted = np.zeros(400)
    inside = (places >= -400) & (places < 400)
    np.add.at(wanted, places[inside], x[inside])
    made = jax.jit(lambda x: jnp.zeros(400).at[(jnp.arange(3000) + first) // by].add(x))(x)
    np.testing.assert_array_equal(made, wanted)


def test_quotients_that_updates_go_to_have_32_bits():
    sums = lambda x: jax.ops.segment_sum(x, jnp.arange(300_000) // 10, num_segments=30_000)
    nests = jax.jit(sums).lower(jnp.ones(300_000)).compile().as_text("nests")
    assert "int32 = div" in nests and "int64 = div" not in nests


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_places_that_need_64_bits(mode):
    x, i = np.arange(10.0), np.array([0, 2**32 + 1, -(2**33) + 2, 9, 2**62])
    wanted = {
        "clip": x[np.clip(i, 0, 9)],
        "fill": np.where((i >= -10) & (i < 10), x[i % 10], -1),
        "wrap": x[i % 10],
    }[mode]
    np.testing.assert_array_equal(jax.jit(lambda x, i: jnp.take(x, i, mode=mode, fill_value=-1))(x, i), wanted)


def test_places_of_a_loop():
    x = RNG.standard_normal((50, 7))
    made = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda k, c: c + turned(x, k), x * 0))(x)
    np.testing.assert_allclose(made, sum(np.roll(x, -(k % 7), -1) for k in range(20)), rtol=1e-14, atol=1e-14)


def test_no_row_of_places_has_64_bits():
    nests = jax.jit(turned).lower(np.ones((600, 7)), np.int64(3)).compile().as_text("nests")
    rows = nests.split("nest for")[-1]
    assert "int32 = load" in rows and "int64 = load" not in rows
