"""Clusters of vectors."""

from catena.core.namespace import shown as _shown
from catena.scipy.cluster import vq as vq

__dir__ = _shown(globals(), "vq")
