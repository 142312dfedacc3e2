"""What costs less to compute again than to write and to read: cheap values of neighbours in one array in memory."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.compile import nests, program_of

rng = np.random.default_rng(9)

PENALTIES = {
    "differences of rows": lambda jnp, x: jnp.sum((x[1:] - x[:-1]) ** 2),
    "differences in rows": lambda jnp, x: jnp.sum((x[:, 1:] - x[:, :-1]) ** 2),
    "curvature": lambda jnp, x: jnp.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2),
    "total variation": lambda jnp, x: jnp.sum(jnp.abs(x[1:] - x[:-1])) + jnp.sum(jnp.abs(x[:, 1:] - x[:, :-1])),
    "chosen by a row": lambda jnp, x: jnp.sum(jnp.where(jnp.arange(x.shape[1]) % 3 < 1, x, x[::-1]) ** 2),
}

LONGER = {  # what is done again where the array is large
    "Huber's": lambda jnp, x: huber(jnp, x[1:] - x[:-1]),
    "Huber's in rows": lambda jnp, x: huber(jnp, x[:, 1:] - x[:, :-1]),
    "convex curvature": lambda jnp, x: jnp.sum(
        jnp.where(x[2:] + x[:-2] > 2 * x[1:-1], x[2:] - x[1:-1], 0.1 * x[:-2]) ** 2
    ),
}


def huber(jnp, d):
    return jnp.sum(jnp.where(jnp.abs(d) <= 0.3, d * d / 2, 0.3 * (jnp.abs(d) - 0.15)))


SHAPES = [(name, shape) for name in PENALTIES for shape in [(300, 200), (41, 7), (3, 900)]]
SHAPES += [(name, (41, 7)) for name in LONGER]


@pytest.mark.parametrize("name, shape", SHAPES)
def test_gradients_of_penalties_are_differences(name, shape):
    with jax.enable_x64(True):
        x, step, penalty = rng.standard_normal(shape), 1e-6, (PENALTIES | LONGER)[name]
        found = jax.jit(jax.grad(lambda x: penalty(jnp, x)))(x)
        for i, j in [(0, 0), (shape[0] - 1, shape[1] - 1), (1, 5), (shape[0] // 2, shape[1] // 2)]:
            up, down = x.copy(), x.copy()
            up[i, j] += step
            down[i, j] -= step
            slope = (penalty(np, up) - penalty(np, down)) / (2 * step)
            np.testing.assert_allclose(found[i, j], slope, rtol=1e-4, atol=1e-4)
        apart = jax.grad(lambda x: penalty(jnp, x))(jnp.asarray(x))
        np.testing.assert_allclose(found, apart, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", PENALTIES)
def test_what_neighbours_make_is_not_written(name):
    made = jax.make_jaxpr(jax.grad(lambda x: PENALTIES[name](jnp, x)))(jnp.ones((500, 300)))
    assert program_of(made).arena_bytes < 10_000


@pytest.mark.parametrize("name", LONGER)
def test_more_is_done_again_where_it_would_go_to_memory(name):
    made = lambda rows: program_of(jax.make_jaxpr(jax.grad(lambda x: LONGER[name](jnp, x)))(jnp.ones((rows, 300))))  # noqa: E731
    assert made(1000).arena_bytes < 10_000
    assert made(100).arena_bytes > 10_000


BESIDE = {  # what steps along a direction make, read beside
    "differences": lambda jnp, x, d: (x - 0.5 * d)[1:] - (x - 0.5 * d)[:-1] ** 2,
    "changes": lambda jnp, x, d: jnp.sum(((x * d + 1)[1:] - (x * d + 1)[:-1]) ** 2),
}


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("n", [10, 300, 100_000])
def test_what_a_step_makes_is_read_beside_without_memory(name, n):
    x, d = rng.standard_normal((2, n))
    with jax.enable_x64(True):
        made = jax.make_jaxpr(lambda x, d: BESIDE[name](jnp, x, d))(x, d)
        assert program_of(made).arena_bytes < 8 * n
        found = jax.jit(lambda x, d: BESIDE[name](jnp, x, d))(x, d)
        np.testing.assert_allclose(found, BESIDE[name](np, x, d), rtol=1e-10, atol=1e-10)


def test_three_readers_of_two_operations_share_memory_where_it_is_near():
    def curvature(x, d):
        y = x - 0.5 * d
        return y[2:] - 2 * y[1:-1] + y[:-2]

    made = lambda n: program_of(jax.make_jaxpr(curvature)(jnp.ones(n), jnp.ones(n)))  # noqa: E731
    assert made(300).arena_bytes >= 4 * 300
    assert made(100_000).arena_bytes < 4 * 100_000


def test_much_work_is_done_once():
    """A value of many readers, or of long work, is written; small ones are, too."""

    def f(x):
        y = (x[1:] - x[:-1]) * 2 + 1
        return sum(jnp.pad(y * k, ((k, 5 - k), (0, 0))) for k in range(6))

    assert program_of(jax.make_jaxpr(f)(jnp.ones((500, 300)))).arena_bytes > 500_000
    x = rng.standard_normal((60, 7)).astype("f")
    np.testing.assert_allclose(jax.jit(f)(x), f(jnp.asarray(x)), rtol=1e-5, atol=1e-5)


def test_what_is_rolled_and_padded_is_one_kernel():
    """Who pads a concatenation reads its parts, unless zeros lie between the elements."""
    rolled = lambda x: jnp.pad(jnp.roll(x, 7, 0), ((2, 3), (1, 0)))
    assert len(nests(jax.make_jaxpr(rolled)(jnp.ones((50, 30))))) == 1
    x = rng.standard_normal((50, 30)).astype("f")
    np.testing.assert_array_equal(jax.jit(rolled)(x), np.pad(np.roll(x, 7, 0), ((2, 3), (1, 0))))
    apart = lambda x: jax.lax.pad(jnp.roll(x, 7, 0), np.float32(0), ((0, 0, 1), (0, 0, 0)))
    np.testing.assert_array_equal(jax.jit(apart)(x)[::2], np.roll(x, 7, 0))


SYMMETRIC = {
    "cube of the sum": (lambda x: ((x + x.T) ** 3).sum(), lambda x: 6 * (x + x.T) ** 2),
    "cube of the product": (lambda x: ((x * x.T) ** 3).sum(), lambda x: 6 * (x * x.T) ** 2 * x.T),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_what_is_made_across_and_read_across(name):
    f, slope = SYMMETRIC[name]
    assert program_of(jax.make_jaxpr(jax.grad(f))(jnp.ones((300, 300)))).arena_bytes < 10_000
    x = rng.standard_normal((300, 300)).astype("f")
    np.testing.assert_allclose(jax.jit(jax.grad(f))(x), slope(x.astype("d")), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype, few", [("float16", 1), ("bfloat16", 1), ("float32", 2), ("float64", 2)])
def test_rows_that_are_spread_over_many_are_computed_once(dtype, few):
    with jax.enable_x64(True):
        make = lambda *shape: jnp.asarray(rng.standard_normal(shape), dtype)  # noqa: E731
        row = {1: lambda a, b: a * b, 2: lambda a, b: a * b - 1}
        f = lambda x, a, b: jnp.maximum(x, row[few](a, b))  # noqa: E731
        count = lambda f, *xs: len(nests(jax.make_jaxpr(f)(*xs)))  # noqa: E731
        assert count(f, make(300, 90), make(90), make(90)) == 2
        assert count(f, make(3, 90), make(90), make(90)) == 1, "a step for them alone is not nothing beside few"
        assert count(lambda x, a, b: jnp.maximum(x, row[1](a, b)), make(300, 90), make(90), make(90)) == 3 - few
        given = make(300, 90), make(90), make(90)
        assert np.array_equal(jax.jit(f)(*given), f(*given))


@pytest.mark.parametrize("f", [
    lambda x: jnp.maximum(jnp.triu(x[..., None] + x[..., None, :16])[..., 0], 0),
    lambda x: (k := jnp.arange(len(x)) * 77) ^ k >> 3,
], ids=["a column of one element each", "counting"])  # fmt: skip
def test_what_hangs_on_its_place_alone_is_not_written(f):
    x = jnp.asarray(rng.standard_normal(200_000), "float32")
    program = program_of(jax.make_jaxpr(f)(x))
    assert len(list(program.steps())) == 1 and not program.arena_bytes
    np.testing.assert_array_equal(jax.jit(f)(x), f(x))


@pytest.mark.parametrize("shape", [(8, 64, 48), (300, 70)])
def test_what_is_turned_has_a_loop_of_its_own_beside_folds(shape):
    """There it is turned square by square."""
    f = lambda x: (jnp.swapaxes(x, -1, -2), x.sum(0))
    x = jnp.asarray(rng.standard_normal(shape), "float32")
    turned, *folded = nests(jax.make_jaxpr(f)(x))
    assert "squares" in turned and folded
    got, expected = jax.jit(f)(x), (np.swapaxes(x, -1, -2), np.asarray(x).sum(0, dtype="float64"))
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_allclose(got[1], expected[1], atol=1e-4)


def test_what_is_scattered_one_by_one_is_chosen_before():
    """Neighbours at borders are chosen in lanes."""
    n = 50_000
    places = np.arange(n, dtype="int32") * 7 % 100

    def f(x, i):
        padded = jnp.pad(x, 1, mode="reflect")
        return jnp.zeros(100, x.dtype).at[i].add(padded[:-2] + padded[2:])

    x = jnp.asarray(rng.integers(-9, 9, n), "float32")
    for nest in nests(jax.make_jaxpr(f)(x, places)):
        assert "load_now" not in nest or "select" not in nest
    np.testing.assert_array_equal(jax.jit(f)(x, places), f(x, places))


@pytest.mark.parametrize("shape", [(5000,), (60, 70)])
def test_stacks_that_are_spread_are_written_once(shape):
    """Where they are read a few times alone: each part is computed where it is written."""
    f = lambda x: jax.vmap(lambda y: jnp.broadcast_to(y, (2, *y.shape)))(jnp.stack([x, x * 2, x * 3, x - 1]))
    x = jnp.asarray(rng.standard_normal(shape), "float32")
    assert not program_of(jax.make_jaxpr(f)(x)).arena_bytes
    np.testing.assert_array_equal(jax.jit(f)(x), f(x))
