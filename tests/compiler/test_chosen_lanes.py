"""Rows shorter than a vector: elements of any size at computed places, folds of booleans, arrays made of nothing."""

import ml_dtypes
import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of
from catena.core.config import override
from catena.core.context import context

ROWS = 150
DTYPES = {"bool": bool, "uint8": np.uint8, "int16": np.int16, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16,
          "float32": np.float32, "float64": np.float64, "int64": np.int64}  # fmt: skip

unchecked = pytest.mark.skipif(context.check_bounds, reason="in checked mode, each element is read by itself")


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [2, 3, 7, 12, 16])
def test_elements_at_places_of_each_row(dtype, width):
    rng = np.random.default_rng(width)
    x = rng.integers(0, 2 if dtype == "bool" else 100, (ROWS, width)).astype(DTYPES[dtype])
    places = rng.integers(-width, width, x.shape, np.int32)
    with override("jax_enable_x64", True):
        got = jax.jit(lambda x, i: jnp.take_along_axis(x, i, 1))(x, places)
        np.testing.assert_array_equal(got, np.take_along_axis(x, places, 1))
        beyond = jax.jit(lambda x, i: jnp.take_along_axis(x, i, 1, mode="fill", fill_value=1))(x, places + 1)
        kept = np.where(places + 1 < width, np.take_along_axis(x, (places + 1) % width, 1), x.dtype.type(1))
        np.testing.assert_array_equal(beyond, kept)


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float16", "bfloat16"])
@pytest.mark.parametrize("start", range(5))
def test_small_elements_of_longer_rows(dtype, start):
    """Rows begin anywhere in a word of memory, so do arguments; some places lie beyond, some count from the end."""
    rng, count = np.random.default_rng(start), 131
    flat = rng.integers(0, 2 if dtype == "bool" else 100, start + 3 * count).astype(DTYPES[dtype])
    x, places = flat[start:].reshape(3, count), rng.integers(-150, 150, (3, 61), np.int32)
    inside = (places >= -count) & (places < count)
    taken = np.take_along_axis(x, np.where(inside, places, 0), 1)
    got = jax.jit(lambda x, i: jnp.take_along_axis(x, i, 1, fill_value=1))(x, places)
    np.testing.assert_array_equal(got, np.where(inside, taken, x.dtype.type(1)))
    flat_places = np.abs(places[0])
    np.testing.assert_array_equal(jax.jit(lambda x, i: x.ravel()[i])(x, flat_places), x.ravel()[flat_places])


@unchecked
def test_small_elements_are_gathered_by_words():
    taken = jax.make_jaxpr(lambda x, i: jnp.take_along_axis(x, i, 1))(
        jnp.ones((9, 999), bool), jnp.ones((9, 999), "int32")
    )
    text = text_of(taken, machine=X86_64_V4)
    assert "gather.v16i32" in text and "gather.v16i8" not in text


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [3, 7, 16])
def test_places_that_are_the_same_in_each_row(dtype, width):
    x = np.random.default_rng(width).integers(0, 2 if dtype == "bool" else 100, (ROWS, width)).astype(DTYPES[dtype])
    turned = lambda x, by: jnp.take_along_axis(x, (jnp.arange(width) + by) % width + jnp.zeros_like(x, "int32"), 1)
    with override("jax_enable_x64", dtype in ("float64", "int64")):
        for by in (0, 2, width + 1):
            np.testing.assert_array_equal(jax.jit(turned)(x, np.int32(by)), np.roll(x, -by, 1))


