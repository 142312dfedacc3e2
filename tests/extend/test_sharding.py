"""Layouts in XLA's words: the bytes and texts that JAX 0.10.2 writes, and arrays that lie so."""

import pickle

import numpy as np
import pytest

import catena as jax
from catena.extend import lowering, sharding

# (what JAX 0.10.2 prints, its bytes)
RECORDED = [
    ("{devices=[4,2]<=[8]}", "08031a0204024a0108520100"),
    ("{devices=[2,4]<=[4,2]T(1,0)}", "08031a0202044a02040252020100"),
    ("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "08031a0304010230014a0108520100"),
    ("{devices=[2,2,2]0,2,1,3,4,5,6,7 last_tile_dim_replicate}", "08031a03020202220800020103040506073001"),
    ("{devices=[2,2,2]0,2,1,3,4,5,6,7 last_tile_dims={manual}}", "08031a0302020222080002010304050607420104"),
    ("{maximal device=3}", "08011a0101220103"),
    ("{{manual}, {replicated}}", "08022a0208042a00"),
    ("{replicated}", ""),
    ("{manual}", "0804"),
    ("{unknown}", "0805"),
    ("{unreduced}", "0806"),
]


@pytest.mark.parametrize(("text", "data"), RECORDED)
def test_bytes_and_texts(text, data):
    layout = sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex(data))
    assert repr(layout) == text and sharding.get_serialized_proto_from_hlo_sharding(layout).hex() == data
    again = layout.from_proto(sharding.get_op_sharding_from_serialized_proto(bytes.fromhex(data)))
    assert again == layout and hash(again) == hash(layout)


def test_orders_that_are_equal():
    tile = type(sharding.get_hlo_sharding_from_serialized_proto(b"")).iota_tile
    assert repr(tile((2, 2, 2), (2, 2, 2), (1, 2, 0))) == "{devices=[2,2,2]<=[2,4]T(1,0)}"
    assert repr(tile((2, 2, 2), (2, 2, 2), (0, 2, 1))) == "{devices=[2,2,2]<=[2,2,2]T(0,2,1)}"
    listed = sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex("08031a02040222080001020304050607"))
    assert listed == tile((4, 2)) and repr(listed) == "{devices=[4,2]0,1,2,3,4,5,6,7}"
    copies = "08031a0302020222080302010007050604"
    for last in ("3001", "420100"):
        layout = sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex(copies + last))
        assert repr(layout) == "{devices=[2,2,2]2,3,0,1,5,7,4,6 last_tile_dim_replicate}"
    manual = sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex("08031a020102220200014201" + "04"))
    assert repr(manual) == "{manual}"
    with pytest.raises(ValueError, match="must be of one kind"):
        sharding.get_hlo_sharding_from_serialized_proto(bytes.fromhex(copies + "42020004"))
    with pytest.raises(ValueError, match=r"tiles \[4, 2\] cannot take devices of the shape \[3, 4\]"):
        tile((4, 2), (3, 4), (1, 0))


def test_layouts_of_arrays():
    eight_devices = jax.devices()[:8]
    mesh = jax.sharding.Mesh(np.array(eight_devices).reshape(4, 2), ("x", "y"))
    for spec, (_, data) in zip([("x", "y"), ("y", "x"), ("x", None)], RECORDED, strict=False):
        own = sharding.GSPMDSharding(eight_devices, sharding.get_op_sharding_from_serialized_proto(bytes.fromhex(data)))
        named = jax.NamedSharding(mesh, jax.P(*spec))
        assert own.devices_indices_map((8, 16)) == named.devices_indices_map((8, 16))
        assert own.is_equivalent_to(named, 2) and own != named and pickle.loads(pickle.dumps(own)) == own
        x = jax.device_put(np.arange(128.0).reshape(8, 16), own)
        assert x.sharding.devices_indices_map(x.shape) == own.devices_indices_map(x.shape)
        assert np.array_equal(jax.jit(lambda x: x + 1)(x), np.asarray(x) + 1)
    assert np.array_equal(jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, own))(x), np.asarray(x) * 2)
    assert not own.is_fully_replicated and sharding.GSPMDSharding.get_replicated(eight_devices).is_fully_replicated
    with pytest.raises(ValueError, match="splits axis 0 into 4 parts"):
        own.shard_shape((3, 4))
    with pytest.raises(ValueError, match="for arrays of 2 axes"):
        own.shard_shape((8,))
    with pytest.raises(ValueError, match="does not number 2 devices"):
        sharding.GSPMDSharding(eight_devices[:2], own._hlo_sharding)


def test_what_is_no_layout():
    with pytest.raises(TypeError, match="must be bytes, got 'a'"):
        sharding.get_op_sharding_from_serialized_proto("a")
    with pytest.raises(ValueError, match="are no serialized sharding"):
        sharding.get_hlo_sharding_from_serialized_proto(b"\x08")
    with pytest.raises(TypeError, match="takes an HloSharding, got None"):
        sharding.get_serialized_proto_from_hlo_sharding(None)


def test_contexts():
    with lowering.JaxIrContext() as context:
        assert isinstance(context, lowering.JaxIrContext)
    with pytest.raises(TypeError):
        lowering.JaxIrContext(3)
