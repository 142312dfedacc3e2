"""Updates of one number spread over rows, one of each row, are choices: with the values that NumPy has."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

RNG = np.random.default_rng(0)
KINDS = {
    "set": lambda x, v: v,
    "add": lambda x, v: x + v,
    "subtract": lambda x, v: x - v,
    "multiply": lambda x, v: x * v,
    "min": np.minimum,
    "max": np.maximum,
}


def graph(f, *xs) -> str:
    return jax.jit(f).lower(*xs).as_text()


def is_a_choice(f, *xs) -> bool:
    return "scatter" not in graph(f, *xs)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_update_of_each_row(kind, dtype):
    if dtype == "complex64" and kind in ("min", "max"):
        pytest.skip("complex numbers have no order")
    places = np.array([3, 0, -1, 6, 2], np.int32)
    values = RNG.integers(-5, 5, 5).astype(dtype)

    def f(places, values):
        return jax.vmap(lambda i, v: getattr(jnp.full(7, 2, dtype).at[i], kind)(v))(places, values)

    expected = np.full((5, 7), 2, dtype)
    for row, i, v in zip(expected, places, values, strict=True):
        row[i] = KINDS[kind](row[i], v)
    assert is_a_choice(f, places, values)
    np.testing.assert_array_equal(jax.jit(f)(places, values), expected)
    np.testing.assert_array_equal(f(places, values), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_places_beyond_a_row(mode, dtype):
    info = np.iinfo(dtype)
    places = np.array([0, 299, 300, 1, info.max, info.min, info.max - 1]).astype(np.int64)
    places = places[(places >= info.min) & (places <= info.max)].astype(dtype)
    values = np.arange(1, len(places) + 1, dtype="f")

    def f(places, values):
        return jax.vmap(lambda i, v: jnp.zeros(300).at[i].add(v, mode=mode, wrap_negative_indices=False))(
            places, values
        )

    expected = np.zeros((len(places), 300), "f")
    for row, i, v in zip(expected, places.astype(np.int64), values, strict=True):
        i = min(max(i, 0), 299) if mode == "clip" else i
        if 0 <= i < 300:
            row[i] += v
    assert is_a_choice(f, places, values)
    np.testing.assert_array_equal(jax.jit(f)(places, values), expected)


@pytest.mark.parametrize("column", [False, True])
def test_a_row_or_column_of_each_matrix(column):
    places, values = np.array([1, 0, 2], np.int32), RNG.normal(size=(3, 4)).astype("f")

    def f(places, values):
        zeros = jnp.zeros((4, 5) if column else (5, 4))
        return jax.vmap(lambda i, v: zeros.at[:, i].add(v) if column else zeros.at[i].add(v))(places, values)

    expected = np.zeros((3, 4, 5), "f")
    for matrix, i, v in zip(expected, places, values, strict=True):
        matrix[:, i] += v
    assert is_a_choice(f, places, values)
    np.testing.assert_array_equal(jax.jit(f)(places, values), expected if column else expected.transpose(0, 2, 1))


def test_zeros_keep_their_sign():
    def f(i, v):
        return jax.vmap(lambda i, v: jnp.full(4, -0.0).at[i].add(v))(i, v)

    got = np.asarray(jax.jit(f)(np.array([1, 3]), np.array([0.0, -0.0], "f")))
    np.testing.assert_array_equal(np.signbit(got), [[True, False, True, True], [True] * 4])


PICKS = {
    "take_along_axis": lambda x, i: jnp.take_along_axis(x, i[:, None], 1)[:, 0],
    "rows counted": lambda x, i: x[jnp.arange(x.shape[0]), i],
    "rows counted behind": lambda x, i: x.T[i, jnp.arange(x.shape[0])],
    "one by one": lambda x, i: jax.vmap(lambda row, i: row[i])(x, i),
}


@pytest.mark.parametrize("pick", PICKS)
def test_the_gradient_of_picking_one_of_each_row(pick):
    x, places = RNG.normal(size=(9, 40)).astype("f"), RNG.integers(-40, 40, 9)
    weights = RNG.normal(size=9).astype("f")
    g = jax.grad(lambda x, i, w: jnp.sum(PICKS[pick](x, i) * w))
    expected = np.zeros_like(x)
    expected[np.arange(9), places] = weights
    assert is_a_choice(g, x, places, weights)
    np.testing.assert_array_equal(jax.jit(g)(x, places, weights), expected)


def test_several_of_a_row_are_updates():
    places, values = np.array([[1, 1], [0, 3]], np.int32), np.ones((2, 2), "f")
    g = jax.grad(lambda x, i, v: jnp.sum(jnp.take_along_axis(x, i, 1) * v))
    got = jax.jit(g)(np.zeros((2, 4), "f"), places, values)
    np.testing.assert_array_equal(got, [[0, 2, 0, 0], [1, 0, 0, 1]])


def test_fewer_updates_than_rows_and_counters_elsewhere():
    values = RNG.normal(size=4).astype("f")
    f = lambda i, v: jnp.zeros((5, 6)).at[jnp.arange(4), i].add(v)  # the last row gets none
    shifted = lambda i, v: jnp.zeros((5, 6)).at[jnp.arange(4) + 1, i].add(v)
    places = np.array([5, 0, 3, 3], np.int32)
    for g, first in ((f, 0), (shifted, 1)):
        expected = np.zeros((5, 6), "f")
        expected[np.arange(4) + first, places] = values
        np.testing.assert_array_equal(jax.jit(g)(places, values), expected)


def test_a_cross_entropy_and_its_gradient_are_one_pass():
    def loss(x, labels):
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], -1))

    x, labels = RNG.normal(size=(128, 300)).astype("f"), RNG.integers(0, 300, 128)
    g = jax.jit(jax.grad(loss))
    shares = np.exp(x.astype(float) - x.max(1, keepdims=True))
    expected = (shares / shares.sum(1, keepdims=True) - (np.arange(300) == labels[:, None])) / 128
    np.testing.assert_allclose(g(x, labels), expected, atol=1e-7)
    text = g.lower(x, labels).compile().as_text("program")
    assert text.count("rows ") == 1 and "launch" not in text and " 0 bytes of temporaries" in text
