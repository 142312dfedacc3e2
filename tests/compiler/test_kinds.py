"""Kinds of work that have a quick way of their own, against NumPy: what is read in parts, transposed, reshaped, in rows
of a few elements, by positions; and calls that do not use all of their arguments.
"""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.compiler.interpret.program import run
from catena.compiler.machine import X86_64_V3
from catena.compiler.native.compile import program_of
from catena.core import lazy
from catena.experimental import sparse


def agree(f, reference, *xs):
    """Compiled as NumPy computes it, or one function under both."""
    got = jax.tree.leaves(jax.jit(f)(*xs))
    expected = jax.tree.leaves(reference(*map(np.asarray, xs)))
    for a, b in zip(got, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def whole(seed: int, *shape):
    return jnp.asarray(np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32))


def test_joined_parts_are_read_where_they_lie():
    def stencil(np, x):
        return sum(np.roll(x, k, axis) for k in (-3, 1) for axis in (0, 1)), np.roll(x, 2, 0)[::2, 1:]

    agree(lambda x: stencil(jnp, x), lambda x: stencil(np, x), whole(0, 37, 50))
    for mode in ("reflect", "wrap", "symmetric", "edge"):
        widths = [((1, 2), (0, 5)), ((7, 0), (3, 3))]
        both = lambda np, x, mode=mode, widths=widths: [np.pad(x, w, mode=mode)[1:, ::-1] * 2 for w in widths]
        agree(lambda x, both=both: both(jnp, x), lambda x, both=both: both(np, x), whole(1, 6, 19))


def test_products_without_a_sum_and_of_permuted_operands():
    x, y, v = whole(2, 5, 6, 7), whole(3, 5, 4), whole(4, 5)
    equations = [("abc,ad->abcd", x, y), ("abc,ad->dcab", x, y), ("a,abc->cb", v, x), ("abc,a->cb", x, v)]
    for equation, *operands in equations:
        one = lambda np, *xs, e=equation: np.einsum(e, *xs)
        agree(lambda *xs, one=one: one(jnp, *xs), lambda *xs, one=one: one(np, *xs), *operands)
    moved = lambda np, v, x: np.tensordot(v, np.transpose(x * 2, (0, 2, 1)), 1)
    agree(lambda *xs: moved(jnp, *xs), lambda *xs: moved(np, *xs), v, x)


def test_products_of_one_term_each_are_elementwise():
    """An update of weights by one example is one pass; zeros keep their signs, as when they are evaluated eagerly."""
    x, y, w = whole(8, 70, 1) / 2, whole(9, 1, 90), whole(10, 70, 90)
    f = lambda w, x, y: w - 0.5 * (x @ y)
    assert "contract" not in jax.jit(f).lower(w, x, y).compile().as_text("program")
    agree(f, f, w, x, y)
    for equation, *operands in (("bik,bkj->bij", x[:, None], y.T[:70, :, None]), ("ik,jk->ji", x, y.T)):
        product = lambda *xs, e=equation: jnp.einsum(e, *xs)
        twice = np.asarray(jax.jit(lambda *xs, f=product: f(*xs) * 2)(*operands))
        agree(product, lambda *xs, e=equation: np.einsum(e, *xs), *operands)
        np.testing.assert_array_equal(twice.view(np.int32), (np.asarray(product(*operands)) * 2).view(np.int32))


def test_reductions_of_reshapes_and_transposes():
    def norms(np, x, y):
        outer = np.transpose(x[:, :, None] * y[:, None, :], (0, 2, 1))
        return np.sum(outer.reshape(len(x), -1) ** 2, 1), np.max(np.transpose(x + 1, (1, 0)) * 3, 0)

    agree(lambda *xs: norms(jnp, *xs), lambda *xs: norms(np, *xs), whole(5, 9, 21), whole(6, 9, 5))
    split = lambda np, x: np.transpose(x * x, (2, 0, 1)).reshape(6, -1)[::-1, 1:] - 1
    agree(lambda x: split(jnp, x), lambda x: split(np, x), whole(7, 4, 9, 10))


def test_rows_of_a_few_elements():
    for k in (3, 4, 5, 7, 8):
        x = whole(k, 70, k)
        both = lambda np, x: (np.max(x, 1), np.min(x, 1), np.sum(x, 1), np.argmax(x, 1), x.reshape(-1)[k - 1 :: k] * 2)  # noqa: B023
        agree(lambda x, both=both: both(jnp, x), lambda x, both=both: both(np, x), x)


def test_positions_of_the_best_are_the_first():
    for fill in (-np.inf, np.inf, np.nan, 1.0):
        x = np.where(np.random.default_rng(0).random((40, 90)) < 0.7, fill, 0.5).astype(np.float32)
        x[3], x[:, 5] = -np.inf, np.inf
        for axis in (0, 1):
            both = lambda np, x, axis=axis: (np.argmax(x, axis), np.argmin(x, axis))
            agree(lambda x, both=both: both(jnp, x), lambda x, both=both: both(np, x), x)


def test_a_long_vector_times_a_matrix():
    v, m = whole(8, 700), whole(9, 700, 600)
    both = lambda np, v, m: (v @ m, m.T @ v[:700], m @ v[:600])
    agree(lambda *xs: both(jnp, *xs), lambda *xs: both(np, *xs), v, m)


