"""What users name as the place of an array: a device, a layout, a specification for the mesh in force."""

from typing import Any

from catena.core.context import context
from catena.core.device import Device, Memory, default_device
from catena.core.formats import Format, Layout
from catena.core.lazy import LazyModule
from catena.core.memory import MemorySpace
from catena.core.partition_spec import UNCONSTRAINED, PartitionSpec
from catena.core.placement import Placement
from catena.core.sharding import Sharding, SingleDeviceSharding, placement_of, sharding_of

layouts: Any = LazyModule("catena.core.named_sharding")  # programs without a mesh need not wait for it


def target_placement(target) -> Placement | None:
    """The place that ``target`` names, or ``None`` where it names none.

    Raises:
      ValueError: it is nothing of that kind, or a PartitionSpec where no mesh is in force, or a layout over an abstract
        mesh.
    """
    if isinstance(target, Format):
        target = target.sharding
    if target is None:
        return None
    if isinstance(target, Device):
        return Placement((target,))
    if isinstance(target, Memory):
        target = SingleDeviceSharding(target.device, memory_kind=target.kind)
    if isinstance(target, PartitionSpec):
        target = of_mesh_in_force(target)
    if isinstance(target, Sharding):
        return placement_of(target)
    raise ValueError(
        "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, `jax.memory.Space` or "
        f"a pytree of these values. Received invalid value: {target}"
    )


def layout_of(target) -> Layout | None:
    """The order of axes that ``target`` names, or ``None`` where it names none.

    Raises:
      ValueError: it leaves the order to the compiler, which has no part in this.
    """
    layout: Any = target.layout if isinstance(target, Format) else None
    if layout is Layout.AUTO:
        raise ValueError(f"device_put: the layout must say in which order the axes are to lie, got {target}")
    return layout


def in_memory(x, target):
    """What ``target`` means for the value ``x``: a space of memory, the layout that it has, in that memory.

    Raises:
      ValueError: the space is any memory, which is none to put something in.
    """
    if not isinstance(target, MemorySpace):
        return target
    if target is MemorySpace.Any:
        raise ValueError("Space.Any is no memory to put arrays in; take Space.Device or Space.Host")
    placement = getattr(x, "_placement", None)
    layout = SingleDeviceSharding(default_device()) if placement is None else sharding_of(placement)
    return layout.with_memory_kind("device" if target is MemorySpace.Device else "pinned_host")


def of_mesh_in_force(
    spec: PartitionSpec, error: type = ValueError, where: str = "here", entered: bool = False
) -> Sharding:
    """The layout that a bare PartitionSpec means.

    Arguments:
      spec: the PartitionSpec.
      error: the class of the error where no mesh is in force.
      where: what it was passed as, for the error.
      entered: whether the mesh of ``with mesh:`` counts too.
    """
    mesh = context.mesh or (context.physical_mesh if entered else None)
    if mesh is None:
        raise error(
            f"{spec} is passed {where} and no mesh is in force that it could refer to; put one in force by "
            "`with jax.set_mesh(mesh):`, or pass a NamedSharding"
        )
    return layouts.NamedSharding(mesh, spec)


def over_abstract_mesh(target) -> bool:
    """Whether ``target`` is a layout over a mesh of which only the axes are said."""
    return hasattr(target, "mesh") and isinstance(target.mesh, layouts.AbstractMesh)


def on_devices(sharding: Any, own: Placement | None = None) -> Sharding:
    """A layout over an abstract mesh as one over devices: of ``own``, where an array lies, or of the mesh in force,
    whichever has these axes. Other layouts, and those for which there is no such mesh, as they are.
    """
    if over_abstract_mesh(sharding):
        for mesh in (getattr(own and own.layout, "mesh", None), context.mesh):
            if isinstance(mesh, layouts.Mesh) and mesh.abstract_mesh == sharding.mesh:
                return sharding.update(mesh=mesh)
    return sharding


def check_layout(placement: Placement | None, shape: tuple) -> None:
    """Raise ValueError where arrays of this shape cannot be laid out so."""
    if placement is not None and placement.layout is not None:
        if UNCONSTRAINED in getattr(placement.layout, "spec", ()):
            raise ValueError(f"{placement.layout} leaves an axis to the compiler, which is for constraints in programs")
        placement.layout.shard_shape(shape)
