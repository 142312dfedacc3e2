"""Collectives along named axes agree with NumPy on the whole batch, under vmap, jit, grad, nesting and groups."""

import numpy as np
import pytest

import catena as jax
from catena import lax

X = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 7
GROUPS = [[0, 2], [3, 1]]


def over_axis(fun, x=X, **kwargs):
    mapped = np.asarray(jax.vmap(fun, axis_name="i", **kwargs)(x))
    compiled = np.asarray(jax.jit(jax.vmap(fun, axis_name="i", **kwargs))(x))
    np.testing.assert_allclose(mapped, compiled, rtol=1e-6)
    return mapped


@pytest.mark.parametrize(
    ("collective", "reference"), [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max), (lax.pmin, np.min)]
)
def test_reductions(collective, reference):
    expected = np.broadcast_to(reference(X, axis=0), X.shape)
    np.testing.assert_allclose(over_axis(lambda x: collective(x, "i")), expected, rtol=1e-6)
    grouped = over_axis(lambda x: collective(x, "i", axis_index_groups=GROUPS))
    for group in GROUPS:
        np.testing.assert_allclose(grouped[group], np.broadcast_to(reference(X[group], axis=0), (2, 3)), rtol=1e-6)


def test_reduction_of_an_unmapped_value():
    assert over_axis(lambda x: lax.psum(np.float32(2), "i"))[0] == 8
    assert over_axis(lambda x: lax.pmax(np.float32(2), "i"))[0] == 2
    assert jax.vmap(lambda x: x * lax.psum(1, "i"), axis_name="i")(np.ones(5, np.float32))[0] == 5


def test_booleans_are_counted():
    total = jax.vmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.array([True, False, True]))
    assert total.dtype == np.int32 and total[0] == 2


def test_index_and_size():
    np.testing.assert_array_equal(jax.vmap(lambda x: lax.axis_index("i"), axis_name="i")(X), np.arange(4))
    assert jax.vmap(lambda x: x[0] * 0 + lax.axis_size("i"), axis_name="i")(X)[0] == 4


def test_all_gather():
    np.testing.assert_array_equal(over_axis(lambda x: lax.all_gather(x, "i")), np.broadcast_to(X, (4, 4, 3)))
    np.testing.assert_array_equal(over_axis(lambda x: lax.all_gather(x, "i", axis=1))[2], X.T)
    np.testing.assert_array_equal(over_axis(lambda x: lax.all_gather(x, "i", tiled=True))[1], X.ravel())
    grouped = over_axis(lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS))
    for group in GROUPS:
        for member in group:
            np.testing.assert_array_equal(grouped[member], X[group])


def test_psum_scatter():
    x = np.arange(32.0, dtype=np.float32).reshape(4, 4, 2)
    np.testing.assert_array_equal(over_axis(lambda v: lax.psum_scatter(v, "i"), x), x.sum(0))
    tiled = np.arange(32.0, dtype=np.float32).reshape(4, 8)
    expected = tiled.sum(0).reshape(4, 2)
    np.testing.assert_array_equal(over_axis(lambda v: lax.psum_scatter(v, "i", tiled=True), tiled), expected)


@pytest.mark.share(2)
@pytest.mark.parametrize(("split", "concat"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("tiled", [False, True])
def test_all_to_all(split, concat, tiled):
    x = np.arange(4 * 4 * 4.0, dtype=np.float32).reshape(4, 4, 4)
    got = over_axis(lambda v: lax.all_to_all(v, "i", split, concat, tiled=tiled), x)
    for i in range(4):
        pieces = [np.split(x[j], 4, axis=split)[i] for j in range(4)]
        if tiled:
            expected = np.concatenate(pieces, axis=concat)
        else:
            expected = np.stack([p.squeeze(split) for p in pieces], axis=concat)
        np.testing.assert_array_equal(got[i], expected)


def test_ppermute_and_pshuffle():
    got = over_axis(lambda x: lax.ppermute(x, "i", [(0, 1), (3, 0)]))
    np.testing.assert_array_equal(got, np.stack([X[3], X[0], 0 * X[0], 0 * X[0]]))
    np.testing.assert_array_equal(over_axis(lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1])), X[[2, 0, 3, 1]])


