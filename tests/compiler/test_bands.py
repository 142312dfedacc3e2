"""Reductions over rows that lie far apart, in bands."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run as interpret
from catena.compiler.native.compile import program_of

SHAPES = {"bands and a rest": ((1003, 600), 0), "members": ((3, 256, 900), 1), "two kept": ((720, 3, 300), 0)}
SHAPES |= {"lines that are shared": ((40_001, 33), 0)}


def data(shape):
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def text(f, *args):
    return jax.jit(f).lower(*args).compile().as_text("program")


def together(x, axis):
    """Several folds of one operand, one of which knows where its rows are."""
    place = jnp.arange(x.shape[axis], dtype=x.dtype).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    return jnp.sum(x * place, axis), jnp.max(x, axis), jnp.argmin(x, axis), jnp.any(x > 3, axis)


@pytest.mark.parametrize("case", SHAPES)
def test_folds_in_bands(case):
    shape, axis = SHAPES[case]
    x = data(shape)
    x[(2,) * x.ndim] = np.nan
    got = jax.jit(together, static_argnums=1)(x, axis)
    place = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(x.ndim)])
    total = np.sum(x.astype(np.float64) * place, axis)
    np.testing.assert_allclose(got[0], total, rtol=1e-5, atol=2e-5 * np.nansum(np.abs(x * place), axis).max())
    for found, expected in zip(got[1:], (np.max(x, axis), np.argmin(x, axis), np.any(x > 3, axis)), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_which_reductions_are_taken_in_bands():
    shape, axis = SHAPES["bands and a rest"]
    summed = lambda x: jnp.sum(x, axis)
    assert "31 x 600 x 32*: sum" in text(summed, data(shape)) and "600 x 11*: sum" in text(summed, data(shape))
    assert " x 32*" not in text(summed, data((300, 600)))  # it stays in a cache
    assert " x 32*" not in text(summed, data((100_000, 32)))  # rows lie side by side
    assert " x 30 x 32*" in text(summed, data((100_000, 30)))  # and share lines
    assert " x 32*" not in text(lambda x: jnp.sum(x, 1), data(shape))  # a row is summed along the lanes


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "int32"])
def test_bands_of_other_types(dtype):
    x = jnp.asarray(100 * data((1003, 1100))).astype(dtype)
    fold, reference = (jnp.max, np.max) if dtype == "bfloat16" else (jnp.sum, np.sum)
    got = jax.jit(lambda x: fold(x, 0))(x)
    expected = reference(np.asarray(x), 0)
    np.testing.assert_allclose(np.asarray(got), expected, rtol=0 if dtype != "complex64" else 1e-4, atol=0.05)


IN_TURN = {"all": np.all, "any": np.any, "max": np.max, "sum": np.sum, "bitwise_xor": np.bitwise_xor.reduce}


@pytest.mark.share(2)
@pytest.mark.parametrize("rows", [1024, 1024 + 63, 6400])
@pytest.mark.parametrize("name", IN_TURN)
def test_rows_shorter_than_a_vector_are_folded_in_turn(name, rows):
    rng = np.random.default_rng(rows)
    truths = {"all": True, "any": False}
    x = rng.integers(-99, 99, (rows, 11), "int8") if name not in truths else np.full((rows, 11), truths[name])
    f = {"sum": lambda x: jnp.sum(x, 0, dtype="int8"), "bitwise_xor": jnp.bitwise_xor.reduce}.get(name)
    f, g = jax.jit(f or (lambda x: getattr(jnp, name)(x, 0))), IN_TURN[name]
    expected = g(x, 0, dtype="int8") if name == "sum" else g(x, 0)
    np.testing.assert_array_equal(f(x), expected)
    for row, column in ((0, 3), (rows - 1, 0), (rows // 2, 10)):  # each of which tells
        y = x.copy()
        y[row, column] = not truths[name] if name in truths else 127
        np.testing.assert_array_equal(f(y), g(y, 0, dtype="int8") if name == "sum" else g(y, 0))


def test_which_rows_are_folded_in_turn():
    of = lambda f, rows, dtype: text(lambda x: f(x, 0), np.zeros((rows, 7), dtype))  # noqa: E731
    assert "64 x 7 x 20*: max" in of(jnp.max, 1280, np.uint8)
    assert "64 x 7 x 20*: max" in of(jnp.max, 1300, np.uint8) and "launch 7 x 20*: max" in of(jnp.max, 1300, np.uint8)
    assert "launch 7 x 1000*: max" in of(jnp.max, 1000, np.uint8)  # few rows
    assert "64 x" not in of(jnp.max, 1280, np.float32)  # a good part of a vector is full
    assert "64 x" not in of(jnp.sum, 1280, np.float32)  # whose order tells


def test_the_null_device_folds_bands():
    x = data((1003, 600))
    made = jax.make_jaxpr(lambda x: (jnp.sum(x, 0), jnp.argmax(x, 0)))(x)
    total, place = interpret(program_of(made), [x])
    np.testing.assert_allclose(total, np.sum(x.astype(np.float64), 0), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(place, np.argmax(x, 0))


def test_sums_beside_what_is_stored():
    """A softmax along columns: the exponentials of a band of rows are stored, and added up to a row of its own."""
    f = lambda x: jax.nn.softmax(x, 0)  # noqa: E731
    x = np.random.default_rng(3).standard_normal((1001, 1003)).astype("float32")
    text = jax.jit(f).lower(x).compile().as_text("nests")
    assert any("reduce i0<32" in nest and "fold sum" in nest and "exp" in nest for nest in text.split("\n\n"))
    e = np.exp(x.astype("float64") - x.max(0))
    np.testing.assert_allclose(jax.jit(f)(x), e / e.sum(0), rtol=3e-6)


@pytest.mark.parametrize("cut", [1, 5_000, 75_000, 16_384 * 3, 149_999])
def test_bands_end_where_what_is_read_changes(cut):
    """Of a concatenation, a band lies in one part, but for those that a seam goes through: the others ask nothing."""
    f = lambda x, y: jnp.sum(jnp.abs(jnp.concatenate([x, y])))  # noqa: E731
    x = data(150_000)
    got = jax.jit(f)(x[:cut], x[cut:])
    np.testing.assert_allclose(got, np.sum(np.abs(x.astype(np.float64))), rtol=1e-6)
    assert got == jax.jit(lambda x: jnp.sum(jnp.abs(x)))(x)  # the order is that of the whole
    nests = jax.jit(f).lower(x[:cut], x[cut:]).compile().as_text("nests").split("\n\n")
    assert not any("for i1<" in nest and "select" in nest for nest in nests)


def test_bands_of_columns_end_there_too():
    f = lambda x, y: (jnp.sum(jnp.concatenate([x, y]), 0), jnp.argmin(jnp.concatenate([x, y]), 0))  # noqa: E731
    x = data((1003, 600))
    total, least = jax.jit(f)(x[:333], x[333:])
    np.testing.assert_allclose(total, np.sum(x.astype(np.float64), 0), rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(least, np.argmin(x, 0))
