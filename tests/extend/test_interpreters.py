"""Interpreters of jaxprs as users write them, partial evaluation, and rules in JAX's manner."""

import functools

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core import traceback
from catena.extend import backend, core, random, source_info_util
from catena.extend import linear_util as lu
from catena.interpreters import ad, batching, mlir, xla
from catena.interpreters import partial_eval as pe

X = jnp.arange(1.0, 4.0)


def inverse_of(f):
    """The inverse of a function of one argument that is made of invertible operations, by walking its jaxpr backwards."""
    inverses = {
        core.primitives.exp_p: jnp.log,
        core.primitives.tanh_p: jnp.arctanh,
        core.primitives.neg_p: jnp.negative,
    }

    def inverse(y):
        closed = jax.make_jaxpr(f)(y)
        known = {closed.jaxpr.outvars[0]: y}
        for eqn in reversed(closed.jaxpr.eqns):
            (x,), (out,) = eqn.invars, eqn.outvars
            known[x] = inverses[eqn.primitive](known[out])
        return known[closed.jaxpr.invars[0]]

    return inverse


def test_an_inverting_interpreter():
    f = lambda x: jnp.exp(jnp.tanh(-x))
    np.testing.assert_allclose(inverse_of(f)(f(X)), X, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(jax.vmap(inverse_of(f)))(f(X)), X, rtol=1e-4)


def test_evaluation_by_hand():
    closed = jax.make_jaxpr(lambda x: jax.jit(lambda y: y * 2)(x) + 1)(X)

    def evaluate(jaxpr, consts, *args):
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
        read = lambda v: v.val if isinstance(v, core.Literal) else env[v]
        for eqn in jaxpr.eqns:
            params = eqn.primitive.get_bind_params(eqn.params)
            outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        return [read(v) for v in jaxpr.outvars]

    np.testing.assert_array_equal(evaluate(closed.jaxpr, closed.consts, X)[0], 2 * X + 1)
    assert [s.eqns[0].primitive for s in core.subjaxprs(closed.jaxpr)] == [core.primitives.mul_p]


def test_dead_code():
    jaxpr = jax.make_jaxpr(lambda x, y: (x + X, jnp.sin(y)))(X, 1.0).jaxpr
    smaller, used = pe.dce_jaxpr(jaxpr, [False, True])
    assert [e.primitive.name for e in smaller.eqns] == ["sin"] and used == [False, True]
    _, used = pe.dce_jaxpr(jaxpr, [False, True], instantiate=True)
    assert used == [True, True]
    smaller, consts, used = pe.dce_jaxpr_consts(jaxpr, [False, True])
    assert consts == [False] * len(jaxpr.constvars) and not smaller.constvars
    (call,) = jax.make_jaxpr(jax.jit(lambda x, y: (x + 1, y * 2)))(1.0, 2.0).eqns
    read, eqn = pe.dce_jaxpr_call_rule([True, False], call)
    assert read == [True, False] and len(eqn.outvars) == 1 and len(eqn.params["jaxpr"].eqns) == 1
    assert pe.dce_jaxpr_call_rule([False, False], call) == ([False, False], None)


def test_partial_evaluation():
    fun = lu.wrap_init(lambda x, y: [jnp.sin(x), jnp.sin(x) * y])
    pvals = [pe.PartialVal.known(X), pe.PartialVal.unknown(jax.typeof(X))]
    jaxpr, out, consts = pe.trace_to_jaxpr_nounits(fun, pvals)
    assert [p.is_known() for p in out] == [True, False] and [e.primitive.name for e in jaxpr.eqns] == ["mul"]
    np.testing.assert_allclose(out[0].get_known(), np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.core.eval_jaxpr(jaxpr, (), *consts, X)[0], np.sin(X) * X, rtol=1e-6)
    with pytest.raises(TypeError, match="either a type or a value"):
        pe.PartialVal((None, None))
    whole, avals, consts = pe.trace_to_jaxpr_dynamic(fun, [jax.typeof(X)] * 2, auto_dce=True)
    assert len(whole.eqns) == 3 and len(avals) == 2 and consts == []


