"""Updates of an array in rows that do not wait for each other: several rows at once."""

import numpy as np
import pytest

import catena as jax
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import text_of

RNG = np.random.default_rng(0)


def operands(rows, columns=3, updates=40):
    i = RNG.integers(-1, columns + 1, updates).astype(np.int32)
    return (
        RNG.integers(0, 9, (rows, columns)).astype(np.float32),
        i,
        RNG.integers(0, 9, (rows, updates)).astype(np.float32),
    )


def expected(x, i, u, change):
    out = x.copy()
    for k, column in enumerate(i):
        if column < x.shape[1]:
            out[:, column] = change(out[:, column], u[:, k])
    return out


@pytest.mark.parametrize("rows", [7, 24, 250, 20_000])
def test_updates_of_columns(rows):
    x, i, u = operands(rows)
    np.testing.assert_array_equal(jax.jit(lambda x, i, u: x.at[:, i].add(u))(x, i, u), expected(x, i, u, np.add))
    np.testing.assert_array_equal(
        jax.jit(lambda x, i, u: x.at[:, i].set(u))(x, i, u), expected(x, i, u, lambda a, b: b)
    )
    np.testing.assert_array_equal(jax.jit(lambda x, i, u: x.at[:, i].max(u))(x, i, u), expected(x, i, u, np.maximum))


def test_updates_of_members():
    x, i, u = operands(120, 10)
    each = np.stack([RNG.permutation(i) for _ in x])
    got = jax.jit(jax.vmap(lambda x, i, u: x.at[i].add(u)))(x, each, u)
    rows = [expected(x[k : k + 1], each[k], u[k : k + 1], np.add) for k in range(len(x))]
    np.testing.assert_array_equal(got, np.concatenate(rows))


def test_windows_that_overlap_wait():
    x, u = np.zeros((16, 30), np.float32), np.ones((5, 16, 8), np.float32)
    at = np.array([[0], [3], [3], [20], [6]], np.int32)
    numbers = jax.lax.ScatterDimensionNumbers((1, 2), (), (1,))
    out = jax.jit(lambda x, at, u: jax.lax.scatter_add(x, at, u, numbers))(x, at, u)
    want = np.zeros(30)
    for (k,) in at:
        want[k : k + 8] += 1
    np.testing.assert_array_equal(out, np.tile(want, (16, 1)))


def test_several_rows_at_once_are_written():
    x, i, u = operands(24)
    text = text_of(jax.make_jaxpr(lambda x, i, u: x.at[:, i].add(u))(x, i, u), machine=X86_64_V4)
    assert text.count("fadd float") == 4


def test_few_long_rows_are_left_to_threads():
    x, u = np.zeros((3, 4), np.float32), np.ones((3, 50_000), np.float32)
    i = np.zeros(50_000, np.int32)
    program = jax.jit(lambda x, i, u: x.at[:, i].add(u)).lower(x, i, u).compile()
    assert "at once" not in program.as_text("nests")
    np.testing.assert_array_equal(program(x, i, u), np.float32([[50_000, 0, 0, 0]] * 3))


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("rows", [3, 7, 24, 77, 1024, 20_000, 20_001])
def test_updates_of_a_single_column(rows, dtype):
    """Each element is changed in the order of the updates, whatever lies beside it."""
    i, u = RNG.integers(-1, 2, 40).astype(np.int32), RNG.integers(0, 3, 40).astype(dtype)
    x = RNG.integers(0, 5, (rows, 1)).astype(dtype)
    u[7] = 100
    for made, change in (("add", np.add), ("max", np.maximum), ("set", lambda a, b: b)):
        want = expected(x, i, np.broadcast_to(u, (rows, 40)), change)
        f = jax.jit(lambda x, i, u, made=made: getattr(x.at[:, i], made)(u))
        np.testing.assert_array_equal(f(x, i, u), want)


def test_what_needs_a_gather_has_no_lanes():
    x, i = np.zeros((1024, 1), np.float32), np.zeros(100, np.int32)
    text = lambda u: jax.jit(lambda x, i, u: x.at[:, i].add(u)).lower(x, i, u).compile().as_text("nests")
    assert "lanes" in text(np.float32(1))
    assert "4 at once" in text(np.ones((1024, 100), np.float32))


def test_rows_that_change_at_places_of_their_own_take_turns():
    """Parts of many updates each have an array of their own, which would leave the nearest cache."""
    x, u = np.zeros(4, np.float32), np.ones(1_000_000, np.float32)
    program = jax.jit(lambda x, i, u: x.at[i].multiply(u)).lower(x, np.zeros(1_000_000, np.int32), u).compile()
    assert "at once" not in program.as_text("nests")
    shared = jax.jit(jax.vmap(lambda x, i, u: x.at[i].add(u), (0, None, 0)))
    program = shared.lower(np.zeros((8, 4), np.float32), np.zeros(40_000, np.int32), u[:320_000].reshape(8, 40_000))
    assert "4 at once" in program.compile().as_text("nests")
