"""Meshes, partition specifications and layouts by name: what they say, what they are equal to, what they refuse."""

import copy
import pickle
import threading

import numpy as np
import pytest

import catena as jax
from catena import NamedSharding, P
from catena.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    ManualAxisType,
    Mesh,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    use_abstract_mesh,
)

DEVICES = jax.devices()[:4]
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
EXPLICIT = jax.make_mesh((2, 2), ("x", "y"), devices=DEVICES)
ABSTRACT = AbstractMesh((2, 4), ("x", "y"))
SPLIT = NamedSharding(MESH, P("x"))


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (MESH, "Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(Auto, Auto))"),
        (EXPLICIT, "Mesh(axis_sizes=(2, 2), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))"),
        (Mesh(DEVICES[0], ()), "Mesh(axis_sizes=(), axis_names=(), axis_types=())"),
        (Mesh(np.empty((), object), ()), "Mesh(axis_sizes=(), axis_names=())"),
        (ABSTRACT, "AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto))"),
        (
            MESH.abstract_mesh,
            "AbstractMesh('x': 2, 'y': 2, axis_types=(Auto, Auto), device_kind=cpu, num_cores=None, platform=cpu)",
        ),
        (AbstractMesh((), ()), "AbstractMesh((), axis_types=())"),
        (P(), "P()"),
        (P(None, "x"), "P(None, 'x')"),
        (P(["x", "y"], P.UNCONSTRAINED, ("z",), ()), "P(('x', 'y'), UNCONSTRAINED, 'z', None)"),
        (P("x", unreduced={"z", "y"}), "P('x', unreduced={'y', 'z'})"),
        (SPLIT, "NamedSharding(mesh=Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto)), spec=P('x',), memory_kind=device)"),
        (
            NamedSharding(ABSTRACT, P("x")),
            "NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P('x',))",
        ),
        (AbstractDevice("v5", 2, "tpu"), "AbstractDevice(device_kind=v5, num_cores=2, platform=tpu)"),
    ],
)
def test_what_they_say(thing, text):
    assert repr(thing) == text
    again = pickle.loads(pickle.dumps(thing))
    assert again == thing and hash(again) == hash(thing) and copy.deepcopy(thing) == thing


def test_meshes_know_their_axes():
    mixed = MESH.update(axis_types=(AxisType.Explicit, AxisType.Manual))
    assert (mixed.explicit_axes, mixed.manual_axes, mixed.auto_axes) == (("x",), ("y",), ())
    assert dict(MESH.shape) == {"x": 2, "y": 2} and MESH.size == 4 and MESH.are_all_axes_auto
    assert MESH.device_ids.tolist() == [[0, 1], [2, 3]] and MESH.local_devices == DEVICES
    assert MESH != EXPLICIT and MESH != MESH.abstract_mesh and MESH == Mesh(MESH.devices, ["x", "y"])
    assert MESH.abstract_mesh.update(abstract_device=None, axis_sizes=(2, 4)) == ABSTRACT
    assert ABSTRACT.update_axis_types({"x": AxisType.Manual}).manual_axes == ("x",)
    with pytest.raises(ValueError, match="has no devices"):
        ABSTRACT.devices  # noqa: B018
    with pytest.raises(AttributeError, match="cannot assign"):
        MESH.axis_names = ("a", "b")


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Mesh(DEVICES, ("x", "y")), ValueError, r"shape \(4,\) and axis_names=\('x', 'y'\)"),
        (lambda: Mesh(DEVICES, (None,)), ValueError, "must not contain None"),
        (lambda: Mesh([[1]], ("x", "x")), ValueError, "must differ"),
        (lambda: Mesh([1], ("x",)), TypeError, "must be devices"),
        (lambda: Mesh(DEVICES, ("x",), "auto"), TypeError, "jax.sharding.AxisType"),
        (lambda: Mesh(DEVICES, ("x",), (AxisType.Auto,) * 2), ValueError, "one entry for each axis name"),
        (lambda: AbstractMesh((2,), ("x", "y")), ValueError, "a name for each size"),
        (lambda: AbstractMesh((2,), "x", abstract_device=1), TypeError, "an AbstractDevice or None"),
        (lambda: jax.make_mesh((99,), ("x",)), ValueError, "takes 99 devices"),
        (lambda: jax.make_mesh((0,), ("x",)), ValueError, "must be positive"),
        (lambda: jax.set_mesh(1), ValueError, "a jax.sharding.Mesh or None"),
        (lambda: use_abstract_mesh(MESH), ValueError, "a jax.sharding.AbstractMesh"),
        (lambda: P("x", unreduced="y"), TypeError, "must be a set"),
        (lambda: P("x", unreduced={"x"}), ValueError, "must not overlap"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "must not overlap"),
        (lambda: P({"x"}), TypeError, "unhashable"),
        (lambda: P("x") + ["y"], TypeError, "unsupported operand"),
        (lambda: NamedSharding(MESH, P("z")), ValueError, "names the axis 'z'"),
        (lambda: NamedSharding(MESH, P("x", "x")), ValueError, "'x' twice"),
        (lambda: NamedSharding(MESH, P("x", unreduced={"y"})), ValueError, "must be of type Explicit"),
        (lambda: NamedSharding(EXPLICIT, P(P.UNCONSTRAINED)), ValueError, "no axes of type Auto"),
        (lambda: NamedSharding(MESH, P("x"), "disk"), ValueError, "not 'disk'"),
        (lambda: NamedSharding("x", P()), TypeError, "must be a Mesh"),
        (lambda: NamedSharding(MESH, ("x",)), TypeError, "must be a PartitionSpec"),
        (lambda: SPLIT.update(memory="disk"), TypeError, "got 'memory'"),
        (lambda: SPLIT.shard_shape((3, 4)), ValueError, "splits axis 0 into 2 parts"),
        (lambda: SPLIT.shard_shape(()), ValueError, r"the PartitionSpec is P\(\)"),
        (lambda: NamedSharding(ABSTRACT, P("x")).device_set, ValueError, "over an AbstractMesh has no devices"),
        (lambda: ManualAxisType(varying={"x"}, reduced={"x"}), ValueError, "in common"),
    ],
)
def test_what_is_wrong_is_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_specifications_are_sequences():
    spec = P("x", ("y", "z"))
    assert (*spec,) == ("x", ("y", "z")) and len(spec) == 2 and spec[1] == ("y", "z") and "x" in spec
    assert spec != ("x", ("y", "z")) and spec.index("x") == 0 and spec.count(("y", "z")) == 1
    assert spec + P(None) == spec + (None,) == P("x", ("y", "z"), None) and (None,) + P("x") == P(None, "x")
    assert P("x", reduced={"y"}).to_ct_spec() == P("x", unreduced={"y"}) and P("x") != P("x", None)
    assert jax.tree.leaves({"a": spec}) == [spec]


