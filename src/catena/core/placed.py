"""Arrays that somebody put on a device, and where results go: computation follows data.

An array that nobody placed is a plain Array: it is wherever it is needed. Only what was placed is a ``PlacedArray``, a
class of its own, so that the hot paths, which ask ``type(x) is Array``, neither see it nor pay for it. A committed
array keeps the operations on it on its devices; an uncommitted one only says where it was made.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from catena.core.array import Array, Deleted, ExtendedArray, live
from catena.core.context import context
from catena.core.job import job
from catena.core.named import NamedTuple
from catena.core.parts import Parts, at_place
from catena.core.placement import Placement
from catena.core.token import Token

_new = object.__new__


class PlacedType(NamedTuple):
    """What tells placed arrays apart: their type and place. It stands where plain arrays have their type, by which
    jitted functions know what they have run before.
    """

    aval: Any
    placement: Placement


@functools.lru_cache(4096)
def placed_type(aval, placement: Placement) -> PlacedType:
    """The type of an array at ``placement``: along Explicit axes of a mesh, its layout belongs to it."""
    if placement.layout is not None or not aval.plain:
        aval = aval.update(sharding=said_sharding(placement.layout))
    return PlacedType(aval, placement)


def said_sharding(layout):
    """What a layout says of the types of arrays: the part over Explicit axes of its mesh, if there are any."""
    mesh = getattr(layout, "mesh", None)
    return layout.update(mesh=mesh.abstract_mesh, memory_kind=None) if mesh is not None and mesh.explicit_axes else None


class PlacedArray(Array):
    """An Array on devices that it was put on."""

    __slots__ = ()
    _is_placed = True

    @property
    def aval(self):
        known = self._aval
        return self._value.aval if known is None else known.aval  # it was deleted

    @property
    def _placement(self) -> Placement | None:  # type: ignore[override]
        return self._aval.placement if self._aval is not None else None

    def __iter__(self):
        value = live(self)
        if not value.ndim:
            raise TypeError("iteration over a 0-d array")
        row, where = self.aval.update(shape=value.shape[1:]), self._placement
        if len(where.devices) > 1:  # rows of what several devices hold belong to nobody
            return (make_plain(np.asarray(v), row) for v in value)
        return (placed_array(np.asarray(v), row, where) for v in value)

    def __copy__(self):
        return placed_array(live(self).copy(), self.aval, self._placement)

    def __deepcopy__(self, memo):
        return self.__copy__()


class PlacedKeys(ExtendedArray):
    """An array of an extended dtype on devices that it was put on."""

    __slots__ = ("_placement",)

    def __iter__(self):
        where = self._placement
        return (place(x, where) for x in super().__iter__())

    def __copy__(self):
        return place(super().__copy__(), self._placement)


def make_plain(value: np.ndarray, aval) -> Array:
    array = _new(Array)
    array._value, array._weak, array._aval = value, aval.weak_type, aval
    return array


def placed_array(value: np.ndarray, aval, placement: Placement) -> PlacedArray:
    """An Array of the type ``aval`` around ``value``, placed."""
    array = _new(PlacedArray)
    array._value = at_place(value, aval, placement) if job.shared else value
    array._weak = aval.weak_type
    array._aval = placed_type(aval, placement)
    return array


def place(x, placement: Placement | None):
    """The array ``x`` at ``placement``; at ``None``, where nobody put it. It shares its memory with ``x``, and has its
    type, but for what ``placement`` says of it.
    """
    if type(x) is Token or placement is None and (type(x) is Array or type(x) is ExtendedArray):
        return x
    value, aval = x._value, x.aval
    if job.shared and type(value) is not Deleted:
        value = at_place(value, aval, placement)
    if aval.extended:
        array: Any = _new(ExtendedArray if placement is None else PlacedKeys)
        array._value, array._weak, array._aval = value, x._weak, aval
        if placement is not None:
            array._placement = placement
        if hasattr(x, "used"):
            array.used = x.used
        return array
    if type(value) is Deleted:
        return x
    if placement is None:
        return make_plain(value, aval if aval.plain else aval.update(sharding=None))
    return placed_array(value, aval, placement)


def retyped(x: Array, aval) -> Array:
    """``x``, where it is, with the type ``aval``, which differs at most in weakness."""
    return make_plain(x._value, aval) if x._placement is None else placed_array(x._value, aval, x._placement)


def results_placement(operation: str, args, names=None) -> Placement | None:
    """Where the results of an operation on ``args`` go: to the devices of those that are committed, else to the
    default device; ``None`` if nobody says so.

    Raises:
      ValueError: arguments are committed to different devices, or laid out over meshes that do not go together.
    """
    found, first = None, 0
    for i, x in enumerate(args):
        kind = type(x)
        if (kind is PlacedArray or kind is PlacedKeys) and (own := x._placement).committed:
            if found is None:
                found, first = own, i
            elif own is not found:
                check_together(own, found, operation, args, names, first, i)
    own = context.default_placement
    if found is None or own is None or not own.committed:
        return own if found is None else found
    if context.mesh is not None and context.abstract_mesh != context.mesh.abstract_mesh:
        return found  # inside of auto_axes or explicit_axes: the same mesh, with axes of other types
    check_together(own, found, operation, args, names, first, None)
    return own


def check_together(a: Placement, b: Placement, operation: str, args, names, first: int, i: int | None) -> None:
    """Raise ValueError where these are different devices, or meshes of which types say different things.

    Arguments:
      a, b: the placements of argument ``i``, or of the mesh in force, and of argument ``first``.
      operation, args, names: the operation, its arguments and their names.
    """
    if a.devices != b.devices:
        other = described(args, i, operation, names) if i is not None else f"the mesh in force with {where(a.devices)}"
        raise ValueError(
            f"Received incompatible devices for jitted computation. Got {described(args, first, operation, names)} and "
            f"{other}. Put them on the same devices by catena.device_put."
        )
    if a.layout is not None and b.layout is not None and a.layout is not b.layout:
        ours, theirs = a.layout.mesh, b.layout.mesh
        if ours is not theirs and (ours.explicit_axes or theirs.explicit_axes) and ours != theirs:
            raise ValueError(
                f"the operands of {operation} are laid out over different meshes, of which types tell: {theirs} and "
                f"{ours}. Put them on one mesh by catena.device_put, and that mesh in force by catena.set_mesh."
            )


def described(args, i: int, operation: str, names) -> str:
    """An argument and where it is, for the error."""
    names = ("x", "y") if names is None and len(args) == 2 else names
    name, x = names[i] if names is not None else f"args[{i}]", args[i]
    return f"argument {name} of {operation} with shape {x.aval.str_short()} and with {where(x._placement.devices)}"


def where(devices) -> str:
    """Devices by their numbers."""
    return f"device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


def follow(x, operation: str, args):
    """The array ``x``, computed from ``args`` past the primitives, where such a result belongs."""
    return place_result(x, results_placement(operation, args), args)


def place_result(x, placement: Placement | None, args):
    """A result of ``args`` at ``placement``, for which no rule says how it lies on several devices: as that argument of
    its shape which is split most, else whole on each.
    """
    if placement is None or placement.layout is None or type(x) is Token or layout_of(x) is not None:
        return place(x, placement) if layout_of(x) is None else x
    shape = x.shape
    alike = [own for a in args if (own := layout_of(a)) is not None and a.shape == shape]
    layout = placement.layout.whole(len(shape))
    if alike and x.aval.plain:
        layout = min(alike, key=lambda own: math.prod(own.shard_shape(shape)))
    return place(x, placement._replace(layout=layout.as_typed(x.aval)))


def layout_of(x):
    """How a committed array lies on several devices; ``None`` for others."""
    placement = x._placement if type(x) is PlacedArray or type(x) is PlacedKeys else None
    return placement.layout if placement is not None and placement.committed else None


def unplaced(x: Array) -> Array:
    """The array ``x``, with its type, as one that nobody put anywhere: what is evaluated on."""
    if x.aval.extended or x.aval.plain:
        return place(x, None)
    value = live(x)
    return make_plain(at_place(value, x.aval, None) if job.shared else value, x.aval)


def placed_value(value, known: PlacedType) -> PlacedArray:
    """An Array of a known type and place around what such an array holds."""
    array = _new(PlacedArray)
    array._value, array._weak, array._aval = value, known.aval.weak_type, known
    return array


def typed_parts(parts: Parts):
    """The Array of which this process has these parts."""
    array: Any = _new(PlacedKeys if parts.aval.extended else PlacedArray)
    array._value, array._weak = parts, parts.aval.weak_type
    array._aval = parts.aval if parts.aval.extended else placed_type(parts.aval, parts.placement)
    if parts.aval.extended:
        array._placement = parts.placement
    return array


def spans_processes(x) -> bool:
    """Whether this is an array of which other processes hold parts."""
    return type(getattr(x, "_value", None)) is Parts


def in_one_piece(x):
    """An array that spans processes, with all of its elements here; for that, all processes must ask."""
    if not spans_processes(x):
        return x
    array = _new(type(x))
    array._value, array._weak, array._aval = x._value.whole(), x._weak, x._aval
    if x.aval.extended:
        array._placement = x._placement
    return array
