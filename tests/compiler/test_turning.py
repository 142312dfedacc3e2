"""Products that are only read transposed are computed so, with the same bits; and how products are shared out."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.graph.types import TYPES
from catena.compiler.machine import ICE_LAKE
from catena.compiler.plan import contraction
from catena.compiler.plan.contraction import Axis, Contraction

ROWS, COLUMNS, TERMS = 40, 24, 32


def program(f, *args) -> str:
    return jax.jit(f).lower(*args).compile().as_text("program")


def operands(dtype, *batch):
    rng = np.random.default_rng(0)
    shapes = (*batch, ROWS, TERMS), (*batch, TERMS, COLUMNS)
    return [jnp.array(rng.integers(-9, 9, s) + rng.random(s).round(2), dtype) for s in shapes]


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int32"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_the_bits_are_those_of_the_product(dtype, batch):
    a, b = operands(dtype, *batch)
    turned = lambda a, b: jnp.swapaxes(jnp.matmul(a, b), -1, -2) + 1
    assert f"rows {COLUMNS}, columns {ROWS}" in program(turned, a, b)
    plain = np.swapaxes(np.asarray(jax.jit(lambda a, b: jnp.matmul(a, b) + 1)(a, b)), -1, -2)
    np.testing.assert_array_equal(np.asarray(jax.jit(turned)(a, b)), plain)


def test_the_gradient_by_weights_lies_as_they_do():
    x, w = operands("float32")
    text = program(lambda w: w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w), w)
    assert f"rows {TERMS}, columns {COLUMNS}, terms {ROWS}" in text


def test_the_gradient_by_weights_of_sequences_lies_as_they_do():
    """Its terms are two dimensions, which lie in memory as one; where they do not, the product stays as it is."""
    x, w = jnp.ones((4, ROWS, TERMS)), jnp.ones((TERMS, 2 * COLUMNS))
    text = program(lambda w: w - 0.1 * jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w), w)
    assert f"rows {TERMS}, columns {2 * COLUMNS}, terms {4 * ROWS}" in text
    both = lambda x, y: lax.dot_general(x, y, (((0, 2), (0, 2)), ((), ()))).T + 1
    text = program(both, jnp.ones((4, ROWS, TERMS)), jnp.ones((4, COLUMNS, TERMS)))
    assert f"rows {ROWS}, columns {COLUMNS}, terms 4 x {TERMS}" in text


@pytest.mark.parametrize("spec", ["hqk,qhd->khd", "bhqk,bqhd->bkhd", "hqk,hqd->khd"])
def test_a_large_left_operand_is_not_read_across_beside_few_columns(spec):
    """As scores are in the gradient of attention by keys: exchanged, they are read along their lines."""
    sizes, rng = {"b": 1, "h": 2, "q": 512, "k": 640, "d": 48}, np.random.default_rng(0)
    p, x = (
        jnp.asarray(rng.normal(size=[sizes[c] for c in letters]).astype(np.float32))
        for letters in spec.split("->")[0].split(",")
    )
    f = jax.jit(lambda p, x: jnp.einsum(spec, p, x))
    assert "rows 48, columns 640, terms 512" in program(f, p, x)
    np.testing.assert_allclose(f(p, x), np.einsum(spec, np.asarray(p, float), np.asarray(x, float)), atol=2e-4)
    as_it_stands = jax.jit(lambda p, x: jnp.einsum(spec.replace("khd", "hkd"), p, x))
    assert "rows 640, columns 48, terms 512" in program(as_it_stands, p, x)
    np.testing.assert_array_equal(f(p, x), jnp.swapaxes(as_it_stands(p, x), -3, -2))


@pytest.mark.parametrize("fold", [jnp.max, jnp.min])
def test_an_extreme_does_not_keep_a_product_from_being_turned(fold):
    """As in a softmax of scores: ``einsum("td,hd->ht")`` is the transpose of a product."""
    rng = np.random.default_rng(0)
    keys, queries = (jnp.asarray(rng.integers(-9, 9, s), "float32") for s in ((500, 12), (24, 12)))

    def f(keys, queries):
        scores = jnp.einsum("td,hd->ht", keys, queries)
        return scores - fold(scores, 1, keepdims=True)

    assert "rows 24, columns 500" in program(f, keys, queries)
    scores = np.asarray(queries) @ np.asarray(keys).T
    np.testing.assert_array_equal(jax.jit(f)(keys, queries), scores - np.asarray(fold(scores, 1))[:, None])
    both = jax.jit(lambda k, q: (s := jnp.einsum("td,hd->ht", k, q), s.T, fold(s, 0), fold(s, 1), s.sum(1)))
    expected = (scores, scores.T, np.asarray(fold(scores, 0)), np.asarray(fold(scores, 1)), scores.sum(1))
    for found, wanted in zip(both(keys, queries), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_product_with_another_reader_is_computed_once():
    a, b = operands("float32")
    f = lambda a, b: (a @ b, (a @ b).T * 2)
    assert program(f, a, b).count("contract") == 1
    y, twice = jax.jit(f)(a, b)
    np.testing.assert_array_equal(np.asarray(twice), 2 * np.asarray(y).T)


def test_in_the_body_of_a_loop():
    a, b = operands("float32")
    f = lambda a, b: lax.fori_loop(0, 3, lambda i, c: c + (a * i @ b).T, jnp.zeros((COLUMNS, ROWS)))
    assert f"rows {COLUMNS}, columns {ROWS}" in program(f, a, b)
    np.testing.assert_allclose(jax.jit(f)(a, b), 3 * (np.asarray(a) @ np.asarray(b)).T, rtol=1e-4)


@pytest.mark.parametrize("rows, columns", [(1024, 1024), (64, 8192), (8192, 64), (8, 4096), (4096, 8), (1000, 999)])
@pytest.mark.parametrize("by_rows", [False, True])
def test_tasks_cover_every_row_and_column_once(rows, columns, by_rows):
    machine, terms = ICE_LAKE, 512
    form = Contraction(TYPES["float32"], (), (Axis(rows, terms, 0, columns),), columns, (Axis(terms, 1, columns, 0),))
    p = contraction.plan(form, machine, True)
    t = contraction.tasks(p, machine, False, by_rows)
    assert t.total == t.row_blocks * t.column_blocks
    assert (t.row_blocks - 1) * t.rows < p.units <= t.row_blocks * t.rows
    assert (t.column_blocks - 1) * t.columns < max(p.panels, 1) <= t.column_blocks * t.columns
    assert t.column_blocks == 1 or not by_rows


def test_a_large_product_is_cut_both_ways():
    """So that no task reads all of either operand."""
    form = Contraction(TYPES["float32"], (), (Axis(1024, 1024, 0, 1024),), 1024, (Axis(1024, 1, 1024, 0),))
    machine = ICE_LAKE
    t = contraction.tasks(contraction.plan(form, machine, True), machine, False, False)
    assert min(t.row_blocks, t.column_blocks) > 1


# terms, rows, columns
FEW = [(1000, 64, 2), (5000, 10, 3), (2000, 3, 2), (900, 40, 8), (70, 300, 3), (1500, 2, 30), (2000, 300, 10),
       (1100, 1000, 8)]  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize("terms, rows, columns", FEW)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_sums_of_products_of_a_few_columns(terms, rows, columns, dtype):
    """Lanes are columns of the side that has more of them; by itself and in a batch with the same bits."""
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.integers(-9, 9, (2, terms, n)) * 0.25, dtype) for n in (rows, columns))
    f = lambda x, y: jnp.matmul(x.T, y, preferred_element_type=np.int32 if dtype == "int32" else np.float32)
    each = np.stack([np.asarray(jax.jit(f)(*pair)) for pair in zip(x, y)])
    exact = np.einsum("bki,bkj->bij", np.asarray(x, "float64"), np.asarray(y, "float64"))
    np.testing.assert_array_equal(each, exact)  # multiples of a sixteenth, below 2**20
    np.testing.assert_array_equal(np.asarray(jax.jit(jax.vmap(f))(x, y)), each)


def test_lanes_lie_along_many_columns():
    x, y = jnp.ones((1000, 64)), jnp.ones((1000, 2))
    assert "rows 2, columns 64, terms 1000" in program(lambda x, y: x.T @ y, x, y)
    assert "rows 2, columns 64, terms 1000" in program(lambda x, y: y.T @ x, x, y)
    assert "contract float32 rows 3, columns 2, terms 1000" in program(lambda x, y: x.T @ y, x[:, :3], y)


@pytest.mark.parametrize("terms, rows, columns", [(2000, 300, 10), (1100, 1000, 8), (256, 512, 10), (64, 96, 14)])
def test_lanes_of_long_sums_lie_along_the_columns_that_are_read(terms, rows, columns):
    """Also where the result is turned back, which takes no time beside the sum."""
    x, y = jnp.ones((terms, rows)), jnp.ones((terms, columns))
    assert f"rows {columns}, columns {rows}, terms {terms}" in program(lambda x, y: x.T @ y, x, y)
    assert f"rows {columns}, columns {rows}, terms {terms}" in program(lambda x, y: (y.T @ x).T, x, y)


@pytest.mark.parametrize("shape", [(900, 300, 3), (60, 50, 2), (17, 400, 3)])
def test_terms_of_a_few_columns_are_brought_side_by_side(shape):
    m, k, n = shape
    rng = np.random.default_rng(0)
    x, w = jnp.asarray(rng.integers(-9, 9, (m, k)), "float32"), jnp.asarray(rng.integers(-9, 9, (k, n)), "float32")
    compiled = jax.jit(jnp.matmul).lower(x, w).compile()
    assert f"[1*i1 + {k}]" in compiled.as_text("nests")  # the second column
    np.testing.assert_array_equal(compiled(x, w), np.asarray(x) @ np.asarray(w))
    step = lambda _, c: (c @ w) @ w.T / 100  # in a loop, in which they stay as they are
    expected = np.asarray(x, "float64")
    for _ in range(3):
        expected = expected @ np.asarray(w, "float64") @ np.asarray(w, "float64").T / 100
    got = jax.jit(lambda x: lax.fori_loop(0, 3, step, x))(x)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_large_right_operand_whose_terms_lie_side_by_side_is_read_where_it_lies(dtype, batch):
    """What would be packed is more than the result, which is turned instead; a row has the bits of any number of rows."""
    few, terms, columns = 16, 200, 300
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x, w = (jnp.array(rng.normal(size=(*batch, n, terms)), dtype) for n in (few, columns))
        f = lambda x, w: jnp.einsum("...ik,...jk->...ij", x, w)
        assert f"rows {columns}, columns {few}, terms {terms}" in program(f, x, w)
        y = jax.jit(f)(x, w)
        np.testing.assert_allclose(y, np.einsum("...ik,...jk->...ij", x, w), rtol=1e-5, atol=1e-4)
        more = jnp.concatenate([jnp.ones((*batch, 280, terms), dtype), x], -2)
        assert f"rows {few + 280}, columns {columns}" in program(f, more, w)
        np.testing.assert_array_equal(jax.jit(f)(more, w)[..., 280:, :], y)
        layer = jax.jit(lambda x, w: jax.nn.relu(f(x, w) + 1) * 2)
        np.testing.assert_array_equal(layer(x, w), np.maximum(np.asarray(y) + 1, 0) * 2)


def test_what_is_packed_once_for_a_loop_stays_so():
    w, xs = jnp.ones((300, 200)), jnp.ones((5, 16, 200))
    steps = lambda w, xs: lax.scan(lambda c, x: (c, jnp.tanh(c + x.sum()) * (jnp.tanh(c + x) @ w.T)), 0.0, xs)[1]
    assert "rows 300, columns 16" not in program(steps, w, xs)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("batch", [(), (3,), (40,)])
def test_small_right_operands_whose_terms_lie_side_by_side_are_turned_once(dtype, batch):
    """Not gathered for each row; a member by itself has the bits that it has in a batch."""
    rng = np.random.default_rng(6)
    f = lambda x, w: jnp.einsum("...ik,...jk->...ij", x, w) + 1
    with jax.enable_x64(True):
        for rows, terms, columns in ((5, 2, 6), (5, 8, 6), (2, 3, 4), (12, 7, 11)):
            x, w = (jnp.array(rng.normal(size=(*batch, n, terms)) * 9, dtype) for n in (rows, columns))
            assert ": copy" in program(f, x, w) or terms > 2  # where vectors hold so many
            y = np.asarray(jax.jit(f)(x, w))
            np.testing.assert_allclose(y, np.einsum("...ik,...jk->...ij", x, w) + 1, rtol=1e-5, atol=1e-4)
            if batch:
                np.testing.assert_array_equal(jax.jit(f)(x[1], w[1]), y[1])
