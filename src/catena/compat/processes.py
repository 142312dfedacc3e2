"""The processes of a job, as libraries read them in ``jax._src.distributed``."""

from __future__ import annotations

from catena.core.job import job


class State:
    """What is known of the job. Processes find each other by MPI: nobody listens, and there is no client."""

    client = service = coordinator_address = preemption_sync_manager = partition_index = None

    @property
    def process_id(self) -> int:
        """The number of this process."""
        return job.index

    @property
    def num_processes(self) -> int:
        """How many processes there are."""
        return job.size


global_state = State()
