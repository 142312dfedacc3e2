"""Arrays of 40 axes, of more than any array can have, and of sizes 0 and 1: a sample of `benchmarks/extents.py`."""

import importlib.util
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.special

import catena as jax
import catena.lax as lax
import catena.numpy as jnp
from catena.core.array import make_array

spec = importlib.util.spec_from_file_location("extents", Path(__file__).parents[2] / "benchmarks" / "extents.py")
extents = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extents)

MANY = (2,) + (1,) * 38 + (3,)


@pytest.mark.parametrize(
    "name", "argsort sort partition lexsort kron tile mean matmul take_along_axis median unique linalg.slogdet".split()
)
def test_functions_of_40_axes(name):
    assert list(extents.numpy_with_axes(name)) == []


@pytest.mark.parametrize("name", "sort top_k igamma_grad_a select_and_gather_add bitcast_int8_int4 cumsum conv".split())
def test_primitives_mapped_over_40_axes(name):
    assert list(extents.primitives_with_axes(name)) == []


@pytest.mark.parametrize("name", ["rademacher", "independent", "split"])
def test_samples_of_40_axes(name):
    assert list(extents.samplers_with_axes(name)) == []


@pytest.mark.parametrize("name", ["concatenate", "dot", "histogram", "median", "interp"])
def test_axes_of_size_0_and_1(name):
    assert list(extents.empty(name)) == []


def test_arithmetic_of_40_axes_compiles():
    x = jnp.arange(6.0).reshape(MANY)
    f = jax.jit(lambda x: (2 * x + x[1:], x.transpose(), x.sum((0, 7)), jnp.sort(x, 0)))
    for eager, compiled in zip(f.__wrapped__(x), f(x), strict=True):
        np.testing.assert_array_equal(eager, compiled)


def nested(depth: int):
    x = 1.0
    for _ in range(depth):
        x = [x]
    return x


LISTS = [1.0]
LISTS.append(LISTS)
X64, X40 = np.ones((1,) * 64), np.ones((1,) * 40)


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.zeros((1,) * 65),
        lambda: jnp.ones_like(X40, shape=(1,) * 65),
        lambda: jnp.reshape(jnp.asarray(X64), (1,) * 65),
        lambda: jnp.asarray(X64).reshape((1,) * 65),
        lambda: jnp.expand_dims(X64, 0),
        lambda: jnp.asarray(X64)[None],
        lambda: jnp.stack([jnp.asarray(X64)] * 2),
        lambda: jnp.stack([jnp.asarray(X64)] * 2, 1),
        lambda: jnp.broadcast_to(X64, (2, *X64.shape)),
        lambda: jnp.asarray(X64).at[None].set(1),
        lambda: jnp.tile(X64, (2,) * 65),
        lambda: jnp.tensordot(X40, X40, 0),
        lambda: jnp.ix_(*[np.ones(1, int)] * 65),
        lambda: jnp.array(nested(65)),
        lambda: jnp.array(LISTS),
        lambda: lax.full((1,) * 65, 1),
        lambda: jax.random.normal(jax.random.key(0), (1,) * 65),
        lambda: jax.random.split(jax.random.key(0), (1,) * 65),
    ],
)
def test_more_axes_than_an_array_can_have(make):
    for call in (make, jax.jit(make)):
        with pytest.raises(ValueError, match="arrays have at most 64 axes"):
            call()


def test_lists_of_blocks_that_are_nested_too_deep():
    for lists in (LISTS, nested(70)):
        with pytest.raises(ValueError, match="nested more than 64 deep"):
            jnp.block(lists)


def test_vmap_nested_deeper_than_axes():
    f = lambda x: x * jnp.ones(())  # noqa: E731
    for _ in range(60):
        f = jax.vmap(f, in_axes=None, axis_size=1)
    assert f(2.0).shape == jax.jit(f)(2.0).shape == (1,) * 60
    for _ in range(40):
        f = jax.vmap(f, in_axes=None, axis_size=1)
    for call in (f, jax.jit(f)):
        with pytest.raises(ValueError, match="arrays have at most 64 axes"):
            call(2.0)


# ---- more than 2**31 elements; pages of zeros that nobody touches cost no memory

LONG = 2**31 + 8


@pytest.fixture(scope="module")
def long():
    values = np.zeros(LONG, np.int8)
    values[-3], values[2], values[2**31] = 9, 4, 1
    return make_array(values)


