"""Geometry."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent

__dir__ = _shown(globals(), "transform")

_absent(globals(), "transform")