@pytest.mark.parametrize(
    "linear",
    [
        lambda x: lax.psum(x, "i"),
        lambda x: lax.pmean(x, "i"),
        lambda x: lax.all_gather(x, "i"),
        lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]),
        lambda x: lax.all_gather(x, "i", axis_index_groups=GROUPS),
    ],
)
def test_transposes_are_adjoint(linear):
    """The sum over all examples of <ct, A t> equals that of <A* ct, t>, where A* sums what each example sends."""
    t = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    out = jax.vmap(linear, axis_name="i")(t)
    ct = np.random.default_rng(1).normal(size=out.shape).astype(np.float32)
    pull = lambda x, c: jax.vjp(linear, x)[1](c)[0]  # noqa: E731
    back = jax.vmap(pull, axis_name="i")(t, ct)
    np.testing.assert_allclose(np.sum(ct * np.asarray(out)), np.sum(np.asarray(back) * t), rtol=1e-4)


def test_nested_axes():
    both = jax.vmap(jax.vmap(lambda x: lax.psum(x, ("i", "j")), axis_name="j"), axis_name="i")(X)
    np.testing.assert_allclose(both, np.full_like(X, X.sum()), rtol=1e-6)
    outer = jax.vmap(jax.vmap(lambda x: lax.psum(x, "i"), axis_name="j"), axis_name="i")(X)
    np.testing.assert_allclose(outer, np.broadcast_to(X.sum(0), X.shape), rtol=1e-6)
    inner = jax.vmap(jax.vmap(lambda x: lax.all_gather(x, "i"), axis_name="j"), axis_name="i")(X)
    np.testing.assert_allclose(inner, np.broadcast_to(X.T, (4, 3, 4)), rtol=1e-6)


def test_inside_jit_and_scan_free_closures():
    inner = jax.jit(lambda x: x / lax.psum(x, "i"))
    np.testing.assert_allclose(over_axis(inner), X / X.sum(0), rtol=1e-6, equal_nan=True)


def test_make_jaxpr_with_axis_env():
    text = str(jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 3)])(1.0))
    assert "psum[axes=('i',) axis_index_groups=None]" in text


@pytest.mark.parametrize(
    "call", [lambda: lax.psum(1.0, "nowhere"), lambda: lax.axis_index("nowhere"), lambda: lax.axis_size("nowhere")]
)
def test_unbound_axis(call):
    with pytest.raises(NameError, match="unbound axis name: nowhere"):
        call()


def test_errors():
    with pytest.raises(ValueError, match="axis_index_groups"):
        over_axis(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2]]))
    with pytest.raises(ValueError, match="ppermute destinations"):
        over_axis(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 1)]))
    with pytest.raises(ValueError, match="permutation"):
        over_axis(lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]))
    with pytest.raises(ValueError, match="all_to_all"):
        over_axis(lambda x: lax.all_to_all(x, "i", 0, 0))
    with pytest.raises(ValueError, match="out of bounds"):
        over_axis(lambda x: lax.all_gather(x, "i", axis=5))


def test_pmap():
    with jax.default_device(None):
        assert jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(np.ones((1, 2), np.float32)).shape == (1, 2)
    with pytest.raises(ValueError, match="needs 9 devices, but only 8"):
        jax.pmap(lambda x: x)(np.ones(9))


