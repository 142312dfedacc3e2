"""Reductions of ``catena.numpy``: values, dtypes, masks, axes, NaN, both paths, jit and vmap."""

import warnings

import numpy as np
import pytest

import catena
import catena.numpy as jnp
from catena.lax import whole

X = np.random.default_rng(3).standard_normal((2, 3, 4)).astype("float32")
HOLES = np.where(X > 0.8, np.nan, X).astype("float32")
PLAIN = "sum prod max min mean var std all any ptp median".split()
SKIPPING = "nansum nanprod nanmax nanmin nanmean nanvar nanstd nanmedian".split()
AXES = [None, 0, -1, (0, 2), (1,)]


def numpy_says(name, *args, **options):
    """NumPy's result; it warns of slices without numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return getattr(np, name)(*args, **options)


def check(fun, expected, *args, rtol=2e-5):
    """``fun`` evaluated and compiled, against what NumPy gives."""
    eager, compiled = fun(*args), catena.jit(fun)(*args)
    assert eager.aval == compiled.aval
    for found in (eager, compiled):
        np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-5)
    return eager


@pytest.mark.share(6)
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    expected = getattr(np, name)(X, axis=axis, keepdims=keepdims)
    check(lambda x: getattr(jnp, name)(x, axis=axis, keepdims=keepdims), expected, jnp.asarray(X))


@pytest.mark.share(4)
@pytest.mark.parametrize("name", SKIPPING)
@pytest.mark.parametrize("axis", AXES, ids=str)
def test_reductions_without_nan(name, axis):
    expected = numpy_says(name, HOLES, axis=axis)
    check(lambda x: getattr(jnp, name)(x, axis=axis), expected, jnp.asarray(HOLES))


@pytest.mark.parametrize("name", "sum prod mean var std all any".split())
def test_masks(name):
    mask = X > 0
    expected = numpy_says(name, X, axis=1, where=mask)
    check(lambda x, m: getattr(jnp, name)(x, axis=1, where=m), expected, jnp.asarray(X), jnp.asarray(mask))


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
def test_initial_with_mask(name):
    expected = getattr(np, name)(X, axis=0, where=X > 0, initial=0.5)
    check(lambda x: getattr(jnp, name)(x, axis=0, where=x > 0, initial=0.5), expected, jnp.asarray(X))


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["argmax", "argmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_positions(name, axis):
    expected = getattr(np, name)(X, axis=axis)
    assert check(lambda x: getattr(jnp, name)(x, axis=axis), expected, jnp.asarray(X)).dtype == "int32"


def test_positions_with_nan():
    assert int(jnp.argmax(jnp.array([1.0, jnp.nan, 3.0]))) == 1
    assert int(jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))) == 2
    assert jnp.nanargmin(jnp.array([[jnp.nan] * 2, [1.0, 2.0]]), axis=1).tolist() == [-1, 0]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "nancumsum", "nancumprod"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_running(name, axis):
    expected = getattr(np, name)(HOLES if "nan" in name else X, axis=axis)
    check(lambda x: getattr(jnp, name)(x, axis=axis), expected, jnp.asarray(HOLES if "nan" in name else X))


def test_running_with_initial():
    assert jnp.cumulative_sum(jnp.arange(3), include_initial=True).tolist() == [0, 0, 1, 3]
    assert jnp.cumulative_prod(jnp.array([2.0, 3.0]), include_initial=True).tolist() == [1, 2, 6]
    with pytest.raises(ValueError, match="has rank 2"):
        jnp.cumulative_sum(jnp.ones((2, 2)))


@pytest.mark.share(4)
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)], ids=str)
def test_quantiles(method, axis):
    q = np.array([0.0, 0.3, 0.45, 1.0])
    expected = np.quantile(X, q, axis=axis, method=method)
    check(lambda x, q: jnp.quantile(x, q, axis=axis, method=method), expected, jnp.asarray(X), jnp.asarray(q))
    one = np.quantile(X, 0.3, axis=axis, method=method)
    check(lambda x: jnp.quantile(x, 0.3, axis=axis, method=method), one, jnp.asarray(X))


def test_quantiles_with_nan_and_percentiles():
    x = jnp.array([1.0, jnp.nan, 3.0])
    assert np.isnan(float(jnp.median(x))) and float(jnp.nanmedian(x)) == 2.0
    check(lambda x: jnp.percentile(x, 30.0), np.percentile(X, 30.0), jnp.asarray(X))
    check(lambda x: jnp.nanquantile(x, 0.4, axis=2), np.nanquantile(HOLES, 0.4, axis=2), jnp.asarray(HOLES))


def test_average():
    x, w = X[0], np.arange(1.0, 5.0)
    check(
        lambda x, w: jnp.average(x, axis=1, weights=w),
        np.average(x, axis=1, weights=w),
        jnp.asarray(x),
        jnp.asarray(w),
    )
    mean, total = jnp.average(jnp.arange(3.0), weights=jnp.array([1, 2, 3]), returned=True)
    assert float(total) == 6 and abs(float(mean) - 4 / 3) < 1e-6


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda: jnp.sum(jnp.ones(2, "int8")), "int32"),
        (lambda: jnp.sum(jnp.ones(2, "uint8")), "uint32"),
        (lambda: jnp.sum(jnp.ones(2, bool)), "int32"),
        (lambda: jnp.sum(jnp.ones(2, "bfloat16")), "bfloat16"),
        (lambda: jnp.sum(jnp.ones(2, "int8"), promote_integers=False), "int8"),
        (lambda: jnp.mean(jnp.arange(3)), "float32"),
        (lambda: jnp.var(jnp.ones(2, "complex64")), "float32"),
        (lambda: jnp.cumsum(jnp.ones(2, bool)), "int32"),
        (lambda: jnp.max(jnp.ones(2, "uint8")), "uint8"),
        (lambda: jnp.mean(jnp.ones(2, "float16")), "float16"),
    ],
)
def test_dtypes(expression, dtype):
    result = expression()
    assert result.dtype == dtype and not result.weak_type


def test_short_floats_accumulate_in_float32():
    assert float(jnp.sum(jnp.full(5000, 0.1, "float16"))) == pytest.approx(500, rel=1e-2)


def test_empty():
    empty = jnp.zeros((0,))
    assert float(jnp.sum(empty)) == 0 and np.isnan(float(jnp.mean(empty))) and bool(jnp.all(empty))
    assert float(jnp.max(empty, initial=-1.0)) == -1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: jnp.sum([1, 2]),
            TypeError,
            "sum requires ndarray or scalar arguments, got <class 'list'> at position 0.",
        ),
        (
            lambda: jnp.sum(jnp.ones(3), axis=3),
            ValueError,
            "axis 3 is out of bounds for array of dimension 1",
        ),
        (lambda: jnp.sum(jnp.ones((2, 2)), axis=(0, 0)), ValueError, "duplicate value in 'axis': (0, 0)"),
        (
            lambda: jnp.max(jnp.zeros(0)),
            ValueError,
            "zero-size array to reduction operation max which has no identity",
        ),
        (lambda: jnp.max(jnp.ones(2), where=jnp.ones(2, bool)), ValueError, "has to specify 'initial'"),
        (lambda: jnp.argmax(jnp.zeros(0)), ValueError, "attempt to get argmax of an empty sequence"),
        (
            lambda: jnp.sum(jnp.ones(2), out=1),
            NotImplementedError,
            "The 'out' argument to jnp.sum is not supported.",
        ),
        (lambda: jnp.sum(jnp.ones(2), where=1), ValueError, "where must be None or a boolean array"),
        (lambda: jnp.var(jnp.ones(2), ddof=1, correction=1), ValueError, "can't be provided simultaneously"),
        (lambda: jnp.quantile(jnp.ones(2), 0.5, method="no"), ValueError, "method can only be"),
        (lambda: jnp.average(jnp.ones((2, 2)), weights=jnp.ones(2)), ValueError, "Axis must be specified"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error) as found:
        call()
    assert text in str(found.value)


def test_axis_must_be_known_while_tracing():
    with pytest.raises(catena.errors.ConcretizationTypeError, match="axis argument must be known statically"):
        catena.jit(lambda x, a: jnp.sum(x, axis=a))(jnp.ones(2), 0)


MASKED = "sum mean var std prod max min".split()


@pytest.mark.share(2)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", [*MASKED, *(f"nan{name}" for name in MASKED), "nanmedian"])
def test_what_is_left_out_takes_no_part_in_gradients(name, jit):
    """NaN and infinity under a mask, and NaN in the functions that leave it out: the gradient is that of the rest."""
    function = getattr(jnp, name)
    extra = {} if name.startswith("nan") else {"where": np.array([0, 1, 1, 0, 1], bool)}
    if name in ("max", "min"):
        extra["initial"] = 2.0
    x = np.array([np.nan, 1, 2, np.nan if name.startswith("nan") else np.inf, 4], "float32")
    gradient = catena.grad(lambda x: function(x, **extra).sum())
    rest = catena.grad(lambda x: function(x, **{k: v for k, v in extra.items() if k != "where"}).sum())(x[[1, 2, 4]])
    found = (catena.jit(gradient) if jit else gradient)(x)
    np.testing.assert_allclose(found, [0, rest[0], rest[1], 0, rest[2]], rtol=1e-5)


@pytest.mark.parametrize("name, one", [("fmax", [0, 0, 0, 1]), ("fmin", [0, 1, 0, 0])])
def test_of_equal_elements_the_second_has_the_derivative(name, one):
    x, y = np.array([np.nan, 1, 2, 4], "float32"), np.full(4, 2, "float32")
    first, second = catena.grad(lambda x, y: getattr(jnp, name)(x, y).sum(), (0, 1))(x, y)
    np.testing.assert_array_equal(first, one)
    np.testing.assert_array_equal(second, 1 - np.array(one))


def test_named_axes():
    x = jnp.arange(6.0).reshape(2, 3)
    total = catena.vmap(lambda row: jnp.sum(row, axis=(0, "i")), axis_name="i")(x)
    assert total.tolist() == [15.0, 15.0]


@pytest.mark.parametrize("shape, axis", [((64,), None), ((10_000,), None), ((300, 70), 0), ((300, 70), 1)])
def test_the_variance_of_numbers_far_from_zero_is_as_precise_as_their_mean(shape, axis):
    """Compiled and eager: what a mean errs by, in float32 a few units in its last place, enters squared."""
    x = np.random.default_rng(0).random(shape).astype(np.float32) + np.float32(1e4)
    exact = x.astype(float).var(axis)
    bound = (4 * np.spacing(np.float32(1e4))) ** 2 / exact + 1e-6
    for f in (jnp.var, catena.jit(jnp.var, static_argnums=1)):
        assert (abs(np.asarray(f(x, axis), float) / exact - 1) < bound).all()


@pytest.mark.parametrize("axes", [range(2), np.arange(2), {0, 1}], ids=["range", "array", "set"])
def test_several_axes_come_in_whatever_can_be_gone_through(axes):
    x = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    for f in (jnp.sum, jnp.max, jnp.mean, jnp.flip, jnp.median, jnp.linalg.norm, catena.nn.softmax, jnp.expand_dims):
        np.testing.assert_array_equal(f(x, axis=axes), f(x, axis=(0, 1)))
    with pytest.raises(TypeError):
        jnp.mean(x, axis=iter(axes))  # could be gone through once only


@pytest.mark.parametrize("name", "sum prod max min all any mean var argmin ptp nansum nanmax cumsum average".split())
def test_scalars_have_no_axis(name):
    """NumPy takes the axes 0 and -1 of a scalar."""
    for axis in (0, -1, (0,)) if name != "argmin" else (0, -1):
        for function in (getattr(jnp, name), catena.jit(getattr(jnp, name), static_argnums=1)):
            with pytest.raises((ValueError, TypeError)):
                function(jnp.float32(3), axis)


@pytest.mark.share(6)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("name", ["max", "min", "any", "all"])
def test_large_arrays_of_short_rows_come_to_a_program(name, dtype, axis, monkeypatch):
    """Of which NumPy does one after the other; the bits are NumPy's, the first time and the last."""
    made = []
    compiled = lambda *call, compiled=whole._compiled: made.append(call) or compiled(*call)
    monkeypatch.setattr(whole, "_compiled", compiled)
    catena.clear_caches()
    rng = np.random.default_rng(0)
    value = (rng.standard_normal((30_000, 3)) * 9 * (rng.random((30_000, 3)) > 0.2)).astype(dtype)
    with catena.enable_x64(True):
        found = [np.asarray(getattr(jnp, name)(jnp.asarray(value), axis)) for _ in range(4)]
    for each in found:
        np.testing.assert_array_equal(each, getattr(np, name)(value, axis))
    assert len(made) == 1


@pytest.mark.parametrize("name", ["var", "std"])
@pytest.mark.parametrize("shape, axis", [((250_000, 4), 0), ((1000, 1000), None), ((1000, 300), (0, 1))])
def test_the_variance_of_large_arrays_is_that_of_programs(name, shape, axis):
    x = jnp.asarray(np.random.default_rng(0).standard_normal(shape, np.float32))
    f = lambda x: getattr(jnp, name)(x, axis, ddof=1, keepdims=True)
    np.testing.assert_array_equal(f(x), catena.jit(f)(x))
    np.testing.assert_allclose(
        f(x), getattr(np, name)(np.asarray(x, "float64"), axis, ddof=1, keepdims=True), rtol=1e-5
    )
    with catena.disable_jit():
        np.testing.assert_allclose(f(x), catena.jit(f)(x), rtol=1e-5)
    with pytest.raises(ValueError, match="out of bounds"):
        getattr(jnp, name)(x, 5)
