"""Derivatives: values against closed forms, and what goes in and out besides numbers."""

import collections
import dataclasses

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import float0, lax

X = np.array([0.5, -1.0, 2.0], np.float32)


def close(actual, expected, tol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def f(x):
    return jnp.sum(jnp.sin(x) * x)


def df(x):
    return np.cos(x) * x + np.sin(x)


def d2f(x):
    return 2 * np.cos(x) - np.sin(x) * x


def d3f(x):
    return -3 * np.sin(x) - np.cos(x) * x


# ---- orders and chains


def test_first_order():
    close(jax.grad(f)(X), df(X))


def test_second_order():
    close(jax.grad(lambda x: jnp.sum(jax.grad(f)(x)))(X), d2f(X))


def test_third_order():
    g = jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(jax.grad(f)(y)))(x)))
    close(g(X), d3f(X), 1e-4)


def test_fifth_derivative_of_a_power():
    g = lambda x: x**5
    for _ in range(5):
        g = jax.grad(g)
    close(g(3.0), 120.0)


def test_jvp_of_grad_and_grad_of_jvp():
    v = np.array([1.0, 2.0, -1.0], np.float32)
    close(jax.jvp(jax.grad(f), (X,), (v,))[1], d2f(X) * v)
    close(jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(X), d2f(X) * v)


def test_programs_have_no_identity_matrices():
    """What Jacobians are taken along is computed in the program, for several arguments and results too."""
    f = lambda x, y: (jnp.sin(x) * jnp.sum(y), y[:, 0] * x[:2])
    x, y = jnp.linspace(0.1, 1.0, 20), jnp.ones((2, 3))
    for way in (jax.jacfwd, jax.jacrev):
        made = jax.make_jaxpr(way(f, (0, 1)))(x, y)
        assert not [c for c in made.consts if np.size(c) > 1]
        for traced, eager in zip(jax.tree.leaves(jax.jit(way(f, (0, 1)))(x, y)), jax.tree.leaves(way(f, (0, 1))(x, y))):
            close(traced, eager)


def test_hessian_both_ways():
    expected = np.diag(d2f(X))
    close(jax.hessian(f)(X), expected)
    close(jax.jacfwd(jax.jacfwd(f))(X), expected)
    close(jax.jacrev(jax.jacrev(f))(X), expected)
    close(jax.jacrev(jax.jacfwd(f))(X), expected)


def test_linearize():
    y, f_jvp = jax.linearize(f, X)
    v = np.array([1.0, 2.0, -1.0], np.float32)
    close(y, f(X))
    close(f_jvp(v), df(X) @ v)
    close(f_jvp(2 * v), 2 * df(X) @ v)


def test_vjp_may_be_called_again():
    y, pull = jax.vjp(lambda x: jnp.sin(x), X)
    close(pull(jnp.ones(3))[0], np.cos(X))
    close(pull(2 * jnp.ones(3))[0], 2 * np.cos(X))


def test_linear_transpose():
    transposed = jax.linear_transpose(lambda x: 3.0 * x[:2], X)
    close(transposed(jnp.ones(2))[0], [3.0, 3.0, 0.0])


def test_linear_transpose_of_integers():
    assert jax.linear_transpose(lambda n: 3 * n, 2)(4)[0].tolist() == 12
    with pytest.raises(TypeError, match="all integers"):
        jax.linear_transpose(lambda x, n: x * 2.0, 1.0, 2)


def test_linear_transpose_of_what_is_not_linear():
    with pytest.raises((TypeError, NotImplementedError), match="sin"):
        jax.linear_transpose(jnp.sin, X)(jnp.ones(3))
    for product in (lambda x: x * x, lambda x: x @ x, lambda x: jax.jit(lambda y: y * y)(x)):
        with pytest.raises(TypeError, match=r"must be linear.*operand float32\[3\].*a product of two"):
            jax.linear_transpose(product, X)(product(X))


