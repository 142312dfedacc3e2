"""What a gather reads is computed where it is read, if that is less, and arrays are not joined for it."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax

RNG = np.random.default_rng(11)
X = RNG.standard_normal((40, 6)).astype(np.float32)


def windows(x, i):
    return jax.vmap(lambda k: lax.dynamic_slice_in_dim(x, k, 3))(i)


@pytest.mark.parametrize("i", [[0, 5, 37, 39, 5], [100, -3, 20]])
def test_windows_of_a_batch(i):
    xs = np.stack([X * k for k in range(1, 5)])
    starts = [min(max(k + 40 * (k < 0), 0), 37) for k in i]
    made = jax.jit(lambda x, i: jax.vmap(lambda x: windows(x, i))(jnp.stack([x * k for k in range(1, 5)])))(
        X, jnp.array(i)
    )
    np.testing.assert_array_equal(made, np.stack([xs[:, k : k + 3] for k in starts], 1))


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_takes_of_what_is_joined(mode, axis):
    """Along the axis where arrays meet, and along the others."""
    i = np.array([[3, 0], [45, 2], [-1, 7]])

    def f(x, y, i):
        return jnp.take(jnp.concatenate([x, jnp.exp(y), x * 2]), i, axis, mode=mode, fill_value=-7)

    joined = np.asarray(jnp.concatenate([X, jnp.exp(X[:9]), X * 2]))
    n = joined.shape[axis]
    there = np.take(joined, i, axis, mode="clip" if mode == "fill" else mode)
    if mode == "fill":
        lies = np.expand_dims((i >= -n) & (i < n), (-1,) if axis == 0 else (0,))
        there = np.where(lies, np.take(joined, np.where(i < 0, i + n, i), axis, mode="clip"), np.float32(-7))
    np.testing.assert_array_equal(jax.jit(f)(X, X[:9], i), there)


def test_gradients_of_windows_of_a_batch():
    f = lambda x: jnp.sum(jnp.sin(jax.vmap(lambda x: windows(x, jnp.array([1, 2, 30])))(jnp.stack([x, x * x]))))  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.grad(f))(X), jax.grad(f)(X), rtol=1e-5, atol=1e-6)


def test_few_elements_are_computed_and_none_joined():
    x, i = jnp.ones(100_000), jnp.arange(10)
    stacked = jax.jit(lambda x, i: jnp.stack([x, x + 1, x * 3]).at[:, i].get(mode="clip"))
    costly = jax.jit(lambda x, i: jnp.exp(x)[i])
    for f in (stacked, costly):
        assert "<100000" not in f.lower(x, i).compile().as_text("nests")


def test_windows_have_some_of_what_is_joined():
    """The first columns of rows at computed places: of a dimension without an index, not all is read."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(1, 2), collapsed_slice_dims=(), start_index_map=(0,))
    read = lambda x, i: lax.gather(x, i[:, None], numbers, (2, 8))
    i = np.array([3, 0, 38])
    made = jax.jit(lambda x, i: read(jnp.concatenate([x, jnp.sin(x)], 1), i))(X, i)
    np.testing.assert_array_equal(made, read(jnp.concatenate([X, jnp.sin(X)], 1), i))


@pytest.mark.parametrize("mode", ["fill", "clip"])
@pytest.mark.parametrize("axis", [0, 1])
def test_takes_of_what_was_taken(mode, axis):
    """As those of places of places: what the first does not find, the second reads as that."""
    first, second = np.array([3, 1, 70, -2, 0, 3]), np.array([[0, 5], [2, 90], [3, 1]])

    def f(x, i, j):
        return jnp.take(jnp.take(x, i, axis, mode=mode, fill_value=-7), j, axis, mode="clip")

    n = X.shape[axis]
    once = np.take(X, np.where(first < 0, first + n, first) if mode == "fill" else first, axis, mode="clip")
    if mode == "fill":
        there = (first >= -n) & (first < n)
        once = np.where(there[:, None] if axis == 0 else there, once, np.float32(-7))
    np.testing.assert_array_equal(jax.jit(f)(X, first, second), np.take(once, second, axis, mode="clip"))


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [2, 3, 7, 40])
@pytest.mark.parametrize("given", [[0], [-3], [99]])
def test_rows_that_share_places_by_take_along_axis(n, given):
    """A row of places that is spread over a batch: beyond the row, there is nothing."""
    x = RNG.standard_normal((300, 2, n)).astype(np.float32)
    places = np.array([*range(n - 1), *given])

    def f(x, i):
        return jnp.take_along_axis(x, jnp.broadcast_to(i, x.shape), -1)

    inside = (places >= -n) & (places < n)
    wanted = np.where(inside, x[..., np.where(inside, places, 0)], np.float32(np.nan))
    np.testing.assert_array_equal(jax.jit(f)(x, places), wanted)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(jnp.where(inside, f(x, places), 0) ** 2)))(x)
    expected = np.zeros_like(x)
    for k in np.flatnonzero(inside):
        expected[..., places[k]] += 2 * x[..., places[k]]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_what_is_taken_twice_is_read_once():
    def f(x, i, j):
        return x[:, i].at[:, j].get(mode="clip")

    nests = jax.jit(f).lower(jnp.ones((5000, 3)), jnp.arange(3), jnp.arange(3)).compile().as_text("nests")
    assert nests.count("<5000") == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8"])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_rows_of_what_is_joined_are_read_where_they_lie(dtype, mode):
    """Rows of long lines, single elements and windows: parts are computed where they are read, none is stored."""
    with jax.enable_x64(dtype == "float64"):
        x = jnp.asarray(RNG.integers(-3, 4, (50, 83)), dtype)
        i = jnp.asarray([3, 0, 45, -1, 49, 50, 98, 99, 100, 120, -150, -151, 400, 149])
        parts = lambda x: jnp.concatenate([x, jnp.maximum(x, 1), x * 2])  # noqa: E731
        whole = np.asarray(parts(x)).astype(np.float64)
        rows = jax.jit(lambda x, i: parts(x).at[i].get(mode=mode, fill_value=5))
        pairs = jax.jit(lambda x, i: parts(x).at[i, i % 7].get(mode=mode, fill_value=5))
        places = np.where(np.asarray(i) < 0, np.asarray(i) + 150, np.asarray(i))
        lies = (places >= 0) & (places < 150) | (mode == "clip")
        there = whole[places.clip(0, 149)]
        np.testing.assert_array_equal(np.asarray(rows(x, i), np.float64), np.where(lies[:, None], there, 5))
        single = there[np.arange(len(i)), np.asarray(i) % 7]
        np.testing.assert_array_equal(np.asarray(pairs(x, i), np.float64), np.where(lies, single, 5))
        for f in (rows, pairs):
            assert ", 0 bytes of temporaries" in f.lower(x, i).compile().as_text("program")


