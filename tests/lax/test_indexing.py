"""Dynamic slices, gathers and scatters: against loops that say what they mean, and all their rules."""

import functools

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena import lax
from catena.lax import GatherDimensionNumbers, ScatterDimensionNumbers
from checkers import check_primitive, raises

V = np.arange(5.0, dtype=np.float32)
X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
ROWS = GatherDimensionNumbers((1,), (0,), (0,))
TO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
TO_ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))
TWICE = np.array([[1], [1], [2]], np.int32)


# ---- a random gather, and what gather and scatter mean


def random_config(seed: int) -> dict:
    """Shapes, indices and dimension numbers that go together, with batching dimensions and windows."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.integers(1, 5, rank))
    dims = [int(d) for d in rng.permutation(rank)]
    n_batching = int(rng.integers(0, min(2, rank) + 1)) if rng.random() < 0.5 else 0
    batching, rest = sorted(dims[:n_batching]), dims[n_batching:]
    index_map = tuple(rest[: int(rng.integers(1, len(rest) + 1))]) if rest else ()
    sizes = [1] * rank
    for d in rest:
        sizes[d] = int(rng.integers(1, shape[d] + 1)) if rng.random() < 0.6 else 1
    collapsed = tuple(sorted(d for d in rest if sizes[d] == 1 and rng.random() < 0.6))
    batch = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    places = []
    for d in batching:
        places.append(int(rng.integers(0, len(batch) + 1)))
        batch.insert(places[-1], shape[d])
        places = [p + (p >= places[-1]) for p in places[:-1]] + places[-1:]
    kept = [d for d in range(rank) if d not in collapsed and d not in batching]
    out_rank = len(batch) + len(kept)
    windows = tuple(sorted(int(i) for i in rng.permutation(out_rank)[: len(kept)]))
    indices = rng.integers(-2, 6, (*batch, len(index_map))).astype(rng.choice(["int32", "int8", "uint8"]))
    sides = iter(batch)
    of_window = dict(zip(windows, kept, strict=True))
    out_shape = tuple(sizes[of_window[i]] if i in of_window else next(sides) for i in range(out_rank))
    return {
        "shape": shape, "indices": indices, "sizes": tuple(sizes), "out_shape": out_shape,
        "numbers": (windows, collapsed, index_map, tuple(batching), tuple(places)),
    }  # fmt: skip


def places_of(config, mode: str):
    """For every element of the result (updates) the operand's place, or None out of bounds."""
    windows, collapsed, index_map, batching, batching_places = config["numbers"]
    shape, sizes, indices = config["shape"], config["sizes"], config["indices"]
    kept = [d for d in range(len(shape)) if d not in collapsed and d not in batching]
    for at in np.ndindex(config["out_shape"]):
        batch = tuple(i for axis, i in enumerate(at) if axis not in windows)
        start, inside = [0] * len(shape), True
        for component, d in enumerate(index_map):
            start[d] = int(indices[batch][component])
            clamped = min(max(start[d], 0), shape[d] - sizes[d])
            inside = inside and clamped == start[d]
            start[d] = clamped
        for d, axis in zip(batching, batching_places, strict=True):
            start[d] = batch[axis]
        for axis, d in zip(windows, kept, strict=True):
            start[d] += at[axis]
        yield at, tuple(start) if inside or mode == "clip" else None


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("seed", range(60))
def test_gather_means_this(seed, mode):
    config = random_config(seed)
    x = np.random.default_rng(seed).integers(0, 100, config["shape"]).astype(np.int32)
    expected = np.zeros(config["out_shape"], np.int32)
    for at, place in places_of(config, mode):
        expected[at] = -1 if place is None else x[place]
    numbers = GatherDimensionNumbers(*config["numbers"])
    out = lax.gather(x, config["indices"], numbers, config["sizes"], mode=mode, fill_value=-1)
    np.testing.assert_array_equal(np.asarray(out), expected)


