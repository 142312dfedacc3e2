"""Functions that say themselves how they are split over the devices of a mesh."""

from catena.core.namespace import shown as _shown
from catena.core.traceback import open_door as _open_door
from catena.core.unbuilt import absent as _absent
from catena.experimental.custom_partitioning.calls import custom_partitioning as custom_partitioning
from catena.experimental.custom_partitioning.calls import custom_partitioning_p as custom_partitioning_p
from catena.experimental.custom_partitioning.rules import BATCHING as BATCHING
from catena.experimental.custom_partitioning.rules import ArrayMapping as ArrayMapping
from catena.experimental.custom_partitioning.rules import CompoundFactor as CompoundFactor
from catena.experimental.custom_partitioning.rules import SdyShardingRule as SdyShardingRule

_open_door(globals(), "catena.experimental.custom_partitioning")
__dir__ = _shown(globals())
_absent(globals())
