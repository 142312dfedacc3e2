"""Derivatives that users define: rules, their checks, and how they go through every transformation."""

import functools
import inspect
import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import float0
from catena.custom_derivatives import SymbolicZero, custom_vjp_primal_tree_values, linear_call

X = np.array([0.5, 1.0, 2.0], np.float32)


def close(actual, expected, tol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def ten_times():
    """sin whose derivative is said to be ten times the true one, by a JVP rule."""

    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (f(primals[0]), 10.0 * jnp.cos(primals[0]) * tangents[0]))
    return f


def ten_times_back():
    """The same by a pair of VJP rules."""

    @jax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (10.0 * jnp.cos(x) * ct,))
    return f


KINDS = {"custom_jvp": ten_times, "custom_vjp": ten_times_back}


@pytest.fixture(params=KINDS)
def custom(request):
    return KINDS[request.param]()


# ---- every transformation


def test_the_value(custom):
    close(custom(X), np.sin(X))
    close(jax.jit(custom)(X), np.sin(X))
    close(jax.vmap(custom)(X), np.sin(X))


def test_grad(custom):
    close(jax.grad(custom)(0.5), 10 * np.cos(0.5))


def test_forward_mode(custom):
    y, t = jax.jvp(custom, (X,), (X,))
    close(y, np.sin(X))
    close(t, 10 * np.cos(X) * X)


def test_linearize(custom):
    y, f_jvp = jax.linearize(custom, X)
    close(f_jvp(X), 10 * np.cos(X) * X)


def test_second_order(custom):
    close(jax.grad(jax.grad(custom))(0.5), -10 * np.sin(0.5))
    close(jax.jvp(jax.grad(custom), (0.5,), (2.0,))[1], -20 * np.sin(0.5))
    close(jax.grad(lambda x: jax.jvp(custom, (x,), (1.0,))[1])(0.5), -10 * np.sin(0.5))


@pytest.mark.parametrize(
    "chain",
    {
        "jit(grad)": lambda f: jax.jit(jax.grad(f)),
        "grad(jit)": lambda f: jax.grad(jax.jit(f)),
        "jit(grad(jit))": lambda f: jax.jit(jax.grad(jax.jit(f))),
    }.items(),
    ids=lambda c: c[0],
)
def test_scalar_chains(custom, chain):
    close(chain[1](custom)(0.5), 10 * np.cos(0.5))


@pytest.mark.parametrize(
    "chain",
    {
        "vmap(grad)": lambda f: jax.vmap(jax.grad(f)),
        "vmap(grad(jit))": lambda f: jax.vmap(jax.grad(jax.jit(f))),
        "jit(vmap(grad))": lambda f: jax.jit(jax.vmap(jax.grad(f))),
        "grad(sum(vmap))": lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))),
        "jit(grad(sum(vmap(jit))))": lambda f: jax.jit(jax.grad(lambda x: jnp.sum(jax.vmap(jax.jit(f))(x)))),
        "jvp(vmap)": lambda f: lambda x: jax.jvp(jax.vmap(f), (x,), (np.ones_like(x),))[1],
        "vmap(jvp)": lambda f: jax.vmap(lambda x: jax.jvp(f, (x,), (1.0,))[1]),
        "checkpoint": lambda f: jax.grad(lambda x: jnp.sum(jax.checkpoint(f)(x))),
        "jacfwd": lambda f: lambda x: jnp.diag(jax.jacfwd(f)(x)),
        "jacrev": lambda f: lambda x: jnp.diag(jax.jacrev(f)(x)),
        "scan": lambda f: jax.grad(lambda x: jnp.sum(jax.lax.scan(lambda c, y: (c, f(y)), 0.0, x)[1])),
        "jit(scan)": lambda f: jax.jit(jax.grad(lambda x: jnp.sum(jax.lax.scan(lambda c, y: (c, f(y)), 0.0, x)[1]))),
        "map": lambda f: jax.grad(lambda x: jnp.sum(jax.lax.map(f, x))),
    }.items(),
    ids=lambda c: c[0],
)
def test_vector_chains(custom, chain):
    close(chain[1](custom)(X), 10 * np.cos(X))


def test_hessian(custom):
    close(jax.hessian(lambda x: jnp.sum(custom(x)))(X), np.diag(-10 * np.sin(X)))


