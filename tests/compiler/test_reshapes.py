"""Elementwise operations on a reshape that joins dimensions are done before it."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

rng = np.random.default_rng(0)
scores, steps = rng.normal(size=(5, 1)).astype(np.float32), rng.normal(size=(5, 33)).astype(np.float32)


def joined(f, *outer):
    """f of the sums of all pairs, as a vector."""
    return lambda x, y: f((x + y).reshape(-1), *outer)


functions = [
    joined(lambda v: v * 2 + 1),
    joined(lambda v: v.astype(np.float16)),
    joined(lambda v: jax.lax.bitcast_convert_type(v, np.int32) ^ 1),
    joined(lambda v: jnp.where(v > 0, v, -1.0)),
    joined(lambda v: v * (v > jnp.float32(0.5))),
    joined(lambda v: jax.lax.clamp(-1.0, v, 1.0)),
    joined(lambda v: jnp.sort(v)),
    joined(lambda v: jnp.argsort(v)),
    joined(lambda v: jax.lax.top_k(v, 7)),
    joined(lambda v: v.reshape(33, 5) * 3),
    joined(lambda v: jax.random.uniform(jax.random.key(1), v.shape) + v),
    joined(lambda v: jnp.concatenate([v, v * v])[7:300]),
]


@pytest.mark.parametrize("f", functions)
def test_values(f):
    got, alone = jax.jit(f)(scores, steps), f(jnp.asarray(scores), jnp.asarray(steps))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(alone), strict=True):
        assert x.dtype == y.dtype and x.weak_type == y.weak_type
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0), (1, 7)])
def test_empty_and_single(shape):
    x, y = np.ones(shape[:1] + (1,), np.float32), np.ones(shape, np.float32)
    np.testing.assert_array_equal(jax.jit(joined(lambda v: v * 2))(x, y), np.full(x.size * shape[1], 4, np.float32))


def test_gradients():
    f = lambda x, y: (jnp.sin((x + y).reshape(-1)) ** 2).sum()  # noqa: E731
    dx, dy = jax.jit(jax.grad(f, (0, 1)))(scores, steps)
    each = np.sin(2 * (scores + steps))
    np.testing.assert_allclose(dy, each, atol=1e-6)
    np.testing.assert_allclose(dx, each.sum(1, keepdims=True), atol=1e-5)


def test_indices_are_not_divided():
    """The softmax over all continuations of a beam: its one division is that by the sum."""
    f = jax.jit(joined(jax.nn.softmax))
    assert f.lower(scores, steps).compile().as_text("nests").count("div") == 1


# ---- groups of a few elements --------------------------------------------------------------------------------


def normalised(x, groups: int):
    """Group normalisation of pictures whose channels lie side by side."""
    y = x.reshape(*x.shape[:-1], groups, -1)
    mean = y.mean((1, 2, 4), keepdims=True)
    return ((y - mean) / jnp.sqrt(y.var((1, 2, 4), keepdims=True) + 1e-3)).reshape(x.shape)


def joined_first(x, groups: int):
    """The same of places in a row, by squares."""
    y = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
    mean, squares = y.mean((1, 3)), (y * y).mean((1, 3))
    centred = y - mean[:, None, :, None]
    return (centred / jnp.sqrt(squares - mean * mean + 1e-3)[:, None, :, None]).reshape(x.shape)


@pytest.mark.share(2)
@pytest.mark.parametrize("f", [normalised, joined_first])
@pytest.mark.parametrize("groups, few", [(4, 4), (8, 3), (2, 8), (16, 2), (5, 5)])
def test_normalised_groups(f, groups, few):
    x, by = rng.normal(size=(2, 3, 6, 7, groups * few))
    y = x.reshape(*x.shape[:-1], groups, few)
    expected = (y - y.mean((1, 2, 4), keepdims=True)) / np.sqrt(y.var((1, 2, 4), keepdims=True) + 1e-3)
    got = jax.jit(f, static_argnums=1)(x.astype(np.float32), groups)
    np.testing.assert_allclose(got, expected.reshape(x.shape), atol=2e-5)
    loss = lambda x: jnp.sum(f(x, groups) * by)  # noqa: E731
    with jax.enable_x64(True):
        slope = jnp.sum(jax.jit(jax.grad(loss))(jnp.asarray(x)) * by)
        differences = (loss(jnp.asarray(x + 1e-6 * by)) - loss(jnp.asarray(x - 1e-6 * by))) / 2e-6
    np.testing.assert_allclose(slope, differences, rtol=1e-6)


def test_groups_are_computed_as_rows_of_all_channels():
    """Of groups there are only the few numbers that each has one of."""
    text = jax.jit(lambda x: normalised(x, 8)).lower(np.ones((2, 16, 16, 32), np.float32)).as_text()
    maps = [line for line in text.splitlines() if " = map " in line]
    assert maps and not any("[2, 16, 16, 8, 4]" in line for line in maps)


kinds = [jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.any, jnp.all]


@pytest.mark.share(4)
@pytest.mark.parametrize("f", kinds)
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float16, np.uint8, np.complex64, bool])
def test_folds_of_groups_and_places(f, dtype):
    x = rng.integers(0, 2, (40, 3, 4)).astype(dtype)
    got = jax.jit(f, static_argnums=1)(x, (0, 2))
    expected = getattr(np, f.__name__)(x, (0, 2))
    assert got.dtype == f(jnp.asarray(x), (0, 2)).dtype
    np.testing.assert_array_equal(got, expected)


def test_halves_are_rounded_once():
    x = np.full((16, 2, 2), 1, np.float16)
    x[0] = 2048, 0  # which is 2063 with the others of its column: no half
    np.testing.assert_array_equal(jax.jit(lambda x: x.sum((0, 2)))(x), x.astype(np.float32).sum((0, 2)))


def test_transposed_groups_are_folded_as_they_lie():
    x = rng.normal(size=(4, 3, 50)).astype(np.float32)
    got = jax.jit(lambda x: x.T.sum((0, 2)))(x)
    np.testing.assert_allclose(got, x.astype(np.float64).sum((0, 2)), atol=1e-4)
