"""Calls with a name, by platform, and values that are kept."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

X = jnp.arange(3.0)


def test_composite():
    scaled = lax.composite(lambda x, y, *, k=1: {"out": jnp.sin(x) * y * k}, "mine.scaled", version=2)
    (call,) = jax.make_jaxpr(lambda x: scaled(x, x, k=3))(X).eqns
    assert call.primitive.name == "composite"
    assert (call.params["name"], call.params["version"]) == ("mine.scaled", 2)
    assert call.params["attributes"][0][0] == "k"
    for wrap in (lambda f: f, jax.jit, jax.vmap):
        np.testing.assert_allclose(wrap(scaled)(X, X)["out"], np.sin(X) * X, rtol=1e-6)
    gradient = jax.jit(jax.grad(lambda x: scaled(x, x)["out"].sum()))(X)
    np.testing.assert_allclose(gradient, np.cos(X) * X + np.sin(X), rtol=1e-6)
    doubled = lax.composite(lambda x: 2 * x, "double")
    (transposed,) = jax.linear_transpose(doubled, X)(X)
    np.testing.assert_array_equal(transposed, 2 * X)
    np.testing.assert_array_equal(
        jax.jit(jax.grad(lambda c: lax.composite(lambda x: c * x, "closes")(X).sum()))(2.0), 3
    )


def test_platforms():
    add_one, fail = (lambda x: x + 1), (lambda x: 1 / 0)
    for wrap in (lambda f: f, jax.jit, jax.vmap):
        f = wrap(lambda x: lax.platform_dependent(x, cpu=add_one, default=fail))
        np.testing.assert_array_equal(f(X), X + 1)
    np.testing.assert_array_equal(lax.platform_dependent(X, tpu=fail, default=add_one), X + 1)
    with pytest.raises(NotImplementedError, match="tpu"):
        lax.platform_dependent(X, tpu=fail)
    with pytest.raises(TypeError, match="the 'tpu' branch must be a callable"):
        lax.platform_dependent(X, tpu=3, default=add_one)


def test_what_is_kept():
    def f(x):
        assert lax.dce_sink({"a": x * 2}) is None
        return x

    names = [e.primitive.name for e in jax.make_jaxpr(f)(1.0).eqns]
    assert names == ["mul", "dce_sink"]
    for wrap in (lambda f: f, jax.jit, jax.vmap, lambda f: jax.jit(jax.vmap(f))):
        np.testing.assert_array_equal(wrap(f)(X), X)
    assert jax.jit(jax.grad(f))(1.0) == 1
    with pytest.raises(TypeError):
        lax.dce_sink("a")


def test_stage():
    assert not isinstance(lax.stage(1.0), jax.core.Tracer)
    assert isinstance(jax.jit(lambda: [isinstance(lax.stage(1.0), jax.core.Tracer)])()[0], jax.Array)
    seen = []
    jax.jit(lambda: seen.append(type(lax.stage(1.0))))()
    assert issubclass(seen[0], jax.core.Tracer)
    assert jax.grad(lax.stage)(1.0) == 1
