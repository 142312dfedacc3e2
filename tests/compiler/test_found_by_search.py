"""Defects that searches with random programs found, each by the smallest program that shows it."""

import re

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.compiler.native.compile import nests


def agrees(f, *args):
    """Compiled and eager give the same bits."""
    for got, expected in zip(jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(f(*args)), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape, axes", [((2, 1), (1,)), ((1, 1), (0, 1)), ((1, 3), (0,)), ((1,), (0,))])
def test_folds_of_ones_own_over_one_element(shape, axes):
    combine = lambda a, b: (a[0] + b[0], lax.max(a[1], b[1]))
    zero = np.int32(0)
    agrees(lambda x: lax.reduce((x, x), (zero, zero), combine, axes), jnp.arange(np.prod(shape)).reshape(shape) - 1)


@pytest.mark.parametrize("f", [lambda z: jnp.prod(z, 1), lambda z: lax.cumprod(z, 1)])
def test_complex_products_of_one_element(f):
    agrees(f, jnp.asarray([[1 + 2j], [3j]], np.complex64))


def test_cumlogsumexp_of_one_element():
    agrees(lambda x: lax.cumlogsumexp(x, 1), jnp.asarray([[1.0], [-2.0]]))


@pytest.mark.share(2)
@pytest.mark.parametrize("shape, axis", [((100, 2), 1), ((2, 100), 0), ((37, 5), 1), ((4, 50, 3), 2), ((3, 40), 1)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_functions_of_many_rows_at_once(shape, axis, reverse):
    """In lanes: each row has the bits that it has alone."""
    x = np.random.default_rng(0).standard_normal(shape, np.float32)
    got = np.asarray(jax.jit(lambda x: lax.cumlogsumexp(x, axis, reverse=reverse))(x))
    alone = jax.jit(lambda row: lax.cumlogsumexp(row, reverse=reverse))
    np.testing.assert_array_equal(got, np.apply_along_axis(lambda row: np.asarray(alone(row)), axis, x))
    ends = np.flip(x, axis) if reverse else x
    expected = np.logaddexp.accumulate(ends.astype("float64"), axis)
    np.testing.assert_allclose(got, np.flip(expected, axis) if reverse else expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axis", [1, 0])
def test_long_functions_are_in_lanes_where_running_folds_read_them(dtype, axis):
    """Also where the elements of a lane lie apart: a function one by one takes longer than reading them."""
    density = jax.scipy.stats.gamma.logpdf
    f = lambda x: jnp.cumsum(density(x * x + 0.1, x[0, 0] ** 2 + 1), axis)
    with jax.enable_x64(True):
        x = np.random.default_rng(0).normal(size=(12_500, 7)).astype(dtype)
        assert any("log_gamma" in nest and "lanes" in nest for nest in nests(jax.make_jaxpr(f)(x)))
        wanted = np.cumsum(density(x.astype(np.float64) ** 2 + 0.1, x[0, 0].astype(np.float64) ** 2 + 1), axis)
        np.testing.assert_allclose(jax.jit(f)(x), wanted, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_gradients_along_a_few_elements(n):
    """Of a product of few numbers: those of the others. Lanes lie along the rows, of which there are many."""
    x = np.random.default_rng(n).uniform(1, 2, (83, n)).astype("float32")
    got = jax.jit(jax.grad(lambda x: jnp.sum(jnp.prod(x, 1))))(x)
    others = [np.delete(x.astype("float64"), k, 1).prod(1) for k in range(n)]
    np.testing.assert_allclose(got, np.stack(others, 1), rtol=1e-6)


def test_complex_sums_over_nothing():
    ones = jnp.ones((50, 50), np.complex64) * (1 + 1j)
    for f in (lambda z: z @ z.T, lambda z: jnp.sum(z, 1), lambda z: jnp.prod(z, 1)):
        jax.jit(lambda z: z @ z)(ones)  # leaves memory that is not zero
        agrees(f, jnp.zeros((50, 0), np.complex64))


def test_a_donated_argument_that_is_returned_stays_whole():
    kept, changed = jax.jit(lambda c: (c, c.at[0].set(1)), donate_argnums=0)(jnp.zeros(3))
    np.testing.assert_array_equal(kept, [0, 0, 0])
    np.testing.assert_array_equal(changed, [1, 0, 0])


def test_bits_of_a_scalar_become_a_vector():
    assert lax.bitcast_convert_type(jnp.int32(5), np.int16).shape == (2,)
    agrees(lambda x: lax.bitcast_convert_type(x, np.int16), jnp.int32(5))


@pytest.mark.parametrize("cumulate", [lax.cumsum, lax.cummax, lax.cumlogsumexp])
def test_running_folds_over_nothing_write_nothing(cumulate):
    text = jax.jit(lambda x: cumulate(x, axis=1)).lower(jnp.ones((16, 0))).compile().as_text()
    assert "store float" not in text


@pytest.mark.parametrize("dtype", [jnp.float8_e5m2, jnp.float8_e4m3fn, jnp.bfloat16, jnp.float16])
def test_sums_of_small_floats_are_rounded_once(dtype):
    agrees(lambda x: jnp.sum(x, 0), jnp.ones((100, 3), dtype))
    assert jnp.sum(jnp.ones(96, dtype)) == 96


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [jnp.float8_e5m2, jnp.float8_e4m3fn, jnp.bfloat16])
def test_small_floats_are_searched_sorted_and_windowed(dtype):
    x = jnp.asarray([3, 1, 2, -1.5, np.nan, 0, -0.0], dtype)
    agrees(lambda x: jnp.unique(x, size=4), x)
    agrees(lambda x: jnp.searchsorted(jnp.sort(x), x), x)
    agrees(lambda x: lax.cumlogsumexp(x[:4]), x)  # -inf, where it begins, is not in e4m3fn
    agrees(lambda x: lax.conv_general_dilated(x[None, None, :4], x[None, None, :2], (1,), "VALID"), x)


ORDER = jnp.array([1, 2, 0])
READ_AGAIN = {
    "set": lambda x: x.at[ORDER].set(x),
    "add": lambda x: x.at[ORDER].add(x),
    "part": lambda x: lax.dynamic_update_slice(x, x[:2], (1, 0)),
    "reversed": lambda x: x.at[ORDER].set(x[::-1]),
    "indices": lambda x: x.at[x[0, :1] % 3].set(x[:1]),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("name", READ_AGAIN)
@pytest.mark.parametrize("begin", [lambda x: x, lambda x: x + 1, lambda x: x.T])
def test_updates_that_read_what_they_change(name, begin):
    update, x = READ_AGAIN[name], jnp.arange(9).reshape(3, 3)
    agrees(lambda x: update(update(begin(x))), x)
    agrees(lambda x: lax.fori_loop(0, 3, lambda i, c: update(begin(c)), x), x)
    agrees(lambda x: lax.scan(lambda c, _: (update(begin(c)), c), x, None, length=3), x)
    given_up = jax.jit(lambda x: update(begin(x)), donate_argnums=0)(jnp.array(x))
    np.testing.assert_array_equal(given_up, update(begin(x)))


def program(f, *args) -> str:
    return jax.jit(f).lower(*args).compile().as_text("program")


def test_numbers_that_are_results_are_no_array_where_they_are_read():
    """Zeros that are a gradient are written once, and known where other gradients choose between them and others."""
    f = jax.grad(lambda a, x: jnp.sum(jnp.clip(x, -1, 2) + 0 * a), (0, 1))
    x = jnp.asarray(np.random.default_rng(0).standard_normal(3000) * 3, "float32")
    assert not re.search(r"result 0\[12000\].* ->", program(f, x, x))
    agrees(f, x, x)


CHOICES = {
    "isfinite": lambda x: jnp.where(jnp.isfinite(x), x, 0),
    "above": lambda x: jnp.where(x > 0.5, x, -1),
    "twice": lambda x: x * jnp.abs(x),
}


@pytest.mark.parametrize("name", CHOICES)
def test_parts_are_read_where_they_lie_by_a_choice_too(name):
    """What compares the elements of a concatenation, and chooses among them, is one loop."""
    f = lambda x: CHOICES[name](jnp.stack([x * k for k in range(1, 5)]))
    x = np.random.default_rng(0).standard_normal((256, 100)).astype("float32")
    x[3, 4] = np.inf
    assert "0 bytes of temporaries" in program(f, x)
    agrees(f, x)


@pytest.mark.parametrize("steps, is_stored", [(3, False), (9, True)])
def test_what_is_made_of_one_large_array_is_made_again(steps, is_stored):
    """A few operations of an array that is read anyway are not written for those who need them after a fold."""

    def f(x):
        y = x
        for k in range(steps):
            y = jnp.maximum(y, k - 2.0) if k % 2 else y * 1.5
        return y / (jnp.sum(y) + 1.0)

    x = np.random.default_rng(0).uniform(1, 2, 70_000).astype("float32")
    assert len(re.findall(r"-> .*\[280000\]", program(f, x))) == 1 + is_stored
    np.testing.assert_allclose(jax.jit(f)(x), f(x), rtol=1e-5)


@pytest.mark.share(7)
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(5, 3, 70), (4, 64, 64), (3, 9, 7)])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "argmin", "any", "mean"])
def test_folds_of_arrays_that_are_stacked(name, shape, axis):
    """As under vmap, of four multiples of an array: each part is folded where it is computed."""
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    fold = {"any": lambda x, a, of: of.any(x > 1.5, a)}.get(name, lambda x, a, of: getattr(of, name)(1 + x / 8, a))
    made = jax.jit(lambda x: fold(jnp.stack([x * k for k in range(1, 5)]), axis, jnp))(x)
    wanted = fold(np.stack([x * np.float32(k) for k in range(1, 5)]), axis, np)
    np.testing.assert_allclose(made, wanted, rtol=2e-5, atol=1e-5)
    mapped = jax.jit(lambda x: jax.vmap(lambda x: fold(x, -1, jnp))(jnp.stack([x * k for k in range(1, 5)])))(x)
    np.testing.assert_allclose(
        mapped, fold(np.stack([x * np.float32(k) for k in range(1, 5)]), -1, np), rtol=2e-5, atol=1e-5
    )


@pytest.mark.parametrize("shape", [(300, 200), (5, 700), (3, 4, 90)])
def test_stacked_arrays_that_several_operations_read_are_not_written(shape):
    """Operations between, which read each other, are done where the one is that they are for."""
    wanted = lambda x, of: of.where(of.isfinite(x), x, 0.0) - x / 3
    stacked = lambda x, of: of.stack([x * np.float32(k) for k in range(1, 5)])
    f = lambda x: wanted(stacked(x, jnp), jnp)
    x = np.random.default_rng(9).standard_normal(shape).astype(np.float32)
    x[0, 3] = np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(jax.jit(f)(x), wanted(stacked(x, np), np), rtol=1e-6)
    if shape[0] == 300:
        assert len(nests(jax.make_jaxpr(f)(x))) == 1


def test_arrays_that_are_stacked_for_a_fold_are_not_written():
    x = np.ones((300, 200), np.float32)
    made = nests(jax.make_jaxpr(lambda x: jnp.stack([x * k for k in range(1, 5)]).sum(1))(x))
    assert len(made) == 1


def test_sums_of_mixed_layers_after_a_loop():
    """The cotangent of the sum is one number everywhere, which a product reads and a loop's memory may not be."""

    def loss(table, gate, up, down):
        x = lax.scan(lambda c, row: (0.9 * c + row, c), table[0] * 0, table)[1]
        gates = jax.nn.softmax(x @ gate)
        hidden = jax.nn.relu(jnp.einsum("nd,edf->nef", x, up))
        return jnp.sum(jnp.einsum("ne,nef,efd->nd", gates, hidden, down))

    make = np.random.default_rng(0)
    args = [make.normal(0, 0.3, shape).astype(np.float32) for shape in [(64, 32), (32, 4), (4, 32, 32), (4, 32, 32)]]
    slopes = jax.grad(loss, (0, 1, 2, 3))
    compiled = jax.jit(slopes)(*args)
    with jax.disable_jit():
        expected = slopes(*args)
    for got, other in zip(compiled, expected, strict=True):
        np.testing.assert_allclose(got, other, rtol=1e-3, atol=1e-3)
