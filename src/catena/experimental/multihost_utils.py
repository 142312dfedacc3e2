"""What processes that compute together tell each other; all of them call these functions, in the same order."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from catena.core.array import Array, as_array
from catena.core.aval import ShapedArray
from catena.core.device import Device
from catena.core.job import job
from catena.core.lazy import LazyModule
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec, names_of
from catena.core.placed import in_one_piece
from catena.core.primitive import Operation
from catena.core.tree import tree_flatten, tree_map, tree_unflatten
from catena.core.tree_errors import flatten_axes
from catena.core.zeros import Zero
from catena.lax.structure import linear_jvp
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
    return on_mesh(host_local_array_to_global_array_p, local_inputs, global_mesh, pspecs)


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
    return on_mesh(global_array_to_host_local_array_p, global_inputs, global_mesh, pspecs)


def local_of(x: Any, sharding: NamedSharding) -> Array:
    """What a process has of an array on a mesh, as an array on its own part of the mesh."""
    if not job.shared:
        return x if isinstance(x, Array) else device_put(x, sharding)
    if not spans_devices_elsewhere(x):
        return x if isinstance(x, Array) else as_array(x)
    own = NamedSharding(sharding.mesh.local_mesh, sharding.spec)
    return device_put(part_of_process(x), own)


def on_mesh(primitive: Operation, tree: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """One of the two primitives, applied to the leaves of a tree with the specs of each."""
    leaves, structure, specs = with_specs(tree, pspecs)
    done = [primitive.bind(x, global_mesh=global_mesh, pspec=s) for x, s in zip(leaves, specs, strict=True)]
    return tree_unflatten(structure, done)


def with_specs(tree: Any, pspecs: Any) -> tuple:
    """The leaves of a tree, its structure, and the specs of the leaves."""
    leaves, structure = tree_flatten(tree)
    specs = flatten_axes("pspecs", structure, pspecs)
    for spec in specs:
        if not isinstance(spec, PartitionSpec):
            raise ValueError(f"pspecs must be PartitionSpecs (P() for whole arrays on all devices), got {spec!r}")
    return leaves, structure, specs


# ---- the primitives: linear, each the transpose of the other


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Mesh, pspec: PartitionSpec) -> Array:
    """The array of which ``arr`` is the part of this process; see ``host_local_array_to_global_array``."""
    return global_of(host_value(arr), NamedSharding(global_mesh, pspec))


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Mesh, pspec: PartitionSpec) -> Array:
    """The part of ``arr`` that this process has; see ``global_array_to_host_local_array``."""
    return local_of(arr, NamedSharding(global_mesh, pspec))


def ltg_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec) -> ShapedArray:
    """The type of the whole array, from that of the part of a process."""
    return between(arr, global_mesh.local_mesh, global_mesh, pspec)


def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec) -> ShapedArray:
    """The type of the part of this process, from that of the whole array."""
    return between(arr, global_mesh, global_mesh.local_mesh, pspec)


def between(aval: ShapedArray, given: Mesh, wanted: Mesh, spec: PartitionSpec) -> ShapedArray:
    """The type of an array on the mesh ``wanted``, whose parts are those of an array of type ``aval`` on ``given``."""
    part = NamedSharding(given, spec).shard_shape(aval.shape)
    names = [*map(names_of, spec), *[()] * aval.ndim]
    ways = [math.prod(wanted.shape[name] for name in axis) for axis in names[: aval.ndim]]
    return ShapedArray(tuple(n * k for n, k in zip(part, ways, strict=True)), aval.dtype)


def ltg_batcher(
    insert_axis: bool, axis_data: Any, vals_in: tuple, dims_in: tuple, global_mesh: Mesh, pspec: PartitionSpec
) -> tuple:
    """The rule for ``vmap``: the new axis is not split, or by the mesh's axis that ``spmd_axis_name`` says.

    Arguments:
      insert_axis: whether the new axis was given a name; ``axis_data`` says which.
      axis_data: the axis: its ``size`` and its ``spmd_name``.
      vals_in, dims_in: the operand and the position of its new axis, each in a tuple.
      global_mesh, pspec: the parameters.
    """
    return batched(host_local_array_to_global_array_p, axis_data, vals_in, dims_in, global_mesh, pspec)


def batched(primitive: Operation, axis: Any, args: tuple, dims: tuple, global_mesh: Mesh, pspec: PartitionSpec):
    """One of the two primitives for all examples at once."""
    (x,), (d,) = args, dims
    entries = [*pspec, *[None] * (d - len(pspec))]
    spec = PartitionSpec(*entries[:d], getattr(axis, "spmd_name", None), *entries[d:])
    return primitive.bind(x, global_mesh=global_mesh, pspec=spec), d


def linear_on_mesh(name: str, impl: Callable, abstract_eval: Callable) -> Operation:
    """A primitive that is linear, and nothing to do in a program of this process."""
    primitive = Operation(name)
    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract_eval)
    primitive.lower = lambda builder, x, **params: x
    primitive.batch = functools.partial(_batch, primitive)
    primitive.jvp = linear_jvp(primitive)
    return primitive


def _batch(primitive, axis, args, dims, **params):
    return batched(primitive, axis, args, dims, **params)


def _transposed(primitive):
    return lambda ct, x, **params: [ct if type(ct) is Zero else primitive.bind(ct, **params)]


host_local_array_to_global_array_p = linear_on_mesh(
    "host_local_array_to_global_array", host_local_array_to_global_array_impl, ltg_abstract_eval
)
global_array_to_host_local_array_p = linear_on_mesh(
    "global_array_to_host_local_array", global_array_to_host_local_array_impl, gtl_abstract_eval
)
host_local_array_to_global_array_p.transpose = _transposed(global_array_to_host_local_array_p)
global_array_to_host_local_array_p.transpose = _transposed(host_local_array_to_global_array_p)
