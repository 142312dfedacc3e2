"""Taylor mode beside derivatives of derivatives."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.primitive import registry
from catena.experimental import jet as jets
from catena.experimental.jet import jet, zero_series, zero_term
from catena.extend import linear_util as lu
from catena.extend.core import Primitive

ORDER = 4
X = np.array([0.3, 0.6, 0.45])
M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])


@jax.custom_jvp
def tripled(x):
    return jnp.sin(x)


tripled.defjvp(lambda primals, tangents: (tripled(*primals), 3 * jnp.cos(primals[0]) * tangents[0]))


@jax.custom_vjp
def doubled(x):
    return jnp.sin(x)


doubled.defvjp(lambda x: (doubled(x), x), lambda x, ct: (2 * jnp.cos(x) * ct,))

ELEMENTWISE = [
    jnp.exp, jnp.expm1, jnp.log, jnp.log1p, jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.tanh, jnp.arcsin,
    jnp.arccos, jnp.arctan, jnp.arcsinh, jnp.arctanh, lambda x: jnp.arccosh(1 + x), jnp.sqrt, jnp.cbrt, lax.rsqrt,
    lax.logistic, lax.erf, lax.erfc, lax.erf_inv, lax.lgamma, lax.digamma, lax.bessel_i0e, jnp.exp2, jnp.square,
    jnp.abs, jnp.sign, lambda x: x**3, lambda x: x**-2, lambda x: x**2.5, lambda x: 2.0**x, lambda x: x**x,
    lambda x: 1 / x, lambda x: x / (1 + x), lambda x: jnp.arctan2(x, 1 - x), lambda x: jnp.maximum(x, 0.5),
    lambda x: jnp.where(x > 0.5, jnp.sin(x), x**2), lambda x: lax.igamma(2.0, x), tripled, doubled,
]  # fmt: skip
ARRAYS = [
    jnp.sum, jnp.prod, jnp.max, jnp.sort, jnp.cumsum, jnp.cumprod, lambda x: x[::-1], lambda x: x[jnp.array([2, 0])],
    lambda x: x.at[1].add(x[0] ** 2), lambda x: jnp.dot(x, jnp.sin(x)), lambda x: jnp.outer(x, x) @ x,
    lambda x: jnp.convolve(x, x), lambda x: jnp.fft.rfft(x**2).real, lambda x: jnp.pad(x, 1), jnp.diff,
    lambda x: lax.dynamic_slice(x, (1,), (2,)), lambda x: jnp.linalg.inv(M + jnp.diag(x)),
    lambda x: jnp.linalg.eigh(M + jnp.diag(x))[0], lambda x: jnp.linalg.cholesky(M + jnp.diag(x)),
    lambda x: jnp.linalg.norm(x), lambda x: jax.nn.logsumexp(x), jax.jit(lambda x: jnp.sin(x) * x),
    jax.checkpoint(lambda x: jnp.exp(x)), lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
    lambda x: lax.scan(lambda c, y: (jnp.sin(c) * y, c + y), 1.0, x),
    lambda x: lax.fori_loop(0, 3, lambda i, c: (jnp.sin(c[0]), c[0]), (x, jnp.zeros(3))),
    lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * x, c[1] + 1), (jnp.ones(3), 0))[0],
    jax.vmap(lambda a: jnp.exp(a) * a), jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3)),
    lambda x: jet(jnp.sin, (x,), ((x, jnp.ones(3)),))[1],
]  # fmt: skip


def curve(x, series):
    """The polynomial with these derivatives at 0."""
    return lambda t: x + sum(d * t**k / float(jets.fact(k)) for k, d in enumerate(series, 1))


def nested(f, order: int):
    """The derivatives of a function of a number at 0, forward mode within forward mode."""
    found = []
    for _ in range(order):
        f = (lambda g: lambda t: jax.jvp(g, (t,), (1.0,))[1])(f)
        found.append(f(0.0))
    return found


def check(f, order=ORDER):
    with jax.enable_x64(True):
        x, rng = jnp.asarray(X), np.random.default_rng(0)
        series = [jnp.asarray(0.3 * rng.normal(size=X.shape)) for _ in range(order)]
        value, found = jet(f, (x,), (series,))
        expected = nested(lambda t: f(curve(x, series)(t)), order)
        assert jax.tree.structure(value) == jax.tree.structure(expected[0])
        leaves = jax.tree.leaves(found, is_leaf=lambda x: isinstance(x, list) and len(x) == order and x[0].ndim < 4)
        given = jax.tree.leaves(found)
        assert len(given) == order * len(jax.tree.leaves(value)), leaves
        for i in range(len(jax.tree.leaves(value))):
            for k in range(order):
                want = jax.tree.leaves(expected[k])[i]
                np.testing.assert_allclose(given[i * order + k], want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("i", range(len(ELEMENTWISE)))
def test_elementwise(i):
    check(ELEMENTWISE[i])


@pytest.mark.parametrize("i", range(len(ARRAYS)))
def test_arrays(i):
    check(ARRAYS[i], 3)


def test_several_arguments_and_conventions():
    value, (first, second) = jet(lambda x, y: x * y, (2.0, 3.0), ((1.0, 0.0), (0.5, 2.0)))
    assert (float(value), float(first), float(second)) == (6.0, 4.0, 5.0)
    _, coefficients = jets.jet2(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    np.testing.assert_allclose(coefficients, [1, 1 / 2, 1 / 6], rtol=1e-6)
    assert [float(d) for d in jet(lambda x, y: x * y, (2.0, 3.0), ((1.0, 0.0), zero_series))[1]] == [3.0, 0.0]
    assert [float(d) for d in jet(lambda x, y: x * y, (2.0, 3.0), ((1.0, 0.0), (zero_term, 1.0)))[1]] == [3.0, 2.0]
    assert [float(d) for d in jet(lambda x: 3.0, (2.0,), ((1.0, 0.0),))[1]] == [0.0, 0.0]
    assert jet(jnp.sin, (0.0,), ((),))[1] == []
    tree = jet(lambda x: {"a": x, "n": 1}, (1.0,), ((1.0,),))[1]
    assert [float(tree["a"][0]), float(tree["n"][0])] == [1.0, 0.0]


def test_transformations_around():
    d3 = lambda x: jet(jnp.sin, (x,), ((1.0, 0.0, 0.0),))[1][2]
    np.testing.assert_allclose(jax.grad(d3)(0.5), np.sin(0.5), rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jax.vmap(d3))(jnp.arange(3.0)), -np.cos(np.arange(3)), rtol=1e-5)


def test_rules_of_ones_own():
    def primitive(name, function):
        p = Primitive(name)
        p.def_abstract_eval(lambda x: x)
        p.def_impl(function)
        return p

    halved, edge = primitive("halved", lambda x: x / 2), primitive("edge", jnp.floor)
    sine, composed = primitive("my_sine", jnp.sin), primitive("my_sine_squared", lambda x: jnp.sin(x) ** 2)
    jets.defzero(edge)
    jets.def_deriv(sine, jnp.cos)
    jets.def_comp(composed, lambda x: jnp.sin(x) ** 2)
    series = ((1.0, 0.5, 0.0),)
    for p, function in ((edge, jnp.floor), (sine, jnp.sin), (composed, lambda x: jnp.sin(x) ** 2)):
        np.testing.assert_allclose(
            jet(p.bind, (0.7,), series)[1], jet(function, (0.7,), series)[1], rtol=1e-5, atol=1e-6
        )
    with pytest.raises(NotImplementedError, match="halved"):
        jet(halved.bind, (0.7,), series)
    assert registry["sin"] in jets.jet_rules


@pytest.mark.parametrize(
    ("kind", "pattern", "args"),
    [
        (TypeError, "callable", (3, (1.0,), ((1.0,),))),
        (TypeError, "0-d", (jnp.sin, jnp.float32(1), ((1.0,),))),
        (TypeError, "primal 0 is int32", (jnp.sin, (1,), ((1.0,),))),
        (ValueError, "inconsistent lengths", (jnp.add, (1.0, 1.0), ((1.0,), (1.0, 2.0)))),
        (ValueError, "2 primals and 1 series", (jnp.add, (1.0, 1.0), ((1.0,),))),
        (ValueError, "position 0 is not an array", (lambda d: d, ({"a": 1.0},), ((1.0,),))),
        (ValueError, "must have its shape", (jnp.sin, (1.0,), ((jnp.ones(2),),))),
    ],
)
def test_wrong_arguments(kind, pattern, args):
    with pytest.raises(kind, match=pattern):
        jet(*args)


def test_rules_of_users_get_all_coefficients():
    scaled_p, seen = Primitive("jet_scaled"), []
    scaled_p.def_impl(lambda x, k: x * k)
    scaled_p.def_abstract_eval(lambda x, k: x)

    def rule(primals, series):
        seen.append([[float(t) for t in terms] for terms in series])
        return scaled_p.bind(*primals), [t * primals[1] for t in series[0]]

    jets.jet_rules[scaled_p] = rule
    assert jets.jet_rules[scaled_p] is rule
    value, terms = jet(lambda x: scaled_p.bind(x, 2.0), (3.0,), ((1.0, 4.0),))
    assert seen == [[[1.0, 2.0], [0.0, 0.0]]] and float(value) == 6 and [float(t) for t in terms] == [2.0, 8.0]
    assert jets.linear_prop(scaled_p, (1.0, 2.0), ([1.0, 2.0], [3.0, 4.0])) == (2.0, [3.0, 8.0])
    assert jets.zero_prop(scaled_p, (1.0, 2.0), ([1.0], [0.0]))[1] is zero_series
    out, terms = jets.deriv_prop(lax.neg_p, lambda x: -jnp.ones_like(x), (X,), ([X, X],))
    assert np.allclose(out, -X) and np.allclose(terms, [-X, -X])


def test_transformations_by_hand():
    def f(x, y):
        return [jnp.sin(x) * y, y]

    wrapped = jets.jet_fun(jets.jet_subtrace(lu.wrap_init(f)), 2)
    outs, terms = wrapped.call_wrapped([0.5, 2.0], [[1.0, 0.0], zero_series])
    value, expected = jets.jet2(f, (0.5, 2.0), ([1.0, 0.0], zero_series))
    assert np.allclose(outs, value) and np.allclose(terms, expected)
    flat, tree = jets.traceable(wrapped, jax.tree.structure(([0, 0], [[0, 0], [0, 0]])))
    found = flat.call_wrapped(0.5, 2.0, 1.0, 0.0, 0.0, 0.0)
    assert np.allclose(jax.tree.unflatten(tree(), found)[1][0], expected[0])