COMBINE = {
    "scatter": lambda old, new: new,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", list(COMBINE))
@pytest.mark.parametrize("seed", range(40))
def test_scatters_mean_this(seed, name):
    config, mode = random_config(seed), ("clip", "drop")[seed % 2]
    rng = np.random.default_rng(seed)
    x = rng.integers(-9, 9, config["shape"]).astype(np.int32)
    updates = rng.integers(-9, 9, config["out_shape"]).astype(np.int32)
    expected = x.copy()
    for at, place in in_order(config, places_of(config, mode)):
        if place is not None:
            expected[place] = COMBINE[name](expected[place], updates[at])
    numbers = ScatterDimensionNumbers(*config["numbers"])
    out = getattr(lax, name)(x, config["indices"], updates, numbers, mode=mode)
    np.testing.assert_array_equal(np.asarray(out), expected)


def in_order(config, places):
    """Updates in the order of their batch positions."""
    windows = config["numbers"][0]
    return sorted(places, key=lambda entry: tuple(i for axis, i in enumerate(entry[0]) if axis not in windows))


# ---- every rule


@pytest.mark.share(2)
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("seed", range(0, 12, 3))
def test_gather_rules(seed, mode):
    config = random_config(seed)
    if mode == "promise_in_bounds":
        config["indices"] = np.zeros_like(config["indices"])
    numbers = GatherDimensionNumbers(*config["numbers"])
    with catena.enable_x64(True):
        x = np.random.default_rng(seed).standard_normal(config["shape"])
        check_primitive(
            lambda x: lax.gather(x, config["indices"], numbers, config["sizes"], mode=mode, fill_value=0.5),
            [x],
        )


@pytest.mark.share(2)
@pytest.mark.parametrize("name", list(COMBINE))
@pytest.mark.parametrize("unique", [False, True])
def test_scatter_rules(name, unique):
    indices = np.array([[2], [0]], np.int32) if unique else np.array([[2], [0], [2], [7]], np.int32)
    rng = np.random.default_rng(3)
    with catena.enable_x64(True):
        x, updates = rng.standard_normal((4, 3)), rng.standard_normal((len(indices), 3))
        check_primitive(
            lambda x, u: getattr(lax, name)(x, indices, u, TO_ROWS, unique_indices=unique),
            [x, updates],
            atol=1e-12,
        )


def test_vmap_over_indices():
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    indices = np.array([[[0], [2]], [[1], [1]]], np.int32)
    stack = np.stack([X, X + 100])
    both = catena.vmap(lambda x, i: lax.gather(x, i, numbers, (1, 4)))(stack, indices)
    np.testing.assert_array_equal(np.asarray(both), [stack[0][[0, 2]], stack[1][[1, 1]]])
    only = catena.vmap(lambda i: lax.gather(X, i, numbers, (1, 4)), in_axes=1)(np.swapaxes(indices, 0, 1))
    np.testing.assert_array_equal(np.asarray(only), X[indices[..., 0]])
    updates = np.ones((2, 2, 4), np.float32)
    added = catena.vmap(lambda i, u: lax.scatter_add(X, i, u, TO_ROWS))(indices, updates)
    expected = np.stack([X, X])
    expected[0][[0, 2]] += 1
    expected[1][1] += 2
    np.testing.assert_array_equal(np.asarray(added), expected)


def test_dynamic_slice_rules():
    with catena.enable_x64(True):
        x, update = np.random.default_rng(0).standard_normal((4, 5)), np.full((2, 3), 7.0)
        for start in ((1, 2), (9, -2)):
            check_primitive(lambda x: lax.dynamic_slice(x, start, (2, 3)), [x])  # noqa: B023
            check_primitive(lambda x, u: lax.dynamic_update_slice(x, u, start), [x, update])  # noqa: B023
        starts = np.array([0, 3, -1], np.int32)
        got = catena.vmap(lambda i: lax.dynamic_slice(x, (i, 1), (2, 2)))(starts)
        np.testing.assert_array_equal(np.asarray(got), [x[i : i + 2, 1:3] for i in (0, 2, 2)])
        got = catena.vmap(lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)))(np.stack([x, x + 1, x + 2]), starts)
        np.testing.assert_array_equal(np.asarray(got), [x[i : i + 2, 1:3] + k for k, i in enumerate((0, 2, 2))])
        got = catena.vmap(lambda u, i: lax.dynamic_update_slice(x, u, (i, 0)))(np.stack([update] * 3), starts)
        for row, i in zip(np.asarray(got), (0, 2, 2), strict=True):
            expected = x.copy()
            expected[i : i + 2, :3] = 7
            np.testing.assert_array_equal(row, expected)


# ---- values


def test_windows_are_clamped():
    assert lax.dynamic_slice(V, (4,), (3,)).tolist() == [2, 3, 4]
    assert lax.dynamic_slice(V, (-1,), (3,)).tolist() == [2, 3, 4]
    assert lax.dynamic_slice(V, (-100,), (3,)).tolist() == [0, 1, 2]
    assert lax.dynamic_slice(V, (np.uint8(200),), (3,)).tolist() == [2, 3, 4]
    assert lax.dynamic_update_slice(V, np.ones(3, np.float32), (4,)).tolist() == [0, 1, 1, 1, 1]
    assert lax.dynamic_index_in_dim(V, 9).tolist() == [4]
    assert catena.jit(lambda i: lax.dynamic_slice(V, (i,), (1,)))(np.int8(-2)).tolist() == [3]


def test_a_slice_is_a_view():
    x = lax.add(X, X)
    assert np.shares_memory(np.asarray(lax.dynamic_slice(x, (1, 1), (2, 2))), np.asarray(x))


