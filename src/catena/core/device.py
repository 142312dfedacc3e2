"""Devices: the CPU, as one device or as several virtual ones (``jax_num_cpu_devices``)."""

from __future__ import annotations

import functools
import gc

from catena.core import config
from catena.core.array import Array, ExtendedArray
from catena.core.errors import JaxRuntimeError
from catena.core.job import STRIDE, job
from catena.core.lazy import has_compiler
from catena.core.named import NamedTuple
from catena.core.namespace import alias
from catena.core.placed import PlacedArray, PlacedKeys


class Device:
    """A device that holds arrays and runs programs.

    Devices are listed by ``catena.devices()``. All CPU devices are views of the same processor; having
    several of them lets programs for many devices be written and tested on one machine.
    """

    platform = "cpu"
    device_kind = "cpu"
    id: int = 0

    def __init__(self, number: int):
        self.id = number

    @property
    def process_index(self) -> int:
        """The number of the process that the device belongs to."""
        return self.id // STRIDE if job.shared else 0

    host_id = task_id = process_index

    @property
    def local_hardware_id(self) -> int | None:
        """The number of the device among those of this process; ``None`` for those of others."""
        return self.id - job.index * STRIDE if self.process_index == job.index else None

    @property
    def client(self) -> Client:
        """The platform that the device belongs to."""
        return Client(self.platform, executor="llvm" if has_compiler() else "numpy")

    def default_memory(self) -> Memory:
        """The memory that arrays are put in."""
        return Memory(self, "device")

    def addressable_memories(self) -> list[Memory]:
        """The memories that the device can read; on the CPU they are all the same memory."""
        return [Memory(self, kind) for kind in MEMORY_KINDS]

    def memory(self, kind: str) -> Memory:
        """The memory of this kind.

        Raises:
          ValueError: when there is no such kind.
        """
        if kind not in MEMORY_KINDS:
            raise ValueError(f"the device {self!r} has memories of the kinds {MEMORY_KINDS}, not {kind!r}")
        return Memory(self, kind)

    def memory_stats(self) -> None:
        """The statistics of the device's allocator; the CPU's memory is the process's, which has none: ``None``."""
        return None

    def live_buffers(self) -> list:
        """The arrays on this device that are alive."""
        return [x for x in live_arrays() if self in devices_of(x)]

    def get_stream_for_external_ready_events(self):
        """Streams exist on GPUs only; this raises JaxRuntimeError."""
        raise JaxRuntimeError("streams for external ready events exist on GPUs only; this device is a CPU")

    def poison_execution(self, launch_id: int, error: str) -> bool:
        """Make a running program fail. Programs here end before the call that started them returns, so there
        is none to be found: ``False``.
        """
        return False

    def __repr__(self):
        return f"CpuDevice(id={self.id})"

    def __str__(self):
        return f"cpu:{self.id}"

    def __reduce__(self):
        return cpu_device, (self.id,)


MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class Memory(NamedTuple):
    """A memory of a device, by its kind."""

    device: Device
    kind: str
    platform: str = "cpu"
    process_index: int = 0

    def addressable_by_devices(self) -> list[Device]:
        """The devices that can read it."""
        return [self.device]


class Client(NamedTuple):
    """The platform behind the devices. Its ``executor`` runs programs: ``"llvm"`` as native code; ``"numpy"`` step by
    step, where there is no compiler.
    """

    platform: str = "cpu"
    platform_version: str = "catena"
    runtime_type: str = "catena"
    executor: str = "llvm"

    def devices(self) -> list[Device]:
        """The devices of this platform."""
        return devices(self.platform)

    def device_count(self) -> int:
        """How many there are."""
        return len(self.devices())

    def live_arrays(self) -> list[Array]:
        """All arrays that are alive in this process."""
        return live_arrays()

    def process_index(self) -> int:
        """The number of this process."""
        return job.index

    def local_devices(self) -> list[Device]:
        """The devices of this platform that belong to this process."""
        return local_devices(backend=self.platform)

    def local_device_count(self) -> int:
        """How many these are."""
        return len(self.local_devices())

    def live_buffers(self) -> list[Array]:
        """All arrays that are alive in this process."""
        return live_arrays()


