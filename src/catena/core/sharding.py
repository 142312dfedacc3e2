"""How arrays are laid out over devices: what all layouts have in common, and the layout on one device."""

from __future__ import annotations

from typing import Any

import numpy as np

from catena.core.device import Device
from catena.core.job import job
from catena.core.named import NamedTuple
from catena.core.placement import Placement


class IndivisibleError(ValueError):
    """The size of an axis is no multiple of the number of devices that it is split over."""


class Tiles(NamedTuple):
    """An array cut into tiles: how many along each axis, and for each device which tile is its own."""

    counts: tuple
    places: np.ndarray  # (devices, axes)


class Sharding:
    """How an array is laid out over devices.

    A layout says which devices there are, in order, and cuts an array of any number of axes into tiles; all else
    follows.
    """

    __slots__ = ()

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory that the parts are in; None where nothing is said of it."""
        return None

    @property
    def _device_assignment(self) -> tuple:
        """The devices in the order of the layout."""
        raise TypeError(f"{type(self).__name__} names no devices: it must be a subclass that does")

    @property
    def _addressable_device_assignment(self) -> tuple:
        """Those of them that belong to this process; orbax reads this."""
        return tuple(d for d in self._device_assignment if d.process_index == job.index)

    def _tiles(self, ndim: int) -> Tiles:
        """How arrays with ``ndim`` axes are cut; by default not at all."""
        return Tiles((1,) * ndim, np.zeros((self.num_devices, ndim), int))

    @property
    def device_set(self) -> set[Device]:
        """The devices that hold the array."""
        return set(self._device_assignment)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices that hold the array and belong to this process."""
        return {d for d in self.device_set if d.process_index == job.index} if job.shared else self.device_set

    @property
    def num_devices(self) -> int:
        """How many devices hold the array."""
        return len(self._device_assignment)

    @property
    def has_addressable_devices(self) -> bool:
        """Whether any of the devices belongs to this process."""
        return bool(self.addressable_devices)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all of the devices belong to this process."""
        return self.addressable_devices == self.device_set

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        return self.num_devices == 1

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where arrays of this shape have too few axes for the layout."""

    def shard_shape(self, global_shape: tuple) -> tuple:
        """The shape of the part that each device holds.

        Raises:
          ValueError: the layout does not divide the shape.
        """
        self.check_compatible_aval(global_shape)
        counts = self._tiles(len(global_shape)).counts
        for axis, (size, count) in enumerate(zip(global_shape, counts, strict=True)):
            if size % count:
                raise IndivisibleError(
                    f"{self} splits axis {axis} into {count} parts, which its size {size} is no multiple of (the shape "
                    f"is {tuple(global_shape)}, the numbers of parts are {list(counts)})"
                )
        return tuple(size // count for size, count in zip(global_shape, counts, strict=True))

    def devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """For each device, the part of an array of this shape that it holds, as an index of slices.

        Raises:
          ValueError: the layout does not divide the shape.
        """
        sizes, (counts, places) = self.shard_shape(global_shape), self._tiles(len(global_shape))
        return {
            device: tuple(
                slice(None) if c == 1 else slice(i * n, (i + 1) * n)
                for i, n, c in zip(place, sizes, counts, strict=True)
            )
            for device, place in zip(self._device_assignment, places.tolist(), strict=True)
        }

    def addressable_devices_indices_map(self, global_shape: tuple) -> dict[Device, tuple]:
        """The same for the devices that belong to this process."""
        found = self.devices_indices_map(global_shape)
        return {d: index for d, index in found.items() if d.process_index == job.index} if job.shared else found

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether ``other`` lays out arrays of ``ndim`` axes in the same way, on the same devices in the same order."""
        if self == other:
            return True
        return isinstance(other, Sharding) and self._layout(ndim) == other._layout(ndim)

    def _layout(self, ndim: int) -> tuple:
        """What layouts that are equivalent have in common."""
        counts, places = self._tiles(ndim)
        return self._device_assignment, self.memory_kind, counts, places.tobytes(), self._summed

    @property
    def _summed(self) -> frozenset:
        """The axes of the mesh along which devices hold summands of the array."""
        return frozenset()

    def as_typed(self, aval) -> Sharding:
        """This layout, as the type of an array wants it: only layouts over meshes have such types."""
        return self

    def of_arrays(self) -> Sharding:
        """This layout, as arrays have it that are put so."""
        return self

    def whole(self, ndim: int) -> Sharding:
        """The layout of arrays of which each of the devices has a copy."""
        raise TypeError(f"{type(self).__name__} says nothing of copies: it must be a subclass that does")

    def with_memory_kind(self, kind: str) -> Sharding:
        """The same layout in another of the devices' memories."""
        raise TypeError(f"{type(self).__name__} has one kind of memory")


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
    memory_kind: str

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        if not isinstance(device, Device):
            raise TypeError(f"SingleDeviceSharding takes a device, got {device!r}")
        self.device = device
        self.memory_kind = device.memory(memory_kind).kind if memory_kind is not None else "device"

    @property
    def _device_assignment(self) -> tuple:
        return (self.device,)

    def whole(self, ndim: int) -> SingleDeviceSharding:
        """The layout of arrays of which each of the devices has a copy: the same."""
        return self

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
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


def make_single_device_sharding(device, *, memory_kind=None) -> SingleDeviceSharding:
    """The layout of arrays that are whole on one device.

    Arguments:
      device: the device.
      memory_kind: the kind of its memory; ``"device"`` by default.

    >>> import catena as jax
    >>> jax.sharding.make_single_device_sharding(jax.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


def sharding_of(placement: Placement) -> Sharding:
    """How an array that is placed so lies on its devices."""
    return SingleDeviceSharding(placement.devices[0]) if placement.layout is None else placement.layout


def placement_of(sharding: Sharding, committed: bool = True) -> Placement:
    """The placement that a layout describes."""
    if type(sharding) is SingleDeviceSharding and sharding.memory_kind == "device":
        return Placement((sharding.device,), committed)
    layout = sharding.of_arrays()
    return Placement(layout._device_assignment, committed, layout)


class Shard:
    """The part of an array that one device holds: the device, the part's index, its copy number, and its data.

    Arguments:
      device: the device.
      sharding, global_shape: how the array lies, and its shape.
      data: the part, or None where it is in another process.
    """

    __slots__ = ("device", "data", "_sharding", "_global_shape")

    def __init__(self, device: Device, sharding: Sharding, global_shape: tuple, data: Any = None):
        self.device, self.data, self._sharding, self._global_shape = device, data, sharding, tuple(global_shape)

    @property
    def index(self) -> tuple:
        """The slices that the part is of the array."""
        return self._sharding.devices_indices_map(self._global_shape)[self.device]

    @property
    def replica_id(self) -> int:
        """The number of the copy, where several devices hold the same part."""
        places = self._sharding.devices_indices_map(self._global_shape)
        return [device for device, index in places.items() if index == places[self.device]].index(self.device)

    def __repr__(self):
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"
