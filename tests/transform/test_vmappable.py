"""Containers that say themselves how vmap maps over them."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.interpreters import batching


class Named:
    """An array whose axes have names."""

    def __init__(self, names, data):
        self.names, self.data = names, data


def to_elt(cont, index, x, name):
    """The example along a name."""
    return Named([n for n in x.names if n != name], cont(x.data, x.names.index(name)))


def from_elt(cont, size, x, name):
    """The whole, the new name in front."""
    return Named([name, *x.names], cont(size, x.data, 0))


@pytest.fixture(autouse=True)
def registered():
    batching.register_vmappable(Named, str, int, to_elt, from_elt, None)
    yield
    batching.unregister_vmappable(Named)


X = Named(["row", "column"], jnp.arange(6.0).reshape(2, 3))


def test_by_name():
    double = lambda x: Named(x.names, 2 * x.data)
    out = jax.vmap(double, in_axes="column", out_axes="first", axis_size=3)(X)
    assert out.names == ["first", "row"]
    np.testing.assert_array_equal(out.data, 2 * np.asarray(X.data).T)
    sums = jax.vmap(lambda x, y: x.data.sum() + y, in_axes=("row", 0))(X, jnp.arange(2.0))
    np.testing.assert_array_equal(sums, [3, 13])
    grad = jax.grad(lambda d: jax.vmap(lambda x: (x.data**2).sum(), "row", axis_size=2)(Named(X.names, d)).sum())
    np.testing.assert_array_equal(jax.jit(grad)(X.data), 2 * X.data)


def test_nested_and_inside_trees():
    inner = jax.vmap(lambda x: Named([], x.data + 1), in_axes="column", out_axes="column", axis_size=3)
    out = jax.vmap(inner, in_axes="row", out_axes="row", axis_size=2)(X)
    assert out.names == ["row", "column"]
    np.testing.assert_array_equal(out.data, X.data + 1)
    pair = jax.vmap(
        lambda d: {"out": (d["x"], 1.0)}, in_axes=({"x": "row"},), axis_size=2, out_axes={"out": ("row", 0)}
    )
    whole, ones = pair({"x": X})["out"]
    np.testing.assert_array_equal(whole.data, X.data)
    np.testing.assert_array_equal(ones, [1, 1])
    assert jax.vmap(lambda x, y: y, in_axes=(None, 0))(1, jnp.ones(2)).shape == (2,)


def test_what_is_not_mapped_and_the_number_of_an_example():
    class Shared:
        def __init__(self, mapped, shared):
            self.mapped, self.shared = mapped, shared

    batching.register_vmappable(
        Shared,
        int,
        int,
        lambda cont, index, x, axis: Shared(cont(x.mapped, axis) + index(), x.shared),
        lambda cont, size, x, axis: Shared(cont(size, x.mapped, axis), cont(size, x.shared, axis)),
        lambda size: 10 * jnp.arange(size),
    )
    out = jax.vmap(lambda s: s, axis_size=3, out_axes=-1)(Shared(jnp.zeros((3, 2)), jnp.ones(())))
    np.testing.assert_array_equal(out.mapped, [[0, 10, 20]] * 2)
    np.testing.assert_array_equal(out.shared, [1, 1, 1])
    with pytest.raises(ValueError, match="out_axes, got axis spec None but output was batched"):
        jax.vmap(lambda s: s, axis_size=3, out_axes=None)(Shared(jnp.zeros(3), 1.0))
    with pytest.raises(ValueError, match="an array of shape .2, 2. has no axis 0 of size 3"):
        jax.vmap(lambda s: s, axis_size=3)(Shared(jnp.zeros((2, 2)), 1.0))
    batching.unregister_vmappable(Shared)
    batching.unregister_vmappable(Shared)  # twice is once
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.vmap(lambda s: s, axis_size=3)(Shared(jnp.zeros(3), 1.0))


def test_bad_input():
    for error, message, f in (
        (ValueError, "at least one non-None value", lambda: jax.vmap(lambda x: x, "row")(X)),
        (TypeError, "by an integer, got 'row'", lambda: jax.vmap(lambda x: x, "row", axis_size=2)(jnp.ones(2))),
        (TypeError, "maps over a Named by a str, got 0", lambda: jax.vmap(lambda x: x, axis_size=2)(X)),
        (TypeError, "returns a Named by a str, got 0", lambda: jax.vmap(lambda x: x, "row", axis_size=2)(X)),
        (TypeError, "in_axes must be an int", lambda: jax.vmap(lambda x: x, 2.5)),
        (TypeError, "axis_size must be an integer", lambda: jax.vmap(lambda x: x, axis_size="2")),
        (TypeError, "no __index__", lambda: batching.register_vmappable(Named, str, str, to_elt, from_elt, None)),
    ):
        with pytest.raises(error, match=message):
            f()
    batching.unregister_vmappable(Named)
    with pytest.raises(TypeError, match="in_axes must be an int"):
        jax.vmap(lambda x: x, "row")
