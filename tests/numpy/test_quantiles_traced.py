"""Quantiles while traced, which select by rank, beside those of concrete arrays and of NumPy."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

rng = np.random.default_rng(5)
FRACTIONS = [0.5, [0.1, 0.9, 0.5], [0.0, 1.0], np.linspace(0, 1, 20), float("nan")]


CASES = [(shape, axis, "linear") for shape, axis in [((1000,), None), ((4, 5, 60), (0, 2)), ((1,), None), ((40, 9), 1)]]
CASES += [((7, 300), 0, method) for method in ("linear", "lower", "higher", "midpoint", "nearest")]


@pytest.mark.share(3)
@pytest.mark.parametrize("shape,axis,method", CASES)
def test_traced_as_concrete(shape, axis, method):
    x = rng.normal(size=shape).astype(np.float32)
    with_nan = np.where(rng.random(shape) < 0.01, np.nan, x)
    for q in map(jnp.asarray, FRACTIONS):
        for function in (jnp.quantile, jnp.nanquantile):
            traced = jax.jit(lambda a, q, f=function: f(a, q, axis=axis, method=method))
            for a in (x, with_nan):
                np.testing.assert_allclose(traced(a, q), function(a, q, axis=axis, method=method), rtol=1e-6)
            if method != "nearest" and not np.isnan(np.asarray(q)).any():
                want = np.quantile(x.astype(np.float64), np.asarray(q), axis=axis, method=method)
                np.testing.assert_allclose(traced(x, q), want, rtol=2e-3, atol=2e-4)


@pytest.mark.share(3)
@pytest.mark.parametrize("n", [5, 129, 5000, 70_000])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_medians_of_long_rows(n, dtype):
    x = (rng.normal(size=(3, n)) * 100).astype(dtype)
    want = np.median(x, axis=1)
    for function in (jnp.median, jnp.nanmedian):
        np.testing.assert_allclose(function(x, axis=1), want, rtol=1e-6)
        np.testing.assert_allclose(jax.jit(lambda x, f=function: f(x, axis=1))(x), want, rtol=1e-6)


@pytest.mark.parametrize("place", [0, 2500, 4999])
def test_nan_anywhere_in_a_concrete_row_is_seen(place):
    x = np.sort(rng.normal(size=5000).astype(np.float32))
    x[place] = np.nan
    for q in (0.0, 0.3, 0.5, 1.0, jnp.array([0.2, 1.0])):
        assert np.isnan(np.asarray(jnp.quantile(x, q))).all()
        assert np.isfinite(np.asarray(jnp.nanquantile(x, q))).all()


def test_derivatives_go_to_the_elements_that_are_taken():
    x = jnp.array([3.0, 1.0, 2.0, 5.0])
    np.testing.assert_array_equal(jax.grad(jnp.median)(x), [0.5, 0, 0.5, 0])
    ties = jnp.array([2.0, 2.0, 2.0])
    np.testing.assert_array_equal(jax.grad(jnp.median)(ties), [0, 1, 0])
    _, tangent = jax.jvp(lambda x: jnp.quantile(x, jnp.array([0.0, 1.0])), (x,), (jnp.arange(4.0),))
    np.testing.assert_array_equal(tangent, [1.0, 3.0])


def test_members_with_fractions_of_their_own():
    x, q = rng.normal(size=(4, 50)).astype(np.float32), np.float32([0.0, 0.25, 0.7, 1.0])
    got = jax.jit(jax.vmap(jnp.quantile))(x, q)
    np.testing.assert_allclose(got, [np.quantile(a, p) for a, p in zip(x, q)], rtol=1e-5, atol=1e-6)
