"""Loops over rows that do not read each other are done by two threads at the same time, each for half of the rows."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import ICE_LAKE
from catena.compiler.native.compile import program_of
from catena.compiler.plan.program import ARENA, Buffer
from catena.compiler.plan.verify import verify
from catena.core.config import override
from catena.core.errors import CompileError

WIDTH = 64


def normal(seed: int, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(0, shape[-1] ** -0.5, shape).astype(np.float32))


def recurrent(w, u, h, xs, reverse: bool = False):
    """A recurrent net with gates."""

    def step(h, x):
        gate, new = jnp.split(x @ w + h @ u, 2, -1)
        h = jax.nn.sigmoid(gate) * h + jnp.tanh(new)
        return h, h * gate

    return lax.scan(step, h, xs, reverse=reverse)


def given(rows: int = 16, steps: int = 32):
    return normal(0, 32, 2 * WIDTH), normal(1, WIDTH, 2 * WIDTH), normal(2, rows, WIDTH), normal(3, steps, rows, 32)


def loops(f, *args, donated=(), machine=ICE_LAKE) -> list[bool]:
    """Of each loop, whether it is done by halves."""
    with override("jax_check_bounds", False):  # where that is on, one thread does all rows
        program = program_of(jax.make_jaxpr(f)(*args), donated, machine)
    verify(program)
    return [step.halves is not None for _, step in program.steps() if step.name == "scan"]


def test_halves_that_read_what_nothing_has_written_are_refused():
    with override("jax_check_bounds", False):
        program = program_of(jax.make_jaxpr(recurrent)(*given()), (), ICE_LAKE)
    (scan,) = [step for _, step in program.steps() if step.name == "scan"]
    scan.halves.steps[0].a = Buffer(ARENA, 64, 0)
    with pytest.raises(CompileError, match="nothing has written"):
        verify(program)


def gradient(w, u, h, xs):
    return jax.grad(lambda w, u, h: jnp.sum(recurrent(w, u, h, xs)[0] ** 2), (0, 1, 2))(w, u, h)


def test_both_loops_of_a_gradient_are_done_by_halves():
    assert loops(gradient, *given()) == [True, True]


@pytest.mark.parametrize("rows", [10, 12, 16, 32, 64])
def test_rows_of_any_even_number_are(rows):
    assert loops(recurrent, *given(rows)) == [True]


@pytest.mark.parametrize("rows", [2, 8, 14, 15, 17])
def test_few_rows_and_those_whose_halves_fill_no_tiles_are_not(rows):
    assert loops(recurrent, *given(rows)) == [False]


def test_short_loops_are_not():
    assert loops(recurrent, *given(steps=2)) == [False]


def test_one_thread_does_all_rows():
    assert loops(recurrent, *given(), machine=ICE_LAKE._replace(threads=False)) == [False]


@pytest.mark.parametrize(
    "mixed",
    [
        lambda h: h[::-1],
        lambda h: jnp.roll(h, 1, 0),
        lambda h: h - jnp.mean(h, 0),
        lambda h: h[jnp.arange(16) ^ 1],
        lambda h: h * h[3],
        lambda h: jnp.concatenate([h[8:], h[:8]]),
        lambda h: h + (h @ h.T) @ h,
    ],
)
def test_rows_that_read_others_are_not(mixed):
    w, _, h, _ = given()
    w = normal(4, WIDTH, WIDTH)
    f = lambda w, h: lax.fori_loop(0, 64, lambda i, h: jnp.tanh(mixed(h) @ w), h)
    assert loops(f, w, h) == [False]
    expected = np.asarray(h, np.float64)
    for _ in range(64):
        expected = np.tanh(
            np.asarray(mixed(jnp.asarray(expected, jnp.float32)), np.float64) @ np.asarray(w, np.float64)
        )
    np.testing.assert_allclose(jax.jit(f)(w, h), expected, atol=1e-4)


@pytest.mark.share(2)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [16, 17, 33])
def test_rows_have_the_bits_that_they_have_among_more(steps, reverse):
    w, u, h, xs = given(64, steps)
    f = jax.jit(lambda *args: recurrent(*args, reverse=reverse))
    last, all_ = f(w, u, h, xs)
    few, some = f(w, u, h[:16], xs[:, :16])
    np.testing.assert_array_equal(last[:16], few)
    np.testing.assert_array_equal(all_[:, :16], some)


def test_values_are_those_of_iterations_one_by_one():
    w, u, h, xs = given(steps=33)
    last, all_ = jax.jit(recurrent)(w, u, h, xs)
    with jax.disable_jit():
        expected = recurrent(w, u, h, xs)
    np.testing.assert_allclose(last, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(all_, expected[1], rtol=1e-4, atol=1e-5)


def test_many_runs_have_one_result():
    args = given()
    f = jax.jit(gradient)
    first = [np.asarray(x).copy() for x in f(*args)]
    for _ in range(40):
        for x, y in zip(first, f(*args)):
            np.testing.assert_array_equal(x, y)


def test_donated_carries_are_done_by_halves_in_their_memory():
    w, u, h, xs = given()
    f = lambda w, u, h, xs: recurrent(w, u, h, xs)[0]
    assert loops(f, w, u, h, xs, donated=(False, False, True, False)) == [True]
    expected = np.asarray(jax.jit(f)(w, u, h, xs)).copy()
    np.testing.assert_array_equal(jax.jit(f, donate_argnums=2)(w, u, h + 0, xs), expected)


def test_elementwise_loops_are_done_by_halves():
    def f(x, v):
        step = lambda c, _: ((c[0] + 0.01 * c[1], c[1] - 0.01 * jnp.sin(c[0]) * jnp.exp(-c[0] * c[0])), None)
        return lax.scan(step, (x, v), None, length=200)[0]

    args = normal(0, 4, 1024), normal(1, 4, 1024)
    assert loops(f, *args) == [True]
    x, v = jax.jit(f)(*args)
    few = jax.jit(f)(args[0][:2], args[1][:2])
    np.testing.assert_array_equal(x[:2], few[0])
    np.testing.assert_array_equal(v[:2], few[1])
