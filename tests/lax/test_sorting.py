"""Sorting and selection."""

import ml_dtypes
import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena import lax
from catena.core.dtypes import FLOATS, itemsize_bits
from catena.lax import native
from catena.lax.order_statistics import order_statistics
from checkers import check_primitive, raises

DTYPES = ["float32", "float16", "int32", "int8", "uint16", "bool", ml_dtypes.bfloat16, ml_dtypes.int4]


def both(f, *args):
    """The results of ``f``, eager and compiled, which must agree."""
    eager, compiled = f(*args), catena.jit(f)(*args)
    for e, c in zip(catena.tree_util.tree_leaves(eager), catena.tree_util.tree_leaves(compiled), strict=True):
        np.testing.assert_array_equal(np.asarray(e).astype(np.complex128), np.asarray(c).astype(np.complex128))
    return eager


@pytest.mark.share(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_array(dtype, axis):
    x = np.random.default_rng(0).integers(-5, 5, (6, 9)).astype(dtype)
    out = np.asarray(both(lambda x: lax.sort(x, axis), x) if dtype is not ml_dtypes.int4 else lax.sort(x, axis))
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out.astype(np.float64), np.sort(x.astype(np.float64), axis))


@pytest.mark.share(2)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8"])
def test_values_follow_their_keys_stably(dtype, axis):
    with catena.enable_x64(True):
        keys = np.random.default_rng(0).integers(0, 4, (7, 40)).astype(dtype)
        values = np.arange(280).reshape(7, 40)
        order = np.argsort(keys, axis=axis, kind="stable")
        k, v = both(lambda k, v: lax.sort_key_val(k, v, axis), keys, values)
        np.testing.assert_array_equal(np.asarray(k), np.take_along_axis(keys, order, axis))
        np.testing.assert_array_equal(np.asarray(v), np.take_along_axis(values, order, axis))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.itemsize == 1], ids=str)
def test_all_values_of_a_float_of_a_byte(dtype):
    """Their sign is in the first bit (8 bits), in another (4 and 6), or nowhere (e8m0); NaN is anywhere."""
    codes = np.random.default_rng(0).permutation(1 << itemsize_bits(dtype)).astype(np.uint8)
    x = codes.view(dtype)
    out = np.asarray(both(lax.sort, x)).astype(np.float32)
    np.testing.assert_array_equal(out, np.sort(x.astype(np.float32)))
    keys, order = both(lambda x: lax.sort_key_val(x, np.arange(len(x))), x)
    np.testing.assert_array_equal(np.asarray(order), np.argsort(x.astype(np.float32), kind="stable"))


def test_several_keys():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 3, 50).astype(np.float32) for _ in range(2))
    c = np.arange(50)
    order = np.lexsort((b, a))
    out = both(lambda a, b, c: lax.sort((a, b, c), num_keys=2), a, b, c)
    for got, given in zip(out, (a, b, c), strict=True):
        np.testing.assert_array_equal(np.asarray(got), given[order])


def test_special_numbers():
    x = np.array([0.0, -0.0, np.nan, -np.nan, 1, -np.inf, np.inf, -0.0], np.float32)
    out = np.asarray(both(lax.sort, x))
    np.testing.assert_array_equal(out, [-np.inf, 0, -0.0, -0.0, 1, np.inf, np.nan, np.nan])
    assert np.signbit(out[1:4]).tolist() == [False, True, True], "zeros are equal and keep their order"
    _, places = both(lambda x: lax.sort_key_val(x, np.arange(8)), x)
    assert places.tolist() == [5, 0, 1, 7, 4, 6, 2, 3]


def test_complex():
    x = np.array([1 + 2j, 1 + 1j, 5j, 1j, 0], np.complex64)
    assert both(lax.sort, x).tolist() == [0, 1j, 5j, 1 + 1j, 1 + 2j]


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 5), (300, 1), (40, 7), (3, 1000)])
def test_the_greatest_one_is_the_first_of_top_k(dtype, shape):
    x = np.random.default_rng(3).integers(0, 5, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x.flat[:: shape[1] + 3], x.flat[1 :: shape[1] + 2], x.flat[2 :: shape[1] + 4] = -0.0, np.nan, 0.0
    values, places = both(lambda x: lax.top_k(x, 1, axis=1), x)
    key = np.where(np.isnan(x.astype(float)), np.inf, x.astype(float))
    expected = np.argmax(key + np.where((key == 0) & ~np.signbit(x.astype(float)), 1e-9, 0), 1)
    assert np.array_equal(np.asarray(places)[:, 0], expected)
    assert np.asarray(values).tobytes() == np.take_along_axis(x, expected[:, None], 1).tobytes()


@pytest.mark.share(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_ranked_elements_of_short_rows(dtype, n):
    x = np.random.default_rng(4).integers(0, 3, (6, n)).astype(dtype)
    ranks = np.tile(np.array([0, -1, n - 1, n + 4], np.int32), (6, 1))
    found = both(lambda x: order_statistics(x, ranks), x)
    expected = np.take_along_axis(np.asarray(lax.sort(x)), np.clip(ranks, 0, n - 1), 1)
    assert found.dtype == x.dtype and np.array_equal(found, expected)


def test_top_k_orders_all_floats():
    x = np.array([0.0, -0.0, np.nan, 1, -0.0, 0.0, -np.inf], np.float32)
    values, places = both(lambda x: lax.top_k(x, 7), x)
    assert places.tolist() == [2, 3, 0, 5, 1, 4, 6] and places.dtype == np.int32
    assert np.isnan(np.asarray(values)[0])


@pytest.mark.share(4)
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool", ml_dtypes.bfloat16])
def test_top_k(dtype, axis):
    x = np.random.default_rng(0).integers(-5, 5, (8, 30)).astype(dtype)
    order = np.argsort(-x.astype(np.float64), axis=axis, kind="stable")
    values, places = both(lambda x: lax.top_k(x, 3, axis=axis), x)
    expected = np.take(order, range(3), axis)
    np.testing.assert_array_equal(np.asarray(places), expected)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, expected, axis))


