"""Devices: the CPU, as one device or as several virtual ones (``jax_num_cpu_devices``)."""

import functools

from catena.core import config


class Device:
    """A device that holds arrays and runs programs.

    Devices are listed by ``catena.devices()``. All CPU devices are views of the same processor; having several of them
    lets programs for many devices be written and tested on one machine.
    """

    platform = "cpu"
    device_kind = "cpu"
    process_index = 0
    host_id = 0
    task_id = 0

    def __init__(self, number: int):
        self.id = self.local_hardware_id = number

    def __repr__(self):
        return f"CpuDevice(id={self.id})"

    def __str__(self):
        return f"cpu:{self.id}"

    def __reduce__(self):
        return cpu_device, (self.id,)


Device.__name__ = Device.__qualname__ = "Device"


@functools.cache
def cpu_device(number: int) -> Device:
    """The CPU device with this number; one object each."""
    return Device(number)


def devices(backend: str | None = None) -> list[Device]:
    """The devices of a backend.

    Arguments:
      backend: ``"cpu"``, or ``None`` for the default.

    Returns:
      The devices in order of their numbers; ``jax_num_cpu_devices`` says how many there are.

    Raises:
      RuntimeError: when there is no such backend.

    Example:
      >>> import catena as jax
      >>> jax.devices()[0]
      CpuDevice(id=0)
    """
    check_backend(backend)
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


def local_devices(process_index: int | None = None, backend: str | None = None, host_id: int | None = None) -> list[Device]:
    """The devices of this process.

    Arguments:
      process_index: the number of a process; 0 is the only one. ``host_id`` is its older name.
      backend: as for ``devices``.

    Example:
      >>> import catena as jax
      >>> len(jax.local_devices()) == jax.local_device_count()
      True
    """
    for index in (process_index, host_id):
        if index not in (None, 0):
            raise ValueError(f"Unknown process_index {index}; this is the only process, number 0")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """The number of devices of a backend.

    Example:
      >>> import catena as jax
      >>> jax.device_count() >= 1
      True
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    Example:
      >>> import catena as jax
      >>> jax.local_device_count() >= 1
      True
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The name of the platform that runs programs by default.

    Example:
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
    return cpu_device(0)
