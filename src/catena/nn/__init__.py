"""Neural networks."""

from catena.core.namespace import late as _late
from catena.core.traceback import door as _door

_late(globals(), lambda name, fun: _door(fun, "catena.nn"))
