"""Tokens: ``create_token``, ``after_all``, and their way through every transformation (as JAX 0.10.2 does it)."""

import copy
import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core import abstract_token
from catena.extend.core import AbstractToken, Token

FLAGS = ("jax_enable_checks", "jax_debug_nans", "jax_debug_key_reuse", "jax_check_tracer_leaks", "jax_enable_x64")


@pytest.fixture
def token():
    return lax.create_token()


def is_token(x) -> bool:
    return type(x) is Token


# ---- the value


def test_a_token_is_a_value_but_no_array(token):
    assert is_token(token)
    assert not isinstance(token, jax.Array)
    assert token.block_until_ready() is None
    assert repr(token) == "Token()"
    assert is_token(lax.create_token(1.0))  # the argument is ignored
    assert token != lax.create_token()


def test_a_token_is_a_leaf(token):
    assert jax.tree.leaves({"a": token, "b": [token]}) == [token, token]
    assert jax.block_until_ready([token, jnp.ones(2)])[0] is token
    assert is_token(jax.device_put(token))
    assert is_token(jax.device_put(token, jax.devices()[0]))
    assert jax.device_get(token) is token


def test_its_type_is_one_object(token):
    assert jax.typeof(token) is AbstractToken() is abstract_token
    assert repr(jax.typeof(token)) == "AbstractToken()"
    assert jax.typeof(token).str_short() == "Tok"
    assert pickle.loads(pickle.dumps(abstract_token)) is abstract_token
    assert copy.deepcopy(abstract_token) is abstract_token


def test_copies_are_tokens(token):
    for other in (copy.copy(token), copy.deepcopy(token), pickle.loads(pickle.dumps(token))):
        assert is_token(other)


def test_only_functions_make_tokens():
    with pytest.raises(TypeError, match="create_token"):
        Token(None)


@pytest.mark.parametrize(
    "use",
    [jnp.asarray, jnp.array, jnp.sin, lax.sin, lambda t: jnp.add(t, 1), lambda t: t + 1, lambda t: lax.add(t, t), float]
    + [lambda t: lax.reshape(t, (1,)), lambda t: lax.select(True, t, t), lambda t: jnp.where(True, t, t), len]
    + [lambda t: jnp.stack([t, t]), lambda t: lax.convert_element_type(t, float)],
)
def test_arithmetic_refuses_tokens(use, token):
    with pytest.raises(TypeError):
        use(token)


@pytest.mark.parametrize(
    "use", [lambda t: lax.sin(t), lambda t: lax.broadcast(t, (2,)), lambda t: t + 1, lambda t: jnp.stack([t, t])]
)
def test_traced_tokens_are_refused_by_name(use, token):
    with pytest.raises(TypeError, match="takes arrays, but .*operand.* is a token"):
        jax.jit(use)(token)


# ---- after_all


def test_after_all_gives_a_token(token):
    for out in (lax.after_all(), lax.after_all(token), lax.after_all(token, token, lax.create_token())):
        assert is_token(out)


@pytest.mark.parametrize("traced", [False, True])
def test_after_all_takes_tokens_only(traced, token):
    call = jax.make_jaxpr(lax.after_all) if traced else lax.after_all
    with pytest.raises(TypeError, match=r"Arguments to after_all must be tokens, got float32\[\] at position 1"):
        call(token, 1.0)
    with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
        call(jnp.ones(2))
    with pytest.raises(TypeError, match="must be tokens"):
        call(np.zeros((), jax.dtypes.float0))  # looks like a token, but is an array


def test_after_all_refuses_what_is_no_value(token):
    for bad in (None, [token], "a"):
        with pytest.raises(TypeError, match="not a valid JAX type"):
            lax.after_all(bad)


# ---- traced and compiled


def test_jaxprs(token):
    closed = jax.make_jaxpr(lambda a: lax.after_all(a, lax.create_token()))(token)
    assert str(closed) == "{ lambda ; a:Tok. let b:Tok = create_token; c:Tok = after_all a b in (c,) }"
    assert [eqn.primitive for eqn in closed.eqns] == [lax.create_token_p, lax.after_all_p]
    assert is_token(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, token)[0])
    assert is_token(jax.extend.core.jaxpr_as_fun(closed)(token)[0])
    jax.core.check_jaxpr(closed)


def test_a_token_closed_over_is_a_constant(token):
    assert str(jax.make_jaxpr(lambda: lax.after_all(token))()) == "{ lambda a:Tok; . let b:Tok = after_all a in (b,) }"
    assert is_token(jax.jit(lambda: lax.after_all(token))())
    assert is_token(jax.jit(lambda: token)())


def test_shapes_without_values(token):
    assert jax.eval_shape(lax.create_token) is abstract_token
    assert jax.eval_shape(lambda a: (a, lax.after_all(a)), token) == (abstract_token, abstract_token)
    assert jax.eval_shape(lambda a: lax.after_all(a), abstract_token) is abstract_token
    assert jax.jit(lax.after_all).lower(token).out_info is abstract_token


