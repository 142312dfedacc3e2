"""Where arrays are: the ``device`` and ``out_sharding`` arguments of the functions that make them."""

from __future__ import annotations

from catena.core.array import Array, live, typed_array
from catena.core.context import context
from catena.core.device import Device, devices_of
from catena.core.formats import Format, format_in_rows, layout_of_memory
from catena.core.job import job
from catena.core.placed import follow, place, spans_processes, where
from catena.core.placement import Placement
from catena.core.sharding import Shard, Sharding, SingleDeviceSharding, sharding_of
from catena.core.staging import staged
from catena.core.targets import check_layout, target_placement
from catena.core.trace import Tracer
from catena.core.zeros import as_typed
from catena.lax.structure import resharded
from catena.transform.placement import device_put


def placed(x, device=None, sharding=None, like=None):
    """``x``, a new array, on a device or in a sharding that the user asked for; else where the array is that it is to
    be ``like``, or where it belongs by itself. In a function that is being traced it is a traced value.

    Raises:
      ValueError: ``x`` was computed from what is committed to other devices.
    """
    if sharding is not None:
        return resharded("a function of catena.numpy", x, sharding)
    target = device
    if target is None:
        own = getattr(like, "aval", None) if context.laid_out else None
        if own is not None and own.shape == x.shape:
            x = as_typed(x, own)
        if context.default_placement is None and (like is None or type(like) is Array) or type(x) is not Array:
            return staged(x) if context.trace is not None and type(x) is Array else x
        return staged(follow(x, "full_like", (like,)))
    chosen = target_placement(target)
    check_layout(chosen, x.shape)
    if isinstance(x, Tracer):
        return x
    own = x._placement
    if own is not None and own.committed and own.devices != chosen.devices:
        raise ValueError(
            "Received incompatible devices for jitted computation. Got an array with "
            f"{where(own.devices)} and a device or sharding with {where(chosen.devices)}. Move it by catena.device_put."
        )
    return staged(place(x, chosen))


def moved(x: Array, target) -> Array:
    """``x`` where the user wants it, or as it is where that is ``None``."""
    if isinstance(x, Tracer):
        return device_put(x, target)
    chosen = target_placement(target)
    check_layout(chosen, x.shape)
    return x if chosen is None else place(x, chosen)


# ----------------------------------------------------------------------------------------------------
# What arrays say of their place


def sharding(x: Array) -> Sharding:
    """Where an array is."""
    placement = x._placement
    return SingleDeviceSharding(devices_of(x)[0]) if placement is None else sharding_of(placement)


def format_of(x: Array) -> Format:
    """The order of its axes in memory, and where it is."""
    placed_at = sharding(x)
    if x.aval.extended or len(placed_at.device_set) > 1 or spans_processes(x):
        return format_in_rows(x.ndim, placed_at)
    return Format(layout_of_memory(live(x)), placed_at)


def device(x: Array) -> Device | Sharding:
    """The device that an array is on; of several, how it lies on them."""
    devices = devices_of(x)
    return devices[0] if len(devices) == 1 else sharding(x)


def committed(x: Array) -> bool:
    """Whether the user chose the place."""
    return x._placement is not None and x._placement.committed


def is_here(x: Array) -> bool:
    """Whether all devices belong to this process."""
    return not job.shared or sharding(x).is_fully_addressable


def is_copied(x: Array) -> bool:
    """Whether every device has all of it."""
    return sharding(x).is_fully_replicated


def global_shards(x: Array) -> list[Shard]:
    """The parts of an array, one for each of its devices; of those in other processes, without their data."""
    devices, layout = devices_of(x), sharding(x)
    if len(devices) == 1 and not spans_processes(x):
        return [Shard(devices[0], layout, x.shape, x)]
    found = []
    for device, index in layout.devices_indices_map(x.shape).items():
        here = device.process_index == job.index
        data = place(part(x, index), Placement((device,))) if here else None
        found.append(Shard(device, layout, x.shape, data))
    return found


def shards(x: Array) -> list[Shard]:
    """Those on devices of this process."""
    return [s for s in global_shards(x) if s.data is not None]


def part(x: Array, index: tuple) -> Array:
    """What stands at an index of slices: a view."""
    if spans_processes(x):
        value = x._value[index]
        return typed_array(value, x.aval.update(shape=value.shape, sharding=None))
    if x.aval.extended:
        return place(x, None)[index]
    value = live(x)[index]
    return typed_array(value, x.aval.update(shape=value.shape, sharding=None))