def test_closing_over_tracers_of_other_transformations(custom):
    def outer(y):
        return jax.grad(lambda x: custom(x) * y)(0.5)

    close(jax.vmap(outer)(X), 10 * np.cos(0.5) * X)
    close(jax.jit(jax.vmap(outer))(X), 10 * np.cos(0.5) * X)
    close(jax.grad(outer)(2.0), 10 * np.cos(0.5))


def test_rules_that_close_over_tracers():
    def outer(scale, x):
        @jax.custom_jvp
        def f(x):
            return jnp.sin(x) * scale

        f.defjvp(lambda p, t: (f(p[0]), scale * 100.0 * t[0]))
        return f(x)

    close(jax.grad(outer, 1)(2.0, 0.5), 200.0)
    close(jax.jit(jax.grad(outer, 1))(2.0, 0.5), 200.0)
    close(jax.vmap(jax.grad(outer, 1), (0, None))(X, 0.5), 100 * X)
    close(jax.grad(lambda y: jnp.sum(jax.vmap(outer, (0, None))(X, y)))(0.5), 100 * X.sum())
    close(jax.jit(jax.vmap(jax.grad(outer, 1), (0, None)))(X, 0.5), 100 * X)


CALLS = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "scan": lambda g: lambda x: jax.lax.scan(lambda c, _: (g(c), None), x, None, 2)[0],
    "while": lambda g: lambda x: jax.lax.while_loop(lambda c: c[1] < 1, lambda c: (g(c[0]), c[1] + 1), (x, 0))[0],
    "cond": lambda g: lambda x: jax.lax.cond(x > 0, g, lambda x: x, x),
    "cond of scan": lambda g: lambda x: jax.lax.cond(x > 0, CALLS["scan"](g), lambda x: x, x),
    "checkpoint of scan of jit": lambda g: jax.checkpoint(CALLS["scan"](jax.jit(g))),
    "scan of cond of checkpoint": lambda g: CALLS["scan"](CALLS["cond"](jax.checkpoint(g))),
}


@pytest.mark.parametrize("name", CALLS)
def test_rules_in_calls_that_close_over_tracers_further_out(name):
    """What rules close over is an operand of the derivative's program, however deep the call is: as if it was passed."""
    backward = lambda x, s, ct: ct * jnp.cos(x) * s  # noqa: E731

    def closing(s):
        f = jax.custom_vjp(jnp.sin)
        f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (backward(x, s, ct),))
        return f

    def passing(s):
        f = jax.custom_vjp(lambda x, s: jnp.sin(x))
        f.defvjp(lambda x, s: (jnp.sin(x), (x, s)), lambda res, ct: (backward(*res, ct), jnp.zeros_like(s)))
        return lambda x: f(x, s)

    def derivatives(scaled):
        gradient = lambda s, x: jax.grad(CALLS[name](scaled(s)))(x)  # noqa: E731
        return jax.jit(gradient)(2.0, 0.5), *jax.vmap(gradient, (0, None))(X, 0.5), jax.grad(gradient)(2.0, 0.5)

    close(derivatives(closing), derivatives(passing))


def test_differentiating_by_what_a_rule_closes_over():
    def outer(scale):
        f = jax.custom_jvp(lambda x: x * scale)
        f.defjvp(lambda p, t: (f(p[0]), t[0]))
        return f(1.0)

    with pytest.raises(jax.errors.UnexpectedTracerError, match="escape") as info:
        jax.grad(outer)(2.0)
    assert "pass it as an argument" in "".join(info.value.__notes__)


def test_a_forward_rule_with_another_structure_than_the_function():
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: ((x, x), None), lambda r, ct: (ct,))
    with pytest.raises(TypeError, match="structure"):
        jax.grad(jax.jit(f))(1.0)


# ---- arguments


def test_trees_keywords_and_defaults():
    @jax.custom_jvp
    def f(p, k=2.0):
        return {"y": p["a"] * k, "z": p["b"]}

    @f.defjvp
    def rule(primals, tangents):
        (p, k), (dp, dk) = primals, tangents
        return f(p, k), {"y": dp["a"] * k + 7 * dk, "z": dp["b"]}

    grads = jax.grad(lambda p, k: f(p, k=k)["y"], (0, 1))({"a": 3.0, "b": 1.0}, 4.0)
    close(grads[0]["a"], 4.0)
    close(grads[0]["b"], 0.0)
    close(grads[1], 7.0)
    close(f({"a": 3.0, "b": 1.0})["y"], 6.0)


