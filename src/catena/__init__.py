"""catena: expressing and composing transformations of numerical programs, under JAX's public names."""

from catena.core.lazy import without_collection as _without_collection
from catena.runtime import layout as _layout  # noqa: F401  (refuses a Python or NumPy on which programs cannot run)

with _without_collection():
    from catena import numpy as _numpy  # noqa: F401  (gives arrays their operators and methods)
    from catena.core.namespace import late as _late
    from catena.core.traceback import door as _door

_late(globals(), lambda name, fun: _door(fun, "catena"))
