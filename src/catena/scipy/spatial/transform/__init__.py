"""Rotations in space, and interpolation between them."""

from catena.core.namespace import late as _late

_late(globals())
