"""The processes that compute together: which of them this one is, and the devices of each.

There is one process, until ``catena.distributed.initialize`` finds that a launcher started more.
"""

import os

STRIDE = 2048  # the numbers of a process's devices begin at so many times its own number

# What launchers tell the processes that they start: their number, and how many there are.
LAUNCHERS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class Job:
    """This process among those of its job: ``index`` is its number, ``device_counts`` says for each process how many
    devices it has; where there is only one process, nobody has counted.
    """

    index = 0
    device_counts: tuple = ()

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self.device_counts) or 1

    @property
    def shared(self) -> bool:
        """Whether there are several."""
        return len(self.device_counts) > 1

    def numbers(self, index: int) -> range:
        """The numbers of the devices of a process."""
        return range(index * STRIDE, index * STRIDE + self.device_counts[index])


job = Job()


def launched() -> tuple[str, int] | None:
    """The number of processes that a launcher has started, and the variable that says so; ``None`` without one."""
    for _, name in LAUNCHERS:
        if os.environ.get(name, "").isdecimal():
            return name, int(os.environ[name])
    return None
