"""Where arrays are: the ``device`` and ``out_sharding`` arguments of the functions that make them."""

from __future__ import annotations

from catena.core.array import Array, make_array
from catena.core.device import Device, default_device
from catena.core.sharding import target_device


def device_of(x: Array) -> Device:
    """The device that an Array is on."""
    placement = getattr(x, "_placement", None)
    return default_device() if placement is None else placement


def placed(x, device=None, sharding=None):
    """``x`` on a device or in a sharding that the user asked for; both None leave it where it is."""
    target = device if device is not None else sharding
    if target is None:
        return x
    chosen = target_device(target)
    if type(x) is not Array or chosen is device_of(x):
        return x
    moved = make_array(x._value, x.weak_type)
    moved._placement = chosen
    return moved
