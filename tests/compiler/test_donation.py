"""Donated arguments: results take their memory where that is safe, and the numbers stay right."""

import numpy as np
import pytest

import catena as jax
from catena import lax
from catena import numpy as jnp

RNG = np.random.default_rng(0)


def array(*shape):
    return jnp.array(RNG.normal(size=shape).astype(np.float32))


def address(x):
    return x._value.ctypes.data


def donated(f, *args, n=1):
    """The results of `f` with its first `n` arguments donated, and where these were before."""
    expected = jax.jit(f)(*[jnp.array(a) for a in args])
    before = [address(a) for a in args[:n]]
    got = jax.jit(f, donate_argnums=tuple(range(n)))(*args)
    for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(g, e)
    assert all(a.is_deleted() for a in args[:n])
    return [address(g) for g in jax.tree.leaves(got)], before


@pytest.mark.parametrize("size", [8, 1000, 3_000_000])
def test_an_elementwise_result_is_computed_in_place(size):
    got, before = donated(lambda x, y: jnp.sin(x) + y, array(size), array(size))
    assert got == before


def test_an_update_in_place_does_not_copy():
    got, before = donated(lambda x, y: x.at[3:5].set(y), array(1000, 1000), array(2, 1000))
    assert got == before


def test_a_loop_carries_the_memory_on():
    step = lambda i, x: x.at[i].set(x[i] * 2)
    got, before = donated(lambda x: lax.fori_loop(0, 5, step, x), array(300, 300))
    assert got == before


def test_a_training_step_updates_all_of_its_state():
    def step(params, moments, x):
        grads = jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"] + p["b"]) ** 2))(params)
        moments = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments, grads)
        return jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments

    params = {"w": array(50, 40), "b": array(40)}
    moments = jax.tree.map(jnp.zeros_like, params)
    x = array(20, 50)
    expected = jax.jit(step)(jax.tree.map(jnp.array, params), jax.tree.map(jnp.array, moments), x)
    before = {address(a) for a in jax.tree.leaves((params, moments))}
    run = jax.jit(step, donate_argnums=(0, 1))
    got = run(params, moments, x)
    for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(g, e)
    assert {address(a) for a in jax.tree.leaves(got)} == before
    again = run(*got, x)  # the fast path of a call that was seen before
    assert all(a.is_deleted() for a in jax.tree.leaves(got))
    assert {address(a) for a in jax.tree.leaves(again)} == before


def test_memory_that_is_read_later_is_left_alone():
    donated(lambda x: (x + 1, x[::-1] * 2), array(1000))
    donated(lambda x: (jnp.cumsum(x), x - jnp.sum(x)), array(1000))
    donated(lambda x: (x[::-1] + x, x.reshape(10, 100)), array(1000))
    donated(lambda x, y: (y * 2, x + y), array(100, 100), array(100, 100), n=2)
    donated(lambda x: x.T + x, array(100, 100))
    donated(lambda x: x @ x, array(100, 100))
    donated(lambda x: (jnp.exp(x - x.max(1, keepdims=True)), x.sum()), array(1000, 100))


def test_memory_that_others_see_is_left_alone():
    x = array(1000)
    numbers, kept = np.asarray(x), np.array(x)
    part = x[10:20]
    got = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
    np.testing.assert_array_equal(got, kept * 2)
    np.testing.assert_array_equal(numbers, kept)
    np.testing.assert_array_equal(part, kept[10:20])
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1


def test_strided_arguments_are_copied_first():
    x = array(50, 40)
    expected = np.array(x.T) + 1
    np.testing.assert_array_equal(jax.jit(lambda y: y + 1, donate_argnums=0)(x.T), expected)
    np.testing.assert_array_equal(np.asarray(x).T + 1, expected)


def test_ahead_of_time_compilation_uses_the_program_of_the_call():
    f = jax.jit(lambda x: jnp.sin(x) * 2)
    x = array(100)
    f(x)
    compiled = f.trace(x).lower().compile()
    assert compiled.runtime_executable() is f.lower(x).compile().runtime_executable()
    assert f._cache_size() == 1
    np.testing.assert_array_equal(compiled(x), f(x))


@pytest.mark.parametrize("size", [40_000, 200_000, 2_000_000])
def test_large_results_use_memory_again_when_the_last_view_dies(size):
    from catena.runtime import buffers

    f = jax.jit(lambda x: x * 2)
    x = array(size)
    y = f(x)
    place, view = address(y), np.asarray(y)[5:]
    del y
    z = f(x)
    assert address(z) != place
    np.testing.assert_array_equal(view, np.asarray(x)[5:] * 2)
    del view
    assert address(f(x)) == place
    assert buffers.pool.statistics()["reused"] > 0


def test_sizes_of_mappings_are_few_and_little_larger():
    from catena.runtime.buffers import PAGE, SMALLEST, rounded

    for size in range(SMALLEST, 8 * PAGE, 12_345):
        assert size <= rounded(size) <= max(size * 9 / 8, size + PAGE if size > PAGE // 2 else size + (1 << 16))
    assert len({rounded(size) for size in range(SMALLEST, 8 * PAGE, 12_345)}) < 48


@pytest.mark.parametrize(
    "update",
    [
        lambda w, x: w + x @ w,
        lambda w, x: w + w @ x,
        lambda w, x: w + x @ w.T,
        lambda w, x: w + w.T @ x,
        lambda w, x: w + (x @ w).T,
        lambda w, x: w + w[::-1] @ x,
        lambda w, x: w.T + x @ x,
        lambda w, x: w - jnp.tanh(x.T @ x),
    ],
)
def test_what_a_product_reads_is_not_overwritten_by_its_epilogue(update):
    """Tasks of the product read it while others write their rows of the update."""
    w, x = array(200, 200) / 100, array(200, 200) / 100  # large enough for several tasks
    expected = np.asarray(update(w, x))
    got = jax.jit(update, donate_argnums=0)(jnp.array(w), x)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    carried = jax.jit(lambda w: lax.fori_loop(0, 1, lambda i, w: update(w, x), w))(w)
    np.testing.assert_allclose(carried, expected, rtol=2e-5, atol=2e-6)
