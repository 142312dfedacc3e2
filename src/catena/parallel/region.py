"""Inside a ``shard_map``: which axes of the mesh are Manual there, and whether types say what varies over them."""

from __future__ import annotations

from catena.core.context import context
from catena.core.mesh import AbstractMesh, AxisType, Mesh, hold
from catena.core.named import NamedTuple


class Region(NamedTuple):
    """What a function in a ``shard_map`` is traced in.

    ``mesh`` is the mesh around it, ``axes`` those of its axes that become Manual, in order, and ``typed`` says whether
    types say over which of them values vary. Within a ``with inside(region)`` block that is what is in force.
    """

    mesh: Mesh | AbstractMesh
    axes: tuple
    typed: bool

    @property
    def sizes(self) -> tuple:
        """The sizes of the axes."""
        return tuple(self.mesh.shape[name] for name in self.axes)

    def size(self, names) -> int:
        """Over how many devices these axes of the mesh spread."""
        count = 1
        for name in names:
            count *= self.mesh.shape[name]
        return count

    @property
    def inner_mesh(self) -> AbstractMesh:
        """The mesh as it is seen from inside."""
        return self.mesh.abstract_mesh.update_axis_types(dict.fromkeys(self.axes, AxisType.Manual))

    def others(self, names) -> tuple:
        """The axes that are not among ``names``."""
        return tuple(name for name in self.axes if name not in names)


class inside:  # noqa: N801  (a context manager, used like a keyword)
    """Trace what belongs in a region within a ``with`` block."""

    __slots__ = ("region", "before")

    def __init__(self, region: Region):
        self.region = region

    def __enter__(self):
        region = self.region
        self.before = context.abstract_mesh, context.typed_axes, context.axis_env
        typed = context.typed_axes | set(region.axes) if region.typed else frozenset()
        hold(abstract_mesh=region.inner_mesh, typed_axes=typed)
        context.axis_env = {**context.axis_env, **dict(zip(region.axes, region.sizes, strict=True))}

    def __exit__(self, *exc_info):
        mesh, typed, context.axis_env = self.before
        hold(abstract_mesh=mesh, typed_axes=typed)


class outside:  # noqa: N801
    """Trace what is of no region within a ``with`` block: what is made of a program with all its devices."""

    __slots__ = ("before",)

    def __enter__(self):
        self.before = context.typed_axes
        if self.before:
            hold(typed_axes=frozenset())

    def __exit__(self, *exc_info):
        if self.before:
            hold(typed_axes=self.before)
