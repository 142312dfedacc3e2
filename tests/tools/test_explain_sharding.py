"""``explain_sharding`` names each collective, its bytes, the user's line and the cause."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.sharding import AbstractMesh, AxisType, Mesh
from catena.tools import ShardingReport, explain_sharding

MESH = AbstractMesh((2, 4), ("data", "model"))


def array(shape, *spec, mesh=MESH):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))


X, W = array((16, 64), "data", "model"), array((64, 32), "model")


def test_a_product_is_summed_where_it_is_needed():
    def f(x, w):
        h = x @ w
        return {"out": jnp.tanh(h)}

    report = explain_sharding(f)(X, W)
    (sent,) = report.collectives
    assert isinstance(report, ShardingReport) and (sent.kind, sent.names, sent.times) == ("psum", ("model",), 1)
    assert sent.bytes == report.bytes == 2 * (8 * 32 * 4) * 3 / 4
    assert sent.source.function_name == "f" and sent.why == "operand 0 of tanh: f32[16,32], made by dot_general"
    assert report.out_specs == {"out": P("data", None)} and report.in_specs[0][0] == P("data", "model")
    first, line = str(report).splitlines()
    assert first == "each of 8 devices (data 2, model 4) sends 1.54 KB in 1 collective"
    assert line.startswith("  1.54 KB  psum over model  test_explain_sharding.py:")


def test_what_a_loop_sends_it_sends_each_time():
    def f(ws, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, ws)[0]

    report = explain_sharding(f)(array((3, 64, 64), None, "model"), array((16, 64)))
    assert [c.times for c in report.collectives] == [3] and report.bytes == 3 * report.collectives[0].bytes
    assert " x 3" in str(report)


def test_what_jit_was_asked_for_counts():
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"))
    rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    f = jax.jit(lambda x: x * 2, in_shardings=rows, out_shardings=whole)
    assert [c.kind for c in explain_sharding(f)(np.ones((8, 4), np.float32)).collectives] == ["all_gather"]
    x = jax.device_put(np.ones((8, 4), np.float32), rows)
    assert str(explain_sharding(jnp.sin)(x)) == "each of 8 devices (data 2, model 4) sends 0 bytes"
    with jax.set_mesh(mesh):
        assert explain_sharding(jnp.sin)(1.0).collectives == ()


def test_types_say_how_arrays_lie():
    mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    report = explain_sharding(lambda x: jnp.sin(x).sum(0))(array((16, 64), "data", "model", mesh=mesh))
    assert [(c.kind, c.names) for c in report.collectives] == [("psum", ("data",))]
    assert report.out_specs == P("model")


def test_constraints_are_honoured():
    def f(x):
        return jax.lax.with_sharding_constraint(x * 2, NamedSharding(MESH, P(None, "data"))) + 1

    report = explain_sharding(f)(array((16, 64), "data"))
    assert [(c.kind, c.why) for c in report.collectives] == [("all_to_all", "the constraint: f32[16,64], made by mul")]
    assert report.out_specs == P(None, "data")


def test_without_a_mesh_there_is_nothing_to_say():
    with pytest.raises(ValueError, match="no argument or result is laid out over a mesh"):
        explain_sharding(jnp.sin)(1.0)