@pytest.mark.parametrize(
    "read, expected",
    [
        (lambda x, i: x[i], 9),
        (lambda x, i: x[jnp.array([-3, 2, -8])], [9, 4, 1]),
        (lambda x, i: x[jnp.stack([i, i + 5, i - 5])], [9, 4, 1]),
        (lambda x, i: x.at[jnp.stack([i, i + 5])].get(mode="fill"), [9, 4]),
        (lambda x, i: x.reshape(2, -1)[1, i], 9),
        (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), [9, 0]),
        (lambda x, i: lax.dynamic_slice(x, (np.int8(-3),), (2,)), [9, 0]),
        (lambda x, i: lax.dynamic_slice(x, (2**31,), (1,)), [1]),
        (lambda x, i: lax.dynamic_index_in_dim(x, i), [9]),
        (lambda x, i: lax.index_take(x, (jnp.stack([i, i + 5]),), (0,)), [9, 4]),
        (lambda x, i: jnp.take(x, jnp.stack([i, i + 5])), [9, 4]),
        (lambda x, i: jnp.take(x, jnp.stack([i, i + 5]), mode="wrap"), [9, 4]),
        (lambda x, i: jnp.take_along_axis(x, jnp.stack([i, i + 5]), 0), [9, 4]),
        (lambda x, i: jax.vmap(lambda k: x[k])(jnp.stack([i, i + 5])), [9, 4]),
        (lambda x, i: jax.vmap(lambda k: lax.dynamic_slice(x, (k,), (1,)))(jnp.stack([i, i + 5])), [[9], [4]]),
    ],
)
def test_positions_beyond_32_bits_are_read(long, read, expected):
    i = jnp.int32(-3)
    assert read(long, i).tolist() == expected
    assert jax.jit(lambda i: read(long, i))(i).tolist() == expected


def test_positions_beyond_32_bits_are_written():
    x, i = jax.ShapeDtypeStruct((LONG,), "int8"), jax.ShapeDtypeStruct((), "int32")
    for write in (
        lambda x, i: x.at[-1].set(11),
        lambda x, i: x.at[jnp.array([-1, 0])].add(1),
        lambda x, i: lax.dynamic_update_slice(x, jnp.ones(1, "int8"), (LONG - 1,)),
    ):
        closed = jax.make_jaxpr(write)(x, i)
        held = [np.asarray(c).max() for c in closed.consts] + [
            np.asarray(v.val).max() for e in closed.jaxpr.eqns for v in e.invars if hasattr(v, "val")
        ]
        assert max(held) == LONG - 1
    text = str(jax.make_jaxpr(lambda x, i: x.at[i].multiply(2))(x, i))
    assert "i64[] = add" in text and str(LONG) in text


FIND = [
    lambda x: lax.argmax(x, 0, "int32"),
    jnp.argmax,
    jnp.argmin,
    jnp.argsort,
    lambda x: jnp.argpartition(x, 3),
    lambda x: jnp.lexsort((x,)),
    lambda x: lax.top_k(x, 2),
    lambda x: jnp.nonzero(x, size=3),
    lambda x: jnp.argwhere(x, size=3),
    lambda x: jnp.searchsorted(x, jnp.int8(3)),
    lambda x: jnp.digitize(jnp.int8(3), x),
    lambda x: jnp.indices((LONG,)),
    lambda x: lax.iota("int32", LONG),
    lambda x: jnp.insert(x, jnp.argmax(x), 3),
    lambda x: jnp.arange(LONG),
    lambda x: jnp.insert(x, jnp.array([3]), jnp.int8(5)),
    lambda x: jnp.unique(x, return_index=True, size=3),
    lambda x: jnp.compress(x, x, size=3),
    lambda x: jax.random.choice(jax.random.key(0), x, (2,)),
    lambda x: jax.random.choice(jax.random.key(0), LONG, (2,)),
]


@pytest.mark.parametrize("find", [*FIND, lambda x: lax.approx_max_k(x.astype("float32"), 2)])
def test_results_that_cannot_hold_positions(find):
    with pytest.raises(OverflowError, match=r"int32 cannot hold the positions of \d+ elements"):
        jax.eval_shape(find, jax.ShapeDtypeStruct((LONG,), "int8"))


@pytest.mark.parametrize("find", FIND)
def test_eager_results_that_cannot_hold_positions(long, find):
    """It is said before minutes of work, or gigabytes of positions."""
    with pytest.raises(OverflowError, match=r"int32 cannot hold the positions of \d+ elements"):
        find(long)


def test_an_element_is_inserted_without_positions():
    found = jax.eval_shape(lambda x: jnp.insert(x, -3, jnp.int8(5)), jax.ShapeDtypeStruct((LONG,), "int8"))
    assert found.shape == (LONG + 1,)


@pytest.mark.parametrize("arguments", [(300,), (300.0,), (2.5,), (-3,), (2, 300), (0, 300, 2)])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32"])
def test_ranges_count_around_where_an_integer_ends(arguments, dtype):
    compiled = jax.jit(lambda: jnp.arange(*arguments, dtype=dtype))()
    assert jnp.array_equal(jnp.arange(*arguments, dtype=dtype), compiled)


