"""Activation functions beside their definitions in double precision, at their edges, and under transformations."""

import numpy as np
import pytest
from scipy import special

import catena as jax
import catena.numpy as jnp
from catena import nn
from catena.scipy import stats

SELU = 1.0507009873554805, 1.6732632423543772
DEFINITIONS = {
    nn.celu: lambda x: np.where(x > 0, x, np.expm1(x)),
    nn.elu: lambda x: np.where(x > 0, x, np.expm1(x)),
    nn.gelu: lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    nn.hard_sigmoid: lambda x: np.clip(x + 3, 0, 6) / 6,
    nn.hard_silu: lambda x: x * np.clip(x + 3, 0, 6) / 6,
    nn.hard_tanh: lambda x: np.clip(x, -1, 1),
    nn.identity: lambda x: x,
    nn.leaky_relu: lambda x: np.where(x >= 0, x, 0.01 * x),
    nn.log1mexp: lambda x: np.where(x < 0, np.nan, np.log(-np.expm1(-np.abs(x)))),
    nn.log_sigmoid: lambda x: -np.logaddexp(0, -x),
    nn.mish: lambda x: x * np.tanh(np.logaddexp(x, 0)),
    nn.relu: lambda x: np.maximum(x, 0),
    nn.relu6: lambda x: np.clip(x, 0, 6),
    nn.selu: lambda x: SELU[0] * np.where(x > 0, x, SELU[1] * np.expm1(x)),
    nn.sigmoid: special.expit,
    nn.silu: lambda x: x * special.expit(x),
    nn.soft_sign: lambda x: x / (1 + np.abs(x)),
    nn.softplus: lambda x: np.logaddexp(x, 0),
    nn.sparse_plus: lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    nn.sparse_sigmoid: lambda x: np.clip((x + 1) / 2, 0, 1),
    nn.squareplus: lambda x: (x + np.sqrt(x**2 + 4)) / 2,
    nn.tanh: np.tanh,
}
FLOATS_ONLY = {nn.sigmoid, nn.silu}
KEEP_INTEGERS = {nn.relu, nn.hard_tanh, nn.identity}
NAMES = [f.__name__ for f in DEFINITIONS]
X = np.array([-40, -7.3, -3.1, -2.6, -0.9, -0.2, -1e-3, 0.3, 0.8, 1.4, 2.9, 3.3, 6.4, 21.0])


@pytest.fixture(params=DEFINITIONS, ids=NAMES)
def f(request):
    return request.param


