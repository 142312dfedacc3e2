"""Layouts in XLA's words: tiles over numbered devices, as protocol buffers and as text.

Source: the message OpSharding of xla_data.proto, https://github.com/openxla/xla.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np

from catena.core.protobuf import fields, message, number, varint, varints


class Type(enum.IntEnum):
    """What kind of layout this is."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    OTHER = 3
    MANUAL = 4
    UNKNOWN = 5
    UNREDUCED = 6


# By the number in the message: lists of numbers.
_LISTS = {
    3: "tile_assignment_dimensions",
    4: "tile_assignment_devices",
    8: "last_tile_dims",
    9: "iota_reshape_dims",
    10: "iota_transpose_perm",
}


class OpSharding:
    """The message in which programs of XLA carry a layout. Its fields may be set.

    >>> from catena.core.hlo_sharding import OpSharding
    >>> layout = OpSharding()
    >>> layout.type = OpSharding.Type.MANUAL
    >>> layout.SerializeToString()
    b'\\x08\\x04'
    """

    Type = Type

    def __init__(self) -> None:
        self.Clear()

    def Clear(self) -> None:  # noqa: N802
        """Say that everything is everywhere, as a new message does."""
        self.type = Type.REPLICATED
        self.tile_assignment_dimensions: list[int] = []
        self.tile_assignment_devices: list[int] = []
        self.iota_reshape_dims: list[int] = []
        self.iota_transpose_perm: list[int] = []
        self.replicate_on_last_tile_dim = False
        self.last_tile_dims: list[Type] = []
        self.tuple_shardings: list[OpSharding] = []

    def ParseFromString(self, data: bytes) -> None:  # noqa: N802
        """Take over what a message says. Raises TypeError: these are no bytes; ValueError: they are no such message."""
        if not isinstance(data, bytes):
            raise TypeError(f"a serialized sharding must be bytes, got {data!r}")
        self.Clear()
        try:
            for key, value in fields(data):
                self._read(key, value)
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(f"these bytes are no serialized sharding: {data!r}") from error

    def _read(self, key: int, value) -> None:
        if key == 1:
            self.type = Type(value)
        elif key == 5:
            self.tuple_shardings.append(parsed(value))
        elif key == 6:
            self.replicate_on_last_tile_dim = bool(value)
        elif key in _LISTS:
            found = varints(value) if isinstance(value, bytes) else [value]
            getattr(self, _LISTS[key]).extend(Type(v) if key == 8 else v for v in found)
        elif key != 7:  # what is kept of the operation that a user wrote
            raise ValueError(f"field {key} is not one that layouts have here")

    def SerializeToString(self) -> bytes:  # noqa: N802
        """The message as bytes."""
        out = number(1, self.type) if self.type else b""
        for key in sorted([*_LISTS, 5, 6]):
            if key == 5:
                out += b"".join(message(5, part.SerializeToString()) for part in self.tuple_shardings)
            elif key == 6:
                out += number(6, 1) if self.replicate_on_last_tile_dim else b""
            elif getattr(self, _LISTS[key]):
                out += message(key, b"".join(map(varint, getattr(self, _LISTS[key]))))
        return out


def parsed(data: bytes) -> OpSharding:
    """The message that these bytes are."""
    out = OpSharding()
    out.ParseFromString(data)
    return out


