"""Reductions over windows and the derivative of pooling."""

import functools
import itertools

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena import lax
from checkers import check_primitive, raises

X = np.random.default_rng(0).permutation(30).reshape(5, 6).astype(np.float64)
IDENTITY = {"add": 0.0, "max": -np.inf, "min": np.inf, "mul": 1.0}
UFUNC = {"add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply}
SETTINGS = [
    {"window_dimensions": (2, 3)},
    {"window_dimensions": (2, 2), "window_strides": (1, 2), "padding": "SAME"},
    {"window_dimensions": (3, 1), "window_strides": (2, 3), "padding": ((1, 2), (0, 0))},
    {"window_dimensions": (2, 2), "base_dilation": (2, 1), "padding": ((1, 0), (0, 0))},
    {"window_dimensions": (2, 2), "window_dilation": (2, 3)},
    {
        "window_dimensions": (2, 2),
        "window_strides": (2, 1),
        "base_dilation": (1, 2),
        "window_dilation": (1, 3),
    },
]


def reference(x, name, init, settings):
    """Every window, element by element."""
    window = settings["window_dimensions"]
    ones = (1,) * x.ndim
    strides = settings.get("window_strides", ones)
    base, dilation = settings.get("base_dilation", ones), settings.get("window_dilation", ones)
    padding = settings.get("padding", "VALID")
    if isinstance(padding, str):
        padding = lax.padtype_to_pads(x.shape, window, strides, padding)
    wide = np.full([(n - 1) * d + 1 + lo + hi for n, d, (lo, hi) in zip(x.shape, base, padding)], init)
    wide[tuple(slice(lo, lo + (n - 1) * d + 1, d) for n, d, (lo, _) in zip(x.shape, base, padding))] = x
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, d, s in zip(wide.shape, window, dilation, strides)]
    out = np.full(counts, init)
    for place in np.ndindex(*counts):
        for at in np.ndindex(*window):
            source = tuple(p * s + a * d for p, s, a, d in zip(place, strides, at, dilation))
            out[place] = UFUNC[name](out[place], wide[source])
    return out


@pytest.mark.share(4)
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", list(IDENTITY))
def test_rules(name, settings):
    init = IDENTITY[name]
    with catena.enable_x64(True):
        x = X if name != "mul" else 0.5 + X / 30
        check_primitive(
            lambda x: lax.reduce_window(x, init, getattr(lax, name), **settings),
            [x],
            reference=lambda x: reference(x, name, init, settings),
            atol=1e-12,
            order=2 if name in ("add", "mul") else 1,
        )


@pytest.mark.parametrize("init", [0.5, 40.0])
def test_other_initial_values(init):
    settings = SETTINGS[2]
    for f in (lambda x: lax.reduce_window(x, init, lax.max, **settings),) * 2:
        out = catena.jit(f)(X.astype(np.float32))
        np.testing.assert_array_equal(np.asarray(out), reference(X, "max", init, settings))
        np.testing.assert_array_equal(np.asarray(f(X.astype(np.float32))), reference(X, "max", init, settings))


def test_which_primitive():
    def names(*args):
        return [e.primitive.name for e in catena.make_jaxpr(lambda x: lax.reduce_window(x, *args, (2, 2)))(X).eqns]

    assert names(0.0, lax.add) == ["reduce_window_sum"]
    assert names(-np.inf, lax.max) == ["reduce_window_max"]
    assert names(1.0, lax.add) == names(1.0, lax.mul) == ["reduce_window"]


def test_several_operands():
    def larger(a, b):
        first = lax.ge(a[0], b[0])
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    x, place = X.astype(np.float32), np.arange(30, dtype=np.int32).reshape(5, 6)

    def f(x):
        return lax.reduce_window((x, place), (-np.inf, -1), larger, (5, 3), (1, 3))

    for g in (f, catena.jit(f)):
        values, places = g(x)
        assert values.tolist() == [[x[:, :3].max(), x[:, 3:].max()]]
        assert x.reshape(-1)[np.asarray(places)].tolist() == values.tolist()
    batched = catena.vmap(lambda i: lax.reduce_window(x, i, lax.max, (5, 3)))(np.array([0.0, 99.0], np.float32))
    assert batched[1].tolist() == [[99.0] * 4]


@pytest.mark.parametrize("window", [1, 2, 7, 9, 31, 40])
def test_long_windows(window):
    x = np.random.default_rng(1).integers(-5, 5, 100).astype(np.int32)
    expected = np.lib.stride_tricks.sliding_window_view(x, window).sum(-1)
    assert lax.reduce_window(x, 0, lax.add, (window,)).tolist() == expected.tolist()
    dilated = lax.reduce_window(x, 0, lax.add, (window,), window_dilation=(2,))
    assert dilated.tolist() == [x[i : i + 2 * window : 2].sum() for i in range(100 - 2 * (window - 1))]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "bool", "float16", "bfloat16"])
