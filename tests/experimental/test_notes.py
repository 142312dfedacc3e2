"""Words for other machines' schedulers: checked, kept in jaxprs, without effect on values and derivatives."""

from types import SimpleNamespace

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import lax
from catena.experimental import compute_on, control_deps, fused, layout, scheduling_groups, shard_alike, xla_metadata
from catena.experimental.compilation_cache import compilation_cache

X = jnp.arange(3.0)
DEVICE = SimpleNamespace(name="Device")


def function(x):
    return jnp.sin(x) * x


CALLS = {
    "compute_on": compute_on.compute_on2(function, compute_type="device_host", out_memory_spaces=DEVICE),
    "fused_call": fused.fused(out_spaces=(DEVICE,))(function),
    "xla_metadata_call": scheduling_groups.scheduling_group("mine")(function),
}
VALUES = {
    "xla_metadata_value": lambda x: xla_metadata.set_xla_metadata(function(x), cost=3),
    "shard_alike": lambda x: shard_alike.shard_alike(x, function(x))[1],
    "layout_constraint": lambda x: layout.with_layout_constraint(function(x), layout.Layout(tuple(range(x.ndim)))),
}


def ordered(x):
    y = function(x)
    control_deps.schedule([x, y, 2 * y])
    return y


@pytest.mark.parametrize("name, f", {**CALLS, **VALUES, "control_dep": ordered}.items())
def test_values_and_derivatives_are_the_function_s(name, f):
    assert name in [e.primitive.name for e in jax.make_jaxpr(f)(X).eqns]
    for transform in (lambda f: f, jax.jit, jax.vmap, jax.jacfwd):
        np.testing.assert_allclose(transform(f)(X), transform(function)(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(X), np.cos(X) * X + np.sin(X), rtol=1e-6)


def test_notes_are_in_jaxprs():
    both = compute_on.compute_on2(compute_type="gpu_stream:1", out_memory_spaces=(DEVICE, DEVICE))(lambda x: (x, x))
    assert jax.make_jaxpr(both)(X).eqns[0].params["out_memory_spaces"] == (DEVICE, DEVICE)
    noted = jax.make_jaxpr(lambda x: xla_metadata.set_xla_metadata({"a": x}, b=1, a="c"))(X).eqns[0]
    assert noted.params["xla_metadata_kvs"] == (("a", "c"), ("b", 1))
    names = [e.primitive.name for e in jax.make_jaxpr(ordered)(X).eqns]
    assert names.count("control_dep") == 2
    with compute_on.compute_on("device"), xla_metadata.set_xla_metadata(a=1):
        assert len(jax.make_jaxpr(lambda x: x + 1)(X).eqns) == 1
    assert compute_on.compute_on("device_host")(function)(X)[0] == 0
    transposed = jax.linear_transpose(lambda x: xla_metadata.set_xla_metadata(2 * x, a=1), X)(X)[0]
    np.testing.assert_array_equal(transposed, 2 * X)


def test_layouts():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    y = layout.with_layout_constraint({"a": x}, layout.Layout((2, 0, 1)))["a"]
    np.testing.assert_array_equal(y, x)
    assert np.asarray(y).strides == (12, 4, 24)
    mapped = jax.vmap(lambda x: layout.with_layout_constraint(x, layout.Layout((1, 0))), in_axes=1, out_axes=1)(x)
    np.testing.assert_array_equal(mapped, x)
    assert np.asarray(mapped).strides == (4, 32, 8)
    np.testing.assert_array_equal(jax.jit(lambda x: layout.with_layout_constraint(x, layout.Layout((2, 1, 0))))(x), x)
    assert layout.with_layout_constraint(jnp.float32(3), layout.Layout(())).shape == ()
    put = jax.device_put({"a": x[0]}, layout.Format(layout.Layout((1, 0)), x.sharding))["a"]
    np.testing.assert_array_equal(put, x[0])
    assert np.asarray(put).strides == (4, 12) and put.committed
    assert not jax.device_put(np.ones(2), layout.Format()).committed
    first = layout.Layout([1, 0])
    assert first == layout.Layout((0, 1)).update(major_to_minor=(1, 0)) and hash(first) == hash(layout.Layout((1, 0)))
    place = x.sharding
    assert layout.Format(first, place) == layout.Format(layout.Layout((1, 0)), place) != layout.Format()
    assert repr(layout.Format(layout.Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"


REFUSED = [
    (lambda: compute_on.compute_on(3).__enter__(), TypeError, "must be a string, got 3"),
    (lambda: compute_on.compute_on("here").__enter__(), ValueError, "Invalid compute type 'here'"),
    (lambda: compute_on.compute_on2(abs, compute_type="x", out_memory_spaces=DEVICE), ValueError, "Invalid compute"),
    (
        lambda: compute_on.compute_on2(abs, compute_type="device", out_memory_spaces="x")(X),
        TypeError,
        "memory spaces .*got 'x'",
    ),
    (
        lambda: compute_on.compute_on2(abs, compute_type="device", out_memory_spaces=DEVICE, compiler_options={"a": 1}),
        jax.errors.JaxRuntimeError,
        "No such compile option",
    ),
    (lambda: fused.fused(out_spaces=[DEVICE]), TypeError, "must be a tuple"),
    (lambda: fused.fused(out_spaces=(DEVICE, DEVICE))(jnp.sin)(X), ValueError, "2 out_spaces for 1 results"),
    (lambda: scheduling_groups.scheduling_group(3), TypeError, "the name must be a string, got 3"),
    (lambda: scheduling_groups.xla_metadata_call(jnp.sin, a=[1]), TypeError, "a must be hashable"),
    (lambda: xla_metadata.set_xla_metadata(X, a=[1]), TypeError, "a must be hashable"),
    (lambda: xla_metadata.set_xla_metadata("a", a=1), TypeError, "not a valid JAX type"),
    (lambda: control_deps.control_dep(X, "a"), TypeError, "not a valid JAX type"),
    (lambda: shard_alike.shard_alike(X, X[:2]), ValueError, r"got \(3,\) and \(2,\)"),
    (lambda: shard_alike.shard_alike({"a": X}, {"b": X}), ValueError, "same structure"),
    (lambda: layout.with_layout_constraint(X, layout.Layout((0, 1))), ValueError, "length of major_to_minor"),
    (lambda: layout.with_layout_constraint(X[None], layout.Layout((1, 1))), ValueError, "every axis once"),
    (lambda: layout.with_layout_constraint(X, layout.Layout((0,), ((8,),))), ValueError, "no tiles"),
    (lambda: layout.with_layout_constraint(X, 3), ValueError, "of the class Layout, got 3"),
    (lambda: layout.Layout(3), TypeError, "not iterable"),
    (lambda: layout.Format(layout.Layout((0,))), ValueError, "it is None"),
    (lambda: layout.Format(3), TypeError, "got 3"),
    (lambda: layout.Format(None, 3), TypeError, "got 3"),
    (lambda: compilation_cache.set_cache_dir(3), ValueError, "got 3"),
]


@pytest.mark.parametrize("call, error, message", REFUSED)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_where_programs_are_kept(tmp_path):
    before = jax.config.jax_compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(str(tmp_path / "programs"))
        compilation_cache.reset_cache()
        jax.jit(lambda x: lax.sin(x) * 17.25)(X)
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "programs")
    finally:
        compilation_cache.set_cache_dir(before)


def test_equations_say_what_was_in_force_where_they_were_made():
    def f(x):
        with compute_on.compute_on("device_host"), xla_metadata.set_xla_metadata(a=1):
            with xla_metadata.set_xla_metadata(b=2):
                x = jnp.sin(x)
        return x + 1

    inside, outside = (eqn.ctx for eqn in jax.make_jaxpr(f)(1.0).eqns)
    assert (inside.compute_type, inside.xla_metadata) == ("device_host", {"a": 1, "b": 2})
    assert (outside.compute_type, outside.xla_metadata) == (None, None) and not outside.cur_abstract_mesh.axis_names
    derivative = jax.make_jaxpr(jax.grad(jax.jit(f)))(1.0)
    (call,) = derivative.eqns[:1]
    assert {eqn.ctx.compute_type for eqn in call.params["jaxpr"].eqns if eqn.primitive.name == "sin"} == {"device_host"}
    g = jax.jit(jnp.sin)
    with xla_metadata.set_xla_metadata(a=1):
        noted = jax.make_jaxpr(g)(1.0).eqns[0].params["jaxpr"].eqns[0].ctx
    plain = jax.make_jaxpr(g)(1.0).eqns[0].params["jaxpr"].eqns[0].ctx
    assert noted.xla_metadata == {"a": 1} and plain.xla_metadata is None


def test_dead_results_of_calls_with_notes_go():
    f = scheduling_groups.xla_metadata_call(lambda x, y: (x + 1, jnp.sin(y)), cost=1)
    (eqn,) = jax.make_jaxpr(f)(1.0, 2.0).eqns
    read, left = scheduling_groups.dce_jaxpr_xla_metadata_rule([True, False], eqn)
    assert read == [True, False] and [e.primitive.name for e in left.params["jaxpr"].eqns] == ["add"]
    assert scheduling_groups.dce_jaxpr_xla_metadata_rule([False, False], eqn) == ([False, False], None)
