"""Transposed loads: squares of lanes, with edges that are no multiple of them, beside operands of every other kind."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

SHAPES = [(16, 16), (17, 33), (15, 40), (100, 64), (5, 40, 37), (33, 20, 50), (700, 300)]
DTYPES = ["float32", "float64", "int32", "int8", "uint16", "float16", "bool", "complex64"]


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transposes(shape, dtype):
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        x = jnp.asarray((rng.normal(size=shape) * 10).astype(dtype))
        row, column = jnp.arange(shape[-1]).astype(dtype), jnp.arange(shape[0]).astype(dtype)
        for f in (
            lambda x, row, column: x.T + column,
            lambda x, row, column: jnp.swapaxes(x, -1, -2),
            lambda x, row, column: (x + row).T,
            lambda x, row, column: jnp.moveaxis(x, 0, -1) + column,
            lambda x, row, column: jnp.where(x.T == x.T[:1], x.T, jnp.moveaxis(x, 0, -1).reshape(x.T.shape)),
        ):
            got, expected = jax.jit(f)(x, row, column), f(x, row, column)
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape, perm", [((4, 1, 30, 20), (0, 2, 3, 1)), ((1, 50), (1, 0)), ((7, 1, 9), (1, 0, 2))])
def test_axes_of_one_element_move_nothing(shape, perm):
    """What is stored and has its axes of one element elsewhere is no other array, and not copied."""
    x = np.random.default_rng(0).standard_normal(shape[1:]).astype("float32")
    f = lambda x: jnp.transpose(jnp.stack([x * k for k in range(1, shape[0] + 1)]), perm)
    program = jax.jit(f).lower(x).compile().as_text("program")
    assert " 0 bytes of temporaries" in program
    np.testing.assert_array_equal(jax.jit(f)(x), f(x))


SPREAD = {
    "rows times columns": (lambda np, x, b: x.T[:, :, None] * x.T[:, None, :], 2),
    "the same matrix of a batch": (lambda np, x, b: x.T[None] * b, 2),
    "sums of its rows": (lambda np, x, b: (x.T[None] * b).sum(-1), 2),
    "repeated": (lambda np, x, b: np.tile(x.T, (1, 9)), 2),
    "numbers for lanes": (lambda np, x, b: np.repeat(x.T, 40, 1), 1),
    "short rows": (lambda np, x, b: x.T[None, :, :3] * b[:, :, :3], 1),
    "a few times": (lambda np, x, b: x.T[None] * b[:3], 1),
}


@pytest.mark.parametrize("name", SPREAD)
def test_what_is_read_often_is_turned_once(name):
    f, launches = SPREAD[name]
    x, b = (np.random.default_rng(0).standard_normal(s, np.float32) for s in ((40, 40), (9, 40, 40)))
    compiled = jax.jit(lambda x, b: f(jnp, x, b)).lower(x, b).compile()
    np.testing.assert_allclose(compiled(x, b), f(np, x, b), rtol=1e-5, atol=1e-5)
    assert compiled.as_text("program").count("launch") == launches