def test_dtypes(dtype):
    x = (np.arange(8) % 3).astype(catena.numpy.dtype(dtype))
    identity = lax.reduce_window(x, x[:1][0] * 0 + np.asarray(False if dtype == "bool" else 0, x.dtype), lax.max, (2,))
    assert identity.dtype == x.dtype and identity.tolist() == np.maximum(x[1:], x[:-1]).tolist()


# ---- select_and_scatter

SELECTED = [[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]


def scalar_jaxpr(function):
    return catena.make_jaxpr(function)(jnp.float32(1), jnp.float32(1)).jaxpr


def test_select_and_scatter():
    """The source of a window goes to the element that is selected, by any function, in the order of the windows."""
    x, source = map(jnp.array, SELECTED)

    def scattered(x, source, padding=((0, 0), (0, 0))):
        return lax.select_and_scatter_p.bind(
            x, source, jnp.float32(10.0), window_dimensions=(1, 2), window_strides=(1, 1), padding=padding,
            select_jaxpr=scalar_jaxpr(lambda a, b: a >= b), select_consts=(),
            scatter_jaxpr=scalar_jaxpr(lambda total, y: total * y + y), scatter_consts=(),
        )  # fmt: skip

    want = np.array([[11.0, 10.0, 22.0], [10.0, 136.0, 10.0]], np.float32)
    turned = np.array([[10.0, 24.0, 10.0], [33.0, 10.0, 44.0]], np.float32)
    for call in (scattered, catena.jit(scattered)):
        np.testing.assert_array_equal(call(x, source), want)
        np.testing.assert_array_equal(call(-x, source), turned)
        both = catena.vmap(call)(jnp.stack([x, -x]), jnp.stack([source, source]))
        np.testing.assert_array_equal(both, np.stack([want, turned]))
    edges = functools.partial(scattered, padding=((0, 0), (1, 1)))  # windows of one element, and of one behind the end
    wide = jnp.ones((2, 4))
    np.testing.assert_array_equal(edges(x, wide), catena.jit(edges)(x, wide))
    np.testing.assert_array_equal(edges(x, wide), [[12.0, 10.0, 12.0], [11.0, 12.0, 11.0]])


def test_select_and_scatter_refuses():
    x, source = map(jnp.array, SELECTED)
    for args, message in (((x, source[:1], jnp.float32(0)), "shape of the windows"), ((x, source, source), "scalar")):
        with pytest.raises(TypeError, match=message):
            lax.select_and_scatter_p.bind(
                *args, window_dimensions=(1, 2), window_strides=(1, 1), padding=((0, 0), (0, 0)), scatter_consts=(),
                select_jaxpr=scalar_jaxpr(lax.ge), select_consts=(), scatter_jaxpr=scalar_jaxpr(lax.add),
            )  # fmt: skip


# ---- select_and_gather_add, select_and_scatter_add


def test_ties_go_to_the_first():
    x = np.array([1.0, 1.0, 0.0, 2.0], np.float32)
    grad = catena.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)).sum())(x)
    assert grad.tolist() == [1, 0, 0, 1]