def test_rows_that_are_read_often_are_joined_before():
    """More rows than there are would be computed again and again."""
    f = jax.jit(lambda x, i: jnp.concatenate([x, jnp.exp(x)])[i])
    few, many = (f.lower(jnp.ones((20, 64)), jnp.arange(n) % 40).compile().as_text("program") for n in (40, 200))
    assert ", 0 bytes of temporaries" in few
    assert ", 0 bytes of temporaries" not in many


def test_short_rows_that_all_pairs_read_are_gathered_once():
    """Of places that are known to lie within, too, of which reading one costs little."""

    def pairs(x, i):
        y = x[jnp.argsort(i)]
        return jnp.abs(y[:, None] - y[None]).sum(-1)

    x, i = RNG.standard_normal((60, 3)).astype(np.float32), RNG.permutation(60)
    y = x[np.argsort(i)]
    expected = np.abs(y[:, None] - y).sum(-1)
    np.testing.assert_allclose(jax.jit(pairs)(x, i), expected, rtol=1e-5)
    kernels = jax.jit(pairs).lower(x, i).compile().as_text("nests").split("nest for")
    (of_pairs,) = [k for k in kernels if "fold sum" in k]
    assert "convert" not in of_pairs  # of no place


def test_places_of_a_histogram_are_computed_in_lanes():
    """Others read what they are made of, too; the loop that counts has no lanes."""

    def equalised(x):
        levels = (x * 255).astype(jnp.int32)
        return (jnp.cumsum(jnp.bincount(levels.ravel(), length=256)) / levels.size)[levels]

    x = RNG.random((256, 256)).astype(np.float32)
    levels = (x * np.float32(255)).astype(np.int32)
    expected = (np.cumsum(np.bincount(levels.ravel(), minlength=256)) / levels.size)[levels]
    np.testing.assert_allclose(jax.jit(equalised)(x), expected, rtol=1e-6)
    kernels = jax.jit(equalised).lower(x).compile().as_text("nests").split("nest for")
    (counts,) = [k for k in kernels if "load_now" in k]
    assert "mul" not in counts


TABLES = {
    "identity": lambda n: jnp.eye(n),
    "triangle": lambda n: jnp.tri(n),
    "gaps": lambda n: jnp.arange(n)[:, None] - jnp.arange(n) // 2,
    "mask": lambda n: jnp.tril(jnp.ones((n, n), bool)),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("n", [2, 10, 100])
def test_rows_of_tables_that_places_make(name, n):
    i = jnp.asarray(RNG.integers(-n - 2, n + 2, 300).astype("int32"))
    f = lambda i: (TABLES[name](n)[i], TABLES[name](n).at[i].get(mode="clip"), TABLES[name](n)[0, i])
    for got, expected in zip(jax.jit(f)(i), f(i), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_no_table_of_an_identity_is_written():
    """Labels by rows of an identity are comparisons where they are read."""
    program = jax.jit(lambda i, x: jnp.sum(jnp.eye(100)[i] * x, 1)).lower(jnp.arange(64), jnp.ones((64, 100))).compile()
    assert " 0 bytes of temporaries" in program.as_text("program")


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "int16"])
@pytest.mark.parametrize("step", [3, 6, 7, 11, -3, -7, -10, 400])
def test_small_elements_that_lie_apart(dtype, step):
    """They are read of the words that hold them, wherever these begin."""
    for size, first in ((100, 0), (1000, 1), (1001, 3), (7, 2)):
        x = np.random.default_rng(size).integers(0, 100, size + first).astype(dtype)[first:]
        for use in (lambda x: x[::step], lambda x: x[1:-1][::step]):
            np.testing.assert_array_equal(jax.jit(use)(x), use(x))
        np.testing.assert_allclose(jax.jit(lambda x: x[::step] * 2.0)(x), x[::step] * 2.0)


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float16"])
@pytest.mark.parametrize("shape", [(1000, 3, 10), (100, 10, 3), (67, 5, 9), (33, 7, 2), (1, 40, 11)])
def test_small_elements_are_transposed(dtype, shape):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 100, shape), dtype)
    for perm in ((2, 1, 0), (0, 2, 1), (1, 2, 0), (2, 0, 1)):
        got = jax.jit(lambda x, perm=perm: jnp.transpose(x, perm))(x)
        np.testing.assert_array_equal(got, np.asarray(x).transpose(perm))
