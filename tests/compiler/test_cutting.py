"""Nests of short rows that are cut where conditions change further out, and stacks that are read where their parts lie."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import program_of, shown_nests


def stacked(np, x):
    return np.stack([x, x * 2, x * 3, x * 4])


PROGRAMS = {
    "a row": lambda np, x, w: stacked(np, x) * w,
    "a choice": lambda np, x, w: np.where(stacked(np, x) > w, x, 0),
    "from behind": lambda np, x, w: stacked(np, x)[..., ::-1] * w,
    "one behind the other": lambda np, x, w: np.concatenate([x, x * 2]) * w + 1,
    "rolled": lambda np, x, w: np.roll(x, 5, 0) * w + x,
    "with a border": lambda np, x, w: np.pad(x, [(3, 2), (0, 0)]) * w,
    "another in the middle": lambda np, x, w: np.concatenate([x[:9], x + 1, x[9:]]) - w,
    "both ways": lambda np, x, w: np.pad(stacked(np, x), [(0, 0), (1, 2), (0, 0)]) * w,
}


@pytest.mark.share(20)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", [(1000, 7), (64, 3), (67, 15), (5, 5), (2000, 2), (130, 33)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_short_rows_of_parts(name, shape, dtype):
    rng = np.random.default_rng(len(name))
    x, w = (rng.integers(-5, 6, s).astype(np.float32) for s in (shape, shape[1:]))
    got = jax.jit(lambda x, w: PROGRAMS[name](jnp, x, w))(jnp.asarray(x, dtype), jnp.asarray(w, dtype))
    np.testing.assert_array_equal(np.asarray(got, np.float32), PROGRAMS[name](np, x, w))


@pytest.mark.parametrize("name", ["a row", "one behind the other"])
def test_short_rows_of_parts_of_all_lengths(name):
    """Programs of other lengths whose plans are those of a family."""
    f = jax.jit(lambda x, w: PROGRAMS[name](jnp, x, w))
    for rows in (100, 200, 300, 77, 1000, 8, 401):
        x = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
        np.testing.assert_array_equal(f(x, x[0]), PROGRAMS[name](np, x, x[0]))


def traced(f, *shapes):
    return jax.make_jaxpr(f)(*(np.ones(s, np.float32) for s in shapes))


def nests_of(name, n):
    made = traced(lambda x, w: PROGRAMS[name](jnp, x, w), (1000, n), (n,))
    return "\n".join(shown_nests(program_of(made, machine=X86_64_V4)))


@pytest.mark.parametrize("name", ["a row", "a choice", "one behind the other", "rolled"])
def test_rows_of_parts_have_full_lanes(name):
    text = nests_of(name, 7)
    assert "lanes 16x1" in text and "7 at once" in text
    assert "select" not in text or name == "a choice"  # of the parts


def test_rows_that_fill_vectors_are_not_cut():
    text = nests_of("a row", 33)
    assert text.count("nest") == 1


JOINED = {
    "neighbours": lambda np, x: (y := stacked(np, x))[:, :, 1:] - y[:, :, :-1],
    "less its first": lambda np, x: (y := stacked(np, x)) - y[:, :, :1],
    "with its mirror image": lambda np, x: (y := stacked(np, x)) + y[:, ::-1],
    "from behind": lambda np, x: stacked(np, x)[:, :, ::-1],
    "with a border": lambda np, x: np.pad(stacked(np, x), [(0, 0), (1, 1), (2, 1)]),
    "roots with a border": lambda np, x: np.pad(np.sqrt(stacked(np, x)), [(0, 0), (1, 1), (2, 1)]),
    "one behind the other": lambda np, x: np.sqrt(np.concatenate([x.ravel(), x.ravel() * 2])),
}


@pytest.mark.parametrize("name", JOINED)
def test_stacks_are_read_where_they_lie(name):
    f = lambda x: JOINED[name](jnp, x)
    x = np.arange(12_000, dtype=np.float32).reshape(4, 3000)
    np.testing.assert_array_equal(jax.jit(f)(x), JOINED[name](np, x))
    assert program_of(traced(f, x.shape), machine=X86_64_V4).arena_bytes == 0
