"""Large carries of loops that are not computed in place change places with memory beside them, and are not copied."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.interpret.program import run
from catena.compiler.machine import AARCH64
from catena.compiler.native import compile as compiler
from catena.compiler.plan.steps import Copy, Scan, While
from catena.compiler.plan.verify import verify

N = 100
X = jnp.asarray(np.arange(N) * 7 % 31)
Y = jnp.asarray(np.arange(N) * 5 % 23)


def around(x):
    """Integers of each element's neighbours: nothing that can be computed in place."""
    return (jnp.roll(x, 1) + 2 * jnp.roll(x, -1) + x) % 1009


def check(f, *args):
    """The compiled program, and that for another machine in NumPy, give what the function does in Python."""
    with jax.disable_jit():
        expected = [np.asarray(x) for x in jax.tree.leaves(f(*args))]
    program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=AARCH64)
    verify(program)
    interpreted = run(program, [np.asarray(x) for x in args])
    for found in (jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(jax.jit(f)(*args)), interpreted):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, want)


def loops(f, *args) -> list:
    """The loops of a program."""
    program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=AARCH64)
    return [step for _, step in program.steps() if isinstance(step, Scan | While)]


def large_copies(f, *args) -> int:
    """How many copies of more than a few bytes the iterations of loops make."""
    return sum(isinstance(s, Copy) and s.bytes > 256 for loop in loops(f, *args) for s in loop.body.steps)


@pytest.mark.parametrize("length", [0, 1, 2, 3, 6])
def test_any_number_of_iterations(length):
    f = lambda x: lax.fori_loop(0, length, lambda i, x: around(x), x)
    assert large_copies(f, X) == 0
    check(f, X)
    g = lambda x, n: lax.fori_loop(0, n, lambda i, x: around(x) + i, x)
    assert large_copies(g, X, jnp.int32(length)) == 0
    check(g, X, jnp.int32(length))


def test_carries_that_read_each_other():
    f = lambda x, y: lax.fori_loop(0, 5, lambda i, c: (around(c[1]) + c[0], around(c[0]) - c[1]), (x, y))
    assert large_copies(f, X, Y) == 0
    check(f, X, Y)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_carries_that_move_on(length):
    f = lambda x, y: lax.fori_loop(0, length, lambda i, c: (c[1], around(c[0]) + c[1]), (x, y))
    check(f, X, Y)
    check(lambda x, y: lax.fori_loop(0, length, lambda i, c: (c[1], c[0]), (x, y)), X, Y)
    check(lambda x, y: lax.fori_loop(0, length, lambda i, c: (around(c[0]),) * 2, (x, y)), X, Y)
    check(lambda x, y: lax.fori_loop(0, length, lambda i, c: (around(c[0]), c[0], c[1][::-1]), (x, y, y)), X, Y)


@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_stacked_too(reverse):
    def f(x, y):
        return lax.scan(lambda c, i: ((z := around(c) + i), (z, c, c[:3])), x, y[:7], reverse=reverse)

    check(f, X, Y)


def test_conditions_with_temporaries():
    def f(x, n):
        goes_on = lambda c: (c[0] < n) & (jnp.sort(jnp.cumsum(c[1]) % 97)[3] < 90)
        body = lambda c: (c[0] + 1, around(jnp.sort(jnp.cumsum(c[1]) % 101) + c[1]))
        return lax.while_loop(goes_on, body, (0, x))

    for n in (0, 1, 2, 5):
        check(f, X, jnp.int32(n))


def test_weights_that_are_packed_before_a_loop_with_a_condition():
    w = jnp.asarray(np.random.default_rng(0).integers(-1, 2, (80, 80)).astype(np.float32))

    def f(x, w):
        goes_on = lambda c: (c[0] < 4) & (jnp.sort(c[1] @ jnp.abs(w), axis=1).sum() > -1e9)
        return lax.while_loop(goes_on, lambda c: (c[0] + 1, jnp.clip(c[1] @ w, -9, 9)), (0, x))

    check(f, w[:40], w)


@pytest.mark.parametrize("inner", [1, 2, 3])
def test_loops_in_loops(inner):
    def f(x, y):
        def outer(i, c):
            x, y = c
            y = lax.fori_loop(0, inner, lambda j, y: around(y) + x, y)
            return around(x) + y, y

        return lax.fori_loop(0, 3, outer, (x, y))

    check(f, X, Y)
    rows = lambda x: lax.scan(lambda c, i: (lax.fori_loop(0, inner, lambda j, c: around(c), c),) * 2, x, None, length=3)
    check(rows, X)


def test_branches_in_loops():
    f = lambda x: lax.fori_loop(0, 5, lambda i, x: lax.cond(i % 2 == 0, around, lambda x: jnp.sort(x), x), x)
    check(f, X)


def test_derivatives():
    f = lambda x: (lax.scan(lambda c, _: (jnp.roll(c, 1) * 0.5 + c * jnp.roll(c, 3), None), x, None, length=4)[0]).sum()
    x = jnp.asarray(np.linspace(-1, 1, N, dtype=np.float32))
    with jax.disable_jit():
        expected = jax.grad(f)(x)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), expected, rtol=1e-5, atol=1e-6)


def test_memory_that_is_given():
    f = lambda x: lax.fori_loop(0, 3, lambda i, x: around(x), x)
    expected = np.asarray(jax.jit(f)(X))
    np.testing.assert_array_equal(jax.jit(f, donate_argnums=0)(X + 0), expected)


def test_the_program_says_so():
    text = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: around(x), x)).lower(X).compile().as_text("program")
    assert "change places" in text
