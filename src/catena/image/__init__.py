"""Images of other sizes: resampling along any axes of an array."""

from catena.core.namespace import late as _late
from catena.numpy.protocol import opened as _opened

_late(globals(), lambda name, fun: _opened(name, fun, "catena.image"))
