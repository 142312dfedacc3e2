"""Arrays of 40 axes, of more than any array can have, and of sizes 0 and 1: a sample of `benchmarks/extents.py`."""

import sys
from pathlib import Path

import numpy as np
import pytest

import catena as jax
import catena.lax as lax
import catena.numpy as jnp

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import extents  # noqa: E402

MANY = (2,) + (1,) * 38 + (3,)


@pytest.mark.parametrize(
    "name", "argsort sort partition lexsort kron tile mean matmul take_along_axis median unique linalg.slogdet".split()
)
def test_functions_of_40_axes(name):
    assert list(extents.numpy_with_axes(name)) == []


@pytest.mark.parametrize("name", "sort top_k igamma_grad_a select_and_gather_add bitcast_int8_int4 cumsum conv".split())
def test_primitives_mapped_over_40_axes(name):
    assert list(extents.primitives_with_axes(name)) == []


@pytest.mark.parametrize("name", ["rademacher", "independent", "split"])
def test_samples_of_40_axes(name):
    assert list(extents.samplers_with_axes(name)) == []


@pytest.mark.parametrize("name", ["concatenate", "dot", "histogram", "median", "interp"])
def test_axes_of_size_0_and_1(name):
    assert list(extents.empty(name)) == []


def test_arithmetic_of_40_axes_compiles():
    x = jnp.arange(6.0).reshape(MANY)
    f = jax.jit(lambda x: (2 * x + x[1:], x.transpose(), x.sum((0, 7)), jnp.sort(x, 0)))
    for eager, compiled in zip(f.__wrapped__(x), f(x), strict=True):
        np.testing.assert_array_equal(eager, compiled)


def nested(depth: int):
    x = 1.0
    for _ in range(depth):
        x = [x]
    return x


LISTS = [1.0]
LISTS.append(LISTS)
X64, X40 = np.ones((1,) * 64), np.ones((1,) * 40)


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.zeros((1,) * 65),
        lambda: jnp.ones_like(X40, shape=(1,) * 65),
        lambda: jnp.reshape(X64, (1,) * 65),
        lambda: jnp.asarray(X64).reshape((1,) * 65),
        lambda: jnp.expand_dims(X64, 0),
        lambda: jnp.asarray(X64)[None],
        lambda: jnp.stack([jnp.asarray(X64)] * 2),
        lambda: jnp.stack([jnp.asarray(X64)] * 2, 1),
        lambda: jnp.broadcast_to(X64, (2, *X64.shape)),
        lambda: jnp.asarray(X64).at[None].set(1),
        lambda: jnp.tile(X64, (2,) * 65),
        lambda: jnp.tensordot(X40, X40, 0),
        lambda: jnp.ix_(*[np.ones(1, int)] * 65),
        lambda: jnp.array(nested(65)),
        lambda: jnp.array(LISTS),
        lambda: lax.full((1,) * 65, 1),
        lambda: jax.random.normal(jax.random.key(0), (1,) * 65),
        lambda: jax.random.split(jax.random.key(0), (1,) * 65),
    ],
)
def test_more_axes_than_an_array_can_have(make):
    for call in (make, jax.jit(make)):
        with pytest.raises(ValueError, match="arrays have at most 64 axes"):
            call()


def test_lists_of_blocks_that_are_nested_too_deep():
    for lists in (LISTS, nested(70)):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            jnp.block(lists)


def test_vmap_nested_deeper_than_axes():
    f = lambda x: x * jnp.ones(())  # noqa: E731
    for _ in range(60):
        f = jax.vmap(f, in_axes=None, axis_size=1)
    assert f(2.0).shape == jax.jit(f)(2.0).shape == (1,) * 60
    for _ in range(40):
        f = jax.vmap(f, in_axes=None, axis_size=1)
    for call in (f, jax.jit(f)):
        with pytest.raises(ValueError, match="arrays have at most 64 axes"):
            call(2.0)
