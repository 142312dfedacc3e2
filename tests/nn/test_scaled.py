"""Products of narrow floats with scales of blocks."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.nn import get_scaled_dot_general_config, scaled_dot_general, scaled_matmul

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 5, 64)).astype(np.float32), RNG.normal(size=(2, 3, 64)).astype(np.float32)
MATMUL = (((1,), (0,)), ((), ()))
MXFP8 = get_scaled_dot_general_config("mxfp8")
NVFP4 = get_scaled_dot_general_config("nvfp4", jnp.array([0.01], jnp.float32))


def test_scaled_matmul():
    x, y = (jnp.array(z, "float8_e4m3fn") for z in (X, Y))
    s, t = (2.0 ** RNG.integers(-3, 3, (*z.shape[:2], 2)).astype(np.float32) for z in (X, Y))
    wide = [np.asarray(z).astype(np.float32) * np.repeat(u, 32, 2) for z, u in ((x, s), (y, t))]
    out = scaled_matmul(x, y, jnp.array(s, "float8_e8m0fnu"), t)
    np.testing.assert_allclose(out, np.einsum("bmk,bnk->bmn", *wide), rtol=1e-5, atol=1e-5)
    assert scaled_matmul(x, y, s, t, jnp.bfloat16).dtype == "bfloat16"


@pytest.mark.parametrize(("config", "error"), [(MXFP8, 0.05), (NVFP4, 0.25)], ids=["mxfp8", "nvfp4"])
def test_rounded_products_are_near(config, error):
    x, y = X[0, :, :50], Y[0, :, :50].T  # 50 is no multiple of a block
    product = lambda x, y: scaled_dot_general(x, y, MATMUL, configs=[config] * 3)
    bound = error * np.linalg.norm(x, axis=1)[:, None] * np.linalg.norm(y, axis=0)
    assert (abs(product(x, y) - x @ y) < bound).all() and (product(x, y) != x @ y).any()
    w = RNG.normal(size=(5, 3)).astype(np.float32)
    for found, exact in zip(jax.grad(lambda x, y: (w * product(x, y)).sum(), (0, 1))(x, y), (w @ y.T, x.T @ w)):
        assert np.linalg.norm(found - exact) < 2 * error * np.linalg.norm(exact)


def test_numbers_of_the_format_are_exact():
    x = np.array([[448.0, -0.015625, 1.75, 0]], np.float32) * 2.0**20
    eye = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(scaled_dot_general(x, eye, MATMUL, configs=[MXFP8] * 2), x)
    assert not scaled_dot_general(0 * x, eye, MATMUL, configs=[MXFP8] * 2).any()


def test_dimension_numbers():
    batched = (((3, 2), (0, 3)), ((0,), (1,)))
    x, y = RNG.normal(size=(2, 3, 4, 8)).astype(np.float32), RNG.normal(size=(8, 2, 5, 4)).astype(np.float32)
    exact = jax.lax.dot_general(x, y, batched)
    assert (scaled_dot_general(x, y, batched) == exact).all()
    rounded = scaled_dot_general(x, y, batched, configs=[MXFP8] * 3)
    assert rounded.shape == exact.shape and abs(rounded - exact).max() < 1
    assert scaled_dot_general(x, y, batched, jnp.bfloat16, [MXFP8] * 3).dtype == "bfloat16"


def test_bad_input():
    x, s = jnp.ones((2, 4, 64)), jnp.ones((2, 4, 2))
    for error, call in [
        (ValueError, lambda: get_scaled_dot_general_config("int4")),
        (ValueError, lambda: scaled_matmul(x[0], x, s, s)),
        (ValueError, lambda: scaled_matmul(x, x[:, :, :32], s, s)),
        (ValueError, lambda: scaled_matmul(x, x, s[:, :2], s)),
        (ValueError, lambda: scaled_matmul(x, x, jnp.ones((2, 4, 3)), jnp.ones((2, 4, 3)))),
        (ValueError, lambda: scaled_matmul(x, x, s, s, None)),
        (TypeError, lambda: scaled_dot_general(x[0], x[0], MATMUL)),
        (IndexError, lambda: scaled_dot_general(x[0], x[0].T, MATMUL, configs=[MXFP8])),
        (ValueError, lambda: scaled_dot_general(x[0], x[0].T, MATMUL, implementation="mine")),
    ]:
        with pytest.raises(error):
            call()
