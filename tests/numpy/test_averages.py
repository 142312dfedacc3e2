"""Functions of several passes: of large arrays the values that compiled programs give, the first time and later."""

import warnings

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.lax.policy import LARGE

ROWS = 257
CASES = {
    "mean": (lambda x, m: jnp.mean(x, 0, where=m), lambda x, m: np.mean(x, 0, where=m)),
    "var": (lambda x, m: jnp.var(x, -1), lambda x, m: np.var(x, -1)),
    "var of all": (lambda x, m: jnp.var(x, ddof=1), lambda x, m: np.var(x, ddof=1)),
    "std": (lambda x, m: jnp.std(x, 0, keepdims=True), lambda x, m: np.std(x, 0, keepdims=True)),
    "std, masked": (lambda x, m: jnp.std(x, 0, where=m), lambda x, m: np.std(x, 0, where=m)),
    "var around a given mean": (
        lambda x, m: jnp.var(x, 0, mean=jnp.zeros((1, x.shape[1]), x.dtype)),
        lambda x, m: np.mean(x * x, 0),
    ),
    "average": (lambda x, m: jnp.average(x, 0, x * x), lambda x, m: np.average(x, 0, x * x)),
    "nanmean": (lambda x, m: jnp.nanmean(_holes(jnp, x, m), 0), lambda x, m: np.nanmean(_holes(np, x, m), 0)),
    "nanvar": (lambda x, m: jnp.nanvar(_holes(jnp, x, m), 0), lambda x, m: np.nanvar(_holes(np, x, m), 0)),
    "nanstd": (lambda x, m: jnp.nanstd(_holes(jnp, x, m)), lambda x, m: np.nanstd(_holes(np, x, m))),
    "norm": (lambda x, m: jnp.linalg.norm(x, axis=1), lambda x, m: np.linalg.norm(x, axis=1)),
    "norm of all": (lambda x, m: jnp.linalg.norm(x), lambda x, m: np.linalg.norm(x)),
}


def _holes(numpy, x, mask):
    return numpy.where(mask, x, numpy.nan)


@pytest.mark.share(2)
@pytest.mark.parametrize("columns", [5, 256])
@pytest.mark.parametrize("name", CASES)
def test_values(name, columns):
    """Of small arrays and of large ones, beside NumPy in double precision."""
    function, reference = CASES[name]
    rng = np.random.default_rng(columns)
    x, mask = rng.standard_normal((ROWS, columns), np.float32) + 3, rng.random((ROWS, columns)) < 0.7
    assert (x.size >= LARGE) == (columns == 256)
    eager = function(jnp.asarray(x), jnp.asarray(mask))
    assert eager.dtype == np.float32 and not eager.weak_type
    np.testing.assert_allclose(eager, reference(x.astype(np.float64), mask), rtol=1e-5)
    np.testing.assert_array_equal(function(jnp.asarray(x), jnp.asarray(mask)), eager)
    if x.size >= LARGE:
        np.testing.assert_array_equal(jax.jit(function)(x, mask), eager)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float16", "complex64", "bool"])
def test_dtypes(dtype):
    x = jnp.asarray(np.arange(LARGE).reshape(4, -1) % 7, dtype)
    for function in (jnp.var, jnp.std, jnp.nanmean, jnp.nanvar, jnp.linalg.norm):
        large, small = function(x), function(x[:, :7])
        assert (large.dtype, large.weak_type) == (small.dtype, small.weak_type)
        np.testing.assert_array_equal(large, jax.jit(function)(x))


def test_weak_types():
    x = jax.lax.full((LARGE,), 2.0)  # weak, as Python's numbers are
    assert x.weak_type
    for function in (jnp.var, jnp.nanvar, jnp.mean, jnp.linalg.norm):
        assert function(x).weak_type == function(x[:5]).weak_type


def test_degrees_of_freedom_may_be_an_array():
    x = jnp.arange(float(LARGE))
    np.testing.assert_allclose(jnp.var(x, ddof=jnp.array([0, 1])), [np.var(x), np.var(x, ddof=1)], rtol=1e-5)


def test_one_array_after_another_is_no_retracing():
    """That arrays have many lengths is no mistake of the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(8):
            assert jnp.var(jnp.ones(LARGE + k)) == 0


def test_bad_arguments_are_said_as_of_small_arrays():
    for x in (jnp.ones(4), jnp.ones(LARGE)):
        with pytest.raises(ValueError, match="axis 3 is out of bounds"):
            jnp.var(x, 3)
        with pytest.raises(TypeError, match="where"):
            jnp.mean(x, where="no")


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("x, axis", [(3.0, None), (np.ones((3, 3), np.float32), 0)])
def test_a_mask_with_more_axes_than_the_array_is_refused(name, x, axis):
    """The mean of 3 was 1/3 where nine places were chosen."""
    with pytest.raises(ValueError, match=f"jnp.{name}: where must broadcast to the shape of the array"):
        getattr(jnp, name)(x, axis=axis, where=np.ones((1, 3, 3), bool))


@pytest.mark.share(4)
@pytest.mark.parametrize("found", ["int2", "uint2", "int4", "uint4"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_variances_of_few_bits_are_of_the_dtype_asked_for(found, dtype):
    x = jnp.array([1, 0, 1, 1]).astype(found)
    for function in (jnp.var, jnp.std, jnp.nanvar, jnp.nanstd):
        result = function(x, dtype=dtype)
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype("complex64"), function(np.array([1.0, 0, 1, 1])), rtol=0.01)
