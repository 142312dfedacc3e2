"""Draws whose plans are remembered: what compiled programs draw, at every call."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import random
from catena.random import kernels
from shares import alternate

KEY = random.key(3)
SHAPES = ((), (7,), (3, 700), (70000,))


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
@pytest.mark.parametrize("bounds", [(0, 10), (-300, 300), (250, 70000), (5, 5)], ids=str)
def test_integers_of_few_bits(dtype, bounds):
    for shape in alternate(2, SHAPES, np.dtype(dtype).itemsize + (bounds[0] < 0)):
        compiled = jax.jit(lambda key, low, high, shape=shape: random.randint(key, shape, low, high, dtype))
        for key in (KEY, random.key(5)):
            found = random.randint(key, shape, *bounds, dtype)
            assert found.dtype == np.dtype(dtype) and found.shape == shape
            assert np.array_equal(found, compiled(key, *bounds))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@pytest.mark.parametrize("bounds", [(0, 10), (-300, 300)], ids=str)
def test_integers_of_few_bits_have_a_plan(dtype, bounds):
    random.randint(KEY, (7,), *bounds, dtype)
    before = dict(kernels._plans)
    random.randint(random.key(6), (7,), *bounds, dtype)
    assert kernels._plans == before and any(kind[0] is random.randint.__wrapped__ for kind in before)


def test_choices_of_counts():
    table = jnp.arange(10) * 2
    for shape in SHAPES:
        compiled = jax.jit(lambda key, shape=shape: random.choice(key, 10, shape))
        for key in (KEY, random.key(5), random.PRNGKey(1)):
            found = random.choice(key, 10, shape)
            assert found.shape == shape and np.array_equal(found, compiled(key))
            assert np.array_equal(random.choice(key, table, shape), 2 * found)
            assert np.array_equal(random.choice(key, jnp.int32(10), shape), found)
    assert random.choice(KEY, jnp.int32(2), (50,)).max() == 1


def test_choices_of_counts_have_a_plan():
    random.choice(KEY, 10, (7,))
    before = dict(kernels._plans)
    random.choice(random.key(6), 10, (7,))
    random.choice(random.key(6), jnp.int32(7), (7,))  # its number is no operand: it is drawn by the plan of no other
    assert kernels._plans == before and any(kind[0] is random.choice.__wrapped__ for kind in before)


@pytest.mark.parametrize("draw", [random.gamma, random.loggamma, random.poisson], ids=lambda f: f.__name__)
def test_numbers_are_parameters_of_their_value(draw):
    """Numbers are converted once, under each flag."""
    for given in (3, 3.0, 2.5, 2**70, 3):
        compiled = jax.jit(lambda key, given: draw(key, given, (5,)))
        assert np.array_equal(draw(KEY, given, (5,)), compiled(KEY, np.float32(given)))
    with jax.enable_x64(True):
        assert random.gamma(KEY, 2.5, (5,)).dtype == np.float64
    assert random.gamma(KEY, 2.5, (5,)).dtype == np.float32


def test_counts_of_categories():
    p = jnp.asarray([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]])
    for n, lead in ((10, ()), (7.0, (2,)), (jnp.asarray([4, 9]), (2,)), (jnp.asarray([[3.0], [5.0]]), (2, 2))):
        q = p if lead else p[0]
        compiled = jax.jit(lambda key, n, q, lead=lead: random.multinomial(key, n, q, shape=(*lead, 3)))
        found = random.multinomial(KEY, n, q, shape=(*lead, 3))
        assert np.array_equal(found, compiled(KEY, n, q)) and found.shape == (*lead, 3)
        assert np.array_equal(found.sum(-1), np.broadcast_to(n, lead))
    with pytest.raises(ValueError, match="multinomial"):
        random.multinomial(KEY, jnp.ones(5), p, shape=(2, 3))


def test_keys_of_choices_are_watched():
    with jax.debug_key_reuse(True):
        key = random.key(9)
        random.choice(key, 10, (3,))
        with pytest.raises(jax.errors.KeyReuseError):
            random.choice(key, 10, (3,))
    with jax.debug_key_reuse("warn"):
        key = random.key(9)
        random.choice(key, 10, (3,))
        with pytest.warns(UserWarning, match="by choice"):
            random.choice(key, 10, (3,))
