"""Layouts over devices in a row, without a mesh, in XLA's words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catena.core.device import Device
from catena.core.hlo_sharding import HloSharding, OpSharding, Type, parsed
from catena.core.mesh import Mesh
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.sharding import Sharding, Tiles


class GSPMDSharding(Sharding):
    """A layout of arrays over devices that XLA's messages and texts say.

    Arguments:
      devices: the devices, which the layout numbers from 0.
      op_sharding: the layout: an ``HloSharding``, or a message of it.
      memory_kind: the kind of the devices' memory; ``"device"`` by default.
    Raises:
      TypeError: an argument is not as described. ValueError: there are no devices, or not as many as the layout has.

    >>> import catena as jax
    >>> from catena.extend import sharding
    >>> sharding.GSPMDSharding(jax.devices()[:1], sharding.get_hlo_sharding_from_serialized_proto(b""))
    GSPMDSharding({replicated}, memory_kind=device)
    """

    __slots__ = ("_devices", "_hlo_sharding", "memory_kind")
    memory_kind: str

    def __init__(
        self, devices: Sequence[Device], op_sharding: OpSharding | HloSharding, memory_kind: str | None = None
    ):
        self._devices = tuple(devices)
        if not all(isinstance(d, Device) for d in self._devices):
            raise TypeError(f"GSPMDSharding takes devices, got {devices!r}")
        if not self._devices:
            raise ValueError("GSPMDSharding takes at least one device, got none")
        if not isinstance(op_sharding, (OpSharding, HloSharding)):
            raise TypeError(f"op_sharding must be an OpSharding or an HloSharding, got {op_sharding!r}")
        self._hlo_sharding = HloSharding(op_sharding) if isinstance(op_sharding, OpSharding) else op_sharding
        numbers = self._hlo_sharding.tile_assignment_devices()
        if self._hlo_sharding.is_tiled() and sorted(numbers) != list(range(len(self._devices))):
            raise ValueError(f"{self._hlo_sharding} does not number {len(self._devices)} devices from 0")
        self.memory_kind = "device" if memory_kind is None else self._devices[0].memory(memory_kind).kind

    @classmethod
    def get_replicated(cls, devices: Sequence[Device], *, memory_kind: str | None = None) -> GSPMDSharding:
        """All of the array on each of the devices."""
        return cls(devices, HloSharding.replicate(), memory_kind)

    @property
    def _device_assignment(self) -> tuple:
        return self._devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        return self.num_devices == 1 or self._hlo_sharding.is_replicated()

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where arrays of this shape have fewer axes than the layout."""
        if self._hlo_sharding.is_tiled() and len(aval_shape) < self._hlo_sharding.num_tiled():
            raise ValueError(f"{self} is for arrays of {self._hlo_sharding.num_tiled()} axes, got {tuple(aval_shape)}")

    def _tiles(self, ndim: int) -> Tiles:
        layout = self._hlo_sharding
        if layout.is_replicated():
            return super()._tiles(ndim)
        if not layout.is_tiled() or set(layout.to_proto().last_tile_dims) - {Type.REPLICATED}:
            raise ValueError(f"{self} does not say which part of an array each device has")
        if ndim != layout.num_tiled():
            raise ValueError(f"{self} is for arrays of {layout.num_tiled()} axes, got one of {ndim}")
        dims = layout.tile_assignment_dimensions()
        places = np.indices(dims).reshape(len(dims), -1).T[np.argsort(layout.tile_assignment_devices())]
        return Tiles(tuple(dims[:ndim]), places[:, :ndim])

    def of_arrays(self) -> NamedSharding:
        """This layout over a mesh of its own, with an axis for each of the tiles': programs are split over meshes."""
        layout = self._hlo_sharding
        ndim = layout.num_tiled() if layout.is_tiled() else 0
        self._tiles(ndim)  # an error where it says no parts
        dims = layout.tile_assignment_dimensions() if layout.is_tiled() else [self.num_devices]
        order = layout.tile_assignment_devices() if layout.is_tiled() else range(self.num_devices)
        names = tuple(f"tiles_{axis}" for axis in range(len(dims)))
        mesh = Mesh(np.array([self._devices[i] for i in order], dtype=object).reshape(dims), names)
        return NamedSharding(mesh, PartitionSpec(*names[:ndim]), self.memory_kind)

    def whole(self, ndim: int) -> GSPMDSharding:
        """The layout of arrays of which each of the devices has a copy."""
        return GSPMDSharding.get_replicated(self._devices, memory_kind=self.memory_kind)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same layout in another of the devices' memories."""
        return GSPMDSharding(self._devices, self._hlo_sharding, kind)

    def _identity(self) -> tuple:
        return self._devices, self._hlo_sharding, self.memory_kind

    def __eq__(self, other):
        return isinstance(other, GSPMDSharding) and self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __reduce__(self):
        return _rebuild, (self._devices, self._hlo_sharding.to_proto().SerializeToString(), self.memory_kind)

    def __repr__(self):
        return f"GSPMDSharding({self._hlo_sharding}, memory_kind={self.memory_kind})"


def _rebuild(devices: tuple, data: bytes, memory_kind: str) -> GSPMDSharding:
    return GSPMDSharding(devices, parsed(data), memory_kind)