def test_forms_along_one_axis():
    assert lax.dynamic_slice_in_dim(X, 1, 2, axis=1).tolist() == X[:, 1:3].tolist()
    assert lax.dynamic_index_in_dim(X, 1, -1, keepdims=False).tolist() == X[:, 1].tolist()
    assert lax.dynamic_update_slice_in_dim(X, np.zeros((1, 4), np.float32), 1, 0)[1].tolist() == [0] * 4
    assert lax.dynamic_update_index_in_dim(X, np.zeros(3, np.float32), 2, 1)[:, 2].tolist() == [0] * 3
    assert lax.index_in_dim(X, -1, 0, keepdims=False).tolist() == X[-1].tolist()
    assert lax.index_take(X, (np.array([0, 5, -1]),), (1,)).tolist() == X[:, [0, 1, 3]].T.tolist()


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [("float32", np.nan), ("int32", -(2**31)), ("uint8", 255), ("bool", True), ("bfloat16", np.nan)],
)
def test_default_fill_values(dtype, fill):
    x = np.zeros(2).astype(catena.numpy.dtype(dtype))
    numbers = GatherDimensionNumbers((), (0,), (0,))
    out = np.asarray(lax.gather(x, np.array([[5], [0]]), numbers, (1,), mode="fill"))
    np.testing.assert_array_equal(out.astype(np.float64), [fill, 0])


def test_scatter_applies_a_function_for_every_index():
    def triple(x):
        return lax.mul(x, np.float32(3))

    args = V, TWICE, triple, TO_ELEMENTS
    assert lax.scatter_apply(*args, update_shape=(3,)).tolist() == [0, 9, 6, 3, 4]
    jitted = catena.jit(lambda x: lax.scatter_apply(x, *args[1:], update_shape=(3,)))
    assert jitted(V).tolist() == [0, 9, 6, 3, 4]
    mapped = catena.vmap(lambda x: lax.scatter_apply(x, *args[1:], update_shape=(3,)))(np.stack([V, V + 1]))
    assert mapped[1].tolist() == [1, 18, 9, 4, 5]
    unique = np.array([[3]])
    grad = catena.grad(
        lambda x: lax.scatter_apply(
            x, unique, lambda y: y * y, TO_ELEMENTS, update_shape=(1,), unique_indices=True
        ).sum()
    )
    assert grad(V).tolist() == [1, 1, 1, 6, 1]


def test_derivatives_where_indices_repeat():
    updates = np.array([10.0, 10.0, 2.0], np.float32)
    tangents = np.array([1.0, 2.0, 3.0], np.float32)

    def tangent(scatter):
        return catena.jvp(lambda u: scatter(V, TWICE, u, TO_ELEMENTS), (updates,), (tangents,))[1].tolist()

    assert tangent(lax.scatter) == [0, 2, 3, 0, 0]
    assert tangent(lax.scatter_max) == [0, 1.5, 1.5, 0, 0]
    assert tangent(lax.scatter_mul) == [0, 30, 6, 0, 0]
    grad = catena.grad(lambda x: lax.scatter_max(x, TWICE, updates, TO_ELEMENTS).sum())(V)
    assert grad.tolist() == [1, 0, 0.5, 1, 1]


def test_empty():
    assert lax.gather(X, np.zeros((0, 1), np.int32), ROWS, (1, 4)).shape == (0, 4)
    same = lax.scatter_add(X, np.zeros((0, 1), np.int32), np.zeros((0, 4), np.float32), TO_ROWS)
    assert same.tolist() == X.tolist()


# ---- what errors say


def test_errors_of_dynamic_slices():
    raises(
        ValueError,
        "Length of slice indices must match number of operand dimensions (1 vs (3, 4))",
        lax.dynamic_slice,
        X,
        (0,),
        (1, 1),
    )
    raises(
        TypeError,
        "slice slice_sizes must be less than or equal to operand shape, got slice_sizes (4, 1) for operand "
        "shape (3, 4).",
        lax.dynamic_slice, X, (0, 0), (4, 1),
    )  # fmt: skip
    raises(
        TypeError, "index arguments to dynamic_slice must be integers of the same type, got: float32, int32",
        lax.dynamic_slice, X, (0.0, 0), (1, 1),
    )  # fmt: skip
    raises(
        TypeError, "lax.dynamic_update_slice requires arguments to have the same dtypes, got float32, int32.",
        lax.dynamic_update_slice, X, np.ones((1, 1), np.int32), (0, 0),
    )  # fmt: skip
    raises(
        ValueError, "Index -1 is out of bounds for dimension 3 if allow_negative_indices=False",
        lambda: lax.dynamic_slice(X, (-1, 0), (1, 1), allow_negative_indices=False),
    )  # fmt: skip
    raises(IndexError, "index_in_dim: index 5 is out of bounds for axis 1 with size 4", lax.index_in_dim, X, 5, 1)