def test_rules_that_know_the_axis():
    p = core.Primitive("row_sum")
    p.def_abstract_eval(lambda x, *, axes: jax.core.ShapedArray(np.sum(np.empty(x.shape), axes).shape, x.dtype))
    p.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, axes: jnp.sum(x, axes), multiple_results=False))
    batching.defreducer(p)
    rows = jnp.ones((2, 3, 4))
    for axis in (0, 1, 2):
        expected = np.sum(np.moveaxis(rows, axis, 0), 1)
        np.testing.assert_array_equal(jax.vmap(lambda x: p.bind(x, axes=(0,)), in_axes=axis)(rows), expected)
    sizes = []
    batching.fancy_primitive_batchers[p] = lambda axis, args, dims, *, axes: (
        sizes.append((axis.size, axis.name)) or p.bind(jnp.moveaxis(args[0], dims[0], 0), axes=(1,)),
        0,
    )
    jax.vmap(lambda x: p.bind(x, axes=(0,)), axis_name="i")(jnp.ones((5, 2)))
    assert sizes == [(5, "i")]


def test_broadcasting_rules():
    p = core.Primitive("sum_of_two")
    p.def_abstract_eval(lambda x, y: jax.core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype))
    p.def_impl(jnp.add)
    batching.defbroadcasting(p)
    x, y = jnp.ones((3, 2)), jnp.arange(24.0).reshape(4, 2, 3)
    np.testing.assert_array_equal(jax.vmap(p.bind, in_axes=(0, 2))(x, y), x[:, None] + np.moveaxis(y, 2, 0))
    assert batching.bdim_at_front(X, batching.not_mapped, 2).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="no meshes"):
        batching.broadcast(X, 2, 0, "x")


def test_forward_derivatives():
    value, tangent = ad.jvp(lambda x: {"a": jnp.sin(x), "b": 1.0}, (X,), (X,))
    np.testing.assert_allclose(tangent["a"], np.cos(X) * X, rtol=1e-6)
    assert tangent["b"] == 0 and value["b"] == 1
    _, tangent, aux = ad.jvp(lambda x: ([1.0], "aux"), (X,), (X,), has_aux=True, instantiate=False)
    assert type(tangent[0]) is ad.Zero and aux == "aux"


def test_types_and_traces():
    aval = jax.typeof(jnp.ones((3, 2)))
    assert core.unmapped_aval(3, 0, core.mapped_aval(3, 0, aval)) is aval and isinstance(aval, jax.core.AbstractValue)
    with pytest.raises(ValueError, match="axis 0"):
        core.mapped_aval(5, 0, aval)
    assert core.primal_dtype_to_tangent_dtype(np.dtype("int32")) == jax.dtypes.float0
    outside, seen = core.get_opaque_trace_state(), []

    def f(x):
        seen.append(core.get_opaque_trace_state() == outside)
        seen.append(core.find_top_trace([x]) is x._trace)
        with core.take_current_trace() as trace:
            seen.append(isinstance(jnp.sin(1.0), jax.Array) and not isinstance(jnp.sin(1.0), jax.core.Tracer))
            with core.set_current_trace(trace):
                return x + 1

    jax.jit(f)(1.0)
    assert seen == [False, True, True]
    under = []
    jax.jit(
        lambda x: under.append((core.unsafe_am_i_under_a_jit_DO_NOT_USE(), core.unsafe_get_axis_names_DO_NOT_USE()))
    )(1)
    jax.vmap(lambda x: under.append(core.unsafe_am_i_under_a_vmap_DO_NOT_USE()), axis_name="i")(X)
    assert under == [(True, []), True] and not core.unsafe_am_i_under_a_jit_DO_NOT_USE()
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda x: core.concrete_or_error(int, x))(1)


