"""The parts of the language that libraries touch: types, traces, equations, primitives that call functions."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.core.flat_tree import FlatTree
from catena.experimental.layout import Format, Layout
from catena.extend import core
from catena.extend import linear_util as lu
from catena.extend.source_info_util import NameStack
from catena.interpreters import ad, pxla
from catena.interpreters import partial_eval as pe

X = jnp.arange(6.0).reshape(2, 3)
AVAL = jax.typeof(X)


def test_flat_trees():
    ft = FlatTree.flatten({"b": (2, 3), "a": 1})
    assert ft.vals == (1, 2, 3) and len(ft) == 3 and ft == FlatTree.flatten({"a": 1, "b": (2, 3)})
    assert ft.map2(lambda a, b: a * b, [10, 20, 30]).unflatten() == {"a": 10, "b": (40, 90)}
    assert len({ft, ft.update(ft.vals)}) == 1
    with pytest.raises(ValueError, match="a tree of 3 leaves was given 2"):
        ft.update([1, 2])


def test_types_say_what_values_are_made_of():
    for x, aval in [(X, AVAL), (lax.create_token(), core.AbstractToken())]:
        assert aval.raise_val2(aval.lower_val2(x)) is x and aval.lo_ty_qdd(None) == [aval]
    with pytest.raises(TypeError, match="qdd must be None, got 3"):
        AVAL.lo_ty_qdd(3)


def test_types_give_members_to_values():
    assert AVAL.itemsize.fget(X) == 4 and AVAL.nbytes.fget(X) == 24 and AVAL.array_abstraction_level == 2
    assert AVAL.__array_namespace__.fun(X) is jnp
    assert jax.make_jaxpr(lambda x: x.broadcast((4,)))(X).out_avals[0].shape == (4, 2, 3)
    assert not hasattr(X, "broadcast")
    assert jax.core.Tracer.dimension_as_value is None


def test_values_are_staged():
    def f(x):
        trace = core.find_top_trace(())
        assert trace.stage_value(x) is x and isinstance(trace.stage_value(2.0), jax.core.Tracer)
        return x * trace.stage_value(X) + trace.stage_value(2.0)

    np.testing.assert_array_equal(jax.jit(f)(X), X * X + 2)
    assert core.find_top_trace(()).stage_value(X) is X


def test_equations_by_hand():
    (eqn,) = jax.make_jaxpr(jnp.sin)(X).eqns
    same = core.JaxprEqn(eqn.invars, eqn.outvars, eqn.primitive, eqn.params, effs=eqn.effects, source_info=None)
    assert same.replace(source=eqn.source_info) == eqn
    ctx = eqn.ctx._replace(compute_type="device_host")
    assert core.JaxprEqn(*eqn, ctx).ctx == ctx and eqn.ctx != ctx


def test_what_is_said_of_primitives():
    effectful = jax.make_jaxpr(jax.jit(lambda x: jax.debug.print("{}", x)))(1.0).eqns[0]
    assert effectful.primitive.is_effectful(effectful.params)
    assert not lax.sin_p.is_effectful({}) and not lax.sin_p.skip_canonicalization
    assert lax.neg_p.to_lojax(2.0) == -2


def test_calls_have_an_implementation():
    call = core.CallPrimitive("timed")
    assert call.impl(lu.wrap_init(lambda x: [x + 1]), 2) == call.bind(lu.wrap_init(lambda x: [x + 1]), 2) == [3]
    seen = []
    call.def_impl(lambda f, *args, **params: seen.append(params) or f.call_wrapped(*args))
    assert call.bind(lu.wrap_init(lambda x: [x + 1]), 2, name="g") == [3] and seen == [{"name": "g"}]


def test_linearize():
    point = FlatTree.flatten((2.0, 3.0))
    out, zeros, jaxpr, consts = ad.linearize(lambda x, y: {"a": x * y, "b": 1.0}, point)
    assert out.unflatten() == {"a": 6.0, "b": 1.0} and zeros == [False, True]
    assert jax.core.eval_jaxpr(jaxpr, consts, 1.0, 10.0) == [3 + 20]
    _, _, jaxpr, consts, aux = ad.linearize(lambda x, y: (x + y, [y]), point, has_aux=True, is_vjp=True)
    assert aux == [3.0] and jax.core.eval_jaxpr(jaxpr, consts, 1.0, 10.0) == [11]


def test_a_derivative_by_hand():
    with core.take_current_trace() as outside:
        trace = ad.JVPTrace(outside, core.TraceTag())
        x = ad.JVPTracer(trace, jnp.float32(2), jnp.float32(1))
        with core.set_current_trace(trace):
            y = jnp.sin(x)
    np.testing.assert_allclose([y.primal, y.tangent], [np.sin(2.0), np.cos(2.0)], rtol=1e-6)
    assert trace.main is trace.tag is not None


def test_rules_for_what_is_partly_known():
    p = core.Primitive("scaled")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y: [x, y])
    p.def_impl(lambda x, y: [x, y])
    pe.custom_partial_eval_rules[p] = lambda trace, x, y: [x, 3.0 * y]  # the first result stays known
    pvals = [pe.PartialVal.known(2.0), pe.PartialVal.unknown(jax.typeof(1.0))]
    _, out, _ = pe.trace_to_jaxpr_nounits(lu.wrap_init(lambda x, y: p.bind(x, y)), pvals)
    assert [v.is_known() for v in out] == [True, False]
    assert pe.custom_partial_eval_rules[p](None, 1.0, 2.0) == [1.0, 6.0]
    assert core.primitives.scan_p in pe.custom_partial_eval_rules and lax.sin_p not in pe.custom_partial_eval_rules


def test_formats():
    x = jax.device_put(X)
    rows = Layout((0, 1), tiling=())
    assert x.format == Format(rows, x.sharding) and x.T.format.layout.major_to_minor == (1, 0)
    assert jax.new_ref(x).format.layout == rows and jnp.zeros((0, 2)).format.layout == rows
    assert jnp.broadcast_to(jnp.ones(3), (2, 3)).format.layout == rows and x.traceback is None
    compiled = jax.jit(lambda x, *, y: (x.T, y)).lower(x, y=1.0).compile()
    (first,), named = compiled.input_formats
    assert first == x.format and named["y"].layout.major_to_minor == ()
    assert [f.layout for f in compiled.output_formats] == [rows, Layout((), tiling=())]


def test_a_derivative_with_other_residuals():
    ones = jnp.ones(2)
    _, f_vjp = jax.vjp(lambda d: d["a"] * d["b"], {"a": 2 * ones, "b": 3 * ones})
    args, others = jax.tree.map(lambda x: 10 * x, (f_vjp.args_res, f_vjp.opaque_residuals))
    again = f_vjp.fun(f_vjp.in_tree, f_vjp.out_tree, args, others)
    for function, factor in [(again, 10), (f_vjp, 1)]:
        np.testing.assert_array_equal(function(ones)[0]["a"], 3 * factor * ones)


def test_name_stacks():
    names = NameStack(("a",)).extend("b")
    assert names.stack == ("a", "b") and NameStack(stack=names.stack) == names and NameStack().stack == ()
    assert jax.sharding.Sharding().memory_kind is None


def test_the_mesh_in_force():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    with pytest.warns(DeprecationWarning, match="thread_resources is deprecated. Use jax.set_mesh"):
        env = pxla.thread_resources.env
    assert env.physical_mesh.empty and env.resource_axes == frozenset()
    with pytest.warns(DeprecationWarning, match="older way"), mesh:
        assert env.physical_mesh is mesh and dict(env.shape) == {"x": 1}
    with pytest.raises(AttributeError, match="create_compile_options is no part of catena: it belongs to XLA"):
        pxla.create_compile_options  # noqa: B018
