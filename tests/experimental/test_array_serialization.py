"""Arrays in files of tensorstore, where that is installed, and functions on the hosts of devices."""

import json

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena.experimental import colocated_python
from catena.experimental.array_serialization import serialization, tensorstore_impl
from catena.experimental.layout import Format, Layout


def test_specs():
    spec = serialization.get_tensorstore_spec
    assert spec("a/b") == {"driver": "zarr", "kvstore": {"driver": "file", "path": "a/b"}}
    assert spec("gs://bucket/p/q", ocdbt=True)["kvstore"] == {
        "driver": "ocdbt",
        "base": {"driver": "gcs", "bucket": "bucket", "path": "p"},
        "path": "q",
    }
    assert spec("/a/b", ocdbt=True, process_idx=3)["kvstore"]["base"]["path"] == "/a/process_3"
    found = tensorstore_impl.get_tensorstore_spec("/a/b", arr=jnp.ones((2, 3)))["metadata"]
    assert found["data_type"] == "float32" and found["chunk_grid"]["configuration"] == {"chunk_shape": [2, 3]}
    huge = jax.ShapeDtypeStruct((3, 1 << 16, 1 << 14), jnp.float32)  # 12 GiB
    assert tensorstore_impl.chunk_shape(huge) == [3, 1 << 13, 1 << 14]
    with pytest.raises(ValueError, match="must be absolute with ocdbt, got 'a/b'"):
        spec("a/b", ocdbt=True)
    with pytest.raises(ValueError, match="names no bucket and key"):
        spec("gs://bucket")
    assert serialization.is_remote_storage({"kvstore": {"driver": "ocdbt", "base": {"driver": "s3"}}})
    assert not serialization.is_remote_storage(spec("/gs/b"))


def test_what_was_written_is_read(tmp_path):
    pytest.importorskip("tensorstore")
    arrays = [
        jnp.arange(12.0).reshape(3, 4),
        jnp.ones(5, jnp.bfloat16),
        jnp.array(3),
        jnp.zeros((0, 2)),
        jnp.array([True, False]),
        jnp.array([1 + 2j]),
    ]
    paths = [str(tmp_path / str(i)) for i in range(len(arrays))]
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    manager, done = serialization.GlobalAsyncCheckpointManager(), []
    manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda: done.append(True))
    for x, y in zip(arrays, manager.deserialize_with_paths([place] * len(arrays), paths), strict=True):
        assert x.dtype == y.dtype and y.sharding == place
        np.testing.assert_array_equal(x, y)
    assert done == [True]
    assert json.loads((tmp_path / "0" / ".zarray").read_text())["dtype"] == "<f4"
    (larger,) = manager.deserialize_with_paths([Format(Layout((1, 0)), place)], paths[:1], [(4, 3)], [jnp.int32])
    np.testing.assert_array_equal(larger, [[0, 1, 2], [4, 5, 6], [8, 9, 10], [0, 0, 0]])
    assert larger.dtype == jnp.int32 and np.asarray(larger).strides == (4, 16)


def test_errors_of_writing_are_raised_where_one_waits(tmp_path):
    pytest.importorskip("tensorstore")
    manager, path = serialization.GlobalAsyncCheckpointManager(), str(tmp_path / "x")

    def fail():
        raise KeyError("the end")

    manager.serialize_with_paths([jnp.ones(2)], [path], on_commit_callback=fail)
    with pytest.raises(KeyError, match="the end"):
        manager.wait_until_finished()
    manager.wait_until_finished()
    with pytest.raises(TypeError, match="keys are written by their words"):
        manager.serialize_with_paths([jax.random.key(0)], [path])
    with pytest.raises(TypeError, match="on which devices; got None"):
        manager.deserialize_with_paths([None], [path])
    with pytest.raises(ValueError, match="got 1 arrays, 2 tensorstore_specs"):
        manager.serialize_with_paths([jnp.ones(2)], [path, path])
    with pytest.raises(ValueError, match="does not exist"):
        manager.deserialize_with_paths([jnp.ones(1).sharding], [path + "none"])


def test_functions_on_hosts():
    x = jax.device_put(jnp.ones(2), jax.devices()[0])
    add = colocated_python.colocated_python(lambda x, y=1: {"sum": x + y})
    np.testing.assert_array_equal(add(x, y=x)["sum"], [2, 2])
    types = []
    known = add.specialize(out_specs_fn=lambda spec: types.append(spec) or {"sum": spec})
    assert known(x)["sum"].committed and types[0].shape == (2,)
    assert colocated_python.colocated_python(lambda: jnp.ones(2)).specialize(devices=jax.devices()[:1])().shape == (2,)
    with pytest.raises(ValueError, match="out_specs_fn has been specified already"):
        known.specialize(out_specs_fn=lambda spec: spec)
    with pytest.raises(ValueError, match="results must be arrays, got 3"):
        colocated_python.colocated_python(lambda x: 3)(x)
    with pytest.raises(ValueError, match="without arguments needs devices"):
        colocated_python.colocated_python(lambda: 3)()
    for argument in (2.0, np.ones(2)):
        with pytest.raises(TypeError, match="arguments must be arrays that have values"):
            add(argument)
    with pytest.raises(TypeError, match="JitTracer"):
        jax.jit(add)(x)
