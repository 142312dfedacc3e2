"""Layouts by name: a mesh of devices, and which of its axes the axes of an array are split over."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from catena.core.aval import ShapedArray
from catena.core.device import MEMORY_KINDS
from catena.core.mesh import AbstractMesh, Mesh, get_abstract_mesh
from catena.core.partition_spec import UNCONSTRAINED, PartitionSpec, names_of
from catena.core.sharding import Sharding, Tiles


class DuplicateSpecError(ValueError):
    """A PartitionSpec names an axis of the mesh twice."""


class NamedSharding(Sharding):
    """The layout over a mesh that a PartitionSpec says.

    Arguments:
      mesh: the mesh; an AbstractMesh where there need be no devices.
      spec: which axes of the mesh the axes of arrays are split over.
      memory_kind: the kind of the devices' memory; ``"device"`` by default.
    Raises:
      ValueError: ``spec`` names an axis that the mesh has not, or one twice, or there is no such memory.
      TypeError: these are no mesh and no PartitionSpec.

    >>> import catena as jax
    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    >>> jax.NamedSharding(mesh, jax.P("data"))
    NamedSharding(mesh=Mesh('data': 1, axis_types=(Auto,)), spec=P('data',), memory_kind=device)
    """

    __slots__ = ("mesh", "spec", "memory_kind", "_hash")

    mesh: Mesh | AbstractMesh
    spec: PartitionSpec

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None = None):
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"the mesh of a NamedSharding must be a Mesh or an AbstractMesh, got {mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"the spec of a NamedSharding must be a PartitionSpec, got {spec!r}")
        check_spec(mesh, spec)
        if memory_kind is not None and memory_kind not in MEMORY_KINDS:
            raise ValueError(f"the devices have memories of the kinds {MEMORY_KINDS}, not {memory_kind!r}")
        if memory_kind is None and isinstance(mesh, Mesh) and not mesh.empty:
            memory_kind = "device"
        for name, value in (("mesh", mesh), ("spec", spec), ("memory_kind", memory_kind)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_hash", hash((mesh, spec, memory_kind)))

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r} of a NamedSharding; its update makes another")

    @property
    def _device_assignment(self) -> tuple:
        return self._concrete("devices")._flat

    def _concrete(self, what: str) -> Mesh:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"a sharding over an AbstractMesh has no {what}: {self}")
        return self.mesh

    def _tiles(self, ndim: int) -> Tiles:
        return tiles(self.mesh.shape_tuple, self.spec.partitions, ndim)

    @property
    def _summed(self) -> frozenset:
        return self.spec.unreduced

    @property
    def num_devices(self) -> int:
        """How many devices hold the array."""
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds all of the array."""
        sizes = self.mesh.shape
        return not self.spec.unreduced and all(sizes[n] == 1 for e in self.spec for n in names_of(e))

    @property
    def replicated_axes(self) -> frozenset:
        """The axes of the mesh along which all devices hold the same."""
        used = {n for e in self.spec for n in names_of(e)}
        return frozenset(self.mesh.axis_names) - used - self.spec.unreduced - self.spec.reduced

    def check_compatible_aval(self, aval_shape: tuple) -> None:
        """Raise ValueError where arrays of this shape have fewer axes than the PartitionSpec has entries."""
        if len(aval_shape) < len(self.spec):
            raise ValueError(
                f"{self} is for arrays of at least {len(self.spec)} axes, and this one has {len(aval_shape)}, of the "
                f"shape {tuple(aval_shape)}{'; for scalars the PartitionSpec is P()' if not aval_shape else ''}"
            )

    def whole(self, ndim: int) -> NamedSharding:
        """The layout of arrays of which each of the devices has a copy."""
        return self.update(spec=PartitionSpec(*(None,) * ndim if self.mesh.explicit_axes else ()))

    def as_typed(self, aval) -> NamedSharding:
        """This layout, with what the type of an array says of Explicit axes in place of what it says itself."""
        if aval.said_sharding is None:
            return self
        said, spec = aval.said_sharding.spec, (*self.spec, *(None,) * aval.ndim)
        automatic = set(self.mesh.auto_axes)
        entries = [
            (*names_of(e), *(n for n in names_of(own) if n in automatic)) for e, own in zip(said, spec, strict=False)
        ]
        return self.update(spec=said.update(partitions=entries))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same layout in another of the devices' memories."""
        return NamedSharding(self.mesh, self.spec, kind)

    def update(self, **kwargs) -> NamedSharding:
        """The same layout with some of ``mesh``, ``spec`` and ``memory_kind`` replaced."""
        parts: dict[str, Any] = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self.memory_kind}
        unknown = sorted(set(kwargs) - set(parts))
        if unknown:
            raise TypeError(f"a NamedSharding has {', '.join(parts)}, got {unknown[0]!r}")
        parts.update(kwargs)
        spec = parts["spec"]
        parts["spec"] = spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec)
        return NamedSharding(**parts)

    def __eq__(self, other):
        if self is other:
            return True
        if type(other) is not NamedSharding or self._hash != other._hash:
            return False
        return (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)

    def __hash__(self):
        return self._hash

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return NamedSharding, (self.mesh, self.spec, self.memory_kind)

    def __repr__(self):
        memory = f", memory_kind={self.memory_kind}" if self.memory_kind is not None else ""
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{memory})"


def check_spec(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """Raise ValueError where ``spec`` does not fit ``mesh``."""
    used: set = set()
    for name in (n for entry in spec.partitions for n in names_of(entry)):
        if name not in mesh.axis_names:
            raise ValueError(f"{spec} names the axis {name!r}, which the mesh has not; it has {mesh.axis_names}")
        if name in used:
            raise DuplicateSpecError(f"{spec} names the axis {name!r} twice; it can split one axis of an array only")
        used.add(name)
    if UNCONSTRAINED in spec.partitions and mesh.axis_types and not mesh.auto_axes:
        raise ValueError(f"{spec} leaves an axis to the compiler, but the mesh has no axes of type Auto: {mesh}")
    for word, names in (("unreduced", spec.unreduced), ("reduced", spec.reduced)):
        foreign = sorted(names - set(mesh.axis_names), key=str)
        if foreign:
            raise ValueError(f"{spec} has {foreign[0]!r} as {word} axis, which the mesh has not; {mesh.axis_names=}")
        others = sorted(names - set(mesh.explicit_axes), key=str)
        if others:
            raise ValueError(f"{word} axes must be of type Explicit, and {others[0]!r} is not one of {mesh}")


@functools.lru_cache(1024)
def tiles(axes: tuple, partitions: tuple, ndim: int) -> Tiles:
    """How a mesh with these names and sizes of axes cuts arrays of ``ndim`` axes."""
    names, sizes = [name for name, _ in axes], [size for _, size in axes]
    where = dict(zip(names, np.indices(sizes).reshape(len(sizes), -1), strict=True))
    counts, places = [1] * ndim, np.zeros((int(np.prod(sizes, dtype=int)), ndim), int)
    for axis, entry in enumerate(partitions[:ndim]):
        for name in names_of(entry):
            size = sizes[names.index(name)]
            counts[axis] *= size
            places[:, axis] = places[:, axis] * size + where[name]
    places.flags.writeable = False
    return Tiles(tuple(counts), places)


def sharding_of_type(aval: ShapedArray) -> NamedSharding:
    """How arrays of this type are split, over an abstract mesh: where nothing is said, that in force."""
    if aval.said_sharding is not None:
        return aval.said_sharding
    return NamedSharding(get_abstract_mesh(), PartitionSpec(*(None,) * aval.ndim))
