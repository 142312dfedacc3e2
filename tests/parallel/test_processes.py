"""One process of several, whose others are not there: what it has, and says it has not; `tests/mpi` has all."""

import io
import sys
import threading

import numpy as np
import pytest

import catena as jax
import catena.numpy as jnp
from catena import NamedSharding, P
from catena.core.job import LAUNCHERS, job, launched
from catena.experimental import multihost_utils
from catena.parallel import processes
from catena.parallel.watch import State, Watch, user_line
from catena.sharding import Mesh

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def second(monkeypatch):
    """This is the second process of two, which have two devices each."""
    monkeypatch.setattr(job, "index", 1)
    monkeypatch.setattr(job, "device_counts", (2, 2))
    monkeypatch.setattr(processes, "check_same", lambda value, what: None)
    return Mesh(np.array(jax.devices()).reshape(2, 2), ("p", "d"))


def test_devices_of_others(second):
    assert [d.id for d in jax.devices()] == [0, 1, 2048, 2049] and [d.id for d in jax.local_devices()] == [2048, 2049]
    assert [d.local_hardware_id for d in jax.devices()] == [None, None, 0, 1]
    assert jax.process_index() == 1 and jax.process_count() == 2 and jnp.ones(2).devices() == {jax.local_devices()[0]}
    assert second.is_multi_process and second.local_mesh.devices.tolist() == [jax.local_devices()]
    with pytest.raises(ValueError, match="no block"):
        Mesh(np.array(jax.devices()[:2]), ("x",)).local_mesh  # noqa: B018


def test_parts_of_an_array(second):
    x = jax.device_put(X, NamedSharding(second, P("p")))
    assert repr(x) == "Array(shape=(4, 3), dtype=float32)" and not x.is_fully_addressable
    assert [s.data is None for s in x.global_shards] == [True, True, False, False]
    np.testing.assert_array_equal(x.addressable_shards[0].data, X[2:])
    for use in (np.asarray, jax.device_get, list):
        with pytest.raises(RuntimeError, match="spans devices of other processes"):
            use(x)
    same = jax.make_array_from_callback((4, 3), NamedSharding(second, P("p", None)), lambda i: X[i])
    np.testing.assert_array_equal(same.addressable_data(1), X[2:])
    own = jax.make_array_from_process_local_data(NamedSharding(second, P("p")), X[2:])
    assert own.shape == (4, 3)
    np.testing.assert_array_equal(jax.device_put(X, NamedSharding(second, P())), X)


def test_a_whole_is_asked_for_where_a_program_needs_it(second, monkeypatch):
    monkeypatch.setattr(processes, "gather", lambda parts: X)
    x = jax.device_put(X, NamedSharding(second, P("p")))
    y = x + 1
    assert y.sharding.is_equivalent_to(x.sharding, 2) and repr(y).startswith("Array(shape=")
    np.testing.assert_array_equal(y.addressable_data(0), X[2:] + 1)
    np.testing.assert_array_equal((x * 2).addressable_data(0), X[2:] * 2)
    assert float(jnp.sum(x)) == X.sum()
    np.testing.assert_array_equal(multihost_utils.process_allgather(x, tiled=True), X)


class Lines:
    """What MPI's communicator is to the watch, where nobody answers."""

    ended = None

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 2

    def Abort(self, status):
        self.ended = status


def silent(limit=1.0):
    watch = Watch.__new__(Watch)
    watch.comm, watch.limit, watch.waits, watch.number, watch.ending = Lines(), limit, None, 0, False
    watch.preempted, watch.main = 0, threading.main_thread().ident
    return watch


WAITS, LATER = State("waits", 3, "at a.py:1 (f)"), State("waits", 4, "at a.py:1 (f)")
RUNS, ENDED = State("runs", 2, "at b.py:2 (g)"), State("has ended", 9, "")


@pytest.mark.parametrize(
    ("states", "hopeless"),
    [
        ({0: WAITS, 1: RUNS}, False),
        ({0: WAITS, 1: WAITS}, False),
        ({0: WAITS, 1: LATER}, True),
        ({0: WAITS, 1: ENDED}, True),
        ({0: WAITS}, True),
    ],
)
def test_the_verdict_over_those_who_wait(states, hopeless, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    watch = silent()
    watch.judge(states, 7.0)
    said = sys.stderr.getvalue()
    assert (watch.comm.ended == 1) == hopeless and ("cannot meet" in said) == hopeless
    assert "process 0 of 2 has waited for 7 s" in said and "a.py:1" in said
    watch.judge({0: RUNS, 1: WAITS}, 7.0)
    assert sys.stderr.getvalue() == said  # the first of those that wait speaks


def test_a_process_says_where_it_is():
    watch = silent()
    assert watch.state().what == "runs" and "test_processes.py" in watch.state().where
    with watch.waiting("others"):
        state = watch.state()
        assert state.what == "waits" and state.number == 1 and State.from_bytes(state.to_bytes()) == state
    assert user_line(None) == "an unknown line"


def test_a_second_request_to_end_is_obeyed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    watch = silent()
    watch.told_to_end(15, None)
    assert watch.comm.ended is None and watch.preempted == 1
    watch.told_to_end(15, sys._getframe())
    assert watch.comm.ended == 143


def test_what_launchers_say(monkeypatch):
    for names in LAUNCHERS:
        for name in names:
            monkeypatch.delenv(name, raising=False)
    assert launched() is None
    monkeypatch.setenv("SLURM_NTASKS", "4")
    assert launched() == ("SLURM_NTASKS", 4)
    monkeypatch.setenv("PMI_SIZE", "2")
    assert launched() == ("PMI_SIZE", 2)
