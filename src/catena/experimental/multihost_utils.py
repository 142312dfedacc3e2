"""What processes that compute together tell each other; all of them call these functions, in the same order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from catena.core.array import Array, as_array
from catena.core.device import Device
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.placed import in_one_piece
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.parallel.arrays import from_process, part_of_process
from catena.transform.placement import device_put

processes: Any = LazyModule("catena.parallel.processes")


class ProcessFailureError(Exception):
    """Processes have ended, with their devices."""

    def __init__(self, failed_devices):
        super().__init__(f"processes have ended, and with them the devices {failed_devices}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, on all.

    Arguments:
      in_tree: a tree of arrays.
      is_source: whether this process is the one; by default the first is.
    Returns:
      A tree of NumPy arrays.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    if is_source is not None and not isinstance(is_source, (bool, np.bool_)):
        raise TypeError(f"is_source must be a bool or None, got {is_source!r}")
    if not job.shared:
        return tree_map(np.asarray, in_tree)
    chosen = job.index == 0 if is_source is None else bool(is_source)
    sources = [i for i, flag in enumerate(processes.gather_values(np.array(chosen), "the source")) if flag]
    if len(sources) != 1:
        raise ValueError(f"is_source must be true in one process, got it in {sources}")
    return tree_map(lambda x: processes.gather_values(host_value(x), "broadcast_one_to_all")[sources[0]], in_tree)


def host_value(x: Any) -> np.ndarray:
    """A leaf as NumPy array of a dtype that arrays have."""
    return np.asarray(x if isinstance(x, Array) else as_array(x))


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here.

    Arguments:
      name: what the place is called; processes at places of other names raise an error.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("before saving")
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a meeting point must be a string, got {name!r}")
    if job.shared and not processes.same_for_all(name.encode(), "sync_global_devices"):
        raise AssertionError(f"sync_global_devices: this process has come to {name!r}, and others elsewhere")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, on all.

    Arguments:
      in_tree: a tree of arrays.
      tiled: whether to join the arrays along their first axis; else along a new one.
    Returns:
      A tree of NumPy arrays.
    Raises:
      ValueError: an array spans processes, and ``tiled`` is not set.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.process_allgather(2.0)
    array([2.])
    """
    return tree_map(lambda x: gathered(x, tiled), in_tree)


def gathered(x: Any, tiled: bool) -> np.ndarray:
    """One leaf of ``process_allgather``."""
    if not job.shared:
        return np.asarray(x) if tiled else np.asarray(x)[None]
    if spans_devices_elsewhere(x):
        if not tiled:
            raise ValueError("process_allgather of arrays that span processes gives the whole: tiled must be True")
        return np.asarray(in_one_piece(x))
    rows = processes.gather_values(host_value(x), "process_allgather")
    return np.concatenate(rows) if tiled and rows[0].ndim else np.stack(rows)


def spans_devices_elsewhere(x: Any) -> bool:
    """Whether this is an array on devices of other processes too."""
    return isinstance(x, Array) and not x.is_fully_addressable


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise AssertionError where processes have different values.

    Arguments:
      in_tree: a tree of arrays.
      fail_message: what the error says.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3})
    """
    mine, theirs = tree_flatten(in_tree)[0], tree_flatten(broadcast_one_to_all(in_tree))[0]
    same = all(np.array_equal(np.asarray(a), b) for a, b in zip(mine, theirs, strict=True))
    if job.shared:
        same = all(map(bool, processes.gather_values(np.array(same), "assert_equal")))
    if not same:
        raise AssertionError(f"{fail_message}: processes have different values; this one {mine}, the first {theirs}")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this is the step at which all processes save what they have, since one was told to end by SIGTERM.

    Arguments:
      step_id: the number of the step, the same in all processes.
    Raises:
      RuntimeError: processes are at different steps.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False
    """
    if not isinstance(step_id, (int, np.integer)):
        raise TypeError(f"step_id must be an integer, got {step_id!r}")
    watch = processes.watch() if job.shared else None
    if watch is None:
        return False
    rows = processes.gather_values(np.array([step_id, watch.preempted > 0], np.int64), "reached_preemption_sync_point")
    steps, told = zip(*(row.tolist() for row in rows), strict=True)
    if len(set(steps)) > 1:
        raise RuntimeError(f"processes are at different steps: {dict(enumerate(steps))}")
    return any(told)


@contextlib.contextmanager
def live_devices(devices: list[Device]) -> Iterator[list[Device]]:
    """The devices whose processes have not ended: all of them, in a ``with`` block.

    Arguments:
      devices: devices.

    >>> import catena as jax
    >>> from catena.experimental import multihost_utils
    >>> with multihost_utils.live_devices(jax.devices()[:1]) as alive:
    ...     alive
    [CpuDevice(id=0)]
    """
    if not devices:
        raise ValueError("no devices were given")
    yield list(devices)


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays of which each process has a part, from these parts.

    Arguments:
      local_inputs: a tree of arrays: the parts of this process.
      global_mesh: the mesh over all processes.
      pspecs: a PartitionSpec for each array, or a tree prefix of them.
    Returns:
      A tree of arrays on the mesh.
    Raises:
      ValueError: a spec is missing, or does not fit its array.

    >>> import catena as jax, numpy as np
    >>> from catena.experimental import multihost_utils
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> multihost_utils.host_local_array_to_global_array(np.ones(2, np.float32), mesh, jax.P("data"))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree, specs = with_specs(local_inputs, pspecs)
    put = [global_of(host_value(x), NamedSharding(global_mesh, s)) for x, s in zip(leaves, specs, strict=True)]
    return tree_unflatten(tree, put)


def global_of(x: np.ndarray, sharding: NamedSharding) -> Array:
    """The array of which ``x`` is the part of this process, which is a block of the mesh."""
    if not job.shared:
        return device_put(x, sharding)
    NamedSharding(sharding.mesh.local_mesh, sharding.spec).shard_shape(x.shape)
    return from_process(sharding, x, None)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of arrays that this process has.

    Arguments:
      global_inputs: a tree of arrays on a mesh.
      global_mesh: the mesh over all processes.
      pspecs: a PartitionSpec for each array, or a tree prefix of them.
    Returns:
      A tree of arrays on the part of the mesh that belongs to this process: with one process, the same.
    Raises:
      ValueError: a spec is missing, or does not fit its array.

    >>> import catena as jax, numpy as np
    >>> from catena.experimental import multihost_utils
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> multihost_utils.global_array_to_host_local_array(np.ones(2, np.float32), mesh, jax.P("data"))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree, specs = with_specs(global_inputs, pspecs)
    local = [local_of(x, NamedSharding(global_mesh, s)) for x, s in zip(leaves, specs, strict=True)]
    return tree_unflatten(tree, local)


def local_of(x: Any, sharding: NamedSharding) -> Array:
    """What a process has of an array on a mesh, as an array on its own part of the mesh."""
    if not job.shared:
        return x if isinstance(x, Array) else device_put(x, sharding)
    if not spans_devices_elsewhere(x):
        return x if isinstance(x, Array) else as_array(x)
    own = NamedSharding(sharding.mesh.local_mesh, sharding.spec)
    return device_put(part_of_process(x), own)


def with_specs(tree: Any, pspecs: Any) -> tuple:
    """The leaves of a tree, its structure, and the specs of the leaves."""
    leaves, structure = tree_flatten(tree)
    specs = flatten_axes("pspecs", structure, pspecs)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ValueError(f"pspecs must be PartitionSpecs (P() for whole arrays on all devices), got {spec!r}")
    return leaves, structure, specs
