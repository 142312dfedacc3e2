"""Gathers of what is the same at every place are that, spread, and their places are computed for nobody."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

N = 3000
HASHES = (jnp.arange(N, dtype="uint32") * jnp.uint32(2654435761)) % 128
INDEX = jnp.asarray(np.random.default_rng(0).integers(-200, 200, 500), "int32")

READS = {
    "within": lambda x, i: jnp.full(128, x[0])[HASHES.astype("int32")],
    "mod": lambda x, i: jnp.full((128,), 2.0).at[i % 128].get(mode="fill", fill_value=0) * x[0],
    "clipped": lambda x, i: jnp.full((7,), x[1]).at[i].get(mode="clip"),
    "filled_alike": lambda x, i: jnp.full((7,), 3.0).at[i].get(mode="fill", fill_value=3.0) + x[0],
    "rows": lambda x, i: jnp.broadcast_to(x[:5], (9, 5)).at[i].get(mode="clip"),
    "columns": lambda x, i: jnp.broadcast_to(x[:5, None], (5, 9)).at[:, i].get(mode="clip"),
    "one_row": lambda x, i: jnp.broadcast_to(x[:5], (9, 5)).at[i[0]].get(mode="clip"),
    "of_batch": lambda x, i: jnp.take_along_axis(jnp.broadcast_to(x[:20, None], (20, 9)), i.reshape(20, 25), 1, mode="clip"),
    "windows": lambda x, i: jax.vmap(lambda k: jax.lax.dynamic_slice(jnp.broadcast_to(x[:5], (9, 5)), (k, 0), (2, 5)))(i),
}  # fmt: skip
OTHERS = {
    "beyond": lambda x, i: jnp.full((7,), 3.0).at[i].get(mode="fill", fill_value=0) + x[0],
    "near_the_end": lambda x, i: jnp.full((127,), 3.0).at[i % 128].get(mode="fill", fill_value=0) + x[0],
    "differing": lambda x, i: jnp.broadcast_to(x[:5], (9, 5)).at[:, i].get(mode="clip"),
    "part_of_a_row": lambda x, i: jax.vmap(lambda k: jax.lax.dynamic_slice(
        jnp.broadcast_to(x[:5], (9, 5)), (k, k), (2, 3)))(i),
    "minus_zero": lambda x, i: jnp.full((7,), -0.0).at[i].get(mode="fill", fill_value=0.0) + 0 * x[0],
}  # fmt: skip


def agrees(f):
    x = jnp.asarray(np.random.default_rng(1).standard_normal(100), "float32")
    got, expected = np.asarray(jax.jit(f)(x, INDEX)), np.asarray(f(x, INDEX))
    np.testing.assert_array_equal(got.view("int32"), expected.view("int32"))
    return jax.jit(f).lower(x, INDEX).compile().as_text("program")


@pytest.mark.parametrize("name", READS)
def test_no_place_is_asked(name):
    text = agrees(READS[name])
    assert "argument 1" not in text and "constant" not in text


@pytest.mark.parametrize("name", OTHERS)
def test_what_hangs_on_the_place_is_read_there(name):
    agrees(OTHERS[name])


def test_gradients_of_sums_of_updates_compute_no_hashes():
    f = jax.grad(lambda x: jnp.sum(jnp.zeros(4096).at[(jnp.arange(N, dtype="uint32") * 97) % 4096].add(x)))
    x = jnp.ones(N)
    np.testing.assert_array_equal(jax.jit(f)(x), np.ones(N))
    assert "rem" not in jax.jit(f).lower(x).compile().as_text("program")


def test_in_loops():
    f = lambda x, i: jax.lax.fori_loop(0, 5, lambda k, c: c + jnp.broadcast_to(c[:5], (9, 5))[i % 9, k], x[:500])
    agrees(lambda x, i: f(jnp.resize(x, 500), i))
