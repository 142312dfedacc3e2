"""Solvers of linear systems that are given by what they do to a vector."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent

__dir__ = _shown(globals(), "linalg")

_absent(globals(), "linalg")