def test_calls_of_functions():
    call = core.CallPrimitive("my_call")
    twice = lu.wrap_init(lambda x: [2 * x])
    np.testing.assert_array_equal(jax.jit(jax.vmap(lambda x: call.bind(twice, x)[0]))(X), 2 * X)
    assert call.call_primitive and not core.Primitive("plain").call_primitive
    params = call.get_bind_params({"call_jaxpr": jax.make_jaxpr(lambda x: x + 1)(1.0), "name": "n"})
    assert call.bind(2.0, **params)[0] == 3 and params.pop("subfuns")[0].call_wrapped(2.0)[0] == 3
    assert params == {"name": "n"}


def test_generators():
    parts = {
        "key_shape": (1,),
        "seed": lambda seed: jnp.full(1, seed, "uint32"),
        "split": lambda key, shape: jnp.broadcast_to(key, (*shape, 1)) + jnp.uint32(1),
        "random_bits": lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
        "fold_in": lambda key, data: key + data.astype("uint32"),
    }
    first, second = (random.define_prng_impl(name="counting", tag="cnt", **parts) for _ in range(2))
    assert first != second  # of one name
    key = random.seed_with_impl(first, 5)
    assert str(key.dtype) == "key<cnt>" and jax.random.bits(jax.random.split(key)[0]) == 6
    keys = random.random_seed(jnp.arange(3), random.threefry_prng_impl)
    assert (keys[2] == jax.random.key(2)).all() and keys.shape == (3,)


def test_sources():
    eqn = jax.make_jaxpr(jnp.sin)(1.0).eqns[0]
    assert "test_interpreters.py" in source_info_util.summarize(eqn.source_info)
    with jax.named_scope("a"), source_info_util.extend_name_stack("b") as stack:
        assert str(stack) == str(source_info_util.current_name_stack()) == "a/b"
        assert "test_interpreters.py" in source_info_util.summarize(source_info_util.current())
        with source_info_util.reset_name_stack():
            assert str(source_info_util.current().name_stack) == ""
    with source_info_util.user_context(eqn.source_info):
        inner = jax.make_jaxpr(lambda x: jnp.cos(x))(1.0)
    assert inner.eqns[0].primitive.name == "cos"


