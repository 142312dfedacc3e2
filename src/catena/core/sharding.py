"""Where arrays are: on one device, or on several as ``pmap`` leaves them."""

from typing import Any, NamedTuple

from catena.core.device import Device, Memory
from catena.core.placement import Placement


class Sharding:
    """How an array is laid out over devices."""

    __slots__ = ()


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Arguments:
      device: the device.
      memory_kind: the kind of its memory; ``"device"`` by default.

    >>> import catena as jax, catena.numpy as jnp
    >>> jnp.ones(3).sharding
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """

    __slots__ = ("device", "memory_kind")

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if not isinstance(device, Device):
            raise TypeError(f"SingleDeviceSharding takes a device, got {device!r}")
        self.device = device
        self.memory_kind = device.memory(memory_kind).kind if memory_kind is not None else "device"

    num_devices = 1
    is_fully_replicated = True
    is_fully_addressable = True

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold the array."""
        return {self.device}

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices that hold the array and belong to this process."""
        return {self.device}

    def devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """For each device, the part of an array of this shape that it holds."""
        return {self.device: whole(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds."""
        return tuple(global_shape)

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether ``other`` lays out arrays of ``ndim`` axes in the same way."""
        return self == other

    def with_memory_kind(self, kind: str) -> "SingleDeviceSharding":
        """The same device with another of its memories."""
        return SingleDeviceSharding(self.device, memory_kind=kind)

    def __eq__(self, other):
        return isinstance(other, SingleDeviceSharding) and (self.device, self.memory_kind) == (
            other.device,
            other.memory_kind,
        )

    def __hash__(self):
        return hash((self.device, self.memory_kind))

    def __reduce__(self):
        return _rebuild, (self.device, self.memory_kind)

    def __repr__(self):
        return f"SingleDeviceSharding(device={self.device!r}, memory_kind={self.memory_kind})"


def _rebuild(device: Device, memory_kind: str) -> SingleDeviceSharding:
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class DeviceSlices(Sharding):
    """An array on several devices, as ``pmap`` gives it: each has its slice along ``axis``, or all of it."""

    __slots__ = ("devices", "axis")

    def __init__(self, devices: tuple, axis: int | None):
        self.devices, self.axis = devices, axis

    memory_kind = "device"
    is_fully_addressable = True

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device has all of the array."""
        return self.axis is None

    @property
    def num_devices(self) -> int:
        """How many devices hold the array."""
        return len(self.devices)

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold the array."""
        return set(self.devices)

    addressable_devices = device_set

    def devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """For each device, the part of an array of this shape that it holds."""
        everything = whole(global_shape)
        if self.axis is None:
            return dict.fromkeys(self.devices, everything)
        size = self.shard_shape(global_shape)[self.axis]
        return {
            d: (*everything[: self.axis], slice(i * size, (i + 1) * size), *everything[self.axis + 1 :])
            for i, d in enumerate(self.devices)
        }

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds."""
        return tuple(n // len(self.devices) if i == self.axis else n for i, n in enumerate(global_shape))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether ``other`` lays out arrays of ``ndim`` axes in the same way."""
        return self == other

    def __eq__(self, other):
        return type(other) is DeviceSlices and (self.devices, self.axis) == (other.devices, other.axis)

    def __hash__(self):
        return hash((self.devices, self.axis))

    def __reduce__(self):
        return DeviceSlices, (self.devices, self.axis)

    def __repr__(self):
        return f"DeviceSlices(devices={list(self.devices)}, axis={self.axis})"


def sharding_of(devices: tuple, axis: int | None) -> Sharding:
    """The sharding of an array on these devices."""
    return SingleDeviceSharding(devices[0]) if len(devices) == 1 else DeviceSlices(devices, axis)


class Shard(NamedTuple):
    """The part of an array that one device holds: the device, the part's index, its copy number, and its data."""

    device: Device
    index: tuple  # type: ignore[assignment]  # JAX's name; of tuples' methods nobody wants this one
    replica_id: int
    data: Any

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def whole(shape: tuple) -> tuple:
    """The index of all of an array."""
    return tuple(slice(None) for _ in shape)


def target_placement(target) -> Placement | None:
    """The place that ``target`` names: a device, a sharding, a memory of a device, or ``None``."""
    if target is None:
        return None
    if isinstance(target, Device):
        return Placement((target,))
    if isinstance(target, (SingleDeviceSharding, Memory)):
        return Placement((target.device,))
    if isinstance(target, DeviceSlices):
        return Placement(target.devices, True, target.axis)
    raise ValueError(
        "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, `jax.memory.Space` or "
        f"a pytree of these values. Received invalid value: {target}"
    )
