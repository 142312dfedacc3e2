"""What processes that compute together tell each other: with one process, what it tells itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from catena.core.array import Array
from catena.core.device import Device
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.transform.placement import device_put


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
    return tree_map(np.asarray, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here.

    Arguments:
      name: what the place is called; processes at places of other names raise an error.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.sync_global_devices("before saving")
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a meeting point must be a string, got {name!r}")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, on all.

    Arguments:
      in_tree: a tree of arrays.
      tiled: whether to join the arrays along their first axis; else along a new one.
    Returns:
      A tree of NumPy arrays.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.process_allgather(2.0)
    array([2.])
    """
    return tree_map(lambda x: np.asarray(x) if tiled else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise AssertionError where processes have different values.

    Arguments:
      in_tree: a tree of arrays.
      fail_message: what the error says.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.assert_equal({"step": 3})
    """
    mine, theirs = tree_flatten(in_tree)[0], tree_flatten(broadcast_one_to_all(in_tree))[0]
    if not all(np.array_equal(np.asarray(a), b) for a, b in zip(mine, theirs, strict=True)):
        raise AssertionError(f"{fail_message} processes have different values: {mine} and {theirs}")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this is the step at which all processes save what they have, since one was told to end: it was not.

    Arguments:
      step_id: the number of the step.

    >>> from catena.experimental import multihost_utils
    >>> multihost_utils.reached_preemption_sync_point(3)
    False
    """
    if not isinstance(step_id, (int, np.integer)):
        raise TypeError(f"step_id must be an integer, got {step_id!r}")
    return False


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
    put = [device_put(np.asarray(x), NamedSharding(global_mesh, s)) for x, s in zip(leaves, specs, strict=True)]
    return tree_unflatten(tree, put)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of arrays that this process has.

    Arguments:
      global_inputs: a tree of arrays on a mesh.
      global_mesh: the mesh over all processes.
      pspecs: a PartitionSpec for each array, or a tree prefix of them.
    Returns:
      A tree of arrays: with one process, the same.
    Raises:
      ValueError: a spec is missing, or does not fit its array.

    >>> import catena as jax, numpy as np
    >>> from catena.experimental import multihost_utils
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> multihost_utils.global_array_to_host_local_array(np.ones(2, np.float32), mesh, jax.P("data"))
    Array([1., 1.], dtype=float32)
    """
    leaves, tree, specs = with_specs(global_inputs, pspecs)
    local = [
        x if isinstance(x, Array) else device_put(x, NamedSharding(global_mesh, s))
        for x, s in zip(leaves, specs, strict=True)
    ]
    return tree_unflatten(tree, local)


def with_specs(tree: Any, pspecs: Any) -> tuple:
    """The leaves of a tree, its structure, and the specs of the leaves."""
    leaves, structure = tree_flatten(tree)
    specs = flatten_axes("pspecs", structure, pspecs)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ValueError(f"pspecs must be PartitionSpecs (P() for whole arrays on all devices), got {spec!r}")
    return leaves, structure, specs
