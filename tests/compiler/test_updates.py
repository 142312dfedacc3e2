"""Few rows that are added to zeros, and those to another array: the bits are those of the sum of both arrays."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import nests, program_of

RNG = np.random.default_rng(3)
SHAPE = (128, 200)
PLACES = [[3, 5, 3, 127, 3, 5], [0, 0], [-1, 130, 4, 300, 4], list(range(20))]


def added(x, i, u, mode, axis=0):
    at = x.at[i] if axis == 0 else x.at[:, i]
    return at.add(u, mode=mode)


def numbers(shape, dtype):
    x = RNG.standard_normal(shape) if np.dtype(dtype).kind == "f" else RNG.integers(-90, 90, shape)
    return jnp.asarray(x, dtype)


def same_bits(a, b):
    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.share(8)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
@pytest.mark.parametrize("i", PLACES)
def test_rows_beside_another_array(i, dtype, mode, axis):
    i, shape = jnp.array(i), (512, 128)
    y, u = numbers(shape, dtype), numbers((len(i), 128) if axis == 0 else (512, len(i)), dtype)
    rows = lambda i, u: added(jnp.zeros(shape, dtype), i, u, mode, axis)  # noqa: E731
    alone = jax.jit(rows)
    same_bits(jax.jit(lambda y, i, u: y + rows(i, u))(y, i, u), y + alone(i, u))
    same_bits(jax.jit(lambda y, i, u: rows(i, u) + y * y)(y, i, u), alone(i, u) + y * y)
    both = jax.jit(lambda y, i, u: rows(i, u) + rows(i[::-1], u * 3) + y)
    same_bits(both(y, i, u), (alone(i, u) + alone(i[::-1], u * 3)) + y)


def test_zeros_have_no_sign():
    y, u = -jnp.zeros(SHAPE, jnp.float32), -jnp.ones((2, 200), jnp.float32)
    made = jax.jit(lambda y, u: y + jnp.zeros(SHAPE).at[jnp.array([1, 1])].add(u))(y, u)
    assert not np.signbit(np.asarray(made)[0]).any() and (np.asarray(made)[1] == -2).all()


def test_what_others_read_too_is_there():
    x, i, u = numbers(SHAPE, "float32"), jnp.array([2, 2, 9]), numbers((3, 200), "float32")

    def f(x, i, u):
        rows = jnp.zeros(SHAPE).at[i].add(u)
        return rows, rows + x, jnp.zeros(SHAPE), jnp.zeros(SHAPE).at[i].set(u) + x

    for a, b in zip(jax.jit(f)(x, i, u), f(x, i, u), strict=True):
        same_bits(a, b)


def test_gradients_by_rows_that_are_read_twice():
    x, i = numbers(SHAPE, "float32"), jnp.array([4, 100, 4, 7])

    def f(x):
        return jnp.sum((x[i] - x[i[::-1]]) ** 3) + jnp.sum(jnp.sin(x))

    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), jax.grad(f)(x), rtol=1e-6, atol=1e-6)


def test_in_loops_and_batches():
    x, i, u = numbers(SHAPE, "float32"), jnp.array([4, 100, 4, 7]), numbers((4, 200), "float32")
    f = lambda x, i: x * 0.5 + jnp.zeros(SHAPE).at[i].add(u)  # noqa: E731
    made = jax.jit(lambda x, i: jax.lax.fori_loop(0, 5, lambda k, c: f(c, i + k), x))(x, i)
    wanted = x
    for k in range(5):
        wanted = f(wanted, i + k)
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    batch = jnp.stack([i, i * 2, i + 1])
    same_bits(jax.jit(jax.vmap(f, (None, 0)))(x, batch), jnp.stack([jax.jit(f)(x, k) for k in batch]))


def test_few_rows_cost_no_array():
    x = np.ones((4000, 100), np.float32)
    made = nests(jax.make_jaxpr(jax.grad(lambda x, i: jnp.sum((x[i] - x[i[::-1]]) ** 2)))(x, np.arange(5)))
    assert sum("<400000" in text or "<4000" in text for text in made) == 1, "zeros are written once, and not added up"


@pytest.mark.share(4)
@pytest.mark.parametrize(
    "update, ufunc, start", [("add", np.add, 0), ("max", np.maximum, 1), ("multiply", np.multiply, 1)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bfloat16"])
@pytest.mark.parametrize("columns", [7, 300, 2000])
def test_rows_that_are_dropped_are_not_read(update, ufunc, start, dtype, columns):
    """Where rows are long: one branch for each."""
    rng = np.random.default_rng(0)
    x, places = rng.integers(-2, 3, (500, columns)), rng.integers(-20, 300, 500).astype(np.int32)
    wanted, kept = np.full((10, columns), start), (places >= 0) & (places < 10)
    ufunc.at(wanted, places[kept], x[kept])
    with jax.enable_x64(True):
        at = lambda x, i: getattr(jnp.full((10, columns), start, x.dtype).at[i], update)
        f = jax.jit(lambda x, i: at(x, i)(x, mode="drop", wrap_negative_indices=False))
        np.testing.assert_array_equal(np.asarray(f(jnp.asarray(x, dtype), places)).astype(int), wanted)


@pytest.mark.share(4)
@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
@pytest.mark.parametrize("count", [9, 700])
def test_elements_at_pairs_of_places(count, dtype, mode):
    """Beside what is computed, of few and of many; some come several times, and some are beyond the array."""
    shape = (150, 600)
    i, j = (jnp.asarray(RNG.integers(-20, n + 20, count) // 6 * 6 % (n + 9), jnp.int32) for n in shape)
    y, u = numbers(shape, dtype), numbers(count, dtype)
    rows = lambda i, j, u: jnp.zeros(shape, dtype).at[i, j].add(u, mode=mode)  # noqa: E731
    alone = jax.jit(rows)(i, j, u)
    same_bits(jax.jit(lambda y, i, j, u: y * y + rows(i, j, u))(y, i, j, u), y * y + alone)
    same_bits(jax.jit(lambda y, i, j, u: y - 2 * rows(i, j, u))(y, i, j, u), y - 2 * alone)


@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_many_rows_beside_what_is_computed(mode):
    shape, i = (3000, 24), jnp.asarray(RNG.integers(-9, 3009, 200) // 5, jnp.int32)
    y, u = numbers(shape, "float32"), numbers((200, 24), "float32")
    alone = jax.jit(lambda i, u: added(jnp.zeros(shape), i, u, mode))(i, u)
    made, twice = jax.jit(lambda y, i, u: (added(jnp.zeros(shape), i, u, mode) + y * y, jnp.sum(y)))(y, i, u)
    same_bits(made, alone + y * y)
    same_bits(twice, jnp.sum(y))


def test_many_elements_cost_no_array():
    def f(y, i, u):
        return jnp.exp(y) + jnp.zeros_like(y).at[i].add(u)

    made = jax.make_jaxpr(f)(jnp.ones(200_000), jnp.arange(500), jnp.ones(500))
    large = [step for _, step in program_of(made).steps() if any(b.bytes >= 800_000 for b in step.writes())]
    assert len(large) == 3  # what is computed, notes of places, and the elements
