"""Slices of what is joined are what is joined of slices, where most is left out."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.native.compile import nests

rng = np.random.default_rng(8)


def joined(x, d):
    return jnp.concatenate([x * 2, x, jnp.sin(x)], d)


@pytest.mark.share(4)
@pytest.mark.parametrize("d", [0, 1, 2])
@pytest.mark.parametrize("shape", [(6, 5, 4), (1, 9, 2), (3, 1, 7), (0, 4, 4)])
def test_slices_have_the_elements_of_the_whole(shape, d):
    x = rng.standard_normal(shape, np.float32)
    whole = np.asarray(joined(x, d))
    for _ in range(8):
        start = [int(rng.integers(0, n + 1)) for n in whole.shape]
        limit = [int(rng.integers(a, n + 1)) for a, n in zip(start, whole.shape, strict=True)]
        strides = [int(rng.integers(1, 4)) for _ in shape]
        cut = tuple(slice(*each) for each in zip(start, limit, strides, strict=True))
        found = jax.jit(lambda x: lax.slice(joined(x, d), start, limit, strides))(x)  # noqa: B023
        assert np.array_equal(found, whole[cut])
        slope = jax.jit(jax.grad(lambda x: jnp.sum(lax.slice(joined(x, d), start, limit, strides) ** 2)))(x)  # noqa: B023
        other = jax.grad(lambda x: jnp.sum(joined(x, d)[cut] ** 2))(x)  # noqa: B023
        np.testing.assert_allclose(slope, other, rtol=1e-5, atol=1e-5)


def test_slices_at_computed_places():
    x, y = (rng.standard_normal((9, 8), np.float32) for _ in range(2))
    for d, sizes in ((0, (18, 3)), (1, (4, 16))):
        cut = jax.jit(lambda x, y, i: lax.dynamic_slice(jnp.concatenate([x, y * 2], d), (i, i), sizes))  # noqa: B023
        for i in (-3, 0, 2, 50):
            expected = lax.dynamic_slice(np.concatenate([x, y * 2], d), (i, i), sizes)
            assert np.array_equal(cut(x, y, i), expected)


def test_rows_that_nobody_reads_are_not_computed():
    x = np.ones((4000, 7), np.float32)
    made = nests(jax.make_jaxpr(lambda x: jnp.stack([x * k for k in (2, 3)])[:, :30] + 1)(x))
    assert "<4000" not in "".join(made)
    cut = jax.vmap(lambda x, i: lax.dynamic_slice_in_dim(x, i, 30), (0, None))
    made = nests(jax.make_jaxpr(lambda x, i: cut(jnp.stack([x * k for k in (2, 3)]), i) + 1)(x, 3))
    assert "<4000" not in "".join(made)


def test_slices_of_what_is_computed_of_joined_arrays():
    """They are computed of slices, and what they leave out is not."""
    x, y = (rng.standard_normal(n, np.float32) for n in (300, 4000))
    f = lambda x, y: jnp.exp(jnp.concatenate([x, y]) * 2)  # noqa: E731
    for cut in (slice(0, 300), slice(0, 90, 3), slice(290, 310), slice(1000, 1900), slice(299, 301)):
        found = jax.jit(lambda x, y: f(x, y)[cut] - 1)(x, y)  # noqa: B023
        np.testing.assert_allclose(found, np.exp(np.concatenate([x, y]) * 2)[cut] - 1, rtol=1e-5, atol=1e-6)
    made = nests(jax.make_jaxpr(lambda x, y: f(x, y)[:300] + 1)(x, y))
    assert "<4000" not in "".join(made)
    made = nests(jax.make_jaxpr(lambda x, y: (f(x, y)[:300], f(x, y)[5:]))(x, y))
    assert "".join(made).count("exp") == 1, "what others read too is computed once"


@pytest.mark.parametrize("shape", [(7, 120, 16), (1, 40, 8), (5, 1, 64), (3, 33, 1)])
def test_slices_of_what_is_spread(shape):
    """What is spread is computed where it is read, also along dimensions that it does not have, or has once."""
    a, b, c = shape
    x, y, z = (rng.standard_normal(s, np.float32) for s in ((a, b), (b, c), (a, 1, c)))
    whole = np.exp(x)[..., None] + (y * y + 1) * z

    def outer(x, y, z):
        return jnp.exp(x)[..., None] + (y * y + 1) * z

    for cut in (np.s_[..., :1], np.s_[..., :, : c // 2], np.s_[:1], np.s_[:, 3 : b // 2 : 3, ::5], np.s_[-1:, :, -1:]):
        found = jax.jit(lambda x, y, z: outer(x, y, z)[cut])(x, y, z)  # noqa: B023
        np.testing.assert_allclose(found, whole[cut], rtol=1e-5, atol=1e-6)
        slope = jax.jit(jax.grad(lambda y: jnp.sum(outer(x, y, z)[cut])))(y)  # noqa: B023
        expected = np.zeros(shape, np.float32)
        expected[cut] = 1
        np.testing.assert_allclose(slope, (expected * 2 * y * z).sum(0), rtol=1e-4, atol=1e-5)


def test_what_is_spread_is_computed_for_what_is_read():
    x = np.ones((6, 5000), np.float32)
    made = nests(jax.make_jaxpr(lambda x: jnp.triu(x[..., None] + x[:, None, :16])[..., 0])(x))
    assert "i1<16" not in "".join(made), "the mask has one column"


TAKEN_APART = {
    "stack": lambda x, y: jnp.stack([x, y[:, ::-1], x * 3], 1),
    "rows": lambda x, y: jnp.concatenate([x, y[:3], y]),
    "columns": lambda x, y: jnp.concatenate([x, y[:, :3], y], 1),
    "two": lambda x, y: jnp.concatenate([x, y], 1) - jnp.concatenate([y, x], 1),
    "of other lengths": lambda x, y: jnp.concatenate([x, y[:2]]) * jnp.concatenate([y[:2], x]),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", sorted(TAKEN_APART))
def test_what_is_joined_computed_and_taken_apart_has_the_same_elements(name):
    x, y = (rng.standard_normal((6, 8), np.float32) for _ in range(2))

    def loss(x, y):
        return jnp.sum(jnp.sin(TAKEN_APART[name](x, y)) ** 2)

    for one, other in zip(jax.jit(jax.grad(loss, (0, 1)))(x, y), jax.grad(loss, (0, 1))(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def parts(x, y, cuts):
        z = jnp.exp(TAKEN_APART[name](x, y) * 2)
        return [z[tuple(slice(*c) for c in cut)] for cut in cuts]

    shape = TAKEN_APART[name](x, y).shape
    for _ in range(8):
        cuts = tuple(tuple(tuple(sorted(rng.integers(0, n + 1, 2).tolist())) for n in shape) for _ in range(3))
        for one, other in zip(jax.jit(parts, static_argnums=2)(x, y, cuts), parts(x, y, cuts), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["stack", "rows", "columns"])
def test_what_is_joined_and_taken_apart_is_not_written(name):
    x, y = (jnp.asarray(rng.standard_normal((60, 80), np.float32)) for _ in range(2))
    slope = jax.jit(jax.grad(lambda x, y: jnp.sum(TAKEN_APART[name](x, y) ** 2), (0, 1)))
    assert ", 0 bytes of temporaries" in slope.lower(x, y).compile().as_text("program")


def test_a_part_alone_is_not_joined():
    """The slope for one part of what is joined with something that is computed."""
    x, i = rng.standard_normal(1000, np.float32), np.arange(-3, 7, dtype=np.int32)
    slope = jax.jit(jax.grad(lambda x, i: jnp.sum(jnp.abs(jnp.concatenate([x, i.astype(np.float32)])))))
    assert len(nests(slope.trace(x, i).jaxpr)) == 1
    np.testing.assert_array_equal(slope(x, i), np.sign(x))


@pytest.mark.parametrize("shape", [(2, 3000), (3000, 2), (3, 1000)])
def test_what_many_slices_read_is_joined_once(shape):
    """Neighbours of each pixel, of few rows: each slice is less than half of what is padded, all are more than it."""

    def near(x):
        padded = jnp.pad(x, 1, mode="edge")
        return [padded[i : i + shape[0], j : j + shape[1]] for i in range(3) for j in range(3)]

    f = jax.jit(lambda x: sum(jnp.tanh(each) * each for each in near(x)))
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.testing.assert_allclose(f(x), sum(np.tanh(each) * each for each in map(np.asarray, near(x))), 1e-5, 1e-5)
    assert f.lower(x).compile().as_text("program").count(": copy") <= 6


@pytest.mark.parametrize("around", [((0, 0), (1, 1)), ((2, 0), (0, 3)), ((-1, 2), (1, 0))])
def test_what_is_padded_computed_and_cut(around):
    """The gradient of what is padded is that of what it was before; what is cut elsewhere reads what was added."""
    x = rng.standard_normal((30, 33), np.float32)

    def f(x):
        padded = jnp.pad(x, around, constant_values=0.5) if around[0][0] >= 0 else jnp.pad(x[1:], ((0, 2), (1, 0)))
        return jnp.tanh(padded) ** 2 * jnp.arange(padded.shape[1])

    slope = jax.jit(jax.grad(lambda x: jnp.sum(f(x))))(x)
    first, columns = max(around[0][0], 0), np.arange(around[1][0], around[1][0] + 33)
    expected = 2 * np.tanh(x) * (1 - np.tanh(x) ** 2) * columns
    expected[: max(-around[0][0], 0)] = 0
    np.testing.assert_allclose(slope, expected, 1e-4, 1e-4)
    whole = np.asarray(f(x))
    for k in {first, 0, 1}:
        np.testing.assert_allclose(jax.jit(lambda x: f(x)[k : k + 28, 1:34])(x), whole[k : k + 28, 1:34], 1e-5, 1e-5)  # noqa: B023
    both = jax.jit(jax.value_and_grad(lambda x: jnp.sum(f(x))))(x)
    np.testing.assert_allclose(both[0], whole.sum(dtype=np.float64), 1e-4)
    np.testing.assert_allclose(both[1], slope, 1e-6, 1e-6)


def test_what_pads_add_is_not_computed_where_it_is_cut_off():
    x = np.ones((2500, 33), np.float32)
    f = lambda x: jnp.sum(jnp.tanh(jnp.pad(x, ((1, 1), (2, 0)), constant_values=1)) ** 2)  # noqa: E731
    made = "".join(nests(jax.make_jaxpr(jax.grad(f))(x)))
    assert made.count("<") == 1 and f"<{x.size} " in made


def test_halves_that_change_places_along_both_axes_are_one_pass():
    """Each half of the columns is half of what is joined of rows, and both are all of it."""
    x = np.random.default_rng(0).standard_normal((60, 80), np.float32)
    shift = jax.jit(jnp.fft.fftshift)
    assert len(nests(shift.trace(x).jaxpr)) == 1
    np.testing.assert_array_equal(shift(x), np.fft.fftshift(x))