def test_derivative_functions_are_trees():
    """The derivative at a point can be returned from a compiled function: its residuals are its leaves."""
    y, pull = jax.jit(lambda x: jax.vjp(f, x))(X)
    close(y, f(X))
    close(pull(1.0)[0], df(X))
    y, f_jvp = jax.jit(lambda x: jax.linearize(f, x))(X)
    close(f_jvp(np.ones(3, np.float32)), df(X).sum())


def test_vmap_of_a_derivative_function():
    _, pull = jax.vjp(lambda x: x**2, X)
    close(jax.vmap(lambda ct: pull(ct)[0])(np.eye(3, dtype=np.float32)), np.diag(2 * X))


def test_pull_under_vmap_of_vjp():
    pulls = jax.vmap(lambda x: jax.vjp(jnp.sin, x)[1])(X)
    close(jax.vmap(lambda pull, ct: pull(ct)[0])(pulls, X), np.cos(X) * X)


# ---- which arguments


def g3(x, y, z):
    return x * y * y * z


@pytest.mark.parametrize("argnums, expected", [(0, 18.0), (1, 24.0), (2, 18.0), (-1, 18.0), (-2, 24.0)])
def test_argnums(argnums, expected):
    close(
        jax.grad(g3, argnums)(2.0, 3.0, 2.0)
        if argnums != 2 and argnums != -1
        else jax.grad(g3, argnums)(2.0, 3.0, 2.0),
        expected,
    )


@pytest.mark.parametrize("argnums", [(0, 1), [0, 1], (1, 0), (-1, 0), (0,)])
def test_several_argnums_give_a_tuple(argnums):
    grads = jax.grad(g3, argnums)(2.0, 3.0, 5.0)
    expected = {0: 45.0, 1: 60.0, 2: 18.0}
    assert type(grads) is tuple
    close(grads, [expected[i % 3] for i in argnums])


def test_keywords_are_constants():
    close(jax.grad(g3)(2.0, y=3.0, z=5.0), 45.0)


def test_argnums_out_of_range():
    with pytest.raises(TypeError, match="argnums=3 requires at least 4 positional arguments"):
        jax.grad(g3, 3)(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="argnums"):
        jax.grad(g3, "x")


Point = collections.namedtuple("Point", "x y")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    w: object
    b: object
    name: str = dataclasses.field(metadata={"static": True}, default="layer")


def test_trees_keep_their_kind():
    p = Params(w=jnp.ones(2), b={"bias": Point(1.0, None)})
    grads = jax.grad(lambda p: jnp.sum(p.w) ** 2 * p.b["bias"].x)(p)
    assert isinstance(grads, Params) and grads.name == "layer"
    assert isinstance(grads.b["bias"], Point) and grads.b["bias"].y is None
    close(grads.w, [4.0, 4.0])
    close(grads.b["bias"].x, 4.0)


def test_empty_trees():
    value, grads = jax.value_and_grad(lambda p: jnp.float32(3.0))({})
    assert grads == {} and float(value) == 3.0


# ---- auxiliary data


def test_aux_is_stripped_of_tracers():
    grads, aux = jax.grad(lambda x: (jnp.sum(x**2), {"x": x, "n": None, "t": "text", "k": 3}), has_aux=True)(X)
    close(grads, 2 * X)
    assert aux["n"] is None and aux["t"] == "text" and aux["k"] == 3
    assert isinstance(aux["x"], jax.Array) and type(aux["x"]).__name__ == "Array"
    close(aux["x"], X)


def test_aux_of_every_transformation():
    h = lambda x: (jnp.sin(x), x * 2)
    assert len(jax.jvp(h, (1.0,), (1.0,), has_aux=True)) == 3
    close(jax.jvp(h, (1.0,), (1.0,), has_aux=True)[2], 2.0)
    close(jax.vjp(h, 1.0, has_aux=True)[2], 2.0)
    close(jax.linearize(h, 1.0, has_aux=True)[2], 2.0)
    close(jax.value_and_grad(h, has_aux=True)(1.0)[0][1], 2.0)
    close(jax.jacfwd(h, has_aux=True)(1.0)[1], 2.0)
    close(jax.jacrev(h, has_aux=True)(1.0)[1], 2.0)
    close(jax.hessian(h, has_aux=True)(1.0)[1], 2.0)


