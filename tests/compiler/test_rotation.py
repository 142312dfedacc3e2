"""Conditions of loops that look at arrays: asked at the end of iterations, they give what they do in Python."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph import intervals, rotation
from catena.compiler.interpret.program import run
from catena.compiler.machine import AARCH64
from catena.compiler.native import compile as compiler
from catena.compiler.plan.verify import verify

X = np.arange(1, 41) * 37 % 23


def kept(f, *args) -> list[int]:
    """How many values the conditions of a program's loops compute."""
    region = rotation.rotate(intervals.bound(jax.jit(f).lower(*args).compiler_ir()))
    return [len(v.params.cond.live()) - len(v.params.cond.inputs) for v in region.live() if v.form == "while"]


def check(f, *args):
    """The compiled program, and that for another machine in NumPy, give what the function does in Python."""
    with jax.disable_jit():
        expected = [np.asarray(x) for x in jax.tree.leaves(f(*args))]
    program = compiler.program_of(jax.make_jaxpr(f)(*args), machine=AARCH64)
    verify(program)
    interpreted = run(program, [np.asarray(x) for x in args])
    for found in (jax.tree.leaves(jax.jit(f)(*args)), interpreted):
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, want)


def halved(x):
    return lax.while_loop(lambda x: jnp.max(x) > 3, lambda x: x // 2, x)


def counted(x, least, n):
    """The condition has constants of its own, and scalars beside what it folds."""
    more = lambda s: (s[0] < n) & jnp.any(s[1] > least)
    return lax.while_loop(more, lambda s: (s[0] + 1, s[1] - s[0]), (0, x))


def nested(x):
    def outer(s):
        k, x = s
        return k + 1, halved(x + 9 * k)

    return lax.while_loop(lambda s: jnp.sum(s[1]) * 0 + s[0] < 5, outer, (0, x))


def steps(n):
    """Iterations of Collatz' map until it comes to one."""
    ahead = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    return lax.while_loop(lambda s: s[0] > 1, ahead, (n, 0))[1]


@pytest.mark.parametrize(
    "f, args",
    [
        (halved, (X,)),
        (halved, (X * 0,)),  # no iteration
        (counted, (X, -50, 20)),
        (counted, (X, np.arange(40) % 7, 3)),
        (nested, (X,)),
        (jax.vmap(steps), (X,)),
        (jax.vmap(steps), (np.arange(300),)),  # in blocks
        (jax.vmap(counted, (0, None, 0)), (X, 3, np.arange(40) % 5)),
    ],
)
def test_as_in_python(f, args):
    check(f, *map(jnp.asarray, args))


def test_which_conditions_are_asked_at_the_end():
    x = jnp.asarray(X)
    assert kept(halved, x) == [0]
    assert kept(jax.vmap(steps), x) == [0]
    assert kept(lambda n: lax.while_loop(lambda k: k * k < n, lambda k: k + 1, 0), jnp.int32(50)) > [0]


def test_derivatives_and_checks():
    def norm(x):
        return jnp.sum(lax.while_loop(lambda x: jnp.sum(x * x) > 1.0, lambda x: 0.5 * x, x))

    x = jnp.asarray([3.0, 4.0])
    np.testing.assert_allclose(jax.grad(norm)(x), [0.125, 0.125])
    np.testing.assert_allclose(jax.jvp(norm, (x,), (x,))[1], 7 / 8)
    np.testing.assert_allclose(jax.jit(jax.grad(norm))(x), [0.125, 0.125])
