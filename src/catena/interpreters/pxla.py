"""The mesh that ``with mesh:`` has put in force, under the name by which older libraries ask for it."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from catena.core.context import context as _context
from catena.core.mesh import EMPTY as _EMPTY
from catena.core.mesh import Mesh as _Mesh
from catena.core.unbuilt import no_such_name as _no_such_name


class Environment:
    """What is in force in this thread."""

    @property
    def physical_mesh(self) -> _Mesh:
        """The mesh of the innermost ``with mesh:``, or the empty one."""
        return _context.physical_mesh or _EMPTY

    @property
    def shape(self):
        """The sizes of its axes, by their names."""
        return self.physical_mesh.shape

    @property
    def resource_axes(self) -> frozenset:
        """The names of its axes."""
        return frozenset(self.physical_mesh.axis_names)


class ThreadResources:
    """Holds ``env``."""

    env = Environment()


# By name: what it is, and what is to be used in its place.
_OLD: dict[str, tuple[Any, str]] = {
    "thread_resources": (ThreadResources(), " Use jax.set_mesh(mesh) and jax.sharding.get_abstract_mesh()."),
    "MeshAxisName": (Any, " Use the axis names of jax.sharding.Mesh."),
    "Index": (int | slice | tuple[int | slice, ...], ""),
}


def __getattr__(name: str) -> Any:
    if name in _OLD:
        value, instead = _OLD[name]
        warnings.warn(f"{__name__}.{name} is deprecated.{instead}", DeprecationWarning, stacklevel=2)
        return value
    _no_such_name(__name__, name, sys._getframe(1))
