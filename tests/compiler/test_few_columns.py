"""Products whose one side is a few rows or columns: each is a sum of its own beside the lanes, which are terms."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.native.host import this_machine
from catena.core.config import override

SHAPES = [(900, 300, 3), (60, 50, 2), (17, 400, 3), (70, 16, 4), (33, 129, 7), (300, 9, 3), (5, 4000, 3), (130, 70, 8)]
SHAPES += [(17, 64, 8), (33, 1000, 8), (41, 129, 4), (15, 300, 8)]  # half a vector of columns
SHAPES += [(17, 128, 10), (33, 1000, 9), (15, 300, 10), (41, 129, 5)]  # little more
DTYPES = ["float32", "float64", "bfloat16", "int32"]


def arrays(*shapes, dtype="float32", whole=False):
    rng = np.random.default_rng(sum(map(sum, shapes)))
    draw = (lambda s: rng.integers(-7, 8, s)) if whole else (lambda s: rng.normal(size=s))
    return [jnp.asarray(draw(s), dtype) for s in shapes]


def folds(f, *xs) -> list[int]:
    """The products that the nests of a program add up, each."""
    nests = jax.jit(f).lower(*xs).compile().as_text("nests").split("\n\n")
    return [nest.count("fold dot") for nest in nests if "fold dot" in nest]


@pytest.mark.share(10)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows, terms, columns", SHAPES)
def test_sums_are_those_of_whole_numbers(rows, terms, columns, dtype):
    with override("jax_enable_x64", dtype == "float64"):
        x, w = arrays((rows, terms), (terms, columns), dtype=dtype, whole=True)
        exact = (np.asarray(x, "float64") @ np.asarray(w, "float64")).astype(x.dtype)
        np.testing.assert_array_equal(jax.jit(jnp.matmul)(x, w), exact)
        np.testing.assert_array_equal(jax.jit(lambda x, w: x @ w.T)(x, jnp.asarray(w.T.copy())), exact)
        np.testing.assert_array_equal(jax.jit(lambda x, w: w.T @ x.T)(x, w), exact.T)
        np.testing.assert_array_equal(jax.jit(lambda x, w: (x @ w).T)(x, w), exact.T)
        np.testing.assert_array_equal(jax.jit(lambda x, w: jnp.einsum("ik,kj->ji", x, w))(x, w), exact.T)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("terms", [5, 16, 17, 63, 64, 65, 300, 4096])
def test_each_column_has_the_bits_of_a_product_with_it_alone(terms, dtype):
    with override("jax_enable_x64", dtype == "float64"):
        x, w = arrays((201, terms), (terms, 3), dtype=dtype)
        f = jax.jit(jnp.matmul)
        columns = [np.asarray(f(x, w[:, j])) for j in range(3)]
        np.testing.assert_array_equal(f(x, w), np.stack(columns, 1))
        np.testing.assert_array_equal(jax.jit(lambda x, w: w.T @ x.T)(x, w), np.stack(columns, 0))
        np.testing.assert_array_equal(f(x, w[:, :2]), np.stack(columns[:2], 1))


@pytest.mark.parametrize("columns", [2, 3, 5, 7, 8, 10])
def test_a_batch_has_the_bits_of_its_members(columns):
    x, w = arrays((3, 40, 90), (3, 90, columns))
    f = jax.jit(jnp.matmul)
    each = np.stack([np.asarray(f(a, b)) for a, b in zip(x, w)])
    np.testing.assert_array_equal(f(x, w), each)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jnp.matmul))(x, w), each)
    same = np.stack([np.asarray(f(a, w[0])) for a in x])
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda a, b: a @ b, (0, None)))(x, w[0]), same)


@pytest.mark.parametrize("columns", [2, 3, 5, 8, 10])
def test_rows_have_the_bits_of_fewer_rows(columns):
    x, w = arrays((100, 200), (200, columns))
    f = jax.jit(jnp.matmul)
    whole = np.asarray(f(x, w))
    for rows in (9, 17, 33, 64, 99):
        np.testing.assert_array_equal(f(x[:rows], w), whole[:rows])


def test_columns_that_no_near_cache_holds_are_tiles():
    near, far = (arrays((20, k), (k, 7), whole=True) for k in (4_000, 400_000))
    sums = jax.jit(jnp.matmul)
    assert not folds(jnp.matmul, *far) and (this_machine().vector_bytes < 64 or folds(jnp.matmul, *near))
    np.testing.assert_array_equal(sums(*far), np.asarray(far[0]) @ np.asarray(far[1]))
    np.testing.assert_array_equal(sums(far[0][:5], far[1]), sums(*far)[:5])


def test_what_reads_a_product_does_not_change_it():
    x, w, b = arrays((300, 50), (50, 3), (3,))
    product = np.asarray(jax.jit(jnp.matmul)(x, w))
    both = jax.jit(lambda x, w, b: ((y := x @ w), jnp.tanh(y + b), y.sum(0), y.T))(x, w, b)
    np.testing.assert_array_equal(both[0], product)
    np.testing.assert_array_equal(both[3], product.T)


@pytest.mark.parametrize("columns", [2, 3, 6])
def test_gradients(columns):
    x, w, g = arrays((80, 30), (30, columns), (80, columns), dtype="float32", whole=True)
    by_x, by_w = jax.jit(jax.grad(lambda x, w: jnp.sum(x @ w * g), (0, 1)))(x, w)
    np.testing.assert_array_equal(by_x, np.asarray(g) @ np.asarray(w).T)
    np.testing.assert_array_equal(by_w, np.asarray(x).T @ np.asarray(g))


def test_all_columns_are_added_up_in_one_loop():
    """Rows are read once, not once for each column."""
    x, w = arrays((300, 100), (100, 3))
    assert folds(lambda x, w: x @ w, x, w) == [3]
    assert folds(lambda x, w: x @ w[:, :2], x, w) == [2]
    assert folds(lambda x, w: w.T @ x.T, x, w) == [3]
    assert folds(lambda x, w: x.reshape(30, 10, 100) @ w, x, w) == [3]
    assert folds(lambda x, w: x[:3, :4] @ w[:4], x, w) == [1]  # nothing


def test_half_a_vector_of_columns_is_added_up_in_one_loop():
    """Lanes along the columns would be half empty. Two rows are added up at once, as nothing waits for itself then."""
    columns = this_machine().vector_bytes // 8
    x, w = arrays((300, 100), (100, columns))
    assert folds(lambda x, w: x @ w, x, w) == [columns]
    nests = jax.jit(jnp.matmul).lower(x, w).compile().as_text("nests")
    assert columns <= 3 or "2 at once" in nests
    assert folds(lambda x, w: x[:9] @ w, x, w) == [columns]  # with the same bits
    fewer = jax.jit(lambda x, w: x @ w[:, 1:]).lower(x, w).compile().as_text("nests")
    assert columns <= 4 or "at once reduce" in fewer


def test_small_products_are_by_tiles_where_lanes_would_be_columns():
    """A row beside another reads the right operand once, and does not wait for its own sum."""

    def program(equation, *shapes):
        return jax.jit(lambda x, w: jnp.einsum(equation, x, w)).lower(*arrays(*shapes)).compile().as_text("program")

    assert "contract" in program("bij,bjk->bik", (50, 12, 9), (50, 9, 24))
    assert "contract" in program("bji,bjk->bik", (50, 9, 12), (50, 9, 24))
    assert "contract" in program("bij,bkj->bik", (50, 16, 16), (50, 10, 16))  # packed, for rows enough
    assert "contract" not in program("bij,bkj->bik", (50, 8, 32), (50, 8, 32))  # lanes are full of terms
    assert "contract" not in program("bij,bjk->bik", (50, 8, 4), (50, 4, 8))


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [2, 5, 8, 9, 12])
@pytest.mark.parametrize("rows", [3, 40, 200])
def test_sums_of_a_row_that_are_more_than_lanes(rows, count, dtype):
    """What is left of them, one perhaps, is joined by itself: with the bits that each has alone."""
    with jax.enable_x64(True):
        x = np.random.default_rng(3).standard_normal((rows, 200)).astype(dtype)
        sums = lambda x: [jnp.sum(x * (x + k), 1) for k in range(count)]
        for k, found in enumerate(jax.jit(sums)(x)):
            np.testing.assert_allclose(found, (x * (x + k)).sum(1), rtol=1e-4, atol=1e-4)
            np.testing.assert_array_equal(found, jax.jit(lambda x: jnp.sum(x * (x + k), 1))(x))  # noqa: B023
