"""Products of operands that are 2 or 4 times something: the result is scaled, where it is smaller, to the same bits."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.graph import scaled_products
from catena.compiler.native import compile as compiler

X, W = (np.random.default_rng(0).standard_normal(shape, np.float32) for shape in ((600, 50), (8, 50)))

MOVED = {
    "distances": lambda x, w: jnp.sum(w * w, 1) - 2 * x @ w.T,
    "a transpose": lambda x, w: w @ (4 * x).T,
    "a batch": lambda x, w: jnp.einsum("bij,kj->bik", 2.0 * x.reshape(3, 200, 50), w),
    "several": lambda x, w: (2 * x @ w.T, w[:, :5].T @ (2 * x)[:8]),
    "gradients": jax.grad(lambda x, w: jnp.sum(jnp.tanh(2 * x @ w.T)), (0, 1)),
    "a loop": lambda x, w: jax.lax.fori_loop(0, 3, lambda i, w: w + 0.01 * jnp.tanh(2 * x @ w.T)[:8, :1], w),
    "both sides": lambda x, w: (2 * x).T @ (2 * x),
    "itself": lambda x, w: jnp.einsum("ij,ij->j", 2 * x, 2 * x),
    "that is a result": lambda x, w: (2 * x, 2 * x @ w.T),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers(name, dtype):
    with jax.enable_x64(dtype == "float64"):
        x, w = jnp.asarray(X, dtype), jnp.asarray(W, dtype)
        got, expected = jax.jit(MOVED[name])(x, w), MOVED[name](x, w)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(
                a, b, 1e-4 if dtype == "float32" else 1e-12, 1e-4 if dtype == "float32" else 1e-12
            )


@pytest.mark.parametrize("factor", [1.0, 2.0, 1024.0])
def test_bits_are_those_of_the_scaled_operand(factor):
    scaled = np.float32(factor) * X
    got = jax.jit(lambda x, w: factor * x @ w.T)(X, W)
    np.testing.assert_array_equal(got, jax.jit(lambda x, w: x @ w.T)(scaled, W))


@pytest.mark.parametrize("factor", [0.5, 3.0, -2.0])
def test_other_factors_stay(factor):
    """Halves may come below the normal numbers, 3 takes digits, and zeros would get the other sign."""
    program = jax.jit(lambda x, w: factor * x @ w.T).lower(X, W).compile().as_text("program")
    assert "launch 30000: mul" in program


def test_a_large_operand_is_not_written():
    program = jax.jit(MOVED["distances"]).lower(X, W).compile().as_text("program")
    assert "launch 30000" not in program


def test_what_nobody_reads_is_passed_over():
    """Passes before leave values that no result needs (it was a KeyError)."""
    traced = jax.make_jaxpr(lambda x, w: (2 * jnp.exp(x), x @ w.T))(X, W)
    region = compiler.lower(traced)
    before = len(region.values)
    del region.outputs[0]
    assert len(scaled_products.scale_results(region).values) == before
