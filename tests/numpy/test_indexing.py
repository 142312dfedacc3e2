"""Indexing: reading and ``.at[...]``, eagerly, compiled, mapped and differentiated, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import catena
import catena.numpy as jnp
from catena.core.config import override
from catena.errors import ConcretizationTypeError, NonConcreteBooleanIndexError
from checkers import check_jit, check_jvp, check_vjp

M = np.arange(12.0, dtype=np.float32).reshape(3, 4)
C = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
I = np.array([2, 0, 2])  # noqa: E741


def check_gradient(fun, x):
    """Reverse differentiation against forward differentiation, in double precision."""
    with catena.enable_x64(True):
        check_vjp(fun, [np.asarray(x, np.float64)])


# ---- reading what NumPy reads, too

INDICES = [
    0,
    -1,
    slice(1, None),
    slice(None, None, -1),
    slice(5, 0, -2),
    slice(3, 1),
    (0, 1),
    (slice(None), -2),
    (slice(None, None, 2), slice(1, 3)),
    None,
    (None, 0, None),
    Ellipsis,
    (Ellipsis, 1),
    (),
    True,
    (0, True),
    I,
    (I, np.array([0, 1, 3])),
    (I[:, None], np.array([0, 3])),
    (slice(None), I),
    (slice(None, None, 2), I),
    (np.array([True, False, True]),),
    (np.array([True, False, True]), slice(1, None)),
    (np.array([True, False, True]), np.array([1, 3])),
    M > 5,
    (I, None, 0),
    (0, I),
    np.zeros((0,), int),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reads_what_numpy_reads(index):
    np.testing.assert_array_equal(jnp.asarray(M)[index], M[index])


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_compiled_and_eager_reading_agree(index):
    check_jit(lambda x: x[index], [M])


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reading_is_mapped(index):
    batched = np.stack([M, M + 100])
    mapped = catena.vmap(lambda x: x[index])(batched)
    np.testing.assert_array_equal(mapped, np.stack([m[index] for m in batched]))


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_reading_is_differentiated(index):
    check_gradient(lambda x: x[index], M)


@pytest.mark.parametrize(
    "index",
    [
        (slice(None), I, 0),
        (np.array([1, 0, 1]), slice(None), np.array([0, 1, 3])),
        (0, slice(None), I),
        (slice(None), I[:, None], np.array([1, 2])),
        (slice(None), np.array([0, 1]), Ellipsis, np.array([0, 1])),
        (Ellipsis, np.array([0, 1]), np.array([0, 1])),
        (None, np.array([0, 1]), None, 1),
    ],
    ids=repr,
)
def test_advanced_axes_stand_where_numpy_puts_them(index):
    np.testing.assert_array_equal(jnp.asarray(C)[index], C[index])
    np.testing.assert_array_equal(catena.jit(lambda x: x[index])(C), C[index])


# ---- out of bounds


def test_reading_clamps():
    x = jnp.arange(10)
    assert x[11] == 9 and x[-11] == 0
    np.testing.assert_array_equal(x[jnp.array([9, 10, -10, -12])], [9, 9, 0, 0])
    np.testing.assert_array_equal(catena.jit(lambda x, i: x[i])(x, jnp.array([9, 10, -10, -12])), [9, 9, 0, 0])
    assert catena.jit(lambda x, i: x[i])(x, 11) == 9 and catena.jit(lambda x, i: x[i])(x, -11) == 0


@pytest.mark.parametrize("jit", [False, True])
def test_modes_of_reading(jit):
    def get(x, i, **options):
        fun = lambda x, i: x.at[i].get(**options)  # noqa: E731
        return (catena.jit(fun) if jit else fun)(x, i)

    x = jnp.arange(5.0)
    assert np.isnan(get(x, 11, mode="fill")) and np.isnan(get(x, -6, mode="drop"))
    assert get(x, 11, mode="fill", fill_value=-1) == -1
    assert get(x, 11, mode="clip") == 4 and get(x, -6, mode="clip") == 0 and get(x, -1, mode="clip") == 4
    assert get(x, 11, mode="promise_in_bounds") == 4
    assert get(x, -1, wrap_negative_indices=False) == 0
    assert get(jnp.arange(10), 11, mode="fill") == -(2**31)
    assert get(jnp.arange(3, dtype="uint8"), 5, mode="fill") == 255
    assert get(jnp.array([True]), 5, mode="fill")


def test_narrow_indices_address_long_arrays():
    x = jnp.arange(300.0)
    assert x[jnp.array([-1], dtype="int8")] == 299
    assert catena.jit(lambda x, i: x[i])(x, jnp.array([-1], dtype="int8")) == 299
    assert catena.jit(lambda x, i: x[i])(x, jnp.array([250], dtype="uint8")) == 250


# ---- errors


@pytest.mark.parametrize(
    "index, error, words",
    [
        ([0, 1], TypeError, "non-tuple sequence"),
        (range(2), TypeError, "non-tuple sequence"),
        ("a", TypeError, "string indexing; got idx='a'"),
        (1.5, TypeError, "integer or boolean type, got indexer with type float64"),
        ((0, 0, 0), IndexError, "array is 2-dimensional, but 3 were indexed"),
        ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
        (np.array([True, False]), IndexError, r"index 0: got \(2,\), expected \[3\]"),
        ((np.array([0, 1]), np.array([0, 1, 2])), ValueError, "Incompatible shapes for broadcasting"),
        (slice(1.5), TypeError, "cannot be interpreted as an integer"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (object(), IndexError, "are valid indices. Got <object"),
    ],
)
def test_errors(index, error, words):
    x = jnp.asarray(M)
    for attempt in (lambda: x[index], lambda: catena.jit(lambda x: x[index])(x), lambda: x.at[index].set(0)):
        with pytest.raises(error, match=words):
            attempt()


def test_empty_axes_have_no_elements():
    for attempt in (lambda x: x[0], lambda x: x.at[0].get(mode="fill"), lambda x: x.at[0].set(1)):
        with pytest.raises(IndexError, match="index is out of bounds for axis 0 with size 0"):
            attempt(jnp.zeros((0, 3)))
    assert jnp.zeros((0, 3))[jnp.array([], int)].shape == (0, 3)


STATIC = {
    "x[4]": (lambda x: x[4, 0], 0),
    "x[-4]": (lambda x: x[-4], 0),
    "x[0, 5]": (lambda x: x[0, 5], 1),
    "x[..., -9]": (lambda x: x[..., -9], 1),
    "beside an array": (lambda x: x[jnp.array([0]), 5], 1),
    "at.get": (lambda x: x.at[4].get(), 0),
    "not wrapped": (lambda x: x.at[-1].get(wrap_negative_indices=False), 0),
}


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", STATIC)
def test_static_indices_are_checked_where_that_is_asked_for(name, jit):
    read, axis = STATIC[name]
    read = catena.jit(read) if jit else read
    read(jnp.asarray(M))
    with override("jax_check_static_indices", True):
        with pytest.raises(IndexError, match=f"out of bounds for axis {axis} with size {M.shape[axis]}"):
            read(jnp.asarray(M))
        jnp.asarray(M).at[9].set(1), jnp.asarray(M).at[9].get(mode="clip"), jnp.asarray(M)[-3, -4]


def test_traced_indices_that_must_be_known():
    with pytest.raises(IndexError, match="Slice entries must be static integers"):
        catena.jit(lambda x, n: x[:n])(M, 2)
    with pytest.raises(NonConcreteBooleanIndexError, match=r"must be concrete; got bool\[3\]"):
        catena.jit(lambda x: x[x > 0])(np.ones(3, np.float32))
    with pytest.raises(NonConcreteBooleanIndexError):
        catena.jit(lambda x, v: x.at[x > 0].set(v))(np.ones(3, np.float32), np.ones(2, np.float32))


def test_views_cannot_be_written():
    x = jnp.arange(4.0)
    for view in (x[1:], x[0], x[None], x[::-1], jnp.reshape(x, (2, 2))):
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(view)[...] = 7
    with pytest.raises(TypeError, match="immutable"):
        x[0] = 1


# ---- updates

UPDATES = {
    "set": lambda old, new: new,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "divide": np.divide,
    "power": np.power,
}
PLACES = [
    0,
    -1,
    slice(1, None),
    slice(None, None, -2),
    (slice(None), 1),
    None,
    (I[:2], np.array([0, 3])),
    M > 5,
    (),
]


@pytest.mark.share(4)
@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("index", PLACES, ids=repr)
def test_updates_are_numpy_s(name, index):
    expected = M.copy()
    expected[index] = UPDATES[name](expected[index], np.float32(2.5))
    for fun in (
        lambda x: getattr(x.at[index], name)(2.5),
        catena.jit(lambda x: getattr(x.at[index], name)(2.5)),
    ):
        result = fun(jnp.asarray(M))
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    np.testing.assert_array_equal(M, np.arange(12.0).reshape(3, 4))


@pytest.mark.parametrize("name", ["set", "add", "multiply", "min", "divide"])
@pytest.mark.parametrize("index", [0, slice(None, None, -2), (slice(None), 1), (I[:2], np.array([0, 3]))], ids=repr)
def test_updates_are_differentiated(name, index):
    x, v = M.astype(np.float64) + 0.5, np.full(np.shape(M[index]), 1.7)
    with catena.enable_x64(True):
        check_jvp(lambda x, v: getattr(jnp.asarray(x).at[index], name)(v), [x, v])
        check_vjp(lambda x, v: getattr(x.at[index], name)(v), [x, v])


@pytest.mark.parametrize("jit", [False, True])
def test_repeated_indices(jit):
    i = jnp.array([1, 1])
    run = (lambda f: catena.jit(f)) if jit else (lambda f: f)
    x = jnp.arange(5.0)
    np.testing.assert_array_equal(run(lambda x: x.at[i].add(1.0))(x), [0, 3, 2, 3, 4])
    np.testing.assert_array_equal(run(lambda x: x.at[i].set(jnp.array([7.0, 8.0])))(x), [0, 8, 2, 3, 4])
    np.testing.assert_array_equal(run(lambda x: x.at[i].divide(2.0))(x), [0, 0.25, 2, 3, 4])
    np.testing.assert_array_equal(run(lambda x: x.at[i].apply(lambda v: v + 10))(x), [0, 21, 2, 3, 4])


ROWS = {  # the shape, and an index of so many elements that it is no matter of NumPy's ``at``
    "wide, at pairs": ((3, 4, 300), lambda draw: (draw(-3, 3, (2, 20)), draw(0, 4, 20))),
    "wide, few dropped": ((5, 300), lambda draw: draw(-7, 7, 30)),
    "short": ((50, 9), lambda draw: draw(-50, 50, 3000)),
    "short, few": ((50, 9), lambda draw: draw(-50, 50, 30)),
    "columns": ((200, 30), lambda draw: (slice(None), draw(0, 30, 100))),
    "of a part": ((6, 90, 20), lambda draw: (2, draw(0, 90, 1000))),
}


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "max"])
@pytest.mark.parametrize("case", ROWS)
def test_rows_at_many_places_are_updated_one_after_the_other(case, name):
    shape, places = ROWS[case]
    rng = np.random.default_rng(0)
    index = places(rng.integers)
    x = rng.integers(-5, 5, shape).astype(np.int32)
    part = x[np.clip(index, -5, 4)] if case == "wide, few dropped" else x[index]
    for values in (
        np.int32(3),
        rng.integers(1, 4, part.shape[-1:], np.int32),
        rng.integers(1, 4, part.shape, np.int32),
    ):
        expected, at, given = x.copy(), index, np.broadcast_to(values, part.shape)
        if case == "wide, few dropped":
            kept = (index >= -5) & (index < 5)
            at, given = index[kept], given[kept]
        for _ in range(3):  # the third time it may be a program
            result = getattr(jnp.asarray(x).at[index], name)(values)
        UPDATES[name].at(expected, at, given)
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("jit", [False, True])
def test_updates_out_of_bounds_are_dropped(jit):
    run = (lambda f: catena.jit(f)) if jit else (lambda f: f)
    x = jnp.arange(5.0)
    for i in (11, -6, jnp.array([11, -6])):
        np.testing.assert_array_equal(run(lambda x, i=i: x.at[i].set(9.0))(x), x)
    np.testing.assert_array_equal(run(lambda x: x.at[11].set(9.0, mode="clip"))(x), [0, 1, 2, 3, 9])
    np.testing.assert_array_equal(run(lambda x: x.at[-6].set(9.0, mode="clip"))(x), [9, 1, 2, 3, 4])
    np.testing.assert_array_equal(run(lambda x: x.at[-1].set(9.0, wrap_negative_indices=False))(x), x)


def test_dtypes_of_updates():
    n = jnp.arange(3)
    with pytest.warns(FutureWarning, match="cannot safely cast value from dtype=float32 to dtype=int32"):
        assert n.at[0].set(1.5).dtype == np.int32
    assert n.at[1].divide(2).dtype == np.float32
    assert n.astype("uint8").at[0].set(300)[0] == 44
    with pytest.raises(TypeError, match="bool"):
        (n > 1).at[0].add(True)


PLACED_TWICE = jnp.array([1, 1, 4])
WIDER_VALUES = [  # array, method, index, values, and what JAX makes of them
    (jnp.arange(6), "multiply", PLACED_TWICE, 0.5, [0, 0, 2, 3, 2, 5]),
    (jnp.arange(6), "add", PLACED_TWICE, 0.5, [0, 2, 2, 3, 4, 5]),
    (jnp.arange(6), "subtract", PLACED_TWICE, jnp.float32(0.5), [0, 0, 2, 3, 3, 5]),
    (jnp.arange(6), "multiply", slice(1, 4), 1.5, [0, 1, 3, 4, 4, 5]),
    (jnp.arange(6), "multiply", np.arange(6) > 2, 0.5, [0, 1, 2, 1, 2, 2]),
    (jnp.arange(6), "max", PLACED_TWICE, 2.7, [0, 2, 2, 3, 4, 5]),
    (jnp.arange(6).astype("uint8"), "min", PLACED_TWICE, jnp.int32(-1), [0, 255, 2, 3, 255, 5]),
    (jnp.arange(3) > 0, "add", 0, 1, [True, True, True]),
    (jnp.arange(3) > 0, "multiply", jnp.array([1, 1, 2]), 0, [False, False, False]),
    (jnp.zeros(2, "bfloat16"), "add", jnp.array([0] * 10), jnp.float32(0.3), [3.0, 0.0]),  # rounded once
    (jnp.zeros(2, "float16"), "add", jnp.array([0, 0]), jnp.array([7e4, -6.9e4]), [1000.0, 0.0]),
    (jnp.arange(6), "multiply", jnp.array([9, 2]), 1.5, [0, 1, 3, 3, 4, 5]),  # what is out of bounds is left out
]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("x, name, index, values, expected", WIDER_VALUES)
@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
def test_wider_values_are_combined_in_their_dtype(x, name, index, values, expected, jit):
    update = lambda x: getattr(x.at[index], name)(values)  # noqa: E731
    result = (catena.jit(update) if jit else update)(x)
    assert result.dtype == x.dtype
    assert result.weak_type == x.weak_type
    np.testing.assert_array_equal(result, np.array(expected, x.dtype))


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
def test_what_wider_values_do_not_reach_keeps_its_digits():
    x = jnp.array([2, 2**24 + 1])
    np.testing.assert_array_equal(x.at[jnp.array([0, 0])].multiply(1.5), [4, 2**24 + 1])
    np.testing.assert_array_equal(x.at[0].multiply(1.5), [3, 2**24 + 1])


@pytest.mark.filterwarnings("ignore:scatter inputs have incompatible types")
def test_wider_values_at_traced_masks():
    x = jnp.arange(6)
    np.testing.assert_array_equal(catena.jit(lambda x, m: x.at[m].multiply(0.5))(x, x > 2), [0, 1, 2, 1, 2, 2])
    np.testing.assert_array_equal(catena.jit(lambda x, m: x.at[m].add(0.5 * x[m]))(x, x > 2), [0, 1, 2, 4, 6, 7])


def test_values_that_do_not_fit():
    x = jnp.arange(3.0)
    with pytest.raises(
        ValueError, match=r"Cannot broadcast to shape with fewer dimensions: arr_shape=\(2,\) shape=\(\)"
    ):
        x.at[0].set(jnp.arange(2.0))
    with pytest.raises(ValueError, match="Incompatible types for broadcasting: input type=float32"):
        x.at[:].set(jnp.arange(2.0))
    with pytest.raises(ValueError, match='Unknown gather mode "bad"'):
        x.at[0].set(1.0, mode="bad")


def test_representations():
    x = jnp.arange(3.0)
    assert repr(x.at) == "_IndexUpdateHelper(Array([0., 1., 2.], dtype=float32))"
    assert repr(x.at[0]) == "_IndexUpdateRef(Array([0., 1., 2.], dtype=float32), 0)"
    with pytest.raises(AttributeError, match="'_IndexUpdateRef' object has no attribute 'foo'"):
        x.at[0].foo
    with pytest.raises(AttributeError, match="'_IndexUpdateHelper' object has no attribute 'set'"):
        x.at.set


# ---- masks that are not known while tracing


@pytest.mark.parametrize("name", ["set", "add", "multiply", "max"])
def test_updates_at_traced_masks(name):
    update = lambda x, m, v: getattr(x.at[m], name)(v)  # noqa: E731
    for value in (2.5, np.arange(4, dtype=np.float32), np.full((1, 4), 3, np.float32)):
        mask = np.array([True, False, True])
        np.testing.assert_array_equal(catena.jit(update)(M, mask, value), update(jnp.asarray(M), mask, value))
    np.testing.assert_array_equal(catena.jit(update)(M, M > 4, 2.5), update(jnp.asarray(M), M > 4, 2.5))


def test_traced_masks_beside_other_indices():
    mask = np.array([True, False, True, True])
    for fun in (
        lambda x, m: x.at[:, m].set(0.0),
        lambda x, m: x.at[1, m].add(1.0),
        lambda x, m: x.at[..., m].set(0.0),
        lambda x, m: x.at[1:, m].multiply(2.0),
        lambda x, m: x.at[None, 0, m].set(5.0),
        lambda x, m: x.at[:, m].apply(jnp.sin),
    ):
        np.testing.assert_array_equal(catena.jit(fun)(M, mask), fun(jnp.asarray(M), jnp.asarray(mask)))


def test_updates_at_traced_masks_are_differentiated():
    grad = catena.jit(catena.grad(lambda x: x.at[x > 5].multiply(3.0).sum()))(M)
    np.testing.assert_array_equal(grad, np.where(M > 5, 3, 1))


# ---- random indices against NumPy


@st.composite
def shapes_and_indices(draw):
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    items, dims = [], list(shape)
    while dims and draw(st.booleans()):
        n = dims.pop(0)
        kind = draw(st.sampled_from(["int", "slice", "array", "new"]))
        if kind == "new":
            dims.insert(0, n)
            items.append(None)
            if sum(item is None for item in items) > 2:
                break
        elif kind == "int":
            items.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 2, n + 2)
            items.append(slice(draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -3]))))
        else:
            items.append(np.array(draw(st.lists(st.integers(-n, n - 1), min_size=2, max_size=2))))
    if draw(st.booleans()):
        items.append(Ellipsis)
    return shape, tuple(items)


@settings(max_examples=150)
@given(shapes_and_indices())
def test_random_indices(case):
    shape, index = case
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    expected = x[index]
    np.testing.assert_array_equal(jnp.asarray(x)[index], expected)
    traced = catena.make_jaxpr(lambda x: x[index])(x)
    np.testing.assert_array_equal(catena.core.eval_jaxpr(traced.jaxpr, traced.consts, x)[0], expected)
    changed = x.copy()
    changed[index] = -1
    np.testing.assert_array_equal(jnp.asarray(x).at[index].set(-1.0), changed)


# ---- functions that take and put


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_take(mode, axis):
    indices = np.array([[0, -1], [1, 7]])
    for fun in (jnp.take, catena.jit(jnp.take, static_argnames=("axis", "mode"))):
        np.testing.assert_array_equal(fun(M, indices, axis=axis, mode=mode), np.take(M, indices, axis, mode=mode))


def test_take_fills():
    np.testing.assert_array_equal(jnp.take(jnp.arange(5.0), jnp.array([7, -7, -1])), [np.nan, np.nan, 4])
    assert jnp.take(jnp.arange(5), 7) == -(2**31)
    np.testing.assert_array_equal(jnp.take(jnp.arange(5), jnp.array([7]), fill_value=3), [3])
    with pytest.raises(NotImplementedError, match="'raise' mode"):
        jnp.take(jnp.arange(5), 7, mode="raise")
    with pytest.raises(IndexError, match="non-empty"):
        jnp.take(jnp.zeros((0,)), 0)


def test_along_axis():
    order = np.argsort(-M, axis=1)
    for fun in (jnp.take_along_axis, catena.jit(jnp.take_along_axis, static_argnums=2)):
        np.testing.assert_array_equal(fun(M, order, 1), np.take_along_axis(M, order, 1))
    np.testing.assert_array_equal(jnp.take_along_axis(M, np.array([[-1], [9], [0]]), 1), [[3], [np.nan], [8]])
    put = jnp.put_along_axis(M, np.array([[0], [1], [9]]), 9.0, 1, inplace=False)
    np.testing.assert_array_equal(put[:2], [[9, 1, 2, 3], [4, 9, 6, 7]])
    check_gradient(lambda x: jnp.take_along_axis(x, order, 1), M)


def test_put_place_and_diagonal():
    expected = M.copy()
    np.put(expected, [0, 5], [7, 8])
    np.testing.assert_array_equal(jnp.put(M, np.array([0, 5]), np.array([7.0, 8.0]), inplace=False), expected)
    expected = M.copy()
    np.place(expected, M > 4, [1, 2])
    np.testing.assert_array_equal(jnp.place(M, M > 4, np.array([1.0, 2.0]), inplace=False), expected)
    np.testing.assert_array_equal(
        catena.jit(lambda x: jnp.place(x, x > 4, 3.0, inplace=False))(M), np.where(M > 4, 3, M)
    )
    expected = M.copy()
    np.fill_diagonal(expected, 5)
    np.testing.assert_array_equal(jnp.fill_diagonal(M, 5, inplace=False), expected)
    for call in (jnp.put, jnp.place):
        with pytest.raises(ValueError, match="immutable"):
            call(jnp.asarray(M), jnp.asarray(M) > 0, jnp.ones(1))


# ---- results whose size depends on data

SIZED = [
    (lambda x, **o: jnp.nonzero(x, **o), lambda x: np.nonzero(x)),
    (lambda x, **o: jnp.where(x, **o), lambda x: np.where(x)),
    (lambda x, **o: jnp.flatnonzero(x, **o), lambda x: np.flatnonzero(x)),
    (lambda x, **o: jnp.argwhere(x, **o), lambda x: np.argwhere(x)),
    (lambda x, **o: jnp.unique(x, **o), lambda x: np.unique(x)),
    (lambda x, **o: jnp.extract(x > 4, x, **o), lambda x: np.extract(x > 4, x)),
]


@pytest.mark.parametrize("fun, reference", SIZED)
def test_sizes_that_depend_on_data(fun, reference):
    x = np.where(M % 3 == 1, 0, M)
    expected = reference(x)
    catena.tree_util.tree_map(np.testing.assert_array_equal, fun(x), expected)
    count = len(expected[0] if isinstance(expected, tuple) else expected)
    check_jit(lambda x: fun(x, size=count + 2), [x])
    check_jit(lambda x: fun(x, size=count - 1), [x])
    compiled = catena.jit(lambda x: fun(x, size=count))(x)
    catena.tree_util.tree_map(np.testing.assert_array_equal, compiled, expected)
    with pytest.raises(ConcretizationTypeError, match="size"):
        catena.jit(fun)(x)


def test_grids_and_positions():
    np.testing.assert_array_equal(jnp.r_[1:4, 5, jnp.ones(2)], np.r_[1:4, 5, np.ones(2)])
    np.testing.assert_array_equal(jnp.c_[jnp.arange(3), jnp.ones(3)], np.c_[np.arange(3), np.ones(3)])
    np.testing.assert_array_equal(jnp.r_["0,2", [1, 2], [3, 4]], np.r_["0,2", [1, 2], [3, 4]])
    assert jnp.s_[1:, 0] == np.s_[1:, 0] and jnp.index_exp[1] == np.index_exp[1]
    np.testing.assert_array_equal(jnp.asarray(M)[jnp.ix_(I, jnp.array([1, 3]))], M[np.ix_(I, [1, 3])])
    for name in ("tril_indices", "triu_indices"):
        for args in ((3,), (3, 1), (3, -1, 4)):
            for ours, theirs in zip(getattr(jnp, name)(*args), getattr(np, name)(*args), strict=True):
                np.testing.assert_array_equal(ours, theirs)
    positions = np.unravel_index([3, 11], (3, 4))
    for ours, theirs in zip(jnp.unravel_index(jnp.array([3, 11]), (3, 4)), positions, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for order in "CF":
        expected = np.ravel_multi_index(positions, (3, 4), order=order)
        np.testing.assert_array_equal(jnp.ravel_multi_index(positions, (3, 4), order=order), expected)
    with pytest.raises(ValueError, match="invalid entry in coordinates array"):
        jnp.ravel_multi_index((1, 5), (2, 3))
    with pytest.raises(ConcretizationTypeError, match="mode='raise'"):
        catena.jit(lambda i: jnp.ravel_multi_index((i, i), (2, 3)))(1)


# ---- choosing


def test_choosing():
    x = jnp.asarray(M)
    np.testing.assert_array_equal(jnp.where(x > 4, x, 0), np.where(M > 4, M, 0))
    assert jnp.where(x > 4, 1, 0).weak_type and jnp.where(x > 4, x, 0).dtype == np.float32
    np.testing.assert_array_equal(jnp.select([x > 8, x > 4], [x, -x], 7), np.select([M > 8, M > 4], [M, -M], 7))
    expected = np.piecewise(M, [M < 3, M > 8], [lambda v: -v, lambda v: 10 * v, 7])
    np.testing.assert_array_equal(jnp.piecewise(x, [x < 3, x > 8], [lambda v: -v, lambda v: 10 * v, 7]), expected)
    numbers = np.array([0, 2, 1])
    choices = [np.arange(3) + 10 * k for k in range(3)]
    np.testing.assert_array_equal(jnp.choose(numbers, choices), np.choose(numbers, choices))
    for mode in ("wrap", "clip"):
        compiled = catena.jit(lambda n, mode=mode: jnp.choose(n, choices, mode=mode))(numbers + 2)
        np.testing.assert_array_equal(compiled, np.choose(numbers + 2, choices, mode=mode))
    check_jit(lambda x: jnp.where(x > 4, x, 0), [M])
    check_gradient(lambda x: jnp.where(x > 4, x * 2, 0.0), M)


READS_AND_WRITES = [
    lambda x, i: x[i],
    lambda x, i: x[None, i],
    lambda x, i: x[i, None],
    lambda x, i: x.at[i].get(mode="fill"),
    lambda x, i: x.at[i].set(1.0),
    lambda x, i: x.at[i].add(1.0),
]


@pytest.mark.parametrize("use", READS_AND_WRITES)
def test_a_traced_integer_cannot_address_an_axis_without_elements(use):
    x = jnp.zeros((0, 2))
    for call in (catena.jit(use), lambda x, i: catena.vmap(use, (None, 0))(x, jnp.full(2, i))):
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 0"):
            call(x, 0)
    assert catena.jit(lambda x, i: x[:, i])(x, 0).shape == (0,)


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
@pytest.mark.parametrize("jit", [catena.jit, lambda f: f])
def test_unsigned_indices_are_never_negative(dtype, jit):
    x, last = jnp.arange(4.0), np.iinfo(dtype).max
    for i in (np.array([1, last], dtype), np.array(last, dtype)):
        clipped = np.minimum(i, 3)
        np.testing.assert_array_equal(jit(lambda i: x[i])(i), np.arange(4.0)[clipped])
        np.testing.assert_array_equal(jit(lambda i: x.at[i].get(mode="clip"))(i), np.arange(4.0)[clipped])
        filled = jit(lambda i: x.at[i].get(mode="fill", fill_value=-1))(i)
        np.testing.assert_array_equal(filled, np.where(i < 4, np.arange(4.0)[clipped], -1))
        np.testing.assert_array_equal(jit(lambda i: x.at[i].set(0.0))(i), [0, 0 if i.ndim else 1, 2, 3])


@pytest.mark.parametrize("jit", [catena.jit, lambda f: f])
def test_unsigned_indices_that_no_position_is_large_enough_for(jit):
    with catena.enable_x64(True):
        x, i = jnp.arange(4.0), np.array([1, 2**64 - 1, 2**63], np.uint64)
        np.testing.assert_array_equal(jit(lambda i: x[i])(i), [1, 3, 3])
        np.testing.assert_array_equal(jit(lambda i: x.at[i].get(mode="fill", fill_value=-1))(i), [1, -1, -1])
        np.testing.assert_array_equal(jit(lambda i: x.at[i].set(9.0))(i), [0, 9, 2, 3])


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64"])
@pytest.mark.parametrize("jit", [catena.jit, lambda f: f])
def test_take_along_axis_by_one_hot_vectors(dtype, jit):
    x, i = jnp.arange(6).reshape(2, 3).astype(dtype), jnp.array([[2, -1], [7, -9]])
    take = lambda wrap: jit(  # noqa: E731
        lambda x, i: jnp.take_along_axis(x, i, 1, mode="one_hot", fill_value=5, wrap_negative_indices=wrap)
    )(x, i)
    for wrap, second in ((None, 2), (True, 2), (False, 0)):
        got = take(wrap)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, np.array([[2, second], [0, 0]]).astype(dtype))


def test_the_gradient_of_take_along_axis_by_one_hot_vectors():
    gradient = catena.grad(lambda x: jnp.take_along_axis(x, jnp.array([[2, 2], [0, 9]]), 1, mode="one_hot").sum())
    np.testing.assert_array_equal(gradient(jnp.ones((2, 3))), [[0, 0, 2], [1, 0, 0]])


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (4,), 4, ()])
def test_unravel_index_of_a_traced_shape(shape):
    i = jnp.array([3, 5, -1, 99, -99])
    want = jnp.unravel_index(i, shape)
    given = shape if shape == () or isinstance(shape, int) else jnp.array(shape)
    for traced in (shape, given):
        got = catena.jit(jnp.unravel_index)(i, traced)
        assert [g.dtype for g in got] == [w.dtype for w in want]
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_unravel_index_of_batched_and_half_traced_shapes():
    rows, columns = catena.vmap(jnp.unravel_index)(jnp.array([3, 5]), (jnp.array([2, 4]), jnp.array([3, 2])))
    assert rows.tolist() == [1, 2] and columns.tolist() == [0, 1]
    rows, columns = catena.jit(lambda i, n: jnp.unravel_index(i, (2, n)))(jnp.array([3, 5], "int8"), 3)
    assert rows.tolist() == [1, 1] and columns.tolist() == [0, 2] and rows.dtype == "int8"
    with pytest.raises(TypeError, match="shape must be integers"):
        catena.jit(jnp.unravel_index)(jnp.array([3]), (2.0, 3))


def test_a_mapped_scalar_takes_new_axes():
    """What has no axis has none of size 0 either."""
    x = jnp.arange(4)
    assert catena.vmap(lambda i: i[..., None] == jnp.arange(3))(x).shape == (4, 3)
    assert catena.jit(lambda i: i[None, ..., None])(1).shape == (1, 1)


@pytest.mark.share(4)
@pytest.mark.parametrize("method", ["set", "add", "subtract", "multiply", "divide", "min", "max", "power"])
@pytest.mark.parametrize("shape", [(3,), (4, 3), (3, 4, 2)])
def test_values_of_fewer_axes_are_repeated(method, shape):
    """Whatever the index: NumPy's ``ufunc.at`` reads past the end of a vector that is added at a matrix of positions."""
    rng = np.random.default_rng(0)
    x = jnp.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    for axes in ((2,), (2, 3), (1, 3), (2, 1), (2, 2, 3)):
        i = rng.integers(0, 3, axes) if method != "set" else rng.permutation(12).reshape(2, 2, 3)[0, 0] % 3
        for index in (i, (i,), (..., i % 2), (i, slice(0, 1)), (i, i % 2)):
            if len(index if isinstance(index, tuple) else (index,)) > len(shape):
                continue
            whole = x[index].shape
            for drop in range(len(whole)):
                values = jnp.asarray(rng.integers(1, 4, whole[drop:]), x.dtype)
                update = lambda v: getattr(x.at[index], method)(v)
                assert (update(values) == update(jnp.broadcast_to(values, whole) + 0)).all(), (index, values.shape)