@pytest.mark.parametrize("options", [{}, {"keep_unused": True}, {"donate_argnums": (0,)}, {"inline": True}])
def test_jit_takes_and_returns_tokens(options, token):
    f = jax.jit(lambda a, x: (lax.after_all(a, lax.create_token()), x + 1, a), **options)
    for _ in range(3):  # traced, and twice the short way
        for x in (2.0, jnp.full(3, 2.0)):
            out, y, same = f(token, x)
            assert is_token(out) and is_token(same)
            np.testing.assert_array_equal(y, np.add(x, 1))


def test_stages(token):
    lowered = jax.jit(lambda a, x: (lax.after_all(a), 2 * x)).lower(token, 1.0)
    assert "return" in lowered.as_text()
    out, y = lowered.compile()(token, 1.0)
    assert is_token(out) and y == 2


def test_nested_jit(token):
    inner = jax.jit(lambda b, x: (lax.after_all(b), jnp.sin(x)))
    outer = jax.jit(lambda a, x: inner(lax.after_all(a, inner(lax.create_token(), x)[0]), x))
    out, y = outer(token, 1.0)
    assert is_token(out)
    np.testing.assert_allclose(y, np.sin(1.0), rtol=1e-6)


def test_without_jit(token):
    with jax.disable_jit():
        assert is_token(jax.jit(lambda a: lax.after_all(a))(token))
        assert is_token(lax.scan(lambda c, x: (lax.after_all(c), x), token, jnp.ones(3))[0])


@pytest.mark.parametrize("flag", FLAGS)
def test_under_flags(flag, token):
    jax.config.update(flag, True)
    try:
        out, y = jax.jit(lambda a, x: (lax.after_all(a), x + 1))(lax.after_all(token), 1.0)
    finally:
        jax.config.update(flag, False)
    assert is_token(out) and y == 2


def test_effects_happen_in_programs_that_take_tokens(token):
    seen = []

    @jax.jit
    def noted(a, x):
        jax.debug.callback(lambda v: seen.append(float(v)), x)
        return lax.after_all(a)

    assert is_token(jax.jit(lambda a, x: noted(noted(a, x), x + 1))(token, 1.0))
    assert seen == [1.0, 2.0]


# ---- differentiated

SQUARES = {
    "side": lambda x: (lax.after_all(lax.create_token(x)), x * x)[1],
    "jit": jax.jit(lambda x: (lax.after_all(lax.create_token(x)), x * x)[1]),
    "checkpoint": jax.checkpoint(lambda x: (lax.after_all(lax.create_token(x)), x * x)[1]),
}


@pytest.mark.parametrize("f", SQUARES.values(), ids=SQUARES.keys())
def test_derivatives_beside_a_token(f):
    assert jax.grad(f)(3.0) == 6
    assert jax.jit(jax.grad(f))(3.0) == 6
    assert jax.hessian(f)(3.0) == 2
    assert jax.jvp(f, (3.0,), (1.0,)) == (9, 6)


def passing(x, a):
    """The square, and a token after ``a``."""
    return x * x, lax.after_all(a)


@pytest.mark.parametrize("f", [passing, jax.jit(passing), jax.checkpoint(passing)], ids=["plain", "jit", "checkpoint"])
def test_derivatives_past_tokens(f, token):
    y, after = f(3.0, token)
    assert y == 9 and is_token(after)
    assert jax.grad(lambda x: f(x, token)[0])(3.0) == 6
    (value, after), gradient = jax.value_and_grad(f, has_aux=True)(3.0, token)
    assert value == 9 and gradient == 6 and is_token(after)
    (value, after), f_vjp = jax.vjp(f, 3.0, token)
    assert value == 9 and is_token(after)
    gradient, of_token = f_vjp((1.0, np.zeros((), jax.dtypes.float0)))
    assert gradient == 6 and of_token.dtype == jax.dtypes.float0


def test_the_tangent_of_a_token_is_nothing(token):
    nothing = np.zeros((), jax.dtypes.float0)
    (y, after), (dy, of_token) = jax.jvp(passing, (3.0, token), (1.0, nothing))
    assert (y, dy) == (9, 6) and is_token(after) and of_token.dtype == jax.dtypes.float0
    (y, after), linear = jax.linearize(lambda x: passing(x, token), 3.0)
    assert is_token(after) and linear(1.0)[0] == 6


def test_grad_by_or_of_a_token_is_refused(token):
    with pytest.raises(TypeError, match="real- or complex-valued inputs"):
        jax.grad(lambda a: 1.0)(token)
    with pytest.raises(TypeError, match="real-valued outputs"):
        jax.grad(lambda x: lax.create_token())(1.0)


