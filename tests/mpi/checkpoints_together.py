"""Checkpoints written by several processes; every process runs this file."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from arrays_together import HERE, MESH, WHOLE, I, N, all_of, on, raises

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.experimental import multihost_utils
from catena.sharding import Mesh
from catena.tools import checkpoint


def folder():
    """A folder that all processes know."""
    name = np.frombuffer(tempfile.mkdtemp(prefix="catena-").encode().ljust(200), np.uint8)
    return Path(multihost_utils.broadcast_one_to_all(name).tobytes().decode().rstrip())


def remove(path):
    multihost_utils.sync_global_devices("remove")
    if I == 0:
        shutil.rmtree(path)


def test_each_process_writes_and_reads_what_it_holds():
    path = folder()
    keys = jax.random.split(jax.random.key(0), 4 * N)
    tree = {
        "spread": jax.device_put(WHOLE, on("p", "d")),
        "rows": jax.device_put(WHOLE.astype(jnp.bfloat16), on("p")),
        "copies": jax.device_put(WHOLE, on(None, "d")),
        "same": jax.device_put(WHOLE, on()),
        "keys": jax.device_put(keys, on("p")),
        "own": jnp.ones(3),
        "step": 7,
    }
    saving = checkpoint.save(path, 7, tree, asynchronous=True)
    assert saving.wait() == path / "7"
    sizes = {p.name: p.stat().st_size for p in saving.path.iterdir()}
    assert sizes.keys() == {"index.json", *(f"process-{i:05}.safetensors" for i in range(N))}
    back = checkpoint.restore(path, tree)
    for name, x in tree.items():
        if name == "keys":
            np.testing.assert_array_equal(all_of(jax.random.key_data(back[name])), jax.random.key_data(keys))
        elif name in ("own", "step"):
            np.testing.assert_array_equal(back[name], x)
        else:
            np.testing.assert_array_equal(all_of(back[name]), all_of(x))
            assert back[name].sharding == x.sharding
    raises(FileExistsError, "of step 7", lambda: checkpoint.save(path, 7, tree))
    remove(path)


def test_arrays_come_back_on_other_meshes():
    path = folder()
    checkpoint.save(path, 1, {"x": jax.device_put(WHOLE, on("p", "d"))})
    turned = Mesh(MESH.devices.T, ("a", "b"))
    mine = Mesh(np.array(HERE), ("c",))
    for sharding in (
        NamedSharding(turned, P("b", "a")),
        NamedSharding(turned, P(None, "a")),
        NamedSharding(mine, P("c")),
    ):
        x = checkpoint.restore(path, {"x": jax.ShapeDtypeStruct(WHOLE.shape, np.float32, sharding=sharding)})["x"]
        assert x.sharding == sharding
        for shard in x.addressable_shards:
            np.testing.assert_array_equal(shard.data, WHOLE[shard.index])
    np.testing.assert_array_equal(checkpoint.restore(path)["x"], WHOLE)  # all of it, in each process
    remove(path)
