"""Lanes that read at the same computed places of several rows: columns by an index vector."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import ICE_LAKE, X86_64_V3, X86_64_V4
from catena.compiler.native.compile import text_of
from catena.core.context import context

RNG = np.random.default_rng(0)
WIDTHS = (7, 16, 31, 33, 100)  # of rows: in one vector, in two, and longer ones


def operands(columns, taken=None, rows=37, dtype=np.float32):
    x = RNG.standard_normal((rows, columns)).astype(dtype)
    return x, RNG.integers(-columns, columns, columns if taken is None else taken).astype(np.int32)


@pytest.mark.parametrize("columns", WIDTHS)
def test_columns_by_an_index_vector(columns):
    x, i = operands(columns)
    np.testing.assert_array_equal(jax.jit(lambda x, i: x[:, i] * 2)(x, i), x[:, i] * 2)


@pytest.mark.parametrize("columns", WIDTHS)
def test_columns_that_may_not_be_there(columns):
    x, i = operands(columns)
    i[::3] += 2 * columns
    expected = np.where(i < columns, x[:, np.clip(i, -columns, columns - 1)], np.nan)
    np.testing.assert_array_equal(jax.jit(lambda x, i: jnp.take(x, i, axis=1))(x, i), expected)
    np.testing.assert_array_equal(jax.jit(lambda x, i: jnp.take(x, i, axis=1))(x, i % columns), x[:, i % columns])


@pytest.mark.parametrize("places", [[100, 101, 99], [-1000] * 4])
@pytest.mark.parametrize("columns", [8, 12, 24])
def test_columns_none_of_which_is_there(columns, places):
    """As is known before: between the bounds of what is read, nothing lies."""
    x = operands(columns)[0]
    found = jax.jit(lambda x: jnp.take(x, jnp.asarray(places), axis=1))(x)
    np.testing.assert_array_equal(found, np.full((len(x), len(places)), np.nan))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float16", "float64", "int64"])
def test_columns_of_other_types(dtype):
    with jax.enable_x64(True):
        x, i = operands(20, 90, dtype=dtype)
        np.testing.assert_array_equal(jax.jit(lambda x, i: x[:, i])(x, i), x[:, i])


def test_members_rows_that_threads_share_and_gradients():
    x, i = operands(50, rows=9000)
    np.testing.assert_array_equal(jax.jit(lambda x, i: -x[:, i])(x, i), -x[:, i])
    x = x[:6000].reshape(3, 2000, 50)
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x, i: x[:, i], (0, None)))(x, i), x[:, :, i])
    got = jax.jit(jax.grad(lambda x, i: jnp.sum(x[:, i] ** 2)))(x[0], i)
    np.testing.assert_allclose(got, 2 * x[0] * np.bincount(i % 50, minlength=50), rtol=1e-6)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, texts compare places too")
def test_places_are_taken_apart_once():
    taken = lambda x, i: x[:, i]
    long, short = (jax.make_jaxpr(taken)(*operands(n)) for n in (100, 16))
    text = text_of(long, machine=X86_64_V4)
    assert " = call <16 x float> @llvm.masked.gather" not in text
    assert [text.count(f"extractelement <{n} x i32>") for n in (16, 4)] == [16, 4]  # lanes, and the rest of a row
    assert "avx512.permvar" in text_of(short, machine=X86_64_V4)
    assert "avx2.permps" in text_of(short, machine=X86_64_V3)


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, texts compare places too")
def test_functions_of_elements_at_shared_places_are_written_for_fewer_rows():
    """Each row at once is the text of the function once more, which takes LLVM longer than its places."""
    functions = lambda f: text_of(jax.make_jaxpr(lambda x, i: f(x[:, i]))(*operands(100)), machine=X86_64_V4)
    called = lambda text, name: text.count(f"call <16 x float> @catena.{name}.f32x16")
    assert [called(functions(f), f.__name__) for f in (jnp.sin, jnp.tanh)] == [4, 4]
    assert functions(lambda x: x * x).count("fmul <16 x float>") == 8


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "bfloat16"])
def test_elements_far_apart(dtype):
    x = jnp.asarray(np.random.default_rng(0).integers(-9, 9, 3000), dtype)
    for step in (7, 19, -9):
        found = jax.jit(lambda x: x[::step] + x[::step])(x)
        np.testing.assert_array_equal(np.asarray(found, "float64"), 2 * np.asarray(x, "float64")[::step])


@pytest.mark.share(5)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "bfloat16", "float16"])
@pytest.mark.parametrize("width", [9, 70])
def test_folds_of_small_elements_at_shared_places(dtype, width):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(0, 2 if dtype == "bool" else 90, (700, width))).astype(dtype)
    for shape in ((40, 3), (60,), (2, 5, 4)):
        i = jnp.asarray(rng.integers(-width, width, shape))
        for fold in (jnp.max, jnp.min, jnp.any, jnp.all, jnp.argmax):
            got = jax.jit(lambda x, i: fold(x[:, i], axis=-1))(x, i)
            np.testing.assert_array_equal(np.asarray(got), np.asarray(fold(x[:, i], axis=-1)))
    flips = jnp.asarray(rng.random((40, 3)) < 0.5)
    i = jnp.asarray(rng.integers(0, width, (40, 3)))
    held = jax.jit(lambda x: jnp.all(jnp.any((x[:, i] > 0) ^ flips, -1), -1))(x)
    np.testing.assert_array_equal(held, np.all(np.any((np.asarray(x)[:, i] > 0) ^ flips, -1), -1))


def test_small_elements_are_read_before_they_are_folded():
    rows, i = np.zeros((700, 70), np.int8), np.zeros((40, 3), np.int32)
    program = lambda x, i: jnp.max(x[:, i], axis=-1)
    nests = jax.jit(program).lower(rows, i).compile().as_text("nests").split("\n\n")
    reading, folding = (nest for nest in nests if "int8" in nest)
    assert "at once" in reading and "fold" not in reading
    assert "fold max" in folding


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "bfloat16"])
@pytest.mark.parametrize("low, high", [(0, 63), (0, 64), (150, 200), (130, 257), (1, 31), (200, 231)])
def test_small_elements_between_bounds(dtype, low, high):
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.integers(0, 2 if dtype == "bool" else 90, (41, 300))).astype(dtype)
    i = np.concatenate([[low, high], rng.integers(0, 300, 67)])
    got = jax.jit(lambda x, i: x[:, jnp.clip(i, low, high)])(x, i)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(x)[:, np.clip(i, low, high)])


@pytest.mark.skipif(context.check_bounds, reason="in checked mode, texts compare places too")
def test_lanes_of_small_elements_are_chosen():
    machine = ICE_LAKE._replace(features=ICE_LAKE.features | {"avx512vbmi"})
    for dtype, chosen, of in (
        ("bool", "permvar.qi", machine),
        ("int8", "permvar.qi", machine),
        ("int16", "permvar.hi", X86_64_V4),
    ):
        traced = jax.make_jaxpr(lambda x, i: x[:, i])(np.zeros((41, 30), dtype), np.zeros(70, np.int32))
        assert f"llvm.x86.avx512.{chosen}.512" in text_of(traced, machine=of)
        assert "permvar" not in text_of(traced, machine=X86_64_V3)
