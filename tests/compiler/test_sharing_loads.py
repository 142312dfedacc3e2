"""Rows that are folded with one vector are folded several at once, each as it is alone."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.kernels import scheduling
from catena.compiler.kernels.body import Stmt
from catena.compiler.kernels.loops import Fold, Nest
from catena.compiler.machine import AARCH64, X86_64, X86_64_V3, X86_64_V4

KINDS = {"sum": jnp.sum, "max": jnp.max, "prod": jnp.prod}


def integers(*shape, low=-4, high=5):
    return np.random.default_rng(0).integers(low, high, shape)


def product_nest(rows: int, columns: int) -> Nest:
    """M @ v as a loop nest that is not scheduled."""
    at = lambda *terms: (0, tuple((d, k) for d, k in enumerate(terms) if k), ())
    loads = [Stmt("load", "float32", (), (0, "float32", at(columns, 1))),
             Stmt("load", "float32", (), (1, "float32", at(0, 1)))]  # fmt: skip
    fold = Fold("dot", (0, 1), ("float32",), ((2, "float32", at(1)),))
    return Nest([rows, columns], frozenset([1]), loads, [0b11, 0b10], folds=[fold])


@pytest.mark.parametrize("machine", [X86_64, X86_64_V3, X86_64_V4, AARCH64])
def test_accumulators_stay_in_registers(machine):
    for columns in (24, 64, 1000):
        nest = scheduling.schedule(product_nest(100, columns), machine)
        assert nest.together.what == "share"
        assert 2 * nest.together.size * nest.unroll <= machine.vector_registers
    assert scheduling.schedule(product_nest(1, 1000), machine).together is None  # nothing is shared
    assert scheduling.schedule(product_nest(100, 1000), machine, in_place=True).together is None


@pytest.mark.share(6)
@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 65])
@pytest.mark.parametrize("columns", [3, 8, 31, 32, 100, 2500])
def test_products_with_vectors(rows, columns):
    m, v = integers(rows, columns), integers(columns)
    for dtype in ("float32", "int32"):
        a, b = jnp.asarray(m, dtype), jnp.asarray(v, dtype)
        np.testing.assert_array_equal(jax.jit(jnp.matmul)(a, b), m @ v)
        np.testing.assert_array_equal(jax.jit(lambda a, b: jax.vmap(jnp.dot, (0, None))(a, b))(a, b), m @ v)


@pytest.mark.parametrize("kind", KINDS)
def test_folds_with_a_vector(kind):
    m, v, w = integers(37, 101, low=1, high=3), integers(101, low=1, high=3), integers(101)
    fold = getattr(np, kind)
    for dtype in ("float32", "int32"):
        a, b, c = (jnp.asarray(x, dtype) for x in (m, v, w))
        f = jax.jit(lambda a, b, c: (KINDS[kind](a * b, 1), KINDS[kind](a + c, 1)))
        for got, x in zip(f(a, b, c), ((m * v).astype(dtype), (m + w).astype(dtype)), strict=True):
            np.testing.assert_array_equal(got, fold(x, 1))


def test_a_row_is_summed_as_it_is_alone():
    m, v = (np.random.default_rng(1).normal(size=s).astype("f") for s in ((19, 777), (777,)))
    together = np.asarray(jax.jit(jnp.matmul)(m, v))
    alone = [np.asarray(jax.jit(jnp.matmul)(m[k : k + 1], v))[0] for k in range(19)]
    np.testing.assert_array_equal(together, alone)


def column_sums(rows: int, columns: int) -> Nest:
    """Sums of columns that lie side by side."""
    at = (0, ((0, columns), (1, 1)), ())
    load = Stmt("load", "float32", (), (0, "float32", at))
    fold = Fold("sum", (0,), ("float32",), ((1, "float32", (0, ((1, 1),), ())),))
    return Nest([rows, columns], frozenset([0]), [load], [0b11], folds=[fold])


@pytest.mark.parametrize("rows, columns, along", [(300, 3, 0), (40, 5, 0), (300, 8, 1), (10, 3, 1), (100_000, 3, 1)])
def test_lanes_along_what_is_folded_where_columns_are_few(rows, columns, along):
    """Few columns leave most of a vector empty; but many rows are not read once for each of them."""
    nest = scheduling.schedule(column_sums(rows, columns), X86_64_V4)
    assert nest.vector == along


@pytest.mark.share(4)
@pytest.mark.parametrize("columns", range(2, 6))
@pytest.mark.parametrize("rows", [15, 17, 33, 300])
def test_sums_of_few_columns(rows, columns):
    x, y = integers(7, rows, columns).astype("float32"), integers(5, rows).astype("float32")
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.sum(x, 1))(x), x.sum(1))
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.max(x, 1))(x), x.max(1))
    np.testing.assert_array_equal(jax.jit(lambda y, x: y @ x)(y, x[0]), y @ x[0])


@pytest.mark.parametrize("rows", [8, 9, 33])
def test_rows_that_are_told_by_their_numbers(rows):
    """A row of a matrix whose others are zeros is a choice by the number of a row, which differs in rows at once."""

    def f(v, m, i):
        chosen = jnp.where(jnp.arange(rows)[:, None] == i, v, 0)
        return chosen, jnp.sum(m * chosen, 1)

    v, m = integers(16), integers(rows, 16)
    expected = np.zeros((rows, 16))
    expected[3] = v
    chosen, total = jax.jit(f)(jnp.float32(v), jnp.float32(m), 3)
    np.testing.assert_array_equal(chosen, expected)
    np.testing.assert_array_equal(total, (m * expected).sum(1))
