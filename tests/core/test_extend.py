"""Primitives of users, in JAX's manner, under every transformation."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.context import context, set_trace
from catena.core.leaks import running
from catena.core.primitive import Primitive as CorePrimitive
from catena.core.primitive import registry, unclaimed
from catena.core.trace import Trace, Tracer
from catena.core.zeros import get_aval
from catena.extend import core
from catena.interpreters import ad, batching, mlir, xla
from catena.interpreters.rules import RuleTable

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


def test_rules_of_known_primitives_take_the_parameters_that_equations_show():
    """Interpreters of users call ``rule(..., **equation.params)``."""
    (equation,) = jax.make_jaxpr(jnp.tanh)(X).eqns
    assert "accuracy" in equation.params
    _, tangent = ad.primitive_jvps[equation.primitive]((X,), (X,), **equation.params)
    close(tangent, X * (1 - jnp.tanh(X) ** 2))
    out, dim = batching.primitive_batchers[equation.primitive]((X,), (0,), **equation.params)
    close(out, jnp.tanh(X))
    (equation,) = jax.make_jaxpr(lambda x: jax.lax.dot_general(x, x, (((0,), (0,)), ((), ()))))(X).eqns
    assert "out_sharding" in equation.params
    linear = ad.UndefinedPrimal(jax.typeof(X))
    cotangents = ad.primitive_transposes[equation.primitive](jnp.float32(2), linear, X, **equation.params)
    close(cotangents[0], 2 * X)


def test_a_user_s_rule_of_a_known_primitive_is_given_the_parameters_that_equations_show():
    given, rule = [], ad.primitive_jvps[jax.lax.tanh_p]
    before = jax.lax.tanh_p.jvp

    def doubled(primals, tangents, *, accuracy):
        given.append(accuracy)
        out, tangent = rule(primals, tangents, accuracy=accuracy)
        return out, 2 * tangent

    ad.primitive_jvps[jax.lax.tanh_p] = doubled
    try:
        close(jax.jvp(jnp.tanh, (X,), (X,))[1], 2 * X * (1 - jnp.tanh(X) ** 2))
    finally:
        jax.lax.tanh_p.jvp = before
    assert given == [None]


def exactly_not_implemented(message: str, f, *args):
    with pytest.raises(NotImplementedError, match=message) as caught:
        f(*args)
    assert caught.type is NotImplementedError


def test_missing_rules_are_said():
    p = core.Primitive("bare")
    exactly_not_implemented("Abstract evaluation for 'bare' not implemented", jax.jit(p.bind), X)
    exactly_not_implemented("Abstract evaluation for 'bare' not implemented", jax.make_jaxpr(p.bind), X)
    p.def_abstract_eval(lambda x: x)
    exactly_not_implemented("Evaluation rule for 'bare' not implemented", p.bind, X)
    exactly_not_implemented("MLIR translation rule for primitive 'bare' not found", jax.jit(p.bind), X)
    exactly_not_implemented("Differentiation rule for 'bare'", jax.grad(lambda x: p.bind(x).sum()), X)
    exactly_not_implemented("Batching rule for 'bare' not implemented", jax.vmap(p.bind), X)
    exactly_not_implemented("Transpose rule .* for 'bare'", jax.linear_transpose(p.bind, X), X)


def test_a_rule_that_writes_mlir_is_refused_when_a_program_with_it_is_compiled():
    p = core.Primitive("foreign")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: x + 1)
    rule = lambda ctx, x: [mlir.ir.Attribute.parse("1", x)]
    assert mlir.register_lowering(p, rule, inline=False) is rule
    assert mlir.register_lowering(p)(rule) is rule
    close(p.bind(X), X + 1)
    assert "foreign" in str(jax.make_jaxpr(jax.jit(p.bind))(X))
    exactly_not_implemented(
        "primitive 'foreign' cannot be compiled: its rule <lambda> .* writes MLIR", jax.jit(p.bind), X
    )
    mlir.register_lowering(p, rule, platform="tpu")
    mlir.register_lowering(p, mlir.lower_fun(lambda x: x + 1, multiple_results=False))
    close(jax.jit(p.bind)(X), X + 1)


@pytest.mark.parametrize(("out", "error"), [([1], ValueError), (None, TypeError), (3.0, TypeError)])
def test_types_that_are_none(out, error):
    p = core.Primitive("mistyped")
    p.def_abstract_eval(lambda x: out)
    with pytest.raises(error, match="mistyped"):
        jax.make_jaxpr(p.bind)(X)


def test_rules_are_given_tuples():
    p, _ = scaled()
    given = []
    rule = ad.primitive_jvps[p]

    def jvp(primals, tangents, **params):
        given.extend([primals, tangents])
        return rule(primals, tangents, **params)

    def batch(args, dims, **params):
        given.extend([args, dims])
        return p.bind(*args, **params), 0

    ad.primitive_jvps[p], batching.primitive_batchers[p] = jvp, batch
    assert ad.primitive_jvps[p] is jvp and batching.primitive_batchers[p] is batch
    f = lambda x: p.bind(x, x, factor=1.0)
    jax.jvp(f, (X,), (X,)), jax.vmap(f)(X)
    assert len(given) == 4 and all(type(x) is tuple for x in given)


# ---- effects of one's own


class Noise(core.Effect):
    pass


def noisy():
    p = core.Primitive("noisy")
    p.def_effectful_abstract_eval(lambda x: (x, {Noise()} if x.shape else set()))
    calls = []
    p.def_impl(lambda x: calls.append(1) or x)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), *tangents)
    return p, calls


def test_effects_of_ones_own_keep_equations():
    p, calls = noisy()
    f = lambda x: (p.bind(x), x + 1)[1]
    for traced in (f, jax.jit(f), jax.grad(lambda x: f(x).sum()), jax.custom_jvp(f)):
        if isinstance(traced, jax.custom_jvp):
            traced.defjvp(lambda primals, tangents: (f(*primals), *tangents))
        closed = jax.make_jaxpr(traced)(X)
        assert closed.effects == {Noise()} and "noisy" in str(closed)
        core.check_jaxpr(closed)
    assert not jax.make_jaxpr(p.bind)(1.0).effects  # it says so by the type
    assert not calls
    close(f(X), X + 1), close(jax.checkpoint(f)(X), X + 1)
    assert len(calls) == 2


def test_effects_of_ones_own_are_refused_where_nobody_knows_what_they_mean():
    p, _ = noisy()
    f = lambda x: p.bind(x)
    loops = (
        lambda x: jax.lax.cond(True, f, lambda x: x, x),
        lambda x: jax.lax.while_loop(lambda x: x[0] < 9, lambda x: f(x) + 1, x),
        lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, length=2),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, x: f(x), x),
    )
    for g in loops:
        exactly_not_implemented("Effects not supported in `", jax.make_jaxpr(g), X)
    exactly_not_implemented("Effects not supported in partial-eval", jax.grad(jax.checkpoint(lambda x: f(x).sum())), X)
    with pytest.raises(ValueError, match="Cannot lower jaxpr with effects: {Noise}"):
        jax.jit(f)(X)


# ---- implementations


def test_implementations_can_be_exchanged_and_put_back():
    sine, calls = jax.lax.sin_p, []
    before, rule = sine.impl, sine.evaluate
    close(before(X), np.sin(X))
    try:
        sine.def_impl(lambda *args, **params: calls.append(1) or before(*args, **params))
        close(jax.lax.sin(X), np.sin(X))
        assert len(calls) == 1
        jax.checkpoint(jax.lax.sin)(X)
        assert len(calls) == 2
    finally:
        sine.impl = before
    assert sine.evaluate is rule and not sine.takes_arrays and not sine.interpreted
    jax.lax.sin(X)
    assert len(calls) == 2


def test_every_primitive_has_an_implementation():
    for p in registry.values():
        assert callable(p.impl)


def test_what_only_has_an_implementation_is_checkpointed_step_by_step():
    p = core.Primitive("tripled_here")
    p.def_impl(lambda x: 3 * x)
    p.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), 3 * tangents[0])
    f = lambda x: p.bind(x) * x
    assert float(jax.checkpoint(f)(2.0)) == 12.0
    assert float(jax.grad(jax.checkpoint(f))(2.0)) == 12.0
    assert float(jax.grad(jax.checkpoint(jax.checkpoint(f)))(2.0)) == 12.0


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


# ---- a transformation of one's own: bounds of what a function returns, from bounds of its argument


class IntervalTracer(Tracer):
    __slots__ = ("low", "high")

    def __init__(self, trace, low, high):
        super().__init__(trace, get_aval(low))
        self.low, self.high = low, high


class IntervalTrace(Trace):
    name = "interval arithmetic"

    def __init__(self, parent, rules):
        super().__init__(parent)
        self.rules = rules

    def bounds(self, x):
        return (x.low, x.high) if type(x) is IntervalTracer and x._trace is self else (x, x)

    def process(self, primitive, args, params):
        with set_trace(self.parent):
            if not any(type(x) is IntervalTracer and x._trace is self for x in args):
                return primitive.bind(*args, **params)
            low, high = self.rules.of(primitive)(*map(self.bounds, args), **params)
        return IntervalTracer(self, low, high)


@pytest.fixture
def interval_rules():
    table = RuleTable("interval", "no bounds are known of '{}'")
    yield table
    table.remove()


def multiplied(x, y):
    products = jnp.stack([a * b for a in x for b in y])
    return products.min(0), products.max(0)


def bounds_of(f, rules):
    def run(low, high):
        with running(IntervalTrace(context.trace, rules)) as trace:
            out = trace.bounds(f(IntervalTracer(trace, low, high)))
            del trace
        return out

    return run


def test_a_transformation_with_a_table_of_rules_of_its_own(interval_rules):
    interval_rules[lax.neg_p] = lambda x: (-x[1], -x[0])
    interval_rules[lax.add_p] = lambda x, y: (x[0] + y[0], x[1] + y[1])
    lax.mul_p.interval = multiplied
    assert set(interval_rules) == {lax.neg_p, lax.add_p, lax.mul_p} and len(interval_rules) == 3
    assert lax.sub_p not in interval_rules and lax.sub_p.interval is None

    f = bounds_of(lambda x: -(x * x) + 3.0 * x + 1.0, interval_rules)
    low, high = jnp.float32(-1.0), jnp.float32(2.0)
    close(f(low, high), (-4 - 3 + 1, 2 + 6 + 1))
    close(jax.jit(f)(low, high), f(low, high))
    close(jax.vmap(f)(jnp.stack([low, low]), jnp.stack([high, high]))[1], jnp.full(2, 9.0))
    close(jax.grad(lambda h: f(low, h)[1])(high), -low + 3.0)
    with pytest.raises(NotImplementedError, match="no bounds are known of 'sin'"):
        bounds_of(jnp.sin, interval_rules)(low, high)


def test_a_new_transformation_looks_into_functions_with_derivatives_of_their_own(interval_rules):
    interval_rules[lax.neg_p] = lambda x: (-x[1], -x[0])
    forward, backward = jax.custom_jvp(lambda x: -x), jax.custom_vjp(lambda x: -x)
    forward.defjvp(lambda *_: None)
    backward.defvjp(lambda *_: None, lambda *_: None)
    for f in (forward, backward):
        close(bounds_of(f, interval_rules)(jnp.float32(1.0), jnp.float32(2.0)), (-2.0, -1.0))
    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked trace of interval arithmetic"):
        kept = []
        bounds_of(lambda x: kept.append(-x) or x, interval_rules)(jnp.float32(1.0), jnp.float32(2.0))


def test_primitives_take_rules_of_every_table(interval_rules):
    rule = lambda x: x
    try:
        p = CorePrimitive("kept_as_it_is", interval=rule)
        assert interval_rules[p] is rule and p.rule("interval") is rule
        del interval_rules[p]
        with pytest.raises(KeyError):
            interval_rules[p]
        late = CorePrimitive("made_before_its_table", interval_by_name=rule)
        table = RuleTable("interval_by_name")
        assert table[late] is rule and lax.neg_p.interval_by_name is None and not unclaimed
        table.remove()
        with pytest.raises(AttributeError):
            lax.neg_p.interval_by_name
    finally:
        for name in ("kept_as_it_is", "made_before_its_table"):
            registry.pop(name, None)
    for taken in ("bind", "jvp", "interval", "two words"):
        with pytest.raises(ValueError, match="a table of rules cannot be called"):
            RuleTable(taken)
    with pytest.raises(ValueError, match="a table of rules cannot be called 'bind'"):
        CorePrimitive("bound", bind=rule)
    registry.pop("bound", None)


def test_rules_of_linear_and_bilinear_primitives_by_their_short_ways():
    def primitive(name, f):
        p = core.Primitive(name)
        p.def_impl(lambda *args: f(*args))
        p.def_abstract_eval(lambda *avals: jax.core.ShapedArray(avals[0].shape, avals[0].dtype))
        return p

    product = primitive("product", jnp.multiply)
    ad.defbilinear(product, lambda ct, x, y: product.bind(ct, y), lambda ct, x, y: product.bind(x, ct))
    assert jax.grad(lambda x, y: product.bind(x, y) * 2.0, (0, 1))(3.0, 4.0) == (8.0, 6.0)
    assert jax.jvp(lambda x: product.bind(x, x), (3.0,), (1.0,)) == (9.0, 6.0)
    half = primitive("half", lambda x: jnp.asarray(x) / 2)
    ad.deflinear(half, lambda ct: [half.bind(ct)])
    assert jax.grad(lambda x: half.bind(x) * half.bind(x))(3.0) == 1.5
    assert jax.jvp(half.bind, (3.0,), (1.0,)) == (1.5, 0.5)
    assert ad.get_primitive_transpose(half) is ad.primitive_transposes[half]
    with pytest.raises(NotImplementedError, match="Transpose rule .* for 'alone' not implemented"):
        ad.get_primitive_transpose(core.Primitive("alone"))
    zeros = ad.zeros_like_aval(jax.core.ShapedArray((2,), np.dtype("float32")))
    assert zeros.shape == (2,) and not zeros.any() and ad.add_jaxvals(1.0, 2.0) == 3.0


def test_primitives_that_say_by_methods_what_they_are():
    class Tag(core.Primitive):
        multiple_results = True

        def __init__(self, name):
            super().__init__(name)
            mlir.register_lowering(self, lambda context, *args, count: args[:count])
            ad.primitive_jvps[self] = lambda xs, ts, count: (self.bind(*xs, count=count), ts[:count])
            batching.primitive_batchers[self] = lambda xs, dims, count: (self.bind(*xs, count=count), dims[:count])

        def impl(self, *args, count):
            return args[:count]

        def abstract_eval(self, *avals, count):
            return avals[:count], {Tagged()}

    class Tagged(core.Effect):
        pass

    tag = Tag("tag_by_methods")
    f = lambda x: tag.bind(x, 2 * x, count=1)[0] ** 2
    np.testing.assert_array_equal(f(X), X**2)
    np.testing.assert_array_equal(tag.impl(X, X, count=1)[0], X)
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(X), 2 * X)
    assert jax.make_jaxpr(f)(1.0).effects == {Tagged()}
    tag.def_impl(lambda *args, count: [-args[0]])
    assert tag.bind(X, count=1)[0][0] == -1
