"""Trees as vectors and back."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.flatten_util import ravel_pytree

TREE = {"a": jnp.arange(6.0).reshape(2, 3), "b": (jnp.float32(7), None, [jnp.ones((0, 2))])}


def test_there_and_back():
    vector, unravel = ravel_pytree(TREE)
    assert vector.shape == (7,) and vector.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(vector), [0, 1, 2, 3, 4, 5, 7])
    again = unravel(vector)
    assert jax.tree.structure(again) == jax.tree.structure(TREE)
    for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(TREE), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_mixed_dtypes():
    vector, unravel = ravel_pytree({"n": jnp.arange(2), "x": 1.5, "half": jnp.ones(1, "bfloat16")})
    assert vector.dtype == jnp.float32
    again = unravel(vector)
    assert again["n"].dtype == jnp.int32 and again["x"].dtype == jnp.float32
    assert again["n"].tolist() == [0, 1] and float(again["x"]) == 1.5


def test_empty_and_single():
    vector, unravel = ravel_pytree({})
    assert vector.shape == (0,) and unravel(vector) == {}
    vector, unravel = ravel_pytree(2.0)
    assert vector.weak_type and vector.shape == (1,)
    assert float(unravel(jnp.full(1, 3.0))) == 3.0


def test_under_transformations():
    loss = lambda v, unravel: jnp.sum(unravel(v)["a"] ** 2)
    vector, unravel = ravel_pytree(TREE)
    gradient = jax.jit(jax.grad(lambda v: loss(v, unravel)))(vector)
    np.testing.assert_allclose(np.asarray(gradient), [0, 2, 4, 6, 8, 10, 0])
    batch = jax.vmap(lambda x: ravel_pytree({"x": x, "y": 2 * x})[0])(jnp.arange(3.0))
    assert batch.tolist() == [[0, 0], [1, 2], [2, 4]]
    grads = jax.grad(lambda t: jnp.sum(ravel_pytree(t)[0] ** 2))({"x": jnp.ones((2, 2)), "y": 3.0})
    assert grads["x"].tolist() == [[2, 2], [2, 2]] and float(grads["y"]) == 6


def test_wrong_vectors():
    vector, unravel = ravel_pytree(TREE)
    with pytest.raises(ValueError, match=r"shape \(3,\), but expected shape \(7,\)"):
        unravel(vector[:3])
    vector, unravel = ravel_pytree([jnp.ones(2), jnp.arange(2)])  # of two dtypes
    with pytest.raises(TypeError, match="dtype int32, but expected dtype float32"):
        unravel(vector.astype(int))
    with pytest.raises(TypeError, match="'a'"):
        ravel_pytree(["a"])


def test_trees_of_one_dtype_take_vectors_of_another():
    vector, unravel = ravel_pytree({"w": jnp.ones((2, 2))})
    assert unravel(vector.astype("int32"))["w"].dtype == "int32"


def test_unravel_functions_are_equal_for_trees_of_one_type():
    first, second = (ravel_pytree({"w": jnp.full(2, v), "b": v})[1] for v in (1.0, 2.0))
    assert first == second and hash(first) == hash(second)
    assert first != ravel_pytree({"w": jnp.full((1, 2), 1.0), "b": 1.0})[1]
    traced = []
    f = jax.jit(lambda v, unravel: traced.append(1) or unravel(v)["w"].sum(), static_argnums=1)
    assert float(f(jnp.ones(3), first)) == float(f(jnp.ones(3), second)) == 2 and len(traced) == 1
