"""Reductions over segments: elements that have one number are reduced to one."""

from catena.core.namespace import shown as _shown
from catena.numpy import protocol as _protocol
from catena.ops.segments import segment_max as segment_max
from catena.ops.segments import segment_min as segment_min
from catena.ops.segments import segment_prod as segment_prod
from catena.ops.segments import segment_sum as segment_sum

_protocol.open_namespace(globals(), "catena.ops")

__dir__ = _shown(globals())