def test_numbers_that_are_passed_on_in_aux_stay_numbers():
    h = lambda x: (x**2, {"x": x, "double": 2 * x})
    for aux in (
        jax.grad(h, has_aux=True)(3.0)[1],
        jax.value_and_grad(h, has_aux=True)(3.0)[0][1],
        jax.jvp(h, (3.0,), (1.0,), has_aux=True)[2],
        jax.vjp(h, 3.0, has_aux=True)[2],
        jax.linearize(h, 3.0, has_aux=True)[2],
        jax.jacfwd(h, has_aux=True)(3.0)[1],
        jax.jacrev(h, has_aux=True)(3.0)[1],
        jax.hessian(h, has_aux=True)(3.0)[1],
    ):
        assert type(aux["x"]) is float and aux["x"] == 3.0
        assert isinstance(aux["double"], jax.Array) and aux["double"] == 6.0
    assert isinstance(jax.jit(jax.grad(h, has_aux=True))(3.0)[1]["x"], jax.Array)


def test_aux_under_jit_and_vmap():
    h = jax.grad(lambda x: (jnp.sum(x**2), x + 1), has_aux=True)
    close(jax.jit(h)(X)[1], X + 1)
    close(jax.vmap(h)(X)[1], X + 1)
    close(jax.jit(jax.vmap(jax.grad(lambda x: h(x)[1])))(X), np.ones(3))


def test_missing_aux():
    with pytest.raises(TypeError, match="two-element tuple"):
        jax.grad(lambda x: x, has_aux=True)(1.0)


# ---- integers, zeros, constants


def test_integer_arguments_have_float0_tangents():
    grads = jax.grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(2.0, 3)
    close(grads[0], 3.0)
    assert grads[1].dtype == float0 and grads[1].shape == ()
    out, tangent = jax.jvp(lambda n: n * 2, (3,), (np.zeros((), float0),))
    assert int(out) == 6 and tangent.dtype == float0


def test_integer_results_in_vjp():
    (y, n), pull = jax.vjp(lambda x: (x * 2, x.astype(int)), jnp.float32(1.5))
    close(pull((jnp.float32(1.0), np.zeros((), float0)))[0], 2.0)


def test_integer_and_bool_operations_inside():
    def h(x):
        n = jnp.sum(x > 0).astype(jnp.int32)
        return jnp.sum(x) * n

    close(jax.grad(h)(X), [2.0, 2.0, 2.0])
    close(jax.jit(jax.grad(h))(X), [2.0, 2.0, 2.0])


def test_unused_arguments_have_zero_gradients():
    grads = jax.grad(lambda a, b: a * 2.0, argnums=(0, 1))(1.0, X)
    close(grads[1], np.zeros(3))
    close(jax.jit(jax.grad(lambda a, b: a * 2.0, argnums=1))(1.0, X), np.zeros(3))


def test_constant_functions():
    close(jax.grad(lambda x: 2.0)(1.0), 0.0)
    y, t = jax.jvp(lambda x: 2.0, (1.0,), (1.0,))
    close([y, t], [2.0, 0.0])
    close(jax.vjp(lambda x: jnp.ones(2), 1.0)[1](jnp.ones(2))[0], 0.0)


def test_results_that_do_not_depend_on_the_argument():
    y, pull = jax.vjp(lambda x: (x, 1.0, jnp.zeros(2)), 3.0)
    close(pull((1.0, 1.0, jnp.ones(2)))[0], 1.0)


def test_values_used_many_times_collect_all_cotangents():
    close(jax.grad(lambda x: x + x + x * x)(3.0), 8.0)


