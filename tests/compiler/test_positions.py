"""Places of the largest and smallest, and of the first truth, with lanes along what is folded."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
import position_cases
from catena.compiler.machine import LEVELS
from catena.compiler.native.compile import program_of, shown_nests
from catena.core.config import override


@pytest.mark.share(4)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", position_cases.DTYPES)
def test_places_are_numpys(dtype, x64):
    if dtype in ("int64", "float64") and not x64:
        pytest.skip("is of 32 bits")
    with override("jax_enable_x64", x64):
        position_cases.check(dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32"])
def test_places_in_long_rows(dtype):
    """The threads leave partial results."""
    n = 1_100_003
    greatest, least = (jax.jit(lambda x, f=f: (f(x), f(x.reshape(1, -1), 1))) for f in (jnp.argmax, jnp.argmin))
    for place in (None, 0, 1, 99_999, 524_287, n - 1):
        x = np.zeros(n, dtype)
        if place is not None:
            x[place] = 1
        for got in jax.tree.leaves(greatest(x)):
            assert got == (place or 0)
        for got in jax.tree.leaves(least(1 - x.astype(np.int8) == 1 if dtype == "bool" else -x)):
            assert got == (place or 0)


def test_of_what_is_computed_and_kept_apart():
    x = np.random.default_rng(0).normal(size=(6, 40, 50)).astype(np.float32)
    for axis in (0, 1, 2):
        got = jax.jit(lambda x, axis=axis: jnp.argmax(x > 1.5, axis))(x)
        np.testing.assert_array_equal(got, np.argmax(x > 1.5, axis))
    got, total = jax.jit(lambda x: (jnp.argmin(x < 1.5, 2), jnp.sum(x, 2)))(x)
    np.testing.assert_array_equal(got, np.argmin(x < 1.5, 2))
    np.testing.assert_array_equal(total, jax.jit(lambda x: jnp.sum(x, 2))(x))


def test_lanes_are_those_of_what_is_compared():
    with override("jax_check_bounds", False), override("jax_enable_x64", True):
        for dtype, lanes in (("bool", 32), ("float32", 8), ("int64", 4)):
            closed = jax.make_jaxpr(lambda x: jnp.argmax(x, 1))(jnp.zeros((4000, 40), dtype))
            assert f"lanes {lanes}x" in shown_nests(program_of(closed, machine=LEVELS["x86-64-v3"]))[0]
