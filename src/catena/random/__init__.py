"""Random numbers from keys: pure functions that draw the same numbers from the same key, always and everywhere."""

from catena.core.namespace import late as _late
from catena.core.traceback import door as _door
from catena.random import philox as _philox  # noqa: F401  (registers its generators)
from catena.random import rbg as _rbg  # noqa: F401
from catena.random import threefry as _threefry  # noqa: F401

_late(globals(), lambda name, fun: _door(fun, "catena.random"))
