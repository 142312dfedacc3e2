"""Updates of one part at a known place are choices, element by element: with the values that NumPy has."""

import contextlib

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

PARTS = {
    "inside": np.s_[1:-1, 2:-1],
    "first row": np.s_[0],
    "last column": np.s_[:, -1],
    "rows": np.s_[2:],
    "corner": np.s_[:3, :2],
    "element": np.s_[1, 2],
    "all": np.s_[:, :],
}
KINDS = {
    "set": lambda x, v: v,
    "add": lambda x, v: x + v,
    "subtract": lambda x, v: x - v,
    "multiply": lambda x, v: x * v,
    "min": np.minimum,
    "max": np.maximum,
}


def program(f, *xs) -> str:
    return jax.jit(f).lower(*xs).compile().as_text("program")


def updated(x, index, kind: str, v):
    out = x.copy()
    out[index] = KINDS[kind](x[index], v)
    return out


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_updates_of_parts(kind, dtype):
    if dtype == "complex64" and kind in ("min", "max"):
        pytest.skip("complex numbers have no order")
    x = (np.arange(7 * 37).reshape(7, 37) % 11 - 5).astype(dtype)

    def f(x, v, index):
        at = (2 * x).at[index]
        return getattr(at, kind)(v) + 1, getattr(x.at[index], kind)(v)

    for index in PARTS.values():
        v = (x[index] * 3 + 1).astype(dtype)
        got = jax.jit(lambda x, v, index=index: f(x, v, index))(x, v)
        expected = updated(2 * x, index, kind, v) + 1, updated(x, index, kind, v)
        for found, wanted in zip(got, expected, strict=True):
            np.testing.assert_array_equal(found, wanted.astype(dtype))


def test_zeros_outside_keep_their_sign():
    x = np.full((4, 40), -0.0, "f")
    got = np.asarray(jax.jit(lambda x: x.at[1:3, 4:-4].add(0.0))(x))
    inside = np.zeros(x.shape, bool)
    inside[1:3, 4:-4] = True
    np.testing.assert_array_equal(np.signbit(got), ~inside)


def test_nothing_is_written_where_the_part_lies_outside():
    x = jnp.arange(10.0)
    for mode in ("drop", "clip"):
        f = lambda x, mode=mode: x.at[jnp.array([12])].set(-1.0, mode=mode) * 2
        np.testing.assert_array_equal(jax.jit(f)(x), f(x))


def heat(u):
    return u.at[1:-1].add(0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]))


def test_a_stencil_is_one_pass():
    u = jnp.arange(1000.0) ** 2 % 7
    text = program(heat, u)
    assert text.count("launch") == 1 and "copy" not in text and " 0 bytes of temporaries" in text
    np.testing.assert_array_equal(jax.jit(heat)(u), heat(u))


def test_the_gradient_of_a_stencil_has_no_copies():
    u = jnp.sin(jnp.arange(1000.0))
    g = jax.grad(lambda u: jnp.sum(heat(u) ** 2))
    assert "copy" not in program(g, u)
    np.testing.assert_array_equal(jax.jit(g)(u), g(u))


def test_borders_are_set_where_the_array_is_made():
    f = lambda u: jnp.sin(u).at[0].set(1.0).at[-1].set(2.0).at[:, 0].set(3.0).at[:, -1].add(4.0)
    u = jnp.ones((50, 60))
    assert program(f, u).count("launch") == 1
    np.testing.assert_array_equal(jax.jit(f)(u), f(u))


def test_parts_of_loops_are_known_there():
    def f(u):
        u = jax.lax.fori_loop(0, 3, lambda _, u: heat(u), u)
        return jax.lax.scan(lambda u, _: (u.at[:-1].multiply(2.0), None), u, None, length=2)[0]

    u = jnp.arange(100.0) % 7
    text = program(f, u)
    assert "iterations" in text and text.count("launch") == 2
    expected = np.asarray(u)
    for _ in range(3):
        expected = updated(expected, np.s_[1:-1], "add", np.float32(0.1) * (np.diff(expected, 2)))
    for _ in range(2):
        expected = updated(expected, np.s_[:-1], "multiply", 2)
    np.testing.assert_allclose(jax.jit(f)(u), expected, rtol=1e-5)


def test_small_parts_are_written_over_arrays_that_are_there():
    f = lambda x: jax.lax.fori_loop(0, 5, lambda i, x: x.at[3].set(x[4] + i), x)
    text = program(f, jnp.ones(10_000))
    assert "launch 10000" not in text


def test_dynamic_slices_at_known_places():
    x, v = jnp.arange(20.0).reshape(4, 5), -jnp.ones((3, 4))
    f = lambda x, v: jax.lax.dynamic_update_slice(2 * x, v, (3, 0)) + 1
    np.testing.assert_array_equal(jax.jit(f)(x, v), f(x, v))
    assert program(f, x, v).count("launch") == 1


def test_functions_under_a_border_are_computed_there():
    f = lambda x: jnp.pad(jnp.exp(x), 3)
    x = jnp.arange(2000.0) / 100
    assert program(f, x).count("launch") == 1
    np.testing.assert_array_equal(jax.jit(f)(x), f(x))