def test_nondiff_argnums():
    apply = jax.custom_jvp(lambda fun, x: fun(x), nondiff_argnums=(0,))
    apply.defjvp(lambda fun, primals, tangents: (fun(primals[0]), 100.0 * tangents[0]))
    close(jax.grad(lambda x: apply(jnp.sin, x))(0.5), 100.0)

    scale = jax.custom_vjp(lambda x, n: x * n, nondiff_argnums=(1,))
    scale.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (ct * n * 100.0,))
    close(jax.grad(lambda x: scale(x, 3))(0.5), 300.0)
    close(jax.jit(jax.grad(lambda x: scale(x, 3)))(0.5), 300.0)


def test_nondiff_argnames():
    f = jax.custom_jvp(lambda x, n: x * n, nondiff_argnames=("n",))
    f.defjvp(lambda n, primals, tangents: (primals[0] * n, tangents[0] * 50.0))
    close(jax.grad(lambda x: f(x, n=2))(1.0), 50.0)


def test_integer_arguments():
    @jax.custom_vjp
    def f(x, n):
        return x * n

    f.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n * 2, None))
    close(jax.grad(f)(1.0, 3), 6.0)
    g = jax.custom_vjp(lambda x, n: x * n)
    g.defvjp(lambda x, n: (x * n, n), lambda n, ct: (ct * n * 2, np.zeros(np.shape(n), float0)))
    close(jax.grad(g)(1.0, 3), 6.0)
    close(jax.vmap(jax.grad(g))(X, np.arange(3)), 2.0 * np.arange(3))


def test_cotangents_have_the_structure_of_the_arguments_at_every_level():
    def gradient(cotangent):
        f = jax.custom_vjp(lambda tree, x: tree["a"] * x)
        f.defvjp(lambda tree, x: (tree["a"] * x, None), lambda _, ct: (cotangent, ct))
        return jax.grad(f)({"a": 3.0, "b": None}, 2.0)

    assert gradient({"a": 5.0, "b": None})["a"] == 5 and gradient({"a": None, "b": None})["a"] == 0
    for wrong in ({"c": 1.0, "b": None}, [1.0, None], {"a": (1.0,), "b": None}, {"a": 1.0, "b": 1.0}, 1.0):
        with pytest.raises(TypeError, match="same container"):
            gradient(wrong)


def test_none_stands_for_a_zero_cotangent():
    f = jax.custom_vjp(lambda p, y: p["a"] * p["b"] * y)
    f.defvjp(lambda p, y: (p["a"] * p["b"] * y, y), lambda y, ct: ({"a": ct * y, "b": None}, None))
    grads = jax.grad(f, (0, 1))({"a": 1.0, "b": 2.0}, 3.0)
    close(grads[0]["a"], 3.0)
    close(grads[0]["b"], 0.0)
    close(grads[1], 0.0)


@pytest.mark.parametrize("between", [lambda q: q, jnp.sin, jax.jit(jnp.sin)], ids=["directly", "sin", "jit"])
def test_rules_are_asked_where_others_said_that_cotangents_are_zero(between):
    """What a backward rule returns need not depend on its cotangents: scales of small floats are kept so."""
    count = jax.custom_vjp(lambda x, n: (x * 2, n))
    count.defvjp(lambda x, n: ((x * 2, n), n), lambda n, ct: (None, n + 5))
    first = jax.custom_vjp(lambda x, q, n: x * 2)
    first.defvjp(lambda x, q, n: (x * 2, None), lambda _, ct: (ct * 2, None, None))

    def f(x, n):
        q, m = count(x, n)
        return first(x, between(q), m)

    for g in (f, lambda x, n: jax.lax.scan(lambda c, _: (f(c, n), None), x, length=1)[0]):
        for grad in (jax.grad(g, (0, 1)), jax.jit(jax.grad(g, (0, 1)))):
            assert [float(ct) for ct in grad(3.0, 4.0)] == [2.0, 9.0]
    unread = lambda x, n: x + jax.lax.stop_gradient(count(x, n)[0])  # noqa: E731
    assert [float(ct) for ct in jax.grad(unread, (0, 1))(3.0, 4.0)] == [1.0, 0.0]
    near_a_pole = lambda x: first(x, jnp.sqrt(x - x), 1.0)  # noqa: E731
    assert float(jax.grad(near_a_pole)(3.0)) == 2.0  # a zero that is passed on, not multiplied


