"""``scipy.integrate`` and ``scipy.cluster`` beside SciPy."""

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate

import catena as jax
import catena.numpy as jnp
import catena.scipy as jsp

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_trapezoid(axis):
    y = RNG.normal(size=(4, 5)).astype("float32")
    x = np.cumsum(RNG.uniform(size=y.shape[axis])).astype("float32")
    for arguments in ({}, {"dx": 0.5}, {"x": x}):
        ours = jsp.integrate.trapezoid(y, axis=axis, **arguments)
        np.testing.assert_allclose(ours, scipy.integrate.trapezoid(y, axis=axis, **arguments), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda y: jsp.integrate.trapezoid(y[0], dx=2.0))(y)[0], [1, 2, 2, 2, 1])


@pytest.mark.parametrize(("m", "n", "k"), [(7, 3, 2), (1, 1, 4), (0, 2, 3), (50, 9, 1)])
def test_vq(m, n, k):
    obs, book = RNG.normal(size=(m, k)).astype("float32"), RNG.normal(size=(n, k)).astype("float32")
    codes, distances = jsp.cluster.vq.vq(obs, book)
    assert codes.dtype == "int32" and distances.dtype == "float32"
    if m:
        for ours, theirs in zip((codes, distances), scipy.cluster.vq.vq(obs, book), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_vq_of_numbers_and_complex_numbers():
    codes, distances = jsp.cluster.vq.vq(jnp.array([1, 5, 9]), jnp.array([0, 8]))
    assert codes.tolist() == [0, 1, 1] and distances.tolist() == [1, 3, 1]
    codes, distances = jsp.cluster.vq.vq(jnp.array([[1j]]), jnp.array([[1.0], [-2j]]))
    assert codes.tolist() == [0] and distances.dtype == "float32" and distances[0] == pytest.approx(2**0.5)


def test_codes_are_integers_of_the_default_width():
    with jax.enable_x64(True):
        for function in (jsp.cluster.vq.vq, jax.jit(jsp.cluster.vq.vq)):
            codes, distances = function(jnp.array([[1.0], [9.0]]), jnp.array([[0.0], [8.0]]))
            assert codes.dtype == "int64" and distances.dtype == "float64" and codes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("error", "shapes"),
    [(ValueError, ((3,), (2, 3))), (ValueError, ((1, 2, 3), (1, 2, 3))), (TypeError, ((4, 2), (3, 3))),
     (ValueError, ((), ())), (ValueError, ((4,), (0,)))],
)  # fmt: skip
def test_vq_of_other_shapes(error, shapes):
    with pytest.raises(error, match="got the shapes"):
        jsp.cluster.vq.vq(*(jnp.ones(shape) for shape in shapes))
