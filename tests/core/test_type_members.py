"""What types give to values of which only the type is known, and what they say of their parts on a mesh."""

import inspect
import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.core.type_members import aval_method, aval_property
from catena.extend.core import Primitive
from catena.sharding import AbstractMesh
from catena.sharding import PartitionSpec as P  # noqa: N817

X = jnp.arange(6.0).reshape(2, 3)


def test_types_of_arrays_have_the_methods_of_arrays():
    aval = jax.typeof(X)
    assert type(aval.sum) is aval_method and type(aval.T) is aval_property
    assert aval.sum.fun(X, axis=0).tolist() == X.sum(0).tolist() and aval.T.fget(X).shape == (3, 2)
    assert type(jax.typeof(jax.new_ref(X)).get) is aval_method


def test_tracers_take_the_arguments_of_arrays():
    f = lambda x: (x.sum(axis=0, keepdims=True), x.T, x.at[0].set(1), x.reshape(3, 2, order="F"))  # noqa: E731
    for mine, plain in zip(jax.jit(f)(X), f(X), strict=True):
        assert np.array_equal(mine, plain)
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        jax.jit(lambda x: x.sum(foo=1))(X)


def test_tracers_ask_their_type_for_what_is_its_own():
    class Degrees(jax.core.ShapedArray):
        __slots__ = ()
        radians = aval_method(lambda x, scale: scale * jnp.deg2rad(x))
        turns = aval_property(lambda x: x / 360)

    to_degrees_p = Primitive("to_degrees")
    to_degrees_p.def_abstract_eval(lambda x: Degrees(x.shape, x.dtype))
    seen = []

    def f(x):
        d = to_degrees_p.bind(x)
        seen.append((d.radians(2).shape, d.turns.shape, hasattr(d, "grads")))
        return d

    jax.eval_shape(f, X)
    assert seen == [((2, 3), (2, 3), False)]


def test_tracers_do_not_know_their_place():
    def f(x):
        assert not hasattr(x, "sharding") and not hasattr(x, "device")
        with pytest.raises(AttributeError, match="jax.typeof"):
            x.sharding  # noqa: B018
        return x.to_device(jax.devices()[0])

    assert jax.jit(f)(X).shape == X.shape


def test_parts_on_a_mesh():
    mesh, aval = AbstractMesh((2,), ("i",)), jax.typeof(X)
    part = aval.shard(mesh, {"i"}, True, P("i"))
    assert part.shape == (1, 3) and part.vma == {"i"} and part.nospec(mesh, True, ("i",)) == P(("i",))
    assert part.unshard(mesh, True, P("i")) == aval
    with pytest.raises(ValueError, match="names 'i'"):
        aval.shard(mesh, set(), True, P("i"))
    with pytest.raises(TypeError, match="return what it refers to"):
        jax.typeof(jax.new_ref(X)).unshard(mesh, True, P())
    with pytest.raises(NotImplementedError, match="memory"):
        jax.core.ShapedArray((2,), np.float32, memory_space=jax.memory.Space.Host)
    assert aval.memory_space is jax.memory.Space.Device
    assert aval.str_short(True, True) == "f32[2,3]({})"


class Passing(jax.core.Trace):
    """Hands everything to the trace outside."""

    def __init__(self, parent_trace):
        super().__init__()
        self.parent_trace = parent_trace

    def process_primitive(self, primitive, tracers, params):
        return primitive.bind_with_trace(self.parent_trace, tracers, [jax.typeof(x) for x in tracers], params)

    def process_custom_jvp_call(self, *args, **kwargs):
        return self.parent_trace.process_custom_jvp_call(*args, **kwargs)

    def process_custom_vjp_call(self, *args, **kwargs):
        return self.parent_trace.process_custom_vjp_call(*args, **kwargs)


def test_a_trace_hands_calls_with_rules_on():
    @jax.custom_jvp
    def f(x):
        return x * 2

    f.defjvp(lambda p, t: (f(*p), 10 * t[0]))
    g = jax.custom_vjp(lambda x: x * 2)
    g.defvjp(lambda x: (x * 2, None), lambda _, ct: (20 * ct,))

    def passed(x):
        with jax.extend.core.take_current_trace() as parent, jax.extend.core.set_current_trace(Passing(parent)):
            return f(x) + g(x)

    assert passed(1.0) == 4 and jax.grad(passed)(1.0) == 30 and jax.jit(jax.grad(passed))(1.0) == 30


def test_slices_of_known_size_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(jax.ds)) is jax.ds


def test_users_traces_see_parameters_that_equations_leave_out():
    class Looking(Passing):
        def process_primitive(self, primitive, tracers, params):
            seen.append((primitive.name, params.get("inline"), params.get("keep_unused")))
            return super().process_primitive(primitive, tracers, params)

    seen: list = []
    with jax.extend.core.take_current_trace() as parent, jax.extend.core.set_current_trace(Looking(parent)):
        jax.jit(lambda x: x + 1)(1.0)
    assert seen == [("jit", False, False)]


def test_the_signatures_of_tracers_leave_the_arguments_to_the_type():
    seen = []
    jax.jit(lambda x: seen.append([inspect.signature(f) for f in (x.sum, x.__add__, x.__array_namespace__)]))(X)
    assert list(map(str, seen[0])) == ["(*args, **kwargs)", "(*args)", "(*args, **kwargs)"]
    assert list(inspect.signature(X.sum).parameters)[:2] == ["axis", "dtype"]
