"""Sums of what is spread and multiplied, as matrices are multiplied by broadcasting: they are products."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp

DRAW = np.random.default_rng(0).standard_normal
PRODUCTS = {
    "of columns": (lambda x, y: (x[:, :, None] * y[:, None]).sum(0), [(300, 32), (300, 40)]),
    "of rows and columns": (lambda x, y: (x[:, :, None] * y[None]).sum(1), [(100, 64), (64, 50)]),
    "of rows": (lambda x, y: jnp.sum(x[:, None] * y, axis=-1), [(100, 64), (50, 64)]),
    "the other way round": (lambda x, y: jnp.sum(x[None] * y[:, None], axis=-1), [(100, 64), (50, 64)]),
    "in a batch": (lambda x, y: jnp.sum(x[:, :, :, None] * y[:, None], axis=2), [(700, 8, 8), (700, 8, 8)]),
    "in a batch behind": (lambda x, y: jnp.sum(x[:, None] * y, axis=2), [(40, 30, 9), (50, 30, 9)]),
    "of two dimensions": (lambda x, y: (x[..., None] * y[:, :, None]).sum((0, 1)), [(20, 20, 30), (20, 20, 40)]),
    "a mean": (lambda x, y: jnp.mean(x[:, :, None] * y[:, None], 0), [(300, 32), (300, 40)]),
}
OTHERS = {
    "small": (lambda x, y: (x[:, :, None] * y[:, None]).sum(0), [(30, 3), (30, 4)]),
    "of what is not shared": (lambda x, y: (x[:, :, None] * y[:, None]).sum(1), [(300, 32), (300, 40)]),
    "of a vector": (lambda x, y: (x * y[:, None]).sum(0), [(3000, 200), (3000,)]),
    "beside what neither has": (lambda x, y: (x[:, :, None, None] * y[:, None, :, None] + jnp.zeros(3)).sum((0, 3)),
                                [(300, 32), (300, 40)]),
    "not multiplied": (lambda x, y: (x[:, :, None] + y[:, None]).sum(0), [(300, 32), (300, 40)]),
    "a maximum": (lambda x, y: (x[:, :, None] * y[:, None]).max(0), [(300, 32), (300, 40)]),
}  # fmt: skip


def operands(shapes: list, dtype: str) -> list:
    return [DRAW(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32"])
@pytest.mark.parametrize("name", [*PRODUCTS, *OTHERS])
def test_numbers(name, dtype):
    f, shapes = (PRODUCTS | OTHERS)[name]
    with jax.enable_x64(dtype == "float64"):
        xs = [jnp.asarray(4 * DRAW(shape), dtype) for shape in shapes]
        got, expected = jax.jit(f)(*xs), f(*xs)
    assert got.dtype == expected.dtype
    rtol = {"float64": 1e-11, "bfloat16": 0.05}.get(dtype, 1e-4)
    got, expected = (np.asarray(v, np.float64) for v in (got, expected))
    np.testing.assert_allclose(got, expected, rtol, rtol * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_they_are_products(name, dtype):
    f, shapes = PRODUCTS[name]
    with jax.enable_x64(dtype == "float64"):
        assert " dot " in jax.jit(f).lower(*operands(shapes, dtype)).as_text()


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_are_not(name):
    f, shapes = OTHERS[name]
    assert " dot " not in jax.jit(f).lower(*operands(shapes, "float32")).as_text()


def test_gradients():
    x, y = operands([(300, 32), (300, 40)], "float32")
    loss = lambda x, y: jnp.sum(jnp.tanh((x[:, :, None] * y[:, None]).mean(0)))
    expected = jax.grad(lambda x, y: jnp.sum(jnp.tanh(x.T @ y / 300)), (0, 1))(x, y)
    for a, b in zip(jax.jit(jax.grad(loss, (0, 1)))(x, y), expected, strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-6)


def test_what_is_infinite_reaches_its_row_and_column():
    x, y = operands([(300, 32), (300, 40)], "float32")
    x[7, 3], y[5, 2] = np.inf, np.nan
    got = np.asarray(jax.jit(PRODUCTS["of columns"][0])(x, y))
    assert np.isinf(np.delete(got[3], 2)).all() and np.isnan(got[:, 2]).all()
    assert np.isfinite(np.delete(np.delete(got, 3, 0), 2, 1)).all()
