"""Primitives of users, in JAX's manner, under every transformation."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.primitive import registry
from catena.extend import core
from catena.interpreters import ad, batching, mlir, xla

X = jnp.arange(1.0, 4.0)


def scaled():
    """A primitive ``factor * sin(x) * y``, with all its rules."""
    p = core.Primitive("scaled_sine")
    function = lambda x, y, *, factor: factor * jnp.sin(x) * y
    p.def_abstract_eval(lambda x, y, *, factor: jax.core.ShapedArray(jnp.broadcast_shapes(x.shape, y.shape), x.dtype))
    p.def_impl(lambda x, y, *, factor: np.asarray(factor * np.sin(np.asarray(x)) * np.asarray(y), np.float32))
    ad.defjvp(
        p,
        lambda t, x, y, *, factor: factor * jnp.cos(x) * y * t,
        lambda t, x, y, *, factor: p.bind(x, t, factor=factor),
    )

    def transpose(ct, x, y, *, factor):
        assert not ad.is_undefined_primal(x) and ad.is_undefined_primal(y)
        return [None, p.bind(x, ct, factor=factor)]

    ad.primitive_transposes[p] = transpose
    batching.defvectorized(p)
    mlir.register_lowering(p, mlir.lower_fun(function, multiple_results=False))
    return p, function


def close(a, b, tol=1e-6):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def test_a_primitive_under_all_transformations():
    p, function = scaled()
    mine = lambda x, y: p.bind(x, y, factor=2.0)
    plain = lambda x, y: function(x, y, factor=2.0)
    assert "scaled_sine[factor=2.0]" in str(jax.make_jaxpr(mine)(X, X))
    for transform in (
        lambda f: f,
        jax.jit,
        jax.vmap,
        lambda f: lambda x, y: jax.vmap(f, (0, None))(x, 2.0),
        lambda f: jax.jit(jax.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1))),
        lambda f: jax.jit(jax.vmap(jax.grad(f))),
        lambda f: lambda x, y: jax.jvp(f, (x, y), (y, x)),
        lambda f: lambda x, y: jax.jacobian(jax.jacfwd(lambda x: f(x, y)))(x),
        lambda f: jax.jit(lambda x, y: jax.lax.scan(lambda c, t: (f(c, t), c), x, jnp.stack([y, y]))),
    ):
        got, wanted = transform(mine)(X, X + 1), transform(plain)(X, X + 1)
        jax.tree.map(lambda a, b: close(a, b, 1e-5), got, wanted)


def test_primitives_of_users_leave_the_package_s_own_alone():
    sine = core.Primitive("sin")
    assert registry["sin"] is jax.lax.sin_p and not sine.own
    sine.def_abstract_eval(lambda x: x)
    sine.def_impl(lambda x: x * 0)
    close(sine.bind(X), X * 0)
    close(jnp.sin(X), np.sin(X))


def test_several_results():
    p = core.Primitive("both_ends")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [jax.core.ShapedArray((), x.dtype)] * 2)
    p.def_impl(lambda x: (x[0], x[-1]))
    mlir.register_lowering(p)(mlir.lower_fun(lambda x: (x[0], x[-1])))
    ad.deflinear2(p, lambda cts, x: [jnp.zeros(3).at[0].set(cts[0]).at[-1].add(cts[1])])
    for f in (p.bind, jax.jit(p.bind)):
        first, last = f(X)
        assert (float(first), float(last)) == (1.0, 3.0)


def test_an_implementation_that_compiles():
    p = core.Primitive("tripled")
    p.def_abstract_eval(lambda x, *, by: x)
    p.def_impl(lambda x, **params: xla.apply_primitive(p, x, **params))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, by: x * by, multiple_results=False))
    close(p.bind(X, by=3.0), X * 3)


def test_rules_of_known_primitives_can_be_read():
    assert jax.lax.sin_p in ad.primitive_jvps and len(ad.primitive_transposes) > 50
    primal, tangent = ad.primitive_jvps[jax.lax.sin_p]((X,), (X,))
    close(tangent, jnp.cos(X) * X)
    assert batching.primitive_batchers[jax.lax.sin_p]((X,), (0,))[1] == 0
    assert core.primitives.scan_p.name == "scan" and core.primitives.add_p is jax.lax.add_p


def test_missing_rules_are_said():
    p = core.Primitive("bare")
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'bare'"):
        p.bind(X)
    with pytest.raises(jax.errors.CompileError, match="'bare'"):
        jax.jit(p.bind)(X)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'bare'"):
        jax.grad(lambda x: p.bind(x).sum())(X)
    with pytest.raises(NotImplementedError, match="Batching rule for 'bare'"):
        jax.vmap(p.bind)(X)
    with pytest.raises(TypeError, match=r"mlir.lower_fun"):
        mlir.register_lowering(p, lambda ctx, x: [x])


def test_an_interpreter_of_jaxprs():
    def evaluate(jaxpr, consts, *args):
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        read = lambda v: v.val if isinstance(v, core.Literal) else env[v]
        for eqn in jaxpr.eqns:
            outs = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        return [read(v) for v in jaxpr.outvars]

    f = lambda x: (jnp.tanh(x) * 2, jax.lax.scan(lambda c, y: (c + y, c), 0.0, x)[0])
    closed = jax.make_jaxpr(f)(X)
    for got, wanted in zip(jax.jit(lambda x: evaluate(closed.jaxpr, closed.literals, x))(X), f(X), strict=True):
        close(got, wanted)