def test_stop_gradient():
    close(jax.grad(lambda x: x * lax.stop_gradient(x))(3.0), 3.0)


def test_differentiable_python_control_flow():
    def h(x):
        y = x
        while y < 10:
            y = y * x
        return y if x > 0 else -y

    close(jax.grad(h)(3.0), 27.0)


def test_weak_types_stay_weak():
    assert jax.grad(lambda x: x * x)(2.0).weak_type
    assert not jax.grad(lambda x: x * x)(jnp.float32(2.0)).weak_type


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_have_the_dtype_of_their_argument(dtype):
    x = jnp.ones(2, dtype)
    assert jax.grad(lambda x: jnp.sum(x.astype(jnp.float32)) * 2)(x).dtype == x.dtype


def test_double_precision():
    with jax.enable_x64(True):
        close(jax.grad(f)(X.astype(np.float64)), df(X.astype(np.float64)), 1e-12)


def test_complex():
    z = jnp.complex64(1 + 2j)
    close(jax.grad(lambda z: (z * z).real)(z), 2 + 4j)  # the convention of JAX: the conjugate of the steepest ascent
    close(jax.grad(lambda z: z * z, holomorphic=True)(z), 2 + 4j)
    with pytest.raises(TypeError, match="holomorphic"):
        jax.grad(lambda x: x * x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="complex64"):
        jax.grad(lambda z: z * z)(z)


# ---- jacobians


def test_jacobians_of_trees():
    h = lambda p: {"a": p[0] ** 2, "b": p[1] * jnp.sum(p[0])}
    for jacobian in (jax.jacfwd, jax.jacrev):
        jac = jacobian(h)((X, 2.0))
        close(jac["a"][0], np.diag(2 * X))
        close(jac["a"][1], np.zeros(3))
        close(jac["b"][0], np.full(3, 2.0))
        close(jac["b"][1], X.sum())


def test_jacobians_of_matrices():
    m = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    h = lambda a, b: a @ b
    b = np.ones((3, 2), np.float32)
    for jacobian in (jax.jacfwd, jax.jacrev):
        da, db = jacobian(h, argnums=(0, 1))(m, b)
        assert da.shape == (2, 2, 2, 3) and db.shape == (2, 2, 3, 2)
        close(np.einsum("ijkl,kl->ij", np.asarray(da), m), m @ b)
        close(np.einsum("ijkl,kl->ij", np.asarray(db), b), m @ b)


def test_jacobian_errors():
    with pytest.raises(TypeError, match="jacfwd requires real-valued inputs.*int32"):
        jax.jacfwd(lambda x: x)(3)
    with pytest.raises(TypeError, match="jacrev requires real- or complex-valued inputs.*int32"):
        jax.jacrev(lambda x: x)(3)


def test_jacrev_with_integers():
    assert jax.jacrev(lambda n: n * 2.0, allow_int=True)(3).dtype == float0


# ---- closures


def test_grad_inside_grad_over_a_closure():
    # d/dx (x * d/dy (x + y)) at y = 1 is 1
    close(jax.grad(lambda x: x * jax.grad(lambda y: x + y)(1.0))(1.0), 1.0)


def test_no_perturbation_confusion():
    close(jax.grad(lambda x: x * jax.jvp(lambda y: x * y, (1.0,), (1.0,))[1])(3.0), 6.0)
    close(jax.jvp(lambda x: x * jax.grad(lambda y: x * y)(1.0), (3.0,), (1.0,))[1], 6.0)


def test_grad_in_jit_over_a_vmapped_value():
    def per_example(x):
        return jax.jit(jax.grad(lambda y: y * y * x))(2.0)

    close(jax.vmap(per_example)(X), 4 * X)


def test_jit_in_grad_in_vmap_over_outer_values_of_both():
    def per_example(x):
        return jax.grad(lambda y: jax.jit(lambda z: z * y * x)(y))(3.0)

    close(jax.vmap(per_example)(X), 6 * X)
    close(jax.jit(jax.vmap(per_example))(X), 6 * X)