def test_residuals_of_any_kind():
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, {"x": x, "n": 3, "none": None}), lambda res, ct: (ct * res["n"] + 0 * res["x"],))
    close(jax.grad(f)(1.0), 3.0)
    close(jax.jit(jax.grad(f))(1.0), 3.0)
    close(jax.vmap(jax.grad(f))(X), [3, 3, 3])


def test_defjvps():
    f = jax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: 5.0 * t, None)
    close(jax.grad(f, (0, 1))(2.0, 3.0), [5.0, 0.0])
    g = jax.custom_jvp(lambda x, y: x * y)
    g.defjvps(lambda t, out, x, y: 5.0 * t, lambda t, out, x, y: out * t)
    close(jax.grad(g, (0, 1))(2.0, 3.0), [5.0, 6.0])


# ---- symbolic zeros


def test_symbolic_zeros_in_jvp_rules():
    seen = []
    f = jax.custom_jvp(lambda x, y: x * y)

    def rule(primals, tangents):
        seen.append([type(t) for t in tangents])
        return primals[0] * primals[1], tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    close(jax.grad(f)(2.0, 3.0), 3.0)
    close(jax.jit(jax.grad(f))(2.0, 3.0), 3.0)
    assert all(s[1] is SymbolicZero and s[0] is not SymbolicZero for s in seen)


def test_symbolic_zeros_in_vjp_rules():
    seen = []
    f = jax.custom_vjp(lambda x, y: (x * y, x + y))

    def fwd(x, y):
        seen.append((x.perturbed, y.perturbed))
        x, y = custom_vjp_primal_tree_values((x, y))
        return (x * y, x + y), (x, y)

    def bwd(res, cts):
        seen.append([type(ct) is SymbolicZero for ct in cts])
        return cts[0] * res[1], cts[0] * res[0]

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    close(jax.grad(lambda x: f(x, 3.0)[0])(2.0), 3.0)
    assert seen == [(True, False), [False, True]]


# ---- what custom_vjp does beyond JAX


def test_forward_mode_through_a_vjp_rule_with_several_arguments():
    f = jax.custom_vjp(lambda x, y: (x * y, y))
    f.defvjp(lambda x, y: ((x * y, y), (x, y)), lambda r, ct: (ct[0] * r[1], ct[0] * r[0] + ct[1]))
    out, tangents = jax.jvp(f, (2.0, 3.0), (1.0, 10.0))
    close(out, [6.0, 3.0])
    close(tangents, [23.0, 10.0])
    close(jax.jit(lambda t: jax.jvp(f, (2.0, 3.0), (1.0, t))[1][0])(10.0), 23.0)
    close(jax.vmap(lambda t: jax.jvp(f, (2.0, 3.0), (1.0, t))[1][0])(X), 3 + 2 * X)


def test_forward_mode_of_a_rule_that_is_not_linear():
    f = jax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (jnp.sin(ct),))
    close(jax.grad(lambda x: f(x) * 2.0)(1.0), np.sin(2.0))
    with pytest.raises(TypeError, match="linear operations"):  # JAX's type of error
        jax.jvp(f, (1.0,), (1.0,))


# ---- custom_gradient, closure_convert, linear_call


def test_custom_gradient():
    @jax.custom_gradient
    def f(x, y):
        return x * y, lambda g: (g * 10.0, g * x)

    close(jax.grad(f, (0, 1))(2.0, 3.0), [10.0, 2.0])
    close(jax.jit(jax.vmap(jax.grad(f, 1), (0, None)))(X, 3.0), X)

    @jax.custom_gradient
    def h(x):
        return jnp.sin(x), lambda g: g * jnp.cos(x) * 3

    close(jax.grad(h)(0.5), 3 * np.cos(0.5))
    close(jax.grad(jax.grad(h))(0.5), -3 * np.sin(0.5))


def test_closure_convert():
    def outer(a, x):
        converted, consts = jax.closure_convert(lambda y: a * y, x)
        assert len(consts) == 1
        return converted(x, *[2 * c for c in consts])

    close(jax.grad(outer)(3.0, 5.0), 10.0)
    converted, consts = jax.closure_convert(lambda y: y * 2, 1.0)
    assert consts == []


