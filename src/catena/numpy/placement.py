"""Where arrays are: the ``device`` and ``out_sharding`` arguments of the functions that make them."""

from __future__ import annotations

from typing import Any

from catena.core.array import Array
from catena.core.context import context
from catena.core.device import Device, devices_of
from catena.core.placed import place, results_placement, where
from catena.core.placement import Placement
from catena.core.sharding import Shard, Sharding, sharding_of, target_placement
from catena.core.trace import Tracer


def placed(x, device=None, sharding=None, like=None):
    """``x``, a new array, on a device or in a sharding that the user asked for; else where the array is that it is to
    be ``like``, or where it belongs by itself.

    Raises:
      ValueError: ``x`` was computed from what is committed to other devices.
    """
    target = device if device is not None else sharding
    if target is None:
        if context.default_placement is None and (like is None or type(like) is Array) or type(x) is not Array:
            return x
        return place(x, results_placement("full_like", (like,)))
    chosen = target_placement(target)
    if isinstance(x, Tracer):
        return x
    own = x._placement
    if own is not None and own.committed and own.devices != chosen.devices:
        raise ValueError(
            "Received incompatible devices for jitted computation. Got an array with "
            f"{where(own.devices)} and a device or sharding with {where(chosen.devices)}. Move it by catena.device_put."
        )
    return place(x, chosen)


# ----------------------------------------------------------------------------------------------------
# What arrays say of their place


def sharding(x: Array) -> Sharding:
    """Where an array is."""
    placement = x._placement
    return sharding_of(devices_of(x), None if placement is None else placement.axis)


def device(x: Array) -> Device | Sharding:
    """The device that an array is on; of several, how it lies on them."""
    devices = devices_of(x)
    return devices[0] if len(devices) == 1 else sharding(x)


def committed(x: Array) -> bool:
    """Whether the user chose the place."""
    return x._placement is not None and x._placement.committed


def shards(x: Array) -> list[Shard]:
    """The parts of an array, one for each of its devices."""
    devices = devices_of(x)
    if len(devices) == 1:
        [(only, index)] = sharding(x).devices_indices_map(x.shape).items()
        return [Shard(only, index, 0, x)]
    layout: Any = sharding(x)
    rest = place(x, None)
    return [
        Shard(d, index, i if layout.is_fully_replicated else 0, place(rest[index], Placement((d,))))
        for i, (d, index) in enumerate(layout.devices_indices_map(x.shape).items())
    ]