def test_pmap_is_a_program_of_one_device():
    text = str(jax.make_jaxpr(jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i"))(np.ones((1, 3), np.float32)))
    assert "shard_map[" in text and "psum[axes=('i',)" in text and "mesh=Mesh('i': 1, axis_types=(Auto,))" in text


def test_pmap_axes_and_transformations():
    x = np.arange(3.0, dtype=np.float32)[None]
    np.testing.assert_array_equal(jax.pmap(lambda a, b: a * b, in_axes=(0, None), out_axes=1)(x, 2.0), 2 * x.T)
    gradient = jax.grad(lambda a: jax.pmap(lambda v: (v * v).sum())(a)[0])(x)
    np.testing.assert_allclose(gradient, 2 * x)
    np.testing.assert_allclose(jax.vmap(jax.pmap(lambda v: v + 1))(np.stack([x, x])), np.stack([x, x]) + 1)


def test_pmap_over_virtual_devices():
    got = jax.pmap(lambda x, n: n * x / lax.psum(x, "i"), axis_name="i", static_broadcasted_argnums=1)(X + 1, 2)
    np.testing.assert_allclose(got, 2 * (X + 1) / (X + 1).sum(0), rtol=1e-6)
    gradient = jax.pmap(jax.grad(lambda x: lax.pmean((x * x).sum(), "i")), axis_name="i")(X)
    np.testing.assert_allclose(gradient, 2 * X, rtol=1e-6)


def test_psum_of_python_numbers_within_a_tree():
    total = jax.vmap(lambda x: jax.lax.psum((x, 2.0), "i"), axis_name="i")(np.ones(3, "float32"))
    assert total[0].tolist() == [3, 3, 3] and total[1].tolist() == [6, 6, 6]
    assert total[1].weak_type and not total[0].weak_type


# ---- several names as one

AXES = {"i": 2, "j": 3}
Y = np.arange(2 * 3 * 6 * 6, dtype=np.float32).reshape(2, 3, 6, 6) / 50
PAIRS = [[0, 3], [1, 4], [2, 5]]
OF_SEVERAL = {
    "psum": lambda x, n: lax.psum(x, n),
    "psum in groups": lambda x, n: lax.psum(x, n, axis_index_groups=PAIRS),
    "psum in unequal groups": lambda x, n: lax.psum(x, n, axis_index_groups=[[0, 5], [1, 2, 3, 4]]),
    "pmean in unequal groups": lambda x, n: lax.pmean(x, n, axis_index_groups=[[0, 5], [1, 2, 3, 4]]),
    "pmax in groups": lambda x, n: lax.pmax(x, n, axis_index_groups=PAIRS),
    "all_gather": lambda x, n: lax.all_gather(x, n),
    "all_gather, axis 1, tiled": lambda x, n: lax.all_gather(x, n, axis=1, tiled=True),
    "all_gather in groups": lambda x, n: lax.all_gather(x, n, axis_index_groups=PAIRS),
    "psum_scatter": lambda x, n: lax.psum_scatter(x, n),
    "psum_scatter, axis 1, tiled": lambda x, n: lax.psum_scatter(x, n, scatter_dimension=1, tiled=True),
    "psum_scatter in groups": lambda x, n: lax.psum_scatter(x[:2], n, axis_index_groups=PAIRS),
    "all_to_all": lambda x, n: lax.all_to_all(x, n, 0, 1),
    "all_to_all, tiled": lambda x, n: lax.all_to_all(x, n, 0, 1, tiled=True),
    "all_to_all in groups": lambda x, n: lax.all_to_all(x[:2], n, 0, 1, axis_index_groups=PAIRS),
    "ppermute": lambda x, n: lax.ppermute(x, n, [(0, 1), (1, 3), (5, 0)]),
    "pshuffle": lambda x, n: lax.pshuffle(x, n, [1, 3, 0, 2, 5, 4]),
    "pswapaxes": lambda x, n: lax.pswapaxes(x, n, 0),
    "axis_index": lambda x, n: lax.axis_index(n) + 0 * x,
}


@pytest.mark.parametrize("name", OF_SEVERAL)
def test_several_names_are_one_axis(name):
    """A collective over two names does what it does over one axis that counts the examples of both, row by row."""
    fun = OF_SEVERAL[name]
    flat = jax.vmap(lambda x: fun(x, "k"), axis_name="k")
    nested = jax.vmap(jax.vmap(lambda x: fun(x, ("i", "j")), axis_name="j"), axis_name="i")
    expected = np.asarray(flat(Y.reshape(6, 6, 6)))
    np.testing.assert_allclose(np.asarray(nested(Y)).reshape(expected.shape), expected, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(jax.jit(nested)(Y)).reshape(expected.shape), expected, rtol=1e-6)
    # the names in the other order, mapped in the other order
    turned = jax.vmap(jax.vmap(lambda x: fun(x, ("j", "i")), axis_name="i"), axis_name="j")
    columns = np.asarray(turned(Y.swapaxes(0, 1)))
    across = np.asarray(flat(Y.swapaxes(0, 1).reshape(6, 6, 6)))
    np.testing.assert_allclose(columns.reshape(across.shape), across, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in OF_SEVERAL if not n.startswith(("pmax", "axis_index"))])
def test_gradients_over_several_names(name):
    fun = OF_SEVERAL[name]

    def outside(mapped):
        return jax.grad(lambda y: (mapped(y) ** 2).sum())

    flat = outside(jax.vmap(lambda x: fun(x, "k"), axis_name="k"))(Y.reshape(6, 6, 6))
    nested = outside(jax.vmap(jax.vmap(lambda x: fun(x, ("i", "j")), axis_name="j"), axis_name="i"))(Y)
    np.testing.assert_allclose(np.reshape(nested, flat.shape), flat, rtol=1e-5)
    within = jax.grad(lambda x, n: (fun(x, n) ** 2).sum())
    flat = jax.vmap(lambda x: within(x, "k"), axis_name="k")(Y.reshape(6, 6, 6))
    nested = jax.vmap(jax.vmap(lambda x: within(x, ("i", "j")), axis_name="j"), axis_name="i")(Y)
    np.testing.assert_allclose(np.reshape(nested, flat.shape), flat, rtol=1e-5)


# ---- groups of different sizes

UNEVEN = [[0, 1], [2, 3, 4, 5, 6, 7]]


@pytest.mark.parametrize(
    ("collective", "reference"), [(lax.psum, np.sum), (lax.pmean, np.mean), (lax.pmax, np.max), (lax.pmin, np.min)]
)
@pytest.mark.parametrize("transformation", [jax.vmap, jax.pmap])
def test_groups_of_different_sizes(collective, reference, transformation):
    x = np.arange(8.0, dtype=np.float32)
    got = transformation(lambda x: collective(x, "i", axis_index_groups=UNEVEN), axis_name="i")(x)
    expected = [reference(x[group]) for group in UNEVEN for _ in group]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    common = jax.vmap(lambda _: collective(np.float32(3), "i", axis_index_groups=UNEVEN), axis_name="i")(x)
    np.testing.assert_allclose(common, [reference([3.0] * len(g)) for g in UNEVEN for _ in g])


def test_the_size_of_the_own_group():
    sizes = jax.vmap(lambda _: lax.psum(1, "i", axis_index_groups=UNEVEN), axis_name="i")(np.zeros(8))
    assert sizes.tolist() == [2, 2, 6, 6, 6, 6, 6, 6]
    with pytest.raises(ValueError, match="cover each of the 8 indices once"):
        jax.vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [1, 2]]), axis_name="i")(np.zeros(8))
    with pytest.raises(ValueError, match="of equal size"):
        jax.vmap(lambda x: lax.all_gather(x, "i", axis_index_groups=UNEVEN), axis_name="i")(np.zeros(8))