@pytest.mark.parametrize("mode", [None, "clip", "fill", "drop", "promise_in_bounds"])
def test_modes_read_alike_what_is_in_bounds(mode):
    """Known indices in bounds are NumPy's; the program, in which they are traced, is the judge."""
    x = jnp.arange(12.0).reshape(3, 4)
    rows = jnp.array([2, -1, 0])
    for index in (1, -3, (slice(1, 9), 2), rows, (rows, rows), (Ellipsis, rows), (rows, None)):
        get = lambda x, index=index: x.at[index].get(mode=mode, fill_value=-7)
        np.testing.assert_array_equal(get(x), catena.jit(get)(x))
        np.testing.assert_array_equal(get(x), np.asarray(x)[jnp_to_numpy(index)])
    out = lambda x: x.at[jnp.array([0, 5, -5])].get(mode=mode, fill_value=-7)
    for _ in range(4):
        np.testing.assert_array_equal(out(x), catena.jit(out)(x))
    with pytest.raises(ValueError, match="mode"):
        x.at[0].get(mode="no such")


def jnp_to_numpy(index):
    return (
        tuple(map(jnp_to_numpy, index))
        if isinstance(index, tuple)
        else (np.asarray(index) if isinstance(index, catena.Array) else index)
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "max"])
@pytest.mark.parametrize("shape", [(300,), (3, 300), (5, 2, 150)])
def test_wide_rows_are_updated_one_after_the_other(name, shape):
    """Rows that come twice, negative ones, and such that are not there; values that are spread, and for each row."""
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 2, (7, *shape)).astype(np.float32)
    rows = np.array([3, 0, 3, -1, 3, 6, -7])
    numpys = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum}
    for values in (rng.uniform(1, 2, (len(rows), *shape)), rng.uniform(1, 2, shape), np.float64(1.5)):
        values = np.asarray(values, np.float32)
        expected = x.copy()
        for at, row in zip(rows, np.broadcast_to(values, (len(rows), *shape))):
            expected[at] = numpys[name](expected[at], row)
        update = lambda x, rows, values: getattr(x.at[rows], name)(values)  # noqa: E731
        got = update(jnp.asarray(x), jnp.asarray(rows), jnp.asarray(values))
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(got, catena.jit(update)(x, rows, values))
    beyond = getattr(jnp.asarray(x).at[np.array([0, 7])], name)(2.0)
    np.testing.assert_array_equal(beyond, getattr(jnp.asarray(x).at[np.array([0])], name)(2.0))
    with pytest.raises(ValueError, match="Incompatible types for broadcasting"):
        getattr(jnp.asarray(x).at[jnp.asarray(rows)], name)(jnp.ones((2, *shape)))


