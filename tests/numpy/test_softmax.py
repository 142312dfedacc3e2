"""logsumexp, softmax and log_softmax beside their definitions, and where those overflow or end."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.nn import log_softmax, logsumexp, softmax

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
MASK = RNG.random((3, 4, 5)) < 0.6
MASK[0] = False  # a part in which nothing is taken


def by_definition(x, axis, where=True):
    terms = np.where(where, np.exp(x.astype(np.float64)), 0)
    return terms, terms.sum(axis, keepdims=True)


@pytest.mark.share(2)
@pytest.mark.parametrize("axis", [-1, 0, (0, 2), None, ()])
@pytest.mark.parametrize("where", [None, MASK], ids=["all", "some"])
def test_they_are_what_they_say(axis, where):
    terms, total = by_definition(X, axis, True if where is None else where)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.nan_to_num(terms / total)
        np.testing.assert_allclose(softmax(X, axis, where), share, rtol=1e-5)
        np.testing.assert_allclose(log_softmax(X, axis, where), np.log(share), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(logsumexp(X, axis, where=where, keepdims=True), np.log(total), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "int8", "uint8", "int32"])
def test_dtypes(dtype):
    x = jnp.array([1, 3], dtype)
    expected = x.dtype if jnp.issubdtype(x.dtype, jnp.inexact) else jnp.float32
    for f in (logsumexp, softmax, log_softmax):
        assert f(x).dtype == expected and not f(x).weak_type
    tolerance = 1e-2 if "16" in dtype else 1e-6
    np.testing.assert_allclose(np.asarray(softmax(x)).astype(complex), np.exp([-2, 0]) / (1 + np.exp(-2)), tolerance)


def test_integers_do_not_wrap_around():
    assert softmax(jnp.array([1, 200], jnp.uint8)).tolist() == [0, 1]
    assert log_softmax(jnp.array([-100, 100], jnp.int8)).tolist() == [-200, 0]
    exact = log_softmax(jnp.array([2**24, 2**24 + 1]))  # float32 has no such number
    np.testing.assert_allclose(exact, np.log([1 / (1 + np.e), np.e / (1 + np.e)]), rtol=1e-6)


def test_nothing_overflows_and_infinities_have_their_meaning():
    inf, nan = np.inf, np.nan
    for x, expected in [
        ([1000.0, 1000.0], 1000 + np.log(2)),
        ([-inf, -inf], -inf),
        ([inf, 0.0], inf),
        ([-inf, 1.0], 1),
        ([nan, 1.0], nan),
        ([], -inf),
    ]:
        np.testing.assert_allclose(logsumexp(jnp.array(x)), expected, rtol=1e-6)
    assert softmax(jnp.array([-inf, 1.0])).tolist() == [0, 1]
    assert log_softmax(jnp.array([-inf, 1.0])).tolist() == [-inf, 0]
    assert np.isnan(softmax(jnp.array([inf, 1.0]))).all()
    assert softmax(jnp.zeros((0, 3)), axis=0).shape == (0, 3)


def test_what_is_masked_plays_no_part():
    x, mask = jnp.array([1.0, jnp.nan, jnp.inf]), jnp.array([True, False, False])
    assert float(logsumexp(x, where=mask)) == 1
    assert float(logsumexp(x, b=jnp.array([1, 0, 0]))) == 1
    assert softmax(x, where=mask).tolist() == [1, 0, 0]
    for f in (softmax, log_softmax):
        assert np.isfinite(jax.jacobian(lambda x, f=f: f(x, where=mask))(x)).all()
    for taken in (mask, jnp.zeros(3, bool)):
        assert np.isfinite(jax.grad(lambda x: logsumexp(x, where=taken))(x)).all()  # noqa: B023
        assert np.isfinite(jax.grad(lambda x: softmax(x, where=taken).sum())(x)).all()  # noqa: B023


def test_signed_sums():
    a, b = jnp.array([1.0, 0.0, 2.0]), jnp.array([1.0, -9.0, 0.0])
    total = np.e - 9
    assert np.isnan(logsumexp(a, b=b))
    magnitude, sign = logsumexp(a, b=b, return_sign=True)
    np.testing.assert_allclose([magnitude, sign], [np.log(-total), -1], rtol=1e-6)
    z = jnp.array([1 + 2j, 2])
    np.testing.assert_allclose(jnp.exp(logsumexp(z)), np.exp([1 + 2j, 2]).sum(), rtol=1e-6)
    magnitude, phase = logsumexp(z, return_sign=True)
    np.testing.assert_allclose(jnp.exp(magnitude) * phase, np.exp([1 + 2j, 2]).sum(), rtol=1e-6)


def test_a_mask_of_more_axes_spreads_the_numbers():
    x, mask = jnp.array([1.0, 2.0]), jnp.ones((3, 2), bool)
    np.testing.assert_array_equal(softmax(x, -1, mask), np.broadcast_to(softmax(x), (3, 2)))
    np.testing.assert_array_equal(softmax(x, 0, mask), np.full((3, 2), np.float32(1 / 3)))
    with pytest.raises(ValueError, match="out of bounds"):
        softmax(x, 1, mask)


@pytest.mark.parametrize("f", [logsumexp, softmax, log_softmax])
def test_under_transformations(f):
    alone = np.stack([f(row, axis=0) for row in X[0]])
    for transformed in (jax.vmap(lambda x: f(x, axis=0)), jax.jit(lambda x: f(x, axis=1))):
        np.testing.assert_allclose(transformed(X[0]), alone, rtol=1e-6, atol=1e-6)
    direction = RNG.normal(size=5).astype(np.float32)
    with jax.enable_x64(True):
        x, v = jnp.array(X[0, 0], float), jnp.array(direction, float)
        _, slope = jax.jvp(f, (x,), (v,))
        np.testing.assert_allclose(slope, (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6, rtol=1e-6, atol=1e-9)


def test_the_rule_of_softmax_is_its_derivative():
    for where in (None, jnp.array(MASK[1])):
        plain = jax.jacobian(lambda x: softmax(x, where=where))(X[1])  # noqa: B023
        with jax.softmax_custom_jvp(True):
            by_rule = jax.jacobian(lambda x: softmax(x, where=where))(X[1])  # noqa: B023
        np.testing.assert_allclose(by_rule, plain, atol=1e-6)


def test_bad_input():
    x = jnp.ones((2, 3))
    for f in (logsumexp, softmax, log_softmax):
        for error, call in [
            (TypeError, lambda: f([1.0])),  # noqa: B023
            (TypeError, lambda: f("a")),  # noqa: B023
            (ValueError, lambda: f(x, where=jnp.array([1, 0, 1]))),  # noqa: B023
            (ValueError, lambda: f(x, where=jnp.ones(2, bool))),  # noqa: B023
            (ValueError, lambda: f(x, axis=2)),  # noqa: B023
            (ValueError, lambda: f(x, axis=(0, 0))),  # noqa: B023
            (NameError, lambda: f(x, axis="unbound")),  # noqa: B023
        ]:
            with pytest.raises(error):
                call()
    for f in (softmax, log_softmax):
        with pytest.raises(TypeError, match="booleans"):
            f(jnp.array([True]))
