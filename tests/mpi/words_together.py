"""What processes tell each other (multihost_utils); every process runs this file."""

import os
import signal

import numpy as np
from arrays_together import HERE, MESH, WHOLE, I, N, all_of, on, raises

import catena as jax
import catena.numpy as jnp
from catena import P
from catena.experimental import multihost_utils


def test_one_tells_all():
    tree = {"a": I, "b": np.arange(3) + I, "c": jnp.ones(2, jnp.bfloat16) * I, "d": True}
    got = multihost_utils.broadcast_one_to_all(tree)
    assert got["a"] == 0 and got["b"].tolist() == [0, 1, 2] and got["c"].dtype == jnp.bfloat16 and got["d"]
    last = multihost_utils.broadcast_one_to_all(np.float32(I), is_source=I == N - 1)
    assert last == N - 1 and last.shape == () and last.dtype == np.float32
    raises(ValueError, "in one process", lambda: multihost_utils.broadcast_one_to_all(1.0, is_source=True))
    raises(RuntimeError, "here they differ", lambda: multihost_utils.broadcast_one_to_all(np.ones(2 + I)))


def test_all_tell_all():
    gather = multihost_utils.process_allgather
    assert gather(I).tolist() == list(range(N)) and gather(np.float32(I), tiled=True).tolist() == list(range(N))
    rows = {"a": np.arange(3) + I}
    assert gather(rows)["a"].shape == (N, 3) and gather(rows, tiled=True)["a"].shape == (3 * N,)
    assert gather(np.zeros((0, 3)), tiled=True).shape == (0, 3) and gather(None) is None
    raises(ValueError, "tiled must be True", lambda: gather(jax.device_put(WHOLE, on("p"))))
    raises(TypeError, "cannot be converted", lambda: gather(jax.random.key(0)))


def test_all_say_the_same():
    multihost_utils.assert_equal({"step": 3, "x": np.arange(4)})
    raises(AssertionError, "they differ", lambda: multihost_utils.assert_equal({"step": I}, "they differ"))
    multihost_utils.sync_global_devices("here")
    raises(AssertionError, "has come to", lambda: multihost_utils.sync_global_devices(f"at {I}"))


def test_who_does_something_else_is_named():
    def apart():
        if I == 0:
            multihost_utils.sync_global_devices("first")
        else:
            multihost_utils.process_allgather(1.0)

    raises(RuntimeError, "process 0: sync_global_devices, at", apart)


def test_local_and_global():
    own = WHOLE[4 * I : 4 * I + 4]
    x = multihost_utils.host_local_array_to_global_array({"a": own, "b": np.ones(4)}, MESH, {"a": P("p"), "b": P()})
    np.testing.assert_array_equal(all_of(x["a"]), WHOLE)
    np.testing.assert_array_equal(x["b"], np.ones(4))
    back = multihost_utils.global_array_to_host_local_array(x, MESH, {"a": P("p"), "b": P()})
    np.testing.assert_array_equal(back["a"], own)
    assert back["a"].devices() == set(HERE) and back["a"].is_fully_addressable
    put = multihost_utils.host_local_array_to_global_array
    raises(ValueError, "splits axis", lambda: put(own[:3, :3], MESH, P("p", "d")))


def test_a_process_that_is_told_to_end_tells_all():
    reached = multihost_utils.reached_preemption_sync_point
    assert not reached(1)
    if I == N - 1:
        os.kill(os.getpid(), signal.SIGTERM)
    multihost_utils.sync_global_devices("told")
    assert reached(2)
    raises(RuntimeError, "different steps", lambda: reached(I))