def test_linear_call():
    f = lambda r, x: linear_call(lambda r, x: r * x, lambda r, ct: 100.0 * r * ct, r, x)
    close(f(2.0, 3.0), 6.0)
    close(jax.grad(f, 1)(2.0, 3.0), 200.0)
    close(jax.jit(jax.grad(f, 1))(2.0, 3.0), 200.0)
    close(jax.vmap(jax.grad(f, 1), (0, None))(X, 3.0), 100 * X)
    close(jax.jvp(lambda x: f(2.0, x), (3.0,), (1.0,))[1], 2.0)
    close(jax.grad(f, 0)(2.0, 3.0), 3.0)  # of the residuals ``fun`` is a function like any other
    close(jax.jvp(f, (2.0, 3.0), (1.0, 1.0))[1], 5.0)
    close(jax.grad(jax.grad(f, 1), 0)(2.0, 3.0), 100.0)
    with pytest.raises(ValueError, match=r"number 0 is float32\[3\], got float32\[\]"):
        jax.grad(lambda x: linear_call(lambda r, x: x.sum(), lambda r, ct: ct, (), x))(jnp.ones(3))


# ---- errors


def made(kind, *rules, **options):
    f = kind(lambda x: x)
    if rules:
        (f.defjvp if kind is jax.custom_jvp else f.defvjp)(*rules, **options)
    return f


GOOD = lambda x: (x, None)


@pytest.mark.parametrize(
    "f, error, message",
    [
        (
            made(jax.custom_jvp),
            AttributeError,
            "No JVP defined for custom_jvp function <lambda> using defjvp",
        ),
        (
            made(jax.custom_vjp),
            AttributeError,
            "No VJP defined for custom_vjp function <lambda> using defvjp",
        ),
        (made(jax.custom_jvp, lambda p, t: 1.0), TypeError, "must produce a pair .* but got 1.0"),
        (
            made(jax.custom_jvp, lambda p, t: (p[0], jnp.ones(3))),
            TypeError,
            r"Expected float32\[\].*but got float32\[3\]",
        ),
        (made(jax.custom_jvp, lambda p, t: (p[0], (t[0],))), TypeError, "equal container"),
        (
            made(jax.custom_vjp, lambda x: 1.0, lambda r, ct: (ct,)),
            TypeError,
            "fwd rule <lambda>.*instead of a pair",
        ),
        (
            made(jax.custom_vjp, GOOD, lambda r, ct: ct),
            TypeError,
            "tuple of length equal to the number of arguments",
        ),
        (
            made(jax.custom_vjp, GOOD, lambda r, ct: (ct, ct)),
            TypeError,
            "tuple of length equal to the number",
        ),
        (
            made(jax.custom_vjp, GOOD, lambda r, ct: (jnp.ones(2),)),
            ValueError,
            r"output\[0\].*float32\[2\].*float32\[\]",
        ),
    ],
)
def test_errors(f, error, message):
    with pytest.raises(error, match=message):
        jax.grad(f)(1.0)


def test_not_callable():
    with pytest.raises(TypeError, match="callable"):
        jax.custom_jvp(3)
    with pytest.raises(TypeError, match="callable"):
        jax.custom_vjp(3)


# ---- what they look like


def test_names_and_methods():
    @jax.custom_jvp
    def named(x):
        """Its documentation."""
        return x

    assert named.__name__ == "named" and named.__doc__ == "Its documentation."

    class Model:
        @jax.custom_jvp
        def f(self, x):
            return x

    assert callable(Model().f)


def test_in_a_jaxpr():
    closed = jax.make_jaxpr(ten_times())(1.0)
    assert closed.eqns[0].primitive.name == "custom_jvp_call"
    closed = jax.make_jaxpr(ten_times_back())(1.0)
    assert closed.eqns[0].primitive.name == "custom_vjp_call"


@jax.custom_jvp
def module_level(x):
    return jnp.sin(x)


@module_level.defjvp
def module_level_rule(primals, tangents):
    return module_level(primals[0]), 10.0 * tangents[0]


@jax.custom_vjp
def module_level_back(x):
    return jnp.sin(x)


def module_level_fwd(x):
    return module_level_back(x), x


def module_level_bwd(x, ct):
    return (10.0 * ct,)


module_level_back.defvjp(module_level_fwd, module_level_bwd)


@pytest.mark.parametrize("f", [module_level, module_level_back], ids=["jvp", "vjp"])
def test_pickling(f):
    assert pickle.loads(pickle.dumps(f)) is f
    closed = pickle.loads(pickle.dumps(jax.make_jaxpr(lambda x: f(x) * 2)(1.0)))
    run = lambda x: jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
    close(run(0.5), 2 * np.sin(0.5))
    close(jax.grad(run)(0.5), 20.0)
    close(jax.vmap(jax.grad(run))(X), [20, 20, 20])


