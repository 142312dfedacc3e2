"""Compilation rules in JAX's form, ``rule(ctx, *values, **params)``, and what they are told."""

import functools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.effects import OrderedIOEffect
from catena.extend.core import Primitive
from catena.interpreters import mlir

X = np.arange(3.0, dtype=np.float32)


def compiled(rule, *args, several: bool = False, **params):
    """What a primitive of as many results as operands gives, under ``jit``, whose rule this is."""
    p = Primitive("ruled")
    p.multiple_results = several
    p.def_abstract_eval(lambda *avals, **_: list(avals) if several else avals[0])
    mlir.register_lowering(p, rule)
    return jax.jit(lambda *xs: p.bind(*xs, **params))(*args)


def double(ctx, x):
    return mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx, x)


RULES = {  # what they give for x = [0, 1, 2]
    "identity": (lambda ctx, x: [x], X),
    "another rule": (double, 2 * X),
    "two rules": (lambda ctx, x: double(ctx, *double(ctx, x)), 4 * X),
    "nested results": (lambda ctx, x: [[x]], X),
    "constant": (lambda ctx, x: [x * mlir.ir_constant(3.0)], 3 * X),
    "a known constant": (lambda ctx, x: [mlir.ir_constant(X, const_lowering={(id(X), None): x})], X),
    "call": (
        lambda ctx, x: mlir.core_call_lowering(ctx, x, name="f", call_jaxpr=jax.make_jaxpr(jnp.exp)(X)),
        np.exp(X),
    ),
    "callback": (
        lambda ctx, x: mlir.emit_python_callback(
            ctx, lambda y: [np.asarray(y) + 1], None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )[0],
        X + 1,
    ),
}


def test_rules():
    outs = jax.jit(lambda x: {name: compiled(rule, x) for name, (rule, _) in RULES.items()})(X)
    for name, (_, expected) in RULES.items():
        np.testing.assert_allclose(outs[name], expected, rtol=1e-6, err_msg=name)


def test_what_a_rule_is_told():
    told = []

    def rule(ctx, x, y, *, n):
        told.append(ctx)
        ctx.module_context.add_keepalive(told)
        return [x, mlir.lower_fun(functools.partial(lax.integer_pow, y=n), multiple_results=False)(ctx, y)]

    a, b = compiled(rule, X, jnp.ones((2, 2)) * 3, several=True, n=2)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, np.full((2, 2), 9))
    (ctx,) = told
    assert str(ctx.primitive) == "ruled" and ctx.platforms == ctx.module_context.platforms == ("cpu",)
    assert [a.shape for a in ctx.avals_in] == [a.shape for a in ctx.avals_out] == [(3,), (2, 2)]
    assert isinstance(ctx, mlir.LoweringRuleContext) and isinstance(ctx.module_context, mlir.ModuleContext)
    assert isinstance(ctx.module_context.axis_context, mlir.ShardingContext) and not ctx.is_forward_compat()
    assert ctx.module_context.keepalives == [told] and ctx.module_context.get_backend().platform == "cpu"
    assert ctx.replace(avals_in=()).avals_in == () and not ctx.tokens_in.items()
    ctx.set_tokens_out(mlir.TokenSet())
    with pytest.raises(ValueError, match="are set already"):
        ctx.set_tokens_out(mlir.TokenSet())


def test_jaxprs_in_rules():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + X)(X)

    def rule(ctx, x):
        empty = mlir.TokenSet()
        outs, tokens = mlir.jaxpr_subcomp(
            ctx.module_context, closed.jaxpr, ctx.name_stack, empty, closed.consts, x,
            dim_var_values=(), const_lowering={}, outer_traceback=None,
        )  # fmt: skip
        assert tokens is empty
        return outs

    np.testing.assert_allclose(compiled(rule, X), np.sin(X) + X, rtol=1e-6)


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        (lambda ctx, x: [mlir.ir.Operation()], NotImplementedError, "there is none here .*no attribute 'Operation'"),
        (lambda ctx, x: [x.owner], NotImplementedError, "writes MLIR, and there is none here .AttributeError"),
        (lambda ctx, x: [x.type], NotImplementedError, "which is no value"),
        (lambda ctx, x: x, NotImplementedError, "no sequence of values"),
        (lambda ctx, x: ["x"], NotImplementedError, "'x' of .* which is no value"),
        (lambda ctx, x: [x, x], ValueError, "gave 2 values, but 'ruled' has 1 results"),
        (lambda ctx, x: 1 / 0, ZeroDivisionError, "division"),
    ],
)
def test_rules_that_are_none(rule, error, message):
    with pytest.raises(error, match=message):
        compiled(rule, X)


class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees


def test_constants_of_ones_own():
    mlir.register_constant_handler(Celsius, lambda x, aval: [mlir.ir_constant(x.degrees + 273.0, aval=aval)])
    assert mlir.ir_constant(Celsius(7.0)) == 280 and mlir.ir_constants(Celsius(7.0))[0].dtype == np.float32
    assert mlir.ir_constant(2, aval=jax.typeof(jnp.float16(0))).dtype == np.float16
    with pytest.raises(ValueError, match="is no constant of type"):
        mlir.ir_constant(2, aval=jax.typeof(X))


def test_other_rules_for_one_program():
    traced = jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1).trace(2.0)
    rules = ((lax.sin_p, mlir.lower_fun(lambda x, **params: 3 * x, multiple_results=False)),)
    lowered = traced.lower(_private_parameters=mlir.LoweringParameters(override_lowering_rules=rules))
    assert lowered.compile()(2.0) == 7
    np.testing.assert_allclose(traced.lower().compile()(2.0), np.sin(2.0) + 1, rtol=1e-6)
    assert traced.lojax.jaxpr is traced.jaxpr
    with pytest.raises(TypeError, match="for_export must be a bool, got 3"):
        mlir.LoweringParameters(for_export=3)


def test_token_sets():
    effect = OrderedIOEffect()
    tokens = mlir.TokenSet.create([effect])
    assert tokens.effects() == {effect} and isinstance(tokens.get(effect), mlir.Token)
    assert tokens.subset([]).items() == [] and mlir.TokenSet().update_tokens(tokens).items() == tokens.items()
    with pytest.raises(KeyError):
        mlir.TokenSet().get(effect)