class HloSharding:
    """A layout over numbered devices, which does not change; two are equal that lay out arrays in the same way.

    >>> from catena.core.hlo_sharding import HloSharding
    >>> HloSharding.iota_tile((2, 4), (4, 2), (1, 0))
    {devices=[2,4]<=[4,2]T(1,0)}
    """

    __slots__ = ("_proto", "_places")

    def __init__(self, proto: OpSharding):
        self._proto = parsed(proto.SerializeToString())  # messages change, layouts do not
        subgroups = set(self._proto.last_tile_dims)
        if len(subgroups) > 1:
            raise ValueError(f"the last axes of the tiles must be of one kind, got {self._proto.last_tile_dims}")
        if subgroups == {Type.REPLICATED} and len(self._proto.last_tile_dims) == 1:
            self._proto.last_tile_dims, self._proto.replicate_on_last_tile_dim = [], True
        self._places = _places(self._proto)
        tiles = self._proto.tile_assignment_dimensions[: self.num_tiled()]
        if self.is_tiled() and set(tiles) <= {1}:
            self._proto, self._places = OpSharding(), None
            self._proto.type = max(subgroups, default=Type.REPLICATED)

    @classmethod
    def from_proto(cls, proto: OpSharding) -> HloSharding:
        """The layout that a message says. Raises ValueError: it contradicts itself."""
        return cls(proto)

    @classmethod
    def _of(cls, kind: Type) -> HloSharding:
        proto = OpSharding()
        proto.type = kind
        return cls(proto)

    @classmethod
    def replicate(cls) -> HloSharding:
        """Every device has all of the array."""
        return cls._of(Type.REPLICATED)

    @classmethod
    def manual(cls) -> HloSharding:
        """The program says itself what each device does."""
        return cls._of(Type.MANUAL)

    @classmethod
    def unknown(cls) -> HloSharding:
        """Nothing is said."""
        return cls._of(Type.UNKNOWN)

    @classmethod
    def iota_tile(
        cls, dims: Sequence[int], reshape_dims: Sequence[int] = (), transpose_perm: Sequence[int] = ()
    ) -> HloSharding:
        """Tiles, as many along each axis as ``dims`` says, for devices in the order of their numbers; or, if they are
        first laid out with the shape ``reshape_dims``, in the order of its axes ``transpose_perm``.
        """
        proto = OpSharding()
        proto.type, proto.tile_assignment_dimensions = Type.OTHER, list(dims)
        proto.iota_reshape_dims = list(reshape_dims) or [math.prod(dims)]
        proto.iota_transpose_perm = list(transpose_perm) if reshape_dims else [0]
        return cls(proto)

    def to_proto(self) -> OpSharding:
        """The layout as a message."""
        return parsed(self._proto.SerializeToString())

    def num_tiled(self) -> int:
        """How many axes arrays have that are laid out so."""
        last = len(self._proto.last_tile_dims) or int(self._proto.replicate_on_last_tile_dim)
        return len(self._proto.tile_assignment_dimensions) - last

    def is_replicated(self) -> bool:
        """Whether every device has all of the array."""
        return self._proto.type == Type.REPLICATED

    def is_manual(self) -> bool:
        """Whether the program says itself what each device does."""
        return self._proto.type == Type.MANUAL

    def is_unknown(self) -> bool:
        """Whether nothing is said."""
        return self._proto.type == Type.UNKNOWN

    def is_tiled(self) -> bool:
        """Whether arrays are cut into tiles."""
        return self._proto.type == Type.OTHER

    def replicate_on_last_tile_dim(self) -> bool:
        """Whether several devices have each tile."""
        return self._proto.replicate_on_last_tile_dim

    def tile_assignment_dimensions(self) -> list[int]:
        """How many tiles there are along each axis, then how many devices have each."""
        return list(self._proto.tile_assignment_dimensions) or [0]

    def tile_assignment_devices(self) -> list[int]:
        """The numbers of the devices, in the order of the tiles."""
        return [] if self._places is None else self._places.ravel().tolist()

    def _identity(self) -> tuple:
        proto = self._proto
        dims, kinds = tuple(proto.tile_assignment_dimensions), tuple(proto.last_tile_dims)
        return (
            proto.type,
            dims,
            kinds,
            proto.replicate_on_last_tile_dim,
            tuple(self.tile_assignment_devices()),
            tuple(HloSharding(part)._identity() for part in proto.tuple_shardings),
        )

    def __eq__(self, other):
        return isinstance(other, HloSharding) and self._identity() == other._identity()

    def __hash__(self):
        return hash(self._identity())

    def __repr__(self):
        proto = self._proto
        if proto.type == Type.TUPLE:
            return f"{{{', '.join(repr(HloSharding(part)) for part in proto.tuple_shardings)}}}"
        if proto.type == Type.MAXIMAL:
            return f"{{maximal device={proto.tile_assignment_devices[0]}}}"
        if proto.type != Type.OTHER:
            return f"{{{proto.type.name.lower()}}}"
        last = " last_tile_dim_replicate" if proto.replicate_on_last_tile_dim else ""
        if proto.last_tile_dims:
            last = f" last_tile_dims={{{', '.join(kind.name.lower() for kind in proto.last_tile_dims)}}}"
        return f"{{devices=[{_listed(proto.tile_assignment_dimensions)}]{self._order()}{last}}}"

    def _order(self) -> str:
        shape, order = self._proto.iota_reshape_dims, self._proto.iota_transpose_perm
        if not shape:
            return _listed(self._proto.tile_assignment_devices)
        return f"<=[{_listed(shape)}]" + (f"T({_listed(order)})" if len(shape) > 1 else "")


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _places(proto: OpSharding) -> np.ndarray | None:
    """For each tile its device; None where there are no tiles. What says the same of their order becomes equal."""
    if proto.type not in (Type.OTHER, Type.MAXIMAL):
        return None
    dims, shape, order = proto.tile_assignment_dimensions, proto.iota_reshape_dims, proto.iota_transpose_perm
    if shape:
        if sorted(order) != list(range(len(shape))) or math.prod(shape) != math.prod(dims):
            raise ValueError(f"tiles {dims} cannot take devices of the shape {shape} in the order of axes {order}")
        proto.iota_reshape_dims, proto.iota_transpose_perm = _simplest(shape, order)
        return np.arange(math.prod(dims)).reshape(shape).transpose(order).reshape(dims)
    devices = proto.tile_assignment_devices
    if not devices or math.prod(dims) != len(devices):
        raise ValueError(f"tiles {dims} need {math.prod(dims)} devices, got {devices}")
    places = np.asarray(devices).reshape(dims)
    if proto.replicate_on_last_tile_dim:  # which of the copies a device has does not matter
        places = np.sort(places, axis=-1)
        proto.tile_assignment_devices = places.ravel().tolist()
    return places


def _simplest(shape: list[int], order: list[int]) -> tuple[list[int], list[int]]:
    """The same order of devices with as few axes as possible: those of size 1 go, neighbours become one."""
    groups: list[list[int]] = []
    kept = [axis for axis in range(len(shape)) if shape[axis] != 1]
    for axis in (kept.index(axis) for axis in order if shape[axis] != 1):
        if groups and groups[-1][-1] + 1 == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    by_place = sorted(groups)
    sizes = [math.prod(shape[kept[axis]] for axis in group) for group in by_place]
    return sizes or [1], [by_place.index(group) for group in groups] or [0]
