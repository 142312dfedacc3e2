"""Rematerialisation: same values and derivatives, fewer residuals, policies."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.ad_checkpoint import checkpoint_name, print_saved_residuals
from catena.core.config import override
from catena.experimental import io_callback

X = np.array([0.5, 1.0, 2.0], np.float32)
policies = jax.checkpoint_policies


def close(actual, expected, tol=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=tol, atol=tol)


def layer(x):
    return jnp.sin(jnp.sin(jnp.sin(x)))


def d_layer(x):
    return np.cos(np.sin(np.sin(x))) * np.cos(np.sin(x)) * np.cos(x)


def counts(jaxpr, name):
    """How often a primitive occurs in a jaxpr and those inside it."""
    total = 0
    for eqn in jaxpr.eqns:
        total += eqn.primitive.name == name
        for value in eqn.params.values():
            if hasattr(value, "eqns"):
                total += counts(value, name)
    return total


CHAINS = {
    "grad": lambda f: jax.grad(lambda x: jnp.sum(f(x))),
    "jit(grad)": lambda f: jax.jit(jax.grad(lambda x: jnp.sum(f(x)))),
    "grad(jit)": lambda f: jax.grad(jax.jit(lambda x: jnp.sum(f(x)))),
    "vmap(grad)": lambda f: jax.vmap(jax.grad(f)),
    "jit(vmap(grad))": lambda f: jax.jit(jax.vmap(jax.grad(f))),
    "grad(vmap)": lambda f: jax.grad(lambda x: jnp.sum(jax.vmap(f)(x))),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (np.ones_like(x),))[1],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](np.ones_like(x)),
    "checkpoint(checkpoint)": lambda f: jax.grad(lambda x: jnp.sum(jax.checkpoint(f)(x))),
    "scan": lambda f: jax.grad(lambda x: jnp.sum(jax.lax.scan(lambda c, y: (c, f(y)), 0.0, x)[1])),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize(
    "policy",
    [None, policies.everything_saveable, policies.nothing_saveable, policies.dots_saveable],
    ids=lambda p: p.__name__ if p else "None",
)
def test_values_and_derivatives_do_not_change(chain, policy):
    f = jax.checkpoint(layer, policy=policy)
    close(f(X), layer(X))
    close(CHAINS[chain](f)(X), d_layer(X))


def test_second_order():
    expected = jax.vmap(jax.grad(jax.grad(layer)))(X)
    close(jax.vmap(jax.grad(jax.grad(jax.checkpoint(layer))))(X), expected)
    close(jax.vmap(jax.grad(jax.checkpoint(jax.grad(jax.checkpoint(layer)))))(X), expected)
    close(jax.jvp(jax.grad(lambda x: jnp.sum(jax.checkpoint(layer)(x))), (X,), (np.ones_like(X),))[1], expected)


def test_the_backward_pass_computes_again():
    plain = jax.make_jaxpr(jax.grad(lambda x: layer(x)))(1.0)
    again = jax.make_jaxpr(jax.grad(lambda x: jax.checkpoint(layer)(x)))(1.0)
    assert counts(plain, "sin") < counts(again, "sin")
    saved = jax.make_jaxpr(jax.grad(jax.checkpoint(layer, policy=policies.everything_saveable)))(1.0)
    assert counts(saved, "sin") == counts(plain, "sin")


def residual_count(f, *args):
    """The number of values kept between the forward and the backward pass, arguments included."""
    return len(jax.tree.leaves(jax.vjp(f, *args)[1]))


def test_policies_decide_what_is_kept():
    def f(x):
        y = checkpoint_name(jnp.sin(x), "first")
        z = checkpoint_name(jnp.sin(y), "second")
        return jnp.sum(jnp.sin(z))

    def saved(policy):
        return counts(jax.make_jaxpr(jax.grad(jax.checkpoint(f, policy=policy)))(X), "sin")

    nothing = saved(policies.nothing_saveable)
    named = saved(policies.save_only_these_names("first"))
    both = saved(policies.save_only_these_names("first", "second"))
    assert nothing > named > both
    for policy in (
        policies.save_only_these_names("second"),
        policies.save_anything_except_these_names("first"),
    ):
        close(jax.grad(jax.checkpoint(f, policy=policy))(X), d_layer(X))


def test_products_are_kept_by_dots_saveable():
    w = np.eye(3, dtype=np.float32) * 0.5

    def f(x):
        return jnp.sum(jnp.sin(jnp.sin(x) @ w) @ w)

    def products(policy):
        return counts(jax.make_jaxpr(jax.grad(jax.checkpoint(f, policy=policy)))(X), "dot_general")

    assert products(policies.dots_saveable) < products(policies.nothing_saveable)
    expected = jax.grad(f)(X)
    for policy in (
        policies.dots_saveable,
        policies.nothing_saveable,
        policies.dots_with_no_batch_dims_saveable,
    ):
        close(jax.jit(jax.grad(jax.checkpoint(f, policy=policy)))(X), expected)


def test_arguments():
    f = jax.checkpoint(lambda x, n, *, k=1.0: x**n * k, static_argnums=1)
    close(jax.grad(f)(2.0, 3, k=5.0), 60.0)
    g = jax.checkpoint(lambda x, n: x**n, static_argnames="n")
    close(jax.grad(g)(2.0, n=3), 12.0)

    @jax.checkpoint
    def tree(p):
        return {"y": p["a"] * p["b"], "z": None}

    close(jax.grad(lambda p: tree(p)["y"])({"a": 2.0, "b": 3.0})["a"], 3.0)

    @jax.remat
    def other_name(x):
        return x

    assert other_name.__name__ == "other_name"


def test_closing_over_tracers():
    outer = lambda a, x: jax.checkpoint(lambda y: jnp.sin(a * y))(x)
    close(jax.grad(outer)(2.0, 0.5), 0.5 * np.cos(1.0))
    close(jax.vmap(jax.grad(outer), (0, None))(X, 0.5), 0.5 * np.cos(X * 0.5))


def test_integers_and_unused_results():
    @jax.checkpoint
    def f(x, n):
        return x * n, n + 1, jnp.cos(x)

    close(jax.grad(lambda x: f(x, 3)[0])(2.0), 3.0)
    assert int(f(2.0, 3)[1]) == 4


def test_traced_once_for_each_type():
    count = []

    @jax.checkpoint
    def f(x):
        count.append(1)
        return jnp.sin(x)

    for _ in range(3):
        f(jnp.float32(1.0))
    assert len(count) == 1


def test_static_arguments_that_cannot_be_hashed():
    f = jax.checkpoint(lambda x, options: x * options["k"], static_argnums=1)
    close(f(2.0, {"k": 3}), 6.0)
    close(f(2.0, {"k": 4}), 8.0)


@pytest.mark.parametrize("concrete", [True, False, None])
def test_concrete_is_refused(concrete):
    with pytest.raises(NotImplementedError, match=f"concrete={concrete}"):
        jax.checkpoint(layer, concrete=concrete)
    with pytest.raises(NotImplementedError, match=f"concrete={concrete}"):
        jax.checkpoint(concrete=concrete)(layer)


def test_print_saved_residuals(capsys):
    def f(w, x):
        y = checkpoint_name(jnp.sin(w * x), "hidden")
        return jnp.sum(jnp.cos(y))

    print_saved_residuals(f, X, X)
    text = capsys.readouterr().out
    assert "f32[3] from the argument w" in text and "f32[3] from the argument x" in text
    print_saved_residuals(jax.checkpoint(f, policy=policies.save_only_these_names("hidden")), X, X)
    text = capsys.readouterr().out
    assert "f32[3] named 'hidden' from" in text


def test_the_first_argument_alone_as_static():
    f = jax.checkpoint(lambda n, x: x * n if n > 1 else x, static_argnums=0)
    assert f(2, 3.0) == 6.0
    assert jax.grad(f, argnums=1)(2, 3.0) == 2.0


# ---- policies inside branches, loops and other checkpointed functions


W = jnp.ones((2, 2))
WRAPPERS = {
    "plain": lambda g: g(W),
    "jit": lambda g: jax.jit(g)(W),
    "cond": lambda g: lax.cond(W.sum() > 0, g, lambda x: x, W),
    "switch": lambda g: lax.switch(1, [lambda x: x, g], W),
    "scan": lambda g: lax.scan(lambda c, _: (g(c), None), W, length=2)[0],
    "items": lambda g: lax.scan(lambda c, x: (c, g(x)), W, jnp.stack([W, W]))[1].sum(0),
    "fori_loop": lambda g: lax.fori_loop(0, 2, lambda i, c: g(c), W),
    "cond in scan": lambda g: lax.scan(lambda c, i: (lax.cond(i > 0, g, lambda x: x, c), None), W, jnp.arange(3))[0],
    "map": lambda g: lax.map(g, jnp.stack([W, W])).sum(0),
    "checkpoint": lambda g: jax.checkpoint(g)(W),
}
POLICIES = jax.checkpoint_policies


def two_products(wrap, policy):
    return jax.checkpoint(lambda w: wrap(lambda x: jnp.sin(jnp.sin(x @ w) @ w)), policy=policy)


@pytest.mark.parametrize("name", WRAPPERS)
def test_policies_reach_into_branches_and_loops(name):
    def products(policy):
        y, pull = jax.vjp(two_products(WRAPPERS[name], policy), W)
        return str(jax.make_jaxpr(pull)(y)).count(" dot_general")

    # two products of the forward pass are not done again; by W alone there are three in the backward pass, and a
    # fourth where the loop's carry has a cotangent
    few = products(POLICIES.dots_saveable)
    assert few == (4 if name in ("scan", "fori_loop", "cond in scan") else 3)
    assert products(POLICIES.everything_saveable) == products(POLICIES.dots_with_no_batch_dims_saveable) == few
    assert products(POLICIES.nothing_saveable) == products(None) == few + 2


@pytest.mark.share(3)
@pytest.mark.parametrize("name", WRAPPERS)
def test_policies_inside_do_not_change_gradients(name):
    wrap = WRAPPERS[name]
    wanted = jax.grad(lambda w: wrap(lambda x: jnp.sin(jnp.sin(x @ w) @ w)).sum())(W)
    for policy in (POLICIES.dots_saveable, POLICIES.everything_saveable, lambda p, *_, **__: p.name == "sin"):
        f = lambda w, policy=policy: two_products(wrap, policy)(w).sum()
        for gradient in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.jit(f))):
            np.testing.assert_allclose(gradient(W), wanted, rtol=1e-5)


def test_what_comes_after_a_branch_is_saved_too():
    f = jax.checkpoint(lambda v: jnp.cosh(lax.cond(v < 9.0, jnp.cosh, jnp.negative, v)), policy=named("sinh", "cosh"))
    assert " cosh " not in str(jax.make_jaxpr(jax.vjp(f, 2.0)[1])(1.0))


def named(*names):
    return lambda p, *_, **__: p.name in names


# ---- effects


@pytest.mark.parametrize("transform", [jax.grad, lambda f: jax.jit(jax.grad(f)), lambda f: jax.grad(jax.jit(f))])
@pytest.mark.parametrize(("policy", "times"), [(None, 2), (POLICIES.everything_saveable, 1)])
def test_prints_are_repeated_as_often_as_what_is_computed(transform, policy, times, capsys):
    bodies = (
        lambda x: (jax.debug.print("{}", x), jnp.exp(x))[1],
        lambda x: lax.cond(x > 0, lambda x: (jax.debug.print("{}", x), jnp.exp(x))[1], jnp.sin, x),
        lambda x: lax.scan(lambda c, _: ((jax.debug.print("{}", c), jnp.exp(c))[1], None), x, length=1)[0],
    )
    for body in bodies:
        transform(jax.checkpoint(body, policy=policy))(2.0)
        jax.effects_barrier()
        assert capsys.readouterr().out.split() == ["2.0"] * times


def test_callbacks_with_effects_are_refused_in_the_backward_pass():
    calls = []
    f = jax.checkpoint(lambda x, y: (io_callback(lambda v: calls.append(1), None, y), jnp.sin(x))[1])
    f(2.0, 3.0)
    assert len(calls) == 1
    for gradient in (jax.grad(f), jax.grad(jax.jit(f)), jax.jit(jax.grad(f))):
        with pytest.raises(NotImplementedError, match="Effects not supported in partial-eval of `checkpoint`"):
            gradient(2.0, 3.0)
    assert len(calls) == 1


# ---- where residuals come from


class Layers:
    def twice(self, w, x):
        return jnp.sin(w @ jnp.sin(w @ x))

    def named(self, w, x):
        return jnp.sin(w @ checkpoint_name(jnp.sin(x), "hidden")) * x


def test_residuals_are_reported_where_they_are_computed(capsys):
    layers, w, x = Layers(), jnp.ones((3, 3)), jnp.ones(3)
    line = Layers.twice.__code__.co_firstlineno + 1
    first, second = (f"{__file__}:{line}:{column} (Layers.twice)" for column in (35, 23))
    print_saved_residuals(jax.checkpoint(layers.twice, policy=policies.dots_saveable), w, x)
    assert capsys.readouterr().out.splitlines() == [
        "f32[3,3] from the argument w",
        "f32[3] from the argument x",
        f"f32[3] output of dot_general from {first}",
        f"f32[3] output of dot_general from {second}",
    ]
    print_saved_residuals(jax.checkpoint(layers.named, policy=policies.save_only_these_names("hidden")), w, x)
    place = f"{__file__}:{line + 3}:{27} (Layers.named)"
    assert capsys.readouterr().out.splitlines()[-1] == f"f32[3] named 'hidden' from {place}"


def test_residuals_are_listed_arguments_first(capsys):
    print_saved_residuals(lambda a, b: jnp.sin(jnp.exp(b)) * a, X, X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" from ")[0] for line in lines] == ["f32[3]"] + ["f32[3] output of " + n for n in NAMES]


NAMES = ("exp", "sin", "cos")


def test_what_is_kept_is_logged(caplog):
    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=jax.checkpoint_policies.everything_saveable)
    with override("jax_log_checkpoint_residuals", True):
        jax.grad(f)(2.0)
        jax.grad(jax.checkpoint(jnp.sin))(2.0)
    saved, computed = (record.getMessage() for record in caplog.records)
    assert saved.count("float32[] from output of cos from") == 2 and "test_checkpoint.py" in saved
    assert "these types:\n  float32[]\n" in computed and computed.endswith("values:\n  none")
