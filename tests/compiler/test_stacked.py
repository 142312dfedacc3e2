"""A fold of a stack is made of its parts one after the other: no stack is stored, and the bits are those of one."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import nests, program_of
from shares import alternate

FOLDS = {
    "sum": jnp.sum,
    "product": jnp.prod,
    "largest": jnp.max,
    "least": jnp.min,
    "mean": jnp.mean,
    "any": jnp.any,
    "all": jnp.all,
    "sum of squares": lambda x, axis: jnp.sum(x * x + 1, axis),
    "weighted": lambda x, axis: jnp.sum(x * jnp.arange(1, x.shape[-1] + 1).astype(x.dtype), axis),
}


def stacked(xs, axis):
    return jnp.stack([xs[0] + xs[1], *xs[1:]], axis)


def numbers(rng, shape: tuple, dtype: str):
    """Some of them are zeros of both signs, infinite or no numbers, where the type has these."""
    x = rng.standard_normal(shape) * 4
    if dtype.startswith(("f", "bf")):
        x = np.where(rng.random(shape) < 0.3, rng.choice([0.0, -0.0, np.nan, np.inf], shape), x)
    return jnp.asarray(x).astype(dtype)


def bits(x) -> bytes:
    """Those of numbers: what is none has no sign."""
    x = np.asarray(x)
    return np.where(x == x, x, np.ones((), x.dtype) * 77).tobytes() + (x == x).tobytes()


@pytest.mark.share(9)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("fold", FOLDS)
def test_the_bits_are_those_of_the_stack(fold, dtype):
    rng = np.random.default_rng(5)
    shapes = (((), 3), ((40,), 2), ((7, 5), 3), ((300,), 8), ((40,), 16), ((6,), 17))
    for shape, count in alternate(2, shapes, [*FOLDS].index(fold)):
        xs = [numbers(rng, shape, dtype) for _ in range(count)]
        for axis in range(-1, len(shape)):
            whole = jax.jit(lambda xs: stacked(xs, axis))(xs)  # noqa: B023
            found = jax.jit(lambda xs: FOLDS[fold](stacked(xs, axis), axis))(xs)  # noqa: B023
            assert bits(found) == bits(jax.jit(lambda x: FOLDS[fold](x, axis))(whole)), (shape, count, axis)  # noqa: B023


def test_all_zeros_below_zero():
    x = jnp.full(5, -0.0)
    assert not np.signbit(jax.jit(lambda x: jnp.stack([x, x, x]).sum(0))(x)).any()
    assert np.signbit(jax.jit(lambda x: jnp.stack([x, x, x]).max(0))(x)).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_no_stack_is_stored(axis):
    x = jnp.ones((300, 70))
    for fold in FOLDS.values():
        made = jax.make_jaxpr(lambda x, y: fold(stacked([x, y, x], axis), axis))(x, x)  # noqa: B023
        assert len(nests(made)) == 1 and program_of(made).arena_bytes == 0


def test_a_stack_that_others_read_is_one():
    """What is wanted itself, or read elsewhere, is made once; the sum of many is that of an array."""
    x = np.random.default_rng(6).standard_normal(50).astype("f")

    def f(x):
        y = jnp.stack([x, x * 2, x + 1])
        z = jnp.exp(y)
        return z, jnp.sum(z, 0), jnp.sum(y * 2, 0), jnp.max(y[:2], 0), jnp.sum(jnp.stack([x] * 20), 0)

    for found, expected in zip(jax.jit(f)(x), f(jnp.asarray(x)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_derivatives():
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal(9) for _ in range(2))
    with jax.enable_x64(True):
        norm = lambda x, y: jnp.sum(jnp.linalg.norm(jnp.stack([x, y, x * y], -1), axis=-1))
        found = jax.jit(jax.grad(norm, (0, 1)))(x, y)
        length = np.sqrt(x * x + y * y + (x * y) ** 2)
        np.testing.assert_allclose(found[0], (x + x * y * y) / length, rtol=1e-12)
        np.testing.assert_allclose(found[1], (y + x * x * y) / length, rtol=1e-12)
        members = jax.jit(jax.vmap(lambda x: jnp.stack([x, x * x]).sum(0)))(x.reshape(3, 3))
        np.testing.assert_allclose(members, (x + x * x).reshape(3, 3), rtol=1e-12)
