"""Rows that many rows are divided by: the quotients have the divider's bits."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpret
from catena.compiler.native.compile import program_of

SPECIAL = (
    0.0,
    np.inf,
    np.nan,
    1.0,
    3.0,
    1e-45,
    1e-40,
    2.0**60,
    2.0**-20,
    2.0**-60,
    2.0**-126,
    1e308,
    1e-310,
    2.0**-300,
)


@pytest.fixture(autouse=True)
def doubles():
    with jax.enable_x64(True):
        yield


def nests(f, *args):
    return jax.jit(f).lower(*args).compile().as_text("nests")


def divided(x, y):
    with np.errstate(all="ignore"):
        return x / y


def same_bits(got, expected):
    got, bits = np.asarray(got), f"u{expected.itemsize}"
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    usual = ~np.isnan(expected)
    np.testing.assert_array_equal(got[usual].view(bits), expected[usual].view(bits))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_numbers(dtype):
    rng, bits = np.random.default_rng(0), f"u{np.dtype(dtype).itemsize}"
    x, y = (rng.integers(0, np.iinfo(bits).max, shape, bits).view(dtype) for shape in ((400, 299), 299))
    with np.errstate(all="ignore"):
        special = np.array([*SPECIAL, *(-s for s in SPECIAL)]).astype(dtype)
    x[: len(special)], y[: len(special)] = special[:, None], special
    y[100:] = rng.standard_normal(199)
    x[200:300] = rng.standard_normal((100, 299))
    same_bits(jax.jit(jnp.divide)(x, y), divided(x, y))


@pytest.mark.parametrize("scale", [1.0, 2.0**-59, 2.0**-61, 2.0**61, 2.0**-140, 2.0**120])
def test_quotients_where_products_end(scale):
    rng = np.random.default_rng(1)
    x = (rng.standard_normal((400, 299)) * scale).astype(np.float32)
    for y in (rng.standard_normal(299), np.full(299, 2.0**60), np.full(299, -(2.0**-20)), np.full(299, 3.0)):
        y = y.astype(np.float32)
        same_bits(jax.jit(jnp.divide)(x, y), divided(x, y))
    x[::2] = 0.0
    same_bits(jax.jit(jnp.divide)(x, -y), divided(x, -y))


def test_beside_other_operations():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((300, 301)), rng.standard_normal(301)
    same_bits(jax.jit(lambda x, y: jnp.negative(x - y) / y)(x, y), -(x - y) / y)
    f = lambda x, y: jnp.sum(x / y, 1)  # noqa: E731
    np.testing.assert_array_equal(jax.jit(f)(x, y), jax.jit(lambda x: jnp.sum(x, 1))(x / y))
    np.testing.assert_array_equal(jax.jit(lambda x, y: jnp.exp(x / y))(x, y), jax.jit(jnp.exp)(x / y))


def test_which_rows_are_inverted():
    x, y = np.ones((300, 301)), np.ones(301)
    several = nests(lambda x, y: (x / y, jnp.exp(x) / y), x, y)
    assert several.count(" = inverse ") == 1 < several.count("div_by_inverse")
    assert "div_by_inverse" in nests(jnp.divide, x, y)
    for rows, row in ((x[:, :1].copy(), x), (x, x[:, :1].copy()), (x[:8], y), (x[:, :20].copy(), y[:20]), (x, 3.0)):
        assert "inverse" not in nests(jnp.divide, rows, row)
    assert "inverse" not in nests(lambda x: jax.nn.softmax(x, 0), x.astype(np.float32))  # tails of exponentials


def test_the_null_device():
    x, y = np.full((300, 301), 2.0), np.linspace(-1, 3, 301)
    (got,) = interpret(program_of(jax.make_jaxpr(jnp.divide)(x, y)), [x, y])
    same_bits(got, divided(x, y))
