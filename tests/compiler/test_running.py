"""Running sums and extremes of what is the same all along are counted: no array of them is written or waited for."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

NUMBERS = [1.0, 3.0, 0.1, 1e-40, 0.0, -0.0, np.inf, np.nan]
SHAPES = [((1000,), 0), ((5, 300), 1), ((300, 5), 0), ((3, 4, 33), 1)]


def spread(dtype, shape, axis):
    """A row for each place of the other axes, with what floats have besides numbers."""
    rest = shape[:axis] + shape[axis + 1 :]
    row = np.resize(np.array(NUMBERS if np.dtype(dtype).kind == "f" else [1, 0, 7, 250]), rest)
    return np.broadcast_to(np.expand_dims(row.astype(dtype), axis), shape)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize("kind", ["cumsum", "cummax", "cummin"])
@pytest.mark.parametrize("reverse", [False, True])
def test_they_are_those_of_an_array_in_memory(kind, dtype, reverse):
    with jax.enable_x64(True):
        for shape, axis in SHAPES:
            x = spread(dtype, shape, axis)
            f = lambda x, axis=axis: getattr(lax, kind)(x, axis, reverse)
            row = lambda x, shape=shape, axis=axis: f(jnp.broadcast_to(x, shape))
            expected = np.asarray(f(jnp.asarray(x)))
            np.testing.assert_array_equal(jax.jit(row)(x.take([0], axis)), expected)
            np.testing.assert_array_equal(np.signbit(jax.jit(row)(x.take([0], axis))), np.signbit(expected))


@pytest.mark.parametrize("number", [1.0, -0.0, 0.1, 2.0**52 + 1])
def test_known_numbers(number):
    """Of doubles, products are rounded once and sums at each place: what is not exact is added up."""
    with jax.enable_x64(True):
        for dtype in ("float32", "float64"):
            x = np.full(3000, number, dtype)
            np.testing.assert_array_equal(jax.jit(lambda x=x: lax.cumsum(jnp.asarray(x)))(), lax.cumsum(x))


def test_gradients_of_their_sums_write_no_array():
    f = jax.grad(lambda x: jnp.cumsum(x * x, 0).sum())
    x = np.random.default_rng(0).standard_normal((4096, 100)).astype("f")
    np.testing.assert_allclose(jax.jit(f)(x), 2 * x * np.arange(4096, 0, -1)[:, None], rtol=1e-6)
    assert "cumulative" not in jax.jit(f).lower(x).as_text()


@pytest.mark.parametrize(
    "shape, axis, kernels", [((1000,), 0, 2), ((3, 1000), 1, 2), ((1000, 3), 0, 1), ((64, 99), 1, 1)]
)
def test_functions_that_would_be_computed_one_by_one_are_computed_before(shape, axis, kernels):
    """Of the rest, as of cheap operations, the loop that adds up computes them."""
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    f, cheap = (jax.jit(lambda x, f=f: jnp.cumsum(f(x), axis)) for f in (jnp.exp, lambda x: 2 * x + 1))
    np.testing.assert_allclose(f(x), np.cumsum(np.exp(x.astype(np.float64)), axis), rtol=1e-5)
    counts = [g.lower(x).compile().as_text("program").count("launch") for g in (f, cheap)]
    assert counts == [kernels, 1]


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("kind", ["cumprod", "cummax", "cummin", "cumsum", "cumlogsumexp"])
@pytest.mark.parametrize("shape, axis, reverse", [((2, 1000), 0, False), ((3, 100, 8), 1, True), ((40, 33), 1, False)])
def test_halves_that_are_widened_are_written_as_halves(kind, dtype, shape, axis, reverse):
    """With the bits of single precision that is rounded at the end."""
    x = np.random.default_rng(3).uniform(0.5, 1.5, shape).astype(dtype)
    x.flat[:3] = [np.nan, np.inf, 0]
    running = lambda x: getattr(lax, kind)(x.astype(np.float32), axis, reverse)
    halves, singles = jax.jit(lambda x: running(x).astype(dtype))(x), np.asarray(jax.jit(running)(x))
    np.testing.assert_array_equal(halves.astype(np.float32), singles.astype(dtype).astype(np.float32))


def test_a_running_product_of_halves_is_one_kernel():
    x = np.ones((4, 1000), np.float16)
    nests = jax.jit(lambda x: jnp.cumprod(x * 2, 0)).lower(x).compile().as_text("nests")
    assert nests.count("nest ") == 1


@pytest.mark.parametrize("dtype", [np.float32, jnp.float16, jnp.bfloat16])
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_two_are_rounded_once(dtype, axis):
    """Doubles, in which running sums are kept, and single precision give the same bits."""
    random = np.random.default_rng(4)
    wide = random.standard_normal((2, 3000)) * 2.0 ** random.integers(-14, 15, (2, 3000))
    wide[:, :4] = [[0.0, -0.0, np.inf, -0.0], [-0.0, -0.0, -np.inf, 1.0]]
    x = (wide if axis == 0 else wide.T).astype(dtype)
    rest = np.take(x, [0], axis).astype(np.float64) + 0.0
    with np.errstate(invalid="ignore"):
        want = np.concatenate([rest, rest + np.take(x, [1], axis).astype(np.float64)], axis).astype(dtype)
    got = np.asarray(jax.jit(lambda x: lax.cumsum(x, axis))(x))
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(got.astype(np.float32))[:, 3:], np.signbit(want.astype(np.float32))[:, 3:])


def test_sums_of_two_know_no_doubles():
    from catena.compiler.native import compile as compiler

    for columns, doubles in ((2, False), (3, True)):
        text = compiler.text_of(jax.make_jaxpr(lambda x: lax.cumsum(x, 1))(np.ones((1000, columns), np.float32)))
        assert ("x double>" in text) == doubles


DECAYING = [(0.9995, 1.0), (0.6, 0.99), (0.001, 0.5), (-0.97, 0.99), (0.0, 0.9), (1e-20, 1e-20), (0.9, 3.0)]


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape, axis", [((20_000,), 0), ((3000, 4), 0), ((3, 900), 1), ((700, 40), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_products_that_become_subnormal_are_rounded_one_by_one(shape, axis, dtype, reverse):
    rng = np.random.default_rng(2)
    for low, high in DECAYING:
        x = np.asarray(rng.uniform(low, high, shape), dtype)
        x.flat[-1] = np.inf
        wide = np.flip(x, axis) if reverse else x
        with np.errstate(all="ignore"):
            expected = np.cumprod(wide.astype(np.float32), axis, dtype=np.float32).astype(dtype)
        expected = (np.flip(expected, axis) if reverse else expected).astype(np.float32)
        made = np.asarray(jax.jit(lambda x: lax.cumprod(x, axis, reverse))(x)).astype(np.float32)
        np.testing.assert_array_equal(made, expected)
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(made)[is_number], np.signbit(expected)[is_number])