def test_approximate_selection_is_exact():
    x = np.random.default_rng(0).permutation(3000).astype(np.float32).reshape(3, 1000)
    for got, wanted in zip(both(lambda x: lax.approx_max_k(x, 5), x), lax.top_k(x, 5), strict=True):
        assert got.tolist() == wanted.tolist()
    values, places = both(lambda x: lax.approx_min_k(x, 4, 0, aggregate_to_topk=False)[:2], x[:, :6].T)
    assert values.shape == places.shape == (6, 3) and (np.diff(np.asarray(values), axis=0) >= 0).all()


@pytest.mark.parametrize(
    ("n", "k", "recall", "size"),
    [
        (500, 10, 0.95, 500),
        (1025, 2, 0.5, 1025),
        (5000, 100, 0.95, 3072),
        (10000, 2, 0.95, 2048),
        (10000, 1, 0.5, 1024),
    ],
)
def test_how_many_candidates(n, k, recall, size):
    out = catena.eval_shape(
        lambda x: lax.approx_max_k(x, k, recall_target=recall, aggregate_to_topk=False),
        np.zeros(n, np.float32),
    )
    assert out[0].shape == (size,)


def test_rules():
    with catena.enable_x64(True):
        x, y = (
            np.random.default_rng(0).permutation(24).reshape(4, 6) / 3.0,
            np.random.default_rng(1).standard_normal((4, 6)),
        )
        for axis in (0, 1):
            check_primitive(lambda x: lax.sort(x, axis), [x], reference=lambda x: np.sort(x, axis))  # noqa: B023
            check_primitive(lambda x, y: lax.sort((x, y), axis), [x, y])  # noqa: B023
            check_primitive(lambda x: lax.top_k(x, 2, axis=axis)[0], [x])  # noqa: B023
        check_primitive(lambda x: lax.approx_min_k(x, 2)[0], [x])


def test_empty():
    x = np.zeros((0, 3), np.float32)
    assert lax.sort(x, 0).shape == (0, 3) and lax.top_k(x, 2)[0].shape == (0, 2)
    assert lax.top_k(x.T, 0)[1].shape == (3, 0)


def test_errors():
    x = np.ones((3, 4), np.float32)
    raises(TypeError, "Arguments to sort must have equal shapes, got: (3, 4) (4,)", lax.sort, (x, x[0]))
    raises(ValueError, "sort: num_keys=3 must be between 1 and len(operand)=2", lax.sort, (x, x), num_keys=3)
    raises(TypeError, "Sort requires at least one operand", lax.sort, ())
    raises(ValueError, "sort: axis 3 is out of bounds for array of dimension 2", lax.sort, x, 3)
    raises(
        ValueError,
        "k argument to top_k must be no larger than size along axis; got k=5 with shape=[3, 4] and axis=1",
        lambda: lax.top_k(x, 5),
    )
    raises(ValueError, "top_k is not compatible with complex inputs.", lax.top_k, x.astype(np.complex64), 1)
    raises(ValueError, "operand must be a floating type", lax.approx_max_k, x.astype(np.int32), 1)


LONG = {
    "sort": lambda: jnp.sort(jnp.arange(2**22, dtype="int16")),
    "argsort": lambda: jnp.argsort(jnp.arange(2**22, dtype="int8")),
    "integer product": lambda: lax.dot(jnp.ones((300, 300), "int32"), jnp.ones((300, 301), "int32")),
}


@pytest.mark.parametrize("name", LONG)
def test_what_numpy_would_work_on_for_long_is_a_program_at_once(monkeypatch, name):
    """Programs ask for signals."""
    seen = []
    kernel = native.kernel
    monkeypatch.setattr(native, "kernel", lambda *key: (seen.append(key[0].name), kernel(*key))[1])
    LONG[name]()
    assert seen


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_derivatives_where_there_is_nothing_to_sort(shape):
    x = np.zeros(shape, np.float32)
    for fun in (
        lambda x: jnp.sort(x, axis=-1),
        lambda x: lax.sort((x, 2 * x), num_keys=1)[1],
        lambda x: lax.top_k(x, 0)[0],
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=0), 0),
    ):
        for run in (fun, catena.jit(fun), lambda x, f=fun: catena.vmap(f)(x[None])[0]):
            primal, tangent = catena.jvp(run, (x,), (x,))
            assert primal.shape == tangent.shape == fun(x).shape
            assert catena.grad(lambda x, f=run: jnp.sum(f(x)))(x).shape == shape


def test_keys_of_vectors_order_zeros_and_nan_as_compiled_ones():
    x = np.array([np.nan, 1.0, -0.0, 0.0, -np.nan, -np.inf, np.inf, -1.0, 0.0, -0.0], np.float32)
    numbers = np.arange(10, dtype=np.int32)
    for dtype in ("float32", "float16", "bfloat16"):
        keys = jnp.asarray(x).astype(dtype)
        for operands, count in (((keys, numbers), 1), ((keys[::-1], keys, numbers), 2)):
            sort = lambda *xs, n=count: lax.sort(xs, num_keys=n)
            for eager, compiled in zip(sort(*operands), catena.jit(sort)(*operands), strict=True):
                np.testing.assert_array_equal(np.asarray(eager, np.float32), np.asarray(compiled, np.float32))
        assert lax.sort((keys, numbers), num_keys=1)[1].tolist() == [5, 7, 2, 3, 8, 9, 1, 6, 0, 4]