@pytest.mark.share(4)
@pytest.mark.parametrize("width", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_folds_of_truths(dtype, width):
    rng = np.random.default_rng(width)
    x, most = rng.integers(0, 2, (ROWS, width)).astype(DTYPES.get(dtype, np.int8)), rng.integers(0, 3, ROWS)
    with override("jax_enable_x64", dtype == "float64"):
        folds = jax.jit(lambda x: (jnp.all(x > 0, 1), jnp.any(x > 0, 1), jnp.sum(x > 0, 1), jnp.any(x != x[:, :1], 1)))
        expected = np.all(x > 0, 1), np.any(x > 0, 1), np.sum(x > 0, 1), np.any(x != x[:, :1], 1)
        for got, each in zip(folds(x), expected, strict=True):
            np.testing.assert_array_equal(got, each)
        chosen = jax.jit(lambda x, m: jnp.where((m > 1)[:, None], x, 1))(x, most)  # a truth that a row has one of
        np.testing.assert_array_equal(chosen, np.where((most > 1)[:, None], x, 1))


def test_lanes_are_chosen_and_no_bits_are_shuffled():
    x, places = jnp.ones((ROWS, 7), bool), jnp.ones((ROWS, 7), "int32")
    taken = jax.make_jaxpr(lambda x, i: jnp.take_along_axis(x, i, 1))(x, places)
    assert "vpermi2var" in (text := text_of(taken, machine=X86_64_V4)) or "permvar" in text
    folded = text_of(jax.make_jaxpr(lambda x: jnp.all(x > 0, 1))(jnp.ones((ROWS, 7))), machine=X86_64_V4)
    assert not [line for line in folded.splitlines() if "shufflevector" in line and "x i1>" in line]


def test_arrays_that_are_made_of_no_argument_stand_between_no_kernels():
    def attacked(q):
        rows = jnp.arange(8)
        gaps = jnp.abs(q[:, :, None] - q[:, None, :])
        return jnp.sum((gaps == 0) | (gaps == jnp.abs(rows[:, None] - rows)), (1, 2))

    q = np.random.default_rng(0).integers(0, 8, (ROWS, 8)).astype(np.int32)
    text = jax.jit(attacked).lower(q).compile().as_text("program")
    assert sum(line.split(":")[0].count(" x ") == 2 for line in text.splitlines() if "launch" in line) == 1
    gaps, rows = abs(q[:, :, None] - q[:, None]), np.arange(8)
    np.testing.assert_array_equal(attacked(q), np.sum((gaps == 0) | (gaps == abs(rows[:, None] - rows)), (1, 2)))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32"])
@pytest.mark.parametrize("size", [3, 30, 128, 256])
def test_small_tables(dtype, size):
    rng = np.random.default_rng(size)
    table = rng.integers(0, 2 if dtype == "bool" else 100, size).astype(DTYPES.get(dtype, np.int32))
    x = rng.integers(0, 256, 3001).astype(np.uint8)
    looked_up = jax.jit(lambda t, x: (t[x], t[x.astype("int32") - 128], jnp.take(t, x, mode="wrap"), t[x].max()))
    found = looked_up(table, x)
    places = np.minimum(x, size - 1), x.astype(int) - 128, x.astype(int) % size
    places = places[0], np.clip(np.where(places[1] < 0, places[1] + size, places[1]), 0, size - 1), places[2]
    for got, at in zip(found, places):
        np.testing.assert_array_equal(got, table[at])
    assert found[3] == table[places[0]].max()


@unchecked
def test_a_table_of_bytes_is_four_vectors():
    x = np.zeros((64, 100), np.uint8)
    traced = jax.make_jaxpr(lambda t, x: t[x])(np.zeros(256, np.uint8), x)
    text = text_of(traced, machine=X86_64_V4._replace(features=X86_64_V4.features | {"avx512vbmi"}))
    assert text.count("call <64 x i8> @llvm.x86.avx512.vpermi2var.qi.512") == 2
    assert "masked.gather" not in text


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("size", [40, 64, 129])
def test_rows_of_a_few_vectors_are_tables(dtype, size):
    rng = np.random.default_rng(size)
    x = rng.integers(0, 2 if dtype == "bool" else 100, (37, size)).astype(DTYPES[dtype])
    places = rng.integers(-size, size, (37, 33), np.int32)
    found = jax.jit(
        lambda x, i: (jnp.take_along_axis(x, i, 1), jnp.take_along_axis(x, i + 1, 1, mode="fill", fill_value=1))
    )
    got, beyond = found(x, places)
    np.testing.assert_array_equal(got, np.take_along_axis(x, places, 1))
    kept = np.take_along_axis(x, (places + 1) % size, 1)
    np.testing.assert_array_equal(beyond, np.where(places + 1 < size, kept, x.dtype.type(1)))


@pytest.mark.skipif(context.check_bounds, reason="checked mode reads each element where it is checked")
def test_bytes_of_a_row_are_no_gather():
    traced = jax.make_jaxpr(lambda x, i: jnp.take_along_axis(x, i, 1))(
        np.zeros((50, 64), np.int16), np.zeros((50, 64), np.int32)
    )
    text = text_of(traced, machine=X86_64_V4)
    assert "llvm.x86.avx512.vpermi2var.hi.512" in text
    assert "masked.gather" not in text
