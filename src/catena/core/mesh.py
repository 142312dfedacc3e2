"""Meshes: devices in a grid whose axes have names, and the mesh that is in force.

An abstract mesh is the grid without its devices: what a program says of them, and so what types and caches hold.
"""

from __future__ import annotations

import contextlib
import enum
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from catena.core.config import refresh_derived
from catena.core.context import context
from catena.core.device import Device
from catena.core.device import devices as all_devices
from catena.core.job import job
from catena.core.named import NamedTuple


class AxisType(enum.Enum):
    """Who says how arrays are laid out along an axis of a mesh: the compiler (``Auto``), the types of the program
    (``Explicit``), or the function itself, which is written for one device (``Manual``).
    """

    Auto = 1
    Explicit = 2
    Manual = 3

    def __repr__(self):
        return self.name


class AbstractDevice(NamedTuple):
    """What is said of devices that need not be at hand: their kind, their number of cores, their platform."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self):
        return f"AbstractDevice({self._described()})"

    def _described(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


class Axes:
    """Named axes with sizes and types: what a mesh and an abstract mesh have in common."""

    __slots__ = ("axis_names", "axis_sizes", "axis_types", "_hash")
    axis_names: tuple
    axis_sizes: tuple
    axis_types: tuple
    _hash: int
    _identity: Callable[[], tuple]  # what tells one from another

    def __setattr__(self, name, value):
        raise AttributeError(f"cannot assign to field {name!r} of a mesh; {type(self).__name__}.update makes another")

    def _fill(self, **parts):
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> OrderedDict:
        """The size of each axis by its name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple:
        """The names and sizes of the axes, as pairs."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.axis_sizes)

    def _axes_of_type(self, kind: AxisType) -> tuple:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple:
        """The names of the axes of type ``Auto``."""
        return self._axes_of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple:
        """The names of the axes of type ``Explicit``."""
        return self._axes_of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple:
        """The names of the axes of type ``Manual``."""
        return self._axes_of_type(AxisType.Manual)

    def _are_all(self, kind: AxisType) -> bool:
        return bool(self.axis_types) and all(t is kind for t in self.axis_types)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether there are axes and all are of type ``Auto``."""
        return self._are_all(AxisType.Auto)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether there are axes and all are of type ``Explicit``."""
        return self._are_all(AxisType.Explicit)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether there are axes and all are of type ``Manual``."""
        return self._are_all(AxisType.Manual)

    def __eq__(self, other):
        if self is other:
            return True
        return type(other) is type(self) and self._hash == other._hash and self._identity() == other._identity()

    def __hash__(self):
        return self._hash

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def _axes_text(self) -> str:
        return ", ".join(f"{name!r}: {size}" for name, size in self.shape_tuple)


def axis_types_of(names: tuple, types, default: AxisType = AxisType.Auto) -> tuple:
    """The types of the axes ``names``, checked.

    Raises:
      TypeError: something is no AxisType. ValueError: there are more or fewer than names.
    """
    if types is None:
        return (default,) * len(names)
    types = tuple(types) if isinstance(types, (tuple, list)) else (types,)
    if not all(isinstance(t, AxisType) for t in types):
        kinds = tuple(type(t).__name__ for t in types)
        raise TypeError(f"axis_types must be of type jax.sharding.AxisType, got {types} of types {kinds}")
    if len(types) != len(names):
        raise ValueError(f"axis_types must have one entry for each axis name, got {types} for {names}")
    return types


def checked_names(names) -> tuple:
    """Names of axes as a tuple; one string is the name of one axis."""
    names = (names,) if isinstance(names, str) else tuple(names)
    if None in names:
        raise ValueError(f"axis_names must not contain None, got {names}")
    if len(set(names)) < len(names):
        raise ValueError(f"axis_names must differ from each other, got {names}")
    return names


