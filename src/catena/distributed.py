"""Several processes that compute together (``jax.distributed``): so far, the first and only one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from catena.core.device import cpu_device, devices

# The number of processes of a job, as launchers tell it.
LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")

DETECTION = (None, "mpi4py", "deactivate")

_initialized: list = []  # holds True from ``initialize`` to ``shutdown``


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
    """Let this process compute together with others: so far it must be the only one of its job.

    Arguments:
      coordinator_address: where the first process is reached, as ``"host:port"``; one process needs none.
      num_processes: how many processes there are; by default what the launcher says, else one.
      process_id: the number of this process.
      local_device_ids: the numbers of its devices; all of them.
      cluster_detection_method: how to find out the rest; ``None``, ``"mpi4py"`` or ``"deactivate"``.
      initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds: how long to wait for the others.
      coordinator_bind_address: where the first process listens.
      slice_index, partition_index: the part of the machine that the process is in; there is one, 0.
    Raises:
      RuntimeError: it was called before, or there are more processes, which do not compute together yet.
      ValueError: an argument does not go with one process.

    >>> import catena as jax
    >>> jax.distributed.initialize(num_processes=1, process_id=0)
    >>> jax.distributed.shutdown()
    """
    if _initialized:
        raise RuntimeError("jax.distributed.initialize was called before; call it once, or shutdown() between")
    addresses = ("coordinator_address", coordinator_address), ("coordinator_bind_address", coordinator_bind_address)
    for name, address in addresses:
        if address is not None and not isinstance(address, str):
            raise ValueError(f"{name} must be a string such as 'localhost:1234', got {address!r}")
    check_alone(num_processes)
    numbers = {"process_id": process_id, "slice_index": slice_index, "partition_index": partition_index}
    for name, number in numbers.items():
        if number not in (None, 0):
            raise ValueError(f"{name} must be None or 0, since there is one process, got {number!r}")
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
    if local_device_ids is not None:
        asked = {local_device_ids} if isinstance(local_device_ids, int) else set(local_device_ids)
        if {cpu_device(i) for i in asked} != set(devices()):
            raise ValueError(
                f"local_device_ids must be those of all {len(devices())} devices, got {local_device_ids!r}"
            )
    _initialized.append(True)


def check_alone(num_processes: int | None) -> None:
    """Raise where there are, or are to be, several processes."""
    if num_processes is not None and (not isinstance(num_processes, int) or num_processes < 1):
        raise ValueError(f"num_processes must be a positive integer or None, got {num_processes!r}")
    source, count = f"{num_processes=}", num_processes
    for name in LAUNCHERS:
        if count is None and os.environ.get(name, "").isdecimal():
            source, count = f"{name}={os.environ[name]}", int(os.environ[name])
    if count is not None and count > 1:
        raise RuntimeError(
            f"{source}: several processes do not compute together yet. They will by MPI (mpiexec -n {count} python "
            "train.py, with mpi4py installed); until then, one process with virtual devices "
            "(jax_num_cpu_devices) runs the same program."
        )


def shutdown() -> None:
    """End computing together with others; without ``initialize`` before, nothing.

    >>> import catena as jax
    >>> jax.distributed.shutdown()
    """
    _initialized.clear()


def is_initialized() -> bool:
    """Whether ``initialize`` was called.

    >>> import catena as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return bool(_initialized)