# ---- pmap


def test_pmap_returns_the_first_copy_where_the_out_axis_is_none():
    x = np.arange(8, dtype=np.int32)
    assert jax.pmap(lambda x: x + 10, out_axes=None)(x).tolist() == 10
    rows = jax.pmap(lambda x: (x, -x), in_axes=1, out_axes=(None, 1))(np.ones((2, 3)) * np.arange(3))
    assert rows[0].tolist() == [0, 0] and rows[1].tolist() == [[0, -1, -2]] * 2


def test_callbacks_in_pmap_run_once_for_each_device():
    seen = []

    def callback(x):
        seen.append(x.shape)
        return x + 1

    got = jax.pmap(lambda x: jax.pure_callback(callback, x, x))(np.arange(8.0, dtype=np.float32).reshape(4, 2))
    np.testing.assert_array_equal(got, np.arange(1.0, 9.0).reshape(4, 2))
    assert seen == [(2,)] * 4
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.pmap(jax.vmap(lambda x: jax.pure_callback(callback, x, x)))(np.zeros((2, 2), np.float32))


def test_pmap_is_a_wrapper_of_its_function():
    def fun(x):
        """What it does."""
        return x

    assert jax.pmap(fun).__wrapped__ is fun and jax.pmap(fun).__doc__ == fun.__doc__


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jax.pmap(lambda: 1)(), "pmap requires at least one argument with a mapped axis"),
        (lambda: jax.pmap(lambda x: x)(1.0), "pmap requires at least one argument with a mapped axis"),
        (lambda: jax.pmap(lambda x: x, in_axes=None)(X), "pmap requires at least one argument with a mapped axis"),
        (lambda: jax.pmap(lambda x: x, in_axes=2)(X), "pmap was requested to map its argument along axis 2"),
        (lambda: jax.pmap(lambda a, b: a)(X[:2], X[:3]), "pmap got inconsistent sizes"),
        (lambda: jax.pmap(lambda x: x, devices=[]), "'devices' argument to pmap must be non-empty, or None"),
        (
            lambda: jax.pmap(lambda a, b: a, static_broadcasted_argnums=1)(X, b=2),
            r"static_broadcasted_argnums=\(1,\) but was called with only 1 positional argument\.",
        ),
    ],
)
def test_pmap_speaks_of_itself(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("extremum", [lax.pmax, lax.pmin])
def test_extrema_along_names_have_no_derivative(extremum):
    with pytest.raises(NotImplementedError, match="all_gather"):
        over_axis(jax.grad(lambda x: extremum(x, "i")))


def test_random_keys_are_sent_and_not_added_up():
    keys = jax.random.split(jax.random.key(0), 4)
    sent = jax.vmap(lambda k: lax.ppermute(k, "i", [(0, 1), (3, 2)]), axis_name="i")(keys)
    data = np.asarray(jax.random.key_data(keys))
    zeros = np.zeros_like(data[0])
    np.testing.assert_array_equal(jax.random.key_data(sent), [zeros, data[0], data[3], zeros])
    for reduce in (lax.psum, lax.pmax, lax.pmin, lambda k, i: lax.psum_scatter(lax.all_gather(k, i), i)):
        with pytest.raises(TypeError, match="does not accept dtype key<fry>"):
            jax.vmap(lambda k, reduce=reduce: reduce(k, "i"), axis_name="i")(keys)