class Mesh(Axes, contextlib.ContextDecorator):
    """Devices in a grid whose axes have names.

    Arguments:
      devices: an array of devices, an axis of it for each name.
      axis_names: the names of the axes.
      axis_types: their types; all ``Auto`` by default.
    Raises:
      ValueError: there are more or fewer names or types than axes. TypeError: something is no device or no type.

    >>> import catena as jax, numpy as np
    >>> jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    Mesh(axis_sizes=(1, 1), axis_names=('data', 'model'), axis_types=(Auto, Auto))
    """

    __slots__ = ("devices", "_flat")
    devices: np.ndarray
    _flat: tuple

    def __init__(
        self,
        devices: np.ndarray | Sequence[Device],
        axis_names: str | Sequence[Any],
        axis_types: tuple[AxisType, ...] | None = None,
    ):
        grid = np.array(devices, dtype=object)
        names = checked_names(axis_names)
        if grid.ndim != len(names):
            raise ValueError(
                f"Mesh needs a name for each axis of devices, got devices of shape {grid.shape} and axis_names={names}"
            )
        flat = tuple(grid.ravel())
        if flat == (None,) or not flat:  # no devices: the empty mesh
            grid, names, flat = np.array(None, dtype=object), (), ()
        for d in flat:
            if not isinstance(d, Device):
                raise TypeError(f"the devices of a Mesh must be devices such as catena.devices()[0], got {d!r}")
        grid.flags.writeable = False
        types = axis_types_of(names, axis_types if flat else None)
        self._fill(devices=grid, axis_names=names, axis_sizes=grid.shape, axis_types=types, _flat=flat)
        self._fill(_hash=hash(self._identity()))

    def _identity(self) -> tuple:
        return self._flat, self.axis_sizes, self.axis_names, self.axis_types

    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    @property
    def size(self) -> int:
        """The number of devices."""
        return len(self._flat)

    @property
    def empty(self) -> bool:
        """Whether there are no devices."""
        return not self._flat

    @property
    def is_scalar(self) -> bool:
        """Whether it is one device without an axis."""
        return bool(self._flat) and self.devices.ndim == 0

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices."""
        return np.array([d.id for d in self._flat], int).reshape(self.devices.shape if self._flat else (0,))

    @property
    def is_multi_process(self) -> bool:
        """Whether devices of other processes are among them."""
        return len(self.local_devices) < len(self._flat)

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh that belongs to this process.

        Raises:
          ValueError: the devices of this process are no block of the grid.
        """
        if not self.is_multi_process:
            return self
        own = np.array([d.process_index == job.index for d in self._flat], bool).reshape(self.devices.shape)
        block = tuple(slice(min(i), max(i) + 1) if len(i) else slice(0) for i in np.nonzero(own))
        if not own.any() or not own[block].all():
            raise ValueError(f"the devices of process {job.index} are no block of the grid of {self}")
        return self.update(self.devices[block])

    @property
    def local_devices(self) -> list[Device]:
        """The devices that belong to this process."""
        return [d for d in self._flat if d.process_index == job.index]

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        if not self._flat:
            return EMPTY_ABSTRACT
        first = self._flat[0]
        device = AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    def update(self, devices=None, axis_names=None, axis_types=None) -> Mesh:
        """The same mesh with some parts replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        warnings.warn(
            "`with mesh:` is JAX's older way to name a mesh for PartitionSpecs; use `with jax.set_mesh(mesh):`",
            DeprecationWarning,
            stacklevel=2,
        )
        hold(physical_mesh=self, mesh_stack=(*context.mesh_stack, context.physical_mesh))
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        *others, previous = context.mesh_stack
        hold(physical_mesh=previous, mesh_stack=tuple(others))
        return False

    def __repr__(self):
        if not self._flat:
            return "Mesh(axis_sizes=(), axis_names=())"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={self.axis_types})"

    def __str__(self):
        if not self._flat:
            return "Mesh()"
        return f"Mesh({self._axes_text() or '()'}, axis_types={self.axis_types})"


class AbstractMesh(Axes):
    """A mesh without its devices: names, sizes and types of axes.

    Arguments:
      axis_sizes: the sizes of the axes.
      axis_names: their names.
      axis_types: their types; all ``Auto`` by default.
      abstract_device: what is said of the devices; an AbstractDevice or None.
    Raises:
      ValueError: the sizes, names and types are not as many. TypeError: something is no type.

    >>> import catena as jax
    >>> jax.sharding.AbstractMesh((2, 4), ("data", "model"))
    AbstractMesh('data': 2, 'model': 4, axis_types=(Auto, Auto))
    """

    __slots__ = ("abstract_device",)
    abstract_device: AbstractDevice | None

    def __init__(
        self,
        axis_sizes: tuple[int, ...],
        axis_names: tuple[str, ...],
        axis_types: AxisType | tuple[AxisType, ...] | None = None,
        *,
        abstract_device=None,
    ):
        sizes, names = tuple(axis_sizes), checked_names(axis_names)
        if len(sizes) != len(names):
            raise ValueError(f"AbstractMesh needs a name for each size, got {axis_sizes=} and axis_names={names}")
        if abstract_device is not None and not isinstance(abstract_device, AbstractDevice):
            raise TypeError(f"abstract_device must be an AbstractDevice or None, got {abstract_device!r}")
        types = axis_types_of(names, axis_types)
        self._fill(axis_sizes=sizes, axis_names=names, axis_types=types, abstract_device=abstract_device)
        self._fill(_hash=hash(self._identity()))

    def _identity(self) -> tuple:
        return self.axis_sizes, self.axis_names, self.axis_types, self.abstract_device

    def __reduce__(self):
        return _rebuild, self._identity()

    @property
    def empty(self) -> bool:
        """Whether there are no axes."""
        return not self.axis_sizes

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, axis_sizes=None, axis_names=None, axis_types=None, **kwargs) -> AbstractMesh:
        """The same mesh with some parts replaced; ``abstract_device`` is one of them too."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **kwargs},
        )

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """The same mesh with the types of some axes, by name, replaced."""
        types = [name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=tuple(types))

    def _has_no(self, what: str):
        raise ValueError(f"an AbstractMesh has no {what}: it says nothing of which devices there are")

    devices = property(lambda self: self._has_no("devices"))
    device_ids = property(lambda self: self._has_no("device_ids"))
    local_devices = property(lambda self: self._has_no("local_devices"))
    local_mesh = property(lambda self: self._has_no("local_mesh"))
    is_multi_process = property(lambda self: self._has_no("is_multi_process"))

    def __enter__(self):
        raise ValueError("an AbstractMesh is no context manager; use jax.sharding.use_abstract_mesh(mesh)")

    def __exit__(self, exc_type, exc_value, traceback):
        raise ValueError("an AbstractMesh is no context manager; use jax.sharding.use_abstract_mesh(mesh)")

    def __repr__(self):
        device = f", {self.abstract_device._described()}" if self.abstract_device is not None else ""
        return f"AbstractMesh({self._axes_text() or '()'}, axis_types={self.axis_types}{device})"