def test_values(f):
    with np.errstate(invalid="ignore", over="ignore"):
        expected = DEFINITIONS[f](X)
    np.testing.assert_allclose(f(X.astype(np.float32)), expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(f(jnp.array(X, "bfloat16")).astype("float32"), expected, rtol=0.05, atol=0.1)
    with jax.enable_x64(True):
        np.testing.assert_allclose(f(X), expected, rtol=1e-12, atol=1e-15)


def test_derivatives(f):
    with jax.enable_x64(True):
        x, h = jnp.array(X[X > 0] if f is nn.log1mexp else X), 1e-6
        slopes = jax.jvp(f, (x,), (jnp.ones_like(x),))[1]
        np.testing.assert_allclose(slopes, (f(x + h) - f(x - h)) / (2 * h), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(x), slopes, rtol=1e-12, atol=1e-15)


def test_dtypes(f):
    for dtype in ("float16", "bfloat16", "float32"):
        assert f(jnp.ones(2, dtype)).dtype == dtype
    for dtype in ("int8", "uint8", "int32"):
        x = jnp.array([1, 3], dtype)
        if f in FLOATS_ONLY:
            with pytest.raises(TypeError):
                f(x)
        else:
            assert f(x).dtype == (dtype if f in KEEP_INTEGERS else "float32")
            np.testing.assert_allclose(f(x), DEFINITIONS[f](np.array([1.0, 3.0])), rtol=1e-6)
    for bad in ([1.0], None, "x"):
        with pytest.raises(TypeError):
            f(bad)


@pytest.mark.parametrize("f", [nn.relu, nn.relu6])
def test_straight_lines_are_one_call(f):
    (call,) = jax.make_jaxpr(f)(1.0).eqns
    assert call.primitive.name == "custom_jvp_call" and call.params["call_jaxpr"].jaxpr.eqns[0].primitive.name == "max"


def test_weakness():
    assert nn.relu(1.0).weak_type and nn.silu(1.0).weak_type and nn.hard_sigmoid(jnp.array([1])).weak_type
    assert not nn.gelu(1.0).weak_type and not nn.softplus(jnp.array([1])).weak_type
    assert nn.relu(True).dtype == nn.hard_tanh(True).dtype == "int32"


@pytest.mark.parametrize(
    ("f", "at", "slope"),
    [
        (nn.relu, 0.0, 0.0),
        (nn.relu, np.nan, 0.0),
        (nn.relu6, np.nan, 0.0),
        (nn.relu6, 0.0, 0.0),
        (nn.relu6, 6.0, 0.0),
        (nn.hard_tanh, 1.0, 1.0),
        (nn.leaky_relu, 0.0, 1.0),
        (nn.elu, 0.0, 1.0),
        (nn.celu, 0.0, 1.0),
        (nn.softplus, 0.0, 0.5),
        (nn.sparse_sigmoid, 1.0, 0.25),
        (nn.sparse_plus, np.inf, 1.0),
        (nn.sparse_plus, -np.inf, 0.0),
        (nn.elu, -np.inf, 0.0),
        (nn.log_sigmoid, -np.inf, 1.0),
        (nn.log1mexp, 0.0, np.inf),
    ],
)
def test_slopes_at_edges(f, at, slope):
    assert float(jax.grad(f)(at)) == slope


@pytest.mark.parametrize("f", [nn.log1mexp, stats.expon.logcdf], ids=["nn", "stats"])
def test_log1mexp_has_its_digits_on_both_sides_of_log_2(f):
    with jax.enable_x64(True):
        x = np.concatenate([np.geomspace(1e-30, 80, 4000), np.linspace(0.5, 1, 4000)]).astype(np.float32)
        wide = x.astype(float)
        near, far = np.log(-np.expm1(-wide)), np.log1p(-np.exp(-np.maximum(wide, 0.5)))
        exact = np.where(wide < np.log(2), near, far)
        for error in (f(x) - exact, jax.jit(f)(x) - exact):
            # two units where compiled; NumPy's functions, of which it is made elsewhere, are off by up to four each
            assert np.all(np.abs(error) <= 8 * np.spacing(np.abs(exact).astype(np.float32)))
        np.testing.assert_allclose(f(wide), exact, rtol=2e-15)


def test_extremes():
    assert nn.softplus(jnp.array([-np.inf, 1000.0])).tolist() == [0, 1000]
    assert nn.elu(jnp.array([-1000.0, 1000.0])).tolist() == [-1, 1000]
    assert nn.log1mexp(jnp.array([0.0, np.inf])).tolist() == [-np.inf, 0]
    assert np.isnan(nn.relu(jnp.nan)) and np.isnan(nn.sparse_plus(jnp.nan))
    np.testing.assert_allclose(nn.log1mexp(1e-10), np.log(1e-10), rtol=1e-6)
    np.testing.assert_allclose(nn.gelu(-10.0, approximate=False), -7.62e-23, rtol=1e-2)
    assert nn.hard_tanh(jnp.array([0, 1, 200], jnp.uint8)).tolist() == [0, 1, 1]
    np.testing.assert_allclose(nn.soft_sign(jnp.array([-128], jnp.int8)), -128 / 129, rtol=1e-6)


def test_parameters():
    x = jnp.array([-2.0, 0.5])
    np.testing.assert_allclose(nn.celu(x, 2.0), [2 * np.expm1(-1), 0.5], rtol=1e-6)
    np.testing.assert_allclose(nn.elu(x, jnp.array([[1.0], [3.0]]))[:, 0], [np.expm1(-2), 3 * np.expm1(-2)], rtol=1e-6)
    np.testing.assert_allclose(nn.leaky_relu(x, negative_slope=0.5), [-1, 0.5])
    np.testing.assert_allclose(nn.squareplus(x, b=0), [0, 0.5])
    assert nn.leaky_relu(jnp.array([1, -1]), 2).tolist() == [1, -2]
    np.testing.assert_allclose(nn.gelu(x, False), np.array(x) * special.ndtr([-2, 0.5]), rtol=1e-5)
    assert nn.swish(2.0) == nn.silu(2.0) and nn.hard_swish(2.0) == nn.hard_silu(2.0)
    for f in (nn.celu, nn.elu, nn.leaky_relu, nn.squareplus):
        with pytest.raises(TypeError):
            f(x, jnp.ones(3))


def test_complex_numbers():
    z = jnp.array([0.3 - 0.2j])
    np.testing.assert_allclose(nn.silu(z), z / (1 + np.exp(-z)), rtol=1e-5)
    np.testing.assert_allclose(nn.softplus(z), np.log1p(np.exp(z)), rtol=1e-5)
    with pytest.raises(TypeError):
        nn.gelu(z, approximate=False)
    with pytest.raises(ValueError, match="complex"):
        nn.sparse_sigmoid(z)


def test_glu():
    x = jnp.arange(8.0).reshape(2, 4)
    np.testing.assert_allclose(nn.glu(x), x[:, :2] * special.expit(x[:, 2:]), rtol=1e-6)
    np.testing.assert_allclose(nn.glu(x, axis=0), x[:1] * special.expit(x[1:]), rtol=1e-6)
    for error, call in [
        (AssertionError, lambda: nn.glu(jnp.ones(3))),
        (IndexError, lambda: nn.glu(x, axis=2)),
        (TypeError, lambda: nn.glu(x, axis=None)),
        (TypeError, lambda: nn.glu(jnp.arange(4))),
    ]:
        with pytest.raises(error):
            call()


def test_compiled_and_mapped():
    x = jnp.array(X[:, None] * np.ones(3), "float32")
    every = [g for g in DEFINITIONS if g is not nn.log1mexp]
    compiled = jax.jit(lambda x: [g(x) for g in every])(x)
    mapped = jax.vmap(lambda x: [g(x) for g in every], 1, 1)(x)
    for g, at_once, by_column in zip(every, compiled, mapped, strict=True):
        np.testing.assert_allclose(at_once, g(x), rtol=1e-6, atol=1e-7, err_msg=g.__name__)
        np.testing.assert_allclose(by_column, g(x), rtol=1e-6, atol=1e-7, err_msg=g.__name__)


def test_large_arrays_are_evaluated_whole():
    x = jnp.linspace(-9, 9, 1 << 16)
    np.testing.assert_allclose(nn.silu(x), x * special.expit(x), rtol=1e-5, atol=1e-6)