@pytest.mark.parametrize("fill, filled", [(1j, 0), (2 + 1j, 2), (1.5, 1), (7, 7)])
def test_extract_and_compress_fill_with_numbers_of_any_kind(fill, filled):
    """Converted as by ``astype``: of complex numbers the real part counts."""
    mask, x = jnp.array([True, False, True]), jnp.arange(3)
    for f in (jnp.extract, jnp.compress):
        assert f(mask, x, size=3, fill_value=fill).tolist() == [0, 2, filled]


def test_many_places_along_any_axis():
    """What is read along one axis is what NumPy reads, in order; places beyond the end are the last one."""
    x = np.arange(12_000, dtype=np.float32).reshape(20, 30, 20)
    rng = np.random.default_rng(0)
    many, grid = rng.integers(-20, 20, 300), rng.integers(0, 20, (30, 10))
    for key in [
        (..., many), (..., grid), (slice(None), slice(None), grid), (slice(None), many), (slice(None), many, ...),
        (many, ...), (grid, slice(None)), (..., many, slice(None)), (slice(None), many, slice(0, 5)), (None, ..., grid),
        (slice(None, None, -1), many), (slice(None), many, slice(None), None), (0, many), (..., many, many),
    ]:  # fmt: skip
        got = jnp.asarray(x)[key]
        np.testing.assert_array_equal(got, x[key])
        np.testing.assert_array_equal(catena.jit(lambda x, key=key: x[key])(x), x[key])
    assert jnp.asarray(x)[..., many]._value.flags.c_contiguous
    np.testing.assert_array_equal(jnp.asarray(x)[..., grid + 100], np.broadcast_to(x[..., -1:, None], (20, 30, 30, 10)))
