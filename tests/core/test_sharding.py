"""Where arrays are: one device, seen through devices, shardings and shards."""

import pickle

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.sharding import SingleDeviceSharding

DEVICES = jax.devices()


def test_an_array_knows_its_place():
    x = jnp.ones((2, 3))
    assert repr(x.sharding) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    assert x.devices() == {jax.devices()[0]} and x.device == jax.devices()[0]
    assert x.sharding.shard_shape((2, 3)) == (2, 3) and x.sharding.num_devices == 1
    assert x.sharding.devices_indices_map((2, 3)) == {x.device: (slice(None), slice(None))}
    [shard] = x.addressable_shards
    assert shard.device is x.device and shard.replica_id == 0 and shard.data is x


def test_device_put_moves():
    x = jax.device_put(np.arange(3.0, dtype=np.float32), DEVICES[2])
    assert x.device == DEVICES[2] and x.committed
    y = jax.device_put(x, SingleDeviceSharding(DEVICES[1]))
    assert y.sharding.device == DEVICES[1] and not y.sharding.is_equivalent_to(x.sharding, 1)
    tree = jax.device_put({"a": x, "b": 1.0}, {"a": DEVICES[0], "b": None})
    assert tree["a"].device == DEVICES[0] and tree["b"].device == DEVICES[0]
    np.testing.assert_array_equal(jax.device_get(tree["a"]), [0, 1, 2])


def test_refusals():
    with pytest.raises(ValueError, match="only accepts"):
        jax.device_put(1.0, "x")
    with pytest.raises(TypeError, match="takes a device"):
        SingleDeviceSharding("cpu")
    with pytest.raises(ValueError, match="memories of the kinds"):
        SingleDeviceSharding(jax.devices()[0], memory_kind="disk")
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpu'"):
        jax.devices("gpu")
    with pytest.raises(RuntimeError, match="Unknown backend foo"):
        jax.devices("foo")


def test_values_and_pickles():
    one = SingleDeviceSharding(jax.devices()[0])
    assert one == pickle.loads(pickle.dumps(one)) and hash(one) == hash(one.with_memory_kind("device"))
    assert one.with_memory_kind("pinned_host") != one
    assert {m.kind for m in jax.devices()[0].addressable_memories()} == {"device", "pinned_host", "unpinned_host"}


def test_live_arrays_and_deletion():
    x = jnp.arange(5.0)
    assert any(x is y for y in jax.live_arrays())
    x.delete()
    assert x.is_deleted() and not any(x is y for y in jax.live_arrays())
    with pytest.raises(RuntimeError, match="deleted with shape=float32\\[5\\]"):
        x + 1


def test_ds_indexes():
    x = jnp.arange(10.0)
    np.testing.assert_array_equal(x[jax.ds(2, 3)], [2, 3, 4])
    np.testing.assert_array_equal(jax.jit(lambda i: x[jax.ds(i, 3)])(4), [4, 5, 6])
    np.testing.assert_array_equal(x.at[jax.ds(1, 2)].set(0.0)[:4], [0, 0, 0, 3])
    assert repr(jax.ds(0, 4, 2)) == "Slice(start=0, size=4, stride=2)"
    np.testing.assert_array_equal(x[jax.ds(0, 4, 2)], [0, 2, 4, 6])