def _rebuild(sizes, names, types, device) -> AbstractMesh:
    return AbstractMesh(sizes, names, types, abstract_device=device)


EMPTY = Mesh(np.array(None, dtype=object), ())
EMPTY_ABSTRACT = AbstractMesh((), ())


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[str],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of this shape over the first devices there are.

    Arguments:
      axis_shapes: the sizes of the axes.
      axis_names: their names.
      axis_types: their types; all ``Explicit`` by default.
      devices: the devices to take from; all of this platform by default.
    Raises:
      ValueError: there are too few devices, or more or fewer names than sizes.

    >>> import catena as jax
    >>> jax.make_mesh((1,), ("data",))
    Mesh(axis_sizes=(1,), axis_names=('data',), axis_types=(Explicit,))
    """
    sizes, names = tuple(int(n) for n in axis_shapes), checked_names(axis_names)
    among = list(all_devices() if devices is None else devices)
    count = math.prod(sizes)
    if any(n < 1 for n in sizes):
        raise ValueError(f"the sizes of a mesh's axes must be positive, got axis_shapes={sizes}")
    if len(among) < count:
        raise ValueError(f"a mesh of shape {sizes} takes {count} devices, and there are {len(among)}")
    if len(sizes) != len(names):
        raise ValueError(f"make_mesh needs a name for each size, got axis_shapes={sizes} and axis_names={names}")
    types = axis_types_of(names, axis_types, AxisType.Explicit)
    grid = np.empty(count, dtype=object)
    grid[:] = among[:count]
    return Mesh(grid.reshape(sizes), names, types)


# ---- the mesh in force, a thread's own


def hold(**parts) -> None:
    """Set what is in force in this thread: ``mesh``, ``abstract_mesh``, ``physical_mesh``; the empty one is none."""
    own = vars(context)
    for name, value in parts.items():
        if value is None or getattr(value, "empty", not value):
            own.pop(name, None)
        else:
            own[name] = value
    refresh_derived()


class use_abstract_mesh:  # noqa: N801
    """Put an abstract mesh in force in this thread within a ``with`` block.

    Arguments:
      mesh: the abstract mesh.
    Raises:
      ValueError: it is none.

    >>> import catena as jax
    >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("data",))):
    ...     jax.sharding.get_abstract_mesh()
    AbstractMesh('data': 2, axis_types=(Auto,))
    """

    __slots__ = ("mesh", "prev")

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise ValueError(f"use_abstract_mesh takes a jax.sharding.AbstractMesh, got {mesh!r}")
        self.mesh = mesh

    def __enter__(self):
        self.prev = get_abstract_mesh()
        hold(abstract_mesh=self.mesh)
        return None

    def __exit__(self, exc_type, exc_value, traceback):
        hold(abstract_mesh=self.prev)


def concrete_mesh() -> Mesh:
    """The mesh in force; the empty one if there is none."""
    return context.mesh or EMPTY


def get_mesh() -> Mesh:
    """The mesh that ``set_mesh`` put in force, or the empty one.

    Raises:
      ValueError: a function is being traced, which may know the abstract mesh only.

    >>> import catena as jax
    >>> jax.sharding.get_mesh()
    Mesh(axis_sizes=(), axis_names=())
    """
    if context.trace is not None:
        raise ValueError(
            "get_mesh is for outside of jit and other transformations; use jax.sharding.get_abstract_mesh()"
        )
    return concrete_mesh()


def get_abstract_mesh() -> AbstractMesh:
    """The abstract mesh in force, or the empty one.

    >>> import catena as jax
    >>> jax.sharding.get_abstract_mesh()
    AbstractMesh((), axis_types=())
    """
    return context.abstract_mesh or EMPTY_ABSTRACT
