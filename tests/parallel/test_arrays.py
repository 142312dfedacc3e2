"""Arrays made from their parts, grids of devices, and what one process says to itself."""

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.experimental import mesh_utils, multihost_utils
from catena.experimental.layout import Format, Layout
from catena.experimental.pjit import pjit
from catena.sharding import Mesh, SingleDeviceSharding

D = jax.devices()
MESH = Mesh(np.array(D).reshape(2, 4), ("x", "y"))
N = np.arange(64, dtype=np.float32).reshape(8, 8)


def on(*spec):
    return NamedSharding(MESH, P(*spec))


def parts(sharding, value=N):
    return [jax.device_put(value[i], d) for d, i in sharding.devices_indices_map(value.shape).items()]


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y"), P("y", "x"), P(("x", "y")), P(("y", "x"))])
def test_a_whole_is_its_parts(spec):
    sharding, asked = on(*spec), []

    def part(index):
        asked.append(str(index))
        return N[index]

    made = [
        jax.make_array_from_callback((8, 8), sharding, part),
        jax.make_array_from_single_device_arrays((8, 8), sharding, parts(sharding)[::-1]),
        jax.make_array_from_process_local_data(sharding, {"a": N}, (8, 8))["a"],
    ]
    for array in made:
        np.testing.assert_array_equal(array, N)
        assert array.sharding == sharding and array.committed and array.dtype == jnp.float32
    assert len(asked) == len(set(asked))  # each part is asked for once
    one = jax.make_array_from_callback((8,), SingleDeviceSharding(D[1]), lambda i: N[0][i])
    assert one.devices() == {D[1]} and one.tolist() == N[0].tolist()
    assert jax.make_array_from_callback((), on(), lambda i: 1.5, dtype=np.float32).item() == 1.5


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: jax.make_array_from_callback((8, 8), on("x"), lambda i: N[:3]), ValueError, r"the shape \(4, 8\)"),
        (
            lambda: jax.make_array_from_callback((8, 8), on("x"), lambda i: N[i].astype(int), np.float32),
            ValueError,
            "all parts must be float32",
        ),
        (lambda: jax.make_array_from_callback((3,), on("x"), lambda i: N[0]), ValueError, "splits axis 0"),
        (lambda: jax.make_array_from_callback((8, 8), "x", lambda i: N[i]), TypeError, "must be a jax.sharding"),
        (
            lambda: jax.make_array_from_single_device_arrays((8, 8), on("x"), parts(on("x"))[:4]),
            ValueError,
            "8 devices, and 4 arrays",
        ),
        (lambda: jax.make_array_from_single_device_arrays((8, 8), on("x"), N), TypeError, "a list or tuple"),
        (lambda: jax.make_array_from_single_device_arrays((8, 8), on("x"), [N] * 8), TypeError, "must be Arrays"),
        (
            lambda: jax.make_array_from_single_device_arrays((8, 8), on(), [jax.device_put(N, on())] * 8),
            ValueError,
            "on one device",
        ),
        (
            lambda: jax.make_array_from_single_device_arrays((8, 8), on(), [jax.device_put(N, D[0])] * 8),
            ValueError,
            "no array is on the devices",
        ),
        (lambda: jax.make_array_from_process_local_data(on("x"), N, (16, 8)), ValueError, "with one process"),
        (lambda: jax.make_array_from_process_local_data(on("x"), N[:3]), ValueError, "splits axis 0"),
        (lambda: mesh_utils.create_device_mesh((3, 3)), ValueError, "takes 9 devices"),
        (lambda: mesh_utils.create_device_mesh((8,), contiguous_submeshes=2), TypeError, "must be a bool"),
        (lambda: mesh_utils.create_hybrid_device_mesh((8,), (1,)), ValueError, "process_is_granule"),
        (lambda: mesh_utils.create_hybrid_device_mesh((4,), (2,), process_is_granule=True), ValueError, "1 processes"),
        (lambda: multihost_utils.host_local_array_to_global_array(N, MESH, None), ValueError, "PartitionSpecs"),
        (lambda: multihost_utils.sync_global_devices(3), TypeError, "must be a string"),
        (lambda: jax.device_put(N, jax.memory.Space.Any), ValueError, "no memory to put"),
        (lambda: jax.distributed.initialize(num_processes=2), RuntimeError, "mpiexec -n 2 python train.py"),
        (lambda: jax.distributed.initialize(num_processes=0), ValueError, "a positive integer"),
        (lambda: jax.distributed.initialize(process_id=1), ValueError, "process_id must be"),
        (lambda: jax.distributed.initialize(initialization_timeout=0), ValueError, "positive number of seconds"),
        (lambda: jax.distributed.initialize(local_device_ids=[0]), ValueError, "all 8 devices"),
    ],
)
def test_what_does_not_fit_is_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_grids_of_devices():
    assert mesh_utils.create_device_mesh((2, 2), D[3::-1]).tolist() == [[D[3], D[2]], [D[1], D[0]]]
    assert mesh_utils.create_hybrid_device_mesh((2, 4), (1, 1), process_is_granule=True).tolist() == [D[:4], D[4:]]