# ---- cotangents of another dtype: gradients in float32 of parameters in bfloat16


def with_cotangent(change):
    @jax.custom_vjp
    def f(x):
        return x * 1

    f.defvjp(lambda x: (x * 1, None), lambda _, ct: (change(ct),))
    return f


HALF = jnp.ones(3, jnp.bfloat16)
OTHER_DTYPES = ("float32", "float16", "int32", "complex64", "float8_e4m3fn")


@pytest.mark.parametrize("dtype", OTHER_DTYPES)
def test_cotangents_of_another_dtype_reach_the_argument(dtype):
    f = with_cotangent(lambda ct: ct.astype(dtype))
    loss = lambda x: f(x).sum().real
    for g in (loss, jax.jit(loss), jax.checkpoint(loss)):
        for grad in (jax.grad(g), jax.jit(jax.grad(g)), lambda x, g=g: jax.vjp(g, x)[1](jnp.bfloat16(1))[0]):
            assert grad(HALF).dtype == dtype
    assert jax.vmap(jax.grad(f))(HALF).dtype == dtype


@pytest.mark.parametrize("dtype", [d for d in OTHER_DTYPES if d != "complex64"])
def test_cotangents_of_another_dtype_have_the_values_own_on_the_way(dtype):
    f = with_cotangent(lambda ct: ct.astype(dtype))
    losses = (
        (lambda x: f(2 * x).sum(), 2),
        (lambda x: (f(x) + x).sum(), 2),
        (lambda x: (x + f(x)).sum(), 2),
        (lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=2)[0].sum(), 1),
        (lambda x: jax.lax.cond(True, f, lambda x: x, x).sum(), 1),
        (lambda x: jax.checkpoint(lambda x: f(2 * x))(x).sum(), 2),
        (lambda x: jax.jit(lambda x: f(2 * x))(x).sum(), 2),
        (lambda x: jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1].sum(), 1),
    )
    for loss, slope in losses:
        for grad in (jax.grad(loss), jax.jit(jax.grad(loss))):
            np.testing.assert_array_equal(grad(HALF).astype("float32"), np.full(3, slope, "float32"))
            assert grad(HALF).dtype == jnp.bfloat16


def test_imaginary_parts_of_cotangents_are_not_dropped():
    f = with_cotangent(lambda ct: ct.astype("complex64"))
    with pytest.raises(TypeError, match="complex64"):
        jax.grad(lambda x: f(2 * x).sum())(jnp.ones(3))


def test_python_scalars_from_rules_stay():
    for value in (1.0, 1, True, np.float32(1)):
        gradient = jax.grad(with_cotangent(lambda ct, value=value: value))(2.0)
        assert type(gradient) is type(value)
        assert isinstance(jax.jit(jax.grad(with_cotangent(lambda ct, value=value: value)))(2.0), jax.Array)
    assert float(jax.grad(lambda x: with_cotangent(lambda ct: 3.0)(x * x))(2.0)) == 12.0
    np.testing.assert_array_equal(jax.vmap(jax.grad(with_cotangent(lambda ct: 3.0)))(jnp.ones(2)), [3, 3])
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    assert type(f(2.0)) is float


def test_the_shape_of_cotangents_is_checked_unless_it_is_said_not_to():
    f = with_cotangent(lambda ct: ct.sum())
    with pytest.raises(ValueError, match=r"output\[0\].*shapes do not match"):
        jax.vjp(f, HALF)[1](HALF)
    jax.config.update("jax_disable_bwd_checks", True)
    try:
        assert jax.vjp(f, HALF)[1](HALF)[0].shape == jax.jit(lambda x: jax.vjp(f, x)[1](x))(HALF)[0].shape == ()
    finally:
        jax.config.update("jax_disable_bwd_checks", False)


# ---- arguments


@pytest.mark.parametrize("decorate", [jax.custom_jvp, jax.custom_vjp])
def test_nondiff_positions_and_names_together(decorate):
    def scale(v, k, mode):
        return v * k if mode == "up" else v / k

    f = decorate(scale, nondiff_argnums=(1,), nondiff_argnames=("mode",))
    if decorate is jax.custom_vjp:
        f.defvjp(lambda v, k, mode: (f(v, k, mode), None), lambda k, mode, _, ct: (ct * k,))
    else:
        f.defjvp(lambda k, mode, primals, tangents: (f(*primals, k, mode), tangents[0] * k))
    assert float(jax.grad(lambda v: f(v, 4, "up"))(1.0)) == float(jax.grad(lambda v: f(v, 4, mode="up"))(1.0)) == 4.0


