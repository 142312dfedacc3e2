"""Joins, pads, tiles and parts of rows of a few elements: lanes lie along the rows, columns are read and written by
whole vectors; what is only moved is moved by larger units.
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of

DTYPES = ("uint8", "int16", "float16", "bfloat16", "float32", "bool")


def cross(np, x, y):
    (a, b, c), (d, e, f) = (tuple(v[:, k] for k in range(3)) for v in (x, y))
    return np.stack([b * f - c * e, c * d - a * f, a * e - b * d], 1)


PROGRAMS = {  # of rows x, y of three, and z of four
    "homogeneous": lambda np, x, y, z: np.concatenate([x, np.ones((len(x), 1), x.dtype)], 1),
    "a column and rows": lambda np, x, y, z: np.concatenate([x[:, :1], y], 1),
    "equal rows": lambda np, x, y, z: np.concatenate([z, z], 1),
    "rows of two": lambda np, x, y, z: np.concatenate([z[:, 2:], x[:, :2]], 1),
    "many": lambda np, x, y, z: np.concatenate([x, y[:, :2], x[:, 2:]], 1),
    "columns": lambda np, x, y, z: np.stack([x[:, 2], y[:, 0], z[:, 3]], 1),
    "rolled": lambda np, x, y, z: np.roll(x, 1, 1),
    "a pad": lambda np, x, y, z: np.pad(x, ((0, 0), (1, 2))),
    "a pad of ones": lambda np, x, y, z: np.pad(x, ((1, 0), (0, 1)), constant_values=x.dtype.type(1)),
    "tiles": lambda np, x, y, z: np.tile(x, (1, 3)),
    "larger tiles": lambda np, x, y, z: np.tile(z, (1, 4)),
    "repeated": lambda np, x, y, z: np.repeat(x, 2, 1),
    "spread": lambda np, x, y, z: np.broadcast_to(x[:, None], (len(x), 2, 3)),
    "spread and scaled": lambda np, x, y, z: x[:, None] * y[:, :2, None],
    "parts": lambda np, x, y, z: (x[:, 0], x[:, 2], z[:, 1], z[:, 2]),
    "every second": lambda np, x, y, z: x[::2],
    "products of columns": lambda np, x, y, z: cross(np, x, y) if x.dtype != bool else x,
}


def given(dtype, rows):
    rng = np.random.default_rng(rows)
    return [
        (rng.integers(0, 100, (rows, n)) % (2 if dtype == "bool" else 100)).astype(jnp.dtype(dtype)) for n in (3, 3, 4)
    ]


@pytest.mark.parametrize(("dtype", "rows"), [*((dtype, 203) for dtype in DTYPES), ("uint8", 7), ("float32", 64)])
def test_rows_of_a_few_elements(dtype, rows):
    xs = given(dtype, rows)
    found = jax.jit(lambda *xs: {name: f(jnp, *xs) for name, f in PROGRAMS.items()})(*xs)
    for name, f in PROGRAMS.items():
        for got, exact in zip(*map(jax.tree.leaves, (found[name], f(np, *xs)))):
            np.testing.assert_array_equal(np.asarray(got), exact, err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 10), (4, 16), (2, 8), (7, 40), (12, 9), (4, 67)])
def test_small_matrices_that_are_transposed(dtype, shape):
    """Alone, and computed with, of elements that are not equal to their neighbours'."""
    n = 5 * shape[0] * shape[1]
    x = (np.arange(n).reshape(5, *shape) * 7 % (2 if dtype == "bool" else 61)).astype(jnp.dtype(dtype))
    turned = x.transpose(0, 2, 1)
    found = jax.jit(lambda x, y: (x.transpose(0, 2, 1), jnp.maximum(x.transpose(0, 2, 1), y)))(x, turned[::-1])
    for got, exact in zip(found, (turned, np.maximum(turned, turned[::-1]))):
        np.testing.assert_array_equal(np.asarray(got), exact)


def test_arguments_that_are_given_up_and_rows_that_threads_share():
    x = np.random.default_rng(1).integers(0, 256, (200_003, 3), np.uint8)
    f = lambda x: jnp.concatenate([x[:, ::-1], jnp.full((len(x), 1), 255, jnp.uint8)], 1)
    exact = np.concatenate([x[:, ::-1], np.full((len(x), 1), 255, np.uint8)], 1)
    np.testing.assert_array_equal(jax.jit(f)(x), exact)
    update = lambda x: x.at[:, 0].set(x[:, 2]).at[:, 2].set(x[:, 0])
    np.testing.assert_array_equal(jax.jit(update, donate_argnums=0)(jnp.asarray(x)), x[:, ::-1])


def test_what_is_moved_keeps_its_bits():
    """Of floats that are no numbers, too, which conversions would make others of."""
    bits = np.arange(0x7C00, 0x7C00 + 600, dtype=np.uint16).reshape(200, 3)
    moved = jax.jit(lambda x: jnp.concatenate([x, x[:, :1]], 1))(bits.view(np.float16))
    np.testing.assert_array_equal(np.asarray(moved).view(np.uint16), np.concatenate([bits, bits[:, :1]], 1))


def test_how_columns_are_written():
    x, z = np.zeros((5000, 3), np.uint8), np.zeros((5000, 2), np.float16)
    written = lambda f, *xs: text_of(jax.make_jaxpr(f)(*xs), machine=X86_64_V4)
    joined = written(lambda x: jnp.concatenate([x, jnp.full((5000, 1), 255, jnp.uint8)], 1), x)
    padded = written(lambda x: jnp.pad(x, ((0, 0), (0, 1))), x)
    tiled = written(lambda x: jnp.tile(x, (1, 2)), x)
    stacked = written(lambda x: jnp.stack([x[:, 0], x[:, 1] + 1, x[:, 0] + x[:, 2]], 1), x)
    for text, stores in ((joined, 4), (padded, 4), (tiled, 6), (stacked, 3)):
        assert text.count("store <64 x i8>") == stores
        assert "masked.scatter" not in text and "masked.gather" not in text
    turned = written(lambda x: x.transpose(0, 2, 1), np.zeros((100, 4, 16), np.float16))
    assert turned.count("store <16 x i16>") == 4 and "extractelement" not in turned
    assert "<16 x i32>" in written(lambda z: jnp.tile(z, (1, 4)), z)  # two halves are one unit


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "float32", "int32"])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_columns_that_are_folded(dtype, n):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 100, (60, 60, n)).astype(dtype)
    y = x.copy()
    if x.dtype.kind == "f":
        y[7, 9, 1], y[20, 0, 0] = np.nan, np.inf
    folds = lambda np, x, y: (
        np.max(x, (0, 1)), np.min(y, (0, 1)), np.max(y[0], 0), np.any(x > 98, (0, 1)), np.all(x >= 0, (0, 1)),
        np.sum(x > 50, (0, 1), dtype="int32"), np.sum(x.astype("int32"), (0, 1), dtype="int32"),
    )  # fmt: skip
    for got, exact in zip(jax.jit(lambda x, y: folds(jnp, x, y))(x, y), folds(np, x, y), strict=True):
        np.testing.assert_array_equal(np.asarray(got), exact)


def test_folded_columns_are_read_by_whole_vectors():
    text = text_of(jax.make_jaxpr(lambda x: jnp.max(x, (0, 1)))(np.zeros((64, 64, 3), np.uint8)), machine=X86_64_V4)
    assert "load <64 x i8>" in text
    assert "<3 x i8>" not in text