def test_errors_of_gather_and_scatter():
    indices = np.array([[0], [2]], np.int32)
    raises(ValueError, 'Unknown gather mode "bad"', lambda: lax.gather(X, indices, ROWS, (1, 4), mode="bad"))
    raises(
        ValueError,
        "indices must have an integer type",
        lax.gather,
        X,
        indices.astype(np.float32),
        ROWS,
        (1, 4),
    )
    raises(
        TypeError, "Slice size at index 1 in gather op is out of range, must be within [0, 4 + 1), got 5.",
        lax.gather, X, indices, ROWS, (1, 5),
    )  # fmt: skip
    raises(
        TypeError, "Updates tensor must be of rank 2; got 3.",
        lax.scatter_add, X, indices, np.ones((2, 4, 1), np.float32), TO_ROWS,
    )  # fmt: skip
    raises(
        TypeError, "lax.scatter requires arguments to have the same dtypes, got float32, int32.",
        lax.scatter, X, indices, np.ones((2, 4), np.int32), TO_ROWS,
    )  # fmt: skip
    raises(
        TypeError,
        "add does not accept dtype bool at position 0.",
        lax.scatter_add,
        X > 0,
        indices,
        X[:2] > 0,
        TO_ROWS,
    )


def test_padded_gathers_read_no_index_outside():
    """The frame of a pad around a gather has no indices: reading them anyway once gave arbitrary results in loops."""
    f = lambda x: (x.at[catena.numpy.array([0, 0])].add(x[:2] ** 2) ** 2).sum()
    g = lambda c, _: (c - 0.1 * catena.grad(f)(c), f(c))
    x = catena.numpy.array([0.5, -1.2, 2.0])
    got = lax.scan(g, x, None, length=3)
    with catena.disable_jit():
        want = lax.scan(g, x, None, length=3)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


UPDATES = [  # operands, updates and starts that are known at once, and such as go the general way
    (np.arange(5.0), np.ones(2), (4,)),
    (np.arange(5.0), np.ones(2), (-2,)),
    (np.arange(12).reshape(3, 4), np.zeros((2, 4), int), (7, -9)),
    (np.arange(12).reshape(3, 4).T, np.zeros((1, 2), int), (1, 1)),
    (np.arange(3.0), np.ones(0), (1,)),
    (np.zeros((0, 2)), np.ones((0, 1)), (0, 1)),
    (np.float32(1), np.float32(2), ()),
    (np.array([True, False]), np.array([False]), (0,)),
]


@pytest.mark.parametrize(("operand", "update", "starts"), UPDATES)
def test_windows_are_replaced_at_once_as_in_programs(operand, update, starts):
    operand, update = jnp.asarray(operand), jnp.asarray(update)
    kept = np.array(operand)
    compiled = catena.jit(lambda x, u: lax.dynamic_update_slice(x, u, starts))(operand, update)
    for given in (starts, [jnp.int32(s) for s in starts], [np.int32(s) for s in starts]):
        found = lax.dynamic_update_slice(operand, update, given)
        assert found.aval == compiled.aval and np.array_equal(found, compiled)
    assert np.array_equal(operand, kept)


def test_windows_that_do_not_fit_are_refused():
    x = jnp.arange(5.0)
    for update, starts, error in (
        (jnp.ones(6), (0,), TypeError),
        (jnp.ones(2, int), (0,), TypeError),
        (jnp.ones((1, 2)), (0,), TypeError),
        (jnp.ones(2), (0, 0), ValueError),
        (jnp.ones(2), (0.5,), TypeError),
    ):
        with pytest.raises(error):
            lax.dynamic_update_slice(x, update, starts)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        lax.dynamic_update_slice(x, jnp.ones(2), (0,))


def test_one_position_is_updated_by_numbers_and_arrays_alike():
    x, table = jnp.arange(4.0), jnp.arange(12.0).reshape(3, 4)
    for operand, update, axis in (
        (x, 7.0, 0), (x, jnp.float32(7), 0), (x, np.float32(7), 0), (x, jnp.ones(1), 0), (jnp.arange(4), 7, 0),
        (table, x, 0), (table, jnp.ones(3), 1), (table, np.ones(3, "float32"), -1), (table, jnp.ones((3, 1)), 1),
    ):  # fmt: skip
        fun = functools.partial(lax.dynamic_update_index_in_dim, axis=axis)
        for index in (1, -1, 9):
            eager, compiled = fun(operand, update, index), catena.jit(fun)(operand, update, index)
            assert (eager.dtype, eager.weak_type) == (compiled.dtype, compiled.weak_type)
            np.testing.assert_array_equal(eager, compiled)
    with pytest.raises(TypeError):
        lax.dynamic_update_index_in_dim(x, 7, 1, 0)  # an integer among floats