POOLS = [  # shape, windows, strides, padding: next to each other, overlapping, with gaps, over all, with edges cut off
    ((2, 9, 8, 3), (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
    ((2, 9, 8, 3), (1, 3, 3, 1), (1, 2, 2, 1), "SAME"),
    ((2, 3, 7, 8), (1, 1, 3, 2), (1, 1, 1, 1), "SAME"),
    ((11, 12), (2, 2), (3, 4), ((1, 2), (-1, 1))),
    ((12,), (12,), (1,), "VALID"),
    ((9, 10), (6, 7), (2, 1), "SAME"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", ["max", "min"])
def test_derivatives_choose_the_first_of_equal_elements(name, pool):
    """What goes to the first greatest element of each window, and what comes from it, is told by going through all
    windows, compiled or not: of equal elements, the first one is chosen, and the first NaN is greater than all.
    """
    shape, dims, strides, padding = pool
    rng = np.random.default_rng(5)
    x = rng.integers(-2, 3, shape).astype(np.float32)
    x.reshape(-1)[::7] = -IDENTITY[name]
    x.reshape(-1)[5::23] = np.nan
    pooled = lambda x: lax.reduce_window(x, IDENTITY[name], getattr(lax, name), dims, strides, padding)
    counts = pooled(x).shape
    tangent, ct = (rng.integers(1, 100, size).astype(np.float32) for size in (shape, counts))
    edges = lax.padtype_to_pads(shape, dims, strides, padding) if isinstance(padding, str) else padding
    wide, numbers = np.full([n + 2 * 12 for n in shape], IDENTITY[name]), np.full([n + 2 * 12 for n in shape], -1)
    inside = tuple(slice(12, 12 + n) for n in shape)
    wide[inside], numbers[inside] = x, np.arange(x.size).reshape(shape)
    want, come = np.zeros(x.size, np.float32), np.zeros(counts, np.float32)
    for place in np.ndindex(*counts):
        starts = [12 - lo + p * s for p, s, (lo, _) in zip(place, strides, edges)]
        window = tuple(slice(start, start + w) for start, w in zip(starts, dims))
        seen, which = wide[window].reshape(-1), numbers[window].reshape(-1)
        at = which[np.argmax(seen) if name == "max" else np.argmin(seen)]
        if at >= 0:
            want[at] += ct[place]
            come[place] = tangent.reshape(-1)[at]
    pull, push = (lambda x, ct: catena.vjp(pooled, x)[1](ct)[0]), lambda x, t: catena.jvp(pooled, (x,), (t,))[1]
    for call in (lambda f: f, catena.jit):
        np.testing.assert_array_equal(call(pull)(x, ct), want.reshape(shape))
        np.testing.assert_array_equal(call(push)(x, tangent), come)


@pytest.mark.parametrize("select", ["ge", "le"])
def test_selection_rules(select):
    params = {
        "select_prim": select,
        "window_dimensions": (2, 2),
        "window_strides": (1, 2),
        "padding": ((0, 0), (1, 1)),
    }
    undilated = {"base_dilation": (1, 1), "window_dilation": (1, 1)}
    with catena.enable_x64(True):
        values = np.random.default_rng(2).standard_normal(X.shape)
        check_primitive(
            lambda t: lax.select_and_gather_add_p.bind(t, X, **params, **undilated),
            [values],
            atol=1e-12,
            vmap=False,
        )
        source = np.random.default_rng(3).standard_normal((4, 4))
        check_primitive(lambda s: lax.select_and_scatter_add_p.bind(s, X, **params), [source], atol=1e-12)


def test_gradient_through_dilated_windows():
    """Every cotangent goes to the element that its window chose."""
    with catena.enable_x64(True):
        settings = {"window_dimensions": (2, 2), "window_dilation": (2, 1), "base_dilation": (1, 2)}
        out, pull = catena.vjp(lambda x: lax.reduce_window(x, -np.inf, lax.max, **settings), X)
        cts = np.arange(1.0, 1 + out.size).reshape(out.shape)
        expected = np.zeros(X.shape)
        wide = np.full((5, 11), -np.inf)
        wide[:, ::2] = X
        for i, j in itertools.product(*map(range, out.shape)):
            window = {(i + 2 * a, j + b): wide[i + 2 * a, j + b] for a in (0, 1) for b in (0, 1)}
            r, c = max(window, key=window.get)
            expected[r, c // 2] += cts[i, j]
        np.testing.assert_allclose(np.asarray(pull(cts)[0]), expected)


def test_errors():
    f = lax.reduce_window
    raises(
        TypeError,
        "reduce_window got the wrong number of window_dimensions for operand: got operand shape (5, 6) with "
        "window_dimensions (3,).",
        f, X, 0.0, lax.add, (3,),
    )  # fmt: skip
    raises(
        TypeError, "reduce_window window_strides must have every element be strictly positive, got (0, 1).",
        f, X, 0.0, lax.add, (2, 2), (0, 1),
    )  # fmt: skip
    raises(RuntimeError, "Unrecognized padding type", f, X, 0.0, lax.add, (2, 2), None, "bad")
    raises(
        TypeError,
        "reduce_window: computation must return scalars of types",
        f,
        X,
        0.0,
        lambda a, b: a > b,
        (2, 2),
    )


@pytest.mark.parametrize("init, computation", [(0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min)])
def test_what_starts_eager_windows_is_known(init, computation):
    weak = jnp.asarray(1.5) * jnp.array([True, False, True])  # an array as weak as the number
    assert weak.weak_type

    def windows(x):
        return lax.reduce_window(x, init, computation, (2,))

    for result in (windows(weak), windows(weak), catena.jit(windows)(weak)):
        assert result.weak_type
        np.testing.assert_array_equal(result, {lax.add: [1.5, 1.5], lax.max: [1.5, 1.5], lax.min: [0, 0]}[computation])
    for other in (2.0, 3.0, np.nan, np.nan):  # general ones, each by its own program
        expected = [functools.reduce(computation, [other, *pair]) for pair in ([1.5, 0.0], [0.0, 1.5])]
        np.testing.assert_array_equal(lax.reduce_window(weak, other, computation, (2,)), np.float32(expected))