def test_vmap_in_grad_over_a_closure():
    close(jax.grad(lambda w: jnp.sum(jax.vmap(lambda x: w * x)(X)))(2.0), X.sum())


def test_three_levels_of_closures():
    def outer(a):
        def middle(b):
            return jnp.sum(jax.vmap(lambda c: jax.jit(lambda d: a * b * c * d)(a))(X))

        return jax.grad(middle)(a)

    # middle(b) = a^2 b sum(X), its derivative a^2 sum(X)
    close(jax.grad(outer)(3.0), 6.0 * X.sum())
    close(jax.jit(jax.grad(outer))(3.0), 6.0 * X.sum())


# ---- errors


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: jax.grad(f)(3), TypeError, "but got int32"),
        (lambda: jax.grad(lambda x: x)(X), TypeError, r"Output had shape: \(3,\)"),
        (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, "scalar-output"),
        (lambda: jax.grad(lambda x: None)(1.0), TypeError, "Output was None"),
        (lambda: jax.grad(lambda x: 3)(1.0), TypeError, "real-valued outputs.*int32"),
        (lambda: jax.grad(lambda x: x)("a"), TypeError, "'a' of type <class 'str'>"),
        (lambda: jax.grad(3), TypeError, "callable"),
        (lambda: jax.jvp(f, 1.0, 1.0), TypeError, "must be tuples or lists; found float and float"),
        (lambda: jax.jvp(f, (X,), (X[:2],)), ValueError, r"\(3,\).*\(2,\)"),
        (lambda: jax.jvp(f, (X,), (X.astype(int),)), TypeError, "tangent dtype int32"),
        (lambda: jax.jvp(f, ((X,),), (X,)), TypeError, "same tree structure"),
        (lambda: jax.jvp(f, (X,), [X]), TypeError, r"PyTreeDef\(\(\*,\)\) whereas .* PyTreeDef\(\[\*\]\)"),
        (lambda: jax.vjp(jnp.sin, X)[1](X[:2]), ValueError, r"got float32\[2\], but expected float32\[3\]"),
        (lambda: jax.vjp(jnp.sin, X)[1](X.astype(np.int32)), ValueError, r"got int32\[3\]"),
        (lambda: jax.vjp(lambda x: (x, x), X)[1](X), ValueError, "tree structure"),
        (lambda: jax.linearize(jnp.sin, X)[1](X[:2]), ValueError, r"float32\[2\]"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_leaked_tracer_says_what_it_is():
    kept = []
    jax.grad(lambda x: kept.append(x * 2) or x)(1.0)
    with pytest.raises(jax.errors.UnexpectedTracerError, match="escape.*differentiation"):
        kept[0] + 1


def test_tracers_print_as_in_jax():
    shown = []
    jax.grad(lambda x: shown.append(repr(x)) or x)(1.0)
    jax.jvp(lambda x: shown.append(repr(x)) or x, (1.0,), (1.0,))
    jax.vmap(jax.grad(lambda x: shown.append(repr(x)) or x))(np.ones(3, np.float32))
    assert shown == [
        "GradTracer(primal=1.0, typeof(tangent)=f32[])",
        "JVPTracer(primal=1.0, tangent=1.0)",
        "GradTracer(primal=VmapTracer(aval=float32[], batched=float32[3]), typeof(tangent)=f32[])",
    ]


# ---- the functions that linearize, vjp and linear_transpose return


def test_linear_functions_are_partials():
    _, f_jvp = jax.linearize(lambda x, y: jnp.sin(x) * y, jnp.ones(3), 2.0)
    assert isinstance(f_jvp, jax.tree_util.Partial) and not f_jvp.keywords
    (residuals,) = f_jvp.args
    tangents = jnp.arange(3.0), 1.0
    np.testing.assert_array_equal(f_jvp.func(residuals, *tangents), f_jvp(*tangents))
    again = jax.jit(lambda f, *ts: f(*ts))(f_jvp, *tangents)
    np.testing.assert_allclose(again, f_jvp(*tangents), rtol=1e-6)
    assert len(jax.tree.leaves(f_jvp)) == len(residuals)


def test_the_parts_of_a_vjp_function():
    x, y = jnp.ones((2, 2)), {"a": jnp.arange(2.0)}
    _, pull = jax.vjp(lambda x, y: jnp.sin(x) @ y["a"] + x @ x @ y["a"], x, y)
    before = pull(jnp.ones(2))
    assert len(pull.args_res) == 2 and any(leaf is x for leaf in jax.tree.leaves(pull.args_res))
    assert len(pull.jaxpr.constvars) == len(jax.tree.leaves(pull))
    value = jax.ad.GradValue()
    after, back = pull(jnp.ones(2)), pull.with_refs(value, {"a": value})(jnp.ones(2))
    jax.tree.map(np.testing.assert_array_equal, before, after)
    jax.tree.map(np.testing.assert_array_equal, before, back)
    with pytest.raises(TypeError, match="references"):
        pull.with_refs(x, {"a": value})


def test_the_residuals_of_a_vjp_function_can_be_exchanged():
    _, pull = jax.vjp(lambda x, y: jnp.sin(x) * y, jnp.ones(2), jnp.array([3.0, 3.0]))
    assert repr(pull.args_res[0]) == "NotNeeded()"
    pull.args_res[1] = jnp.array([10.0, 10.0])
    np.testing.assert_allclose(pull(jnp.ones(2))[0], 10 * np.cos(np.ones(2)), rtol=1e-6)
    pull.opaque_residuals = [0 * r for r in pull.opaque_residuals]
    np.testing.assert_array_equal(pull(jnp.ones(2))[0], [0, 0])


def test_a_vjp_function_takes_one_argument():
    _, pull = jax.vjp(lambda x, y: (x, y), 1.0, 2.0)
    with pytest.raises(TypeError, match=r"applied to <lambda> was called with 2 arguments"):
        pull(1.0, 2.0)


def test_transposed_functions_are_trees():
    transposed = jax.jit(lambda x: jax.linear_transpose(lambda y: x * y, x))(4.0)
    assert float(transposed(2.0)[0]) == 8.0
    rows = jax.vmap(lambda x: jax.linear_transpose(lambda y: x * y, x))(jnp.arange(2.0))
    np.testing.assert_array_equal(jax.vmap(lambda f: f(1.0)[0])(rows), [0, 1])
    assert jax.linear_transpose(lambda n: n * 4, 8)(2)[0] == 8


@pytest.mark.parametrize(("fun", "example"), [(lambda v: v / 4.0, 8), (lambda v: v.astype(int), 8.0)])
def test_linear_transpose_stays_with_one_kind_of_numbers(fun, example):
    with pytest.raises(TypeError, match="integer -> integer"):
        jax.linear_transpose(fun, example)(1)


# ---- integers, whose derivatives are of dtype float0


def test_cotangents_of_integers_are_ignored():
    _, pull = jax.vjp(lambda x: (x * 2, jnp.arange(2)), 1.0)
    for ct in (jnp.zeros(2, int), np.zeros(2, float0), jnp.ones(2), np.ones(2, "int8")):
        assert float(pull((1.0, ct))[0]) == 2.0
    with pytest.raises(ValueError, match="VJP function"):
        pull((1.0, jnp.zeros(3, int)))


def test_derivatives_by_integers_are_numpy_s():
    g = jax.grad(lambda w, n: w * n, argnums=(0, 1), allow_int=True)
    xs, ns = jnp.arange(3.0), jnp.arange(3)
    results = (
        *(f(2.0, 3)[1] for f in (g, jax.jit(g), jax.checkpoint(g), jax.jit(jax.jit(g)))),
        *(f(xs, ns)[1] for f in (jax.vmap(g), jax.jit(jax.vmap(g)), jax.vmap(jax.jit(g)))),
        lax.map(lambda x: g(x, 3), xs)[1],
        lax.scan(lambda c, x: (c, g(c, 3)), 2.0, length=2)[1][1],
        jax.jit(lambda n: jax.jvp(lambda n: n * 2, (n,), (np.zeros((), float0),)))(3)[1],
        jax.linearize(lambda n: n * 2, 3)[1](np.zeros((), float0)),
    )
    for x in results:
        assert type(x) is np.ndarray and x.dtype == float0
        assert (x == np.zeros(x.shape, float0)).all()


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "divide", "maximum", "equal", "less", "where"])
def test_derivatives_by_integers_do_not_compute(name):
    zero, one = np.zeros((), float0), jnp.ones(())
    for args in ((one, zero), (zero, one)):
        with pytest.raises(TypeError, match="float0s do not support any operations"):
            getattr(jnp, name)(*((True,) * (name == "where")), *args)
    for f in (lax.mul, lax.add, lax.max, lax.eq):
        with pytest.raises(TypeError, match="float0s do not support any operations"):
            f(one, zero)


