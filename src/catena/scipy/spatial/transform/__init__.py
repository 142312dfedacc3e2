"""Rotations in space, and interpolation between them."""

from catena.core.namespace import shown as _shown
from catena.scipy.spatial.transform.rotation import Rotation as Rotation
from catena.scipy.spatial.transform.slerp import Slerp as Slerp

__dir__ = _shown(globals())