def test_kernels_that_are_cut_are_cut_for_one_length():
    """Nests that differ in the extent of a loop alone share a function, but where the loop is cut at its seams."""
    f = jax.jit(lambda x: x.at[1:].multiply(2.0))
    for n in (5000, 1000, 1007, 70_001, 3000):
        x = np.arange(n, dtype="f")
        np.testing.assert_array_equal(f(x), np.where(np.arange(n) > 0, 2 * x, x))
    g = jax.jit(lambda x: x.at[1:, 2:].multiply(2.0))
    for shape in ((300, 40), (90, 40), (90, 53), (401, 40)):
        x = np.arange(np.prod(shape), dtype="f").reshape(shape)
        inside = np.add.outer(np.arange(shape[0]) > 0, np.zeros(shape[1], bool)) & (np.arange(shape[1]) > 1)
        np.testing.assert_array_equal(g(x), np.where(inside, 2 * x, x))


PLACES = {
    "row": lambda i: np.s_[i],
    "column": lambda i: np.s_[:, i],
    "element": lambda i: np.s_[i, 1],
    "diagonal": lambda i: np.s_[i, i],
    "part of a row": lambda i: np.s_[i, 2:],
    "part of a column": lambda i: np.s_[1:4, i],
}


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_updates_at_computed_places(kind, dtype):
    x = jnp.asarray(np.arange(5 * 37).reshape(5, 37) % 11 - 5, dtype)
    for where in PLACES.values():

        def f(x, v, i, where=where):
            return getattr((x + x).at[where(i)], kind)(v, mode="drop") + 1, getattr(x.at[where(i)], kind)(v) + 1

        for i in (0, 4, -1, -6, 5, 120):
            v = jnp.asarray(3, dtype)
            doubled, plain = jax.jit(f)(x, v, i)
            assert doubled.dtype == x.dtype
            for found, old in ((doubled, x + x), (plain, x)):
                expected = np.asarray(old).copy()
                with contextlib.suppress(IndexError):  # places beyond are dropped
                    expected[where(i)] = KINDS[kind](expected[where(i)], np.asarray(v))
                np.testing.assert_array_equal(found, expected + np.asarray(1, expected.dtype), err_msg=f"{where} {i}")


@pytest.mark.parametrize("index", ["uint8", "int8", "int32", "int64"])
def test_windows_at_computed_places_are_moved_inside(index):
    x = jnp.arange(300.0)
    f = lambda x, i: jax.lax.dynamic_update_slice(2 * x, x[:1] - 7, (i,)) + 1
    for i in (
        0,
        5,
        100,
        127,
        *((-1, -128) if index != "uint8" else (200, 255)),
        *((299, 300) if "32" in index else ()),
    ):
        i = np.asarray(i, index)
        place = min(max(int(i) + (300 if i < 0 else 0), 0), 299)
        expected = 2 * np.arange(300.0) + 1
        expected[place] = -6
        np.testing.assert_array_equal(jax.jit(f)(x, i), expected)
        np.testing.assert_array_equal(f(x, i), expected)


def test_an_update_at_a_computed_place_is_in_the_pass_around_it():
    x, i = jnp.ones((400, 300)), 7
    once = lambda f: program(f, x, i).count("launch 400") == 1 and "copy" not in program(f, x, i)
    assert once(lambda x, i: (2 * x).at[i].set(3.0))
    assert once(lambda x, i: x.at[:, i].add(3.0) * 2)
    assert once(lambda x, i: jax.lax.dynamic_update_slice(jnp.zeros_like(x), jnp.ones((1, 300)), (i, 0)) + x)
    assert "copy" in program(lambda x, i: x.at[i].set(3.0), x, i)  # whose array is in memory before and after


def test_an_update_of_a_carry_stays_one():
    """A loop that writes one element an iteration goes over no array."""
    f = lambda x: jax.lax.fori_loop(0, 100, lambda i, x: x.at[i].set(x[i] * 2 + 1), x)
    assert "eq" not in program(f, jnp.ones(1000))
    np.testing.assert_array_equal(jax.jit(f)(jnp.ones(1000)), np.where(np.arange(1000) < 100, 3.0, 1.0))


def test_gradients_of_an_update_at_a_computed_place():
    x, i = np.linspace(-1.0, 1.0, 50, dtype=np.float32), 20
    f = lambda x, i: jnp.sum(jnp.sin(jnp.asarray(x).at[i].multiply(3.0)) * x)
    expected = np.cos(x) * x + np.sin(x)
    expected[i] = 3 * np.cos(3 * x[i]) * x[i] + np.sin(3 * x[i])
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x, i), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("kind", ["set", "add"])
def test_windows_as_long_as_the_array_are_dropped_where_they_begin_elsewhere(kind, mode):
    """There is one place for them, to which clipped ones are moved."""
    numbers = lax.ScatterDimensionNumbers((0,), (), (0,))
    scatter = {"set": lax.scatter, "add": lax.scatter_add}[kind]
    update = lambda x, i, u: scatter(x * 2, i[None], u, numbers, mode=mode) + 1  # noqa: E731
    in_loop = lambda x, i, u: lax.fori_loop(0, 2, lambda _, c: update(c, i, u), x)  # noqa: E731
    x, u = jnp.arange(3), jnp.array([7, 8, 9])
    for i in (0, 1, -1, 5):
        stays = mode != "clip" and i
        once = lambda x: x * 2 + 1 if stays else (u if kind == "set" else x * 2 + u) + 1  # noqa: B023, E731
        i = jnp.int32(i)
        np.testing.assert_array_equal(jax.jit(update)(x, i, u), once(x))
        np.testing.assert_array_equal(jax.jit(in_loop)(x, i, u), once(once(x)))