def test_gathers_of_computed_indices():
    x, i = whole(10, 30, 40), np.random.default_rng(1).integers(-40, 40, (30, 40)).astype(np.int32)
    agree(lambda x, i: jnp.take_along_axis(x, i, 1), lambda x, i: np.take_along_axis(x, i, 1), x, i)
    agree(lambda x, i: jnp.take_along_axis(x, i % 30, 0), lambda x, i: np.take_along_axis(x, i % 30, 0), x, i)
    agree(lambda x, i: x[i % 30, i], lambda x, i: x[i % 30, i], x, i)
    beyond = jax.jit(jnp.take_along_axis, static_argnums=2)(x, np.full((30, 1), 40, np.uint8), 1)
    assert np.isnan(beyond).all()


def test_calls_that_do_not_use_all_of_their_arguments():
    f = jax.jit(lambda x, unused, tree: (tree["b"] - x, x * 2))
    for k in range(3):
        one, two = f(jnp.full(3, k), jnp.ones(2), {"a": jnp.zeros(4), "b": jnp.arange(3)})
        assert one.tolist() == [-k, 1 - k, 2 - k] and two.tolist() == [2 * k] * 3


def test_sums_of_runs_of_rows():
    """Rows of products of sparse matrices: some empty, of two threads' tasks, of no bounds, and interpreted."""
    rng = np.random.default_rng(0)
    data, columns = whole(8, 9000), rng.integers(-40, 45, 9000).astype(np.int32)
    ends = np.sort(rng.choice(9000, 301)).astype(np.int32)
    ends[40:45] = ends[45]

    def f(data, columns, ends, x):
        shape = len(ends) - 1, len(x)
        return sparse.BCSR((data, columns, ends), shape=shape) @ x

    def expected(data, columns, ends, x):
        at, ends = np.where(columns < 0, columns + 40, columns), np.clip(ends, 0, len(data))
        rows = np.where((at < 40)[:, None], data[:, None] * x[np.minimum(at, 39)], 0)
        return np.stack([rows[a:b].sum(0) for a, b in zip(ends[:-1], ends[1:])])

    for bounds, width in ((ends, 21), (np.array([0, -5, 20_000, 3, 7], np.int32), 40)):
        args = data, columns, bounds, whole(9, 40, width)
        if bounds is ends or lazy.has_compiler():  # pointers out of order are no matrix: loops only stay within bounds
            agree(f, expected, *args)
        program = program_of(jax.make_jaxpr(f)(*args), machine=X86_64_V3)
        np.testing.assert_array_equal(run(program, list(map(np.asarray, args)))[0], expected(*map(np.asarray, args)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_reductions_over_axes_of_one_element(dtype):
    """They are the elements themselves, zeros of either sign and NaN as they are evaluated; positions are 0."""
    x = jnp.asarray([[[-0.0, 3.0]], [[float("nan") if "float" in dtype else 2.0, 1.0]]]).astype(dtype)
    for name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean"):
        f = lambda x, name=name: getattr(jnp, name)(x, 1)  # noqa: E731
        assert "reduce" not in jax.jit(f).lower(x).as_text(), name
        jitted, evaluated = (np.asarray(g(x)).astype("float64") for g in (jax.jit(f), f))
        np.testing.assert_array_equal(jitted, evaluated)
        np.testing.assert_array_equal(np.signbit(jitted[0]), np.signbit(evaluated[0]))


def test_a_slice_in_one_part_of_what_is_joined():
    """Other parts are not computed, unless they are tested."""
    x, y = whole(1, 500, 6), whole(2, 300, 6)
    joined = lambda np, x, y: np.concatenate([np.exp(x), y * 2, np.sin(x)], 0)  # noqa: E731
    for start, stop, step in ((510, 700, 1), (500, 800, 3), (0, 500, 1), (0, 501, 1), (499, 801, 7), (799, 800, 1)):
        agree(lambda x, y: joined(jnp, x, y)[start:stop:step], lambda x, y: joined(np, x, y)[start:stop:step], x, y)  # noqa: B023
    text = jax.jit(lambda x, y: joined(jnp, x, y)[510:700, ::2]).lower(x, y).compile().as_text("program")
    assert "exp" not in text and "sin" not in text and "concatenate" not in text


def test_operations_on_parts_that_are_joined_along_rows():
    """They are done where the parts are computed, row by row, and the whole is stored once."""
    x, y = whole(3, 5, 40, 8), whole(4, 3, 40, 8)
    join = lambda np, x, y: np.concatenate([x * 2, y + 1, x - 3, -y], 0)  # noqa: E731
    agree(lambda x, y: join(jnp, x, y) * 3 + 1, lambda x, y: join(np, x, y) * 3 + 1, x, y)
    agree(lambda x, y: jnp.exp(join(jnp, x, y) / 8), lambda x, y: np.exp(join(np, x, y) / 8), x, y)
    agree(lambda x, y: jnp.sum(join(jnp, x, y) ** 2, 0), lambda x, y: np.sum(join(np, x, y) ** 2, 0), x, y)
    agree(lambda x, y: join(jnp, x, y)[::2] * 3, lambda x, y: join(np, x, y)[::2] * 3, x, y)
    text = jax.jit(lambda x, y: join(jnp, x, y) * 3 + 1).lower(x, y).compile().as_text("program")
    assert text.count("launch") == 1 and "0 bytes of temporaries" in text