def test_narrow_indices_into_longer_axes():
    x, i = jnp.arange(600).reshape(300, 2), np.int8(-1)
    for f in (
        lambda i: lax.dynamic_slice(x, (i, i), (1, 1))[0, 0],
        lambda i: x[i, 1],
        lambda i: jnp.take(x[:, 1], i, mode="wrap"),
        lambda i: lax.index_take(x[:, 1], (i.reshape(1),), (0,))[0],
    ):
        assert f(jnp.asarray(i)) == jax.jit(f)(i) == 599
    with pytest.raises(OverflowError, match="int8 cannot hold the positions of 300 elements along axis 0"):
        lax.argmax(x, 0, "int8")


def test_positions_in_arrays_that_are_larger_than_int32():
    i = jnp.array([5, -1, 2**31 - 1])
    for f in (jnp.unravel_index, jax.jit(jnp.unravel_index, static_argnums=1)):
        assert np.stack(f(i, (2**17, 2**17))).tolist() == [[0, 2**17 - 1, 2**14 - 1], [5, 2**17 - 1, 2**17 - 1]]
    with pytest.raises(ValueError, match="int32 cannot hold the positions in an array of shape"):
        jnp.ravel_multi_index((jnp.array([1]), jnp.array([1])), (2**17, 2**17), mode="clip")


# ---- eager and compiled alike


@pytest.mark.parametrize("sizes", [[2, -1, 2], [2**31 - 1, 2**31 - 1, 3], [-3, 1, 1], [1, 5, -2], [4, 4, 4]])
def test_ragged_products_of_odd_group_sizes(sizes):
    expected = {-1: [2, 8, 6, 0], 2**31 - 1: [8, 2, 2, 2], 1: [0, 0, 0, 0], 5: [2, 4, 4, 4], 4: [2, 2, 2, 2]}[sizes[1]]
    args = jnp.ones((4, 2)), jnp.arange(1.0, 4)[:, None, None] * jnp.ones((3, 2, 1)), jnp.array(sizes, "int32")
    for f in (lax.ragged_dot, jax.jit(lax.ragged_dot)):
        assert f(*args).ravel().tolist() == expected  # as JAX 0.10.2


@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin", "amax"])
def test_extremes_of_zeros_of_two_signs(name):
    f = getattr(jnp, name)
    for zeros in ([-0.0, 0.0, -0.0], [0.0, -0.0, 0.0], [0.0] + [-0.0] * 40, [-0.0] * 40 + [0.0]):
        for call in (f, jax.jit(f), lambda x: f(jnp.stack([x, x]), axis=1)[1]):
            assert np.signbit(call(jnp.array(zeros))) == name.endswith("min")


@pytest.mark.parametrize("method", ["sort", "compare_all"])
def test_ranks_in_data_that_is_not_sorted(method):
    a = np.array([3.0, np.nan, 1.0, 2.0, 5.0], np.float32)
    for side in ("left", "right"):
        search = lambda a, v: jnp.searchsorted(a, v, side, method=method)  # noqa: E731, B023
        np.testing.assert_array_equal(search(a, a), jax.jit(search)(a, a))


@pytest.mark.share(2)
@pytest.mark.parametrize("a, b", [(1e30, 1e30), (1e12, 1e13), (1e13, 1e12), (1e11, 1e14), (1e14, 1e14)])
def test_incomplete_beta_of_huge_parameters(a, b):
    a, b = np.float32(a), np.float32(b)
    mean, deviation = float(a) / (float(a) + float(b)), np.sqrt(float(a) * float(b) / (float(a) + float(b)) ** 3)
    x = np.float32([mean, mean + deviation, mean - 2 * deviation, 0, 1])
    # Edgeworth's series to the skewness: what is left out is of the order of 1 / a. (SciPy before 1.16 is wrong here.)
    a64, b64, z = float(a), float(b), (x.astype(float) - mean) / deviation
    skewness = 2 * (b64 - a64) / np.sqrt((a64 + b64) * a64 * b64)
    bell = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    expected = scipy.special.ndtr(z) - skewness / 6 * (z * z - 1) * bell
    np.testing.assert_allclose(jax.jit(lambda x: lax.betainc(a * jnp.ones(5), b * jnp.ones(5), x))(x), expected, 1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("f", [jnp.sum, jnp.prod, lambda x: jnp.delete(x, 5)])
def test_long_arrays_of_narrow_integers_are_not_converted_whole(dtype, f):
    """An array of 2**31 bytes would take 8 GiB more."""
    x = jnp.ones(1 << 20, dtype)
    f(x)
    tracemalloc.start()
    try:
        f(x)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.5 * x.nbytes