def test_files_that_tracebacks_leave_out(tmp_path):
    path = str(tmp_path / "library.py")
    names = {"jax": jax}
    exec(compile("call = lambda f: jax.jit(f)(1.0)", path, "exec"), names)

    def frames():
        with pytest.raises(ZeroDivisionError) as info:
            jax.jit(lambda x: names["call"](lambda x: 1 // 0))(1.0)
        return [str(entry.path) for entry in info.traceback]

    assert path in frames()
    source_info_util.register_exclusion(str(tmp_path))
    try:
        assert path not in frames()
    finally:
        traceback.EXCLUDED.remove(str(tmp_path))


@pytest.mark.parametrize("table", ["axis_primitive_batchers", "fancy_primitive_batchers"])
def test_rules_that_ask_for_the_axis(table):
    count_p = core.Primitive("count")
    count_p.def_abstract_eval(lambda x: x)
    count_p.def_impl(lambda x: x)

    def by_size(size, name, _, args, dims):
        return args[0] * size if name == "i" else args[0], dims[0]

    rule = by_size if table == "axis_primitive_batchers" else lambda a, xs, ds: by_size(a.size, a.name, None, xs, ds)
    getattr(batching, table)[count_p] = rule
    np.testing.assert_array_equal(jax.vmap(count_p.bind, axis_name="i")(X), 3 * X)
    assert getattr(batching, table)[count_p] is rule


def test_rules_for_dead_code_act():
    """The first result depends on the first operand only, the second on the second."""
    p, seen = core.Primitive("two"), []
    p.multiple_results = True
    p.def_abstract_eval(lambda *avals, which: [avals[which.index(i)] for i in which])
    run = lambda *xs, which: [x * 2 for x in xs]
    p.def_impl(run)
    mlir.register_lowering(p, mlir.lower_fun(run))

    def rule(used, eqn):
        seen.append(used)
        left = lambda xs: [x for x, u in zip(xs, used, strict=True) if u]
        kept = tuple(left(eqn.params["which"]))
        eqn = eqn.replace(invars=left(eqn.invars), outvars=left(eqn.outvars), params={"which": kept})
        return used, eqn if any(used) else None

    pe.dce_rules[p] = rule
    assert pe.dce_rules[p] is rule and pe.dce_rules.get(core.Primitive("other")) is None
    f = lambda x, y: p.bind(jnp.sin(x), jnp.cos(y), which=(0, 1))
    jaxpr = jax.make_jaxpr(f)(1.0, 2.0).jaxpr
    smaller, used = pe.dce_jaxpr(jaxpr, [False, True])
    assert [e.primitive.name for e in smaller.eqns] == ["cos", "two"] and used == [False, True]
    assert not pe.dce_jaxpr(jaxpr, [False, False])[0].eqns
    assert pe.dce_jaxpr(jaxpr, [True, True])[1] == [True, True]  # it is asked of every equation
    assert seen == [[False, True], [False, False], [True, True]]
    np.testing.assert_array_equal(jax.jit(lambda x, y: f(x, y)[1])(1.0, 2.0), jax.jit(lambda y: 2 * jnp.cos(y))(2.0))
    (call,) = jax.make_jaxpr(jax.jit(f))(1.0, 2.0).eqns
    assert pe.dce_rules[call.primitive]([False, True], call)[0] == [False, True]  # a rule of the system's
    pe.dce_rules[p] = lambda used, eqn: ([False, False], None)
    with pytest.raises(ValueError, match="leaves out result 0, which is used"):
        pe.dce_jaxpr(jaxpr, [True, True])


def test_rules_for_what_checkpoint_keeps_act():
    p = core.Primitive("my_sin")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(jnp.sin)
    mlir.register_lowering(p, mlir.lower_fun(jnp.sin, multiple_results=False))
    ad.defjvp(p, lambda t, x: t * jnp.cos(x))
    f = jax.checkpoint(lambda x: p.bind(jnp.exp(p.bind(x))))
    names = lambda f: [
        e.primitive.name for e in jax.make_jaxpr(jax.linearize(f, 0.5)[1])(1.0).eqns[-1].params["jaxpr"].eqns
    ]
    assert names(f).count("my_sin") == 1  # computed again

    def keep(policy, unknown, there, eqn):
        assert there == [True] and not policy(p, *[v.aval for v in eqn.invars])
        if any(unknown):
            return None, eqn, [True], [True], []
        return eqn, None, [False], [False], []

    pe.partial_eval_jaxpr_custom_rules[p] = keep
    g = jax.checkpoint(lambda x: p.bind(jnp.exp(p.bind(x))))
    assert names(g).count("my_sin") == 0
    expected = np.cos(np.exp(np.sin(0.5))) * np.exp(np.sin(0.5)) * np.cos(0.5)
    for h in (f, g):
        np.testing.assert_allclose([jax.grad(h)(0.5), jax.jit(jax.grad(h))(0.5)], expected, rtol=1e-5)


def test_a_split_may_keep_something_else_than_results():
    """An operation of two results, of which one is known; forward it keeps what the other needs."""
    p, first, second = (core.Primitive(name) for name in ("pair", "pair_known", "pair_rest"))
    p.multiple_results = first.multiple_results = True
    runs = {
        p: lambda x, y: [jnp.exp(x) + 1, jnp.exp(x) * y],
        first: lambda x: [jnp.exp(x) + 1, jnp.exp(x)],
        second: lambda e, y: e * y,
    }
    for q, run in runs.items():
        q.def_impl(run)
        q.def_abstract_eval(lambda x, *rest, q=q: [x, x] if q.multiple_results else x)
        mlir.register_lowering(q, mlir.lower_fun(run, q.multiple_results))
    ad.primitive_jvps[p] = lambda primals, tangents: (
        p.bind(*primals),
        [ad.Zero(jax.typeof(primals[0])), p.bind(primals[0], tangents[1])[1]],
    )
    ad.primitive_transposes[p] = lambda cts, x, y: [None, jnp.exp(x) * cts[1]]
    ad.defjvp(second, None, lambda t, e, y: second.bind(e, t))
    ad.primitive_transposes[second] = lambda ct, e, y: [None, e * ct]

    def split(policy, unknown, there, eqn):
        if unknown != [False, True]:
            return None, eqn, [True] * 2, [True] * 2, []
        kept = core.Var(eqn.outvars[0].aval)
        x, y = eqn.invars
        known = core.new_jaxpr_eqn([x], [eqn.outvars[0], kept], first, {}, core.no_effects)
        rest = core.new_jaxpr_eqn([kept, y], [eqn.outvars[1]], second, {}, core.no_effects)
        return known, rest, [False, True], [False, True], [kept]

    pe.partial_eval_jaxpr_custom_rules[p] = split
    f = jax.checkpoint(lambda x, y: sum(p.bind(x, y)))
    y, tangent = jax.linearize(lambda y: f(0.5, y), 2.0)
    np.testing.assert_allclose([y, tangent(1.0)], [3 * np.exp(0.5) + 1, np.exp(0.5)], rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(f, 1))(0.5, 2.0), np.exp(0.5), rtol=1e-6)


class Counted(jax.core.Tracer):
    """A tracer of one's own."""

    def __init__(self, trace, val):
        self._trace, self.val = trace, val

    @property
    def aval(self):
        return jax.typeof(self.val)


class Counting(jax.core.Trace):
    """A trace of one's own, as JAX's users write it: it counts operations."""

    def __init__(self, parent_trace):
        super().__init__()
        self.parent_trace, self.count, self.calls = parent_trace, {}, 0

    def process_primitive(self, primitive, tracers, params):
        self.count[primitive.name] = self.count.get(primitive.name, 0) + 1
        vals = [x.val if isinstance(x, Counted) and x._trace is self else x for x in tracers]
        out = primitive.bind_with_trace(self.parent_trace, vals, list(map(jax.typeof, vals)), params)
        return [Counted(self, o) for o in out] if primitive.multiple_results else Counted(self, out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.calls += 1
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)


@lu.transformation2
def scaled(f, factor, *args):
    return [factor * x for x in f(*args)]


class HandingOn(Counting):
    """One that hands calls with a rule on, with a transformation around the function and its rule."""

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        vals = [x.val for x in tracers]
        params = {"subfuns": (scaled(fun, 10.0), scaled(jvp, 10.0)), "symbolic_zeros": symbolic_zeros}
        outs = primitive.bind_with_trace(self.parent_trace, vals, list(map(jax.typeof, vals)), params)
        return [Counted(self, x) for x in outs]


def counted(f, *args, kind=Counting):
    with core.take_current_trace() as parent:
        trace = kind(parent)
        with core.set_current_trace(trace, check_leaks=True):
            out = f(*[Counted(trace, x) for x in args])
    return (out.val if isinstance(out, Counted) else out), trace


def test_a_trace_of_ones_own():
    f = lambda x: jax.lax.sin(x) * jax.lax.sin(2 * x)
    value, trace = counted(f, X)
    np.testing.assert_allclose(value, np.sin(X) * np.sin(2 * X), rtol=1e-5)
    assert trace.count == {"sin": 2, "mul": 2} and trace.is_valid() and repr(trace.parent_trace) == "EvalTrace"
    for transformed in (jax.jit, jax.vmap, lambda g: jax.jit(jax.vmap(g))):
        np.testing.assert_allclose(transformed(lambda x: counted(f, x)[0])(X), f(X), rtol=1e-5)
    inner = jax.grad(lambda x: counted(jnp.sin, x)[0])
    np.testing.assert_allclose([inner(1.0), counted(jax.grad(jnp.sin), 1.0)[0]], np.cos(1.0), rtol=1e-6)
    _, trace = counted(jax.jit(f), X)
    assert trace.count == {"jit": 1}
    g = jax.custom_jvp(lambda x: x * 2)
    g.defjvps(lambda t, out, x: 3 * t)
    value, trace = counted(g, 1.0)
    assert value == 2 and trace.calls == 1 and trace.count == {"mul": 1}
    handed = lambda x: counted(g, x, kind=HandingOn)[0]
    assert handed(1.0) == jax.jit(handed)(1.0) == 20 and jax.grad(handed)(1.0) == 30
    with core.set_current_trace(jax.core.Trace()), pytest.raises(NotImplementedError, match="process_primitive"):
        jax.lax.sin(1.0)


def test_what_traces_and_tracers_answer():
    def look(x):
        trace = x._trace
        assert trace.is_valid() and x.full_lower() is x and trace.full_raise(x) is x and not trace.requires_low
        twice = trace.process_primitive(core.primitives.add_p, (x, x), {})
        seen.append((x, x.get_referent(), x.to_concrete_value()))
        return twice

    seen = []
    np.testing.assert_array_equal(jax.jit(look)(X), 2 * X)
    np.testing.assert_array_equal(jax.vmap(look)(X), 2 * X)
    assert jax.grad(look)(1.0) == 2
    (jitted, same, unknown), (_, mapped, no_value), (_, primal, value) = seen
    assert jitted is same and unknown is no_value is None and not jitted._trace.is_valid()
    np.testing.assert_array_equal(mapped, X)
    assert primal == value == 1.0


def test_leaks_of_a_trace_of_ones_own(monkeypatch):
    kept = []
    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked"):
        counted(lambda x: kept.append(x) or x, 1.0)
    with core.take_current_trace() as outside:
        assert core.find_top_trace([]) is outside and not core.nonempty_axis_env_DO_NOT_USE()
    jax.vmap(lambda x: kept.append(core.nonempty_axis_env_DO_NOT_USE()) or x, axis_name="i")(X)
    assert kept[-1] is True


def test_threefry():
    """Against the known answers of the authors' Random123: key and counter zero, and all ones."""
    word = lambda x: jnp.uint32(x)
    for key, counter, known in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        operands = [*map(word, key), *map(word, counter)]
        for bind in (random.threefry2x32_p.bind, jax.jit(random.threefry2x32_p.bind)):
            assert tuple(map(int, bind(*operands))) == known
    keys, counts = jnp.arange(6, dtype="uint32").reshape(3, 2), jnp.arange(5, dtype="uint32")
    rows = jax.vmap(random.threefry_2x32, (0, None))(keys, counts)
    np.testing.assert_array_equal(rows, [random.threefry_2x32(k, counts) for k in keys])
    assert random.threefry_2x32(keys[0], counts[:0]).shape == (0,)
    for bad in (jnp.arange(4), jnp.arange(4.0)):
        with pytest.raises(TypeError, match="uint32"):
            random.threefry_2x32(keys[0], bad)
    with pytest.raises(TypeError, match="four uint32"):
        random.threefry2x32_p.bind(1, 2, 3, 4)


def test_primitives_are_of_one_class():
    p = core.Primitive("mine")
    assert isinstance(jax.lax.sin_p, core.Primitive) and isinstance(core.primitives.call_p, core.Primitive)
    assert core.primitives.call_p.multiple_results and not p.multiple_results
    assert jax.lax.sin_p.abstract_eval(jax.typeof(X), accuracy=None) == (jax.typeof(X), frozenset())
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'mine'"):
        p.abstract_eval(jax.typeof(X))
    (made,) = (
        e.primitive
        for e in jax.make_jaxpr(jax.jit(lambda x: jax.new_ref(x)[...]))(1.0).eqns[0].params["jaxpr"].eqns
        if e.primitive.ref_allocating
    )
    assert made.name == "new_ref" and not p.is_high()

    class Several(core.Primitive):
        multiple_results = True

    q = Several("several")
    q.def_impl(lambda x: [x, x])
    q.def_abstract_eval(lambda x: [x, x])
    assert len(q.bind(1.0)) == 2
    with pytest.raises(ValueError, match="2 operands, but 1 types"):
        jax.lax.add_p.bind_with_trace(None, (1.0, 2.0), (jax.typeof(1.0),), {})


def test_effects_of_users():
    class Loud(core.Effect):
        pass

    p, q = core.Primitive("loud"), core.Primitive("generic")
    p.def_effectful_abstract_eval(lambda x: (x, {Loud()}))
    q.def_effectful_abstract_eval2(lambda x: x)
    for primitive in (p, q):
        primitive.def_impl(lambda x: x)
        mlir.register_lowering(primitive, mlir.lower_fun(lambda x: x, multiple_results=False))
    f = lambda primitive: jax.jit(lambda x: (primitive.bind(x), x + 1)[1])
    assert str(jax.make_jaxpr(f(q))(1.0).effects) == "frozenset({GenericEffect(prim=generic)})" and f(q)(1.0) == 2
    with pytest.raises(ValueError, match="Cannot lower jaxpr with effects: .*Loud"):
        f(p)(1.0)
    assert not mlir.lowerable_effects.contains(Loud())
    mlir.lowerable_effects.add_type(Loud)
    assert f(p)(1.0) == 2 and mlir.lowerable_effects.filter_not_in({Loud()}) == []


def test_binding_that_a_user_defines():
    p, seen = core.Primitive("mine"), []

    def bind(trace, args, avals, params):
        seen.append((type(trace).__name__, [a.shape for a in avals], params))
        return core.primitives.mul_p.bind_with_trace(trace, (args[0], args[0]), avals * 2, {})

    assert p.def_bind_with_trace(bind) is bind
    assert p.bind(3.0, k=2) == 9 and jax.jit(p.bind)(3.0) == 9 and jax.grad(p.bind)(3.0) == 6
    assert seen[0] == ("EvalTrace", [()], {"k": 2}) and seen[1][0] == "JaxprTrace"


def test_programs_as_functions():
    closed = jax.make_jaxpr(lambda x, y: x - y)(1.0, 2.0)
    assert core.jaxpr_as_fun(closed)(3.0, 2.0) == [1] == core.jaxpr_as_fun(closed, 3.0)(2.0)
    lines = [
        jax.make_jaxpr(lambda *xs: jax.core.eval_jaxpr(closed.jaxpr, [], *xs, propagate_source_info=p))(1.0, 2.0).eqns[
            0
        ]
        for p in (True, False)
    ]
    assert str(lines[0].source_info) == str(closed.eqns[0].source_info) != str(lines[1].source_info)


def test_types_say_how_they_are_stacked_added_and_printed():
    aval, weak, key = jax.typeof(jnp.ones((2, 3))), jax.typeof(1.0), jax.typeof(jax.random.key(0))
    assert (
        aval.dec_rank(2, 0).shape == (3,) and aval.inc_rank(4, 1).shape == (2, 4, 3) and aval.inc_rank(4, None) is aval
    )
    with pytest.raises(ValueError, match="axis 0 of .* is not of size 7"):
        aval.dec_rank(7, 0)
    assert not weak.normalize().weak_type and aval.update_weak_type(True).weak_type
    assert aval.to_ct_aval() is aval.at_least_vspace() is aval and key.to_ct_aval().dtype == jax.dtypes.float0
    assert (
        aval.lo_ty() == [aval] and aval.lower_val(1) == [1] and aval.raise_val(1) == 1 == aval.leading_axis_spec() + 1
    )
    assert weak.vspace_add(jnp.ones(2), 1.0)[0] == 2 and not aval.is_high and not aval.has_qdd
    token, ref = core.AbstractToken(), jax.typeof(jax.new_ref(jnp.ones(2)))
    assert token.inc_rank(2, 0) is token.dec_rank(2, 0) is token.normalize() is token
    assert isinstance(ref, jax.core.AbstractValue) and ref.update_weak_type(False) is ref
    plain = jax.core.AbstractValue()
    assert repr(plain) == plain.str_short() == "AbstractValue"
    for f in (plain.update, plain.to_tangent_aval, plain.to_ct_aval, plain.at_least_vspace):
        with pytest.raises(NotImplementedError, match="must have a method"):
            f()
    for f in (plain.inc_rank, plain.dec_rank):
        with pytest.raises(TypeError, match="have no axes"):
            f(2, 0)


def test_variables_and_literals_print():
    jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) + 2.0)(X).jaxpr
    with pytest.deprecated_call(match="core.JaxprPpContext is deprecated"):
        names = jax.core.JaxprPpContext()
    x, constant, out = jaxpr.invars[0], jaxpr.eqns[1].invars[1], jaxpr.outvars[0]
    assert (x.pretty_print(names), out.pretty_print(names, print_dtype=False)) == ("a:f32[3]", "b")
    assert (constant.pretty_print(names), constant.pretty_print(names, print_dtype=False)) == ("2.0:f32[]", "2.0")
    assert core.DropVar(x.aval).pretty_print(names) == "_" and x.initial_qdd is x.final_qdd is None
    assert core.Literal(2.0, constant.aval).hash == hash(2.0) and constant.hash is None