def tiles_of(sharding, shape):
    """What each device holds of the numbers of this shape, computed from the definition: the axis of the array is
    unfolded into the axes of the mesh that split it, the first outermost.
    """
    mesh, values = sharding.mesh, np.arange(np.prod(shape)).reshape(shape)
    for index, device in np.ndenumerate(mesh.devices):
        part = values
        for axis, entry in enumerate(sharding.spec):
            for name in () if entry is None else entry if isinstance(entry, tuple) else (entry,):
                k = mesh.axis_names.index(name)
                part = np.split(part, mesh.devices.shape[k], axis)[index[k]]
        yield device, part


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(("y", "x")), P(None, ("x", "y"))]
)
def test_every_device_has_its_tile(spec):
    sharding, shape = NamedSharding(MESH, spec), (4, 8)
    values = np.arange(32).reshape(shape)
    indices = sharding.devices_indices_map(shape)
    for device, part in tiles_of(sharding, shape):
        assert np.array_equal(values[indices[device]], part) and part.shape == sharding.shard_shape(shape)
    assert sharding.is_fully_replicated == (spec == P())
    assert sharding.replicated_axes == {"x", "y"} - set(str(spec)[1:].replace("'", " ").split())


def test_equivalent_layouts():
    flat = Mesh(DEVICES, ("z",))
    assert SPLIT.is_equivalent_to(NamedSharding(MESH, P("x", None)), 2) and SPLIT != NamedSharding(MESH, P("x", None))
    assert SPLIT.is_equivalent_to(NamedSharding(EXPLICIT, P("x")), 1)
    assert NamedSharding(MESH, P(("x", "y"))).is_equivalent_to(NamedSharding(flat, P("z")), 1)
    assert not NamedSharding(MESH, P(("y", "x"))).is_equivalent_to(NamedSharding(flat, P("z")), 1)
    assert not SPLIT.is_equivalent_to(NamedSharding(Mesh(MESH.devices.T, ("y", "x")), P("x")), 1)
    assert not SPLIT.is_equivalent_to(SPLIT.with_memory_kind("pinned_host"), 1)
    one = NamedSharding(Mesh(DEVICES[:1], ("z",)), P("z"))
    assert one.is_equivalent_to(SingleDeviceSharding(DEVICES[0]), 1) and one.is_fully_replicated


def test_the_mesh_in_force():
    assert get_mesh().empty and get_abstract_mesh().empty
    with jax.set_mesh(MESH) as nothing:
        assert nothing is None and get_mesh() == MESH and get_abstract_mesh() == MESH.abstract_mesh
        with jax.set_mesh(EXPLICIT):
            assert get_mesh() == EXPLICIT
        with use_abstract_mesh(ABSTRACT):
            assert get_mesh() == MESH and get_abstract_mesh() == ABSTRACT
        seen = []
        thread = threading.Thread(target=lambda: seen.append(get_mesh()))
        thread.start()
        thread.join()
        assert seen[0].empty and get_mesh() == MESH
    setting = jax.set_mesh(MESH)
    assert get_mesh() == MESH and setting.prev_mesh.empty
    jax.set_mesh(None)
    assert get_mesh().empty and get_abstract_mesh().empty
    with pytest.warns(DeprecationWarning, match="set_mesh"), MESH as entered:
        assert entered is MESH and get_mesh().empty


def test_jitted_functions_know_the_mesh():
    seen = []

    @jax.jit
    def f(x):
        seen.append(get_abstract_mesh())
        return x

    for mesh in (None, MESH, EXPLICIT, MESH):
        with jax.set_mesh(mesh):
            f(1.0)
    assert seen == [AbstractMesh((), ()), MESH.abstract_mesh, EXPLICIT.abstract_mesh]
    for wrong in (lambda x: jax.set_mesh(MESH), lambda x: get_mesh()):
        with pytest.raises(ValueError, match="outside of jit"):
            jax.jit(wrong)(1.0)


def test_manual_axes():
    kind = ManualAxisType(varying={"x"}, unreduced={"y"})
    assert kind.vur == {"x", "y"} and not kind.empty and ManualAxisType().empty
    assert kind.to_ct_mat() == ManualAxisType(varying={"x"}, reduced={"y"}) == kind.update(unreduced=(), reduced={"y"})
    manual = ABSTRACT.update(axis_types=(AxisType.Manual,) * 2)
    assert ManualAxisType(varying={"x"}).invarying(manual) == {"y"}
