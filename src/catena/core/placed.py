"""Arrays that somebody put on a device, and where results go: computation follows data.

An array that nobody placed is a plain Array: it is wherever it is needed. Only what was placed is a ``PlacedArray``, a
class of its own, so that the hot paths, which ask ``type(x) is Array``, neither see it nor pay for it. A committed
array keeps the operations on it on its devices; an uncommitted one only says where it was made.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from catena.core.array import Array, Deleted, ExtendedArray, live
from catena.core.context import context
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
    return PlacedType(aval, placement)


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
    array._value = value
    array._weak = aval.weak_type
    array._aval = placed_type(aval, placement)
    return array


def place(x, placement: Placement | None):
    """The array ``x`` at ``placement``; at ``None``, where nobody put it. It shares its memory with ``x``."""
    if type(x) is Token or placement is None and (type(x) is Array or type(x) is ExtendedArray):
        return x
    value, aval = x._value, x.aval
    if aval.extended:
        array: Any = _new(ExtendedArray if placement is None else PlacedKeys)
        array._value, array._weak, array._aval = value, x._weak, aval
        if placement is not None:
            array._placement = placement.of_result(value.shape)
        if hasattr(x, "used"):
            array.used = x.used
        return array
    if type(value) is Deleted:
        return x
    return make_plain(value, aval) if placement is None else placed_array(value, aval, placement.of_result(value.shape))


def retyped(x: Array, aval) -> Array:
    """``x``, where it is, with the type ``aval``, which differs at most in weakness."""
    return make_plain(x._value, aval) if x._placement is None else placed_array(x._value, aval, x._placement)


def results_placement(operation: str, args, names=None) -> Placement | None:
    """Where the results of an operation on ``args`` go: to the devices of those that are committed, else to the
    default device; ``None`` if nobody says so.

    Raises:
      ValueError: arguments are committed to different devices.
    """
    found, first = None, 0
    for i, x in enumerate(args):
        kind = type(x)
        if (kind is PlacedArray or kind is PlacedKeys) and (own := x._placement).committed:
            if found is None:
                found, first = own, i
            elif own.devices != found.devices:
                names = NAMES_OF_TWO if names is None and len(args) == 2 else names
                there = described(args[first], first, operation, names)
                raise ValueError(
                    f"Received incompatible devices for jitted computation. Got {there} and "
                    f"{described(x, i, operation, names)}. Put them on one device by catena.device_put."
                )
            elif found.axis is None:
                found = own
    return context.default_placement if found is None else found


NAMES_OF_TWO = ("x", "y")


def described(x, i: int, operation: str, names) -> str:
    """An argument and where it is, for the error."""
    name = names[i] if names is not None else f"args[{i}]"
    return f"argument {name} of {operation} with shape {x.aval.str_short()} and with {where(x._placement.devices)}"


def where(devices) -> str:
    """Devices by their numbers."""
    return f"device ids {[d.id for d in devices]} on platform {devices[0].platform.upper()}"


def follow(x, operation: str, args):
    """The array ``x``, computed from ``args`` past the primitives, where such a result belongs."""
    return place(x, results_placement(operation, args))
