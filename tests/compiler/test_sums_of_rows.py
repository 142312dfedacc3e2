"""Rows that are added to zeros at computed places: each row of the result is the sum of a run of updates, in order."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native import compile as compiler

COUNT, WIDTH = 2100, 256  # two megabytes of floats
SORTS = "@catena_network"


def added(index, x, rows, mode=None):
    return jnp.zeros((rows, *x.shape[index.ndim :]), x.dtype).at[index].add(x, mode=mode)


def drawn(dtype, rows, low=None):
    rng = np.random.default_rng(rows)
    x = (100 * rng.normal(size=(COUNT, WIDTH))).astype(dtype)
    return x, rng.integers(-rows if low is None else low, rows, COUNT).astype(np.int32)


def added_one_by_one(index, x, rows):
    out = np.zeros((rows, *x.shape[index.ndim :]), x.dtype)
    np.add.at(out, index, x)
    return out


@pytest.mark.share(2)
@pytest.mark.parametrize("rows", [80, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_updates_of_a_row_are_added_in_their_order(rows, dtype):
    x, index = drawn(dtype, rows)
    with jax.enable_x64(dtype == np.float64):
        found = jax.jit(added, static_argnums=2)(index, x, rows)
    np.testing.assert_array_equal(found, added_one_by_one(index, x, rows), strict=True)


def test_what_is_beyond():
    rows = 900
    x, index = drawn(np.float32, rows, low=0)
    index[::3] += 2 * rows
    dropped = jax.jit(added, static_argnums=2)(index, x, rows)
    np.testing.assert_array_equal(dropped, added_one_by_one(index[index < rows], x[index < rows], rows))
    clipped = jax.jit(lambda i, x: added(i, x, rows, "clip"))(index, x)
    np.testing.assert_array_equal(clipped, added_one_by_one(np.minimum(index, rows - 1), x, rows))


def test_indices_and_rows_of_several_dimensions():
    x, index = drawn(np.float32, 5000)
    index, x = index.reshape(30, 70), x.reshape(30, 70, 16, 16)
    np.testing.assert_array_equal(jax.jit(added, static_argnums=2)(index, x, 5000), added_one_by_one(index, x, 5000))
    narrow = np.abs(index).astype(np.uint8)  # whose type knows no row beyond
    wanted = added_one_by_one(narrow, x, 5000)
    np.testing.assert_array_equal(jax.jit(added, static_argnums=2)(narrow, x, 5000), wanted)


def test_no_rows_at_all():
    x, index = drawn(np.float32, 10)
    assert jax.jit(added, static_argnums=2)(index, x, 0).shape == (0, WIDTH)
    assert jax.jit(added, static_argnums=2)(np.abs(index).astype(np.uint8), x, 0).shape == (0, WIDTH)


def test_the_gradient_of_a_table():
    table, index = drawn(np.float32, COUNT)
    found = jax.jit(jax.grad(lambda t: jnp.sum(t[index] * table)))(table)
    np.testing.assert_array_equal(found, added_one_by_one(index, table, COUNT))


def test_bits_do_not_depend_on_whether_zeros_are_known_to_be_so_or_on_threads(monkeypatch):
    x, index = drawn(np.float32, 80)
    known = np.asarray(jax.jit(added, static_argnums=2)(index, x, 80))
    told = jax.jit(lambda z, i, x: z.at[i].add(x))(jnp.zeros((80, WIDTH)), index, x)
    np.testing.assert_array_equal(known.view(np.int32), np.asarray(told).view(np.int32))
    monkeypatch.setenv("CATENA_NUM_THREADS", "1")
    jax.clear_caches()
    alone = jax.jit(added, static_argnums=2)(index, x, 80)
    np.testing.assert_array_equal(known.view(np.int32), np.asarray(alone).view(np.int32))


def test_negative_zeros_stay():
    x, index = np.full((COUNT, WIDTH), -0.0, np.float32), np.arange(COUNT, dtype=np.int32)
    found = jax.jit(lambda i, x: jnp.full((COUNT + 1, WIDTH), -0.0).at[i].add(x))(index, x)
    assert np.signbit(found).all()
    assert not np.signbit(jax.jit(added, static_argnums=2)(index, x, COUNT + 1)).any()


def test_rows_are_written_once_past_the_caches_and_updates_are_fetched_before():
    def text(rows, count, width):
        shapes = (jax.ShapeDtypeStruct(s, t) for s, t in (((count,), "int32"), ((count, width), "float32")))
        jaxpr = jax.make_jaxpr(lambda i, x: jnp.zeros((rows, width)).at[i].add(x))(*shapes)
        return compiler.text_of(jaxpr, machine=X86_64_V4)

    large = text(40_000, 20_000, WIDTH)
    assert "!nontemporal" in large and "@llvm.prefetch" in large and SORTS in large
    assert "!nontemporal" not in text(40_000, 20_000, WIDTH - 1)  # whose rows begin inside of lines
    near = text(400, 3000, WIDTH)
    assert "!nontemporal" not in near and "@llvm.prefetch" not in near and SORTS in near
    for rows, count, width in ((400, 300, WIDTH), (400, 300_000, 8), (400, 1000, 8000)):  # few rows, or short ones
        assert SORTS not in text(rows, count, width)
