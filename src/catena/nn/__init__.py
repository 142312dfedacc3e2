"""Neural networks."""

from catena.core.namespace import shown as _shown
from catena.core.unbuilt import absent as _absent
from catena.nn import initializers as initializers

__dir__ = _shown(globals(), "initializers")

_absent(globals())
