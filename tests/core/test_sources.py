"""Where equations come from: the user's lines and scopes, through transformations, and in errors about NaNs."""

import inspect
import pickle
import sys
import types

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax


def scoped(x):
    with jax.named_scope("foo"):
        return jax.named_scope("bar")(jnp.sin)(x)


def every_equation(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns"):
                    yield from every_equation(getattr(inner, "jaxpr", inner))


def stacks(f, *args) -> list:
    return [str(e.source_info.name_stack) for e in every_equation(jax.make_jaxpr(f)(*args).jaxpr)]


def in_scope(transformed):
    def f(x):
        with jax.named_scope("outer"):
            return transformed(x)

    return f


@jax.custom_vjp
def ruled(x):
    return jnp.sin(x)


def forward(x):
    with jax.named_scope("fwd"):
        return jnp.sin(x), x


def backward(x, ct):
    with jax.named_scope("bwd"):
        return (jnp.cos(x) * ct,)


ruled.defvjp(forward, backward)
ONES = np.ones(2, np.float32)
JVP, PULLED = "jvp(foo)/bar", "transpose(jvp(foo))/bar"


@pytest.mark.parametrize(
    "f, x, expected",
    [
        (scoped, 2.0, ["foo/bar"]),
        (jax.vmap(scoped), ONES, ["vmap(foo)/bar"]),
        (jax.vmap(jax.vmap(scoped)), np.ones((2, 2)), ["vmap(vmap(foo))/bar"]),
        (lambda x: jax.jvp(scoped, (x,), (x,)), 2.0, [JVP, JVP, JVP]),
        (jax.grad(scoped), 2.0, [JVP, JVP, PULLED]),
        (jax.vmap(jax.grad(scoped)), ONES, [f"vmap({s})/bar" for s in ("jvp(foo)", "jvp(foo)", "transpose(jvp(foo))")]),
        (jax.jit(scoped), 2.0, ["", "foo/bar"]),
        (jax.vmap(jax.jit(scoped)), ONES, ["vmap()", "foo/bar"]),
        (jax.grad(jax.jit(scoped)), 2.0, ["jvp()", "foo/bar", "foo/bar", "transpose(jvp())", "foo/bar"]),
        (in_scope(jax.vmap(scoped)), ONES, ["outer/vmap(foo)/bar"]),
        (in_scope(jax.grad(scoped)), 2.0, [f"outer/{s}" for s in (JVP, JVP, PULLED)]),
        (jax.named_call(scoped, name="call"), 2.0, ["call/foo/bar"]),
        (in_scope(lambda x: lax.cond(True, scoped, scoped, x)), 2.0, ["outer", "foo/bar", "foo/bar"]),
        (jax.grad(ruled), 2.0, ["jvp(fwd)", "transpose(jvp(bwd))", "transpose(jvp(bwd))"]),
    ],
)
def test_name_stacks_hold_the_transformations(f, x, expected):
    assert stacks(f, x) == expected


def test_the_line_of_the_user_stays_through_transformations():
    line = inspect.getsourcelines(scoped)[1] + 2

    def loop(x):
        return lax.scan(lambda c, _: (scoped(c), None), x, None, length=2)[0]

    batched = jax.vmap(jax.grad(jax.checkpoint(scoped)))
    for f, x in ((jax.grad(jax.jit(scoped)), 2.0), (jax.grad(loop), 2.0), (batched, ONES)):
        eqns = list(every_equation(jax.make_jaxpr(f)(x).jaxpr))
        found = [e.source_info for e in eqns if e.primitive.name in ("sin", "cos", "mul")]
        assert found and all((s.function_name, s.line) == ("scoped", line) for s in found)


def test_name_stacks_survive_pickling():
    stack = jax.make_jaxpr(jax.grad(scoped))(2.0).eqns[-1].source_info.name_stack
    assert str(pickle.loads(pickle.dumps(stack))) == PULLED


# ---- NaNs


def norm(v):
    return jnp.sqrt(jnp.sum(v**2))


def logarithm(x):
    return jnp.log(x)


def scan(f):
    return lambda x: lax.scan(lambda c, _: (c + f(x), None), jnp.zeros_like(f(x)), None, length=2)[0]


def until(f):
    return lambda x: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1]


def either(f):
    return lambda x: lax.cond(True, f, f, x)


def message(f, *args) -> str:
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        f(*args)
    return str(caught.value)


def line_of(f) -> str:
    return f"test_sources.py:{inspect.getsourcelines(f)[1] + 1} ({f.__name__})"


@pytest.mark.share(2)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, scan, either, jax.checkpoint])
@pytest.mark.parametrize("outer", [lambda f: f, jax.jit])
def test_a_nan_of_a_backward_pass_is_at_the_line_that_is_differentiated(wrap, outer):
    text = message(outer(jax.grad(wrap(norm))), jnp.zeros(3))
    assert text.endswith(f"{line_of(norm)}, in its derivative")
    text = message(outer(jax.vmap(jax.grad(wrap(norm)))), jnp.zeros((2, 3)))
    assert text.endswith(f"{line_of(norm)}, in its derivative")


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, scan, either, until, jax.vmap, jax.checkpoint])
@pytest.mark.parametrize("outer", [lambda f: f, jax.jit])
def test_a_nan_inside_is_at_its_line(wrap, outer):
    x = -jnp.ones(2)
    assert message(outer(wrap(logarithm)), x) == f"invalid value (nan) encountered in log at {message_place(logarithm)}"


def message_place(f) -> str:
    return f"{__file__}:{inspect.getsourcelines(f)[1] + 1} ({f.__name__})"


@pytest.mark.parametrize("outer", [lambda f: f, jax.jit])
def test_a_nan_in_a_rule_is_at_the_line_of_the_rule(outer):
    def by_jvp(x):
        f = jax.custom_jvp(lambda x: x * 1)
        f.defjvp(lambda p, t: (p[0], logarithm(p[0]) * t[0]))
        return jax.grad(f)(x)

    def by_vjp(x):
        f = jax.custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x, x), lambda x, ct: (logarithm(x) * ct,))
        return jax.grad(f)(x)

    for f in (by_jvp, by_vjp):
        assert line_of(logarithm) in message(outer(f), -1.0)


def test_a_nan_that_is_given_is_said_to_be():
    nans = jnp.full(2, jnp.nan)
    assert message(jax.jit(lambda x: x * 2), nans).endswith("operand 0 of it is nan already")
    assert message(jax.jit(lambda x: x * jnp.nan), 1.0).endswith("operand 1 of it is nan already")
    assert message(jax.jit(lambda x: x), nans).endswith("argument 0 of it is nan already")
    assert "encountered in cond" in message(jax.jit(lambda k: lax.cond(k > 2, lambda: jnp.nan, lambda: 0.0)), 3)


def test_cells_of_notebooks_are_named_by_their_numbers(monkeypatch):
    naming = lambda name: ("Cell", "In[3]") if name == __file__ else None
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=naming))
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    (eqn,) = jax.make_jaxpr(norm_of_one)(1.0).eqns
    assert str(eqn.source) == f"Cell In[3]:{norm_of_one.__code__.co_firstlineno + 1} (norm_of_one)"


def norm_of_one(x):
    return abs(x)
