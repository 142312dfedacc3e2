"""Where values live: what a loop computes anew is not written over what it still reads."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.machine import X86_64_V4
from catena.compiler.native.compile import program_of
from catena.compiler.plan.steps import Copy
from catena.core.config import override

STEPS = 6

# What an update is made of reads the carry elsewhere than where it is written.
STEPS_OF = {
    "rolled": lambda c, i: jnp.roll(c, 1).at[i % c.size].set(-1),
    "taken apart": lambda c, i: jnp.stack([c[j] - c[2 * j % c.size] for j in range(min(c.size, 9))]).at[i % 5].add(1),
    "joined": lambda c, i: jnp.concatenate([c[3:], c[:3]]).at[i % c.size].mul(2),
    "reversed and moved": lambda c, i: move(jnp.flip(c) + jnp.max(c), i),
    "sorted": lambda c, i: jnp.sort(c)[::-1].at[i % c.size].add(c[0]),
    "summed": lambda c, i: jnp.cumsum(c).at[jnp.array([0, 2])].add(1),
    "gathered": lambda c, i: c[(3 * jnp.arange(c.size) + i) % c.size].at[i % c.size].add(1),
}
KEPT = {
    "the carry": lambda old, new: new,
    "the carry twice": lambda old, new: (new, new),
    "the carry and what follows": lambda old, new: (new, new + 1),
    "the old one": lambda old, new: (old, new),
    "nothing": lambda old, new: None,
}


def move(x, i):
    return lax.dynamic_update_slice(x, lax.dynamic_slice(x, (2 * i,), (2,)), (i,))


@pytest.mark.share(10)
@pytest.mark.parametrize("n", [9, 40, 1000])  # in slots on the stack, and in turns with other memory
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("name", STEPS_OF)
def test_an_updated_carry_is_a_result_too(name, kept, n):
    if name == "taken apart":
        n = 9

    def run(x):
        def step(c, i):
            new = STEPS_OF[name](c, i)
            return new, KEPT[kept](c, new)

        return lax.scan(step, x, jnp.arange(STEPS))

    x = jnp.arange(n) * 7 % 13
    made = jax.tree.leaves(jax.jit(run)(x))
    with jax.disable_jit():
        expected = jax.tree.leaves(run(x))
    for g, e in zip(made, expected, strict=True):
        np.testing.assert_array_equal(g, e)


@pytest.mark.parametrize("loop", ["scan", "while"])
def test_loops_begin_with_one_number_in_memory_of_their_own(loop):
    """Who reads it otherwise reads a number: nothing is copied."""

    def f(x):
        ones = jnp.ones_like(x)
        step = lambda i, c: (c[0] + 0.5 * c[0] * (i % 2), c[1] - c[0])  # noqa: E731
        n = 3 if loop == "scan" else jnp.int32(x[0]) + 3
        return lax.fori_loop(0, n, step, (ones, ones)), ones + x

    x = np.zeros(30_000, np.float32)
    (a, b), c = jax.jit(f)(x)
    for found, expected in ((a, 1.5), (b, -2.5), (c, 1)):
        np.testing.assert_array_equal(found, np.full_like(x, expected))
    program = program_of(jax.make_jaxpr(f)(x), machine=X86_64_V4)
    copies = [step for _, step in program.steps() if isinstance(step, Copy) and step.bytes >= x.nbytes]
    assert program.arena_bytes == 0 and not copies, str(program)


def test_a_few_copies_of_what_is_cheap_are_computed_each():
    """Of a large array, beside what waits for memory; not where each copy takes long anyway, nor of many."""

    def arena(f, copies=4, n=100_000):
        x, y = jnp.ones(n, "float32"), jnp.ones((copies, n), "float32")
        with override("jax_check_bounds", False):
            return program_of(jax.make_jaxpr(f)(x, y), machine=X86_64_V4).arena_bytes

    made = lambda x: jnp.maximum(x * 1.5 + 0.3, 0)  # noqa: E731
    assert arena(lambda x, y: made(x) + y) == 0
    assert arena(lambda x, y: (made(x[:, None])[:, 0] * y).sum(1)) == 0
    assert arena(lambda x, y: jnp.exp(made(x) + y)) >= 400_000
    assert arena(lambda x, y: made(x) + y, copies=50) >= 400_000
    assert arena(lambda x, y: made(x) + y, n=1000) >= 4000


def test_copies_have_the_values_of_what_they_are_copies_of():
    x, y = np.random.default_rng(8).standard_normal((2, 4, 40_000)).astype(np.float32)
    x = x[:1]
    got = jax.jit(lambda x, y: (jnp.maximum(x * 2 - 1, 0) + y, jax.vmap(lambda _: jnp.abs(x[0] * 4) * 2)(y)))(x, y)
    np.testing.assert_array_equal(got[0], np.maximum(x * np.float32(2) - 1, 0) + y)
    np.testing.assert_array_equal(got[1], np.broadcast_to(np.abs(x * 4) * 2, y.shape))
