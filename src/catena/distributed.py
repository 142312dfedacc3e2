"""Several processes that compute together (``jax.distributed``): MPI starts them, and they find each other."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Sequence
from typing import Any

from catena.core.device import local_devices, process_count, process_index
from catena.core.job import launched
from catena.core.lazy import LazyModule

processes: Any = LazyModule("catena.parallel.processes")

DETECTION = (None, "mpi4py", "deactivate")

_shutdown: list = []  # what ``shutdown`` calls, from ``initialize`` on


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Let this process compute together with the others of its job, before anything asks for devices.

    The launcher of MPI (``mpiexec -n 4 python train.py``, or ``srun``) starts the processes, and MPI carries what they
    tell each other: nobody listens anywhere, so that addresses are checked and not needed. Where no launcher started
    several processes, this is the only one.

    Arguments:
      coordinator_address, coordinator_bind_address: where JAX's first process listens, as ``"host:port"``.
      num_processes: how many processes there are; by default what the launcher says, else one.
      process_id: the number of this process; by default what the launcher says.
      local_device_ids: the numbers of its devices, counted from 0; all of them.
      cluster_detection_method: how to find out the rest: ``None`` and ``"mpi4py"`` ask the launcher,
        ``"deactivate"`` takes what the arguments say.
      initialization_timeout: how many seconds to wait for the others to come here.
      heartbeat_timeout_seconds: after how many seconds a process that waits asks, and says, where the others are.
      shutdown_timeout_seconds: how many seconds to wait for the others at the end.
      slice_index, partition_index: the part of the machine that the process is in; there is one, 0.
    Raises:
      RuntimeError: it was called before, or after devices were asked for, or the processes do not find each other.
      ValueError: an argument does not go with the processes that there are.

    >>> import catena as jax
    >>> jax.distributed.initialize(num_processes=1, process_id=0)
    >>> jax.distributed.shutdown()
    """
    if _shutdown:
        raise RuntimeError("jax.distributed.initialize was called before; call it once, or shutdown() between")
    addresses = ("coordinator_address", coordinator_address), ("coordinator_bind_address", coordinator_bind_address)
    for name, address in addresses:
        if address is not None and not isinstance(address, str):
            raise ValueError(f"{name} must be a string such as 'localhost:1234', got {address!r}")
    for name, number in (("slice_index", slice_index), ("partition_index", partition_index)):
        if number not in (None, 0):
            raise ValueError(f"{name} must be None or 0, since the machine has one part, got {number!r}")
    if cluster_detection_method not in DETECTION:
        raise ValueError(f"cluster_detection_method must be one of {DETECTION}, got {cluster_detection_method!r}")
    timeouts = {
        "initialization_timeout": initialization_timeout,
        "heartbeat_timeout_seconds": heartbeat_timeout_seconds,
        "shutdown_timeout_seconds": shutdown_timeout_seconds,
    }
    for name, seconds in timeouts.items():
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds <= 0:
            raise ValueError(f"{name} must be a positive number of seconds, got {seconds!r}")
    if num_processes is not None and (not isinstance(num_processes, int) or num_processes < 1):
        raise ValueError(f"num_processes must be a positive integer or None, got {num_processes!r}")
    if number_of_processes(num_processes, cluster_detection_method) > 1:
        processes.connect(initialization_timeout, heartbeat_timeout_seconds)
    for name, given, found in (
        ("num_processes", num_processes, process_count()),
        ("process_id", process_id, process_index()),
    ):
        if given not in (None, found):
            raise ValueError(f"{name} must be None or {found}, which the launcher says, got {given!r}")
    if local_device_ids is not None:
        asked = {local_device_ids} if isinstance(local_device_ids, int) else set(local_device_ids)
        if asked != {d.local_hardware_id for d in local_devices()}:
            raise ValueError(
                f"local_device_ids must be those of all {len(local_devices())} devices, got {local_device_ids!r}"
            )
    _shutdown.append(functools.partial(processes.disconnect, shutdown_timeout_seconds) if process_count() > 1 else int)


def number_of_processes(num_processes: int | None, method: str | None) -> int:
    """How many processes there are to be.

    Raises:
      RuntimeError: there are to be several, and no launcher has started them.
    """
    found = launched()
    if found is not None and method != "deactivate":
        return found[1]
    if (num_processes or 1) > 1 and found is None:
        raise RuntimeError(
            f"{num_processes=}: several processes compute together by MPI, whose launcher must start them: mpiexec -n "
            f"{num_processes} python train.py, with mpi4py and an MPI installed (pip install mpi4py mpich). One "
            "process with virtual devices (jax_num_cpu_devices) runs the same program."
        )
    return num_processes or 1


def shutdown() -> None:
    """End computing together with others, once they end it too; without ``initialize`` before, nothing. It is called
    at the end of the program.

    >>> import catena as jax
    >>> jax.distributed.shutdown()
    """
    while _shutdown:
        _shutdown.pop()()


atexit.register(shutdown)


def is_initialized() -> bool:
    """Whether ``initialize`` was called.

    >>> import catena as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return bool(_shutdown)