def test_one_process_tells_itself():
    x = jax.device_put(N, on("x", "y"))
    assert multihost_utils.process_allgather({"a": x})["a"].shape == (1, 8, 8)
    assert multihost_utils.process_allgather(x, tiled=True).tolist() == N.tolist()
    assert type(multihost_utils.broadcast_one_to_all(x)) is np.ndarray
    multihost_utils.assert_equal((1, N), "values")
    there = multihost_utils.host_local_array_to_global_array((N, N), MESH, (P("x"), P("y")))
    assert [y.sharding for y in there] == [on("x"), on("y")]
    assert multihost_utils.global_array_to_host_local_array(there, MESH, P())[0] is there[0]
    with multihost_utils.live_devices(D) as alive:
        assert alive == D


def test_distributed_with_one_process(monkeypatch):
    assert not jax.distributed.is_initialized()
    jax.distributed.initialize("localhost:1234", 1, 0, range(8))
    assert jax.distributed.is_initialized()
    with pytest.raises(RuntimeError, match="before"):
        jax.distributed.initialize()
    jax.distributed.shutdown()
    assert not jax.distributed.is_initialized()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(RuntimeError, match="before devices are asked for"):
        jax.distributed.initialize()


def test_spaces_of_memory():
    x = jax.device_put(N, on("x"))
    host = jax.device_put(x, jax.memory.Space.Host)
    assert host.sharding == on("x").with_memory_kind("pinned_host")
    assert jax.device_put(host, jax.memory.Space.Device).sharding == on("x")
    assert jax.device_put(N, jax.memory.Space.Host).sharding.memory_kind == "pinned_host"
    assert repr(jax.memory.Space.Any) == "MemorySpace.Any"


def test_pjit_is_jit():
    assert pjit(jnp.sin, on("x"), on())(N).sharding == on()


def test_pjit_reads_specs_by_the_mesh_that_was_entered():
    doubled = pjit(lambda tree: jax.tree.map(lambda x: 2 * x, tree), in_shardings=P("x"), out_shardings=P("x", "y"))
    with pytest.warns(DeprecationWarning, match="older way"), MESH:
        found = doubled({"a": N})["a"]
        nested = jax.jit(lambda x: doubled(x))(N)
        compiled = doubled.lower(N).compile()(N)
        gradient = jax.grad(lambda x: doubled(x).sum())(N)
    assert found.sharding == nested.sharding == compiled.sharding == on("x", "y")
    np.testing.assert_array_equal(found, 2 * N)
    np.testing.assert_array_equal(gradient, np.full((8, 8), 2.0))
    with pytest.raises(RuntimeError, match=r"P\('x',\) is passed in in_shardings of jit and no mesh is in force"):
        doubled(N)
    with pytest.warns(DeprecationWarning, match="older way"), MESH, pytest.raises(RuntimeError, match="no mesh"):
        jax.jit(jnp.sin, out_shardings=P("x"))(N)  # which asks for set_mesh, as in JAX


def test_what_pjit_has_compiled_is_not_found_by_jit():
    """Specs of the same function, which mean the mesh that was entered to the one alone."""
    with pytest.warns(DeprecationWarning, match="older way"), MESH:
        assert pjit(jnp.cos, out_shardings=P("x"))(N).sharding == on("x")
        with pytest.raises(RuntimeError, match="no mesh"):
            jax.jit(jnp.cos, out_shardings=P("x"))(N)


def test_shapes_of_results_tell_the_shardings_that_were_asked_for():
    f = jax.jit(lambda x: {"double": 2 * x, "sum": x.sum()}, out_shardings={"double": on("x", "y"), "sum": None})
    lowered = f.lower(N)
    for found in (
        jax.eval_shape(f, N),
        f.eval_shape(N),
        f.trace(N).out_info,
        lowered.out_info,
        lowered.compile().out_info,
    ):
        assert found["double"] == jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=on("x", "y"))
        assert found["sum"] == jax.ShapeDtypeStruct((), jnp.float32)
    one = SingleDeviceSharding(D[3])
    assert jax.eval_shape(jax.jit(jnp.sin, out_shardings=one), 1.0).sharding == one
    assert jax.eval_shape(jax.jit(jnp.sin, in_shardings=on("x")), N).sharding is None


def test_a_layout_over_an_abstract_mesh_means_the_mesh_in_force_or_that_of_the_array():
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    asked, meant = NamedSharding(mesh.abstract_mesh, P("y", "x")), NamedSharding(mesh, P("y", "x"))
    assert jax.lax.with_sharding_constraint(jax.device_put(N, NamedSharding(mesh, P("x"))), asked).sharding == meant
    with pytest.raises(TypeError, match="is over an AbstractMesh"):
        jax.lax.with_sharding_constraint(jnp.asarray(N), asked)
    in_order = Format(Layout((0, 1)), meant)
    assert jax.lax.with_sharding_constraint(jnp.asarray(N), in_order).sharding == meant
    with pytest.raises(ValueError, match="major_to_minor"):
        jax.lax.with_sharding_constraint(jnp.ones(8), Format(Layout((0, 1)), on("x")))
    made = jax.jit(lambda: jnp.ones((8, 8)), out_shardings=asked)
    with jax.set_mesh(mesh):
        assert jax.lax.with_sharding_constraint(jnp.asarray(N), asked).sharding == meant == made().sharding
    with pytest.raises(ValueError, match="has no devices"):
        made()


def test_programs_that_reshard_take_what_lies_anywhere():
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        x, k = jax.reshard(jnp.asarray(N), P("x")), jnp.ones((8, 8))
        y = jax.jit(lambda x, k: x + jax.reshard(2 * k, P("x")))(x, k)
    assert y.sharding.is_equivalent_to(x.sharding, 2)
    np.testing.assert_array_equal(y, N + 2)
