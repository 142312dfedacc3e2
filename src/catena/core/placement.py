"""The word for where an array is: the devices, who chose them, and how it is laid out over several."""

from __future__ import annotations

from typing import Any

from catena.core.named import NamedTuple


class Placement(NamedTuple):
    """The devices that hold an array, in order. ``committed`` says whether the user chose them, so that results stay
    there too; ``layout`` is the Sharding, or ``None`` where the whole array is in the own memory of one device.
    """

    devices: tuple
    committed: bool = True
    layout: Any = None


def default_placement(device) -> Placement | None:
    """Where results go that follow no data, if the default device is ``device``: ``None`` for the first one, where
    they are without a word.
    """
    return Placement((device,), committed=False) if getattr(device, "id", 0) else None
