"""Equations show JAX's parameters, also those that ours leave out, and primitives and equations take them."""

import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.usual import USUAL
from catena.extend import core


def walked(jaxpr, consts, *args):
    """The results of a jaxpr, equation by equation, as interpreters of users compute them."""
    env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda v: v.val if type(v) is core.Literal else env[v]
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return [read(v) for v in jaxpr.outvars]


def program(x):
    y = jax.jit(lambda a: jnp.tanh(a) + 1)(x @ x.T)
    vectors = jnp.linalg.eigh(y)[1] ** 2
    return jnp.sum(jnp.exp(vectors) * jnp.arange(2).astype(float)) + jnp.linalg.svd(y, compute_uv=False)[0]


X = jnp.array([[0.1, 0.2, 0.3], [0.3, 0.5, 0.8]])


def test_equations_show_them():
    shown = {e.primitive.name: e.params for e in jax.make_jaxpr(program)(X).eqns}
    for name in ("dot_general", "exp", "mul", "reduce_sum", "convert_element_type", "svd"):
        assert USUAL[name].items() <= shown[name].items()
    assert shown["jit"]["donated_invars"] == (False,) and repr(shown["jit"]["in_shardings"]) == "(UnspecifiedValue,)"
    assert shown["jit"]["jaxpr"].eqns[0].params == {"accuracy": None}


@pytest.mark.parametrize("transformed", [jax.jit, jax.grad, lambda f: lambda x: jax.vmap(f)(x[None])[0]])
def test_primitives_take_what_equations_show(transformed):
    closed = jax.make_jaxpr(program)(X)
    again = lambda x: walked(closed.jaxpr, closed.consts, x)[0]
    assert jnp.allclose(again(X), program(X), rtol=1e-5)
    assert jnp.allclose(transformed(again)(X), transformed(program)(X), rtol=1e-4, atol=1e-5)


def test_rules_by_their_names_invert_a_function():
    """As JAX's tutorial on jaxprs does."""
    inverses = {lax.exp_p: lambda y, *, accuracy: jnp.log(y), lax.tanh_p: lambda y, *, accuracy: jnp.arctanh(y)}
    jaxpr = jax.make_jaxpr(lambda x: jnp.exp(jnp.tanh(x)))(1.0).jaxpr
    y = jnp.exp(jnp.tanh(0.3))
    for eqn in reversed(jaxpr.eqns):
        y = inverses[eqn.primitive](y, **eqn.params)
    assert y == pytest.approx(0.3, rel=1e-5)


def test_equations_take_them():
    closed = jax.make_jaxpr(jnp.exp)(X)
    eqn = closed.eqns[0]
    same = eqn.replace(params=dict(eqn.params))
    made = core.new_jaxpr_eqn(eqn.invars, eqn.outvars, eqn.primitive, {"accuracy": None}, eqn.effects)
    for each in (same, made):
        assert each.params == {"accuracy": None}
        whole = closed.replace(jaxpr=closed.jaxpr.replace(eqns=[each]))
        assert jnp.array_equal(jax.jit(core.jaxpr_as_fun(whole))(X)[0], jax.jit(jnp.exp)(X))


def test_what_is_not_as_usual_is_refused():
    with pytest.raises(NotImplementedError, match=r"mul takes no out_dtype='float64'.*jax.lax.mul may"):
        lax.mul_p.bind(X, X, out_dtype="float64")