def test_names_of_core_that_moved():
    with pytest.deprecated_call(match="Use catena.extend.core.find_top_trace"):
        assert jax.core.find_top_trace is core.find_top_trace
    with pytest.deprecated_call(match="Use catena.errors.JaxprTypeError"):
        assert jax.core.JaxprTypeError is jax.errors.JaxprTypeError is core.JaxprTypeError
    assert (jax.core.max_dim(2, 3), jax.core.min_dim(2, 3)) == (3, 2)
    with pytest.raises(TypeError):
        jax.core.max_dim(2, "a")


def test_the_platform():
    cpu = backend.get_backend()
    assert backend.get_backend("cpu") == backend.backends()["cpu"] == cpu == backend.get_backend(cpu)
    assert isinstance(cpu, xla.Backend) and cpu.local_devices() == jax.devices() and cpu.process_index() == 0
    assert cpu.device_count() == cpu.local_device_count() == len(jax.devices()) and cpu.live_arrays()
    assert backend.backend_xla_version("cpu") is None
    with pytest.raises(RuntimeError, match="Unknown backend zz"):
        backend.get_backend("zz")
    assert backend.get_default_device() == jax.devices()[0]
    with pytest.raises(TypeError, match="cache for nothing has no method"):
        backend.register_backend_cache([], "nothing")
    with pytest.raises(AttributeError, match="get_compile_options is no part of catena: it belongs to XLA"):
        backend.get_compile_options(1, 1)
    traced, f = [], jax.jit(lambda x: traced.append(1) or x)
    cached = functools.cache(lambda: traced.append(2))
    backend.register_backend_cache(cached, "a test")
    f(1.0), cached()
    backend.clear_backends()
    f(1.0), cached(), cached()
    assert traced == [1, 2, 1, 2] and backend.clear_in_memory_compilation_cache() is None


