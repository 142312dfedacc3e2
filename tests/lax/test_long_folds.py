"""Which eager folds along axes are worth a program: those of many elements, and of many short rows."""

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena.lax.policy import FOLDED, MANY_ROWS, REPEATS, folds_long

LONG = [
    ((FOLDED,), None), ((FOLDED,), 0), ((FOLDED // 2, 2), 1), ((2, 20000), 0), ((MANY_ROWS, 3), 0), ((MANY_ROWS, 3), 1),
    ((MANY_ROWS, 3), -1), ((4, 28, 28, 16), (0, -1)), ((4, 28, 28, 16), (1, 2)), ((MANY_ROWS, 1, 2), 0),
]  # fmt: skip
SHORT = [
    ((), None), ((10,), 0), ((MANY_ROWS, 3), None), ((MANY_ROWS, 3), (0, 1)), ((MANY_ROWS - 1, 3), 1), ((2, 10000), 0),
    ((2, 10000), 1), ((4, 20, 20, 16), (0,)), ((4, 20, 20, 16), (1, 2, 3)), ((0, 5), 1), ((5, 0), 0),
]  # fmt: skip


@pytest.mark.parametrize("shape, axis", LONG)
def test_long_ones(shape, axis):
    assert folds_long(shape, axis)


@pytest.mark.parametrize("shape, axis", SHORT)
def test_short_ones(shape, axis):
    assert not folds_long(shape, axis)


@pytest.mark.share(10)
@pytest.mark.parametrize("name", "sum prod max min any all mean var std nansum nanmean nanmax".split())
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
@pytest.mark.parametrize("shape, axis", [((3000, 3), 1), ((3000, 3), 0), ((4, 28, 28, 16), (0, -1))])
@pytest.mark.parametrize("keepdims", [False, True])
def test_values_are_numpys(name, dtype, shape, axis, keepdims):
    """Called often enough that what may wait for a program has one."""
    x = np.random.default_rng(0).uniform(0.9, 1.1, shape).astype(dtype)
    wanted = getattr(np, name)(x.astype("float64") if dtype == "float32" else x, axis, keepdims=keepdims)
    for _ in range(4):
        got = getattr(jnp, name)(jnp.asarray(x), axis, keepdims=keepdims)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.share(10)
@pytest.mark.parametrize("name", "argmax argmin nanargmax max cumsum cumprod".split())
@pytest.mark.parametrize("dtype", "float32 float64 bfloat16 float16 complex64 int32 int8 bool".split())
@pytest.mark.parametrize("shape, axis", [((3000, 3), 1), ((3, 5000), 0), ((600, 5), -1), ((2, 9000), 1)])
def test_bits_are_those_of_the_first_call(name, dtype, shape, axis):
    """Which NumPy answers, and others a program."""
    if dtype == "complex64" and name != "cumsum" and name != "cumprod":
        pytest.skip("complex numbers have no order")
    wide = "complex64" if dtype == "complex64" else "float64"
    with catena.enable_x64(dtype == "float64"):
        x = jnp.asarray(np.random.default_rng(0).normal(0, 3, shape)).astype(dtype)
        x = x.at[2, 2].set(jnp.nan) if dtype.startswith(("float", "bf")) else x
        first, *others = [getattr(jnp, name)(x, axis) for _ in range(REPEATS + 2)]
        for other in others:
            assert (other.dtype, other.weak_type) == (first.dtype, first.weak_type)
            np.testing.assert_array_equal(np.asarray(other).astype(wide), np.asarray(first).astype(wide))


def test_axes_that_are_none_are_errors():
    for f in (jnp.sum, jnp.max, jnp.any, jnp.mean, jnp.nansum, jnp.argmax, jnp.cumsum):
        with pytest.raises(ValueError):
            f(jnp.ones((MANY_ROWS, 3)), 2)
        with pytest.raises((ValueError, TypeError)):
            f(jnp.ones((MANY_ROWS, 3)), (0, 0))
