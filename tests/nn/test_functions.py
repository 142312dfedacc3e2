"""logmeanexp, standardize and one_hot."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
MASK = RNG.random((3, 4)) < 0.7


def test_logmeanexp():
    for axis in (None, 0, (0, 1)):
        np.testing.assert_allclose(nn.logmeanexp(X, axis), np.log(np.exp(X).mean(axis)), rtol=1e-5)
        expected = np.log(np.exp(X).mean(axis, where=MASK, keepdims=True))
        np.testing.assert_allclose(nn.logmeanexp(X, axis, where=MASK, keepdims=True), expected, rtol=1e-5)
    assert np.isnan(nn.logmeanexp(jnp.zeros(0))) and np.isnan(nn.logmeanexp(X, where=jnp.array(False)))
    assert nn.logmeanexp(1).dtype == "float32" and nn.logmeanexp(jnp.ones(2, "bfloat16")).dtype == "bfloat16"
    by_name = jax.vmap(lambda x: nn.logmeanexp(x, "i"), axis_name="i")(X[0])
    np.testing.assert_allclose(by_name, np.log(np.exp(X[0]).mean()), rtol=1e-5)
    with pytest.raises(ValueError):
        nn.logmeanexp(X, where=jnp.ones((2, 3, 4), bool))


def by_definition(x, axis, where=True):
    mean, variance = x.mean(axis, keepdims=True, where=where), x.var(axis, keepdims=True, where=where)
    return (x - mean) / np.sqrt(variance + 1e-5)


@pytest.mark.parametrize("algorithm", ["fast", "stable"])
def test_standardize(algorithm):
    for axis in (-1, 0, (0, 1), None):
        np.testing.assert_allclose(
            nn.standardize(X, axis, algorithm=algorithm), by_definition(X, axis), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            nn.standardize(X, axis, where=MASK, algorithm=algorithm), by_definition(X, axis, MASK), rtol=1e-4, atol=1e-5
        )
    far = X.astype(np.float64) + 1e4  # a great mean costs no precision but that of the numbers
    rounded = far.astype(np.float32)
    expected = by_definition(rounded.astype(np.float64), -1)
    np.testing.assert_allclose(nn.standardize(rounded, algorithm=algorithm), expected, rtol=3e-3, atol=3e-3)


def test_standardize_with_what_is_given():
    x = jnp.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(nn.standardize(x, mean=1.0, epsilon=0), [0, 6**-0.5, 3 * 6**-0.5], rtol=1e-6)
    stable = nn.standardize(x, mean=1.0, epsilon=0, algorithm="stable")
    np.testing.assert_allclose(stable, np.array([0, 1, 3]) / np.sqrt(10 / 3), rtol=1e-6)
    np.testing.assert_allclose(nn.standardize(x, mean=1.0, variance=4.0, epsilon=0), [0, 0.5, 1.5])
    assert nn.standardize(jnp.array([1, 2])).dtype == "float32"
    wide = nn.standardize(jnp.array([1, 2, 300], jnp.float16))  # whose squares overflow
    np.testing.assert_allclose(wide, [-0.711, -0.704, 1.414], rtol=1e-2)
    assert nn.standardize(jnp.ones(0)).shape == (0,)
    z = jnp.array([1j, 1 + 1j, 2 + 1j])
    np.testing.assert_allclose(nn.standardize(z, algorithm="stable"), [-1.2247, 0, 1.2247], atol=1e-3)


def test_standardize_is_differentiable():
    assert np.isfinite(jax.grad(lambda x: nn.standardize(x)[0])(jnp.ones(3))).all()
    with jax.enable_x64(True):
        x, v = jnp.array(X[0], float), jnp.array(X[1], float)
        slope = jax.jvp(nn.standardize, (x,), (v,))[1]
        h = 1e-6
        np.testing.assert_allclose(
            slope, (nn.standardize(x + h * v) - nn.standardize(x - h * v)) / (2 * h), rtol=1e-6, atol=1e-8
        )


def test_one_hot():
    x = np.array([[0, 2, 7], [1, -1, 0]])
    expected = (x[..., None] == np.arange(3)).astype(np.float32)
    for axis, where in [(-1, -1), (0, 0), (1, 1), (-3, 0)]:
        np.testing.assert_array_equal(nn.one_hot(x, 3, axis=axis), np.moveaxis(expected, -1, where))
    np.testing.assert_array_equal(nn.one_hot(x.tolist(), 3), expected)
    for dtype in ("int32", "bool", "bfloat16", "complex64"):
        assert nn.one_hot(x, 3, dtype=dtype).dtype == dtype
    assert nn.one_hot(x, 0).shape == (2, 3, 0)
    assert nn.one_hot(jnp.array([-1, 100], jnp.int8), 300).sum(1).tolist() == [0, 1]  # 255 is no int8
    assert nn.one_hot(jnp.array([200], jnp.uint8), 300).argmax() == 200


def test_one_hot_over_a_mapped_axis():
    classes = jnp.array([0, 2, 1])
    assert jax.vmap(lambda x: nn.one_hot(x, 3, axis="i"), axis_name="i")(classes).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="size"):
        jax.vmap(lambda x: nn.one_hot(x, 4, axis="i"), axis_name="i")(classes)


def test_one_hot_of_floats_is_deprecated():
    with pytest.warns(DeprecationWarning, match="integers"):
        assert nn.one_hot(jnp.array([1.0, 0.5]), 3).tolist() == [[0, 1, 0], [0, 0, 0]]


def test_bad_input():
    x = jnp.array([0, 1])
    for error, call in [
        (TypeError, lambda: nn.one_hot(x, 2.0)),
        (TypeError, lambda: nn.one_hot(x, -1)),
        (TypeError, lambda: nn.one_hot("a", 2)),
        (ValueError, lambda: nn.one_hot(x, 2, axis=2)),
        (NameError, lambda: nn.one_hot(x, 2, axis="unbound")),
        (jax.errors.ConcretizationTypeError, lambda: jax.jit(lambda n: nn.one_hot(x, n))(2)),
        (ValueError, lambda: nn.standardize(X, algorithm="slow")),
        (ValueError, lambda: nn.standardize(X + 1j)),
        (IndexError, lambda: nn.standardize(1.0)),
        (TypeError, lambda: nn.standardize([1.0])),
    ]:
        with pytest.raises(error):
            call()


def test_integers_less_a_number_have_the_dtype_of_squares_or_of_distances():
    """The fast variance is of squares of integers, the stable one of distances from a float."""
    with jax.enable_x64(True):
        x = jnp.array([[1, 3, 2]], jnp.int32)
        assert nn.standardize(x, mean=1.0).dtype == nn.standardize(x).dtype == "float32"
        assert nn.standardize(x, mean=1.0, algorithm="stable").dtype == "float64"