def test_words_for_errors_and_parts_that_are_refused():
    info = core.DebugInfo("jit", "f at file.py:3", ("x",), None)
    assert info == ("jit", "f at file.py:3", ("x",), None)
    assert info.set_result_paths({"a": 1, "b": [2, 3]}).result_paths == (
        "result['a']",
        "result['b'][0]",
        "result['b'][1]",
    )
    with pytest.raises(NotImplementedError, match="is_high must be False"):
        core.Jaxpr([], [], [], [], is_high=True)
    with pytest.raises(NotImplementedError, match="must be None"):
        core.Var(jax.typeof(1.0), 1)
    assert core.primitives.threefry2x32_p is random.threefry2x32_p


def test_a_trace_of_ones_own_sees_calls():
    """By ``process_call``: of primitives that call functions, and where it says so itself."""

    class Naming(Counting):
        def process_call(self, call_primitive, f, tracers, params):
            self.calls += 1
            with core.set_current_trace(self):
                return f.call_wrapped(*tracers)

    with core.take_current_trace() as parent:
        trace = Naming(parent)
        with core.set_current_trace(trace):
            (out,) = core.CallPrimitive("my_call").bind(lu.wrap_init(lambda x: [x * 3]), Counted(trace, 2.0))
    assert out.val == 6 and trace.calls == 1 and trace.count == {"mul": 1}