def live_arrays() -> list[Array]:
    """All arrays that are alive in this process; the garbage collector knows them, so arrays pay nothing for it."""
    return [x for x in gc.get_objects() if type(x) in ARRAYS and not x.is_deleted()]


ARRAYS = (Array, ExtendedArray, PlacedArray, PlacedKeys)


def devices_of(array: Array) -> tuple:
    """The devices that an array is on."""
    placement = array._placement
    return (first_device(),) if placement is None else placement.devices


@functools.cache
def cpu_device(number: int) -> Device:
    """The CPU device with this number; one object each."""
    return Device(number)


def first_device() -> Device:
    """The first device of this process, where arrays are that nobody put anywhere."""
    return cpu_device(job.index * STRIDE)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend.

    Arguments:
      backend: ``"cpu"``, or ``None`` for the default.
    Returns:
      The devices in order of their numbers, those of other processes too; ``jax_num_cpu_devices`` says how many there
      are in each.
    Raises:
      RuntimeError: when there is no such backend.

    >>> import catena as jax
    >>> jax.devices()[0]
    CpuDevice(id=0)
    """
    check_backend(backend)
    check_platforms(config.read("jax_platform_name") or config.read("jax_platforms"))
    config.fix_number_of_devices()
    if job.shared:
        return [cpu_device(number) for index in range(job.size) for number in job.numbers(index)]
    return [cpu_device(i) for i in range(config.read("jax_num_cpu_devices"))]


def check_backend(backend) -> None:
    """Raise RuntimeError where ``backend`` names a platform that is not here."""
    if backend is None or backend == "cpu" or isinstance(backend, Device):
        return
    if backend in ("gpu", "cuda", "rocm", "tpu", "metal"):
        raise RuntimeError(
            f"Unknown backend: '{backend}' requested, but no platforms that are instances of {backend} are present. "
            "Platforms present are: cpu"
        )
    raise RuntimeError(f"Unknown backend {backend}. Available backends are ['cpu']")


def check_platforms(platforms: str | None) -> None:
    """Raise RuntimeError where the flag ``jax_platforms`` (or its older name) leaves nothing that is here."""
    if platforms and "cpu" not in platforms.split(","):
        raise RuntimeError(
            f"Unable to initialize backend '{platforms}': the only platform here is cpu (set JAX_PLATFORMS=cpu)"
        )


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of a process.

    Arguments:
      process_index: the number of the process; by default this one. ``host_id`` is its older name.
      backend: as for ``devices``.
    Raises:
      ValueError: there is no such process.

    >>> import catena as jax
    >>> len(jax.local_devices()) == jax.local_device_count()
    True
    """
    asked = next((index for index in (process_index, host_id) if index is not None), job.index)
    if asked not in range(job.size):
        raise ValueError(f"Unknown process_index {asked}; the processes have the numbers 0 to {job.size - 1}")
    found = devices(backend)
    return [d for d in found if d.process_index == asked] if job.shared else found


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that compute together.

    >>> import catena as jax
    >>> jax.process_index()
    0
    """
    check_backend(backend)
    return job.index


def process_count(backend: str | None = None) -> int:
    """The number of processes that compute together.

    >>> import catena as jax
    >>> jax.process_count()
    1
    """
    check_backend(backend)
    return job.size


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes that compute together.

    >>> import catena as jax
    >>> jax.process_indices()
    [0]
    """
    return list(range(process_count(backend)))


host_id = alias(process_index, "host_id")  # older names
host_count = alias(process_count, "host_count")
host_ids = alias(process_indices, "host_ids")


def device_count(backend: str | None = None) -> int:
    """The number of devices of a backend.

    >>> import catena as jax
    >>> jax.device_count() >= 1
    True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    >>> import catena as jax
    >>> jax.local_device_count() >= 1
    True
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The name of the platform that runs programs by default.

    >>> import catena as jax
    >>> jax.default_backend()
    'cpu'
    """
    return "cpu"


def default_device() -> Device:
    """Where new arrays are made: the flag ``jax_default_device``, or the first device."""
    chosen = config.read("jax_default_device")
    if isinstance(chosen, Device):
        return chosen
    return first_device()