def test_traced_values_as_nondiff_arguments():
    f = jax.custom_vjp(lambda a, x: a * x, nondiff_argnums=(0,))
    f.defvjp(lambda a, x: (a * x, None), lambda a, _, ct: (a * ct,))
    for call in (
        jax.jit(lambda a: f(a, 3.0)),
        jax.grad(lambda a: f(a, 3.0)),
        jax.jit(lambda a: jax.grad(f, 1)(a, 3.0)),
    ):
        with pytest.raises(jax.errors.UnexpectedTracerError, match="nondiff_argnums"):
            call(2.0)
    g = jax.custom_jvp(lambda a, x: a * x, nondiff_argnums=(0,))
    g.defjvp(lambda a, primals, tangents: (a * primals[0], a * tangents[0]))
    assert float(jax.jit(lambda a: jax.grad(g, 1)(a, 3.0))(2.0)) == 2.0
    assert float(jax.grad(lambda a: g(a, 3.0))(2.0)) == 0.0
    np.testing.assert_array_equal(jax.grad(lambda a: jax.vmap(lambda a: g(a, 3.0))(a).sum())(jnp.ones(2)), [0, 0])


def sevenfold(fun, decorate):
    f = decorate(fun)
    if decorate is jax.custom_vjp:
        f.defvjp(lambda *xs: (fun(*xs), None), lambda _, ct: (7.0 * ct,))
    else:
        f.defjvp(lambda primals, tangents: (fun(*primals), 7.0 * tangents[0]))
    return f


@pytest.mark.parametrize("decorate", [jax.custom_jvp, jax.custom_vjp])
def test_arguments_by_keyword(decorate):
    for fun in (functools.partial(lambda x, a: x * a, a=2.0), lambda x, *, a=2.0: x * a):
        assert float(jax.grad(sevenfold(fun, decorate))(1.0)) == 7.0
        with pytest.raises(TypeError, match="could not be resolved to positions: a"):
            sevenfold(fun, decorate)(1.0, a=3.0)
    name = f"{decorate.__name__}-decorated function <lambda> could not be resolved"
    for call, reason in (
        (lambda: sevenfold(lambda x, y: x, decorate)(0.5), "missing a required argument: 'y'"),
        (lambda: sevenfold(lambda x: x, decorate)(0.5, 1.0), "too many positional arguments"),
        (lambda: sevenfold(lambda x: x, decorate)(0.5, z=1.0), "unexpected keyword argument 'z'"),
    ):
        with pytest.raises(TypeError, match=name) as caught:
            call()
        assert reason in str(caught.value)


def without_rule(fun):
    f = jax.custom_batching.custom_vmap(fun)
    f.def_vmap(lambda *_: None)
    return f


@pytest.mark.parametrize(
    "decorate", [*(functools.partial(sevenfold, decorate=d) for d in (jax.custom_jvp, jax.custom_vjp)), without_rule]
)
def test_a_default_stands_between_two_arguments_by_keyword(decorate):
    f = decorate(lambda x, a=2.0, b=3.0, *, c=0.0: x * a + b)
    assert float(f(1.0, b=5.0)) == float(f(b=5.0, x=1.0)) == float(jax.jit(f)(1.0, b=5.0)) == 7.0


