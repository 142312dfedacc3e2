"""Rows that a few vectors hold are folded as when each is alone, however many are joined at once."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.emit import joins
from catena.core.config import override


@pytest.fixture(autouse=True)
def few_rows_are_joined(monkeypatch):
    monkeypatch.setattr(joins, "FEWEST_ROWS", 1)


ROWS, LENGTHS = (1, 4, 15, 16, 17, 40), (17, 32, 70)
FOLDS = {
    "sum": lambda x: jnp.sum(x, 1),
    "product": lambda x: jnp.prod(1 + x / 8, 1),
    "sum of squares": lambda x: jnp.sum(x * x, 1),
    "extremes": lambda x: (jnp.max(x, 1), jnp.min(x, 1)),
    "extremes side by side": lambda x: (jnp.stack([jnp.max(x, 1), jnp.min(x, 1)], 1), jnp.min(x, 1) + 1),
    "places": lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 1)),
    "several": lambda x: (jnp.sum(x, 1), jnp.max(x, 1), jnp.any(x > 2, 1), jnp.sum(x > 0, 1)),
    "softmax": lambda x: jax.nn.softmax(x, 1),
    "of the middle": lambda x: jnp.sum(x[:, :, None] * jnp.arange(1.0, 3.0, dtype=x.dtype), 1),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "uint8"])
@pytest.mark.parametrize("name", FOLDS)
def test_rows_have_the_bits_of_rows_alone(name, dtype):
    with override("jax_enable_x64", dtype == "float64"):
        for length in LENGTHS:
            x = jnp.asarray(np.random.default_rng(length).normal(size=(max(ROWS), length)) * 3).astype(dtype)
            f = jax.jit(FOLDS[name])
            alone = [jax.tree.leaves(f(x[k : k + 1])) for k in range(4)]
            for rows in ROWS:
                got = jax.tree.leaves(f(x[:rows]))
                for k, each in enumerate(alone[:rows]):
                    for g, y in zip(got, each, strict=True):
                        assert g[k : k + 1].tobytes() == y.tobytes(), (rows, length, k)


@pytest.mark.parametrize("rows", [16, 37])
def test_what_is_folded_is_what_numpy_finds(rows):
    x = np.random.default_rng(rows).integers(-9, 9, (3, rows, 24)).astype(np.float32)
    x[:, ::3, ::5] = -0.0
    for name in ("sum", "max", "min", "argmax", "argmin"):
        f = jax.jit(lambda x, name=name: getattr(jnp, name)(x[:, :, 1:], 2))
        np.testing.assert_array_equal(f(x), getattr(np, name)(x[:, :, 1:], 2))


def test_nothing_is_written_behind_the_last_row():
    """Of the last rows, which are fewer than lanes, some are there."""
    for rows in range(16, 33):
        x = np.arange(rows * 20, dtype=np.float32).reshape(rows, 20)
        first, last = jax.jit(lambda x: (jnp.max(x, 1), jnp.min(x, 1)))(x)
        np.testing.assert_array_equal(first, x[:, -1])
        np.testing.assert_array_equal(last, x[:, 0])
        joined = jax.jit(lambda x: jnp.concatenate([jnp.max(x, 1), jnp.full(40, 5.0)]))(x)
        np.testing.assert_array_equal(joined[rows:], 5)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("signs", [(1,), (-1,), (1, -1)])
def test_extremes_of_rows_with_nan_infinities_and_zeros(dtype, signs):
    rng = np.random.default_rng(len(signs))
    special = np.array([s * v for s in signs for v in (0, 1, np.inf, np.nan)])
    x = rng.choice(special, (45, 21), p=np.array([*[3, 3, 3, 0.3] * len(signs)]) / 9.3 / len(signs)).astype(dtype)
    greatest, least = jax.jit(lambda x: (jnp.max(x, 1), jnp.min(x, 1)))(x)
    np.testing.assert_array_equal(greatest, np.max(x, 1))
    np.testing.assert_array_equal(least, np.min(x, 1))
    zeros = [(x == 0).any(1) & (v == 0) for v in (greatest, least)]
    assert np.all(np.signbit(greatest)[zeros[0]] == ((x == 0) <= np.signbit(x)).all(1)[zeros[0]])
    assert np.all(np.signbit(least)[zeros[1]] == ((x == 0) & np.signbit(x)).any(1)[zeros[1]])