# ---- 64-bit types inside, differentiated from outside


def wide(f):
    def with_64_bits(x):
        with jax.enable_x64():
            return f(jnp.asarray(x, "float64"))

    return with_64_bits


def custom_sine(decorate):
    f = decorate(jnp.sin)
    if decorate is jax.custom_vjp:
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (jnp.cos(x) * ct,))
    else:
        f.defjvp(lambda xs, ts: (f(*xs), jnp.cos(xs[0]) * ts[0]))
    return f


WIDE = {
    "sin": jnp.sin,
    "jit": jax.jit(jnp.sin),
    "checkpoint": jax.checkpoint(jnp.sin),
    "custom_jvp": custom_sine(jax.custom_jvp),
    "custom_vjp": custom_sine(jax.custom_vjp),
    "scan": lambda x: lax.scan(lambda c, _: (jnp.sin(c), None), x, length=1)[0],
    "fori_loop": lambda x: lax.fori_loop(0, 1, lambda i, c: jnp.sin(c) * 1.0, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1],
    "cond": lambda x: lax.cond(x > 0, jnp.sin, lambda x: 0.0 * x, x),
    "sum": lambda x: jnp.sin(x * jnp.ones(2)).mean(),
    "vmap": lambda x: jax.vmap(jnp.sin)(x[None])[0],
}


