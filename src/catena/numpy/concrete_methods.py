"""The methods and properties that arrays alone have, since these need a value: where it lies, its bytes, its memory."""

from __future__ import annotations

from typing import Any

from catena.core.array import Array, live, make_array
from catena.core.device import Device, devices_of
from catena.core.errors import JaxRuntimeError
from catena.core.placed import place
from catena.core.traceback import api_boundary
from catena.numpy import placement
from catena.runtime import dlpack


def tobytes(self, order: str = "C") -> bytes:
    """The bytes of the elements.

    Arguments:
      order: "C" with the last index changing fastest, "F" with the first.
    Returns:
      A bytes object.

    >>> import catena.numpy as jnp
    >>> jnp.array([1, 2], "int8").tobytes()
    b'\\x01\\x02'
    """
    return live(self).tobytes(order)


def devices(self) -> set[Device]:
    """The devices that the array is on.

    Returns:
      A set; of one device, unless ``pmap`` spread the array.

    >>> import catena.numpy as jnp
    >>> len(jnp.ones(2).devices())
    1
    """
    return set(devices_of(self))


def platform(self) -> str:
    """The name of the platform that the array is on.

    Returns:
      A string.

    >>> import catena.numpy as jnp
    >>> jnp.ones(2).platform()
    'cpu'
    """
    return devices_of(self)[0].platform


def is_ready(self) -> bool:
    """Whether the value is computed: here it always is.

    Returns:
      True.
    Raises:
      RuntimeError: the array was deleted.

    >>> import catena.numpy as jnp
    >>> jnp.ones(2).is_ready()
    True
    """
    live(self)
    return True


def clone(self) -> Array:
    """Another array of the same value, which shares its memory.

    Returns:
      An array.

    >>> import catena.numpy as jnp
    >>> jnp.arange(2).clone()
    Array([0, 1], dtype=int32)
    """
    return place(make_array(live(self), self.weak_type), self._placement)


def addressable_data(self, index: int) -> Array:
    """The part of the array that is on one of its devices.

    Arguments:
      index: the number of the device among those of the array.
    Returns:
      An array.

    >>> import catena.numpy as jnp
    >>> jnp.arange(2).addressable_data(0)
    Array([0, 1], dtype=int32)
    """
    return clone(placement.shards(self)[index].data)


def copy_to_host_async(self) -> None:
    """Nothing: the array is on the host.

    Returns:
      None.

    >>> import catena.numpy as jnp
    >>> jnp.arange(2).copy_to_host_async()
    """


def on_device_size_in_bytes(self) -> int:
    """The bytes that the elements take.

    Returns:
      An integer.

    >>> import catena.numpy as jnp
    >>> jnp.ones(3).on_device_size_in_bytes()
    12
    """
    layout = placement.sharding(self)
    return self.nbytes if len(layout.device_set) == 1 else layout.num_devices * self.addressable_data(0).nbytes


def unsafe_buffer_pointer(self) -> int:
    """The address of the first element, for libraries that want one; valid while the array lives.

    Returns:
      An integer.
    Raises:
      JaxRuntimeError: the array is on several devices.

    >>> import catena.numpy as jnp
    >>> x = jnp.ones(3)
    >>> x.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    True
    """
    if len(devices_of(self)) > 1:
        raise JaxRuntimeError("the array is on several devices; ask one of its addressable_shards for its data")
    return live(self).__array_interface__["data"][0]


def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:  # noqa: N807
    """The array as a DLPack capsule, without copying where the consumer knows read-only memory."""
    return dlpack.export(self, stream, max_version, dl_device, copy)


def __dlpack_device__(self) -> tuple:  # noqa: N807
    """The kind and number of the device: the CPU."""
    return dlpack.device(self)


METHODS = {
    "tobytes": tobytes,
    "devices": devices,
    "platform": platform,
    "is_ready": is_ready,
    "clone": clone,
    "addressable_data": addressable_data,
    "copy_to_host_async": copy_to_host_async,
    "on_device_size_in_bytes": on_device_size_in_bytes,
    "unsafe_buffer_pointer": unsafe_buffer_pointer,
    "__dlpack__": __dlpack__,
    "__dlpack_device__": __dlpack_device__,
}
PROPERTIES = {
    "device": (placement.device, "The device that the array is on."),
    "committed": (placement.committed, "Whether the user chose the device."),
    "_committed": (placement.committed, "Whether the user chose the device, as JAX's arrays spell it."),
    "sharding": (placement.sharding, "Where the array is."),
    "format": (placement.format_of, "The order of the axes in memory, and where the array is."),
    "traceback": (lambda self: None, "Where the array was made, where somebody noted it: nobody does, so None."),
    "addressable_shards": (placement.shards, "The parts of the array on devices of this process, one for each."),
    "global_shards": (placement.global_shards, "The parts on all devices; those in other processes have no data."),
    "is_fully_addressable": (placement.is_here, "Whether all devices of the array belong to this process."),
    "is_fully_replicated": (placement.is_copied, "Whether every device of the array has all of it."),
}


def install() -> None:
    """Give Array what the tables say."""
    for name, method in METHODS.items():
        setattr(Array, name, api_boundary(method))
    for name, (getter, doc) in PROPERTIES.items():
        setattr(Array, name, property(getter, doc=doc))
