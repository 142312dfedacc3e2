"""Elementwise operations on a reshape that joins dimensions are done before it."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

rng = np.random.default_rng(0)
scores, steps = rng.normal(size=(5, 1)).astype(np.float32), rng.normal(size=(5, 33)).astype(np.float32)


def joined(f, *outer):
    """f of the sums of all pairs, as a vector."""
    return lambda x, y: f((x + y).reshape(-1), *outer)


functions = [
    joined(lambda v: v * 2 + 1),
    joined(lambda v: v.astype(np.float16)),
    joined(lambda v: jax.lax.bitcast_convert_type(v, np.int32) ^ 1),
    joined(lambda v: jnp.where(v > 0, v, -1.0)),
    joined(lambda v: v * (v > jnp.float32(0.5))),
    joined(lambda v: jax.lax.clamp(-1.0, v, 1.0)),
    joined(lambda v: jnp.sort(v)),
    joined(lambda v: jnp.argsort(v)),
    joined(lambda v: jax.lax.top_k(v, 7)),
    joined(lambda v: v.reshape(33, 5) * 3),
    joined(lambda v: jax.random.uniform(jax.random.key(1), v.shape) + v),
    joined(lambda v: jnp.concatenate([v, v * v])[7:300]),
]


@pytest.mark.parametrize("f", functions)
def test_values(f):
    got, alone = jax.jit(f)(scores, steps), f(jnp.asarray(scores), jnp.asarray(steps))
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(alone), strict=True):
        assert x.dtype == y.dtype and x.weak_type == y.weak_type
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0), (1, 7)])
def test_empty_and_single(shape):
    x, y = np.ones(shape[:1] + (1,), np.float32), np.ones(shape, np.float32)
    np.testing.assert_array_equal(jax.jit(joined(lambda v: v * 2))(x, y), np.full(x.size * shape[1], 4, np.float32))


def test_gradients():
    f = lambda x, y: (jnp.sin((x + y).reshape(-1)) ** 2).sum()  # noqa: E731
    dx, dy = jax.jit(jax.grad(f, (0, 1)))(scores, steps)
    each = np.sin(2 * (scores + steps))
    np.testing.assert_allclose(dy, each, atol=1e-6)
    np.testing.assert_allclose(dx, each.sum(1, keepdims=True), atol=1e-5)


def test_indices_are_not_divided():
    """The softmax over all continuations of a beam: its one division is that by the sum."""
    f = jax.jit(joined(jax.nn.softmax))
    assert f.lower(scores, steps).compile().as_text("nests").count("div") == 1
