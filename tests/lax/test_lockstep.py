"""`vmap` of `while_loop`: examples in lockstep, block by block, give what each gives by itself."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.lax.control_flow.lockstep import block_size

SIZES = (1, 3, 256, 300, 1000, 1037)  # one block, blocks that fit, blocks that need filling


def newton(a):
    return lax.while_loop(lambda s: jnp.abs(s * s - a) > 1e-4 * a, lambda s: 0.5 * (s + a / s), a)


def halving(x, rate, limit):
    """A loop with a vector, a counter, and operands that are not mapped."""

    def step(state):
        x, n = state
        return x * rate, n + 1

    return lax.while_loop(lambda s: jnp.sum(jnp.abs(s[0])) > limit, step, (x, 0))


def inputs(*shape):
    return jnp.asarray(np.random.default_rng(0).uniform(1, 100, shape).astype(np.float32))


@pytest.mark.share(2)
@pytest.mark.parametrize("n", SIZES)
def test_scalars(n):
    x = inputs(n)
    expected = np.stack([newton(v) for v in x[-20:]])
    np.testing.assert_array_equal(jax.jit(jax.vmap(newton))(x)[-20:], expected)
    np.testing.assert_array_equal(jax.vmap(newton)(x)[-20:], expected)


@pytest.mark.parametrize("n", SIZES)
def test_vectors_and_operands_that_are_not_mapped(n):
    x = inputs(3, n)
    values, counts = jax.vmap(halving, (1, None, None), (1, 0))(x, 0.7, 2.0)
    assert values.shape == (3, n)
    for k in range(0, n, max(1, n // 5)):
        value, count = halving(x[:, k], 0.7, 2.0)
        np.testing.assert_array_equal(values[:, k], value)
        assert counts[k] == count


def test_mapped_limit_with_a_start_for_all():
    limits = jnp.linspace(0.5, 50.0, 700)
    values, counts = jax.vmap(halving, (None, None, 0))(jnp.ones(4) * 100, 0.9, limits)
    for k in (0, 350, 699):
        value, count = halving(jnp.ones(4) * 100, 0.9, limits[k])
        np.testing.assert_array_equal(values[k], value)
        assert counts[k] == count


def test_derivatives():
    x = inputs(1037)
    slopes = jax.vmap(lambda v: jax.jvp(newton, (v,), (1.0,))[1])(x)
    np.testing.assert_allclose(slopes[:9], [jax.jvp(newton, (v,), (1.0,))[1] for v in x[:9]], rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(jax.grad(newton))(x)[:9], [jax.grad(newton)(v) for v in x[:9]], rtol=1e-6)


def test_nested():
    x = inputs(5, 300)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(newton))(x), jax.vmap(newton)(x.reshape(-1)).reshape(x.shape))


def test_a_finished_example_is_not_computed_further():
    """Past its end this loop would divide by zero and give NaN."""
    count_down = lambda n: lax.while_loop(lambda s: s[0] > 0, lambda s: (s[0] - 1, s[1] + 1 / s[0]), (n, 0.0))[1]
    n = jnp.arange(600.0) % 7
    got = jax.vmap(count_down)(n)
    np.testing.assert_allclose(got[:7], [count_down(v) for v in n[:7]], rtol=1e-6)
    np.testing.assert_array_equal(got[7:14], got[:7])


def test_block_size():
    assert [block_size(n) for n in (1, 256, 10_000, 1024, 1037)] == [1, 256, 80, 128, 128]