@pytest.mark.parametrize("decorate", [jax.custom_jvp, jax.custom_vjp])
def test_as_many_arguments_as_parameters_and_other_signatures(decorate):
    """What is called as it is defined is not asked for its signature; what has another one is."""

    def three(x, y, z=1.0):
        return x * y + z

    @functools.wraps(three)
    def wrapped(*args):
        return three(*args)

    def said(x, y):
        return x * y + 1.0

    said.__signature__ = inspect.signature(lambda x, y, z=1.0: 0)
    for fun, arguments in (
        (three, (2.0, 3.0, 1.0)),
        (three, (2.0, 3.0)),
        (wrapped, (2.0, 3.0)),
        (lambda *xs: xs[0] * xs[1] + 1, (2.0, 3.0)),
        (lambda x, *xs: x * xs[0] + 1, (2.0, 3.0)),
        (lambda x, y, **rest: x * y + 1, (2.0, 3.0)),
    ):
        f = sevenfold(fun, decorate)
        assert float(f(*arguments)) == 7.0
        if decorate is jax.custom_jvp:
            assert float(jax.grad(f)(*arguments)) == 7.0
    f = sevenfold(three, decorate)
    assert float(f(2.0, y=3.0)) == float(f(y=3.0, x=2.0)) == float(f(2.0, z=1.0, y=3.0)) == 7.0
    for wrong in ({"y": 3.0, "w": 1.0}, {"x": 2.0}, {"x": 1.0, "y": 3.0}):
        with pytest.raises(TypeError, match="could not be resolved"):
            f(2.0, **wrong)
    with pytest.raises(TypeError, match="could not be resolved"):
        sevenfold(lambda x, /, y: x * y + 1.0, decorate)(2.0, 3.0, x=1.0)
    with pytest.raises(TypeError, match="3 were given"):  # by Python: the signature says that there are three
        sevenfold(said, decorate)(2.0, 3.0)


# ---- optimize_remat


def hundredfold(**options):
    """The value comes from the function as 100 x, from the rule as 200 x, and the derivative is 300 x."""
    f = jax.custom_vjp(lambda x: 100.0 * x)
    f.defvjp(lambda x: (200.0 * x, 300.0 * x), lambda r, ct: (ct * r,), **options)
    return f


def test_the_function_serves_where_residuals_are_not_read():
    f = hundredfold(optimize_remat=True)
    value = lambda f: jax.value_and_grad(f)(1.0)
    for plain in (f, jax.jit(f), lambda x: jax.lax.cond(True, f, lambda x: x, x)):
        assert value(plain) == (200.0, 300.0)
    for checkpointed in (jax.checkpoint(f), jax.checkpoint(jax.jit(f)), jax.jit(jax.checkpoint(f))):
        assert value(checkpointed) == jax.jit(jax.value_and_grad(checkpointed))(1.0) == (100.0, 300.0)
    assert value(jax.checkpoint(hundredfold())) == (200.0, 300.0)
    assert value(jax.checkpoint(f, policy=jax.checkpoint_policies.everything_saveable)) == (200.0, 300.0)
    assert jax.jit(lambda x: jax.vjp(f, x)[0])(1.0) == 100.0
    values, slopes = jax.vmap(jax.value_and_grad(jax.checkpoint(f)))(jnp.ones(2))
    np.testing.assert_array_equal([values, slopes], [[100, 100], [300, 300]])
    twice = jax.checkpoint(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=2)[0])
    assert value(twice) == (10000.0, 18000000.0)
    assert float(jax.grad(jax.grad(f))(1.0)) == 300.0


def test_a_forward_rule_over_traced_values_is_called_as_it_is():
    def loss(x, y):
        f = jax.custom_vjp(lambda x: 100.0 * x * y)
        f.defvjp(lambda x: (200.0 * x * y, None), lambda r, ct: (ct,), optimize_remat=True)
        return f(x)

    assert jax.jit(jax.value_and_grad(loss))(1.0, 2.0) == (400.0, 1.0)


def test_booleans_among_the_residuals_stay_what_they_are():
    @jax.custom_vjp
    def f(x):
        return x * x

    f.defvjp(
        lambda x: (x * x, (x, True, (False, 3.0))), lambda res, g: (2 * g * res[0] if res[1] and not res[2][0] else g,)
    )
    runs = (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f)), jax.grad(jax.checkpoint(f)))
    for run in (*runs, lambda x: jax.vmap(jax.grad(f))(x[None])[0], jax.grad(lambda x: jax.vmap(f)(x[None])[0])):
        assert run(jnp.float32(3.0)) == 6.0
    assert jax.grad(lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])(2.0) == 32.0


def test_closing_over_a_value_that_is_differentiated_is_said():
    def scaled(s):
        @jax.custom_vjp
        def f(x):
            return x * s

        f.defvjp(lambda x: (x * s, None), lambda _, ct: (ct * s,))
        return f

    for call in (jax.jit, jax.checkpoint):
        with pytest.raises(jax.errors.UnexpectedTracerError, match="derivative rule.*closes over it|unexpected tracer"):
            jax.grad(lambda s: call(lambda x: scaled(s)(x))(3.0))(2.0)