def test_custom_jvp(token):
    @jax.custom_jvp
    def f(x, a):
        lax.after_all(lax.create_token(x))
        return passing(x, a)

    f.defjvp(lambda primals, tangents: (f(*primals), (7 * tangents[0], tangents[1])))
    y, after = jax.jit(f)(3.0, token)
    assert y == 9 and is_token(after)
    assert jax.grad(lambda x: f(x, token)[0])(3.0) == 7
    assert jax.jit(jax.grad(lambda x: f(x, token)[0]))(3.0) == 7


def test_custom_vjp(token):
    @jax.custom_vjp
    def f(x, a):
        return passing(x, a)

    f.defvjp(lambda x, a: (passing(x, a), x), lambda residual, cts: (7 * cts[0], None))
    assert is_token(f(3.0, token)[1])
    assert jax.grad(lambda x: f(x, token)[0])(3.0) == 7


# ---- vectorised: one token for all examples


def test_vmap_beside_a_token():
    out = jax.vmap(lambda x: (lax.after_all(lax.create_token(x)), x + 1)[1])(jnp.arange(3.0))
    np.testing.assert_array_equal(out, [1, 2, 3])


@pytest.mark.parametrize("f", [passing, jax.jit(passing), jax.checkpoint(passing)], ids=["plain", "jit", "checkpoint"])
def test_an_unmapped_token_goes_through_vmap(f, token):
    y, after = jax.vmap(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(3.0), token)
    assert is_token(after)
    np.testing.assert_array_equal(y, [0, 1, 4])


def test_a_token_cannot_be_mapped(token):
    with pytest.raises(ValueError, match="rank"):
        jax.vmap(lambda a: a)(token)
    with pytest.raises(TypeError, match="out_axes None"):
        jax.vmap(lambda x: lax.create_token())(jnp.ones(2))


# ---- in loops and branches (all of which fail in JAX)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_loops_carry_tokens(around, token):
    loops = {
        "scan": lambda x, a: lax.scan(lambda c, i: ((c[0] * x, lax.after_all(c[1])), i), (x, a), jnp.ones(3))[0],
        "fori": lambda x, a: lax.fori_loop(0, 3, lambda i, c: (c[0] * x, lax.after_all(c[1], a)), (x, a)),
        "while": lambda x, a: lax.while_loop(lambda c: c[0] < 16, lambda c: (c[0] * x, lax.after_all(c[1])), (x, a)),
    }
    for name, loop in loops.items():
        y, after = around(loop)(2.0, token)
        assert y == 16 and is_token(after), name
        assert jax.grad(around(lambda x, loop=loop: loop(x, token)[0]))(2.0) == 32, name
    assert is_token(around(lambda a: lax.fori_loop(0, 3, lambda i, c: lax.after_all(c), a))(token))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_branches_pass_tokens(around, token):
    f = around(lambda p, x, a: lax.cond(p, passing, lambda x, a: (x, a), x, a))
    for pred, expected in ((True, 9), (False, 3)):
        y, after = f(pred, 3.0, token)
        assert y == expected and is_token(after)
    assert jax.grad(lambda x: f(True, x, token)[0])(3.0) == 6
    with pytest.raises(TypeError, match="Tok"):
        around(lambda a: lax.cond(True, lambda: a, lambda: 1.0))(token)
    with pytest.raises(TypeError, match="Tok"):  # an array without data is no token
        around(lambda a: lax.cond(True, lambda: a, lambda: np.zeros((), jax.dtypes.float0)))(token)


def test_vectorised_loops_carry_one_token(token):
    loop = lambda x: lax.scan(lambda c, i: ((c[0] * x, lax.after_all(c[1])), i), (x, token), jnp.ones(3))[0][0]  # noqa: E731
    np.testing.assert_array_equal(jax.vmap(loop)(jnp.arange(3.0)), [0, 1, 16])


def test_tokens_cannot_be_stacked(token):
    with pytest.raises(TypeError, match="a token has no shape: it cannot be mapped, stacked or converted"):
        lax.scan(lambda c, x: (c, lax.create_token()), 1.0, jnp.ones(3))
    with pytest.raises(TypeError, match="a token has no shape"):
        lax.map(lambda x: lax.create_token(), jnp.ones(3))


def test_barriers_pass_tokens(token):
    after, y = jax.jit(lambda a, x: lax.optimization_barrier((lax.after_all(a), x + 1)))(token, 1.0)
    assert is_token(after) and y == 2


# ---- arrays without data are held like tokens in programs


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_float0_in_loops_and_branches(around):
    nothing = np.zeros((2,), jax.dtypes.float0)
    count = around(lambda a: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, a)))(nothing)
    assert count[0] == 3 and count[1].dtype == jax.dtypes.float0 and count[1].shape == (2,)
    kept = around(lambda a: lax.cond(True, lambda x: x, lambda x: x, a))(nothing)
    assert kept.dtype == jax.dtypes.float0
    assert around(lambda a, x: lax.optimization_barrier((a, x)))(nothing, 1.0)[1] == 1
