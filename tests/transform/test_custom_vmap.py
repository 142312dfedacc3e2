"""Functions with a rule for ``vmap``: what it sees, what becomes of derivatives and programs, and bad rules."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.custom_batching import custom_vmap, sequential_vmap

X = jnp.arange(3.0)


@custom_vmap
def scaled(x, y=2.0):
    return {"product": x * y}


@scaled.def_vmap
def _scaled_rule(axis_size, in_batched, x, y):
    assert in_batched[0]
    return {"product": 10 * x}, {"product": True}  # so that one sees that it was called


def test_the_rule_is_called_under_vmap_only():
    for wrap in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(wrap(scaled)(X)["product"], 2 * X)
        np.testing.assert_array_equal(wrap(jax.vmap(scaled))(X)["product"], 10 * X)
        np.testing.assert_array_equal(jax.vmap(wrap(scaled), in_axes=(0, None))(X, 5.0)["product"], 10 * X)
    np.testing.assert_array_equal(jax.vmap(lambda x: scaled(1.0)["product"] + x)(X), 2 + X)  # nothing of it is mapped
    np.testing.assert_array_equal(jax.vmap(jax.vmap(scaled))(jnp.ones((2, 3)))["product"], np.full((2, 3), 10))


def test_what_the_rule_sees():
    seen = []

    @custom_vmap
    def f(pair, z):
        return pair[0] + pair[1].sum() + z

    @f.def_vmap
    def rule(size, batched, pair, z):
        seen.append((size, batched, pair[0].shape, pair[1].shape))
        return pair[0] + pair[1].sum(1) + z, True

    out = jax.vmap(f, in_axes=((None, 1), None))((1.0 * X[0], jnp.ones((4, 3))), 2.0)
    np.testing.assert_array_equal(out, [6, 6, 6])
    assert seen == [(3, [(False, True), False], (), (3, 4))]


def test_results_without_the_axis():
    f = custom_vmap(lambda x: 2 * x)
    f.def_vmap(lambda size, batched, x: (x.sum(), False))
    assert jax.vmap(f, out_axes=None)(X) == 3
    np.testing.assert_array_equal(jax.vmap(f)(X), [3, 3, 3])


def test_forward_derivatives_are_those_of_the_rule_under_vmap():
    f = custom_vmap(jnp.sin)
    f.def_vmap(lambda size, batched, x: (jnp.cos(x), batched[0]))
    value, tangent = jax.jvp(f, (1.0,), (2.0,))
    np.testing.assert_allclose([value, tangent], [np.sin(1), 2 * np.cos(1)], rtol=1e-6)
    for one in (lambda x: jax.jvp(f, (x,), (1.0,))[1], lambda x: jax.jit(lambda x: jax.jvp(f, (x,), (1.0,))[1])(x)):
        np.testing.assert_allclose(jax.vmap(one)(X), -np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(f)(x).sum())(X), -np.sin(X), rtol=1e-6)
    by_tangent = jax.vmap(lambda t: jax.jvp(f, (1.0,), (t,))[1])(X)  # mapped by the tangent only
    np.testing.assert_allclose(by_tangent, -np.sin(1) * X, rtol=1e-6)


def test_reverse_derivatives():
    f = custom_vmap(lambda x, y: jnp.sin(x) * y)
    f.def_vmap(lambda size, batched, x, y: (jnp.sin(x) * y, True))
    np.testing.assert_allclose(jax.grad(f)(1.0, 2.0), 2 * np.cos(1), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(f))(1.0, 2.0), -2 * np.sin(1), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(X, X), np.cos(X) * X, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: jax.vmap(f)(x, x).sum())(X), np.cos(X) * X + np.sin(X), rtol=1e-6)


def test_in_loops():
    f = custom_vmap(jnp.sin)
    f.def_vmap(lambda size, batched, x: (jnp.cos(x), batched[0]))
    rows = jnp.ones((2, 3))
    _, scanned = jax.vmap(lambda x: jax.lax.scan(lambda c, x: (c, f(x)), 0, x))(rows)
    np.testing.assert_allclose(scanned, np.cos(rows), rtol=1e-6)


def test_sequential():
    lengths = []

    @sequential_vmap
    def f(x, y):
        return jax.pure_callback(
            lambda x, y: lengths.append(x.shape) or x * y, jax.ShapeDtypeStruct((), "float32"), x, y
        )

    np.testing.assert_array_equal(jax.vmap(f, in_axes=(0, None))(X, jnp.float32(3)), 3 * X)
    assert lengths == [()] * 3
    assert jax.vmap(jax.vmap(f))(jnp.ones((2, 3)), jnp.ones((2, 3))).shape == (2, 3)


def test_arguments_by_name():
    f = sequential_vmap(jnp.multiply)  # which has keyword-only parameters, with defaults
    np.testing.assert_array_equal(jax.vmap(f)(X, X), X * X)
    np.testing.assert_array_equal(jax.vmap(scaled)(X, y=X)["product"], 10 * X)
    g = custom_vmap(lambda x, *, k: k * x)
    g.def_vmap(lambda size, batched, x: (x, True))
    with pytest.raises(TypeError, match="could not be resolved to positions: k"):
        g(X, k=2)


def rule_of(rule):
    f = custom_vmap(lambda x: x)
    f.def_vmap(rule)
    return f


@pytest.mark.parametrize(
    "rule, error, message",
    [
        (lambda size, batched, x: x, ValueError, "must return a pair"),
        (lambda size, batched, x: ((x, x), (True, True)), ValueError, "but its function returns"),
        (lambda size, batched, x: (x, (True,)), ValueError, "says which are batched"),
        (lambda size, batched, x: (x.sum(), True), ValueError, r"returned float32\[\] where"),
        (lambda size, batched, x: (x.astype(int), True), ValueError, r"returned int32\[3\] where"),
    ],
)
def test_bad_rules(rule, error, message):
    with pytest.raises(error, match=message):
        jax.vmap(rule_of(rule))(X)


def test_refusals():
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function sin"):
        custom_vmap(jnp.sin)(1.0)
    with pytest.raises(TypeError, match="callable"):
        custom_vmap(3)
    with pytest.raises(ValueError, match="closes over a value that vmap maps"):
        jax.vmap(lambda x: with_closure(x)(2.0 * x))(X)


def with_closure(x):
    f = custom_vmap(lambda y: x * y)
    f.def_vmap(lambda size, batched, y: (x * y, True))
    return f
