"""Rows that are fetched from memory before they are read."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import X86_64_V4
from catena.compiler.native import compile as compiler

FETCH = "call void @llvm.prefetch"
TO_FIRST_CACHE = ", i32 0, i32 3, i32 1)"
ROWS, WIDTH = 9000, 256  # nine megabytes of floats


def rows(t, i):
    return t[i]


def added(t, i):
    return t.at[i].add(jnp.sin(jnp.arange(i.size * t.shape[1], dtype=t.dtype)).reshape(i.size, t.shape[1]))


def text(f, *shapes):
    args = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return compiler.text_of(jax.make_jaxpr(f)(*args), machine=X86_64_V4)


def test_rows_at_computed_places_of_large_arrays_are_fetched():
    index = ((5000,), np.int32)
    for f in (rows, added):
        found = [line for line in text(f, ((ROWS, WIDTH), np.float32), index).splitlines() if FETCH in line]
        assert found and all(line.endswith(TO_FIRST_CACHE) for line in found)
        assert FETCH not in text(f, ((100, WIDTH), np.float32), index)  # it is in cache
        assert FETCH not in text(f, ((ROWS * WIDTH // 8, 8), np.float32), index)  # short ones
    assert FETCH not in text(lambda t: t * 2, ((ROWS, WIDTH), np.float32))  # what lies behind is fetched anyhow


@pytest.mark.share(3)
@pytest.mark.parametrize("width", [WIDTH, 250])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 1001])
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_values(width, count, mode):
    rng = np.random.default_rng(count)
    table = rng.normal(size=(ROWS, width)).astype(np.float32)
    index = rng.integers(-ROWS, ROWS, count).astype(np.int32)
    np.testing.assert_array_equal(jax.jit(rows)(table, index), table[index])
    beyond = index.copy()
    beyond[1::2] = 2 * ROWS
    taken = jax.jit(lambda t, i: t.at[i].get(mode=mode, fill_value=7))(table, beyond)
    expected = table[np.minimum(beyond, ROWS - 1)]
    if mode == "fill":
        expected[1::2] = 7
    np.testing.assert_array_equal(taken, expected)
    new = rng.normal(size=(count, width)).astype(np.float32)
    found = jax.jit(lambda t, i, x: t.at[i].add(x, mode=mode))(table, beyond, new)
    wanted = table.copy()
    for at, x in zip(beyond, new):
        if at < ROWS or mode == "clip":
            wanted[min(at, ROWS - 1)] += x
    np.testing.assert_array_equal(found, wanted)


def test_rows_whose_numbers_are_computed():
    table = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    first = np.random.default_rng(1).integers(0, 500, (40, 30)).astype(np.int32)
    second = np.random.default_rng(2).integers(0, ROWS, 500).astype(np.int32)
    found = jax.jit(lambda t, i, j: t[j[i]] * 2)(table, first, second)
    np.testing.assert_array_equal(found, table[second[first]] * 2)


def centred(x):
    """Two kernels read an array beyond the caches after its mean is known: one folds, one stores past the caches."""
    x = x - jnp.mean(x, axis=1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x**2, axis=1, keepdims=True))


def test_of_kernels_with_like_work_that_which_waits_for_its_stores_fetches_the_next_rows():
    functions = text(centred, ((9000, 1000), np.float32)).split("\ndefine ")
    (fetching,) = [f for f in functions if FETCH in f]
    assert "!nontemporal" in fetching


def test_values_of_rows_that_are_fetched():
    x = np.random.default_rng(0).normal(size=(8401, 1001)).astype(np.float32)  # rows that begin inside of lines
    found = np.asarray(jax.jit(centred)(x))
    wanted = x - x.mean(axis=1, keepdims=True, dtype=np.float64)
    wanted /= np.sqrt((wanted**2).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("sides", [(1, 1), (0, 0)])
def test_rows_between_those_of_a_pad(sides):
    """Before the first ones nothing is read: the loop there fetches nothing."""
    x = np.random.default_rng(0).normal(size=(ROWS // 4, 5, 200)).astype(np.float32)
    f = lambda x: lax.pad(x, np.float32(7), [(2, 0, 0), (0, 0, 1), (*sides, 0)])[:, :3]
    with jax.disable_jit():
        expected = f(x)
    np.testing.assert_array_equal(jax.jit(f)(x), expected)