@pytest.mark.share(2)
@pytest.mark.parametrize("name", WIDE)
def test_differentiating_64_bits_from_outside(name):
    f = wide(WIDE[name])
    x = jnp.float32(0.5)
    for g in (jax.grad(f), jax.jit(jax.grad(f)), jax.checkpoint(jax.grad(f)), jax.grad(jax.jit(f)), jax.jacrev(f)):
        np.testing.assert_allclose(g(x), np.cos(0.5), rtol=1e-6)
        assert g(x).dtype == np.float32
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(x[None]), np.cos([0.5]), rtol=1e-6)
    np.testing.assert_allclose(jax.linearize(f, x)[1](x), 0.5 * np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(f, (x,), (x,))[1], 0.5 * np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jax.grad(f))(x), -np.sin(0.5), rtol=1e-6)


def test_columns_of_integers_are_zeros_of_their_dtype():
    f = lambda x: {"double": 2 * x, "rank": jnp.argsort(x), "first": jnp.argmax(x), "big": x[:2] > 1}
    for jac in (jax.jacfwd(f), jax.jit(jax.jacfwd(f))):
        got = jac(jnp.array([3.0, 1.0, 2.0]))
        np.testing.assert_array_equal(got["double"], 2 * np.eye(3))
        for name, shape, dtype in [("rank", (3, 3), np.int32), ("first", (3,), np.int32), ("big", (2, 3), bool)]:
            assert (got[name].shape, got[name].dtype) == (shape, dtype)
            assert not got[name].any()
