"""Steps down the gradients of tables that are read by rows: the bits are those of the whole arrays."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import program_of

RNG = np.random.default_rng(5)
SHAPE = (2000, 72)
COUNTS = [5, 65, 300]
STEPS = {
    "a constant rate": lambda p, g, h, rate: p - 0.5 * g,
    "added": lambda p, g, h, rate: p + g,
    "less than nothing": lambda p, g, h, rate: p + -0.25 * g,
    "a rate that is given": lambda p, g, h, rate: p - rate * g,
    "two updates": lambda p, g, h, rate: p - 0.5 * (g + h),
    "decay": lambda p, g, h, rate: p - 0.125 * (g + 0.5 * p),
    "of the table alone": lambda p, g, h, rate: -(g - h),
    "functions of it": lambda p, g, h, rate: jnp.tanh(g) / (1.5 + g * g),
    "powers of both": lambda p, g, h, rate: jnp.exp(-(g**3)) - jnp.maximum(h, rate) ** 2,
    "a choice": lambda p, g, h, rate: jnp.where(g > rate, p, h),
    "a truth": lambda p, g, h, rate: (g > h) | (g < -1),
    "another dtype": lambda p, g, h, rate: (2 * g).astype(jnp.int32),
}


def numbers(shape, dtype):
    x = RNG.standard_normal(shape) if np.dtype(dtype).kind == "f" or dtype == "bfloat16" else RNG.integers(-9, 9, shape)
    return jnp.asarray(x, dtype)


def same_bits(a, b):
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def rows_of(shape, dtype, mode):
    """Zeros to which rows are added."""
    return lambda i, u: jnp.zeros(shape, dtype).at[i].add(u, mode=mode)


@pytest.mark.share(20)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("step", STEPS)
def test_steps(step, count, dtype, mode):
    """Rows that come several times, and such as are beyond the table, are among the updated ones."""
    shape, apply = (8000, 72) if count == 300 else SHAPE, STEPS[step]
    p, (u, v), rate = numbers(shape, dtype), numbers((2, count, 72), dtype), jnp.asarray(0.75, dtype)
    i, j = jnp.asarray(RNG.integers(-shape[0] - 9, shape[0] + 9, (2, count)) // 7, jnp.int32)
    rows = rows_of(shape, dtype, mode)
    alone = jax.jit(rows)
    wanted = apply(p, alone(i, u), alone(j, v), rate)
    same_bits(jax.jit(lambda p, i, u, j, v, rate: apply(p, rows(i, u), rows(j, v), rate))(p, i, u, j, v, rate), wanted)


@pytest.mark.parametrize("rate", [np.inf, np.nan, -1.0])
def test_rates_that_are_no_numbers_are_everywhere(rate):
    p, i, u = -jnp.zeros(SHAPE), jnp.arange(3), numbers((3, 72), "float32")
    rows = rows_of(SHAPE, "float32", "drop")
    np.testing.assert_array_equal(jax.jit(lambda p, r: p - r * rows(i, u))(p, rate), p - jnp.float32(rate) * rows(i, u))
    same_bits(jax.jit(lambda p: p - rate * rows(i, u))(p), p - jnp.float32(rate) * rows(i, u))


def test_integers_and_vectors():
    rows, i, u = rows_of((100_000,), "int32", "drop"), jnp.asarray([4, 4, 99_999, -1]), jnp.arange(4)
    p = numbers((100_000,), "int32")
    same_bits(jax.jit(lambda p, i, u: p - 3 * rows(i, u))(p, i, u), p - 3 * rows(i, u))


def test_rows_of_batches():
    """Indices with a few dimensions, as of words in sentences."""
    p, i = numbers(SHAPE, "float32"), jnp.asarray(RNG.integers(0, 2000, (9, 5)), jnp.int32)
    step = lambda p: p - 0.5 * jax.grad(lambda p: jnp.sum(jnp.sin(p[i]).sum(1) ** 2))(p)  # noqa: E731
    np.testing.assert_allclose(jax.jit(step)(p), step(p), rtol=1e-5, atol=1e-5)


def test_in_loops():
    p, i = numbers(SHAPE, "float32"), jnp.asarray(RNG.integers(0, 2000, (6, 40)), jnp.int32)
    step = lambda p, i: (p - 0.5 * jax.grad(lambda p: jnp.sum(p[i] ** 3))(p), jnp.sum(p[i]))  # noqa: E731
    made, sums = jax.jit(lambda p, i: jax.lax.scan(step, p, i))(p, i)
    for k in range(6):
        p, total = jax.jit(step)(p, i[k])
        np.testing.assert_allclose(sums[k], total, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made, p, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rate", [0.5, -0.5, 0.1])
def test_rounded_together_with_sums(rate):
    """As in loops: of tables, and of what is zero with some sign."""
    i = jnp.asarray(RNG.integers(0, 2000, (4, 50)), jnp.int32)
    rows = lambda i, u: jnp.zeros(SHAPE).at[i].add(u)  # noqa: E731
    steps = [lambda p, g: p - rate * g, lambda p, g: rate * g + p, lambda p, g: rate * p - g, lambda p, g: g - g * rate]
    for step in steps:
        for p in (numbers(SHAPE, "float32"), -jnp.zeros(SHAPE)):
            u = numbers((4, 50, 72), "float32")
            apart = lambda p, g: jax.lax.optimization_barrier((step(p, jax.lax.optimization_barrier(g)), g))[0]  # noqa: E731
            run = lambda one, p: jax.jit(lambda p: jax.lax.scan(lambda p, d: (one(p, rows(*d)), None), p, (i, u))[0])(p)
            same_bits(run(step, p), run(apart, p))


def test_tables_that_loops_carry_are_changed_in_place():
    i = jnp.asarray(RNG.integers(0, 9000, (4, 50)), jnp.int32)
    step = lambda p, i: (p - 0.1 * jax.grad(lambda p: jnp.sum(p[i] ** 3))(p), None)  # noqa: E731
    p = numbers((9000, 72), "float32")
    program = jax.jit(lambda p: jax.lax.scan(step, p, i)[0]).lower(p).compile()
    assert program.memory_analysis().temp_size_in_bytes < p.nbytes / 8


def test_what_others_read_too_is_there():
    p, i, u = numbers(SHAPE, "float32"), jnp.asarray([7, 7, 1]), numbers((3, 72), "float32")

    def f(p, i, u):
        g = rows_of(SHAPE, "float32", "drop")(i, u)
        return g, p - 0.5 * g, (p - 0.25 * g) * 2

    for a, b in zip(jax.jit(f)(p, i, u), f(p, i, u), strict=True):
        same_bits(a, b)


def test_no_array_is_made_of_the_rows():
    p, i, u = np.ones((9000, 100), np.float32), np.arange(100), np.ones((100, 100), np.float32)
    step = jax.jit(lambda p, i, u: p - 0.1 * jnp.zeros_like(p).at[i].add(u)).lower(p, i, u).compile()
    assert step.memory_analysis().temp_size_in_bytes < p.nbytes / 4


def test_no_array_is_made_of_functions_of_the_rows():
    def f(x, i):
        rows = jnp.zeros((20_000, 4)).at[i].add(x)
        return jnp.tanh(rows) / (1.5 + rows * rows)

    made = jax.make_jaxpr(f)(jnp.ones((300, 4)), jnp.arange(300))
    large = [step for _, step in program_of(made).steps() if any(b.bytes >= 320_000 for b in step.writes())]
    assert len(large) == 2  # a number everywhere, then the rows
