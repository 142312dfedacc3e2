"""Putting a mesh in force: PartitionSpecs refer to it, and what is computed meanwhile is on its devices."""

from __future__ import annotations

from catena.core.context import context
from catena.core.mesh import AbstractMesh, Mesh, concrete_mesh, get_abstract_mesh, hold
from catena.core.named_sharding import NamedSharding
from catena.core.partition_spec import PartitionSpec
from catena.core.placement import Placement


class set_mesh:  # noqa: N801  (a context manager, used like a function)
    """Put a mesh in force in this thread: at once, and in a ``with`` block until its end.

    Arguments:
      mesh: the mesh, or ``None`` for none.
    Raises:
      ValueError: it is no Mesh, or a function is being traced.

    >>> import catena as jax
    >>> with jax.set_mesh(jax.make_mesh((1,), ("data",))):
    ...     jax.sharding.get_abstract_mesh().axis_names
    ('data',)
    """

    __slots__ = ("prev_mesh", "prev_abstract_mesh")

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh takes a jax.sharding.Mesh or None, got {mesh!r}")
        if context.trace is not None:
            raise ValueError("set_mesh is for outside of jit and other transformations; a function is being traced")
        self.prev_mesh, self.prev_abstract_mesh = concrete_mesh(), get_abstract_mesh()
        put_in_force(mesh, None if mesh is None else mesh.abstract_mesh)

    def __enter__(self):
        return None

    def __exit__(self, exc_type, exc_value, traceback):
        put_in_force(self.prev_mesh, self.prev_abstract_mesh)


def put_in_force(mesh: Mesh | None, abstract: AbstractMesh | None) -> None:
    """Let these be what is in force in this thread."""
    everywhere = None
    if mesh is not None and not mesh.empty:
        everywhere = Placement(mesh._flat, True, NamedSharding(mesh, PartitionSpec()))
    hold(mesh=mesh, abstract_mesh=abstract, mesh_placement=everywhere)
